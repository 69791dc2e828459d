//! The host as observers see it: all of it, to read.

use std::ops::{Deref, DerefMut};

use crate::accounting::Accounting;
use crate::cache::CacheCounts;
use crate::context::policy::PolicyContext;
use crate::{
    Costs, CpuMask, DomId, HostConfig, IoStep, PcpuId, RunState, Slowed, Span, Table, Time, VcpuId, WakeCause,
};

/// The whole state of a host: everything that a policy sees, by the same methods, and the accounts besides. Where a policy
/// sees [units](crate::units) of several vCPUs, these are the vCPUs themselves, and the pCPUs that execute them.
#[derive(Clone, Debug)]
pub struct HostState {
    pub(crate) policy: PolicyContext,
    pub(crate) accounting: Accounting,
    /// The id of the next domain.
    pub(crate) next_id: i64,
    /// Running time of each vCPU when its domain's present life began.
    pub(crate) lived: Table<VcpuId, Span>,
    /// Virtual interrupts raised by the event at hand, delivered at its end.
    pub(crate) kicks: Vec<(VcpuId, WakeCause, Option<PcpuId>)>,
    /// The pCPU on which the event at hand happens, if the world has declared it.
    pub(crate) interrupted: Option<PcpuId>,
    /// pCPUs whose vCPU polls.
    pub(crate) polling: CpuMask,
    /// pCPUs to which the world charged work in the event at hand.
    pub(crate) charged: Vec<PcpuId>,
    /// Whether the observer wants steps of I/O.
    pub(crate) wants_io: bool,
    /// The source whose event is at hand, unless its next event is set already.
    pub(crate) fired: Option<usize>,
    pub(crate) io_steps: Vec<IoStep>,
    pub(crate) work: Work,
}

/// The amount of work done on a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Events taken from the queue.
    pub events: u64,
    /// Events in which a vCPU only continued with its next `Run`. All others concern the scheduler: timers, wake-ups,
    /// actions, sources, and operations that ended in a block or a yield.
    pub continuations: u64,
    /// Calls of the policy's schedule hook.
    pub schedule_calls: u64,
}

impl Deref for HostState {
    type Target = PolicyContext;

    #[inline(always)]
    fn deref(&self) -> &PolicyContext {
        &self.policy
    }
}

impl DerefMut for HostState {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut PolicyContext {
        &mut self.policy
    }
}

impl HostState {
    /// The pCPUs of the host, of all CPU pools.
    pub fn all_pcpus(&self) -> CpuMask {
        CpuMask::first_n(self.pcpu_count())
    }

    /// Ends the polling on `p`. True: a vCPU polled there.
    #[inline(always)]
    pub(crate) fn end_poll(&mut self, p: PcpuId) -> bool {
        let polled = !self.polling.is_empty() && self.polling.contains(p);
        if polled {
            self.polling.remove(p);
        }
        polled
    }

    /// The vCPU that `p` executes: of a [unit](crate::units) that `p` has chosen with other pCPUs, its own vCPU.
    #[inline(always)]
    pub fn executes(&self, p: PcpuId) -> VcpuId {
        self.policy.pcpus[p].executes
    }

    /// Whether a pCPU executes `v`.
    #[inline(always)]
    pub fn is_executing(&self, v: VcpuId) -> bool {
        self.policy.vcpus[v].runs()
    }

    /// Whether `v` itself is runnable, whatever others of its [unit](crate::units) are: not blocked, not migrating, and
    /// neither itself nor its domain paused.
    #[inline(always)]
    pub fn vcpu_runnable(&self, v: VcpuId) -> bool {
        self.policy.vcpus[v].pause_flags == 0
    }

    /// All vCPUs of the host but the idle ones, in order of creation.
    pub fn all_guest_vcpus(&self) -> impl Iterator<Item = VcpuId> + use<> {
        (self.policy.pcpus.len() as u32..self.policy.vcpus.len() as u32).map(VcpuId)
    }

    /// All vCPUs of a domain, in order.
    pub fn all_vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        self.policy.all_vcpus_of(d)
    }

    /// The time of `p` up to now: running vCPUs, idle, overhead. The three sum to the time elapsed.
    pub fn pcpu_times(&self, p: PcpuId) -> (Span, Span, Span) {
        self.accounting.pcpu_times(&self.policy, p)
    }

    /// The time until which no vCPU makes progress on `p`, because the hypervisor works there or cold caches are filled
    /// again. If it is past, the current vCPU makes progress.
    #[inline(always)]
    pub fn busy_until(&self, p: PcpuId) -> Time {
        self.accounting.busy_until(p)
    }

    /// The time until which the hypervisor works on `p`; from then to [`HostState::busy_until`] cold caches are filled again.
    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.accounting.hypervisor_until(p)
    }

    /// The rest of the present `Run` of `v`, which it has not executed up to now.
    pub fn left(&self, v: VcpuId) -> Span {
        self.accounting.left(&self.policy, v)
    }

    /// The part of the time gotten so far by `v` in which no work was done, because the [hardware](crate::speed) was slower.
    pub fn slowed(&self, v: VcpuId) -> Slowed {
        self.accounting.slowed(&self.policy, v)
    }

    /// The number of decisions taken so far by `p`.
    pub fn pcpu_decisions(&self, p: PcpuId) -> u64 {
        self.pcpus[p].decisions
    }

    /// The amount of work done so far.
    pub fn work_done(&self) -> Work {
        self.work
    }

    /// The cost of cold caches to `v` so far.
    pub fn cache_counts(&self, v: VcpuId) -> CacheCounts {
        self.accounting.cache_counts(&self.policy, v)
    }

    /// The cost of cold caches so far to every vCPU up to the last one that had a working set.
    pub fn all_cache_counts(&self) -> Vec<CacheCounts> {
        self.accounting.caches.ids().map(|v| self.cache_counts(v)).collect()
    }

    /// The costs of physical mode.
    pub fn costs(&self) -> &Costs {
        &self.accounting.costs
    }

    // ---- for the host itself ----

    /// A host without domains. `runstates` and `wants_io` are what the observer wants, see [`PolicyContext`].
    pub(crate) fn new(
        config: &HostConfig,
        wants_state: bool,
        runstates: &[RunState],
        wants_io: bool,
    ) -> Self {
        let policy = PolicyContext::new(config, wants_state, runstates);
        let accounting = Accounting::new(config, &policy.topology);
        HostState {
            accounting,
            next_id: 1,
            lived: Table::filled(policy.vcpus.len(), Span::ZERO),
            kicks: Vec::with_capacity(64),
            interrupted: None,
            polling: CpuMask::EMPTY,
            charged: Vec::new(),
            wants_io,
            fired: None,
            io_steps: Vec::new(),
            work: Work::default(),
            policy,
        }
    }
}
