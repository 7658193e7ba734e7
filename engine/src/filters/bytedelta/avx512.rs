//! Running sums with AVX-512 (VBMI), 64 bytes at a time.

use std::arch::x86_64::{
    _mm_cvtsi128_si32, _mm512_add_epi8, _mm512_bslli_epi128, _mm512_castsi512_si128, _mm512_maskz_permutexvar_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi8,
};

use super::scalar;
use crate::filters::x86::{load64, store64};

/// For the upper half of every 32 bytes: the byte before it.
const QUARTERS: [u8; 64] = {
    let mut order = [15; 64];
    let mut n = 32;
    while n < 64 {
        order[n] = 47;
        n += 1;
    }
    order
};

/// Running sums of one plane, beginning with `sum`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn sums(sum: u8, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / 64 * 64;
    let quarters = load64(&QUARTERS, 0);
    let (middle, last) = (_mm512_set1_epi8(31), _mm512_set1_epi8(63));
    let mut before = _mm512_set1_epi8(sum.cast_signed());
    for at in (0..whole).step_by(64) {
        let x = load64(src, at);
        let x = _mm512_add_epi8(x, _mm512_bslli_epi128::<1>(x));
        let x = _mm512_add_epi8(x, _mm512_bslli_epi128::<2>(x));
        let x = _mm512_add_epi8(x, _mm512_bslli_epi128::<4>(x));
        let x = _mm512_add_epi8(x, _mm512_bslli_epi128::<8>(x));
        let x = _mm512_add_epi8(x, _mm512_maskz_permutexvar_epi8(0xFFFF_0000_FFFF_0000, quarters, x));
        let x = _mm512_add_epi8(x, _mm512_maskz_permutexvar_epi8(0xFFFF_FFFF_0000_0000, middle, x));
        store64(dst, at, _mm512_add_epi8(x, before));
        before = _mm512_add_epi8(before, _mm512_permutexvar_epi8(last, x));
    }
    let sum = _mm_cvtsi128_si32(_mm512_castsi512_si128(before)).to_le_bytes()[0];
    scalar::sums(sum, &src[whole..], &mut dst[whole..]);
}
