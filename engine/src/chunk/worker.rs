//! Scratch space of one decoding thread.

use std::cell::Cell;

use crate::codecs::Decoder;
use crate::error::{Error, Result};
use crate::filters::Scratch;

/// Scratch space above this is given back.
pub(crate) const KEEP: usize = 16 * 1024 * 1024;

thread_local! {
    static WORKER: Cell<Option<Box<Worker>>> = const { Cell::new(None) };
}

/// Run `work` with this thread's worker. A nested call, from a codec of the user, gets a fresh one.
pub fn with_worker<R>(work: impl FnOnce(&mut Worker) -> R) -> R {
    let mut worker = WORKER.take().unwrap_or_default();
    let result = work(&mut worker);
    worker.trim();
    WORKER.set(Some(worker));
    result
}

/// What one thread keeps between blocks.
#[derive(Default)]
pub struct Worker {
    pub(super) decoder: Decoder,
    pub(super) filters: Scratch,
    pub(super) stage: Vec<u8>,
    pub(super) block: Vec<u8>,
    pub(super) input: Vec<u8>,
    pub(super) scratch: Vec<u8>,
    pub(super) run: Run,
    /// What others than the decoder keep between blocks.
    pub decoded: Vec<u8>,
}

impl Worker {
    /// Let go of scratch space that only an unusually large block needed.
    fn trim(&mut self) {
        self.filters.trim(KEEP);
        let Self { stage, block, input, scratch, decoded, run, .. } = self;
        for buffer in [stage, block, input, scratch, decoded, &mut run.bytes] {
            if buffer.capacity() > KEEP {
                *buffer = Vec::new();
            }
        }
    }
}

/// One byte over and over: the planes of a run, for as many blocks as have it.
#[derive(Default)]
pub(super) struct Run {
    value: u8,
    bytes: Vec<u8>,
}

impl Run {
    /// `len` bytes of `value`.
    pub(super) fn of(&mut self, value: u8, len: usize) -> Result<&[u8]> {
        if self.value != value {
            self.bytes.clear();
            self.value = value;
        }
        if let Some(more) = len.checked_sub(self.bytes.len()) {
            self.bytes.try_reserve_exact(more).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
            self.bytes.resize(len, value);
        }
        Ok(&self.bytes[..len])
    }
}

/// Return `len` bytes at the start of `buffer`, which grows if it is shorter.
///
/// # Errors
///
/// [`Error::OutOfMemory`].
#[inline]
pub fn resize(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
    if buffer.len() < len {
        buffer.try_reserve_exact(len - buffer.len()).map_err(|_| Error::OutOfMemory { needed: len as u64 })?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}
