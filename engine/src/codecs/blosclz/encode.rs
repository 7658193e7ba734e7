//! The BloscLZ encoder.
//!
//! A greedy parse with one hash table of positions. Matches are extended backwards, too. The hasty search takes larger
//! steps the longer nothing is found, so that noise costs little; what steps lose is measured on pilot blocks.
//!
//! Where matches are long, chance decides which are found. The level's own search therefore parses a stream that shrinks
//! much once more, as C-Blosc2 does, and keeps the shorter result.
//!
//! Who takes a low level wants speed, and a stream that is stored as it is will be read several times faster. So up to
//! level 6 a stream is compressed only if a window of it promises enough, by the rule that C-Blosc2 has: what is stored
//! here is stored there. From level 7 on one of several parts has to get a little shorter.
//!
//! Streams whose positions fit into 16 bits have a table that stays in the nearest cache. In the table of longer ones,
//! positions are stored with a base that grows from stream to stream: what earlier streams left lies below
//! the base and reads as position 0, which is what an empty table holds. So it is cleared once in 4 GiB of input.
//!
//! Source: docs/format/codecs.md, section "BloscLZ".

use super::probe::Probe;
use super::{FAR_BASE, LEAST, MAX_LITERALS, MAX_NEAR_DISTANCE, TAIL, differs, extensions, load, store};

/// Bits of a hash, for short streams and for long ones.
const SHORT_BITS: u32 = 13;
const LONG_BITS: u32 = 14;

/// Matches from this distance on are not taken.
const DISTANCE_LIMIT: usize = 73725;

/// Fewest bytes of a match that is far away and takes two more.
const LEAST_FAR: usize = 8;

/// Shortest stream that is worth trying, in bytes.
const MIN_INPUT: usize = 16;

/// Smallest destination that is worth trying, in bytes.
const MIN_OUTPUT: usize = 66;

/// The level from which on streams are looked at elsewhere too when the probe declines them: so many parts, as long as
/// this in bytes, one of which has to be left with nineteen twentieths.
const THOROUGH: u8 = 7;
const PROBES: usize = 8;
const PROBE_LEN: usize = 8 * 1024;

/// A stream is parsed twice if the first parse leaves at most one of so many parts.
const CHANCE: usize = 3;

/// In haste, steps grow by one whenever so many positions, as a power of two, were tried in vain.
const PATIENCE: u32 = 6;

/// An encoder with its tables, for one level.
#[derive(Debug)]
pub(in super::super) struct Encoder {
    probe: Probe,
    /// Whether size counts, and what the probe declines is looked at elsewhere.
    thorough: bool,
    /// Bits of a hash in C-Blosc2's parse, and whether that notes two positions behind a match.
    bits: u32,
    last_two: bool,
    short: Box<[u16; 1 << SHORT_BITS]>,
    long: Box<[u32; 1 << LONG_BITS]>,
    pub(super) base: u32,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9; higher levels are as 9.
    #[expect(clippy::large_stack_arrays, reason = "80 KiB, once for each encoder")]
    pub(in super::super) fn new(clevel: u8) -> Self {
        let (short, long) = (Box::new([0; 1 << SHORT_BITS]), Box::new([0; 1 << LONG_BITS]));
        let (thorough, last_two) = (clevel >= THOROUGH, clevel >= 9);
        let bits = (11 + u32::from(clevel)).min(LONG_BITS);
        Self { probe: Probe::new(clevel), thorough, bits, last_two, short, long, base: 0 }
    }

    /// How many searches there are.
    pub(in super::super) const CANDIDATES: usize = 2;

    /// Compresses `src` into `dst` with a search and returns the bytes written, or `None` to decline.
    ///
    /// The first search is hasty. The last is the level's own: where it shrinks a stream much, it also parses as C-Blosc2
    /// does, and keeps the shorter result.
    pub(in super::super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if !self.promises(src, dst) {
            return None;
        }
        if candidate == 0 {
            return self.compress::<true>(src, dst);
        }
        let length = self.compress::<false>(src, dst)?;
        if length > src.len() / CHANCE {
            return Some(length);
        }
        let (found, rest) = dst.split_at_mut(length);
        let Some(scratch) = rest.get_mut(..length) else { return Some(length) };
        let Some(shorter) = self.compress_plainly(src, scratch) else { return Some(length) };
        found[..shorter].copy_from_slice(&scratch[..shorter]);
        Some(shorter)
    }

    /// Returns the bytes that C-Blosc2 leaves of `src`; `scratch` is overwritten.
    pub(in super::super) fn baseline(&mut self, src: &[u8], scratch: &mut [u8]) -> Option<usize> {
        if self.promises(src, scratch) { self.compress_plainly(src, scratch) } else { None }
    }

    /// Compresses as C-Blosc2 does.
    fn compress_plainly(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let base = self.claim(src.len())?;
        match self.bits {
            12 => parse_plainly::<12>(&mut self.long, base, self.last_two, src, dst),
            13 => parse_plainly::<13>(&mut self.long, base, self.last_two, src, dst),
            _ => parse_plainly::<LONG_BITS>(&mut self.long, base, self.last_two, src, dst),
        }
    }

