//! How the items of a chunk lie in it.

pub use superchunk_engine::limits::MAX_DIMS;
use superchunk_engine::limits::{MAX_BLOCKSIZE, MAX_BUFFERSIZE, MAX_TYPESIZE};
use superchunk_engine::shape::BlockShape;
use superchunk_engine::{Error, Result};

/// Most items of a chunk in one dimension: the format has 32 bits for it, signed.
const MAX_EXTENT: usize = 0x7FFF_FFFF;

/// Chunk shape, block shape and item size, checked. Dimensions count from the outermost one.
///
/// A chunk's content is its blocks in C order, and a block is its items in C order. Where a chunk is not a
/// whole number of blocks wide, the last block reaches beyond it, and what it has there is padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    ndim: usize,
    itemsize: usize,
    chunks: [usize; MAX_DIMS],
    blocks: [usize; MAX_DIMS],
    /// Blocks of a chunk.
    grid: [usize; MAX_DIMS],
    /// Bytes of a block from one item to the next.
    strides: [usize; MAX_DIMS],
    block_nbytes: usize,
    chunk_nbytes: usize,
    /// The blocks, for codecs and filters that go by them; none in an array without items.
    shape: Option<BlockShape>,
}

fn argument(name: &'static str, expected: String, found: i64) -> Error {
    Error::Argument { name, expected: expected.into(), found }
}

pub(super) fn signed(found: usize) -> i64 {
    i64::try_from(found).unwrap_or(i64::MAX)
}

impl Geometry {
    /// Check shapes in items, and the item size in bytes.
    ///
    /// A dimension of no items has chunks of 0; its blocks may have any size.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] naming what is out of range: more than [`MAX_DIMS`] dimensions, blocks that are empty or
    /// larger than the chunk, an item, block or chunk that is larger than the format allows.
    pub fn new(chunks: &[i64], blocks: &[i64], itemsize: usize) -> Result<Self> {
        let ndim = chunks.len();
        if ndim > MAX_DIMS {
            return Err(argument("chunks", format!("at most {MAX_DIMS} dimensions"), signed(ndim)));
        }
        if blocks.len() != ndim {
            return Err(argument("blocks", format!("{ndim} dimensions, like chunks"), signed(blocks.len())));
        }
        if !(1..=MAX_TYPESIZE).contains(&itemsize) {
            return Err(argument("itemsize", format!("1 to {MAX_TYPESIZE}"), signed(itemsize)));
        }
        let mut shapes = [[0; MAX_DIMS], [0; MAX_DIMS], [0; MAX_DIMS]];
        for (i, (&chunk, &block)) in chunks.iter().zip(blocks).enumerate() {
            let Some(chunk) = usize::try_from(chunk).ok().filter(|&n| n <= MAX_EXTENT) else {
                return Err(argument("chunks", format!("0 to {MAX_EXTENT} in dimension {i}"), chunk));
            };
            let most = if chunk == 0 { MAX_EXTENT } else { chunk };
            let least = usize::from(chunk > 0);
            let Some(block) = usize::try_from(block).ok().filter(|n| (least..=most).contains(n)) else {
                return Err(argument("blocks", format!("{least} to {most} in dimension {i}"), block));
            };
            shapes[0][i] = chunk;
            shapes[1][i] = block;
            shapes[2][i] = if chunk == 0 { 0 } else { chunk.div_ceil(block) };
        }
        let [chunks, blocks, grid] = shapes;
        let empty = chunks[..ndim].contains(&0);
        let mut strides = [0; MAX_DIMS];
        let (mut block_nbytes, mut chunk_nbytes) = (itemsize, itemsize);
        for i in (0..ndim).rev() {
            strides[i] = block_nbytes;
            if empty {
                continue;
            }
            block_nbytes = within("blocks", block_nbytes, blocks[i], MAX_BLOCKSIZE)?;
            chunk_nbytes = within("chunks", chunk_nbytes, blocks[i], MAX_BUFFERSIZE)?;
            chunk_nbytes = within("chunks", chunk_nbytes, grid[i], MAX_BUFFERSIZE)?;
        }
        if empty {
            (block_nbytes, chunk_nbytes) = (0, 0);
        }
        let shape = if empty { None } else { Some(BlockShape::new(&blocks[..ndim])?) };
        Ok(Self { ndim, itemsize, chunks, blocks, grid, strides, block_nbytes, chunk_nbytes, shape })
    }

    /// The same, of a view: codecs and filters go by the blocks of the array that it was made from, which have other
    /// dimensions of length 1.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for blocks of another number of items.
    pub fn with_shape(self, blockshape: &[usize]) -> Result<Self> {
        let Some(own) = self.shape else { return Ok(self) };
        let shape = BlockShape::new(blockshape)?;
        if shape.items() != own.items() {
            let expected = format!("{} items, as many as the blocks {own} have", own.items());
            return Err(argument("blockshape", expected, signed(shape.items())));
        }
        Ok(Self { shape: Some(shape), ..self })
    }

    /// Dimensions.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Bytes of an item.
    #[must_use]
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// Bytes of a block, 0 in an array without items.
    #[must_use]
    pub fn block_nbytes(&self) -> usize {
        self.block_nbytes
    }

    /// Bytes of a chunk, padding included; 0 in an array without items.
    #[must_use]
    pub fn chunk_nbytes(&self) -> usize {
        self.chunk_nbytes
    }

    /// Items of a chunk in each dimension, without padding.
    #[must_use]
    pub fn chunks(&self) -> &[usize] {
        &self.chunks[..self.ndim]
    }

    /// Items of a block in each dimension.
    #[must_use]
    pub fn blocks(&self) -> &[usize] {
        &self.blocks[..self.ndim]
    }

    /// The same, for codecs and filters that go by it; None in an array without items.
    pub(super) fn shape(&self) -> Option<BlockShape> {
        self.shape
    }

    /// Blocks of a chunk in each dimension.
    #[must_use]
    pub fn grid(&self) -> &[usize] {
        &self.grid[..self.ndim]
    }

    /// Bytes of a block from one item to the next in each dimension.
    pub(super) fn strides(&self) -> &[usize] {
        &self.strides[..self.ndim]
    }
}

/// Multiply, up to a limit in bytes.
fn within(name: &'static str, nbytes: usize, by: usize, most: usize) -> Result<usize> {
    nbytes.checked_mul(by).filter(|&nbytes| nbytes <= most).ok_or_else(|| {
        let found = (nbytes as u128).saturating_mul(by as u128);
        argument(name, format!("at most {most} bytes in all"), i64::try_from(found).unwrap_or(i64::MAX))
    })
}
