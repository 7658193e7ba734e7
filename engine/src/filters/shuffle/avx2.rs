//! Widths 2, 4, 8 and 16 with AVX2.
//!
//! Take 16 items of T bytes as one row of bytes. The place of a byte is a number whose upper 4 bits are the
//! item's and whose lower bits are the byte's within it; shuffling swaps the two parts. Interleaving the two
//! halves of the row moves the uppermost bit of every place to the bottom, so four interleavings shuffle, and
//! log2(T) unshuffle. The two halves of a register do this for 16 items each.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_set_m128i,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
};

/// Items handled at a time.
const STEP: usize = 32;

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 32 bytes that an unaligned load reads.
    unsafe {
        _mm256_loadu_si256(bytes.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 32], value: __m256i) {
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 32 bytes that an unaligned store writes.
    unsafe {
        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value);
    }
}

/// Load 16 bytes into each half.
#[inline]
#[target_feature(enable = "avx2")]
fn load_halves(low: &[u8; 16], high: &[u8; 16]) -> __m256i {
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 16 bytes that an unaligned load reads.
    let low = unsafe { _mm_loadu_si128(low.as_ptr().cast()) };
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 16 bytes that an unaligned load reads.
    let high = unsafe { _mm_loadu_si128(high.as_ptr().cast()) };
    _mm256_set_m128i(high, low)
}

/// Store one half, `HALF` 0 or 1.
#[inline]
#[target_feature(enable = "avx2")]
fn store_half<const HALF: i32>(bytes: &mut [u8; 16], value: __m256i) {
    let half = _mm256_extracti128_si256::<HALF>(value);
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 16 bytes that an unaligned store writes.
    unsafe {
        _mm_storeu_si128(bytes.as_mut_ptr().cast(), half);
    }
}

/// Interleave the two halves of the row that `rows` make up.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave<const T: usize>(rows: [__m256i; T]) -> [__m256i; T] {
    let mut out = [_mm256_setzero_si256(); T];
    for n in 0..T / 2 {
        out[2 * n] = _mm256_unpacklo_epi8(rows[n], rows[n + T / 2]);
        out[2 * n + 1] = _mm256_unpackhi_epi8(rows[n], rows[n + T / 2]);
    }
    out
}

#[target_feature(enable = "avx2")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    for (nstep, items) in src.chunks_exact(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks::<16>();
        let mut rows = [_mm256_setzero_si256(); T];
        for (n, row) in rows.iter_mut().enumerate() {
            *row = load_halves(&pieces[n], &pieces[T + n]);
        }
        rows = interleave(interleave(interleave(interleave(rows))));
        for (plane, row) in rows.into_iter().enumerate() {
            if let Some(out) = dst[plane * nitems + nstep * STEP..].first_chunk_mut() {
                store(out, row);
            }
        }
    }
    nitems - nitems % STEP
}

#[target_feature(enable = "avx2")]
fn unshuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    for (nstep, items) in dst.chunks_exact_mut(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks_mut::<16>();
        let mut rows = [_mm256_setzero_si256(); T];
        for (plane, row) in rows.iter_mut().enumerate() {
            if let Some(bytes) = src[plane * nitems + nstep * STEP..].first_chunk() {
                *row = load(bytes);
            }
        }
        for _ in 0..T.ilog2() {
            rows = interleave(rows);
        }
        for (n, row) in rows.into_iter().enumerate() {
            store_half::<0>(&mut pieces[n], row);
            store_half::<1>(&mut pieces[T + n], row);
        }
    }
    nitems - nitems % STEP
}

/// Shuffle as many items as fit, and say how many.
#[target_feature(enable = "avx2")]
pub(super) fn shuffle(width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    match width {
        2 => shuffle_of::<2>(src, dst),
        4 => shuffle_of::<4>(src, dst),
        8 => shuffle_of::<8>(src, dst),
        16 => shuffle_of::<16>(src, dst),
        _ => 0,
    }
}

/// Unshuffle as many items as fit, and say how many.
#[target_feature(enable = "avx2")]
pub(super) fn unshuffle(width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    match width {
        2 => unshuffle_of::<2>(src, dst),
        4 => unshuffle_of::<4>(src, dst),
        8 => unshuffle_of::<8>(src, dst),
        16 => unshuffle_of::<16>(src, dst),
        _ => 0,
    }
}
