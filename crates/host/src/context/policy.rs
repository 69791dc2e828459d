//! The host as a scheduler sees it: time, timers, topology, affinity, the state of pCPUs and vCPUs, and the
//! few things a policy may ask for. Everything else about the host is private to this crate.

use crate::cache::Caches;
use crate::life::Life;
use crate::queue::{EventQueue, Rank};
use crate::{
    Costs, CpuMask, DomId, IoStep, NEVER, PcpuId, SetId, Span, StateRow, Time, TimerId, VcpuId, WakeCause,
};

/// What a vCPU is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Executing on a pCPU.
    Running = 0,
    /// Waiting for an event.
    Blocked = 1,
    /// Paused, unplugged, or not there at all: its domain is not created yet, gone, or saved.
    Offline = 2,
    /// Ready, waiting for a pCPU.
    Runnable = 3,
}

/// Time spent in each runstate, ns. The four sum to the time since the host started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunTimes {
    /// Executing.
    pub running_ns: Span,
    /// Ready but waiting for a pCPU (steal, CPU ready).
    pub runnable_ns: Span,
    /// Waiting for an event.
    pub blocked_ns: Span,
    /// Paused, unplugged or not there.
    pub offline_ns: Span,
}

/// Reasons for not being runnable, as bits: a vCPU with none is runnable.
pub(crate) mod mark {
    pub const BLOCKED: u8 = 1;
    pub const MIGRATING: u8 = 2;
    pub const PAUSED: u8 = 4;
    pub const DOMAIN_PAUSED: u8 = 8;
    /// Paused by its policy.
    pub const PARKED: u8 = 16;
    /// Unplugged.
    pub const UNPLUGGED: u8 = 32;
    /// Its domain is not there: no scheduler has it.
    pub const ABSENT: u8 = 64;
    pub const OFFLINE: u8 = PAUSED | DOMAIN_PAUSED | PARKED | UNPLUGGED | ABSENT;
}

/// A vCPU's state in the host: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Vcpu {
    pub marks: u8,
    pub pauses: u8,
    /// Does it run on its home now?
    pub current: bool,
    /// Was it interrupted, so that it wants to be asked for its next operation when it runs?
    pub interrupted: bool,
    /// Has it ever been woken?
    pub started: bool,
    /// Why its present block ended, or will end.
    pub cause: WakeCause,
    /// What its wait began with, if with a wake-up (of no meaning while it does not wait).
    pub woken: Option<WakeCause>,
    pub state: RunState,
    pub home: PcpuId,
    pub dom: DomId,
    /// What is left of its present `Run`.
    pub left: Span,
    /// When the runstate last changed.
    pub state_since: Time,
    /// Last switch in or out.
    pub switched_at: Time,
    /// Time in each runstate but runnable, which is the rest.
    pub times: [Span; 3],
}

const _: () = assert!(size_of::<Vcpu>() == 64, "a vCPU fills one cache line");

#[derive(Clone, Debug)]
pub(crate) struct Pcpu {
    pub current: VcpuId,
    pub slice_timer: TimerId,
    /// Up to when its time has been accounted for.
    pub settled_at: Time,
    /// From when on the current vCPU makes progress: until then the pCPU is busy with overhead.
    pub ready_at: Time,
    /// Until when the hypervisor itself is busy here (part of the way to `ready_at`).
    pub hypervisor_until: Time,
    pub run_ns: Span,
    pub idle_ns: Span,
    pub overhead_ns: Span,
    pub decisions: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerOwner {
    Slice(PcpuId),
    Policy { token: u32, pcpu: PcpuId, pool: u32 },
}

/// What the observer wants to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    pub state: bool,
    /// By runstate, as bits: when it begins and ends.
    pub runstates: u8,
    pub io: bool,
}

/// What a policy asked for that cannot be, kept until the hook it is in has returned.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub hook: Option<&'static str>,
    pub what: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// The number an administrator sees.
    pub number: i64,
    pub first_vcpu: u32,
    pub vcpus: u32,
    pub pauses: u32,
    /// The CPU pool it is in.
    pub pool: u32,
    pub life: Life,
    /// Its id in its present life.
    pub id: i64,
}

