//! An opened chunk of an array, as bytes of its blocks.

use std::ops::Range;

use super::geometry::Geometry;
use super::scatter::{MAX_BAND, Tile};
use crate::read::ReadOptions;
use superchunk_engine::chunk::{Chunk, Worker, repeat, resize, with_worker};
use superchunk_engine::header::{Body, Special};
use superchunk_engine::source::Source;
use superchunk_engine::user::User;
use superchunk_engine::{Error, Result};

/// Bytes of blocks that are written together; they stay in the cache of one core.
const BAND: usize = 256 * 1024;
/// Rows of this many bytes are written as fast one by one.
const LONG_ROW: usize = 4096;

/// How the bytes of blocks are had.
enum How {
    /// Blocks are decoded one by one.
    Blocks,
    /// Nothing is decoded: the chunk is stored uncompressed.
    Stored,
    /// All items are this one.
    Same(Vec<u8>),
    /// The chunk is cut into other blocks than the array's, so it was decoded whole.
    Whole(Vec<u8>),
}

/// A chunk that holds what its array says.
pub(super) struct Content<'a> {
    chunk: Chunk<'a>,
    how: How,
    block_nbytes: usize,
    itemsize: usize,
    user: Option<&'a dyn User>,
}

impl<'a> Content<'a> {
    /// Open the chunk at `source`.
    pub(super) fn open(source: Source<'a>, geometry: &Geometry, options: ReadOptions<'a>) -> Result<Self> {
        let chunk = Chunk::open_with(source, Some(geometry.itemsize()), geometry.shape(), options.user)?;
        Self::of(chunk, geometry, options)
    }

    /// Take an opened chunk.
    pub(super) fn of(chunk: Chunk<'a>, geometry: &Geometry, options: ReadOptions<'a>) -> Result<Self> {
        chunk.expect_nbytes(geometry.chunk_nbytes() as u64)?;
        let how = match chunk.header.body() {
            Body::Blocks if chunk.blocksize == geometry.block_nbytes() => How::Blocks,
            Body::Special(special) => match same(&chunk, special, geometry.itemsize())? {
                Some(item) => How::Same(item),
                None => How::Stored,
            },
            Body::Memcpyed | Body::Empty => How::Stored,
            Body::Blocks | Body::VlBlocks => {
                chunk.check_claims()?;
                let mut whole = Vec::new();
                resize(&mut whole, geometry.chunk_nbytes())?;
                with_worker(|worker| chunk.read_into(0, &mut whole, worker, options.user, options.interrupt))?;
                How::Whole(whole)
            }
        };
        Ok(Self {
            chunk,
            how,
            block_nbytes: geometry.block_nbytes(),
            itemsize: geometry.itemsize(),
            user: options.user,
        })
    }

