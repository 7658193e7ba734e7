//! Chunk seals, and the hashes they are made of.
//!
//! ```text
//! chunk, cbytes bytes | "SCSEAL1" 0 | XXH3-64 of the chunk: u64
//! ```
//!
//! A seal is looked for directly behind a chunk. Files are read in pieces into memory that each
//! thread keeps, so checking takes no more memory than that, whatever a header claims.
//!
//! Source: docs/format/integrity.md, section "Chunk seal".

use std::cell::Cell;
use std::hash::Hasher;

use twox_hash::{XxHash3_64, XxHash3_128};

use crate::error::Result;
use crate::read::ReadError;
use crate::source::{ChunkLocation, MOST_OPEN};
use superchunk_engine::Error;
use superchunk_engine::chunk::resize;
use superchunk_engine::header::Header;
use superchunk_engine::interrupt::{Interrupt, go_on};
use superchunk_engine::limits::EXTENDED_HEADER_LENGTH;
use superchunk_engine::pool;
use superchunk_engine::source::{ReadAt, Source};

/// Bytes of a seal.
pub const SEAL_LENGTH: usize = 16;
/// What a seal begins with.
pub const MAGIC: [u8; 8] = *b"SCSEAL1\0";
/// Files are read in pieces of this size, which stay in the fast caches until they are hashed.
const PIECE: usize = 256 * 1024;
/// Fewer bytes than this are hashed before another thread has woken up.
const SERIAL: u64 = 64 * 1024;

/// What checking a chunk's seal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The chunk is as it was when it was sealed.
    Sound = 0,
    /// There is no seal behind the chunk.
    NotSealed = 1,
    /// There is a seal, of other bytes.
    Differs = 2,
    /// The chunk's header breaks the format, or the chunk cannot be read.
    Unreadable = 3,
    /// The chunk reaches beyond the bytes that there are.
    Beyond = 4,
}

/// What checking a seal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The outcome.
    pub status: Status,
    /// Bytes of the chunk as its header says, 0 where that cannot be told.
    pub cbytes: u32,
    /// Bytes of its content as its header says, 0 where that cannot be told.
    pub nbytes: u32,
}

