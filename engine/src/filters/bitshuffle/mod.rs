//! Bitshuffle: bit k of byte j of every item, for each j and k.
//!
//! It is three steps, and each undoes itself or has an inverse here already:
//!
//! ```text
//! shuffle           item bytes  ->  one plane for each byte of an item
//! transpose bits    within 8 bytes of a plane: byte k gets bit k of each of them
//! shuffle by 8      of a plane  ->  8 planes of bits
//! ```
//!
//! It works on a multiple of 8 items; the bytes behind them are copied to where they were.
//!
//! Source: docs/format/filters.md, section "Bitshuffle".

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::shuffle::{shuffle, unshuffle};
use crate::cpu::Isa;

/// How many items of a block take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitshuffleRule {
    /// As many as make a multiple of 8.
    Current,
    /// All, or none if they are no multiple of 8: chunks of version 2.
    Version2,
}

impl BitshuffleRule {
    /// Bytes at the start of a block of `len` bytes that take part.
    fn extent(self, typesize: usize, len: usize) -> usize {
        let nitems = len / typesize;
        match self {
            Self::Current => (nitems - nitems % 8) * typesize,
            Self::Version2 if nitems.is_multiple_of(8) => nitems * typesize,
            Self::Version2 => 0,
        }
    }
}

/// Bitshuffle `src` into `dst`; `temp` is of the same length and ends up as anything.
pub(super) fn bitshuffle(isa: Isa, rule: BitshuffleRule, typesize: usize, src: &[u8], dst: &mut [u8], temp: &mut [u8]) {
    let extent = rule.extent(typesize, src.len());
    let (src, tail) = src.split_at(extent);
    let (dst, dst_tail) = dst.split_at_mut(extent);
    dst_tail.copy_from_slice(tail);
    let temp = &mut temp[..extent];
    if extent == 0 {
        return;
    }
    if typesize > 1 {
        shuffle(isa, typesize, src, temp);
        if !fused(isa, typesize, temp, dst) {
            transpose_in_place(isa, temp);
            split_bits(isa, typesize, temp, dst);
        }
    } else if !fused(isa, typesize, src, dst) {
        transpose(isa, src, temp);
        split_bits(isa, typesize, temp, dst);
    }
}

/// Undo [`bitshuffle`].
pub(super) fn bitunshuffle(
    isa: Isa,
    rule: BitshuffleRule,
    typesize: usize,
    src: &[u8],
    dst: &mut [u8],
    temp: &mut [u8],
) {
    let extent = rule.extent(typesize, src.len());
    let (src, tail) = src.split_at(extent);
    let (dst, dst_tail) = dst.split_at_mut(extent);
    dst_tail.copy_from_slice(tail);
    let temp = &mut temp[..extent];
    if extent == 0 {
        return;
    }
    if typesize > 1 {
        if !unfused(isa, typesize, src, temp) {
            join_bits(isa, typesize, src, temp);
            transpose_in_place(isa, temp);
        }
        unshuffle(isa, typesize, temp, dst);
    } else if !unfused(isa, typesize, src, dst) {
        join_bits(isa, typesize, src, temp);
        transpose(isa, temp, dst);
    }
}

/// Shuffle each of the `nplanes` planes by 8.
fn split_bits(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    let length = src.len() / nplanes;
    for (src, dst) in src.chunks_exact(length).zip(dst.chunks_exact_mut(length)) {
        shuffle(isa, 8, src, dst);
    }
}

fn join_bits(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    let length = src.len() / nplanes;
    for (src, dst) in src.chunks_exact(length).zip(dst.chunks_exact_mut(length)) {
        unshuffle(isa, 8, src, dst);
    }
}

/// Transpose the matrix of 8 x 8 bits that 8 bytes are.
#[inline]
pub(super) const fn transpose_bits(mut x: u64) -> u64 {
    let swapped = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    x ^= swapped ^ (swapped << 7);
    let swapped = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    x ^= swapped ^ (swapped << 14);
    let swapped = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ swapped ^ (swapped << 28)
}

#[inline]
fn transpose_plain(src: &[u8], dst: &mut [u8]) {
    let (src, _) = src.as_chunks::<8>();
    let (dst, _) = dst.as_chunks_mut::<8>();
    for (src, dst) in src.iter().zip(dst) {
        *dst = transpose_bits(u64::from_le_bytes(*src)).to_le_bytes();
    }
}

