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
//! they were. The byte planes exist only a tile at a time, in a small buffer; with AVX2, bit planes
//! become items in one pass, in the columns of [`shuffle`](super::shuffle) where the width is no power of two.
//!
//! Source: docs/format/filters.md, section "Bitshuffle".

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

#[cfg(target_arch = "x86_64")]
use super::shuffle::columns::{self, Column};
#[cfg(target_arch = "x86_64")]
use super::shuffle::{MAX_PLANES, may_lie_apart};
use super::shuffle::{shuffle, unshuffle};
#[cfg(target_arch = "x86_64")]
use super::starts;
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
const TILE: usize = 8 << 10;

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
    if nitems > 0 {
        join_planes(isa, width, &src.chunks_exact(nitems), items);
    }
}

/// Undo [`bitshuffle`] of whole eights of items. Every plane is a slice of its own, wherever it is: the eight bit planes of one byte of
/// all items.
pub(super) fn join_planes<'a>(
    isa: Isa,
    width: usize,
    planes: &(impl Iterator<Item = &'a [u8]> + Clone),
    items: &mut [u8],
) {
    if join_items(isa, width, planes, items) {
        return;
    }
    let stride = items.len() / width / 8;
    let mut buffer = [0; TILE];
    let batch = tile_items(width);
    for (ntile, tile) in items.chunks_mut(batch * width).enumerate() {
        let scratch = &mut buffer[..tile.len()];
        for (plane, bits) in scratch.chunks_exact_mut(tile.len() / width).zip(planes.clone()) {
            join(isa, bits, stride, ntile * batch / 8, plane);
        }
        unshuffle(isa, width, scratch, tile);
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
fn split(isa: Isa, src: &[u8], dst: &mut [u8], stride: usize, at: usize) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        #[expect(unsafe_code, reason = "steps into code for AVX-512")]
        // SAFETY: an `Isa` with AVX-512 and GFNI exists only where detection found them.
        let done = unsafe { avx512::split(src, dst, stride, at) };
        if done {
            return;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        #[expect(unsafe_code, reason = "steps into code for AVX2")]
        // SAFETY: an `Isa` with AVX2 exists only where detection found it.
        let done = unsafe { avx2::split(src, dst, stride, at) };
        if done {
            return;
        }
    }
    let _ = isa;
    scalar::split(src, dst, stride, at);
}

/// Undo [`split`]: fill the byte plane `dst` from byte `at` on of 8 bit planes.
fn join(isa: Isa, src: &[u8], stride: usize, at: usize, dst: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx512() {
        #[expect(unsafe_code, reason = "steps into code for AVX-512")]
        // SAFETY: an `Isa` with AVX-512 and GFNI exists only where detection found them.
        let done = unsafe { avx512::join(src, stride, at, dst) };
        if done {
            return;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if isa.has_avx2() {
        #[expect(unsafe_code, reason = "steps into code for AVX2")]
        // SAFETY: an `Isa` with AVX2 exists only where detection found it.
        let done = unsafe { avx2::join(src, stride, at, dst) };
        if done {
            return;
        }
    }
    let _ = isa;
    scalar::join(src, stride, at, dst);
}

/// Do what [`join_planes`] does in one pass; false if there is no code for that, too few items, or better code for bits and
/// bytes apart.
#[cfg(target_arch = "x86_64")]
fn join_items<'a>(isa: Isa, width: usize, planes: &(impl Iterator<Item = &'a [u8]> + Clone), dst: &mut [u8]) -> bool {
    let nitems = dst.len() / width;
    let direct = may_lie_apart(width);
    if !isa.has_avx2() || nitems < avx2::ITEMS || (direct && isa.has_avx512()) {
        return false;
    }
    if direct {
        let whole = Column { at: 0, nplanes: width, piece: width };
        join_column(isa, whole, planes.clone(), nitems / 8, 0, width, dst);
        return true;
    }
    let mut pieces: columns::Pieces = [0; columns::TILE * MAX_PLANES];
    for start in starts(nitems, avx2::ITEMS) {
        for column in columns::columns(width) {
            let planes = planes.clone().skip(column.at);
            let items = &mut dst[start * width..(start + avx2::ITEMS) * width];
            if column.goes_straight(width) {
                join_column(isa, column, planes, nitems / 8, start / 8, width, &mut items[column.at..]);
            } else {
                let pieces = &mut pieces[..avx2::ITEMS * column.piece];
                join_column(isa, column, planes, nitems / 8, start / 8, column.piece, pieces);
                column.put(pieces, width, items);
            }
        }
    }
    true
}

#[cfg(not(target_arch = "x86_64"))]
fn join_items<'a>(_: Isa, _: usize, _: &(impl Iterator<Item = &'a [u8]> + Clone), _: &mut [u8]) -> bool {
    false
}

