//! The filters that cut an array's block into cells: NDCELL and NDMEAN.
//!
//! ```text
//! block (4, 5), side 2      0  1 | 2  3 | 4        written as   0 1 5 6 · 2 3 7 8 · 4 9 ·
//!                           5  6 | 7  8 | 9                     10 11 15 16 · 12 13 17 18 · 14 19
//!                          --------------
//!                          10 11 | 12 ..
//! ```
//!
//! NDCELL writes cell after cell, so that neighbours in all directions come close together. NDMEAN writes in place of
//! every item of a cell the mean of the cell. What undoes the one undoes the order of the other; the means stay.
//! The blocks' shape comes from the container: a chunk does not tell it.
//!
//! Source: docs/format/filters.md, section "Registered filters"; docs/format/chunk.md, section "Validation".

use super::{NDMEAN, name_of_id};
use crate::error::{Error, Result};
use crate::shape::BlockShape;

/// Most dimensions of a block that these filters take.
const MAX_DIMS: usize = 8;
/// Where the filter ids, and their parameters, are in a chunk.
const IDS_AT: usize = 16;
const METAS_AT: usize = 24;

type Coords = [usize; MAX_DIMS];

/// How blocks are cut, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cells {
    dims: Coords,
    ndim: usize,
    /// Items of a cell along each dimension, less at the end.
    side: usize,
    /// Bytes of an item.
    width: usize,
    mean: bool,
}

/// What is wrong with a slot: what was expected, and the number that was found.
type Objection = (String, usize);

impl Cells {
    fn new(id: u8, meta: u8, width: usize, shape: BlockShape) -> Result<Self, Objection> {
        let name = name_of_id(id);
        let ndim = shape.dims().len();
        if !(1..=MAX_DIMS).contains(&ndim) {
            return Err((format!("a block shape of 1 to {MAX_DIMS} dimensions with {name}"), ndim));
        }
        let mean = id == NDMEAN;
        let most = if mean { 127 } else { 255 };
        if meta == 0 || meta > most {
            return Err((format!("1 to {most} for {name}"), meta.into()));
        }
        if mean && width != 4 && width != 8 {
            return Err((format!("items of 4 or 8 bytes (float32, float64) with {name}"), width));
        }
        let mut dims = [1; MAX_DIMS];
        dims[..ndim].copy_from_slice(shape.dims());
        Ok(Self { dims, ndim, side: meta.into(), width, mean })
    }

    /// The cells of slot `slot` of a chunk that is read; `width` is the size in bytes of the container's items.
    pub(super) fn for_reading(slot: usize, id: u8, meta: u8, width: usize, shape: Option<BlockShape>) -> Result<Self> {
        let at = (IDS_AT + slot) as u64;
        let shape =
            shape.ok_or(Error::NeedsShape { what: "filter", id, name: name_of_id(id), field: "filters", at })?;
        Self::new(id, meta, width, shape).map_err(|(expected, found)| Error::Field {
            field: "filters_meta",
            at: (METAS_AT + slot) as u64,
            expected: expected.into(),
            found: i64::try_from(found).unwrap_or(i64::MAX),
        })
    }

