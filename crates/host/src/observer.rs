//! Observers of a run: counters, traces, the conformance recorder.

use crate::{Acted, HostState, IoStep, PcpuId, RunState, Span, StateRow, Time, VcpuId, WakeCause};

/// A decision that changed what a pCPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// The time of the decision.
    pub time: Time,
    /// The pCPU that decided.
    pub pcpu: PcpuId,
    /// The vCPU that ran until now.
    pub from: VcpuId,
    /// The vCPU that runs from now on.
    pub to: VcpuId,
    /// The time that `to` was runnable without running just before (0 for an idle vCPU).
    pub waited_ns: Span,
    /// The cause of the wake-up that began that wait; `None`: the wait began with a preemption.
    pub woken: Option<WakeCause>,
}

/// Listens to a run. Every method has an empty default; a listener may look at the host but cannot change it.
pub trait Observer {
    /// Whether the observer wants [`state`](Observer::state) rows. Read once, when the host is made.
    const WANTS_STATE: bool = false;

    /// Whether the observer wants [`io_step`](Observer::io_step). Read once, as above.
    const WANTS_IO: bool = false;

    /// The runstates whose [beginning and end](Observer::runstate_changed) the observer wants to know. Read once, as above.
    fn wanted_runstates(&self) -> &[RunState] {
        &[]
    }

    /// A pCPU has changed its current vCPU. Called after the change.
    fn switched(&mut self, _host: &HostState, _switch: Switch) {}

    /// A pCPU made a decision (also one that changes nothing).
    fn decided(&mut self, _host: &HostState, _pcpu: PcpuId) {}

    /// A blocked vCPU became runnable (or will be so once it is unpaused). `by` is the vCPU whose execution caused it,
    /// if one did.
    fn woke(&mut self, _host: &HostState, _vcpu: VcpuId, _cause: WakeCause, _by: Option<VcpuId>) {}

    /// The event at hand has changed the runstate of `vcpu` from or to one that is [wanted](Observer::wanted_runstates);
    /// called once the event is over, perhaps more than once for one vCPU. Never for idle vCPUs.
    fn runstate_changed(&mut self, _host: &HostState, _vcpu: VcpuId) {}

    /// The pCPUs that `vcpu` may run on have changed.
    fn affinity_changed(&mut self, _host: &HostState, _vcpu: VcpuId) {}

    /// The hypervisor itself works on `pcpu`, or fills its cold caches, up to [`HostState::busy_until`]. Not called for
    /// a switch, which usually costs such work.
    fn busy(&mut self, _host: &HostState, _pcpu: PcpuId) {}

    /// A timer that the scheduler had set is due on `pcpu`; `token` is the scheduler's name for it.
    fn timer_due(&mut self, _host: &HostState, _pcpu: PcpuId, _token: u32) {}

    /// The world reported a step of I/O.
    fn io_step(&mut self, _host: &HostState, _step: IoStep) {}

    /// A vCPU was assigned to another pCPU.
    fn migrated(&mut self, _host: &HostState, _vcpu: VcpuId, _from: PcpuId, _to: PcpuId) {}

    /// An action was carried out, or was not possible.
    fn acted(&mut self, _host: &HostState, _acted: Acted) {}

    /// The scheduler reported state.
    fn state(&mut self, _row: StateRow) {}
}

impl Observer for () {}
