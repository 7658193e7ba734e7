//! A chunk opened for reading: header, block table, and blocks on demand.
//!
//! ```text
//! header | bstarts: nblocks x i32 | [dsize: i32 | dictionary] | blocks, anywhere behind
//! block  = stream | stream | ...      one stream, or one for each byte of an item
//! stream = csize: i32 | csize bytes   0: zeros · -v and a token 01: bytes of value v
//!                                     the stream's own length: stored uncompressed · else: codec output
//! ```
//!
//! [`Chunk::open`] reads and checks what all blocks share; [`Chunk::decode_block`] reads one block.
//! Neither allocates more memory than the bytes at hand can justify. [`Chunk::read`] cuts a range of the content into
//! blocks.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams", "Dictionaries",
//! "Variable-length blocks", "Blosc1 chunks" and "Validation".

mod block;
mod part;
mod range;
mod same;
mod streams;
mod worker;

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::codecs::{self, CodecFormat, DecodeDict};
use crate::error::{Error, Result};
use crate::filters::{BitshuffleRule, Pipeline};
use crate::header::{Body, Header, Special};
use crate::limits::EXTENDED_HEADER_LENGTH;
use crate::shape::BlockShape;
use crate::source::Source;
use crate::user::User;

pub use block::repeat;
pub use range::Piece;
pub(crate) use worker::KEEP;
pub use worker::{Worker, resize, with_worker};

/// Bytes that are read at once to see a chunk's header, and with luck its table.
const FIRST_READ: usize = 4096;
/// A chunk behind a reader, up to this size, is read whole.
const WHOLE_READ: usize = 128 * 1024;
/// Largest dictionary, in bytes.
pub(crate) const MAX_DICT: usize = 32768;
/// A chunk that claims to hold more bytes than this has its streams looked through first.
const UNCHECKED_BYTES: usize = 64 * 1024 * 1024;

/// What a chunk answers whose blocks were not opened to be decoded: bytes are never passed off as decoded.
const NOT_OPENED: Error =
    Error::Argument { name: "chunk", expected: Cow::Borrowed("one with blocks, opened to be decoded"), found: 0 };

/// An opened chunk.
pub struct Chunk<'a> {
    /// Its checked header.
    pub header: Header,
    /// Uncompressed bytes of a full block; 0 with variable-length blocks.
    pub blocksize: usize,
    /// Number of blocks; 1 for bodies that have none.
    pub nblocks: usize,
    source: Source<'a>,
    /// The chunk's first bytes: all of them, or at least header, table and dictionary.
    bytes: Cow<'a, [u8]>,
    /// Block starts in ascending order, where the table's own order differs.
    sorted: OnceLock<Option<Arc<[u32]>>>,
    format: Option<CodecFormat>,
    pipeline: Option<Pipeline>,
    dict: Option<DecodeDict>,
    /// First byte behind table and dictionary.
    data_start: usize,
    nstreams: usize,
    /// The uncompressed bytes of block 0, which DELTA needs for the others.
    reference: OnceLock<Result<Vec<u8>>>,
    /// Whether a thread has taken it upon itself to decode them.
    reference_begun: AtomicBool,
}

