//! CPU time and waits of threads, of a recording or of a run that is compared with it.

use std::collections::BTreeMap;

use vcpulab_host::Span;

use super::folder::Recording;
use super::trace::Event;

/// CPU time and waits of a host's threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Measured {
    /// Length of the measurement.
    pub window: Span,
    /// Switches of the whole CPU.
    pub switches: u64,
    /// By VM and vCPU.
    pub threads: BTreeMap<(String, u32), Got>,
}

/// CPU time and waits of a thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Got {
    /// CPU time.
    pub ran_ns: i64,
    /// The times from waking to running, sorted.
    pub waits_ns: Vec<i64>,
}

impl Got {
    /// A percentile of the waits.
    pub fn wait(&self, percentile: usize) -> Option<i64> {
        let last = self.waits_ns.len().checked_sub(1)?;
        self.waits_ns.get((last * percentile + 50) / 100).copied()
    }
}

impl Measured {
    /// Switches in a second.
    pub fn switches_per_s(&self) -> f64 {
        self.switches as f64 * 1e9 / self.window.ns().max(1) as f64
    }

    /// A thread's part of the CPU, %.
    pub fn share(&self, thread: &(String, u32)) -> f64 {
        let ran = self.threads.get(thread).map_or(0, |got| got.ran_ns);
        100.0 * ran as f64 / self.window.ns().max(1) as f64
    }

    /// A percentile of a thread's waits, µs.
    pub fn wait_us(&self, thread: &(String, u32), percentile: usize) -> f64 {
        self.threads.get(thread).and_then(|got| got.wait(percentile)).unwrap_or(0) as f64 / 1e3
    }

    /// Several runs as one that is as long as all of them.
    pub fn together(runs: &[Measured]) -> Self {
        let mut all = Measured::default();
        for run in runs {
            all.window += run.window;
            all.switches += run.switches;
            for (name, got) in &run.threads {
                let thread = all.threads.entry(name.clone()).or_default();
                thread.ran_ns += got.ran_ns;
                thread.waits_ns.extend(&got.waits_ns);
            }
        }
        for thread in all.threads.values_mut() {
            thread.waits_ns.sort_unstable();
        }
        all
    }

    /// The measurements of a recording.
    pub fn of(recording: &Recording) -> Self {
        let Recording { setup, lines, .. } = recording;
        let mut got: BTreeMap<u32, Got> =
            setup.threads.keys().map(|&thread| (thread, Got::default())).collect();
        let mut woke: BTreeMap<u32, i64> = BTreeMap::new();
        let mut blocked: BTreeMap<u32, bool> = BTreeMap::new();
        let mut switches = 0;
        for line in lines {
            match line.event {
                Event::Waking(thread, _) if blocked.get(&thread).copied().unwrap_or(true) => {
                    blocked.insert(thread, false);
                    woke.insert(thread, line.time_ns);
                }
                Event::Charge(thread, ran) => {
                    if let Some(got) = got.get_mut(&thread) {
                        got.ran_ns = got.ran_ns.saturating_add(ran);
                    }
                }
                Event::Switch { from, runnable, to, .. } => {
                    switches += 1;
                    blocked.insert(from.0, !runnable);
                    if let (Some(at), Some(got)) = (woke.remove(&to.0), got.get_mut(&to.0)) {
                        got.waits_ns.push(line.time_ns - at);
                    }
                }
                _ => {}
            }
        }
        let named = got.into_iter().map(|(thread, mut got)| {
            got.waits_ns.sort_unstable();
            let made = &setup.threads[&thread];
            ((made.vm.clone(), made.vcpu), got)
        });
        let ends = lines.first().zip(lines.last()).map_or(0, |(first, last)| last.time_ns - first.time_ns);
        Measured { window: Span::from_ns(ends), switches, threads: named.collect() }
    }
}
