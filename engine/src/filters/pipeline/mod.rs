//! A chunk's filter slots, checked once and then run for every block.
//!
//! Slots that do nothing are left out when the pipeline is made. The steps go to and fro between buffers, never
//! in place, so the caller's block stays as it is.
//!
//! Source: docs/format/filters.md; docs/format/chunk.md, section "Validation".

use std::borrow::Cow;

use super::bitshuffle::{self, BitshuffleRule};
use super::cells::Cells;
use super::shuffle::MAX_PLANES;
use super::{
    BITSHUFFLE, BYTEDELTA, BYTEDELTA_OLD, DELTA, INT_TRUNC, NDCELL, NDMEAN, NOFILTER, SHUFFLE, TRUNC_PREC, UserFilter,
    bytedelta, delta, name_of_id, shuffle, truncate,
};
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::shape::BlockShape;

/// One filter with everything it needs to know; all widths are in bytes and none is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Shuffle { width: usize },
    Bitshuffle { width: usize, rule: BitshuffleRule },
    Delta { width: usize },
    Truncate { width: usize, bits: u32 },
    Bytedelta { nplanes: usize },
    BytedeltaOld { nplanes: usize },
    Cells(Cells),
    User { id: u8, meta: u8 },
}

/// The filters of a chunk, checked and ready to run.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// In slot order, without those that do nothing.
    steps: Vec<Step>,
}

/// Buffers of a [`Pipeline`]'s user, to be kept from block to block: one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    a: Vec<u8>,
    b: Vec<u8>,
}

