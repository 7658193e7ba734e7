//! The BloscLZ encoder.
//!
//! A greedy parse with one hash table of positions. Before it starts, a probe runs the same
//! parse over a small window without writing anything, and declines streams that would not pay.
//! Parse, probe and limits follow the format page, so the sizes are those of other writers.
//!
//! Positions are stored with a base that grows from stream to stream: what earlier streams left
//! in the table lies below the base and reads as position 0, which is what an empty table holds.
//! So the table is cleared once in 4 GiB of input and not once per stream.
//!
//! Source: docs/format/codecs.md, section "BloscLZ".

use super::{FAR_BASE, MAX_LITERALS, MAX_NEAR_DISTANCE, load, store};

/// Entries of the hash table at the highest levels.
const TABLE_SIZE: usize = 1 << MAX_HASH_BITS;

/// Bits of a hash at the highest levels.
const MAX_HASH_BITS: u32 = 14;

/// Matches from this distance on are not taken.
const DISTANCE_LIMIT: usize = 73725;

/// Bytes at the end of a stream at which no match begins.
const TAIL: usize = 12;

/// Shortest stream that is worth trying, in bytes.
const MIN_INPUT: usize = 16;

/// Smallest destination that is worth trying, in bytes.
const MIN_OUTPUT: usize = 66;

/// An encoder with its table, for one level.
#[derive(Debug)]
pub(in super::super) struct Encoder {
    table: Box<[u32; TABLE_SIZE]>,
    pub(super) base: u32,
    clevel: u8,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9; higher levels are as 9.
    #[expect(clippy::large_stack_arrays, reason = "64 KiB, once for each encoder")]
    pub(in super::super) fn new(clevel: u8) -> Self {
        Self { table: Box::new([0; TABLE_SIZE]), base: 0, clevel: clevel.clamp(1, 9) }
    }

    /// Compresses `src` into `dst` and returns the bytes written, or `None` to decline.
    pub(in super::super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if src.len() < MIN_INPUT || dst.len() < MIN_OUTPUT || !self.pays(src)? {
            return None;
        }
        match self.clevel {
            9 => self.parse::<14, true>(src, dst),
            3..9 => self.parse::<14, false>(src, dst),
            2 => self.parse::<13, false>(src, dst),
            _ => self.parse::<12, false>(src, dst),
        }
    }

    /// A view of the table for a stream of `len` bytes, to the eye empty.
    fn fresh_table<const BITS: u32>(&mut self, len: usize) -> Option<Table<'_, BITS>> {
        let len = u32::try_from(len).ok()?;
        if self.base.checked_add(len).is_none() {
            self.table.fill(0);
            self.base = 0;
        }
        let base = self.base;
        self.base += len;
        Some(Table { entries: &mut self.table, base })
    }

    /// Probes a window near the stream's end and tells whether compressing pays.
    fn pays(&mut self, src: &[u8]) -> Option<bool> {
        let all = src.len();
        let (region, threshold) = match self.clevel {
            1 => (all / 8, 2.0),
            2 => (all / 4, 1.5),
            3 => (all / 4, 1.2),
            4..=6 => (all / 2, 1.2),
            7 => (all, 1.15),
            8 => (all, 1.1),
            _ => (all, 1.0),
        };
        let region = &src[all - region..];
        let ratio = match self.clevel {
            1 => self.probe::<12>(region),
            2 => self.probe::<13>(region),
            _ => self.probe::<14>(region),
        };
        Some(ratio? >= threshold)
    }

    /// Runs the parse over a window at the start of `region`, as long as the table has entries,
    /// and returns about how many bytes in go to one byte out.
    #[expect(clippy::cast_precision_loss, reason = "both are at most a few times 16 KiB")]
    fn probe<const BITS: u32>(&mut self, region: &[u8]) -> Option<f64> {
        let length = region.len().min(1 << BITS);
        let window = &region[..length];
        let mut table = self.fresh_table::<BITS>(length)?;

        let stop = length.saturating_sub(TAIL);
        let mut cost = 5;
        // Literals since the last match, and the four that open every stream.
        let mut anchor = 0;
        let mut opened = 4;
        while let Some(found) = table.next_match::<false>(window, anchor, stop) {
            // Each literal, and the next control of each full run; an empty run costs nothing.
            let literals = found.at - anchor;
            let counted = opened + literals;
            cost += literals + counted / MAX_LITERALS;
            if counted % MAX_LITERALS == 0 {
                cost -= 1;
            }
            let near = found.distance <= MAX_NEAR_DISTANCE;
            cost += if near { 3 } else { 5 } + extensions(found.gain);
            anchor = found.at + found.gain;
            table.insert(u32::from_le_bytes(load(window, anchor)), anchor);
            anchor += 2;
            opened = 0;
        }
        let at = stop.max(anchor);
        let literals = at - anchor;
        cost += literals + (opened + literals) / MAX_LITERALS;
        Some(at as f64 / cost as f64)
    }

    /// The parse itself. `TWICE` inserts a second position after each match.
    fn parse<const BITS: u32, const TWICE: bool>(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let mut table = self.fresh_table::<BITS>(src.len())?;
        let last = src.len() - TAIL;
        let mut out = 0;
        // First literal not yet written.
        let mut anchor = 0;
        let mut at = 4;
        // Past this many pending literals they cannot fit any more.
        let mut stop = last.min(dst.len());
        while let Some(found) = table.next_match::<true>(src, at, stop) {
            out = put_literals(src, anchor..found.at, dst, out)?;
            out = put_match(dst, out, &found)?;
            at = found.at + found.gain;
            let word = u32::from_le_bytes(load(src, at));
            table.insert(word, at);
            if TWICE {
                table.insert(word >> 8, at + 1);
            }
            at += 2;
            anchor = at;
            stop = last.min(anchor + (dst.len() - out));
        }
        out = put_literals(src, anchor..src.len(), dst, out)?;
        // Marks the stream's version; readers ignore it.
        dst[0] |= 0x20;
        Some(out)
    }
}

