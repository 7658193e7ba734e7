//! A `with` block under a lock whose end an interrupt cannot leave half done.
//!
//! Python raises `KeyboardInterrupt` between any two bytecodes, and so also when `__exit__` has begun and has done
//! nothing yet. What must happen at the end of a block is therefore no bytecode: the lock is released here, and the
//! change is marked as left here.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::intern;
use pyo3::prelude::*;

/// A `with` block that makes a change.
///
/// `turn`, a context manager, is entered first and left last. Then come ``change.lock``, which is acquired and released,
/// and ``change.begin()`` and ``change.end(kind)``. When the block is over, however it ends, ``change.left`` is True.
#[pyclass(frozen, module = "superchunk._engine")]
pub(crate) struct Section {
    change: Py<PyAny>,
    lock: Py<PyAny>,
    turn: Option<Py<PyAny>>,
    held: AtomicBool,
}

#[pymethods]
impl Section {
    #[new]
    #[pyo3(signature = (change, turn=None))]
    fn new(change: Bound<'_, PyAny>, turn: Option<Py<PyAny>>) -> PyResult<Self> {
        let lock = change.getattr(intern!(change.py(), "lock"))?.unbind();
        Ok(Self { change: change.unbind(), lock, turn, held: AtomicBool::new(false) })
    }

    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(turn) = &self.turn {
            turn.bind(py).call_method0(intern!(py, "__enter__"))?;
        }
        let begun = self.lock.bind(py).call_method0(intern!(py, "acquire")).and_then(|_| {
            self.held.store(true, Ordering::Relaxed);
            self.change.bind(py).call_method0(intern!(py, "begin"))
        });
        if let Err(error) = &begun {
            self.leave(py);
            self.leave_turn(py, Some(error))?;
        }
        begun
    }

    fn __exit__<'py>(
        &self,
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        _trace: &Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let ended = self.change.bind(py).call_method1(intern!(py, "end"), (kind,));
        self.leave(py);
        let failed = match &ended {
            Err(other) => Some(other.clone_ref(py)),
            Ok(_) => (!error.is_none()).then(|| PyErr::from_value(error.clone())),
        };
        self.leave_turn(py, failed.as_ref())?;
        ended.map(drop)
    }
}

impl Section {
    /// Mark the change as left, and release the lock.
    fn leave(&self, py: Python<'_>) {
        if self.held.swap(false, Ordering::Relaxed) {
            let marked = self.change.bind(py).setattr(intern!(py, "left"), true);
            let released = self.lock.bind(py).call_method0(intern!(py, "release"));
            // Neither fails, except where the block is dropped in a thread or a process that does not hold the lock.
            drop((marked, released));
        }
    }

    /// Leave the turn, which is told why the block has failed.
    fn leave_turn(&self, py: Python<'_>, failed: Option<&PyErr>) -> PyResult<()> {
        let Some(turn) = &self.turn else { return Ok(()) };
        let none = || py.None().into_bound(py);
        let (kind, error) = match failed {
            Some(failed) => (failed.get_type(py).into_any(), failed.value(py).clone().into_any()),
            None => (none(), none()),
        };
        turn.bind(py).call_method1(intern!(py, "__exit__"), (kind, error, none())).map(drop)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        if *self.held.get_mut() {
            Python::attach(|py| {
                let pending = PyErr::take(py);
                self.leave(py);
                if let Some(error) = pending {
                    error.restore(py);
                }
            });
        }
    }
}
