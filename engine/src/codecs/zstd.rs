//! Zstandard through libzstd: whole frames in one call each.
//!
//! Written frames carry the content size and no checksum. Read are frames of any kind, several in
//! a row and skippable ones between them, as long as they fill the destination and nothing
//! follows. Since frames are decoded straight into the destination, a frame's declared sizes never
//! allocate anything.
//!
//! Source: docs/format/codecs.md, section "Zstandard".

mod bits;
mod fse;
mod huffman;
mod range;

pub(super) use range::Ranges;

use std::sync::Arc;

use zstd_safe::{CCtx, CDict, DCtx, DDict};

use super::Verdict;
use crate::{Error, Result};

/// Zstd's level for each `clevel`.
const LEVELS: [i32; 10] = [0, 1, 3, 5, 7, 9, 11, 13, 15, 22];

/// The same for streams of up to [`SHORT`] bytes. For those libzstd's level 9 is the first that searches binary trees,
/// which takes twice as long as its level 8 and comes to the same size.
const SHORT_LEVELS: [i32; 10] = [0, 1, 3, 5, 7, 8, 11, 13, 15, 22];

/// Longest stream, in bytes, that libzstd has its table of levels for short input for.
const SHORT: usize = 16 * 1024;

/// What short streams are tried with first, if more than that is asked for up to level [`LAST_TRIED`].
const TRIAL: i32 = 1;

/// From here on the caller has asked for size, whatever the time it takes.
const LAST_TRIED: i32 = 8;

/// A trial that is shorter than its stream by no more than such a part is left at that: it is noise.
const PARTS: usize = 32;

/// Roughly what a context takes before its first stream, in bytes.
const CONTEXT_SIZE: u64 = 8 * 1024;

/// An encoder with its context.
pub(super) struct Encoder {
    context: CCtx<'static>,
    level: i32,
    short_level: i32,
    dict: Option<Arc<CDict<'static>>>,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9; with a dictionary the level is the dictionary's.
    pub(super) fn new(clevel: u8, dict: Option<Arc<CDict<'static>>>) -> Result<Self> {
        Ok(Self {
            context: CCtx::try_create().ok_or(Error::OutOfMemory { needed: CONTEXT_SIZE })?,
            level: LEVELS[usize::from(clevel.min(9))],
            short_level: SHORT_LEVELS[usize::from(clevel.min(9))],
            dict,
        })
    }

    /// Compresses, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        match &self.dict {
            None if src.len() <= SHORT => self.encode_short(src, dst),
            None => self.context.compress(dst, src, self.level).ok(),
            Some(dict) => self.context.compress_using_cdict(dst, src, dict).ok(),
        }
    }

    /// Compresses a short stream. Of a block split into its bytes, many streams are noise or repeat nothing: the
    /// quickest level tells, and for those it is as good as any.
    fn encode_short(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        let level = self.short_level;
        if level <= TRIAL || level > LAST_TRIED {
            return self.context.compress(dst, src, level).ok();
        }
        let tried = self.context.compress(dst, src, TRIAL).ok()?;
        if tried >= src.len() - src.len() / PARTS || tried >= entropy(src) {
            return Some(tried);
        }
        self.context.compress(&mut dst[..tried], src, level).or_else(|_| self.context.compress(dst, src, TRIAL)).ok()
    }
}

/// How many bytes the items of `src` take if each is coded by how often it occurs: what no codec gets below that finds
/// no repetitions. Worked out in integers, for the same result everywhere.
fn entropy(src: &[u8]) -> usize {
    let mut lanes = [[0_u32; 256]; 4];
    let quads = src.chunks_exact(4);
    for &byte in quads.remainder() {
        lanes[0][usize::from(byte)] += 1;
    }
    for quad in quads {
        for (lane, &byte) in lanes.iter_mut().zip(quad) {
            lane[usize::from(byte)] += 1;
        }
    }
    let whole = u64::from(log2(u32::try_from(src.len()).unwrap_or(u32::MAX)));
    let counts = (0..256).map(|byte| lanes.iter().map(|lane| lane[byte]).sum::<u32>()).filter(|&count| count > 0);
    let bits: u64 = counts.map(|count| u64::from(count) * (whole - u64::from(log2(count)).min(whole))).sum();
    usize::try_from(bits >> (16 + 3)).unwrap_or(usize::MAX)
}

