//! Memory: in its steady state a run allocates nothing but for a histogram that grows now and then, whatever the policy,
//! statistics on; and domains take little.

use vcpulab_bench::whole::{idle_domains, kept, of_tasks};
use vcpulab_bench::{Size, host};
use vcpulab_host::{Params, Scheduler, Span, Time};
use vcpulab_sched::Runner;

struct CountAllocations;

impl Runner for CountAllocations {
    type Out = u64;

    fn run<S: Scheduler>(self, scheduler: S) -> u64 {
        let mut host = host(Size { pcpus: 4, vcpus: 64, vcpus_each: 2 }, scheduler);
        host.run_until(Time::from_ns(40_000_000_000)).unwrap();
        // Waits of a new length make histograms grow, several at a time where vCPUs have moved.
        let counts = [45, 50, 55].map(|end_s| {
            let until_end = || host.run_until(Time::from_ns(end_s * 1_000_000_000)).unwrap();
            allocation_counter::measure(until_end).count_total
        });
        counts.into_iter().min().expect("there are three")
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
            assert!(count <= 8, "{count} under {} {}", policy.name, generation.name);
        }
    }
}

/// Bytes that each domain holds in a whole run, from the difference between few and many: both more than waits are attributed
/// among, so that those tables, which grow with the square of domains, are in neither.
fn bytes_each(text: fn(u32) -> String) -> i64 {
    const FEW: u32 = 256;
    const MANY: u32 = 512;
    let held = |count| {
        let text = text(count);
        let mut host = None;
        let taken = allocation_counter::measure(|| host = Some(kept(&text, Span::from_ms(2_000))));
        drop(host);
        taken.bytes_current
    };
    // What a process makes once is made with the first.
    held(FEW);
    (held(MANY) - held(FEW)) / i64::from(MANY - FEW)
}

#[test]
fn domains_with_one_vcpu_take_little_memory() {
    let (idle, working) = (bytes_each(idle_domains), bytes_each(of_tasks));
    assert!(idle <= 1_024 && working <= 2_048, "idle: {idle} bytes, working: {working} bytes");
}
