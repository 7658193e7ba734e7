//! Widths 2, 4, 8 and 16 with AVX-512 (VBMI).
//!
//! Take the index of a byte among 64 items of T bytes as a number: upper 6 bits the item, lower bits the byte
//! within it. Shuffling exchanges the two parts. Dealing all bytes out to two halves, even positions first, moves the
//! lowest bit of every index to the top; log2(T) rounds of that shuffle, and as many rounds of the opposite, which
//! interleaves the two halves, unshuffle.

use std::arch::x86_64::{__m512i, _mm512_permutex2var_epi8, _mm512_setzero_si512};

use super::avx2::{ITEMS_AHEAD, PLANES_AHEAD};
use crate::filters::starts;
use crate::filters::x86::{load64, store64};
use crate::prefetch::prefetch;

/// Items handled at a time.
const STEP: usize = 64;

/// The bytes of two vectors in even positions.
const EVEN: [u8; 64] = order(2, 0, 0);
/// The bytes of two vectors in odd positions.
const ODD: [u8; 64] = order(2, 1, 0);
/// The lower halves of two vectors, interleaved.
const LOW: [u8; 64] = order(1, 0, 64);
/// The upper halves of two vectors, interleaved.
const HIGH: [u8; 64] = order(1, 32, 64);

/// Dealing takes every second position in turn; interleaving takes each position here and then `other` positions on.
#[expect(clippy::cast_possible_truncation, reason = "the indices are below 128")]
const fn order(stride: usize, first: usize, other: usize) -> [u8; 64] {
    let mut order = [0; 64];
    let mut n = 0;
    while n < 64 {
        order[n] = if other == 0 { first + stride * n } else { first + n / 2 + n % 2 * other } as u8;
        n += 1;
    }
    order
}

/// 64 items of T bytes, in order, to their T planes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::filters) fn to_planes<const T: usize>(mut rows: [__m512i; T]) -> [__m512i; T] {
    let (even, odd) = (load64(&EVEN, 0), load64(&ODD, 0));
    for _ in 0..T.ilog2() {
        let mut next = rows;
        for n in 0..T / 2 {
            next[n] = _mm512_permutex2var_epi8(rows[2 * n], even, rows[2 * n + 1]);
            next[n + T / 2] = _mm512_permutex2var_epi8(rows[2 * n], odd, rows[2 * n + 1]);
        }
        rows = next;
    }
    rows
}

/// T planes of 64 bytes to 64 items in order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::filters) fn to_items<const T: usize>(mut rows: [__m512i; T]) -> [__m512i; T] {
    let (low, high) = (load64(&LOW, 0), load64(&HIGH, 0));
    for _ in 0..T.ilog2() {
        let mut next = rows;
        for n in 0..T / 2 {
            next[2 * n] = _mm512_permutex2var_epi8(rows[n], low, rows[n + T / 2]);
            next[2 * n + 1] = _mm512_permutex2var_epi8(rows[n], high, rows[n + T / 2]);
        }
        rows = next;
    }
    rows
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / T;
    for start in starts(nitems, STEP) {
        let mut rows = [_mm512_setzero_si512(); T];
        for (n, row) in rows.iter_mut().enumerate() {
            *row = load64(src, start * T + 64 * n);
        }
        for (j, plane) in to_planes(rows).iter().enumerate() {
            store64(dst, j * nitems + start, *plane);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn unshuffle_of<const T: usize>(planes: &[&[u8]], dst: &mut [u8]) {
    let Some(planes) = planes.first_chunk::<T>() else { return };
    for start in starts(planes[0].len(), STEP) {
        let items = &mut dst[start * T..(start + STEP) * T];
        let mut rows = [_mm512_setzero_si512(); T];
        for (n, (row, plane)) in rows.iter_mut().zip(planes).enumerate() {
            *row = load64(plane, start);
            prefetch(plane, start + PLANES_AHEAD);
            prefetch(items, ITEMS_AHEAD + 64 * n);
        }
        for (n, row) in to_items(rows).iter().enumerate() {
            store64(items, 64 * n, *row);
        }
    }
}

/// Shuffle `src`, whole items of `width` bytes; false if there is no code for the width, or too few items.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn shuffle(width: usize, src: &[u8], dst: &mut [u8]) -> bool {
    if src.len() / width < STEP {
        return false;
    }
    match width {
        2 => shuffle_of::<2>(src, dst),
        4 => shuffle_of::<4>(src, dst),
        8 => shuffle_of::<8>(src, dst),
        16 => shuffle_of::<16>(src, dst),
        _ => return false,
    }
    true
}

/// Undo [`shuffle`] for planes of the same length that may lie apart, under the same conditions.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn unshuffle_planes(planes: &[&[u8]], dst: &mut [u8]) -> bool {
    if planes[0].len() < STEP {
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