    /// The cells of a chunk that is written. What other readers could not undo is refused.
    pub(super) fn for_writing(id: u8, meta: u8, width: usize, shape: Option<BlockShape>) -> Result<Self> {
        let name = name_of_id(id);
        let bad = |name: &'static str, expected: String, found: usize| Error::Argument {
            name,
            expected: expected.into(),
            found: i64::try_from(found).unwrap_or(i64::MAX),
        };
        let Some(shape) = shape else {
            let expected = format!("{name} only with the block shape of a metalayer b2nd, which is missing");
            return Err(bad("filters", expected, id.into()));
        };
        let cells = Self::new(id, meta, width, shape)
            .map_err(|(expected, found)| bad("filters, filters_meta", expected, found))?;
        let shortest = shape.dims().iter().copied().min().unwrap_or(0);
        if cells.mean && cells.side > shortest {
            let expected = format!("{name} with at most {shortest}, the shortest side of the blocks {shape}");
            return Err(bad("filters_meta", expected, cells.side));
        }
        let volume = shape.dims().iter().fold(1, |items: usize, _| items.saturating_mul(cells.side));
        if volume > shape.items() {
            let expected = format!("{name} with cells of at most the {} items of the blocks {shape}", shape.items());
            return Err(bad("filters_meta", expected, cells.side));
        }
        Ok(cells)
    }

    /// Bytes of a block. The shape was checked to have no more items than a block has bytes.
    fn nbytes(&self) -> u64 {
        self.dims().iter().product::<usize>() as u64 * self.width as u64
    }

    fn dims(&self) -> &[usize] {
        &self.dims[..self.ndim]
    }

    /// Write the cells of the block `src` one after the other.
    pub(super) fn forward(&self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if src.len() as u64 != self.nbytes() {
            let expected = format!("whole blocks of {} bytes with ndcell or ndmean", self.nbytes());
            let found = i64::try_from(src.len()).unwrap_or(i64::MAX);
            return Err(Error::Argument { name: "data", expected: expected.into(), found });
        }
        let mut done = 0;
        self.each_cell(|at, extent| {
            let first = done;
            self.each_row(at, extent, |from, length| {
                dst[done..done + length].copy_from_slice(&src[from..from + length]);
                done += length;
            });
            if self.mean {
                level(&mut dst[first..done], self.width);
            }
        });
        Ok(())
    }

    /// Put the cells in `src` at their positions in the block `dst`.
    pub(super) fn backward(&self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        if src.len() as u64 != self.nbytes() {
            let dims = self.dims();
            let expected = format!(
                "blocks of {} bytes, which is {dims:?} items of {} bytes as the container says",
                self.nbytes(),
                self.width
            );
            let found = i64::try_from(src.len()).unwrap_or(i64::MAX);
            return Err(Error::Field { field: "blocksize", at: 8, expected: expected.into(), found });
        }
        let mut done = 0;
        self.each_cell(|at, extent| {
            self.each_row(at, extent, |from, length| {
                dst[from..from + length].copy_from_slice(&src[done..done + length]);
                done += length;
            });
        });
        Ok(())
    }

    /// Call `each` with the first item and the extent of every cell, in C order.
    fn each_cell(&self, mut each: impl FnMut(&Coords, &Coords)) {
        let mut at = [0; MAX_DIMS];
        loop {
            let mut extent = [1; MAX_DIMS];
            for (n, &items) in self.dims().iter().enumerate() {
                extent[n] = self.side.min(items - at[n]);
            }
            each(&at, &extent);
            if !step(&mut at[..self.ndim], self.dims(), self.side) {
                return;
            }
        }
    }

    /// Call `each` with the first byte and the length of every row of a cell, in C order.
    fn each_row(&self, at: &Coords, extent: &Coords, mut each: impl FnMut(usize, usize)) {
        let last = self.ndim - 1;
        let length = extent[last] * self.width;
        let mut inner = [0; MAX_DIMS];
        loop {
            let mut item = 0;
            for (n, &items) in self.dims().iter().enumerate() {
                item = item * items + at[n] + inner[n];
            }
            each(item * self.width, length);
            if !step(&mut inner[..last], &extent[..last], 1) {
                return;
            }
        }
    }
}

/// Move to the next coordinates in C order; false behind the last one.
fn step(at: &mut [usize], limits: &[usize], by: usize) -> bool {
    for (coord, &limit) in at.iter_mut().zip(limits).rev() {
        *coord += by;
        if *coord < limit {
            return true;
        }
        *coord = 0;
    }
    false
}

/// Replace every number by the mean of all, summed up one after the other.
fn level(cell: &mut [u8], width: usize) {
    #[expect(clippy::cast_precision_loss, reason = "the format divides by the count as a float")]
    if width == 4 {
        let (numbers, _) = cell.as_chunks_mut::<4>();
        let sum = numbers.iter().fold(0.0, |sum: f32, raw| sum + f32::from_le_bytes(*raw));
        let mean = (sum / numbers.len() as f32).to_le_bytes();
        numbers.fill(mean);
    } else {
        let (numbers, _) = cell.as_chunks_mut::<8>();
        let sum = numbers.iter().fold(0.0, |sum: f64, raw| sum + f64::from_le_bytes(*raw));
        let mean = (sum / numbers.len() as f64).to_le_bytes();
        numbers.fill(mean);
    }
}

#[cfg(test)]
mod tests;
