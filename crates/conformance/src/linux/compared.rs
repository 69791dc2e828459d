//! Predicted beside recorded, and how far off each prediction may be.

use std::collections::BTreeMap;

use serde::Serialize;
use vcpulab_host::Span;

use super::demand::Demands;
use super::fair::replay_fair;
use super::folder::{Recording, Setup};
use super::free::{Free, RunError};
use super::measured::Measured;
use super::outcome::Whose;
use super::overheads::Overheads;
use super::timers::phases;

/// Largest accepted error of a share, points of the CPU.
const SHARE_MAX: f64 = 0.5;
/// Largest accepted error of the number of switches, %.
const SWITCHES_MAX: f64 = 3.0;
/// Largest accepted error of the number of switches, %, where only hogs of different weights run: their pattern depends
/// on the initial virtual runtimes.
const SWITCHES_OF_WEIGHTS_MAX: f64 = 15.0;
/// Largest accepted error of a wait, %, or else µs.
const WAIT_MAX: f64 = 20.0;
const WAIT_MAX_US: f64 = 16.0;
/// Threads that woke less often have no percentiles.
const WAKES_MIN: usize = 20;
/// Factor of the accepted errors where the predicted setting is not the setting of the demands.
const WHAT_IF: f64 = 2.0;

/// Runs that differ by some microseconds, as recordings of the same do. One more of their kind is outside of the range of all
/// others one time in twenty: it is the highest or the lowest.
const VARIANTS: u64 = 39;

/// A compared metric.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// A thread's part of the CPU.
    Share,
    /// Switches of the CPU.
    Switches,
    /// The median wait from waking to running.
    WaitMedian,
    /// The wait that nine of ten are not above.
    WaitP90,
}

/// A prediction beside what was recorded.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// The thread (VM/vCPU), or the host.
    pub of: String,
    /// Compared metric.
    pub metric: Metric,
    /// Unit of the values.
    pub unit: &'static str,
    /// Recorded value.
    pub recorded: f64,
    /// Value that all runs together predict.
    pub predicted: f64,
    /// The lowest and the highest that runs give which differ by some microseconds.
    pub range: [f64; 2],
    /// Error of the prediction, in `off_unit`.
    pub off: f64,
    /// The unit of `off`.
    pub off_unit: &'static str,
    /// Largest accepted error, in words.
    pub limit: String,
    /// Whether the error is within the limit.
    pub holds: bool,
    /// Whether the recorded value is in the range.
    pub chance: bool,
}

/// Runs beside a recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The scheduler, and its generation.
    pub scheduler: String,
    /// Every prediction.
    pub cells: Vec<Cell>,
}

/// Runs the demands of a recording in its own setting, or that of another recording of the same threads, and compares with what
/// was recorded there. `advance` gets the fraction done, and may end the work.
///
/// # Errors
/// See [`RunError`].
pub fn compared(
    demands: &Recording,
    other: Option<&Recording>,
    advance: impl Fn(f64) -> bool,
) -> Result<Comparison, RunError> {
    let real = other.unwrap_or(demands);
    if let Some(refusal) = demands.refusal().or_else(|| real.refusal()) {
        return Err(refusal.into());
    }
    let (setting, lags) = as_it_began(real)?;
    let overheads = Overheads::of(&demands.lines, &demands.clock());
    let mut work = Demands::of(demands, &overheads);
    if real.setup.scheduler() != demands.setup.scheduler() {
        // What the host's own threads do belongs to the kernel.
        let host = Demands::of(real, &Overheads::of(&real.lines, &real.clock()));
        work = work.with_host_threads_of(&host);
    }
    let free = Free {
        setups: [&demands.setup, &setting],
        demands: &work,
        overheads: &overheads,
        lags: &lags,
        hz: real.hz(),
    };
    let mut runs = Vec::new();
    for variant in 0..VARIANTS {
        if !advance(variant as f64 / VARIANTS as f64) {
            return Err(RunError::Stopped);
        }
        runs.push(free.run(variant, VARIANTS)?);
    }
    let (policy, generation) = real.setup.scheduler();
    let times = if other.is_some() { WHAT_IF } else { 1.0 };
    let cells = cells(&real.setup, &Measured::of(real), &runs, times);
    Ok(Comparison { scheduler: format!("{policy} {generation}"), cells })
}

