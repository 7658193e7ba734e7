//! Deflate in a zlib wrapper: written by zlib-rs, read by libdeflate, each the better one at it.
//!
//! Read are complete zlib streams that fill the destination, with a right checksum; bytes behind
//! the checksum are left alone, as other readers do. Raw deflate and gzip are refused.
//!
//! Source: docs/format/codecs.md, section "Zlib".

use super::Verdict;

use flate2::{Compress, Compression, FlushCompress, Status};
use libdeflater::{DecompressionError, Decompressor};

/// The library's version; it cannot be asked for it.
pub(super) const LIBDEFLATE_VERSION: &str = "1.26";

/// An encoder with its context.
///
/// zlib-rs writes what zlib-ng does at the same level, so sizes are those that users of Blosc2 know.
pub(super) struct Encoder(Compress);

impl Encoder {
    /// Makes an encoder for `clevel` 1..9.
    pub(super) fn new(clevel: u8) -> Self {
        Self(Compress::new(Compression::new(clevel.min(9).into()), true))
    }

    /// Compresses, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        self.0.reset();
        match self.0.compress(src, dst, FlushCompress::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(self.0.total_out()).ok(),
            _ => None,
        }
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
