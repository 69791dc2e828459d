//! Decisions and events per second.

use std::time::Duration;

use vcpulab_host::{Params, Scheduler, Span, Time, Work};
use vcpulab_sched::Runner;

use crate::clock::{Metrics, best_rate};
use crate::floor::Bare as _;
use crate::host::host;
use crate::memory::bytes_per_vcpu;
use crate::size::{SIZES, Size};
use crate::whole_rates;
use crate::workload::Drawn;

/// Simulated time before the measurement.
const WARM_UP: Time = Time::from_ns(200_000_000);

/// Simulated time of all pCPUs together between two looks at the clock, which take some microseconds.
const CHUNK: Span = Span::from_secs(4);

/// The speed of one policy.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// Timers, wake-ups and ends of operations handled, with the scheduling they lead to, per second.
    decisions_per_s: f64,
    /// Calls of the policy's schedule hook, and events of all kinds, for each of those.
    schedule_calls_each: f64,
    events_each: f64,
}

struct Timed {
    size: Size,
    time: Duration,
}

impl Runner for Timed {
    type Out = Rate;

    fn run<S: Scheduler>(self, scheduler: S) -> Rate {
        let decisions = |work: Work| work.events - work.continuations;
        let mut host = host(self.size, scheduler);
        let chunk = CHUNK / i64::from(self.size.pcpus);
        let mut end = WARM_UP;
        host.run_until(end).expect("the policy keeps the rules");
        let advance = || {
            let before = decisions(host.context().work_done());
            end += chunk;
            host.run_until(end).expect("the policy keeps the rules");
            decisions(host.context().work_done()) - before
        };
        let decisions_per_s = best_rate(self.time, advance);
        let work = host.context().work_done();
        let each = |count: u64| count as f64 / decisions(work) as f64;
        Rate {
            decisions_per_s,
            schedule_calls_each: each(work.schedule_calls),
            events_each: each(work.events),
        }
    }
}

/// Measures every policy and generation at every size for about `seconds` each, beside the bare loop. A *decision* is one
/// timer, wake-up or end of an operation handled, with the scheduling it leads to. Names are
/// `decisions_per_s_4x16_bvt_xen3.0`, or `decisions_per_s_4x16` for Credit's default one, and so on; every such
/// metric also comes as `…_of_floor`: events per second over those of the bare loop. [`whole_rates::measure`] has whole runs.
pub fn run(seconds: f64) -> Metrics {
    let time = Duration::from_secs_f64(seconds);
    let mut metrics = Metrics::new();
    // First of all: later there is memory that was freed, and is taken again.
    if let Some(bytes) = bytes_per_vcpu() {
        metrics.insert("bytes_per_vcpu".into(), bytes);
    }
    for size in SIZES {
        let name = format!("{}x{}", size.pcpus, size.vcpus);
        let mut bare = Drawn::floor(size);
        let floor = best_rate(time, || bare.advance());
        metrics.insert(format!("floor_events_per_s_{name}"), floor);
        for policy in vcpulab_sched::policies() {
            for generation in policy.generations {
                let key = match (policy.name, generation.name) {
                    ("credit", "xen4.17") => name.clone(),
                    (policy, "v1") => format!("{name}_{}", policy.replace('-', "_")),
                    (policy, generation) => format!("{name}_{policy}_{generation}"),
                };
                let timed = Timed { size, time };
                let rate =
                    vcpulab_sched::with(policy.name, generation.name, &Params::new(), size.pcpus, timed)
                        .expect("a listed policy is registered");
                let events = rate.decisions_per_s * rate.events_each;
                metrics.insert(format!("decisions_per_s_{key}"), rate.decisions_per_s);
                metrics.insert(
                    format!("schedule_calls_per_s_{key}"),
                    rate.decisions_per_s * rate.schedule_calls_each,
                );
                metrics.insert(format!("events_per_s_{key}"), events);
                metrics.insert(format!("events_per_s_{key}_of_floor"), events / floor);
            }
        }
    }
    metrics.append(&mut whole_rates::measure(seconds));
    metrics
}
