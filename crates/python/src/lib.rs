//! The Python module `vcpulab._engine`: binds the crates, adds nothing. `python/vcpulab/_engine.pyi` documents it.

mod context;
mod error;
mod judge;
mod linux;
mod names;
mod policy;
mod recording;
mod results;
mod scenario;
mod starvation;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vcpulab_host::Time;
use vcpulab_scenario::Problems;
use vcpulab_spec::Profile;

#[pymodule]
mod _engine {
    #[pymodule_export]
    const CONFIDENCE: f64 = vcpulab_judge::CONFIDENCE;
    #[pymodule_export]
    const FILE_BYTES_MAX: usize = vcpulab_scenario::FILE_BYTES_MAX;
    #[pymodule_export]
    const NAME_CHARS_MAX: usize = vcpulab_spec::limits::NAME_CHARS_MAX;

    #[pymodule_export]
    use super::context::Context;
    #[pymodule_export]
    use super::error::Rejected;
    #[pymodule_export]
    use super::judge::{
        Comparison, Metric, compare, comparison_lines, f_tail, holm, interval, interval_text, looks,
        median_interval, number_text, p_text, paired, t_cdf, t_quantile, verdict_text,
    };
    #[pymodule_export]
    use super::linux::{LinuxRecording, linux_rules};
    #[pymodule_export]
    use super::names::{name_rows, names_in_short, names_listed, without_number};
    #[pymodule_export]
    use super::recording::RecordingReader;
    #[pymodule_export]
    use super::results::{
        LiveSamples, Results, Stream, Table, export_perfetto, follow, pace, run, run_managed, run_many,
    };
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::starvation::{Observed, starved_line};
    #[pymodule_export]
    use super::{
        addresses, bench, build_info, conformance, copies, declare, declared, generation_of, listing,
        measure, parse_profile, profiles, read_profile, schedulers, schema, starter, tables, written,
    };
}

/// Every scheduler with its generations and parameters, as JSON.
#[pyfunction]
fn schedulers() -> String {
    pretty(&vcpulab_scenario::schedulers_json())
}

/// The name of the generation that a release of a scheduler has; without a release, of the default release. `None`: the
/// release does not have the scheduler.
#[pyfunction]
#[pyo3(signature = (name, release = None))]
fn generation_of(name: &str, release: Option<&str>) -> Option<&'static str> {
    let policy = vcpulab_sched::find(name)?;
    let generation = match release {
        Some(release) => policy.generation(release)?,
        None => policy.default_generation(),
    };
    Some(generation.name)
}

/// Declares a policy from outside the registry, an `OwnPolicy` of `vcpulab.policy`: the policy as JSON like an item of
/// `schedulers`.
#[pyfunction]
fn declare(policy: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(pretty(&vcpulab_scenario::policy_json(scenario::declared(policy)?)))
}

/// The policy from outside the registry that was last found under a name, as JSON like an item of `schedulers`.
#[pyfunction]
#[pyo3(signature = (name, generation = None))]
fn declared(name: &str, generation: Option<&str>) -> Option<String> {
    vcpulab_sched::declared(name, generation).map(|policy| pretty(&vcpulab_scenario::policy_json(policy)))
}

/// The JSON schema of scenario files.
#[pyfunction]
fn schema() -> String {
    pretty(&vcpulab_scenario::schema())
}

/// Every hardware profile with its constants and their sources, as JSON.
#[pyfunction]
fn profiles() -> String {
    pretty(&vcpulab_scenario::profiles_json())
}

/// A checked hardware profile as JSON; `file` is its name in messages.
#[pyfunction]
#[pyo3(signature = (text, file = "<string>"))]
fn parse_profile(py: Python<'_>, text: &str, file: &str) -> PyResult<String> {
    profile(py, vcpulab_scenario::parse_profile(text, file))
}

/// A checked hardware profile from a file of its own, as JSON.
#[pyfunction]
fn read_profile(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    profile(py, vcpulab_scenario::read_profile(&path))
}

