//! The engine as a program that a browser can run: compiled for WebAssembly it needs nothing around it but an input, an output
//! and its arguments. Compiled for this machine it is the same program, so that the answers of both can be compared.
//!
//! * `vcpulab-wasm facts`: the schedulers with their parameters, the schema, and a scenario to start from.
//! * `vcpulab-wasm check < {"text": …}`: what is wrong with a scenario or doubtful, and what it says with every default.
//! * `vcpulab-wasm edit < {"text": …, "edits": …}`: its text with other settings, without what another scheduler does not have.
//! * `vcpulab-wasm judge < {"metrics": …, "lengths": …, "stopping": …, "runs": …}`: what is said of metrics of a run, or of two, and who
//!   starves: see [`judgement`].
//! * `vcpulab-wasm run REPLICATION [trace] < {"text": …}`: one replication; its tables as [`answer`] writes them.
//!
//! The input begins with a line of JSON. A scenario may name policies that are not built in: their declarations are in `policies` beside its text,
//! and a run asks for their decisions as [`policy`] describes; `check` answers the names that it looked for. All but a run
//! answer in JSON. A run says on its standard error how far it is, a number from 0 to 1 in a line.

mod answer;
mod judgement;
mod policy;
mod questions;
mod say;
mod source;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vcpulab_run::{Own, Part, RunOptions, Runs};
use vcpulab_scenario::{Edit, NewNames, Outside, edit_settings, policy_json};
use vcpulab_spec::app_names;

use crate::policy::Policies;
use crate::say::say;
use crate::source::{Source, parsed};

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
        ["check"] => Ok(checked(input()?).to_string().into()),
        ["edit"] => Ok(edited(input()?)?.to_string().into()),
        ["judge"] => Ok(serde_json::to_vec(&judgement::judged(input()?)?)?),
        ["run", replication] => ran(replication, false),
        ["run", replication, "trace"] => ran(replication, true),
        _ => Err("usage: vcpulab-wasm facts | check | edit | judge | run REPLICATION [trace]".into()),
    }
}

/// The first line of the input.
fn input<T: DeserializeOwned>() -> Result<T, Box<dyn Error>> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn facts() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "schedulers": vcpulab_scenario::schedulers_json(),
        "schema": vcpulab_scenario::schema(),
        "starter": vcpulab_scenario::starter(),
    })
}

fn checked(given: Source) -> Value {
    let policies = Policies::from(given.policies);
    let (problems, warnings, scenario, apps) = match parsed(&given.text, &policies) {
        Ok(scenario) => {
            let fields = serde_json::from_str::<Value>(&scenario.to_json()).unwrap_or_default();
            (json!([]), json!(scenario.warnings()), fields, app_names(&scenario))
        }
        Err(problems) => (json!(problems.iter().collect::<Vec<_>>()), json!([]), Value::Null, Vec::new()),
    };
    json!({
        "problems": problems,
        "warnings": warnings,
        "scenario": scenario,
        "apps": apps,
        "asked": policies.asked(),
        "schedulers": policies.found().into_iter().map(policy_json).collect::<Vec<_>>(),
    })
}

/// Settings to change in a scenario.
#[derive(Deserialize)]
struct Change {
    #[serde(flatten)]
    given: Source,
    edits: Vec<Edit>,
}

fn edited(Change { given, edits }: Change) -> Result<Value, Box<dyn Error>> {
    let policies = Policies::from(given.policies);
    let find = |name: &str| policies.find(name);
    let outside = Outside { policies: Some(&find), ..Outside::default() };
    Ok(json!(edit_settings(&given.text, &edits, NewNames::Added, outside)?.text))
}

fn ran(replication: &str, trace: bool) -> Result<Vec<u8>, Box<dyn Error>> {
    let replication: u32 = replication.parse()?;
    let given: Source = input()?;
    let scenario = parsed(&given.text, &Policies::from(given.policies))?;
    let last = scenario.replications - 1;
    if replication > last {
        return Err(format!("replication: found `{replication}`; allowed: from 0 to {last}").into());
    }
    let options = RunOptions { jobs: 1, trace, waits: true, ..RunOptions::default() };
    let progress = |done| {
        say(&format!("{done}\n"));
        true
    };
    let runs = Runs {
        parts: vec![Part { spec: &scenario, replications: replication..replication + 1 }],
        options: &options,
        progress: &progress,
        own: Some(Own { scheduler: &mut policy::scheduler, manager: None }),
    };
    let results = runs.start().results()?.remove(0);
    Ok(answer::of(results)?)
}
