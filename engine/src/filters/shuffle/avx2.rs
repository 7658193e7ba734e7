//! All widths with AVX2; 2, 4, 8 and 16 directly, others in columns of 8 or 16 bytes.
//!
//! Take the place of a byte among 32 items of T bytes as a number: upper 5 bits the item, lower bits the byte
//! within it. Shuffling exchanges the two parts. Unpacking two vectors that are half of all apart moves the top
//! bit of every place to the bottom, log2(T) rounds of it unshuffle; but it does so for the two halves (lanes) of
//! the vectors separately, so the items are sorted into lanes by one more round. Shuffling first sorts the bytes
//! within 16, and then needs rounds of larger units to do the same.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_permute2x128_si256, _mm256_set_epi64x, _mm256_set_m128i, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::scalar;
use crate::copy::prefetch;
use crate::filters::starts;
use crate::filters::x86::{load16, load32, store16, store32};

/// Items handled at a time.
const STEP: usize = 32;

/// How far ahead planes that are read are asked for, and the items that are written, in bytes.
pub(super) const PLANES_AHEAD: usize = 512;
pub(super) const ITEMS_AHEAD: usize = 1024;

/// For 16 bytes of items of `width` bytes: where each byte comes from when byte 0 of all items goes first.
#[expect(clippy::cast_possible_truncation, reason = "the places are below 16")]
const fn gather(width: usize) -> [u8; 32] {
    let mut places = [0; 32];
    let nitems = 16 / width;
    let mut n = 0;
    while n < 32 {
        places[n] = (n % nitems * width + n % 16 / nitems) as u8;
        n += 1;
    }
    places
}

/// Interleave the lower and the upper halves of lanes, in units of 16/T bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack<const T: usize>(a: __m256i, b: __m256i) -> [__m256i; 2] {
    match T {
        2 => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
        4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
        8 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
        _ => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
    }
}

/// log2(T) rounds of interleaving the first half of all vectors with the second, in units of 16/UNITS bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave<const T: usize, const UNITS: usize>(mut rows: [__m256i; T]) -> [__m256i; T] {
    // Not a loop: the compiler would keep the rows of one in memory.
    rows = once::<T, UNITS>(rows);
    if T > 2 {
        rows = once::<T, UNITS>(rows);
    }
    if T > 4 {
        rows = once::<T, UNITS>(rows);
    }
    if T > 8 {
        rows = once::<T, UNITS>(rows);
    }
    rows
}

/// One round of [`interleave`].
#[inline]
#[target_feature(enable = "avx2")]
fn once<const T: usize, const UNITS: usize>(rows: [__m256i; T]) -> [__m256i; T] {
    let mut next = rows;
    for n in 0..T / 2 {
        [next[2 * n], next[2 * n + 1]] = unpack::<UNITS>(rows[n], rows[n + T / 2]);
    }
    next
}

/// 32 items of T bytes, in order, to their T planes.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::filters) fn to_planes<const T: usize>(rows: [__m256i; T]) -> [__m256i; T] {
    let gather = load32(const { &gather(T) }, 0);
    let mut lanes = rows;
    for n in 0..T / 2 {
        lanes[2 * n] = _mm256_permute2x128_si256::<0x20>(rows[n], rows[n + T / 2]);
        lanes[2 * n + 1] = _mm256_permute2x128_si256::<0x31>(rows[n], rows[n + T / 2]);
    }
    if T < 16 {
        for row in &mut lanes {
            *row = _mm256_shuffle_epi8(*row, gather);
        }
    }
    interleave::<T, T>(lanes)
}

/// T planes of 32 bytes to 32 items in order.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::filters) fn to_items<const T: usize>(planes: [__m256i; T]) -> [__m256i; T] {
    let lanes = interleave::<T, 16>(planes);
    let mut rows = lanes;
    for n in 0..T / 2 {
        rows[n] = _mm256_permute2x128_si256::<0x20>(lanes[2 * n], lanes[2 * n + 1]);
        rows[n + T / 2] = _mm256_permute2x128_si256::<0x31>(lanes[2 * n], lanes[2 * n + 1]);
    }
    rows
}

#[target_feature(enable = "avx2")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / T;
    for start in starts(nitems, 2 * STEP) {
        let mut halves = [[_mm256_setzero_si256(); T]; 2];
        for (half, rows) in halves.iter_mut().enumerate() {
            for (n, row) in rows.iter_mut().enumerate() {
                *row = load32(src, (start + half * STEP) * T + 32 * n);
            }
            *rows = to_planes(*rows);
        }
        // Planes are often some power of two apart and share few lines of the cache: fill each line at once.
        let [first, second] = halves;
        for (j, (first, second)) in first.iter().zip(&second).enumerate() {
            store32(dst, j * nitems + start, *first);
            store32(dst, j * nitems + start + STEP, *second);
        }
    }
}

#[target_feature(enable = "avx2")]
fn unshuffle_of<const T: usize>(planes: &[&[u8]], dst: &mut [u8]) {
    let Some(planes) = planes.first_chunk::<T>() else { return };
    for start in starts(planes[0].len(), 2 * STEP) {
        let items = &mut dst[start * T..(start + 2 * STEP) * T];
        for (n, plane) in planes.iter().enumerate() {
            prefetch(plane, start + PLANES_AHEAD);
            prefetch(items, ITEMS_AHEAD + 64 * n);
        }
        for half in [0, STEP] {
            let mut rows = [_mm256_setzero_si256(); T];
            for (row, plane) in rows.iter_mut().zip(planes) {
                *row = load32(plane, start + half);
            }
            for (n, row) in to_items(rows).iter().enumerate() {
                store32(items, half * T + 32 * n, *row);
            }
        }
    }
}

