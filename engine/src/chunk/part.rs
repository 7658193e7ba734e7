//! Decoding part of a block.
//!
//! ```text
//! items wanted         first .. last
//! stream of byte 0     ......|#####|......      decoded as far as `last`, kept from `first`
//! stream of byte 1     ......|#####|......
//! un-shuffled          the items wanted, and nothing else
//! ```
//!
//! That needs the block to have no filter, or a shuffle alone with a stream for each byte of an item, as most
//! chunks have. Other blocks are decoded whole and cut. Runs cost nothing here, however long they claim to be;
//! a block that is given memory whole must have the bytes that justify it.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use super::streams::{Stream, Streams};
use super::worker::{Worker, resize};
use super::{Chunk, NOT_OPENED, UNCHECKED_BYTES, read_i32};
use crate::codecs::CodecFormat;
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::user::User;

/// Blocks that are stored in at least so many bytes are read stream by stream, if these are long, too.
const APART: usize = 64 * 1024;
const LONG_STREAM: usize = 16 * 1024;
/// So many bytes are read to see how long a stream is, and with luck all of it.
const LOOK: usize = 4096;

/// One stream of a block, and where it belongs.
struct Placed<'a> {
    /// None for one that is stored uncompressed and was not read.
    stream: Option<Stream<'a>>,
    nblock: usize,
    nstream: usize,
    /// Its uncompressed length in bytes.
    length: usize,
    /// Its position in the chunk.
    at: u64,
}

