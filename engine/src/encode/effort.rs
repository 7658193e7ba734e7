//! How hard to search: a level stands for a size, and the quickest search that comes to it is taken.
//!
//! A level tells a codec how thoroughly to look for repetitions. Much of that is in vain: the low bytes of measured
//! numbers are noise, in which there is nothing to find, and of many others the quickest search finds as much as the
//! most thorough. So samples of the streams of one block are compressed with the level's own search and with quicker
//! ones, and the quickest that keep the block within a hundredth of its size are used for the chunk.
//!
//! That hundredth is spent where it buys most time: a stream in which there is much to find pays for the others.
//!
//! Nothing quicker is taken on trust. Where a stream comes to another size than the sample did, it is probed,
//! compressed in the quickest way, and if the chosen search gains more on that than it did of the sample, the stream gets
//! the level's own search. Of zlib, whose quickest search takes long, every stream is probed first, by LZ4.
//!
//! Where a stream is noise in parts, and the codec can store parts of a stream, that saves more than any quicker search.
//! Every stream is then looked through for such parts, to the piece.
//!
//! What is found depends on the data alone, so chunks have the same bytes for every number of threads.

use std::ops::{Range, RangeInclusive};

use crate::chunk::resize;
use crate::codecs::{Codec, Encoder, IncompressibleFinder};
use crate::error::Result;

use super::trials::{CLOSE, Outcome, Trials, pays};

/// A sample is about such a part of what is decided by it; at most such a part, and of a block that is one stream; and
/// where it is only the question whether to search at all.
const SHARE: usize = 48;
const LARGE_SHARE: usize = 16;
const SMALL_SHARE: usize = 128;
/// Pieces that streams are probed in by LZ4, in bytes: below 64 KiB it is at its quickest.
const PIECE: usize = 60 * 1024;
/// Blocks of which a typical one is looked for.
const WEIGHED: usize = 3;
/// Of less than so many of the shortest samples nothing is decided.
const FEW: usize = 8;
/// Shortest sample of a longer stream that tells which search will do, in bytes. Up to 16 KiB libzstd searches otherwise.
const MIN_SAMPLE: usize = 17 * 1024;
/// Longest and shortest sample of a stream, in bytes.
const MOST: usize = 256 * 1024;
const LEAST: usize = 4 * 1024;
/// Trials of fewer bytes than this are done before another thread has woken up.
const SHARED: usize = 256 * 1024;
/// Streams shorter than this are not looked at, in bytes.
const SHORT: usize = 2 * 1024;
/// A long block of one stream of which one place is no measure is looked at in so many, each so long in bytes; the shortest
/// that is. With filters it has parts of many kinds.
const PLACES: usize = 16;
const PLACE: usize = 4 * 1024;
const LONG: usize = 1_000_000;
/// A block's noise is worth going around if it is at least such a part of it, and the rest too.
const NOISY: usize = 16;
/// Deflate refers to what is as near as this, in bytes.
const NEAR: usize = 32 * 1024;
/// Sample of what probing makes nothing of, in bytes.
const NOISE: usize = 8 * 1024;
/// A stream that probing leaves longer, or shorter, by such a part of its length is not like the sample.
const WORSE: usize = 64;
const BETTER: usize = 16;
/// The chosen search may gain more on probing by such a part than it did of the sample.
const SIMILAR: usize = 8;
/// A stream of which less than such a part is left takes little time to search.
const DENSE: usize = 8;

/// What to do with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Store it as it is.
    Plain,
    /// Compress it with this search.
    Candidate(usize),
    /// Compress it with the level's own search where it is not noise.
    Around,
}

/// What was found of one stream of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPlan {
    choice: Choice,
    /// Length of the sample, in bytes, and what probing left of it.
    sample: usize,
    probed: usize,
    /// What the choice left of it, if streams are compared by that and not by what probing leaves.
    left: Option<usize>,
}

impl StreamPlan {
    pub(super) fn is_plain(&self) -> bool {
        self.choice == Choice::Plain
    }