/// 32 bytes of a column of `COLUMN` bytes, 8 or 16: as many items as that makes, `width` bytes apart.
#[inline]
#[target_feature(enable = "avx2")]
fn load_column<const COLUMN: usize>(src: &[u8], at: usize, width: usize) -> __m256i {
    if COLUMN == 16 {
        return _mm256_set_m128i(load16(src, at + width), load16(src, at));
    }
    let [a, b, c, d] =
        [0, 1, 2, 3].map(|n| i64::from_le_bytes(src[at + n * width..at + n * width + 8].as_chunks().0[0]));
    _mm256_set_epi64x(d, c, b, a)
}

/// Undo one half of [`load_column`]: 16 bytes of a column.
#[inline]
#[target_feature(enable = "avx2")]
fn store_column<const COLUMN: usize>(dst: &mut [u8], at: usize, width: usize, lane: __m128i) {
    if COLUMN == 16 {
        return store16(dst, at, lane);
    }
    let items = [_mm_cvtsi128_si64(lane), _mm_extract_epi64::<1>(lane)];
    for (n, item) in items.iter().enumerate() {
        dst[at + n * width..at + n * width + 8].copy_from_slice(&item.to_le_bytes());
    }
}

/// Number of items, from the first, of which a column can be had without going over the end.
fn nitems_within(column: usize, width: usize, length: usize) -> usize {
    length.checked_sub(column).map_or(0, |last| (last / width + 1).min(length / width))
}

/// Shuffle any width: columns of narrow items reach into the next ones, of wide items they may overlap.
#[target_feature(enable = "avx2")]
fn shuffle_columns<const COLUMN: usize>(width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / width;
    let within = nitems_within(COLUMN, width, src.len());
    for start in starts(within, STEP) {
        for column in starts(width.max(COLUMN), COLUMN) {
            let mut rows = [_mm256_setzero_si256(); COLUMN];
            for (n, row) in rows.iter_mut().enumerate() {
                *row = load_column::<COLUMN>(src, (start + n * STEP / COLUMN) * width + column, width);
            }
            for (j, plane) in to_planes(rows).iter().enumerate().take(width) {
                store32(dst, (column + j) * nitems + start, *plane);
            }
        }
    }
    scalar::shuffle_from(within, width, src, dst);
}

/// Undo [`shuffle_columns`]: what columns of narrow items write into the next ones is overwritten with these.
#[target_feature(enable = "avx2")]
fn unshuffle_columns<const COLUMN: usize>(width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / width;
    let within = nitems_within(COLUMN, width, src.len());
    for start in starts(within, STEP) {
        for line in (0..STEP * width).step_by(64) {
            prefetch(&dst[start * width..], ITEMS_AHEAD + line);
        }
        for column in starts(width.max(COLUMN), COLUMN) {
            let mut planes = [_mm256_setzero_si256(); COLUMN];
            for (j, plane) in planes.iter_mut().enumerate().take(width) {
                *plane = load32(src, (column + j) * nitems + start);
            }
            // The lower lanes hold the first half of the items, and items are stored in order.
            let lanes = interleave::<COLUMN, 16>(planes);
            for upper in [false, true] {
                for (n, row) in lanes.iter().enumerate() {
                    let item = start + usize::from(upper) * STEP / 2 + n * STEP / 2 / COLUMN;
                    let lane = if upper { _mm256_extracti128_si256::<1>(*row) } else { _mm256_castsi256_si128(*row) };
                    store_column::<COLUMN>(dst, item * width + column, width, lane);
                }
            }
        }
    }
    scalar::unshuffle_from(within, width, &src.chunks_exact(nitems), dst);
}

/// Shuffle `src`, whole items of `width` bytes; false if there are too few items.
#[target_feature(enable = "avx2")]
pub(super) fn shuffle(width: usize, src: &[u8], dst: &mut [u8]) -> bool {
    if src.len() / width < 2 * STEP {
        return false;
    }
    match width {
        2 => shuffle_of::<2>(src, dst),
        4 => shuffle_of::<4>(src, dst),
        8 => shuffle_of::<8>(src, dst),
        16 => shuffle_of::<16>(src, dst),
        ..8 => shuffle_columns::<8>(width, src, dst),
        _ => shuffle_columns::<16>(width, src, dst),
    }
    true
}

/// Undo [`shuffle`] of widths that are no power of two or above 16, under the same condition.
#[target_feature(enable = "avx2")]
pub(super) fn unshuffle(width: usize, src: &[u8], dst: &mut [u8]) -> bool {
    if src.len() / width < 2 * STEP {
        return false;
    }
    match width {
        ..8 => unshuffle_columns::<8>(width, src, dst),
        _ => unshuffle_columns::<16>(width, src, dst),
    }
    true
}

/// Undo [`shuffle`] for 2, 4, 8 or 16 planes of the same length that may lie apart, under the same condition.
#[target_feature(enable = "avx2")]
pub(super) fn unshuffle_planes(planes: &[&[u8]], dst: &mut [u8]) -> bool {
    if planes[0].len() < 2 * STEP {
        return false;
    }
    match planes.len() {
        2 => unshuffle_of::<2>(planes, dst),
        4 => unshuffle_of::<4>(planes, dst),
        8 => unshuffle_of::<8>(planes, dst),
        16 => unshuffle_of::<16>(planes, dst),
        _ => return false,
    }
    true
}
