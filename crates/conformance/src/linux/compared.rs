//! Predicted beside recorded, and how far off each prediction may be.

use serde::Serialize;

use super::demand::Demands;
use super::folder::{Recording, Setup};
use super::free::{RunError, free_run};
use super::measured::Measured;
use super::overheads::Overheads;

/// How far off a share may be, points of the CPU.
const SHARE_MAX: f64 = 0.5;
/// How far off the number of switches may be, %.
const SWITCHES_MAX: f64 = 3.0;
/// The same where only hogs of different weights run: their pattern hangs on where they stood at the beginning.
const SWITCHES_OF_WEIGHTS_MAX: f64 = 15.0;
/// How far off a wait may be, %, or else µs.
const WAIT_MAX: f64 = 20.0;
const WAIT_MAX_US: f64 = 16.0;
/// Threads that woke less often have no percentiles.
const WAKES_MIN: usize = 20;
/// In another setting than that of the demands, predictions may be off by so many times as much.
const WHAT_IF: f64 = 2.0;

/// What is compared.
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
    /// What is compared.
    pub metric: Metric,
    /// Its unit.
    pub unit: &'static str,
    /// What was recorded.
    pub recorded: f64,
    /// What the run gave.
    pub predicted: f64,
    /// How far off it is, and in what.
    pub off: f64,
    /// The unit of `off`.
    pub off_unit: &'static str,
    /// How far off it may be, in words.
    pub limit: String,
    /// Whether it is within.
    pub holds: bool,
}

/// A run beside a recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The scheduler, and its generation.
    pub scheduler: String,
    /// Every prediction.
    pub cells: Vec<Cell>,
}

/// Runs the demands of a recording in its own setting, or that of another recording of the same threads, and compares with what
/// was recorded there.
///
/// # Errors
/// See [`RunError`].
pub fn compared(demands: &Recording, other: Option<&Recording>) -> Result<Comparison, RunError> {
    let real = other.unwrap_or(demands);
    if let Some(refusal) = demands.refusal().or_else(|| real.refusal()) {
        return Err(refusal.into());
    }
    let overheads = Overheads::of(&demands.lines, &demands.clock());
    let hz = real.hz();
    let run = free_run([&demands.setup, &real.setup], &Demands::of(demands), overheads, hz)?;
    let times = if other.is_some() { WHAT_IF } else { 1.0 };
    let (policy, generation) = real.setup.scheduler();
    let cells = cells(&real.setup, &Measured::of(real), &run, times);
    Ok(Comparison { scheduler: format!("{policy} {generation}"), cells })
}

fn cells(setup: &Setup, recorded: &Measured, predicted: &Measured, times: f64) -> Vec<Cell> {
    let switches_max = if setup.is_hogs_of_weights() { SWITCHES_OF_WEIGHTS_MAX } else { SWITCHES_MAX };
    let rate = |of: &Measured| of.switches as f64 * 1e9 / of.window.ns().max(1) as f64;
    let mut all = vec![relative("host".to_owned(), Metric::Switches, "/s", rate(recorded), rate(predicted), switches_max * times)];
    for (name, real) in &recorded.threads {
        let Some(got) = predicted.threads.get(name) else { continue };
        let of = format!("{}/{}", name.0, name.1);
        let share = |ran_ns: i64, of: &Measured| 100.0 * ran_ns as f64 / (of.window.ns().max(1)) as f64;
        let (was, is) = (share(real.ran_ns, recorded), share(got.ran_ns, predicted));
        let most = SHARE_MAX * times;
        all.push(Cell {
            of: of.clone(),
            metric: Metric::Share,
            unit: "%",
            recorded: was,
            predicted: is,
            off: is - was,
            off_unit: "points",
            limit: format!("{most} points"),
            holds: (is - was).abs() <= most,
        });
        if real.waits_ns.len().min(got.waits_ns.len()) < WAKES_MIN {
            continue;
        }
        for (metric, percentile) in [(Metric::WaitMedian, 50), (Metric::WaitP90, 90)] {
            let us = |ns: Option<i64>| ns.unwrap_or(0) as f64 / 1e3;
            let (was, is) = (us(real.wait(percentile)), us(got.wait(percentile)));
            let (percent, floor) = (WAIT_MAX * times, WAIT_MAX_US * times);
            let mut cell = relative(of.clone(), metric, "µs", was, is, percent);
            cell.limit = format!("{percent} % or {floor} µs");
            cell.holds |= (is - was).abs() <= floor;
            all.push(cell);
        }
    }
    all
}

fn relative(of: String, metric: Metric, unit: &'static str, recorded: f64, predicted: f64, most: f64) -> Cell {
    let off = if recorded == predicted { 0.0 } else { 100.0 * (predicted - recorded) / recorded };
    let (off_unit, limit) = ("%", format!("{most} %"));
    Cell { of, metric, unit, recorded, predicted, off, off_unit, limit, holds: off.abs() <= most }
}