/// The hash table as one stream sees it.
struct Table<'a, const BITS: u32> {
    entries: &'a mut [u32; TABLE_SIZE],
    base: u32,
}

impl<const BITS: u32> Table<'_, BITS> {
    /// Stores a position and returns the one that was there, 0 if none was.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "streams are checked to be shorter")]
    fn insert(&mut self, word: u32, at: usize) -> usize {
        let hash = word.wrapping_mul(2_654_435_761) >> (32 - BITS);
        let entry = &mut self.entries[hash as usize];
        let found = entry.saturating_sub(self.base);
        *entry = self.base + at as u32;
        found as usize
    }

    /// Looks for the next match that begins at `at` or behind it, before `stop`.
    ///
    /// With `STRICT`, short far matches are passed over. `stop` must leave [`TAIL`] bytes.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half of a word is hashed")]
    fn next_match<const STRICT: bool>(&mut self, src: &[u8], start: usize, stop: usize) -> Option<Match> {
        if start >= stop {
            return None;
        }
        for (n, word) in src[start..stop + 7].windows(8).enumerate() {
            let at = start + n;
            let word = u64::from_le_bytes(load(word, 0));
            let candidate = self.insert(word as u32, at);
            let bits = word ^ u64::from_le_bytes(load(src, candidate));
            // A match is worth writing if its first seven bytes are equal.
            if bits << 8 != 0 {
                continue;
            }
            let distance = at - candidate;
            if !(1..DISTANCE_LIMIT).contains(&distance) {
                continue;
            }
            let gain = if bits == 0 { differs(src, at + 8, distance) - 3 - at } else { 4 };
            if STRICT && distance > MAX_NEAR_DISTANCE && gain < 6 {
                continue;
            }
            return Some(Match { at, distance, gain });
        }
        None
    }
}

/// A match worth writing.
struct Match {
    /// Where it begins.
    at: usize,
    /// How far back its bytes stand.
    distance: usize,
    /// Its length in bytes, less two.
    gain: usize,
}

/// Bytes that extend the length of a match of `gain + 2` bytes.
fn extensions(gain: usize) -> usize {
    if gain >= 7 { (gain - 7) / 255 + 1 } else { 0 }
}

/// The first position from `at` on, at most `src.len() - 2`, whose byte differs from the one
/// `distance` bytes before.
#[inline]
fn differs(src: &[u8], at: usize, distance: usize) -> usize {
    // Most matches end within a word.
    if src.len() - at >= 10 {
        let here = u64::from_le_bytes(load(src, at));
        let bits = here ^ u64::from_le_bytes(load(src, at - distance));
        if bits != 0 {
            return at + bits.trailing_zeros() as usize / 8;
        }
    }
    differs_later(src, at, distance)
}

/// As [`differs`], for long matches and near the end.
fn differs_later(src: &[u8], at: usize, distance: usize) -> usize {
    let limit = src.len() - 2;
    let (words, rest) = src[at..limit].as_chunks::<8>();
    let (other_words, other_rest) = src[at - distance..limit - distance].as_chunks::<8>();
    for (n, (a, b)) in words.iter().zip(other_words).enumerate() {
        let bits = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if bits != 0 {
            return at + 8 * n + bits.trailing_zeros() as usize / 8;
        }
    }
    let bytes = rest.iter().zip(other_rest);
    at + 8 * words.len() + bytes.take_while(|(a, b)| a == b).count()
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
        // Whole words where both sides have room; what is too much is overwritten.
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
