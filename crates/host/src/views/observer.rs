//! The host as observers see it: all of it, to read, by the vCPUs and pCPUs of the host. A policy sees
//! [units](crate::units) instead of vCPUs, under other names:
//!
//! | the host's vCPUs | a policy's units |
//! |---|---|
//! | [`executes`](HostState::executes) | [`current`](crate::PolicyContext::current) |
//! | [`is_executing`](HostState::is_executing) | [`is_current`](crate::PolicyContext::is_current) |
//! | [`vcpu_runnable`](HostState::vcpu_runnable) | [`runnable`](crate::PolicyContext::runnable) |
//! | [`all_guest_vcpus`](HostState::all_guest_vcpus) | [`pool_vcpus`](crate::PolicyContext::pool_vcpus) |
//! | [`all_vcpus_of`](HostState::all_vcpus_of) | [`vcpus_of`](crate::PolicyContext::vcpus_of) |
//! | [`all_pcpus`](HostState::all_pcpus) | [`pcpus`](crate::PolicyContext::pcpus) |
//!
//! Times and costs are read from the [accounts](crate::accounting). Ids are those of this host: another one panics.

use crate::queue::Rank;
use crate::state::Work;
use crate::{
    Costs, CpuMask, DomId, HostState, PcpuId, PoolId, RunState, RunTimes, Throttling, Time, TimerId, VcpuId,
};

impl HostState {
    // ---- time and place ----

    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The pCPU on which the code at hand executes: see [`PolicyContext::executing`](crate::PolicyContext::executing).
    #[inline(always)]
    pub fn executing(&self) -> PcpuId {
        self.executing
    }

    // ---- pCPUs ----

    /// The number of pCPUs of the host.
    #[inline(always)]
    pub fn pcpu_count(&self) -> u32 {
        self.pcpus.len() as u32
    }

    /// The pCPUs of the host, of all CPU pools.
    pub fn all_pcpus(&self) -> CpuMask {
        CpuMask::first_n(self.pcpu_count())
    }

    /// The CPU pool of a pCPU.
    pub fn pool_of_pcpu(&self, p: PcpuId) -> PoolId {
        self.topology.pool_of(p).expect("a pCPU of the host is in a CPU pool")
    }

    /// The core of a pCPU, counted over the whole host.
    pub fn core(&self, p: PcpuId) -> u32 {
        self.topology.core(p)
    }

    /// The vCPU that `p` executes: of a [unit](crate::units) that `p` has chosen with other pCPUs, its own vCPU.
    #[inline(always)]
    pub fn executes(&self, p: PcpuId) -> VcpuId {
        self.pcpus[p].executes
    }

    /// The idle vCPU of `p`.
    #[inline(always)]
    pub fn idle(&self, p: PcpuId) -> VcpuId {
        VcpuId(p.0)
    }

    /// The number of decisions taken so far by `p`.
    pub fn pcpu_decisions(&self, p: PcpuId) -> u64 {
        self.pcpus[p].decisions
    }

    // ---- vCPUs ----

    /// The number of vCPUs, idle ones included: tables kept per vCPU have this size.
    pub fn vcpu_count(&self) -> usize {
        self.vcpus.len()
    }

    /// All vCPUs of the host but the idle ones, in order of creation.
    pub fn all_guest_vcpus(&self) -> impl Iterator<Item = VcpuId> + use<> {
        (self.pcpus.len() as u32..self.vcpus.len() as u32).map(VcpuId)
    }

    /// Whether `v` is an idle vCPU.
    #[inline(always)]
    pub fn is_idle(&self, v: VcpuId) -> bool {
        v.index() < self.pcpus.len()
    }

    /// Whether a pCPU executes `v`.
    #[inline(always)]
    pub fn is_executing(&self, v: VcpuId) -> bool {
        self.vcpus[v].runs()
    }

    /// Whether `v` itself is runnable, whatever others of its [unit](crate::units) are: not blocked, not migrating, and
    /// neither itself nor its domain paused.
    #[inline(always)]
    pub fn vcpu_runnable(&self, v: VcpuId) -> bool {
        self.vcpus[v].pause_flags == 0
    }

    /// The pCPU that `v` is assigned to: where it runs, ran last, or has been placed.
    #[inline(always)]
    pub fn processor(&self, v: VcpuId) -> PcpuId {
        self.vcpus[v].processor
    }

    /// The runstate of `v`.
    #[inline(always)]
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.vcpus[v].state
    }

    /// The time that `v` has been in each runstate up to now.
    #[inline]
    pub fn run_times(&self, v: VcpuId) -> RunTimes {
        self.vcpus[v].run_times(self.now)
    }

    /// The pCPUs `v` may run on (hard affinity), all in its domain's CPU pool.
    #[inline(always)]
    pub fn affinity(&self, v: VcpuId) -> &CpuMask {
        self.affinity.get(v).expect("a vCPU has an affinity")
    }

    /// The pCPUs that `v` prefers (soft affinity), whether that makes a difference or not. `None`: no preference.
    #[inline(always)]
    pub fn soft_affinity(&self, v: VcpuId) -> Option<&CpuMask> {
        self.soft_affinity.get(v)
    }

    /// A vCPU as files and tables name it: domain number and vCPU number in the domain. The idle vCPU of pCPU p is (−1, p).
    pub fn name(&self, v: VcpuId) -> (i64, i64) {
        if self.is_idle(v) {
            return (-1, i64::from(v.0));
        }
        let domain = &self.domains[self.dom(v)];
        (domain.number, i64::from(v.0 - domain.first_vcpu))
    }

    // ---- domains ----

    /// The number of domains.
    pub fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// The domain of `v`. Not for idle vCPUs, which have none.
    #[inline(always)]
    pub fn dom(&self, v: VcpuId) -> DomId {
        debug_assert!(!self.is_idle(v), "idle vCPUs belong to no domain");
        self.vcpus[v].dom
    }

    /// All vCPUs of a domain, in order.
    pub fn all_vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        self.domains[d].vcpu_numbers().map(VcpuId)
    }

    /// The vCPU of a domain that has this number there.
    pub fn vcpu_of(&self, d: DomId, number: u32) -> VcpuId {
        VcpuId(self.domains[d].first_vcpu + number)
    }

    /// The CPU pool a domain is in.
    pub fn pool_of(&self, d: DomId) -> PoolId {
        self.domains[d].pool
    }

    /// The domain's number as an administrator sees it.
    pub fn domain_number(&self, d: DomId) -> i64 {
        self.domains[d].number
    }

    /// Throttling of a domain by its limits, up to the last report of its policy: at the end of each period of a limit.
    pub fn throttling(&self, d: DomId) -> Throttling {
        self.throttling.get(d).copied().unwrap_or_default()
    }

    // ---- the host ----

    /// The slice timer of `p`, which the host sets at each decision.
    #[inline]
    pub fn slice_timer(&self, p: PcpuId) -> TimerId {
        self.pcpus[p].slice_timer
    }

    /// The time at which a timer is due ([`NEVER`](crate::NEVER): stopped).
    #[inline]
    pub fn timer_expiry(&self, timer: TimerId) -> Time {
        self.queue.time_of(Rank::Timer, timer.index())
    }

    /// The amount of work done so far.
    pub fn work_done(&self) -> Work {
        self.work
    }

    /// The costs of physical mode.
    pub fn costs(&self) -> &Costs {
        &self.accounts.costs
    }
}
