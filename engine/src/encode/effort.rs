//! How hard to search: a level stands for a size, and the quickest search that comes to it is taken.
//!
//! A level tells a codec how thoroughly to look for repetitions. Much of that is in vain: the low bytes of measured
//! numbers are noise, in which there is nothing to find, and of many others the quickest search finds as much as the
//! most thorough. So samples of the streams of one block are compressed with the level's own search and with quicker
//! ones, and the quickest that keep the block within a hundredth of its size are used for the chunk.
//!
//! Nothing quicker is taken on trust. Each stream is scouted, compressed in a quick way, and where that comes to
//! another size than it did of the sample, the stream gets the level's own search.
//!
//! Where a stream is noise in parts, and the codec can store parts of a stream, that saves more than any quicker search.
//! Every stream is then looked through for such parts, to the piece.
//!
//! What is found depends on the data alone, so chunks have the same bytes for every number of threads.

use std::ops::{Range, RangeInclusive};

use crate::chunk::resize;
use crate::codecs::{Codec, Encoder, NoiseFinder};
use crate::error::Result;

/// A sample is about such a part of what is decided by it; at most such a part, and of a block that is one stream; and
/// where it is only the question whether to search at all.
const SHARE: usize = 48;
const LARGE_SHARE: usize = 16;
const SMALL_SHARE: usize = 128;
/// Pieces that streams are scouted in which are expected to be noise, in bytes: below 64 KiB, LZ4 is at its quickest.
const PIECE: usize = 60 * 1024;
/// Of less than so many of the shortest samples nothing is decided.
const FEW: usize = 8;
/// Shortest sample of a longer stream that tells which search will do, in bytes. Up to 16 KiB libzstd searches otherwise.
const TELLING: usize = 17 * 1024;
/// Longest and shortest sample of a stream, in bytes.
const MOST: usize = 256 * 1024;
const LEAST: usize = 4 * 1024;
/// Streams shorter than this are not looked at, in bytes.
const SHORT: usize = 2 * 1024;
/// A long block of one stream that is not telling in one place is looked at in so many, each so long in bytes; the shortest
/// that is. With filters it has parts of many kinds.
const PLACES: usize = 16;
const PLACE: usize = 4 * 1024;
const LONG: usize = 1_000_000;
/// A block's noise is worth going around if it is at least such a part of it, and the rest too.
const NOISY: usize = 16;
/// Deflate refers to what is as near as this, in bytes.
const NEAR: usize = 32 * 1024;
/// Sample of what scouting makes nothing of, in bytes.
const NOISE: usize = 8 * 1024;
/// Quicker searches may take more than the level's own by such a part of a block, and plain streams.
const CLOSE: usize = 192;
/// Where the quicker searches are much alike, one that misses by more than such a part stands for all.
const FAR: usize = 16;
/// A stream that scouting leaves longer, or shorter, by such a part of its length is not like the sample.
const WORSE: usize = 64;
const BETTER: usize = 16;

/// What to do with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Store it as it is.
    Plain,
    /// Compress it with this search.
    Rung(usize),
    /// Compress it with the level's own search where it is not noise.
    Around,
}

/// What was found of one stream of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    choice: Choice,
    /// Length of the sample, in bytes, and what scouting made of it.
    sample: usize,
    scouted: usize,
}

impl Finding {
    pub(super) fn is_plain(&self) -> bool {
        self.choice == Choice::Plain
    }

    /// Whether a stream of `length` bytes that was scouted is like the sample was.
    fn is_alike(&self, length: usize, scouted: usize) -> bool {
        let here = scouted as u64 * self.sample as u64;
        let there = self.scouted as u64 * length as u64;
        let whole = length as u64 * self.sample as u64;
        match self.choice {
            Choice::Plain => here + whole / CLOSE as u64 >= there,
            Choice::Rung(_) | Choice::Around => {
                here <= there + whole / WORSE as u64 && here + whole / BETTER as u64 >= there
            }
        }
    }
}

/// The encoders of one thread for one codec and level.
#[derive(Debug)]
pub(super) struct Searches {
    own: Encoder,
    /// For what is plain, and for all where the quickest search of `own` would take long.
    scout: Encoder,
    /// For codecs that can store parts of a stream.
    noise: Option<NoiseFinder>,
    room: Vec<u8>,
}

