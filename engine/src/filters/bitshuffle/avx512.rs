//! Planes of bytes to planes of bits and back, with AVX-512 and GFNI.
//!
//! One instruction multiplies matrices of 8 x 8 bits; with the unit matrix on one side it transposes the other,
//! read from its last byte to its first. 512 bytes of a plane make 8 registers of 8 such matrices, whose bytes
//! are then distributed as in `shuffle`.

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
};

use super::transpose_bits;
use crate::filters::shuffle::avx512::{load, store, transpose};

/// Bytes of a plane handled at a time.
const STEP: usize = 512;
/// Row i of the unit matrix has bit i set.
const UNIT: i64 = 0x8040_2010_0804_0201_u64.cast_signed();

/// Reverse the bytes of each matrix.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 64")]
const REVERSE: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = (at - at % 8 + 7 - at % 8) as u8;
        at += 1;
    }
    places
};

/// Byte k of matrix m goes to byte m of cell k.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 64")]
const GATHER: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ((at % 8) * 8 + at / 8) as u8;
        at += 1;
    }
    places
};

/// The same and back, with the bytes of each matrix reversed.
#[expect(clippy::cast_possible_truncation, reason = "the numbers are below 64")]
const SCATTER: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ((7 - at % 8) * 8 + at / 8) as u8;
        at += 1;
    }
    places
};

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
fn transpose_matrices(reversed: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(UNIT), reversed)
}

/// Turn a plane of bytes into 8 planes of bits; its length is a multiple of 8.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn split(src: &[u8], dst: &mut [u8]) {
    let stride = src.len() / 8;
    let (reverse, gather) = (load(&REVERSE), load(&GATHER));
    for (nstep, bytes) in src.chunks_exact(STEP).enumerate() {
        let (pieces, _) = bytes.as_chunks::<64>();
        let mut rows = [_mm512_setzero_si512(); 8];
        for (row, piece) in rows.iter_mut().zip(pieces) {
            let bits = transpose_matrices(_mm512_permutexvar_epi8(reverse, load(piece)));
            *row = _mm512_permutexvar_epi8(gather, bits);
        }
        transpose(&mut rows);
        for (plane, row) in rows.into_iter().enumerate() {
            if let Some(out) = dst[plane * stride + nstep * 64..].first_chunk_mut() {
                store(out, row);
            }
        }
    }
    let (matrices, _) = src.as_chunks::<8>();
    for (m, matrix) in matrices.iter().enumerate().skip(src.len() / STEP * 64) {
        let bits = transpose_bits(u64::from_le_bytes(*matrix)).to_le_bytes();
        for (plane, byte) in bits.into_iter().enumerate() {
            dst[plane * stride + m] = byte;
        }
    }
}

/// Undo [`split`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,gfni")]
pub(super) fn join(src: &[u8], dst: &mut [u8]) {
    let stride = src.len() / 8;
    let scatter = load(&SCATTER);
    for (nstep, bytes) in dst.chunks_exact_mut(STEP).enumerate() {
        let (pieces, _) = bytes.as_chunks_mut::<64>();
        let mut rows = [_mm512_setzero_si512(); 8];
        for (plane, row) in rows.iter_mut().enumerate() {
            if let Some(bits) = src[plane * stride + nstep * 64..].first_chunk() {
                *row = load(bits);
            }
        }
        transpose(&mut rows);
        for (row, piece) in rows.into_iter().zip(pieces) {
            store(piece, transpose_matrices(_mm512_permutexvar_epi8(scatter, row)));
        }
    }
    let done = dst.len() / STEP * 64;
    let (matrices, _) = dst.as_chunks_mut::<8>();
    for (m, matrix) in matrices.iter_mut().enumerate().skip(done) {
        let mut bits = [0; 8];
        for (plane, byte) in bits.iter_mut().enumerate() {
            *byte = src[plane * stride + m];
        }
        *matrix = transpose_bits(u64::from_le_bytes(bits)).to_le_bytes();
    }
}
