//! Truncated precision and integer truncation: the low bits of every word become zero. Nothing to undo.
//!
//! Bytes that do not fill a word are copied.
//!
//! Source: docs/format/filters.md, sections "Truncated precision" and "Integer truncation".

/// Bits to clear in words of which `bits` may be cleared or kept: `meta` above 0 says how many to keep, below 0
/// how many to clear. None if it is out of range.
pub(super) fn bits_to_clear(meta: u8, bits: u32) -> Option<u32> {
    let precision = i32::from(meta.cast_signed());
    let magnitude = precision.unsigned_abs();
    let cleared = if precision > 0 { bits.checked_sub(magnitude)? } else { magnitude };
    (precision != 0 && cleared < bits).then_some(cleared)
}

/// What to AND 8 bytes with, to clear the `cleared` low bits of each word of `word` bytes.
pub(super) fn mask(word: usize, cleared: u32) -> u64 {
    let one = if word >= 8 { u64::MAX } else { (1 << (8 * word)) - 1 };
    let kept = one & u64::MAX.checked_shl(cleared).unwrap_or(0);
    (0..8 / word).fold(0, |mask, n| mask | kept << (8 * word * n))
}

/// Clear bits of each word.
pub(super) fn truncate(word: usize, mask: u64, src: &[u8], dst: &mut [u8]) {
    let extent = src.len() - src.len() % word;
    let (eights, rest) = src[..extent].as_chunks::<8>();
    let (out, out_rest) = dst[..extent].as_chunks_mut::<8>();
    for (out, bytes) in out.iter_mut().zip(eights) {
        *out = (u64::from_le_bytes(*bytes) & mask).to_le_bytes();
    }
    for ((out, byte), mask) in out_rest.iter_mut().zip(rest).zip(mask.to_le_bytes()) {
        *out = byte & mask;
    }
    dst[extent..].copy_from_slice(&src[extent..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sample;

    #[test]
    fn precision_is_kept_or_dropped_within_its_range() {
        assert_eq!(bits_to_clear(10, 23), Some(13));
        assert_eq!(bits_to_clear(23, 23), Some(0));
        assert_eq!(bits_to_clear(24, 23), None);
        assert_eq!(bits_to_clear(0, 23), None);
        assert_eq!(bits_to_clear(256u16.wrapping_sub(22) as u8, 23), Some(22));
        assert_eq!(bits_to_clear(256u16.wrapping_sub(23) as u8, 23), None);
        assert_eq!(bits_to_clear(64, 64), Some(0));
    }

    #[test]
    fn low_bits_become_zero_and_tails_stay() {
        for (word, cleared) in [(1, 3), (2, 11), (4, 13), (4, 0), (8, 40)] {
            for len in 0..70 {
                let src = sample(len);
                let mut dst = vec![0xAA; len];
                truncate(word, mask(word, cleared), &src, &mut dst);
                let mut expected = src.clone();
                for item in expected.chunks_exact_mut(word) {
                    let mut wide = [0; 8];
                    wide[..word].copy_from_slice(item);
                    let value = u64::from_le_bytes(wide) >> cleared << cleared;
                    item.copy_from_slice(&value.to_le_bytes()[..word]);
                }
                assert_eq!(dst, expected, "word {word} len {len}");
            }
        }
    }
}
