//! Codecs and filters written in Python.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};
use superchunk_engine::Error;
use superchunk_engine::filters::UserFilter;
use superchunk_engine::user::User;

use crate::errors::{Raised, to_python};

type Pair = (Py<PyAny>, Py<PyAny>);

/// User codecs and filters by id.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Hooks {
    codecs: HashMap<u8, Pair>,
    filters: HashMap<u8, Pair>,
}

#[pymethods]
impl Hooks {
    #[new]
    fn new(codecs: HashMap<u8, Pair>, filters: HashMap<u8, Pair>) -> Self {
        Self { codecs, filters }
    }

    /// Show the garbage collector what is held. A cycle through these always has another object that can let go of it, because
    /// nothing is put in later.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (forward, backward) in self.codecs.values().chain(self.filters.values()) {
            visit.call(forward)?;
            visit.call(backward)?;
        }
        Ok(())
    }
}

/// The hooks during one call of the engine; remembers the exception that ended it.
pub(crate) struct Session<'h> {
    hooks: &'h Hooks,
    raised: Mutex<Option<PyErr>>,
}

impl<'h> Session<'h> {
    pub(crate) fn new(hooks: &'h Hooks) -> Self {
        Self { hooks, raised: Mutex::new(None) }
    }

    /// The exception for an error: the one that a hook raised, if it was a hook's.
    pub(crate) fn to_python(&self, py: Python<'_>, error: &impl Raised) -> PyErr {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        match raised {
            Some(raised) if error.is_of_the_user() => raised,
            _ => to_python(py, error),
        }
    }

    /// Call `function(src, dst, meta)`. It works on copies: what it keeps of them cannot hurt.
    fn call(
        &self,
        what: &'static str,
        id: u8,
        function: &Py<PyAny>,
        meta: u8,
        src: &[u8],
        dst: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        let outcome = Python::attach(|py| -> PyResult<Option<usize>> {
            let input = PyMemoryView::from(PyBytes::new(py, src).as_any())?;
            let output = PyByteArray::new_with(py, dst.len(), |_| Ok(()))?;
            let view = PyMemoryView::from(output.as_any())?;
            let result = function.bind(py).call1((input, view, meta))?;
            let written = output.to_vec();
            if written.len() != dst.len() {
                return Err(PyValueError::new_err(format!("dst: expected {} bytes, got {}", dst.len(), written.len())));
            }
            dst.copy_from_slice(&written);
            if what == "filter" || result.is_none() { Ok(None) } else { result.extract().map(Some) }
        });
        outcome.map_err(|raised| {
            let reason = raised.to_string().into();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            Error::User { what, id, reason }
        })
    }

    fn codec(&self, id: u8) -> Result<&Pair, Error> {
        self.hooks.codecs.get(&id).ok_or(Error::Unsupported { what: "codec", id, name: "user" })
    }

    fn filter(&self, id: u8) -> Result<&Pair, Error> {
        self.hooks.filters.get(&id).ok_or(Error::Unsupported { what: "filter", id, name: "user" })
    }
}

impl User for Session<'_> {
    fn has_codec(&self, id: u8) -> bool {
        self.hooks.codecs.contains_key(&id)
    }

    fn encode(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<usize, Error> {
        let written = self.call("codec", id, &self.codec(id)?.0, meta, src, dst)?;
        Ok(written.unwrap_or(0))
    }

    fn decode(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        let written = self.call("codec", id, &self.codec(id)?.1, meta, src, dst)?;
        match written {
            Some(written) if written != dst.len() => Err(Error::User {
                what: "codec",
                id,
                reason: format!("decoder returned {written}, expected {}", dst.len()).into(),
            }),
            _ => Ok(()),
        }
    }

    fn filters(&self) -> &dyn UserFilter {
        self
    }
}

impl UserFilter for Session<'_> {
    fn has(&self, id: u8) -> bool {
        self.hooks.filters.contains_key(&id)
    }

    fn forward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        self.call("filter", id, &self.filter(id)?.0, meta, src, dst).map(drop)
    }

    fn backward(&self, id: u8, meta: u8, src: &[u8], dst: &mut [u8]) -> Result<(), Error> {
        self.call("filter", id, &self.filter(id)?.1, meta, src, dst).map(drop)
    }
}
