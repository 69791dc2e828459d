//! Recordings of Linux kernels, replayed step by step: how many decisions differ, and why.

use std::io::Read;
use std::path::Path;

use vcpulab_conformance::linux::{Outcome, Texts, folder, replay_fair, trace};

fn outcome(name: &str) -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux").join(name);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it is there");
    let (experiment, threads, tunables) = (read("experiment.txt"), read("threads.txt"), read("tunables.txt"));
    let packed = std::fs::File::open(folder.join("trace.txt.gz")).expect("it is there");
    let mut events = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut events).expect("it is whole");
    let texts = Texts { experiment: &experiment, threads: &threads, tunables: &tunables, trace: &events };
    let setup = folder::read(&texts).expect("it is understood");
    let lines = trace::read(texts.trace).expect("it is understood");
    replay_fair(&setup, &lines).expect("it is of one CPU")
}

/// Decisions, and those that differ.
#[track_caller]
fn expect(name: &str, decisions: u64, differing: u64) {
    let outcome = outcome(name);
    assert_eq!((outcome.decisions, outcome.differing), (decisions, differing), "{name}: {outcome}");
}

#[test]
fn cfs_decides_as_the_kernel_did() {
    expect("6.1-cfs-weights", 2058, 0);
    expect("6.1-cfs-sleepers", 11948, 0);
}

/// Where groups stand to each other at the beginning is not recorded: they differ until that does not matter any more.
#[test]
fn cfs_with_groups_that_ran_before() {
    expect("6.1-cfs-yield", 3677, 3);
    expect("6.1-cfs-nested", 3883, 240);
}

/// Pools of limited groups depend on the clock by less than the recording tells: the first difference is after 1.3 s.
#[test]
fn cfs_with_a_quota() {
    expect("6.1-cfs-quota40", 3380, 54);
}

/// What kernel threads were ahead or behind at the beginning is not recorded, and is kept as long as they sleep.
#[test]
fn eevdf_decides_as_the_kernel_did() {
    expect("6.12-eevdf-weights", 2059, 4);
    expect("6.12-eevdf-yield", 3933, 6);
    expect("6.12-eevdf-nested", 3792, 6);
}

/// Errors of a microsecond in the time of a wake-up add up, until a near tie falls the other way.
#[test]
fn eevdf_with_wakeups_and_limits() {
    expect("6.12-eevdf-sleepers", 11058, 35);
    expect("6.12-eevdf-quota40", 3432, 177);
}
