//! TRUNC_PREC and INT_TRUNC: clear low bits of items, which stay cleared; reading has nothing to undo.
//!
//! The slot's meta is a signed byte: the number of bits to keep (of the mantissa for TRUNC_PREC, of the item for
//! INT_TRUNC), or minus the number of bits to clear. At least one bit is always kept. Bytes that do not fill an
//! item are copied.
//!
//! Source: docs/format/filters.md, sections "Truncated precision" and "Integer truncation".

use crate::error::{Error, Result};

/// How many low bits TRUNC_PREC clears of items of `typesize` bytes.
pub(super) fn bits_of_trunc_prec(typesize: usize, meta: u8) -> Result<u32> {
    match typesize {
        4 => bits_to_clear("trunc_prec", 23, meta),
        8 => bits_to_clear("trunc_prec", 52, meta),
        _ => Err(wrong_typesize("a typesize of 4 or 8 for trunc_prec", typesize)),
    }
}

/// How many low bits INT_TRUNC clears of items of `typesize` bytes.
pub(super) fn bits_of_int_trunc(typesize: usize, meta: u8) -> Result<u32> {
    match typesize {
        1 => bits_to_clear("int_trunc", 8, meta),
        2 => bits_to_clear("int_trunc", 16, meta),
        4 => bits_to_clear("int_trunc", 32, meta),
        8 => bits_to_clear("int_trunc", 64, meta),
        _ => Err(wrong_typesize("a typesize of 1, 2, 4 or 8 for int_trunc", typesize)),
    }
}

fn bits_to_clear(filter: &str, most: u32, meta: u8) -> Result<u32> {
    let precision = meta.cast_signed();
    let bits = precision.unsigned_abs().into();
    match precision {
        1.. if bits <= most => Ok(most - bits),
        ..=-1 if bits < most => Ok(bits),
        _ => Err(Error::Argument {
            name: "filters_meta",
            expected: format!("1 to {most} or -1 to -{} for {filter}", most - 1).into(),
            found: precision.into(),
        }),
    }
}

fn wrong_typesize(expected: &'static str, typesize: usize) -> Error {
    Error::Argument {
        name: "filters_meta",
        expected: expected.into(),
        found: i64::try_from(typesize).unwrap_or(i64::MAX),
    }
}

/// Clear the low `bits` bits, at most 63, of every item of `width` bytes (1, 2, 4 or 8) on the way to `dst`.
pub(super) fn forward(width: usize, bits: u32, src: &[u8], dst: &mut [u8]) {
    let item = (u64::MAX << bits).to_le_bytes();
    let mask = std::array::from_fn::<u8, 8, _>(|n| item[n % width]);
    let whole = src.len() / width * width;
    let (items, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    let (eights, rest) = items.as_chunks::<8>();
    let (dst, dst_rest) = dst.as_chunks_mut::<8>();
    for (d, s) in dst.iter_mut().zip(eights) {
        *d = (u64::from_le_bytes(*s) & u64::from_le_bytes(mask)).to_le_bytes();
    }
    for ((d, s), m) in dst_rest.iter_mut().zip(rest).zip(&mask) {
        *d = s & m;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::cases;

    #[test]
    fn low_bits_are_cleared_and_tails_copied() {
        for width in [1, 2, 4, 8] {
            for bits in [1, 3, 8 * u32::try_from(width).unwrap() - 1] {
                cases(width, |src, at| {
                    let mut expected = src.to_vec();
                    for item in expected.chunks_exact_mut(width) {
                        let mut value = [0; 8];
                        value[..width].copy_from_slice(item);
                        let value = u64::from_le_bytes(value) >> bits << bits;
                        item.copy_from_slice(&value.to_le_bytes()[..width]);
                    }
                    let mut out = vec![0xA5; at + src.len()];
                    forward(width, bits, src, &mut out[at..]);
                    assert_eq!(out[at..], expected, "width {width} bits {bits} length {}", src.len());
                });
            }
        }
    }

    #[test]
    fn metas_keep_or_clear_bits_and_always_keep_one() {
        let ok = |bits: Result<u32>| bits.ok();
        let meta = i8::cast_unsigned;
        assert_eq!([1, 10, 23, 24].map(|p| ok(bits_of_trunc_prec(4, p))), [Some(22), Some(13), Some(0), None]);
        assert_eq!([-1, -22, -23].map(|p| ok(bits_of_trunc_prec(4, meta(p)))), [Some(1), Some(22), None]);
        assert_eq!([1, 52, 53].map(|p| ok(bits_of_trunc_prec(8, p))), [Some(51), Some(0), None]);
        assert_eq!([-51, -52, -128].map(|p| ok(bits_of_trunc_prec(8, meta(p)))), [Some(51), None, None]);
        for (typesize, most) in [(1, 8), (2, 16), (4, 32), (8, 64)] {
            assert_eq!(bits_of_int_trunc(typesize, most), Ok(0));
            assert_eq!(bits_of_int_trunc(typesize, 1), Ok(u32::from(most) - 1));
            assert_eq!(ok(bits_of_int_trunc(typesize, most + 1)), None);
            assert_eq!(bits_of_int_trunc(typesize, (most - 1).wrapping_neg()), Ok(u32::from(most) - 1));
            assert_eq!(ok(bits_of_int_trunc(typesize, most.wrapping_neg())), None);
        }
    }

    #[test]
    fn a_meta_of_0_and_wrong_typesizes_are_refused() {
        let refusal =
            Error::Argument { name: "filters_meta", expected: "1 to 23 or -1 to -22 for trunc_prec".into(), found: 0 };
        assert_eq!(bits_of_trunc_prec(4, 0), Err(refusal));
        assert!(bits_of_int_trunc(4, 0).is_err());
        assert!([1, 2, 3, 16].into_iter().all(|typesize| bits_of_trunc_prec(typesize, 1).is_err()));
        assert!([3, 5, 16, 255].into_iter().all(|typesize| bits_of_int_trunc(typesize, 1).is_err()));
    }
}