impl<'a> Chunk<'a> {
    /// Open the chunk that `bytes` begin with; what follows it is ignored.
    ///
    /// # Errors
    ///
    /// As [`Chunk::open_with`].
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        Self::open_with(Source::Bytes(bytes), None, None, None)
    }

    /// Open the chunk at `source`. `itemsize` is the container's item size in bytes and `shape` the shape of its
    /// blocks, where known; `user` supplies codecs and filters that are not built in.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with header, block table or dictionary; codecs and filters that are not
    /// built in, or that need a shape; a failing read.
    pub fn open_with(
        source: Source<'a>,
        itemsize: Option<usize>,
        shape: Option<BlockShape>,
        user: Option<&dyn User>,
    ) -> Result<Self> {
        Self::open_for(source, itemsize, shape, user, true)
    }

    /// Open a chunk to look at its table only: its codec and filters need not be available.
    pub(crate) fn open_table_of(source: Source<'a>) -> Result<Self> {
        Self::open_for(source, None, None, None, false)
    }

    fn open_for(
        source: Source<'a>,
        itemsize: Option<usize>,
        shape: Option<BlockShape>,
        user: Option<&dyn User>,
        decode: bool,
    ) -> Result<Self> {
        let (header, mut bytes) = first_bytes(source)?;
        let cbytes = header.cbytes as usize;
        let body = header.body();
        let simple = matches!(body, Body::Memcpyed | Body::Empty | Body::Special(_));
        let whole = match body {
            Body::Special(special) => special == Special::Value,
            Body::Memcpyed | Body::Empty => false,
            _ => cbytes <= WHOLE_READ || header.version <= 2,
        };
        if whole {
            extend(&mut bytes, source, cbytes, "chunk")?;
        }
        let mut chunk = Self {
            header,
            blocksize: (header.blocksize as usize).clamp(1, (header.nbytes as usize).max(1)),
            nblocks: 1,
            source,
            bytes,
            sorted: OnceLock::new(),
            format: None,
            pipeline: None,
            dict: None,
            data_start: header.len(),
            nstreams: 1,
            reference: OnceLock::new(),
            reference_begun: AtomicBool::new(false),
        };
        if simple {
            chunk.nblocks = (header.nbytes as usize).div_ceil(chunk.blocksize);
            return Ok(chunk);
        }
        if !decode {
            chunk.open_table(itemsize)?;
            return Ok(chunk);
        }
        chunk.format = Some(chunk.open_format(shape, user)?);
        let rule = if header.version == 2 { BitshuffleRule::Version2 } else { BitshuffleRule::Current };
        if header.instrumented() {
            chunk.pipeline = Some(Pipeline::for_reading([0; 6], [0; 6], 1, None, None, rule, None)?);
        } else {
            let filters = user.map(User::filters);
            let (ids, metas, typesize) = (header.filters, header.filters_meta, header.typesize.into());
            chunk.pipeline = Some(Pipeline::for_reading(ids, metas, typesize, itemsize, shape, rule, filters)?);
        }
        chunk.open_table(itemsize)?;
        chunk.open_streams()?;
        Ok(chunk)
    }

    /// Keep what was read of the chunk's head, to be used [again](Self::again). None for what is in memory anyway, and
    /// for chunks with state of their own: a dictionary, or a block that the others need.
    pub fn keep(self) -> Option<Chunk<'static>> {
        let own_state = self.dict.is_some() || self.pipeline.as_ref().is_some_and(Pipeline::needs_reference);
        if own_state || self.header.body() != Body::Blocks {
            return None;
        }
        self.end_of(0);
        let Cow::Owned(mut bytes) = self.bytes else { return None };
        bytes.truncate(self.data_start);
        bytes.shrink_to_fit();
        Some(Chunk {
            source: Source::Bytes(&[]),
            bytes: Cow::Owned(bytes),
            header: self.header,
            blocksize: self.blocksize,
            nblocks: self.nblocks,
            sorted: self.sorted,
            format: self.format,
            pipeline: self.pipeline,
            dict: None,
            data_start: self.data_start,
            nstreams: self.nstreams,
            reference: OnceLock::new(),
            reference_begun: AtomicBool::new(false),
        })
    }

    /// The chunk of which [`Self::keep`] kept this, which is still at `source`.
    pub fn again<'b>(&'b self, source: Source<'b>) -> Chunk<'b> {
        Chunk {
            source,
            bytes: Cow::Borrowed(&self.bytes),
            header: self.header,
            blocksize: self.blocksize,
            nblocks: self.nblocks,
            sorted: self.sorted.clone(),
            format: self.format,
            pipeline: self.pipeline.clone(),
            dict: None,
            data_start: self.data_start,
            nstreams: self.nstreams,
            reference: OnceLock::new(),
            reference_begun: AtomicBool::new(false),
        }
    }

    /// Bytes of memory that a kept chunk takes, about.
    pub fn footprint(&self) -> usize {
        self.bytes.len() + self.sorted.get().and_then(Option::as_ref).map_or(0, |sorted| 4 * sorted.len())
    }

    /// Check that what the chunk claims to hold can be in it. To be called before all of it is given memory.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`] or [`Error::Field`] naming the block that claims too much; a failing read.
    pub fn check_claims(&self) -> Result<()> {
        let nbytes = self.header.nbytes as usize;
        if nbytes <= UNCHECKED_BYTES || nbytes / 256 <= self.header.cbytes as usize {
            return Ok(());
        }
        match self.header.body() {
            Body::Blocks => self.check_expansion(),
            Body::VlBlocks => self.vl_lengths().map(drop),
            _ => Ok(()),
        }
    }

    fn open_format(&self, shape: Option<BlockShape>, user: Option<&dyn User>) -> Result<CodecFormat> {
        if self.header.format_number() == 6
            && user.is_some_and(|user| user.has_codec(self.header.udcodec))
            && self.header.is_extended()
        {
            return Ok(CodecFormat::Registered);
        }
        let (id, name) = (self.header.udcodec, codecs::name_of_id(self.header.udcodec));
        if shape.is_none() && self.header.format_number() == 6 && codecs::ZFP.contains(&id) {
            return Err(Error::NeedsShape { what: "codec", id, name, field: "udcodec", at: 22 });
        }
        self.header.format()
    }

    /// Choose the block size, and read table and dictionary.
    fn open_table(&mut self, itemsize: Option<usize>) -> Result<()> {
        let header = self.header;
        let cbytes = header.cbytes as usize;
        let table_start = header.len();
        if self.header.vlblocks() {
            self.blocksize = 0;
            self.nblocks = header.blocksize as usize;
        } else {
            let nbytes = header.nbytes as usize;
            let itemsize = match itemsize {
                Some(itemsize) if itemsize > 255 && header.typesize == 1 => itemsize,
                _ => usize::from(header.typesize),
            };
            // Chunks with an unrounded block size exist; their data were cut with the rounded one.
            let rounded = if header.instrumented() {
                self.blocksize
            } else if nbytes < itemsize {
                1
            } else if self.blocksize > itemsize {
                self.blocksize - self.blocksize % itemsize
            } else {
                self.blocksize
            };
            self.nblocks = nbytes.div_ceil(rounded);
            self.blocksize = rounded;
        }
        let table_end = self.nblocks.checked_mul(4).and_then(|n| n.checked_add(table_start));
        let Some(table_end) = table_end.filter(|&end| end <= cbytes) else {
            return Err(Error::Field {
                field: "blocksize",
                at: 8,
                expected: format!("a table of {} blocks to fit into {cbytes} bytes", self.nblocks).into(),
                found: header.blocksize.into(),
            });
        };
        extend(&mut self.bytes, self.source, table_end, "block table")?;
        self.data_start = table_end;
        if header.use_dict() {
            self.open_dict(table_end)?;
        }
        if header.vlblocks() {
            self.check_vl_table()?;
        }
        Ok(())
    }

    fn open_dict(&mut self, at: usize) -> Result<()> {
        let cbytes = self.header.cbytes as usize;
        let bad = |found: i64| Error::Field {
            field: "dictionary size",
            at: at as u64,
            expected: format!("1 to {MAX_DICT}, within the chunk's {cbytes} bytes").into(),
            found,
        };
        if at + 4 > cbytes {
            return Err(Error::Truncated {
                what: "dictionary size",
                at: at as u64,
                needed: 4,
                got: (cbytes - at) as u64,
            });
        }
        extend(&mut self.bytes, self.source, at + 4, "dictionary size")?;
        let size = read_i32(&self.bytes, at);
        let Some(length) = usize::try_from(size).ok().filter(|&n| (1..=MAX_DICT).contains(&n) && at + 4 + n <= cbytes)
        else {
            return Err(bad(size.into()));
        };
        extend(&mut self.bytes, self.source, at + 4 + length, "dictionary")?;
        self.data_start = at + 4 + length;
        self.dict = Some(DecodeDict::new(&self.bytes[at + 4..at + 4 + length]));
        Ok(())
    }

    /// Variable-length blocks are in index order and tell their own lengths.
    fn check_vl_table(&self) -> Result<()> {
        let cbytes = self.header.cbytes as usize;
        let mut least = self.data_start;
        for nblock in 0..self.nblocks {
            let start = self.start(nblock);
            // Each block has its length and at least one byte of payload.
            if (start as usize) < least || start as usize + 4 >= cbytes {
                return Err(self.bad_start(nblock, least, cbytes.saturating_sub(5)));
            }
            least = start as usize + 5;
        }
        Ok(())
    }

    fn bad_start(&self, nblock: usize, least: usize, most: usize) -> Error {
        Error::Field {
            field: "bstarts entry",
            at: (self.header.len() + 4 * nblock) as u64,
            expected: format!("{least} to {most} (block {nblock})").into(),
            found: read_i32(&self.bytes, self.header.len() + 4 * nblock).into(),
        }
    }

    /// Find out into how many streams full blocks are split.
    fn open_streams(&mut self) -> Result<()> {
        let header = self.header;
        let typesize = usize::from(header.typesize);
        self.nstreams = 1;
        if header.vlblocks() || header.flags & crate::header::FLAG_DONT_SPLIT != 0 || typesize == 1 {
            return Ok(());
        }
        if header.version > 2 {
            self.nstreams = typesize;
        } else {
            // Blosc1 had no flag for this up to 1.10, and set it by other rules later: its own reader goes
            // by geometry. Chunks that only fit the other reading exist, too.
            let geometric = if typesize <= 16 && self.blocksize / typesize >= 128 { typesize } else { 1 };
            let other = if geometric == 1 { typesize } else { 1 };
            self.nstreams = if self.streams_meet(geometric) || !self.streams_meet(other) { geometric } else { other };
        }
        if self.nstreams > 1 && !self.blocksize.is_multiple_of(typesize) {
            return Err(Error::Field {
                field: "blocksize",
                at: 8,
                expected: format!("a multiple of the typesize {typesize} in a chunk of split blocks").into(),
                found: header.blocksize.into(),
            });
        }
        Ok(())
    }

    /// The filters to undo. A chunk whose table alone was read has none, and no block to give.
    fn pipeline(&self) -> Result<&Pipeline> {
        self.pipeline.as_ref().ok_or(NOT_OPENED)
    }

    fn table(&self) -> &[[u8; 4]] {
        let from = self.header.len();
        self.bytes[from..from + 4 * self.nblocks].as_chunks::<4>().0
    }

    fn starts(&self) -> impl Iterator<Item = u32> {
        self.table().iter().map(|raw| u32::from_le_bytes(*raw))
    }

    fn start(&self, nblock: usize) -> u32 {
        read_i32(&self.bytes, self.header.len() + 4 * nblock).cast_unsigned()
    }

    /// Uncompressed bytes of a block of a chunk without variable-length blocks.
    #[must_use]
    pub fn block_len(&self, nblock: usize) -> usize {
        let from = nblock.saturating_mul(self.blocksize);
        (self.header.nbytes as usize).saturating_sub(from).min(self.blocksize)
    }

    /// A short last block is never split.
    fn nstreams_of(&self, nblock: usize) -> usize {
        if self.block_len(nblock) == self.blocksize { self.nstreams } else { 1 }
    }

    /// The item that a special chunk repeats, if that is what the chunk is.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] when it is not all there.
    pub fn repeated_value(&self) -> Result<Option<&[u8]>> {
        if self.header.body() != Body::Special(Special::Value) {
            return Ok(None);
        }
        let range = EXTENDED_HEADER_LENGTH..self.header.cbytes as usize;
        self.bytes.get(range).map(Some).ok_or(Error::Truncated {
            what: "repeated value",
            at: EXTENDED_HEADER_LENGTH as u64,
            needed: u64::from(self.header.cbytes).saturating_sub(EXTENDED_HEADER_LENGTH as u64),
            got: self.bytes.len() as u64,
        })
    }

    /// The block table as it is stored; zeros for a chunk without one.
    pub(crate) fn table_bytes(&self) -> impl Iterator<Item = [u8; 4]> {
        let table = match self.header.body() {
            Body::Blocks | Body::VlBlocks => self.table(),
            _ => &[],
        };
        table.iter().copied().chain(std::iter::repeat_n([0; 4], self.nblocks - table.len()))
    }

    /// The bytes on disk of block `nblock`, as a lazy chunk records them.
    pub(crate) fn stored_len(&self, nblock: usize) -> usize {
        match self.header.body() {
            Body::Blocks | Body::VlBlocks => {
                let start = self.start(nblock) as usize;
                self.end_of(start).saturating_sub(start)
            }
            _ => self.block_len(nblock),
        }
    }
}

