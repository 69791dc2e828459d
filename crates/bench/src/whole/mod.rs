//! Whole runs: from a scenario's text to result tables, with waits attributed, as users run them.

mod parts;
mod scenarios;

pub use parts::{Counts, Part, run_in_parts};
pub use scenarios::{Task, task};

use crate::size::Size;

/// A scenario to run.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Its short name.
    pub name: &'static str,
    /// The work that it is.
    pub doc: &'static str,
    /// The bare loop to compare with has as many pCPUs and vCPUs.
    pub size: Size,
    /// Simulated time of a run that is long enough to measure, ms.
    pub simulated_ms: u32,
    scenario: String,
}

impl Whole {
    /// The scenario's text, to be run for that much simulated time.
    pub fn text(&self, simulated_ms: u32) -> String {
        format!("[run]\nduration = \"{simulated_ms}ms\"\nwarmup = \"0s\"\n{}", self.scenario)
    }
}

/// All of them.
pub fn all() -> Vec<Whole> {
    let whole = |name, doc, (pcpus, vcpus), simulated_ms, scenario| {
        let size = Size { pcpus, vcpus, vcpus_each: 1 };
        Whole { name, doc, size, simulated_ms, scenario }
    };
    vec![
        whole("tasks-16", "16 tasks on 4 pCPUs", (4, 16), 20_000, scenarios::tasks(16)),
        whole("tasks-512", "512 tasks on 4 pCPUs", (4, 512), 50_000, scenarios::tasks(512)),
        whole("tasks-4096", "4096 tasks on 4 pCPUs", (4, 4096), 100_000, scenarios::tasks(4096)),
        whole("web-server", "a web server at saturation", (1, 2), 2_000, scenarios::web_server()),
        whole("in-use", "a host of 40 virtual machines", (16, 57), 1_000, scenarios::in_use()),
        whole("crowd-63", "63 guests on 16 pCPUs", (16, 67), 500, scenarios::crowd(63, 16)),
        whole("crowd-256", "256 guests on 64 pCPUs", (64, 260), 200, scenarios::crowd(256, 64)),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn whole_runs_have_parts_in_order_and_do_some_work() {
        for whole in all().iter().filter(|whole| whole.size.vcpus < 300) {
            let over = Mutex::new(Vec::new());
            let counts = run_in_parts(&whole.text(50), &|part| over.lock().unwrap().push(part));
            assert_eq!(*over.lock().unwrap(), Part::ALL, "{}", whole.name);
            assert!(counts.dispatches > 10 && counts.wakeups > 10, "{}: {counts:?}", whole.name);
        }
    }

    #[test]
    fn the_tasks_ask_for_four_fifths_of_four_pcpus() {
        for count in [16, 512, 4096] {
            let load = |task: Task| task.run_ns as f64 / (task.run_ns + task.sleep_ns) as f64;
            let all: f64 = (0..count).map(|number| load(task(number, count))).sum();
            assert!((all / 4.0 - 0.8).abs() < 1e-6, "{all}");
        }
    }
}
