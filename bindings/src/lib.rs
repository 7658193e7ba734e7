//! Python bindings.
use pyo3::prelude::*;
/// The engine.
#[pymodule(gil_used = false)]
fn _engine(_m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
