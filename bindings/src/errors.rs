//! Errors of the engine as exceptions of `superchunk.exceptions`, in one place.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use superchunk_engine::Error;

mod classes {
    #![allow(missing_docs, reason = "the classes are documented where they are defined, in Python")]
    pyo3::import_exception!(superchunk.exceptions, ArgumentError);
    pyo3::import_exception!(superchunk.exceptions, FormatError);
    pyo3::import_exception!(superchunk.exceptions, MissingFileError);
    pyo3::import_exception!(superchunk.exceptions, NewerFormatError);
    pyo3::import_exception!(superchunk.exceptions, StorageError);
    pyo3::import_exception!(superchunk.exceptions, TruncatedError);
    pyo3::import_exception!(superchunk.exceptions, UnsupportedError);
}

/// The newest chunk version there is.
const NEWEST: i64 = superchunk_engine::header::VERSION_VLBLOCKS as i64;

/// An error that has an exception.
pub(crate) trait Raised {
    /// Make the exception.
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr>;
    /// Whether a codec or filter of the user failed.
    fn is_of_the_user(&self) -> bool;
}

/// Make the exception for an error.
pub(crate) fn to_python(py: Python<'_>, error: &impl Raised) -> PyErr {
    error.exception(py).unwrap_or_else(|failure| failure)
}

impl Raised for Error {
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        exception(py, self)
    }

    fn is_of_the_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }
}

impl Raised for superchunk_io::Error {
    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let called = match self {
            Self::Chunk(error) => return exception(py, error),
            Self::Open { path, errno } => {
                let missing = std::io::Error::from_raw_os_error(*errno).kind() == std::io::ErrorKind::NotFound;
                let class = if missing {
                    py.get_type::<classes::MissingFileError>()
                } else {
                    py.get_type::<classes::StorageError>()
                };
                class.call1((*errno, strerror(py, *errno)?, path.as_os_str()))?
            }
            Self::NotAFile { path, found } => {
                let errno = errno_of(py, if *found == "a directory" { "EISDIR" } else { "EINVAL" })?;
                let reason = format!("expected a regular file, found {found}");
                py.get_type::<classes::StorageError>().call1((errno, reason, path.as_os_str()))?
            }
            // Whatever that crate may add.
            _ => py.get_type::<classes::StorageError>().call1((self.to_string(),))?,
        };
        Ok(PyErr::from_value(called))
    }

    fn is_of_the_user(&self) -> bool {
        matches!(self, Self::Chunk(error) if error.is_of_the_user())
    }
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let keywords = PyDict::new(py);
    let called = match error {
        Error::Truncated { what, at, needed, got } => {
            keywords.set_item("at", at)?;
            keywords.set_item("needed", needed)?;
            keywords.set_item("got", got)?;
            py.get_type::<classes::TruncatedError>().call((*what,), Some(&keywords))?
        }
        Error::Field { field, at, expected, found } => {
            keywords.set_item("at", at)?;
            keywords.set_item("expected", expected.as_ref())?;
            keywords.set_item("found", found)?;
            let newer = *field == "chunk version" && *found > NEWEST;
            let class =
                if newer { py.get_type::<classes::NewerFormatError>() } else { py.get_type::<classes::FormatError>() };
            class.call((*field,), Some(&keywords))?
        }
        Error::Stream { codec, nblock, at, reason } => {
            keywords.set_item("at", at)?;
            keywords.set_item("expected", "a sound stream")?;
            keywords.set_item("found", reason)?;
            let field = format!("{codec} stream of block {nblock}");
            py.get_type::<classes::FormatError>().call((field,), Some(&keywords))?
        }
        Error::Unsupported { what, id, name } => {
            py.get_type::<classes::UnsupportedError>().call1((*what, *id, *name))?
        }
        Error::NeedsShape { what, id, name, field, at } => {
            keywords
                .set_item("reason", format!("in {field} at byte {at}: {}", superchunk_engine::error::NEEDS_SHAPE))?;
            py.get_type::<classes::UnsupportedError>().call((*what, *id, *name), Some(&keywords))?
        }
        Error::Io { errno, .. } => py.get_type::<classes::StorageError>().call1((*errno, error.to_string()))?,
        Error::OutOfMemory { .. } => return Ok(PyMemoryError::new_err(error.to_string())),
        Error::User { .. } => return Ok(PyRuntimeError::new_err(error.to_string())),
        // Argument and Destination; Interrupted, in place of which the caller raises what a handler did; and
        // whatever the engine may add.
        _ => py.get_type::<classes::ArgumentError>().call1((error.to_string(),))?,
    };
    Ok(PyErr::from_value(called))
}

/// Make the exception for a call of the system that failed; what a system has no call for is `ENOTSUP`.
pub(crate) fn system_error(py: Python<'_>, error: &std::io::Error) -> PyErr {
    let made = || {
        let errno = match error.raw_os_error() {
            Some(errno) => errno,
            None => errno_of(py, "ENOTSUP")?,
        };
        py.get_type::<classes::StorageError>().call1((errno, strerror(py, errno)?)).map(PyErr::from_value)
    };
    made().unwrap_or_else(|failure| failure)
}

fn errno_of(py: Python<'_>, name: &str) -> PyResult<i32> {
    py.import("errno")?.getattr(name)?.extract()
}

fn strerror(py: Python<'_>, errno: i32) -> PyResult<String> {
    py.import("os")?.call_method1("strerror", (errno,))?.extract()
}
