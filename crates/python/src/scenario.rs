//! A checked scenario in Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vcpulab_host::Scope;
use vcpulab_scenario::{Changed, Edit, FoundPolicy, NewNames, Outside, Problems, Scenario as Checked};
use vcpulab_sched::{Declaration, DeclaredParam, Policy, declare};
use vcpulab_spec::{AppName, app_names};

use crate::error::{PluginError, as_dict, change_error, scenario_error};
use crate::policy::{Raised, lock};

/// Policies by their names in scenarios, each with the Python object that makes it.
type Own = Vec<(String, Py<PyAny>)>;

#[pyclass(frozen, eq, module = "vcpulab._engine")]
pub struct Scenario {
    pub checked: Checked,
    /// The policies that are not in the registry.
    pub own: Own,
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.checked == other.checked
    }
}

#[pymethods]
impl Scenario {
    /// Reads and checks a scenario; `file` is its name in messages, `folder` has the files that it names, and `policies`
    /// finds schedulers that are not in the registry.
    #[staticmethod]
    #[pyo3(signature = (text, file = "<string>", folder = PathBuf::new(), policies = None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        file: &str,
        folder: PathBuf,
        policies: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Self::read(py, &folder, policies, |outside| Checked::parse_in(text, file, outside))
    }

    /// Parses bytes, which may not even be text, like `parse`.
    #[staticmethod]
    #[pyo3(signature = (data, file = "<string>", folder = PathBuf::new(), policies = None))]
    fn parse_bytes(
        py: Python<'_>,
        data: &[u8],
        file: &str,
        folder: PathBuf,
        policies: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        Self::read(py, &folder, policies, |outside| Checked::parse_bytes(data, file, outside))
    }

    /// The scenario of a text with other settings; `edits` is a JSON list of addresses, each a list of steps, with their values.
    #[staticmethod]
    #[pyo3(signature = (text, edits, file = "<scenario>", folder = PathBuf::new(), policies = None, *, new_names = false))]
    fn changed(
        py: Python<'_>,
        text: &str,
        edits: &str,
        file: &str,
        folder: PathBuf,
        policies: Option<Py<PyAny>>,
        new_names: bool,
    ) -> PyResult<ChangedScenario> {
        let edits: Vec<Edit> =
            serde_json::from_str(edits).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let new_names = if new_names { NewNames::Added } else { NewNames::Refused };
        let (changed, own) = outside(py, &folder, policies, |outside| {
            vcpulab_scenario::change(text, &edits, new_names, file, outside)
        })?;
        let Changed { scenario: checked, edited } = changed.map_err(|error| change_error(py, error))?;
        let set =
            edited.set.into_iter().map(|field| (field.path, field.edit, field.value.to_string())).collect();
        Ok((Scenario { checked, own }, edited.text, set, edited.absent, edited.left_out))
    }

    /// The scenario with another seed or number of replications.
    #[pyo3(signature = (*, seed = None, replications = None))]
    fn with_run(&self, py: Python<'_>, seed: Option<u64>, replications: Option<u32>) -> PyResult<Self> {
        let own = self.own.iter().map(|(name, policy)| (name.clone(), policy.clone_ref(py))).collect();
        Self::checked(py, self.checked.with_run(seed, replications), own)
    }

    /// The policies that are not in the registry, as they were found, by name.
    #[getter]
    fn policies(&self, py: Python<'_>) -> BTreeMap<&str, Py<PyAny>> {
        self.own.iter().map(|(name, policy)| (name.as_str(), policy.clone_ref(py))).collect()
    }

    /// The scenario as a file with every default spelled out.
    fn to_toml(&self) -> String {
        self.checked.to_toml()
    }

    /// The scenario as JSON on a single line, to tell scenarios apart.
    fn to_json(&self) -> String {
        self.checked.to_json()
    }

    /// The applications and clients: name, other names, domain, position, kind, client, whether the work is assumed.
    fn apps(&self) -> Vec<App> {
        let flat = |AppName { name, aliases, domain, position, kind, client, assumed }| {
            (name, aliases, domain, position, kind, client, assumed)
        };
        app_names(&self.checked).into_iter().map(flat).collect()
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
    fn read(
        py: Python<'_>,
        folder: &Path,
        policies: Option<Py<PyAny>>,
        read: impl FnOnce(Outside<'_>) -> Result<Checked, Problems> + Send,
    ) -> PyResult<Self> {
        let (checked, own) = outside(py, folder, policies, read)?;
        Self::checked(py, checked, own)
    }

    fn checked(py: Python<'_>, checked: Result<Checked, Problems>, own: Own) -> PyResult<Self> {
        checked.map(|checked| Scenario { checked, own }).map_err(|problems| scenario_error(py, &problems))
    }
}

/// An application or a client.
type App = (String, Vec<String>, String, u32, &'static str, Option<String>, bool);

/// A changed scenario, its text, the full paths that are set, each with the number of its edit and its value in JSON, the numbers of
/// the edits that remove nothing, and the paths that are left out.
type ChangedScenario = (Scenario, String, Vec<(Vec<String>, usize, String)>, Vec<usize>, Vec<Vec<String>>);

/// The result of work that may name files of a folder and policies that Python finds, and the policies that were found.
fn outside<T: Send>(
    py: Python<'_>,
    folder: &Path,
    policies: Option<Py<PyAny>>,
    work: impl FnOnce(Outside<'_>) -> T + Send,
) -> PyResult<(T, Own)> {
    let own = Mutex::new(Own::new());
    let raised = Raised::default();
    let result = py.detach(|| {
        let find = |name: &str| match &policies {
            Some(policies) => Python::attach(|py| find(policies.bind(py), name, &own, &raised)),
            None => FoundPolicy::Unknown(Vec::new()),
        };
        work(Outside { folder: Some(folder), policies: Some(&find) })
    });
    if let Some(raised) = lock(&raised).take() {
        return Err(raised);
    }
    let own = std::mem::take(&mut *lock(&own));
    Ok((result, own))
}

/// Asks Python for a policy, and keeps it. An exception that is not about the policy ends the reading: it is kept too.
fn find(policies: &Bound<'_, PyAny>, name: &str, own: &Mutex<Own>, raised: &Raised) -> FoundPolicy {
    let found = policies.call1((name,)).and_then(|found| {
        if let Ok(offered) = found.extract() {
            return Ok(FoundPolicy::Unknown(offered));
        }
        let policy = declared(&found)?;
        let mut own = lock(own);
        if own.iter().all(|(known, _)| known != name) {
            own.push((name.to_owned(), found.unbind()));
        }
        Ok(FoundPolicy::Found(policy))
    });
    found.unwrap_or_else(|error| {
        let py = policies.py();
        let text =
            |name: &str| error.value(py).getattr(name).and_then(|text| text.extract::<Option<String>>());
        match (error.is_instance_of::<PluginError>(py), text("reason"), text("hint")) {
            (true, Ok(Some(reason)), Ok(hint)) => FoundPolicy::Unusable(reason, hint),
            _ => {
                *lock(raised) = Some(error);
                FoundPolicy::Unknown(Vec::new())
            }
        }
    })
}

/// The engine's policy of a `vcpulab.policy.OwnPolicy`.
pub fn declared(policy: &Bound<'_, PyAny>) -> PyResult<&'static Policy> {
    let params = policy.getattr("params")?.try_iter()?.map(|param| {
        let param = param?;
        let of_host = param.getattr("of")?.extract::<String>()? == "host";
        Ok(DeclaredParam {
            name: param.getattr("name")?.extract()?,
            scope: if of_host { Scope::Global } else { Scope::Domain },
            unit: param.getattr("unit")?.extract()?,
            min: param.getattr("least")?.extract()?,
            max: param.getattr("most")?.extract()?,
            default: param.getattr("default")?.extract()?,
            doc: param.getattr("doc")?.extract()?,
        })
    });
    Ok(declare(Declaration {
        name: policy.getattr("name")?.extract()?,
        doc: policy.getattr("doc")?.extract()?,
        generation: policy.getattr("generation")?.extract()?,
        params: params.collect::<PyResult<_>>()?,
    }))
}
