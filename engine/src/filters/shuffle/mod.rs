//! Shuffle: byte j of every item, for each j.
//!
//! ```text
//! items  a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3      (width 4)
//! out    a0 b0 c0 | a1 b1 c1 | a2 b2 c2 | a3 b3 c3
//! ```
//!
//! Bytes that do not fill an item are copied to where they were.
//!
//! Source: docs/format/filters.md, section "Shuffle".

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(in crate::filters) mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::cpu::Isa;

/// Shuffle `src` into `dst`, of the same length, by items of `width` bytes.
pub(super) fn shuffle(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / width;
    let (items, tail) = src.split_at(nitems * width);
    let (dst, dst_tail) = dst.split_at_mut(nitems * width);
    dst_tail.copy_from_slice(tail);
    let done = shuffle_fast(isa, width, items, dst);
    scalar::shuffle(width, items, dst, done);
}

/// Undo [`shuffle`].
pub(super) fn unshuffle(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = src.len() / width;
    let (items, tail) = src.split_at(nitems * width);
    let (dst, dst_tail) = dst.split_at_mut(nitems * width);
    dst_tail.copy_from_slice(tail);
    let done = unshuffle_fast(isa, width, items, dst);
    scalar::unshuffle(width, items, dst, done);
}

/// Shuffle as many of the first items as the instruction set has a kernel for, and say how many.
#[expect(unsafe_code, reason = "the step from the proof that the CPU can to the code that needs it")]
fn shuffle_fast(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        // SAFETY: an `Isa` with AVX-512 exists only where detection found all of it.
        return unsafe { avx512::shuffle(width, src, dst) };
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2.
        return unsafe { avx2::shuffle(width, src, dst) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.has_neon() {
        // SAFETY: an `Isa` with NEON exists only where detection found NEON.
        return unsafe { neon::shuffle(width, src, dst) };
    }
    let _ = (isa, width, src, dst);
    0
}

/// The same for unshuffling.
#[expect(unsafe_code, reason = "the step from the proof that the CPU can to the code that needs it")]
fn unshuffle_fast(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        // SAFETY: an `Isa` with AVX-512 exists only where detection found all of it.
        return unsafe { avx512::unshuffle(width, src, dst) };
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2.
        return unsafe { avx2::unshuffle(width, src, dst) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.has_neon() {
        // SAFETY: an `Isa` with NEON exists only where detection found NEON.
        return unsafe { neon::unshuffle(width, src, dst) };
    }
    let _ = (isa, width, src, dst);
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sample;

    #[test]
    fn bytes_of_items_are_gathered() {
        let src: Vec<u8> = (0..10).collect();
        let mut dst = vec![0; 10];
        shuffle(Isa::scalar(), 4, &src, &mut dst);
        assert_eq!(dst, [0, 4, 1, 5, 2, 6, 3, 7, 8, 9]);
    }

    #[test]
    fn every_instruction_set_agrees_with_scalar() {
        for width in (1..=33).chain([48, 64, 100, 255]) {
            for len in (0..300).chain([1000, 4096, 5000, 16387]) {
                let src = sample(len);
                let mut expected = vec![0; len];
                shuffle(Isa::scalar(), width, &src, &mut expected);
                for isa in Isa::available() {
                    let mut shuffled = vec![0xAA; len];
                    shuffle(isa, width, &src, &mut shuffled);
                    assert_eq!(shuffled, expected, "{} width {width} len {len}", isa.name());
                    let mut back = vec![0xAA; len];
                    unshuffle(isa, width, &shuffled, &mut back);
                    assert_eq!(back, src, "{} width {width} len {len}", isa.name());
                }
            }
        }
    }

    #[test]
    fn alignment_does_not_matter() {
        for width in [2, 4, 8, 16] {
            let src = sample(4200);
            for from in 0..64 {
                let src = &src[from..from + 4099];
                let mut expected = vec![0; src.len()];
                shuffle(Isa::scalar(), width, src, &mut expected);
                for isa in Isa::available() {
                    let mut room = vec![0; src.len() + 64];
                    shuffle(isa, width, src, &mut room[64 - from..][..src.len()]);
                    assert_eq!(room[64 - from..][..src.len()], expected);
                    let mut back = vec![0; src.len() + 64];
                    unshuffle(isa, width, &room[64 - from..][..src.len()], &mut back[from..][..src.len()]);
                    assert_eq!(&back[from..][..src.len()], src);
                }
            }
        }
    }
}
