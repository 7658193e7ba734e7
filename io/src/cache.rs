//! What readers of one file keep between small reads: heads of chunks, and blocks that were read twice.
//!
//! ```text
//! first read of a block     decoded as far as needed, and its number is noted
//! second read               decoded whole, and kept
//! from then on              copied
//! ```
//!
//! So reads at random offsets, which hardly ever read a block again, cost no more than without; reads one after
//! the other and reads of neighbours decode each block once. At most [`limit`] bytes are kept for a file, the least
//! recently used go first.
//!
//! What is kept counts only while the bytes that it was made of are in the file: the head of the chunk is compared, and
//! the stored bytes of the block are hashed, at each read. That is left out while the file has a
//! [lasting](Stamp::is_lasting) stamp, under which the same was found before: any write, also one through a mapping,
//! would have moved that. Where it is needed, blocks are kept only if decoding them took several times as long.
//!
//! Nobody waits for anybody: who finds the cache in use goes without. `read::read` is the direct way to the same bytes.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crate::boxes::{Geometry, Pick, read_small_box};
use crate::files::{self, Stamp};
use crate::range::FileRange;
use crate::read::SERIAL;
use superchunk_engine::Result;
use superchunk_engine::chunk::{Chunk, Piece, resize, with_worker};
use superchunk_engine::header::Body;
use superchunk_engine::source::Source;

/// Bytes kept for a file, unless [`set_limit`] was called.
const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;
/// A block larger than such a part of the limit is not kept.
const BLOCK_PARTS: usize = 4;
/// Heads of chunks that are kept at most, and the part of the limit that they may take.
const MOST_CHUNKS: usize = 512;
const CHUNKS_PART: usize = 2;
/// So many blocks are remembered by number.
const MOST_SEEN: usize = 8;
/// Decoding a block must take so many times as long as hashing what is stored of it.
const PAYS: u32 = 3;
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
#[derive(Default)]
pub struct Cache {
    retained: Mutex<Retained>,
    /// Whether the file is on a file system that writes everything to a disk in time.
    written_back: OnceLock<bool>,
    /// Keep blocks though it does not pay, for tests, which must not depend on times.
    always: bool,
}

#[derive(Default)]
struct Retained {
    heads: Heads,
    /// The most recently used last.
    blocks: VecDeque<Block>,
    recently_seen: VecDeque<(Key, usize)>,
    /// Chunks of which keeping a block did not pay.
    refused: HashSet<Key>,
    /// Bytes of blocks.
    nbytes: usize,
}

/// A block that is kept.
struct Block {
    key: Key,
    nblock: usize,
    decoded: Arc<Vec<u8>>,
    /// The hash of what it was decoded from.
    stored: u128,
    /// A lasting stamp under which that was found in the file.
    lasting: Option<Stamp>,
    /// Whether it is worth while to hash that again.
    pays: bool,
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

/// Bytes of a block that is kept, if they still are those of the file.
pub struct Found {
    key: Key,
    nblock: usize,
    head: Arc<Chunk<'static>>,
    decoded: Arc<Vec<u8>>,
    stored: u128,
    lasting: Option<Stamp>,
    pays: bool,
    from: usize,
    length: usize,
}

impl Deref for Found {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.decoded[self.from..self.from + self.length]
    }
}

impl Retained {
    fn block(&mut self, key: Key, nblock: usize) -> Option<&mut Block> {
        let at = self.blocks.iter().rposition(|block| block.nblock == nblock && block.key == key)?;
        let block = self.blocks.remove(at)?;
        self.blocks.push_back(block);
        self.blocks.back_mut()
    }

    /// Note that a block was read. Returns whether it was before. Without a lasting stamp not if the chunk was refused.
    fn note_seen(&mut self, key: Key, nblock: usize, lasting: bool) -> bool {
        if !lasting && self.refused.contains(&key) {
            return false;
        }
        if self.recently_seen.contains(&(key, nblock)) {
            return true;
        }
        if self.recently_seen.len() == MOST_SEEN {
            self.recently_seen.pop_front();
        }
        self.recently_seen.push_back((key, nblock));
        false
    }

    /// Remember that keeping blocks of a chunk does not pay.
    fn refuse(&mut self, key: Key) {
        if self.refused.len() == MOST_CHUNKS {
            self.refused.clear();
        }
        self.refused.insert(key);
    }

