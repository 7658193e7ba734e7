//! Deflate in a zlib wrapper, through libdeflate.
//!
//! Read are complete zlib streams that fill the destination, with a right checksum; bytes behind
//! the checksum are left alone, as other readers do. Raw deflate and gzip are refused.
//!
//! Source: `docs/format/chunk.md`, section 7.4.

use super::Verdict;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

/// The library's version; it cannot be asked for it.
pub(super) const LIBDEFLATE_VERSION: &str = "1.26";

/// libdeflate's level for each `clevel`.
///
/// Chosen by measurement over shuffled and plain numbers and text, against the sizes that zlib-ng
/// reaches at `clevel`: smaller on nearly all of it, and faster wherever compressing takes long.
const LEVELS: [i32; 10] = [0, 1, 2, 3, 4, 6, 7, 7, 8, 9];

/// An encoder with its context.
pub(super) struct Encoder(Compressor);

impl Encoder {
    /// Makes an encoder for `clevel` 1..9.
    pub(super) fn new(clevel: u8) -> Self {
        let level = LEVELS[usize::from(clevel.min(9))];
        Self(Compressor::new(CompressionLvl::new(level).unwrap_or_default()))
    }

    /// Compresses, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.0.zlib_compress(src, dst).ok()
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zlib::Encoder")
    }
}

/// A decoder with its context.
pub(super) struct Decoder(Decompressor);

impl Decoder {
    /// Makes a decoder.
    pub(super) fn new() -> Self {
        Self(Decompressor::new())
    }

    /// Decodes a stream that must fill `dst` exactly.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Verdict {
        match self.0.zlib_decompress(src, dst) {
            Ok(written) if written == dst.len() => Ok(()),
            Ok(_) => Err("the stream decodes to fewer bytes than expected"),
            Err(DecompressionError::InsufficientSpace) => Err("the stream decodes to more bytes than expected"),
            Err(DecompressionError::BadData) => Err("the zlib stream is damaged"),
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zlib::Decoder")
    }
}
