//! Widths 2, 4, 8 and 16 with NEON, 16 items at a time: the rounds of `avx512` with smaller vectors.

use std::arch::aarch64::{uint8x16_t, vdupq_n_u8, vld1q_u8, vst1q_u8, vuzp1q_u8, vuzp2q_u8, vzip1q_u8, vzip2q_u8};

use crate::filters::starts;

/// Items handled at a time.
const STEP: usize = 16;

/// The 16 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8], at: usize) -> uint8x16_t {
    let array = &bytes[at..at + 16].as_chunks::<16>().0[0];
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 16 bytes that the load reads.
    unsafe {
        vld1q_u8(array.as_ptr())
    }
}

/// Write 16 bytes from byte `at` on.
#[inline]
#[target_feature(enable = "neon")]
fn store(bytes: &mut [u8], at: usize, value: uint8x16_t) {
    let array = &mut bytes[at..at + 16].as_chunks_mut::<16>().0[0];
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 16 bytes that the store writes.
    unsafe {
        vst1q_u8(array.as_mut_ptr(), value);
    }
}

#[target_feature(enable = "neon")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / T;
    for start in starts(nitems, STEP) {
        let mut rows = [vdupq_n_u8(0); T];
        for (n, row) in rows.iter_mut().enumerate() {
            *row = load(src, start * T + 16 * n);
        }
        for _ in 0..T.ilog2() {
            let mut next = rows;
            for n in 0..T / 2 {
                next[n] = vuzp1q_u8(rows[2 * n], rows[2 * n + 1]);
                next[n + T / 2] = vuzp2q_u8(rows[2 * n], rows[2 * n + 1]);
            }
            rows = next;
        }
        for (j, plane) in rows.iter().enumerate() {
            store(dst, j * nitems + start, *plane);
        }
    }
}

#[target_feature(enable = "neon")]
fn unshuffle_of<const T: usize>(planes: &[&[u8]], dst: &mut [u8]) {
    for start in starts(planes[0].len(), STEP) {
        let mut rows = [vdupq_n_u8(0); T];
        for (row, plane) in rows.iter_mut().zip(planes) {
            *row = load(plane, start);
        }
        for _ in 0..T.ilog2() {
            let mut next = rows;
            for n in 0..T / 2 {
                next[2 * n] = vzip1q_u8(rows[n], rows[n + T / 2]);
                next[2 * n + 1] = vzip2q_u8(rows[n], rows[n + T / 2]);
            }
            rows = next;
        }
        for (n, row) in rows.iter().enumerate() {
            store(dst, start * T + 16 * n, *row);
        }
    }
}

/// Shuffle `src`, whole items of `width` bytes; false if there is no code for the width, or too few items.
#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
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