/// The binary logarithm of a number above 0 in units of 2^-16, to within a hundredth.
fn log2(number: u32) -> u32 {
    let exponent = number.ilog2();
    // What follows the leading one.
    let fraction = (number << (31 - exponent) << 1) >> 16;
    // log2(1 + f) is close to f + 0.34 f (1 - f).
    let bend = (((fraction * (0x1_0000 - fraction)) >> 8) * 34 / 100) >> 8;
    (exponent << 16) + fraction + bend
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("zstd::Encoder").field("level", &self.level).finish_non_exhaustive()
    }
}

/// A decoder with its context.
pub(super) struct Decoder(DCtx<'static>);

impl Decoder {
    /// Makes a decoder.
    pub(super) fn new() -> Verdict<Self> {
        DCtx::try_create().map(Self).ok_or("out of memory for a zstd context")
    }

    /// Decodes frames that must fill `dst` exactly.
    pub(super) fn decode(&mut self, src: &[u8], dst: &mut [u8], dict: Option<&DDict<'static>>) -> Verdict {
        let written = match dict {
            None => self.0.decompress(dst, src),
            Some(dict) => self.0.decompress_using_ddict(dst, src, dict),
        };
        match written {
            Ok(written) if written == dst.len() => Ok(()),
            Ok(_) => Err("the frames decode to fewer bytes than expected"),
            Err(code) => Err(zstd_safe::get_error_name(code)),
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zstd::Decoder")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that repeat nothing.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        };
        (0..length).map(step).collect()
    }

    fn round_trip(src: &[u8], clevel: u8) -> Option<usize> {
        let mut encoder = Encoder::new(clevel, None).unwrap();
        let mut coded = vec![0; src.len() - 1];
        let length = encoder.encode(src, &mut coded)?;
        let mut decoded = vec![0; src.len()];
        Decoder::new().unwrap().decode(&coded[..length], &mut decoded, None).unwrap();
        assert_eq!(decoded, src, "clevel {clevel}");
        Some(length)
    }

    #[test]
    fn short_streams_of_every_kind_come_back_at_every_level() {
        let ramp: Vec<u8> = (0..=250).cycle().take(8192).collect();
        let nibbles: Vec<u8> = noise(8192).iter().map(|byte| byte & 15).collect();
        let words: Vec<u8> = noise(2048).iter().flat_map(|&byte| format!("word {} ", byte % 50).into_bytes()).collect();
        for clevel in 1..=9 {
            assert!(round_trip(&ramp, clevel).unwrap() < 400);
            assert!(round_trip(&nibbles, clevel).unwrap() < 4600);
            assert!(round_trip(&words, clevel).unwrap() < words.len() / 3);
            assert_eq!(round_trip(&noise(8192), clevel), None);
            assert_eq!(round_trip(&noise(SHORT + 1), clevel), None);
        }
    }

    #[test]
    fn a_short_stream_is_never_longer_than_its_trial() {
        for seed in 0..64_usize {
            let pieces = noise(16_384);
            let src: Vec<u8> = (0..200 + 40 * seed).map(|n| pieces[(n * seed) % 4096] >> (seed % 7)).collect();
            assert!(round_trip(&src, 5).unwrap_or(src.len()) <= round_trip(&src, 1).unwrap_or(src.len()));
        }
    }

    #[test]
    fn entropy_is_that_of_the_counts() {
        assert_eq!(entropy(&[7; 8192]), 0);
        assert_eq!(entropy(&[0, 1].repeat(4096)), 1024);
        let all: Vec<u8> = (0..=255).cycle().take(8192).collect();
        assert_eq!(entropy(&all), 8192);
        let skewed: Vec<u8> = (0..8000).map(|n| u8::from(n % 10 == 0)).collect();
        assert!(entropy(&skewed).abs_diff(469) < 15, "{}", entropy(&skewed));
    }
}
