//! Widths 2, 4, 8 and 16 with AVX-512 (VBMI).
//!
//! A register holds 64/T items. One permutation of its bytes gathers byte j of each of them into cell j of T
//! cells; T such registers are then a matrix of T x T cells, which log2(T) rounds of exchanges transpose: in
//! round s, rows n and n + s swap the cells that stand s apart. Row j is then byte j of 64 items.

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_permutex2var_epi32, _mm512_permutexvar_epi8, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

/// Items handled at a time.
const STEP: usize = 64;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::filters) fn load(bytes: &[u8; 64]) -> __m512i {
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 64 bytes that an unaligned load reads.
    unsafe {
        _mm512_loadu_si512(bytes.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::filters) fn store(bytes: &mut [u8; 64], value: __m512i) {
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 64 bytes that an unaligned store writes.
    unsafe {
        _mm512_storeu_si512(bytes.as_mut_ptr().cast(), value);
    }
}

/// Where each byte of a register comes from when byte c of its items goes to cell c.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 64")]
const fn gather(width: usize) -> [u8; 64] {
    let nitems = 64 / width;
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ((at % nitems) * width + at / nitems) as u8;
        at += 1;
    }
    places
}

/// The same for the way back.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 64")]
const fn scatter(width: usize) -> [u8; 64] {
    let nitems = 64 / width;
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ((at % width) * nitems + at / width) as u8;
        at += 1;
    }
    places
}

/// Which 32-bit words the two rows of an exchange take, of the 32 that both have.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 32")]
const fn exchange(ncells: usize, distance: usize) -> [[u32; 16]; 2] {
    let words = 16 / ncells;
    let mut out = [[0; 16]; 2];
    let mut at = 0;
    while at < 16 {
        let upper = (at / words) & distance != 0;
        out[0][at] = if upper { 16 + at - distance * words } else { at } as u32;
        out[1][at] = if upper { 16 + at } else { at + distance * words } as u32;
        at += 1;
    }
    out
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn words(places: &[u32; 16]) -> __m512i {
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 64 bytes that an unaligned load reads.
    unsafe {
        _mm512_loadu_si512(places.as_ptr().cast())
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn round<const T: usize>(rows: &mut [__m512i; T], distance: usize, places: &[[u32; 16]; 2]) {
    let (low, high) = (words(&places[0]), words(&places[1]));
    for n in 0..T {
        if n & distance == 0 {
            let (a, b) = (rows[n], rows[n + distance]);
            rows[n] = _mm512_permutex2var_epi32(a, low, b);
            rows[n + distance] = _mm512_permutex2var_epi32(a, high, b);
        }
    }
}

/// Transpose a matrix of T x T cells.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::filters) fn transpose<const T: usize>(rows: &mut [__m512i; T]) {
    if T > 8 {
        round(rows, 8, const { &exchange(T, if T > 8 { 8 } else { 0 }) });
    }
    if T > 4 {
        round(rows, 4, const { &exchange(T, if T > 4 { 4 } else { 0 }) });
    }
    if T > 2 {
        round(rows, 2, const { &exchange(T, if T > 2 { 2 } else { 0 }) });
    }
    round(rows, 1, const { &exchange(T, 1) });
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    let places = load(const { &gather(T) });
    for (nstep, items) in src.chunks_exact(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks::<64>();
        let mut rows = [_mm512_setzero_si512(); T];
        for (row, piece) in rows.iter_mut().zip(pieces) {
            *row = _mm512_permutexvar_epi8(places, load(piece));
        }
        transpose(&mut rows);
        for (plane, row) in rows.into_iter().enumerate() {
            if let Some(out) = dst[plane * nitems + nstep * STEP..].first_chunk_mut() {
                store(out, row);
            }
        }
    }
    nitems - nitems % STEP
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn unshuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    let places = load(const { &scatter(T) });
    for (nstep, items) in dst.chunks_exact_mut(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks_mut::<64>();
        let mut rows = [_mm512_setzero_si512(); T];
        for (plane, row) in rows.iter_mut().enumerate() {
            if let Some(bytes) = src[plane * nitems + nstep * STEP..].first_chunk() {
                *row = load(bytes);
            }
        }
        transpose(&mut rows);
        for (row, piece) in rows.into_iter().zip(pieces) {
            store(piece, _mm512_permutexvar_epi8(places, row));
        }
    }
    nitems - nitems % STEP
}

/// Shuffle as many items as fit, and say how many.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn unshuffle(width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    match width {
        2 => unshuffle_of::<2>(src, dst),
        4 => unshuffle_of::<4>(src, dst),
        8 => unshuffle_of::<8>(src, dst),
        16 => unshuffle_of::<16>(src, dst),
        _ => 0,
    }
}