    /// Whether a stream of `length` bytes, of which `left` is left, is like the sample was.
    fn is_alike(&self, length: usize, left: usize) -> bool {
        let here = left as u64 * self.sample as u64;
        let there = self.left.unwrap_or(self.probed) as u64 * length as u64;
        let whole = length as u64 * self.sample as u64;
        match self.choice {
            Choice::Plain => here + whole / CLOSE as u64 >= there,
            Choice::Candidate(_) | Choice::Around => {
                here <= there + whole / WORSE as u64 && here + whole / BETTER as u64 >= there
            }
        }
    }

    /// Whether the choice takes about as large a part of what probing leaves as it did of the sample.
    fn gains_alike(&self, probed: usize, left: usize) -> bool {
        let here = probed.saturating_sub(left) as u64 * self.probed as u64;
        let there = self.probed.saturating_sub(self.left.unwrap_or(self.probed)) as u64 * probed as u64;
        here <= there + probed as u64 * self.probed as u64 / SIMILAR as u64
    }
}

/// What was found of a block.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// One for each stream, or none if there is too little to choose for.
    pub(super) plans: Box<[StreamPlan]>,
    /// All of the block, compressed as was found, where that came of the look.
    pub(super) block: Option<Vec<u8>>,
}

/// Other threads, which help with a look.
pub(super) trait ThreadPool: Sync {
    /// Run `lead` here and `help` on others, and return when all are done.
    fn share(&self, help: &(dyn Fn(&mut Searches) + Sync), lead: &mut dyn FnMut());

    /// Fail if nobody wants the outcome any more. A sample of `nbytes` bytes is next.
    fn go_on(&self, nbytes: usize) -> Result<()>;
}

/// A quicker search for a sample: the bytes that it leaves more, and the time that it saves.
struct Step {
    n: usize,
    candidate: usize,
    price: usize,
    saved: u64,
}

impl Step {
    /// Whether it saves more time for a byte.
    fn is_better(&self, other: &Self) -> bool {
        self.saved * (other.price as u64 + 1) > other.saved * (self.price as u64 + 1)
    }
}

/// The encoders of one thread for one codec and level.
#[derive(Debug)]
pub(super) struct Searches {
    own: Encoder,
    /// For what is plain, and for all where the quickest search of `own` would take long.
    probe: Encoder,
    /// For codecs that can store parts of a stream.
    incompressible: Option<IncompressibleFinder>,
    room: Vec<u8>,
}

impl Searches {
    pub(super) fn new(codec: Codec, clevel: u8) -> Result<Self> {
        let own = Encoder::new(codec, clevel, None)?;
        let incompressible = own.goes_around().then(IncompressibleFinder::new).transpose()?;
        Ok(Self { own, probe: Encoder::probe()?, incompressible, room: Vec::new() })
    }

    pub(super) fn fits(&self, codec: Codec, clevel: u8) -> bool {
        self.own.codec() == codec && self.own.clevel() == clevel
    }

