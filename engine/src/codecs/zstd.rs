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

use std::ops::RangeInclusive;
use std::sync::Arc;

use zstd_safe::{CCtx, CDict, CParameter, DCtx, DDict, ResetDirective, Strategy};

use super::Verdict;
use crate::{Error, Result};

/// Up to so many bytes zstd takes the parameters of its levels from another table.
const SHORT: usize = 16 * 1024;

/// A search: one of zstd's levels, and what is otherwise in it.
struct Search {
    level: i32,
    changes: &'static [CParameter],
    /// The changes for streams of up to [`SHORT`] bytes, of which zstd's levels mean other searches.
    changes_if_short: &'static [CParameter],
    /// Roughly the time that it takes on the bytes of measured numbers.
    cost: u16,
}

/// One of zstd's levels as it is, in a time measured on streams of 64 KiB.
const fn of_level(level: i32) -> Search {
    let cost = match level {
        i32::MIN..=1 => 12,
        2..=3 => 16,
        4..=5 => 40,
        6..=7 => 65,
        8..=9 => 100,
        10..=11 => 200,
        12..=13 => 300,
        14..=15 => 450,
        16..=17 => 600,
        18..=i32::MAX => 1000,
    };
    Search { level, changes: &[], changes_if_short: &[], cost }
}

/// Zstd's level 9 searches short streams by trees; by chains it takes half of the time, and of the bytes of measured numbers
/// it leaves 0 to 0.3 % more. Of what is repeated much, trees leave a quarter less, and sooner.
static CHAINS: Search = Search {
    level: 9,
    changes: &[],
    changes_if_short: &[CParameter::Strategy(Strategy::ZSTD_lazy2), CParameter::SearchLog(6)],
    cost: 100,
};

/// Zstd's level 9, but with other steps from position to position at half as many positions, for streams of every length.
const fn lighter(changes: &'static [CParameter], cost: u16) -> Search {
    Search { level: 9, changes, changes_if_short: changes, cost }
}

/// Without a look ahead at all, and only for matches of five bytes. On the bytes of measured numbers such searches leave
/// less than those that take matches of four, and fewer matches are read sooner.
const GREEDY: Search =
    lighter(&[CParameter::Strategy(Strategy::ZSTD_greedy), CParameter::SearchLog(4), CParameter::MinMatch(5)], 33);

/// With a look one byte ahead, where level 9 looks two ahead: about 1 % more in 0.55 of the time.
const LAZY: Search =
    lighter(&[CParameter::Strategy(Strategy::ZSTD_lazy), CParameter::SearchLog(4), CParameter::MinMatch(5)], 55);

/// The same for shorter matches too, of which text and records have more.
const LAZY_FINE: Search = lighter(&[CParameter::Strategy(Strategy::ZSTD_lazy), CParameter::SearchLog(4)], 60);

/// Zstd's last level.
const STRONGEST: i32 = 22;

/// Zstd's strongest level, but with one pass over the first 128 KiB instead of two and with fewer tries at each position. Of a
/// MiB that costs no two-hundredth of size, of less up to a fiftieth.
const STRONGER: Search = Search {
    level: STRONGEST,
    changes: &[CParameter::Strategy(Strategy::ZSTD_btultra), CParameter::SearchLog(6)],
    changes_if_short: &[],
    cost: 850,
};

/// The same, but content with a match of 64 bytes. That costs size only where there is much to be repeated.
const STRONG: Search = Search {
    level: STRONGEST,
    changes: &[CParameter::Strategy(Strategy::ZSTD_btultra), CParameter::SearchLog(6), CParameter::TargetLength(64)],
    changes_if_short: &[],
    cost: 700,
};

/// The searches for each `clevel`, from the quickest that may do to the level's own.
const LADDERS: [&[Search]; 10] = [
    &[of_level(1)],
    &[of_level(1)],
    &[of_level(1), of_level(3)],
    &[of_level(1), of_level(3), of_level(5)],
    &[of_level(1), of_level(3), of_level(5), of_level(7)],
    &[of_level(1), of_level(3), GREEDY, of_level(5), LAZY, LAZY_FINE, of_level(9)],
    &[of_level(1), of_level(3), GREEDY, of_level(5), LAZY, LAZY_FINE, of_level(9), of_level(11)],
    &[of_level(1), of_level(3), GREEDY, of_level(5), LAZY, LAZY_FINE, of_level(9), of_level(13)],
    &[of_level(1), of_level(3), GREEDY, of_level(5), LAZY, LAZY_FINE, of_level(9), of_level(15)],
    &[
        of_level(1),
        of_level(5),
        of_level(9),
        of_level(13),
        of_level(15),
        of_level(17),
        STRONG,
        STRONGER,
        of_level(STRONGEST),
    ],
];

/// Roughly what a context takes before its first stream, in bytes.
const CONTEXT_SIZE: u64 = 8 * 1024;

/// An encoder with its context.
pub(super) struct Encoder {
    context: CCtx<'static>,
    ladder: &'static [Search],
    /// The search that the context is set to, and whether for short streams.
    set: Option<(usize, bool)>,
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

    /// Roughly the time that a search takes.
    pub(super) fn cost(&self, candidate: usize) -> u16 {
        self.ladder[candidate].cost
    }

    /// The search for streams of `length` bytes in which little is repeated: the level's own, or one that comes to its size.
    pub(super) fn substitute(&self, length: usize) -> usize {
        let last = self.ladder.len() - 1;
        if self.ladder[last].level == CHAINS.level && length <= SHORT { self.ladder.len() } else { last }
    }

    /// The searches for long streams in place of the level's own that differ only in how soon they are content.
    pub(super) fn long_candidates(&self) -> RangeInclusive<usize> {
        let last = self.ladder.len() - 1;
        let is_kindred = |search: &Search| search.level == STRONGEST && !search.changes.is_empty();
        match self.ladder.iter().position(is_kindred) {
            Some(first) => first..=last - 1,
            None => last..=last,
        }
    }

    /// Compresses with a search, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if let Some(dict) = &self.dict {
            return self.context.compress_using_cdict(dst, src, dict).ok();
        }
        let short = src.len() <= SHORT;
        if self.set != Some((candidate, short)) {
            self.set = None;
            let search = self.ladder.get(candidate).unwrap_or(&CHAINS);
            let changes = if short { search.changes_if_short } else { search.changes };
            // The session too, because one that found no room is not over.
            self.context.reset(ResetDirective::SessionAndParameters).ok()?;
            for change in [CParameter::CompressionLevel(search.level)].iter().chain(changes) {
                self.context.set_parameter(*change).ok()?;
            }
            self.set = Some((candidate, short));
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
