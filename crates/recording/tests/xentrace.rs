//! Traces of Xen: what is made of them, and of what is wrong with them.

mod support;

use proptest::prelude::*;
use support::{CREDIT, CREDIT2, Maker, Repeated, WINDOW, crowd, layout};
use vcpulab_recording::{Event, Format, Kind, Options, ReadError, Recording, Report, Who};

const GHZ: Options =
    Options { cpu_mhz: Some(1000.0), threads: std::collections::BTreeMap::new(), window_ns: None };

fn read(bytes: &[u8], options: Options) -> Result<Report, ReadError> {
    let mut recording = Recording::new(Format::Xentrace, options)?;
    recording.feed(bytes, |_| ())?;
    recording.finish(|_| ())
}

fn at_1_ghz(bytes: &[u8]) -> Report {
    read(bytes, GHZ).expect("it is a trace")
}

fn notes(report: &Report) -> Vec<&str> {
    report.notes.iter().map(|note| note.what).collect()
}

/// All time of vCPUs and pCPUs is accounted for, once.
fn accounted(report: &Report) {
    let span = report.summary.span_ns;
    for v in &report.summary.vcpus {
        let all = v.running_ns + v.runnable_ns + v.blocked_ns + v.offline_ns + v.unknown_ns;
        assert_eq!(all, span, "{v:?}");
        assert!(v.wakes_ran_next + v.wakes_ran_later + v.wakes_ran_elsewhere <= v.wakes, "{v:?}");
    }
    for p in &report.summary.pcpus {
        assert_eq!(p.busy_ns + p.idle_ns + p.host_ns + p.switching_ns + p.unknown_ns, span, "{p:?}");
    }
}

