//! Running a scenario from Python, and its result tables there.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::exceptions::{PyIndexError, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use vcpulab_host::Scheduler;
use vcpulab_measure::{
    Part, PathRow, Record, SampleRow, Spooled, Tabular, VcpuSampleRow, each_table, perfetto,
};
use vcpulab_run::{
    Jtl, MakeScheduler, Own, Part as RunPart, Ran, RunError, RunOptions, Runs, SoFar, none_to_make,
};
use vcpulab_spec::PoolSpec;

use crate::context::Context;
use crate::error::{Interrupted, engine_error};
use crate::policy::{Raised, described, lock, policy};
use crate::scenario::Scenario;
use crate::watch::{PERIOD, ask, panicked, watched, watched_so_far};

/// Options of the log of requests: its directory, whether it is XML, whether it holds requests that end in the warm-up.
type JtlOptions = (PathBuf, bool, bool);

fn logs((directory, xml, warmup): JtlOptions) -> Jtl {
    Jtl { directory, xml, warmup }
}

/// Runs every replication of a scenario: under policies of the registry in parallel, under others as [`attended`] does it.
#[pyfunction]
#[pyo3(signature = (scenario, *, jobs = 0, trace = false, waits = true, events = None, jtl = None, live = None, progress = None))]
#[allow(clippy::too_many_arguments, reason = "in Python they have names")]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: usize,
    trace: bool,
    waits: bool,
    events: Option<PathBuf>,
    jtl: Option<JtlOptions>,
    live: Option<&LiveSamples>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let live = live.map(|live| live.samples.clone());
    let options = RunOptions { jobs, trace, waits, events, jtl: jtl.map(logs), live };
    if !scenario.own.is_empty() {
        let part = RunPart::whole(&scenario.checked);
        let mut ran = Ran::default();
        let done = attended(py, progress, scenario, |progress, scheduler| {
            ran = in_turn(part, &options, progress, scheduler);
            ran.failure.take().map_or(Ok(()), |(_, error)| Err(error))
        });
        return Ok(unless_stopped(py, done.err(), ran.so_far)?.remove(0));
    }
    let spec = scenario.checked.clone();
    let (ran, stop) = watched_so_far(py, progress, move |watch| {
        let progress = |done| watch.advance(done);
        Runs { parts: vec![RunPart::whole(&spec)], options: &options, progress: &progress, own: None }.start()
    })?;
    match (ran.failure, stop) {
        (Some((_, error)), None) => Err(engine_error(error)),
        (_, stop) => Ok(unless_stopped(py, stop, ran.so_far)?.remove(0)),
    }
}

/// Runs replications of a scenario with schedulers of the caller's, one after the other in this thread.
fn in_turn(
    part: RunPart<'_>,
    options: &RunOptions,
    progress: Advance<'_>,
    scheduler: MakeScheduler<'_, '_>,
) -> Ran {
    Runs { parts: vec![part], options, progress, own: Some(Own { scheduler, manager: None }) }.start()
}

/// The results of every scenario. If some were stopped, the exception has the first replications, if each scenario has some.
fn unless_stopped(py: Python<'_>, stop: Option<PyErr>, so_far: Vec<SoFar>) -> PyResult<Vec<Results>> {
    match stop {
        None => Ok(so_far.into_iter().map(|one| one.results.into()).collect()),
        Some(stop) if !stop.is_instance_of::<PyKeyboardInterrupt>(py) => Err(stop),
        Some(stop) if so_far.iter().any(|one| one.replications == 0) => Err(stop),
        Some(_) => {
            let known: Vec<(u32, Results)> =
                so_far.into_iter().map(|one| (one.replications, one.results.into())).collect();
            Err(Interrupted::new_err((known,)))
        }
    }
}

