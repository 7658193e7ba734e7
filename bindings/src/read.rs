//! Decompressing.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_engine::chunk::Chunk;
use superchunk_engine::interrupt::Interrupt;
use superchunk_engine::lazy;
use superchunk_engine::shape::BlockShape;
use superchunk_io::read::{self as engine, ReadError, ReadOptions, Request};

use crate::buffers::{Buffer, Held, fresh_bytes};
use crate::encode::block_shape;
use crate::errors::to_python;
use crate::hooks::{Hooks, Session};
use crate::signals::detach;

/// Results above this size are given memory only after their chunks have been looked at.
const LOOK_FIRST: usize = 64 * 1024 * 1024;

/// A request, as it came from Python.
struct Asked {
    held: Held,
    nbytes: Option<u64>,
    start: u64,
    length: usize,
    at: usize,
}

impl Asked {
    fn get(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (source, nbytes, start, stop, at): (Bound<'_, PyAny>, i64, u64, u64, usize) = item.extract()?;
        let length = stop.checked_sub(start).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length else {
            return Err(PyValueError::new_err(format!("stop: expected at least start ({start}), got {stop}")));
        };
        Ok(Self { held: Held::get(&source)?, nbytes: u64::try_from(nbytes).ok(), start, length, at })
    }
}

/// Cut the destination into the parts of the requests, filling what lies between with zeros if asked to.
fn requests_of<'a, 'd>(asked: &'a [Asked], mut dst: &'d mut [u8], clear: bool) -> PyResult<Vec<Request<'a, 'd>>> {
    let mut done = 0;
    let mut requests = Vec::with_capacity(asked.len());
    for one in asked {
        let capacity = done + dst.len();
        let end = one.at.checked_add(one.length).filter(|&end| end <= capacity);
        let Some(gap) = end.and(one.at.checked_sub(done)) else {
            return Err(PyValueError::new_err(format!(
                "at: expected ascending positions within the destination's {capacity} bytes, got {} bytes at {}",
                one.length, one.at
            )));
        };
        let (between, rest) = dst.split_at_mut(gap);
        if clear {
            between.fill(0);
        }
        let (here, rest) = rest.split_at_mut(one.length);
        dst = rest;
        done = one.at + one.length;
        requests.push(Request { location: one.held.location(), nbytes: one.nbytes, start: one.start, dst: here });
    }
    Ok(requests)
}

fn options<'s>(
    nthreads: usize,
    itemsize: usize,
    shape: Option<BlockShape>,
    session: Option<&'s Session<'_>>,
    interrupt: Option<&'s Interrupt<'s>>,
) -> ReadOptions<'s> {
    let itemsize = (itemsize > 0).then_some(itemsize);
    ReadOptions { nthreads, itemsize, shape, user: session.map(|session| session as _), interrupt }
}

pub(crate) fn explain(py: Python<'_>, session: Option<&Session<'_>>, failure: &ReadError) -> PyErr {
    let error = match session {
        Some(session) => session.to_python(py, &failure.error),
        None => to_python(py, &failure.error),
    };
    // Which of the requests it was: the caller knows what chunk that is.
    match error.value(py).setattr("nrequest", failure.nrequest) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Decode pieces of many chunks into one destination, blocks spread over threads.
#[pyfunction]
#[pyo3(signature = (requests, dst=None, *, nthreads=1, itemsize=0, hooks=None, blockshape=None))]
pub(crate) fn read<'py>(
    py: Python<'py>,
    requests: Vec<Bound<'py, PyAny>>,
    dst: Option<&Bound<'py, PyAny>>,
    nthreads: usize,
    itemsize: usize,
    hooks: Option<&Bound<'py, Hooks>>,
    blockshape: Option<Vec<usize>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let shape = block_shape(py, blockshape)?;
    let mut asked = requests.iter().map(Asked::get).collect::<PyResult<Vec<_>>>()?;
    let session = hooks.map(|hooks| Session::new(hooks.get()));
    let session = session.as_ref();
    let run = |requests: Vec<Request<'_, '_>>| {
        detach(py, |interrupt| engine::read(requests, options(nthreads, itemsize, shape, session, Some(interrupt))))?
            .map_err(|failure| explain(py, session, &failure))
    };
    if let Some(dst) = dst {
        let mut dst = Buffer::get_writable(dst)?;
        for one in &mut asked {
            one.held.apart_from(&dst);
        }
        run(requests_of(&asked, dst.bytes_mut(), false)?)?;
        return Ok(None);
    }
    let total = asked.last().map_or(0, |last| last.at.saturating_add(last.length));
    if total > LOOK_FIRST {
        py.detach(|| look(&asked, options(nthreads, itemsize, shape, session, None)))
            .map_err(|failure| explain(py, session, &failure))?;
    }
    fresh_bytes(py, total, |out| run(requests_of(&asked, out, true)?)).map(Some)
}

