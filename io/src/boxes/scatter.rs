//! One destination for several threads.
//!
//! Tiles of a plan are boxes of the destination, whose rows lie between those of others. A [`Scatter`] hands out
//! each tile to one owner; a tile hands out its rows, one at a time, and no other byte.

use std::marker::PhantomData;
use std::ops::Range;

use super::copy::{Axis, Collect, Steps, Walk};
use super::geometry::MAX_DIMS;
use super::plan::Plan;
use superchunk_engine::chunk::{repeat, resize};
use superchunk_engine::cpu::Isa;
use superchunk_engine::filters::{MAX_PLANES, unshuffle_planes};
use superchunk_engine::{Error, Result};

/// Most tiles that are written together.
pub(super) const MAX_BAND: usize = 16;

/// Rows of this many bytes are joined out of planes where they belong, shorter ones in a block of their own.
const LONG_ROW: usize = if cfg!(any(test, fuzzing)) { 24 } else { 2048 };
/// Where fewer items than one of so many are wanted, only they are joined.
const SPARSE: usize = 4;

/// A destination that several threads write to, each its own tiles.
pub(super) struct Scatter<'d, 'p> {
    dst: &'d mut [u8],
    plan: &'p Plan<'p>,
}

impl<'d, 'p> Scatter<'d, 'p> {
    /// TileRange out `dst` as `plan` says; None if it has not the size that is planned for.
    pub(super) fn new(dst: &'d mut [u8], plan: &'p Plan<'p>) -> Option<Self> {
        // What tiles rely on: the segments of each dimension cover it from its first position to its last, and each
        // belongs to one chunk.
        let (mut nbytes, mut nchunks) = (plan.geometry.itemsize(), 1_usize);
        for (i, dimension) in plan.dimensions.iter().enumerate().rev() {
            let end = dimension.segments.iter().try_fold(0_usize, |end, segment| {
                if segment.first == end && segment.count > 0 { end.checked_add(segment.count) } else { None }
            });
            let (first, last) = (dimension.groups.first()?, dimension.groups.last()?);
            let grouped = *first == 0 && *last == dimension.segments.len() && dimension.groups.is_sorted();
            if end != Some(dimension.count) || !grouped || plan.strides[i] != nbytes {
                return None;
            }
            nbytes = nbytes.checked_mul(dimension.count)?;
            nchunks = nchunks.checked_mul(dimension.groups.len() - 1)?;
        }
        (dst.len() == nbytes && plan.nchunks == nchunks).then_some(Self { dst, plan })
    }

    /// Give away the tiles: of each chunk `cut(nchunk)` at a time, in order.
    pub(super) fn split(self, cut: impl Fn(usize) -> usize) -> Vec<TileRange<'d, 'p>> {
        let mut ranges = Vec::new();
        let base = self.dst.as_mut_ptr();
        for nchunk in 0..self.plan.nchunks {
            let ntiles = self.plan.ntiles(nchunk);
            let step = cut(nchunk).max(1);
            let mut from = 0;
            while from < ntiles {
                let to = from.saturating_add(step).min(ntiles);
                ranges.push(TileRange { base, plan: self.plan, nchunk, tiles: from..to, marker: PhantomData });
                from = to;
            }
        }
        ranges
    }
}

/// Some tiles of one chunk, which nobody else has.
pub(super) struct TileRange<'d, 'p> {
    /// The destination's first byte.
    base: *mut u8,
    plan: &'p Plan<'p>,
    nchunk: usize,
    tiles: Range<usize>,
    marker: PhantomData<&'d mut [u8]>,
}

#[expect(unsafe_code, reason = "a range has a pointer, which the compiler takes to be tied to its thread")]
// SAFETY: a range of tiles stands for exclusive access to the bytes of its tiles, as `&mut [u8]` does, which may be sent.
unsafe impl Send for TileRange<'_, '_> {}

impl<'d, 'p> TileRange<'d, 'p> {
    /// The number of the chunk.
    pub(super) fn nchunk(&self) -> usize {
        self.nchunk
    }

    /// How many of the next tiles are side by side.
    pub(super) fn side_by_side(&self) -> usize {
        let Some(last) = self.plan.dimensions.len().checked_sub(1) else { return 1 };
        let (_, count) = self.plan.groups_of(self.nchunk)[last];
        (count - self.tiles.start % count).min(self.tiles.len())
    }

