//! Scratch space of one decoding thread.

use crate::codecs::Decoder;
use crate::error::{Error, Result};
use crate::filters::Scratch;

/// Scratch space above this is given back.
pub(crate) const KEEP: usize = 16 * 1024 * 1024;

/// What one thread keeps between blocks.
#[derive(Default)]
pub(crate) struct Worker {
    pub(super) decoder: Decoder,
    pub(super) filters: Scratch,
    pub(super) stage: Vec<u8>,
    pub(super) block: Vec<u8>,
    pub(super) input: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    /// What others than the decoder keep between blocks.
    pub(crate) plain: Vec<u8>,
}

impl Worker {
    /// Let go of scratch space that only an unusually large block needed.
    pub(crate) fn trim(&mut self) {
        self.filters.trim(KEEP);
        for buffer in [&mut self.stage, &mut self.block, &mut self.input, &mut self.scratch, &mut self.plain] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
    }
}

/// Make `buffer` exactly `len` bytes long, keeping what memory it has.
pub(crate) fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}
