//! What an administrator does to a running host, as timed actions.

use crate::{CpuMask, DomId, Params, Time, VcpuId};

/// One action of the toolstack.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Change a domain's scheduling parameters.
    Adjust(DomId, Params),
    /// Change the own parameters of a CPU pool's scheduler.
    AdjustGlobal(usize, Params),
    /// Pause a domain.
    Pause(DomId),
    /// Unpause a domain.
    Unpause(DomId),
    /// Change a vCPU's hard affinity.
    Affinity(VcpuId, CpuMask),
    /// Move a domain to another CPU pool. There it has the scheduler's default parameters, and every pCPU is allowed.
    MovePool(DomId, usize),
    /// Create a domain that is neither there nor saved. One whose first action of the life cycle this is does not exist before.
    Create(DomId),
    /// A domain's guest shuts down. The domain stays until it is destroyed.
    Shutdown(DomId),
    /// A domain's guest crashes. The domain stays until it is destroyed.
    Crash(DomId),
    /// Begin to destroy a domain: its guest is gone, and its memory is being freed.
    Kill(DomId),
    /// A domain is gone, whatever it was; if it was saved, its state is.
    Destroy(DomId),
    /// A domain is gone, and created anew.
    Reboot(DomId),
    /// Take a domain off the host, its state kept.
    Save(DomId),
    /// Put a saved domain on the host again, where it stood.
    Restore(DomId),
    /// Put a vCPU on line again.
    Online(VcpuId),
    /// Take a vCPU off line. The first one of a domain stays.
    Offline(VcpuId),
}

/// An action and when it is due. Actions due at one instant are carried out in the order of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedAction {
    /// When, ns.
    pub at: Time,
    /// What.
    pub action: Action,
}
