//! What a reader asks at each access: has anybody changed the file? And, if nobody has, a few of its bytes.

use std::ffi::CString;
use std::fs::File;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_io::Result;
use superchunk_io::boxes::Pick;
use superchunk_io::cache::{self, Cache, Wanted};
use superchunk_io::files::{self, Named, Stamp};
use superchunk_io::watch::{Expected, Proof, Times};

use crate::boxes::{Geometry, Selected};
use crate::buffers::{Buffer, borrow_file, fresh_bytes};
use crate::errors::{system_error, to_python};

/// The bytes that are at one offset of an open file, what proves the rest, and the name that the file has.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Watch {
    fd: i32,
    at: u64,
    #[pyo3(get)]
    probe: Py<PyBytes>,
    name: Option<Name>,
    proof: Option<Proof>,
    times: Times,
    /// What was read of the file, for who comes again.
    cache: Cache,
}

/// A name in an open directory, and the file that it leads to.
struct Name {
    folder: i32,
    path: CString,
    identity: files::Identity,
}

/// Sixteen bytes, ranges of the file, and whether the bytes are the hash of those or are there.
type Proven<'py> = (Bound<'py, PyBytes>, Vec<(u64, u64)>, bool);

#[pymethods]
impl Watch {
    #[new]
    #[pyo3(signature = (fd, at, probe, name=None, proof=None))]
    fn new(
        py: Python<'_>,
        fd: i32,
        at: u64,
        probe: Py<PyBytes>,
        name: Option<(i32, String)>,
        proof: Option<Proven<'_>>,
    ) -> PyResult<Self> {
        let name = match name {
            None => None,
            Some((folder, name)) => {
                let file = borrow_file(fd)?;
                let identity = files::identity(&file).map_err(|error| system_error(py, &error))?;
                let name = CString::new(name).map_err(|_| PyValueError::new_err("name: expected no NUL byte"))?;
                Some(Name { folder, path: name, identity })
            }
        };
        let proof = match proof {
            None => None,
            Some((bytes, ranges, hashed)) => {
                let bytes =
                    bytes.as_bytes().try_into().map_err(|_| PyValueError::new_err("proof: expected 16 bytes"))?;
                Some(match ranges[..] {
                    [(at, _)] if !hashed => Proof::Bytes { at, bytes },
                    _ => Proof::Hash { ranges, bytes },
                })
            }
        };
        Ok(Self { fd, at, probe, name, proof, times: Times::default(), cache: Cache::default() })
    }

