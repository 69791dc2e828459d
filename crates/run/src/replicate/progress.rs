//! The progress of a run, and its end before time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use vcpulab_host::{Host, Observer, Scheduler, Time, World};

use crate::error::RunError;

/// The number of steps of a replication, by which its progress is counted.
pub(crate) const STEPS: u64 = 100;

/// The number of events after which it is asked whether to continue: some milliseconds, and the same in every run.
pub(crate) const EVENTS_BETWEEN_ASKING: u64 = 16_384;

/// Runs a host to a time, and tells the fraction done; cancelled as soon as the answer is `false`.
pub(crate) fn run_to<S: Scheduler, W: World, O: Observer>(
    host: &mut Host<S, W, O>,
    end: Time,
    replication: u32,
    progress: &dyn Fn(f64) -> bool,
) -> Result<(), RunError> {
    for step in 1..=STEPS {
        let until = i128::from(end.ns()) * i128::from(step) / i128::from(STEPS);
        let mut is_there = false;
        while !is_there {
            let some = host.run_some(Time::from_ns(until as i64), EVENTS_BETWEEN_ASKING);
            is_there = some.map_err(|broken| RunError::Broken { replication, broken })?;
            if !progress((step - u64::from(!is_there)) as f64 / STEPS as f64) {
                return Err(RunError::Cancelled);
            }
        }
    }
    Ok(())
}

/// The progress of all replications of all scenarios together.
pub(crate) struct Progress<'a> {
    report: &'a (dyn Fn(f64) -> bool + Sync),
    done: Mutex<u64>,
    all: u64,
    stop: AtomicBool,
}

impl<'a> Progress<'a> {
    pub fn new(replications: usize, report: &'a (dyn Fn(f64) -> bool + Sync)) -> Self {
        Progress {
            report,
            done: Mutex::new(0),
            all: replications as u64 * STEPS,
            stop: AtomicBool::new(false),
        }
    }

    /// Whether the watcher asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reports that a step is done. True: the run may continue.
    pub fn step(&self) -> bool {
        self.report_after(1)
    }

    /// Whether to continue, between two steps.
    pub fn goes_on(&self) -> bool {
        self.report_after(0)
    }

    fn report_after(&self, steps: u64) -> bool {
        // Reported under the lock, so that reports never go backwards.
        let mut done = self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *done += steps;
        if !self.is_stopped() && !(self.report)(*done as f64 / self.all as f64) {
            self.stop.store(true, Ordering::Relaxed);
        }
        !self.is_stopped()
    }
}