/// Runs replications of several scenarios: first those under policies that are not in the registry, then the others in
/// parallel.
///
/// `only` has the number of the one replication to run of each scenario. Without it, all are run.
#[pyfunction]
#[pyo3(signature = (scenarios, *, jobs = 0, waits = true, only = None, progress = None))]
pub fn run_many(
    py: Python<'_>,
    scenarios: Vec<Py<Scenario>>,
    jobs: usize,
    waits: bool,
    only: Option<Vec<u32>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Results>> {
    if only.as_ref().is_some_and(|only| only.len() != scenarios.len()) {
        return Err(PyValueError::new_err("only: allowed: a number for each scenario"));
    }
    let (own, others): (Vec<usize>, Vec<usize>) =
        (0..scenarios.len()).partition(|&index| !scenarios[index].get().own.is_empty());
    let replications = |index: usize| match &only {
        Some(only) => only[index]..only[index].saturating_add(1),
        None => 0..scenarios[index].get().checked.replications,
    };
    let named = |index: usize, error: RunError| if scenarios.len() == 1 { error } else { error.of(index) };
    let runs = |index: usize| f64::from(replications(index).len() as u32);
    let whole: f64 = (0..scenarios.len()).map(runs).sum();
    let options = RunOptions { jobs, waits, ..RunOptions::default() };
    let mut before = 0.0;
    let mut all = vec![SoFar::default(); scenarios.len()];
    for index in own {
        let scenario = scenarios[index].get();
        let share = runs(index) / whole;
        let done = attended(py, progress, scenario, |progress, scheduler| {
            let part = RunPart { spec: &scenario.checked, replications: replications(index) };
            let mut ran = in_turn(part, &options, &|done| progress(before + done * share), scheduler);
            all[index] = ran.so_far.remove(0);
            ran.failure.map_or(Ok(()), |(_, error)| Err(named(index, error)))
        });
        if let Err(stop) = done {
            return unless_stopped(py, Some(stop), all);
        }
        before += share;
    }
    if others.is_empty() {
        return unless_stopped(py, None, all);
    }
    let parts: Vec<_> =
        others.iter().map(|&index| (scenarios[index].get().checked.clone(), replications(index))).collect();
    let (ran, stop) = watched_so_far(py, progress, move |watch| {
        watch.advance(before);
        let parts = parts
            .iter()
            .map(|(spec, replications)| RunPart { spec, replications: replications.clone() })
            .collect();
        let progress = |done| watch.advance(before + done * (1.0 - before));
        Runs { parts, options: &options, progress: &progress, own: None }.start()
    })?;
    match (ran.failure, stop) {
        (Some((index, error)), None) => Err(engine_error(named(others[index], error))),
        (_, stop) => {
            others.into_iter().zip(ran.so_far).for_each(|(index, so_far)| all[index] = so_far);
            unless_stopped(py, stop, all)
        }
    }
}

/// Progress of the runs of this process: number of events, simulated time (ns), and the cause of most of the latest events.
#[pyfunction]
pub fn pace() -> (u64, u64, String) {
    let pace = vcpulab_run::pace();
    (pace.events, pace.simulated_ns, pace.busiest)
}

/// Runs of scenarios, `jobs` at a time and in the order in which they were begun, while the results of others are
/// looked at. With one job, and under policies in Python, each waits until it is taken.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Stream {
    /// The runs by number; `None` for a run that was taken or called off.
    runs: Mutex<Vec<Option<Begun>>>,
    running: vcpulab_run::Stream<vcpulab_scenario::Scenario>,
    waits: bool,
}

/// A run of a stream.
enum Begun {
    /// A run on a worker thread, by its number in `Stream::running`.
    Running(usize),
    /// A run that starts when its results are taken.
    Waiting(Py<Scenario>),
}

impl Stream {
    fn taken(&self, number: usize) -> PyResult<Begun> {
        let begun = lock(&self.runs).get_mut(number).and_then(Option::take);
        begun.ok_or_else(|| PyIndexError::new_err(format!("no run {number}, or it was taken or called off")))
    }
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (*, jobs = 0, waits = true))]
    fn new(jobs: usize, waits: bool) -> PyResult<Self> {
        let running = vcpulab_run::Stream::start(jobs, waits).map_err(engine_error)?;
        Ok(Stream { runs: Mutex::default(), running, waits })
    }

    /// The number of runs that execute at a time.
    #[getter]
    fn jobs(&self) -> usize {
        self.running.threads()
    }

    /// Begins the run of a scenario, and numbers it, from 0.
    fn begin(&self, scenario: Py<Scenario>) -> usize {
        let asked = scenario.get();
        let begun = if self.running.threads() == 1 || !asked.own.is_empty() {
            Begun::Waiting(scenario)
        } else {
            Begun::Running(self.running.begin(asked.checked.clone()))
        };
        let mut runs = lock(&self.runs);
        runs.push(Some(begun));
        runs.len() - 1
    }

    /// The results of a run, once it is over; they can be taken once. A run that is cancelled meanwhile is called off.
    #[pyo3(signature = (number, progress = None))]
    fn take(&self, py: Python<'_>, number: usize, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Results> {
        let running = match self.taken(number)? {
            Begun::Running(running) => running,
            Begun::Waiting(scenario) => {
                return run(py, scenario.get(), 1, false, self.waits, None, None, None, progress);
            }
        };
        loop {
            if let Some(outcome) = py.detach(|| self.running.take(running, PERIOD)) {
                let done = outcome.map_err(|panic| panicked(&*panic))?;
                return done.map(Results::from).map_err(engine_error);
            }
            ask(py, progress, 0.0).inspect_err(|_| self.running.call_off(running))?;
        }
    }

    /// Calls off a run: it ends, or never starts, and its results are dropped.
    fn call_off(&self, number: usize) -> PyResult<()> {
        if let Begun::Running(running) = self.taken(number)? {
            self.running.call_off(running);
        }
        Ok(())
    }
}

