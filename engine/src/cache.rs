//! What readers of one file keep between small reads: heads of chunks, and blocks that were met twice.
//!
//! ```text
//! first meeting of a block     decoded as far as needed, and remembered by its number
//! second                       decoded whole, and kept
//! from then on                 copied
//! ```
//!
//! So reads at random places, which hardly ever meet a block again, cost no more than without; reads one after
//! the other and reads of neighbours decode each block once. At most [`limit`] bytes are kept for a file, the least
//! recently used go first. What is kept counts only as long as the file's [`Stamp`] stays what it was, and nothing is
//! kept until the stamp has stood still for some time: then a later write cannot leave it as it is.
//!
//! Nobody waits for anybody: who finds the cache in use goes without. `read::read` is the plain way to the same bytes.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::boxes::{Geometry, Pick, read_small_box};
use crate::chunk::{Chunk, resize};
use crate::error::Result;
use crate::files::Stamp;
use crate::header::Body;
use crate::read::{Piece, SERIAL, cut, expect_nbytes, expect_range, read_piece, with_worker};
use crate::source::Source;

/// Bytes kept for a file, unless [`set_limit`] was called.
const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;
/// A block larger than such a part of the limit is not kept.
const BLOCK_PARTS: usize = 4;
/// Heads of chunks that are kept at most, and the part of the limit that they may take.
const MOST_CHUNKS: usize = 512;
const CHUNKS_PART: usize = 2;
/// So many blocks are remembered by number.
const MOST_MET: usize = 8;
/// A file's stamp must stand still for so long, where its clock ticks often, and where it counts seconds.
const STILL: Duration = Duration::from_millis(50);
const STILL_COARSE: Duration = Duration::from_secs(3);
/// Of a stamp that is older than this by the clock of this machine nothing more needs to be known.
const OLD: Duration = Duration::from_secs(60);

static LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_LIMIT);

/// Bytes that are kept for each file at most.
#[must_use]
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Set [`limit`], for all files; with 0 nothing is kept.
pub fn set_limit(nbytes: usize) {
    LIMIT.store(nbytes, Ordering::Relaxed);
}

/// A small part of a chunk in a file.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The chunk's first byte in the file.
    pub offset: u64,
    /// Most bytes that belong to the chunk.
    pub limit: u64,
    /// What the chunk must decode to, in bytes.
    pub nbytes: u64,
    /// First byte wanted.
    pub start: u64,
    /// Bytes wanted.
    pub length: usize,
    /// The container's item size in bytes, where known.
    pub itemsize: Option<usize>,
}

impl Wanted {
    /// Whether it is so little that it is read by one thread.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.length <= SERIAL
    }

    fn key(&self) -> Key {
        Key { offset: self.offset, limit: self.limit, itemsize: self.itemsize }
    }
}

/// Which chunk, and how it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    offset: u64,
    limit: u64,
    itemsize: Option<usize>,
}

/// What is kept for one file.
pub struct Cache {
    /// How long the file's stamp must have stood still.
    still: Duration,
    kept: Mutex<Kept>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { still: STILL, kept: Mutex::default() }
    }
}

#[derive(Default)]
struct Kept {
    /// The file's stamp, and when it was seen first, if it was fresh then.
    stamp: Option<(Stamp, Option<Instant>)>,
    heads: Heads,
    /// The most recently used last.
    blocks: VecDeque<(Key, usize, Arc<Vec<u8>>)>,
    met: VecDeque<(Key, usize)>,
    /// Bytes of blocks.
    nbytes: usize,
}

/// Heads of chunks, each with the time of its last use.
#[derive(Default)]
struct Heads {
    chunks: HashMap<Key, (Arc<Chunk<'static>>, u64)>,
    clock: u64,
    nbytes: usize,
}

impl Heads {
    fn get(&mut self, key: Key) -> Option<Arc<Chunk<'static>>> {
        let (chunk, used) = self.chunks.get_mut(&key)?;
        self.clock += 1;
        *used = self.clock;
        Some(Arc::clone(chunk))
    }