    /// Whether parts of `src` make it likely that compressing is worth the time; `scratch` is overwritten.
    fn promises(&mut self, src: &[u8], scratch: &mut [u8]) -> bool {
        if src.len() < MIN_INPUT || scratch.len() < MIN_OUTPUT {
            return false;
        }
        let window = self.probe.window(src);
        // Our own parse is the quicker one to find nothing, and nearly always finds more.
        let most = self.probe.most(window.len());
        let hopeful = self.probe.is_strict() || self.thorough || self.leaves(window, most * 10 / 9, scratch);
        if hopeful && self.probe.pays(window) {
            return true;
        }
        let mut starts = (0..PROBES).map(|n| n * (src.len() / PROBES));
        self.thorough
            && (src.len() < PROBES * PROBE_LEN
                || starts.any(|at| self.leaves(&src[at..at + PROBE_LEN], PROBE_LEN - PROBE_LEN / 20, scratch)))
    }

    /// Whether a part of a stream is left with at most so many bytes; `scratch` is overwritten.
    fn leaves(&mut self, part: &[u8], most: usize, scratch: &mut [u8]) -> bool {
        let most = scratch.len().min(most);
        self.compress::<true>(part, &mut scratch[..most]).is_some()
    }

    /// Compresses `src` into `dst` and returns the bytes written, or `None` if they do not fit; in haste, with steps.
    fn compress<const HASTY: bool>(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if src.len() < MIN_INPUT {
            return None;
        }
        if u16::try_from(src.len()).is_ok() {
            self.short.fill(0);
            return parse::<HASTY>(&mut Short(&mut self.short), src, dst);
        }
        let base = self.claim(src.len())?;
        parse::<HASTY>(&mut Long { entries: &mut self.long, base }, src, dst)
    }

    /// Returns the base of positions in a stream of so many bytes, and moves on behind them.
    fn claim(&mut self, length: usize) -> Option<u32> {
        let length = u32::try_from(length).ok()?;
        if self.base.checked_add(length).is_none() {
            self.long.fill(0);
            self.base = 0;
        }
        let base = self.base;
        self.base += length;
        Some(base)
    }
}

/// A hash table as one stream sees it, to the eye empty at first.
trait Table {
    /// Stores a position under the first bytes of a word, and returns the one that was there, 0 if none was.
    fn swap(&mut self, word: u64, at: usize) -> usize;
}

/// The number under which a word is found: a hash of its first [`LEAST`] bytes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a few bits are left")]
fn hash<const BITS: u32>(word: u64) -> usize {
    ((word << (64 - 8 * LEAST)).wrapping_mul(0x9E37_79B1_85EB_CA87) >> (64 - BITS)) as usize
}

struct Short<'a>(&'a mut [u16; 1 << SHORT_BITS]);

impl Table for Short<'_> {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the stream's length fits")]
    fn swap(&mut self, word: u64, at: usize) -> usize {
        std::mem::replace(&mut self.0[hash::<SHORT_BITS>(word)], at as u16).into()
    }
}

struct Long<'a> {
    entries: &'a mut [u32; 1 << LONG_BITS],
    base: u32,
}

impl Table for Long<'_> {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the stream's length fits")]
    fn swap(&mut self, word: u64, at: usize) -> usize {
        let entry = &mut self.entries[hash::<LONG_BITS>(word)];
        std::mem::replace(entry, self.base + at as u32).saturating_sub(self.base) as usize
    }
}

/// Compresses `src` into `dst` with a table.
fn parse<const HASTY: bool>(table: &mut impl Table, src: &[u8], dst: &mut [u8]) -> Option<usize> {
    let last = src.len() - TAIL;
    let mut out = 0;
    // First literal not yet written.
    let mut anchor = 0;
    let mut at = 4;
    // Past so many pending literals they cannot fit any more.
    while let Some(found) = next_match::<HASTY>(table, src, anchor, at, last.min(anchor + (dst.len() - out))) {
        out = put_literals(src, anchor..found.at, dst, out)?;
        out = put_match(dst, out, &found)?;
        at = found.at + found.gain + 2;
        anchor = at;
        if at < last {
            table.swap(u64::from_le_bytes(load(src, at - 2)), at - 2);
        }
        at -= 1;
    }
    out = put_literals(src, anchor..src.len(), dst, out)?;
    // Marks the stream's version; readers ignore it.
    dst[0] |= 0x20;
    Some(out)
}

/// A match worth writing.
struct Match {
    /// Where it begins.
    at: usize,
    /// How far back its bytes are.
    distance: usize,
    /// Its length in bytes, less two.
    gain: usize,
}

