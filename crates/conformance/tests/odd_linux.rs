//! Recordings of Linux that nobody made: whatever lines come in whatever order, nothing panics.

mod recorded;

use proptest::prelude::*;
use recorded::{BUNDLED, read};
use vcpulab_conformance::linux::{Recording, compared, replay_fair};

/// Lines that are out of order, missing, twice, or of other threads.
#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Swap(usize, usize),
    Twice(usize),
    Flag(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = 0..1500usize;
    let change = prop_oneof![
        at.clone().prop_map(Change::Drop),
        (at.clone(), at.clone()).prop_map(|(a, b)| Change::Swap(a, b)),
        at.clone().prop_map(Change::Twice),
        at.prop_map(Change::Flag),
    ];
    proptest::collection::vec(change, 1..40)
}

fn changed(name: &str, changes: &[Change]) -> Recording {
    let mut recording = read(name);
    let lines = &mut recording.lines;
    lines.truncate(1500);
    for change in changes {
        let last = lines.len() - 1;
        match *change {
            Change::Drop(at) => drop(lines.remove(at.min(last))),
            Change::Swap(a, b) => lines.swap(a.min(last), b.min(last)),
            Change::Twice(at) => lines.insert(at.min(last), lines[at.min(last)].clone()),
            Change::Flag(at) => lines[at.min(last)].flagged ^= true,
        }
    }
    recording
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(of in 0..BUNDLED.len(), changes in changes()) {
        let recording = changed(BUNDLED[of], &changes);
        let outcome = replay_fair(&recording.setup, &recording.lines).expect("its timer has a group");
        prop_assert!(outcome.differing <= outcome.decisions);
        compared(&recording, None, |_| true).expect("it runs");
    }
}

/// Here work arrives for a thread that never blocks.
#[test]
fn more_work_for_a_hog_is_no_overflow() {
    use Change::{Drop, Swap, Twice};
    let changes = [Drop(0), Drop(26), Swap(0, 258), Swap(1111, 21), Twice(91), Swap(102, 749), Drop(361)];
    compared(&changed(BUNDLED[3], &changes), None, |_| true).expect("it runs");
}
