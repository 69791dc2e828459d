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

use std::cell::OnceCell;

use super::affinities::Affinities;
use crate::broken::Violation;
use crate::domain::Domain;
use crate::queue::{EventQueue, Rank};
use crate::time::Span;
use crate::topology::Topology;
use crate::units::Units;
use crate::vcpu::{Vcpu, pause_flag};
use crate::{
    CpuMask, Creation, DomId, GroupConfig, HostConfig, NEVER, PcpuId, PoolId, RunState, RunTimes, StateRow,
    Table, ThreadConfig, Throttling, Time, TimerId, VcpuId,
};

/// A pCPU, but for its [account](crate::accounting).
#[derive(Clone, Debug)]
pub(crate) struct Pcpu {
    /// The vCPU that the pCPU executes.
    pub executes: VcpuId,
    /// The vCPU that the policy has chosen: the executed vCPU, unless units have more than one vCPU. Then only masters
    /// have a chosen vCPU.
    pub current: VcpuId,
    pub slice_timer: TimerId,
    pub decisions: u64,
    pub asked: Asked,
}

/// State of a request for a decision on a pCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    No,
    /// The pCPU decides when its slice timer expires.
    Reacts,
    Due,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerOwner {
    Slice(PcpuId),
    Policy {
        token: u32,
        pcpu: PcpuId,
        pool: PoolId,
    },
    /// The governor that chooses the frequencies of the host's cores.
    Governor,
}

/// The host as a scheduler sees it. See the [module](self).
#[derive(Clone, Debug)]
pub struct PolicyContext {
    pub(crate) now: Time,
    pub(crate) queue: EventQueue,
    pub(crate) topology: Topology,
    creation: Creation,
    groups: Vec<GroupConfig>,
    /// Threads by vCPU of a domain.
    threads: Vec<ThreadConfig>,
    throttling: Table<DomId, Throttling>,
    pub(crate) pcpus: Table<PcpuId, Pcpu>,
    pub(crate) vcpus: Table<VcpuId, Vcpu>,
    pub(crate) affinity: Affinities,
    /// Soft affinities by vCPU; empty as long as no vCPU has one.
    soft_affinity: Table<VcpuId, CpuMask>,
    pub(crate) domains: Table<DomId, Domain>,
    pub(crate) timers: Table<TimerId, TimerOwner>,
    statics: [i64; 2],
    spare_timers: Vec<TimerId>,
    /// Delay with which expired timers are handled.
    timers_late: Span,
    /// Pending reschedule requests.
    pub(crate) reschedule: CpuMask,
    /// Units of vCPUs; `None`: each vCPU is a unit.
    pub(crate) units: Option<Box<Units>>,
    /// The pCPU whose code executes.
    pub(crate) executing: PcpuId,
    /// The pool whose policy is at work.
    pub(crate) pool: PoolId,
    pub(crate) violation: OnceCell<Box<Violation>>,
    /// Moves of vCPUs in the event at hand, for the observer.
    pub(crate) migrations: Vec<(VcpuId, PcpuId, PcpuId)>,
    wants_state: bool,
    /// Values reported in the event at hand, for the observer.
    pub(crate) state_rows: Vec<StateRow>,
    /// The runstates whose beginning and end the observer wants to know, as bits.
    pub(crate) wanted_runstates: u8,
    /// vCPUs for which a wanted runstate began or ended in the event at hand, for the observer.
    pub(crate) changed_runstates: Vec<VcpuId>,
}

impl PolicyContext {
    // ---- time and place ----

    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The pCPU on which the code at hand executes: a timer's own; the running vCPU's; the processor of a vCPU that wakes;
    /// the first pCPU of the pool for an action, and for code that executes in another CPU pool.
    #[inline(always)]
    pub fn executing(&self) -> PcpuId {
        self.executing
    }

    // ---- pCPUs ----

    /// The number of pCPUs of the whole host: tables kept per pCPU have at most this size.
    #[inline(always)]
    pub fn pcpu_count(&self) -> u32 {
        self.pcpus.len() as u32
    }