/// Looks for the next match that is found at `at` or behind it, before `stop`, and may begin at `anchor`. `stop` must
/// leave [`TAIL`] bytes.
#[inline]
fn next_match<const HASTY: bool>(
    table: &mut impl Table,
    src: &[u8],
    anchor: usize,
    mut at: usize,
    stop: usize,
) -> Option<Match> {
    let mut tries = 1 << PATIENCE;
    while at < stop {
        let word = u64::from_le_bytes(load(src, at));
        let candidate = table.swap(word, at);
        let bits = word ^ u64::from_le_bytes(load(src, candidate));
        let distance = at - candidate;
        if bits << (64 - 8 * LEAST) == 0 && (1..DISTANCE_LIMIT).contains(&distance) {
            let end = if bits == 0 { differs(src, at + 8, distance) } else { at + LEAST };
            let mut start = at.max(anchor);
            while start > anchor && start > distance && src[start - 1] == src[start - 1 - distance] {
                start -= 1;
            }
            if distance <= MAX_NEAR_DISTANCE || end - start >= LEAST_FAR {
                return Some(Match { at: start, distance, gain: end - start - 2 });
            }
        }
        at += if HASTY { tries >> PATIENCE } else { 1 };
        tries += 1;
    }
    None
}

/// Compresses `src` into `dst` with the parse of docs/format/codecs.md, section "The encoder of C-Blosc2".
///
/// `entries` holds positions with `base` on top.
#[expect(clippy::cast_possible_truncation, reason = "positions fit, as `base` was claimed for them")]
fn parse_plainly<const BITS: u32>(
    entries: &mut [u32; 1 << LONG_BITS],
    base: u32,
    last_two: bool,
    src: &[u8],
    dst: &mut [u8],
) -> Option<usize> {
    let slot = |word: u32| (word.wrapping_mul(2_654_435_761) >> (32 - BITS)) as usize;
    let (mut out, mut anchor, mut at) = (0, 0, 4);
    while at < src.len() - TAIL {
        let word = u32::from_le_bytes(load(src, at));
        let candidate = std::mem::replace(&mut entries[slot(word)], base + at as u32).saturating_sub(base) as usize;
        let distance = at - candidate;
        at += 1;
        if !(1..DISTANCE_LIMIT).contains(&distance) || load::<4>(src, candidate) != word.to_le_bytes() {
            continue;
        }
        let start = at - 1;
        let end = (differs(src, start + 4, distance) + 1).min(src.len() - 1) - 4;
        let gain = end.saturating_sub(start);
        if gain < 4 || gain <= 5 && distance > MAX_NEAR_DISTANCE {
            continue;
        }
        out = put_literals(src, anchor..start, dst, out)?;
        out = put_match(dst, out, &Match { at: start, distance, gain })?;
        let word = u32::from_le_bytes(load(src, end));
        entries[slot(word)] = base + end as u32;
        if last_two {
            entries[slot(word >> 8)] = base + end as u32 + 1;
        }
        at = end + 2;
        anchor = at;
    }
    out = put_literals(src, anchor..src.len(), dst, out)?;
    dst[0] |= 0x20;
    Some(out)
}

/// Writes literals in runs of at most 32 and returns the new end of the output.
///
/// One more byte must fit behind them: every run is followed by a control, if only in thought.
#[inline]
fn put_literals(src: &[u8], range: std::ops::Range<usize>, dst: &mut [u8], mut out: usize) -> Option<usize> {
    let mut at = range.start;
    let count = range.end - at;
    if out + count + count.div_ceil(MAX_LITERALS) >= dst.len() {
        return None;
    }
    while at < range.end {
        let run = (range.end - at).min(MAX_LITERALS);
        #[expect(clippy::cast_possible_truncation, reason = "a run is at most 32 bytes")]
        let control = (run - 1) as u8;
        dst[out] = control;
        out += 1;
        // Whole words where both sides have capacity; what is too much is overwritten.
        if src.len() - at >= MAX_LITERALS && dst.len() - out >= MAX_LITERALS {
            store::<MAX_LITERALS>(dst, out, load(src, at));
        } else {
            dst[out..out + run].copy_from_slice(&src[at..at + run]);
        }
        out += run;
        at += run;
    }
    Some(out)
}

/// Writes a match and returns the new end of the output.
///
/// One more byte must fit behind it, for the control of what follows.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "each value is split into bytes here")]
fn put_match(dst: &mut [u8], mut out: usize, found: &Match) -> Option<usize> {
    let &Match { distance, gain, .. } = found;
    let near = distance <= MAX_NEAR_DISTANCE;
    if out + extensions(gain) + if near { 2 } else { 4 } >= dst.len() {
        return None;
    }
    let high = if near { (distance - 1) >> 8 } else { 31 };
    dst[out] = ((gain.min(7) << 5) | high) as u8;
    out += 1;
    if gain >= 7 {
        let full = (gain - 7) / 255;
        if full > 0 {
            dst[out..out + full].fill(255);
        }
        dst[out + full] = ((gain - 7) % 255) as u8;
        out += full + 1;
    }
    if near {
        dst[out] = (distance - 1) as u8;
        return Some(out + 1);
    }
    let far = ((distance - FAR_BASE) as u16).to_be_bytes();
    store(dst, out, [255, far[0], far[1]]);
    Some(out + 3)
}
