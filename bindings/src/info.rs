//! What a chunk and the engine say about themselves.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_engine::chunk::Chunk;
use superchunk_engine::codecs;
use superchunk_engine::cpu::Isa;
use superchunk_engine::header::{Body, Special};
use superchunk_engine::{lazy, pool};

use crate::buffers::Held;
use crate::errors::to_python;

/// What a chunk's header says, checked.
#[pyclass(frozen, get_all, module = "superchunk._engine")]
#[expect(clippy::struct_excessive_bools, reason = "they are independent flags of the format")]
pub(crate) struct ChunkInfo {
    version: u8,
    flags: u8,
    typesize: u8,
    nbytes: u32,
    blocksize: u32,
    cbytes: u32,
    header_len: usize,
    codec: u8,
    codec_meta: u8,
    filters: (u8, u8, u8, u8, u8, u8),
    filters_meta: (u8, u8, u8, u8, u8, u8),
    nblocks: usize,
    special: u8,
    memcpyed: bool,
    dont_split: bool,
    use_dict: bool,
    vlblocks: bool,
    repeated_value: Option<Py<PyBytes>>,
}

/// Return what the header of a chunk says, after checking it.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<ChunkInfo> {
    let held = Held::get(source)?;
    let fail = |error| to_python(py, &error);
    let opened = py.detach(|| held.location().open()).map_err(|error| to_python(py, &error))?;
    let header = py.detach(|| lazy::describe(opened.source())).map_err(fail)?;
    let repeated_value = if header.body() == Body::Special(Special::Value) {
        let chunk = py.detach(|| Chunk::open_with(opened.source(), None, None, None)).map_err(fail)?;
        chunk.repeated_value().map_err(fail)?.map(|value| PyBytes::new(py, value).unbind())
    } else {
        None
    };
    let special = if let Body::Special(special) = header.body() { special as u8 } else { 0 };
    let blocksize = if header.vlblocks() { 0 } else { header.blocksize.min(header.nbytes.max(1)) };
    let vlblocks = header.vlblocks();
    Ok(ChunkInfo {
        version: header.version,
        flags: header.flags,
        typesize: header.typesize,
        nbytes: header.nbytes,
        blocksize,
        cbytes: header.cbytes,
        header_len: header.len(),
        codec: header.udcodec,
        codec_meta: header.codec_meta,
        filters: header.filters.into(),
        filters_meta: header.filters_meta.into(),
        nblocks: header.nblocks(blocksize as usize),
        special,
        memcpyed: header.body() == Body::Memcpyed,
        dont_split: header.flags & superchunk_engine::header::FLAG_DONT_SPLIT != 0,
        use_dict: header.use_dict(),
        vlblocks,
        repeated_value,
    })
}

/// Return `(nbytes, cbytes)` of each chunk, headers checked.
#[pyfunction]
pub(crate) fn sizes(py: Python<'_>, sources: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<(u32, u32)>> {
    let held = Held::get_all(&sources)?;
    py.detach(|| {
        held.iter()
            .map(|held| {
                let header = lazy::describe(held.location().open()?.source())?;
                Ok((header.nbytes, header.cbytes))
            })
            .collect::<Result<Vec<_>, _>>()
    })
    .map_err(|error: superchunk_io::Error| to_python(py, &error))
}

/// Return header, block table and trailer of a chunk, without its data.
#[pyfunction]
pub(crate) fn lazy_chunk<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    nchunk: i32,
    offset: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let held = Held::get(source)?;
    let chunk = py.detach(|| -> superchunk_io::Result<_> {
        Ok(lazy::lazy_chunk(held.location().open()?.source(), nchunk, offset)?)
    });
    chunk.map(|chunk| PyBytes::new(py, &chunk)).map_err(|error| to_python(py, &error))
}

/// Return name and version of the library behind a built-in codec id.
#[pyfunction]
pub(crate) fn codec_version(py: Python<'_>, codec: u8) -> PyResult<(&'static str, String)> {
    let codec = codecs::Codec::from_id(codec).map_err(|error| to_python(py, &error))?;
    Ok(codecs::library_version(codec))
}

/// Return the instruction sets that the engine uses on this machine, best first.
#[pyfunction]
pub(crate) fn instruction_sets() -> Vec<&'static str> {
    Isa::available().into_iter().rev().map(Isa::name).collect()
}

/// Give the threads back to the system; the next parallel job makes new ones.
#[pyfunction]
pub(crate) fn free_threads(py: Python<'_>) {
    py.detach(pool::free);
}
