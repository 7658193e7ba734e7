//! Zstandard through libzstd: whole frames in one call each.
//!
//! Written frames carry the content size and no checksum. Read are frames of any kind, several in
//! a row and skippable ones between them, as long as they fill the destination and nothing
//! follows. Since frames are decoded straight into the destination, a frame's declared sizes never
//! allocate anything.
//!
//! Source: docs/format/codecs.md, section "Zstandard".

mod bits;
mod fse;
mod huffman;
mod range;

pub(super) use range::Ranges;
pub(crate) use range::prepare;

use std::sync::Arc;

use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, ResetDirective, Strategy};

use super::Verdict;
use crate::{Error, Result};

/// A search: one of zstd's levels, and what is otherwise in it.
#[derive(Clone, Copy)]
struct Search {
    level: i32,
    changes: &'static [CParameter],
    /// Longest stream for which it is quicker than the level's own, in bytes.
    longest: usize,
}

/// One of zstd's levels as it is.
const fn level(level: i32) -> Search {
    Search { level, changes: &[], longest: usize::MAX }
}

/// Zstd's level 9 without a look ahead, and only for matches of five bytes.
const GREEDY: Search = Search {
    level: 9,
    changes: &[CParameter::Strategy(Strategy::ZSTD_greedy), CParameter::SearchLog(4), CParameter::MinMatch(5)],
    longest: usize::MAX,
};

/// Zstd's level 9 with a look one byte ahead, where level 9 looks two ahead.
const LAZY: Search = Search {
    level: 9,
    changes: &[CParameter::Strategy(Strategy::ZSTD_lazy), CParameter::SearchLog(4)],
    longest: usize::MAX,
};

/// Up to 16 KiB zstd's level 9 searches by trees. Chains, as for longer streams, take half of the time.
const CHAINS: Search = Search {
    level: 9,
    changes: &[CParameter::Strategy(Strategy::ZSTD_lazy2), CParameter::SearchLog(6)],
    longest: 16 * 1024,
};

/// Zstd's strongest level, but with one pass over the first 128 KiB instead of two, with fewer tries at each position, and
/// content with a match of 64 bytes.
const STRONG: Search = Search {
    level: 22,
    changes: &[CParameter::Strategy(Strategy::ZSTD_btultra), CParameter::SearchLog(6), CParameter::TargetLength(64)],
    longest: usize::MAX,
};

/// The searches for each `clevel`: some that are quicker, the quickest first, and the level's own.
const LADDERS: [&[Search]; 10] = [
    &[level(1)],
    &[level(1)],
    &[level(3)],
    &[level(5)],
    &[level(5), level(7)],
    &[level(3), GREEDY, LAZY, CHAINS, level(9)],
    &[GREEDY, LAZY, CHAINS, level(11)],
    &[GREEDY, CHAINS, level(9), level(13)],
    &[GREEDY, CHAINS, level(9), level(15)],
    &[level(13), STRONG, level(22)],
];

/// Roughly what a context takes before its first stream, in bytes.
const CONTEXT_SIZE: u64 = 8 * 1024;

/// An encoder with its context.
pub(super) struct Encoder {
    context: CCtx<'static>,
    ladder: &'static [Search],
    /// The search that the context is set to.
    set: Option<usize>,
    dict: Option<Arc<CDict<'static>>>,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9; with a dictionary the level is the dictionary's.
    pub(super) fn new(clevel: u8, dict: Option<Arc<CDict<'static>>>) -> Result<Self> {
        let context = CCtx::try_create().ok_or(Error::OutOfMemory { needed: CONTEXT_SIZE })?;
        Ok(Self { context, ladder: LADDERS[usize::from(clevel.min(9))], set: None, dict })
    }

    /// How many searches there are.
    pub(super) fn candidates(&self) -> usize {
        self.ladder.len()
    }

    /// Whether a search is of use for streams of so many bytes.
    pub(super) fn is_useful(&self, candidate: usize, length: usize) -> bool {
        length <= self.ladder[candidate].longest
    }

