//! Bits of Zstandard's entropy coded sections.
//!
//! ```text
//! bytes        b0 | b1 | ... | bn      little endian
//! forwards     from bit 0 of b0        descriptions of tables
//! backwards    from the highest 1 in bn, which marks the end, down to bit 0 of b0
//! ```
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.

#![expect(clippy::inline_always, reason = "what a reader calls is compiled for the same instructions as it")]

/// The eight bytes from byte `at` on, zeros behind the end.
#[inline(always)]
fn load(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        return u64::from_le_bytes(*word);
    }
    load_last(bytes, at)
}

#[cold]
#[inline(never)]
fn load_last(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The word of the last bits of `bytes`, of which `left` are left: fewer than eight bytes, or none.
#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], left: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().rev().zip(bytes.iter().take(left / 8 + 1).rev()) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The `count` lowest bits of `word`, `count` below 64.
#[inline(always)]
pub(super) fn low(word: u64, count: u64) -> u64 {
    word & ((1 << (count % 64)) - 1)
}

/// A section that is read from its end to its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that have not been read.
    pub(super) left: usize,
}

impl<'a> Backward<'a> {
    /// Bits that a [`word`](Self::word) holds in any case.
    pub(super) const MOST: u64 = 56;

    /// Begin behind the mark, None if there is no mark.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        Self::with_others(bytes, bytes.len())
    }

    /// The same of the first `length` of these bytes. That others follow makes the first bits faster to read.
    pub(super) fn with_others(bytes: &'a [u8], length: usize) -> Option<Self> {
        let before = length.checked_sub(1)?;
        let last = *bytes.get(before).filter(|&&byte| byte != 0)?;
        Some(Self { bytes, left: 8 * before + last.ilog2() as usize })
    }

    /// The next bits, the first of them at the highest position: at least [`MOST`](Self::MOST), zeros for those that are
    /// not there.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        // The byte of the last bit that was read is there, for the mark is a bit.
        let word = match self.bytes.get(..=self.left / 8).and_then(<[u8]>::last_chunk::<8>) {
            Some(raw) => u64::from_le_bytes(*raw),
            None => last_word(self.bytes, self.left),
        };
        word << (8 - self.left % 8)
    }

    /// The `MOST` bits from bit `at` of the section on, the first of them at the lowest position; zeros behind its end.
    #[inline(always)]
    pub(super) fn from(self, at: usize) -> u64 {
        load(self.bytes, at / 8) >> (at % 8)
    }

    /// `count` bits that are before `skipped` others, which were read with them; None for more than `MOST`.
    #[inline(always)]
    pub(super) fn wide(self, skipped: u64, count: u64) -> Option<u64> {
        if count > Self::MOST {
            return None;
        }
        Some(low(self.from(self.left + usize::try_from(skipped).ok()?), count))
    }

    /// Go on by `count` bits; None if there are fewer.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        self.left = self.left.checked_sub(usize::try_from(count).ok()?)?;
        Some(())
    }

    /// Read `count` bits, up to [`MOST`](Self::MOST); None if there are fewer.
    #[inline(always)]
    pub(super) fn read(&mut self, count: u64) -> Option<u64> {
        self.skip(count)?;
        Some(low(self.from(self.left), count))
    }
}

/// A section that is read from its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forward<'a> {
    bytes: &'a [u8],
    /// Bits that have been read.
    done: usize,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, done: 0 }
    }

    /// The next `count` bits, up to 16, zeros for those that are not there.
    pub(super) fn peek(&self, count: u32) -> u32 {
        u32::try_from(low(load(self.bytes, self.done / 8) >> (self.done % 8), count.into())).unwrap_or(0)
    }

    /// Go on by `count` bits.
    pub(super) fn skip(&mut self, count: u32) {
        self.done += count as usize;
    }

    /// What follows the byte of the last bit that was read; None if there were not as many.
    pub(super) fn rest(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.done.div_ceil(8)..)
    }
}
