//! What a reader asks at each access: has anybody changed the file?

use std::ffi::CString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use superchunk_engine::files::{self, Named};

use crate::buffers::borrow_file;
use crate::errors::{system_error, to_python};

/// The bytes that stand at one place of an open file, and the name that the file has.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Watch {
    fd: i32,
    at: u64,
    #[pyo3(get)]
    probe: Py<PyBytes>,
    name: Option<Name>,
}

/// A name in an open directory, and the file that it leads to.
struct Name {
    folder: i32,
    path: CString,
    identity: files::Identity,
}

#[pymethods]
impl Watch {
    #[new]
    #[pyo3(signature = (fd, at, probe, name=None))]
    fn new(py: Python<'_>, fd: i32, at: u64, probe: Py<PyBytes>, name: Option<(i32, String)>) -> PyResult<Self> {
        let name = match name {
            None => None,
            Some((folder, name)) => {
                let file = borrow_file(fd)?;
                let identity = files::identity(&file).map_err(|error| system_error(py, &error))?;
                let name = CString::new(name).map_err(|_| PyValueError::new_err("name: expected no NUL byte"))?;
                Some(Name { folder, path: name, identity })
            }
        };
        Ok(Self { fd, at, probe, name })
    }

    /// Return whether anything is other than it was.
    fn changed(&self, py: Python<'_>) -> PyResult<bool> {
        let file = borrow_file(self.fd)?;
        let probe = self.probe.bind(py).as_bytes();
        let outcome = match &self.name {
            None => py.detach(|| files::changed(&file, self.at, probe)),
            Some(Name { folder, path, identity }) => {
                let folder = borrow_file(*folder)?;
                let named = Named { folder: &folder, name: path, identity: *identity };
                py.detach(|| Ok(named.moved() || files::differs(&file, self.at, probe)?))
            }
        };
        outcome.map_err(|error| to_python(py, &error))
    }
}