    /// Take the next tile.
    pub(super) fn next_tile(&mut self) -> Option<Tile<'d, 'p>> {
        let plan = self.plan;
        let itemsize = plan.geometry.itemsize();
        let mut rest = self.tiles.next()?;
        let ndim = plan.dimensions.len();
        let groups = plan.groups_of(self.nchunk);
        let mut sources = [Axis::ONE; MAX_DIMS];
        let mut targets = [Axis::ONE; MAX_DIMS];
        let (mut nblock, mut nblocks, mut bytes) = (0, 1, 0..itemsize);
        let (mut at, mut row, mut split, mut whole, mut nitems) = (0, itemsize, ndim, true, 1);
        for i in (0..ndim).rev() {
            let (first, count) = groups[i];
            let (dimension, stride) = (&plan.dimensions[i], plan.geometry.strides()[i]);
            let segment = &dimension.segments[first + rest % count];
            rest /= count;
            nblock += segment.block * nblocks;
            nblocks *= plan.geometry.grid()[i];
            let start = segment.inner * stride;
            bytes = bytes.start + start..bytes.end + start + segment.extent * stride;
            sources[i] = Axis { count: segment.count, steps: segment.steps(dimension, stride) };
            let step = plan.strides[i];
            targets[i] = Axis { count: segment.count, steps: Steps::Even(step.cast_signed()) };
            at += segment.first * step;
            nitems *= segment.count;
            // A row goes on through this dimension if the dimensions inside it are covered whole.
            if whole {
                row *= segment.count;
                split = i;
                whole = segment.count == dimension.count;
            }
        }
        #[expect(unsafe_code, reason = "a tile begins somewhere in the destination")]
        // SAFETY: `at` is the offset of the item whose number in each dimension is its segment's first. That is
        // below the dimension's count, as `Scatter::new` has checked, so the item is within the destination.
        let base = unsafe { self.base.add(at) };
        // The innermost of the dimensions that rows do not cover is the strips'.
        let rest = split.saturating_sub(1);
        let (target, source) = if split > 0 { (targets[rest], sources[rest]) } else { (Axis::ONE, Axis::ONE) };
        Some(Tile {
            rows: Rows {
                base,
                starts: Walk::new(&targets[..rest]),
                count: target.count,
                step: target.offset(1),
                length: row,
                marker: PhantomData,
            },
            outer: Walk::new(&sources[..rest]),
            strip: source,
            inner: Collect::new(itemsize, &sources[split..ndim]),
            sources,
            nitems,
            nblock,
            bytes,
        })
    }
}

/// What a selection takes of one block, and its box of the destination.
pub(super) struct Tile<'d, 'p> {
    /// The box.
    pub(super) rows: Rows<'d, 'p>,
    /// Where in the block the items of each strip begin, from the first one's.
    outer: Walk<'p>,
    /// Where the items of each row of a strip begin, from the first one's.
    strip: Axis<'p>,
    /// How the items of a row are collected.
    inner: Collect<'p>,
    /// Where in the block all items are, from the first one's.
    sources: [Axis<'p>; MAX_DIMS],
    /// How many items.
    nitems: usize,
    /// The block's number in its chunk.
    pub(super) nblock: usize,
    /// From the first byte that is wanted of the block to behind the last.
    pub(super) bytes: Range<usize>,
}

impl Tile<'_, '_> {
    /// Whether the tile is one run of bytes on both sides.
    pub(super) fn is_run(&self) -> bool {
        self.outer.is_single() && self.strip.count == 1 && self.inner.is_run()
    }

    /// Bytes of a row.
    pub(super) fn row(&self) -> usize {
        self.rows.length
    }

    /// Write all rows, given the bytes that are wanted of the block.
    pub(super) fn fill(&mut self, block: &[u8]) -> Result<()> {
        while let Some(mut strip) = self.next_strip() {
            while strip.copy_row(block)? {}
        }
        Ok(())
    }

    /// Whether the rows are better written straight from the planes of the block's items, each `width` bytes.
    pub(super) fn takes_planes(&self, width: usize) -> bool {
        self.is_sparse(width) || (self.row() >= LONG_ROW && self.inner.is_run())
    }

    fn is_sparse(&self, width: usize) -> bool {
        self.nitems.saturating_mul(width * SPARSE) <= self.bytes.len()
    }

    /// Write all rows, given the planes of the whole block: byte 0 of all items, byte 1, and so on.
    pub(super) fn join(&mut self, planes: &[&[u8]], scratch: &mut Vec<u8>) -> Result<()> {
        let (isa, width) = (Isa::detect(), planes.len());
        let first = self.bytes.start / width;
        if !self.is_sparse(width) {
            while let Some(mut strip) = self.next_strip() {
                while strip.join_row(isa, planes, first)? {}
            }
            return Ok(());
        }
        let picked = Collect::new(1, &self.sources.map(|axis| axis.narrowed(width)));
        let (bytes, mut items) = resize(scratch, 2 * self.nitems * width)?.split_at_mut(self.nitems * width);
        let mut parts: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
        for ((part, plane), bytes) in parts.iter_mut().zip(planes).zip(bytes.chunks_exact_mut(self.nitems)) {
            picked.copy(bytes, plane, first)?;
            *part = bytes;
        }
        unshuffle_planes(isa, &parts[..width], items);
        while let Some(mut strip) = self.rows.next_strip() {
            while let Some(row) = strip.next_row() {
                let (here, rest) = std::mem::take(&mut items).split_at_mut(row.len());
                row.copy_from_slice(here);
                items = rest;
            }
        }
        Ok(())
    }

