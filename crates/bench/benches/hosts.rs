//! Whole runs, all parts of them: `cargo bench -p vcpulab-bench --features bench --bench hosts`.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use criterion::{Criterion, criterion_group, criterion_main};
use vcpulab_bench::whole;

fn hosts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("whole runs");
    group.sample_size(20);
    for whole in whole::all() {
        let text = whole.text(whole.simulated_ms);
        group.bench_function(whole.doc, |b| b.iter(|| whole::run_in_parts(&text, &|_| {})));
    }
    group.finish();
}

criterion_group!(benches, hosts);
criterion_main!(benches);
