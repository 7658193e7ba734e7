//! The BloscLZ decoder.
//!
//! Every length and distance is checked against what is left before anything is copied. Where
//! both sides have capacity to spare, copies run in whole words past their end; the bytes written too
//! many are overwritten by what follows, or lie in front of the end of the destination.
//!
//! Source: docs/format/codecs.md, section "BloscLZ".

use super::super::Verdict;
use super::{FAR_BASE, load, store};

const EMPTY: &str = "the stream is empty";
const LITERALS_PAST_END: &str = "a literal run goes past the end of the stream";
const MATCH_PAST_END: &str = "the stream ends inside or right after a match";
const TOO_LONG: &str = "the stream decodes to more bytes than expected";
const TOO_SHORT: &str = "the stream decodes to fewer bytes than expected";
const TOO_FAR: &str = "a match reaches back before the first byte";

/// Room behind a copy that lets it run in whole words.
const SLACK: usize = 32;

/// Decodes a stream that must fill `dst` exactly.
pub(in super::super) fn decode(src: &[u8], dst: &mut [u8]) -> Verdict {
    run::<false>(src, dst, dst.len())
}

/// Decodes the first `dst.len()` bytes of a stream of `full` bytes, and stops there.
pub(in super::super) fn decode_prefix(src: &[u8], dst: &mut [u8], full: usize) -> Verdict {
    run::<true>(src, dst, full)
}

/// Decodes; with `PREFIX` the last operation is cut at the end of `dst`.
#[inline]
fn run<const PREFIX: bool>(src: &[u8], dst: &mut [u8], full: usize) -> Verdict {
    let mut control = usize::from(src.first().ok_or(EMPTY)? & 31);
    let mut i = 1;
    let mut o = 0;
    loop {
        if control < 32 {
            let mut n = control + 1;
            if src.len() - i >= SLACK && dst.len() - o >= SLACK {
                store::<SLACK>(dst, o, load(src, i));
            } else {
                if n > full - o {
                    return Err(TOO_LONG);
                }
                let literals = src.get(i..i + n).ok_or(LITERALS_PAST_END)?;
                if PREFIX {
                    n = n.min(dst.len() - o);
                }
                dst[o..o + n].copy_from_slice(&literals[..n]);
            }
            i += n;
            o += n;
        } else {
            let mut length = (control >> 5) + 2;
            if length == 9 {
                loop {
                    let extension = *src.get(i).ok_or(MATCH_PAST_END)?;
                    i += 1;
                    length += usize::from(extension);
                    if extension != 255 {
                        break;
                    }
                    // The sum is bounded by what is left, so it cannot overflow.
                    if length > full - o {
                        return Err(TOO_LONG);
                    }
                }
            }
            let low = *src.get(i).ok_or(MATCH_PAST_END)?;
            i += 1;
            let mut distance = ((control & 31) << 8) + usize::from(low) + 1;
            if distance == FAR_BASE {
                let far = src.get(i..i + 2).ok_or(MATCH_PAST_END)?;
                distance += (usize::from(far[0]) << 8) + usize::from(far[1]);
                i += 2;
            }
            if length > full - o {
                return Err(TOO_LONG);
            }
            if distance > o {
                return Err(TOO_FAR);
            }
            // A match is never the last operation: the format drops it, and then bytes are missing.
            if i >= src.len() {
                return Err(MATCH_PAST_END);
            }
            if PREFIX {
                length = length.min(dst.len() - o);
            }
            copy_match(dst, o, distance, length);
            o += length;
        }
        if PREFIX && o == dst.len() {
            return Ok(());
        }
        match src.get(i) {
            Some(&byte) => control = usize::from(byte),
            None => break,
        }
        i += 1;
    }
    if o == dst.len() { Ok(()) } else { Err(TOO_SHORT) }
}

/// Copies `length` bytes from `distance` bytes back to `o`, as if byte by byte.
///
/// The caller has checked `1 <= distance <= o` and `o + length <= dst.len()`.
#[inline]
fn copy_match(dst: &mut [u8], o: usize, distance: usize, length: usize) {
    if dst.len() - o - length >= SLACK {
        copy_words(dst, o, distance, length);
    } else {
        copy_at_end(dst, o, distance, length);
    }
}

/// The copy where the end of `dst` is near: whole words as far as there is room, then bytes.
#[cold]
fn copy_at_end(dst: &mut [u8], o: usize, distance: usize, length: usize) {
    let words = length.saturating_sub(SLACK);
    if words > 0 {
        copy_words(dst, o, distance, words);
    }
    for at in o + words..o + length {
        dst[at] = dst[at - distance];
    }
}

/// The copy where at least [`SLACK`] bytes follow, which it may overwrite.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call for each match costs a tenth of the time")]
fn copy_words(dst: &mut [u8], o: usize, distance: usize, length: usize) {
    let end = o + length;
    if distance >= 32 {
        let mut at = o;
        while at < end {
            let bytes: [u8; 32] = load(dst, at - distance);
            store(dst, at, bytes);
            at += 32;
        }
    } else if distance >= 8 {
        let mut at = o;
        while at < end {
            let bytes: [u8; 8] = load(dst, at - distance);
            store(dst, at, bytes);
            at += 8;
        }
    } else if distance == 1 && length > 32 {
        let byte = dst[o - 1];
        dst[o..end].fill(byte);
    } else {
        // The last `distance` bytes, repeated over a word, and the step after which they repeat.
        let start = o - distance;
        let (mask, repeat, step) = PATTERNS[distance];
        let pattern = (u64::from_le_bytes(load(dst, start)) & mask).wrapping_mul(repeat);
        let pattern = pattern.to_le_bytes();
        let mut at = o;
        while at < end {
            store(dst, at, pattern);
            at += step;
        }
    }
}

/// For each distance below 8: the mask of its bytes in a word, the factor that repeats them over
/// the word, and the bytes of whole repetitions in a word.
const PATTERNS: [(u64, u64, usize); 8] = {
    let mut table = [(0, 0, 8); 8];
    let mut distance = 1;
    while distance < 8 {
        let mut repeat = 0;
        let mut at = 0;
        while at < 8 {
            repeat |= 1 << (8 * at);
            at += distance;
        }
        table[distance] = (u64::MAX >> (64 - 8 * distance), repeat, 8 - 8 % distance);
        distance += 1;
    }
    table
};