/// The host as a scheduler sees it. See the [module](self).
#[derive(Clone, Debug)]
pub struct PolicyContext {
    pub(crate) now: Time,
    pub(crate) queue: EventQueue,
    pub(crate) pcpus: Vec<Pcpu>,
    pub(crate) vcpus: Vec<Vcpu>,
    pub(crate) affinity: Vec<CpuMask>,
    pub(crate) domains: Vec<Domain>,
    /// The id that the next domain is given.
    pub(crate) next_id: i64,
    /// Running time of each vCPU when its domain's present life began, ns.
    pub(crate) lived_ns: Vec<Span>,
    pub(crate) timers: Vec<TimerOwner>,
    pub(crate) spare_timers: Vec<TimerId>,
    /// Pending reschedule requests.
    pub(crate) flags: CpuMask,
    /// The pCPU whose code executes.
    pub(crate) executing: PcpuId,
    /// Virtual interrupts raised by the event at hand, delivered at its end.
    pub(crate) kicks: Vec<(VcpuId, WakeCause)>,
    /// pCPUs that devices interrupted in the event at hand.
    pub(crate) interrupted: Vec<PcpuId>,
    pub(crate) wants: Wants,
    /// What the observer is to be told once the event at hand is over.
    pub(crate) state_rows: Vec<StateRow>,
    pub(crate) runstates: Vec<VcpuId>,
    pub(crate) io_steps: Vec<IoStep>,
    pub(crate) migrations: Vec<(VcpuId, PcpuId, PcpuId)>,
    pub(crate) costs: Costs,
    pub(crate) caches: Caches,
    /// The pCPUs of each CPU pool.
    pub(crate) pools: Vec<CpuMask>,
    pub(crate) pool_of_pcpu: Vec<u32>,
    /// The pool whose policy is at work.
    pub(crate) pool: u32,
    pub(crate) violation: Option<Box<Violation>>,
    pub(crate) pcpus_per_socket: u32,
    pub(crate) sources: usize,
    pub(crate) work: Work,
}

/// How much work has been done on a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Events taken from the queue.
    pub events: u64,
    /// Those among them in which a vCPU only went on with its next `Run`. The others are timers, wake-ups, actions,
    /// sources, and operations that ended in a block or a yield: what a scheduler has to do with.
    pub continuations: u64,
    /// Calls of the policy's schedule hook.
    pub schedule_calls: u64,
}

impl PolicyContext {
    // ---- what a scheduler reads ----

    /// The time now, ns.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many pCPUs the whole host has: tables kept per pCPU have at most this size.
    #[inline(always)]
    pub fn pcpu_count(&self) -> u32 {
        self.pcpus.len() as u32
    }

    /// The pCPUs of this scheduler: those of its CPU pool.
    #[inline(always)]
    pub fn pcpus(&self) -> &CpuMask {
        &self.pools[self.pool as usize]
    }

    /// The first of them.
    pub fn first_pcpu(&self) -> PcpuId {
        self.pcpus().first().expect("a pool has a pCPU")
    }

    /// The CPU pool a domain is in, as an index into [`HostConfig::pools`](crate::HostConfig::pools).
    pub fn pool_of(&self, d: DomId) -> usize {
        self.domains[d.index()].pool as usize
    }

    /// The CPU pool a pCPU is in.
    pub fn pool_of_pcpu(&self, p: PcpuId) -> usize {
        self.pool_of_pcpu[p.index()] as usize
    }

    /// The socket a pCPU is on.
    pub fn socket(&self, p: PcpuId) -> u32 {
        p.0 / self.pcpus_per_socket
    }

    /// The vCPU that `p` executes. During a decision this is still the outgoing one.
    #[inline(always)]
    pub fn current(&self, p: PcpuId) -> VcpuId {
        self.pcpus[p.index()].current
    }

    /// The idle vCPU of `p`.
    #[inline(always)]
    pub fn idle(&self, p: PcpuId) -> VcpuId {
        VcpuId(p.0)
    }

    /// Is `v` an idle vCPU?
    #[inline(always)]
    pub fn is_idle(&self, v: VcpuId) -> bool {
        v.index() < self.pcpus.len()
    }

    /// Is `v` the current vCPU of its home?
    #[inline(always)]
    pub fn is_current(&self, v: VcpuId) -> bool {
        self.vcpus[v.index()].current
    }

    /// The pCPU `v` is assigned to: where it runs, ran last, or has been placed.
    #[inline(always)]
    pub fn processor(&self, v: VcpuId) -> PcpuId {
        self.vcpus[v.index()].home
    }

    /// Is `v` runnable: not blocked, not migrating, neither itself nor its domain paused? Idle always is.
    #[inline(always)]
    pub fn runnable(&self, v: VcpuId) -> bool {
        self.vcpus[v.index()].marks == 0
    }

