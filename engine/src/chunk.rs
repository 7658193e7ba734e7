//! A chunk opened for reading: header, block table, and blocks on demand.
//!
//! ```text
//! header | bstarts: nblocks x i32 | [dsize: i32 | dictionary] | blocks, anywhere behind
//! block  = stream | stream | ...      one stream, or one for each byte of an item
//! stream = csize: i32 | csize bytes   0: zeros · -v and a token 01: bytes of value v
//!                                     the stream's own length: stored plain · else: codec output
//! ```
//!
//! [`Chunk::open`] reads and checks what all blocks share; [`Chunk::decode_block`] reads one block.
//! Neither allocates more than the bytes at hand have earned. Which blocks to decode, and where
//! to put them, is `read`'s work.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams", "Dictionaries",
//! "Variable-length blocks", "Blosc1 chunks" and "Validation".

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::codecs::{CodecFormat, DecodeDict, Decoder};
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::filters::{BitshuffleRule, Pipeline, Scratch};
use crate::header::{Body, EXTENDED_HEADER_LENGTH, Header, MAX_BUFFERSIZE, Special};
use crate::source::Source;
use crate::user::User;

/// Bytes of a file that are read at once to see a chunk's header, and with luck its table.
const FIRST_READ: usize = 4096;
/// A chunk in a file up to this size is read whole.
const WHOLE_READ: usize = 128 * 1024;
/// Largest dictionary, in bytes.
pub(crate) const MAX_DICT: usize = 32768;
/// A chunk that claims to hold more bytes than this has its streams looked through first.
const UNEARNED: usize = 64 * 1024 * 1024;

/// What one thread keeps between blocks.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) decoder: Decoder,
    pub(crate) filters: Scratch,
    pub(crate) stage: Vec<u8>,
    pub(crate) block: Vec<u8>,
    input: Vec<u8>,
}

impl Worker {
    /// Let go of scratch space that only an unusually large block needed.
    pub(crate) fn trim(&mut self) {
        const KEEP: usize = 16 * 1024 * 1024;
        for buffer in [&mut self.stage, &mut self.block, &mut self.input] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
    }
}

/// Make `buffer` exactly `len` bytes long, keeping what memory it has.
pub(crate) fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}

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
    /// Block starts in ascending order, where the table's own order differs and the blocks are in a file.
    sorted: Option<Vec<u32>>,
    format: Option<CodecFormat>,
    pipeline: Option<Pipeline>,
    dict: Option<DecodeDict>,
    /// First byte behind table and dictionary.
    data_start: usize,
    nstreams: usize,
    /// The plain bytes of block 0, which DELTA needs for the others.
    reference: OnceLock<Result<Vec<u8>>>,
}

impl<'a> Chunk<'a> {
    /// Open the chunk at `source`. `itemsize` is the container's item size in bytes, where known;
    /// `user` supplies codecs and filters that are not built in.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with header, block table or dictionary; codecs and filters that are not
    /// built in; a failing read.
    pub fn open(source: Source<'a>, itemsize: Option<usize>, user: Option<&dyn User>) -> Result<Self> {
        let (header, mut bytes) = first_bytes(source)?;
        let cbytes = header.cbytes as usize;
        let body = header.body();
        let simple = matches!(body, Body::Memcpyed | Body::Empty | Body::Special(_));
        let whole = match body {
            Body::Special(_) => true,
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
            sorted: None,
            format: None,
            pipeline: None,
            dict: None,
            data_start: header.len(),
            nstreams: 1,
            reference: OnceLock::new(),
        };
        if simple {
            chunk.nblocks = (header.nbytes as usize).div_ceil(chunk.blocksize);
            return Ok(chunk);
        }
        chunk.format = Some(chunk.open_format(user)?);
        let rule = if header.version == 2 { BitshuffleRule::Version2 } else { BitshuffleRule::Current };
        if header.instrumented() {
            chunk.pipeline = Some(Pipeline::for_reading([0; 6], [0; 6], 1, None, rule, None)?);
        } else {
            let filters = user.map(User::filters);
            let typesize = header.typesize.into();
            chunk.pipeline =
                Some(Pipeline::for_reading(header.filters, header.filters_meta, typesize, itemsize, rule, filters)?);
        }
        chunk.open_table(itemsize)?;
        chunk.open_streams()?;
        if header.nbytes as usize > UNEARNED && header.nbytes as usize / 256 > cbytes {
            chunk.check_expansion()?;
        }
        Ok(chunk)
    }

