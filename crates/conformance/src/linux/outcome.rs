//! Result of a replay, and the state before the recording.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use vcpulab_host::{GroupId, Span};

use super::timers::Timers;

/// State before a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Beginning {
    /// The groups that its period timers are of.
    pub timers: Timers,
    /// Lags, as virtual time, of threads and groups whose lag the recording does not contain; zero for those that are
    /// absent here.
    pub lags: BTreeMap<Whose, Span>,
}

/// Owner of a lag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Whose {
    /// A thread's, of the host's own.
    Thread(u32),
    /// A group's, among those of one parent.
    Group(GroupId),
    /// A group's, with a limit: not virtual time, but what it has used of the runtime that its queue kept as it rested.
    Limit(GroupId),
}

/// A difference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The line of the trace.
    pub line: usize,
    /// Kind of the decision.
    pub what: &'static str,
    /// The kernel's.
    pub expected: String,
    /// The scheduler's.
    pub got: String,
}

/// Result of a replay.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Outcome {
    /// Flags and choices compared.
    pub decisions: u64,
    /// Flags and choices that differ.
    pub differing: u64,
    /// Flags and choices by kind of decision: compared and differing.
    pub by_kind: BTreeMap<&'static str, (u64, u64)>,
    /// The first difference.
    pub first: Option<Difference>,
    /// Assumed state before the recording, which the recording does not contain.
    #[serde(skip)]
    pub beginning: Beginning,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} decisions, {} differing", self.decisions, self.differing)?;
        for (what, (all, differing)) in &self.by_kind {
            write!(out, "; {what}: {all}, {differing}")?;
        }
        if let Some(first) = &self.first {
            let Difference { line, what, expected, got } = first;
            write!(out, "\nfirst: line {line}, {what}: the kernel {expected}, the scheduler {got}")?;
        }
        Ok(())
    }
}
