//! Recordings of Linux kernels from Python: replayed step by step, and run freely.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vcpulab_conformance::linux::{Recording, Texts, compared, judged};
use vcpulab_sched::linux::{KernelFacts, KernelRelease};

use crate::watch;

/// A recording that was read.
#[pyclass(module = "vcpulab._engine", frozen)]
pub struct LinuxRecording {
    recording: Arc<Recording>,
}

#[pymethods]
impl LinuxRecording {
    #[new]
    #[pyo3(signature = (*, experiment, threads, tunables, trace, expected = None))]
    fn new(
        py: Python<'_>,
        experiment: &str,
        threads: &str,
        tunables: &str,
        trace: &str,
        expected: Option<&str>,
    ) -> PyResult<Self> {
        let texts = Texts { experiment, threads, tunables, trace, expected };
        let recording = py.detach(|| Recording::read(&texts)).map_err(wrong)?;
        Ok(LinuxRecording { recording: Arc::new(recording) })
    }

    /// The threads and their work, as JSON: the same for recordings that differ only in settings.
    #[getter]
    fn work(&self) -> String {
        serde_json::to_string(&self.recording.setup.work()).expect("names and words can be written as JSON")
    }

    /// The reason why the recording can be neither replayed nor run; `None`: it can be both.
    #[getter]
    fn refusal(&self) -> Option<String> {
        self.recording.refusal().map(|refusal| refusal.to_string())
    }

    /// Replays the recording step by step; the verdict as JSON.
    fn replay(&self, py: Python<'_>) -> PyResult<String> {
        let recording = Arc::clone(&self.recording);
        let judged = watch::watched(py, None, move |_| judged(&recording))?.map_err(wrong)?;
        Ok(serde_json::to_string(&judged).expect("a verdict can be written as JSON"))
    }

    /// Runs the demands of the recording's threads, in its own setting or another's; the results beside the recorded
    /// ones, as JSON.
    #[pyo3(signature = (setting = None))]
    fn compare(&self, py: Python<'_>, setting: Option<&LinuxRecording>) -> PyResult<String> {
        let recording = Arc::clone(&self.recording);
        let setting = setting.map(|setting| Arc::clone(&setting.recording));
        let work = move |watch: &watch::Watch| {
            compared(&recording, setting.as_deref(), |fraction| watch.advance(fraction))
        };
        let compared = watch::watched(py, None, work)?.map_err(wrong)?;
        Ok(serde_json::to_string(&compared).expect("numbers can be written as JSON"))
    }
}

fn wrong(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The scheduler and the generation of a kernel's fair class, and the evidence for it: `release`, `between`, `newer`, `older`,
/// `files` or `nothing`. `release`: the numbers of the release, with none for the last number where only the series is known. The
/// others: whether the kernel has the file `base_slice_ns`, the feature `HRTICK`, the file `cgroup_mode`; none: unknown.
#[pyfunction]
#[pyo3(signature = (release, *, base_slice = None, hrtick = None, cgroup_mode = None))]
pub fn linux_rules(
    release: Option<(u32, u32, Option<u32>)>,
    base_slice: Option<bool>,
    hrtick: Option<bool>,
    cgroup_mode: Option<bool>,
) -> (&'static str, &'static str, &'static str) {
    let release =
        release.map(|(major, minor, point)| KernelRelease { major, minor, point: point.unwrap_or(u32::MAX) });
    let rules = KernelFacts { release, base_slice, hrtick, cgroup_mode }.rules();
    (rules.policy, rules.generation.name, rules.evidence.name())
}
