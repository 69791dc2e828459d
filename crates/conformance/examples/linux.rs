//! Replays recordings of Linux, and counts the decisions that differ: `cargo run --release -p vcpulab-conformance --example linux -- FOLDER…`

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use vcpulab_conformance::linux::{Texts, folder, replay_fair, trace};

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for folder in std::env::args_os().skip(1) {
        let folder = Path::new(&folder);
        match one(folder) {
            Ok(text) => println!("{}: {text}", folder.display()),
            Err(error) => {
                println!("{}: {error}", folder.display());
                code = ExitCode::from(2);
            }
        }
    }
    code
}

fn one(folder: &Path) -> Result<String, Box<dyn Error>> {
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let (experiment, threads) = (read("experiment.txt")?, read("threads.txt")?);
    let (tunables, events) = (read("tunables.txt")?, events(folder)?);
    let texts = Texts { experiment: &experiment, threads: &threads, tunables: &tunables, trace: &events };
    let (setup, lines) = (folder::read(&texts)?, trace::read(texts.trace)?);
    Ok(replay_fair(&setup, &lines)?.to_string())
}

/// `trace.txt`, or what `xz` makes of `trace.txt.xz`.
fn events(folder: &Path) -> Result<String, Box<dyn Error>> {
    let plain = folder.join("trace.txt");
    if plain.exists() {
        return Ok(std::fs::read_to_string(plain)?);
    }
    let output = Command::new("xz").arg("-dc").arg(folder.join("trace.txt.xz")).output()?;
    if !output.status.success() {
        return Err(format!("trace.txt.xz: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