impl Chunk<'_> {
    /// Decode bytes `from..from + dst.len()` of block `nblock`, which has `len` bytes.
    ///
    /// # Errors
    ///
    /// As [`Self::decode_block`]. Damage elsewhere in the block may go unnoticed.
    pub fn decode_part(
        &self,
        nblock: usize,
        from: usize,
        len: usize,
        dst: &mut [u8],
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let pipeline = self.pipeline()?;
        let large = dst.len() > len / 2 && len <= UNCHECKED_BYTES;
        let nstreams = self.nstreams_of(nblock);
        let registered = self.format == Some(CodecFormat::Registered);
        let built_in = user.is_none() && !registered && self.dict.is_none() && !self.header.vlblocks();
        if built_in && !large {
            if pipeline.backward_is_identity() {
                return self.decode_plain_part(nblock, from, dst, worker);
            }
            if pipeline.only_shuffle() == Some(nstreams) && len.is_multiple_of(nstreams) {
                return self.decode_shuffled_part(nblock, from, dst, worker);
            }
        }
        self.check_whole(nblock)?;
        let mut decoded = std::mem::take(&mut worker.block);
        let outcome = resize(&mut decoded, len).and_then(|decoded| {
            self.decode_block(nblock, decoded, worker, user)?;
            dst.copy_from_slice(&decoded[from..from + dst.len()]);
            Ok(())
        });
        worker.block = decoded;
        outcome
    }

    /// Hand each stream of a block to `each`, one that is stored uncompressed perhaps unread.
    fn each_stream(
        &self,
        nblock: usize,
        worker: &mut Worker,
        mut each: impl FnMut(&mut Worker, Placed<'_>) -> Result<()>,
    ) -> Result<()> {
        let start = self.start(nblock) as usize;
        let end = self.stored_end(nblock, start);
        let long = self.block_len(nblock) / self.nstreams_of(nblock) >= LONG_STREAM;
        if long
            && start >= self.data_start
            && end >= start.saturating_add(APART)
            && self.bytes.get(start..end).is_none()
        {
            return self.each_stream_apart(nblock, end, worker, each);
        }
        let mut input = std::mem::take(&mut worker.input);
        let outcome = (|| {
            let (at, data) = self.block_data(nblock, &mut input)?;
            let nstreams = self.nstreams_of(nblock);
            let length = self.block_len(nblock) / nstreams;
            let mut streams = Streams { data, at, nblock, format: self.format, from: 0 };
            for nstream in 0..nstreams {
                let at = at + streams.from as u64;
                let stream = Some(streams.next(length)?);
                each(worker, Placed { stream, nblock, nstream, length, at })?;
            }
            Ok(())
        })();
        worker.input = input;
        outcome
    }

    /// Read the streams of a block, which ends at byte `end` of the chunk, one after the other.
    fn each_stream_apart(
        &self,
        nblock: usize,
        end: usize,
        worker: &mut Worker,
        mut each: impl FnMut(&mut Worker, Placed<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut at = self.start(nblock) as usize;
        let nstreams = self.nstreams_of(nblock);
        let length = self.block_len(nblock) / nstreams;
        let mut input = std::mem::take(&mut worker.input);
        // What `input` holds of the chunk.
        let mut held = at..at;
        let mut have = |input: &mut Vec<u8>, at: usize, count: usize| {
            if at < held.start || at + count > held.end {
                held = at..at.saturating_add(count.max(LOOK)).min(end);
                self.source.read_all(at as u64, resize(input, held.len())?, "block")?;
            }
            Ok(at - held.start..(at - held.start).saturating_add(count).min(held.len()))
        };
        let outcome = (0..nstreams).try_for_each(|nstream| {
            let size = have(&mut input, at, 5.min(end - at))?;
            let csize = usize::try_from(read_i32(&input, size.start)).unwrap_or(0);
            let unread = csize == length && length <= end.saturating_sub(at + 4);
            let placed = |stream| Placed { stream, nblock, nstream, length, at: at as u64 };
            if unread {
                each(worker, placed(None))?;
                at += 4 + length;
                return Ok(());
            }
            let range = have(&mut input, at, (4 + csize.max(1)).min(end - at))?;
            let mut streams = Streams { data: &input[range], at: at as u64, nblock, format: self.format, from: 0 };
            let stream = streams.next(length)?;
            each(worker, placed(Some(stream)))?;
            at += streams.from;
            Ok(())
        });
        worker.input = input;
        outcome
    }

    /// Write bytes `from..from + out.len()` of a stream.
    fn decode_stream_part(&self, placed: &Placed<'_>, from: usize, out: &mut [u8], worker: &mut Worker) -> Result<()> {
        let Placed { nblock, length, at, .. } = *placed;
        match placed.stream {
            None => self.source.read_all(at + 4 + from as u64, out, "stream")?,
            Some(Stream::Run(value)) => out.fill(value),
            Some(Stream::Stored(bytes)) => out.copy_from_slice(&bytes[from..from + out.len()]),
            Some(Stream::Coded(bytes)) => {
                let format = self.format.ok_or(NOT_OPENED)?;
                let fail = |reason| Error::Stream { codec: format.name(), nblock: nblock as u64, at, reason };
                if length > UNCHECKED_BYTES && length / self.max_expansion(format) > bytes.len() {
                    return Err(fail("too short for the length it claims"));
                }
                let Worker { decoder, block, scratch, .. } = worker;
                if decoder.decode_range(format, bytes, from, out, length) {
                    return Ok(());
                }
                let head = resize(block, from + out.len())?;
                decoder.decode_prefix(format, bytes, head, length, scratch).map_err(fail)?;
                out.copy_from_slice(&head[from..]);
            }
        }
        Ok(())
    }

    /// A part of a block without filters: of each stream, what overlaps.
    fn decode_plain_part(&self, nblock: usize, from: usize, dst: &mut [u8], worker: &mut Worker) -> Result<()> {
        let length = self.block_len(nblock) / self.nstreams_of(nblock);
        let stop = from + dst.len();
        self.each_stream(nblock, worker, |worker, placed| {
            let begin = placed.nstream * length;
            let (first, last) = (from.max(begin), stop.min(begin + length));
            if first >= last {
                return Ok(());
            }
            let out = &mut dst[first - from..last - from];
            self.decode_stream_part(&placed, first - begin, out, worker)
        })
    }

    /// A part of a shuffled block: the same items of each stream, un-shuffled.
    fn decode_shuffled_part(&self, nblock: usize, from: usize, dst: &mut [u8], worker: &mut Worker) -> Result<()> {
        let pipeline = self.pipeline()?;
        let width = self.nstreams_of(nblock);
        let (first, last) = (from / width, (from + dst.len()).div_ceil(width));
        let count = last - first;
        let mut stage = std::mem::take(&mut worker.stage);
        let outcome = resize(&mut stage, 2 * count * width).and_then(|scratch| {
            let (planes, items) = scratch.split_at_mut(count * width);
            self.each_stream(nblock, worker, |worker, placed| {
                let out = &mut planes[placed.nstream * count..(placed.nstream + 1) * count];
                self.decode_stream_part(&placed, first, out, worker)
            })?;
            pipeline.backward(Isa::detect(), planes, items, None, &mut worker.filters, None)?;
            let skip = from - first * width;
            dst.copy_from_slice(&items[skip..skip + dst.len()]);
            Ok(())
        });
        worker.stage = stage;
        outcome
    }

    /// Refuse to decode a block whole into scratch space beyond its memory budget.
    ///
    /// # Errors
    ///
    /// [`Error::Field`] when the block claims too much; whatever is wrong with its streams; a failing read.
    pub fn check_whole(&self, nblock: usize) -> Result<()> {
        if !self.header.vlblocks() {
            self.check_memory_budget(nblock)?;
            if self.pipeline()?.needs_reference() {
                self.check_memory_budget(0)?;
            }
        }
        Ok(())
    }

    /// Refuse to give memory to a huge block of which nearly nothing is stored.
    fn check_memory_budget(&self, nblock: usize) -> Result<()> {
        let len = self.block_len(nblock);
        if len <= UNCHECKED_BYTES {
            return Ok(());
        }
        let mut memory_budget: usize = 0;
        let mut worker = Worker::default();
        self.each_stream(nblock, &mut worker, |_, placed| {
            let more = match placed.stream {
                None => placed.length,
                Some(Stream::Run(_)) => 0,
                Some(Stream::Stored(bytes)) => bytes.len(),
                Some(Stream::Coded(bytes)) => {
                    bytes.len().saturating_mul(self.format.map_or(1, |format| self.max_expansion(format)))
                }
            };
            memory_budget = more.saturating_add(memory_budget);
            Ok(())
        })?;
        if memory_budget < len {
            return Err(Error::Field {
                field: "blocksize",
                at: 8,
                expected: format!("blocks of at most {UNCHECKED_BYTES} bytes where nearly all of one is runs").into(),
                found: self.header.blocksize.into(),
            });
        }
        Ok(())
    }
}
