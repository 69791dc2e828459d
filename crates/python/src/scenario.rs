//! A checked scenario in Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{as_dict, scenario_error};

#[pyclass(frozen, eq, module = "vcpulab._engine")]
#[derive(PartialEq)]
pub struct Scenario {
    pub checked: vcpulab_scenario::Scenario,
}

#[pymethods]
impl Scenario {
    /// Reads and checks a scenario; `file` is its name in messages, and `folder` has the files that it names.
    #[staticmethod]
    #[pyo3(signature = (text, file = "<string>", folder = PathBuf::new()))]
    fn parse(py: Python<'_>, text: &str, file: &str, folder: PathBuf) -> PyResult<Self> {
        Self::checked(py, py.detach(|| vcpulab_scenario::Scenario::parse_in(text, file, Some(&folder))))
    }

    /// As `parse`, for bytes that may not even be text.
    #[staticmethod]
    #[pyo3(signature = (data, file = "<string>", folder = PathBuf::new()))]
    fn parse_bytes(py: Python<'_>, data: &[u8], file: &str, folder: PathBuf) -> PyResult<Self> {
        Self::checked(py, py.detach(|| vcpulab_scenario::Scenario::parse_bytes(data, file, Some(&folder))))
    }

    /// With another seed or number of replications.
    #[pyo3(signature = (*, seed = None, replications = None))]
    fn with_run(&self, py: Python<'_>, seed: Option<u64>, replications: Option<u32>) -> PyResult<Self> {
        Self::checked(py, self.checked.with_run(seed, replications))
    }

    /// As a scenario file with every default spelled out.
    fn to_toml(&self) -> String {
        self.checked.to_toml()
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.checked.warnings().iter().map(|problem| as_dict(py, problem)).collect()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.checked.name
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.checked.seed
    }

    #[getter]
    fn replications(&self) -> u32 {
        self.checked.replications
    }

    #[getter]
    fn duration_ns(&self) -> i64 {
        self.checked.duration.ns()
    }

    #[getter]
    fn warmup_ns(&self) -> i64 {
        self.checked.warmup.ns()
    }
}

impl Scenario {
    fn checked(
        py: Python<'_>,
        checked: Result<vcpulab_scenario::Scenario, vcpulab_scenario::Problems>,
    ) -> PyResult<Self> {
        checked.map(|checked| Scenario { checked }).map_err(|problems| scenario_error(py, &problems))
    }
}
