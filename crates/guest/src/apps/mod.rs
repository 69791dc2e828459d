//! The applications by name: what each is, its parameters, and the script that it comes to. A new one is one file here
//! and one line in [`KINDS`].

mod hog;
mod periodic;
mod web_server;

use vcpulab_host::Span;

use crate::script::{AppConfig, Step};

/// All kinds, in the order of the documentation.
pub const KINDS: &[&AppKind] = &[&hog::KIND, &periodic::KIND, &web_server::KIND];

/// A kind of application.
#[derive(Debug)]
pub struct AppKind {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its parameters.
    pub params: &'static [AppParam],
    /// The classes of requests that it answers; none: it is no service.
    pub classes: &'static [RequestClass],
    /// The application with these values of the parameters: one for each, in order.
    pub build: fn(&Args<'_>) -> AppConfig,
}

/// A class of requests that a service answers.
#[derive(Clone, Copy, Debug)]
pub struct RequestClass {
    /// Its name in a scenario.
    pub name: &'static str,
    /// Size of a request, bytes.
    pub request_bytes: u32,
    /// Size of an answer, bytes, unless the client asks for another.
    pub reply_bytes: u32,
    /// Where these sizes are from.
    pub source: &'static str,
}

/// A parameter of an application.
#[derive(Debug)]
pub struct AppParam {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// What values it can have.
    pub kind: ParamKind,
    /// Its value where a scenario gives none.
    pub default: Default,
    /// Where the default is from, or why it is what it is.
    pub source: &'static str,
}

/// What values a parameter can have. All come to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum ParamKind {
    /// A time span, ns.
    Duration { min: Span, max: Span },
    /// A size, bytes.
    Size { min: i64, max: i64 },
    /// A number of things.
    Count { min: i64, max: i64 },
    /// A share, percent.
    Percent,
    /// One of these words, as its position.
    Choice(&'static [&'static str]),
    /// Yes or no, as 1 or 0.
    Flag,
    /// A service: an application of one of these kinds in the domain named, as its number in the machine.
    Service(&'static [&'static str]),
}

/// A parameter's value where none is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Default {
    /// It must be given.
    Required,
    /// This.
    Value(i64),
    /// The CPU time of so many thousand cycles on the scenario's machine, ns.
    Kilocycles(i64),
    /// The constant of the hardware profile of this name.
    Profile(&'static str),
    /// It is left out: the value is −1.
    Absent,
}

/// The values of an application's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// Its kind.
    pub kind: &'a AppKind,
    /// One value for each of its parameters, in order.
    pub values: &'a [i64],
    /// How far computations vary, percent to both sides.
    pub spread_percent: i64,
}

impl Args<'_> {
    /// The value of a parameter.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    pub fn get(&self, name: &str) -> i64 {
        let position = self.kind.params.iter().position(|param| param.name == name);
        self.values[position.expect("an application asks for its own parameters only")]
    }

    /// The value of a parameter that was checked to fit.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    pub fn get_u32(&self, name: &str) -> u32 {
        self.get(name).clamp(0, u32::MAX.into()) as u32
    }
}

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static AppKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// A step that computes for so long, ns.
const fn compute(ns: Span) -> Step {
    Step::Compute { ns, per_byte_ps: 0 }
}

/// Longest time span that a parameter may be, ns: a day.
const SPAN_MAX: Span = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at which every application must do something.
    fn defaults(kind: &AppKind) -> Vec<i64> {
        let value = |param: &AppParam| match param.default {
            Default::Value(value) => value,
            Default::Kilocycles(kilocycles) => kilocycles,
            Default::Profile(_) => 1000,
            Default::Absent => -1,
            Default::Required => match param.kind {
                ParamKind::Duration { min, .. } => min.max(1000),
                ParamKind::Size { min, .. } | ParamKind::Count { min, .. } => min.max(1),
                _ => 0,
            },
        };
        kind.params.iter().map(value).collect()
    }

    #[test]
    fn names_are_unique_and_every_default_is_allowed_and_has_a_source() {
        for (index, kind) in KINDS.iter().enumerate() {
            assert!(KINDS[..index].iter().all(|other| other.name != kind.name), "{}", kind.name);
            assert!(kind.doc.len() > 10, "{}", kind.name);
            for param in kind.params {
                let what = format!("{}.{}", kind.name, param.name);
                assert!(param.source.len() > 5 || param.default == Default::Required, "{what}: no source");
                if let Default::Value(value) = param.default {
                    let fits = match param.kind {
                        ParamKind::Duration { min, max }
                        | ParamKind::Size { min, max }
                        | ParamKind::Count { min, max } => (min..=max).contains(&value),
                        ParamKind::Percent => (0..=100).contains(&value),
                        ParamKind::Choice(words) => (0..words.len() as i64).contains(&value),
                        ParamKind::Flag => (0..=1).contains(&value),
                        ParamKind::Service(_) => false,
                    };
                    assert!(fits, "{what}: its default is not allowed");
                }
            }
        }
    }

    #[test]
    fn every_script_stays_within_itself_and_answers_all_its_classes() {
        for kind in KINDS {
            let app = (kind.build)(&Args { kind, values: &defaults(kind), spread_percent: 0 });
            let script = &app.script;
            assert!(!script.steps.is_empty() && app.tasks > 0, "{}", kind.name);
            assert_eq!(app.service.is_some(), !kind.classes.is_empty(), "{}", kind.name);
            if kind.classes.len() > 1 {
                assert_eq!(script.classes.len(), kind.classes.len(), "{}", kind.name);
            }
            for (at, step) in script.steps.iter().enumerate() {
                match *step {
                    Step::Repeat { from, counter, .. } => {
                        assert!((from as usize) < at && counter < script.counters, "{}", kind.name);
                    }
                    Step::Chance { ppm, skip } => {
                        let inside = at + skip as usize + 1 <= script.steps.len();
                        assert!(ppm <= 1_000_000 && inside, "{}", kind.name);
                    }
                    _ => {}
                }
            }
            assert!(script.classes.iter().all(|&at| (at as usize) < script.steps.len()), "{}", kind.name);
        }
    }
}
