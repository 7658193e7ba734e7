//! What of which block goes where: a selection in each dimension, cut where chunks and blocks end.
//!
//! ```text
//! positions      0 1 2 3 4 | 5 6 7 8 9 | ...     chunks of 5, blocks of 3, from 1 in steps of 2
//! selected         1   3   | 5   7   9 |
//! segments        [1] [3]  |[5   7] [9]|         one for each block intersected; groups of them, one for each chunk intersected
//! ```
//!
//! A tile is one segment of each dimension: what a selection takes of one block, and a box of the destination.
//! Segments of a dimension follow each other without gap, so tiles do not overlap and leave nothing out.

use super::copy::Steps;
use super::geometry::{Geometry, MAX_DIMS, signed};
use superchunk_engine::{Error, Result};

/// What is selected in one dimension, in coordinates of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick<'a> {
    /// From `start` on, before `stop`, in steps of `step`, which is at least 1.
    Range {
        /// First position.
        start: i64,
        /// Where the selection ends at the latest.
        stop: i64,
        /// From one position to the next.
        step: i64,
    },
    /// Positions in ascending order; one may come several times.
    List(&'a [i64]),
}

/// The positions of a dimension that fall into one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    /// The block's coordinate in its chunk.
    pub(super) block: usize,
    /// The first position's coordinate in the block.
    pub(super) inner: usize,
    /// Number of the first position among all that are selected.
    pub(super) first: usize,
    /// How many positions.
    pub(super) count: usize,
    /// From the first to the last, in items.
    pub(super) extent: usize,
    /// From each to the next, in items; unknown if they are listed without a rule.
    step: Option<usize>,
}

impl Segment {
    /// Where the positions are in a block whose items have a distance of `stride` bytes in this dimension.
    pub(super) fn steps<'a>(&self, dimension: &Dimension<'a>, stride: usize) -> Steps<'a> {
        let stride = stride.cast_signed();
        match self.step {
            Some(step) => Steps::Even(step.cast_signed().saturating_mul(stride)),
            None => Steps::Listed(&dimension.positions[self.first..self.first + self.count], stride),
        }
    }
}

/// One dimension of a plan.
#[derive(Debug)]
pub(super) struct Dimension<'a> {
    pub(super) segments: Vec<Segment>,
    /// The first segment of each chunk that is intersected, and the end.
    pub(super) groups: Vec<usize>,
    pub(super) count: usize,
    positions: &'a [i64],
}

fn bad(name: &'static str, expected: String, found: i64) -> Error {
    Error::Argument { name, expected: expected.into(), found }
}

impl<'a> Dimension<'a> {
    /// Count the positions of a selection that is sound.
    fn count(pick: Pick<'_>, i: usize) -> Result<usize> {
        match pick {
            Pick::Range { start, stop, step } => {
                if start < 0 {
                    return Err(bad("box", format!("a start of at least 0 in dimension {i}"), start));
                }
                if step < 1 {
                    return Err(bad("box", format!("a step of at least 1 in dimension {i}"), step));
                }
                let length = stop.saturating_sub(start).max(0).unsigned_abs();
                Ok(usize::try_from(length.div_ceil(step.unsigned_abs())).unwrap_or(usize::MAX))
            }
            Pick::List(positions) => {
                if let Some(&negative) = positions.first().filter(|&&first| first < 0) {
                    return Err(bad("box", format!("positions of at least 0 in dimension {i}"), negative));
                }
                if let Some(pair) = positions.windows(2).find(|pair| pair[0] > pair[1]) {
                    let expected = format!("ascending positions in dimension {i}, after {}", pair[0]);
                    return Err(bad("box", expected, pair[1]));
                }
                Ok(positions.len())
            }
        }
    }

    /// Cut `count` positions, at least one.
    fn new(pick: Pick<'a>, count: usize, chunk: u64, block: u64) -> Self {
        let positions = match pick {
            Pick::Range { .. } => &[],
            Pick::List(positions) => positions,
        };
        let mut dimension = Self { segments: Vec::new(), groups: Vec::new(), count, positions };
        let mut chunk_before = None;
        let mut first = 0;
        while first < count {
            let position = match pick {
                Pick::Range { start, step, .. } => start.unsigned_abs() + step.unsigned_abs() * first as u64,
                Pick::List(positions) => positions[first].unsigned_abs(),
            };
            let (nchunk, inside) = (position / chunk, position % chunk);
            let (nblock, inner) = (inside / block, inside % block);
            // How far the block goes on from here; it ends with the chunk at the latest.
            let room = (block - inner).min(chunk - inside);
            let (taken, extent, step) = match pick {
                Pick::Range { step, .. } => {
                    let step = step.unsigned_abs();
                    let taken = small(room.div_ceil(step)).min(count - first);
                    (taken, small(step.saturating_mul(taken as u64 - 1)), Some(small(step)))
                }
                Pick::List(positions) => {
                    let rest = &positions[first..];
                    let taken = rest.partition_point(|&other| other.unsigned_abs() - position < room);
                    (taken, small(rest[taken - 1].unsigned_abs() - position), even(&rest[..taken]))
                }
            };
            if chunk_before != Some(nchunk) {
                chunk_before = Some(nchunk);
                dimension.groups.push(dimension.segments.len());
            }
            let (block, inner) = (small(nblock), small(inner));
            dimension.segments.push(Segment { block, inner, first, count: taken, extent, step });
            first += taken;
        }
        dimension.groups.push(dimension.segments.len());
        dimension
    }

