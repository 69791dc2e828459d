//! The engine: takes events in order, lets the policy decide, and carries its decisions out.

mod life;

use std::fmt;

use crate::action::{Action, TimedAction};
use crate::cache::Caches;
use crate::context::{Domain, HostState, Pcpu, RunState, TimerOwner, Vcpu, Wants, mark};
use crate::life::Life;
use crate::queue::{EventQueue, Rank};
use crate::scheduler::{AffinityRule, PauseRule, Placement};
use crate::{
    Costs, CpuMask, Decision, DomId, HostRules, NEVER, Observer, Op, PCPUS_MAX, Params, PcpuId, Scheduler,
    Span, Switch, Time, VcpuId, WakeCause, World, WorldContext,
};

/// One vCPU to be created.
#[derive(Clone, Debug, Default)]
pub struct VcpuConfig {
    /// The time from the boot of its domain to its first wake-up (`None`: only a virtual interrupt wakes it).
    pub start: Option<Span>,
    /// Its hard affinity (`None`: every pCPU).
    pub affinity: Option<CpuMask>,
}

/// One domain to be created.
#[derive(Clone, Debug, Default)]
pub struct DomainConfig {
    /// Its number as an administrator sees it.
    pub number: i64,
    /// The CPU pool it is created in.
    pub pool: usize,
    /// The scheduler parameters it is given, applied by one adjust once its vCPUs exist.
    pub params: Params,
    /// Its vCPUs.
    pub vcpus: Vec<VcpuConfig>,
}

/// A host to be brought up.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// How many pCPUs, 1 to [`crate::PCPUS_MAX`].
    pub pcpus: u32,
    /// How many of them share a socket (0: one socket holds all).
    pub pcpus_per_socket: u32,
    /// The pCPUs of each CPU pool: disjoint, none empty, all pCPUs together. Empty: one pool has them all. Each needs a
    /// scheduler of its own, see [`Pools`](crate::Pools).
    pub pools: Vec<CpuMask>,
    /// What the hypervisor's own work costs ([`Costs::ZERO`]: exact mode).
    pub costs: Costs,
    /// The domains, in order of creation, those included that are created later.
    pub domains: Vec<DomainConfig>,
    /// What the toolstack does later.
    pub actions: Vec<TimedAction>,
}