    fn put(&mut self, key: Key, chunk: Arc<Chunk<'static>>) {
        self.clock += 1;
        self.nbytes += chunk.footprint();
        if let Some((before, _)) = self.chunks.insert(key, (chunk, self.clock)) {
            self.nbytes -= before.footprint();
        }
        while self.chunks.len() > MOST_CHUNKS || self.nbytes > limit() / CHUNKS_PART {
            let oldest = self.chunks.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some((chunk, _)) = oldest.and_then(|oldest| self.chunks.remove(&oldest)) else { break };
            self.nbytes -= chunk.footprint();
        }
    }
}

/// Bytes of a block that is kept.
pub struct Found {
    block: Arc<Vec<u8>>,
    from: usize,
    length: usize,
    stamp: Stamp,
}

impl Found {
    /// Whether they are those of the file that has this stamp.
    #[must_use]
    pub fn is_of(&self, stamp: Stamp) -> bool {
        self.stamp == stamp
    }
}

impl Deref for Found {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block[self.from..self.from + self.length]
    }
}

impl Kept {
    /// Forget everything that was kept under another stamp. Returns whether this one is known for long enough.
    fn settle(&mut self, stamp: Stamp, still: Duration) -> bool {
        match self.stamp {
            Some((known, since)) if known == stamp => since.is_none_or(|since| since.elapsed() >= still),
            _ => {
                let since = if stamp.is_older_than(OLD) { None } else { Some(Instant::now()) };
                *self = Self { stamp: Some((stamp, since)), ..Self::default() };
                since.is_none()
            }
        }
    }

    fn block(&mut self, key: Key, nblock: usize) -> Option<Arc<Vec<u8>>> {
        let at = self.blocks.iter().rposition(|(other, number, _)| *number == nblock && *other == key)?;
        let entry = self.blocks.remove(at)?;
        let block = Arc::clone(&entry.2);
        self.blocks.push_back(entry);
        Some(block)
    }

    /// Whether a block was met before; from now on it was.
    fn meet(&mut self, key: Key, nblock: usize) -> bool {
        if self.met.contains(&(key, nblock)) {
            return true;
        }
        if self.met.len() == MOST_MET {
            self.met.pop_front();
        }
        self.met.push_back((key, nblock));
        false
    }

    fn keep_chunk(&mut self, key: Key, chunk: Arc<Chunk<'static>>) {
        if chunk.footprint() <= limit() / BLOCK_PARTS {
            self.heads.put(key, chunk);
            self.trim();
        }
    }

    fn keep_block(&mut self, key: Key, nblock: usize, block: Arc<Vec<u8>>) {
        if self.block(key, nblock).is_none() {
            self.nbytes += block.len();
            self.blocks.push_back((key, nblock, block));
            self.trim();
        }
    }

    fn trim(&mut self) {
        while self.heads.nbytes + self.nbytes > limit() {
            let Some((_, _, block)) = self.blocks.pop_front() else { break };
            self.nbytes -= block.len();
        }
    }
}

