//! The streams of a block, and what can be told from them without decoding.
//!
//! Source: docs/format/chunk.md, sections "Blocks and streams", "Blosc1 chunks" and "Validation".

use super::{Chunk, UNCHECKED_BYTES};
use crate::codecs::{CodecFormat, NDLZ};
use crate::error::{Error, Result};
use crate::limits::MAX_BUFFERSIZE;

/// One stream of a block.
pub(super) enum Stream<'a> {
    Run(u8),
    Stored(&'a [u8]),
    Coded(&'a [u8]),
}

/// The streams of a block, one after the other.
pub(super) struct Streams<'a> {
    pub(super) data: &'a [u8],
    /// Position of `data` in the chunk.
    pub(super) at: u64,
    pub(super) nblock: usize,
    pub(super) format: Option<CodecFormat>,
    pub(super) from: usize,
}

impl<'a> Streams<'a> {
    pub(super) fn next(&mut self, length: usize) -> Result<Stream<'a>> {
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
                let Some(bytes) = rest.get(..csize) else {
                    return Err(Error::Truncated {
                        what: "stream",
                        at: at + 4,
                        needed: csize as u64,
                        got: rest.len() as u64,
                    });
                };
                self.from += 4 + csize;
                Ok(if csize == length { Stream::Stored(bytes) } else { Stream::Coded(bytes) })
            }
        }
    }
}

impl Chunk<'_> {
    /// Whether the first block, read as `nstreams` streams, ends where another block or the chunk does.
    pub(super) fn streams_meet(&self, nstreams: usize) -> bool {
        if self.block_len(0) < self.blocksize || !self.blocksize.is_multiple_of(nstreams) {
            return nstreams == 1;
        }
        let mut at = self.start(0) as usize;
        for _ in 0..nstreams {
            let Some(csize) = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else { return false };
            let Ok(csize) = usize::try_from(i32::from_le_bytes(*csize)) else { return false };
            at += 4 + csize;
            if at > self.header.cbytes as usize {
                return false;
            }
        }
        let next = self.starts().filter(|&start| start > self.start(0)).min();
        at == next.map_or(self.header.cbytes as usize, |next| next as usize)
    }

    /// More uncompressed bytes than one byte of a stream can stand for.
    pub(super) fn max_expansion(&self, format: CodecFormat) -> usize {
        match format {
            CodecFormat::BloscLz | CodecFormat::Lz4 | CodecFormat::Snappy => 256,
            CodecFormat::Zlib => 1040,
            // A block of 4 bytes stands for 128 KiB of one value.
            CodecFormat::Zstd => 64 * 1024,
            CodecFormat::Registered if self.header.udcodec == NDLZ => 32,
            CodecFormat::Registered => MAX_BUFFERSIZE,
        }
    }

    /// Look through all streams of a chunk that claims to expand enormously: no codec makes more than so
    /// many bytes of one, so a claim beyond that cannot be met and must not be given memory.
    pub(super) fn check_expansion(&self) -> Result<()> {
        let mut input = Vec::new();
        let mut last = None;
        for nblock in 0..self.nblocks {
            let length = self.block_len(nblock);
            let nstreams = self.nstreams_of(nblock);
            // Several blocks may share one offset.
            let this = Some((self.start(nblock), length, nstreams));
            if this == last {
                continue;
            }
            last = this;
            let (at, data) = self.block_data(nblock, &mut input)?;
            let mut streams = Streams { data, at, nblock, format: self.format, from: 0 };
            for _ in 0..nstreams {
                let stream = streams.next(length / nstreams)?;
                if let Stream::Coded(bytes) = stream
                    && let Some(format) = self.format
                    && length / nstreams / self.max_expansion(format) > bytes.len()
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

    /// Return the uncompressed lengths of variable-length blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Field`] when a length is out of range or they do not add up to nbytes.
    pub fn vl_lengths(&self) -> Result<Vec<usize>> {
        let nbytes = self.header.nbytes as usize;
        let mut lengths = Vec::with_capacity(self.nblocks);
        let (mut sum, mut memory_budget) = (0, 0usize);
        for nblock in 0..self.nblocks {
            let start = self.start(nblock) as usize;
            let mut raw = [0; 4];
            match self.bytes.get(start..start + 4) {
                Some(bytes) => raw.copy_from_slice(bytes),
                None => self.source.read_all(start as u64, &mut raw, "variable-length block")?,
            }
            let length = i32::from_le_bytes(raw);
            let positive = usize::try_from(length).ok().filter(|&n| n > 0 && n <= nbytes - sum);
            let Some(positive) = positive else {
                return Err(Error::Field {
                    field: "length of a variable-length block",
                    at: start as u64,
                    expected: format!("1 to {} (block {nblock})", nbytes - sum).into(),
                    found: length.into(),
                });
            };
            let payload = self.end_of(start) - start - 4;
            let expansion =
                if payload == positive { 1 } else { self.format.map_or(1, |format| self.max_expansion(format)) };
            memory_budget = memory_budget.saturating_add(payload.saturating_mul(expansion));
            sum += positive;
            if sum > UNCHECKED_BYTES && memory_budget < sum {
                return Err(Error::Stream {
                    codec: self.format.map_or("no", CodecFormat::name),
                    nblock: nblock as u64,
                    at: start as u64,
                    reason: "too short for the length it claims",
                });
            }
            lengths.push(positive);
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
}
