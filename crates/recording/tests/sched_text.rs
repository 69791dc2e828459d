//! Text of perf and ftrace.

mod support;

use proptest::prelude::*;
use support::{FTRACE, PERF, RepeatedText, SHORT};
use vcpulab_recording::{Format, Options, ReadError, Recording, Report, Threads};

fn vcpus() -> Threads {
    [(2350, (2345, 0)), (2351, (2345, 1))].into()
}

fn read(text: &[u8], threads: Threads) -> Result<Report, ReadError> {
    let mut recording =
        Recording::new(Format::SchedText, Options { threads, cpu_mhz: None, window_ns: None })?;
    recording.feed(text, |_| ())?;
    recording.finish(|_| ())
}

#[test]
fn perf_and_ftrace_tell_the_same() {
    for (text, began) in [(PERF, 250_000_000), (SHORT, 250_000_000), (FTRACE, 250_004_000)] {
        let report = read(text.as_bytes(), vcpus()).expect("it is such text");
        let summary = &report.summary;
        assert_eq!(summary.span_ns, 254_110_000 - began);
        let [zero, one] = &summary.vcpus[..] else { panic!("two vCPUs: {summary:?}") };
        assert_eq!((zero.domain, zero.vcpu, zero.running_ns, zero.preempted), (2345, 0, 2_000_000, 1));
        assert_eq!((zero.wakes, zero.executions, zero.wakes_to_idle), (1, 2, 0));
        assert_eq!(zero.wake_latency.mean_ns, (250_010_000 - began) as f64);
        assert_eq!((one.running_ns, one.blocked_ns), (2_000_000, 1_100_000));
        let [pcpu] = &summary.pcpus[..] else { panic!("one pCPU") };
        assert_eq!((pcpu.pcpu, pcpu.busy_ns, pcpu.host_ns, pcpu.switches), (3, 4_000_000, 100_000, 5));
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}

#[test]
fn threads_that_look_like_vcpus_are_found() {
    let report = read(PERF.as_bytes(), Threads::new()).expect("it is such text");
    let found: Vec<_> =
        report.threads.iter().map(|thread| (thread.thread, thread.process, thread.vcpu)).collect();
    assert_eq!(found, [(2350, Some(2345), 0), (2351, Some(2345), 1)]);
    assert!(report.notes.iter().any(|note| note.what == "no vCPU that runs, waits or blocks"));
    assert!(report.summary.vcpus.is_empty());
}

#[test]
fn lost_events_make_the_time_unknown() {
    let lost = FTRACE.replace("       CPU 1/KVM-2351", "CPU:3 [LOST 12 EVENTS]\n       CPU 1/KVM-2351");
    let report = read(lost.as_bytes(), vcpus()).expect("it is such text");
    assert_eq!((report.summary.lost_records, report.summary.gaps), (12, 1));
    assert_eq!(report.summary.pcpus[0].unknown_ns, 2_000_000);
}

#[test]
fn what_was_not_recorded_is_noted() {
    let only = |event: &str| PERF.lines().filter(|line| line.contains(event)).collect::<Vec<_>>().join("\n");
    for (event, missing) in
        [("sched_wak", "no sched_switch"), ("sched_switch", "no sched_wakeup nor sched_waking")]
    {
        let report = read(only(event).as_bytes(), vcpus()).expect("it is such text");
        let notes: Vec<_> = report.notes.iter().map(|note| note.what).collect();
        assert_eq!(notes, [missing]);
    }
}

#[test]
fn what_is_not_understood_is_noted_with_its_line() {
    let text = format!("{PERF}garbage [x] sched_switch: nothing\n{}\n", "y".repeat(100_000));
    let report = read(text.as_bytes(), vcpus()).expect("it is such text");
    let notes: Vec<_> = report.notes.iter().map(|note| (note.what, note.found.as_str())).collect();
    assert_eq!(
        notes,
        [
            ("lines of the scheduler not understood", "garbage [x] sched_switch: nothing"),
            ("overlong lines", "more than 4096 bytes"),
        ]
    );
}

#[test]
fn other_text_is_refused() {
    assert_eq!(read(b"", vcpus()).err(), Some(ReadError::Empty));
    let error = read(b"Name ID\nDomain-0 0\n", vcpus()).expect_err("it is a listing").to_string();
    assert!(error.contains("none of 2 lines") && error.contains("Name ID"), "{error}");
}

#[test]
fn text_cut_anywhere_or_in_pieces_is_read() {
    for cut in 1..PERF.len() {
        let _ = read(&PERF.as_bytes()[..cut], vcpus());
    }
    let whole = serde_json::to_string(&read(PERF.as_bytes(), vcpus()).expect("it is such text"));
    let mut recording =
        Recording::new(Format::SchedText, Options { threads: vcpus(), cpu_mhz: None, window_ns: None })
            .expect("allowed");
    for byte in PERF.as_bytes() {
        recording.feed(&[*byte], |_| ()).expect("text is fed without errors");
    }
    let pieces = serde_json::to_string(&recording.finish(|_| ()).expect("it is such text"));
    assert_eq!(whole.expect("JSON"), pieces.expect("JSON"));
}

/// A text is fed line by line while it is made, so what is measured is what the reader holds.
#[test]
fn a_long_text_takes_no_more_memory() {
    let peak = |text, repeats| {
        let mut bytes = 0;
        let allocated = allocation_counter::measure(|| {
            let options = Options { threads: vcpus(), ..Options::default() };
            let mut recording = Recording::new(Format::SchedText, options).expect("allowed");
            for piece in RepeatedText::of(text).take(repeats) {
                bytes += piece.len();
                recording.feed(piece.as_bytes(), |_| ()).expect("text is fed without errors");
            }
            recording.finish(|_| ()).expect("it is such text");
        });
        (bytes, allocated.bytes_max)
    };
    for text in [PERF, SHORT, FTRACE] {
        let (_, short) = peak(text, 100);
        let (bytes, long) = peak(text, 20_000);
        assert!(bytes > 10 << 20);
        assert!(long <= short + (1 << 12), "{long} bytes for {bytes}, {short} for a 200th");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_break_it(changes in prop::collection::vec((0..PERF.len(), any::<u8>()), 1..30)) {
        let mut text = PERF.as_bytes().to_vec();
        for (at, byte) in changes {
            text[at] = byte;
        }
        if let Ok(report) = read(&text, vcpus()) {
            for vcpu in &report.summary.vcpus {
                let all = vcpu.running_ns + vcpu.runnable_ns + vcpu.blocked_ns + vcpu.offline_ns + vcpu.unknown_ns;
                prop_assert_eq!(all, report.summary.span_ns);
            }
        }
    }
}
