//! Who listens to a run: counters, traces, the conformance recorder.

use crate::{DomId, HostState, PcpuId, RunState, Span, Time, VcpuId};

/// Why a vCPU could go on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WakeCause {
    /// The first wake-up that was scheduled for it, before it had ever been woken.
    Start,
    /// A timer that its own program or guest kernel had set.
    Timer,
    /// A device's interrupt.
    Interrupt,
    /// An event sent by the vCPU that executed (event channel, inter-processor interrupt).
    Event,
    /// It was paused (by the toolstack, or parked by the scheduler), and is no longer.
    Unpause,
}

impl WakeCause {
    /// Its name in tables and traces.
    pub fn name(self) -> &'static str {
        match self {
            WakeCause::Start => "start",
            WakeCause::Timer => "timer",
            WakeCause::Interrupt => "interrupt",
            WakeCause::Event => "event",
            WakeCause::Unpause => "unpause",
        }
    }
}

/// A decision that changed what a pCPU runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// When.
    pub time: Time,
    /// Where.
    pub pcpu: PcpuId,
    /// The vCPU that ran until now.
    pub from: VcpuId,
    /// The vCPU that runs from now on.
    pub to: VcpuId,
    /// How long `to` was runnable without running just before, ns (0 for an idle vCPU).
    pub waited_ns: Span,
    /// What that wait began with, if it was a wake-up (and not a preemption).
    pub woken: Option<WakeCause>,
}

/// One row of scheduler state that a specification lists for comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateRow {
    /// When.
    pub time: Time,
    /// Whose: the domain's number (−1: a pCPU).
    pub domain: i64,
    /// The vCPU's number in the domain, the pCPU's number, or −1 for the domain as a whole.
    pub vcpu: i64,
    /// What.
    pub key: &'static str,
    /// Its value.
    pub value: i64,
}

/// What happens to a packet, request or event on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// It was put into a ring.
    EnterRing,
    /// It was taken from a ring.
    LeaveRing,
    /// A device raised its interrupt.
    Interrupt,
    /// An event was sent through an event channel.
    EventSent,
}

impl IoKind {
    /// Its name in traces.
    pub fn name(self) -> &'static str {
        match self {
            IoKind::EnterRing => "enter-ring",
            IoKind::LeaveRing => "leave-ring",
            IoKind::Interrupt => "interrupt",
            IoKind::EventSent => "event-sent",
        }
    }
}

/// One step of I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoStep {
    /// What happens.
    pub kind: IoKind,
    /// The domain it happens to: whose ring or device it is, who is told.
    pub domain: DomId,
    /// Which ring, device or packet, in the numbers of the device.
    pub id: u64,
    /// What else there is to say: how many are in the ring, say.
    pub value: i64,
}

/// Listens to a run. Every method has an empty default; a listener may look at the host but cannot change it.
pub trait Observer {
    /// Does it want [`state`](Observer::state) rows? Read once, when the host is made.
    const WANTS_STATE: bool = false;

    /// Does it want [`io_step`](Observer::io_step)? Read once, as above.
    const WANTS_IO: bool = false;

    /// The runstates of which it wants to know [when they begin and end](Observer::runstate_changed). Read once, as above.
    fn wanted_runstates(&self) -> &[RunState] {
        &[]
    }

    /// A pCPU changed what it runs. Called after the change.
    fn switched(&mut self, _host: &HostState, _switch: Switch) {}

    /// A pCPU took a decision (also one that changes nothing).
    fn decided(&mut self, _host: &HostState, _pcpu: PcpuId) {}

    /// A blocked vCPU became runnable (or will be so once it is unpaused). `by` is the vCPU whose execution caused it,
    /// if one did.
    fn woke(&mut self, _host: &HostState, _vcpu: VcpuId, _cause: WakeCause, _by: Option<VcpuId>) {}

    /// The event at hand has changed the runstate of `vcpu` from or to one that is [wanted](Observer::wanted_runstates);
    /// told once the event is over, perhaps more than once for one vCPU. Never for idle vCPUs.
    fn runstate_changed(&mut self, _host: &HostState, _vcpu: VcpuId) {}

    /// The pCPUs that `vcpu` may run on have changed.
    fn affinity_changed(&mut self, _host: &HostState, _vcpu: VcpuId) {}

    /// The hypervisor itself works on `pcpu` (or brings in what is cold there) up to [`HostState::busy_until`].
    fn busy(&mut self, _host: &HostState, _pcpu: PcpuId) {}

    /// A timer that the scheduler had set is due on `pcpu`; `token` is the scheduler's name for it.
    fn timer_due(&mut self, _host: &HostState, _pcpu: PcpuId, _token: u32) {}

    /// The world reported a step of I/O.
    fn io_step(&mut self, _host: &HostState, _step: IoStep) {}

    /// A vCPU was assigned to another pCPU.
    fn migrated(&mut self, _host: &HostState, _vcpu: VcpuId, _from: PcpuId, _to: PcpuId) {}

    /// A scripted action was carried out, and whether the scheduler accepted its values.
    fn acted(&mut self, _host: &HostState, _domain: Option<DomId>, _accepted: bool) {}

    /// The scheduler reported state.
    fn state(&mut self, _row: StateRow) {}
}

impl Observer for () {}