    /// The pCPUs `v` may run on (hard affinity), all in its domain's CPU pool.
    #[inline(always)]
    pub fn affinity(&self, v: VcpuId) -> &CpuMask {
        &self.affinity[v.index()]
    }

    /// The domain of `v`. Not for idle vCPUs, which have none.
    #[inline(always)]
    pub fn dom(&self, v: VcpuId) -> DomId {
        debug_assert!(!self.is_idle(v), "idle vCPUs belong to no domain");
        self.vcpus[v.index()].dom
    }

    /// The vCPUs of a domain, in order.
    pub fn vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        let domain = &self.domains[d.index()];
        (domain.first_vcpu..domain.first_vcpu + domain.vcpus).map(VcpuId)
    }

    /// How many vCPUs there are, idle ones included: tables kept per vCPU have this size.
    pub fn vcpu_count(&self) -> usize {
        self.vcpus.len()
    }

    /// How many domains there are.
    pub fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// All vCPUs of the host but the idle ones, in order of creation.
    pub fn guest_vcpus(&self) -> impl Iterator<Item = VcpuId> + use<> {
        (self.pcpus.len() as u32..self.vcpus.len() as u32).map(VcpuId)
    }

    /// Those of this scheduler: of the domains in its CPU pool that are there.
    pub fn pool_vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.present_vcpus().filter(|&v| self.pool_of(self.dom(v)) == self.pool as usize)
    }

    /// Those whose domains are there.
    fn present_vcpus(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.guest_vcpus().filter(|&v| self.vcpus[v.index()].marks & mark::ABSENT == 0)
    }

    /// The domain's number as an administrator sees it (−1 for idle vCPUs: see [`PolicyContext::name`]).
    pub fn domain_number(&self, d: DomId) -> i64 {
        self.domains[d.index()].number
    }

    /// A vCPU as files and tables name it: domain number and vCPU number in the domain. The idle vCPU of pCPU p is (−1, p).
    pub fn name(&self, v: VcpuId) -> (i64, i64) {
        if self.is_idle(v) {
            return (-1, i64::from(v.0));
        }
        let domain = &self.domains[self.dom(v).index()];
        (domain.number, i64::from(v.0 - domain.first_vcpu))
    }

    /// When `v` was last switched in or out, whichever was later (0: never).
    #[inline(always)]
    pub fn switched_at(&self, v: VcpuId) -> Time {
        self.vcpus[v.index()].switched_at
    }

    /// The pCPU on which the code at hand executes: a timer's own; the running vCPU's; the home of a vCPU that wakes;
    /// the first pCPU of the pool for an action, and for code that executes in another CPU pool.
    #[inline(always)]
    pub fn executing(&self) -> PcpuId {
        self.executing
    }

    // ---- what a scheduler asks for ----

    /// Asks `p`, a pCPU of this scheduler, to decide once the event at hand has been handled (any other ends the run).
    /// Asking twice changes nothing.
    #[inline(always)]
    pub fn raise_reschedule(&mut self, p: PcpuId) {
        if self.pool_of_pcpu.get(p.index()) == Some(&self.pool) {
            self.flags.insert(p);
        } else {
            let why = self.stranger(p);
            self.violate(format!("a decision was asked of pCPU {}, {why}", p.0));
        }
    }

    /// Assigns `v` to `p`, a pCPU of its domain's CPU pool (anything else ends the run).
    #[inline(always)]
    pub fn set_processor(&mut self, v: VcpuId, p: PcpuId) {
        if self.vcpus[v.index()].home != p {
            self.move_processor(v, p);
        }
    }

    fn move_processor(&mut self, v: VcpuId, p: PcpuId) {
        let pool = self.domains[self.dom(v).index()].pool;
        if self.pool_of_pcpu.get(p.index()) == Some(&pool) {
            let from = std::mem::replace(&mut self.vcpus[v.index()].home, p);
            self.migrations.push((v, from, p));
        } else {
            let ((domain, number), why) = (self.name(v), self.stranger(p));
            self.violate(format!("vCPU {number} of domain {domain} was assigned to pCPU {}, {why}", p.0));
        }
    }

    /// Why a pCPU is not the policy's.
    #[cold]
    fn stranger(&self, p: PcpuId) -> &'static str {
        if p.index() < self.pcpus.len() { "which is in another CPU pool" } else { "which does not exist" }
    }

    /// Keeps what the policy did wrong first.
    #[cold]
    pub(crate) fn violate(&mut self, what: String) {
        self.violation.get_or_insert_with(|| Box::new(Violation { hook: None, what }));
    }

    /// Creates a timer, stopped. When it is due the host calls [`Scheduler::timer`](crate::Scheduler::timer) with `token`,
    /// executing on `p`.
    pub fn new_timer(&mut self, p: PcpuId, token: u32) -> TimerId {
        let owner = TimerOwner::Policy { token, pcpu: p, pool: self.pool };
        match self.spare_timers.pop() {
            Some(timer) => {
                self.timers[timer.index()] = owner;
                timer
            }
            None => self.add_timer(owner),
        }
    }

    /// Gives a timer back, stopped. It must not be used again.
    pub fn drop_timer(&mut self, timer: TimerId) {
        self.stop_timer(timer);
        self.spare_timers.push(timer);
    }

    /// Sets a timer; a set one moves. A time already past counts as now.
    #[inline(always)]
    pub fn set_timer(&mut self, timer: TimerId, at: Time) {
        self.queue.set(Rank::Timer, timer.index(), at.max(self.now));
    }

    /// Stops a timer.
    #[inline(always)]
    pub fn stop_timer(&mut self, timer: TimerId) {
        self.queue.set(Rank::Timer, timer.index(), NEVER);
    }

    /// When a timer is due ([`NEVER`]: stopped).
    pub fn timer_expiry(&self, timer: TimerId) -> Time {
        self.queue.time_of(Rank::Timer, timer.index())
    }

    /// How many timers there are, the slice timers included.
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    /// Did this scheduler make that timer?
    pub fn is_own_timer(&self, timer: TimerId) -> bool {
        matches!(self.timers[timer.index()], TimerOwner::Policy { pool, .. } if pool == self.pool)
    }

    /// The slice timer of `p`, which the host sets at each decision. Only for policies that must see or move it.
    pub fn slice_timer(&self, p: PcpuId) -> TimerId {
        self.pcpus[p.index()].slice_timer
    }

    /// Parks `v`: it is not runnable until it is unparked, whatever else happens. No hook is called: a policy that parks
    /// the running vCPU flags its pCPU. Parking twice changes nothing.
    pub fn park(&mut self, v: VcpuId) {
        self.set_marks(v, mark::PARKED, true);
    }

    /// Ends the parking of `v`, if it is parked. No hook is called: if `v` is runnable now, the policy puts it where it
    /// puts those who wake.
    pub fn unpark(&mut self, v: VcpuId) {
        self.set_marks(v, mark::PARKED, false);
    }

    /// Is `v` parked?
    pub fn is_parked(&self, v: VcpuId) -> bool {
        self.vcpus[v.index()].marks & mark::PARKED != 0
    }

    /// Marks `v` for migration: it is not runnable until the host has moved it, which it does once `v` is not running.
    #[inline]
    pub fn start_migration(&mut self, v: VcpuId) {
        self.set_marks(v, mark::MIGRATING, true);
    }

    /// Does anybody want the values that [`PolicyContext::report`] reports?
    pub fn wants_state(&self) -> bool {
        self.wants.state
    }

    /// Reports a value that the specification lists for comparison.
    #[inline]
    pub fn report(&mut self, v: VcpuId, key: &'static str, value: i64) {
        if self.wants.state {
            let (domain, vcpu) = self.name(v);
            self.state_rows.push(StateRow { time: self.now, domain, vcpu, key, value });
        }
    }

    /// Reports a value of a domain as a whole.
    pub fn report_domain(&mut self, d: DomId, key: &'static str, value: i64) {
        if self.wants.state {
            let domain = self.domain_number(d);
            self.state_rows.push(StateRow { time: self.now, domain, vcpu: -1, key, value });
        }
    }

    /// Reports a value of a pCPU.
    pub fn report_pcpu(&mut self, p: PcpuId, key: &'static str, value: i64) {
        if self.wants.state {
            self.state_rows.push(StateRow { time: self.now, domain: -1, vcpu: i64::from(p.0), key, value });
        }
    }

    // ---- what observers read ----

    /// What `v` is doing.
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.vcpus[v.index()].state
    }

    /// How long `v` has been in each runstate up to now.
    pub fn run_times(&self, v: VcpuId) -> RunTimes {
        let vcpu = &self.vcpus[v.index()];
        let mut times = vcpu.times;
        if let Some(time) = times.get_mut(vcpu.state as usize) {
            *time += self.now - vcpu.state_since;
        }
        let [running_ns, blocked_ns, offline_ns] = times;
        RunTimes {
            running_ns,
            runnable_ns: self.now - Time::ZERO - running_ns - blocked_ns - offline_ns,
            blocked_ns,
            offline_ns,
        }
    }

    /// How the time of `p` was spent up to now, ns: running vCPUs, idle, overhead. The three sum to the time elapsed.
    pub fn pcpu_times(&self, p: PcpuId) -> (Span, Span, Span) {
        let mut pcpu = self.pcpus[p.index()].clone();
        pcpu.settle(self.now, self.is_idle(pcpu.current));
        (pcpu.run_ns, pcpu.idle_ns, pcpu.overhead_ns)
    }

    /// Up to when the hypervisor works on `p`, or brings in what is cold there: until then nobody makes progress (a time
    /// already past: it does not).
    #[inline(always)]
    pub fn busy_until(&self, p: PcpuId) -> Time {
        self.pcpus[p.index()].ready_at
    }

    /// Up to when it is the hypervisor that works on `p`; from then to [`PolicyContext::busy_until`] a cold cache is filled again.
    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.pcpus[p.index()].hypervisor_until
    }

    /// What `v` has not executed up to now of its present `Run`, ns.
    pub fn left(&self, v: VcpuId) -> Span {
        let vcpu = &self.vcpus[v.index()];
        if !vcpu.current || vcpu.left == Span::MAX {
            return vcpu.left;
        }
        vcpu.left - self.pcpus[vcpu.home.index()].clone().settle(self.now, false)
    }

    /// Decisions taken so far by `p`.
    pub fn pcpu_decisions(&self, p: PcpuId) -> u64 {
        self.pcpus[p.index()].decisions
    }

    /// How much work has been done so far.
    pub fn work_done(&self) -> Work {
        self.work
    }

    /// The caches of the host.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The costs of physical mode.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    // ---- for the host itself ----

    pub(crate) fn pause_vcpu(&mut self, v: VcpuId) {
        self.vcpus[v.index()].pauses += 1;
        self.set_marks(v, mark::PAUSED, true);
    }

    /// Takes back one pause; true when none is left.
    pub(crate) fn unpause_vcpu(&mut self, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        assert!(vcpu.pauses > 0, "an unpause without a pause");
        vcpu.pauses -= 1;
        let last = vcpu.pauses == 0;
        if last {
            self.set_marks(v, mark::PAUSED, false);
        }
        last
    }

    pub(crate) fn add_timer(&mut self, owner: TimerOwner) -> TimerId {
        let id = TimerId(self.timers.len() as u32);
        self.timers.push(owner);
        self.queue.make_room(Rank::Timer, self.timers.len());
        id
    }

    /// Sets or clears reasons for not being runnable, and keeps the runstate's time.
    #[inline(always)]
    pub(crate) fn set_marks(&mut self, v: VcpuId, bits: u8, on: bool) {
        let vcpu = &mut self.vcpus[v.index()];
        if on {
            vcpu.marks |= bits;
        } else {
            vcpu.marks &= !bits;
        }
        self.enter_state(v);
    }

    /// Brings the runstate of `v` up to date with its marks and whether it runs.
    #[inline(always)]
    pub(crate) fn enter_state(&mut self, v: VcpuId) {
        let now = self.now;
        let vcpu = &mut self.vcpus[v.index()];
        let state = if vcpu.current {
            RunState::Running
        } else if vcpu.marks & mark::OFFLINE != 0 {
            RunState::Offline
        } else if vcpu.marks & mark::BLOCKED != 0 {
            RunState::Blocked
        } else {
            RunState::Runnable
        };
        if state != vcpu.state {
            if state == RunState::Runnable {
                vcpu.woken = match vcpu.state {
                    RunState::Blocked => Some(vcpu.cause),
                    RunState::Offline => Some(WakeCause::Unpause),
                    _ => None,
                };
            }
            if let Some(time) = vcpu.times.get_mut(vcpu.state as usize) {
                *time += now - vcpu.state_since;
            }
            let before = std::mem::replace(&mut vcpu.state, state);
            vcpu.state_since = now;
            if self.wants.runstates != 0 {
                self.note_runstate(v, before, state);
            }
        }
    }

    fn note_runstate(&mut self, v: VcpuId, before: RunState, after: RunState) {
        let changed = 1 << before as u8 | 1 << after as u8;
        if self.wants.runstates & changed != 0 && !self.is_idle(v) {
            self.runstates.push(v);
        }
    }

    /// The vCPUs in the same CPU pool as `v`, itself included.
    pub(crate) fn peers(&self, v: VcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        let pool = self.pool_of(self.dom(v));
        self.present_vcpus().filter(move |&u| self.pool_of(self.dom(u)) == pool)
    }

    pub(crate) fn make_sources(&mut self, count: usize) {
        self.queue.make_room(Rank::Source, count);
        self.sources = self.sources.max(count);
    }

    /// The slot of a vCPU's wake-up: idle vCPUs have none.
    #[inline(always)]
    pub(crate) fn wake_slot(&self, v: VcpuId) -> usize {
        v.index() - self.pcpus.len()
    }

    /// Everything exists: the event queue need not grow any more (and can, if it must).
    pub(crate) fn fit_queue(&mut self) {
        let (pcpus, vcpus) = (self.pcpus.len(), self.vcpus.len());
        self.queue.fit([1, self.timers.len(), pcpus, vcpus - pcpus, self.sources]);
    }

    #[inline(always)]
    pub(crate) fn set_source(&mut self, source: usize, time: Time) {
        let time = time.max(self.now);
        // Devices tell again and again what they have told before.
        if time != self.queue.time_of(Rank::Source, source) {
            self.queue.set(Rank::Source, source, time);
        }
    }

    #[inline(always)]
    pub(crate) fn kick(&mut self, v: VcpuId, cause: WakeCause) {
        self.kicks.push((v, cause));
    }

    /// `v` uses these sets from now on; if it runs, it brings in at once what is missing of them.
    pub(crate) fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        self.caches.use_sets(v, sets);
        if self.costs.l2_bytes > 0 && self.is_current(v) {
            let p = self.processor(v);
            let refill = self.caches.touch(&self.costs, p, v);
            if !refill.is_zero() {
                self.settle(p);
                let pcpu = &mut self.pcpus[p.index()];
                pcpu.ready_at = pcpu.ready_at.max(self.now) + refill;
                self.set_run_end(p);
            }
        }
    }

    /// The hypervisor works on `p` for `cost`: whoever runs there makes no progress meanwhile.
    #[inline(always)]
    pub(crate) fn charge_overhead(&mut self, p: PcpuId, cost: Span) {
        if !cost.is_zero() {
            self.delay(p, cost);
        }
    }

    fn delay(&mut self, p: PcpuId, cost: Span) {
        self.settle(p);
        let now = self.now;
        let pcpu = &mut self.pcpus[p.index()];
        pcpu.hypervisor_until = pcpu.hypervisor_until.max(now) + cost;
        pcpu.ready_at = pcpu.ready_at.max(now) + cost;
        self.set_run_end(p);
    }

    /// Accounts for the time of `p` and the progress of its current vCPU up to now.
    #[inline(always)]
    pub(crate) fn settle(&mut self, p: PcpuId) {
        let idle = self.is_idle(self.pcpus[p.index()].current);
        let pcpu = &mut self.pcpus[p.index()];
        let progress = pcpu.settle(self.now, idle);
        if !idle {
            let vcpu = &mut self.vcpus[pcpu.current.index()];
            if vcpu.left != Span::MAX {
                vcpu.left -= progress;
                debug_assert!(!vcpu.left.is_negative(), "a vCPU ran past the end of its operation");
            }
        }
    }

    /// When the current vCPU of `p` will have used its operation up.
    #[inline(always)]
    pub(crate) fn set_run_end(&mut self, p: PcpuId) {
        let pcpu = &self.pcpus[p.index()];
        let end = if self.is_idle(pcpu.current) {
            NEVER
        } else {
            let vcpu = &self.vcpus[pcpu.current.index()];
            let start = pcpu.ready_at.max(self.now);
            if vcpu.interrupted { start } else { start.saturating_add(vcpu.left) }
        };
        self.queue.set(Rank::RunEnd, p.index(), end);
    }
}

impl Pcpu {
    /// Accounts for the time up to `now`; returns how much of it was progress of the current vCPU.
    #[inline(always)]
    fn settle(&mut self, now: Time, idle: bool) -> Span {
        let busy_from = self.ready_at.clamp(self.settled_at, now);
        let overhead = busy_from - self.settled_at;
        let progress = now - busy_from;
        self.overhead_ns += overhead;
        if idle {
            self.idle_ns += progress;
        } else {
            self.run_ns += progress;
        }
        self.settled_at = now;
        progress
    }
}
/// The host as observers and worlds see it.
pub type HostState = PolicyContext;