/// The policy or the world broke the rules of the host, so the run cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// When.
    pub time: Time,
    /// The policy's hook in which it happened, if it was in one.
    pub hook: Option<&'static str>,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ns", self.time)?;
        if let Some(hook) = self.hook {
            write!(f, ", in `{hook}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for Broken {}

/// More events than this at one instant mean that time stands still (a program of nothing but yields, say).
const EVENTS_PER_INSTANT_MAX: u32 = 1_000_000;

/// More decisions than this after one event mean that decisions keep asking for each other.
const DECISIONS_PER_EVENT_MAX: u32 = 100_000;

/// A running host. See the [crate](crate) for its parts.
#[derive(Clone, Debug)]
pub struct Host<S, W, O> {
    core: HostState,
    policy: S,
    world: W,
    observer: O,
    /// By CPU pool.
    rules: Vec<HostRules>,
    /// As they are created.
    domains: Vec<DomainConfig>,
    actions: Vec<TimedAction>,
    next_action: usize,
    started: bool,
    events_at_instant: u32,
    events_max: u64,
}

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// Brings a host up at time 0: pCPUs, then domains with their vCPUs, all blocked.
    ///
    /// # Errors
    /// [`Broken`] if the policy breaks the rules.
    ///
    /// # Panics
    /// If the number of pCPUs is out of range, or pools and schedulers do not match.
    pub fn new(config: &HostConfig, policy: S, world: W, observer: O) -> Result<Self, Broken> {
        assert!(config.pcpus >= 1 && config.pcpus <= PCPUS_MAX, "a host has 1 to {} pCPUs", PCPUS_MAX);
        let rules = policy.pool_rules();
        let mut actions = config.actions.clone();
        actions.sort_by_key(|a| a.at);
        let runstates = observer.wanted_runstates().iter().fold(0, |bits, &state| bits | 1 << state as u8);
        let mut host = Host {
            core: HostState::new(config, Wants { state: O::WANTS_STATE, runstates, io: O::WANTS_IO }),
            policy,
            world,
            observer,
            rules,
            domains: config.domains.clone(),
            actions,
            next_action: 0,
            started: false,
            events_at_instant: 0,
            events_max: u64::MAX,
        };
        assert_eq!(host.rules.len(), host.core.pools.len(), "each CPU pool has a scheduler");
        for p in (0..config.pcpus).map(PcpuId) {
            host.policy.add_pcpu(&mut host.core, p);
            host.blame("add_pcpu");
            host.core.pcpus[p.index()].slice_timer = host.core.add_timer(TimerOwner::Slice(p));
        }
        let later = life::created_later(&host.actions, host.domains.len());
        for (d, later) in (0..).map(DomId).zip(later) {
            host.add_domain(d);
            if !later {
                host.boot(d)?;
            }
        }
        for pool in 0..host.rules.len() {
            if host.rules[pool].reschedule_at_start {
                host.core.flags = host.core.flags.or(&host.core.pools[pool]);
            }
        }
        host.check_policy()?;
        host.core.migrations.clear();
        host.set_next_action();
        Ok(host)
    }

    /// Handles every event due before `end`, and stands at `end` then. May be called again with a later end.
    ///
    /// # Errors
    /// [`Broken`] when the policy or the world breaks the rules.
    pub fn run_until(&mut self, end: Time) -> Result<(), Broken> {
        if !self.started {
            self.started = true;
            self.world.start(&mut WorldContext { core: &mut self.core });
            self.core.fit_queue();
            self.deliver_kicks(None);
            self.finish_event()?;
        }
        loop {
            let (time, rank, id) = self.core.queue.next();
            if time >= end {
                break;
            }
            if time == self.core.now {
                self.events_at_instant += 1;
                if self.events_at_instant > EVENTS_PER_INSTANT_MAX {
                    return Err(self.standstill(rank, id));
                }
            } else {
                debug_assert!(time > self.core.now, "an event in the past");
                self.events_at_instant = 0;
                self.core.now = time;
            }
            self.core.work.events += 1;
            if self.core.work.events > self.events_max {
                return Err(
                    self.broken(format!("more than {} events: stopped at this limit", self.events_max))
                );
            }
            match rank {
                Rank::Action => self.act()?,
                Rank::Timer => self.timer_due(id),
                Rank::RunEnd => self.operation_used_up(PcpuId(id as u32)),
                Rank::WakeUp => self.wake_up_due(id),
                Rank::Source => self.source_due(id),
            }
            self.finish_event()?;
        }
        if end > self.core.now {
            self.core.now = end;
            self.events_at_instant = 0;
        }
        Ok(())
    }

    /// Stops the run with an error after this many events.
    pub fn limit_events(&mut self, most: u64) {
        self.events_max = most;
    }

    /// The time the host stands at, ns.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The state of the host.
    pub fn context(&self) -> &HostState {
        &self.core
    }

    /// The policy.
    pub fn policy(&self) -> &S {
        &self.policy
    }

    /// The world.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// The world, to read and reset its statistics.
    pub fn world_mut(&mut self) -> &mut W {
        &mut self.world
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, together with the state of the host.
    pub fn observe(&mut self) -> (&HostState, &mut O) {
        (&self.core, &mut self.observer)
    }

    /// The state of the host, the observer, and the world.
    pub fn parts(&mut self) -> (&HostState, &mut O, &W) {
        (&self.core, &mut self.observer, &self.world)
    }

    /// Takes the host apart.
    pub fn into_parts(self) -> (HostState, S, W, O) {
        (self.core, self.policy, self.world, self.observer)
    }

    // ---- bringing up ----

    /// Makes room for a domain and its vCPUs, which are not there yet.
    fn add_domain(&mut self, d: DomId) {
        let DomainConfig { number, pool, ref vcpus, .. } = self.domains[d.index()];
        let (core, count) = (&mut self.core, vcpus.len() as u32);
        let first_vcpu = core.vcpus.len() as u32;
        let (pool, life) = (pool as u32, Life::Gone);
        core.domains.push(Domain { number, first_vcpu, vcpus: count, pauses: 0, pool, life, id: number });
        for v in core.vcpus_of(d) {
            core.vcpus.push(Vcpu::new(d, PcpuId(0), mark::ABSENT));
            core.affinity.push(CpuMask::EMPTY);
            core.lived_ns.push(Span::ZERO);
            core.queue.make_room(Rank::WakeUp, core.wake_slot(v) + 1);
        }
    }

    /// Gives a vCPU to the scheduler of its domain's pool.
    fn insert(&mut self, v: VcpuId, affinity: Option<CpuMask>) -> Result<(), Broken> {
        let d = self.core.dom(v);
        let pcpus = self.core.pools[self.core.pool_of(d)];
        let given = affinity.map(|mask| mask.and(&pcpus)).filter(|mask| !mask.is_empty());
        let first_of_pool = pcpus.first().expect("a pool has a pCPU");
        let first = v.0 == self.core.domains[d.index()].first_vcpu;
        let beside_previous = || {
            let previous = self.core.vcpus[v.index() - 1].home;
            pcpus.next_after(previous).unwrap_or(first_of_pool)
        };
        let (affinity, home) = match self.rules[self.core.pool_of(d)].placement {
            Placement::Policy if first => (given, first_of_pool),
            Placement::Policy => (given, beside_previous()),
            Placement::LeastPopulated if first => (None, self.least_populated(v)),
            Placement::LeastPopulated => (None, beside_previous()),
            Placement::RoundRobin => {
                let allowed = given.unwrap_or(pcpus);
                let before = self.core.peers(v).filter(|u| u.0 < v.0).count();
                let k = before % allowed.len() as usize;
                (given, allowed.iter().nth(k).expect("a mask has as many members as it says"))
            }
        };
        self.core.vcpus[v.index()].home = home;
        self.core.affinity[v.index()] = affinity.unwrap_or(pcpus);
        self.policy.insert(&mut self.core, v);
        self.blame("insert");
        if let (Placement::LeastPopulated, Some(mask)) = (self.rules[self.core.pool_of(d)].placement, given) {
            self.set_affinity(v, mask)?;
        }
        Ok(())
    }

    /// The pCPU with the fewest vCPUs assigned; of equals the last, but the first of all loses every tie.
    fn least_populated(&self, v: VcpuId) -> PcpuId {
        let mut counts = vec![0u32; self.core.pcpus.len()];
        for u in self.core.peers(v).filter(|&u| u != v) {
            counts[self.core.processor(u).index()] += 1;
        }
        let pcpus = self.core.pools[self.core.pool_of(self.core.dom(v))];
        let mut least = pcpus.first().expect("a pool has a pCPU");
        for p in pcpus.iter().skip(1) {
            if counts[p.index()] <= counts[least.index()] {
                least = p;
            }
        }
        least
    }

    // ---- events ----

    fn timer_due(&mut self, id: usize) {
        self.core.queue.set(Rank::Timer, id, NEVER);
        match self.core.timers[id] {
            TimerOwner::Slice(p) => {
                self.core.executing = p;
                self.core.flags.insert(p);
            }
            TimerOwner::Policy { token, pcpu, pool } => {
                self.core.executing = pcpu;
                self.core.pool = pool;
                self.observer.timer_due(&self.core, pcpu, token);
                self.policy.timer(&mut self.core, token);
                self.blame("timer");
            }
        }
    }

    /// The current vCPU of `p` needs its next operation.
    #[inline]
    fn operation_used_up(&mut self, p: PcpuId) {
        self.core.executing = p;
        self.core.settle(p);
        let v = self.core.current(p);
        let vcpu = &mut self.core.vcpus[v.index()];
        vcpu.interrupted = false;
        let left = std::mem::take(&mut vcpu.left);
        let op = self.world.next_op(&mut WorldContext { core: &mut self.core }, v, left);
        match op {
            Op::Run(span) => {
                self.core.work.continuations += 1;
                self.core.vcpus[v.index()].left = span;
                self.core.set_run_end(p);
            }
            // After a block or a yield the slot stays due now: should the vCPU run on, it is asked again at once.
            Op::Block(wake) => {
                self.core.set_marks(v, mark::BLOCKED, true);
                let wake = wake.unwrap_or(NEVER).max(self.core.now);
                let slot = self.core.wake_slot(v);
                if wake != self.core.queue.time_of(Rank::WakeUp, slot) {
                    self.core.queue.set(Rank::WakeUp, slot, wake);
                }
                self.core.flags.insert(p);
            }
            Op::Yield => {
                self.policy.yielded(&mut self.core, v);
                self.blame("yielded");
                self.core.flags.insert(p);
            }
        }
        self.deliver_kicks(Some(v));
    }

    fn wake_up_due(&mut self, slot: usize) {
        self.core.queue.set(Rank::WakeUp, slot, NEVER);
        let v = VcpuId((self.core.pcpus.len() + slot) as u32);
        self.core.executing = self.core.processor(v);
        self.unblock(v, WakeCause::Timer, None);
    }

    fn source_due(&mut self, id: usize) {
        self.core.queue.set(Rank::Source, id, NEVER);
        self.world.fire(&mut WorldContext { core: &mut self.core }, id);
        self.deliver_kicks(None);
    }

    /// Delivers the virtual interrupts raised by the event at hand; `by` is the vCPU whose execution raised them.
    #[inline]
    fn deliver_kicks(&mut self, by: Option<VcpuId>) {
        for i in 0..self.core.kicks.len() {
            let (v, cause) = self.core.kicks[i];
            if by.is_none() {
                self.core.executing = self.core.processor(v);
            }
            if !self.unblock(v, cause, by) {
                self.core.vcpus[v.index()].interrupted = true;
                if self.core.is_current(v) {
                    let p = self.core.processor(v);
                    self.core.settle(p);
                    self.core.set_run_end(p);
                }
            }
        }
        self.core.kicks.clear();
        if !self.core.interrupted.is_empty() {
            for i in 0..self.core.interrupted.len() {
                self.observer.busy(&self.core, self.core.interrupted[i]);
            }
            self.core.interrupted.clear();
        }
    }

    /// Ends the block of `v`; false if it was not blocked.
    #[inline]
    fn unblock(&mut self, v: VcpuId, cause: WakeCause, by: Option<VcpuId>) -> bool {
        let vcpu = &mut self.core.vcpus[v.index()];
        if vcpu.marks & mark::BLOCKED == 0 {
            return false;
        }
        let first = !std::mem::replace(&mut vcpu.started, true);
        let cause = if first && cause == WakeCause::Timer { WakeCause::Start } else { cause };
        vcpu.cause = cause;
        self.core.set_marks(v, mark::BLOCKED, false);
        self.observer.woke(&self.core, v, cause, by);
        self.wake_if_runnable(v);
        true
    }

    /// Serves pending reschedule requests, then tells the observer what it has not been told yet.
    #[inline]
    fn finish_event(&mut self) -> Result<(), Broken> {
        self.serve_flags()?;
        self.check_policy()?;
        if !self.core.migrations.is_empty() {
            for i in 0..self.core.migrations.len() {
                let (v, from, to) = self.core.migrations[i];
                self.observer.migrated(&self.core, v, from, to);
            }
            self.core.migrations.clear();
        }
        if O::WANTS_STATE {
            for row in self.core.state_rows.drain(..) {
                self.observer.state(row);
            }
        }
        if !self.core.runstates.is_empty() {
            for i in 0..self.core.runstates.len() {
                self.observer.runstate_changed(&self.core, self.core.runstates[i]);
            }
            self.core.runstates.clear();
        }
        if O::WANTS_IO {
            for i in 0..self.core.io_steps.len() {
                self.observer.io_step(&self.core, self.core.io_steps[i]);
            }
            self.core.io_steps.clear();
        }
        Ok(())
    }

    /// While any pCPU is asked to reschedule, the lowest-numbered one decides.
    #[inline]
    fn serve_flags(&mut self) -> Result<(), Broken> {
        let mut served = 0;
        while let Some(p) = self.core.flags.first() {
            self.core.flags.remove(p);
            self.decide(p)?;
            served += 1;
            if served > DECISIONS_PER_EVENT_MAX {
                let what = "decisions keep asking for decisions at one instant";
                return Err(self.broken_in("schedule", what.into()));
            }
        }
        Ok(())
    }

    /// Lets the policy decide on `p`, and carries the decision out.
    #[inline]
    fn decide(&mut self, p: PcpuId) -> Result<(), Broken> {
        self.core.executing = p;
        self.core.work.schedule_calls += 1;
        self.core.pcpus[p.index()].decisions += 1;
        self.core.charge_overhead(p, self.core.costs.decision_ns);
        let Decision { next, slice } = self.policy.schedule(&mut self.core, p);
        self.blame("schedule");
        let expiry = if slice.is_negative() { NEVER } else { self.core.now.saturating_add(slice) };
        self.core.queue.set(Rank::Timer, self.core.pcpus[p.index()].slice_timer.index(), expiry);
        let from = self.core.current(p);
        if next != from {
            self.check_choice(p, next)?;
            self.switch(p, from, next);
        } else if !self.may_run(next) {
            let what = format!("pCPU {} was given {}, which is not runnable", p.0, self.name(next));
            return Err(self.broken_in("schedule", what));
        }
        if self.core.pcpus[p.index()].ready_at > self.core.now {
            self.observer.busy(&self.core, p);
        }
        self.observer.decided(&self.core, p);
        Ok(())
    }

    /// Is `v` runnable? A decision may mark the very vCPU it chooses for migration (load balancing does): it runs, and
    /// moves when it stops.
    #[inline]
    fn may_run(&self, v: VcpuId) -> bool {
        self.core.vcpus[v.index()].marks & !mark::MIGRATING == 0
    }

    #[inline]
    fn check_choice(&self, p: PcpuId, v: VcpuId) -> Result<(), Broken> {
        let core = &self.core;
        let fits = v.index() < core.vcpus.len()
            && (v == core.idle(p)
                || !core.is_idle(v) && self.may_run(v) && core.processor(v) == p && !core.is_current(v));
        if fits {
            return Ok(());
        }
        let why = match core.vcpus.get(v.index()) {
            None => "does not exist",
            Some(_) if core.is_idle(v) => "is the idle vCPU of another pCPU",
            Some(vcpu) if self.core.pool_of(vcpu.dom) != self.core.pool_of_pcpu(p) => {
                "is in another CPU pool"
            }
            Some(vcpu) if vcpu.marks != 0 => "is not runnable",
            Some(vcpu) if vcpu.home != p => "is assigned to another pCPU",
            Some(_) => "already runs",
        };
        let name = if v.index() < core.vcpus.len() { self.name(v) } else { format!("vCPU number {}", v.0) };
        Err(self.broken_in("schedule", format!("pCPU {} was given {name}, which {why}", p.0)))
    }

    #[inline]
    fn switch(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        let core = &mut self.core;
        let now = core.now;
        core.settle(p);
        let outgoing = &mut core.vcpus[from.index()];
        outgoing.current = false;
        outgoing.switched_at = now;
        core.enter_state(from);
        let incoming = &mut core.vcpus[to.index()];
        incoming.current = true;
        incoming.switched_at = now;
        let (waited_ns, woken) = if incoming.state == RunState::Runnable && to.index() >= core.pcpus.len() {
            (now - incoming.state_since, incoming.woken)
        } else {
            (Span::ZERO, None)
        };
        core.enter_state(to);
        core.pcpus[p.index()].current = to;
        core.charge_switch(p, from, to);
        core.set_run_end(p);
        if core.is_idle(from) {
            self.world.resumed(&mut WorldContext { core: &mut *core }, p);
        }
        self.observer.switched(&self.core, Switch { time: now, pcpu: p, from, to, waited_ns, woken });
        self.policy.context_saved(&mut self.core, from);
        self.blame("context_saved");
        self.finish_migration(from);
    }

    // ---- services: wake, sleep, pause, affinity ----

    fn wake_if_runnable(&mut self, v: VcpuId) {
        if self.core.runnable(v) {
            self.policy.wake(&mut self.core, v);
            self.blame("wake");
        }
    }

    fn sleep_unless_runnable(&mut self, v: VcpuId) {
        if !self.core.runnable(v) {
            self.policy.sleep(&mut self.core, v);
            self.blame("sleep");
        }
    }

    /// Moves `v` if it is marked for migration and runs nowhere.
    #[inline]
    fn finish_migration(&mut self, v: VcpuId) {
        let vcpu = &self.core.vcpus[v.index()];
        if vcpu.marks & mark::MIGRATING != 0 && !vcpu.current {
            let to = self.target_of(v);
            self.migrate(v, to);
        }
    }

    /// Where a vCPU that is to migrate goes. Releases that pick before they hold the lock of the pCPU picked pick again
    /// until two picks agree, or the last one is allowed.
    fn target_of(&mut self, v: VcpuId) -> PcpuId {
        if self.rules_for(v).affinity != AffinityRule::AlwaysPickFirst {
            return self.pick(v);
        }
        let mut guess = self.core.processor(v);
        loop {
            let picked = self.pick(v);
            if self.policy.share_lock(guess, picked) {
                return picked;
            }
            guess = picked;
            if self.core.affinity(v).contains(guess) {
                return guess;
            }
        }
    }

    /// The pCPU the policy picks; home if it picks one that `v` cannot be on (which ends the run).
    fn pick(&mut self, v: VcpuId) -> PcpuId {
        let picked = self.policy.pick(&mut self.core, v);
        let pool = self.core.pool_of(self.core.dom(v));
        let fits = self.core.pool_of_pcpu.get(picked.index()).is_some_and(|&of| of as usize == pool);
        if !fits {
            let what = format!("pCPU {} was picked for {}, which it cannot be on", picked.0, self.name(v));
            self.core.violate(what);
        }
        self.blame("pick");
        if fits { picked } else { self.core.processor(v) }
    }

    fn migrate(&mut self, v: VcpuId, to: PcpuId) {
        self.core.set_marks(v, mark::MIGRATING, false);
        self.policy.migrate(&mut self.core, v, to);
        self.blame("migrate");
        self.wake_if_runnable(v);
    }

    /// Pauses `v` itself, and waits until it is off its pCPU: pending requests are served inside the event.
    fn pause_and_wait(&mut self, v: VcpuId) -> Result<(), Broken> {
        self.core.pause_vcpu(v);
        self.sleep_unless_runnable(v);
        if self.core.is_current(v) {
            self.serve_flags()?;
        }
        Ok(())
    }

    fn unpause(&mut self, v: VcpuId) {
        if self.core.unpause_vcpu(v) {
            self.wake_if_runnable(v);
        }
    }

    fn adjust(&mut self, d: DomId, params: &Params) -> Result<bool, Broken> {
        let pauses = self.rules[self.core.pool_of(d)].adjust_pauses;
        if pauses {
            for v in self.core.vcpus_of(d) {
                self.pause_and_wait(v)?;
            }
        }
        let accepted = self.policy.adjust(&mut self.core, d, params).is_ok();
        self.blame("adjust");
        if pauses {
            for v in self.core.vcpus_of(d) {
                self.unpause(v);
            }
        }
        Ok(accepted)
    }

    /// Moves a domain to another pool: its vCPUs leave one scheduler, all of them, and join the other, paused meanwhile.
    fn move_domain(&mut self, d: DomId, pool: usize) -> Result<bool, Broken> {
        if !self.core.is_there(d) {
            return Ok(false);
        }
        if self.core.pool_of(d) == pool {
            return Ok(true);
        }
        self.leave(d)?;
        self.core.domains[d.index()].pool = pool as u32;
        let homes: Vec<PcpuId> = self.core.vcpus_of(d).map(|v| self.core.processor(v)).collect();
        self.join(d, |_| None)?;
        for (v, from) in self.core.vcpus_of(d).zip(homes) {
            self.core.migrations.retain(|&(moved, ..)| moved != v);
            self.core.migrations.push((v, from, self.core.processor(v)));
        }
        self.release(d);
        Ok(true)
    }

    /// A domain's vCPUs leave their scheduler, all of them, and then it does.
    fn leave(&mut self, d: DomId) -> Result<(), Broken> {
        for v in self.core.vcpus_of(d) {
            self.core.pause_vcpu(v);
            self.sleep_unless_runnable(v);
            if self.core.is_current(v) {
                let home = self.core.processor(v);
                self.core.flags.insert(home);
                self.serve_flags()?;
            }
        }
        for v in self.core.vcpus_of(d) {
            self.policy.remove(&mut self.core, v);
            self.blame("remove");
        }
        self.policy.remove_domain(&mut self.core, d);
        self.blame("remove_domain");
        for v in self.core.vcpus_of(d) {
            self.core.set_marks(v, mark::ABSENT, true);
            self.core.unpause_vcpu(v);
        }
        Ok(())
    }

    /// A domain joins the scheduler of its pool, and then all its vCPUs do, which stay paused until [`Self::release`].
    fn join(&mut self, d: DomId, affinity: impl Fn(usize) -> Option<CpuMask>) -> Result<(), Broken> {
        self.policy.add_domain(&mut self.core, d);
        self.blame("add_domain");
        for (number, v) in self.core.vcpus_of(d).enumerate() {
            let from = self.core.processor(v);
            self.core.pause_vcpu(v);
            self.core.set_marks(v, mark::ABSENT, false);
            self.insert(v, affinity(number))?;
            self.observer.affinity_changed(&self.core, v);
            self.core.migrations.retain(|&(moved, ..)| moved != v);
            self.core.migrations.push((v, from, self.core.processor(v)));
        }
        Ok(())
    }

    fn release(&mut self, d: DomId) {
        for v in self.core.vcpus_of(d) {
            self.unpause(v);
        }
    }

    fn pause_domain(&mut self, d: DomId) -> bool {
        if !self.core.is_there(d) {
            return false;
        }
        let rules = self.rules[self.core.pool_of(d)];
        let domain = &mut self.core.domains[d.index()];
        domain.pauses = match rules.pause {
            PauseRule::Counted => domain.pauses + 1,
            PauseRule::Marked => 1,
        };
        for v in self.core.vcpus_of(d) {
            self.core.set_marks(v, mark::DOMAIN_PAUSED, true);
        }
        for v in self.core.vcpus_of(d) {
            self.sleep_unless_runnable(v);
        }
        true
    }

    fn unpause_domain(&mut self, d: DomId) -> bool {
        if !self.core.is_there(d) {
            return false;
        }
        let rules = self.rules[self.core.pool_of(d)];
        let domain = &mut self.core.domains[d.index()];
        if rules.pause == PauseRule::Counted && domain.pauses != 1 {
            domain.pauses = domain.pauses.saturating_sub(1);
            return true;
        }
        domain.pauses = 0;
        for v in self.core.vcpus_of(d) {
            self.core.set_marks(v, mark::DOMAIN_PAUSED, false);
        }
        for v in self.core.vcpus_of(d) {
            self.wake_if_runnable(v);
        }
        true
    }

    fn set_affinity(&mut self, v: VcpuId, mask: CpuMask) -> Result<bool, Broken> {
        let mask = mask.and(&self.core.pools[self.core.pool_of(self.core.dom(v))]);
        let rule = self.rules_for(v).affinity;
        if mask.is_empty() || rule == AffinityRule::Ignored {
            return Ok(false);
        }
        if rule == AffinityRule::Directly {
            self.pause_and_wait(v)?;
            self.core.affinity[v.index()] = mask;
            self.core.set_processor(v, mask.first().expect("the mask is not empty"));
            self.observer.affinity_changed(&self.core, v);
            self.policy.affinity(&mut self.core, v, &mask);
            self.blame("affinity");
            self.unpause(v);
            return Ok(true);
        }
        self.policy.affinity(&mut self.core, v, &mask);
        self.blame("affinity");
        self.core.affinity[v.index()] = mask;
        self.observer.affinity_changed(&self.core, v);
        if rule == AffinityRule::IfExcluded && mask.contains(self.core.processor(v)) {
            return Ok(true);
        }
        self.core.start_migration(v);
        self.sleep_unless_runnable(v);
        if rule == AffinityRule::AlwaysPickFirst {
            let to = self.target_of(v);
            if !self.core.is_current(v) {
                self.migrate(v, to);
            }
        } else {
            self.finish_migration(v);
        }
        Ok(true)
    }

    // ---- actions ----

    fn set_next_action(&mut self) {
        let at = self.actions.get(self.next_action).map_or(NEVER, |a| a.at);
        self.core.queue.set(Rank::Action, 0, at);
    }

    /// Carries out an action at the present instant, before anything else that is due then.
    pub fn act_now(&mut self, action: Action) {
        self.actions.insert(self.next_action, TimedAction { at: self.core.now, action });
        self.set_next_action();
    }

    fn act(&mut self) -> Result<(), Broken> {
        let action = self.actions[self.next_action].action.clone();
        self.next_action += 1;
        self.set_next_action();
        self.core.executing = PcpuId(0);
        let (domain, accepted) = match action {
            Action::AdjustGlobal(pool, params) => {
                self.core.pool = pool as u32;
                let accepted = self.policy.adjust_global(&mut self.core, &params).is_ok();
                self.blame("adjust_global");
                (None, accepted)
            }
            Action::Adjust(d, params) => (Some(d), self.core.is_there(d) && self.adjust(d, &params)?),
            Action::MovePool(d, pool) => (Some(d), self.move_domain(d, pool)?),
            Action::Pause(d) => (Some(d), self.pause_domain(d)),
            Action::Unpause(d) => (Some(d), self.unpause_domain(d)),
            Action::Affinity(v, mask) => {
                let d = self.core.dom(v);
                (Some(d), self.core.is_there(d) && self.set_affinity(v, mask)?)
            }
            Action::Create(d) => (Some(d), self.create(d)?),
            Action::Destroy(d) => (Some(d), self.destroy(d)?),
            Action::Shutdown(d) => (Some(d), self.shut_down(d, false)),
            Action::Crash(d) => (Some(d), self.shut_down(d, true)),
            Action::Kill(d) => (Some(d), self.kill(d)),
            Action::Reboot(d) => (Some(d), self.destroy(d)? && self.create(d)?),
            Action::Save(d) => (Some(d), self.save(d)?),
            Action::Restore(d) => (Some(d), self.restore(d)?),
            Action::Online(v) => (Some(self.core.dom(v)), self.plug(v)),
            Action::Offline(v) => (Some(self.core.dom(v)), self.unplug(v)),
        };
        self.observer.acted(&self.core, domain, accepted);
        Ok(())
    }

    fn broken(&self, what: String) -> Broken {
        Broken { time: self.core.now, hook: None, what }
    }

    fn broken_in(&self, hook: &'static str, what: String) -> Broken {
        Broken { hook: Some(hook), ..self.broken(what) }
    }

    /// Time stands still, and this is one of the events that keep it.
    fn standstill(&self, rank: Rank, id: usize) -> Broken {
        let what = "time stands still: events at one instant do not end";
        match (rank, self.core.timers.get(id)) {
            (Rank::Timer, Some(TimerOwner::Slice(p))) => {
                let what = format!("time stands still: pCPU {} is given slices of 0 ns without end", p.0);
                self.broken_in("schedule", what)
            }
            (Rank::Timer, Some(TimerOwner::Policy { .. })) => self.broken_in("timer", what.into()),
            _ => self.broken(what.into()),
        }
    }

    fn rules_for(&self, v: VcpuId) -> HostRules {
        self.rules[self.core.pool_of(self.core.dom(v))]
    }

    /// If the hook that has just returned did what cannot be, it is that hook's fault.
    #[inline(always)]
    fn blame(&mut self, hook: &'static str) {
        if let Some(violation) = &mut self.core.violation {
            violation.hook.get_or_insert(hook);
        }
    }

    /// Asks the policy whether it failed, or did what cannot be.
    #[inline(always)]
    fn check_policy(&self) -> Result<(), Broken> {
        if let Some(violation) = &self.core.violation {
            return Err(Broken { hook: violation.hook, ..self.broken(violation.what.clone()) });
        }
        match self.policy.failure() {
            None => Ok(()),
            Some((hook, what)) => Err(self.broken_in(hook, what)),
        }
    }

    fn name(&self, v: VcpuId) -> String {
        let (domain, vcpu) = self.core.name(v);
        format!("vCPU {vcpu} of domain {domain}")
    }
}

impl HostState {
    fn new(config: &HostConfig, wants: Wants) -> Self {
        let count = config.pcpus as usize;
        let all = CpuMask::first_n(config.pcpus);
        let pools = if config.pools.is_empty() { vec![all] } else { config.pools.clone() };
        let pool = |p: PcpuId| pools.iter().position(|pcpus| pcpus.contains(p));
        let pool_of_pcpu = all.iter().map(|p| pool(p).expect("each pCPU is in a pool") as u32).collect();
        let per_socket = if config.pcpus_per_socket == 0 { config.pcpus } else { config.pcpus_per_socket };
        let mut core = HostState {
            now: Time::ZERO,
            queue: EventQueue::default(),
            pcpus: Vec::with_capacity(count),
            vcpus: Vec::with_capacity(count),
            affinity: Vec::with_capacity(count),
            domains: Vec::new(),
            next_id: 1,
            lived_ns: vec![Span::ZERO; count],
            timers: Vec::new(),
            spare_timers: Vec::new(),
            flags: CpuMask::EMPTY,
            executing: PcpuId(0),
            kicks: Vec::with_capacity(64),
            interrupted: Vec::new(),
            wants,
            state_rows: Vec::new(),
            runstates: Vec::with_capacity(if wants.runstates != 0 { 64 } else { 0 }),
            io_steps: Vec::new(),
            migrations: Vec::with_capacity(64),
            costs: config.costs,
            caches: Caches::new(config.pcpus, per_socket, config.costs.l3_pcpus),
            pools,
            pool_of_pcpu,
            pool: 0,
            violation: None,
            pcpus_per_socket: per_socket,
            sources: 0,
            work: Default::default(),
        };
        for p in (0..config.pcpus).map(PcpuId) {
            let mut idle = Vcpu::new(DomId(u32::MAX), p, 0);
            idle.current = true;
            idle.state = RunState::Running;
            core.vcpus.push(idle);
            core.affinity.push(CpuMask::only(p));
            core.pcpus.push(Pcpu::new(VcpuId(p.0)));
        }
        core.queue.make_room(Rank::RunEnd, count);
        core
    }

    /// Charges `p` for switching to `to`: the switch itself, then what its cold caches must bring in again.
    #[inline]
    fn charge_switch(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        let HostState { costs, caches, pcpus, .. } = self;
        if costs.context_switch_ns.is_zero() && costs.l2_bytes == 0 {
            return;
        }
        // What the outgoing vCPU had yet to bring in is no longer wanted; the hypervisor's own work still is.
        let pcpu = &mut pcpus[p.index()];
        let busy_until: Time = pcpu.hypervisor_until.max(self.now);
        let rest: Span = pcpu.ready_at - busy_until;
        if rest > Span::ZERO {
            caches.cut_short(from, rest);
        }
        let start = busy_until + costs.context_switch_ns;
        let refill = if costs.l2_bytes > 0 { caches.touch(costs, p, to) } else { Span::ZERO };
        pcpu.hypervisor_until = start;
        pcpu.ready_at = start + refill;
    }
}

impl Vcpu {
    fn new(dom: DomId, home: PcpuId, marks: u8) -> Self {
        Vcpu {
            marks,
            pauses: 0,
            current: false,
            interrupted: false,
            started: false,
            cause: WakeCause::Start,
            woken: None,
            state: match marks {
                marks if marks & mark::OFFLINE != 0 => RunState::Offline,
                marks if marks & mark::BLOCKED != 0 => RunState::Blocked,
                _ => RunState::Runnable,
            },
            home,
            dom,
            left: Span::ZERO,
            state_since: Time::ZERO,
            switched_at: Time::ZERO,
            times: [Span::ZERO; 3],
        }
    }
}

impl Pcpu {
    fn new(idle: VcpuId) -> Self {
        Pcpu {
            current: idle,
            slice_timer: crate::TimerId(0),
            settled_at: Time::ZERO,
            ready_at: Time::ZERO,
            hypervisor_until: Time::ZERO,
            run_ns: Span::ZERO,
            idle_ns: Span::ZERO,
            overhead_ns: Span::ZERO,
            decisions: 0,
        }
    }
}