    fn open_format(&self, user: Option<&dyn User>) -> Result<CodecFormat> {
        if self.header.format_number() == 6
            && user.is_some_and(|user| user.has_codec(self.header.udcodec))
            && self.header.is_extended()
        {
            return Ok(CodecFormat::Registered);
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
            let rounded = if nbytes < itemsize {
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
        if matches!(self.source, Source::File { .. }) && self.bytes.len() < cbytes {
            if !self.starts().is_sorted() {
                let mut sorted: Vec<u32> = self.starts().collect();
                sorted.sort_unstable();
                self.sorted = Some(sorted);
            }
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

    /// Variable-length blocks stand in index order and tell their own lengths.
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
        let full = self.blocksize <= header.nbytes as usize;
        if self.nstreams > 1 && full && (!self.blocksize.is_multiple_of(typesize) || self.blocksize == 0) {
            return Err(Error::Field {
                field: "blocksize",
                at: 8,
                expected: format!("a multiple of the typesize {typesize} in a chunk of split blocks").into(),
                found: header.blocksize.into(),
            });
        }
        Ok(())
    }

    /// Whether the first block, read as `nstreams` streams, ends where another block or the chunk does.
    fn streams_meet(&self, nstreams: usize) -> bool {
        if self.block_len(0) < self.blocksize || !self.blocksize.is_multiple_of(nstreams) {
            return nstreams == 1;
        }
        let mut at = self.start(0) as usize;
        for _ in 0..nstreams {
            let Some(csize) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else { return false };
            let Ok(csize) = usize::try_from(i32::from_le_bytes(*csize)) else { return false };
            at += 4 + csize;
            if csize > self.blocksize / nstreams || at > self.header.cbytes as usize {
                return false;
            }
        }
        let next = self.starts().filter(|&start| start > self.start(0)).min();
        at == next.map_or(self.header.cbytes as usize, |next| next as usize)
    }

    /// Look through all streams of a chunk that claims to expand enormously: no codec makes more than so
    /// many bytes of one, so a claim beyond that cannot be met and must not be given memory.
    fn check_expansion(&self) -> Result<()> {
        let mut input = Vec::new();
        for nblock in 0..self.nblocks {
            let (at, data) = self.block_data(nblock, &mut input)?;
            let length = self.block_len(nblock);
            let nstreams = self.nstreams_of(nblock);
            let mut streams = Streams { data, at, nblock, format: self.format, from: 0 };
            for _ in 0..nstreams {
                let stream = streams.next(length / nstreams)?;
                if let Stream::Coded(bytes) = stream
                    && let Some(format) = self.format
                    && length / nstreams / max_expansion(format) > bytes.len()
                {
                    return Err(Error::Stream {
                        codec: format.name(),
                        nblock: nblock as u64,
                        at,
                        reason: "too short for the length it claims",
                    });
                }
            }
        }
        Ok(())
    }

    fn starts(&self) -> impl Iterator<Item = u32> {
        let from = self.header.len();
        let (table, _) = self.bytes[from..from + 4 * self.nblocks].as_chunks::<4>();
        table.iter().map(|raw| u32::from_le_bytes(*raw))
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

    /// Return the bytes from the start of a block on, as many as can belong to it, and their position.
    fn block_data<'b>(&'b self, nblock: usize, input: &'b mut Vec<u8>) -> Result<(u64, &'b [u8])> {
        let cbytes = self.header.cbytes as usize;
        let start = self.start(nblock) as usize;
        if start < self.data_start || start > cbytes - 4 {
            return Err(self.bad_start(nblock, self.data_start, cbytes.saturating_sub(4)));
        }
        if let Some(data) = self.bytes.get(start..cbytes) {
            return Ok((start as u64, data));
        }
        let end = self.end_of(nblock, start);
        let length = if self.header.vlblocks() {
            end - start
        } else {
            // No valid block takes more than its plain bytes, and five for each stream.
            (end - start).min(self.block_len(nblock) + 5 * self.nstreams)
        };
        let data = resize(input, length)?;
        self.source.read_all(start as u64, data, "block")?;
        Ok((start as u64, data))
    }

    /// The next start behind `start`, or the end of the chunk.
    fn end_of(&self, nblock: usize, start: usize) -> usize {
        let cbytes = self.header.cbytes as usize;
        let next = match &self.sorted {
            Some(sorted) => sorted.get(sorted.partition_point(|&s| s as usize <= start)).copied(),
            None => self.starts().skip(nblock + 1).find(|&s| s as usize > start),
        };
        next.map_or(cbytes, |next| next as usize).min(cbytes)
    }

    /// Decode all of block `nblock` into `dst`, which must have exactly its length.
    pub(crate) fn decode_block(
        &self,
        nblock: usize,
        dst: &mut [u8],
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        let reference = if pipeline.needs_reference() && nblock > 0 && !self.header.vlblocks() {
            Some(self.reference(worker, user)?)
        } else {
            None
        };
        self.decode_block_with(nblock, dst, reference, worker, user)
    }

    /// The plain bytes of block 0; the first thread that needs them decodes it, others wait for the outcome.
    fn reference(&self, worker: &mut Worker, user: Option<&dyn User>) -> Result<&[u8]> {
        let outcome = self.reference.get_or_init(|| {
            let mut plain = Vec::new();
            resize(&mut plain, self.block_len(0))?;
            self.decode_block_with(0, &mut plain, None, worker, user)?;
            Ok(plain)
        });
        match outcome {
            Ok(plain) => Ok(plain),
            Err(error) => Err(error.clone()),
        }
    }

    fn decode_block_with(
        &self,
        nblock: usize,
        dst: &mut [u8],
        reference: Option<&[u8]>,
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        let mut input = std::mem::take(&mut worker.input);
        let outcome = (|| {
            let (at, data) = self.block_data(nblock, &mut input)?;
            if pipeline.backward_is_identity() {
                return self.decode_streams(nblock, at, data, dst, &mut worker.decoder, user);
            }
            let stage = resize(&mut worker.stage, dst.len())?;
            self.decode_streams(nblock, at, data, stage, &mut worker.decoder, user)?;
            pipeline.backward(Isa::detect(), stage, dst, reference, &mut worker.filters, user.map(User::filters))
        })();
        worker.input = input;
        outcome
    }

    fn decode_streams(
        &self,
        nblock: usize,
        at: u64,
        data: &[u8],
        out: &mut [u8],
        decoder: &mut Decoder,
        user: Option<&dyn User>,
    ) -> Result<()> {
        if self.header.vlblocks() {
            let end = self.end_of(nblock, usize::try_from(at).unwrap_or(usize::MAX));
            let payload = data.get(4..end - usize::try_from(at).unwrap_or(0)).unwrap_or_default();
            if payload.len() == out.len() {
                out.copy_from_slice(payload);
                return Ok(());
            }
            return self.decode_coded(nblock, at + 4, payload, out, decoder, user);
        }
        let nstreams = self.nstreams_of(nblock);
        let mut streams = Streams { data, at, nblock, format: self.format, from: 0 };
        for out in out.chunks_exact_mut((out.len() / nstreams).max(1)) {
            match streams.next(out.len())? {
                Stream::Run(value) => out.fill(value),
                Stream::Plain(bytes) => out.copy_from_slice(bytes),
                Stream::Coded(bytes) => {
                    let at = at + (streams.from - bytes.len()) as u64;
                    self.decode_coded(nblock, at, bytes, out, decoder, user)?;
                }
            }
        }
        Ok(())
    }

    fn decode_coded(
        &self,
        nblock: usize,
        at: u64,
        bytes: &[u8],
        out: &mut [u8],
        decoder: &mut Decoder,
        user: Option<&dyn User>,
    ) -> Result<()> {
        match (self.format, user) {
            (Some(CodecFormat::Registered), Some(user)) => {
                user.decode(self.header.udcodec, self.header.codec_meta, bytes, out)
            }
            (Some(format), _) => decoder
                .decode(format, bytes, out, self.dict.as_ref())
                .map_err(|reason| Error::Stream { codec: format.name(), nblock: nblock as u64, at, reason }),
            (None, _) => Ok(()),
        }
    }

    /// Return the uncompressed lengths of variable-length blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Field`] when a length is out of range or they do not add up to nbytes.
    pub fn vl_lengths(&self) -> Result<Vec<usize>> {
        let nbytes = u64::from(self.header.nbytes);
        let mut lengths = Vec::with_capacity(self.nblocks);
        let mut sum = 0;
        for nblock in 0..self.nblocks {
            let start = self.start(nblock) as usize;
            let mut raw = [0; 4];
            match self.bytes.get(start..start + 4) {
                Some(bytes) => raw.copy_from_slice(bytes),
                None => self.source.read_all(start as u64, &mut raw, "variable-length block")?,
            }
            let length = i32::from_le_bytes(raw);
            let positive = u64::try_from(length).ok().filter(|&n| n > 0 && sum + n <= nbytes);
            let Some(positive) = positive else {
                return Err(Error::Field {
                    field: "length of a variable-length block",
                    at: start as u64,
                    expected: format!("1 to {} (block {nblock})", nbytes - sum).into(),
                    found: length.into(),
                });
            };
            let payload = self.end_of(nblock, start) - start - 4;
            let expansion = self.format.map_or(1, max_expansion) as u64;
            if positive as usize > UNEARNED && positive / expansion > payload as u64 {
                return Err(Error::Stream {
                    codec: self.format.map_or("no", CodecFormat::name),
                    nblock: nblock as u64,
                    at: start as u64,
                    reason: "too short for the length it claims",
                });
            }
            sum += positive;
            lengths.push(positive as usize);
        }
        if sum != nbytes {
            return Err(Error::Field {
                field: "nbytes",
                at: 4,
                expected: format!("{sum}, the sum of its {} blocks", self.nblocks).into(),
                found: self.header.nbytes.into(),
            });
        }
        Ok(lengths)
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
            needed: (self.header.cbytes as u64).saturating_sub(EXTENDED_HEADER_LENGTH as u64),
            got: self.bytes.len() as u64,
        })
    }

    /// Write bytes `from..from + dst.len()` of a chunk that needs no decoding: plain or special.
    pub(crate) fn copy_plain(&self, from: usize, dst: &mut [u8]) -> Result<()> {
        match self.header.body() {
            Body::Memcpyed => {
                let at = self.header.len() + from;
                match self.bytes.get(at..at + dst.len()) {
                    Some(bytes) => dst.copy_from_slice(bytes),
                    None => self.source.read_all(at as u64, dst, "memcpyed chunk")?,
                }
            }
            Body::Special(Special::Value) => {
                if let Some(value) = self.repeated_value()? {
                    repeat(value, from, dst);
                }
            }
            Body::Special(Special::Nan) if self.header.typesize == 4 => repeat(&[0, 0, 0xC0, 0x7F], from, dst),
            Body::Special(Special::Nan) => repeat(&[0, 0, 0, 0, 0, 0, 0xF8, 0x7F], from, dst),
            _ => dst.fill(0),
        }
        Ok(())
    }

    /// The chunk's first bytes with at least header and block table, and the sizes on disk of its blocks,
    /// as a lazy chunk records them.
    pub(crate) fn lazy_parts(&self) -> (&[u8], Vec<usize>) {
        let table_end = self.header.len() + 4 * self.nblocks;
        let sizes = match self.header.body() {
            Body::Blocks | Body::VlBlocks => (0..self.nblocks)
                .map(|n| self.end_of(n, self.start(n) as usize).saturating_sub(self.start(n) as usize))
                .collect(),
            _ => (0..self.nblocks).map(|n| self.block_len(n)).collect(),
        };
        (&self.bytes[..table_end.min(self.bytes.len())], sizes)
    }

    /// The chunk's bytes, if all of them are at hand.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.bytes.get(..self.header.cbytes as usize)
    }
}

