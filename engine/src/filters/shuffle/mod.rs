//! SHUFFLE: byte j of every item, for each j.
//!
//! ```text
//! items  a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3      (width 4)
//! out    a0 b0 c0 | a1 b1 c1 | a2 b2 c2 | a3 b3 c3
//! ```
//!
//! Bytes that do not fill an item are copied to where they were.
//!
//! Source: docs/format/filters.md, section "Shuffle".

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod columns;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::cpu::Isa;

/// Shuffle `src` into `dst`, of the same length, by items of `width` bytes.
pub(super) fn shuffle(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / width * width;
    let (items, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    if !shuffle_fast(isa, width, items, dst) {
        scalar::shuffle(width, items, dst);
    }
}

/// Undo [`shuffle`].
pub(super) fn unshuffle(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / width * width;
    let (planes, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    let nitems = whole / width;
    if nitems == 0 {
        return;
    }
    if width == 1 {
        dst.copy_from_slice(planes);
    } else if may_lie_apart(width) {
        let mut list = [&planes[..0]; MAX_PLANES];
        for (slot, plane) in list.iter_mut().zip(planes.chunks_exact(nitems)) {
            *slot = plane;
        }
        unshuffle_planes(isa, &list[..width], dst);
    } else if isa == Isa::scalar() {
        scalar::unshuffle(width, &planes.chunks_exact(nitems), dst);
    } else {
        columns::unshuffle(isa, width, planes, dst);
    }
}

/// The most planes that [`unshuffle_planes`] takes.
pub const MAX_PLANES: usize = 16;

/// Whether there is code for items of `width` bytes whose planes may lie apart.
pub(super) const fn may_lie_apart(width: usize) -> bool {
    matches!(width, 2 | 4 | 8 | 16)
}

/// Undo [`shuffle`] for 2, 4, 8 or 16 planes of the same length, wherever they are; `dst` takes all their bytes.
pub fn unshuffle_planes(isa: Isa, planes: &[&[u8]], dst: &mut [u8]) {
    if !unshuffle_planes_fast(isa, planes, planes.len(), dst) {
        scalar::unshuffle(planes.len(), &planes.iter().copied(), dst);
    }
}

/// Shuffle whole items with the best version that can; false if none can.
fn shuffle_fast(isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        #[expect(unsafe_code, reason = "steps into code for AVX-512")]
        // SAFETY: an `Isa` with AVX-512 exists only where detection found it.
        let done = unsafe { avx512::shuffle(width, src, dst) };
        if done {
            return true;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        #[expect(unsafe_code, reason = "steps into code for AVX2")]
        // SAFETY: an `Isa` with AVX2 exists only where detection found it.
        return unsafe { avx2::shuffle(width, src, dst) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa.has_neon() {
        #[expect(unsafe_code, reason = "steps into code for NEON")]
        // SAFETY: an `Isa` with NEON exists only where detection found it.
        return unsafe { neon::shuffle(width, src, dst) };
    }
    let _ = (isa, width, src, dst);
    false
}

/// Unshuffle planes with the best version that can, into items of their number or, if that is 16, of more bytes; false if none can.
fn unshuffle_planes_fast(isa: Isa, planes: &[&[u8]], width: usize, dst: &mut [u8]) -> bool {
    let whole = planes.len() == width;
    #[cfg(target_arch = "x86_64")]
    if whole && isa.has_avx512() {
        #[expect(unsafe_code, reason = "steps into code for AVX-512")]
        // SAFETY: an `Isa` with AVX-512 exists only where detection found it.
        let done = unsafe { avx512::unshuffle_planes(planes, dst) };
        if done {
            return true;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        #[expect(unsafe_code, reason = "steps into code for AVX2")]
        // SAFETY: an `Isa` with AVX2 exists only where detection found it.
        return unsafe { avx2::unshuffle_planes(planes, width, dst) };
    }
    #[cfg(target_arch = "aarch64")]
    if whole && isa.has_neon() {
        #[expect(unsafe_code, reason = "steps into code for NEON")]
        // SAFETY: an `Isa` with NEON exists only where detection found it.
        return unsafe { neon::unshuffle_planes(planes, dst) };
    }
    let _ = (isa, whole, dst);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::{cases, on_every_isa};

    /// The definition.
    fn model(width: usize, src: &[u8]) -> Vec<u8> {
        let nitems = src.len() / width;
        let mut out = src.to_vec();
        for i in 0..nitems {
            for j in 0..width {
                out[j * nitems + i] = src[i * width + j];
            }
        }
        out
    }

    #[test]
    fn every_version_shuffles_by_the_definition_and_back() {
        for width in (1..=20).chain([24, 31, 32, 33, 48, 100, 128, 200, 255]) {
            cases(width, |src, at| {
                let expected = model(width, src);
                on_every_isa(|isa| {
                    let mut shuffled = vec![0xA5; at + src.len()];
                    shuffle(isa, width, src, &mut shuffled[at..]);
                    assert_eq!(shuffled[at..], expected, "{} width {width} length {}", isa.name(), src.len());
                    let mut back = vec![0x5A; at + src.len()];
                    unshuffle(isa, width, &shuffled[at..], &mut back[at..]);
                    assert_eq!(back[at..], *src, "{} width {width} length {}", isa.name(), src.len());
                });
            });
        }
    }

    #[test]
    fn planes_that_lie_apart_come_together() {
        for width in [2, 4, 8, 16] {
            assert!(may_lie_apart(width));
            cases(width, |src, at| {
                let nitems = src.len() / width;
                let shuffled = model(width, src);
                let room: Vec<Vec<u8>> = (0..width)
                    .map(|j| [&vec![0xA5; at + 3 * j][..], &shuffled[j * nitems..(j + 1) * nitems]].concat())
                    .collect();
                let planes: Vec<&[u8]> = room.iter().enumerate().map(|(j, room)| &room[at + 3 * j..]).collect();
                on_every_isa(|isa| {
                    let mut back = vec![0x5A; at + nitems * width];
                    unshuffle_planes(isa, &planes, &mut back[at..]);
                    assert_eq!(back[at..], src[..nitems * width], "{} width {width} items {nitems}", isa.name());
                });
            });
        }
    }
}
