//! Recordings of Linux kernels, replayed step by step: no more decisions differ than each says.

mod recorded;

use recorded::{BUNDLED, read};
use vcpulab_conformance::linux::judged;

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
