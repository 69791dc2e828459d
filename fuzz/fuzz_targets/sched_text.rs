//! Any bytes as text of perf or ftrace: refused, or read; then all time is accounted for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vcpulab_recording::{Format, Options, Recording, Threads};

fuzz_target!(|bytes: &[u8]| {
    let threads: Threads = [(2350, (1, 0)), (2351, (1, 1))].into();
    let options = Options { threads, ..Options::default() };
    let mut recording = Recording::new(Format::SchedText, options).expect("threads are allowed");
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let fed = recording.feed(head, |_| ()).and_then(|()| recording.feed(tail, |_| ()));
    match fed.and_then(|()| recording.finish(|_| ())) {
        Ok(report) => {
            let span = report.summary.span_ns;
            for v in &report.summary.vcpus {
                let all = v.running_ns + v.runnable_ns + v.blocked_ns + v.offline_ns + v.unknown_ns;
                assert_eq!(all, span, "{v:?}");
            }
            for p in &report.summary.pcpus {
                assert_eq!(p.busy_ns + p.idle_ns + p.host_ns + p.switching_ns + p.unknown_ns, span, "{p:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