/// Runs every replication of a scenario, one after the other in this very thread, while a manager written in Python looks at
/// each sample: a callable that takes the replication and the sample of every domain, and answers with domains, each with
/// values for parameters.
#[pyfunction]
#[pyo3(signature = (scenario, manager, *, waits = true, progress = None))]
pub fn run_managed(
    py: Python<'_>,
    scenario: &Scenario,
    manager: &Bound<'_, PyAny>,
    waits: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let options = RunOptions { jobs: 1, waits, ..RunOptions::default() };
    let raised = Raised::default();
    let mut decide = |samples: &[SampleRow]| {
        let replication = samples.first().map_or(0, |row| row.replication);
        let asked = manager.call1((replication, Table::from(SampleRow::batch(samples))));
        let wanted = asked.and_then(|answer| answer.extract::<BTreeMap<String, BTreeMap<String, i64>>>());
        let wanted = wanted.map_err(|error| {
            let reason = described(py, &error);
            *lock(&raised) = Some(error);
            reason
        })?;
        Ok(wanted.into_iter().map(|(domain, values)| (domain, values.into_iter().collect())).collect())
    };
    let mut ran = Ran::default();
    let done = attended_with(py, progress, scenario, &raised, |progress, scheduler| {
        let own = Some(Own { scheduler, manager: Some(&mut decide) });
        ran =
            Runs { parts: vec![RunPart::whole(&scenario.checked)], options: &options, progress, own }.start();
        ran.failure.take().map_or(Ok(()), |(_, error)| Err(error))
    });
    Ok(unless_stopped(py, done.err(), ran.so_far)?.remove(0))
}

/// A function that takes the fraction done, and answers whether to continue.
type Advance<'a> = &'a (dyn Fn(f64) -> bool + Sync);

/// Does work under the scenario's own policies, in this very thread: their hooks hold the interpreter lock, and whatever ends
/// Python code (Ctrl-C, say) ends the work.
pub fn attended<T>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    scenario: &Scenario,
    work: impl FnOnce(Advance<'_>, MakeScheduler<'_, '_>) -> Result<T, RunError>,
) -> PyResult<T> {
    attended_with(py, progress, scenario, &Raised::default(), work)
}

/// Does work like [`attended`], and keeps in `raised` what other calls of Python raise meanwhile.
///
/// Anything that Python code raises ends the work. What a hook raises becomes the cause of the error, even `SystemExit`: a policy
/// must not end the program. `KeyboardInterrupt`, and anything that `progress` raises, is raised unchanged.
fn attended_with<T>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    scenario: &Scenario,
    raised: &Raised,
    work: impl FnOnce(Advance<'_>, MakeScheduler<'_, '_>) -> Result<T, RunError>,
) -> PyResult<T> {
    let progress = progress.map(|progress| progress.clone().unbind());
    let advance = |fraction: f64| {
        Python::attach(|py| {
            let asked = ask(py, progress.as_ref().map(|progress| progress.bind(py)), fraction);
            asked.map_err(|stop| *lock(raised) = Some(stop)).is_ok()
        })
    };
    let context = Bound::new(py, Context)?;
    let mut make = |pool: &PoolSpec, seed: u64| -> Box<dyn Scheduler + '_> {
        let found = scenario.own.iter().find(|(name, _)| name == pool.policy.name);
        let (_, class) = found.expect("what a scenario found is kept with it");
        Box::new(policy(class.bind(py), &context, raised, pool, seed))
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(&advance, &mut make)));
    done.map_err(|panic| panicked(&*panic))?.map_err(|failed| match lock(raised).take() {
        Some(raised)
            if !matches!(failed, RunError::Cancelled)
                && !raised.is_instance_of::<PyKeyboardInterrupt>(py) =>
        {
            let error = engine_error(failed);
            error.set_cause(py, Some(raised));
            error
        }
        Some(raised) => raised,
        None => engine_error(failed),
    })
}

