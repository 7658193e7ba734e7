//! Deflate in a zlib wrapper: written by zlib-rs, libdeflate and, at level 1, here; read by libdeflate.
//!
//! zlib-rs makes what zlib-ng makes at a level, and at the first one `quick` comes to the same size in half of the time.
//! libdeflate often comes to the same size in a third of the time, though not where data repeats itself much; so its
//! searches are the quick ones, and those of zlib-rs and `quick` are the levels' own.
//!
//! Read are complete zlib streams that fill the destination, with a right checksum; bytes behind
//! the checksum are left alone, as other readers do. Raw deflate and gzip are refused.
//!
//! Source: docs/format/codecs.md, section "Zlib".

mod quick;

use super::Verdict;
use quick::Quick;

use flate2::{Compress, Compression, FlushCompress, Status};
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

/// libdeflate's version; it cannot be asked for it.
pub(super) const LIBDEFLATE_VERSION: &str = "1.26";

/// Deflate with a window of 32 KiB.
const METHOD: u8 = 0x78;
/// Bytes of the wrapper before the deflate stream.
const HEADER: usize = 2;
/// The bit of the wrapper that says that the stream cannot be read without a dictionary.
const DICTIONARY: u8 = 0x20;
/// Bytes of the wrapper behind it.
const CHECKSUM: usize = 4;
/// libdeflate's levels that may do for each `clevel`, from the quickest on.
const LADDERS: [&[u16]; 10] = [&[], &[1], &[1], &[1, 3], &[1, 3], &[1, 5], &[1, 5], &[3, 5], &[3, 6], &[5, 8]];

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
    pub(super) fn candidates(&self) -> usize {
        self.ladder.len() + 1
    }

    /// Compresses with a search, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, candidate: usize, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let Some(slot) = self.quick.get_mut(candidate) else { return self.own.encode(src, dst) };
        let context = match slot {
            Some(context) => context,
            none => none.insert(Compressor::new(CompressionLvl::new(self.ladder[candidate].into()).ok()?)),
        };
        context.zlib_compress(src, dst).ok()
    }
}

/// What searches.
enum Deflate {
    Quick(Quick),
    ZlibRs(Compress),
}

/// The level's own search.
///
/// The wrapper is put around it here, because the checksum of libdeflate takes a fraction of the time.
struct Own {
    deflate: Deflate,
    clevel: u8,
    header: [u8; HEADER],
}

/// Makes what writes deflate without a wrapper.
fn deflate(clevel: u8) -> Deflate {
    match clevel {
        1 => Deflate::Quick(Quick::new()),
        _ => Deflate::ZlibRs(Compress::new(Compression::new(clevel.into()), false)),
    }
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
        let capacity = rest.len().checked_sub(CHECKSUM)?;
        let length = match &mut self.deflate {
            Deflate::Quick(quick) => quick.encode(src, true, &mut rest[..capacity]),
            Deflate::ZlibRs(context) => {
                let status = context.compress(src, &mut rest[..capacity], FlushCompress::Finish);
                let length =
                    usize::try_from(context.total_out()).ok().filter(|_| matches!(status, Ok(Status::StreamEnd)));
                // A context that did not get to its end cannot be used again: zlib-rs 0.6 keeps what it could not write
                // through a reset, and later panics over it.
                match length {
                    Some(_) => context.reset(),
                    None => self.deflate = deflate(self.clevel),
                }
                length
            }
        }?;
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

    #[test]
    fn the_quick_search_comes_to_the_size_of_zlibs_first_level() {
        let words = noise_and_words(150_000);
        let nibbles: Vec<u8> = words.iter().map(|byte| byte & 15).collect();
        let ramp: Vec<u8> = (0..100_000_u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
        for src in [words, nibbles, ramp, vec![9; 300_000]] {
            for length in [17, 999, 4096, 40_000, src.len()] {
                let src = &src[..length];
                let (mut quick, mut theirs) = (vec![0; 2 * length + 100], vec![0; 2 * length + 100]);
                let quick = Own::new(1).encode(src, &mut quick).unwrap();
                let mut context = Compress::new(Compression::new(1), false);
                assert_eq!(context.compress(src, &mut theirs, FlushCompress::Finish).unwrap(), Status::StreamEnd);
                let theirs = HEADER + usize::try_from(context.total_out()).unwrap() + CHECKSUM;
                assert!(quick <= theirs + theirs / 100 + 2, "{length} bytes: {quick} for {theirs}");
            }
        }
    }

    #[test]
    fn matches_of_every_length_and_distance_come_back() {
        let noise: Vec<u8> = noise_and_words(80_000).chunks(5000).step_by(2).flatten().copied().collect();
        for (length, distance) in (4..=270)
            .map(|length| (length, 300 + length))
            .chain((1..16).map(|n| (20, (1 << n) + 3)))
            .chain((1..9).map(|n| (20, n)))
        {
            let mut src = noise[..distance.max(20)].to_vec();
            let start = src.len() - distance;
            for at in start..start + length {
                src.push(src[at]);
            }
            src.extend(&noise[39_000..39_000 + length % 11]);
            round_trip(&mut Encoder::new(1), 1, &src);
        }
        let far = [&noise[..], &noise[..], &noise[..30_000], &noise[..30_000], &noise[..9]].concat();
        assert!(round_trip(&mut Encoder::new(1), 1, &far) < far.len() * 9 / 8);
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
