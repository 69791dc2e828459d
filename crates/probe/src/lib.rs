//! Costs of switches, cold caches, shared cores and remote memory, measured on the machine at hand.
//!
//! A profile assumes much; these constants need not be assumed. Switches and caches are measured on one CPU, to which the
//! measuring thread is pinned: two processes that take turns on it ([`switch`]), and a walk through ever more memory
//! ([`chase`]). Where cores have threads, kinds of work run beside one another on two of them ([`beside`]); where there are
//! nodes, the walk is through memory of each ([`remote`]).
//! Constants that a machine does not let us measure are missing from the answer, with the reason.
#![allow(clippy::disallowed_types, reason = "measuring reads the clock")]

mod beside;
mod chase;
mod layout;
mod pin;
mod remote;
mod switch;
mod topology;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use chase::Step;
pub use layout::Places;
use layout::{Layout, SYSTEM};
use topology::Topology;

const SWITCH: &str = "context_switch_ns";

const DISTANCE: &str = "numa_distance";
/// The nine constants of threads that share a core, where they are missing.
const THREADS: &str = "smt_*_percent";

/// The constants of a profile that can be measured on one CPU.
const CONSTANTS: [&str; 7] =
    ["cache_line_bytes", SWITCH, "l2_bytes", "l2_miss_ps", "l3_bytes", "l3_miss_ps", "l3_pcpus"];

/// A measured constant of a profile.
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
    /// Sockets, cores, threads and nodes; `None` if the system does not list them or a profile cannot describe them.
    pub places: Option<Places>,
    /// By constant.
    pub constants: BTreeMap<String, Constant>,
    /// Constants that could not be measured, with the reasons; `smt_*_percent` are the nine of threads that share a core.
    pub missing: BTreeMap<&'static str, String>,
    /// Times of one step of a walk, by the memory that it goes through.
    pub steps: Vec<Step>,
}

/// Measures; takes a few seconds, and ends early once `go_on` says no.
pub fn measure(go_on: impl Fn() -> bool + Send) -> Measured {
    // On a thread of its own: the caller's stays where it may run.
    let measuring = move || {
        let layout = Layout::read(Path::new(SYSTEM));
        let allowed = pin::allowed().unwrap_or_default();
        let mut measured =
            Measured { machine: topology::machine(), places: layout.places(), ..Measured::default() };
        match pin::pin() {
            Ok(cpu) => {
                let last_level_bytes = Topology::of(cpu).map_or(0, |caches| caches.last_level_bytes());
                measured.on(cpu, &go_on);
                measured.threads(&layout, &allowed, last_level_bytes, &go_on);
                measured.nodes(&layout, &allowed, last_level_bytes, &go_on);
            }
            Err(why) => {
                let why = format!("this thread could not be pinned to one CPU: {why}");
                let all = CONSTANTS.into_iter().chain([THREADS, DISTANCE]);
                measured.missing.extend(all.map(|name| (name, why.clone())));
            }
        }
        measured
    };
    std::thread::scope(|scope| scope.spawn(measuring).join().expect("measuring does not panic"))
}

