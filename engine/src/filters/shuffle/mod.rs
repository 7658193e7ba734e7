//! SHUFFLE: byte j of every item, for each j.
//!
//! ```text
//! items  a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3      (width 4)
//! out    a0 b0 c0 | a1 b1 c1 | a2 b2 c2 | a3 b3 c3
//! ```
//!
//! Bytes that do not fill an item are copied to where they were.
//!
//! Source: `docs/format/chunk.md`, section 8.2.

mod scalar;

use crate::cpu::Isa;

/// Shuffle `src` into `dst`, of the same length, by items of `width` bytes.
pub(super) fn shuffle(_isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / width * width;
    let (items, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    scalar::shuffle(width, items, dst);
}

/// Undo [`shuffle`].
pub(super) fn unshuffle(_isa: Isa, width: usize, src: &[u8], dst: &mut [u8]) {
    let whole = src.len() / width * width;
    let (planes, tail) = src.split_at(whole);
    let (dst, dst_tail) = dst.split_at_mut(whole);
    dst_tail.copy_from_slice(tail);
    scalar::unshuffle(width, planes, dst);
}