fn profile(py: Python<'_>, read: Result<Profile, Problems>) -> PyResult<String> {
    let read = read.map_err(|problems| error::scenario_error(py, &problems))?;
    Ok(pretty(&vcpulab_scenario::profile_json(&read)))
}

/// Measures the constants of a hardware profile that this machine lets a program measure; JSON.
#[pyfunction]
fn measure(py: Python<'_>) -> PyResult<String> {
    let measured = watch::watched(py, None, |watch| vcpulab_probe::measure(|| watch.advance(0.0)))?;
    Ok(pretty(&measured))
}

/// A commented scenario to start from.
#[pyfunction]
fn starter() -> &'static str {
    vcpulab_scenario::starter()
}

/// The tables of a TOML document, in their order, as JSON.
#[pyfunction]
fn tables(text: &str) -> PyResult<String> {
    let document: serde_json::Value =
        toml::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(document.to_string())
}

/// The tables of a scenario's text, with all copies of those with a `count` written out, as JSON.
#[pyfunction]
fn written(text: &str) -> PyResult<String> {
    vcpulab_scenario::written(text).map(|document| document.to_string()).map_err(PyValueError::new_err)
}

/// The tables of a scenario's text that stand for several: kind, name, names of the copies.
#[pyfunction]
fn copies(text: &str) -> Vec<(&'static str, String, Vec<String>)> {
    vcpulab_scenario::copies(text)
}

/// The full paths of the settings that an address, a list of steps, means in a scenario's text.
#[pyfunction]
fn addresses(py: Python<'_>, text: &str, address: Vec<String>) -> PyResult<Vec<Vec<String>>> {
    vcpulab_scenario::addressed(text, &address).map_err(|error| error::change_error(py, error))
}

/// Replays the vectors at or below these paths; the report as JSON.
#[pyfunction]
#[pyo3(signature = (paths, jobs = 0))]
fn conformance(py: Python<'_>, paths: Vec<PathBuf>, jobs: usize) -> PyResult<String> {
    match watch::watched(py, None, move |_| vcpulab_conformance::run_paths(&paths, jobs))? {
        Ok(report) => Ok(pretty(&report)),
        Err(unreadable) => {
            let lines: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
            Err(PyValueError::new_err(lines.join("\n")))
        }
    }
}

/// The domains on the host at a time of the scenario's first replication (at its end if left out), as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, at = None))]
fn listing(py: Python<'_>, scenario: &scenario::Scenario, at: Option<&str>) -> PyResult<String> {
    let end = scenario.checked.end();
    let at = match at.map(|text| vcpulab_scenario::Duration::parse(text).map(|at| Time::ZERO + at.0)) {
        None => end,
        Some(Some(at)) if (Time::ZERO..=end).contains(&at) => at,
        Some(_) => {
            let end = vcpulab_scenario::Duration::from(end);
            return Err(PyValueError::new_err(format!("allowed: a time span from 0s to {end}")));
        }
    };
    if !scenario.own.is_empty() {
        let listed = results::attended(py, None, scenario, |advance, make| {
            vcpulab_run::listing_json(&scenario.checked, at, &advance, make)
        });
        return Ok(pretty(&listed?));
    }
    let spec = scenario.checked.clone();
    let work = watch::watched(py, None, move |watch| {
        vcpulab_run::listing_json(&spec, at, &|done| watch.advance(done), &mut vcpulab_run::none_to_make)
    });
    Ok(pretty(&work?.map_err(error::engine_error)?))
}

/// Measures the engine, about `seconds` for each metric; JSON, name to value.
#[pyfunction]
#[pyo3(signature = (seconds = 1.0))]
fn bench(py: Python<'_>, seconds: f64) -> PyResult<String> {
    let metrics = watch::watched(py, None, move |_| vcpulab_bench::run(seconds))?;
    Ok(pretty(&metrics))
}

/// The build: version, profile, architecture, system.
#[pyfunction]
fn build_info() -> BTreeMap<&'static str, &'static str> {
    [
        ("version", env!("CARGO_PKG_VERSION")),
        ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }),
        ("architecture", std::env::consts::ARCH),
        ("system", std::env::consts::OS),
    ]
    .into()
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("what is listed can be written as JSON")
}