    /// Compress with the level's own search; None if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.own.encode(src, dst)
    }

    /// Compress as was found best; None if the result does not fit or does not pay.
    pub(super) fn encode_as(&mut self, plan: &StreamPlan, src: &[u8], dst: &mut [u8]) -> Result<Option<usize>> {
        let last = self.own.candidates() - 1;
        Ok(match plan.choice {
            _ if self.declines_incompressible() => self.own.encode(src, dst),
            Choice::Plain if plan.is_alike(src.len(), self.probe_pieces(src, dst)) => None,
            Choice::Candidate(candidate) if candidate < last && plan.left.is_some() => {
                let length = self.own.encode_at(candidate, src, dst);
                if self.will_do(plan, src, length)? {
                    length
                } else {
                    self.encode_thoroughly(length.unwrap_or(src.len()), src.len(), src, dst)
                }
            }
            Choice::Candidate(candidate) if candidate < last && plan.is_alike(src.len(), self.probe(src, dst)) => {
                self.own.encode_at(candidate, src, dst)
            }
            Choice::Around => {
                let incompressible = self.incompressible.as_mut().map(|finder| finder.find(src)).unwrap_or_default();
                self.own.encode_around(&incompressible, src, dst)
            }
            _ => self.encode_thoroughly(plan.left.unwrap_or(0), plan.sample, src, dst),
        })
    }

    /// Compress to the size of the level's own search, where about `left` of `full` bytes will be left.
    fn encode_thoroughly(&mut self, left: usize, full: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if DENSE * left < full {
            return self.own.encode(src, dst);
        }
        self.own.encode_at(self.own.substitute(src.len()), src, dst)
    }

    /// Whether the level's own search would find little in a stream of which the chosen one left so much.
    fn will_do(&mut self, plan: &StreamPlan, src: &[u8], length: Option<usize>) -> Result<bool> {
        let left = length.unwrap_or(src.len());
        if plan.is_alike(src.len(), left) {
            return Ok(true);
        }
        self.with_room(src.len(), |searches, room| match plan.choice {
            _ if length.is_none() => !searches.may_pay(src, room),
            Choice::Candidate(0) => false,
            _ => plan.gains_alike(searches.probe(src, room), left),
        })
    }

    /// Whether probing of a stream that was found plain comes to the same.
    pub(super) fn is_plain(&mut self, plan: &StreamPlan, src: &[u8]) -> Result<bool> {
        let mut room = std::mem::take(&mut self.room);
        let dst = resize(&mut room, src.len())?;
        let alike = if self.declines_incompressible() {
            self.own.encode(src, &mut dst[..src.len() - 1]).is_none()
        } else {
            let probed = self.probe_pieces(src, dst);
            plan.is_alike(src.len(), probed)
        };
        self.room = room;
        Ok(plan.choice == Choice::Plain && alike)
    }

    /// Let go of scratch space that only an unusually large block needed.
    pub(super) fn trim(&mut self, keep: usize) {
        if self.room.capacity() > keep {
            self.room = Vec::new();
        }
    }

    /// Whether the level's own search takes so long that a few blocks more may be filtered to find a typical one.
    pub(super) fn is_slow(&self) -> bool {
        self.own.codec() == Codec::Zstd && self.own.candidates() > 1
    }

    /// What probing leaves of samples of a block that is cut into `nstreams`; None if it makes nothing of any.
    pub(super) fn weigh(&mut self, block: &[u8], nstreams: usize) -> Result<Option<usize>> {
        self.with_room(NOISE, |searches, room| {
            let (mut sampled, mut left) = (0, 0);
            for stream in block.chunks_exact((block.len() / nstreams).max(1)) {
                let sample = middle(stream, NOISE.min(stream.len()));
                sampled += sample.len();
                left += searches.probe_pieces(sample, room);
            }
            (left < sampled).then_some(left)
        })
    }

    /// Whether the level's own search, and the only one, is done with noise as soon as a probe.
    fn declines_incompressible(&self) -> bool {
        matches!(self.own.codec(), Codec::BloscLz | Codec::Lz4)
    }

    /// Whether the quickest search takes so little time that it is its own probe.
    fn quickest_probes(&self) -> bool {
        self.own.codec() != Codec::Zlib
    }

    /// The length that probing leaves of what is not noise.
    fn probe(&mut self, src: &[u8], room: &mut [u8]) -> usize {
        if self.quickest_probes() {
            let most = src.len().min(room.len());
            self.own.encode_at(0, src, &mut room[..most]).unwrap_or(src.len())
        } else {
            self.probe_pieces(src, room)
        }
    }

    /// The length that LZ4 leaves, in pieces: from 64 KiB on it searches otherwise, and a stream would not be like its sample.
    fn probe_pieces(&mut self, src: &[u8], room: &mut [u8]) -> usize {
        let most = room.len();
        let mut length = |piece: &[u8]| self.probe.encode(piece, &mut room[..piece.len().min(most)]);
        src.chunks(PIECE).map(|piece| length(piece).unwrap_or(piece.len())).sum()
    }

    /// Find out how to compress the streams that samples were taken from: with the last of `candidates`, or a quicker one that
    /// comes to its size.
    fn find(
        &mut self,
        samples: &[&[u8]],
        candidates: RangeInclusive<usize>,
        threads: &dyn ThreadPool,
    ) -> Result<Found> {
        let longest = samples.iter().map(|sample| sample.len()).max().unwrap_or(0);
        let (first, last) = (*candidates.start(), *candidates.end());
        let mut known = Vec::with_capacity(samples.len());
        for sample in samples {
            known.push(self.probe_sample(sample)?);
        }
        let trials = Trials::new(samples, &known, candidates);
        let run = |searches: &mut Self| {
            let go_on = |nbytes| threads.go_on(nbytes);
            searches.with_room(longest, |searches, room| trials.run(&mut searches.own, room, go_on)).flatten()
        };
        let mut outcome = None;
        let mut lead = || outcome = Some(run(self));
        if trials.weight() < SHARED {
            lead();
        } else {
            // A helper that has no memory, or is told to stop, does not help.
            threads.share(&|searches| drop(run(searches)), &mut lead);
        }
        let Some(outcome) = outcome.transpose()? else { return Ok(Found::default()) };
        let candidates = self.spend(last, samples, &outcome);
        let Outcome { sizes, losses, .. } = outcome;
        let mut plans = Vec::with_capacity(samples.len());
        for (n, &sample) in samples.iter().enumerate() {
            let found = |choice, probed, left| StreamPlan { choice, sample: sample.len(), probed, left };
            if !pays(sizes[n], sample) {
                let probed = self.with_room(longest, |searches, room| searches.probe_pieces(sample, room))?;
                plans.push(found(Choice::Plain, probed, None));
                continue;
            }
            let probed = match losses[n].first() {
                _ if candidates[n] == last => 0,
                Some(&loss) if first == 0 && self.quickest_probes() => sizes[n] + loss,
                _ => self.with_room(longest, |searches, room| searches.probe(sample, room))?,
            };
            let left = sizes[n] + losses[n].get(candidates[n]).unwrap_or(&0);
            plans.push(found(Choice::Candidate(candidates[n]), probed, self.quickest_probes().then_some(left)));
        }
        let block = if samples.len() == 1 { trials.into_kept(candidates[0]) } else { None };
        Ok(Found { plans: plans.into(), block })
    }

    /// Do something with so much room.
    fn with_room<R>(&mut self, length: usize, work: impl FnOnce(&mut Self, &mut [u8]) -> R) -> Result<R> {
        let mut room = std::mem::take(&mut self.room);
        let outcome = resize(&mut room, length).map(|room| work(self, room));
        self.room = room;
        outcome
    }

    /// Choose the searches: from the last on for all samples, the step that saves most time for a byte, as long as there are
    /// `spare` bytes for one.
    fn spend(&self, last: usize, samples: &[&[u8]], outcome: &Outcome) -> Vec<usize> {
        let &Outcome { ref sizes, ref losses, mut spare } = outcome;
        let mut candidates = vec![last; samples.len()];
        loop {
            let mut best: Option<Step> = None;
            for (n, losses) in losses.iter().enumerate() {
                let now = losses.get(candidates[n]).copied().unwrap_or(0);
                let weight = samples[n].len().min(DENSE * sizes[n]) as u64;
                for (candidate, &loss) in losses.iter().enumerate().take(candidates[n]) {
                    let price = loss.saturating_sub(now);
                    let saved = weight * u64::from(self.own.cost(candidates[n]) - self.own.cost(candidate));
                    let step = Step { n, candidate, price, saved };
                    if price <= spare && best.as_ref().is_none_or(|best| step.is_better(best)) {
                        best = Some(step);
                    }
                }
            }
            let Some(step) = best else { return candidates };
            candidates[step.n] = step.candidate;
            spare -= step.price;
        }
    }

    /// Find out how to compress long blocks that are one stream, such as this one, with searches like
    /// the level's own.
    fn find_by_places(&mut self, block: &[u8], threads: &dyn ThreadPool) -> Result<Found> {
        let mut plans = self.find(&[&places(block)], self.own.long_candidates(), threads)?.plans;
        // Pieces repeat less than all that lies between them.
        for plan in plans.iter_mut().filter(|plan| !plan.is_plain()) {
            plan.sample = block.len();
            plan.probed = self.with_room(block.len(), |searches, room| searches.probe(block, room))?;
            plan.left = None;
        }
        Ok(Found { plans, block: None })
    }

    /// Whether bytes are noise to the last piece, which is sooner found than that deflate makes nothing of them.
    fn is_incompressible(&mut self, bytes: &[u8]) -> bool {
        self.incompressible.as_mut().is_some_and(|finder| finder.find(bytes) == std::slice::from_ref(&(0..bytes.len())))
    }

    /// Whether a part of a block is noise that is worth going around. The rest must not repeat what stands on its other
    /// side, so there both ways are tried.
    fn has_incompressible_parts(&mut self, block: &[u8]) -> Result<bool> {
        let Some(finder) = &mut self.incompressible else { return Ok(false) };
        let incompressible = finder.find(block);
        let length: usize = incompressible.iter().map(Range::len).sum();
        if !(block.len() / NOISY..=block.len() - block.len() / NOISY).contains(&length) {
            return Ok(false);
        }
        let edge = incompressible[incompressible.len() / 2].end;
        let place = &block[edge.saturating_sub(NEAR)..block.len().min(edge + NEAR)];
        let incompressible = finder.find(place);
        let room = resize(&mut self.room, 2 * place.len())?;
        let around = self.own.encode_around(&incompressible, place, room);
        let own = self.own.encode(place, room);
        Ok(around.zip(own).is_some_and(|(around, own)| around <= own + own / 100))
    }

    /// What is known of a sample after a probe: its length if nothing makes anything of it, or 0 if something does and no
    /// other search than the level's own is of use. Where probing finds nothing at all a part has to do, for nothing takes
    /// as long as to search in vain.
    fn probe_sample(&mut self, sample: &[u8]) -> Result<Option<usize>> {
        self.with_room(sample.len(), |searches, room| {
            let probed = searches.probe.encode(sample, room);
            if !probed.is_some_and(|length| pays(length, sample)) && !searches.may_pay(sample, room) {
                return Some(sample.len());
            }
            let has_quicker = searches.own.has_quicker(probed.unwrap_or(sample.len()), sample.len());
            (!has_quicker).then_some(0)
        })
    }

    /// Whether the level's own search makes anything of a part of what probing makes nothing of.
    fn may_pay(&mut self, src: &[u8], room: &mut [u8]) -> bool {
        let part = middle(src, NOISE.min(src.len()));
        if self.is_incompressible(part) {
            return false;
        }
        let length = self.own.encode_at(self.own.min_sample_level(), part, &mut room[..part.len()]);
        length.is_some_and(|length| pays(length, part))
    }
}