    /// Give the chunk back.
    pub(super) fn into_chunk(self) -> Chunk<'a> {
        self.chunk
    }

    /// The one item that all items are, where that is so.
    pub(super) fn item(&self) -> Option<&[u8]> {
        match &self.how {
            How::Same(item) => Some(item),
            _ => None,
        }
    }

    /// Bytes of a block.
    pub(super) fn block_nbytes(&self) -> usize {
        self.block_nbytes
    }

    /// Whether a tile is best taken from the planes of its block.
    pub(super) fn has_planes_for(&self, tile: &Tile<'_, '_>) -> bool {
        let width = self.itemsize;
        matches!(self.how, How::Blocks)
            && tile.bytes.len() > self.block_nbytes / 2
            && tile.takes_planes(width)
            && self.chunk.width_of_planes(tile.nblock) == Some(width)
    }

    /// Write a tile from the planes of its block.
    pub(super) fn join(&self, tile: &mut Tile<'_, '_>, scratch: &mut Vec<u8>, worker: &mut Worker) -> Result<()> {
        self.chunk.check_whole(tile.nblock)?;
        self.chunk.with_planes(tile.nblock, worker, self.user, |planes| tile.join(planes, scratch))
    }

    /// How many blocks, of `most` that are side by side, to write together in rows of `row` bytes each.
    pub(super) fn together(&self, row: usize, most: usize) -> usize {
        let decoded = matches!(self.how, How::Blocks);
        if !decoded || row >= LONG_ROW || self.block_nbytes > BAND / 2 {
            return 1;
        }
        most.min(MAX_BAND).min(BAND / self.block_nbytes.max(1))
    }

    /// Return bytes `wanted` of a block, in `room`, which is as large as a block.
    pub(super) fn bytes_of_block<'b>(
        &self,
        nblock: usize,
        wanted: Range<usize>,
        scratch: &'b mut [u8],
        worker: &mut Worker,
    ) -> Result<&'b [u8]> {
        if wanted.len() > self.block_nbytes / 2 {
            self.write(nblock, 0, scratch, worker)?;
            return Ok(&scratch[wanted]);
        }
        let part = &mut scratch[..wanted.len()];
        self.write(nblock, wanted.start, part, worker)?;
        Ok(part)
    }

    /// Return bytes `wanted` of a block, in `room` unless they are somewhere already.
    pub(super) fn bytes<'b>(
        &'b self,
        nblock: usize,
        wanted: Range<usize>,
        scratch: &'b mut Vec<u8>,
        worker: &mut Worker,
    ) -> Result<&'b [u8]> {
        let begin = nblock * self.block_nbytes;
        if let Some(bytes) = self.ready(begin + wanted.start..begin + wanted.end) {
            return Ok(bytes);
        }
        if matches!(self.how, How::Blocks) && wanted.len() > self.block_nbytes / 2 {
            self.chunk.check_whole(nblock)?;
            let block = resize(scratch, self.block_nbytes)?;
            self.chunk.decode_block(nblock, block, worker, self.user)?;
            return Ok(&block[wanted]);
        }
        let part = resize(scratch, wanted.len())?;
        self.write(nblock, wanted.start, part, worker)?;
        Ok(part)
    }

    /// Write the bytes of a block from `from` on to `dst`.
    pub(super) fn write(&self, nblock: usize, from: usize, dst: &mut [u8], worker: &mut Worker) -> Result<()> {
        let at = nblock * self.block_nbytes + from;
        match &self.how {
            How::Blocks if dst.len() == self.block_nbytes => self.chunk.decode_block(nblock, dst, worker, self.user),
            How::Blocks => self.chunk.decode_part(nblock, from, self.block_nbytes, dst, worker, self.user),
            How::Stored => self.chunk.copy_stored(at, dst),
            How::Same(item) => {
                repeat(item, at, dst);
                Ok(())
            }
            How::Whole(_) => {
                let bytes = self.ready(at..at + dst.len()).ok_or(Error::Truncated {
                    what: "chunk",
                    at: at as u64,
                    needed: dst.len() as u64,
                    got: 0,
                })?;
                dst.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Bytes of the content that are in memory as they are.
    fn ready(&self, range: Range<usize>) -> Option<&[u8]> {
        match &self.how {
            How::Whole(whole) => whole.get(range),
            How::Stored => self.chunk.stored_bytes(range),
            How::Blocks | How::Same(_) => None,
        }
    }
}

/// The item that a special chunk repeats, if items are whole repetitions.
fn same(chunk: &Chunk<'_>, special: Special, itemsize: usize) -> Result<Option<Vec<u8>>> {
    let period = match special {
        Special::Zero | Special::Uninit => 1,
        Special::Nan => usize::from(chunk.header.typesize),
        Special::Value => chunk.repeated_value()?.map_or(1, <[u8]>::len),
    };
    if !itemsize.is_multiple_of(period) {
        return Ok(None);
    }
    let mut item = Vec::new();
    chunk.copy_stored(0, resize(&mut item, itemsize)?)?;
    Ok(Some(item))
}
