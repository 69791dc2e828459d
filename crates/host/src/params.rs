//! The values of a scheduler's parameters, as the toolstack gives them.

use std::fmt;

use crate::time::Span;

/// The owner of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A value for the whole scheduler (boot parameters, `adjust_global`).
    Global,
    /// A value for each domain (`adjust`).
    Domain,
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