impl Verdict {
    /// Of a chunk whose header cannot be read.
    const UNREADABLE: Self = Self { status: Status::Unreadable, cbytes: 0, nbytes: 0 };
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Run `work` with this thread's memory for one piece.
fn with_piece<R>(work: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
    let mut scratch = SCRATCH.take();
    let result = resize(&mut scratch, PIECE).map_err(crate::Error::from).and_then(work);
    SCRATCH.set(scratch);
    result
}

/// Return the XXH3-64 of `parts`, one after the other; of a file exactly as many bytes as its limit says.
///
/// # Errors
///
/// [`Error::Truncated`] when a file has fewer bytes; a file that cannot be opened or read.
pub fn hash64(parts: &[ChunkLocation<'_>]) -> Result<u64> {
    if let [ChunkLocation::Bytes(bytes)] = parts {
        return Ok(XxHash3_64::oneshot(bytes));
    }
    let mut hasher = XxHash3_64::new();
    feed(parts, |bytes| hasher.write(bytes))?;
    Ok(hasher.finish())
}

/// Return the XXH3-128 of `parts`, as [`hash64`] takes them.
///
/// # Errors
///
/// As [`hash64`].
pub fn hash128(parts: &[ChunkLocation<'_>]) -> Result<u128> {
    if let [ChunkLocation::Bytes(bytes)] = parts {
        return Ok(XxHash3_128::oneshot(bytes));
    }
    let mut hasher = XxHash3_128::new();
    feed(parts, |bytes| hasher.write(bytes))?;
    Ok(hasher.finish_128())
}

fn feed(parts: &[ChunkLocation<'_>], mut each: impl FnMut(&[u8])) -> Result<()> {
    for part in parts {
        match part.open()?.source() {
            Source::Bytes(bytes) => each(bytes),
            Source::Reader(reader) => read_pieces(reader, 0, reader.available(), "bytes to hash", &mut each)?,
        }
    }
    Ok(())
}

/// Hand bytes `from..to` of a reader to `each`, in pieces.
fn read_pieces(
    reader: &dyn ReadAt,
    from: u64,
    to: u64,
    what: &'static str,
    each: &mut impl FnMut(&[u8]),
) -> Result<()> {
    with_piece(|piece| {
        let mut at = from;
        while at < to {
            let step = usize::try_from(to - at).unwrap_or(usize::MAX).min(piece.len());
            let got = reader.read_some(at, &mut piece[..step])?;
            each(&piece[..got]);
            if got < step {
                return Err(Error::Truncated { what, at: from, needed: to - from, got: at - from + got as u64 }.into());
            }
            at += step as u64;
        }
        Ok(())
    })
}

/// Return the seal of the chunk that `bytes` begin with.
///
/// # Errors
///
/// As [`Header::parse`].
pub fn seal(bytes: &[u8]) -> Result<[u8; SEAL_LENGTH]> {
    let header = Header::parse(bytes, bytes.len() as u64)?;
    Ok(seal_of(XxHash3_64::oneshot(&bytes[..header.cbytes as usize])))
}

fn seal_of(hash: u64) -> [u8; SEAL_LENGTH] {
    let mut seal = [0; SEAL_LENGTH];
    let (magic, value) = seal.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    value.copy_from_slice(&hash.to_le_bytes());
    seal
}

/// Compare chunks with the seals behind them.
///
/// # Errors
///
/// The first failure that says nothing about a chunk: no descriptors or memory left, no permission.
pub fn check_all(
    locations: &[ChunkLocation<'_>],
    nthreads: usize,
    interrupt: Option<&Interrupt<'_>>,
) -> Result<Vec<Verdict>, ReadError> {
    let mut verdicts = vec![Verdict::UNREADABLE; locations.len()];
    let most = locations.iter().fold(0, |sum: u64, location| sum.saturating_add(location.available()));
    let named = locations.iter().any(ChunkLocation::is_path);
    let nthreads = match nthreads.max(1) {
        _ if most <= SERIAL => 1,
        nthreads if named => nthreads.min(MOST_OPEN),
        nthreads => nthreads,
    };
    pool::run(nthreads, locations.iter().zip(&mut verdicts).collect(), |nrequest, (location, verdict)| {
        let nbytes = usize::try_from(location.available()).unwrap_or(usize::MAX);
        let checked = go_on(interrupt, nbytes).map_err(crate::Error::from).and_then(|()| check(location));
        *verdict = checked.map_err(ReadError::at(nrequest))?;
        Ok(())
    })?;
    Ok(verdicts)
}

/// Compare a chunk with the seal behind it.
fn check(location: &ChunkLocation<'_>) -> Result<Verdict> {
    let opened = match location.open() {
        Ok(opened) => opened,
        Err(error) => return unreadable(error, Verdict::UNREADABLE),
    };
    let source = opened.source();
    let mut first = [0; EXTENDED_HEADER_LENGTH];
    let header = match source.read_some(0, &mut first) {
        Ok(got) => Header::parse(&first[..got], u64::MAX),
        Err(error) => Err(error),
    };
    let (cbytes, nbytes) = match header {
        Ok(header) => (header.cbytes, header.nbytes),
        Err(error) => return unreadable(error.into(), Verdict::UNREADABLE),
    };
    let status = match source {
        Source::Bytes(bytes) => check_bytes(bytes, cbytes as usize),
        Source::Reader(reader) => match check_reader(reader, cbytes) {
            Ok(status) => status,
            Err(error) => return unreadable(error, Verdict { status: Status::Unreadable, cbytes, nbytes }),
        },
    };
    Ok(Verdict { status, cbytes, nbytes })
}

/// Tell a failure that is the chunk's from one of this process or system, which must not pass as damage.
fn unreadable(error: crate::Error, verdict: Verdict) -> Result<Verdict> {
    let of_the_chunk = match &error {
        crate::Error::Chunk(Error::Field { .. } | Error::Truncated { .. }) | crate::Error::NotAFile { .. } => true,
        crate::Error::Open { errno, .. } | crate::Error::Chunk(Error::Io { errno, .. }) => is_of_the_file(*errno),
        _ => false,
    };
    if of_the_chunk { Ok(verdict) } else { Err(error) }
}

/// Whether an error number says that the file, and not this process, is in a bad state.
#[cfg(unix)]
fn is_of_the_file(errno: i32) -> bool {
    use rustix::io::Errno;
    // A position that no file can have is refused as an invalid argument.
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO, Errno::IO, Errno::INVAL, Errno::OVERFLOW]
        .iter()
        .any(|known| known.raw_os_error() == errno)
}

/// `ERROR_FILE_NOT_FOUND`, `ERROR_PATH_NOT_FOUND`, `ERROR_CRC`, `ERROR_INVALID_PARAMETER`, `ERROR_NEGATIVE_SEEK`.
#[cfg(windows)]
fn is_of_the_file(errno: i32) -> bool {
    matches!(errno, 2 | 3 | 23 | 87 | 131)
}

fn check_bytes(bytes: &[u8], cbytes: usize) -> Status {
    let Some((chunk, behind)) = bytes.split_at_checked(cbytes) else { return Status::Beyond };
    match behind.first_chunk::<SEAL_LENGTH>() {
        Some(seal) if seal.starts_with(&MAGIC) => compare(seal, XxHash3_64::oneshot(chunk)),
        _ => Status::NotSealed,
    }
}

fn compare(seal: &[u8; SEAL_LENGTH], hash: u64) -> Status {
    if *seal == seal_of(hash) { Status::Sound } else { Status::Differs }
}

fn check_reader(reader: &dyn ReadAt, cbytes: u32) -> Result<Status> {
    let length = u64::from(cbytes);
    if length > reader.available() {
        return Ok(Status::Beyond);
    }
    let cbytes = cbytes as usize;
    if cbytes > PIECE - SEAL_LENGTH {
        return check_large(reader, length);
    }
    with_piece(|piece| {
        // One read brings chunk and seal.
        let got = reader.read_some(0, &mut piece[..cbytes + SEAL_LENGTH])?;
        Ok(check_bytes(&piece[..got], cbytes))
    })
}

/// The seal is read first: a chunk without one need not be.
fn check_large(reader: &dyn ReadAt, length: u64) -> Result<Status> {
    let mut seal = [0; SEAL_LENGTH];
    let got = reader.read_some(length, &mut seal)?;
    if got < SEAL_LENGTH || !seal.starts_with(&MAGIC) {
        let ends = got == 0 && reader.read_some(length - 1, &mut [0])? == 0;
        return Ok(if ends { Status::Beyond } else { Status::NotSealed });
    }
    let mut hasher = XxHash3_64::new();
    match read_pieces(reader, 0, length, "chunk", &mut |bytes| hasher.write(bytes)) {
        Ok(()) => Ok(compare(&seal, hasher.finish())),
        // The file has become shorter.
        Err(crate::Error::Chunk(Error::Truncated { .. })) => Ok(Status::Beyond),
        Err(error) => Err(error),
    }
}

mod proof;
mod run;

pub use proof::{Record, proven_trailer};
pub use run::check_run;

#[cfg(test)]
mod tests;
