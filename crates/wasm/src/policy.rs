//! Policies on the other side of the program's input and output: it declares them beforehand, and takes their decisions.
//!
//! A hook is called by a line on the standard error, `[POLICY, NAME, ARGUMENT, …]`, and answered by a line on the input:
//! `{"answer": …}`, `{"wrong": "an answer that it may not give"}`,
//! `"rejected"` or `{"failed": "why"}`. The first call of a policy, `__init__`, brings the addresses of [`ask`] and [`text`],
//! and the [questions](crate::questions::names) that a hook may ask by them while it lasts: the other side calls them where they are in this
//! program's table of functions, which is why they need no names.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use vcpulab_host::{ParamValue, Params, PolicyContext, Scheduler, Scope};
use vcpulab_run::own::{Answer, Caller, Elsewhere, Expected, Hook, Refused, With, lent};
use vcpulab_scenario::FoundPolicy;
use vcpulab_sched::{Declaration, DeclaredParam, Policy, declare};
use vcpulab_spec::PoolSpec;

use crate::questions::{self, ask, text};
use crate::say::say;

/// The policies of the other side, by their names in scenarios, and the names that were looked for.
#[derive(Default)]
pub struct Policies {
    known: BTreeMap<String, Known>,
    asked: Mutex<BTreeSet<String>>,
}

/// The other side's answer about the name of a policy.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Known {
    Declared(Declared),
    /// The reason, and a hint.
    Unusable(String, Option<String>),
}

#[derive(Clone, Deserialize)]
pub struct Declared {
    doc: String,
    generation: String,
    params: Vec<Param>,
}

#[derive(Clone, Deserialize)]
struct Param {
    name: String,
    of: String,
    unit: String,
    least: i64,
    most: i64,
    default: i64,
    doc: String,
}

impl From<BTreeMap<String, Known>> for Policies {
    fn from(known: BTreeMap<String, Known>) -> Self {
        Policies { known, asked: Mutex::default() }
    }
}

impl Policies {
    /// Finds a policy that is not built in.
    pub fn find(&self, name: &str) -> FoundPolicy {
        lock(&self.asked).insert(name.to_owned());
        match self.known.get(name).cloned() {
            Some(Known::Declared(declared)) => FoundPolicy::Found(declared.policy(name)),
            Some(Known::Unusable(reason, hint)) => FoundPolicy::Unusable(reason, hint),
            None => FoundPolicy::Unknown(Vec::new()),
        }
    }

    /// The names that were looked for.
    pub fn asked(&self) -> Vec<String> {
        lock(&self.asked).iter().cloned().collect()
    }

    /// The policies that the other side declares, without the unusable ones.
    pub fn found(&self) -> Vec<&'static Policy> {
        let found = |name: &String| match self.find(name) {
            FoundPolicy::Found(policy) => Some(policy),
            _ => None,
        };
        self.known.keys().filter_map(found).collect()
    }
}

impl Declared {
    fn policy(self, name: &str) -> &'static Policy {
        let param = |param: Param| DeclaredParam {
            name: param.name,
            scope: if param.of == "host" { Scope::Global } else { Scope::Domain },
            unit: param.unit,
            min: param.least,
            max: param.most,
            default: param.default,
            doc: param.doc,
        };
        declare(Declaration {
            name: name.to_owned(),
            doc: self.doc,
            generation: self.generation,
            params: self.params.into_iter().map(param).collect(),
        })
    }
}

/// Makes the scheduler of a pool.
pub fn scheduler(pool: &PoolSpec, seed: u64) -> Box<dyn Scheduler> {
    let caller = Remote { number: pool.name.clone() };
    Box::new(Elsewhere::new(pool, |params| {
        let here = [ask as *const () as usize, text as *const () as usize];
        let call = json!([
            caller.number,
            "__init__",
            pool.policy.name,
            as_json(params),
            seed,
            here,
            questions::names()
        ]);
        match called(&call)? {
            Said::Answer(_) => Ok(caller),
            Said::Wrong(what) | Said::Failed(what) => Err(what),
            Said::Rejected => Err("Rejected".to_owned()),
        }
    }))
}

/// A policy on the other side.
struct Remote {
    number: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Answer(Value),
    Wrong(String),
    Rejected,
    Failed(String),
}

impl Caller for Remote {
    type Error = String;

    fn call(&self, ctx: &mut PolicyContext, hook: Hook<'_>) -> Result<Answer, String> {
        let (name, of) = (hook.name, &self.number);
        let call = match hook.with {
            With::Nothing => json!([of, name]),
            With::One(id) => json!([of, name, id]),
            With::Two(one, other) => json!([of, name, one, other]),
            With::Pcpus(v, pcpus) => json!([of, name, v, pcpus.iter().map(|p| p.0).collect::<Vec<_>>()]),
            With::Domain(d, params) => json!([of, name, d, as_json(params)]),
            With::Global(params) => json!([of, name, as_json(params)]),
        };
        let answer = match lent::lend(ctx, || called(&call))? {
            Said::Answer(answer) => answer,
            Said::Wrong(answer) => return Err(wrong_answer(&answer, hook.expected)),
            Said::Rejected if hook.expected == Expected::Consent => return Ok(Answer::Rejected),
            Said::Rejected => return Err("Rejected".to_owned()),
            Said::Failed(reason) => return Err(reason),
        };
        let read = match hook.expected {
            Expected::Nothing | Expected::Consent => Some(Answer::Nothing),
            Expected::Text => answer.as_str().map(|text| Answer::Text(text.to_owned())),
            Expected::Pcpu => serde_json::from_value(answer.clone()).ok().map(Answer::Pcpu),
            Expected::Next => {
                serde_json::from_value(answer.clone()).ok().map(|(next, slice)| Answer::Next(next, slice))
            }
        };
        read.ok_or_else(|| wrong_answer(&answer.to_string(), hook.expected))
    }

    fn wrong(&self, refused: Refused) -> String {
        format!("{}: {refused}", questions::kind(&refused))
    }

    fn described(&self, error: &String) -> String {
        error.clone()
    }

    fn failed(&self, _error: String) {}
}

fn wrong_answer(answer: &str, expected: Expected) -> String {
    format!("TypeError: the answer was `{answer}`; expected {expected}")
}

/// Calls the other side, and reads its answer.
fn called(call: &Value) -> Result<Said, String> {
    say(&format!("{call}\n"));
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| error.to_string())?;
    serde_json::from_str(&line).map_err(|error| format!("the answer cannot be read: {error}"))
}

/// Parameters for the other side; a timetable is a list of (domain number, vCPU, runtime in ns).
fn as_json(params: &Params) -> Value {
    let value = |value: &ParamValue| match value {
        ParamValue::Int(value) => json!(value),
        ParamValue::Timetable(entries) => {
            entries.iter().map(|entry| json!([entry.domain, entry.vcpu, entry.runtime.ns()])).collect()
        }
    };
    params.iter().map(|(name, of)| (name.to_owned(), value(of))).collect::<serde_json::Map<_, _>>().into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
