//! How a chunk is compressed: measured on pilot blocks, taken for the others where the level's size is kept.
//!
//! A level promises a size: that of C-Blosc2 at the same level, within a hundredth. So one block in sixteen, spread over the
//! chunk, is compressed as C-Blosc2 would: with its split and the level's own search. On the same blocks variants are
//! measured that take less time: another split, and quicker searches. What a variant may lose is [`SPARE`] of the pilots'
//! size, half of the hundredth. Pilots are compressed once, for the chunk has their output.
//!
//! ```text
//! blocks    0 1 2 3 4 5 6 7 8 9 10 ...      o: pilot, measured and done
//!             o           o     o           .: as was found best; compared with the pilots
//! ```
//!
//! A stream of another block is compressed with the search that was found for its place in the block. If its size is not
//! like that of the pilots, what was measured says nothing about it, and it gets the own search. So does a stream of which a
//! quick search makes nothing.
//!
//! What is found depends on the data alone, so chunks have the same bytes for every number of threads.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use super::{Job, Worker, run_of, with_worker};
use crate::chunk::resize;
use crate::codecs::Codec;
use crate::error::Result;
use crate::interrupt::go_on;
use crate::pool;

/// One block of so many is a pilot, but three at least.
const PILOTS: usize = 16;
const FEWEST: usize = 3;
/// Chunks of fewer blocks get the own search only: their pilots would be most of the work.
const FEW: usize = 16;
/// Variants may leave the pilots longer by such a part: half of the promised hundredth, the other half is for blocks that
/// pilots do not show.
const SPARE: usize = 200;
/// A stream is like those of the pilots if what is left of it differs by less than such a part, or than such a part of
/// what is left of a block.
const ALIKE: usize = 16;
const NOTHING: usize = 256;
/// Blocks of which less than such a part is left get the own search: chance decides what is found of their few matches.
const DENSE: usize = 16;

/// A search that is quicker than the level's own, for the streams at one place of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quicker {
    pub(super) candidate: usize,
    /// Bytes that it leaves of streams like those of the pilots.
    alike: RangeInclusive<usize>,
}

impl Quicker {
    /// Whether a stream of which the search leaves `left` bytes is like those of the pilots: what was measured says nothing
    /// of others.
    pub(super) fn is_alike(&self, left: usize) -> bool {
        self.alike.contains(&left)
    }
}

/// How the blocks of a chunk are compressed.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Streams of a full block.
    pub(super) nstreams: usize,
    /// The search for each of them: None is the level's own.
    pub(super) searches: Vec<Option<Quicker>>,
    /// Pilots as they are in the chunk.
    pub(super) done: BTreeMap<usize, Vec<u8>>,
    /// Every stream of the pilots is proven to be incompressible.
    pub(super) incompressible: bool,
}

impl Plan {
    /// Streams of a block of so many bytes.
    pub(super) fn nstreams_of(&self, nbytes: usize, blocksize: usize) -> usize {
        if nbytes == blocksize { self.nstreams } else { 1 }
    }
}

/// A pilot, compressed with the own search for one split.
#[derive(Debug, Default)]
struct Pilot {
    bytes: Vec<u8>,
    /// Of each stream the bytes that C-Blosc2 leaves; the stream's own length if it is stored, 0 for a run.
    lengths: Vec<usize>,
    /// Streams that are proven to be incompressible.
    proven: usize,
}

