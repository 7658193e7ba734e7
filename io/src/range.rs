//! A range of an open file.
//!
//! Files are read by position, so threads share them without a lock, and never mapped, so a file
//! that shrinks gives an error and not a signal.

use std::fs::File;

use superchunk_engine::source::{ReadAt, Source};
use superchunk_engine::{Error, Result};

/// The bytes of an open file from one position on.
#[derive(Debug, Clone, Copy)]
pub struct FileRange<'a> {
    /// The file.
    pub file: &'a File,
    /// Position of the first byte.
    pub offset: u64,
    /// Most bytes that belong to the range.
    pub limit: u64,
}

/// The same of a file that was opened for it.
#[derive(Debug)]
pub(crate) struct OwnedRange {
    pub(crate) file: File,
    pub(crate) offset: u64,
    pub(crate) limit: u64,
}

impl FileRange<'_> {
    /// The range as what the engine reads.
    #[must_use]
    pub fn source(&self) -> Source<'_> {
        Source::Reader(self)
    }
}

impl ReadAt for FileRange<'_> {
    fn available(&self) -> u64 {
        self.limit
    }

    fn read_some(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        let asked = usize::try_from(self.limit.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0;
        while done < asked {
            let position = self.offset.saturating_add(at).saturating_add(done as u64);
            match read_at(self.file, &mut buf[done..asked], position) {
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

impl OwnedRange {
    pub(crate) fn borrow(&self) -> FileRange<'_> {
        FileRange { file: &self.file, offset: self.offset, limit: self.limit }
    }
}

impl ReadAt for OwnedRange {
    fn available(&self) -> u64 {
        self.limit
    }

    fn read_some(&self, at: u64, buf: &mut [u8]) -> Result<usize> {
        self.borrow().read_some(at, buf)
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
