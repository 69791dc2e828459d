//! Costs of switches and cold caches, measured on the machine at hand.
//!
//! A profile assumes much; these constants need not be assumed. All of it happens on one CPU, to which the measuring
//! thread is pinned: two processes that take turns on it ([`switch`]), and a walk through ever more memory ([`chase`]).
//! Constants that a machine does not let us measure are missing from the answer, with the reason.
#![allow(clippy::disallowed_types, reason = "measuring reads the clock")]

mod chase;
mod pin;
mod switch;
mod topology;

use std::collections::BTreeMap;

use serde::Serialize;

use chase::Step;
use topology::Topology;

const SWITCH: &str = "context_switch_ns";

/// The constants of a profile that can be measured.
const CONSTANTS: [&str; 7] =
    ["cache_line_bytes", SWITCH, "l2_bytes", "l2_miss_ps", "l3_bytes", "l3_miss_ps", "l3_pcpus"];

/// One constant of a profile, as measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Constant {
    /// The median, in the constant's unit.
    pub value: i64,
    /// A quarter of the samples are below this.
    pub low: i64,
    /// A quarter of the samples are above this.
    pub high: i64,
    /// Number of samples; 1: the system tells the value.
    pub samples: usize,
    /// The way it was measured.
    pub how: String,
}

/// The constants of the machine: those that were measured, and those that could not be.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Measured {
    /// The processor's name for itself.
    pub machine: String,
    /// By constant.
    pub constants: BTreeMap<&'static str, Constant>,
    /// Constants that could not be measured, with the reasons.
    pub missing: BTreeMap<&'static str, String>,
    /// Times of one step of a walk, by the memory that it goes through.
    pub steps: Vec<Step>,
}

/// Measures; takes a few seconds.
pub fn measure() -> Measured {
    // On a thread of its own: the caller's stays where it may run.
    let measuring = std::thread::spawn(|| {
        let mut measured = Measured { machine: topology::machine(), ..Measured::default() };
        match pin::pin() {
            Ok(cpu) => measured.on(cpu),
            Err(why) => {
                let why = format!("this thread could not be pinned to one CPU: {why}");
                measured.missing.extend(CONSTANTS.map(|name| (name, why.clone())));
            }
        }
        measured
    });
    measuring.join().expect("measuring does not panic")
}

impl Measured {
    fn on(&mut self, cpu: usize) {
        match switch::samples_ns() {
            Ok(samples) => self.add(SWITCH, samples, switch::HOW),
            Err(why) => drop(self.missing.insert(SWITCH, why.to_string())),
        }
        match Topology::of(cpu) {
            None => {
                let why = "the system does not say what caches there are";
                let of_caches = CONSTANTS.into_iter().filter(|&name| name != SWITCH);
                self.missing.extend(of_caches.map(|name| (name, why.to_owned())));
            }
            Some(caches) => self.caches(&caches),
        }
    }

    fn caches(&mut self, caches: &Topology) {
        let said = "as the system says (sysfs)";
        self.add("l2_bytes", vec![caches.l2_bytes as i64], said);
        self.add("l3_bytes", vec![caches.l3_bytes as i64], said);
        self.add("l3_pcpus", vec![caches.l3_cpus as i64], said);
        self.add("cache_line_bytes", vec![caches.line_bytes as i64], said);
        let steps = chase::walk(caches.last_level_bytes());
        let hit = chase::within(&steps, 0, caches.l2_bytes / 2);
        let memory = chase::within(&steps, 2 * caches.last_level_bytes(), usize::MAX);
        let next = match caches.l3_bytes {
            0 => ("l2_miss_ps", memory, "memory"),
            l3 => (
                "l2_miss_ps",
                chase::within(&steps, 2 * caches.l2_bytes, (4 * caches.l2_bytes).min(l3 / 2)),
                "the L3 cache",
            ),
        };
        let misses = [next, ("l3_miss_ps", memory, "memory")];
        for (name, slow, place) in misses {
            match (hit, slow) {
                (Some(hit), Some(slow)) => {
                    let samples = slow.samples_ps.iter().map(|ps| (ps - hit.median_ps()).max(0)).collect();
                    let how = format!(
                        "a random walk through {} KiB, which {place} holds, less one through {} KiB, which the L2 cache holds",
                        slow.bytes >> 10,
                        hit.bytes >> 10
                    );
                    self.add(name, samples, &how);
                }
                _ => {
                    let why =
                        format!("no walk was long enough for L2 and short enough to show {place} alone");
                    self.missing.insert(name, why);
                }
            }
        }
        // Where others take all of a shared cache, it is no faster than memory, and chance decides which of the two looks slower.
        let level = |name| self.constants.get(name).map_or(0, |constant| constant.value);
        if self.constants.contains_key("l3_miss_ps")
            && level("l3_miss_ps") < level("l2_miss_ps")
            && let (Some(l2), true) = (self.constants.get("l2_miss_ps").cloned(), caches.l3_bytes > 0)
        {
            self.constants.insert("l3_miss_ps", l2);
        }
        self.steps = steps;
    }

    fn add(&mut self, name: &'static str, mut samples: Vec<i64>, how: &str) {
        samples.sort_unstable();
        let at = |part: usize| samples[(samples.len() - 1) * part / 4];
        let constant =
            Constant { value: at(2), low: at(1), high: at(3), samples: samples.len(), how: how.into() };
        self.constants.insert(name, constant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_machine_every_constant_is_measured_or_has_a_reason() {
        let measured = measure();
        let mut names: Vec<&str> =
            measured.constants.keys().chain(measured.missing.keys()).copied().collect();
        names.sort_unstable();
        let all = [
            "cache_line_bytes",
            "context_switch_ns",
            "l2_bytes",
            "l2_miss_ps",
            "l3_bytes",
            "l3_miss_ps",
            "l3_pcpus",
        ];
        assert_eq!(names, all);
        for (name, constant) in &measured.constants {
            assert!(
                constant.low <= constant.value && constant.value <= constant.high,
                "{name}: {constant:?}"
            );
        }
        if let Some(switch) = measured.constants.get("context_switch_ns") {
            assert!((50..1_000_000).contains(&switch.value), "{switch:?}");
        }
        assert!(measured.steps.is_sorted_by_key(|step| step.bytes));
    }
}
