//! With AVX-512 and GFNI, 512 bytes at a time.
//!
//! GFNI multiplies 8 x 8 bits by a vector of 8 bits. With the data as the matrix and the 8 unit vectors as vectors
//! this reads the matrix by columns, so it transposes; its rows count from the last byte.

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_epi8,
};

use crate::filters::shuffle::avx512::{to_items, to_planes};
use crate::filters::starts;
use crate::filters::x86::{load64, store64};

/// Bytes of a bit plane handled at a time.
const STEP: usize = 64;

/// For every eight bytes: the last one first.
const REVERSED: [u8; 64] = {
    let mut order = [0; 64];
    let mut n = 0;
    while n < 64 {
        // The instruction takes the index within its 16 bytes.
        order[n] = [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8][n % 16];
        n += 1;
    }
    order
};

/// In every eight bytes, counted from the last one, exchange bit b of byte k with bit k of byte b.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn transpose_reversed(row: __m512i) -> __m512i {
    let units = _mm512_set1_epi64(i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]));
    _mm512_gf2p8affine_epi64_epi8::<0>(units, row)
}

/// Split a byte plane into 8 bit planes; false if it is too short.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn split(src: &[u8], dst: &mut [u8], stride: usize, at: usize) -> bool {
    let reversed = load64(&REVERSED, 0);
    for start in starts(src.len() / 8, STEP) {
        let mut rows = [_mm512_setzero_si512(); 8];
        for (n, row) in rows.iter_mut().enumerate() {
            *row = transpose_reversed(_mm512_shuffle_epi8(load64(src, 8 * start + 64 * n), reversed));
        }
        for (b, plane) in to_planes(rows).iter().enumerate() {
            store64(dst, b * stride + at + start, *plane);
        }
    }
    src.len() / 8 >= STEP
}

/// Undo [`split`]. Loading the planes in reversed order makes the eights count from the last byte.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn join(src: &[u8], stride: usize, at: usize, dst: &mut [u8]) -> bool {
    for start in starts(dst.len() / 8, STEP) {
        let mut planes = [_mm512_setzero_si512(); 8];
        for (b, plane) in planes.iter_mut().rev().enumerate() {
            *plane = load64(src, b * stride + at + start);
        }
        for (n, row) in to_items(planes).iter().enumerate() {
            store64(dst, 8 * start + 64 * n, transpose_reversed(*row));
        }
    }
    dst.len() / 8 >= STEP
}
