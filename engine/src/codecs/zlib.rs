//! Deflate in a zlib wrapper: written by zlib-rs and libdeflate, read by libdeflate.
//!
//! zlib-rs makes what zlib-ng makes at a level. libdeflate often comes to the same size in a third of the time, though not
//! where data repeats itself much; so its searches are the quick ones, and those of zlib-rs are the levels' own.
//!
//! Read are complete zlib streams that fill the destination, with a right checksum; bytes behind
//! the checksum are left alone, as other readers do. Raw deflate and gzip are refused.
//!
//! Source: docs/format/codecs.md, section "Zlib".

use super::Verdict;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};
use zlib_rs::{Deflate, DeflateFlush, Status};

/// libdeflate's version; it cannot be asked for it.
pub(super) const LIBDEFLATE_VERSION: &str = "1.26";

/// Deflate with a window of 32 KiB, and the window's logarithm.
const METHOD: u8 = 0x78;
const WINDOW_BITS: u8 = 15;
/// Bytes of the wrapper before the deflate stream.
const HEADER: usize = 2;
/// The bit of the wrapper that says that the stream cannot be read without a dictionary.
const DICTIONARY: u8 = 0x20;
/// Bytes of the wrapper behind it.
const CHECKSUM: usize = 4;
/// libdeflate's level that may do for each `clevel`; 0 for none, as zlib's first level is quicker still.
const QUICK: [u8; 10] = [0, 0, 1, 1, 1, 1, 1, 3, 3, 5];

/// An encoder with its contexts: that of libdeflate is made when it is needed.
pub(super) struct Encoder {
    level: u8,
    quick: Option<Compressor>,
    own: Own,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9.
    pub(super) fn new(clevel: u8) -> Self {
        Self { level: QUICK[usize::from(clevel.min(9))], quick: None, own: Own::new(clevel) }
    }

    /// How many searches there are.
    pub(super) fn candidates(&self) -> usize {
        1 + usize::from(self.level > 0)
    }

    /// Compresses with a search, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        if candidate + 1 == self.candidates() {
            return self.own.encode(src, dst);
        }
        let context = match &mut self.quick {
            Some(context) => context,
            none => none.insert(Compressor::new(CompressionLvl::new(self.level.into()).ok()?)),
        };
        context.zlib_compress(src, dst).ok()
    }
}

/// The level's own search.
///
/// The wrapper is put around it here, because the checksum of libdeflate takes a fraction of the time.
struct Own {
    context: Deflate,
    clevel: u8,
    header: [u8; HEADER],
}

/// Makes zlib-rs write deflate without a wrapper, with a window of 32 KiB.
fn zlib_rs(clevel: u8) -> Deflate {
    Deflate::new(clevel.into(), false, WINDOW_BITS)
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
        Self { context: zlib_rs(clevel), clevel, header: [METHOD, flags] }
    }

    /// Compresses, or `None` if the result does not fit.
    fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let (header, rest) = dst.split_at_mut_checked(HEADER)?;
        let capacity = rest.len().checked_sub(CHECKSUM)?;
        let status = self.context.compress(src, &mut rest[..capacity], DeflateFlush::Finish);
        if !matches!(status, Ok(Status::StreamEnd)) {
            // A context that did not get to its end cannot be used again: zlib-rs 0.6 keeps what it could not write
            // through a reset, and later panics over it.
            self.context = zlib_rs(self.clevel);
            return None;
        }
        let length = usize::try_from(self.context.total_out()).ok()?;
        self.context.reset();
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

/// Zeros that are put behind a stream from which so many times its length is decoded. Of the last bytes that it is given,
/// libdeflate copies their output byte by byte, and thirty of them can encode 30 KB.
const BEHIND: usize = 64;
const DENSE: usize = 4;

/// A decoder with its context, and scratch space for streams with zeros behind them.
pub(super) struct Decoder {
    inflate: Decompressor,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Makes a decoder.
    pub(super) fn new() -> Self {
        Self { inflate: Decompressor::new(), scratch: Vec::new() }
    }

