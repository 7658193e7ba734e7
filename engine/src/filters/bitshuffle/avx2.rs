//! With AVX2, 256 bytes at a time: 8 vectors that hold byte k of every eight exchange bits with each other.

use std::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_srli_epi16,
    _mm256_xor_si256,
};

use crate::filters::shuffle::avx2::{ITEMS_AHEAD, join as join_planes, to_items, to_planes};
use crate::filters::starts;
use crate::filters::x86::{load32, store32};
use crate::prefetch::prefetch;

/// Bytes of a bit plane handled at a time.
const STEP: usize = 32;

/// How far ahead the bit planes that are joined are asked for, in bytes: so many streams nothing foresees.
const AHEAD: usize = 192;

/// In every column, exchange bit b of row k with bit k of row b.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    exchange::<1>(exchange::<2>(exchange::<4>(rows, 0x0F), 0x33), 0x55)
}

/// Exchange the upper bits of every row whose number lacks `STEP` with the lower bits of the row `STEP` on.
///
/// Shifts cross bytes, but what arrives from a neighbour is not among the bits that are kept.
#[inline]
#[target_feature(enable = "avx2")]
fn exchange<const STEP: i32>(mut rows: [__m256i; 8], lower: i8) -> [__m256i; 8] {
    let lower = _mm256_set1_epi8(lower);
    for n in 0..8 {
        let other = n | STEP.unsigned_abs() as usize;
        if other != n {
            let shifted = _mm256_srli_epi16::<STEP>(rows[n]);
            let differing = _mm256_and_si256(_mm256_xor_si256(shifted, rows[other]), lower);
            rows[other] = _mm256_xor_si256(rows[other], differing);
            rows[n] = _mm256_xor_si256(rows[n], _mm256_slli_epi16::<STEP>(differing));
        }
    }
    rows
}

/// Split a byte plane into 8 bit planes; false if it is too short.
#[target_feature(enable = "avx2")]
pub(super) fn split(src: &[u8], dst: &mut [u8], stride: usize, at: usize) -> bool {
    for start in starts(src.len() / 8, STEP) {
        let mut rows = [_mm256_setzero_si256(); 8];
        for (n, row) in rows.iter_mut().enumerate() {
            *row = load32(src, 8 * start + 32 * n);
        }
        for (b, plane) in transpose(to_planes(rows)).iter().enumerate() {
            store32(dst, b * stride + at + start, *plane);
        }
    }
    src.len() / 8 >= STEP
}

/// Items that [`join_items`] handles at a time.
pub(super) const ITEMS: usize = 8 * STEP;

/// Join bit planes of `stride` bytes to items of T bytes, from byte `at` of each on; `dst` has [`ITEMS`] items or more.
/// Each of `planes` has eight, one after the other; bytes of items that have none are zero. If WIDE, T is 16 and these are the
/// first bytes of items of `width` bytes.
#[target_feature(enable = "avx2")]
pub(super) fn join_items<const T: usize, const WIDE: bool>(
    planes: &[&[u8]],
    stride: usize,
    at: usize,
    width: usize,
    dst: &mut [u8],
) {
    let width = if WIDE { width } else { T };
    let mut tile = [[0; ITEMS]; T];
    for start in starts(dst.len().div_ceil(width) / 8, STEP) {
        for (plane, bits) in tile.iter_mut().zip(planes) {
            let mut rest = *bits;
            let mut rows = [_mm256_setzero_si256(); 8];
            for row in &mut rows {
                let (bits, others) = rest.split_at(stride);
                *row = load32(bits, at + start);
                prefetch(bits, at + start + AHEAD);
                rest = others;
            }
            for (n, row) in to_items(transpose(rows)).iter().enumerate() {
                store32(plane, 32 * n, *row);
            }
        }
        let planes = tile.each_ref();
        for n in 0..ITEMS / STEP {
            let items = &mut dst[(8 * start + STEP * n) * width..];
            for line in 0..T.div_ceil(2) {
                prefetch(items, ITEMS_AHEAD + 64 * line);
            }
            join_planes::<T, ITEMS, WIDE>(&planes, STEP * n, width, items);
        }
    }
}

/// Undo [`split`].
#[target_feature(enable = "avx2")]
pub(super) fn join(src: &[u8], stride: usize, at: usize, dst: &mut [u8]) -> bool {
    let length = dst.len() / 8;
    let planes: [&[u8]; 8] = std::array::from_fn(|b| &src[b * stride + at..][..length]);
    for start in starts(length, STEP) {
        let mut rows = [_mm256_setzero_si256(); 8];
        for (row, plane) in rows.iter_mut().zip(planes) {
            *row = load32(plane, start);
            prefetch(plane, start + AHEAD);
        }
        let dst = &mut dst[8 * start..8 * start + 8 * STEP];
        for (n, row) in to_items(transpose(rows)).iter().enumerate() {
            store32(dst, 32 * n, *row);
        }
    }
    length >= STEP
}
