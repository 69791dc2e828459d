//! The engine as a program that a browser can run: compiled for WebAssembly it needs nothing around it but an input, an output
//! and its arguments. Compiled for this machine it is the same program, so that both can be held against each other.
//!
//! * `vcpulab-wasm facts`: the schedulers with their parameters, the schema, and a scenario to start from.
//! * `vcpulab-wasm check < SCENARIO`: what is wrong with it or doubtful, and what it says with every default.
//! * `vcpulab-wasm edit < {"text": …, "edits": …}`: its text with other values.
//! * `vcpulab-wasm run REPLICATION [trace] < SCENARIO`: one replication; its tables as [`answer`] writes them.
//!
//! All but the last answer in JSON. A run says on its standard error how far it is, a number from 0 to 1 in a line.

mod answer;

use std::error::Error;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};
use vcpulab_run::{RunOptions, run_one};
use vcpulab_scenario::{Edit, Problems, Scenario};

/// The scenario's name in messages.
const FILE: &str = "scenario.toml";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match answered(&arguments) {
        Ok(answer) => match io::stdout().write_all(&answer) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn answered(arguments: &[&str]) -> Result<Vec<u8>, Box<dyn Error>> {
    match arguments {
        ["facts"] => Ok(facts().to_string().into()),
        ["check"] => Ok(checked(&input()?).to_string().into()),
        ["edit"] => Ok(edited(&input()?)?.to_string().into()),
        ["run", replication] => ran(replication, false),
        ["run", replication, "trace"] => ran(replication, true),
        _ => Err("usage: vcpulab-wasm facts | check | edit | run REPLICATION [trace]".into()),
    }
}

fn input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Nobody may listen.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn facts() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "schedulers": vcpulab_scenario::schedulers_json(),
        "schema": vcpulab_scenario::schema(),
        "starter": vcpulab_scenario::starter(),
    })
}

fn parsed(text: &[u8]) -> Result<Scenario, Problems> {
    Scenario::parse_bytes(text, FILE, vcpulab_scenario::Outside::default())
}

fn checked(text: &[u8]) -> Value {
    match parsed(text) {
        Ok(scenario) => json!({
            "problems": [],
            "warnings": scenario.warnings(),
            "scenario": serde_json::from_str::<Value>(&scenario.to_json()).unwrap_or_default(),
        }),
        Err(problems) => json!({
            "problems": problems.iter().collect::<Vec<_>>(),
            "warnings": [],
            "scenario": null,
        }),
    }
}

#[derive(Deserialize)]
struct Asked {
    text: String,
    edits: Vec<Edit>,
}

fn edited(asked: &[u8]) -> Result<Value, Box<dyn Error>> {
    let Asked { text, edits } = serde_json::from_slice(asked)?;
    Ok(json!(vcpulab_scenario::edit(&text, &edits)?))
}

fn ran(replication: &str, trace: bool) -> Result<Vec<u8>, Box<dyn Error>> {
    let replication: u32 = replication.parse()?;
    let scenario = parsed(&input()?)?;
    let last = scenario.replications - 1;
    if replication > last {
        return Err(format!("replication: found `{replication}`; allowed: from 0 to {last}").into());
    }
    let options = RunOptions { jobs: 1, trace, waits: true, ..RunOptions::default() };
    let results = run_one(&scenario, &options, replication, &|done| {
        say(&format!("{done}\n"));
        true
    })?;
    Ok(answer::of(results)?)
}
