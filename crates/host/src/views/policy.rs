//! The host as a scheduler sees it: time, timers, topology, affinity and runstates, and the few things a policy may ask
//! for. It sees no costs, no caches, and not what vCPUs have left to execute.
//!
//! ```
//! # use vcpulab_host::{PolicyContext, VcpuId};
//! fn running(ctx: &PolicyContext, v: VcpuId) -> bool {
//!     ctx.is_current(v) && ctx.current(ctx.processor(v)) == v
//! }
//! ```
//!
//! ```compile_fail,E0599
//! # use vcpulab_host::{PolicyContext, Span, VcpuId};
//! fn remaining(ctx: &PolicyContext, v: VcpuId) -> Span {
//!     ctx.left(v)
//! }
//! ```
//!
//! With [core scheduling](crate::units) the vCPUs of this view are units, each by its first vCPU, and its pCPUs are resources,
//! each by its first pCPU.
//!
//! A policy that names a pCPU, vCPU, domain or timer outside the host, or asks for what is in another CPU pool, is answered
//! with something harmless, and the run ends as [`Broken`](crate::Broken) when the hook has returned.

use crate::domain::Domain;
use crate::queue::Rank;
use crate::state::{Pcpu, TimerOwner};
use crate::vcpu::{Vcpu, pause_flag};
use crate::{
    CpuMask, Creation, DomId, GroupConfig, HostState, Isolation, NEVER, PcpuId, PoolId, RunState, RunTimes,
    StateRow, ThreadConfig, Throttling, Time, TimerId, VcpuId,
};

/// The host as a scheduler sees it. See the [module](self).
#[derive(Clone, Debug)]
pub struct PolicyContext {
    pub(crate) state: HostState,
}