/// Follows single requests of a client, at these quantiles of its response times, through one replication of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, client, quantiles, *, replication = 0, progress = None))]
pub fn follow(
    py: Python<'_>,
    scenario: &Scenario,
    client: &str,
    quantiles: Vec<f64>,
    replication: u32,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let mut clients = scenario.checked.clients.enumerate();
    let found = clients.find(|(_, known)| known.name == client).map(|(id, _)| id);
    let client = found.ok_or_else(|| PyValueError::new_err(format!("no client `{client}`")))?;
    let rows = if scenario.own.is_empty() {
        let spec = scenario.checked.clone();
        let work = watched(py, progress, move |watch| {
            let which = (client, quantiles.as_slice(), replication);
            vcpulab_run::follow(&spec, which, &|done| watch.advance(done), &mut none_to_make)
        });
        work?.map_err(engine_error)?
    } else {
        attended(py, progress, scenario, |advance, make| {
            vcpulab_run::follow(&scenario.checked, (client, &quantiles, replication), &advance, make)
        })?
    };
    Ok(PathRow::batch(&rows).into())
}

/// Writes the recorded events of one replication as a Perfetto trace.
#[pyfunction]
#[pyo3(signature = (events, names, out, *, places = Vec::new(), slices = Vec::new()))]
pub fn export_perfetto(
    py: Python<'_>,
    events: PathBuf,
    names: BTreeMap<i64, String>,
    out: PathBuf,
    places: Vec<Vec<String>>,
    slices: Vec<perfetto::Slice>,
) -> PyResult<()> {
    py.detach(|| perfetto::export(&events, &names, &places, &slices, &out)).map_err(engine_error)
}

/// The rows of a table, turned into columns when the table is first asked for.
struct Rows<Kept> {
    rows: Mutex<Kept>,
    parts: OnceLock<Vec<Part<RecordBatch>>>,
}

impl<Kept> From<Kept> for Rows<Kept> {
    fn from(rows: Kept) -> Self {
        Rows { rows: Mutex::new(rows), parts: OnceLock::new() }
    }
}

impl<Kept: Default + Send + Tabular> Rows<Kept> {
    fn table(&self, py: Python<'_>) -> Table {
        let make = || std::mem::take(&mut *lock(&self.rows)).in_parts();
        Table { parts: py.detach(|| self.parts.get_or_init(make).clone()) }
    }
}

macro_rules! results {
    ($($(#[doc = $doc:literal])* $table:ident: $kept:ident<$row:ty>,)*) => {
        /// The results of a run.
        #[pyclass(frozen, module = "vcpulab._engine")]
        pub struct Results {
            $($table: Rows<$kept<$row>>,)*
            /// Decisions for which the trace had no room.
            #[pyo3(get)]
            untraced: u64,
            /// The number of actions that were refused, those in the warm-up included.
            #[pyo3(get)]
            rejected_actions: u64,
            /// The first refused actions: the time since the start of the run, ns, the action's name, and its domain.
            #[pyo3(get)]
            rejected: Vec<(i64, &'static str, Option<String>)>,
            /// The reason why `waits` is empty, if it was not measured.
            #[pyo3(get)]
            not_attributed: Option<String>,
        }

        impl From<vcpulab_measure::Results> for Results {
            fn from(results: vcpulab_measure::Results) -> Self {
                Results {
                    $($table: results.$table.into(),)*
                    untraced: results.untraced,
                    rejected_actions: results.rejected_actions,
                    rejected: results.rejected.into_iter().map(|r| (r.time_ns, r.action, r.domain)).collect(),
                    not_attributed: results.not_attributed.map(|why| why.to_string()),
                }
            }
        }

        #[pymethods]
        impl Results {
            $($(#[doc = $doc])* fn $table(&self, py: Python<'_>) -> Table {
                self.$table.table(py)
            })*
        }
    };
}
each_table!(results);

/// Samples of one replication of a run while it lasts.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct LiveSamples {
    samples: vcpulab_run::LiveSamples,
}

#[pymethods]
impl LiveSamples {
    #[new]
    fn new(replication: u32) -> Self {
        LiveSamples { samples: vcpulab_run::LiveSamples::of(replication) }
    }

    /// Takes the samples since they were last taken: of domains, and of vCPUs.
    fn take(&self) -> (Table, Table) {
        let (domains, vcpus) = self.samples.take();
        (SampleRow::batch(&domains).into(), VcpuSampleRow::batch(&vcpus).into())
    }
}

/// An Arrow table that any frame library can take over without copying.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Table {
    /// Batches of the table, at least one.
    parts: Vec<Part<RecordBatch>>,
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Table { parts: vec![Part::Here(batch)] }
    }
}

#[pymethods]
impl Table {
    /// The table in parts, each of which is read when it is taken over: for readers that do not want all of it in memory.
    fn parts(&self) -> Vec<Table> {
        self.parts.iter().map(|part| Table { parts: vec![part.clone()] }).collect()
    }

    /// The Arrow PyCapsule interface's stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // The interface allows to answer with the table's own schema.
        let schema = self.parts[0].read()?.schema();
        let batches = self.parts.clone().into_iter().map(|part| part.read().map_err(Into::into));
        let batches = RecordBatchIterator::new(batches, schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