/// So many bytes from the middle.
fn middle(bytes: &[u8], length: usize) -> &[u8] {
    let start = (bytes.len() - length) / 2;
    &bytes[start..start + length]
}

/// Some places of a long block, one after the other.
fn places(block: &[u8]) -> Vec<u8> {
    block.chunks(block.len() / PLACES).take(PLACES).flat_map(|part| middle(part, PLACE)).copied().collect()
}

/// The block that stands for `nblocks`: of several, the one of which probing leaves neither much nor little. `weigh`
/// says what it leaves, or nothing for noise; if the middle one is that, all are likely to be.
pub(super) fn typical(nblocks: usize, mut weigh: impl FnMut(usize) -> Result<Option<usize>>) -> Result<usize> {
    let middle = nblocks / 2;
    if nblocks < 2 * WEIGHED {
        return Ok(middle);
    }
    let Some(weight) = weigh(middle)? else { return Ok(middle) };
    let mut weighed = vec![(weight, middle)];
    for n in (0..WEIGHED).filter(|&n| n != WEIGHED / 2) {
        let nblock = nblocks * (2 * n + 1) / (2 * WEIGHED);
        weighed.push((weigh(nblock)?.unwrap_or(usize::MAX), nblock));
    }
    weighed.sort_unstable();
    Ok(weighed[WEIGHED / 2].1)
}

