//! Where the bytes of one chunk are: in memory, or in a range of a file.
//!
//! Files are read by position, so threads share them without a lock, and never mapped, so a file
//! that shrinks gives an error and not a signal. A file that is only named is opened for as long
//! as it is read: a [`Place`] becomes an [`Opened`], whose [`Source`] is what the engine reads.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::files;

/// At most this many files that are only named are open at a time in one call.
pub const MOST_OPEN: usize = 64;

/// The bytes that begin with one chunk.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A buffer; what follows the chunk in it is ignored.
    Bytes(&'a [u8]),
    /// A range of an open file.
    File {
        /// The file.
        file: &'a File,
        /// Position of the chunk's first byte.
        offset: u64,
        /// Most bytes that belong to the chunk.
        limit: u64,
    },
}

/// Where one chunk is, as a caller says it.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// Bytes that can be read as they are.
    Source(Source<'a>),
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

impl<'a> From<Source<'a>> for Place<'a> {
    fn from(source: Source<'a>) -> Self {
        Self::Source(source)
    }
}

impl<'a> Place<'a> {
    /// Open what has to be opened.
    ///
    /// # Errors
    ///
    /// As [`files::open`].
    pub fn open(&self) -> Result<Opened<'a>> {
        Ok(match *self {
            Self::Source(source) => Opened(Bytes::Given(source)),
            Self::Path { path, folder, offset, limit } => {
                let file = folder.map_or_else(|| files::open(path), |folder| files::open_in(folder, path))?;
                Opened(Bytes::File { file, offset, limit })
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
            Self::Source(source) => source.available(),
            Self::Path { limit, .. } => *limit,
        }
    }
}

/// A place whose file is open until this is dropped.
#[derive(Debug)]
pub struct Opened<'a>(Bytes<'a>);

#[derive(Debug)]
enum Bytes<'a> {
    Given(Source<'a>),
    File { file: File, offset: u64, limit: u64 },
}

impl Opened<'_> {
    /// The bytes.
    #[must_use]
    pub fn source(&self) -> Source<'_> {
        match &self.0 {
            Bytes::Given(source) => *source,
            Bytes::File { file, offset, limit } => Source::File { file, offset: *offset, limit: *limit },
        }
    }
}

impl Source<'_> {
    /// How many bytes there may be.
    #[must_use]
    pub fn available(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { limit, .. } => *limit,
        }
    }

    /// Fill `buf` from byte `at` of the chunk. Returns how many bytes came, fewer than asked only at
    /// the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the system fails to read.
    pub(crate) fn read_some(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        match *self {
            Self::Bytes(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Self::File { file, offset, limit } => {
                let asked = usize::try_from(limit.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
                let mut done = 0;
                while done < asked {
                    let position = offset.saturating_add(at).saturating_add(done as u64);
                    match read_at(file, &mut buf[done..asked], position) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => {
                            return Err(Error::Io {
                                at: position,
                                length: (asked - done) as u64,
                                errno: e.raw_os_error().unwrap_or(0),
                            });
                        }
                    }
                }
                Ok(done)
            }
        }
    }

    /// Fill all of `buf` from byte `at` of the chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] naming `what` when the bytes end too early, [`Error::Io`] otherwise.
    pub(crate) fn read_all(&self, at: u64, buf: &mut [u8], what: &'static str) -> Result<()> {
        let got = self.read_some(at, buf)?;
        if got < buf.len() {
            return Err(Error::Truncated { what, at, needed: buf.len() as u64, got: got as u64 });
        }
        Ok(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, at)
}

#[cfg(windows)]
fn read_at(file: &File, buf: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, at)
}
