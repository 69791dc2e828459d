//! The end of a run in which the policy or the world broke the rules of the host.

use std::fmt;

use crate::Time;

/// The policy or the world broke the rules of the host, so the run cannot continue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The time at which the run ended.
    pub time: Time,
    /// The policy's hook in which it happened, if it was in one.
    pub hook: Option<&'static str>,
    /// The rule that was broken, in words.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.time)?;
        if let Some(hook) = self.hook {
            write!(f, ", in `{hook}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Broken {}

/// A policy's breach of the rules, kept until the hook it is in has returned.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub hook: Option<&'static str>,
    pub what: String,
}