/// More plain bytes than one byte of a stream can stand for.
fn max_expansion(format: CodecFormat) -> usize {
    match format {
        CodecFormat::BloscLz | CodecFormat::Lz4 | CodecFormat::Snappy => 256,
        CodecFormat::Zlib => 1040,
        // A block of 4 bytes stands for 128 KiB of one value.
        CodecFormat::Zstd => 64 * 1024,
        CodecFormat::Registered => MAX_BUFFERSIZE,
    }
}

/// Read a header, and what came with it in the first read.
pub(crate) fn first_bytes(source: Source<'_>) -> Result<(Header, Cow<'_, [u8]>)> {
    let bytes = match source {
        Source::Bytes(bytes) => Cow::Borrowed(bytes),
        Source::File { limit, .. } => {
            let mut first = vec![0; usize::try_from(limit).unwrap_or(FIRST_READ).min(FIRST_READ)];
            let got = source.read_some(0, &mut first)?;
            first.truncate(got);
            Cow::Owned(first)
        }
    };
    let header = Header::parse(&bytes, source.available())?;
    Ok((header, bytes))
}

/// Have at least the first `len` bytes of the chunk in `bytes`.
fn extend<'a>(bytes: &mut Cow<'a, [u8]>, source: Source<'a>, len: usize, what: &'static str) -> Result<()> {
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

/// Fill `dst` with `value` over and over, as it stands at byte `from` of an endless repetition.
fn repeat(value: &[u8], from: usize, dst: &mut [u8]) {
    let phase = from % value.len();
    let first = dst.len().min(value.len());
    for (n, byte) in dst[..first].iter_mut().enumerate() {
        *byte = value[(phase + n) % value.len()];
    }
    let mut done = first;
    while done < dst.len() {
        let step = done.min(dst.len() - done);
        let (have, rest) = dst.split_at_mut(done);
        rest[..step].copy_from_slice(&have[..step]);
        done += step;
    }
}

/// One stream of a block.
enum Stream<'a> {
    Run(u8),
    Plain(&'a [u8]),
    Coded(&'a [u8]),
}

/// The streams of a block, one after the other.
struct Streams<'a> {
    data: &'a [u8],
    /// Position of `data` in the chunk.
    at: u64,
    nblock: usize,
    format: Option<CodecFormat>,
    from: usize,
}

impl<'a> Streams<'a> {
    fn next(&mut self, length: usize) -> Result<Stream<'a>> {
        let rest = self.data.get(self.from..).unwrap_or_default();
        let at = self.at + self.from as u64;
        let Some((raw, rest)) = rest.split_first_chunk::<4>() else {
            return Err(Error::Truncated { what: "csize of a stream", at, needed: 4, got: rest.len() as u64 });
        };
        let csize = i32::from_le_bytes(*raw);
        let bad = |reason| Error::Stream {
            codec: self.format.map_or("unknown", CodecFormat::name),
            nblock: self.nblock as u64,
            at,
            reason,
        };
        match csize {
            0 => {
                self.from += 4;
                Ok(Stream::Run(0))
            }
            -255..0 => match rest.first() {
                Some(1) => {
                    self.from += 5;
                    Ok(Stream::Run(u8::try_from(-csize).unwrap_or(0)))
                }
                Some(_) => Err(bad("the token of a run is not 1")),
                None => Err(Error::Truncated { what: "token of a run", at: at + 4, needed: 1, got: 0 }),
            },
            ..-255 => Err(bad("csize is below -255")),
            _ => {
                let csize = usize::try_from(csize).unwrap_or(usize::MAX);
                if csize > length {
                    return Err(bad("csize exceeds the plain length of the stream"));
                }
                let Some(bytes) = rest.get(..csize) else {
                    return Err(Error::Truncated {
                        what: "stream",
                        at: at + 4,
                        needed: csize as u64,
                        got: rest.len() as u64,
                    });
                };
                self.from += 4 + csize;
                Ok(if csize == length { Stream::Plain(bytes) } else { Stream::Coded(bytes) })
            }
        }
    }
}