impl Scratch {
    /// Let go of buffers larger than `most` bytes.
    pub(crate) fn trim(&mut self, most: usize) {
        for buffer in [&mut self.a, &mut self.b] {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

impl Pipeline {
    /// The pipeline of a chunk that is read.
    ///
    /// `typesize` is the chunk's, 1 to 255 bytes; `itemsize` is the size in bytes of the container's items where
    /// it is known, which [`BYTEDELTA`] may need; `shape` is that of the container's blocks, which [`NDCELL`] and
    /// [`NDMEAN`] need. The filters of `user` go before those that are built in. Of
    /// filters that only lose bits, nothing is asked, as there is nothing to undo; such a pipeline leaves them
    /// out of [`forward`](Self::forward) too.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a filter that is neither built in nor the user's, [`Error::NeedsShape`] for one
    /// that misses the shape, [`Error::Field`] for one whose meta does not go with it, and [`Error::Argument`] for
    /// a typesize out of range.
    pub fn for_reading(
        ids: [u8; 6],
        metas: [u8; 6],
        typesize: usize,
        itemsize: Option<usize>,
        shape: Option<BlockShape>,
        rule: BitshuffleRule,
        user: Option<&dyn UserFilter>,
    ) -> Result<Self> {
        let mut steps = Vec::new();
        for (slot, (id, meta)) in std::iter::zip(ids, metas).enumerate() {
            steps.extend(match id {
                NDCELL | NDMEAN if !brought(user, id) => {
                    Some(Step::Cells(Cells::for_reading(slot, id, meta, itemsize.unwrap_or(typesize), shape)?))
                }
                TRUNC_PREC | INT_TRUNC if !brought(user, id) => None,
                BYTEDELTA_OLD if !brought(user, id) => {
                    Some(Step::BytedeltaOld { nplanes: nplanes(meta, typesize, itemsize)? })
                }
                _ => step(id, meta, typesize, itemsize, rule, user)?,
            });
        }
        Ok(Self { steps })
    }

    /// The pipeline of a chunk that is written; what is accepted here is read back everywhere.
    ///
    /// Parameters as for [`for_reading`](Self::for_reading).
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a filter that is neither built in nor the user's, and for the old
    /// [`BYTEDELTA_OLD`]. [`Error::Argument`] for a typesize out of range, for [`DELTA`] anywhere but first or more than
    /// once, for a meta of [`TRUNC_PREC`] or [`INT_TRUNC`] that its typesize does not allow, and for [`NDCELL`] and
    /// [`NDMEAN`] without a shape or with one that their meta does not go with.
    pub fn for_writing(
        ids: [u8; 6],
        metas: [u8; 6],
        typesize: usize,
        itemsize: Option<usize>,
        shape: Option<BlockShape>,
        rule: BitshuffleRule,
        user: Option<&dyn UserFilter>,
    ) -> Result<Self> {
        let mut steps = Vec::new();
        let mut nfilters = 0;
        for (id, meta) in std::iter::zip(ids, metas) {
            if id == DELTA && nfilters > 0 && !brought(user, id) {
                let expected = "delta at most once and before all other filters".into();
                return Err(Error::Argument { name: "filters", expected, found: id.into() });
            }
            nfilters += usize::from(id != NOFILTER);
            steps.extend(match id {
                NDCELL | NDMEAN if !brought(user, id) => {
                    Some(Step::Cells(Cells::for_writing(id, meta, itemsize.unwrap_or(typesize), shape)?))
                }
                _ => step(id, meta, typesize, itemsize, rule, user)?,
            });
        }
        Ok(Self { steps })
    }

    /// Whether blocks after the first need the uncompressed bytes of block 0.
    #[must_use]
    pub fn needs_reference(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Delta { .. }))
    }

    /// Whether a filter depends on the shape of the container's blocks.
    #[must_use]
    pub fn needs_shape(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Cells(_)))
    }

    /// Whether [`forward`](Self::forward) returns its input.
    #[must_use]
    pub fn forward_is_identity(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether [`backward`](Self::backward) only copies.
    #[must_use]
    pub fn backward_is_identity(&self) -> bool {
        self.steps_backward().next().is_none()
    }

    /// The width in bytes, above 1, of the only filter to undo, if that is [`SHUFFLE`].
    #[must_use]
    pub fn only_shuffle(&self) -> Option<usize> {
        let mut steps = self.steps_backward();
        match (steps.next(), steps.next()) {
            (Some(Step::Shuffle { width }), None) => Some(*width),
            _ => None,
        }
    }

    /// What is to be undone, if it is [`BITSHUFFLE`] alone or [`SHUFFLE`], maybe after [`BYTEDELTA`] of its planes, and before [`DELTA`] if the block was
    /// `compared`: all in one go, a tile at a time.
    pub(crate) fn joint(&self, compared: bool) -> Option<Joint> {
        let mut steps = self.steps_backward().copied().peekable();
        if let Some(Step::Bitshuffle { width, .. }) = steps.peek().copied() {
            let alone = steps.nth(1).is_none() && shuffle::may_lie_apart(width);
            return alone.then_some(Joint { width, bits: true, sums: false, delta: false });
        }
        let sums = steps.next_if(|step| matches!(step, Step::Bytedelta { .. }));
        let Some(Step::Shuffle { width }) = steps.next() else { return None };
        let delta = steps.next_if(|step| matches!(step, Step::Delta { .. }) && compared);
        let fits = shuffle::may_lie_apart(width) && sums.is_none_or(|sums| sums == Step::Bytedelta { nplanes: width });
        // Words wider than items would not end where items do.
        let words =
            delta.is_none_or(|delta| matches!(delta, Step::Delta { width: word } if width.is_multiple_of(word)));
        (fits && words && steps.next().is_none()).then_some(Joint {
            width,
            bits: false,
            sums: sums.is_some(),
            delta: delta.is_some(),
        })
    }

    /// Filter `block` when writing, and return the result: in `scratch`, or the block itself.
    ///
    /// `reference` is block 0 as a reader decodes it, for all blocks but that one, where
    /// [`needs_reference`](Self::needs_reference) asks for it.
    ///
    /// # Errors
    ///
    /// What the user's filters return; [`Error::Unsupported`] when they are missing, or when the pipeline was
    /// made for reading and has [`BYTEDELTA_OLD`]; [`Error::Argument`] for a reference that is shorter than the
    /// block, and for a block that has not the shape; [`Error::OutOfMemory`].
    pub fn forward<'a>(
        &self,
        isa: Isa,
        block: &'a [u8],
        reference: Option<&[u8]>,
        scratch: &'a mut Scratch,
        user: Option<&dyn UserFilter>,
    ) -> Result<&'a [u8]> {
        let Some((first, rest)) = self.steps.split_first() else { return Ok(block) };
        let mut dst = resized(&mut scratch.a, block.len())?;
        first.forward(isa, block, dst, reference, user)?;
        if !rest.is_empty() {
            let mut src = resized(&mut scratch.b, block.len())?;
            for step in rest {
                std::mem::swap(&mut src, &mut dst);
                step.forward(isa, src, dst, reference, user)?;
            }
        }
        Ok(dst)
    }

    /// Undo the filters when reading: `stage` holds the decoded streams, `dst` takes the uncompressed block.
    ///
    /// `reference` is as for [`forward`](Self::forward). On success all of `dst` has been written.
    ///
    /// # Errors
    ///
    /// [`Error::Destination`] unless both sides have the same length; [`Error::Field`] unless that is the shape's; what the user's filters return;
    /// [`Error::Unsupported`] when they are missing; [`Error::Argument`] for a reference that is shorter than the
    /// block; [`Error::OutOfMemory`].
    pub fn backward(
        &self,
        isa: Isa,
        stage: &[u8],
        dst: &mut [u8],
        reference: Option<&[u8]>,
        scratch: &mut Scratch,
        user: Option<&dyn UserFilter>,
    ) -> Result<()> {
        if stage.len() != dst.len() {
            return Err(Error::Destination { needed: stage.len() as u64, got: dst.len() as u64 });
        }
        if let Some(joint) = self.joint(reference.is_some())
            && joint.fits(stage.len())
        {
            let mut planes: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
            for (slot, plane) in planes.iter_mut().zip(stage.chunks_exact(stage.len() / joint.width)) {
                *slot = plane;
            }
            return joint.backward(isa, &planes[..joint.width], dst, reference);
        }
        let mut steps = self.steps_backward();
        let Some(first) = steps.next() else {
            dst.copy_from_slice(stage);
            return Ok(());
        };
        // The last step must land in `dst`, and the steps alternate.
        let nmore = steps.clone().count();
        if nmore == 0 {
            return first.backward(isa, stage, dst, reference, user);
        }
        let mut src = resized(&mut scratch.a, dst.len())?;
        let mut dst = dst;
        if !nmore.is_multiple_of(2) {
            std::mem::swap(&mut src, &mut dst);
        }
        first.backward(isa, stage, dst, reference, user)?;
        for step in steps {
            std::mem::swap(&mut src, &mut dst);
            step.backward(isa, src, dst, reference, user)?;
        }
        Ok(())
    }

    /// The steps that must be undone, in the order of undoing.
    fn steps_backward(&self) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().rev().filter(|step| !matches!(step, Step::Truncate { .. }))
    }
}

