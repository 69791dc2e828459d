//! The life of domains: whether they are there, and the letters in which the toolstack lists their states.

use std::fmt;

use crate::context::{Context, mark};
use crate::{DomId, Span, VcpuId};

/// Where a domain is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Not created yet, shut down or destroyed.
    Gone,
    /// On the host.
    There,
    /// Off the host, its state kept.
    Saved,
}

/// What the toolstack did to a guest. The host has done its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifeEvent {
    /// The domain was created: everything in the guest starts anew.
    Booted(DomId),
    /// The domain was shut down or destroyed: nothing of the guest is left.
    Stopped(DomId),
    /// The domain was saved: what reaches its vCPUs now wakes them when it is restored.
    Saved(DomId),
    /// The domain was restored: its vCPUs go on where they stood.
    Restored(DomId),
    /// The vCPU is on line again, and goes on where it stood.
    VcpuUp(VcpuId),
    /// The vCPU is off line: what reaches it now wakes it when it is back.
    VcpuDown(VcpuId),
}

/// What a domain that is on the host does, as the six letters of the toolstack's list: `r` running, `b` blocked, `p`
/// paused. The other three never occur: a domain that shuts down (`s`) is destroyed at once, which is the toolstack's
/// default, nothing crashes (`c`), and destroying (`d`) takes no time. A domain that is neither running nor blocked nor
/// paused waits for a pCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainState {
    /// One of its vCPUs runs.
    pub running: bool,
    /// All its vCPUs that are on line are blocked.
    pub blocked: bool,
    /// The toolstack has paused it.
    pub paused: bool,
}

/// What a vCPU of a domain that is on the host does, as the three letters of the toolstack's list of vCPUs: `r` running,
/// `b` blocked, `p` off line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcpuState {
    /// It runs.
    pub running: bool,
    /// It waits for an event.
    pub blocked: bool,
    /// It is unplugged.
    pub offline: bool,
}

fn letter(holds: bool, letter: char) -> char {
    if holds { letter } else { '-' }
}

impl fmt::Display for DomainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DomainState { running, blocked, paused } = *self;
        write!(f, "{}{}{}---", letter(running, 'r'), letter(blocked, 'b'), letter(paused, 'p'))
    }
}

impl fmt::Display for VcpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VcpuState { running, blocked, offline } = *self;
        write!(f, "{}{}{}", letter(running, 'r'), letter(blocked, 'b'), letter(offline, 'p'))
    }
}

impl Context {
    /// Is the domain on the host: created, and neither gone nor saved?
    pub fn is_there(&self, d: DomId) -> bool {
        self.domains[d.index()].life == Life::There
    }

    /// What the domain does; `None` if it is not on the host.
    pub fn domain_state(&self, d: DomId) -> Option<DomainState> {
        let states = || self.vcpus_of(d).filter_map(|v| self.vcpu_state(v)).filter(|state| !state.offline);
        self.is_there(d).then(|| DomainState {
            running: states().any(|state| state.running),
            blocked: states().all(|state| state.blocked),
            paused: self.domains[d.index()].pauses > 0,
        })
    }

    /// What the vCPU does; `None` if its domain is not on the host.
    pub fn vcpu_state(&self, v: VcpuId) -> Option<VcpuState> {
        let vcpu = &self.vcpus[v.index()];
        let offline = vcpu.marks & mark::UNPLUGGED != 0;
        self.is_there(vcpu.dom).then_some(VcpuState {
            running: vcpu.current,
            blocked: vcpu.marks & mark::BLOCKED != 0 && !offline,
            offline,
        })
    }

    /// The id that the toolstack shows; `None` if the domain is not on the host. Domain number 0 has 0; the others have 1,
    /// 2 and so on in the order in which they come to the host: whoever is rebooted or restored has a new one.
    pub fn toolstack_id(&self, d: DomId) -> Option<i64> {
        self.is_there(d).then(|| self.domains[d.index()].id)
    }

    /// CPU time of the vCPU since its domain was created, rebooted or restored, ns: what the toolstack lists.
    pub fn cpu_time(&self, v: VcpuId) -> Span {
        self.run_times(v).running_ns - self.lived_ns[v.index()]
    }

    /// Is there a guest to do what the toolstack asks it to? A paused one does nothing.
    pub(crate) fn listens(&self, d: DomId) -> bool {
        self.is_there(d) && self.domains[d.index()].pauses == 0
    }
}
