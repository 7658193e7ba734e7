//! Boxes of n-dimensional arrays.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use superchunk_engine::interrupt::Interrupt;
use superchunk_io::boxes::{self as engine, BoxError, Pick, Strided};
use superchunk_io::read::{ReadError, ReadOptions};
use superchunk_io::source::ChunkLocation;

use crate::buffers::{Buffer, Held, Span, at_most};
use crate::encode::EncodeParams;
use crate::errors::to_python;
use crate::hooks::{Hooks, Session};
use crate::read::explain;
use crate::signals::detach;

/// Chunk shape, block shape and item size, checked once. Immutable.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Geometry {
    pub(crate) checked: engine::Geometry,
}

#[pymethods]
impl Geometry {
    #[new]
    #[pyo3(signature = (chunks, blocks, itemsize, blockshape=None))]
    fn new(
        py: Python<'_>,
        chunks: Vec<i64>,
        blocks: Vec<i64>,
        itemsize: i64,
        blockshape: Option<Vec<usize>>,
    ) -> PyResult<Self> {
        let itemsize = usize::try_from(itemsize).unwrap_or(0);
        let checked = engine::Geometry::new(&chunks, &blocks, itemsize)
            .and_then(|checked| match blockshape {
                Some(shape) => checked.with_shape(&shape),
                None => Ok(checked),
            })
            .map_err(|error| to_python(py, &error))?;
        Ok(Self { checked })
    }

    /// Bytes of a chunk, padding included.
    #[getter]
    fn chunk_nbytes(&self) -> usize {
        self.checked.chunk_nbytes()
    }

    /// Bytes of a block.
    #[getter]
    fn block_nbytes(&self) -> usize {
        self.checked.block_nbytes()
    }

    fn __repr__(&self) -> String {
        let Geometry { checked } = self;
        format!(
            "Geometry(chunks={:?}, blocks={:?}, itemsize={})",
            checked.chunks(),
            checked.blocks(),
            checked.itemsize()
        )
    }
}

/// Copy the 64-bit integers of a buffer, so that nobody can change them any more.
fn integers(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let buffer = Buffer::get(object)?;
    let (numbers, rest) = buffer.bytes().as_chunks::<8>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(format!(
            "{name}: expected 64-bit integers, got {} bytes",
            buffer.bytes().len()
        )));
    }
    Ok(numbers.iter().map(|raw| i64::from_ne_bytes(*raw)).collect())
}

/// What is selected in one dimension, as it came from Python.
pub(crate) enum Selected {
    Range(i64, i64, i64),
    List(Vec<i64>),
}

impl Selected {
    pub(crate) fn get(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(tuple) = item.cast::<PyTuple>() {
            let (start, stop, by) = tuple.extract()?;
            return Ok(Self::Range(start, stop, by));
        }
        Ok(Self::List(integers("box", item)?))
    }

    pub(crate) fn pick(&self) -> Pick<'_> {
        match self {
            Self::Range(start, stop, by) => Pick::Range { start: *start, stop: *stop, step: *by },
            Self::List(positions) => Pick::List(positions),
        }
    }
}

fn fail(py: Python<'_>, session: Option<&Session<'_>>, failure: BoxError) -> PyErr {
    match failure {
        BoxError { nsource: Some(nrequest), error } => explain(py, session, &ReadError { nrequest, error }),
        BoxError { nsource: None, error } => to_python(py, &error),
    }
}

/// Read a box of an array from the chunks that the box intersects.
#[pyfunction]
#[pyo3(signature = (geometry, sources, r#box, dst, *, nthreads=1, hooks=None))]
pub(crate) fn read_box(
    py: Python<'_>,
    geometry: &Bound<'_, Geometry>,
    sources: Vec<Bound<'_, PyAny>>,
    r#box: Vec<Bound<'_, PyAny>>,
    dst: &Bound<'_, PyAny>,
    nthreads: usize,
    hooks: Option<&Bound<'_, Hooks>>,
) -> PyResult<()> {
    let geometry = &geometry.get().checked;
    let mut dst = Buffer::get_writable(dst)?;
    let held = Held::get_all_apart(&sources, &dst)?;
    let selected = r#box.iter().map(Selected::get).collect::<PyResult<Vec<_>>>()?;
    let session = hooks.map(|hooks| Session::new(hooks.get()));
    let session = session.as_ref();
    let dst = dst.bytes_mut();
    detach(py, |interrupt| {
        let locations: Vec<ChunkLocation<'_>> = held.iter().map(Held::location).collect();
        let picks: Vec<Pick<'_>> = selected.iter().map(Selected::pick).collect();
        engine::read_box(geometry, &picks, &locations, dst, options(nthreads, geometry, session, interrupt))
    })?
    .map_err(|failure| fail(py, session, failure))
}

fn options<'s>(
    nthreads: usize,
    geometry: &engine::Geometry,
    session: Option<&'s Session<'_>>,
    interrupt: &'s Interrupt<'s>,
) -> ReadOptions<'s> {
    ReadOptions {
        nthreads,
        itemsize: Some(geometry.itemsize()),
        shape: None,
        user: session.map(|session| session as _),
        interrupt: Some(interrupt),
    }
}

/// Read items of any chunks one by one.
#[pyfunction]
#[pyo3(signature = (geometry, sources, nsource, position, dst, *, nthreads=1, hooks=None))]
#[expect(clippy::too_many_arguments, reason = "half of them are keywords in Python")]
pub(crate) fn read_points(
    py: Python<'_>,
    geometry: &Bound<'_, Geometry>,
    sources: Vec<Bound<'_, PyAny>>,
    nsource: &Bound<'_, PyAny>,
    position: &Bound<'_, PyAny>,
    dst: &Bound<'_, PyAny>,
    nthreads: usize,
    hooks: Option<&Bound<'_, Hooks>>,
) -> PyResult<()> {
    let geometry = &geometry.get().checked;
    let mut dst = Buffer::get_writable(dst)?;
    let held = Held::get_all_apart(&sources, &dst)?;
    let nsources = integers("nsource", nsource)?;
    let positions = integers("position", position)?;
    let session = hooks.map(|hooks| Session::new(hooks.get()));
    let session = session.as_ref();
    let dst = dst.bytes_mut();
    detach(py, |interrupt| {
        let locations: Vec<ChunkLocation<'_>> = held.iter().map(Held::location).collect();
        engine::read_points(
            geometry,
            &locations,
            &nsources,
            &positions,
            dst,
            options(nthreads, geometry, session, interrupt),
        )
    })?
    .map_err(|failure| fail(py, session, failure))
}

/// Return the chunk of a part of an array in memory.
#[pyfunction]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    geometry: &Bound<'_, Geometry>,
    params: &EncodeParams,
    src: &Bound<'_, PyAny>,
    offset: usize,
    strides: Vec<i64>,
    extent: Vec<i64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let geometry = &geometry.get().checked;
    let src = Span::get(src)?;
    let src = Strided { bytes: src.bytes(), offset, strides: &strides, extent: &extent };
    let session = params.session();
    let user = session.as_ref().map(|session| session as _);
    at_most(py, geometry.chunk_nbytes() + params.checked().overhead(), |out| {
        let packed = detach(py, |interrupt| engine::pack(geometry, params.checked(), src, user, Some(interrupt), out))?;
        packed.map_err(|error| match &session {
            Some(session) => session.to_python(py, &error),
            None => to_python(py, &error),
        })
    })
}
