//! What can go wrong besides the chunk itself.

use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure to open a file, or whatever is wrong with what was read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A failure of the engine, or of reading an open file.
    #[error(transparent)]
    Chunk(#[from] superchunk_engine::Error),
    /// A file could not be opened.
    #[error("opening {}: OS error {errno}", path.display())]
    Open {
        /// Its name.
        path: PathBuf,
        /// The operating system's error number.
        errno: i32,
    },
    /// What has the name of a file is something else.
    #[error("{}: expected a regular file, found {found}", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
}