/// Read a header, and what came with it in the first read.
pub(crate) fn first_bytes(source: Source<'_>) -> Result<(Header, Cow<'_, [u8]>)> {
    let bytes = match source {
        Source::Bytes(bytes) => Cow::Borrowed(bytes),
        Source::Reader(reader) => {
            let mut first = vec![0; usize::try_from(reader.available()).unwrap_or(FIRST_READ).min(FIRST_READ)];
            let got = reader.read_some(0, &mut first)?;
            first.truncate(got);
            Cow::Owned(first)
        }
    };
    let header = Header::parse(&bytes, source.available())?;
    Ok((header, bytes))
}

/// Have at least the first `len` bytes of the chunk in `bytes`.
pub(crate) fn extend<'a>(bytes: &mut Cow<'a, [u8]>, source: Source<'a>, len: usize, what: &'static str) -> Result<()> {
    let have = bytes.len();
    if have >= len {
        return Ok(());
    }
    let owned = bytes.to_mut();
    // Only as much as there is can be read, so a claim beyond the file is not given memory.
    while owned.len() < len {
        let from = owned.len();
        let step = (len - from).min(WHOLE_READ.max(from));
        owned.try_reserve(step).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
        owned.resize(from + step, 0);
        source.read_all(from as u64, &mut owned[from..], what)?;
    }
    Ok(())
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(-1, |raw| i32::from_le_bytes(*raw))
}
