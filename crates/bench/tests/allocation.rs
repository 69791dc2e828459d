//! In its steady state a run allocates nothing, whatever the policy, statistics on.

use vcpulab_bench::{Size, host};
use vcpulab_host::{Params, Scheduler, Time};
use vcpulab_sched::Runner;

struct CountAllocations;

impl Runner for CountAllocations {
    type Out = u64;

    fn run<S: Scheduler>(self, scheduler: S) -> u64 {
        let mut host = host(Size { pcpus: 4, vcpus: 64, vcpus_each: 2 }, scheduler);
        host.run_until(Time::from_ns(5_000_000_000)).unwrap();
        allocation_counter::measure(|| host.run_until(Time::from_ns(10_000_000_000)).unwrap()).count_total
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    for policy in vcpulab_sched::policies() {
        for generation in policy.generations {
            let count =
                vcpulab_sched::with(policy.name, generation.name, &Params::new(), 4, CountAllocations)
                    .unwrap();
            assert_eq!(count, 0, "{} {}", policy.name, generation.name);
        }
    }
}
