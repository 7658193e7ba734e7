#![doc = include_str!("../README.md")]

pub mod chunk;
pub mod codecs;
pub mod cpu;
pub mod encode;
pub mod error;
pub mod filters;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod header;
pub mod interrupt;
pub mod lazy;
pub mod limits;
mod oneshot;
mod options;
pub mod params;
pub mod pool;
mod prefetch;
pub mod shape;
pub mod source;
#[cfg(test)]
mod testing;
pub mod user;

pub use chunk::Chunk;
pub use error::{Error, Result};
pub use oneshot::{compress, decompress};
pub use options::{Filter, Options};

/// Work out what is worked out once in a process. Whoever may fork with several threads calls this while there is one:
/// otherwise a child could wait for ever for a thread that is not there.
pub fn prepare() {
    let _ = cpu::Isa::detect();
    pool::prepare();
    #[cfg(feature = "zstd")]
    codecs::prepare();
}
