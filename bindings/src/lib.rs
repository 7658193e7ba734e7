//! The engine for Python: translation only.
//!
//! Arguments come in as buffers and numbers, one call of the engine does the work with the interpreter
//! lock released, and bytes or an exception of `superchunk.exceptions` go out. Nothing is decided here.
//! The Python side of this face is `python/superchunk/_engine.pyi`.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use pyo3::prelude::pymodule;

mod boxes;
mod buffers;
mod encode;
mod errors;
mod hooks;
mod info;
mod memory;
mod read;
mod seal;
mod section;
mod signals;
mod watch;

/// The Rust engine of superchunk: a few wide calls on chunks.
#[pymodule(gil_used = false)]
mod _engine {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use super::boxes::{Geometry, pack, read_box, read_points};
    #[pymodule_export]
    use super::encode::{EncodeParams, compress, compress_vlblocks, special_chunk, zeros_in_blocks};
    #[pymodule_export]
    use super::hooks::Hooks;
    #[pymodule_export]
    use super::info::{ChunkInfo, codec_version, describe, free_threads, instruction_sets, lazy_chunk, sizes};
    #[pymodule_export]
    use super::memory::{Memory, after_fork, free_memory, set_memory_limit};
    #[pymodule_export]
    use super::read::{decompress, read, read_vlblocks};
    #[pymodule_export]
    use super::seal::{
        check_run, check_seals, exchange, hash64, hash128, proven_trailer, rename_new, seal, sync_filesystem,
    };
    #[pymodule_export]
    use super::section::Section;
    #[pymodule_export]
    use super::watch::{Watch, set_cache_limit};

    /// A child of a fork has one thread, and must not wait for what others were at: what is worked out once is worked out
    /// now, and the rest is told of forks.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        superchunk_engine::prepare();
        let options = PyDict::new(module.py());
        options.set_item("after_in_child", module.getattr("after_fork")?)?;
        match module.py().import("os")?.getattr_opt("register_at_fork")? {
            Some(register) => register.call((), Some(&options)).map(drop),
            None => Ok(()), // there are no forks on Windows
        }
    }
}