/// Open every chunk, which checks that what it claims to hold can be in it.
fn look(asked: &[Asked], options: ReadOptions<'_>) -> Result<(), ReadError> {
    for (nrequest, one) in asked.iter().enumerate() {
        let checked = one.held.location().open().and_then(|opened| {
            let chunk = Chunk::open_with(opened.source(), options.itemsize, options.shape, options.user)?;
            chunk.check_claims()?;
            Ok(engine::expect(&chunk, one.nbytes, one.start, one.length)?)
        });
        checked.map_err(|error| ReadError { nrequest, error })?;
    }
    Ok(())
}

/// Return the whole content of one chunk.
#[pyfunction]
#[pyo3(signature = (source, *, nthreads=1, itemsize=0, hooks=None, blockshape=None))]
pub(crate) fn decompress<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    nthreads: usize,
    itemsize: usize,
    hooks: Option<&Bound<'py, Hooks>>,
    blockshape: Option<Vec<usize>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let shape = block_shape(py, blockshape)?;
    let held = Held::get(source)?;
    let session = hooks.map(|hooks| Session::new(hooks.get()));
    let session = session.as_ref();
    let calm = options(nthreads, itemsize, shape, session, None);
    let fail = |error: superchunk_io::Error| explain(py, session, &ReadError { nrequest: 0, error });
    let opened = py.detach(|| held.location().open()).map_err(fail)?;
    let source = opened.source();
    let header = py.detach(|| lazy::describe(source)).map_err(|error| fail(error.into()))?;
    let total = header.nbytes as usize;
    if total > LOOK_FIRST {
        py.detach(|| Chunk::open_with(source, calm.itemsize, calm.shape, calm.user)?.check_claims())
            .map_err(|error| fail(error.into()))?;
    }
    fresh_bytes(py, total, |dst| {
        let requests = vec![Request { location: opened.location(), nbytes: None, start: 0, dst }];
        let read = detach(py, |interrupt| engine::read(requests, ReadOptions { interrupt: Some(interrupt), ..calm }))?;
        read.map_err(|failure| explain(py, session, &failure))
    })
}

/// Return the blocks of a chunk with variable-length blocks.
#[pyfunction]
#[pyo3(signature = (source, *, nthreads=1, itemsize=0, hooks=None))]
pub(crate) fn read_vlblocks<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    nthreads: usize,
    itemsize: usize,
    hooks: Option<&Bound<'py, Hooks>>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let held = Held::get(source)?;
    let session = hooks.map(|hooks| Session::new(hooks.get()));
    let session = session.as_ref();
    let blocks = detach(py, |interrupt| -> superchunk_io::Result<_> {
        let options = options(nthreads, itemsize, None, session, Some(interrupt));
        Ok(engine::read_vlblocks(held.location().open()?.source(), options)?)
    })?;
    let blocks = blocks.map_err(|error| explain(py, session, &ReadError { nrequest: 0, error }))?;
    Ok(blocks.iter().map(|block| PyBytes::new(py, block)).collect())
}
