//! Seals, hashes, and what files are asked beyond their bytes.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_io::Result;
use superchunk_io::files;
use superchunk_io::seal as engine;
use superchunk_io::source::ChunkLocation;

use crate::buffers::{Buffer, Held, borrow_file};
use crate::errors::{system_error, to_python};
use crate::read::explain;
use crate::signals::detach;

/// Fewer bytes than this are hashed before another thread of Python's could take over.
const SHORT: u64 = 16 * 1024;

/// Hash `held`, with the interpreter lock released unless that would take longer than the work.
fn hash<T: Send>(
    py: Python<'_>,
    held: &[Held],
    work: impl Fn(&[ChunkLocation<'_>]) -> Result<T> + Send + Sync,
) -> PyResult<T> {
    let locations: Vec<ChunkLocation<'_>> = held.iter().map(Held::location).collect();
    let in_memory = locations.iter().all(|location| matches!(location, ChunkLocation::Bytes(_)));
    let short =
        in_memory && locations.iter().fold(0, |sum: u64, location| sum.saturating_add(location.available())) < SHORT;
    let outcome = if short { work(&locations) } else { py.detach(|| work(&locations)) };
    outcome.map_err(|error| to_python(py, &error))
}

/// Return the XXH3-64 of all parts, one after the other.
#[pyfunction]
pub(crate) fn hash64(py: Python<'_>, parts: Vec<Bound<'_, PyAny>>) -> PyResult<u64> {
    hash(py, &Held::get_all(&parts)?, engine::hash64)
}

/// Return the XXH3-128 of all parts, one after the other: its low 64 bits, then its high 64 bits.
#[pyfunction]
pub(crate) fn hash128<'py>(py: Python<'py>, parts: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyBytes>> {
    let value = hash(py, &Held::get_all(&parts)?, engine::hash128)?;
    Ok(PyBytes::new(py, &value.to_le_bytes()))
}

/// Return the 16 bytes that are behind a chunk and prove it.
#[pyfunction]
pub(crate) fn seal<'py>(py: Python<'py>, chunk: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let chunk = Buffer::get(chunk)?;
    let bytes = chunk.bytes();
    let short = (bytes.len() as u64) < SHORT;
    let seal = if short { engine::seal(bytes) } else { py.detach(|| engine::seal(bytes)) };
    seal.map(|seal| PyBytes::new(py, &seal)).map_err(|error| to_python(py, &error))
}

/// Return a trailer with a commit record and its fingerprint.
#[pyfunction]
pub(crate) fn proven_trailer<'py>(
    py: Python<'py>,
    trailer: &[u8],
    record: (Bound<'py, PyBytes>, u64, u64, bool),
    mask: &[u8],
    index_chunk: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let held = index_chunk.map(|source| Held::get(&source)).transpose()?;
    let location = held.as_ref().map(Held::location);
    let (header, last_synced, sealed_from, pending) = &record;
    let record = engine::Record {
        header: header.as_bytes(),
        last_synced: *last_synced,
        sealed_from: *sealed_from,
        pending: *pending,
    };
    let trailer = if location
        .is_none_or(|location| matches!(location, ChunkLocation::Bytes(bytes) if (bytes.len() as u64) < SHORT))
    {
        engine::proven_trailer(trailer, record, mask, location)
    } else {
        py.detach(|| engine::proven_trailer(trailer, record, mask, location))
    };
    trailer.map(|trailer| PyBytes::new(py, &trailer)).map_err(|error| to_python(py, &error))
}

/// Compare chunks with the seals behind them: `(status, cbytes)` of each.
#[pyfunction]
#[pyo3(signature = (sources, nthreads=1))]
pub(crate) fn check_seals(py: Python<'_>, sources: Vec<Bound<'_, PyAny>>, nthreads: usize) -> PyResult<Vec<(u8, u32)>> {
    let held = Held::get_all(&sources)?;
    let locations: Vec<ChunkLocation<'_>> = held.iter().map(Held::location).collect();
    let verdicts = detach(py, |interrupt| engine::check_all(&locations, nthreads, Some(interrupt)))?
        .map_err(|failure| explain(py, None, &failure))?;
    Ok(verdicts.into_iter().map(|verdict| (verdict.status as u8, verdict.cbytes)).collect())
}

/// Compare the chunks of one file with their seals: status, cbytes and nbytes of each, native integers.
#[pyfunction]
#[pyo3(signature = (fd, base, entries, extent, nthreads=1))]
pub(crate) fn check_run<'py>(
    py: Python<'py>,
    fd: i32,
    base: u64,
    entries: &Bound<'py, PyAny>,
    extent: u64,
    nthreads: usize,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let file = borrow_file(fd)?;
    let entries = Buffer::get(entries)?;
    let (entries, rest) = entries.bytes().as_chunks();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(format!("entries: expected 8 bytes each, got {} more", rest.len())));
    }
    let checked = detach(py, |interrupt| {
        let entries: Vec<i64> = entries.iter().map(|&entry| i64::from_ne_bytes(entry)).collect();
        let verdicts = engine::check_run(&file, base, &entries, extent, nthreads, Some(interrupt))?;
        let statuses: Vec<u8> = verdicts.iter().map(|verdict| verdict.status as u8).collect();
        let cbytes: Vec<u8> = verdicts.iter().flat_map(|verdict| verdict.cbytes.to_ne_bytes()).collect();
        let nbytes: Vec<u8> = verdicts.iter().flat_map(|verdict| verdict.nbytes.to_ne_bytes()).collect();
        Ok([statuses, cbytes, nbytes])
    })?;
    let [statuses, cbytes, nbytes] = checked.map_err(|failure| explain(py, None, &failure))?;
    Ok((PyBytes::new(py, &statuses), PyBytes::new(py, &cbytes), PyBytes::new(py, &nbytes)))
}

/// Give a file or a directory a name that nothing may have.
#[pyfunction]
pub(crate) fn rename_new(py: Python<'_>, old: PathBuf, new: PathBuf) -> PyResult<()> {
    py.detach(|| files::rename_new(&old, &new)).map_err(|error| system_error(py, &error))
}

/// Let two names change places in one step.
#[pyfunction]
pub(crate) fn exchange(py: Python<'_>, one: PathBuf, other: PathBuf) -> PyResult<()> {
    py.detach(|| files::exchange(&one, &other)).map_err(|error| system_error(py, &error))
}

/// Have everything on the disk that was written to the file system of an open file.
#[pyfunction]
pub(crate) fn sync_filesystem(py: Python<'_>, fd: i32) -> PyResult<()> {
    let file = borrow_file(fd)?;
    py.detach(|| files::sync_filesystem(&file)).map_err(|error| system_error(py, &error))
}