impl Searches {
    pub(super) fn new(codec: Codec, clevel: u8) -> Result<Self> {
        let own = Encoder::new(codec, clevel, None)?;
        let noise = own.goes_around().then(NoiseFinder::new).transpose()?;
        Ok(Self { own, scout: Encoder::scout()?, noise, room: Vec::new() })
    }

    pub(super) fn fits(&self, codec: Codec, clevel: u8) -> bool {
        self.own.codec() == codec && self.own.clevel() == clevel
    }

    /// Compress with the level's own search; None if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.own.encode(src, dst)
    }

    /// Compress as was found best; None if the result does not fit or does not pay.
    pub(super) fn encode_as(&mut self, finding: &Finding, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let last = self.own.rungs() - 1;
        if finding.choice == Choice::Rung(last) || self.declines_noise() {
            return self.own.encode_at(last, src, dst);
        }
        if finding.choice == Choice::Around {
            let noise = self.noise.as_mut().map(|finder| finder.find(src)).unwrap_or_default();
            return self.own.encode_around(&noise, src, dst);
        }
        let scouted = self.scout(finding.choice, src, dst);
        if !finding.is_alike(src.len(), scouted.unwrap_or(src.len())) {
            return self.own.encode(src, dst);
        }
        match finding.choice {
            Choice::Plain => None,
            Choice::Rung(0) if self.quickest_scouts() => scouted,
            Choice::Rung(rung) => self.own.encode_at(rung, src, dst),
            Choice::Around => self.own.encode(src, dst),
        }
    }

    /// Whether scouting of a stream that was found plain comes to the same.
    pub(super) fn is_plain(&mut self, finding: &Finding, src: &[u8]) -> Result<bool> {
        let mut room = std::mem::take(&mut self.room);
        let dst = resize(&mut room, src.len())?;
        let alike = if self.declines_noise() {
            self.own.encode(src, &mut dst[..src.len() - 1]).is_none()
        } else {
            let scouted = self.scout_noise(src, dst);
            finding.is_alike(src.len(), scouted)
        };
        self.room = room;
        Ok(finding.choice == Choice::Plain && alike)
    }

    /// Let go of scratch space that only an unusually large block needed.
    pub(super) fn trim(&mut self, keep: usize) {
        if self.room.capacity() > keep {
            self.room = Vec::new();
        }
    }

    /// Whether the level's own search, and the only one, is done with noise as soon as a scout.
    fn declines_noise(&self) -> bool {
        matches!(self.own.codec(), Codec::BloscLz | Codec::Lz4)
    }

    /// Whether the quickest search takes so little time that it is its own scout.
    fn quickest_scouts(&self) -> bool {
        self.own.codec() != Codec::Zlib
    }

    /// Compress in little time. Of what is not plain the result is of use, if the quickest search is the scout.
    fn scout(&mut self, choice: Choice, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if choice != Choice::Plain && self.quickest_scouts() {
            self.own.encode_at(0, src, dst)
        } else if choice == Choice::Plain {
            Some(self.scout_noise(src, dst))
        } else {
            self.scout.encode(src, dst)
        }
    }

    /// The length that scouting leaves of what is likely to be noise.
    fn scout_noise(&mut self, src: &[u8], room: &mut [u8]) -> usize {
        let most = room.len();
        let mut length = |piece: &[u8]| self.scout.encode(piece, &mut room[..piece.len().min(most)]);
        src.chunks(PIECE).map(|piece| length(piece).unwrap_or(piece.len())).sum()
    }

    /// Find out how to compress the streams that samples were taken from: with the last of `rungs`, or a quicker one that
    /// comes to its size.
    fn find(&mut self, samples: &[&[u8]], rungs: RangeInclusive<usize>) -> Result<Box<[Finding]>> {
        let mut room = std::mem::take(&mut self.room);
        let longest = samples.iter().map(|sample| sample.len()).max().unwrap_or(0);
        resize(&mut room, longest)?;
        let (first, last) = rungs.into_inner();
        let sizes: Vec<usize> = samples.iter().map(|sample| self.own_size(sample, last, &mut room)).collect();
        let pays = |n: usize| sizes[n] + samples[n].len() / CLOSE < samples[n].len();
        let paying = (0..samples.len()).filter(|&n| pays(n)).count().max(1);
        let spare = sizes.iter().sum::<usize>() / CLOSE / paying;
        let mut finding = |(n, &sample): (usize, &&[u8])| {
            let choice = if pays(n) {
                let most = (sizes[n] + spare).min(sample.len());
                let asked = first < last && self.own.has_quicker(sizes[n], sample.len());
                Choice::Rung(if asked { self.quickest(sample, most, first..last, &mut room) } else { last })
            } else {
                Choice::Plain
            };
            let scouted = self.scout(choice, sample, &mut room[..sample.len()]).unwrap_or(sample.len());
            Finding { choice, sample: sample.len(), scouted }
        };
        let findings = samples.iter().enumerate().map(&mut finding).collect();
        self.room = room;
        Ok(findings)
    }

    /// The quickest of `rungs` that leaves at most so many bytes of a sample, or the one behind them.
    fn quickest(&mut self, sample: &[u8], most: usize, rungs: Range<usize>, room: &mut [u8]) -> usize {
        let last = rungs.end;
        for rung in rungs {
            let length = self.own.encode_at(rung, sample, &mut room[..sample.len()]).unwrap_or(sample.len());
            if length <= most {
                return rung;
            }
            if self.own.is_flat() && length > most + most / FAR {
                break;
            }
        }
        last
    }

    /// Find out how to compress long blocks that are one stream, such as this one, with searches like
    /// the level's own.
    fn find_by_places(&mut self, block: &[u8]) -> Result<Box<[Finding]>> {
        let sample: Vec<u8> =
            block.chunks(block.len() / PLACES).take(PLACES).flat_map(|part| middle(part, PLACE)).copied().collect();
        let mut findings = self.find(&[&sample], self.own.kindred())?;
        let mut room = std::mem::take(&mut self.room);
        let dst = resize(&mut room, block.len())?;
        // Pieces repeat less than all that lies between them.
        for finding in findings.iter_mut().filter(|finding| !finding.is_plain()) {
            finding.sample = block.len();
            finding.scouted = self.scout(finding.choice, block, dst).unwrap_or(block.len());
        }
        self.room = room;
        Ok(findings)
    }

    /// Whether a part of a block is noise that is worth going around. The rest must not repeat what stands on its other
    /// side, so there both ways are tried.
    fn has_noise(&mut self, block: &[u8]) -> Result<bool> {
        let Some(finder) = &mut self.noise else { return Ok(false) };
        let noise = finder.find(block);
        let length: usize = noise.iter().map(Range::len).sum();
        if !(block.len() / NOISY..=block.len() - block.len() / NOISY).contains(&length) {
            return Ok(false);
        }
        let edge = noise[noise.len() / 2].end;
        let place = &block[edge.saturating_sub(NEAR)..block.len().min(edge + NEAR)];
        let noise = finder.find(place);
        let room = resize(&mut self.room, 2 * place.len())?;
        let around = self.own.encode_around(&noise, place, room);
        let own = self.own.encode(place, room);
        Ok(around.zip(own).is_some_and(|(around, own)| around <= own + own / 100))
    }

    /// What the search `own` makes of a sample, or 0 if that makes something of it and no other is of use. Where
    /// scouting finds nothing at all a part has to do, for nothing takes as long as to search in vain.
    fn own_size(&mut self, sample: &[u8], own: usize, room: &mut [u8]) -> usize {
        let room = &mut room[..sample.len()];
        let pays = |length: Option<usize>, of: &[u8]| length.is_some_and(|length| length + of.len() / CLOSE < of.len());
        let scouted = self.scout.encode(sample, room);
        if !pays(scouted, sample) {
            let part = middle(sample, NOISE.min(sample.len()));
            if !pays(self.own.encode_at(self.own.telling(), part, room), part) {
                return sample.len();
            }
        }
        if self.own.has_quicker(scouted.unwrap_or(sample.len()), sample.len()) {
            self.own.encode_at(own, sample, room).unwrap_or(sample.len())
        } else {
            0
        }
    }
}

