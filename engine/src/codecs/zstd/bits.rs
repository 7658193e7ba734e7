//! Bits of Zstandard's entropy coded sections.
//!
//! ```text
//! bytes        b0 | b1 | ... | bn      little endian
//! forwards     from bit 0 of b0        descriptions of tables
//! backwards    from the highest 1 in bn, which marks the end, down to bit 0 of b0
//! ```
//!
//! Source: docs/format/codecs.md, section "Zstandard"; RFC 8878, section 4.

/// The eight bytes from byte `at` on, zeros behind the end.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

/// The `count` lowest bits of `word`, `count` below 64.
#[inline]
fn low(word: u64, count: u32) -> u64 {
    word & ((1 << count) - 1)
}

/// A section that is read from its end to its start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that have not been read.
    pub(super) left: usize,
}

impl<'a> Backward<'a> {
    /// Most bits of one [`peek`](Self::peek).
    pub(super) const MOST: u32 = 57;

    /// Begin behind the mark, None if there is no mark.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let last = *bytes.last().filter(|&&byte| byte != 0)?;
        Some(Self { bytes, left: 8 * (bytes.len() - 1) + last.ilog2() as usize })
    }

    /// The next `count` bits, up to [`MOST`](Self::MOST), of which there must be as many.
    #[inline]
    fn at(&self, left: usize, count: u32) -> u64 {
        low(load(self.bytes, left / 8) >> (left % 8), count)
    }

    /// Read `count` bits; None if there are fewer, or more than [`MOST`](Self::MOST) are asked for.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> Option<u64> {
        if count > Self::MOST {
            return None;
        }
        self.left = self.left.checked_sub(count as usize)?;
        Some(self.at(self.left, count))
    }

    /// The next `count` bits, up to [`MOST`](Self::MOST), zeros for those that are not there.
    #[inline]
    pub(super) fn peek(&self, count: u32) -> u64 {
        match self.left.checked_sub(count as usize) {
            Some(left) => self.at(left, count),
            None => low(load(self.bytes, 0), u32::try_from(self.left).unwrap_or(0)) << (count as usize - self.left),
        }
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
        u32::try_from(low(load(self.bytes, self.done / 8) >> (self.done % 8), count)).unwrap_or(0)
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