impl Cache {
    /// Take what is kept, if nobody else has it.
    fn take(&self) -> Option<MutexGuard<'_, Kept>> {
        if limit() == 0 { None } else { self.kept.try_lock().ok() }
    }

    /// The same, if the file's stamp has stood still for long enough for something to be kept.
    fn take_steady(&self, stamp: Stamp) -> Option<MutexGuard<'_, Kept>> {
        let still = if stamp.is_coarse() { self.still.max(STILL_COARSE) } else { self.still };
        self.take().and_then(|mut kept| kept.settle(stamp, still).then_some(kept))
    }

    /// Return what is wanted if a block that is kept has it.
    #[must_use]
    pub fn find(&self, wanted: &Wanted) -> Option<Found> {
        let mut kept = self.take()?;
        let (stamp, _) = kept.stamp?;
        let key = wanted.key();
        let chunk = kept.heads.get(key)?;
        if u64::from(chunk.header.nbytes) != wanted.nbytes {
            return None;
        }
        let start = usize::try_from(wanted.start).ok()?;
        let (nblock, from) = (start / chunk.blocksize, start % chunk.blocksize);
        let end = from.checked_add(wanted.length)?;
        let block = kept.block(key, nblock).filter(|block| end <= block.len())?;
        Some(Found { block, from, length: wanted.length, stamp })
    }

    /// Read what is wanted from `file`, which has this stamp, into `dst`.
    ///
    /// # Errors
    ///
    /// As [`crate::read::read`] without a shape and a user's codecs.
    pub fn read(&self, file: &File, wanted: &Wanted, stamp: Stamp, dst: &mut [u8]) -> Result<()> {
        let key = wanted.key();
        let source = Source::File { file, offset: wanted.offset, limit: wanted.limit };
        let (steady, kept) = match self.take_steady(stamp) {
            None => (false, None),
            Some(mut kept) => (true, kept.heads.get(key)),
        };
        if let Some(chunk) = kept {
            return self.read_chunk(&chunk.again(source), wanted, Some(stamp), dst);
        }
        let chunk = Chunk::open(source, wanted.itemsize, None, None)?;
        let steady = steady && chunk.header.body() == Body::Blocks;
        self.read_chunk(&chunk, wanted, steady.then_some(stamp), dst)?;
        if steady
            && let Some(chunk) = chunk.keep()
            && let Some(mut kept) = self.take_steady(stamp)
        {
            kept.keep_chunk(key, Arc::new(chunk));
        }
        Ok(())
    }

    /// Read a box of the one chunk at `place`, offset and length in `file`, which has this stamp, into `dst`. Returns false if
    /// it is not so small that one thread reads it.
    ///
    /// # Errors
    ///
    /// As [`crate::boxes::read_box`] without a user's codecs, and without those that go by the shape of blocks.
    pub fn read_box(
        &self,
        file: &File,
        (offset, limit): (u64, u64),
        geometry: &Geometry,
        picks: &[Pick<'_>],
        stamp: Stamp,
        dst: &mut [u8],
    ) -> Result<bool> {
        let key = Key { offset, limit, itemsize: Some(geometry.itemsize()) };
        let source = Source::File { file, offset, limit };
        let (steady, kept) = match self.take_steady(stamp) {
            None => (false, None),
            Some(mut kept) => (true, kept.heads.get(key)),
        };
        if let Some(chunk) = kept {
            return Ok(read_small_box(geometry, picks, dst, || Ok(chunk.again(source)))?.is_some());
        }
        let open = || Chunk::open(source, key.itemsize, None, None);
        let Some(chunk) = read_small_box(geometry, picks, dst, open)? else { return Ok(false) };
        if steady
            && let Some(chunk) = chunk.keep()
            && let Some(mut kept) = self.take_steady(stamp)
        {
            kept.keep_chunk(key, Arc::new(chunk));
        }
        Ok(true)
    }

    /// Read from an opened chunk, keeping blocks if there is a stamp to keep them under.
    fn read_chunk(&self, chunk: &Chunk<'_>, wanted: &Wanted, stamp: Option<Stamp>, dst: &mut [u8]) -> Result<()> {
        expect_nbytes(chunk, wanted.nbytes)?;
        expect_range(chunk, wanted.start, dst.len())?;
        let mut outcome = Ok(());
        cut(chunk, wanted.start, dst, |piece, dst| {
            if outcome.is_ok() {
                outcome = self.read_piece(chunk, &piece, wanted.key(), stamp, dst);
            }
        })?;
        outcome
    }

    fn read_piece(
        &self,
        chunk: &Chunk<'_>,
        piece: &Piece,
        key: Key,
        stamp: Option<Stamp>,
        dst: &mut [u8],
    ) -> Result<()> {
        let plain = |dst: &mut [u8]| with_worker(|worker| read_piece(chunk, piece, dst, worker, None));
        let (Piece::Block { nblock, from, len }, Some(stamp)) = (piece, stamp) else { return plain(dst) };
        if dst.len() > len / 2 || *len > limit() / BLOCK_PARTS {
            return plain(dst);
        }
        let met = match self.take_steady(stamp) {
            None => false,
            Some(mut kept) => {
                if let Some(block) = kept.block(key, *nblock) {
                    dst.copy_from_slice(&block[*from..*from + dst.len()]);
                    return Ok(());
                }
                kept.meet(key, *nblock)
            }
        };
        if !met {
            return plain(dst);
        }
        let mut block = Vec::new();
        resize(&mut block, *len)?;
        with_worker(|worker| chunk.decode_block(*nblock, &mut block, worker, None))?;
        dst.copy_from_slice(&block[*from..*from + dst.len()]);
        if let Some(mut kept) = self.take_steady(stamp) {
            kept.keep_block(key, *nblock, Arc::new(block));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
