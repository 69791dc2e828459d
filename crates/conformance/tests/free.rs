//! Recordings of Linux kernels, predicted from what their threads demand: within the limits that predictions are held to.

mod recorded;

use recorded::{BUNDLED, read};
use vcpulab_conformance::linux::{Cell, Metric, RunError, compared};

fn cells(name: &str, setting: Option<&str>) -> Vec<Cell> {
    let setting = setting.map(read);
    compared(&read(name), setting.as_ref(), |_| true).expect("it runs").cells
}

#[track_caller]
fn hold(name: &str, cells: &[Cell]) {
    let beyond: Vec<_> = cells.iter().filter(|cell| !cell.holds).collect();
    assert!(beyond.is_empty(), "{name}: {beyond:#?}");
}

/// Nine threads in ten; shares and switches all.
#[test]
fn free_runs_are_within_their_limits() {
    let mut waits = Vec::new();
    for name in BUNDLED {
        let (of_waits, others): (Vec<_>, Vec<_>) = cells(name, None)
            .into_iter()
            .partition(|cell| matches!(cell.metric, Metric::WaitMedian | Metric::WaitP90));
        hold(name, &others);
        assert!(others.len() > 1, "{name}");
        waits.extend(of_waits);
    }
    for metric in [Metric::WaitMedian, Metric::WaitP90] {
        let of: Vec<_> = waits.iter().filter(|cell| cell.metric == metric).collect();
        let within = of.iter().filter(|cell| cell.holds).count();
        assert!(of.len() >= 10 && 10 * within >= 9 * of.len(), "{within} of {}: {of:#?}", of.len());
    }
}

#[test]
fn the_other_kernel_is_predicted_from_demands_under_this_one() {
    for [demands, setting] in [
        ["6.1-cfs-sleepers", "6.12-eevdf-sleepers"],
        ["6.12-eevdf-quota40", "6.1-cfs-quota40"],
        ["6.1-cfs-nested", "6.12-eevdf-nested"],
        ["6.12-eevdf-nested", "7.1-eevdf-nested"],
        ["6.12-eevdf-nested", "7.3-eevdf-nested"],
        ["6.12-eevdf-quota40", "7.3-eevdf-quota40"],
    ] {
        let what_if = cells(demands, Some(setting));
        hold(setting, &what_if);
        // Had nothing changed, the prediction would be off.
        let there = cells(setting, None);
        let here = cells(demands, None);
        assert!(
            here.iter().zip(&there).any(|(a, b)| (a.recorded - b.recorded).abs() > 0.1 * a.recorded.abs())
        );
    }
}

#[test]
fn predictions_see_the_setting() {
    let mut other = read("6.1-cfs-weights");
    for group in &mut other.setup.groups {
        group.weight = 100;
    }
    let found = compared(&read("6.1-cfs-weights"), Some(&other), |_| true).expect("it runs");
    let shares = found.cells.iter().filter(|cell| cell.metric == Metric::Share);
    let off: Vec<bool> = shares.map(|cell| cell.off.abs() > 4.0).collect();
    assert_eq!(off, [true; 3], "weights are not what they were recorded with");
}

#[test]
fn runs_end_when_they_are_told_to() {
    let recording = read("6.12-eevdf-weights");
    assert_eq!(compared(&recording, None, |fraction| fraction < 0.1), Err(RunError::Stopped));
}

#[test]
fn other_threads_are_refused() {
    let found = compared(&read("6.1-cfs-weights"), Some(&read("6.1-cfs-nested")), |_| true).unwrap_err();
    assert!(matches!(found, RunError::Threads(_)), "{found}");
}