    /// The pCPUs of this scheduler: those of its CPU pool.
    #[inline(always)]
    pub fn pcpus(&self) -> &CpuMask {
        self.topology.masters(self.pool)
    }

    /// The number of real pCPUs behind each pCPU of this view, and of vCPUs behind each vCPU: more than 1 with core
    /// scheduling.
    pub fn unit_size(&self) -> u32 {
        self.topology.unit_size()
    }

    /// The first pCPU of this scheduler.
    pub fn first_pcpu(&self) -> PcpuId {
        self.topology.first_pcpu(self.pool)
    }

    /// The CPU pool of a pCPU.
    pub fn pool_of_pcpu(&self, p: PcpuId) -> PoolId {
        self.topology.pool_of(p).unwrap_or_else(|| {
            self.unknown("pCPU", p.0);
            self.pool
        })
    }

    /// The core of a pCPU, counted over the whole host.
    pub fn core(&self, p: PcpuId) -> u32 {
        self.topology.core(self.known(p))
    }

    /// The socket of a pCPU.
    pub fn socket(&self, p: PcpuId) -> u32 {
        self.topology.socket(self.known(p))
    }

    /// The NUMA node of a pCPU.
    pub fn node(&self, p: PcpuId) -> u32 {
        self.topology.node(self.known(p))
    }

    /// The threads of the core of a pCPU, including itself.
    #[inline(always)]
    pub fn siblings(&self, p: PcpuId) -> &CpuMask {
        self.topology.siblings(self.known(p))
    }

    /// The pCPUs of the socket of a pCPU, including itself.
    #[inline(always)]
    pub fn socket_mates(&self, p: PcpuId) -> &CpuMask {
        self.topology.socket_mates(self.known(p))
    }

    /// The pCPUs of each NUMA node.
    #[inline(always)]
    pub fn nodes(&self) -> &[CpuMask] {
        self.topology.nodes()
    }

    /// The number of threads of each core.
    pub fn threads_per_core(&self) -> u32 {
        self.topology.threads()
    }

    /// The order in which new vCPUs come to their affinity.
    pub fn creation(&self) -> Creation {
        self.creation
    }

