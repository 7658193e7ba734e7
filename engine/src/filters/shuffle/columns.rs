//! Items whose width is no power of two, or above 16: joined from their planes in columns of 2, 4, 8 or 16 bytes.
//!
//! ```text
//! width 20  |................|....|     a column of 16 and one of 4
//! width 23  |................|.......|  a column of 16 and one of 8, which have a byte in common
//! width  7  |.......|.                  a column of 8, which reaches into the next item
//! ```
//!
//! A column's bytes are first joined to pieces side by side, a tile of items at a time, and then put into the items;
//! columns of 16 without that step, where vectors have 16 bytes or more.

use super::{MAX_PLANES, unshuffle_planes, unshuffle_planes_fast};
use crate::cpu::Isa;
use crate::filters::starts;

/// Items that have their pieces at a time, at most: they stay in the nearest cache.
pub(in crate::filters) const TILE: usize = 512;

/// Room for the pieces of a tile.
pub(in crate::filters) type Pieces = [u8; TILE * MAX_PLANES];

/// Some bytes of every item, all of them or a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filters) struct Column {
    /// Its first byte.
    pub(in crate::filters) at: usize,
    /// Its bytes in the item.
    pub(in crate::filters) nplanes: usize,
    /// Bytes of its pieces, a power of two: as many, or with more that mean nothing.
    pub(in crate::filters) piece: usize,
}

/// The columns of items of `width` bytes, 2 or more, in the order in which they are to be put.
pub(in crate::filters) fn columns(width: usize) -> impl Iterator<Item = Column> {
    let whole = (0..width / MAX_PLANES).map(|n| Column { at: n * MAX_PLANES, nplanes: MAX_PLANES, piece: MAX_PLANES });
    let rest = (!width.is_multiple_of(MAX_PLANES)).then(|| {
        let piece = (width % MAX_PLANES).next_power_of_two().max(2);
        let nplanes = piece.min(width);
        Column { at: width - nplanes, nplanes, piece }
    });
    whole.chain(rest)
}

impl Column {
    /// Whether there are vectors of whole pieces, which can be written where they belong.
    pub(in crate::filters) fn goes_straight(self, width: usize) -> bool {
        self.nplanes == MAX_PLANES && width > MAX_PLANES
    }

    /// Put the pieces of this column into `items` of `width` bytes, one into each.
    pub(in crate::filters) fn put(self, pieces: &[u8], width: usize, items: &mut [u8]) {
        match self.piece {
            2 => self.put_of::<2>(pieces, width, items),
            4 => self.put_of::<4>(pieces, width, items),
            8 => self.put_of::<8>(pieces, width, items),
            _ => self.put_of::<16>(pieces, width, items),
        }
    }

    fn put_of<const P: usize>(self, pieces: &[u8], width: usize, items: &mut [u8]) {
        let (pieces, _) = pieces.as_chunks::<P>();
        if P <= width {
            for (item, piece) in items.chunks_exact_mut(width).zip(pieces) {
                item[self.at..self.at + P].copy_from_slice(piece);
            }
            return;
        }
        // What means nothing is overwritten by the next piece, and the last one goes without.
        let mut rest = items;
        for piece in pieces {
            if let Some(slot) = rest.first_chunk_mut::<P>() {
                *slot = *piece;
            } else {
                rest.copy_from_slice(&piece[..rest.len()]);
                return;
            }
            rest = &mut rest[width..];
        }
    }
}

/// Undo [`shuffle`](super::shuffle) for items of `width` bytes, 2 or more: `planes` are one after the other.
pub(super) fn unshuffle(isa: Isa, width: usize, planes: &[u8], dst: &mut [u8]) {
    let nitems = dst.len() / width;
    // Tiles of like size, so that little is done twice where the last one is moved back.
    let ntiles = nitems.div_ceil(if width < 32 { TILE } else { TILE / 2 });
    let batch = nitems.div_ceil(ntiles).next_multiple_of(64).min(nitems);
    let mut pieces: Pieces = [0; TILE * MAX_PLANES];
    for start in starts(nitems, batch) {
        let items = &mut dst[start * width..(start + batch) * width];
        for column in columns(width) {
            // Any plane will do for bytes that mean nothing.
            let mut list = [&planes[start..start + batch]; MAX_PLANES];
            for (j, plane) in list[..column.nplanes].iter_mut().enumerate() {
                *plane = &planes[(column.at + j) * nitems + start..][..batch];
            }
            if column.goes_straight(width) && unshuffle_planes_fast(isa, &list, width, &mut items[column.at..]) {
                continue;
            }
            let pieces = &mut pieces[..batch * column.piece];
            unshuffle_planes(isa, &list[..column.piece], pieces);
            column.put(pieces, width, items);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_cover_every_byte_of_an_item() {
        for width in 2..=255 {
            let mut covered = vec![false; width];
            for Column { at, nplanes, piece } in columns(width) {
                assert!([2, 4, 8, 16].contains(&piece) && nplanes <= piece, "width {width}");
                assert!(nplanes == piece || nplanes == width, "width {width}");
                covered[at..at + nplanes].fill(true);
            }
            assert!(covered.iter().all(|&covered| covered), "width {width}");
        }
    }
}