    /// Decodes a stream that must fill `dst` exactly.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8]) -> Verdict {
        let is_dense = dst.len() / DENSE >= src.len();
        if is_dense && self.decode_padded(src, dst) { Ok(()) } else { self.decode_directly(src, dst) }
    }

    /// Decodes a stream of the common form, of which nothing is left behind its checksum; returns whether it is one.
    fn decode_padded(&mut self, src: &[u8], dst: &mut [u8]) -> bool {
        let Some((body, checksum)) = src.split_last_chunk::<CHECKSUM>() else { return false };
        let Some(([METHOD, flags], body)) = body.split_first_chunk::<HEADER>() else { return false };
        let length = body.len() + BEHIND;
        if flags & DICTIONARY != 0
            || !(u16::from(METHOD) * 256 + u16::from(*flags)).is_multiple_of(31)
            || self.scratch.try_reserve(length.saturating_sub(self.scratch.len())).is_err()
        {
            return false;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(body);
        self.scratch.resize(length, 0);
        self.inflate.deflate_decompress(&self.scratch, dst) == Ok(dst.len())
            && libdeflater::adler32(dst).to_be_bytes() == *checksum
    }

    /// The same for every stream, and says what is wrong with it.
    fn decode_directly(&mut self, src: &[u8], dst: &mut [u8]) -> Verdict {
        match self.inflate.zlib_decompress(src, dst) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// Bytes that repeat nothing, and words that do.
    fn noise_and_words(nbytes: usize) -> Vec<u8> {
        let mut random = Random::new(1);
        let mut byte = || random.byte();
        (0..nbytes)
            .map(|at| if at / 5000 % 2 == 0 { byte() } else { b"some words "[at % 11 * usize::from(byte() > 20)] })
            .collect()
    }

    /// What comes back of what a search writes, in so many bytes; the same encoder does it twice.
    fn round_trip(encoder: &mut Encoder, candidate: usize, src: &[u8]) -> usize {
        let mut coded = vec![0; 2 * src.len() + 1000];
        let length = encoder.encode(candidate, src, &mut coded).unwrap();
        let mut decoded = vec![0; src.len()];
        Decoder::new().decode(&coded[..length], &mut decoded).unwrap();
        assert!(decoded == src);
        let mut again = vec![0; 2 * src.len() + 1000];
        for short in [0, 1, 5, 9, length / 3, length / 2, length - 1] {
            assert_eq!(encoder.encode(candidate, src, &mut again[..short]), None, "in {short} bytes");
        }
        assert_eq!(encoder.encode(candidate, src, &mut again), Some(length));
        assert!(again[..length] == coded[..length]);
        length
    }

    #[test]
    fn streams_come_back_from_every_search_of_every_level() {
        let src = noise_and_words(200_000);
        for clevel in 1..=9 {
            let mut encoder = Encoder::new(clevel);
            for candidate in 0..encoder.candidates() {
                round_trip(&mut encoder, candidate, &src);
            }
        }
    }

    /// What each of the two ways of decoding makes of a stream.
    fn both_ways(src: &[u8], length: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let mut decoder = Decoder::new();
        let (mut padded, mut direct) = (vec![0; length], vec![0; length]);
        let found = decoder.decode_padded(src, &mut padded);
        (found.then_some(padded), decoder.decode_directly(src, &mut direct).is_ok().then_some(direct))
    }

    #[test]
    fn streams_with_zeros_behind_them_are_read_as_they_are() {
        let mixed = noise_and_words(20_000);
        for src in
            [vec![7; 50_000], vec![0; 3], mixed[..400].to_vec(), mixed.repeat(3), [&mixed[..99], &[0; 9999]].concat()]
        {
            for clevel in [1, 5, 9] {
                let mut coded = vec![0; 2 * src.len() + 100];
                let length = Own::new(clevel).encode(&src, &mut coded).unwrap();
                let stream = &coded[..length];
                assert_eq!(both_ways(stream, src.len()), (Some(src.clone()), Some(src.clone())));
                for other in [src.len() - 1, src.len() + 1] {
                    assert_eq!(both_ways(stream, other), (None, None));
                }
                for cut in length.saturating_sub(40)..length {
                    assert_eq!(both_ways(&stream[..cut], src.len()), (None, None));
                }
                // Bytes behind the checksum are left to the direct way.
                assert_eq!(both_ways(&coded[..=length], src.len()), (None, Some(src.clone())));
                for at in (0..length).step_by(1 + length / 50) {
                    for bit in 0..8 {
                        let mut damaged = stream.to_vec();
                        damaged[at] ^= 1 << bit;
                        let (padded, direct) = both_ways(&damaged, src.len());
                        assert_eq!(padded, direct, "byte {at}, bit {bit}");
                    }
                }
            }
        }
    }
}
