//! Making the chunk of a part of an array in memory.

use super::copy::{Axis, Collect, Steps, Walk};
use super::geometry::{Geometry, MAX_DIMS, signed};
use std::ops::Range;
use superchunk_engine::encode;
use superchunk_engine::interrupt::Interrupt;
use superchunk_engine::params::EncodeParams;
use superchunk_engine::user::User;
use superchunk_engine::{Error, Result};

/// Items in memory, at regular distances in each dimension.
#[derive(Debug, Clone, Copy)]
pub struct Strided<'a> {
    /// The bytes that hold them.
    pub bytes: &'a [u8],
    /// Where the first item is, in bytes.
    pub offset: usize,
    /// From one item to the next in each dimension, in bytes.
    pub strides: &'a [i64],
    /// How many items there are in each dimension.
    pub extent: &'a [i64],
}

/// Compress a chunk that begins with the items of `src` into `out`, which must have at least
/// [`encode::MAX_OVERHEAD`] bytes more than a chunk of the geometry, and return the chunk's length. All other items are zero.
///
/// # Errors
///
/// [`Error::Argument`] for another block size in `params` than the geometry's, items that are outside of the bytes
/// given, or more items than a chunk has; otherwise as [`encode::encode`].
pub fn pack(
    geometry: &Geometry,
    params: &EncodeParams,
    src: Strided<'_>,
    user: Option<&dyn User>,
    interrupt: Option<&Interrupt<'_>>,
    out: &mut [u8],
) -> Result<usize> {
    let source = Source::new(geometry, src)?;
    let blocksize = params.blocksize_for(geometry.chunk_nbytes());
    if geometry.chunk_nbytes() > 0 && blocksize != geometry.block_nbytes() {
        let expected = format!("{}, the block size of the geometry", geometry.block_nbytes()).into();
        return Err(Error::Argument { name: "blocksize", expected, found: signed(blocksize) });
    }
    if let Some(shape) = params.shape_in_use()
        && geometry.shape() != Some(shape)
    {
        let expected = format!("{:?}, the blocks of the geometry, not {shape}", geometry.blocks());
        return Err(Error::Argument { name: "blockshape", expected: expected.into(), found: signed(geometry.ndim()) });
    }
    if let Some(run) = source.run() {
        return encode::encode(run, params, user, interrupt, out);
    }
    encode::encode_content(&source, params, user, interrupt, out)
}

/// Checked items, to be laid out in blocks.
struct Source<'a> {
    geometry: &'a Geometry,
    bytes: &'a [u8],
    offset: usize,
    strides: [isize; MAX_DIMS],
    extent: [usize; MAX_DIMS],
}

fn bad(name: &'static str, expected: String, found: i64) -> Error {
    Error::Argument { name, expected: expected.into(), found }
}

impl<'a> Source<'a> {
    fn new(geometry: &'a Geometry, src: Strided<'a>) -> Result<Self> {
        let ndim = geometry.ndim();
        for (name, list) in [("strides", src.strides), ("extent", src.extent)] {
            if list.len() != ndim {
                return Err(bad(name, format!("{ndim} dimensions"), signed(list.len())));
            }
        }
        let mut checked =
            Self { geometry, bytes: src.bytes, offset: src.offset, strides: [0; MAX_DIMS], extent: [0; MAX_DIMS] };
        // First and last byte that an item has.
        let (mut first, mut last) = (src.offset as i128, src.offset as i128 + geometry.itemsize() as i128 - 1);
        for (i, (&stride, &extent)) in src.strides.iter().zip(src.extent).enumerate() {
            let most = geometry.chunks()[i];
            checked.extent[i] = usize::try_from(extent)
                .ok()
                .filter(|&extent| extent <= most)
                .ok_or_else(|| bad("extent", format!("0 to {most} in dimension {i}"), extent))?;
            // Where that does not fit, the range below does not either, or there is one item only.
            checked.strides[i] = isize::try_from(stride).unwrap_or(0);
            let reach = i128::from(stride) * i128::from(extent - 1).max(0);
            first += reach.min(0);
            last += reach.max(0);
        }
        let empty = checked.extent[..ndim].contains(&0);
        if !empty && (first < 0 || last >= src.bytes.len() as i128) {
            let expected = format!("items within the {} bytes of src", src.bytes.len());
            let worst = if first < 0 { first } else { last };
            return Err(bad("strides", expected, i64::try_from(worst).unwrap_or(i64::MAX)));
        }
        Ok(checked)
    }

