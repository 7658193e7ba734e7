//! Memory of large results, as Python objects with a buffer.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::{PyBufferError, PyMemoryError};
use pyo3::ffi;
use pyo3::prelude::*;
use superchunk_io::memory::buffer_pool;

/// Bytes with anything in them, for a large array. When nobody needs the object any more they are kept for the next one.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Memory(buffer_pool::Memory);

#[pymethods]
impl Memory {
    #[new]
    fn new(nbytes: usize) -> PyResult<Self> {
        let outcome = buffer_pool::Memory::new(nbytes);
        outcome.map(Self).map_err(|error| PyMemoryError::new_err(format!("no memory for {nbytes} bytes: {error}")))
    }

    #[expect(unsafe_code, reason = "the buffer protocol is the C API's")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let memory = &slf.get().0;
        let length = ffi::Py_ssize_t::try_from(memory.nbytes())
            .map_err(|_| PyBufferError::new_err("more bytes than a buffer can have"))?;
        let start = memory.start().cast::<c_void>();
        // SAFETY: Python hands out a view to fill. The bytes stay where they are as long as the object is there, to which
        // the view holds a reference; who may write when is up to those who have views, as with any buffer.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 0, flags) };
        if status == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Set how many bytes of results that nobody needs any more are kept for the next ones, and return what it was.
#[pyfunction]
pub(crate) fn set_memory_limit(nbytes: usize) -> usize {
    buffer_pool::set_limit(nbytes)
}

/// Give back to the system the memory that is kept.
#[pyfunction]
pub(crate) fn free_memory() {
    buffer_pool::free();
}

/// Have the child of a fork wait for nobody who is not there.
#[pyfunction]
pub(crate) fn after_fork() {
    buffer_pool::after_fork();
}
