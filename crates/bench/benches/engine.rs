//! Simulated milliseconds under each policy: `cargo bench -p vcpulab-bench --features bench`.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vcpulab_bench::{SIZES, Size, host};
use vcpulab_host::{Params, Scheduler, Span, Time};
use vcpulab_sched::Runner;

struct Bench<'a> {
    criterion: &'a mut Criterion,
    name: String,
    size: Size,
}

impl Runner for Bench<'_> {
    type Out = ();

    fn run<S: Scheduler>(self, scheduler: S) {
        let mut host = host(self.size, scheduler);
        let mut end = Time::from_ns(200_000_000);
        host.run_until(end).expect("the policy keeps the rules");
        let before = host.context().work_done().schedule_calls;
        end += Span::from_ms(200);
        host.run_until(end).expect("the policy keeps the rules");
        let per_chunk = (host.context().work_done().schedule_calls - before) / 20;
        let mut group = self.criterion.benchmark_group("schedule calls");
        group.throughput(Throughput::Elements(per_chunk));
        group.bench_function(self.name, |b| {
            b.iter(|| {
                end += Span::from_ms(10);
                host.run_until(end).expect("the policy keeps the rules");
            });
        });
        group.finish();
    }
}

fn decisions(criterion: &mut Criterion) {
    for size in SIZES {
        for policy in vcpulab_sched::policies() {
            for generation in policy.generations {
                let name = format!("{}-{}/{}x{}", policy.name, generation.name, size.pcpus, size.vcpus);
                let bench = Bench { criterion, name, size };
                vcpulab_sched::with(policy.name, generation.name, &Params::new(), size.pcpus, bench);
            }
        }
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
