//! Where the bytes of one chunk are: in memory, or behind a reader.

use std::fmt;

use crate::error::{Error, Result};

/// Bytes of one chunk that are read in parts, from a file or from anywhere else.
///
/// Several threads read at a time.
pub trait ReadAt: Sync {
    /// The most bytes that there can be, from the chunk's first byte on.
    fn available(&self) -> u64;

    /// Fill `buf` from byte `at` of the chunk. Returns how many bytes were read, fewer than asked for only at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when reading fails.
    fn read_some(&self, at: u64, buf: &mut [u8]) -> Result<usize>;
}

/// The bytes that begin with one chunk.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A buffer; what follows the chunk in it is ignored.
    Bytes(&'a [u8]),
    /// A reader.
    Reader(&'a dyn ReadAt),
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if matches!(self, Self::Bytes(_)) { "Bytes" } else { "Reader" };
        f.debug_struct(kind).field("available", &self.available()).finish_non_exhaustive()
    }
}

impl Source<'_> {
    /// The most bytes that there can be.
    #[must_use]
    pub fn available(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Reader(reader) => reader.available(),
        }
    }

    /// Fill `buf` from byte `at` of the chunk. Returns how many bytes were read, fewer than asked for only at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when reading fails.
    pub fn read_some(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        match *self {
            Self::Bytes(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
            Self::Reader(reader) => reader.read_some(at, buf),
        }
    }

    /// Fill all of `buf` from byte `at` of the chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] naming `what` when the bytes end too early, [`Error::Io`] when reading fails.
    pub fn read_all(&self, at: u64, buf: &mut [u8], what: &'static str) -> Result<()> {
        let got = self.read_some(at, buf)?;
        if got < buf.len() {
            return Err(Error::Truncated { what, at, needed: buf.len() as u64, got: got as u64 });
        }
        Ok(())
    }
}
