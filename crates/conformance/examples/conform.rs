//! Runs vectors: `cargo run --release -p vcpulab-conformance --example conform -- PATH…`

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match vcpulab_conformance::run_paths(&paths, 0) {
        Ok(report) => {
            println!("{report}");
            ExitCode::from(u8::from(report.failed > 0))
        }
        Err(failures) => {
            failures.iter().for_each(|failure| println!("{failure}"));
            ExitCode::from(2)
        }
    }
}