#[inline]
fn transpose_in_place_plain(bytes: &mut [u8]) {
    let (bytes, _) = bytes.as_chunks_mut::<8>();
    for eight in bytes {
        *eight = transpose_bits(u64::from_le_bytes(*eight)).to_le_bytes();
    }
}

/// The plain loops, compiled for wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transpose_avx2(src: &[u8], dst: &mut [u8]) {
    transpose_plain(src, dst);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn transpose_in_place_avx2(bytes: &mut [u8]) {
    transpose_in_place_plain(bytes);
}

#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the step from proof to code that needs it"))]
fn transpose(isa: Isa, src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2.
        return unsafe { transpose_avx2(src, dst) };
    }
    let _ = isa;
    transpose_plain(src, dst);
}

#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the step from proof to code that needs it"))]
fn transpose_in_place(isa: Isa, bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2.
        return unsafe { transpose_in_place_avx2(bytes) };
    }
    let _ = isa;
    transpose_in_place_plain(bytes);
}

/// Turn planes of bytes into planes of bits in one pass, where the machine can.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the step from proof to code that needs it"))]
fn fused(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        let length = src.len() / nplanes;
        for (src, dst) in src.chunks_exact(length).zip(dst.chunks_exact_mut(length)) {
            // SAFETY: an `Isa` with AVX-512 exists only where detection found all of it.
            unsafe { avx512::split(src, dst) };
        }
        return true;
    }
    let _ = (isa, nplanes, src, dst);
    false
}

/// The inverse of [`fused`].
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the step from proof to code that needs it"))]
fn unfused(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        let length = src.len() / nplanes;
        for (src, dst) in src.chunks_exact(length).zip(dst.chunks_exact_mut(length)) {
            // SAFETY: an `Isa` with AVX-512 exists only where detection found all of it.
            unsafe { avx512::join(src, dst) };
        }
        return true;
    }
    let _ = (isa, nplanes, src, dst);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sample;

    /// The definition, bit by bit.
    fn slow(rule: BitshuffleRule, typesize: usize, src: &[u8]) -> Vec<u8> {
        let mut dst = src.to_vec();
        let extent = rule.extent(typesize, src.len());
        dst[..extent].fill(0);
        let nitems = extent / typesize;
        for item in 0..nitems {
            for bit in 0..8 * typesize {
                let value = (src[item * typesize + bit / 8] >> (bit % 8)) & 1;
                dst[bit * (nitems / 8) + item / 8] |= value << (item % 8);
            }
        }
        dst
    }

    #[test]
    fn bits_of_items_are_gathered() {
        let src: Vec<u8> = (0..16).collect();
        let (mut dst, mut temp) = (vec![0; 16], vec![0; 16]);
        bitshuffle(Isa::scalar(), BitshuffleRule::Current, 2, &src, &mut dst, &mut temp);
        assert_eq!(dst, [0, 0xAA, 0xCC, 0xF0, 0, 0, 0, 0, 0xFF, 0xAA, 0xCC, 0xF0, 0, 0, 0, 0]);
        let src: Vec<u8> = (0..11).collect();
        let (mut dst, mut temp) = (vec![0; 11], vec![0; 11]);
        bitshuffle(Isa::scalar(), BitshuffleRule::Current, 1, &src, &mut dst, &mut temp);
        assert_eq!(dst, [0xAA, 0xCC, 0xF0, 0, 0, 0, 0, 0, 8, 9, 10]);
    }

    #[test]
    fn every_instruction_set_agrees_with_the_definition() {
        for rule in [BitshuffleRule::Current, BitshuffleRule::Version2] {
            for typesize in [1, 2, 3, 4, 7, 8, 12, 16, 33, 255] {
                for len in (0..150).chain([512, 1000, 4096, 4103, 10_000, 16_387]) {
                    let src = sample(len);
                    let expected = slow(rule, typesize, &src);
                    for isa in Isa::available() {
                        let (mut dst, mut temp) = (vec![0xAA; len], vec![0; len]);
                        bitshuffle(isa, rule, typesize, &src, &mut dst, &mut temp);
                        assert_eq!(dst, expected, "{} typesize {typesize} len {len}", isa.name());
                        let mut back = vec![0xAA; len];
                        bitunshuffle(isa, rule, typesize, &dst, &mut back, &mut temp);
                        assert_eq!(back, src, "{} typesize {typesize} len {len}", isa.name());
                    }
                }
            }
        }
    }
}
