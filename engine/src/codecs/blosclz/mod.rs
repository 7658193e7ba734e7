//! BloscLZ: an LZ77 byte format with short literal runs and two kinds of distances.
//!
//! ```text
//! 000nnnnn  n + 1 bytes                 literal run of n + 1 bytes (1..32)
//! LLLhhhhh  [ext...] low                match, L = 1..7, distance = h * 256 + low + 1
//! LLL11111  [ext...] FF  P Q            match, distance = P * 256 + Q + 8192
//! ```
//!
//! A match is L + 2 bytes long (3..8); with L = 7 it is 9 bytes plus the sum of the extension
//! bytes, of which all but the last are 255. The top three bits of a stream's first byte are
//! noise, and a stream always ends with a literal run.
//!
//! This module knows one stream at a time; blocks and raw or repeated streams are the chunk's
//! business.
//!
//! Source: docs/format/codecs.md, section "BloscLZ".

mod decode;
mod encode;
mod probe;

pub(super) use decode::{decode, decode_prefix};
pub(super) use encode::Encoder;

/// Distances from 1 to this are near: they are written with one byte besides the control.
const MAX_NEAR_DISTANCE: usize = 8191;

/// What a far distance of 0 in its two bytes stands for.
pub(super) const FAR_BASE: usize = 8192;

/// Longest literal run that one control byte can announce.
const MAX_LITERALS: usize = 32;

/// Fewest bytes of a match: it takes two or three, and one more for cutting a run of literals in two.
const LEAST: usize = 7;

/// Bytes at the end of a stream at which no match begins.
const TAIL: usize = 12;

/// Reads `N` bytes of `bytes` from `at` on.
#[inline]
fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// Writes an array into `bytes` from `at` on.
#[inline]
fn store<const N: usize>(bytes: &mut [u8], at: usize, array: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&array);
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

#[cfg(test)]
mod tests;