    /// Chunks that are intersected.
    fn nchunks(&self) -> usize {
        self.groups.len() - 1
    }
}

/// A number that is known to be no larger than a chunk.
fn small(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The one step between all of these positions.
fn even(positions: &[i64]) -> Option<usize> {
    let step = positions.get(1)? - positions[0];
    let same = positions.windows(2).all(|pair| pair[1] - pair[0] == step);
    same.then(|| small(step.unsigned_abs()))
}

/// A whole selection.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) dimensions: Vec<Dimension<'a>>,
    /// Bytes of the destination from one item to the next, in each dimension.
    pub(super) strides: [usize; MAX_DIMS],
    /// Chunks that are intersected.
    pub(super) nchunks: usize,
}

impl<'a> Plan<'a> {
    /// Plan a selection that fills a destination of `nbytes` bytes from `nchunks` chunks.
    pub(super) fn new(geometry: &'a Geometry, picks: &[Pick<'a>], nchunks: usize, nbytes: usize) -> Result<Self> {
        if picks.len() != geometry.ndim() {
            return Err(bad("box", format!("{} dimensions", geometry.ndim()), signed(picks.len())));
        }
        let mut counts = [0; MAX_DIMS];
        for (i, pick) in picks.iter().enumerate() {
            counts[i] = Dimension::count(*pick, i)?;
        }
        let counts = &counts[..picks.len()];
        let mut plan = Self { geometry, dimensions: Vec::new(), strides: [0; MAX_DIMS], nchunks: 0 };
        let empty = counts.contains(&0);
        let mut needed = if empty { 0 } else { geometry.itemsize() };
        for (i, &count) in counts.iter().enumerate().rev() {
            plan.strides[i] = needed;
            needed = needed.saturating_mul(count);
        }
        if needed != nbytes {
            return Err(Error::Destination { needed: needed as u64, got: nbytes as u64 });
        }
        if !empty {
            if let Some(i) = geometry.chunks().iter().position(|&chunk| chunk == 0) {
                return Err(bad("box", format!("nothing in dimension {i}, whose chunks are empty"), signed(counts[i])));
            }
            // From here on every count is within the destination's size, so cutting them is earned.
            let shapes = geometry.chunks().iter().zip(geometry.blocks());
            plan.dimensions.reserve_exact(picks.len());
            for ((pick, &count), (&chunk, &block)) in picks.iter().zip(counts).zip(shapes) {
                plan.dimensions.push(Dimension::new(*pick, count, chunk as u64, block as u64));
            }
            plan.nchunks = plan.dimensions.iter().fold(1, |product, one| product.saturating_mul(one.nchunks()));
        }
        if plan.nchunks != nchunks {
            let expected = format!("the {} chunks that the box intersects", plan.nchunks);
            return Err(bad("sources", expected, signed(nchunks)));
        }
        Ok(plan)
    }

    /// How many tiles the chunk of that number has.
    pub(super) fn ntiles(&self, nchunk: usize) -> usize {
        self.groups_of(nchunk).iter().fold(1, |product, range| product.saturating_mul(range.1))
    }

    /// How many tiles there are.
    pub(super) fn all_tiles(&self) -> usize {
        self.dimensions.iter().fold(1, |product, one| product.saturating_mul(one.segments.len()))
    }

    /// First segment and number of segments that belong to a chunk, in each dimension.
    pub(super) fn groups_of(&self, nchunk: usize) -> [(usize, usize); MAX_DIMS] {
        let mut ranges = [(0, 1); MAX_DIMS];
        let mut rest = nchunk;
        for (range, dimension) in ranges[..self.dimensions.len()].iter_mut().zip(&self.dimensions).rev() {
            let group = rest % dimension.nchunks();
            rest /= dimension.nchunks();
            let first = dimension.groups[group];
            *range = (first, dimension.groups[group + 1] - first);
        }
        ranges
    }
}