    /// Compresses with a search, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if let Some(dict) = &self.dict {
            return self.context.compress_using_cdict(dst, src, dict).ok();
        }
        if self.set != Some(candidate) {
            self.set = None;
            let search = self.ladder[candidate];
            // The session too, because one that found no space is not over.
            self.context.reset(ResetDirective::SessionAndParameters).ok()?;
            for change in [CParameter::CompressionLevel(search.level)].iter().chain(search.changes) {
                self.context.set_parameter(*change).ok()?;
            }
            self.set = Some(candidate);
        }
        self.context.compress2(dst, src).ok()
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("zstd::Encoder").field("level", &self.ladder.last().map(|own| own.level)).finish_non_exhaustive()
    }
}

/// A decoder with its context.
pub(super) struct Decoder(DCtx<'static>);

impl Decoder {
    /// Makes a decoder.
    pub(super) fn new() -> Verdict<Self> {
        DCtx::try_create().map(Self).ok_or("out of memory for a zstd context")
    }

    /// Decodes frames that must fill `dst` exactly.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8], dict: Option<&DDict<'static>>) -> Verdict {
        let written = match dict {
            None => self.0.decompress(dst, src),
            Some(dict) => self.0.decompress_using_ddict(dst, src, dict),
        };
        match written {
            Ok(written) if written == dst.len() => Ok(()),
            Ok(_) => Err("the frames decode to fewer bytes than expected"),
            Err(code) => Err(zstd_safe::get_error_name(code)),
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zstd::Decoder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    /// The lengths that the searches of a level leave.
    fn lengths(src: &[u8], clevel: u8) -> Vec<Option<usize>> {
        let mut encoder = Encoder::new(clevel, None).unwrap();
        let mut coded = vec![0; src.len() - 1];
        let mut round_trip = |candidate| {
            let length = encoder.encode(candidate, src, &mut coded)?;
            let mut decoded = vec![0; src.len()];
            Decoder::new().unwrap().decode(&coded[..length], &mut decoded, None).unwrap();
            assert_eq!(decoded, src, "clevel {clevel}, search {candidate}");
            Some(length)
        };
        (0..LADDERS[usize::from(clevel)].len()).map(&mut round_trip).collect()
    }

    #[test]
    fn every_search_follows_on_one_that_found_no_room() {
        let (ramp, noise): (Vec<u8>, _) = ((0..=250).cycle().take(8192).collect(), noise(8192, 1));
        for clevel in 1..=9 {
            let mut encoder = Encoder::new(clevel, None).unwrap();
            let mut coded = vec![0; 8000];
            let candidates = encoder.candidates();
            for pair in 0..candidates * candidates {
                assert_eq!(encoder.encode(pair / candidates, &noise, &mut coded), None);
                let length = encoder.encode(pair % candidates, &ramp, &mut coded).unwrap();
                assert!(length < 400, "clevel {clevel}, {} after {}", pair % candidates, pair / candidates);
            }
        }
    }

    #[test]
    fn streams_of_every_kind_come_back_from_every_search_of_every_level() {
        let ramp: Vec<u8> = (0..=250).cycle().take(8192).collect();
        let nibbles: Vec<u8> = noise(8192, 1).iter().map(|byte| byte & 15).collect();
        let words: Vec<u8> =
            noise(2048, 1).iter().flat_map(|&byte| format!("word {} ", byte % 50).into_bytes()).collect();
        for clevel in 1..=9 {
            assert!(lengths(&ramp, clevel).iter().all(|length| length.unwrap() < 400));
            assert!(lengths(&nibbles, clevel).iter().all(|length| length.unwrap() < 4600));
            assert!(lengths(&words, clevel).iter().all(|length| length.unwrap() < words.len() / 3));
            assert!(lengths(&noise(40_000, 1), clevel).iter().all(Option::is_none));
        }
    }
}
