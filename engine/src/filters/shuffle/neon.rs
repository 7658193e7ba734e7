//! Widths 2, 4, 8 and 16 with NEON: the interleavings of `avx2`, 16 items at a time.

use std::arch::aarch64::{uint8x16_t, vdupq_n_u8, vld1q_u8, vst1q_u8, vzip1q_u8, vzip2q_u8};

/// Items handled at a time.
const STEP: usize = 16;

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    #[expect(unsafe_code, reason = "loading takes a pointer")]
    // SAFETY: the array has the 16 bytes that the load reads.
    unsafe {
        vld1q_u8(bytes.as_ptr())
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(bytes: &mut [u8; 16], value: uint8x16_t) {
    #[expect(unsafe_code, reason = "storing takes a pointer")]
    // SAFETY: the array has the 16 bytes that the store writes.
    unsafe {
        vst1q_u8(bytes.as_mut_ptr(), value);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn interleave<const T: usize>(rows: [uint8x16_t; T]) -> [uint8x16_t; T] {
    let mut out = [vdupq_n_u8(0); T];
    for n in 0..T / 2 {
        out[2 * n] = vzip1q_u8(rows[n], rows[n + T / 2]);
        out[2 * n + 1] = vzip2q_u8(rows[n], rows[n + T / 2]);
    }
    out
}

#[target_feature(enable = "neon")]
fn shuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    for (nstep, items) in src.chunks_exact(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks::<16>();
        let mut rows = [vdupq_n_u8(0); T];
        for (row, piece) in rows.iter_mut().zip(pieces) {
            *row = load(piece);
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

#[target_feature(enable = "neon")]
fn unshuffle_of<const T: usize>(src: &[u8], dst: &mut [u8]) -> usize {
    let nitems = src.len() / T;
    for (nstep, items) in dst.chunks_exact_mut(STEP * T).enumerate() {
        let (pieces, _) = items.as_chunks_mut::<16>();
        let mut rows = [vdupq_n_u8(0); T];
        for (plane, row) in rows.iter_mut().enumerate() {
            if let Some(bytes) = src[plane * nitems + nstep * STEP..].first_chunk() {
                *row = load(bytes);
            }
        }
        for _ in 0..T.ilog2() {
            rows = interleave(rows);
        }
        for (row, piece) in rows.into_iter().zip(pieces) {
            store(piece, row);
        }
    }
    nitems - nitems % STEP
}

/// Shuffle as many items as fit, and say how many.
#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
pub(super) fn unshuffle(width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    match width {
        2 => unshuffle_of::<2>(src, dst),
        4 => unshuffle_of::<4>(src, dst),
        8 => unshuffle_of::<8>(src, dst),
        16 => unshuffle_of::<16>(src, dst),
        _ => 0,
    }
}
