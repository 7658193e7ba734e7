//! TRUNC_PREC and INT_TRUNC: clear low bits of items, which stay cleared; reading has nothing to undo.
//!
//! The slot's meta is a signed byte: the number of bits to keep (of the mantissa for TRUNC_PREC, of the item for
//! INT_TRUNC), or minus the number of bits to clear. At least one bit is always kept. Bytes that do not fill an
//! item are copied.
//!
//! Source: `docs/format/chunk.md`, sections 8.5 and 8.6.

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
