//! The engine for Python: translation only.
//!
//! Arguments come in as buffers and numbers, one call of the engine does the work with the interpreter
//! lock released, and bytes or an exception of `superchunk.exceptions` go out. Nothing is decided here.
//! The Python side of this face is `python/superchunk/_engine.pyi`.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use pyo3::prelude::*;

mod boxes;
mod buffers;
mod encode;
mod errors;
mod hooks;
mod info;
mod memory;
mod read;
mod seal;
mod watch;

/// The Rust engine of superchunk: a few wide calls on chunks.
#[pymodule(gil_used = false)]
mod _engine {
    #[pymodule_export]
    use super::boxes::{Geometry, pack, read_box, read_points};
    #[pymodule_export]
    use super::encode::{EncodeParams, compress, compress_vlblocks, special_chunk};
    #[pymodule_export]
    use super::hooks::Hooks;
    #[pymodule_export]
    use super::info::{ChunkInfo, codec_version, describe, free_threads, instruction_sets, lazy_chunk, sizes};
    #[pymodule_export]
    use super::memory::{Memory, free_memory, set_memory_limit};
    #[pymodule_export]
    use super::read::{decompress, read, read_vlblocks};
    #[pymodule_export]
    use super::seal::{check_run, check_seals, hash64, hash128, proven_trailer, seal, sync_filesystem};
    #[pymodule_export]
    use super::watch::{Watch, set_cache_limit};
}
