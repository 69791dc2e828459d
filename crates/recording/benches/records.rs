//! Records read a second on one core, summary and all: `cargo bench -p vcpulab-recording --features bench`.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use support::{CREDIT, CREDIT2, FTRACE, PERF, Repeated, RepeatedText, SHORT, crowd, switches};
use vcpulab_recording::{Format, Options, Recording};

const CHUNK_BYTES: usize = 1 << 18;
const LINES: usize = 500_000;

fn lines(text: &str) -> Vec<String> {
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn read(format: Format, options: &Options, bytes: &[u8]) {
    let mut recording = Recording::new(format, options.clone()).expect("options are allowed");
    for chunk in bytes.chunks(CHUNK_BYTES) {
        recording.feed(chunk, |_| ()).expect("it is a recording");
    }
    recording.finish(|_| ()).expect("it is a recording");
}

fn records(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("records");
    group.sample_size(10);
    let traces = [
        ("xentrace, credit", Repeated::of(CREDIT).take(300).collect::<Vec<_>>()),
        ("xentrace, credit2", Repeated::of(CREDIT2).take(300).collect()),
        ("xentrace, 64 pCPUs, 256 vCPUs", crowd(64, 256).take(100).collect()),
    ];
    for (name, pieces) in traces {
        let records: usize = pieces.iter().map(|piece| support::records(piece)).sum();
        let bytes = pieces.concat();
        group.throughput(Throughput::Elements(records as u64));
        group.bench_function(name, |b| b.iter(|| read(Format::Xentrace, &Options::default(), &bytes)));
    }
    let (alike, threads) = switches(LINES);
    let repeated = |text| RepeatedText::of(text).flat_map(|piece| lines(&piece)).take(LINES).collect();
    let texts: [(_, String); 4] = [
        ("ftrace's text", alike),
        ("ftrace's short text", repeated(FTRACE)),
        ("perf's text", repeated(PERF)),
        ("perf's short text", repeated(SHORT)),
    ];
    group.throughput(Throughput::Elements(LINES as u64));
    let options = Options { threads, ..Options::default() };
    for (name, text) in texts {
        group.bench_function(name, |b| b.iter(|| read(Format::SchedText, &options, text.as_bytes())));
    }
    group.finish();
}

criterion_group!(benches, records);
criterion_main!(benches);