/// So many bytes from the middle.
fn middle(bytes: &[u8], length: usize) -> &[u8] {
    let start = (bytes.len() - length) / 2;
    &bytes[start..start + length]
}

/// Look at a filtered block, cut into `nstreams`, that stands for `nblocks`. If there is too little to choose for,
/// nothing is found.
pub(super) fn look(searches: &mut Searches, block: &[u8], nstreams: usize, nblocks: usize) -> Result<Box<[Finding]>> {
    let stream = block.len() / nstreams;
    let decided = stream * nblocks;
    let telling = (decided / if nstreams == 1 { LARGE_SHARE } else { SHARE }).clamp(TELLING, MOST).min(stream);
    // The more there is, the more a thorough search finds, so a part of a block that is one stream does not tell.
    let tells = searches.own.rungs() > 1 && decided / LARGE_SHARE >= telling && (nstreams > 1 || telling == stream);
    let length = if tells { telling } else { (decided / SMALL_SHARE).clamp(LEAST, MOST).min(stream) };
    if decided < FEW * LEAST || length < SHORT {
        return Ok(Box::default());
    }
    let last = searches.own.rungs() - 1;
    if nstreams == 1
        && !tells
        && searches.own.kindred().count() > 1
        && stream >= LONG
        && decided >= LARGE_SHARE * PLACES * PLACE
    {
        return searches.find_by_places(block);
    }
    let samples: Vec<&[u8]> = block.chunks_exact(stream).map(|stream| middle(stream, length)).collect();
    let mut findings = searches.find(&samples, if tells { 0 } else { last }..=last)?;
    if let [finding] = &mut *findings
        && searches.has_noise(block)?
    {
        finding.choice = Choice::Around;
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that repeat nothing.
    fn noise(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..length).map(step).collect()
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
                let findings = look(&mut searches, &noise, 4, 16).unwrap();
                assert!(findings.len() == 4 && findings.iter().all(Finding::is_plain));
                assert!(searches.is_plain(&findings[0], &noise[..70_000]).unwrap());
                assert!(!searches.is_plain(&findings[0], &lines[..70_000]).unwrap());
                let findings = look(&mut searches, &lines, 1, 16).unwrap();
                assert!(findings.len() == 1 && !findings[0].is_plain());
            }
        }
    }

    #[test]
    fn a_stream_unlike_the_sample_gets_the_own_search_of_the_level() {
        let (noise, lines) = (noise(1 << 16, 1), lines(1 << 16));
        let mut room = vec![0; 1 << 16];
        for codec in ADAPTING {
            let mut searches = Searches::new(codec, 5).unwrap();
            let findings = look(&mut searches, &noise, 1, 32).unwrap();
            let length = searches.encode_as(&findings[0], &lines, &mut room).unwrap();
            let mut own = vec![0; 1 << 16];
            assert_eq!(searches.encode(&lines, &mut own), Some(length));
            assert_eq!(room[..length], own[..length]);
            assert_eq!(searches.encode_as(&findings[0], &noise, &mut room), None);
        }
    }

    #[test]
    fn a_stream_like_the_sample_comes_within_a_hundredth() {
        let lines = lines(1 << 18);
        let mut room = vec![0; 1 << 18];
        for codec in ADAPTING {
            for clevel in 1..=9 {
                let mut searches = Searches::new(codec, clevel).unwrap();
                let findings = look(&mut searches, &lines, 1, 64).unwrap();
                let Some(finding) = findings.first() else { continue };
                let length = searches.encode_as(finding, &lines, &mut room).unwrap();
                let own = searches.encode(&lines, &mut room).unwrap();
                assert!(length <= own + own / 100, "{codec:?} {clevel}: {length} for {own}");
            }
        }
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
            let findings = look(&mut searches, &block, 1, 16).unwrap();
            assert_eq!(findings[0].choice, Choice::Around);
            let length = searches.encode_as(&findings[0], &block, &mut room).unwrap();
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
        let (quicker, stronger) = searches.own.kindred().into_inner();
        // Nothing in bytes of four bits is worth a long search, and much is in runs.
        let nibbles: Vec<u8> = noise(1 << 20, 2).iter().map(|byte| byte & 15).collect();
        assert_eq!(look(&mut searches, &nibbles, 1, 4).unwrap()[0].choice, Choice::Rung(quicker));
        let runs: Vec<u8> = noise(1 << 16, 2).iter().flat_map(|byte| [byte & 3; 80]).take(1 << 20).collect();
        assert_eq!(look(&mut searches, &runs, 1, 4).unwrap()[0].choice, Choice::Rung(stronger));
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
