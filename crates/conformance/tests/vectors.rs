//! The bundled vectors, and what happens when one is not as recorded.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use vcpulab_conformance::replay::Divergence;
use vcpulab_conformance::report::Outcome;
use vcpulab_conformance::run_paths;

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/vcpulab/data/conformance")
}

#[test]
fn every_bundled_vector_agrees() {
    let report = run_paths(&[bundled()], 0).unwrap();
    assert_eq!((report.failed, report.skipped), (0, 0), "{report}");
    let folders = fs::read_dir(bundled()).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(report.folders.len(), folders);
    assert!(report.folders.iter().all(|folder| folder.passed > 0));
}

#[test]
fn the_number_of_jobs_changes_nothing() {
    let folder = bundled().join("credit-xen4.17");
    let json =
        |jobs| serde_json::to_string(&run_paths(std::slice::from_ref(&folder), jobs).unwrap()).unwrap();
    assert_eq!(json(1), json(3));
}

/// Copies one vector, changes one of its recordings, and returns where replay and recording part.
fn tampered(kind: &str, change: impl Fn(&mut Vec<String>)) -> Divergence {
    let folder = tempfile::tempdir().unwrap();
    let source = bundled().join("credit-xen4.17");
    for ending in ["json", "trace.csv.gz", "state.csv.gz"] {
        let file = format!("two-hogs-one-sleeper.{ending}");
        fs::copy(source.join(&file), folder.path().join(&file)).unwrap();
    }
    let file = folder.path().join(format!("two-hogs-one-sleeper.{kind}.csv.gz"));
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file).unwrap()).read_to_string(&mut text).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    let mut out = GzEncoder::new(fs::File::create(&file).unwrap(), Compression::fast());
    out.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    out.finish().unwrap();
    let report = run_paths(&[folder.path().to_owned()], 1).unwrap();
    assert_eq!((report.passed, report.failed), (0, 1));
    let text = report.to_string();
    assert_eq!(text.lines().last(), Some("0 passed, 1 failed, 0 skipped"));
    match &report.folders[0].vectors[0].outcome {
        Outcome::Failed(divergence) => (**divergence).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_changed_decision_is_found_with_its_surroundings() {
    let divergence = tampered("trace", |lines| {
        let time: i64 = lines[20].split(',').next().unwrap().parse().unwrap();
        lines[20] = lines[20].replacen(&time.to_string(), &(time + 1).to_string(), 1);
    });
    assert_eq!(divergence.what, "a decision differs");
    assert_ne!(divergence.expected, divergence.got);
    assert_eq!(divergence.before.len(), 10);
    assert!(divergence.state[0].starts_with("pCPU 0: runs d"), "{:?}", divergence.state);
}

#[test]
fn missing_and_additional_rows_are_found() {
    let missing = tampered("trace", |lines| lines.truncate(lines.len() - 1));
    assert_eq!(missing.expected, None);
    assert!(missing.got.is_some());
    let additional = tampered("trace", |lines| lines.push("999999999,0,1,0,2,0".into()));
    assert_eq!(additional.got, None);
    assert_eq!(additional.expected.as_deref(), Some("999999999 ns pCPU 0: d1v0 -> d2v0"));
}

#[test]
fn a_changed_value_of_state_is_found() {
    let divergence = tampered("state", |lines| lines[3] = lines[3].replace("credit,100", "credit,101"));
    assert_eq!(divergence.what, "a value of the scheduler's state differs");
    assert!(divergence.expected.unwrap().ends_with("credit = 101"));
    assert!(divergence.got.unwrap().ends_with("credit = 100"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.json");
    fs::write(&file, "{\"pcpus\": 1").unwrap();
    let failures = run_paths(&[folder.path().to_owned()], 1).unwrap_err();
    assert_eq!(failures[0].path, file);
    assert!(run_paths(&[folder.path().join("nothing")], 1).unwrap_err()[0].message.contains("no such file"));
}
