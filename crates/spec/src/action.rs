//! The administrator's actions.

use vcpulab_host::{CpuMask, DomId, Params, PoolId, Table, Time};

use crate::domain::{DomainSpec, OnCrash};

/// An action of the administrator.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionSpec {
    /// The time of the action.
    pub at: Time,
    /// The change it makes.
    pub change: Change,
}

/// A new affinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The pCPUs allowed.
    Hard(CpuMask),
    /// The pCPUs preferred.
    Soft(CpuMask),
    /// The pCPUs allowed, and those preferred.
    Both(CpuMask, CpuMask),
}

/// The change that an action makes.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A domain's parameters.
    Adjust(DomId, Params),
    /// The global parameters of a pool's scheduler.
    AdjustGlobal(PoolId, Params),
    /// A domain is paused.
    Pause(DomId),
    /// A domain is unpaused.
    Unpause(DomId),
    /// The affinity of one vCPU of a domain, or of all.
    Affinity(DomId, Option<u32>, Affinity),
    /// A domain moves to another pool.
    MovePool(DomId, PoolId),
    /// The life of a domain.
    Life(DomId, LifeChange),
    /// A vCPU of a domain goes online (`true`) or offline.
    Online(DomId, u32, bool),
}

impl Change {
    /// The domain that is in another pool afterwards (it may be the one it was in), and that pool.
    pub fn moves(&self, domains: &Table<DomId, DomainSpec>) -> Option<(DomId, PoolId)> {
        match *self {
            Change::MovePool(domain, pool) => Some((domain, pool)),
            Change::Life(domain, LifeChange::Crash) if domains[domain].on_crash != OnCrash::Restart => None,
            Change::Life(
                domain,
                LifeChange::Create | LifeChange::Reboot | LifeChange::Restore | LifeChange::Crash,
            ) => Some((domain, domains[domain].pool)),
            _ => None,
        }
    }
}

/// A change in the life of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeChange {
    /// Creates the domain after it has been shut down or destroyed.
    Create,
    /// Shuts the domain down.
    Shutdown,
    /// Shuts the domain down and creates it again.
    Reboot,
    /// Crashes the domain's guest.
    Crash,
    /// Destroys the domain.
    Destroy,
    /// Removes the domain from the host and keeps its state.
    Save,
    /// Brings the saved domain back.
    Restore,
}
