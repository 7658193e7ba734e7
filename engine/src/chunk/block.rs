//! Decoding one block.
//!
//! A block's streams are decoded into scratch space that stays in cache and un-filtered from there to the
//! destination, or straight into the destination where no filter changes anything.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams" and "Variable-length blocks".

use std::sync::atomic::Ordering;

use super::streams::{Stream, Streams};
use super::worker::{Worker, resize};
use super::{Chunk, NOT_OPENED};
use crate::codecs::{CodecFormat, Decoder, ndlz};
use crate::cpu::Isa;
use crate::error::{Error, Result};
use crate::filters::{Joint, MAX_PLANES};
use crate::header::{Body, Special};
use crate::user::User;

/// Bytes between the planes of a block, whose lengths are often a power of two: without them the same byte of each would
/// compete for the same sets of the cache.
const APART: usize = 192;

impl Chunk<'_> {
    /// Return the bytes from the start of a block on, as many as can belong to it, and their position.
    pub(super) fn block_data<'b>(&'b self, nblock: usize, input: &'b mut Vec<u8>) -> Result<(u64, &'b [u8])> {
        let cbytes = self.header.cbytes as usize;
        let start = self.start(nblock) as usize;
        if start < self.data_start || start > cbytes - 4 {
            return Err(self.bad_start(nblock, self.data_start, cbytes.saturating_sub(4)));
        }
        if let Some(data) = self.bytes.get(start..cbytes) {
            return Ok((start as u64, data));
        }
        let data = resize(input, self.stored_end(nblock, start) - start)?;
        self.source.read_all(start as u64, data, "block")?;
        Ok((start as u64, data))
    }

    /// The end of what can belong to block `nblock`, which begins at `start`.
    ///
    /// Slack may follow a block, and many may share it: what no block of this length needs does not count.
    pub(super) fn stored_end(&self, nblock: usize, start: usize) -> usize {
        let most = match self.header.body() {
            Body::VlBlocks => usize::MAX,
            _ => 2 * self.block_len(nblock) + 64 * self.nstreams + 1024,
        };
        self.end_of(start).min(start.saturating_add(most))
    }

    /// The next start behind `start`, or the end of the chunk.
    pub(super) fn end_of(&self, start: usize) -> usize {
        let cbytes = self.header.cbytes as usize;
        let sorted = self.sorted.get_or_init(|| {
            (!self.starts().is_sorted()).then(|| {
                let mut sorted: Vec<u32> = self.starts().collect();
                sorted.sort_unstable();
                sorted.into()
            })
        });
        let next = if let Some(sorted) = sorted {
            sorted.get(sorted.partition_point(|&s| s as usize <= start)).copied()
        } else {
            let table = self.table();
            let at = table.partition_point(|raw| u32::from_le_bytes(*raw) as usize <= start);
            table.get(at).map(|raw| u32::from_le_bytes(*raw))
        };
        next.map_or(cbytes, |next| next as usize).min(cbytes)
    }

    /// Decode all of block `nblock` into `dst`, which must have exactly its length.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the block, or with block 0 where that is needed; a failing read.
    pub fn decode_block(
        &self,
        nblock: usize,
        dst: &mut [u8],
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let compares = self.pipeline()?.needs_reference() && self.nblocks > 1 && !self.header.vlblocks();
        if compares && nblock == 0 {
            return self.decode_reference(dst, worker, user);
        }
        if compares && !self.reference_begun.swap(true, Ordering::Relaxed) {
            self.reference(Some(worker), user)?;
        }
        self.decode_block_with(nblock, dst, compares, worker, user)
    }

    /// Decode block 0 into `dst`, and keep it for the others.
    fn decode_reference(&self, dst: &mut [u8], worker: &mut Worker, user: Option<&dyn User>) -> Result<()> {
        if self.reference_begun.swap(true, Ordering::Relaxed) {
            dst.copy_from_slice(self.reference(Some(worker), user)?);
            return Ok(());
        }
        let mut done = false;
        let decoded = || {
            done = true;
            self.decode_block_with(0, dst, false, worker, user)?;
            let mut decoded = Vec::new();
            decoded.try_reserve_exact(dst.len()).map_err(|_| Error::OutOfMemory { needed: dst.len() as u64 })?;
            decoded.extend_from_slice(dst);
            Ok(decoded)
        };
        let decoded = self.reference.get_or_init(decoded).as_ref().map_err(Clone::clone)?;
        if !done {
            dst.copy_from_slice(decoded);
        }
        Ok(())
    }

    /// The uncompressed bytes of block 0; the first thread that needs them decodes it, others wait for the outcome.
    fn reference(&self, worker: Option<&mut Worker>, user: Option<&dyn User>) -> Result<&[u8]> {
        let outcome = self.reference.get_or_init(|| {
            let mut decoded = Vec::new();
            resize(&mut decoded, self.block_len(0))?;
            let mut own = Worker::default();
            self.decode_block_with(0, &mut decoded, false, worker.unwrap_or(&mut own), user)?;
            Ok(decoded)
        });
        match outcome {
            Ok(decoded) => Ok(decoded),
            Err(error) => Err(error.clone()),
        }
    }

    /// What a block is compared with.
    fn reference_if(&self, compared: bool, user: Option<&dyn User>) -> Result<Option<&[u8]>> {
        compared.then(|| self.reference(None, user)).transpose()
    }

    /// Decode block `nblock`, and compare it with block 0 where it was `compared` when it was written. That is waited for
    /// only when the streams are decoded, as another thread may be at it.
    fn decode_block_with(
        &self,
        nblock: usize,
        dst: &mut [u8],
        compared: bool,
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let pipeline = self.pipeline()?;
        let mut input = std::mem::take(&mut worker.input);
        let outcome = (|| {
            let (at, data) = self.block_data(nblock, &mut input)?;
            if pipeline.backward_is_identity() {
                return self.decode_streams(nblock, at, data, dst, &mut worker.decoder, user);
            }
            let nstreams = self.nstreams_of(nblock);
            if nstreams > 1
                && let Some(joint) = pipeline.joint(compared)
                && joint.width == nstreams
                && joint.fits(dst.len())
            {
                let streams = Streams { data, at, nblock, format: self.format, from: 0 };
                return self.decode_planes(streams, joint, dst, compared, worker, user);
            }
            let stage = if let Some(bytes) = self.plain_block(nblock, nstreams, at, data, dst.len())? {
                bytes
            } else {
                let stage = resize(&mut worker.stage, dst.len())?;
                self.decode_streams(nblock, at, data, stage, &mut worker.decoder, user)?;
                stage
            };
            let reference = self.reference_if(compared, user)?;
            pipeline.backward(Isa::detect(), stage, dst, reference, &mut worker.filters, user.map(User::filters))
        })();
        worker.input = input;
        outcome
    }

    /// The bytes of a block that is one stream, stored uncompressed.
    fn plain_block<'d>(
        &self,
        nblock: usize,
        nstreams: usize,
        at: u64,
        data: &'d [u8],
        len: usize,
    ) -> Result<Option<&'d [u8]>> {
        if nstreams > 1 || self.header.vlblocks() {
            return Ok(None);
        }
        match (Streams { data, at, nblock, format: self.format, from: 0 }).next(len)? {
            Stream::Stored(bytes) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// The width in bytes of the items of a block, if [`Self::with_planes`] can give their planes.
    pub fn width_of_planes(&self, nblock: usize) -> Option<usize> {
        let joint = self.pipeline().ok()?.joint(false).filter(|joint| joint.is_shuffle())?;
        (self.nstreams_of(nblock) == joint.width && !self.header.vlblocks()).then_some(joint.width)
    }

    /// Decode a block that has planes, and hand them to `take`: byte 0 of all items, byte 1, and so on.
    ///
    /// # Errors
    ///
    /// As [`Self::decode_block`], and what `take` returns.
    pub fn with_planes(
        &self,
        nblock: usize,
        worker: &mut Worker,
        user: Option<&dyn User>,
        take: impl FnOnce(&[&[u8]]) -> Result<()>,
    ) -> Result<()> {
        let nstreams = self.nstreams_of(nblock);
        let mut input = std::mem::take(&mut worker.input);
        let outcome = (|| {
            let (at, data) = self.block_data(nblock, &mut input)?;
            let streams = Streams { data, at, nblock, format: self.format, from: 0 };
            let planes = self.planes(streams, nstreams, self.block_len(nblock) / nstreams, worker, user)?;
            take(&planes[..nstreams])
        })();
        worker.input = input;
        outcome
    }

    /// Decode a block of one stream for each byte of an item, which are then joined to items.
    fn decode_planes(
        &self,
        streams: Streams<'_>,
        joint: Joint,
        dst: &mut [u8],
        compared: bool,
        worker: &mut Worker,
        user: Option<&dyn User>,
    ) -> Result<()> {
        let planes = self.planes(streams, joint.width, dst.len() / joint.width, worker, user)?;
        joint.backward(Isa::detect(), &planes[..joint.width], dst, self.reference_if(compared, user)?)
    }

    /// Decode `nstreams` streams of `length` bytes; those that are stored uncompressed stay where they are, and runs of one
    /// value are all the same bytes.
    fn planes<'s>(
        &self,
        mut streams: Streams<'s>,
        nstreams: usize,
        length: usize,
        worker: &'s mut Worker,
        user: Option<&dyn User>,
    ) -> Result<[&'s [u8]; MAX_PLANES]> {
        let Worker { stage, run, decoder, .. } = worker;
        let mut targets = resize(stage, nstreams * (length + APART))?.chunks_exact_mut(length + APART);
        let (mut run, mut runs) = (Some(run), None);
        let mut planes: [&[u8]; MAX_PLANES] = [&[]; MAX_PLANES];
        for plane in &mut planes[..nstreams] {
            let stream = streams.next(length)?;
            let target = targets.next().and_then(|target| target.get_mut(..length)).unwrap_or_default();
            *plane = match stream {
                Stream::Stored(bytes) => bytes,
                Stream::Run(value) => match (runs, run.take()) {
                    (Some((same, bytes)), _) if same == value => bytes,
                    (None, Some(run)) => {
                        let bytes = run.of(value, length)?;
                        runs = Some((value, bytes));
                        bytes
                    }
                    _ => {
                        target.fill(value);
                        target
                    }
                },
                Stream::Coded(bytes) => {
                    let at = streams.at + (streams.from - bytes.len()) as u64;
                    self.decode_coded(streams.nblock, at, bytes, target, decoder, user)?;
                    target
                }
            };
        }
        Ok(planes)
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
            let end = self.end_of(usize::try_from(at).unwrap_or(usize::MAX));
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
                Stream::Stored(bytes) => out.copy_from_slice(bytes),
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
            (Some(CodecFormat::Registered), Some(user)) if user.has_codec(self.header.udcodec) => {
                user.decode(self.header.udcodec, self.header.codec_meta, bytes, out)
            }
            (Some(CodecFormat::Registered), _) => ndlz::decode(self.header.codec_meta, bytes, out)
                .map_err(|reason| Error::Stream { codec: "ndlz", nblock: nblock as u64, at, reason }),
            (Some(format), _) => decoder
                .decode(format, bytes, out, self.dict.as_ref())
                .map_err(|reason| Error::Stream { codec: format.name(), nblock: nblock as u64, at, reason }),
            (None, _) => Err(NOT_OPENED),
        }
    }

    /// Bytes of a chunk stored uncompressed, if they are in memory.
    pub fn stored_bytes(&self, range: std::ops::Range<usize>) -> Option<&[u8]> {
        if self.header.body() != Body::Memcpyed {
            return None;
        }
        let at = self.header.len();
        self.bytes.get(at + range.start..at + range.end)
    }

    /// Write bytes `from..from + dst.len()` of a chunk that needs no decoding: stored uncompressed, or special.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] when the bytes end too early; a failing read.
    pub fn copy_stored(&self, from: usize, dst: &mut [u8]) -> Result<()> {
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
}

/// Fill `dst` with `value` over and over, as it is at byte `from` of an endless repetition.
pub fn repeat(value: &[u8], from: usize, dst: &mut [u8]) {
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
