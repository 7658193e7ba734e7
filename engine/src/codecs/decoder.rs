//! One worker's decoders.

use super::sequences::Sequences;
#[cfg(feature = "zlib")]
use super::zlib;
#[cfg(feature = "zstd")]
use super::zstd;
use super::{CodecFormat, DecodeDict, Verdict, blosclz, lz4};
#[cfg(feature = "zstd")]
use crate::cpu::Isa;

const NOT_BUILT_IN: &str = "the codec is not built in";
const PREFIX_TOO_LONG: &str = "more bytes are asked for than the stream holds";

/// A larger part of a stream than one of so many is faster decoded with all that is before it.
const RANGE_PARTS: usize = 16;

/// Decoders for all formats; contexts are made when the first stream needs them.
#[derive(Debug, Default)]
pub struct Decoder {
    #[cfg(feature = "zlib")]
    zlib: Option<zlib::Decoder>,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::Decoder>,
    #[cfg(feature = "zstd")]
    ranges: zstd::Ranges,
    sequences: Sequences,
}

impl Decoder {
    /// A decoder without any context yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the stream `src`, which must fill `dst` exactly.
    ///
    /// The dictionary counts for LZ4 and Zstd and is ignored elsewhere.
    ///
    /// # Errors
    ///
    /// What is wrong with the stream; the content of `dst` is then of no use, but every byte of it
    /// is either as before or written by the decoder.
    pub fn decode(&mut self, format: CodecFormat, src: &[u8], dst: &mut [u8], dict: Option<&DecodeDict>) -> Verdict {
        match format {
            CodecFormat::BloscLz => blosclz::decode(src, dst),
            CodecFormat::Lz4 => lz4::decode(src, dst, dict.map_or(&[], DecodeDict::history)),
            #[cfg(feature = "zlib")]
            CodecFormat::Zlib => self.zlib.get_or_insert_with(zlib::Decoder::new).decode(src, dst),
            #[cfg(feature = "zstd")]
            CodecFormat::Zstd => {
                let decoder = match &mut self.zstd {
                    Some(decoder) => decoder,
                    none => none.insert(zstd::Decoder::new()?),
                };
                match dict {
                    None => decoder.decode(src, dst, None),
                    Some(dict) => decoder.decode(src, dst, Some(dict.zstd()?)),
                }
            }
            #[cfg(not(feature = "zlib"))]
            CodecFormat::Zlib => Err(NOT_BUILT_IN),
            #[cfg(not(feature = "zstd"))]
            CodecFormat::Zstd => Err(NOT_BUILT_IN),
            CodecFormat::Snappy | CodecFormat::Registered => Err(NOT_BUILT_IN),
        }
    }

    /// Decodes the bytes from `from` on of a stream whose full length is `full` bytes, if that can be done without
    /// decoding the rest; returns whether. Damage elsewhere in the stream may go unnoticed.
    ///
    /// Streams with a dictionary need [`Decoder::decode`].
    pub fn decode_range(&mut self, format: CodecFormat, src: &[u8], from: usize, dst: &mut [u8], full: usize) -> bool {
        if dst.len() > full / RANGE_PARTS {
            return false;
        }
        let done = match format {
            CodecFormat::BloscLz => self.sequences.read_blosclz(src, full, from, dst),
            CodecFormat::Lz4 => self.sequences.read_lz4(src, full, from, dst),
            #[cfg(feature = "zstd")]
            CodecFormat::Zstd => self.ranges.read(Isa::detect(), src, full, from, dst),
            _ => None,
        };
        done.is_some()
    }

    /// Decodes the first `dst.len()` bytes of a stream whose full length is `full` bytes.
    ///
    /// LZ4 and BloscLZ stop when they have them, so damage further on goes unnoticed. The others, and damaged LZ4,
    /// decode the whole stream into `scratch`, whose length grows to `full` if it is smaller and is
    /// never cut. Streams with a dictionary need [`Decoder::decode`].
    ///
    /// # Errors
    ///
    /// What is wrong with the stream, or that `dst` is longer than `full`.
    pub fn decode_prefix(
        &mut self,
        format: CodecFormat,
        src: &[u8],
        dst: &mut [u8],
        full: usize,
        scratch: &mut Vec<u8>,
    ) -> Verdict {
        if dst.len() >= full {
            if dst.len() > full {
                return Err(PREFIX_TOO_LONG);
            }
            return self.decode(format, src, dst, None);
        }
        if dst.is_empty() {
            return Ok(());
        }
        match format {
            CodecFormat::BloscLz => blosclz::decode_prefix(src, dst, full),
            CodecFormat::Lz4 if lz4::has_literal_prefix(src, dst.len()) => lz4::decode_prefix(src, dst),
            _ => {
                if scratch.len() < full {
                    scratch.try_reserve_exact(full - scratch.len()).map_err(|_| "out of memory")?;
                    scratch.resize(full, 0);
                }
                self.decode(format, src, &mut scratch[..full], None)?;
                dst.copy_from_slice(&scratch[..dst.len()]);
                Ok(())
            }
        }
    }
}
