//! Deflate in a zlib wrapper: written by zlib-rs and libdeflate, read by libdeflate.
//!
//! zlib-rs makes what zlib-ng makes at a level. libdeflate often comes to the same size in a third of the time, though
//! not where data repeats itself much; so its searches are the quick ones, and that of zlib-rs is the level's own.
//!
//! Read are complete zlib streams that fill the destination, with a right checksum; bytes behind
//! the checksum are left alone, as other readers do. Raw deflate and gzip are refused.
//!
//! Source: docs/format/codecs.md, section "Zlib".

use super::Verdict;

use flate2::{Compress, Compression, FlushCompress, Status};
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

/// libdeflate's version; it cannot be asked for it.
pub(super) const LIBDEFLATE_VERSION: &str = "1.26";

/// Deflate with a window of 32 KiB.
const METHOD: u8 = 0x78;
/// Bytes of the wrapper before the deflate stream.
const HEADER: usize = 2;
/// Bytes of the wrapper behind it.
const CHECKSUM: usize = 4;

/// libdeflate's levels that may do for each `clevel`, from the quickest on.
const LADDERS: [&[u16]; 10] =
    [&[], &[1], &[1], &[1, 3], &[1, 3], &[1, 3, 5], &[1, 3, 5], &[1, 3, 5], &[1, 3, 5, 6], &[1, 3, 5, 6, 8]];

/// An encoder with its contexts: those of libdeflate are made when they are needed.
pub(super) struct Encoder {
    ladder: &'static [u16],
    quick: Vec<Option<Compressor>>,
    own: Own,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9.
    pub(super) fn new(clevel: u8) -> Self {
        let ladder = LADDERS[usize::from(clevel.min(9))];
        Self { ladder, quick: ladder.iter().map(|_| None).collect(), own: Own::new(clevel) }
    }

    /// How many searches there are.
    pub(super) fn rungs(&self) -> usize {
        self.ladder.len() + 1
    }

    /// Roughly the time that a search takes.
    pub(super) fn cost(&self, rung: usize) -> u16 {
        // In units of a level of libdeflate; zlib-rs takes about three times as long for what they find.
        self.ladder.get(rung).map_or(3 * u16::from(self.own.clevel), |&level| level)
    }

    /// Compresses with a search, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, rung: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let Some(slot) = self.quick.get_mut(rung) else { return self.own.encode(src, dst) };
        let context = match slot {
            Some(context) => context,
            none => none.insert(Compressor::new(CompressionLvl::new(self.ladder[rung].into()).ok()?)),
        };
        context.zlib_compress(src, dst).ok()
    }
}

/// The level's own search, by zlib-rs.
///
/// The wrapper is put around it here, because the checksum of libdeflate takes a fraction of the time.
struct Own {
    deflate: Compress,
    clevel: u8,
    header: [u8; HEADER],
}

/// Makes a context that writes deflate without a wrapper.
fn deflate(clevel: u8) -> Compress {
    Compress::new(Compression::new(clevel.into()), false)
}

impl Own {
    /// Makes an encoder for `clevel` 1..9.
    fn new(clevel: u8) -> Self {
        let clevel = clevel.min(9);
        // The level's class, and what makes the two bytes a multiple of 31.
        let class = match clevel {
            0 | 1 => 0,
            2..=5 => 0x40,
            6 => 0x80,
            _ => 0xC0,
        };
        let check = 31 - (u16::from(METHOD) * 256 + class) % 31;
        let flags = u8::try_from(class + check).unwrap_or(1);
        Self { deflate: deflate(clevel), clevel, header: [METHOD, flags] }
    }

    /// Compresses, or `None` if the result does not fit.
    fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let (header, rest) = dst.split_at_mut_checked(HEADER)?;
        let room = rest.len().checked_sub(CHECKSUM)?;
        let outcome = self.deflate.compress(src, &mut rest[..room], FlushCompress::Finish);
        let Ok(Status::StreamEnd) = outcome else {
            // A context that did not get to its end cannot be used again: zlib-rs 0.6 keeps what it could not write
            // through a reset, and later panics over it.
            self.deflate = deflate(self.clevel);
            return None;
        };
        let length = usize::try_from(self.deflate.total_out()).ok()?;
        self.deflate.reset();
        header.copy_from_slice(&self.header);
        rest.get_mut(length..length + CHECKSUM)?.copy_from_slice(&libdeflater::adler32(src).to_be_bytes());
        Some(HEADER + length + CHECKSUM)
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
