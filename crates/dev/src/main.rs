//! `generate` writes the generated files; `check` fails if one of them is stale.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line speaks")]

use std::process::ExitCode;

use vcpulab_dev::{generate, root, stale};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("generate") => match generate(&root()) {
            Ok(written) => {
                written.iter().for_each(|path| println!("{path}"));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("cannot write the generated files: {error}");
                ExitCode::FAILURE
            }
        },
        Some("check") => {
            let stale = stale(&root());
            stale.iter().for_each(|path| eprintln!("{path} is stale"));
            if stale.is_empty() {
                return ExitCode::SUCCESS;
            }
            eprintln!("\nhint: run `cargo run -p vcpulab-dev -- generate` and commit the result");
            ExitCode::FAILURE
        }
        _ => {
            eprintln!("usage: vcpulab-dev generate | check");
            ExitCode::from(2)
        }
    }
}
