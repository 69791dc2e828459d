//! Recordings of real hosts from Python, fed in pieces.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use vcpulab_measure::{EventFile, EventRow};
use vcpulab_recording::{Event, Format, Kind, Options, Recording, RunState, Threads, Who};

use crate::error::engine_error;

/// Reads a recording piece by piece.
#[pyclass(module = "vcpulab._engine")]
pub struct RecordingReader {
    /// The reader; `None` once the recording has ended.
    reading: Option<(Recording, Option<Events>)>,
}

#[pymethods]
impl RecordingReader {
    #[new]
    #[pyo3(signature = (format, *, cpu_mhz = None, threads = BTreeMap::new(), window_ns = None, events = None))]
    fn new(
        format: &str,
        cpu_mhz: Option<f64>,
        threads: Threads,
        window_ns: Option<(i64, i64)>,
        events: Option<PathBuf>,
    ) -> PyResult<Self> {
        let format = match format {
            "xentrace" => Format::Xentrace,
            "sched-text" => Format::SchedText,
            other => {
                let message = format!("format: found `{other}`; allowed: `xentrace`, `sched-text`");
                return Err(PyValueError::new_err(message));
            }
        };
        let recording = Recording::new(format, Options { cpu_mhz, threads, window_ns }).map_err(wrong)?;
        let create = |path: PathBuf| {
            let file = EventFile::create(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(Events { path, file, current: Vec::new() })
        };
        let events = events.map(create).transpose().map_err(|error: String| engine_error(error))?;
        Ok(RecordingReader { reading: Some((recording, events)) })
    }

    /// Takes the next bytes.
    fn feed(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let Some((recording, events)) = &mut self.reading else { return Err(over()) };
        let fed = py.detach(|| match events {
            None => recording.feed(data, |_| ()),
            Some(events) => recording.feed(data, |event| events.add(event)),
        });
        if fed.is_err() {
            self.reading = None;
        }
        fed.map_err(wrong)
    }

    /// Ends the recording; its summary as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let Some((recording, mut events)) = self.reading.take() else { return Err(over()) };
        let report = py.detach(|| match &mut events {
            None => recording.finish(|_| ()),
            Some(events) => recording.finish(|event| events.add(event)),
        });
        if let Some(Events { path, file, .. }) = events {
            file.finish().map_err(|error| engine_error(format!("{}: {error}", path.display())))?;
        }
        let report = report.map_err(wrong)?;
        Ok(serde_json::to_string(&report).expect("a report can be written as JSON"))
    }
}

fn wrong(error: vcpulab_recording::ReadError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the recording is over")
}

/// Writes events in the form of a run's events.
struct Events {
    path: PathBuf,
    file: EventFile,
    /// Occupants of the pCPUs, as far as known.
    current: Vec<Option<Who>>,
}

impl Events {
    fn add(&mut self, event: &Event) {
        let pcpu = event.pcpu as usize;
        if self.current.len() <= pcpu {
            self.current.resize(pcpu + 1, None);
        }
        let (domain, vcpu) = numbers(event.who, event.pcpu);
        let row = |kind| EventRow {
            time_ns: event.time_ns,
            kind,
            pcpu: Some(event.pcpu),
            domain: Some(domain),
            vcpu: Some(vcpu),
            ..EventRow::default()
        };
        let nobody = |kind| EventRow { domain: None, vcpu: None, ..row(kind) };
        match event.kind {
            Kind::Run(_) => {
                let before = self.current[pcpu].replace(event.who);
                let by = before.map(|who| numbers(who, event.pcpu)).unzip();
                self.file.push(EventRow { by_domain: by.0, by_vcpu: by.1, ..row("switch") });
            }
            Kind::Wake(_) => {
                let waker = self.current[pcpu].filter(|who| matches!(who, Who::Vcpu { .. }));
                let by = waker.map(|who| numbers(who, event.pcpu)).unzip();
                self.file.push(EventRow {
                    by_domain: by.0,
                    by_vcpu: by.1,
                    what: Some("event"),
                    ..row("wake")
                });
            }
            Kind::Continue => self.file.push(row("decision")),
            Kind::Lost { records, .. } => {
                self.current[pcpu] = None;
                self.file.push(EventRow { value: Some(i64::from(records)), ..nobody("lost") });
            }
            Kind::Unknown { .. } => {
                if self.current[pcpu] == Some(event.who) {
                    self.current[pcpu] = None;
                }
                if matches!(event.who, Who::Vcpu { .. }) {
                    self.file.push(EventRow { what: Some("unknown"), ..row("runstate") });
                }
            }
            Kind::End => self.file.push(EventRow { pcpu: None, ..nobody("end") }),
            Kind::Preempted | Kind::Block(_) | Kind::Offline(_) => {}
            Kind::Yield | Kind::Slice(_) | Kind::Added | Kind::Removed => {}
        }
        if let (Some((_, state)), Who::Vcpu { .. }) = (event.kind.states(), event.who) {
            // Until the next comes nobody runs there, and nobody wakes anyone.
            if state != RunState::Running && self.current[pcpu] == Some(event.who) {
                self.current[pcpu] = None;
            }
            self.file.push(EventRow { what: Some(state.name()), ..row("runstate") });
        }
    }
}

/// Domain and vCPU as in result tables; a thread that is no vCPU counts as the idle vCPU of the pCPU.
fn numbers(who: Who, pcpu: u32) -> (i64, i64) {
    match who {
        Who::Vcpu { domain, vcpu } => (i64::from(domain), i64::from(vcpu)),
        Who::Idle | Who::Host => (-1, i64::from(pcpu)),
    }
}
