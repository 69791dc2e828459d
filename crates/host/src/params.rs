//! Parameters of schedulers and applications: their values, and the description that checks, help, schema and docs are made
//! from.

use std::fmt;

use crate::groups::Part;
use crate::time::Span;

/// The owner of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A value for the whole scheduler (boot parameters, `adjust_global`).
    Global,
    /// A value for each domain (`adjust`).
    Domain,
}

/// The values that a parameter of a scheduler or of an application takes. All but timetables and services come to integers.
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
    /// A time span, as its number of nanoseconds.
    Duration {
        /// Shortest.
        min: Span,
        /// Longest.
        max: Span,
    },
    /// A size, bytes.
    Size {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// A share, percent.
    Percent,
    /// Yes or no, as 1 or 0.
    Flag,
    /// A word of this list, stored as its index.
    Choice(&'static [&'static str]),
    /// An ARINC 653 timetable: at most this many entries.
    Timetable(usize),
    /// A service: an application of one of these kinds in the domain named.
    Service(&'static [&'static str]),
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
            ParamKind::Duration { min, max } => (min.ns()..=max.ns()).contains(&number),
            ParamKind::Size { min, max } => (min..=max).contains(&number),
            ParamKind::Percent => (0..=100).contains(&number),
            ParamKind::Flag => (0..=1).contains(&number),
            ParamKind::Choice(words) => (0..words.len() as i64).contains(&number),
            ParamKind::Timetable(_) | ParamKind::Service(_) => false,
        }
    }

    /// The name of the kind for front ends.
    pub fn name(self) -> &'static str {
        match self {
            ParamKind::Int { .. } => "int",
            ParamKind::Duration { .. } => "duration",
            ParamKind::Size { .. } => "size",
            ParamKind::Percent => "percent",
            ParamKind::Flag => "flag",
            ParamKind::Choice(_) => "choice",
            ParamKind::Timetable(_) => "timetable",
            ParamKind::Service(_) => "service",
        }
    }

    /// The values allowed, in words: "an integer from 1 to 65535".
    pub fn allowed(self) -> String {
        match self {
            ParamKind::Int { min, max, also } => {
                let also: String = also.iter().map(|v| format!("{v} or ")).collect();
                format!("{also}an integer from {min} to {max}")
            }
            ParamKind::Duration { min, max } => format!("a time span from {min} to {max} ns"),
            ParamKind::Size { min, max } => format!("a size from {min} to {max} bytes"),
            ParamKind::Percent => "an integer from 0 to 100 (%)".into(),
            ParamKind::Flag => "0 or 1".into(),
            ParamKind::Choice(words) => format!("one of {}", words.join(", ")),
            ParamKind::Timetable(most) => format!("a list of 1 to {most} entries"),
            ParamKind::Service(kinds) => format!("the name of a domain that runs one {}", kinds.join(" or ")),
        }
    }
}

/// The owner of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Per {
    /// All vCPUs of a domain have it together.
    Domain,
    /// Each vCPU of a domain has it, beside all vCPUs of the pool.
    Vcpu,
    /// Each vCPU of a domain has it, beside those that belong to the same pCPU: nothing balances pCPUs.
    VcpuOfPcpu,
}

/// The part of a reservation that a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservationPart {
    /// The CPU time of each vCPU in each period; 0: none is reserved.
    Time {
        /// Unit of the value.
        unit: Span,
    },
    /// The period; 0: none is reserved.
    Period {
        /// Unit of the value: that of the time.
        unit: Span,
    },
    /// A weight: where it is not 0, it decides in place of the time; with extra time and a period of 0 it shares extra time only.
    Weight,
    /// 1: each vCPU may use time beside the reservation that nobody has reserved.
    Extra {
        /// The value where time and period are given and this parameter is left out.
        by_default: bool,
    },
    /// The time within which a vCPU runs after a long block, in the unit of the period, which it may not exceed.
    Latency,
}

/// The pCPUs on which CPU time is reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservedOn {
    /// Any pCPU of the pool.
    Pool,
    /// The pCPU that a vCPU belongs to: nothing balances pCPUs.
    OwnPcpu,
    /// No pCPU: the generation does not keep what is reserved.
    Nothing,
}

/// The meaning of a parameter for the CPU time that domains are entitled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No meaning that follows from the parameter's value alone.
    Plain,
    /// A share in proportion to it.
    Weight(Per),
    /// A share in inverse proportion to it.
    InverseWeight(Per),
    /// Most CPU time of a domain, in percent of one pCPU; 0: no limit.
    CapPercent,
    /// A part of a reservation of CPU time.
    Reserved(ReservationPart, ReservedOn),
    /// A timetable of the whole pool.
    Timetable,
    /// The time after which the timetable repeats.
    Frame,
    /// The weight of a domain's control group beside the groups in the same group.
    GroupWeight,
    /// 1: a domain's control group runs when nothing else wants to.
    GroupIdle,
    /// CPU time that a part of a domain may have in each period; negative: no limit.
    GroupQuota(Part),
    /// The period of that quota.
    GroupPeriod(Part),
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

/// A slot of an ARINC 653 timetable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimetableEntry {
    /// The domain's number as an administrator sees it.
    pub domain: i64,
    /// The vCPU's number in that domain.
    pub vcpu: i64,
    /// Length of the slot.
    pub runtime: Span,
}

/// A parameter's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParamValue {
    /// A number, a flag (0 or 1), or the index of a choice.
    Int(i64),
    /// A timetable.
    Timetable(Vec<TimetableEntry>),
}

impl From<i64> for ParamValue {
    fn from(value: i64) -> Self {
        ParamValue::Int(value)
    }
}

/// Named values given together, in the order given. A name appears at most once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Params(Vec<(String, ParamValue)>);

impl Params {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value, replacing one of the same name.
    pub fn set(&mut self, name: &str, value: ParamValue) {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds a number to the parameters: for building in code and tests.
    pub fn with(mut self, name: &str, value: i64) -> Self {
        self.set(name, ParamValue::Int(value));
        self
    }

    /// The number of that name, if given.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(ParamValue::Int(v)) => Some(*v),
            _ => None,
        }
    }

    /// The value of that name, if given.
    pub fn get(&self, name: &str) -> Option<&ParamValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// All, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ParamValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Whether no parameter is given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Int(v) => write!(f, "{v}"),
            ParamValue::Timetable(entries) => write!(f, "{} timetable entries", entries.len()),
        }
    }
}
