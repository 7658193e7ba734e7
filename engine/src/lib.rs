//! The superchunk engine: Blosc2 chunks, whole.
//!
//! A chunk is a self-contained compressed buffer: a header, a table of blocks, and blocks of
//! streams. This crate reads and writes chunks, runs their filters and codecs, and spreads the
//! work over threads. It knows nothing of Python, of frames or of where bytes come from, beyond
//! "a slice" or "a range of a file".
//!
//! Source: docs/format/chunk.md.

pub mod boxes;
pub mod cache;
pub mod chunk;
pub mod codecs;
mod copy;
pub mod cpu;
pub mod encode;
pub mod error;
pub mod files;
pub mod filters;
#[doc(hidden)]
pub mod fuzzing;
pub mod header;
pub mod interrupt;
pub mod lazy;
pub mod memory;
pub mod params;
pub mod pool;
pub mod read;
pub mod seal;
pub mod shape;
pub mod source;
#[cfg(test)]
mod testing;
pub mod user;
pub mod watch;

pub use error::{Error, Result};

/// Work out what is worked out once in a process. Whoever may fork with several threads calls this while there is one:
/// otherwise a child could wait for ever for a thread that is not there.
pub fn prepare() {
    let _ = cpu::Isa::detect();
    pool::prepare();
    codecs::prepare();
}
