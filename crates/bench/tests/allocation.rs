//! In its steady state a run allocates nothing, whatever the policy, statistics on, but for a histogram that grows now and then.

use vcpulab_bench::{Size, host};
use vcpulab_host::{Params, Scheduler, Time};
use vcpulab_sched::Runner;

struct CountAllocations;

impl Runner for CountAllocations {
    type Out = u64;

    fn run<S: Scheduler>(self, scheduler: S) -> u64 {
        let mut host = host(Size { pcpus: 4, vcpus: 64, vcpus_each: 2 }, scheduler);
        host.run_until(Time::from_ns(40_000_000_000)).unwrap();
        allocation_counter::measure(|| host.run_until(Time::from_ns(45_000_000_000)).unwrap()).count_total
    }
}

#[test]
fn the_steady_state_allocates_next_to_nothing() {
    for policy in vcpulab_sched::policies() {
        for generation in policy.generations {
            let count =
                vcpulab_sched::with(policy.name, generation.name, &Params::new(), 4, CountAllocations)
                    .unwrap();
            // Some 10,000 dispatches, in 32 domains.
            assert!(count <= 12, "{count} under {} {}", policy.name, generation.name);
        }
    }
}