impl Measured {
    fn on(&mut self, cpu: usize, go_on: &dyn Fn() -> bool) {
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
            Some(caches) => self.caches(&caches, go_on),
        }
    }

    fn caches(&mut self, caches: &Topology, go_on: &dyn Fn() -> bool) {
        let said = "as the system says (sysfs)";
        self.add("l2_bytes", vec![caches.l2_bytes as i64], said);
        self.add("l3_bytes", vec![caches.l3_bytes as i64], said);
        self.add("l3_pcpus", vec![caches.l3_cpus as i64], said);
        self.add("cache_line_bytes", vec![caches.line_bytes as i64], said);
        let steps = chase::walk(caches.last_level_bytes(), go_on);
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
            self.constants.insert("l3_miss_ps".into(), l2);
        }
        self.steps = steps;
    }

    fn threads(
        &mut self,
        layout: &Layout,
        allowed: &[usize],
        last_level_bytes: usize,
        go_on: &dyn Fn() -> bool,
    ) {
        let why = match layout.siblings(allowed) {
            Some(pair) => match beside::shares(pair, last_level_bytes, go_on) {
                Ok(Some(shares)) => return self.add_shares(shares, pair),
                Ok(None) => "interrupted".to_owned(),
                Err(why) => format!("CPUs {} and {} could not be used: {why}", pair[0], pair[1]),
            },
            None if !layout.is_known() => "the system does not say which threads share a core".to_owned(),
            None if layout.has_threads() => {
                "of no core may this process run on two threads: see its CPU affinity".to_owned()
            }
            None => "this machine's cores have one thread each".to_owned(),
        };
        self.missing.insert(THREADS, why);
    }

    fn add_shares(&mut self, shares: beside::Shares, [first, second]: [usize; 2]) {
        for (kind, shares) in beside::KINDS.iter().zip(shares) {
            for (other, samples) in beside::KINDS.iter().zip(shares) {
                let how = format!(
                    "{kind} work on CPU {first} while CPU {second}, a thread of the same core, does {other} work, against alone"
                );
                self.add(&format!("smt_{kind}_beside_{other}_percent"), samples, &how);
            }
        }
    }

    fn nodes(
        &mut self,
        layout: &Layout,
        allowed: &[usize],
        last_level_bytes: usize,
        go_on: &dyn Fn() -> bool,
    ) {
        let why = match layout.nodes.len() {
            0 => "the system does not say what nodes there are".to_owned(),
            1 => "this machine has one node".to_owned(),
            _ => match remote::walks(&layout.nodes, allowed, last_level_bytes, go_on) {
                Ok(Some(walks)) => return self.add_distance(&walks, layout),
                Ok(None) => "interrupted".to_owned(),
                Err(why) => format!("a thread could not be pinned: {why}"),
            },
        };
        self.missing.insert(DISTANCE, why);
    }

    /// The distance is the latency of memory of other nodes, in tenths of that of the own one; as firmware says it where
    /// no other node was reached.
    fn add_distance(&mut self, walks: &remote::Walks, layout: &Layout) {
        let [(own, _, local), others @ ..] = walks.as_slice() else { return };
        if others.is_empty() {
            let node = layout.nodes.iter().find(|node| node.number == *own);
            let said = node.into_iter().flat_map(|node| &node.distances).copied().filter(|&far| far > 10);
            let said: Vec<i64> = said.collect();
            match said.is_empty() {
                true => drop(self.missing.insert(DISTANCE, "firmware has all nodes at one distance".into())),
                false => self.add(
                    DISTANCE,
                    vec![said.iter().sum::<i64>() / said.len() as i64],
                    "the mean of what firmware says (ACPI: SLIT); no CPU of another node may be used",
                ),
            }
            return;
        }
        let tenths = |ps: &i64| ((ps * 10) as f64 / local.median_ps().max(1) as f64).round().max(10.0) as i64;
        let samples = others.iter().flat_map(|(.., step)| step.samples_ps.iter().map(tenths)).collect();
        let said: Vec<String> =
            others.iter().map(|(node, distance, _)| format!("{distance} to node {node}")).collect();
        let how = format!(
            "a random walk through memory of other nodes, in tenths of one through node {own}'s, on a CPU of that; firmware \
             (ACPI: SLIT) says {}",
            said.join(", ")
        );
        self.add(DISTANCE, samples, &how);
    }

    fn add(&mut self, name: &str, mut samples: Vec<i64>, how: &str) {
        samples.sort_unstable();
        let at = |part: usize| samples[(samples.len() - 1) * part / 4];
        let constant =
            Constant { value: at(2), low: at(1), high: at(3), samples: samples.len(), how: how.into() };
        self.constants.insert(name.into(), constant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::Tree;

    #[test]
    fn whatever_the_machine_every_constant_is_measured_or_has_a_reason() {
        let measured = measure(|| true);
        let names = measured.constants.keys().map(String::as_str).chain(measured.missing.keys().copied());
        let mut names: Vec<&str> = names.filter(|name| !name.starts_with("smt_")).collect();
        names.sort_unstable();
        let all = [
            "cache_line_bytes",
            "context_switch_ns",
            "l2_bytes",
            "l2_miss_ps",
            "l3_bytes",
            "l3_miss_ps",
            "l3_pcpus",
            "numa_distance",
        ];
        assert_eq!(names, all);
        let threads = measured.constants.keys().filter(|name| name.starts_with("smt_")).count();
        assert_eq!(threads, if measured.missing.contains_key(THREADS) { 0 } else { 9 });
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

    /// Measurements of threads and nodes on a machine whose system describes itself by `tree`.
    fn on(tree: &Tree) -> Measured {
        let (layout, allowed) = (Layout::read(&tree.0), pin::allowed().unwrap());
        let mut measured = Measured::default();
        measured.threads(&layout, &allowed, 1 << 18, &|| true);
        measured.nodes(&layout, &allowed, 1 << 18, &|| true);
        measured
    }

    #[test]
    fn of_a_machine_without_threads_or_nodes_that_is_said() {
        let measured = on(&Tree::of("plain", &[(0, "0"), (0, "1")], &[("0-1", "10")]));
        assert_eq!(measured.missing[THREADS], "this machine's cores have one thread each");
        assert_eq!(measured.missing[DISTANCE], "this machine has one node");
        let unknown = on(&Tree::new("unknown", &[]));
        assert_eq!(unknown.missing[THREADS], "the system does not say which threads share a core");
        assert_eq!(unknown.missing[DISTANCE], "the system does not say what nodes there are");
        assert!(measured.constants.is_empty() && unknown.constants.is_empty());
    }

    #[test]
    fn threads_and_nodes_that_there_are_are_measured() {
        // Two numbers for one CPU: what is measured means nothing, but is all there.
        let cpu = pin::allowed().unwrap()[0];
        let core = format!("{cpu},{cpu}");
        let tree =
            Tree::of("small", &[(0, &core)], &[(&cpu.to_string(), "10 21"), (&cpu.to_string(), "21 10")]);
        let measured = on(&tree);
        assert!(measured.missing.is_empty(), "{:?}", measured.missing);
        assert_eq!(measured.constants.len(), 10);
        assert!(measured.constants["smt_memory_beside_io_percent"].how.contains("does io work"));
        let distance = &measured.constants[DISTANCE];
        assert!(distance.value >= 10 && distance.how.contains("21 to node 1"), "{distance:?}");
    }

    #[test]
    fn distances_of_nodes_out_of_reach_are_the_firmwares() {
        let cpu = pin::allowed().unwrap()[0].to_string();
        let reach = |distances: &str| {
            on(&Tree::of("far", &[(0, "0")], &[(&cpu, distances), ("9000", distances), ("9001", distances)]))
        };
        assert_eq!(reach("10 12 32").constants[DISTANCE].value, 22);
        assert_eq!(reach("10 10 10").missing[DISTANCE], "firmware has all nodes at one distance");
    }
}
