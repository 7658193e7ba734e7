//! Collecting items that lie apart.
//!
//! What a block holds of a selection, or an array of a block, are items at regular distances in several
//! dimensions. They are collected in C order. Dimensions that go on where the one inside them ends are one
//! longer dimension, and items side by side are one larger unit, so most copies are few and long.

use super::geometry::MAX_DIMS;
use superchunk_engine::{Error, Result};

/// Where the items of a dimension are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Steps<'a> {
    /// From each to the next, in bytes.
    Even(isize),
    /// Coordinates, and the distance of one coordinate from the next in bytes.
    Listed(&'a [i64], isize),
}

/// One dimension of what is collected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis<'a> {
    pub(super) count: usize,
    pub(super) steps: Steps<'a>,
}

impl Axis<'_> {
    pub(super) const ONE: Self = Self { count: 1, steps: Steps::Even(0) };

    /// The same for items of one byte in place of `width`.
    pub(super) fn narrowed(self, width: usize) -> Self {
        let narrow = |distance: isize| distance / width.cast_signed();
        let steps = match self.steps {
            Steps::Even(step) => Steps::Even(narrow(step)),
            Steps::Listed(positions, stride) => Steps::Listed(positions, narrow(stride)),
        };
        Self { count: self.count, steps }
    }

    /// How far item `n` is from item 0, in bytes.
    #[inline]
    pub(super) fn offset(&self, n: usize) -> isize {
        match self.steps {
            Steps::Even(step) => step.wrapping_mul(n.cast_signed()),
            Steps::Listed(positions, stride) => match (positions.get(n), positions.first()) {
                (Some(here), Some(first)) => stride.wrapping_mul(narrow(here.wrapping_sub(*first))),
                _ => 0,
            },
        }
    }
}

/// A distance within a block.
fn narrow(distance: i64) -> isize {
    isize::try_from(distance).unwrap_or(isize::MAX)
}

/// Offsets of all items of a few dimensions, in C order.
pub(super) struct Walk<'a> {
    axes: [Axis<'a>; MAX_DIMS],
    naxes: usize,
    index: [usize; MAX_DIMS],
    /// How far each dimension is from its first item.
    offsets: [isize; MAX_DIMS],
    left: usize,
    at: isize,
}

impl<'a> Walk<'a> {
    /// Walk over `axes`, the outermost first.
    pub(super) fn new(axes: &[Axis<'a>]) -> Self {
        let mut walk = Self {
            axes: [Axis::ONE; MAX_DIMS],
            naxes: 0,
            index: [0; MAX_DIMS],
            offsets: [0; MAX_DIMS],
            left: 1,
            at: 0,
        };
        for axis in axes.iter().filter(|axis| axis.count != 1).take(MAX_DIMS) {
            walk.axes[walk.naxes] = *axis;
            walk.naxes += 1;
            walk.left = walk.left.saturating_mul(axis.count);
        }
        walk
    }

    /// Whether there is one item in all.
    pub(super) fn is_single(&self) -> bool {
        self.naxes == 0
    }
}

impl Iterator for Walk<'_> {
    type Item = isize;

    #[inline]
    fn next(&mut self) -> Option<isize> {
        self.left = self.left.checked_sub(1)?;
        let here = self.at;
        for i in (0..self.naxes).rev() {
            let next = self.index[i] + 1;
            let (index, offset) = if next < self.axes[i].count { (next, self.axes[i].offset(next)) } else { (0, 0) };
            self.at = self.at.wrapping_add(offset.wrapping_sub(self.offsets[i]));
            self.offsets[i] = offset;
            self.index[i] = index;
            if index > 0 {
                break;
            }
        }
        Some(here)
    }
}

/// How to collect items, worked out once for many copies.
pub(super) struct Collect<'a> {
    /// The innermost first.
    axes: [Axis<'a>; MAX_DIMS],
    naxes: usize,
    /// Bytes that lie side by side.
    unit: usize,
    nbytes: usize,
}

