//! Domains and vCPUs as the toolstack lists them: states in letters, ids, and CPU time.

use std::fmt;

use crate::domain::{Domain, Life, Over};
use crate::vcpu::pause_flag;
use crate::{DomId, HostState, Span, VcpuId};

/// The state of a domain that is on the host, as the six letters of the toolstack's list: `r` running, `b` blocked, `p`
/// paused, `s` shut down, `c` crashed, `d` dying. A domain without any waits for a pCPU. One that has crashed has shut down
/// too (`---sc-`); the toolstack pauses a domain before it destroys it (`--p--d`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainState {
    /// A vCPU of the domain runs.
    pub running: bool,
    /// All vCPUs of the domain that are on line are blocked.
    pub blocked: bool,
    /// The toolstack has paused it.
    pub paused: bool,
    /// The domain's guest has shut down, by itself or by crashing; the toolstack has not destroyed it.
    pub shutdown: bool,
    /// The domain's guest has crashed.
    pub crashed: bool,
    /// The toolstack is destroying it: its memory is being freed.
    pub dying: bool,
}

/// The state of a vCPU of a domain that is on the host, as the three letters of the toolstack's list of vCPUs: `r` running,
/// `b` blocked, `p` off line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcpuState {
    /// The vCPU runs.
    pub running: bool,
    /// The vCPU waits for an event.
    pub blocked: bool,
    /// The vCPU was taken off line.
    pub offline: bool,
}

fn letter(holds: bool, letter: char) -> char {
    if holds { letter } else { '-' }
}

impl fmt::Display for DomainState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DomainState { running, blocked, paused, shutdown, crashed, dying } = *self;
        write!(f, "{}{}{}", letter(running, 'r'), letter(blocked, 'b'), letter(paused, 'p'))?;
        write!(f, "{}{}{}", letter(shutdown, 's'), letter(crashed, 'c'), letter(dying, 'd'))
    }
}

impl fmt::Display for VcpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VcpuState { running, blocked, offline } = *self;
        write!(f, "{}{}{}", letter(running, 'r'), letter(blocked, 'b'), letter(offline, 'p'))
    }
}

impl HostState {
    /// Whether the domain is on the host, and its guest alive.
    pub fn is_there(&self, d: DomId) -> bool {
        self.domains[d].life == Life::There
    }

    /// Whether the toolstack lists the domain: it is on the host, its guest alive or not.
    pub fn is_listed(&self, d: DomId) -> bool {
        matches!(self.domains[d].life, Life::There | Life::Over(_))
    }

    /// The state of the domain; `None` if it is not on the host.
    pub fn domain_state(&self, d: DomId) -> Option<DomainState> {
        let states =
            || self.all_vcpus_of(d).filter_map(|v| self.vcpu_state(v)).filter(|state| !state.offline);
        let Domain { life, pauses, .. } = self.domains[d];
        let Over { shutdown, crashed, dying } = match life {
            Life::Over(over) => over,
            Life::Gone | Life::There | Life::Saved => Over::default(),
        };
        self.is_listed(d).then(|| DomainState {
            running: states().any(|state| state.running),
            blocked: states().all(|state| state.blocked),
            paused: pauses > 0 || dying,
            shutdown,
            crashed,
            dying,
        })
    }

    /// The state of the vCPU; `None` if its domain is not on the host.
    pub fn vcpu_state(&self, v: VcpuId) -> Option<VcpuState> {
        let vcpu = &self.vcpus[v];
        let offline = vcpu.has(pause_flag::DOWN);
        self.is_listed(vcpu.dom).then_some(VcpuState {
            running: vcpu.runs(),
            blocked: vcpu.has(pause_flag::BLOCKED) && !offline,
            offline,
        })
    }

    /// The id that the toolstack shows; `None` if the domain is not on the host. Domain number 0 has 0; the others have 1,
    /// 2 and so on in the order in which they come to the host: one that is rebooted or restored has a new one.
    pub fn toolstack_id(&self, d: DomId) -> Option<i64> {
        self.is_listed(d).then(|| self.domains[d].id)
    }

    /// CPU time of the vCPU since its domain was created, rebooted or restored, as the toolstack lists it.
    pub fn cpu_time(&self, v: VcpuId) -> Span {
        self.run_times(v).running_ns - self.lived[v]
    }

    /// Whether the domain has a guest that obeys the toolstack's requests. A paused guest does not.
    pub(crate) fn listens(&self, d: DomId) -> bool {
        self.is_there(d) && self.domains[d].pauses == 0
    }
}
