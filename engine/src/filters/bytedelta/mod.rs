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
//! Source: `docs/format/chunk.md`, section 8.7.

mod scalar;

use crate::cpu::Isa;

/// Filter `src`, which has `nplanes` planes, into `dst` of the same length.
pub(super) fn forward(_isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, scalar::differences);
}

/// Undo [`forward`].
pub(super) fn backward(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, |src, dst| sums(isa, src, dst));
}

/// Undo what the old version did.
pub(super) fn backward_old(isa: Isa, nplanes: usize, src: &[u8], dst: &mut [u8]) {
    for_planes(nplanes, src, dst, |src, dst| {
        let restart = src.len() / 16 * 16;
        let (head, rest) = src.split_at(restart);
        let (dst_head, dst_rest) = dst.split_at_mut(restart);
        sums(isa, head, dst_head);
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

/// Running sums of one plane.
fn sums(_isa: Isa, src: &[u8], dst: &mut [u8]) {
    scalar::sums(0, src, dst);
}
