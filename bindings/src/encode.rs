//! Compressing.

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_engine::Error;
use superchunk_engine::encode;
use superchunk_engine::header::Special;
use superchunk_engine::params;
use superchunk_engine::shape::BlockShape;

use crate::buffers::{Buffer, at_most};
use crate::errors::to_python;
use crate::hooks::{Hooks, Session};
use crate::signals::detach;

/// How to compress, checked once. Immutable.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct EncodeParams {
    checked: params::EncodeParams,
    hooks: Option<Py<Hooks>>,
}

fn six(name: &str, bytes: &[u8]) -> PyResult<[u8; 6]> {
    bytes.try_into().map_err(|_| PyValueError::new_err(format!("{name}: expected 6 bytes, got {}", bytes.len())))
}

fn byte(name: &str, expected: &str, value: i64) -> PyResult<u8> {
    u8::try_from(value).map_err(|_| PyValueError::new_err(format!("{name}: expected {expected}, got {value}")))
}

fn size(name: &str, expected: &str, value: i64) -> PyResult<usize> {
    usize::try_from(value).map_err(|_| PyValueError::new_err(format!("{name}: expected {expected}, got {value}")))
}

/// The shape of a container's blocks, checked.
pub(crate) fn block_shape(py: Python<'_>, dims: Option<Vec<usize>>) -> PyResult<Option<BlockShape>> {
    dims.map(|dims| BlockShape::new(&dims)).transpose().map_err(|error| to_python(py, &error))
}

impl EncodeParams {
    pub(crate) fn checked(&self) -> &params::EncodeParams {
        &self.checked
    }

    /// What a call with these parameters needs for codecs and filters of the user.
    pub(crate) fn session(&self) -> Option<Session<'_>> {
        self.hooks.as_ref().map(|hooks| Session::new(hooks.get()))
    }
}

#[pymethods]
impl EncodeParams {
    #[new]
    #[pyo3(signature = (*, codec=5, codec_meta=0, clevel=5, typesize=8, blocksize=0, splitmode=3,
        filters=b"\0\0\0\0\0\x01".as_slice(), filters_meta=b"\0\0\0\0\0\0".as_slice(), use_dict=false, blosc1=false, nthreads=1, hooks=None, blockshape=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        codec: i64,
        codec_meta: i64,
        clevel: i64,
        typesize: i64,
        blocksize: i64,
        splitmode: i64,
        filters: &[u8],
        filters_meta: &[u8],
        use_dict: bool,
        blosc1: bool,
        nthreads: i64,
        hooks: Option<Py<Hooks>>,
        blockshape: Option<Vec<usize>>,
    ) -> PyResult<Self> {
        let options = params::EncodeOptions {
            codec: byte("codec", "0 to 255", codec)?,
            codec_meta: byte("codec_meta", "0 to 255", codec_meta)?,
            clevel: byte("clevel", "0 to 9", clevel)?,
            typesize: size("typesize", "1 to 536866816", typesize)?,
            blocksize: size("blocksize", "0 (automatic) to 536866816", blocksize)?,
            splitmode: byte("splitmode", "1 to 4", splitmode)?,
            filters: six("filters", filters)?,
            filters_meta: six("filters_meta", filters_meta)?,
            shape: block_shape(py, blockshape)?,
            use_dict,
            blosc1,
            nthreads: size("nthreads", "at least 1", nthreads)?.max(1),
        };
        let session = hooks.as_ref().map(|hooks| Session::new(hooks.get()));
        let checked = params::EncodeParams::new(options, session.as_ref().map(|s| s as _));
        drop(session);
        Ok(Self { checked: checked.map_err(|error| to_python(py, &error))?, hooks })
    }

    /// Show the garbage collector what is held. A cycle through these always has another object that can let go of it, because
    /// nothing is put in later.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.hooks)
    }

    /// Return the block size, in bytes, that a chunk of `nbytes` gets.
    fn blocksize_for(&self, nbytes: usize) -> usize {
        self.checked.blocksize_for(nbytes)
    }
}

/// Return `data` (C-contiguous, at most 2147483615 bytes) as one chunk.
#[pyfunction]
pub(crate) fn compress<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    params: &EncodeParams,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Buffer::get(data)?;
    let src = data.bytes();
    if src.len() > superchunk_engine::limits::MAX_BUFFERSIZE {
        let most = superchunk_engine::limits::MAX_BUFFERSIZE;
        return Err(PyValueError::new_err(format!(
            "data: expected at most {most} bytes in a chunk, got {}",
            src.len()
        )));
    }
    let session = params.session();
    at_most(py, src.len() + params.checked.overhead(), |out| {
        let user = session.as_ref().map(|session| session as _);
        detach(py, |interrupt| encode::encode(src, &params.checked, user, Some(interrupt), out))?
            .map_err(|error| explain(py, session.as_ref(), &error))
    })
}

fn explain(py: Python<'_>, session: Option<&Session<'_>>, error: &Error) -> PyErr {
    session.map_or_else(|| to_python(py, error), |session| session.to_python(py, error))
}

/// Return a chunk with variable-length blocks, one for each non-empty buffer.
#[pyfunction]
pub(crate) fn compress_vlblocks<'py>(
    py: Python<'py>,
    blocks: Vec<Bound<'py, PyAny>>,
    params: &EncodeParams,
) -> PyResult<Bound<'py, PyBytes>> {
    let held = blocks.iter().map(Buffer::get).collect::<PyResult<Vec<_>>>()?;
    let slices: Vec<&[u8]> = held.iter().map(Buffer::bytes).collect();
    let session = params.hooks.as_ref().map(|hooks| Session::new(hooks.get()));
    let user = session.as_ref().map(|session| session as _);
    let chunk = detach(py, |interrupt| encode::encode_vlblocks(&slices, &params.checked, user, Some(interrupt)))?;
    chunk.map(|chunk| PyBytes::new(py, &chunk)).map_err(|error| explain(py, session.as_ref(), &error))
}

/// Return a chunk of one special value: kind 1 zero, 2 NaN, 3 `value`, 4 uninitialised.
#[pyfunction]
#[pyo3(signature = (kind, nbytes, typesize, value=None, blocksize=0))]
pub(crate) fn special_chunk<'py>(
    py: Python<'py>,
    kind: u8,
    nbytes: usize,
    typesize: usize,
    value: Option<&Bound<'py, PyAny>>,
    blocksize: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let special =
        Special::from_id(kind).ok_or_else(|| PyValueError::new_err(format!("kind: expected 1 to 4, got {kind}")))?;
    let value = value.map(Buffer::get).transpose()?;
    let chunk = encode::special_chunk(special, nbytes, typesize, value.as_ref().map(Buffer::bytes), blocksize);
    chunk.map(|chunk| PyBytes::new(py, &chunk)).map_err(|error| to_python(py, &error))
}

/// Return a chunk of zeros that is no special chunk, for frames that cannot take one there.
#[pyfunction]
#[pyo3(signature = (nbytes, typesize, blocksize=0))]
pub(crate) fn zeros_in_blocks(
    py: Python<'_>,
    nbytes: usize,
    typesize: usize,
    blocksize: usize,
) -> PyResult<Bound<'_, PyBytes>> {
    let chunk = encode::zeros_in_blocks(nbytes, typesize, blocksize);
    chunk.map(|chunk| PyBytes::new(py, &chunk)).map_err(|error| to_python(py, &error))
}
