//! Where one chunk is, as a caller says it: in memory, in a range of an open file, or in a file that has yet to be opened.
//!
//! A file that is only named is opened for as long as it is read: a [`ChunkLocation`] becomes an [`Opened`], whose [`Source`] is
//! what the engine reads. Another kind of store is another [`ReadAt`](superchunk_engine::source::ReadAt).

use std::fs::File;
use std::path::Path;

use superchunk_engine::source::Source;

use crate::error::Result;
use crate::files;
use crate::range::{FileRange, OwnedRange};

/// At most this many files that are only named are open at a time in one call.
pub const MOST_OPEN: usize = 64;

/// Where one chunk is, as a caller says it.
#[derive(Debug, Clone, Copy)]
pub enum ChunkLocation<'a> {
    /// A buffer; what follows the chunk in it is ignored.
    Bytes(&'a [u8]),
    /// A range of an open file.
    File(FileRange<'a>),
    /// A range of a regular file that has yet to be opened.
    Path {
        /// The file's name.
        path: &'a Path,
        /// The directory to look for the last part of the name in, whatever has become of the directory's own name.
        folder: Option<&'a File>,
        /// Position of the chunk's first byte.
        offset: u64,
        /// Most bytes that belong to the chunk.
        limit: u64,
    },
}

impl<'a> ChunkLocation<'a> {
    /// Open what has to be opened.
    ///
    /// # Errors
    ///
    /// As [`files::open`].
    pub fn open(&self) -> Result<Opened<'a>> {
        Ok(match *self {
            Self::Bytes(bytes) => Opened(Bytes::Memory(bytes)),
            Self::File(range) => Opened(Bytes::Range(range)),
            Self::Path { path, folder, offset, limit } => {
                let file = folder.map_or_else(|| files::open(path), |folder| files::open_in(folder, path))?;
                Opened(Bytes::File(OwnedRange { file, offset, limit }))
            }
        })
    }

    /// Whether a file has to be opened.
    #[must_use]
    pub fn is_path(&self) -> bool {
        matches!(self, Self::Path { .. })
    }

    /// How many bytes there may be.
    #[must_use]
    pub fn available(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(FileRange { limit, .. }) | Self::Path { limit, .. } => *limit,
        }
    }
}

/// A chunk whose file is open until this is dropped.
#[derive(Debug)]
pub struct Opened<'a>(Bytes<'a>);

#[derive(Debug)]
enum Bytes<'a> {
    Memory(&'a [u8]),
    Range(FileRange<'a>),
    File(OwnedRange),
}

impl Opened<'_> {
    /// The bytes.
    #[must_use]
    pub fn source(&self) -> Source<'_> {
        match &self.0 {
            Bytes::Memory(bytes) => Source::Bytes(bytes),
            Bytes::Range(range) => range.source(),
            Bytes::File(range) => Source::Reader(range),
        }
    }

    /// The same as a location, which is not opened again.
    #[must_use]
    pub fn location(&self) -> ChunkLocation<'_> {
        match &self.0 {
            Bytes::Memory(bytes) => ChunkLocation::Bytes(bytes),
            Bytes::Range(range) => ChunkLocation::File(*range),
            Bytes::File(range) => ChunkLocation::File(range.borrow()),
        }
    }
}
