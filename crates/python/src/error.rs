//! Engine errors as Python exceptions.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{create_exception, import_exception};
use vcpulab_scenario::{AddressError, Problem, Problems};

// They stand with the other errors of the package, under one base.
import_exception!(vcpulab.errors, ChangeError);
import_exception!(vcpulab.errors, ScenarioError);
import_exception!(vcpulab.errors, EngineError);
import_exception!(vcpulab.errors, Interrupted);
import_exception!(vcpulab.plugins, PluginError);

create_exception!(
    vcpulab._engine,
    Rejected,
    PyException,
    "Raised by a policy's hook that refuses its values."
);

/// The exception that lists these problems in `problems`.
pub fn scenario_error(py: Python<'_>, problems: &Problems) -> PyErr {
    let error = ScenarioError::new_err(problems.to_string());
    let attach = || {
        let dicts = problems.iter().map(|problem| as_dict(py, problem)).collect::<PyResult<Vec<_>>>()?;
        error.value(py).setattr("problems", dicts)
    };
    match attach() {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// The exception of a change: a `ScenarioError` with the number of the edit at fault for each problem in `edits`, or a
/// `ChangeError` with the number of its edit.
pub fn change_error(py: Python<'_>, error: vcpulab_scenario::ChangeError) -> PyErr {
    use vcpulab_scenario::ChangeError as Refused;

    let refused = |reason: String, edit: Option<usize>| {
        let error = ChangeError::new_err(reason);
        error.value(py).setattr("edit", edit).map(|()| error)
    };
    let made = match error {
        Refused::Scenario { problems, edits } => {
            let error = scenario_error(py, &problems);
            error.value(py).setattr("edits", edits).map(|()| error)
        }
        Refused::Address { edit, error: AddressError { reason, unknown, choices } } => {
            refused(reason, Some(edit)).and_then(|error| {
                error.value(py).setattr("unknown", unknown)?;
                error.value(py).setattr("choices", choices)?;
                Ok(error)
            })
        }
        Refused::Twice { edit, .. } => refused(error.to_string(), Some(edit)),
        Refused::Edit(_) => refused(error.to_string(), None),
    };
    made.unwrap_or_else(|failed| failed)
}

/// The exception for work that failed.
pub fn engine_error(error: impl std::fmt::Display) -> PyErr {
    EngineError::new_err(error.to_string())
}

/// A problem as a Python object.
pub fn as_dict<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("file", &problem.file)?;
    dict.set_item("line", problem.line)?;
    dict.set_item("column", problem.column)?;
    dict.set_item("field", &problem.field)?;
    dict.set_item("found", &problem.found)?;
    dict.set_item("allowed", &problem.allowed)?;
    dict.set_item("hint", &problem.hint)?;
    dict.set_item("message", &problem.message)?;
    Ok(dict)
}
