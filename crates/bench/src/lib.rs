//! How fast the engine is.
//!
//! [`run`] measures every policy on the same [workload] beside a [bare event-queue loop](floor), in one process and one
//! thread, so that the *ratio* means something on any machine. Statistics are on: the meter listens, as in a real run.

#![allow(clippy::disallowed_types, reason = "a benchmark reads the wall clock")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use vcpulab_host::{DomainConfig, Host, HostConfig, Params, Scheduler, Time, VcpuConfig};
use vcpulab_measure::Meter;
use vcpulab_sched::Runner;

pub mod floor;
pub mod workload;

use workload::RunAndBlock;

/// A host size.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Physical CPUs.
    pub pcpus: u32,
    /// Virtual CPUs, in domains of one each.
    pub vcpus: u32,
}

/// The sizes measured.
pub const SIZES: [Size; 2] = [Size { pcpus: 4, vcpus: 16 }, Size { pcpus: 64, vcpus: 4096 }];

/// A host with that many domains of one vCPU each, all started at 0, in exact mode and with statistics.
pub fn host<S: Scheduler>(size: Size, scheduler: S) -> Host<S, RunAndBlock, Meter> {
    let domain = |number| DomainConfig {
        number,
        params: Params::new(),
        vcpus: vec![VcpuConfig { start: Some(0), affinity: None }],
    };
    let config = HostConfig {
        pcpus: size.pcpus,
        domains: (1..=i64::from(size.vcpus)).map(domain).collect(),
        ..HostConfig::default()
    };
    let world = RunAndBlock::new(size.pcpus, size.vcpus);
    let mut host =
        Host::new(&config, scheduler, world, Meter::new(false)).expect("the policy keeps the rules");
    let (context, meter) = host.observe();
    meter.reset(context);
    host
}

/// Work done per wall-clock second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rate {
    /// Decisions (calls of the policy's schedule hook) per second.
    pub decisions_per_s: f64,
    /// Events (timers, wake-ups, operations used up) per second.
    pub events_per_s: f64,
}

/// Simulated time advanced between two looks at the clock.
const CHUNK_NS: Time = 10_000_000;

/// Runs the host for about this long by the wall clock.
struct Timed {
    size: Size,
    wall: Duration,
}

impl Runner for Timed {
    type Out = Rate;

    fn run<S: Scheduler>(self, scheduler: S) -> Rate {
        let mut host = host(self.size, scheduler);
        let mut end = 0;
        let mut advance = |host: &mut Host<S, RunAndBlock, Meter>| {
            end += CHUNK_NS;
            host.run_until(end).expect("the policy keeps the rules");
        };
        for _ in 0..20 {
            advance(&mut host);
        }
        let (events, decisions) = host.context().work_done();
        let start = Instant::now();
        while start.elapsed() < self.wall {
            advance(&mut host);
        }
        let seconds = start.elapsed().as_secs_f64();
        let (events_after, decisions_after) = host.context().work_done();
        Rate {
            decisions_per_s: (decisions_after - decisions) as f64 / seconds,
            events_per_s: (events_after - events) as f64 / seconds,
        }
    }
}

/// The figures of one run: keys such as `decisions_per_s_4x16_credit_xen4.17` (also without the newest generation's name).
pub type Figures = BTreeMap<String, f64>;

/// Measures every policy and generation at every size for about `seconds` each, beside the bare loop.
pub fn run(seconds: f64) -> Figures {
    let wall = Duration::from_secs_f64(seconds);
    let mut figures = Figures::new();
    for size in SIZES {
        let name = format!("{}x{}", size.pcpus, size.vcpus);
        figures.insert(format!("floor_events_per_s_{name}"), floor::events_per_s(size, wall));
        for policy in vcpulab_sched::policies() {
            for generation in policy.generations {
                let timed = Timed { size, wall };
                let rate =
                    vcpulab_sched::with(policy.name, generation.name, &Params::new(), size.pcpus, timed)
                        .expect("a listed policy is registered");
                let key = format!("{name}_{}_{}", policy.name, generation.name);
                figures.insert(format!("decisions_per_s_{key}"), rate.decisions_per_s);
                figures.insert(format!("events_per_s_{key}"), rate.events_per_s);
            }
        }
    }
    figures
}