/// Filters that are undone together, out of planes that may lie apart: [`BITSHUFFLE`], or [`SHUFFLE`] and what goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joint {
    /// The width of items in bytes, and the number of planes.
    pub(crate) width: usize,
    /// Whether each plane is the eight bit planes of [`BITSHUFFLE`].
    bits: bool,
    /// Whether the planes are [`BYTEDELTA`]'s.
    sums: bool,
    /// Whether the items are [`DELTA`]'s, with a reference.
    delta: bool,
}

/// Bytes of items that are joined at a time where there is more to undo than a shuffle: they stay in the nearest cache.
const TILE: usize = 8 << 10;

impl Joint {
    /// Whether there is nothing to undo but [`SHUFFLE`], so that any items can be had alone.
    pub(crate) fn is_shuffle(self) -> bool {
        !self.bits && !self.sums && !self.delta
    }

    /// Whether a block of `length` bytes consists of planes and nothing else.
    pub(crate) fn fits(self, length: usize) -> bool {
        length > 0 && length.is_multiple_of(if self.bits { 8 * self.width } else { self.width })
    }

    /// Undo the filters. Every plane is a slice of its own, one for each byte of an item and all of the same length.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a reference that is shorter than the block.
    pub(crate) fn backward(self, isa: Isa, planes: &[&[u8]], dst: &mut [u8], reference: Option<&[u8]>) -> Result<()> {
        if self.bits {
            bitshuffle::join_planes(isa, self.width, &planes.iter().copied(), dst);
            return Ok(());
        }
        if self.is_shuffle() {
            shuffle::unshuffle_planes(isa, planes, dst);
            return Ok(());
        }
        let reference = checked(reference, dst.len())?.unwrap_or_default();
        let (mut decoded, mut items) = ([0; TILE], [0; TILE]);
        let mut last = [0; MAX_PLANES];
        let nitems = TILE / self.width;
        for (ntile, dst) in dst.chunks_mut(nitems * self.width).enumerate() {
            let from = ntile * nitems;
            let len = dst.len() / self.width;
            let mut tile: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
            let mut outputs = decoded.chunks_exact_mut(len);
            for ((part, plane), last) in tile.iter_mut().zip(planes).zip(&mut last) {
                *part = &plane[from..from + len];
                if self.sums
                    && let Some(output) = outputs.next()
                {
                    bytedelta::backward_part(isa, *last, part, output);
                    *last = output[len - 1];
                    *part = output;
                }
            }
            let tile = &tile[..self.width];
            if self.delta {
                let items = &mut items[..dst.len()];
                shuffle::unshuffle_planes(isa, tile, items);
                delta::with_reference(items, &reference[from * self.width..], dst);
            } else {
                shuffle::unshuffle_planes(isa, tile, dst);
            }
        }
        Ok(())
    }
}

impl Step {
    fn forward(
        self,
        isa: Isa,
        src: &[u8],
        dst: &mut [u8],
        reference: Option<&[u8]>,
        user: Option<&dyn UserFilter>,
    ) -> Result<()> {
        match self {
            Self::Shuffle { width } => shuffle::shuffle(isa, width, src, dst),
            Self::Bitshuffle { width, rule } => bitshuffle::bitshuffle(isa, rule, width, src, dst),
            Self::Delta { width } => delta::forward(width, src, dst, checked(reference, src.len())?),
            Self::Truncate { width, bits } => truncate::forward(width, bits, src, dst),
            Self::Bytedelta { nplanes } => bytedelta::forward(nplanes, src, dst),
            Self::BytedeltaOld { .. } => return Err(unsupported(BYTEDELTA_OLD)),
            Self::Cells(cells) => return cells.forward(src, dst),
            Self::User { id, meta } => {
                dst.fill(0);
                return user.ok_or_else(|| unsupported(id))?.forward(id, meta, src, dst);
            }
        }
        Ok(())
    }

