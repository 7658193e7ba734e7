//! Chunks of noise: found in little time, and stored as they are.
//!
//! Where nothing in a typical block is worth compressing, all blocks are copied, and looked at while they are near. To
//! filter a block and probe each of its streams takes several times as long as the copy, so that is done to one block
//! of sixteen. The others are looked at in three ways that take little time:
//!
//! * *Parts*, a sixteenth of them, are filtered as if they were a block, and the streams of that probed. This shows
//!   what is the same all over.
//! * *Bits that stand still* in items at some distance from each other show what is constant or changes slowly,
//!   wherever it is.
//! * *Repetitions* are met by words kept at every 64th byte, if once in 2 KiB those of 64 bytes on end are looked for:
//!   wherever as much is repeated, one of these stands where the other copy had one that is kept.
//!
//! Noise has none of it. Blocks that have are filtered and probed like the few, so what is found decides nothing.
//!
//! All goes by the data and the numbers of blocks, so chunks have the same bytes for every number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::effort::StreamPlan;
use super::{Job, SERIAL, Worker, with_worker};
use crate::chunk::resize;
use crate::error::Result;
use crate::interrupt::go_on;
use crate::params::stored_typesize;
use crate::pool;

/// Blocks are looked at together up to so many bytes; fewer than half as many do not tell.
const SPAN: usize = 64 * 1024;
/// Of so many blocks one is filtered whole.
const EXAMINED: usize = 16;
/// There is a part in each such number of bytes, and it is such a part of them.
const STRIDE: usize = 32 * 1024;
const SHARE: usize = 16;
/// Blocks are looked through in tiles of so many rows, each about so many bytes long. Noise has the same bit in all rows
/// with a chance of 1 in 2^31.
const ROWS: usize = 32;
const ROW: usize = 64;
/// Longest row, in bytes, and how many of a row are compared at a time.
const LONGEST: usize = 256;
const COLUMN: usize = 32;

/// What one thread keeps between blocks.
#[derive(Default)]
pub(super) struct SampleScratch {
    /// Parts of blocks, and of what filters compare these with.
    parts: Vec<u8>,
    reference: Vec<u8>,
    words: Words,
}

impl SampleScratch {
    /// Let go of scratch space that only an unusually large block needed.
    pub(super) fn trim(&mut self, most: usize) {
        if self.parts.capacity() > most {
            *self = Self::default();
        }
    }
}

/// A block, or parts of some, and what filters compare it with.
#[derive(Clone, Copy)]
struct Block<'b> {
    bytes: &'b [u8],
    reference: Option<&'b [u8]>,
}

