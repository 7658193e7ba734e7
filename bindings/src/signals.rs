//! Long calls: the interpreter lock is released, and signals are looked for meanwhile.
//!
//! Python runs its handlers of signals on the main thread, between two steps of the interpreter. During a call of the engine there
//! are none, so the main thread takes the lock back now and then and lets handlers run. What a handler raises ends the
//! call, `KeyboardInterrupt` above all. Other threads are asked once and then left alone.

use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use superchunk_engine::interrupt::Interrupt;

#[derive(Default)]
struct Signals {
    raised: Mutex<Option<PyErr>>,
    /// Whether this is the main thread, once that was asked.
    main: OnceLock<bool>,
}

impl Signals {
    /// Let handlers run, and say whether the call is to go on.
    fn go_on(&self) -> bool {
        if self.main.get() == Some(&false) {
            return true;
        }
        let outcome = Python::try_attach(|py| {
            if self.main.get().is_none() {
                // This runs Python code, and handlers with it.
                let main = is_main_thread(py)?;
                self.main.get_or_init(|| main);
            }
            py.check_signals()
        });
        let Some(Err(raised)) = outcome else { return true };
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        false
    }
}

/// Whether this is the thread that handlers of signals run on. A program that has not imported `threading` is not made to.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Ok(threading) = modules.get_item("threading") else { return Ok(true) };
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    threading.call_method0("get_ident")?.eq(main)
}

/// Run `work` with the interpreter lock released.
///
/// # Errors
///
/// What a handler of a signal raised meanwhile; the work has then stopped at its next task.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce(&Interrupt<'_>) -> T + Send) -> PyResult<T> {
    let signals = Signals::default();
    let go_on = || signals.go_on();
    let interrupt = Interrupt::new(&go_on);
    let outcome = py.detach(|| work(&interrupt));
    match signals.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(raised) => Err(raised),
        None => Ok(outcome),
    }
}
