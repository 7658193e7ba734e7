//! Zstandard through libzstd: whole frames in one call each.
//!
//! Written frames carry the content size and no checksum. Read are frames of any kind, several in
//! a row and skippable ones between them, as long as they fill the destination and nothing
//! follows. Since frames are decoded straight into the destination, a frame's declared sizes never
//! allocate anything.
//!
//! Source: docs/format/codecs.md, section "Zstandard".

use std::sync::Arc;

use zstd_safe::{CCtx, CDict, DCtx, DDict};

use super::Verdict;
use crate::{Error, Result};

/// Zstd's level for each `clevel`.
const LEVELS: [i32; 10] = [0, 1, 3, 5, 7, 9, 11, 13, 15, 22];

/// Roughly what a context takes before its first stream, in bytes.
const CONTEXT_SIZE: u64 = 8 * 1024;

/// An encoder with its context.
pub(super) struct Encoder {
    context: CCtx<'static>,
    level: i32,
    dict: Option<Arc<CDict<'static>>>,
}

impl Encoder {
    /// Makes an encoder for `clevel` 1..9; with a dictionary the level is the dictionary's.
    pub(super) fn new(clevel: u8, dict: Option<Arc<CDict<'static>>>) -> Result<Self> {
        Ok(Self {
            context: CCtx::try_create().ok_or(Error::OutOfMemory { needed: CONTEXT_SIZE })?,
            level: LEVELS[usize::from(clevel.min(9))],
            dict,
        })
    }

    /// Compresses, or `None` if the result does not fit.
    pub(super) fn encode(&mut self, src: &[u8], dst: &mut [u8]) -> Option<usize> {
        match &self.dict {
            None => self.context.compress(dst, src, self.level).ok(),
            Some(dict) => self.context.compress_using_cdict(dst, src, dict).ok(),
        }
    }
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
