//! One policy on one host of the self-benchmark's workload, for counts of instructions:
//! `cargo run --release -p vcpulab-bench --example growth -- POLICY GENERATION PCPUS VCPUS [MS]`.
//!
//! MS is how long to simulate after as long again, in which the host comes to its steady state.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]
#![allow(clippy::disallowed_types, reason = "valgrind cannot execute the system's clock of CPU time")]

use std::time::Instant;

use vcpulab_bench::{Size, host};
use vcpulab_host::{Params, Scheduler, Span, Time, Work};
use vcpulab_sched::Runner;

struct Steady {
    size: Size,
    time: Span,
}

impl Runner for Steady {
    type Out = ();

    fn run<S: Scheduler>(self, scheduler: S) {
        let decisions = |work: Work| work.events - work.continuations;
        let mut host = host(self.size, scheduler);
        let steady = Time::ZERO + self.time;
        host.run_until(steady).expect("the policy keeps the rules");
        let before = decisions(host.context().work_done());
        part_is_over();
        let began = Instant::now();
        host.run_until(steady + self.time).expect("the policy keeps the rules");
        let took = began.elapsed();
        part_is_over();
        let done = decisions(host.context().work_done()) - before;
        println!("decisions: {done}, ns for each: {:.1}", took.as_secs_f64() * 1e9 / done as f64);
    }
}

/// Callgrind can be told to begin anew here.
#[inline(never)]
fn part_is_over() {
    std::hint::black_box(());
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [policy, generation, numbers @ ..] = args.as_slice() else {
        panic!("POLICY GENERATION PCPUS VCPUS [MS]");
    };
    let numbers: Vec<u32> = numbers.iter().map(|text| text.parse().expect("a number")).collect();
    let (size, ms) = match numbers[..] {
        [pcpus, vcpus] => (Size { pcpus, vcpus, vcpus_each: 1 }, 100),
        [pcpus, vcpus, ms] => (Size { pcpus, vcpus, vcpus_each: 1 }, ms),
        _ => panic!("POLICY GENERATION PCPUS VCPUS [MS]"),
    };
    let steady = Steady { size, time: Span::from_ms(ms.into()) };
    vcpulab_sched::with(policy, generation, &Params::new(), size.pcpus, steady)
        .expect("a policy and one of its generations");
}