impl Job<'_> {
    /// Measure the pilots.
    pub(super) fn plan(&self, own_split: usize, other_split: usize) -> Result<Plan> {
        let mut plan = Plan { nstreams: own_split, ..Plan::default() };
        let nblocks = self.src.nbytes() / self.blocksize;
        if nblocks < FEW {
            return Ok(plan);
        }
        let npilots = (nblocks / PILOTS).max(FEWEST);
        let pilots: Vec<usize> = (0..npilots).map(|n| (2 * n + 1) * nblocks / (2 * npilots)).collect();
        let mut own = self.each(&pilots, |_, nblock, worker| self.pilot(nblock, own_split, worker))?;
        let bytes = |pilots: &[Pilot]| pilots.iter().map(|pilot| pilot.bytes.len()).sum::<usize>();
        let mut size = bytes(&own);
        let allowed = size + size / SPARE;
        plan.incompressible = own.iter().all(|pilot| pilot.proven == own_split);
        if other_split != own_split && !plan.incompressible {
            let other = self.each(&pilots, |_, nblock, worker| self.pilot(nblock, other_split, worker))?;
            let loss: usize =
                other.iter().zip(&own).map(|(other, own)| other.bytes.len().saturating_sub(own.bytes.len())).sum();
            if loss <= size / SPARE && size >= npilots * (self.blocksize / DENSE) {
                (plan.nstreams, size) = (other_split, bytes(&other));
                own = other;
            }
        }
        if !plan.incompressible {
            let spare = (size / SPARE).min(allowed.saturating_sub(size));
            plan.searches = self.quicker(&pilots, &own, plan.nstreams, spare)?;
        }
        plan.done = pilots.into_iter().zip(own).map(|(nblock, pilot)| (nblock, pilot.bytes)).collect();
        Ok(plan)
    }

    /// Do something for each of some blocks, on all threads.
    fn each<T: Send + Default>(
        &self,
        blocks: &[usize],
        work: impl Fn(usize, usize, &mut Worker) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let results = Mutex::new(Vec::new());
        results.lock().unwrap_or_else(PoisonError::into_inner).resize_with(blocks.len(), T::default);
        pool::run(self.params.options.nthreads, blocks.to_vec(), |n, nblock| -> Result<()> {
            let result = with_worker(|worker| work(n, nblock, worker))?;
            results.lock().unwrap_or_else(PoisonError::into_inner)[n] = result;
            Ok(())
        })?;
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compress a block with the own search.
    fn pilot(&self, nblock: usize, nstreams: usize, worker: &mut Worker) -> Result<Pilot> {
        let Worker { block, filters, encoder, prover, output, .. } = worker;
        let block = self.filter(nblock, block, filters)?;
        let out = resize(output, block.len() + 5 * nstreams)?;
        let mut pilot = Pilot::default();
        let mut prover = Some(prover).filter(|_| self.proves());
        let (mut at, mut scratch) = (0, Vec::new());
        for stream in block.chunks_exact(block.len() / nstreams) {
            go_on(self.interrupt, stream.len())?;
            let (taken, incompressible) =
                self.encode_stream(stream, None, &mut out[at..], encoder, prover.as_deref_mut())?;
            at += taken;
            pilot.proven += usize::from(incompressible);
            let length = match run_of(stream) {
                Some(_) => 0,
                None if self.codec() == Codec::BloscLz => {
                    let scratch = resize(&mut scratch, stream.len().saturating_sub(1))?;
                    self.encoder(encoder)?.baseline(stream, scratch).unwrap_or(stream.len())
                }
                None => taken - 4,
            };
            pilot.lengths.push(length);
        }
        pilot.bytes = out[..at].to_vec();
        Ok(pilot)
    }

    /// Choose quicker searches, as long as they cost no more than `spare` bytes of the pilots: from the quickest on, first
    /// where least is lost.
    fn quicker(
        &self,
        pilots: &[usize],
        own: &[Pilot],
        nstreams: usize,
        mut spare: usize,
    ) -> Result<Vec<Option<Quicker>>> {
        let stream = self.blocksize / nstreams;
        let mut found = vec![None; nstreams];
        let block = own.iter().map(|pilot| pilot.bytes.len()).sum::<usize>() / own.len().max(1);
        if block < self.blocksize / DENSE {
            return Ok(found);
        }
        let Some((&first, others)) = pilots.split_first() else { return Ok(found) };
        let shortcuts = self.shortcuts(stream)?;
        // The first pilot says which search, and the others whether it does.
        let mut chosen = vec![None; nstreams];
        let is_open = |n: usize| own.iter().any(|pilot| pilot.lengths[n] > 0 && pilot.lengths[n] < stream);
        let mut open: Vec<bool> = (0..nstreams).map(is_open).collect();
        let mut lengths = vec![own[0].lengths.clone()];
        for candidate in shortcuts {
            let tried: Vec<Option<usize>> = open.iter().map(|&open| open.then_some(candidate)).collect();
            let left = with_worker(|worker| self.lengths(first, &tried, &own[0], worker))?;
            for n in 0..nstreams {
                if open[n] && left[n] <= own[0].lengths[n] + spare / pilots.len() {
                    (open[n], chosen[n], lengths[0][n]) = (false, Some(candidate), left[n]);
                }
            }
        }
        if chosen.iter().all(Option::is_none) {
            return Ok(found);
        }
        lengths.extend(self.each(others, |n, nblock, worker| self.lengths(nblock, &chosen, &own[1 + n], worker))?);
        // What a search gains in one pilot does not make up for what it loses in another: both are chance.
        let loss = |n: usize| -> usize {
            lengths.iter().zip(own).map(|(left, own)| left[n].saturating_sub(own.lengths[n])).sum()
        };
        let mut losses: Vec<(usize, usize, usize)> =
            (0..nstreams).filter_map(|n| Some((loss(n), n, chosen[n]?))).collect();
        losses.sort_unstable();
        for (loss, n, candidate) in losses {
            if loss > spare {
                break;
            }
            spare -= loss;
            let left = || lengths.iter().map(|lengths| lengths[n]).filter(|&left| left > 0);
            let (least, most) = (left().min().unwrap_or(stream), left().max().unwrap_or(stream));
            let slack = |left: usize| (left / ALIKE).max(block / NOTHING);
            found[n] = Some(Quicker { candidate, alike: least.saturating_sub(slack(least))..=most + slack(most) });
        }
        Ok(found)
    }

    /// Bytes that searches leave of the streams of a pilot for which one is chosen.
    fn lengths(&self, nblock: usize, chosen: &[Option<usize>], own: &Pilot, worker: &mut Worker) -> Result<Vec<usize>> {
        let Worker { block, filters, encoder, output, .. } = worker;
        let block = self.filter(nblock, block, filters)?;
        let stream = block.len() / chosen.len();
        let out = resize(output, stream)?;
        let mut lengths = own.lengths.clone();
        for (n, stream) in block.chunks_exact(stream).enumerate() {
            if let Some(candidate) = chosen[n].filter(|_| own.lengths[n] != 0 && stream.len() > 1) {
                go_on(self.interrupt, stream.len())?;
                let encoder = self.encoder(encoder)?;
                lengths[n] = encoder.encode_at(candidate, stream, &mut out[..stream.len() - 1]).unwrap_or(stream.len());
            }
        }
        Ok(lengths)
    }

    /// The searches that may be quicker than the level's own for streams of so many bytes, the quickest first.
    fn shortcuts(&self, length: usize) -> Result<Vec<usize>> {
        with_worker(|worker| {
            let encoder = self.encoder(&mut worker.encoder)?;
            let own = encoder.candidates() - 1;
            Ok((0..own).filter(|&candidate| encoder.is_useful(candidate, length)).collect())
        })
    }

    /// Whether every block is proven to be incompressible, the pilots as known.
    pub(super) fn all_incompressible(&self, plan: &Plan) -> Result<bool> {
        if !plan.incompressible {
            return Ok(false);
        }
        let nblocks = self.src.nbytes().div_ceil(self.blocksize);
        let others: Vec<usize> = (0..nblocks).filter(|nblock| !plan.done.contains_key(nblock)).collect();
        let failed = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::Relaxed;
        self.each(&others, |_, nblock, worker| {
            if failed.load(order) {
                return Ok(());
            }
            let Worker { block, filters, encoder, prover, output, .. } = worker;
            let block = self.filter(nblock, block, filters)?;
            go_on(self.interrupt, block.len())?;
            let nstreams = plan.nstreams_of(block.len(), self.blocksize);
            for stream in block.chunks_exact(block.len() / nstreams) {
                // A stream that is too short for a proof is searched.
                let out = resize(output, stream.len() + 5)?;
                let stored = self.encode_stream(stream, None, out, encoder, Some(&mut *prover))?.0 == 4 + stream.len();
                if !stored {
                    failed.store(true, order);
                    break;
                }
            }
            Ok(())
        })?;
        Ok(!failed.into_inner())
    }
}
