//! Who listens to a run: counters, traces, the conformance recorder.

use crate::{Context, DomId, PcpuId, Span, Time, VcpuId};

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
    /// Did that wait begin with a wake-up (and not with a preemption)?
    pub woken: bool,
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

/// Listens to a run. Every method has an empty default; a listener may look at the host but cannot change it.
pub trait Observer {
    /// Does it want [`state`](Observer::state) rows? Read once, when the host is made.
    const WANTS_STATE: bool = false;

    /// A pCPU changed what it runs. Called after the change.
    fn switched(&mut self, _host: &Context, _switch: Switch) {}

    /// A pCPU took a decision (also one that changes nothing).
    fn decided(&mut self, _host: &Context, _pcpu: PcpuId) {}

    /// A blocked vCPU became runnable. `by` is the vCPU whose execution caused it, if one did.
    fn woke(&mut self, _host: &Context, _vcpu: VcpuId, _by: Option<VcpuId>) {}

    /// A vCPU was assigned to another pCPU.
    fn migrated(&mut self, _host: &Context, _vcpu: VcpuId, _from: PcpuId, _to: PcpuId) {}

    /// A scripted action was carried out, and whether the scheduler accepted its values.
    fn acted(&mut self, _host: &Context, _domain: Option<DomId>, _accepted: bool) {}

    /// The scheduler reported state.
    fn state(&mut self, _row: StateRow) {}
}

impl Observer for () {}
