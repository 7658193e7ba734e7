//! Loading and storing vectors on x86: the pointers of these filters.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_loadu_si512, _mm512_storeu_si512,
};

/// The 16 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load16(bytes: &[u8], at: usize) -> __m128i {
    let array = &bytes[at..at + 16].as_chunks::<16>().0[0];
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 16 bytes that an unaligned load reads.
    unsafe {
        _mm_loadu_si128(array.as_ptr().cast())
    }
}

/// Write 16 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn store16(bytes: &mut [u8], at: usize, value: __m128i) {
    let array = &mut bytes[at..at + 16].as_chunks_mut::<16>().0[0];
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 16 bytes that an unaligned store writes.
    unsafe {
        _mm_storeu_si128(array.as_mut_ptr().cast(), value);
    }
}

/// The 32 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load32(bytes: &[u8], at: usize) -> __m256i {
    let array = &bytes[at..at + 32].as_chunks::<32>().0[0];
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 32 bytes that an unaligned load reads.
    unsafe {
        _mm256_loadu_si256(array.as_ptr().cast())
    }
}

/// Write 32 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store32(bytes: &mut [u8], at: usize, value: __m256i) {
    let array = &mut bytes[at..at + 32].as_chunks_mut::<32>().0[0];
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 32 bytes that an unaligned store writes.
    unsafe {
        _mm256_storeu_si256(array.as_mut_ptr().cast(), value);
    }
}

/// The 64 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load64(bytes: &[u8], at: usize) -> __m512i {
    let array = &bytes[at..at + 64].as_chunks::<64>().0[0];
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 64 bytes that an unaligned load reads.
    unsafe {
        _mm512_loadu_si512(array.as_ptr().cast())
    }
}

/// Write 64 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store64(bytes: &mut [u8], at: usize, value: __m512i) {
    let array = &mut bytes[at..at + 64].as_chunks_mut::<64>().0[0];
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 64 bytes that an unaligned store writes.
    unsafe {
        _mm512_storeu_si512(array.as_mut_ptr().cast(), value);
    }
}
