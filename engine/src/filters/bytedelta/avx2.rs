//! Running sums with AVX2, 32 bytes at a time.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi128_si32, _mm256_add_epi8, _mm256_castsi256_si128, _mm256_permute2x128_si256,
    _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_slli_si256,
};

use super::scalar;
use crate::filters::x86::{load32, store32};

/// The last byte of both halves, everywhere.
#[inline]
#[target_feature(enable = "avx2")]
fn last_of_halves(sums: __m256i) -> __m256i {
    _mm256_shuffle_epi8(sums, _mm256_set1_epi8(15))
}

/// Running sums of one plane, beginning with `sum`.
#[target_feature(enable = "avx2")]
pub(super) fn sums(sum: u8, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / 32 * 32;
    let mut before = _mm256_set1_epi8(sum.cast_signed());
    for at in (0..whole).step_by(32) {
        let x = load32(src, at);
        let x = _mm256_add_epi8(x, _mm256_slli_si256::<1>(x));
        let x = _mm256_add_epi8(x, _mm256_slli_si256::<2>(x));
        let x = _mm256_add_epi8(x, _mm256_slli_si256::<4>(x));
        let x = _mm256_add_epi8(x, _mm256_slli_si256::<8>(x));
        // The lower half goes up, zeros take its place.
        let x = _mm256_add_epi8(x, last_of_halves(_mm256_permute2x128_si256::<0x08>(x, x)));
        store32(dst, at, _mm256_add_epi8(x, before));
        before = _mm256_add_epi8(before, last_of_halves(_mm256_permute4x64_epi64::<0xEE>(x)));
    }
    let sum = _mm_cvtsi128_si32(_mm256_castsi256_si128(before)).to_le_bytes()[0];
    scalar::sums(sum, &src[whole..], &mut dst[whole..]);
}
