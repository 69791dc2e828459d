//! Durations of whole runs, part by part.

use std::sync::Mutex;
use std::time::Duration;

use crate::clock::{self, Metrics, best_rate};
use crate::whole::{Counts, Part, Whole, all, run_in_parts};

/// The least duration of a measurement with the full simulated time, which a run needs to show its steady state, s.
const FULL_S: f64 = 0.5;

/// No run is shorter than the whole by more than this.
const SHORTEST: f64 = 0.05;

/// Measures all whole runs, about `seconds` each, beside bare loops; CPU time, the least of all runs that there was time for.
///
/// Names are `whole_tasks_16_ns_per_dispatch` and so on; `…_of_floor` is that over the time that the bare loop takes for an event,
/// `…_read_ms` and so on that of each [`Part`]. What is under [`FULL_S`] is measured on shorter runs.
pub fn measure(seconds: f64) -> Metrics {
    let mut metrics = Metrics::new();
    for whole in all() {
        let time = Duration::from_secs_f64(seconds);
        let part = (seconds / FULL_S).clamp(SHORTEST, 1.0);
        let simulated_ms = (f64::from(whole.simulated_ms) * part) as u32;
        let mut floor = whole.floor();
        let floor_ns = 1e9 / best_rate(time, || floor.advance());
        let floor_counts = floor.counts();
        let (parts, counts) = least(&whole, simulated_ms, time);
        // A run builds its host once more.
        let run = parts[Part::Run as usize].saturating_sub(parts[Part::Build as usize]);
        let each_ns = run.as_secs_f64() * 1e9 / counts.dispatches as f64;
        let mut add = |metric: &str, value: f64| {
            metrics.insert(format!("whole_{}_{metric}", whole.name.replace('-', "_")), value);
        };
        for part in Part::ALL {
            add(&format!("{part}_ms"), parts[part as usize].as_secs_f64() * 1e3);
        }
        add("simulated_ms", f64::from(simulated_ms));
        add("dispatches", counts.dispatches as f64);
        add("ns_per_dispatch", each_ns);
        add("floor_ns_per_event", floor_ns);
        add("floor_ns_per_dispatch", floor_ns * floor_counts.events as f64 / floor_counts.dispatches as f64);
        add("of_floor", each_ns / floor_ns);
    }
    metrics
}

/// The least time of each part, of as many runs as there is time for, and what a run did.
fn least(whole: &Whole, simulated_ms: u32, time: Duration) -> ([Duration; Part::ALL.len()], Counts) {
    let text = whole.text(simulated_ms);
    let least = Mutex::new([Duration::MAX; Part::ALL.len()]);
    let start = clock::now();
    loop {
        let began = Mutex::new(clock::now());
        let counts = run_in_parts(&text, &|part| {
            let mut began = began.lock().expect("nobody panics with it");
            let took = clock::now() - std::mem::replace(&mut *began, clock::now());
            let least = &mut least.lock().expect("nobody panics with it")[part as usize];
            *least = took.min(*least);
        });
        if clock::now() - start >= time {
            return (least.into_inner().expect("nobody panicked with it"), counts);
        }
    }
}