    /// The vCPU that `p` executes. During a decision this is still the outgoing vCPU.
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
        if self.topology.pool_of(p) == Some(self.pool) {
            self.reschedule.insert(p);
        } else {
            self.violate(format!("a decision was asked of pCPU {}, {}", p.0, self.stranger(p)));
        }
    }

    // ---- vCPUs ----

    /// The number of vCPUs, idle ones included: tables kept per vCPU have this size.
    pub fn vcpu_count(&self) -> usize {
        self.vcpus.len()
    }

    /// The vCPUs of this scheduler: those of the domains in its CPU pool that are there.
    pub fn pool_vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.vcpus_in(self.pool)
    }

    /// Whether `v` is an idle vCPU.
    #[inline(always)]
    pub fn is_idle(&self, v: VcpuId) -> bool {
        v.index() < self.pcpus.len()
    }

    /// Whether `v` is the current vCPU of its processor.
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
        if self.topology.masters(self.pool_of(self.dom(v))).contains(p) {
            self.assign_members(v, p);
        } else {
            let (domain, number) = self.name(v);
            let why = self.stranger(p);
            self.violate(format!("vCPU {number} of domain {domain} was assigned to pCPU {}, {why}", p.0));
        }
    }

    /// Whether `v` is runnable: not blocked, not migrating, and neither itself nor its domain paused. Idle vCPUs always are.
    #[inline(always)]
    pub fn runnable(&self, v: VcpuId) -> bool {
        self.vcpu(v).pause_flags == 0 || self.has_units() && self.any_member_without(v, 0)
    }

    /// The runstate of `v`.
    #[inline(always)]
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.vcpu(v).state
    }

    /// The time that `v` has been in each runstate up to now.
    #[inline]
    pub fn run_times(&self, v: VcpuId) -> RunTimes {
        let vcpu = self.vcpu(v);
        let mut times = vcpu.times;
        if let Some(time) = times.get_mut(vcpu.state as usize) {
            *time += self.now - vcpu.state_since;
        }
        let [running_ns, blocked_ns, offline_ns] = times;
        let runnable_ns = self.now - Time::ZERO - running_ns - blocked_ns - offline_ns;
        RunTimes { running_ns, runnable_ns, blocked_ns, offline_ns }
    }

    /// The pCPUs `v` may run on (hard affinity), all in its domain's CPU pool.
    #[inline(always)]
    pub fn affinity(&self, v: VcpuId) -> &CpuMask {
        self.affinity.get(v).unwrap_or_else(|| {
            self.unknown("vCPU", v.0);
            &CpuMask::EMPTY
        })
    }

    /// The pCPUs that `v` prefers (soft affinity), whether that makes a difference or not. `None`: no preference.
    #[inline(always)]
    pub fn soft_affinity(&self, v: VcpuId) -> Option<&CpuMask> {
        self.soft_affinity.get(v)
    }

    /// Whether a vCPU of the host prefers some pCPUs.
    #[inline(always)]
    pub fn any_soft_affinity(&self) -> bool {
        !self.soft_affinity.is_empty()
    }

    /// The pCPUs of this scheduler that `v` may run on and prefers, if its soft affinity counts: it leaves some of them,
    /// but not all of them, and not all pCPUs (`docs/concepts/topology.md`).
    #[inline(always)]
    pub fn preferred(&self, v: VcpuId) -> Option<CpuMask> {
        let soft = self.soft_affinity.get(v)?;
        let (hard, all) = (self.given_affinity(v), self.pcpus());
        let counts = !soft.and(hard).is_empty() && !soft.contains_all(hard) && !soft.contains_all(all);
        counts.then(|| soft.and(hard).and(all))
    }

    /// A vCPU as files and tables name it: domain number and vCPU number in the domain. The idle vCPU of pCPU p is (−1, p).
    pub fn name(&self, v: VcpuId) -> (i64, i64) {
        if self.is_idle(v) {
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
            self.park_members(v);
        }
    }

    /// Ends the parking of `v`, if it is parked. No hook is called: if `v` is runnable now, the policy queues it as it
    /// queues vCPUs that wake.
    pub fn unpark(&mut self, v: VcpuId) {
        if self.is_guest(v) {
            self.unpark_members(v);
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
            self.members(v).for_each(|v| self.set_pause_flags(v, pause_flag::MIGRATING));
        }
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
        self.vcpu(v).dom
    }

    /// The vCPUs of a domain, in order.
    pub fn vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        self.all_vcpus_of(d).step_by(self.topology.unit_size() as usize)
    }

    /// All vCPUs of a domain, also where a policy sees units.
    pub(crate) fn all_vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        let vcpus = self.domain(d).map_or(0..0, |domain| domain.first_vcpu..domain.first_vcpu + domain.vcpus);
        vcpus.map(VcpuId)
    }

    /// The CPU pool a domain is in.
    pub fn pool_of(&self, d: DomId) -> PoolId {
        self.domain(d).map_or(self.pool, |domain| domain.pool)
    }

    /// The domain's number as an administrator sees it (−1 for idle vCPUs: see [`PolicyContext::name`]).
    pub fn domain_number(&self, d: DomId) -> i64 {
        self.domain(d).map_or(-1, |domain| domain.number)
    }

    // ---- what Linux knows ----

    /// The control groups, each after the one around it.
    pub fn groups(&self) -> &[GroupConfig] {
        &self.groups
    }

    /// The thread that a domain's vCPU is.
    pub fn thread(&self, v: VcpuId) -> ThreadConfig {
        self.threads.get(v.index() - self.pcpus.len()).copied().unwrap_or_default()
    }

    /// Throttling of a domain by its limits, up to the last report of its policy: at the end of each period of a limit.
    pub fn throttling(&self, d: DomId) -> Throttling {
        self.throttling.get(d).copied().unwrap_or_default()
    }

    /// Stores the throttling of a domain, for [`PolicyContext::throttling`].
    pub fn note_throttling(&mut self, d: DomId, throttling: Throttling) {
        *self.throttling.entry(d) = throttling;
    }

    // ---- static variables ----

    /// Two variables that the schedulers' code shares: one pair for the whole host, whatever its CPU pools. 0 at first.
    pub fn statics(&self) -> [i64; 2] {
        self.statics
    }

    /// Sets the two shared variables.
    pub fn set_statics(&mut self, statics: [i64; 2]) {
        self.statics = statics;
    }

    // ---- timers ----

    /// Creates a timer, stopped. When it is due the host calls [`Scheduler::timer`](crate::Scheduler::timer) with `token`,
    /// executing on `p`, a pCPU of this scheduler (any other ends the run).
    pub fn new_timer(&mut self, p: PcpuId, token: u32) -> TimerId {
        if self.topology.pool_of(p) != Some(self.pool) {
            self.violate(format!("a timer was made on pCPU {}, {}", p.0, self.stranger(p)));
        }
        let owner = TimerOwner::Policy { token, pcpu: p, pool: self.pool };
        match self.spare_timers.pop() {
            Some(timer) => {
                self.timers[timer] = owner;
                timer
            }
            None => self.add_timer(owner),
        }
    }

    /// Releases a timer, stopped. It must not be used again.
    pub fn drop_timer(&mut self, timer: TimerId) {
        self.stop_timer(timer);
        if self.is_timer(timer) {
            self.spare_timers.push(timer);
        }
    }

    /// Sets a timer, or moves a timer that is set. A time already past counts as now. ([`Costs`](crate::Costs) define
    /// how late it is handled.)
    #[inline(always)]
    pub fn set_timer(&mut self, timer: TimerId, at: Time) {
        if self.is_timer(timer) {
            self.queue.set(Rank::Timer, timer.index(), self.handled_at(at.max(self.now)));
        }
    }

    /// Time at which a timer that is set for `at` is handled ([`NEVER`]: never).
    #[inline(always)]
    pub(crate) fn handled_at(&self, at: Time) -> Time {
        at.saturating_add(self.timers_late)
    }

    /// Stops a timer.
    #[inline(always)]
    pub fn stop_timer(&mut self, timer: TimerId) {
        self.set_timer(timer, NEVER);
    }

    /// The time at which a timer is due ([`NEVER`]: stopped).
    #[inline]
    pub fn timer_expiry(&self, timer: TimerId) -> Time {
        if self.is_timer(timer) { self.queue.time_of(Rank::Timer, timer.index()) } else { NEVER }
    }

    /// The number of timers, the slice timers included.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// Whether the timer was made by this scheduler.
    pub fn is_own_timer(&self, timer: TimerId) -> bool {
        matches!(self.timers.get(timer), Some(&TimerOwner::Policy { pool, .. }) if pool == self.pool)
    }

    /// The slice timer of `p`, which the host sets at each decision. Only for policies that must see or move it.
    #[inline]
    pub fn slice_timer(&self, p: PcpuId) -> TimerId {
        self.pcpu(p).slice_timer
    }

    // ---- reports ----

    /// Whether an observer wants the values that [`PolicyContext::report`] reports.
    pub fn wants_state(&self) -> bool {
        self.wants_state
    }

    /// Reports a value for comparison with what the release itself had.
    #[inline]
    pub fn report(&mut self, v: VcpuId, key: &'static str, value: i64) {
        if self.wants_state {
            let (domain, vcpu) = self.name(v);
            self.state_rows.push(StateRow { time: self.now, domain, vcpu, key, value });
        }
    }

    /// Reports a value of a domain as a whole.
    pub fn report_domain(&mut self, d: DomId, key: &'static str, value: i64) {
        if self.wants_state {
            let domain = self.domain_number(d);
            self.state_rows.push(StateRow { time: self.now, domain, vcpu: -1, key, value });
        }
    }

    /// Reports a value of a pCPU.
    pub fn report_pcpu(&mut self, p: PcpuId, key: &'static str, value: i64) {
        if self.wants_state {
            self.state_rows.push(StateRow { time: self.now, domain: -1, vcpu: i64::from(p.0), key, value });
        }
    }

    // ---- for the host itself ----

    /// A host without domains. The observer wants to know the beginning and end of the runstates in `wanted`.
    pub(crate) fn new(config: &HostConfig, wants_state: bool, wanted: &[RunState]) -> Self {
        let count = config.pcpus as usize;
        let vcpus = count + config.domains.iter().map(|domain| domain.vcpus.len()).sum::<usize>();
        let topology = Topology::new(config);
        let mut context = PolicyContext {
            now: Time::ZERO,
            queue: EventQueue::default(),
            units: (topology.unit_size() > 1).then(Box::default),
            topology,
            creation: config.creation,
            groups: config.groups.clone(),
            threads: config
                .domains
                .iter()
                .flat_map(|domain| domain.vcpus.iter().map(|vcpu| vcpu.thread))
                .collect(),
            throttling: Table::new(),
            pcpus: Table::with_capacity(count),
            vcpus: Table::with_capacity(vcpus),
            affinity: Affinities::with_capacity(vcpus),
            soft_affinity: Table::new(),
            domains: Table::new(),
            timers: Table::new(),
            spare_timers: Vec::new(),
            timers_late: config.costs.timer_ns,
            statics: [0; 2],
            reschedule: CpuMask::EMPTY,
            executing: PcpuId(0),
            pool: PoolId(0),
            violation: OnceCell::new(),
            migrations: Vec::with_capacity(64),
            wants_state,
            state_rows: Vec::new(),
            wanted_runstates: wanted.iter().fold(0, |bits, &state| bits | 1 << state as u8),
            changed_runstates: Vec::with_capacity(if wanted.is_empty() { 0 } else { 64 }),
        };
        for p in (0..config.pcpus).map(PcpuId) {
            let idle = context.vcpus.push(Vcpu::idle(p));
            context.affinity.push(CpuMask::only(p));
            let slice_timer = TimerId(0);
            context.pcpus.push(Pcpu {
                executes: idle,
                current: idle,
                slice_timer,
                decisions: 0,
                asked: Asked::No,
            });
        }
        context.queue.make_room(Rank::RunEnd, count);
        context
    }

    /// Makes `pool` the pool whose policy is at work; returns the previous one.
    pub(crate) fn enter_pool(&mut self, pool: PoolId) -> PoolId {
        std::mem::replace(&mut self.pool, pool)
    }

    /// Notes for the observer that `v` was on `from` until now, whatever happened in between.
    pub(crate) fn moved(&mut self, v: VcpuId, from: PcpuId) {
        self.migrations.retain(|&(moved, ..)| moved != v);
        let to = self.vcpus[v].processor;
        self.migrations.push((v, from, to));
    }

    /// `to` is current on `p` from now on, and `from` is no longer.
    #[inline(always)]
    pub(crate) fn make_current(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        for (v, current) in [(from, false), (to, true)] {
            let vcpu = &mut self.vcpus[v];
            vcpu.current = current;
            vcpu.switched_at = self.now;
        }
        self.pcpus[p].current = to;
    }

    /// Whether a pCPU that has chosen `v` can execute it. A decision may begin to migrate the vCPU that it chooses
    /// (load balancing does): the vCPU runs, and moves when it stops.
    #[inline]
    pub(crate) fn may_run(&self, v: VcpuId) -> bool {
        let can = !self.vcpus[v].has(!pause_flag::MIGRATING);
        can || self.has_units() && self.any_member_without(v, pause_flag::MIGRATING)
    }

    pub(crate) fn add_timer(&mut self, owner: TimerOwner) -> TimerId {
        let timer = self.timers.push(owner);
        self.queue.make_room(Rank::Timer, self.timers.len());
        timer
    }

    /// The units of all domains, in order of creation.
    pub(crate) fn guest_units(&self) -> impl Iterator<Item = VcpuId> + '_ {
        let all = (self.pcpus.len() as u32..self.vcpus.len() as u32).map(VcpuId);
        all.filter(|&v| self.unit(v) == v)
    }

    /// The vCPUs of the domains that exist in this pool.
    pub(crate) fn vcpus_in(&self, pool: PoolId) -> impl Iterator<Item = VcpuId> + '_ {
        let present = self.guest_units().filter(|&v| !self.vcpus[v].has(pause_flag::ABSENT));
        present.filter(move |&v| self.pool_of(self.dom(v)) == pool)
    }

    /// The slot of a vCPU's wake-up: idle vCPUs have none.
    #[inline(always)]
    pub(crate) fn wake_slot(&self, v: VcpuId) -> usize {
        v.index() - self.pcpus.len()
    }

    /// Sets the soft affinity of `v`, or removes it.
    pub(crate) fn prefer(&mut self, v: VcpuId, mask: Option<CpuMask>) {
        let all = CpuMask::first_n(self.pcpu_count());
        if mask.is_some() && self.soft_affinity.len() < self.vcpus.len() {
            self.soft_affinity.resize(self.vcpus.len(), all);
        }
        if let Some(soft) = self.soft_affinity.get_mut(v) {
            *soft = mask.unwrap_or(all);
        }
    }

    /// Returns `p`, or pCPU 0 if the host has no pCPU of this number; the run ends then.
    #[inline(always)]
    fn known(&self, p: PcpuId) -> PcpuId {
        if p.index() < self.pcpus.len() {
            return p;
        }
        self.unknown("pCPU", p.0);
        PcpuId(0)
    }

    /// The state of `p`, or of pCPU 0 if the host has no pCPU of this number; the run ends then.
    #[inline(always)]
    fn pcpu(&self, p: PcpuId) -> &Pcpu {
        self.pcpus.get(p).unwrap_or_else(|| {
            self.unknown("pCPU", p.0);
            &self.pcpus[PcpuId(0)]
        })
    }

    /// The state of `v`, or of vCPU 0 if the host has no vCPU of this number; the run ends then.
    #[inline(always)]
    fn vcpu(&self, v: VcpuId) -> &Vcpu {
        self.vcpus.get(v).unwrap_or_else(|| {
            self.unknown("vCPU", v.0);
            &self.vcpus[VcpuId(0)]
        })
    }

    /// The domain of that number; if there is none, the run ends.
    fn domain(&self, d: DomId) -> Option<&Domain> {
        let domain = self.domains.get(d);
        if domain.is_none() {
            self.unknown("domain", d.0);
        }
        domain
    }

    /// Whether `v` is a vCPU of a domain. If not, the run ends.
    fn is_guest(&self, v: VcpuId) -> bool {
        let is_guest = v.index() < self.vcpus.len() && !self.is_idle(v);
        if self.is_idle(v) {
            self.violate(format!("vCPU number {} was changed, which is an idle one", v.0));
        } else if !is_guest {
            self.unknown("vCPU", v.0);
        }
        is_guest
    }

    /// Whether the host has a timer of this number. If not, the run ends.
    #[inline(always)]
    fn is_timer(&self, timer: TimerId) -> bool {
        let is_timer = timer.index() < self.timers.len();
        if !is_timer {
            self.unknown("timer", timer.0);
        }
        is_timer
    }

    #[cold]
    fn unknown(&self, what: &str, number: u32) {
        self.violate(format!("{what} number {number} was named, which does not exist"));
    }

    /// The reason why a pCPU is not one of the policy's, as the end of a sentence.
    #[cold]
    fn stranger(&self, p: PcpuId) -> &'static str {
        if p.index() < self.pcpus.len() { "which is in another CPU pool" } else { "which does not exist" }
    }

    /// Keeps the policy's first violation of the rules.
    #[cold]
    pub(crate) fn violate(&self, what: String) {
        self.violation.get_or_init(|| Box::new(Violation { hook: None, what }));
    }
}
