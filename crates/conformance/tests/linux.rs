//! Recordings of Linux kernels, replayed step by step: no more decisions differ than each says.

mod recorded;

use recorded::{BUNDLED, read};
use vcpulab_conformance::linux::{Recording, judged};
use vcpulab_sched::linux::{KernelFacts, KernelRelease};

#[test]
fn no_more_decisions_differ_than_each_recording_says() {
    for name in BUNDLED {
        let recording = read(name);
        let judged = judged(&recording).expect("it is of one CPU");
        assert_eq!(Some(judged.outcome.differing), recording.expected, "{name}: {}", judged.outcome);
        assert!(judged.passed && judged.expected);
    }
}

#[test]
fn under_another_scheduler_a_recording_fails() {
    let mut recording = read("6.1-cfs-sleepers");
    recording.setup.tunables = read("6.12-eevdf-sleepers").setup.tunables;
    recording.expected = None;
    let judged = judged(&recording).expect("it is of one CPU");
    assert!(!judged.passed && !judged.expected, "{}", judged.outcome);
    assert_eq!(judged.scheduler, "linux-eevdf 6.12");
}

/// Rules of another release whose free run would be far off fail the replay, too.
#[test]
fn under_the_rules_of_another_release_a_recording_fails() {
    let cases = [
        ("6.12-eevdf-nested", "7.1"),
        ("6.18-eevdf-quota40", "6.17"),
        ("7.1-eevdf-nested", "7.0"),
        ("7.1-eevdf-nested", "7.3"),
        ("7.3-eevdf-nested", "7.2"),
        ("7.3-eevdf-quota40", "6.12"),
    ];
    for (name, release) in cases {
        let mut recording = read(name);
        recording.setup.tunables.kernel =
            KernelFacts { release: KernelRelease::of(release), ..KernelFacts::default() };
        recording.expected = None;
        let judged = judged(&recording).expect("it is of one CPU");
        assert!(!judged.passed, "{name} under {release}: {}", judged.outcome);
    }
}

#[test]
fn decisions_of_5_10_follow_its_own_rules() {
    let judge = |recording: &Recording| {
        let judged = judged(recording).expect("it is of one CPU");
        (judged.scheduler, judged.outcome.differing)
    };
    assert_eq!(judge(&read("5.10-cfs-quota40")), ("linux-cfs 5.10".to_owned(), 0));
    let mut nested = read("5.10-cfs-nested");
    assert_eq!(judge(&nested), ("linux-cfs 5.10".to_owned(), 0));
    // Later kernels let the running thread stay a buddy when a decision chooses it again.
    nested.setup.tunables.kernel.release = KernelRelease::of("6.1");
    assert_eq!(judge(&nested), ("linux-cfs 6.1".to_owned(), 3));
}