#[test]
fn a_small_trace_is_counted_as_by_hand() {
    // Domain 1 runs from the start, domain 2 wakes at 2 ms, takes over, blocks at 5 ms.
    let trace = Maker::default()
        .window(0)
        .record(0x2_8005, 1_000_000, &[1, 0])
        .change(3_000_000, 2, 2, 1)
        .change(3_500_000, 1, 0, 1)
        .change(3_500_500, 2, 1, 0)
        .change(6_000_500, 2, 0, 2)
        .change(6_001_000, 1, 1, 0)
        .change(11_000_000, 1, 0, 1)
        .done();
    let report = at_1_ghz(&trace);
    accounted(&report);
    let summary = &report.summary;
    assert_eq!(summary.span_ns, 10_000_000);
    let [one, two] = &summary.vcpus[..] else { panic!("two vCPUs: {summary:?}") };
    assert_eq!((one.running_ns, one.runnable_ns, one.preempted, one.yields), (7_499_000, 2_501_000, 2, 1));
    assert_eq!((two.running_ns, two.runnable_ns, two.blocked_ns), (2_500_000, 500_500, 6_999_500));
    assert_eq!((two.wakes, two.wakes_ran_next, two.executions), (1, 1, 1));
    assert_eq!((two.wake_latency.count, two.wake_latency.mean_ns), (1, 500_500.0));
    assert_eq!(two.burst.mean_ns, 2_500_000.0);
    let [pcpu] = &summary.pcpus[..] else { panic!("one pCPU: {summary:?}") };
    assert_eq!((pcpu.busy_ns, pcpu.switching_ns, pcpu.unknown_ns, pcpu.switches), (9_999_000, 1000, 0, 2));
    assert_eq!(summary.wakers.len(), 1);
    // Who runs is not known before the first switch.
    assert_eq!((summary.wakers[0].waker, summary.wakers[0].woken), (None, (2, 0)));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn the_counter_is_calibrated_by_the_execution_times_that_xen_measured() {
    for trace in [CREDIT, CREDIT2] {
        let report = read(trace, Options::default()).expect("it is a trace");
        let mhz = report.clock.mhz.expect("there are executions");
        assert!((mhz - 1000.0).abs() < 0.5, "{mhz}");
        accounted(&report);
        assert!(report.notes.is_empty(), "{:?}", report.notes);
    }
}

#[test]
fn a_wrong_frequency_is_noted() {
    let report =
        read(CREDIT, Options { cpu_mhz: Some(2000.0), ..Options::default() }).expect("it is a trace");
    assert_eq!(notes(&report), ["a frequency that does not fit"]);
}

#[test]
fn without_execution_times_the_frequency_must_be_given() {
    let trace = Maker::default().window(0).change(0, 1, 1, 0).change(1_000_000, 1, 0, 1).done();
    assert_eq!(read(&trace, Options::default()).err(), Some(ReadError::NoFrequency));
    assert_eq!(at_1_ghz(&trace).summary.span_ns, 1_000_000);
    assert!(matches!(read(&trace, Options { cpu_mhz: Some(f64::NAN), ..GHZ }), Err(ReadError::Mhz(_))));
}

#[test]
fn what_is_no_trace_is_refused_with_a_hint() {
    assert_eq!(read(&[], GHZ).err(), Some(ReadError::Empty));
    assert_eq!(read(&[3, 0xf0], GHZ).err(), Some(ReadError::Empty));
    let big_endian: Vec<u8> = CREDIT.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
    let told = |bytes: &[u8]| read(bytes, GHZ).expect_err("it is no trace").to_string();
    assert!(told(&big_endian).contains("big-endian"));
    assert!(told(b"\xfd7zXZ\0").contains("xz"));
    assert!(told(b"Name   ID").contains("allowed: 0x2001f003"));
}

#[test]
fn cut_anywhere_it_is_read_up_to_there() {
    let trace = Maker::default()
        .window(0)
        .change(0, 1, 1, 0)
        .record(0x2_8011, 500, &[1, 0, 500, 1000])
        .window(1)
        .change(200, 2, 1, 0)
        .change(900, 2, 0, 2)
        .done();
    let second = trace.len() - (12 + 2 * 16);
    for cut in 12..trace.len() {
        let report = at_1_ghz(&trace[..cut]);
        accounted(&report);
        // Between windows nothing tells that more should follow.
        let noted = notes(&report).contains(&"a window without its end");
        assert_eq!(noted, cut != second, "cut at {cut}: {:?}", report.notes);
    }
    for cut in 0..4096 {
        if let Ok(report) = read(&CREDIT[..cut], GHZ) {
            accounted(&report);
        }
    }
}

#[test]
fn in_whatever_pieces_it_comes_it_is_the_same() {
    let as_json = |report: &Report| serde_json::to_string(report).expect("a report is JSON");
    let whole = as_json(&read(CREDIT, Options::default()).expect("it is a trace"));
    for size in [1, 3, 7, 40, 41, 1000] {
        let mut recording =
            Recording::new(Format::Xentrace, Options::default()).expect("options are allowed");
        for piece in CREDIT.chunks(size) {
            recording.feed(piece, |_| ()).expect("it is a trace");
        }
        let report = recording.finish(|_| ()).expect("it is a trace");
        assert_eq!(as_json(&report), whole, "in pieces of {size}");
    }
}

#[test]
fn pcpus_are_put_in_order_of_time() {
    let bytes: Vec<u8> = crowd(5, 20).take(20).flatten().collect();
    let (mut last, mut seen) = (0, [0; 5]);
    let mut each = |event: &Event| {
        assert!(event.time_ns >= last, "{event:?}");
        last = event.time_ns;
        seen[event.pcpu as usize] += 1;
    };
    let mut recording = Recording::new(Format::Xentrace, GHZ).expect("options are allowed");
    recording.feed(&bytes, &mut each).expect("it is a trace");
    let report = recording.finish(&mut each).expect("it is a trace");
    assert_eq!(seen, [601, 600, 600, 600, 600]);
    accounted(&report);
    assert!(report.notes.is_empty(), "{:?}", report.notes);
    for pcpu in &report.summary.pcpus {
        assert!(pcpu.busy_ns > report.summary.span_ns * 99 / 100, "{pcpu:?}");
    }
}

#[test]
fn one_pcpu_of_many_has_rounds_too() {
    let mut trace = Maker::default();
    for step in 0..100u64 {
        trace = trace.window(7).change(step * 1000, 1, 1, 0).change(step * 1000 + 500, 1, 0, 1);
    }
    let mut seen = 0;
    let mut recording = Recording::new(Format::Xentrace, GHZ).expect("options are allowed");
    recording.feed(&trace.done(), |_| seen += 1).expect("it is a trace");
    assert!(seen >= 190, "{seen} events before the end");
}

#[test]
fn a_wake_up_on_another_pcpu_counts_once_and_moves() {
    let trace = Maker::default()
        .window(0)
        .change(1000, 1, 1, 0)
        .change(2000, 1, 0, 2)
        .record(0x2_1101, 2500, &[0x7fff_0000])
        .window(1)
        .record(0x2_1101, 1500, &[0x7fff_0001])
        .change(4000, 1, 2, 1)
        .record(0x2_1011, 4500, &[0x7fff_0001])
        .change(5000, 1, 1, 0)
        .done();
    let report = at_1_ghz(&trace);
    let [vcpu] = &report.summary.vcpus[..] else { panic!("one vCPU") };
    assert_eq!((vcpu.wakes_ran_elsewhere, vcpu.wakes_to_idle, vcpu.migrations), (1, 1, 1));
    assert_eq!(vcpu.wake_latency.mean_ns, 1000.0);
    assert_eq!(report.summary.pcpus[1].idle_ns, 3000);
}

#[test]
fn lost_records_make_the_time_unknown_and_no_latency() {
    let lost = |first: u64| [17, 0x7fff, first as u32, (first >> 32) as u32];
    let trace = Maker::default()
        .window(0)
        .change(0, 1, 1, 0)
        .change(1000, 2, 2, 1)
        .record(0x1_f001, 9000, &lost(3000))
        .change(10_000, 2, 1, 0)
        .done();
    let report = at_1_ghz(&trace);
    accounted(&report);
    assert_eq!((report.summary.lost_records, report.summary.gaps), (17, 1));
    assert_eq!(notes(&report), ["gaps"]);
    let [one, two] = &report.summary.vcpus[..] else { panic!("two vCPUs") };
    assert_eq!((one.running_ns, one.unknown_ns), (3000, 7000));
    assert_eq!((two.runnable_ns, two.unknown_ns, two.wake_latency.count), (2000, 7000, 0));
    assert_eq!(report.summary.pcpus[0].unknown_ns, 7000);
}

#[test]
fn a_damaged_record_costs_its_window_and_no_more() {
    let mut trace: Vec<u8> = Repeated::of(CREDIT).take(4).flatten().collect();
    let good = at_1_ghz(&trace).summary.vcpus.iter().map(|v| v.executions).sum::<u64>();
    let (at, ..) = layout(&trace).nth(500).expect("it is longer");
    trace[at..at + 4].copy_from_slice(&0x7000_0000u32.to_le_bytes());
    let report = at_1_ghz(&trace);
    accounted(&report);
    assert_eq!(notes(&report), ["contradictions", "damaged records", "gaps"]);
    let left = report.summary.vcpus.iter().map(|v| v.executions).sum::<u64>();
    assert!(left < good && left > good * 8 / 10, "{left} of {good}");
}

#[test]
fn clocks_that_jump_are_noted_and_taken_out() {
    let mut trace = Maker::default().window(0);
    let mut domain = 1;
    for step in 0..100u64 {
        // After half of it the counter begins anew.
        let at = if step < 50 { (1 << 45) + step * 1000 } else { step * 1000 };
        trace = trace.change(at, domain, 0, 1).change(at + 10, 3 - domain, 1, 0);
        domain = 3 - domain;
    }
    let report = at_1_ghz(&trace.done());
    accounted(&report);
    assert_eq!(notes(&report), ["clocks that jump", "times out of line"]);
    assert!((97_000..=99_010).contains(&report.summary.span_ns), "{}", report.summary.span_ns);
}

#[test]
fn unknown_events_are_counted_and_noted() {
    let trace = Maker::default()
        .window(0)
        .record(0x2_fabc, 100, &[1, 2, 3])
        .record(0x2_1041, 150, &[1])
        .record(0x8_1002, 200, &[])
        .record(0x2_2a42, 250, &[1, 2, 3, 4, 5, 6, 7])
        .change(300, 1, 1, 0)
        .done();
    let report = at_1_ghz(&trace);
    let counted =
        |event: &str| report.records.iter().find(|known| known.event == event).map(|known| known.name);
    assert_eq!(counted("0x2fabc"), Some(None));
    assert_eq!(counted("0x81002"), Some(Some("another class")));
    assert_eq!(counted("0x22a42"), Some(Some("null's own")));
    let unknown = report.notes.iter().find(|note| note.what == "unknown scheduler records");
    assert_eq!(unknown.map(|note| note.count), Some(2));
}

#[test]
fn vcpus_that_cannot_be_are_passed_over_and_noted() {
    let trace = Maker::default()
        .window(0)
        .change(100, 1, 1, 0)
        .record(0x2_8005, 200, &[1, 1 << 31])
        .record(0x2_1011, 300, &[0xfff0_0000])
        .record(0x2_8001, 400, &[0x7ff1])
        .done();
    let report = at_1_ghz(&trace);
    accounted(&report);
    let [note] = &report.notes[..] else { panic!("one note: {:?}", report.notes) };
    assert_eq!((note.what, note.count), ("records of impossible vCPUs", 3));
    assert_eq!(note.found, "vCPU 2147483648 of domain 1; allowed: 0 to 8191 of 0 to 32751");
    assert_eq!((report.summary.vcpus.len(), report.summary.domains.len()), (1, 1));
}

#[test]
fn more_vcpus_than_can_be_told_apart_are_noted() {
    let mut trace = Maker::default().window(0);
    for domain in 0..5000 {
        trace = trace.change(u64::from(domain) * 100, domain, 1, 0).change(
            u64::from(domain) * 100 + 50,
            domain,
            0,
            1,
        );
    }
    let report = at_1_ghz(&trace.done());
    accounted(&report);
    assert_eq!(report.summary.vcpus.len(), vcpulab_recording::VCPUS_MAX);
    assert!(notes(&report).contains(&"records of more vCPUs than are counted"));
}

#[test]
fn memory_does_not_grow_with_the_length() {
    let peak = |repeats: usize| {
        let mut bytes = 0;
        let allocated = allocation_counter::measure(|| {
            let mut recording =
                Recording::new(Format::Xentrace, Options::default()).expect("options are allowed");
            for piece in Repeated::of(CREDIT).take(repeats) {
                bytes += piece.len();
                recording.feed(&piece, |_| ()).expect("it is a trace");
            }
            recording.finish(|_| ()).expect("it is a trace");
        });
        (bytes, allocated.bytes_max)
    };
    let (_, short) = peak(20);
    let (bytes, long) = peak(1000);
    assert!(bytes > 50 << 20);
    assert!(long <= short + (1 << 16), "{long} bytes for {bytes}, {short} for a fiftieth");
}

#[test]
fn one_round_without_end_is_bounded_too() {
    let mut trace = Maker::default().window(0);
    for step in 0..300_000u64 {
        trace = trace.change(step * 100, 1, 1, 0).change(step * 100 + 50, 1, 0, 1);
    }
    let trace = trace.done();
    // No window of another pCPU, no other round: windows that never end.
    let mut forever = trace.clone();
    forever[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    for _ in 0..2 {
        forever.extend_from_slice(&trace[12..]);
    }
    let allocated = allocation_counter::measure(|| {
        let report = at_1_ghz(&forever);
        assert!(notes(&report).contains(&"long rounds"));
    });
    assert!(allocated.bytes_max < 128 << 20, "{} bytes", allocated.bytes_max);
}

#[test]
fn events_say_what_happened() {
    let trace =
        Maker::default().window(0).record(0x2_8001, 5, &[9]).change(6, 9, 3, 1).change(7, 9, 1, 0).done();
    let mut kinds = Vec::new();
    let mut recording = Recording::new(Format::Xentrace, GHZ).expect("options are allowed");
    recording.feed(&trace, |_| ()).expect("it is a trace");
    recording.finish(|event| kinds.push((event.who, event.kind))).expect("it is a trace");
    let nine = Who::Vcpu { domain: 9, vcpu: 0 };
    assert_eq!(kinds[0], (nine, Kind::Added));
    assert!(matches!(kinds[1], (_, Kind::Wake(Some(_)))));
    assert!(matches!(kinds[2], (_, Kind::Run(Some(_)))));
    assert_eq!(kinds[3].1, Kind::End);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_never_break_it(
        flips in prop::collection::vec((0usize..8 * 20_000, any::<bool>()), 1..20),
        credit in any::<bool>(),
    ) {
        let mut trace = if credit { CREDIT } else { CREDIT2 }[..20_000].to_vec();
        for (bit, _) in flips {
            trace[bit / 8] ^= 1 << (bit % 8);
        }
        for options in [GHZ, Options::default()] {
            if let Ok(report) = read(&trace, options) {
                accounted(&report);
            }
        }
    }

    #[test]
    fn any_words_after_a_window_never_break_it(words in prop::collection::vec(any::<u32>(), 0..400)) {
        let mut trace = Maker::default().window(0).done();
        trace[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        // Most words are of the scheduler's class, or windows.
        let shape = |word: u32| match word % 4 {
            0 => WINDOW,
            1 => word & 0xf000_0fff | 0x2_1000,
            2 => word & 0xf000_0fff | 0x2_8000,
            _ => word & 0xffff,
        };
        trace.extend(words.into_iter().flat_map(|word| shape(word).to_le_bytes()));
        if let Ok(report) = read(&trace, GHZ) {
            accounted(&report);
        }
    }
}
