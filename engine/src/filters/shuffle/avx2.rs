//! Widths 2, 4, 8 and 16 with AVX2; others are shuffled in columns of 8 or 16 bytes.
//!
//! Take the index of a byte among 32 items of T bytes as a number: upper 5 bits the item, lower bits the byte
//! within it. Shuffling exchanges the two parts. Unpacking two vectors that are half of all apart moves the top
//! bit of every index to the bottom, log2(T) rounds of it unshuffle; but it does so for the two halves (lanes) of
//! the vectors separately, so the items are sorted into lanes by one more round. Shuffling first sorts the bytes
//! within 16, and then needs rounds of larger units to do the same.

use std::arch::x86_64::{
    __m256i, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_permute2x128_si256, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_set_epi64x, _mm256_set_m128i, _mm256_setr_epi32, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi8, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::scalar;
use crate::filters::starts;
use crate::filters::x86::{load16, load32, store16, store32};
use crate::prefetch::prefetch;

/// Items handled at a time.
const STEP: usize = 32;

/// How far ahead planes that are read are asked for, and the items that are written, in bytes.
pub(super) const PLANES_AHEAD: usize = 512;
pub(in crate::filters) const ITEMS_AHEAD: usize = 1024;

/// For 16 bytes of items of `width` bytes: where each byte comes from when byte 0 of all items goes first.
#[expect(clippy::cast_possible_truncation, reason = "the indices are below 16")]
const fn gather(width: usize) -> [u8; 32] {
    let mut order = [0; 32];
    let nitems = 16 / width;
    let mut n = 0;
    while n < 32 {
        order[n] = (n % nitems * width + n % 16 / nitems) as u8;
        n += 1;
    }
    order
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

/// Write the first 32 items of `items` from bytes `at..` of T planes. If WIDE, T is 16 and these are the first bytes of items of
/// `width` bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::filters) fn join<const T: usize, const LENGTH: usize, const WIDE: bool>(
    planes: &[&[u8; LENGTH]; T],
    at: usize,
    width: usize,
    items: &mut [u8],
) {
    match T {
        8 => join_halves::<4, LENGTH, WIDE>(planes, at, width, items),
        16 => join_halves::<8, LENGTH, WIDE>(planes, at, width, items),
        _ => {
            let mut rows = [_mm256_setzero_si256(); T];
            for (row, plane) in rows.iter_mut().zip(planes) {
                *row = load32(*plane, at);
            }
            for (n, row) in to_items(rows).iter().enumerate() {
                store32(items, 32 * n, *row);
            }
        }
    }
}

/// [`join`] for twice H planes, 4 or 8. The lower lanes have the first half of the planes and the upper lanes the second,
/// of 16 items each. So a round less is needed, half as many vectors at a time, and the halves of an item end up in one vector.
#[inline]
#[target_feature(enable = "avx2")]
fn join_halves<const H: usize, const LENGTH: usize, const WIDE: bool>(
    planes: &[&[u8; LENGTH]],
    at: usize,
    width: usize,
    items: &mut [u8],
) {
    for half in 0..2 {
        let mut rows = [_mm256_setzero_si256(); H];
        for (n, row) in rows.iter_mut().enumerate() {
            let [lower, upper] = [n, n + H].map(|plane| load16(planes[plane], at + half * STEP / 2));
            *row = _mm256_set_m128i(upper, lower);
        }
        for (n, row) in interleave::<H, 16>(rows).iter().enumerate() {
            let row = match H {
                4 => _mm256_permutevar8x32_epi32(*row, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
                _ => _mm256_permute4x64_epi64::<0b11_01_10_00>(*row),
            };
            if WIDE {
                let item = half * STEP / 2 + 2 * n;
                store16(items, item * width, _mm256_castsi256_si128(row));
                store16(items, (item + 1) * width, _mm256_extracti128_si256::<1>(row));
            } else {
                store32(items, half * STEP * H + 32 * n, row);
            }
        }
    }
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

/// Undo [`shuffle_of`] for planes that may lie apart. If WIDE, T is 16 and these are the first bytes of items of `width` bytes.
#[target_feature(enable = "avx2")]
fn unshuffle_of<const T: usize, const WIDE: bool>(planes: &[&[u8]], width: usize, dst: &mut [u8]) {
    let width = if WIDE { width } else { T };
    let Some(planes) = planes.first_chunk::<T>() else { return };
    let nitems = planes[0].len();
    let planes = planes.map(|plane| &plane[..nitems]);
    for start in starts(nitems, 2 * STEP) {
        // Of lengths that the compiler knows: what is read and written of them needs no checks.
        let mut parts: [&[u8; 2 * STEP]; T] = [&[0; 2 * STEP]; T];
        for (part, plane) in parts.iter_mut().zip(&planes) {
            *part = &plane[start..start + 2 * STEP].as_chunks().0[0];
        }
        let items = &mut dst[start * width..];
        let items = if WIDE { items } else { &mut items[..2 * STEP * T] };
        for (n, part) in parts.iter().enumerate() {
            prefetch(*part, PLANES_AHEAD);
            prefetch(items, ITEMS_AHEAD + 64 * n);
        }
        for half in [0, STEP] {
            join::<T, { 2 * STEP }, WIDE>(&parts, half, width, &mut items[half * width..]);
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

/// Undo [`shuffle`] for 2, 4, 8 or 16 planes of the same length that may lie apart, or for 16 of wider items, whose first bytes
/// these are; false if there are too few items.
#[target_feature(enable = "avx2")]
pub(super) fn unshuffle_planes(planes: &[&[u8]], width: usize, dst: &mut [u8]) -> bool {
    if planes[0].len() < 2 * STEP {
        return false;
    }
    match planes.len() {
        2 => unshuffle_of::<2, false>(planes, width, dst),
        4 => unshuffle_of::<4, false>(planes, width, dst),
        8 => unshuffle_of::<8, false>(planes, width, dst),
        16 if width == 16 => unshuffle_of::<16, false>(planes, width, dst),
        16 => unshuffle_of::<16, true>(planes, width, dst),
        _ => return false,
    }
    true
}
