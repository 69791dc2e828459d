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
fn the_rate_of_ticks_is_told_by_their_timer_or_by_charges() {
    let rate = |event: &str, period_ms: u32| {
        let line = |number: u32| {
            let at = 1_000 + number * period_ms;
            format!(" a-7 (7) [000] d.h1. {}.{:03}: {event}\n", at / 1000, at % 1000)
        };
        let lines: String = (0..20).map(line).collect();
        let text = format!("{PERF}{lines}");
        read(text.as_bytes(), vcpus()).expect("it is such text").hz
    };
    assert_eq!(rate("hrtimer_expire_entry: hrtimer=f8 function=tick_sched_timer now=5", 4), Some(250));
    assert_eq!(rate("hrtimer_expire_entry: hrtimer=f8 function=hrtimer_wakeup now=5", 4), None);
    assert_eq!(rate("sched_stat_runtime: comm=a pid=7 runtime=5 [ns]", 1), Some(1000));
    assert_eq!(rate("sched_stat_runtime: comm=a pid=7 runtime=5 [ns]", 7), None);
}

#[test]
fn threads_that_look_like_vcpus_are_found() {
    let report = read(PERF.as_bytes(), Threads::new()).expect("it is such text");
    let found: Vec<_> =
        report.threads.iter().map(|thread| (thread.thread, thread.process, thread.vcpu)).collect();
    assert_eq!(found, [(77, Some(77), None), (2350, Some(2345), Some(0)), (2351, Some(2345), Some(1))]);
    let ran: Vec<_> = report.threads.iter().map(|thread| (thread.running_ns, thread.priority)).collect();
    assert_eq!(ran, [(100_000, Some(120)), (2_000_000, Some(120)), (2_000_000, Some(120))]);
    let told = read(PERF.as_bytes(), vcpus()).expect("it is such text");
    let json = |report: &Report| serde_json::to_string(report).expect("it can be written");
    assert_eq!(json(&report), json(&told), "as if somebody had said which they are");
    // Two threads of a process that are called alike cannot both be its vCPU 0.
    let twice = PERF.replace("CPU 1/KVM", "CPU 0/KVM");
    let report = read(twice.as_bytes(), Threads::new()).expect("it is such text");
    let found: Vec<_> = report.summary.vcpus.iter().map(|vcpu| (vcpu.domain, vcpu.vcpu)).collect();
    assert_eq!(found, [(2350, 0), (2351, 0)]);
    let none = PERF.replace("/KVM", "/TCG");
    let report = read(none.as_bytes(), Threads::new()).expect("it is such text");
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

/// Of a KVM host (Linux 6.1), with `perf script --guest-code -F +pid`: an interrupt while thread 133's guest runs wakes 97.
const REAL: &str = "\
       CPU 0/KVM    91/97    [000]    35.212027:       sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=97 prev_prio=120 prev_state=S ==> next_comm=CPU 0/KVM next_pid=115 next_prio=120
       CPU 0/KVM   109/115   [000]    35.212071: sched:sched_stat_runtime: comm=CPU 0/KVM pid=115 runtime=49656 [ns] vruntime=26184901619 [ns]
       CPU 0/KVM   109/115   [000]    35.212076:       sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=115 prev_prio=120 prev_state=R+ ==> next_comm=CPU 0/KVM next_pid=133 next_prio=120
     [guest/127]   127/133   [000]    35.215105:       sched:sched_waking: comm=CPU 0/KVM pid=97 prio=120 target_cpu=000
     [guest/127]   127/133   [000]    35.215110: sched:sched_stat_runtime: comm=CPU 0/KVM pid=133 runtime=2452476 [ns] vruntime=26188071680 [ns]
       CPU 0/KVM   127/133   [000]    35.215118:       sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=133 prev_prio=120 prev_state=R ==> next_comm=CPU 0/KVM next_pid=97 next_prio=120
       CPU 0/KVM    91/97    [000]    35.216663:       sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=97 prev_prio=120 prev_state=R ==> next_comm=rcu_preempt next_pid=15 next_prio=120
";

fn three_vms() -> Threads {
    [(97, (91, 0)), (115, (109, 0)), (133, (127, 0))].into()
}

#[test]
fn perf_tells_who_is_woken_while_a_guest_runs() {
    let report = read(REAL.as_bytes(), three_vms()).expect("it is such text");
    assert!(report.notes.is_empty(), "{:?}", report.notes);
    let woken = &report.summary.vcpus[0];
    assert_eq!((woken.domain, woken.wakes, woken.wake_latency.mean_ns), (91, 1, 13_000.0));
    assert_eq!((woken.blocked_ns, woken.running_ns, woken.unknown_ns), (3_078_000, 1_545_000, 0));
    assert_eq!(
        report.records.last().map(|lines| (lines.event.as_str(), lines.count)),
        Some(("other lines", 2))
    );
}

/// perf without `--guest-code` leaves such lines out; a vCPU seemed to be blocked until it ran.
#[test]
fn wake_ups_that_perf_left_out_make_the_time_unknown() {
    let without: String =
        REAL.lines().filter(|line| !line.contains("[guest/")).map(|line| format!("{line}\n")).collect();
    let report = read(without.as_bytes(), three_vms()).expect("it is such text");
    let notes: Vec<_> =
        report.notes.iter().map(|note| (note.what, note.count, note.found.as_str())).collect();
    assert_eq!(
        notes,
        [
            ("contradictions", 1, "seen over the whole recording"),
            ("no sched_wakeup nor sched_waking", 1, "seen over the whole recording"),
            ("wake-ups that are missing", 1, "CPU 0/KVM, thread 97, runs after blocking"),
        ]
    );
    let woken = &report.summary.vcpus[0];
    assert_eq!((woken.wakes, woken.wake_latency.count, woken.block.count), (0, 0, 0));
    assert_eq!((woken.blocked_ns, woken.running_ns, woken.unknown_ns), (0, 1_545_000, 3_091_000));
}

/// Awake before the gap, it may have blocked in it.
#[test]
fn after_a_gap_no_wake_up_is_taken_for_a_repetition() {
    let lines: Vec<&str> = REAL.lines().collect();
    let text = format!(
        "{}\nCPU:0 [LOST 3 EVENTS]\n{}\n{}\n",
        lines[5],
        lines[3].replace("35.215105", "35.217105"),
        lines[5].replace("35.215118", "35.217118")
    );
    let report = read(text.as_bytes(), three_vms()).expect("it is such text");
    let woken = &report.summary.vcpus[0];
    assert_eq!((woken.wakes, woken.executions), (1, 2));
    assert_eq!(woken.wake_latency.mean_ns, 13_000.0);
}

#[test]
fn a_new_thread_is_woken_too() {
    let text = REAL.replace("sched_waking", "sched_wakeup_new");
    let report = read(text.as_bytes(), three_vms()).expect("it is such text");
    assert_eq!(report.summary.vcpus[0].wakes, 1);
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
    assert!(error.contains("none of 2 lines") && error.contains("line 1: `Name ID`"), "{error}");
}

/// `trace-cmd report` pads the names of events to a column.
#[test]
fn blanks_after_the_events_colon_mean_nothing() {
    let json = |text: &str| {
        let report = read(text.as_bytes(), vcpus()).expect("it is such text");
        serde_json::to_string(&(report.summary, report.threads, report.notes)).expect("it can be written")
    };
    for text in [PERF, SHORT, FTRACE] {
        let mut padded = text.to_owned();
        for event in ["sched_switch:", "sched_wakeup:", "sched_waking:"] {
            padded = padded.replace(event, &format!("{event:22}"));
        }
        assert_ne!(padded, text);
        assert_eq!(json(&padded), json(text));
    }
}

#[test]
fn an_error_shows_a_line_of_the_scheduler_and_how_to_record_it_otherwise() {
    let head = "# tracer: nop\n#\n a-7 [000] d..2. 5: other: x\n";
    let fields = "prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120";
    for (before, hint) in [
        (" a-7 [000] d..2. 15076452736:", "\n  hint: echo mono > /sys/kernel/tracing/trace_clock"),
        (" a-7 0d..2. 1234us!:", "\n  hint: echo 0 > /sys/kernel/tracing/options/latency-format"),
        (" a-7 0d..2. 1234us :", "\n  hint: echo 0 > /sys/kernel/tracing/options/latency-format"),
        (" a 7 [000]", "\n  hint: perf script -i perf.data --guest-code --ns -F +pid,+time"),
        (" what is this", ""),
    ] {
        let text = format!("{head}{before} sched_switch: {fields}\n");
        let error = read(text.as_bytes(), vcpus()).expect_err("it is not read").to_string();
        let shown: String = text.lines().last().expect("a line").chars().take(120).collect();
        assert!(
            error.contains("none of 4 lines") && error.contains(&format!("line 4: `{shown}`{hint}")),
            "{error}"
        );
    }
}

/// `perf script --deltatime` prints the time since the line before.
#[test]
fn differences_between_times_are_refused() {
    let mut before = 0;
    let mut differences = String::new();
    let lines: Vec<String> = (0..40u64)
        .map(|n| {
            let at_ns = 7_000_000_000 + n * 1_000_000 + (n % 3) * 1_000;
            let passed_ns = if n == 0 { 0 } else { at_ns - before };
            before = at_ns;
            let rest = "sched:sched_waking: comm=b pid=8 prio=120 target_cpu=000\n";
            differences +=
                &format!(" a 7 [000] {}.{:09}: {rest}", passed_ns / 1_000_000_000, passed_ns % 1_000_000_000);
            format!(" a 7 [000] {}.{:09}: {rest}", at_ns / 1_000_000_000, at_ns % 1_000_000_000)
        })
        .collect();
    assert!(read(lines.concat().as_bytes(), vcpus()).is_ok());
    let error = read(differences.as_bytes(), vcpus()).expect_err("times are differences").to_string();
    assert!(error.contains("--deltatime") && error.contains("hint: perf script"), "{error}");
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

/// A schedule of two pCPUs: at each step one of them switches to a thread that does not run on the other.
struct Schedule {
    lines: Vec<(u32, String)>,
    ran_ns: std::collections::BTreeMap<u32, i64>,
}

fn schedule(steps: &[(usize, u32, u32)]) -> Schedule {
    let mut running = [(0, 0); 2];
    let mut schedule = Schedule { lines: Vec::new(), ran_ns: std::collections::BTreeMap::new() };
    let mut now = 0;
    for &(pcpu, thread, lasts) in steps {
        let to = thread * 10;
        if to != 0 && running.iter().any(|&(current, _)| current == to) || running[pcpu].0 == to {
            continue;
        }
        now += i64::from(lasts);
        let (from, since) = std::mem::replace(&mut running[pcpu], (to, now));
        *schedule.ran_ns.entry(from).or_default() += now - since;
        let line = format!(
            " a {from}/{from} [00{pcpu}] 5.{now:09}: sched:sched_switch: prev_comm=a prev_pid={from} prev_prio=120 \
             prev_state=R ==> next_comm=a next_pid={to} next_prio=120\n"
        );
        schedule.lines.push((from, line));
    }
    for (thread, since) in running {
        *schedule.ran_ns.entry(thread).or_default() += now - since;
    }
    schedule
}

proptest! {
    /// Threads 10 and 20 are vCPUs; records of what thread 30 does next are missing, as with a filter.
    #[test]
    fn nobody_is_charged_for_time_that_no_record_covers(
        steps in prop::collection::vec((0_usize..2, 0_u32..5, 1_u32..5_000_000), 2..60),
        hides in any::<bool>(),
    ) {
        let Schedule { lines, ran_ns } = schedule(&steps);
        let kept: Vec<&str> =
            lines.iter().filter(|(from, _)| !hides || *from != 30).map(|(_, line)| line.as_str()).collect();
        prop_assume!(!kept.is_empty());
        let report = read(kept.concat().as_bytes(), [(10, (1, 0)), (20, (2, 0))].into()).expect("it is such text");
        for thread in &report.threads {
            let truth = ran_ns.get(&thread.thread).copied().unwrap_or_default();
            prop_assert!(thread.running_ns <= truth || thread.thread == 30, "{thread:?}, {truth}");
        }
        for vcpu in &report.summary.vcpus {
            let truth = ran_ns.get(&(vcpu.domain * 10)).copied().unwrap_or_default();
            let sum = vcpu.running_ns + vcpu.runnable_ns + vcpu.blocked_ns + vcpu.offline_ns + vcpu.unknown_ns;
            prop_assert_eq!(sum, report.summary.span_ns);
            prop_assert!(vcpu.running_ns <= truth, "{:?}, {}", vcpu, truth);
            if !hides {
                prop_assert!(vcpu.running_ns == truth, "{:?}, {}", vcpu, truth);
                prop_assert_eq!(report.summary.unrecorded, 0);
            }
        }
        for pcpu in &report.summary.pcpus {
            let sum = pcpu.busy_ns + pcpu.idle_ns + pcpu.host_ns + pcpu.switching_ns + pcpu.unknown_ns;
            prop_assert_eq!(sum, report.summary.span_ns);
        }
    }
}