    fn backward(
        self,
        isa: Isa,
        src: &[u8],
        dst: &mut [u8],
        reference: Option<&[u8]>,
        user: Option<&dyn UserFilter>,
    ) -> Result<()> {
        match self {
            Self::Shuffle { width } => shuffle::unshuffle(isa, width, src, dst),
            Self::Bitshuffle { width, rule } => bitshuffle::bitunshuffle(isa, rule, width, src, dst),
            Self::Delta { width } => delta::backward(width, src, dst, checked(reference, src.len())?),
            Self::Truncate { .. } => dst.copy_from_slice(src),
            Self::Bytedelta { nplanes } => bytedelta::backward(isa, nplanes, src, dst),
            Self::BytedeltaOld { nplanes } => bytedelta::backward_old(isa, nplanes, src, dst),
            Self::Cells(cells) => return cells.backward(src, dst),
            Self::User { id, meta } => {
                dst.fill(0);
                return user.ok_or_else(|| unsupported(id))?.backward(id, meta, src, dst);
            }
        }
        Ok(())
    }
}

/// The step of a slot, none if it does nothing.
fn step(
    id: u8,
    meta: u8,
    typesize: usize,
    itemsize: Option<usize>,
    rule: BitshuffleRule,
    user: Option<&dyn UserFilter>,
) -> Result<Option<Step>> {
    if !(1..=255).contains(&typesize) {
        return Err(out_of_range("typesize", "1 to 255", typesize));
    }
    Ok(match id {
        NOFILTER => None,
        _ if brought(user, id) => Some(Step::User { id, meta }),
        SHUFFLE => {
            let width = if meta == 0 { typesize } else { meta.into() };
            (width > 1).then_some(Step::Shuffle { width })
        }
        BITSHUFFLE => Some(Step::Bitshuffle { width: typesize, rule }),
        DELTA => Some(Step::Delta { width: delta::word_width(typesize) }),
        TRUNC_PREC => truncation(typesize, truncate::bits_of_trunc_prec(typesize, meta)?),
        INT_TRUNC => truncation(typesize, truncate::bits_of_int_trunc(typesize, meta)?),
        BYTEDELTA => Some(Step::Bytedelta { nplanes: nplanes(meta, typesize, itemsize)? }),
        _ => return Err(unsupported(id)),
    })
}

/// Whether the user brings the filter; that goes before what is built in.
fn brought(user: Option<&dyn UserFilter>, id: u8) -> bool {
    user.is_some_and(|user| user.has(id))
}

fn truncation(width: usize, bits: u32) -> Option<Step> {
    (bits > 0).then_some(Step::Truncate { width, bits })
}

/// The number of planes that a meta of BYTEDELTA means.
fn nplanes(meta: u8, typesize: usize, itemsize: Option<usize>) -> Result<usize> {
    match (meta, itemsize.unwrap_or(typesize)) {
        (0, 0) => Err(out_of_range("itemsize", "1 or more", 0)),
        (0, itemsize) => Ok(itemsize),
        (planes, _) => Ok(planes.into()),
    }
}

/// A reference that is long enough for a block of `length` bytes.
fn checked(reference: Option<&[u8]>, length: usize) -> Result<Option<&[u8]>> {
    match reference {
        Some(short) if short.len() < length => {
            Err(out_of_range("reference", format!("{length} bytes or more"), short.len()))
        }
        _ => Ok(reference),
    }
}

fn out_of_range(name: &'static str, expected: impl Into<Cow<'static, str>>, found: usize) -> Error {
    Error::Argument { name, expected: expected.into(), found: i64::try_from(found).unwrap_or(i64::MAX) }
}

fn unsupported(id: u8) -> Error {
    Error::Unsupported { what: "filter", id, name: name_of_id(id) }
}

/// `length` bytes of a buffer that grows as needed; they may hold anything and are to be overwritten.
fn resized(buffer: &mut Vec<u8>, length: usize) -> Result<&mut [u8]> {
    if let Some(more) = length.checked_sub(buffer.len()) {
        buffer.try_reserve_exact(more).map_err(|_| Error::OutOfMemory { needed: length as u64 })?;
        buffer.resize(length, 0);
    }
    Ok(&mut buffer[..length])
}

#[cfg(test)]
mod tests;
