//! Values proposed to a scheduler, and the reason why it refuses them.
//!
//! [`Registered::check`](crate::Registered::check) is the decision of each policy. It needs no host, so that a scenario can be
//! checked before it runs; [`Scheduler::adjust`](vcpulab_host::Scheduler::adjust) takes the same decision.

use vcpulab_host::{Params, Rejected, Scope};

/// Parameters that are given together to a scheduler or to one of its domains.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'p> {
    /// Scope of the parameters: the scheduler's own, or a domain's.
    pub scope: Scope,
    /// The parameters given.
    pub given: &'p Params,
    /// The parameters given before. `None`: the scheduler or the domain is new.
    pub present: Option<&'p Params>,
    /// The number of units of the domain that are scheduled: its vCPUs, or groups of them under core scheduling.
    pub units: u32,
}

impl Proposal<'_> {
    /// Whether the scheduler or the domain is new.
    pub fn is_new(&self) -> bool {
        self.present.is_none()
    }

    /// The parameters in force afterwards, under policies that keep the value of each missing parameter.
    pub(crate) fn kept_and_given(&self) -> Params {
        let mut params = self.present.cloned().unwrap_or_default();
        self.given.iter().for_each(|(name, value)| params.set(name, value.clone()));
        params
    }
}

/// A refusal of values: the parameters that cannot have them, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The names of the parameters whose values do not go together, or of the one whose value is not allowed.
    pub params: Vec<String>,
    /// The allowed values, in words.
    pub allowed: String,
}

impl Refusal {
    pub(crate) fn new<'p>(params: impl IntoIterator<Item = &'p str>, allowed: impl Into<String>) -> Self {
        Refusal { params: params.into_iter().map(str::to_owned).collect(), allowed: allowed.into() }
    }
}

impl From<Refusal> for Rejected {
    fn from(_: Refusal) -> Self {
        Rejected
    }
}
