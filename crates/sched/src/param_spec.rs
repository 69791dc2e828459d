//! The description of a policy's parameter, which checks, help, schema and docs are made from.

use vcpulab_host::{ParamValue, Params, Scope};

use crate::role::Role;

/// The values that a parameter takes. All but timetables come to integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// An integer from `min` to `max`, or one of the values in `also` (such as 0 for "off").
    Int {
        /// Least ordinary value.
        min: i64,
        /// Greatest ordinary value.
        max: i64,
        /// Special values outside the range that are accepted too.
        also: &'static [i64],
    },
    /// Yes or no, as 1 or 0.
    Flag,
    /// A word of this list, stored as its index.
    Choice(&'static [&'static str]),
    /// An ARINC 653 timetable: at most this many entries.
    Timetable(usize),
}

impl ParamKind {
    /// An integer from `min` to `max`.
    pub const fn int(min: i64, max: i64) -> Self {
        ParamKind::Int { min, max, also: &[] }
    }

    /// Whether a number is allowed.
    pub fn allows(self, number: i64) -> bool {
        match self {
            ParamKind::Int { min, max, also } => (min..=max).contains(&number) || also.contains(&number),
            ParamKind::Flag => (0..=1).contains(&number),
            ParamKind::Choice(words) => (0..words.len() as i64).contains(&number),
            ParamKind::Timetable(_) => false,
        }
    }

    /// The name of the kind for front ends.
    pub fn name(self) -> &'static str {
        match self {
            ParamKind::Int { .. } => "int",
            ParamKind::Flag => "flag",
            ParamKind::Choice(_) => "choice",
            ParamKind::Timetable(_) => "timetable",
        }
    }

    /// The values allowed, in words: "an integer from 1 to 65535".
    pub fn allowed(self) -> String {
        match self {
            ParamKind::Int { min, max, also } => {
                let also: String = also.iter().map(|v| format!("{v} or ")).collect();
                format!("{also}an integer from {min} to {max}")
            }
            ParamKind::Flag => "0 or 1".into(),
            ParamKind::Choice(words) => format!("one of {}", words.join(", ")),
            ParamKind::Timetable(most) => format!("a list of 1 to {most} entries"),
        }
    }
}

/// A parameter of a generation of a scheduler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParamSpec {
    /// Name of the parameter, with the unit at the end where it has one.
    pub name: &'static str,
    /// Global or per domain.
    pub scope: Scope,
    /// The meaning of the parameter for the CPU time that domains are entitled to.
    pub role: Role,
    /// The unit in words ("ms", "% of one pCPU"), empty for a plain number.
    pub unit: &'static str,
    /// Values it takes.
    pub kind: ParamKind,
    /// The value of a new domain or host.
    pub default: i64,
    /// Sentence on what the parameter does.
    pub doc: &'static str,
}

impl ParamSpec {
    /// The number that a domain or scheduler with these parameters has for it: the given one, or the default.
    pub fn number_in(&self, params: &Params) -> i64 {
        params.int(self.name).unwrap_or(self.default)
    }

    /// Whether a value is allowed.
    pub fn allows(&self, value: &ParamValue) -> bool {
        match (self.kind, value) {
            (ParamKind::Timetable(most), ParamValue::Timetable(entries)) => {
                (1..=most).contains(&entries.len())
            }
            (kind, &ParamValue::Int(number)) => kind.allows(number),
            (_, ParamValue::Timetable(_)) => false,
        }
    }
}