/// Fill a column from byte `at` on of its bit planes, each of `stride` bytes. The items of `dst` have `width` bytes: those of its
/// pieces, or more if it goes straight to its place.
#[cfg(target_arch = "x86_64")]
fn join_column<'a>(
    isa: Isa,
    column: Column,
    planes: impl Iterator<Item = &'a [u8]>,
    stride: usize,
    at: usize,
    width: usize,
    dst: &mut [u8],
) {
    let mut list: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
    for (slot, plane) in list[..column.nplanes].iter_mut().zip(planes) {
        *slot = plane;
    }
    let join = match column.piece {
        2 => avx2::join_items::<2, false>,
        4 => avx2::join_items::<4, false>,
        8 => avx2::join_items::<8, false>,
        16 if width == 16 => avx2::join_items::<16, false>,
        _ => avx2::join_items::<16, true>,
    };
    assert!(isa.has_avx2());
    #[expect(unsafe_code, reason = "steps into code for AVX2")]
    // SAFETY: an `Isa` with AVX2 exists only where detection found it.
    unsafe {
        join(&list[..column.nplanes], stride, at, width, dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::testing::{cases, on_every_isa};

    /// The definition.
    fn model(rule: BitshuffleRule, width: usize, src: &[u8]) -> Vec<u8> {
        let nitems = src.len() / width;
        let taking_part = nitems / 8 * 8;
        let mut out = src.to_vec();
        if rule == BitshuffleRule::Version2 && nitems != taking_part {
            return out;
        }
        out[..taking_part * width].fill(0);
        for i in 0..taking_part {
            for bit in 0..8 * width {
                let value = src[i * width + bit / 8] >> (bit % 8) & 1;
                out[bit * taking_part / 8 + i / 8] |= value << (i % 8);
            }
        }
        out
    }

    fn check(rule: BitshuffleRule, width: usize) {
        cases(width, |src, at| {
            let expected = model(rule, width, src);
            on_every_isa(|isa| {
                let mut shuffled = vec![0xA5; at + src.len()];
                bitshuffle(isa, rule, width, src, &mut shuffled[at..]);
                assert_eq!(shuffled[at..], expected, "{} width {width} length {}", isa.name(), src.len());
                let mut back = vec![0x5A; at + src.len()];
                bitunshuffle(isa, rule, width, &shuffled[at..], &mut back[at..]);
                assert_eq!(back[at..], *src, "{} width {width} length {}", isa.name(), src.len());
            });
        });
    }

    #[test]
    fn every_version_splits_bits_by_the_definition_and_back() {
        for width in (1..=9).chain([12, 15, 16, 17, 24, 32, 64, 100, 255]) {
            check(BitshuffleRule::Current, width);
        }
    }

    #[test]
    fn planes_that_lie_apart_come_together() {
        for width in [2, 4, 8, 16] {
            for nitems in [8, 64, 248, 256, 264, 2000] {
                let src = crate::filters::testing::noise(nitems * width);
                let split = model(BitshuffleRule::Current, width, &src);
                let scratch: Vec<Vec<u8>> = split
                    .chunks_exact(nitems)
                    .enumerate()
                    .map(|(j, plane)| [&vec![0xA5; 3 * j], plane].concat())
                    .collect();
                let planes = scratch.iter().enumerate().map(|(j, scratch)| &scratch[3 * j..]);
                on_every_isa(|isa| {
                    let mut back = vec![0x5A; src.len()];
                    join_planes(isa, width, &planes, &mut back);
                    assert_eq!(back, src, "{} width {width} items {nitems}", isa.name());
                });
            }
        }
    }

    #[test]
    fn version_2_is_all_or_nothing() {
        for width in [1, 2, 3, 4, 7, 8, 16] {
            check(BitshuffleRule::Version2, width);
        }
    }

    #[test]
    fn the_examples_of_the_format_page_come_out() {
        let plain: Vec<u8> = (0..16).collect();
        let mut out = [0; 16];
        bitshuffle(Isa::detect(), BitshuffleRule::Current, 2, &plain, &mut out);
        assert_eq!(out, [0, 0xAA, 0xCC, 0xF0, 0, 0, 0, 0, 0xFF, 0xAA, 0xCC, 0xF0, 0, 0, 0, 0]);
        let mut out = [0; 11];
        bitshuffle(Isa::detect(), BitshuffleRule::Current, 1, &plain[..11], &mut out);
        assert_eq!(out, [0xAA, 0xCC, 0xF0, 0, 0, 0, 0, 0, 8, 9, 10]);
    }

    #[test]
    fn blocks_of_several_tiles_come_out() {
        for width in [1, 2, 3, 4, 8, 16, 31] {
            let src = crate::filters::testing::noise(3 * TILE + 1000);
            let expected = model(BitshuffleRule::Current, width, &src);
            on_every_isa(|isa| {
                let mut out = vec![0; src.len()];
                bitshuffle(isa, BitshuffleRule::Current, width, &src, &mut out);
                assert_eq!(out, expected, "{} width {width}", isa.name());
                let mut back = vec![0; src.len()];
                bitunshuffle(isa, BitshuffleRule::Current, width, &out, &mut back);
                assert_eq!(back, src, "{} width {width}", isa.name());
            });
        }
    }
}
