//! Whether a stream is worth compressing at a low level.
//!
//! A simple parse over a window, late in the stream at low levels, which counts what it would write and writes nothing.
//! Window, parse and thresholds are those that C-Blosc2 was seen to have, so that both decide alike.
//!
//! Source: docs/format/codecs.md, section "The encoder of C-Blosc2".

use super::{LEAST, MAX_LITERALS, MAX_NEAR_DISTANCE, TAIL, differs, extensions, load};

/// Bits of a hash at most.
const MAX_BITS: u32 = 14;

/// By level from 1 on: bits of a hash, of which part of the stream the window is the beginning, and how many hundredths
/// of its compressed length it must have.
const LEVELS: [(u32, usize, usize); 9] = [
    (12, 8, 200),
    (13, 4, 150),
    (14, 4, 120),
    (14, 2, 120),
    (14, 2, 120),
    (14, 2, 120),
    (14, 1, 115),
    (14, 1, 110),
    (14, 1, 100),
];

/// With this ratio, in hundredths, nothing is soon found to be too little.
const STRICT: usize = 150;

/// The probe of one level, with its table.
#[derive(Debug)]
pub(super) struct Probe {
    table: Box<[u16; 1 << MAX_BITS]>,
    bits: u32,
    part: usize,
    ratio: usize,
}

impl Probe {
    /// Makes one for `clevel` 1..9; higher levels are as 9.
    #[expect(clippy::large_stack_arrays, reason = "32 KiB, once for each encoder")]
    pub(super) fn new(clevel: u8) -> Self {
        let (bits, part, ratio) = LEVELS[usize::from(clevel.clamp(1, 9)) - 1];
        Self { table: Box::new([0; 1 << MAX_BITS]), bits, part, ratio }
    }

    /// Whether it takes little time to find that a window does not pay.
    pub(super) fn is_strict(&self) -> bool {
        self.ratio >= STRICT
    }

    /// The part of a stream that is looked at.
    pub(super) fn window<'s>(&self, src: &'s [u8]) -> &'s [u8] {
        let region = &src[src.len() - src.len() / self.part..];
        &region[..region.len().min(1 << self.bits)]
    }

    /// The most bytes that so many may be left with.
    pub(super) fn most(&self, length: usize) -> usize {
        length * 100 / self.ratio
    }

    /// Whether compressing a window saves enough.
    pub(super) fn pays(&mut self, window: &[u8]) -> bool {
        match self.bits {
            12 => self.parse::<12>(window),
            13 => self.parse::<13>(window),
            _ => self.parse::<MAX_BITS>(window),
        }
    }

    fn parse<const BITS: u32>(&mut self, window: &[u8]) -> bool {
        self.table[..1 << BITS].fill(0);
        let last = window.len().saturating_sub(TAIL);
        let most = self.most(window.len());
        // What stands for the first control, and the four literals that open every stream.
        let (mut cost, mut open) = (5, 4);
        let (mut at, mut anchor) = (0, 0);
        while at < last {
            // Past so many pending literals it costs too much.
            let stop = last.min(anchor + (most + 1).saturating_sub(cost));
            let Some((start, distance)) = self.next_match::<BITS>(window, at, stop) else {
                if stop < last {
                    return false;
                }
                at = last;
                break;
            };
            at = start;
            let gain = differs(window, at + LEAST, distance) - 3 - at;
            cost += literals(open, at - anchor) + if distance <= MAX_NEAR_DISTANCE { 3 } else { 5 } + extensions(gain);
            // A match that follows another takes the place of a control.
            if (open + at - anchor).is_multiple_of(MAX_LITERALS) {
                cost -= 1;
            }
            at += gain;
            self.swap::<BITS>(u32::from_le_bytes(load(window, at)), at);
            at += 2;
            (anchor, open) = (at, 0);
        }
        cost += literals(open, at - anchor);
        at * 100 >= cost * self.ratio
    }

    /// Looks for the next match from `start` on and before `stop`: where it begins and how far back its bytes are.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "half of a word is hashed")]
    fn next_match<const BITS: u32>(&mut self, window: &[u8], start: usize, stop: usize) -> Option<(usize, usize)> {
        for (n, word) in window.get(start..stop + 7)?.windows(8).enumerate() {
            let at = start + n;
            let word = u64::from_le_bytes(load(word, 0));
            let candidate = self.swap::<BITS>(word as u32, at);
            // A match is worth writing if its first seven bytes are equal.
            if (word ^ u64::from_le_bytes(load(window, candidate))) << (64 - 8 * LEAST) == 0 && candidate < at {
                return Some((at, at - candidate));
            }
        }
        None
    }

    /// Stores a position under four bytes, and returns the one that was there, 0 if none was.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "windows are at most 16 KiB long")]
    fn swap<const BITS: u32>(&mut self, word: u32, at: usize) -> usize {
        let hash = word.wrapping_mul(2_654_435_761) >> (32 - BITS);
        std::mem::replace(&mut self.table[hash as usize], at as u16).into()
    }
}

/// What so many literals take when so many are in their run already: each full run needs another control.
fn literals(open: usize, count: usize) -> usize {
    count + (open + count) / MAX_LITERALS
}