    /// The content of the chunk, if it is in memory, as it must be.
    fn run(&self) -> Option<&'a [u8]> {
        let geometry = self.geometry;
        let ndim = geometry.ndim();
        let mut axes = [Axis::ONE; 2 * MAX_DIMS];
        for i in 0..ndim {
            let (block, grid) = (geometry.blocks()[i], geometry.grid()[i]);
            if self.extent[i] != block * grid {
                return None;
            }
            let step = self.strides[i].checked_mul(block.cast_signed())?;
            axes[i] = Axis { count: grid, steps: Steps::Even(step) };
            axes[ndim + i] = Axis { count: block, steps: Steps::Even(self.strides[i]) };
        }
        let mut expected = geometry.itemsize().cast_signed();
        for axis in axes[..2 * ndim].iter().rev().filter(|axis| axis.count != 1) {
            match axis.steps {
                Steps::Even(step) if step == expected => expected = expected.checked_mul(axis.count.cast_signed())?,
                _ => return None,
            }
        }
        self.bytes.get(self.offset..)?.get(..geometry.chunk_nbytes())
    }

    /// Lay out one block.
    fn fill(&self, nblock: usize, block: &mut [u8]) -> Result<()> {
        let geometry = self.geometry;
        let ndim = geometry.ndim();
        let itemsize = geometry.itemsize();
        let mut sources = [Axis::ONE; MAX_DIMS];
        let mut targets = [Axis::ONE; MAX_DIMS];
        let (mut rest, mut base) = (nblock, self.offset);
        let (mut row, mut split, mut whole, mut full) = (itemsize, ndim, true, true);
        for i in (0..ndim).rev() {
            let (size, grid) = (geometry.blocks()[i], geometry.grid()[i]);
            let begin = rest % grid * size;
            rest /= grid;
            let count = self.extent[i].saturating_sub(begin).min(size);
            if count == 0 {
                block.fill(0);
                return Ok(());
            }
            base = base.wrapping_add_signed(self.strides[i].wrapping_mul(begin.cast_signed()));
            sources[i] = Axis { count, steps: Steps::Even(self.strides[i]) };
            targets[i] = Axis { count, steps: Steps::Even(geometry.strides()[i].cast_signed()) };
            if whole {
                row *= count;
                split = i;
                whole = count == size;
            }
            full &= count == size;
        }
        if !full {
            block.fill(0);
        }
        let inner = Collect::new(itemsize, &sources[split..ndim]);
        for (to, from) in Walk::new(&targets[..split]).zip(Walk::new(&sources[..split])) {
            let to = 0_usize.wrapping_add_signed(to);
            let needed = (to + row) as u64;
            let got = block.len() as u64;
            let dst = block.get_mut(to..to + row).ok_or(Error::Destination { needed, got })?;
            inner.copy(dst, self.bytes, base.wrapping_add_signed(from))?;
        }
        Ok(())
    }
}

impl encode::Content for Source<'_> {
    fn nbytes(&self) -> usize {
        self.geometry.chunk_nbytes()
    }

    fn ready(&self, _: Range<usize>) -> Option<&[u8]> {
        None
    }

    fn lay_out(&self, start: usize, dst: &mut [u8]) -> Result<()> {
        self.fill(start / self.geometry.block_nbytes().max(1), dst)
    }
}
