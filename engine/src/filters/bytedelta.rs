//! Bytedelta: within each plane, each byte minus the one before it.
//!
//! Meant to follow a shuffle. The planes are equal parts of the block; bytes behind them are copied.
//!
//! Source: docs/format/filters.md, section "Bytedelta".

use crate::cpu::Isa;

/// Encode `nplanes` planes.
pub(super) fn encode(nplanes: usize, src: &[u8], dst: &mut [u8]) {
    let length = src.len() / nplanes;
    let extent = length * nplanes;
    dst[extent..].copy_from_slice(&src[extent..]);
    if length == 0 {
        return;
    }
    for (src, dst) in src[..extent].chunks_exact(length).zip(dst[..extent].chunks_exact_mut(length)) {
        dst[0] = src[0];
        for (out, (this, before)) in dst[1..].iter_mut().zip(src[1..].iter().zip(src)) {
            *out = this.wrapping_sub(*before);
        }
    }
}

/// Undo [`encode`].
pub(super) fn decode(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    let length = src.len() / nplanes;
    let extent = length * nplanes;
    dst[extent..].copy_from_slice(&src[extent..]);
    if length == 0 {
        return;
    }
    for (src, dst) in src[..extent].chunks_exact(length).zip(dst[..extent].chunks_exact_mut(length)) {
        sum(isa, src, dst);
    }
}

/// Undo the first version of the filter, which started anew behind the last whole 16 bytes of a plane.
pub(super) fn decode_old(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    let length = src.len() / nplanes;
    let extent = length * nplanes;
    dst[extent..].copy_from_slice(&src[extent..]);
    if length == 0 {
        return;
    }
    let restart = length - length % 16;
    for (src, dst) in src[..extent].chunks_exact(length).zip(dst[..extent].chunks_exact_mut(length)) {
        sum(isa, &src[..restart], &mut dst[..restart]);
        sum_plain(&src[restart..], &mut dst[restart..], 0);
    }
}

/// Running sums.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "the step from proof to code that needs it"))]
fn sum(isa: Isa, src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        // SAFETY: an `Isa` with AVX2 exists only where detection found AVX2.
        return unsafe { avx2::sum(src, dst) };
    }
    let _ = isa;
    sum_plain(src, dst, 0);
}

fn sum_plain(src: &[u8], dst: &mut [u8], mut carry: u8) {
    for (out, byte) in dst.iter_mut().zip(src) {
        carry = carry.wrapping_add(*byte);
        *out = carry;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! 16 bytes at a time: add the row shifted by 1, 2, 4 and 8, then the last sum before.

    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi8, _mm_slli_si128,
        _mm_storeu_si128,
    };

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 16]) -> __m128i {
        #[expect(unsafe_code, reason = "loading takes a pointer")]
        // SAFETY: the array has the 16 bytes that an unaligned load reads.
        unsafe {
            _mm_loadu_si128(bytes.as_ptr().cast())
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(bytes: &mut [u8; 16], value: __m128i) {
        #[expect(unsafe_code, reason = "storing takes a pointer")]
        // SAFETY: the array has the 16 bytes that an unaligned store writes.
        unsafe {
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), value);
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn sum(src: &[u8], dst: &mut [u8]) {
        let last = _mm_set1_epi8(15);
        let mut carry = _mm_setzero_si128();
        let (rows, rest) = src.as_chunks::<16>();
        let (out, out_rest) = dst.as_chunks_mut::<16>();
        for (row, out) in rows.iter().zip(out.iter_mut()) {
            let mut x = load(row);
            x = _mm_add_epi8(x, _mm_slli_si128::<1>(x));
            x = _mm_add_epi8(x, _mm_slli_si128::<2>(x));
            x = _mm_add_epi8(x, _mm_slli_si128::<4>(x));
            x = _mm_add_epi8(x, _mm_slli_si128::<8>(x));
            let total = _mm_shuffle_epi8(x, last);
            store(out, _mm_add_epi8(x, carry));
            carry = _mm_add_epi8(carry, total);
        }
        super::sum_plain(rest, out_rest, out.last().map_or(0, |row| row[15]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sample;

    #[test]
    fn planes_are_differenced() {
        let mut dst = [0; 8];
        encode(2, &[1, 3, 6, 10, 5, 5, 4, 4], &mut dst);
        assert_eq!(dst, [1, 2, 3, 4, 5, 0, 255, 0]);
    }

    #[test]
    fn every_instruction_set_agrees_with_scalar() {
        for nplanes in [1, 2, 3, 8, 16, 255] {
            for len in (0..300).chain([4099]) {
                let src = sample(len);
                let mut coded = vec![0xAA; len];
                encode(nplanes, &src, &mut coded);
                let mut old = vec![0; len];
                decode_old(Isa::scalar(), nplanes, &coded, &mut old);
                for isa in Isa::available() {
                    let mut back = vec![0xAA; len];
                    decode(isa, nplanes, &coded, &mut back);
                    assert_eq!(back, src, "{} planes {nplanes} len {len}", isa.name());
                    decode_old(isa, nplanes, &coded, &mut back);
                    assert_eq!(back, old, "{} planes {nplanes} len {len}", isa.name());
                }
            }
        }
    }
}