/// Look at a filtered block, cut into `nstreams`, that stands for `nblocks`.
pub(super) fn look(
    searches: &mut Searches,
    block: &[u8],
    nstreams: usize,
    nblocks: usize,
    threads: &dyn ThreadPool,
) -> Result<Found> {
    let stream = block.len() / nstreams;
    let decided = stream * nblocks;
    let min_sample = (decided / if nstreams == 1 { LARGE_SHARE } else { SHARE }).clamp(MIN_SAMPLE, MOST).min(stream);
    // Until it has seen as much as it can refer to, deflate finds less than later, which counts in the longest streams.
    let min_sample =
        if searches.own.goes_around() && stream > 8 * NEAR { min_sample.max(3 * NEAR) } else { min_sample };
    // The more there is, the more a thorough search finds, so a part of a block that is one stream does not tell.
    let tells =
        searches.own.candidates() > 1 && decided / LARGE_SHARE >= min_sample && (nstreams > 1 || min_sample == stream);
    let length = if tells { min_sample } else { (decided / SMALL_SHARE).clamp(LEAST, MOST).min(stream) };
    if decided < FEW * LEAST || length < SHORT {
        return Ok(Found::default());
    }
    let last = searches.own.candidates() - 1;
    if nstreams == 1
        && !tells
        && searches.own.long_candidates().count() > 1
        && stream >= LONG
        && decided >= LARGE_SHARE * PLACES * PLACE
    {
        return searches.find_by_places(block, threads);
    }
    let samples: Vec<&[u8]> = block.chunks_exact(stream).map(|stream| middle(stream, length)).collect();
    let mut found = searches.find(&samples, if tells { 0 } else { last }..=last, threads)?;
    found.block = found.block.filter(|_| length == block.len());
    if let [plan] = &mut *found.plans
        // Something else has a place in it if it is a sixteenth of the block.
        && !(plan.is_plain() && stream >= PLACES * PLACE && searches.is_incompressible(&places(block)))
        && searches.has_incompressible_parts(block)?
    {
        plan.choice = Choice::Around;
        found.block = None;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::testing::noise;

    /// Nobody else.
    struct Alone;

    impl ThreadPool for Alone {
        fn share(&self, _: &(dyn Fn(&mut Searches) + Sync), lead: &mut dyn FnMut()) {
            lead();
        }

        fn go_on(&self, _: usize) -> Result<()> {
            Ok(())
        }
    }

    fn look(searches: &mut Searches, block: &[u8], nstreams: usize, nblocks: usize) -> Result<Box<[StreamPlan]>> {
        super::look(searches, block, nstreams, nblocks, &Alone).map(|found| found.plans)
    }

    /// Lines that repeat parts of each other.
    fn lines(length: usize) -> Vec<u8> {
        let picks = noise(length, 3);
        let line = |&pick: &u8| format!("{pick} GET /data/{:05} from node{}\n", u32::from(pick) * 37 % 500, pick % 7);
        let text: Vec<u8> = picks.iter().take(length / 20).flat_map(|pick| line(pick).into_bytes()).collect();
        text[..length].to_vec()
    }

    const ADAPTING: [Codec; 3] = [Codec::Lz4Hc, Codec::Zlib, Codec::Zstd];

    #[test]
    fn noise_is_found_plain_and_text_is_not() {
        let (noise, lines) = (noise(1 << 18, 1), lines(1 << 18));
        for codec in Codec::ALL {
            for clevel in [1, 5].into_iter().filter(|&clevel| clevel > 1 || codec != Codec::Lz4Hc) {
                let mut searches = Searches::new(codec, clevel).unwrap();
                let plans = look(&mut searches, &noise, 4, 16).unwrap();
                assert!(plans.len() == 4 && plans.iter().all(StreamPlan::is_plain));
                assert!(searches.is_plain(&plans[0], &noise[..70_000]).unwrap());
                assert!(!searches.is_plain(&plans[0], &lines[..70_000]).unwrap());
                let plans = look(&mut searches, &lines, 1, 16).unwrap();
                assert!(plans.len() == 1 && !plans[0].is_plain());
            }
        }
    }

    #[test]
    fn a_stream_unlike_the_sample_gets_the_own_search_of_the_level() {
        let (noise, lines) = (noise(1 << 16, 1), lines(1 << 16));
        let mut room = vec![0; 1 << 16];
        for codec in ADAPTING {
            let mut searches = Searches::new(codec, 5).unwrap();
            let plans = look(&mut searches, &noise, 1, 32).unwrap();
            let length = searches.encode_as(&plans[0], &lines, &mut room).unwrap().unwrap();
            let mut own = vec![0; 1 << 16];
            assert_eq!(searches.encode(&lines, &mut own), Some(length));
            assert_eq!(room[..length], own[..length]);
            assert_eq!(searches.encode_as(&plans[0], &noise, &mut room), Ok(None));
        }
    }

    #[test]
    fn a_stream_like_the_sample_comes_within_a_hundredth() {
        let lines = lines(1 << 18);
        let mut room = vec![0; 1 << 18];
        for codec in ADAPTING {
            for clevel in 1..=9 {
                let mut searches = Searches::new(codec, clevel).unwrap();
                let plans = look(&mut searches, &lines, 1, 64).unwrap();
                let Some(plan) = plans.first() else { continue };
                let length = searches.encode_as(plan, &lines, &mut room).unwrap().unwrap();
                let own = searches.encode(&lines, &mut room).unwrap();
                assert!(length <= own + own / 100, "{codec:?} {clevel}: {length} for {own}");
            }
        }
    }

    #[test]
    fn a_block_that_was_looked_at_is_what_it_would_be_compressed_to() {
        let lines = lines(1 << 17);
        let nibbles: Vec<u8> = noise(1 << 17, 2).iter().map(|byte| byte & 15).collect();
        let mut room = vec![0; 1 << 17];
        for codec in ADAPTING {
            for (block, clevel) in [&lines, &nibbles].into_iter().flat_map(|block| [(block, 3), (block, 5), (block, 8)])
            {
                let mut searches = Searches::new(codec, clevel).unwrap();
                let found = super::look(&mut searches, block, 1, 16, &Alone).unwrap();
                let length = searches.encode_as(&found.plans[0], block, &mut room).unwrap().unwrap();
                assert!(found.block.unwrap() == room[..length], "{codec:?} {clevel}");
                assert_eq!(super::look(&mut searches, block, 4, 16, &Alone).unwrap().block, None);
            }
        }
    }

    #[test]
    fn bytes_are_spent_where_they_save_most_time() {
        let searches = Searches::new(Codec::Zstd, 5).unwrap();
        let samples: [&[u8]; 3] = [&[0; 1000]; 3];
        let losses = [vec![10, 5, 0], vec![100, 3], vec![]];
        let spend = |spare, sizes, losses| searches.spend(4, &samples, &Outcome { sizes, losses, spare });
        assert_eq!(spend(12, vec![500; 3], losses.to_vec()), [1, 1, 4]);
        assert_eq!(spend(2, vec![500; 3], losses.to_vec()), [2, 4, 4]);
        // The third is soon searched, whatever the search.
        let losses = vec![vec![100, 3], vec![], vec![3]];
        assert_eq!(spend(3, vec![500, 500, 10], losses), [1, 4, 4]);
    }

    #[test]
    fn a_typical_block_is_neither_the_smallest_nor_the_largest() {
        let of = |weights: [usize; 9]| typical(9, |nblock| Ok(Some(weights[nblock]).filter(|&weight| weight < 10)));
        assert_eq!(of([0, 9, 0, 0, 5, 0, 0, 2, 0]), Ok(4));
        assert_eq!(of([0, 6, 0, 0, 9, 0, 0, 2, 0]), Ok(1));
        assert_eq!(of([0, 10, 0, 0, 5, 0, 0, 9, 0]), Ok(7));
        assert_eq!(of([0, 6, 0, 0, 10, 0, 0, 2, 0]), Ok(4)); // noise
        assert_eq!(typical(3, |_| unreachable!()), Ok(1));
        assert_eq!(typical(9, |_| Err(Error::OutOfMemory { needed: 1 })), Err(Error::OutOfMemory { needed: 1 }));
    }

    #[test]
    fn noise_in_a_stream_is_gone_around() {
        let nibbles = |n| noise(8192, n).iter().map(|byte| byte & 15).collect();
        let parts = |n| if n % 3 == 0 { noise(8192, n) } else { nibbles(n) };
        let block: Vec<u8> = (0..32).flat_map(parts).collect();
        let repeated: Vec<u8> = (0..32).flat_map(|n| if n % 2 == 0 { noise(8192, n) } else { lines(8192) }).collect();
        let (mut room, mut own) = (vec![0; block.len()], vec![0; block.len()]);
        for clevel in [1, 5, 9] {
            let mut searches = Searches::new(Codec::Zlib, clevel).unwrap();
            let plans = look(&mut searches, &block, 1, 16).unwrap();
            assert_eq!(plans[0].choice, Choice::Around);
            let length = searches.encode_as(&plans[0], &block, &mut room).unwrap().unwrap();
            let own = searches.encode(&block, &mut own).unwrap();
            assert!(length <= own + own / 100, "level {clevel}: {length} for {own}");
            assert!(room.windows(8192).any(|window| window == noise(8192, 3)));
        }
        let all_noise = noise(1 << 18, 1);
        for (other, codec) in
            [(&lines(1 << 18), Codec::Zlib), (&all_noise, Codec::Zlib), (&repeated, Codec::Zlib), (&block, Codec::Zstd)]
        {
            let mut searches = Searches::new(codec, 5).unwrap();
            assert_ne!(look(&mut searches, other, 1, 16).unwrap()[0].choice, Choice::Around);
        }
    }

    #[test]
    fn places_of_a_long_block_tell_which_of_the_strongest_searches_will_do() {
        let mut searches = Searches::new(Codec::Zstd, 9).unwrap();
        let (quicker, stronger) = searches.own.long_candidates().into_inner();
        // Nothing in bytes of four bits is worth a long search, and much is in runs.
        let nibbles: Vec<u8> = noise(1 << 20, 2).iter().map(|byte| byte & 15).collect();
        assert_eq!(look(&mut searches, &nibbles, 1, 4).unwrap()[0].choice, Choice::Candidate(quicker));
        let runs: Vec<u8> = noise(1 << 16, 2).iter().flat_map(|byte| [byte & 3; 80]).take(1 << 20).collect();
        assert_eq!(look(&mut searches, &runs, 1, 4).unwrap()[0].choice, Choice::Candidate(stronger));
    }

    #[test]
    fn of_little_data_nothing_is_looked_at() {
        let lines = lines(LEAST);
        let mut searches = Searches::new(Codec::Zstd, 5).unwrap();
        assert!(look(&mut searches, &lines, 1, FEW - 1).unwrap().is_empty());
        assert_eq!(look(&mut searches, &lines, 1, FEW).unwrap().len(), 1);
        assert!(look(&mut searches, &lines[..SHORT / 2], 1, 1000).unwrap().is_empty());
    }
}
