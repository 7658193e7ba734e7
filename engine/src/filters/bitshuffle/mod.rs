//! BITSHUFFLE: bit j of every item, for each j.
//!
//! Of an item of T bytes, bit b of byte j goes to plane 8·j + b; item 8·m + k gives bit k of byte m of a plane.
//! So it is [`shuffle`](super::shuffle) followed, for every byte plane, by a transposition of its bits:
//!
//! ```text
//! byte plane  i0 i1 ... i7 | i8 ... i15 | ...        one byte of each item
//! bit planes  bit 0 of i0..i7, bit 0 of i8..i15, ... | bit 1 of i0..i7, ... | ... | bit 7 ...
//! ```
//!
//! Items are taken in eights; the bytes of the others, and those that do not fill an item, are copied to where
//! they were. The byte planes exist only a tile at a time, in a small buffer.
//!
//! Source: `docs/format/chunk.md`, section 8.3.

mod scalar;

use super::shuffle::{shuffle, unshuffle};
use crate::cpu::Isa;

/// What becomes of items beyond the last eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitshuffleRule {
    /// They are copied.
    Current,
    /// Where there are any, everything is copied: chunks of version 2.
    Version2,
}

/// Bytes of byte planes that are kept at a time.
const TILE: usize = 16 << 10;

/// Split `src` into bit planes in `dst`, of the same length, by items of `width` bytes, at most 255.
pub(super) fn bitshuffle(isa: Isa, rule: BitshuffleRule, width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = nitems_in_eights(rule, width, src.len());
    let (items, tail) = src.split_at(nitems * width);
    let (dst, dst_tail) = dst.split_at_mut(nitems * width);
    dst_tail.copy_from_slice(tail);
    if width == 1 {
        return split(isa, items, dst, nitems / 8, 0);
    }
    let mut buffer = [0; TILE];
    let batch = tile_items(width);
    for (ntile, tile) in items.chunks(batch * width).enumerate() {
        let planes = &mut buffer[..tile.len()];
        shuffle(isa, width, tile, planes);
        for (plane, bits) in planes.chunks_exact(tile.len() / width).zip(dst.chunks_exact_mut(nitems)) {
            split(isa, plane, bits, nitems / 8, ntile * batch / 8);
        }
    }
}

/// Undo [`bitshuffle`].
pub(super) fn bitunshuffle(isa: Isa, rule: BitshuffleRule, width: usize, src: &[u8], dst: &mut [u8]) {
    let nitems = nitems_in_eights(rule, width, src.len());
    let (src, tail) = src.split_at(nitems * width);
    let (items, dst_tail) = dst.split_at_mut(nitems * width);
    dst_tail.copy_from_slice(tail);
    if width == 1 {
        return join(isa, src, nitems / 8, 0, items);
    }
    let mut buffer = [0; TILE];
    let batch = tile_items(width);
    for (ntile, tile) in items.chunks_mut(batch * width).enumerate() {
        let planes = &mut buffer[..tile.len()];
        for (plane, bits) in planes.chunks_exact_mut(tile.len() / width).zip(src.chunks_exact(nitems)) {
            join(isa, bits, nitems / 8, ntile * batch / 8, plane);
        }
        unshuffle(isa, width, planes, tile);
    }
}

/// How many items take part.
fn nitems_in_eights(rule: BitshuffleRule, width: usize, length: usize) -> usize {
    let nitems = length / width;
    match rule {
        BitshuffleRule::Version2 if !nitems.is_multiple_of(8) => 0,
        BitshuffleRule::Version2 | BitshuffleRule::Current => nitems / 8 * 8,
    }
}

/// How many items make a tile: a multiple of 32.
const fn tile_items(width: usize) -> usize {
    TILE / width / 32 * 32
}

/// Split a byte plane, a multiple of 8 bytes, into 8 bit planes that are `stride` bytes apart in `dst`; byte
/// `at` is the first to be written in each.
fn split(_isa: Isa, src: &[u8], dst: &mut [u8], stride: usize, at: usize) {
    scalar::split(src, dst, stride, at);
}

/// Undo [`split`]: fill the byte plane `dst` from byte `at` on of 8 bit planes.
fn join(_isa: Isa, src: &[u8], stride: usize, at: usize, dst: &mut [u8]) {
    scalar::join(src, stride, at, dst);
}
