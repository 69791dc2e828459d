//! Whole runs: from a scenario's text to result tables, with waits attributed, as users run them.

mod parts;
mod scenarios;
pub mod tasks;

pub use parts::{Built, Counts, Part, kept, run_in_parts};
pub use scenarios::{idle_domains, of_tasks};

use crate::floor::Bare;
use crate::size::Size;
use crate::workload::Drawn;

/// A scenario to run.
#[derive(Clone, Debug)]
pub struct Whole {
    /// Short name of the workload.
    pub name: &'static str,
    /// The work that it is.
    pub doc: &'static str,
    /// pCPUs, and vCPUs of all domains.
    pub size: Size,
    /// Simulated time of a run that is long enough to measure, ms.
    pub simulated_ms: u32,
    scenario: String,
}

impl Whole {
    /// The scenario's text, to be run for that much simulated time.
    pub fn text(&self, simulated_ms: u32) -> String {
        text_of(&self.scenario, simulated_ms)
    }

    /// The bare loop to compare with: that of the same tasks, or one with as many pCPUs and vCPUs.
    pub fn floor(&self) -> Box<dyn Bare> {
        if self.name.starts_with("tasks") {
            Box::new(tasks::floor(self.size.vcpus))
        } else {
            Box::new(Drawn::floor(self.size))
        }
    }
}

/// A scenario's text, to be run for that much simulated time.
pub fn text_of(scenario: &str, simulated_ms: u32) -> String {
    format!("[run]\nduration = \"{simulated_ms}ms\"\nwarmup = \"0s\"\n{scenario}")
}

/// All workloads; `vcpulab bench` shows them under their names.
pub fn all() -> Vec<Whole> {
    let whole = |name, doc, (pcpus, vcpus), simulated_ms, scenario| {
        let size = Size { pcpus, vcpus, vcpus_each: 1 };
        Whole { name, doc, size, simulated_ms, scenario }
    };
    vec![
        whole("tasks-16", "16 tasks on 4 pCPUs", (4, 16), 20_000, scenarios::of_tasks(16)),
        whole("tasks-512", "512 tasks on 4 pCPUs", (4, 512), 50_000, scenarios::of_tasks(512)),
        whole("tasks-4096", "4096 tasks on 4 pCPUs", (4, 4096), 100_000, scenarios::of_tasks(4096)),
        whole("web-server", "a web server at saturation", (1, 2), 2_000, scenarios::web_server()),
        whole("in-use", "a host of 40 virtual machines", (16, 57), 1_000, scenarios::in_use()),
        whole("crowd-63", "63 guests on 16 pCPUs", (16, 67), 500, scenarios::crowd(63, 16)),
        whole("crowd-256", "256 guests on 64 pCPUs", (64, 260), 200, scenarios::crowd(256, 64)),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use vcpulab_host::Time;

    use super::tasks::Task;
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
    fn the_tasks_ask_for_four_fifths_of_all_pcpus() {
        for count in [16, 512, 4096] {
            let load = |task: Task| task.run_ns as f64 / (task.run_ns + task.sleep_ns) as f64;
            let all: f64 = tasks::tasks(count).map(load).sum();
            assert!((all / f64::from(tasks::PCPUS) - 0.8).abs() < 1e-6, "{all}");
        }
    }

    #[test]
    fn the_bare_loop_does_the_work_of_the_tasks() {
        for (count, simulated_ms) in [(16, 5_000), (512, 1_000)] {
            let name = format!("tasks-{count}");
            let whole = all().into_iter().find(|whole| whole.name == name).unwrap();
            let run = run_in_parts(&whole.text(simulated_ms), &|_| {});
            let mut floor = tasks::floor(count);
            floor.run_until(Time::from_ns(i64::from(simulated_ms) * 1_000_000));
            let floor = floor.counts();
            // Each vCPU starts at 0 and finds that its task sleeps.
            let starts = u64::from(count);
            assert_eq!((run.dispatches, run.wakeups), (floor.dispatches + starts, floor.wakeups + starts));
        }
    }
}
