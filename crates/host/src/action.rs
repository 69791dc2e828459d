//! An administrator's timed actions on a running host.

use crate::{CpuMask, DomId, Params, PoolId, Table, Time, VcpuId};

/// An action of the toolstack.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Change a domain's scheduling parameters.
    Adjust(DomId, Params),
    /// Change the own parameters of a CPU pool's scheduler.
    AdjustGlobal(PoolId, Params),
    /// Pause a domain.
    Pause(DomId),
    /// Unpause a domain.
    Unpause(DomId),
    /// Change a vCPU's hard affinity.
    Affinity(VcpuId, CpuMask),
    /// Change a vCPU's soft affinity.
    SoftAffinity(VcpuId, CpuMask),
    /// Change a vCPU's hard affinity, and then, unless that was refused, its soft affinity.
    BothAffinities(VcpuId, CpuMask, CpuMask),
    /// Move a domain to another CPU pool. There it has the scheduler's default parameters, and every pCPU is allowed.
    MovePool(DomId, PoolId),
    /// Create a domain that is neither there nor saved. If this is the first action of its life cycle, the domain does not
    /// exist before.
    Create(DomId),
    /// A domain's guest shuts down. The domain stays until it is destroyed.
    Shutdown(DomId),
    /// A domain's guest crashes. The domain stays until it is destroyed.
    Crash(DomId),
    /// Begin to destroy a domain: its guest is gone, and its memory is being freed.
    Kill(DomId),
    /// Take a domain off the host, whatever it was; a saved one loses its state.
    Destroy(DomId),
    /// Destroy a domain, and create it again.
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

impl Action {
    /// The name of the action: the word of scenarios, where scenarios have this action.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Adjust(..) => "adjust",
            Action::AdjustGlobal(..) => "adjust-global",
            Action::Pause(_) => "pause",
            Action::Unpause(_) => "unpause",
            Action::Affinity(..) | Action::BothAffinities(..) => "affinity",
            Action::SoftAffinity(..) => "soft affinity",
            Action::MovePool(..) => "move-pool",
            Action::Create(_) => "create",
            Action::Shutdown(_) => "shutdown",
            Action::Crash(_) => "crash",
            Action::Kill(_) => "kill",
            Action::Destroy(_) => "destroy",
            Action::Reboot(_) => "reboot",
            Action::Save(_) => "save",
            Action::Restore(_) => "restore",
            Action::Online(_) => "online",
            Action::Offline(_) => "offline",
        }
    }
}

/// An action and when it is due. Actions due at one instant are carried out in the order of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedAction {
    /// The time at which it is due.
    pub at: Time,
    /// The action.
    pub action: Action,
}

/// The result of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acted {
    /// The [name](Action::name) of the action.
    pub action: &'static str,
    /// The domain that the action is about; `None`: it is about the host or a pool.
    pub domain: Option<DomId>,
    /// Whether the action was possible, and the scheduler accepted its values.
    pub accepted: bool,
}

/// For each domain, whether it does not exist at time 0: the first action of its life cycle is to be created.
pub(crate) fn created_later(actions: &[TimedAction], domains: usize) -> Table<DomId, bool> {
    let mut first: Table<DomId, Option<bool>> = Table::filled(domains, None);
    for timed in actions {
        let (d, creates) = match timed.action {
            Action::Create(d) => (d, true),
            Action::Destroy(d) | Action::Shutdown(d) | Action::Reboot(d) => (d, false),
            Action::Crash(d) | Action::Kill(d) => (d, false),
            Action::Save(d) | Action::Restore(d) => (d, false),
            _ => continue,
        };
        first[d].get_or_insert(creates);
    }
    first.into_iter().map(|creates| creates == Some(true)).collect()
}