    /// Write the rows of several tiles, each given with the bytes that are wanted of its block, the first row of each
    /// and then the second: where tiles are side by side, memory is written in longer runs.
    pub(super) fn fill_together(band: &mut [(Self, &[u8])]) -> Result<()> {
        loop {
            let mut strips: [Option<(Copying<'_, '_>, &[u8])>; MAX_BAND] = [const { None }; MAX_BAND];
            let mut any = false;
            for (slot, (tile, block)) in strips.iter_mut().zip(band.iter_mut()) {
                *slot = tile.next_strip().map(|strip| (strip, *block));
                any |= slot.is_some();
            }
            if !any {
                return Ok(());
            }
            while any {
                any = false;
                for (strip, block) in strips.iter_mut().flatten() {
                    any |= strip.copy_row(block)?;
                }
            }
        }
    }

    fn next_strip(&mut self) -> Option<Copying<'_, '_>> {
        let (base, rows) = (self.outer.next()?, self.rows.next_strip()?);
        Some(Copying { rows, from: &self.strip, inner: &self.inner, base, nrow: 0 })
    }

    /// Fill all rows with one item.
    pub(super) fn repeat(&mut self, item: &[u8]) {
        while let Some(mut strip) = self.rows.next_strip() {
            while let Some(row) = strip.next_row() {
                repeat(item, 0, row);
            }
        }
    }
}

/// A strip that is being written.
struct Copying<'t, 'p> {
    rows: Strip<'t>,
    from: &'t Axis<'p>,
    inner: &'t Collect<'p>,
    /// Where in the block the items of the first row begin.
    base: isize,
    /// The row that comes next.
    nrow: usize,
}

impl Copying<'_, '_> {
    /// Write the next row, if there is one.
    #[inline]
    fn copy_row(&mut self, block: &[u8]) -> Result<bool> {
        let Some(row) = self.rows.next_row() else { return Ok(false) };
        let from = self.base.wrapping_add(self.from.offset(self.nrow));
        self.nrow += 1;
        self.inner.copy(row, block, 0_usize.wrapping_add_signed(from))?;
        Ok(true)
    }

    /// Write the next row, if there is one, out of the planes of a block, from item `first` of it on.
    fn join_row(&mut self, isa: Isa, planes: &[&[u8]], first: usize) -> Result<bool> {
        let Some(row) = self.rows.next_row() else { return Ok(false) };
        let width = planes.len();
        let from = self.base.wrapping_add(self.from.offset(self.nrow));
        self.nrow += 1;
        let from = first + 0_usize.wrapping_add_signed(from) / width;
        let to = from + row.len() / width;
        let mut parts: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
        for (part, plane) in parts.iter_mut().zip(planes) {
            let (needed, got) = (to as u64, plane.len() as u64);
            *part = plane.get(from..to).ok_or(Error::Truncated { what: "items of a block", at: 0, needed, got })?;
        }
        unshuffle_planes(isa, &parts[..width], row);
        Ok(true)
    }
}

/// The rows of a tile, the longest runs of the destination that belong to it, in strips of a common distance.
pub(super) struct Rows<'d, 'p> {
    /// The first byte of the first row.
    base: *mut u8,
    /// Where strips begin, from there.
    starts: Walk<'p>,
    /// Rows of a strip.
    count: usize,
    /// From one row of a strip to the next.
    step: isize,
    /// Bytes of a row.
    length: usize,
    marker: PhantomData<&'d mut [u8]>,
}

impl Rows<'_, '_> {
    /// The next strip.
    pub(super) fn next_strip(&mut self) -> Option<Strip<'_>> {
        let offset = self.starts.next()?;
        #[expect(unsafe_code, reason = "rows of several tiles lie between each other in one destination")]
        // SAFETY: a strip begins within the tile's box: `starts` walks over the counts and strides of its segments.
        let next = unsafe { self.base.offset(offset) };
        Some(Strip { next, left: self.count, step: self.step, length: self.length, marker: PhantomData })
    }
}

/// Rows at a common distance.
pub(super) struct Strip<'r> {
    next: *mut u8,
    left: usize,
    step: isize,
    length: usize,
    marker: PhantomData<&'r mut [u8]>,
}

impl Strip<'_> {
    /// The next row, which belongs to this tile alone.
    #[inline]
    pub(super) fn next_row(&mut self) -> Option<&mut [u8]> {
        self.left = self.left.checked_sub(1)?;
        let here = self.next;
        // Behind the last row this may point anywhere, and is not used any more.
        self.next = here.wrapping_offset(self.step);
        #[expect(unsafe_code, reason = "rows of several tiles lie between each other in one destination")]
        // SAFETY: the row's items have, in each dimension, numbers of the tile's segment: one of them in the
        // dimensions of strips and of their starts, and all of them in the others, which is one run because within
        // those the inner ones are covered whole. Segments of a dimension do not overlap (`Scatter::new` has checked it),
        // and each choice of segments went to one tile (`Scatter::split` consumes the scatter and its ranges do not
        // overlap, `next_tile` gives each number of a range once). So nobody else reaches these bytes, and the borrows
        // keep the caller to one row at a time. The destination stays borrowed as long as `'d`.
        Some(unsafe { std::slice::from_raw_parts_mut(here, self.length) })
    }
}