/// The setting of a recording, its groups' periods beginning when they did (under EEVDF the kernel draws that when a group is made,
/// under CFS they are together), and what groups were behind each other.
fn as_it_began(real: &Recording) -> Result<(Setup, BTreeMap<Whose, Span>), RunError> {
    let mut setup = real.setup.clone();
    if setup.groups.iter().all(|group| group.quota.is_none() && group.parent.is_none()) {
        return Ok((setup, BTreeMap::new()));
    }
    let beginning = replay_fair(&setup, &real.lines)?.beginning;
    if setup.tunables.base_slice.is_some() {
        for (group, phase) in phases(&setup, &real.lines, &beginning.timers) {
            setup.groups[group.index()].phase = Some(phase);
        }
    }
    Ok((setup, beginning.lags))
}

fn cells(setup: &Setup, recorded: &Measured, runs: &[Measured], times: f64) -> Vec<Cell> {
    let together = Measured::together(runs);
    let cell = |of: &str, metric, unit, limit, value: &dyn Fn(&Measured) -> f64| {
        let values = || runs.iter().map(value);
        let range = [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)];
        Limit::cell(limit, (of, metric, unit), [value(recorded), value(&together)], range)
    };
    let switches = if setup.is_hogs_of_weights() { SWITCHES_OF_WEIGHTS_MAX } else { SWITCHES_MAX };
    let mut all = vec![cell(
        "host",
        Metric::Switches,
        "/s",
        Limit::percent(switches * times),
        &Measured::switches_per_s,
    )];
    for (name, real) in &recorded.threads {
        let of = format!("{}/{}", name.0, name.1);
        let share = |measured: &Measured| measured.share(name);
        all.push(cell(&of, Metric::Share, "%", Limit::Points(SHARE_MAX * times), &share));
        let wakes = |measured: &Measured| measured.threads.get(name).map_or(0, |got| got.waits_ns.len());
        if real.waits_ns.len() < WAKES_MIN || runs.iter().any(|run| wakes(run) < WAKES_MIN) {
            continue;
        }
        for (metric, percentile) in [(Metric::WaitMedian, 50), (Metric::WaitP90, 90)] {
            let limit = Limit::Percent(WAIT_MAX * times, WAIT_MAX_US * times);
            all.push(cell(&of, metric, "µs", limit, &|measured| measured.wait_us(name, percentile)));
        }
    }
    all
}

/// Largest accepted error of a prediction.
#[derive(Clone, Copy)]
enum Limit {
    Points(f64),
    /// An error in %, or else in the unit.
    Percent(f64, f64),
}

impl Limit {
    fn percent(most: f64) -> Self {
        Limit::Percent(most, 0.0)
    }

    fn cell(
        self,
        names: (&str, Metric, &'static str),
        [recorded, predicted]: [f64; 2],
        range: [f64; 2],
    ) -> Cell {
        let (of, metric, unit) = names;
        let by = predicted - recorded;
        let (off, off_unit, holds, limit) = match self {
            Limit::Points(most) => (by, "points", by.abs() <= most, format!("{most} points")),
            Limit::Percent(most, floor) => {
                let off = if by == 0.0 { 0.0 } else { 100.0 * by / recorded };
                let or = if floor > 0.0 { format!(" or {floor} {unit}") } else { String::new() };
                (off, "%", off.abs() <= most || by.abs() <= floor, format!("{most} %{or}"))
            }
        };
        let chance = (range[0]..=range[1]).contains(&recorded);
        Cell {
            of: of.to_owned(),
            metric,
            unit,
            recorded,
            predicted,
            range,
            off,
            off_unit,
            limit,
            holds,
            chance,
        }
    }
}