impl Job<'_> {
    /// If no stream of any block is worth compressing, write all blocks as they are to `out`; the chunk need not be put
    /// together to find that out.
    pub(super) fn store_incompressible(&self, out: &mut [u8]) -> Result<bool> {
        let suspected = with_worker(|worker| {
            let plans = self.plans(worker)?;
            Ok(!plans.is_empty() && plans.iter().all(StreamPlan::is_plain))
        })?;
        if !suspected {
            return Ok(false);
        }
        let found = AtomicBool::new(false);
        let nthreads = if self.src.nbytes() <= SERIAL { 1 } else { self.params.options.nthreads };
        let together = (SPAN / self.blocksize).max(1);
        pool::run(nthreads, out.chunks_mut(together * self.blocksize).collect(), |nspan, out| {
            go_on(self.interrupt, out.len())?;
            if !found.load(Ordering::Relaxed) && !with_worker(|worker| self.store_span(nspan * together, out, worker))?
            {
                found.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(!found.into_inner())
    }

    /// Write some blocks, from number `first` on, to `out`, and say whether they are noise.
    fn store_span(&self, first: usize, out: &mut [u8], worker: &mut Worker) -> Result<bool> {
        let (mut examined, mut others) = (Vec::new(), Vec::new());
        for (nblock, out) in (first..).zip(out.chunks_mut(self.blocksize)) {
            self.src.lay_out(nblock * self.blocksize, out)?;
            let block = Block { bytes: out, reference: self.reference_for(nblock) };
            if self.is_examined(nblock) {
                examined.push(block);
            } else {
                others.push(block);
            }
        }
        if !others.is_empty() && !self.seem_noise(&others, worker)? {
            examined.append(&mut others);
        }
        let mut examined =
            examined.iter().map(|block| self.is_noise(block, self.nstreams_of(block.bytes.len()), worker));
        examined.try_fold(true, |all, incompressible| Ok(all && incompressible?))
    }

    /// What was found of the streams of a typical block.
    fn plans(&self, worker: &mut Worker) -> Result<&[StreamPlan]> {
        let Worker { plain, filters, searches, .. } = worker;
        Ok(self.look(plain, filters, searches)?.map_or(&[], |look| &look.found.plans))
    }

    /// Whether a block is filtered whole: one of several, the middle one of a few, and those unlike the others.
    fn is_examined(&self, nblock: usize) -> bool {
        let nblocks = self.src.nbytes() / self.blocksize;
        nblock % EXAMINED == (nblocks / 2).min(EXAMINED / 2)
            || nblock == nblocks
            || nblock == 0 && self.params.pipeline.needs_reference()
    }

    /// Whether no stream of a block is worth compressing, as was found.
    fn is_noise(&self, block: &Block<'_>, nstreams: usize, worker: &mut Worker) -> Result<bool> {
        let plans = self.plans(worker)?;
        let Worker { filters, searches, .. } = worker;
        let filtered = self.params.pipeline.forward(self.isa, block.bytes, block.reference, filters, None)?;
        let searches = self.searches(searches)?;
        let mut streams = filtered.chunks_exact(filtered.len() / nstreams).zip(plans);
        streams.try_fold(true, |all, (stream, plan)| Ok(all && searches.is_plain(plan, stream)?))
    }

    /// Whether whole blocks are noise, as far as can be told in little time.
    fn seem_noise(&self, blocks: &[Block<'_>], worker: &mut Worker) -> Result<bool> {
        let pipeline = &self.params.pipeline;
        let typesize = stored_typesize(self.params.options.typesize).into();
        let nbytes = blocks.len() * self.blocksize;
        // What is not filtered is probed as soon.
        if nbytes < SPAN / 2 || pipeline.forward_is_identity() || !pipeline.shows_in_parts(typesize) {
            return Ok(false);
        }
        let mut room = std::mem::take(&mut worker.incompressible);
        room.words.forget();
        let tiles = Tiles { row: ROW.div_ceil(typesize) * typesize, typesize };
        let shown = blocks.iter().any(|block| tiles.show(block, &mut room.words));
        let seem = !shown && self.parts_are_noise(blocks, typesize, &mut room, worker)?;
        worker.incompressible = room;
        Ok(seem)
    }

    /// Whether parts of whole blocks are noise.
    fn parts_are_noise(
        &self,
        blocks: &[Block<'_>],
        typesize: usize,
        room: &mut SampleScratch,
        worker: &mut Worker,
    ) -> Result<bool> {
        let places: Vec<Range<usize>> = places(self.blocksize, typesize).collect();
        let length = blocks.len() * places.iter().map(Range::len).sum::<usize>();
        let parts = resize(&mut room.parts, length)?;
        gather(blocks.iter().map(|block| block.bytes), &places, parts);
        let mut reference = None;
        if self.params.pipeline.needs_reference() {
            let room = resize(&mut room.reference, length)?;
            gather(blocks.iter().filter_map(|block| block.reference), &places, room);
            reference = Some(&*room);
        }
        Ok(length > 0 && self.is_noise(&Block { bytes: parts, reference }, self.nstreams, worker)?)
    }
}

/// Where the parts of a block are: whole items, and whole bytes of bit planes.
fn places(blocksize: usize, typesize: usize) -> impl Iterator<Item = Range<usize>> {
    let whole = 8 * typesize;
    let stride = blocksize / blocksize.div_ceil(STRIDE);
    let length = stride / SHARE / whole * whole;
    (0..blocksize / stride).map(move |n| n * stride / whole * whole).map(move |at| at..at + length)
}

/// Put those places of all blocks side by side.
fn gather<'b>(blocks: impl Iterator<Item = &'b [u8]>, places: &[Range<usize>], dst: &mut [u8]) {
    let parts = blocks.flat_map(|block| places.iter().map(|place| &block[place.clone()]));
    let mut at = 0;
    for part in parts {
        dst[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

/// What does not go with noise, in tiles: so many rows of items, side by side.
#[derive(Clone, Copy)]
struct Tiles {
    /// Bytes of a row.
    row: usize,
    /// Bytes of an item.
    typesize: usize,
}

impl Tiles {
    /// Whether any tile of a block shows something that does not go with noise, or with the words that were met.
    fn show(self, block: &Block<'_>, words: &mut Words) -> bool {
        let tiles = block.bytes.chunks_exact(ROWS * self.row);
        let Some(reference) = block.reference else {
            return tiles.fold(false, |shown, tile| self.shows(tile, words) | shown);
        };
        let mut room = [0; ROWS * LONGEST];
        let mut tiles = tiles.zip(reference.chunks_exact(ROWS * self.row));
        tiles.any(|(tile, reference)| {
            let room = &mut room[..tile.len()];
            for ((byte, a), b) in room.iter_mut().zip(tile).zip(reference) {
                *byte = a ^ b;
            }
            self.shows(room, words)
        })
    }

    fn shows(self, tile: &[u8], words: &mut Words) -> bool {
        let mut columns = (0..self.typesize).step_by(COLUMN).map(|at| at.min(self.row - COLUMN));
        columns.any(|at| stands_still(tile.chunks_exact(self.row).map(|row| load(&row[at..]))))
            | words.repeat(tile, self)
    }
}

/// Whether a bit is the same in all rows.
fn stands_still(mut rows: impl Iterator<Item = [u64; COLUMN / 8]>) -> bool {
    let Some(first) = rows.next() else { return true };
    let moved = rows.fold([0; COLUMN / 8], |moved, row| std::array::from_fn(|n| moved[n] | (row[n] ^ first[n])));
    moved != [u64::MAX; COLUMN / 8]
}

/// The first words of some bytes.
fn load<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let words = bytes[..8 * N].as_chunks::<8>().0;
    std::array::from_fn(|n| u64::from_le_bytes(words[n]))
}

/// Words that were met, by their hashes.
#[derive(Default)]
struct Words {
    /// Where the upper bits of a hash lead, other bits of it, and above these those of the one before.
    tags: Vec<u64>,
}

impl Words {
    const BITS: u32 = 12;

    fn forget(&mut self) {
        self.tags.clear();
        self.tags.resize(1 << Self::BITS, 0);
    }

    /// Keep the first words of all rows, and say whether any, or one of the words in the first row, was met before.
    fn repeat(&mut self, tile: &[u8], tiles: Tiles) -> bool {
        let Some(tags) = self.tags.first_chunk_mut::<{ 1 << Self::BITS }>() else { return true };
        let mut repeated = false;
        for word in tile[..tiles.row + 7].windows(8).step_by(tiles.typesize) {
            let (slot, tag) = hash(word);
            repeated |= has(tags[slot], tag);
        }
        for row in tile.chunks_exact(tiles.row) {
            let (slot, tag) = hash(row);
            repeated |= has(tags[slot], tag);
            tags[slot] = tags[slot] << 32 | tag;
        }
        repeated
    }
}

/// Whether one of two tags is that.
fn has(tags: u64, tag: u64) -> bool {
    tags >> 32 == tag || tags << 32 == tag << 32
}

/// Where the hash of the first word leads, and its tag of 32 bits, which is not 0.
fn hash(bytes: &[u8]) -> (usize, u64) {
    let [word] = load(bytes);
    let hash = u64::wrapping_mul(word, 0x9E37_79B9_7F4A_7C15);
    ((hash >> (64 - Words::BITS)) as usize, (hash >> (32 - Words::BITS)) & 0xFFFF_FFFF | 1)
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, OnceLock};

    use super::*;
    use crate::codecs::Codec;
    use crate::cpu::Isa;
    use crate::filters::{BITSHUFFLE, BYTEDELTA, DELTA, SHUFFLE};
    use crate::params::{EncodeOptions, EncodeParams};
    use crate::testing::noise;

    const NBYTES: usize = 2 << 20;
    const PIPELINES: [&[u8]; 5] = [&[], &[SHUFFLE], &[BITSHUFFLE], &[DELTA, SHUFFLE], &[SHUFFLE, BYTEDELTA]];

    fn params(codec: Codec, clevel: u8, pipeline: &[u8], typesize: usize) -> EncodeParams {
        let mut filters = [0; 6];
        filters[6 - pipeline.len()..].copy_from_slice(pipeline);
        let options = EncodeOptions {
            codec: codec as u8,
            codec_meta: 0,
            clevel,
            typesize,
            blocksize: 0,
            splitmode: 3,
            filters,
            filters_meta: [0; 6],
            shape: None,
            use_dict: false,
            blosc1: false,
            nthreads: 1,
        };
        EncodeParams::new(options, None).unwrap()
    }

    fn with_job<R>(src: &[u8], params: &EncodeParams, work: impl FnOnce(&Job<'_>) -> R) -> R {
        let blocksize = params.blocksize_for(src.len());
        work(&Job {
            src: &src,
            reference: params.pipeline.needs_reference().then(|| src[..blocksize].to_vec()),
            params,
            user: None,
            interrupt: None,
            blocksize,
            nstreams: params.nstreams(blocksize),
            dict: None,
            encoders: Mutex::default(),
            pilot: Some(OnceLock::new()),
            isa: Isa::detect(),
        })
    }

    /// What filtering all blocks whole says.
    fn all_noise(job: &Job<'_>, src: &[u8]) -> bool {
        with_worker(|worker| {
            src.chunks(job.blocksize).enumerate().all(|(nblock, bytes)| {
                let block = Block { bytes, reference: job.reference_for(nblock) };
                job.is_noise(&block, job.nstreams_of(bytes.len()), worker).unwrap()
            })
        })
    }

    /// Whether the chunk is stored, in all pipelines; it must be where, and only where, no block whole is worth compressing.
    fn stored(codec: Codec, typesize: usize, change: impl Fn(&mut [u8], &[u8])) -> Vec<bool> {
        let ways = [1, 5].into_iter().flat_map(|clevel| PIPELINES.map(|pipeline| (clevel, pipeline)));
        let stored = ways.map(|(clevel, pipeline)| {
            let params = params(codec, clevel, pipeline, typesize);
            let mut src = noise(NBYTES, 1);
            let blocksize = params.blocksize_for(NBYTES);
            let (first, others) = src.split_at_mut(blocksize);
            // Not one that is examined.
            let nblock = NBYTES / blocksize / 2 - 1;
            change(&mut others[(nblock - 1) * blocksize..][..blocksize], first);
            with_job(&src, &params, |job| {
                assert!(!job.is_examined(nblock));
                let mut out = vec![0; NBYTES];
                let stored = job.store_incompressible(&mut out).unwrap();
                assert_eq!(stored, all_noise(job, &src), "{codec:?} {clevel} {pipeline:?} items of {typesize}");
                assert!(!stored || out == src);
                stored
            })
        });
        stored.collect()
    }

    fn stored_by_all(typesize: usize, change: impl Fn(&mut [u8], &[u8])) -> usize {
        let stored = [Codec::Lz4, Codec::Zlib].map(|codec| stored(codec, typesize, &change));
        stored.iter().flatten().filter(|&&stored| stored).count()
    }

    #[test]
    fn noise_is_stored_after_a_look_at_parts() {
        for typesize in [1, 2, 3, 4, 8, 31] {
            assert_eq!(stored_by_all(typesize, |_, _| ()), 20);
        }
        // What is not filtered is probed whole.
        for pipeline in &PIPELINES[1..] {
            let params = params(Codec::Zlib, 5, pipeline, 4);
            let src = noise(NBYTES, 1);
            with_job(&src, &params, |job| {
                let blocks: Vec<_> =
                    (1..4).map(|n| Block { bytes: &src[job.range_of(n)], reference: job.reference_for(n) }).collect();
                assert!(with_worker(|worker| job.seem_noise(&blocks, worker)).unwrap());
            });
        }
    }

    #[test]
    fn one_block_with_something_in_it_is_enough() {
        // LZ4 finds no single bytes that are constant where nothing is filtered, and delta makes noise of them.
        let high_byte = |block: &mut [u8], _: &[u8]| block.chunks_mut(4).for_each(|item| item[3] = 7);
        assert_eq!(stored_by_all(4, high_byte), 8);
        let counter = |block: &mut [u8], _: &[u8]| {
            for (n, item) in (0_u32..).zip(block.chunks_mut(4)) {
                item[3] = (n / 64).to_le_bytes()[0];
            }
        };
        assert_eq!(stored_by_all(4, counter), 8);
        // Only bitshuffle parts it from the others.
        let bit = |block: &mut [u8], _: &[u8]| block.chunks_mut(8).for_each(|item| item[5] |= 1);
        assert_eq!(stored_by_all(8, bit), 16);
        let zeros = |block: &mut [u8], _: &[u8]| {
            let length = block.len() / 16;
            block[5 * length..6 * length].fill(0);
        };
        assert_eq!(stored_by_all(4, zeros), 4);
        // Only delta knows the first block.
        let steps = |block: &mut [u8], first: &[u8]| {
            let steps = noise(block.len(), 2);
            for ((item, first), step) in block.chunks_mut(4).zip(first.chunks(4)).zip(steps) {
                item.copy_from_slice(first);
                item[0] = item[0].wrapping_add(step % 16);
            }
        };
        assert_eq!(stored_by_all(4, steps), 16);
    }

    #[test]
    fn one_block_that_repeats_a_part_of_itself_is_enough() {
        // LZ4 finds what is up to 64 KiB away, and delta makes noise of the one as of the other.
        let again = |at: usize| move |block: &mut [u8], _: &[u8]| block.copy_within(500..3100, at);
        assert_eq!(stored_by_all(4, again(4500)), 6);
        assert!(stored_by_all(4, again(5500)) < 10);
        assert!(stored_by_all(1, again(4597)) < 10);
        let far = |block: &mut [u8], _: &[u8]| block.copy_within(1000..3100, block.len() - 3000);
        assert!(stored_by_all(4, far) < 14);
    }
}
