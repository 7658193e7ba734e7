//! BYTEDELTA: differences of neighbouring bytes.
//!
//! A block is m planes of s bytes, as SHUFFLE leaves them; every plane by itself becomes
//!
//! ```text
//! out[0] = in[0]      out[i] = in[i] - in[i - 1], modulo 256
//! ```
//!
//! Bytes after the last whole plane are copied. The old version of the filter (id 34) restarted in every plane
//! after the last whole 16 bytes, and is only read.
//!
//! Source: docs/format/filters.md, section "Bytedelta".

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use crate::cpu::Isa;

/// Filter `src`, which has `nplanes` planes, into `dst` of the same length.
pub(super) fn forward(nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, scalar::differences);
}

/// Undo [`forward`].
pub(super) fn backward(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, |src, dst| sums(isa, 0, src, dst));
}

/// Undo [`forward`] for a part of a plane: `before` is the uncompressed byte before it.
pub(super) fn backward_part(isa: Isa, before: u8, src: &[u8], dst: &mut [u8]) {
    sums(isa, before, src, dst);
}

/// Undo what the old version did.
pub(super) fn backward_old(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, |src, dst| {
        let restart = src.len() / 16 * 16;
        let (head, rest) = src.split_at(restart);
        let (dst_head, dst_rest) = dst.split_at_mut(restart);
        sums(isa, 0, head, dst_head);
        scalar::sums(0, rest, dst_rest);
    });
}

/// Call `work` with every plane of both sides and copy the rest.
fn for_planes(nplanes: usize, src: &[u8], dst: &mut [u8], mut work: impl FnMut(&[u8], &mut [u8])) {
    let length = src.len() / nplanes;
    let (planes, tail) = src.split_at(length * nplanes);
    let (dst, dst_tail) = dst.split_at_mut(length * nplanes);
    dst_tail.copy_from_slice(tail);
    if length > 0 {
        for (src, dst) in planes.chunks_exact(length).zip(dst.chunks_exact_mut(length)) {
            work(src, dst);
        }
    }
}

/// Running sums of one plane, beginning with `sum`.
fn sums(isa: Isa, sum: u8, src: &[u8], dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        #[expect(unsafe_code, reason = "steps into code for AVX-512")]
        // SAFETY: an `Isa` with AVX-512 exists only where detection found it.
        return unsafe { avx512::sums(sum, src, dst) };
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        #[expect(unsafe_code, reason = "steps into code for AVX2")]
        // SAFETY: an `Isa` with AVX2 exists only where detection found it.
        return unsafe { avx2::sums(sum, src, dst) };
    }
    let _ = isa;
    scalar::sums(sum, src, dst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::{cases, on_every_isa};

    /// The definition; `restart` is the index at which every plane begins anew.
    fn model(nplanes: usize, src: &[u8], restart: impl Fn(usize) -> usize) -> Vec<u8> {
        let length = src.len() / nplanes;
        let mut out = src.to_vec();
        for plane in 0..nplanes {
            for i in (1..length).filter(|i| *i != restart(length)) {
                out[plane * length + i] = src[plane * length + i].wrapping_sub(src[plane * length + i - 1]);
            }
        }
        out
    }

    #[test]
    fn every_version_takes_differences_by_the_definition_and_back() {
        for nplanes in [1, 2, 3, 4, 7, 8, 16, 24, 255, 1000] {
            cases(nplanes, |src, at| {
                let expected = model(nplanes, src, |_| 0);
                on_every_isa(|isa| {
                    let mut out = vec![0xA5; at + src.len()];
                    forward(nplanes, src, &mut out[at..]);
                    assert_eq!(out[at..], expected, "{} planes {nplanes} length {}", isa.name(), src.len());
                    let mut back = vec![0x5A; at + src.len()];
                    backward(isa, nplanes, &out[at..], &mut back[at..]);
                    assert_eq!(back[at..], *src, "{} planes {nplanes} length {}", isa.name(), src.len());
                });
            });
        }
    }

    #[test]
    fn the_old_version_restarts_after_the_last_whole_16_bytes() {
        for nplanes in [1, 2, 3, 8, 16, 255] {
            cases(nplanes, |src, at| {
                let out = model(nplanes, src, |length| length / 16 * 16);
                on_every_isa(|isa| {
                    let mut back = vec![0x5A; at + src.len()];
                    backward_old(isa, nplanes, &out, &mut back[at..]);
                    assert_eq!(back[at..], *src, "{} planes {nplanes} length {}", isa.name(), src.len());
                });
            });
        }
    }
}
