//! The bundled recordings of Linux.

use std::fs::{File, read_to_string};
use std::io::Read;
use std::path::Path;

use vcpulab_conformance::linux::{Recording, Texts};

/// Their folders.
pub const BUNDLED: [&str; 16] = [
    "5.10-cfs-nested",
    "5.10-cfs-quota40",
    "6.1-cfs-nested",
    "6.1-cfs-quota40",
    "6.1-cfs-sleepers",
    "6.1-cfs-weights",
    "6.1-cfs-yield",
    "6.12-eevdf-nested",
    "6.12-eevdf-quota40",
    "6.12-eevdf-sleepers",
    "6.12-eevdf-weights",
    "6.12-eevdf-yield",
    "6.18-eevdf-quota40",
    "7.1-eevdf-nested",
    "7.3-eevdf-nested",
    "7.3-eevdf-quota40",
];

/// Reads one of them.
pub fn read(name: &str) -> Recording {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/vcpulab/data/linux").join(name);
    let text = |file: &str| read_to_string(folder.join(file)).expect("it is there");
    let packed = File::open(folder.join("trace.txt.gz")).expect("it is there");
    let mut trace = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut trace).expect("it is whole");
    let [experiment, threads, tunables, expected] =
        ["experiment.txt", "threads.txt", "tunables.txt", "expected.txt"].map(text);
    let texts = Texts {
        experiment: &experiment,
        threads: &threads,
        tunables: &tunables,
        trace: &trace,
        expected: Some(&expected),
    };
    Recording::read(&texts).expect("it is understood")
}
