//! What an administrator does to a running host, as timed actions.

use crate::{CpuMask, DomId, Params, Time, VcpuId};

/// One action of the toolstack.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Change a domain's scheduling parameters.
    Adjust(DomId, Params),
    /// Change the scheduler's own parameters.
    AdjustGlobal(Params),
    /// Pause a domain.
    Pause(DomId),
    /// Unpause a domain.
    Unpause(DomId),
    /// Change a vCPU's hard affinity.
    Affinity(VcpuId, CpuMask),
}

/// An action and when it is due. Actions due at one instant are carried out in the order of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedAction {
    /// When, ns.
    pub at: Time,
    /// What.
    pub action: Action,
}
