//! Any bytes as a trace of Xen: refused, or read; then all time is accounted for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vcpulab_recording::{Format, Options, Recording, Summary};

/// Every vCPU and every pCPU was at something all the time.
fn check(summary: &Summary) {
    for v in &summary.vcpus {
        let all = v.running_ns + v.runnable_ns + v.blocked_ns + v.offline_ns + v.unknown_ns;
        assert_eq!(all, summary.span_ns, "{v:?}");
    }
    for p in &summary.pcpus {
        assert_eq!(p.busy_ns + p.idle_ns + p.host_ns + p.switching_ns + p.unknown_ns, summary.span_ns, "{p:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let options = Options { cpu_mhz: Some(1000.0), ..Options::default() };
    let mut recording = Recording::new(Format::Xentrace, options).expect("1 GHz is allowed");
    let mut last_ns = 0;
    let mut each = |event: &vcpulab_recording::Event| {
        assert!(event.time_ns >= last_ns);
        last_ns = event.time_ns;
    };
    // In two pieces, cut somewhere.
    let (head, tail) = bytes.split_at(bytes.len() / 3);
    let fed = recording.feed(head, &mut each).and_then(|()| recording.feed(tail, &mut each));
    match fed.and_then(|()| recording.finish(&mut each)) {
        Ok(report) => check(&report.summary),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // Without a given frequency it is found, or missed; neither breaks anything.
    let mut recording = Recording::new(Format::Xentrace, Options::default()).expect("nothing is given");
    if recording.feed(bytes, |_| ()).is_ok() {
        let _ = recording.finish(|_| ());
    }
});