impl<'a> Collect<'a> {
    /// Collect items of `itemsize` bytes over `axes`, the outermost first.
    pub(super) fn new(itemsize: usize, axes: &[Axis<'a>]) -> Self {
        let mut plan = Self { axes: [Axis::ONE; MAX_DIMS], naxes: 0, unit: itemsize, nbytes: itemsize };
        for axis in axes.iter().rev().filter(|axis| axis.count != 1) {
            plan.nbytes = plan.nbytes.saturating_mul(axis.count);
            let last = plan.axes[..plan.naxes].last_mut();
            match (axis.steps, last) {
                (Steps::Even(step), None) if step == plan.unit.cast_signed() => {
                    plan.unit = plan.unit.saturating_mul(axis.count);
                }
                (Steps::Even(step), Some(Axis { count, steps: Steps::Even(inner) }))
                    if Some(step) == inner.checked_mul(count.cast_signed()) =>
                {
                    *count = count.saturating_mul(axis.count);
                }
                _ if plan.naxes < MAX_DIMS => {
                    plan.axes[plan.naxes] = *axis;
                    plan.naxes += 1;
                }
                _ => plan.nbytes = usize::MAX,
            }
        }
        plan
    }

    /// Whether all items lie side by side.
    pub(super) fn is_run(&self) -> bool {
        self.naxes == 0
    }

    /// Copy the items, the first of which is at `base` of `src`, to `dst`, which has exactly room for them.
    #[inline]
    pub(super) fn copy(&self, dst: &mut [u8], src: &[u8], base: usize) -> Result<()> {
        if self.naxes == 0
            && dst.len() == self.nbytes
            && let Some(run) = src.get(base..).and_then(|src| src.get(..dst.len()))
        {
            dst.copy_from_slice(run);
            return Ok(());
        }
        let done = dst.len() == self.nbytes && self.level(self.naxes, dst, src, base).is_some();
        if done {
            return Ok(());
        }
        Err(Error::Truncated {
            what: "items of a block",
            at: base as u64,
            needed: self.nbytes as u64,
            got: src.len() as u64,
        })
    }

    fn level(&self, naxes: usize, dst: &mut [u8], src: &[u8], base: usize) -> Option<()> {
        let Some(outer) = naxes.checked_sub(1) else {
            dst.copy_from_slice(src.get(base..)?.get(..dst.len())?);
            return Some(());
        };
        let axis = &self.axes[outer];
        if outer > 0 {
            let part = (dst.len() / axis.count.max(1)).max(1);
            for (n, dst) in dst.chunks_exact_mut(part).enumerate() {
                self.level(outer, dst, src, base.wrapping_add_signed(axis.offset(n)))?;
            }
            return Some(());
        }
        match self.unit {
            1 => units::<1>(axis, dst, src, base),
            2 => units::<2>(axis, dst, src, base),
            4 => units::<4>(axis, dst, src, base),
            8 => units::<8>(axis, dst, src, base),
            16 => units::<16>(axis, dst, src, base),
            unit => {
                for (n, dst) in dst.chunks_exact_mut(unit.max(1)).enumerate() {
                    let from = base.wrapping_add_signed(axis.offset(n));
                    dst.copy_from_slice(src.get(from..)?.get(..unit)?);
                }
                Some(())
            }
        }
    }
}

/// Copy units of `N` bytes along one dimension.
fn units<const N: usize>(axis: &Axis<'_>, dst: &mut [u8], src: &[u8], base: usize) -> Option<()> {
    let dst = dst.as_chunks_mut::<N>().0;
    if let Steps::Even(step) = axis.steps
        && let Ok(step) = usize::try_from(step)
        && step >= N
    {
        let src = src.get(base..)?;
        // All units but the last have a whole step; the last has what it needs.
        let (last, head) = dst.split_last_mut()?;
        let end = head.len().checked_mul(step)?;
        *last = *src.get(end..)?.first_chunk::<N>()?;
        for (dst, src) in head.iter_mut().zip(src[..end].chunks_exact(step)) {
            *dst = *src.first_chunk::<N>()?;
        }
        return Some(());
    }
    for (n, dst) in dst.iter_mut().enumerate() {
        *dst = *src.get(base.wrapping_add_signed(axis.offset(n))..)?.first_chunk::<N>()?;
    }
    Some(())
}