impl PolicyContext {
    // ---- time and place ----

    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.state.now
    }

    /// The pCPU on which the code at hand executes: a timer's own; the running vCPU's; the processor of a vCPU that wakes;
    /// the first pCPU of the pool for an action, and for code that executes in another CPU pool.
    #[inline(always)]
    pub fn executing(&self) -> PcpuId {
        self.state.executing
    }

    // ---- pCPUs ----

    /// The number of pCPUs of the whole host: tables kept per pCPU have at most this size.
    #[inline(always)]
    pub fn pcpu_count(&self) -> u32 {
        self.state.pcpus.len() as u32
    }

    /// The pCPUs of this scheduler: those of its CPU pool.
    #[inline(always)]
    pub fn pcpus(&self) -> &CpuMask {
        self.state.topology.masters(self.state.pool)
    }

    /// The number of real pCPUs behind each pCPU of this view, and of vCPUs behind each vCPU: more than 1 with core
    /// scheduling.
    pub fn unit_size(&self) -> u32 {
        self.state.topology.unit_size()
    }

    /// The first pCPU of this scheduler.
    pub fn first_pcpu(&self) -> PcpuId {
        self.state.topology.first_pcpu(self.state.pool)
    }

    /// The CPU pool of a pCPU.
    pub fn pool_of_pcpu(&self, p: PcpuId) -> PoolId {
        self.state.topology.pool_of(p).unwrap_or_else(|| {
            self.unknown("pCPU", p.0);
            self.state.pool
        })
    }

    /// The core of a pCPU, counted over the whole host.
    pub fn core(&self, p: PcpuId) -> u32 {
        self.state.topology.core(self.known(p))
    }

    /// The socket of a pCPU.
    pub fn socket(&self, p: PcpuId) -> u32 {
        self.state.topology.socket(self.known(p))
    }

    /// The NUMA node of a pCPU.
    pub fn node(&self, p: PcpuId) -> u32 {
        self.state.topology.node(self.known(p))
    }

    /// The threads of the core of a pCPU, including itself.
    #[inline(always)]
    pub fn siblings(&self, p: PcpuId) -> &CpuMask {
        self.state.topology.siblings(self.known(p))
    }

    /// The pCPUs of the socket of a pCPU, including itself.
    #[inline(always)]
    pub fn socket_mates(&self, p: PcpuId) -> &CpuMask {
        self.state.topology.socket_mates(self.known(p))
    }

    /// The pCPUs of each NUMA node.
    #[inline(always)]
    pub fn nodes(&self) -> &[CpuMask] {
        self.state.topology.nodes()
    }

    /// The number of threads of each core.
    pub fn threads_per_core(&self) -> u32 {
        self.state.topology.threads()
    }

    /// The order in which new vCPUs come to their affinity.
    pub fn creation(&self) -> Creation {
        self.state.creation
    }

    /// The vCPU that the policy has chosen for `p`. During a decision this is still the outgoing vCPU.
    #[inline(always)]
    pub fn current(&self, p: PcpuId) -> VcpuId {
        self.pcpu(p).current
    }

    /// The idle vCPU of `p`.
    #[inline(always)]
    pub fn idle(&self, p: PcpuId) -> VcpuId {
        self.pcpu(p);
        VcpuId(p.0)
    }

    /// Asks `p`, a pCPU of this scheduler, to decide once the event at hand has been handled. Any other pCPU ends the
    /// run. Asking twice changes nothing.
    #[inline(always)]
    pub fn raise_reschedule(&mut self, p: PcpuId) {
        if self.state.topology.pool_of(p) == Some(self.state.pool) {
            self.state.reschedule.insert(p);
        } else {
            self.state.outbox.violate(format!("a decision was asked of pCPU {}, {}", p.0, self.stranger(p)));
        }
    }

    /// The time that a context switch takes.
    pub fn context_switch_cost(&self) -> crate::Span {
        self.state.accounts.costs.context_switch_ns
    }

    /// The time until which `p` executes the hypervisor's own code: a switch, an interrupt.
    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.state.hypervisor_until(self.known(p))
    }

    // ---- vCPUs ----

    /// The number of vCPUs, idle ones included: tables kept per vCPU have this size.
    pub fn vcpu_count(&self) -> usize {
        self.state.vcpus.len()
    }

    /// The vCPUs of this scheduler: those of the domains in its CPU pool that are there.
    pub fn pool_vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.state.units_in(self.state.pool)
    }

    /// Whether `v` is an idle vCPU.
    #[inline(always)]
    pub fn is_idle(&self, v: VcpuId) -> bool {
        v.index() < self.state.pcpus.len()
    }

    /// Whether `v` is the current vCPU of its processor: the policy has chosen it, and has not chosen another one since.
    #[inline(always)]
    pub fn is_current(&self, v: VcpuId) -> bool {
        self.vcpu(v).current
    }

    /// The pCPU that `v` is assigned to: where it runs, ran last, or has been placed.
    #[inline(always)]
    pub fn processor(&self, v: VcpuId) -> PcpuId {
        self.vcpu(v).processor
    }

    /// Assigns `v` to `p`, a pCPU of its domain's CPU pool (anything else ends the run).
    #[inline(always)]
    pub fn set_processor(&mut self, v: VcpuId, p: PcpuId) {
        if self.vcpu(v).processor != p {
            self.assign(v, p);
        }
    }

    fn assign(&mut self, v: VcpuId, p: PcpuId) {
        if !self.is_guest(v) {
            return;
        }
        if self.state.topology.masters(self.pool_of(self.dom(v))).contains(p) {
            self.state.assign_members(v, p);
        } else {
            let (domain, number) = self.name(v);
            let why = self.stranger(p);
            self.state
                .outbox
                .violate(format!("vCPU {number} of domain {domain} was assigned to pCPU {}, {why}", p.0));
        }
    }

    /// Whether `v` is runnable: not blocked, not migrating, and neither itself nor its domain paused (with core scheduling:
    /// whether any vCPU of the unit is). Idle vCPUs always are.
    #[inline(always)]
    pub fn runnable(&self, v: VcpuId) -> bool {
        self.vcpu(v).pause_flags == 0 || self.state.companion_runnable(v)
    }

    /// The runstate of `v`.
    #[inline(always)]
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.vcpu(v).state
    }

    /// The time that `v` has been in each runstate up to now.
    #[inline]
    pub fn run_times(&self, v: VcpuId) -> RunTimes {
        self.vcpu(v).run_times(self.state.now)
    }

    /// The pCPUs `v` may run on (hard affinity), all in its domain's CPU pool.
    #[inline(always)]
    pub fn affinity(&self, v: VcpuId) -> &CpuMask {
        self.state.affinity.get(v).unwrap_or_else(|| {
            self.unknown("vCPU", v.0);
            &CpuMask::EMPTY
        })
    }

    /// The pCPUs that `v` prefers (soft affinity), whether that makes a difference or not. `None`: no preference.
    #[inline(always)]
    pub fn soft_affinity(&self, v: VcpuId) -> Option<&CpuMask> {
        self.state.soft_affinity.get(v)
    }

    /// Whether a vCPU of the host prefers some pCPUs.
    #[inline(always)]
    pub fn any_soft_affinity(&self) -> bool {
        !self.state.soft_affinity.is_empty()
    }

    /// The pCPUs of this scheduler that `v` may run on and prefers, if its soft affinity counts: it leaves some of them,
    /// but not all of them, and not all pCPUs (`docs/concepts/topology.md`).
    #[inline(always)]
    pub fn preferred(&self, v: VcpuId) -> Option<CpuMask> {
        let soft = self.state.soft_affinity.get(v)?;
        let (hard, all) = (self.state.given_affinity(v), self.pcpus());
        let counts = !soft.and(hard).is_empty() && !soft.contains_all(hard) && !soft.contains_all(all);
        counts.then(|| soft.and(hard).and(all))
    }

    /// A vCPU as files and tables name it: domain number and vCPU number in the domain. The idle vCPU of pCPU p is (−1, p).
    pub fn name(&self, v: VcpuId) -> (i64, i64) {
        if self.state.is_idle(v) {
            return (-1, i64::from(v.0));
        }
        let domain = self.domain(self.dom(v));
        domain.map_or((-1, -1), |domain| (domain.number, i64::from(v.0 - domain.first_vcpu)))
    }

    /// The time of the last switch of `v`, in or out (0: no switch yet).
    #[inline(always)]
    pub fn switched_at(&self, v: VcpuId) -> Time {
        self.vcpu(v).switched_at
    }

    /// Parks `v`: it is not runnable until it is unparked, whatever else happens. No hook is called: a policy that parks
    /// the running vCPU asks its pCPU to reschedule. Parking twice changes nothing.
    pub fn park(&mut self, v: VcpuId) {
        if self.is_guest(v) {
            self.state.park_members(v);
        }
    }

    /// Ends the parking of `v`, if it is parked. No hook is called: if `v` is runnable now, the policy queues it as it
    /// queues vCPUs that wake.
    pub fn unpark(&mut self, v: VcpuId) {
        if self.is_guest(v) {
            self.state.unpark_members(v);
        }
    }

    /// Whether `v` is parked.
    pub fn is_parked(&self, v: VcpuId) -> bool {
        self.vcpu(v).has(pause_flag::PARKED)
    }

    /// Asks for `v` to be moved: it is not runnable until the host has moved it, which it does once `v` is not running.
    #[inline]
    pub fn start_migration(&mut self, v: VcpuId) {
        if self.is_guest(v) {
            self.state
                .members(v)
                .for_each(|member| self.state.set_pause_flags(member, pause_flag::MIGRATING));
        }
    }

    // ---- domains ----

    /// The number of domains.
    pub fn domain_count(&self) -> usize {
        self.state.domains.len()
    }

    /// The domain of `v`. Not for idle vCPUs, which have none.
    #[inline(always)]
    pub fn dom(&self, v: VcpuId) -> DomId {
        debug_assert!(!self.state.is_idle(v), "idle vCPUs belong to no domain");
        self.vcpu(v).dom
    }

    /// The vCPUs of a domain that this scheduler decides on, in order: with core scheduling, its units.
    pub fn vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        let vcpus = self.domain(d).map_or(0..0, Domain::vcpu_numbers);
        vcpus.map(VcpuId).step_by(self.state.topology.unit_size() as usize)
    }

    /// The CPU pool a domain is in.
    pub fn pool_of(&self, d: DomId) -> PoolId {
        self.domain(d).map_or(self.state.pool, |domain| domain.pool)
    }

    /// The domain's number as an administrator sees it (−1 for idle vCPUs: see [`PolicyContext::name`]).
    pub fn domain_number(&self, d: DomId) -> i64 {
        self.domain(d).map_or(-1, |domain| domain.number)
    }

    // ---- what Linux knows ----

    /// The control groups, each after the one around it.
    pub fn groups(&self) -> &[GroupConfig] {
        &self.state.groups
    }

    /// The pCPUs that the kernel leaves alone.
    pub fn isolation(&self) -> &Isolation {
        &self.state.isolation
    }

    /// The thread that a domain's vCPU is.
    pub fn thread(&self, v: VcpuId) -> ThreadConfig {
        self.state.threads.get(v.index() - self.state.pcpus.len()).copied().unwrap_or_default()
    }

    /// Throttling of a domain by its limits, up to the last report of its policy: at the end of each period of a limit.
    pub fn throttling(&self, d: DomId) -> Throttling {
        self.state.throttling.get(d).copied().unwrap_or_default()
    }

    /// Stores the throttling of a domain, for [`PolicyContext::throttling`].
    pub fn note_throttling(&mut self, d: DomId, throttling: Throttling) {
        *self.state.throttling.entry(d) = throttling;
    }

    // ---- static variables ----

    /// Two variables that the schedulers' code shares: one pair for the whole host, whatever its CPU pools. 0 at first.
    pub fn statics(&self) -> [i64; 2] {
        self.state.statics
    }

    /// Sets the two shared variables.
    pub fn set_statics(&mut self, statics: [i64; 2]) {
        self.state.statics = statics;
    }

    // ---- timers ----

    /// Creates a timer, stopped. When it is due the host calls [`Scheduler::timer`](crate::Scheduler::timer) with `token`,
    /// executing on `p`, a pCPU of this scheduler (any other ends the run).
    pub fn new_timer(&mut self, p: PcpuId, token: u32) -> TimerId {
        if self.state.topology.pool_of(p) != Some(self.state.pool) {
            self.state.outbox.violate(format!("a timer was made on pCPU {}, {}", p.0, self.stranger(p)));
        }
        let owner = TimerOwner::Policy { token, pcpu: p, pool: self.state.pool };
        match self.state.spare_timers.pop() {
            Some(timer) => {
                self.state.timers[timer] = owner;
                timer
            }
            None => self.state.add_timer(owner),
        }
    }

    /// Releases a timer, stopped. It must not be used again.
    pub fn drop_timer(&mut self, timer: TimerId) {
        self.stop_timer(timer);
        if self.is_timer(timer) {
            self.state.spare_timers.push(timer);
        }
    }

    /// Sets a timer, or moves a timer that is set. A time already past counts as now. ([`Costs`](crate::Costs) define
    /// how late it is handled.)
    #[inline(always)]
    pub fn set_timer(&mut self, timer: TimerId, at: Time) {
        if self.is_timer(timer) {
            self.state.queue.set(Rank::Timer, timer.index(), self.state.handled_at(at.max(self.state.now)));
        }
    }

    /// Stops a timer.
    #[inline(always)]
    pub fn stop_timer(&mut self, timer: TimerId) {
        self.set_timer(timer, NEVER);
    }

    /// The time at which a timer is due ([`NEVER`]: stopped).
    #[inline]
    pub fn timer_expiry(&self, timer: TimerId) -> Time {
        if self.is_timer(timer) { self.state.queue.time_of(Rank::Timer, timer.index()) } else { NEVER }
    }

    /// The number of timers, the slice timers included.
    pub fn timer_count(&self) -> usize {
        self.state.timers.len()
    }

    /// Whether the timer was made by this scheduler.
    pub fn is_own_timer(&self, timer: TimerId) -> bool {
        matches!(self.state.timers.get(timer), Some(&TimerOwner::Policy { pool, .. }) if pool == self.state.pool)
    }

    /// The slice timer of `p`, which the host sets at each decision. Only for policies that must see or move it.
    #[inline]
    pub fn slice_timer(&self, p: PcpuId) -> TimerId {
        self.pcpu(p).slice_timer
    }

    // ---- reports ----

    /// Whether an observer wants the values that [`PolicyContext::report`] reports.
    pub fn wants_state(&self) -> bool {
        self.state.outbox.wants_state
    }

    /// Reports a value for comparison with what the release itself had.
    #[inline]
    pub fn report(&mut self, v: VcpuId, key: &'static str, value: i64) {
        if self.state.outbox.wants_state {
            let (domain, vcpu) = self.name(v);
            self.state.outbox.state_rows.push(StateRow { time: self.state.now, domain, vcpu, key, value });
        }
    }

    /// Reports a value of a domain as a whole.
    pub fn report_domain(&mut self, d: DomId, key: &'static str, value: i64) {
        if self.state.outbox.wants_state {
            let domain = self.domain_number(d);
            self.state.outbox.state_rows.push(StateRow {
                time: self.state.now,
                domain,
                vcpu: -1,
                key,
                value,
            });
        }
    }

    /// Reports a value of a pCPU.
    pub fn report_pcpu(&mut self, p: PcpuId, key: &'static str, value: i64) {
        if self.state.outbox.wants_state {
            self.state.outbox.state_rows.push(StateRow {
                time: self.state.now,
                domain: -1,
                vcpu: i64::from(p.0),
                key,
                value,
            });
        }
    }

    // ---- ids that the host does not have ----

    /// Returns `p`, or pCPU 0 if the host has no pCPU of this number; the run ends then.
    #[inline(always)]
    fn known(&self, p: PcpuId) -> PcpuId {
        if p.index() < self.state.pcpus.len() {
            return p;
        }
        self.unknown("pCPU", p.0);
        PcpuId(0)
    }

    /// The state of `p`, or of pCPU 0 if the host has no pCPU of this number; the run ends then.
    #[inline(always)]
    fn pcpu(&self, p: PcpuId) -> &Pcpu {
        self.state.pcpus.get(p).unwrap_or_else(|| {
            self.unknown("pCPU", p.0);
            &self.state.pcpus[PcpuId(0)]
        })
    }

    /// The state of `v`, or of vCPU 0 if the host has no vCPU of this number; the run ends then.
    #[inline(always)]
    fn vcpu(&self, v: VcpuId) -> &Vcpu {
        self.state.vcpus.get(v).unwrap_or_else(|| {
            self.unknown("vCPU", v.0);
            &self.state.vcpus[VcpuId(0)]
        })
    }

    /// The domain of that number; if there is none, the run ends.
    fn domain(&self, d: DomId) -> Option<&Domain> {
        let domain = self.state.domains.get(d);
        if domain.is_none() {
            self.unknown("domain", d.0);
        }
        domain
    }

    /// Whether `v` is a vCPU of a domain. If not, the run ends.
    fn is_guest(&self, v: VcpuId) -> bool {
        let is_guest = v.index() < self.state.vcpus.len() && !self.state.is_idle(v);
        if self.state.is_idle(v) {
            self.state.outbox.violate(format!("vCPU number {} was changed, which is an idle one", v.0));
        } else if !is_guest {
            self.unknown("vCPU", v.0);
        }
        is_guest
    }

    /// Whether the host has a timer of this number. If not, the run ends.
    #[inline(always)]
    fn is_timer(&self, timer: TimerId) -> bool {
        let is_timer = timer.index() < self.state.timers.len();
        if !is_timer {
            self.unknown("timer", timer.0);
        }
        is_timer
    }

    #[cold]
    fn unknown(&self, what: &str, number: u32) {
        self.state.outbox.violate(format!("{what} number {number} was named, which does not exist"));
    }

    /// The reason why a pCPU is not one of the policy's, as the end of a sentence.
    #[cold]
    fn stranger(&self, p: PcpuId) -> &'static str {
        if p.index() < self.state.pcpus.len() {
            "which is in another CPU pool"
        } else {
            "which does not exist"
        }
    }
}