    fn keep_chunk(&mut self, key: Key, chunk: Arc<Chunk<'static>>) {
        if chunk.footprint() <= limit() / BLOCK_PARTS {
            self.heads.put(key, chunk);
            self.trim();
        }
    }

    fn keep_block(&mut self, block: Block) {
        let length = block.decoded.len();
        if let Some(before) = self.block(block.key, block.nblock) {
            let gone = before.decoded.len();
            *before = block;
            self.nbytes -= gone;
        } else {
            self.blocks.push_back(block);
        }
        self.nbytes += length;
        self.trim();
    }

    fn trim(&mut self) {
        while self.heads.nbytes + self.nbytes > limit() {
            let Some(block) = self.blocks.pop_front() else { break };
            self.nbytes -= block.decoded.len();
        }
    }
}

impl Cache {
    /// Take what is kept, if nobody else has it.
    fn take(&self) -> Option<MutexGuard<'_, Retained>> {
        if limit() == 0 { None } else { self.retained.try_lock().ok() }
    }

    /// Return the stamp if it is lasting.
    fn lasting(&self, file: &File, stamp: Stamp) -> Option<Stamp> {
        // Asked for once. Two threads may do so at a time, rather than one wait for the other.
        let written_back = self.written_back.get().copied().unwrap_or_else(|| {
            let known = files::is_written_back(file);
            let _ = self.written_back.set(known);
            known
        });
        stamp.is_lasting(written_back).then_some(stamp)
    }

    /// Return what is wanted if a block that is kept has it. It must be [confirmed](Self::confirms) before it is used.
    #[must_use]
    pub fn find(&self, wanted: &Wanted) -> Option<Found> {
        let mut retained = self.take()?;
        let key = wanted.key();
        let head = retained.heads.get(key)?;
        if u64::from(head.header.nbytes) != wanted.nbytes {
            return None;
        }
        let start = usize::try_from(wanted.start).ok()?;
        let (nblock, from) = (start / head.blocksize, start % head.blocksize);
        let end = from.checked_add(wanted.length)?;
        let block = retained.block(key, nblock).filter(|block| end <= block.decoded.len())?;
        let &mut Block { ref decoded, stored, lasting, pays, .. } = block;
        let decoded = Arc::clone(decoded);
        Some(Found { key, nblock, head, decoded, stored, lasting, pays, from, length: wanted.length })
    }

    /// Whether what was found stands for what is in the file, which has this stamp. No disk is waited for.
    #[must_use]
    pub fn confirms(&self, found: &Found, file: &File, stamp: Stamp) -> bool {
        let lasting = self.lasting(file, stamp);
        if lasting.is_some() && found.lasting == lasting {
            return true;
        }
        if lasting.is_none() && !found.pays {
            return false;
        }
        let offset = found.key.offset;
        let read = |at, bytes: &mut [u8]| files::read_at_once(file, offset + at, bytes);
        let same = with_worker(|worker| {
            found.head.is_at(read, worker) && found.head.hash_stored(found.nblock, read, worker) == Some(found.stored)
        });
        if same {
            self.remember(found.key, found.nblock, found.stored, lasting);
        }
        same
    }

    /// Note a lasting stamp under which a block was found as it was.
    fn remember(&self, key: Key, nblock: usize, stored: u128, lasting: Option<Stamp>) {
        if lasting.is_some()
            && let Some(mut retained) = self.take()
            && let Some(block) = retained.block(key, nblock)
            && block.stored == stored
        {
            block.lasting = lasting;
        }
    }

    /// Return the head that is kept of a chunk if it is that of `source`.
    fn head(&self, key: Key, source: Source<'_>) -> Option<Arc<Chunk<'static>>> {
        let head = self.take()?.heads.get(key)?;
        let read = |at, bytes: &mut [u8]| source.read_all(at, bytes, "chunk").is_ok();
        with_worker(|worker| head.is_at(read, worker)).then_some(head)
    }

    fn keep_head(&self, key: Key, chunk: Chunk<'_>) {
        if let Some(chunk) = chunk.keep()
            && let Some(mut retained) = self.take()
        {
            retained.keep_chunk(key, Arc::new(chunk));
        }
    }

    /// Read what is wanted from `file`, which has this stamp, into `dst`.
    ///
    /// # Errors
    ///
    /// As [`crate::read::read`] without a shape and a user's codecs.
    pub fn read(&self, file: &File, wanted: &Wanted, stamp: Stamp, dst: &mut [u8]) -> Result<()> {
        let key = wanted.key();
        let range = FileRange { file, offset: wanted.offset, limit: wanted.limit };
        let source = range.source();
        let lasting = self.lasting(file, stamp);
        if let Some(head) = self.head(key, source) {
            return self.read_chunk(&head.again(source), wanted, lasting, dst);
        }
        let chunk = Chunk::open_with(source, wanted.itemsize, None, None)?;
        self.read_chunk(&chunk, wanted, lasting, dst)?;
        self.keep_head(key, chunk);
        Ok(())
    }

    /// Read a box of the one chunk at `location`, offset and length in `file`, into `dst`. Returns false if
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
        dst: &mut [u8],
    ) -> Result<bool> {
        let key = Key { offset, limit, itemsize: Some(geometry.itemsize()) };
        let range = FileRange { file, offset, limit };
        let source = range.source();
        if let Some(head) = self.head(key, source) {
            return Ok(read_small_box(geometry, picks, dst, || Ok(head.again(source)))?.is_some());
        }
        let open = || Chunk::open_with(source, key.itemsize, None, None);
        let Some(chunk) = read_small_box(geometry, picks, dst, open)? else { return Ok(false) };
        self.keep_head(key, chunk);
        Ok(true)
    }

    /// Read from an opened chunk, keeping blocks of those that have any.
    fn read_chunk(&self, chunk: &Chunk<'_>, wanted: &Wanted, lasting: Option<Stamp>, dst: &mut [u8]) -> Result<()> {
        chunk.expect_nbytes(wanted.nbytes)?;
        chunk.expect_range(wanted.start, dst.len())?;
        let mut outcome = Ok(());
        chunk.cut(wanted.start, dst, |piece, dst| {
            if outcome.is_ok() {
                outcome = self.read_piece(chunk, &piece, wanted.key(), lasting, dst);
            }
        })?;
        outcome
    }

    fn read_piece(
        &self,
        chunk: &Chunk<'_>,
        piece: &Piece,
        key: Key,
        lasting: Option<Stamp>,
        dst: &mut [u8],
    ) -> Result<()> {
        let decoded = |dst: &mut [u8]| with_worker(|worker| chunk.read_piece(piece, dst, worker, None));
        let Piece::Block { nblock, from, len } = piece else { return decoded(dst) };
        if chunk.header.body() != Body::Blocks || dst.len() > len / 2 || *len > limit() / BLOCK_PARTS {
            return decoded(dst);
        }
        let Some(mut retained) = self.take() else { return decoded(dst) };
        let known = retained.block(key, *nblock).map(|block| (Arc::clone(&block.decoded), block.stored, block.pays));
        let worth = match &known {
            Some((_, _, pays)) => *pays || lasting.is_some(),
            None => retained.note_seen(key, *nblock, lasting.is_some()),
        };
        drop(retained);
        if !worth {
            return decoded(dst);
        }
        let begun = Instant::now();
        let Some(stored) = with_worker(|worker| chunk.hash_own(*nblock, worker)) else { return decoded(dst) };
        if let Some((block, ..)) = known.filter(|(block, hash, _)| *hash == stored && block.len() == *len) {
            dst.copy_from_slice(&block[*from..*from + dst.len()]);
            self.remember(key, *nblock, stored, lasting);
            return Ok(());
        }
        let hashed = begun.elapsed();
        let mut block = Vec::new();
        resize(&mut block, *len)?;
        with_worker(|worker| chunk.decode_block(*nblock, &mut block, worker, None))?;
        dst.copy_from_slice(&block[*from..*from + dst.len()]);
        let pays = self.always || begun.elapsed() >= (PAYS + 1) * hashed;
        if let Some(mut retained) = self.take() {
            if pays || lasting.is_some() {
                retained.keep_block(Block { key, nblock: *nblock, decoded: Arc::new(block), stored, lasting, pays });
            } else {
                retained.refuse(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