    /// Return whether anything is other than it was.
    fn changed(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, |expected| Ok(self.times.look(expected)?.is_none()))
    }

    /// Return whether the bytes are others than they were, whatever the times and the name.
    fn differs(&self, py: Python<'_>) -> PyResult<bool> {
        #[allow(clippy::redundant_closure_for_method_calls, reason = "the method alone is of one lifetime")]
        self.ask(py, |expected| expected.differs())
    }

    /// Return whether something that `proof` does not cover may have been written before a look since this was asked last.
    fn doubted(&self) -> bool {
        self.times.take_doubt()
    }

    /// Ask the same, and read a small part of a chunk in the file, or a small box of it. Whatever keeps it from that gives
    /// None.
    #[pyo3(signature = (request, itemsize, dst=None, r#box=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        request: ((i32, u64, u64), u64, u64, u64, usize),
        itemsize: usize,
        dst: Option<&Bound<'py, PyAny>>,
        r#box: Option<(Bound<'py, Geometry>, Vec<Bound<'py, PyAny>>)>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let ((fd, offset, limit), nbytes, start, stop, _) = request;
        if let (Some((geometry, r#box)), Some(dst)) = (r#box, dst) {
            return self.read_box(py, (fd, offset, limit), geometry.get(), &r#box, dst);
        }
        let Some(length) = stop.checked_sub(start).and_then(|length| usize::try_from(length).ok()) else {
            return Ok(None);
        };
        let itemsize = (itemsize > 0).then_some(itemsize);
        let wanted = Wanted { offset, limit, nbytes, start, length, itemsize };
        if fd != self.fd || self.name.is_some() || !wanted.is_small() {
            return Ok(None);
        }
        let file = borrow_file(fd)?;
        let expected = self.expected(&file, self.probe.bind(py).as_bytes());
        let mut stamp = None;
        if let Some(found) = self.cache.find(&wanted) {
            // No other thread gets a turn for so little, unless the disk would have to be waited for.
            stamp = self.times.look_at_once(&expected);
            if stamp.flatten().is_some_and(|stamp| self.cache.confirms(&found, &file, stamp)) {
                return deliver(py, length, dst, |out| {
                    out.copy_from_slice(&found);
                    true
                });
            }
        }
        let look = || match stamp {
            Some(stamp) => stamp,
            None => self.times.look(&expected).ok().flatten(),
        };
        let read =
            |out: &mut [u8]| look().is_some_and(|stamp: Stamp| self.cache.read(&file, &wanted, stamp, out).is_ok());
        deliver(py, length, dst, |out| py.detach(|| read(out)))
    }
}

impl Watch {
    /// What the file is expected to be; its name is left to who asks.
    fn expected<'a>(&'a self, file: &'a File, head: &'a [u8]) -> Expected<'a> {
        Expected { file, named: None, at: self.at, head, proof: self.proof.as_ref() }
    }

    fn ask(&self, py: Python<'_>, ask: impl Fn(&Expected<'_>) -> Result<bool> + Send + Sync) -> PyResult<bool> {
        let file = borrow_file(self.fd)?;
        let expected = self.expected(&file, self.probe.bind(py).as_bytes());
        let outcome = match &self.name {
            None => py.detach(|| ask(&expected)),
            Some(Name { folder, path, identity }) => {
                let folder = borrow_file(*folder)?;
                let named = Some(Named { folder: &folder, name: path, identity: *identity });
                py.detach(|| ask(&Expected { named, ..expected }))
            }
        };
        outcome.map_err(|error| to_python(py, &error))
    }

    /// Ask whether anybody has changed the file, and read a small box of a chunk in it into `dst`.
    fn read_box<'py>(
        &self,
        py: Python<'py>,
        (fd, offset, limit): (i32, u64, u64),
        geometry: &Geometry,
        selected: &[Bound<'py, PyAny>],
        dst: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if fd != self.fd || self.name.is_some() {
            return Ok(None);
        }
        let selected = selected.iter().map(Selected::get).collect::<PyResult<Vec<_>>>()?;
        let picks: Vec<Pick<'_>> = selected.iter().map(Selected::pick).collect();
        let file = borrow_file(fd)?;
        let expected = self.expected(&file, self.probe.bind(py).as_bytes());
        let mut buffer = Buffer::get_writable(dst)?;
        let out = buffer.bytes_mut();
        let done = py.detach(|| {
            self.times.look(&expected).ok().flatten()?;
            self.cache.read_box(&file, (offset, limit), &geometry.checked, &picks, out).ok()
        });
        Ok((done == Some(true)).then(|| PyBytes::new(py, b"")))
    }
}

/// Have `fill` write `length` bytes to the front of `dst` or into new ones. None if it says that it has not.
fn deliver<'py>(
    py: Python<'py>,
    length: usize,
    dst: Option<&Bound<'py, PyAny>>,
    fill: impl FnOnce(&mut [u8]) -> bool,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut done = false;
    let bytes = match dst {
        Some(dst) => {
            let mut buffer = Buffer::get_writable(dst)?;
            done = buffer.bytes_mut().get_mut(..length).is_some_and(fill);
            PyBytes::new(py, b"")
        }
        None => fresh_bytes(py, length, |out| {
            done = fill(out);
            Ok(())
        })?,
    };
    Ok(done.then_some(bytes))
}

/// Set how many bytes of heads of chunks and of decoded blocks are kept for each open file.
#[pyfunction]
pub(crate) fn set_cache_limit(nbytes: usize) -> usize {
    let before = cache::limit();
    cache::set_limit(nbytes);
    before
}
