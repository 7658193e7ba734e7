//! Whether a chunk in a file is still the one that was read: its head byte by byte, its blocks by a hash.
//!
//! Source: docs/format/chunk.md, section "Partial reads".

use twox_hash::XxHash3_128;

use super::Chunk;
use super::worker::{Worker, resize};

impl Chunk<'_> {
    /// Whether the kept head is what `read` finds at the chunk's beginning.
    pub fn is_at(&self, read: impl Fn(u64, &mut [u8]) -> bool, worker: &mut Worker) -> bool {
        let mut found = std::mem::take(&mut worker.input);
        let same = resize(&mut found, self.bytes.len()).is_ok_and(|found| read(0, found) && *found == *self.bytes);
        worker.input = found;
        same
    }

    /// Return the hash of all that block `nblock` is decoded from besides header and table, which `read` gives. None if it
    /// cannot be read, or is nowhere.
    pub fn hash_stored(
        &self,
        nblock: usize,
        read: impl Fn(u64, &mut [u8]) -> bool,
        worker: &mut Worker,
    ) -> Option<u128> {
        let mut hasher = XxHash3_128::new();
        // The dictionary was read together with the head.
        hasher.write(self.bytes.get(self.header.len() + 4 * self.nblocks..self.data_start)?);
        let compared = self.pipeline.as_ref()?.needs_reference() && nblock > 0;
        let mut found = std::mem::take(&mut worker.input);
        let all = [compared.then_some(0), Some(nblock)].into_iter().flatten().all(|nblock| {
            let start = self.start(nblock) as usize;
            let end = self.stored_end(nblock, start);
            if start < self.data_start || start >= end {
                return false;
            }
            let Ok(bytes) = resize(&mut found, end - start) else { return false };
            let got = read(start as u64, bytes);
            hasher.write(bytes);
            got
        });
        worker.input = found;
        all.then(|| hasher.finish_128())
    }

    /// The same of the chunk's own bytes, at hand or where it is.
    pub fn hash_own(&self, nblock: usize, worker: &mut Worker) -> Option<u128> {
        let read = |at: u64, found: &mut [u8]| {
            let at_hand = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)?.get(..found.len()));
            match at_hand {
                Some(bytes) => found.copy_from_slice(bytes),
                None => return self.source.read_all(at, found, "block").is_ok(),
            }
            true
        };
        self.hash_stored(nblock, read, worker)
    }
}
