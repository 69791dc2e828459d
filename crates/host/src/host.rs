//! The engine: takes events in order, lets the policy decide, and carries its decisions out.
//!
//! The toolstack's actions are in [`toolstack`](crate::toolstack) and [`lifecycle`](crate::lifecycle), the moves of vCPUs in
//! [`placement`](crate::placement), and the cost of each step in [`accounting`](crate::accounting).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::action::{TimedAction, created_later};
use crate::domain::Boot;
use crate::outbox::{Kick, Migration, Wanted};
use crate::queue::Rank;
use crate::state::{Pcpu, Reaction, TimerOwner};
use crate::vcpu::pause_flag;
use crate::{
    Broken, Decision, DomId, HostConfig, HostRules, HostState, NEVER, Observer, Op, PCPUS_MAX, PcpuId,
    PolicyContext, PoolId, RunState, Scheduler, Slice, Span, Switch, Table, Time, TimerId, VcpuId, WakeCause,
    World, WorldContext,
};

/// Number of events at one instant above which time is considered to stand still (a program of nothing but yields, say).
const EVENTS_PER_INSTANT_MAX: u32 = 1_000_000;

/// Number of events for each simulated second, and each pCPU and domain, above which time is considered to stand still:
/// a hundred times the rate of busy hosts.
const EVENTS_PER_SECOND_MAX: i64 = 10_000_000;

/// Number of events over which that rate is measured.
const PACE_EVENTS: u64 = 1 << 22;

/// Number of events whose causes are counted when time stands still.
const BLAMED_EVENTS: usize = 1 << 14;

/// Number of decisions after one event above which decisions are considered to ask for each other without end.
const DECISIONS_PER_EVENT_MAX: u32 = 100_000;

/// A running host. See the [crate] for its parts.
#[derive(Clone, Debug)]
pub struct Host<S, W, O> {
    /// The state, in the view that the policy has of it.
    pub(crate) view: PolicyContext,
    pub(crate) policy: S,
    pub(crate) world: W,
    pub(crate) observer: O,
    pub(crate) rules: Table<PoolId, HostRules>,
    /// Configuration with which each domain is created.
    pub(crate) boots: Table<DomId, Arc<Boot>>,
    /// Actions of the toolstack, in the order of their times.
    pub(crate) actions: Vec<TimedAction>,
    pub(crate) next_action: usize,
    started: bool,
    events_at_instant: u32,
    events_max: u64,
    /// The number of events at which the pace is measured next, and the time at which it was last.
    pace: (u64, Time),
    busiest: Option<Busiest>,
    /// The first domain whose parameters the scheduler refused when it was created or restored.
    pub(crate) refused_boot: Option<DomId>,
}

/// The cause of most events of a host whose time does not advance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Busiest {
    /// The vCPUs of a domain.
    Domain(DomId),
    /// The timers of a pool's scheduler.
    Pool(PoolId),
    /// A source of the world.
    Source(usize),
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
        let mut actions = config.actions.clone();
        actions.sort_by_key(|a| a.at);
        let wanted =
            Wanted { state: O::WANTS_STATE, io: O::WANTS_IO, runstates: observer.wanted_runstates() };
        let mut host = Host {
            view: PolicyContext { state: HostState::new(config, wanted) },
            rules: policy.pool_rules().into(),
            policy,
            world,
            observer,
            boots: Boot::of_all(&config.domains),
            actions,
            next_action: 0,
            started: false,
            events_at_instant: 0,
            events_max: u64::MAX,
            pace: (PACE_EVENTS, Time::ZERO),
            busiest: None,
            refused_boot: None,
        };
        assert_eq!(host.rules.len(), host.view.state.topology.pools(), "each CPU pool has a scheduler");
        for p in host.view.state.topology.all_masters().iter() {
            host.policy.add_pcpu(&mut host.view, p);
            host.blame("add_pcpu");
            let slice_timer = host.view.state.add_timer(TimerOwner::Slice(p));
            for q in host.view.state.topology.resource(p).iter() {
                host.view.state.pcpus[q].slice_timer = slice_timer;
            }
        }
        let later = created_later(&host.actions, host.boots.len());
        for (d, domain) in host.boots.ids().zip(&config.domains) {
            host.add_domain(d, domain.number);
            if !later[d] {
                host.boot(d)?;
            }
        }
        for (pool, rules) in host.rules.enumerate() {
            if rules.reschedule_at_start {
                host.view.state.reschedule =
                    host.view.state.reschedule.or(host.view.state.topology.masters(pool));
            }
        }
        if let Some(sample) = host.view.state.accounts.governor_sample() {
            let timer = host.view.state.add_timer(TimerOwner::Governor);
            host.view.state.queue.set(Rank::Timer, timer.index(), Time::ZERO + sample);
        }
        host.check_policy()?;
        host.view.state.outbox.migrations.clear();
        host.set_next_action();
        Ok(host)
    }

    /// Handles every event due before `end`, and ends at `end`. May be called again with a later end.
    ///
    /// # Errors
    /// [`Broken`] when the policy or the world breaks the rules.
    pub fn run_until(&mut self, end: Time) -> Result<(), Broken> {
        self.run_some(end, u64::MAX).map(|_| ())
    }

    /// Handles every event due before `end`, but at most `events` of them. True: the host is at `end`.
    ///
    /// # Errors
    /// [`Broken`] when the policy or the world breaks the rules.
    pub fn run_some(&mut self, end: Time, events: u64) -> Result<bool, Broken> {
        let pause_at = self.view.state.work.events.saturating_add(events);
        if !self.started {
            self.started = true;
            self.world.start(&mut WorldContext { state: &mut self.view.state });
            self.deliver_kicks(None);
            self.finish_event()?;
        }
        loop {
            let (time, rank, id) = self.view.state.queue.next();
            if time >= end {
                break;
            }
            if self.view.state.work.events >= pause_at {
                return Ok(false);
            }
            if time == self.view.state.now {
                self.events_at_instant += 1;
                if self.events_at_instant > EVENTS_PER_INSTANT_MAX {
                    return Err(self.standstill(rank, id));
                }
            } else {
                debug_assert!(time > self.view.state.now, "an event in the past");
                self.events_at_instant = 0;
                self.view.state.now = time;
            }
            self.handle(rank, id)?;
            if self.view.state.work.events >= self.pace.0 {
                self.measure_pace()?;
            }
        }
        if end > self.view.state.now {
            self.view.state.now = end;
            self.events_at_instant = 0;
        }
        Ok(true)
    }

    /// Handles an event.
    #[inline(always)]
    fn handle(&mut self, rank: Rank, id: usize) -> Result<(), Broken> {
        self.view.state.work.events += 1;
        if self.view.state.work.events > self.events_max {
            return Err(self.broken(format!("more than {} events: stopped at this limit", self.events_max)));
        }
        match rank {
            Rank::Action => self.act()?,
            Rank::Timer => self.timer_due(TimerId(id as u32)),
            Rank::RunEnd => self.operation_used_up(PcpuId(id as u32)),
            Rank::WakeUp => self.wake_up_due(id),
            Rank::Source => self.source_due(id),
        }
        self.finish_event()
    }

    /// Fails if time has hardly advanced during the last events.
    #[cold]
    fn measure_pace(&mut self) -> Result<(), Broken> {
        let elapsed = self.view.state.now - self.pace.1;
        self.pace = (self.view.state.work.events + PACE_EVENTS, self.view.state.now);
        let things = (self.view.state.pcpus.len() + self.boots.len()) as i64;
        let least = Span::from_secs(1) * PACE_EVENTS as i64 / (EVENTS_PER_SECOND_MAX * things);
        if elapsed >= least {
            return Ok(());
        }
        self.blame_busiest()?;
        let what = format!(
            "time hardly goes on: {PACE_EVENTS} events in {} ns; at most {EVENTS_PER_SECOND_MAX} a second \
             for each pCPU and domain",
            elapsed.ns()
        );
        Err(self.broken(what))
    }

    /// Finds the most frequent cause of the next events.
    fn blame_busiest(&mut self) -> Result<(), Broken> {
        let mut counts: BTreeMap<Busiest, u32> = BTreeMap::new();
        for _ in 0..BLAMED_EVENTS {
            let (time, rank, id) = self.view.state.queue.next();
            if time == NEVER {
                break;
            }
            if let Some(cause) = self.cause_of(rank, id) {
                *counts.entry(cause).or_default() += 1;
            }
            self.view.state.now = time;
            self.handle(rank, id)?;
        }
        // Of equals the first.
        self.busiest = counts.into_iter().rev().max_by_key(|&(_, count)| count).map(|(cause, _)| cause);
        Ok(())
    }

    /// The cause of an event.
    fn cause_of(&self, rank: Rank, id: usize) -> Option<Busiest> {
        let of = |v: VcpuId| (!self.view.state.is_idle(v)).then(|| Busiest::Domain(self.view.state.dom(v)));
        match rank {
            Rank::Action => None,
            Rank::Timer => match self.view.state.timers[TimerId(id as u32)] {
                TimerOwner::Slice(p) => Some(Busiest::Pool(self.view.state.pool_of_pcpu(p))),
                TimerOwner::Policy { pool, .. } => Some(Busiest::Pool(pool)),
                TimerOwner::Governor => None,
            },
            Rank::RunEnd => of(self.view.state.executes(PcpuId(id as u32))),
            Rank::WakeUp => of(VcpuId((self.view.state.pcpus.len() + id) as u32)),
            Rank::Source => Some(Busiest::Source(id)),
        }
    }

    /// The cause of the next event.
    pub fn next_cause(&self) -> Option<Busiest> {
        let (time, rank, id) = self.view.state.queue.next();
        if time == NEVER { None } else { self.cause_of(rank, id) }
    }

    /// Stops the run with an error after this many events.
    pub fn limit_events(&mut self, most: u64) {
        self.events_max = most;
    }

    /// The cause of most events, if a run has ended because time did not advance.
    pub fn busiest(&self) -> Option<Busiest> {
        self.busiest
    }

    /// The first domain whose parameters the scheduler refused when it was created or restored: it runs with other
    /// parameters.
    pub fn refused_boot(&self) -> Option<DomId> {
        self.refused_boot
    }

    /// The present time of the host.
    pub fn now(&self) -> Time {
        self.view.state.now
    }

    /// The state of the host.
    pub fn context(&self) -> &HostState {
        &self.view.state
    }

    /// The policy.
    pub fn policy(&self) -> &S {
        &self.policy
    }

    /// Writes the present state of the policy for people to read.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn dump(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.policy.dump(&self.view, out)
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
        (&self.view.state, &mut self.observer)
    }

    /// The state of the host, the observer, and the world.
    pub fn parts(&mut self) -> (&HostState, &mut O, &W) {
        (&self.view.state, &mut self.observer, &self.world)
    }

    /// Takes the host apart.
    pub fn into_parts(self) -> (HostState, S, W, O) {
        (self.view.state, self.policy, self.world, self.observer)
    }

    // ---- events ----

    fn timer_due(&mut self, timer: TimerId) {
        match self.view.state.timers[timer] {
            // It stays due until the decision, the first thing that follows, sets it anew.
            TimerOwner::Slice(p) => {
                self.view.state.executing = p;
                let pcpu = &mut self.view.state.pcpus[p];
                if pcpu.reaction == Reaction::Pending {
                    pcpu.reaction = Reaction::Over;
                }
                self.view.state.reschedule.insert(p);
            }
            TimerOwner::Policy { token, pcpu, pool } => {
                self.view.state.stop_timer(timer);
                self.view.state.executing = pcpu;
                self.observer.timer_due(&self.view.state, pcpu, token);
                let outer = self.view.state.enter_pool(pool);
                self.policy.timer(&mut self.view, token);
                self.view.state.pool = outer;
                self.blame("timer");
            }
            TimerOwner::Governor => {
                let next = self.view.state.govern();
                self.view.state.queue.set(Rank::Timer, timer.index(), next.unwrap_or(NEVER));
            }
        }
    }

    /// The current vCPU of `p` needs its next operation.
    #[inline]
    fn operation_used_up(&mut self, p: PcpuId) {
        self.view.state.executing = p;
        self.view.state.end_poll(p);
        let (v, left) = self.view.state.end_operation(p);
        let op = self.world.next_op(&mut WorldContext { state: &mut self.view.state }, v, left);
        match op {
            Op::Run(span) => {
                self.view.state.work.continuations += 1;
                self.view.state.begin_operation(p, v, span);
            }
            Op::Poll(span) => {
                self.view.state.begin_operation(p, v, span);
                self.view.state.polling.insert(p);
            }
            // After a block or a yield the slot stays due now: should the vCPU run on, it is asked again at once.
            Op::Block(wake) => {
                // A guest that is over, and was left on its pCPU, does not sleep: nothing wakes it any more.
                if self.view.state.is_there(self.view.state.dom(v)) {
                    self.view.state.set_pause_flags(v, pause_flag::BLOCKED);
                    self.view.state.set_wake_up(v, wake.unwrap_or(NEVER));
                }
                self.view.state.reschedule.insert(p);
            }
            Op::Yield => {
                self.view.state.pcpus[p].reaction = Reaction::Over;
                let unit = self.view.state.unit(v);
                self.policy.yielded(&mut self.view, unit);
                self.blame("yielded");
                self.view.state.reschedule.insert(p);
            }
        }
        self.deliver_kicks(Some(v));
    }

    fn wake_up_due(&mut self, slot: usize) {
        self.view.state.queue.set(Rank::WakeUp, slot, NEVER);
        let v = VcpuId((self.view.state.pcpus.len() + slot) as u32);
        self.view.state.executing = self.view.state.processor(v);
        self.unblock(v, WakeCause::Timer, None);
    }

    fn source_due(&mut self, id: usize) {
        self.view.state.fired = Some(id);
        self.world.fire(&mut WorldContext { state: &mut self.view.state }, id);
        if self.view.state.fired.take().is_some() {
            self.view.state.queue.set(Rank::Source, id, NEVER);
        }
        self.deliver_kicks(None);
        self.view.state.interrupted = None;
    }

    /// Delivers the virtual interrupts raised by the event at hand; `by` is the vCPU whose execution raised them.
    #[inline(always)]
    pub(crate) fn deliver_kicks(&mut self, by: Option<VcpuId>) {
        if !self.view.state.outbox.kicks.is_empty() {
            for i in 0..self.view.state.outbox.kicks.len() {
                let Kick { vcpu: v, cause, raised_on } = self.view.state.outbox.kicks[i];
                if by.is_none() {
                    self.view.state.executing = raised_on.unwrap_or(self.view.state.processor(v));
                }
                self.deliver_kick(v, cause, by);
            }
            self.view.state.outbox.kicks.clear();
        }
        if !self.view.state.outbox.charged.is_empty() {
            for i in 0..self.view.state.outbox.charged.len() {
                self.observer.busy(&self.view.state, self.view.state.outbox.charged[i]);
            }
            self.view.state.outbox.charged.clear();
        }
    }

    #[inline]
    fn deliver_kick(&mut self, v: VcpuId, cause: WakeCause, by: Option<VcpuId>) {
        if !self.unblock(v, cause, by) {
            let vcpu = &mut self.view.state.vcpus[v];
            vcpu.interrupted = true;
            if vcpu.runs() {
                let p = vcpu.processor;
                self.view.state.settle(p);
                self.view.state.set_run_end(p);
            }
        }
    }

    /// Ends the block of `v`; false if it was not blocked.
    #[inline(always)]
    fn unblock(&mut self, v: VcpuId, cause: WakeCause, by: Option<VcpuId>) -> bool {
        let vcpu = &mut self.view.state.vcpus[v];
        if !vcpu.has(pause_flag::BLOCKED) {
            return false;
        }
        let first = !std::mem::replace(&mut vcpu.started, true);
        let cause = if first && cause == WakeCause::Timer { WakeCause::Start } else { cause };
        vcpu.cause = cause;
        self.view.state.clear_pause_flags(v, pause_flag::BLOCKED);
        self.observer.woke(&self.view.state, v, cause, by);
        if let Some(by) = by {
            let p = self.view.state.processor(by);
            self.view.state.charge_wake(p);
        }
        self.wake_if_runnable(v);
        true
    }

    /// Serves pending reschedule requests, then passes on to the observer what the event has left for it.
    #[inline(always)]
    fn finish_event(&mut self) -> Result<(), Broken> {
        if !self.view.state.polling.is_empty() {
            self.end_polls();
        }
        if !self.view.state.reschedule.is_empty() || self.view.state.has_units() {
            self.serve_requests()?;
        }
        self.check_policy()?;
        let state = &self.view.state;
        if !state.outbox.migrations.is_empty()
            || !state.outbox.changed_runstates.is_empty()
            || O::WANTS_STATE
            || O::WANTS_IO
        {
            self.report_event();
        }
        Ok(())
    }

    /// Ends polling on the pCPUs for which another vCPU is queued now.
    #[cold]
    fn end_polls(&mut self) {
        let executing = self.view.state.executing;
        let polling = self.view.state.polling;
        for p in polling.iter() {
            if self.policy.contended(&self.view, p) {
                self.operation_used_up(p);
            }
        }
        self.view.state.executing = executing;
    }

    /// Passes on to the observer what the event has left for it.
    #[inline]
    fn report_event(&mut self) {
        for i in 0..self.view.state.outbox.migrations.len() {
            let Migration { vcpu, from, to } = self.view.state.outbox.migrations[i];
            self.observer.migrated(&self.view.state, vcpu, from, to);
        }
        self.view.state.outbox.migrations.clear();
        if O::WANTS_STATE {
            for row in self.view.state.outbox.state_rows.drain(..) {
                self.observer.state(row);
            }
        }
        for i in 0..self.view.state.outbox.changed_runstates.len() {
            self.observer.runstate_changed(&self.view.state, self.view.state.outbox.changed_runstates[i]);
        }
        self.view.state.outbox.changed_runstates.clear();
        if O::WANTS_IO {
            for i in 0..self.view.state.outbox.io_steps.len() {
                self.observer.io_step(&self.view.state, self.view.state.outbox.io_steps[i]);
            }
            self.view.state.outbox.io_steps.clear();
        }
    }

    // ---- decisions ----

    /// Serves requests for decisions, the lowest-numbered pCPU first, until none is left.
    #[inline]
    pub(crate) fn serve_requests(&mut self) -> Result<(), Broken> {
        let mut served = 0;
        while let Some(p) = self.view.state.first_asked() {
            if self.view.state.has_units() {
                self.serve_together(p)?;
            } else {
                self.view.state.reschedule.remove(p);
                if !self.reacts(p) {
                    self.decide(p)?;
                }
            }
            served += 1;
            if served > DECISIONS_PER_EVENT_MAX {
                let what = "decisions keep asking for decisions at one instant";
                return Err(self.broken_in("schedule", what.into()));
            }
        }
        Ok(())
    }

    /// Whether `p`, which is asked for a decision, is still on the way to it. `p` asks itself again when it is there. A
    /// vCPU that yields or cannot continue does not wait.
    #[inline(always)]
    fn reacts(&mut self, p: PcpuId) -> bool {
        let time = self.view.state.costs().wake_ns;
        if time.is_zero() {
            return false;
        }
        let Pcpu { current, slice_timer, reaction, .. } = self.view.state.pcpus[p];
        let on_the_way = reaction != Reaction::Over && self.view.state.unit_may_run(current);
        if on_the_way && reaction == Reaction::None {
            let decides_at = self.view.state.now + time;
            self.view.state.queue.set(Rank::Timer, slice_timer.index(), decides_at);
        }
        self.view.state.pcpus[p].reaction = if on_the_way { Reaction::Pending } else { Reaction::None };
        on_the_way
    }

    /// Lets the policy decide on `p`, and carries the decision out.
    #[inline]
    fn decide(&mut self, p: PcpuId) -> Result<(), Broken> {
        let asked_by = std::mem::replace(&mut self.view.state.executing, p);
        self.view.state.pcpus[p].decisions += 1;
        self.charge_ipi(p, asked_by);
        self.charge_lock(p, p);
        self.view.state.charge_decision(p);
        let (from, next) = self.choose(p)?;
        if next != from {
            self.switch(p, from, next);
        } else if self.view.state.busy_until(p) > self.view.state.now {
            self.view.state.set_run_end(p);
            self.observer.busy(&self.view.state, p);
        }
        self.observer.decided(&self.view.state, p);
        Ok(())
    }

    /// Charges to `p` the interrupt with which another pCPU asked it to decide.
    #[inline(always)]
    pub(crate) fn charge_ipi(&mut self, p: PcpuId, asked_by: PcpuId) {
        if asked_by != p {
            self.view.state.charge_ipi(p);
        }
    }

    /// Charges to `p`, which decides for the resource of `master`, the time to get the lock.
    #[inline(always)]
    pub(crate) fn charge_lock(&mut self, p: PcpuId, master: PcpuId) {
        if self.view.state.accounts.has_locks() {
            let (lock, held) = (self.policy.lock(master), self.view.state.costs().decision_ns);
            self.view.state.charge_lock(p, lock, held);
        }
    }

    /// Lets the policy choose, and sets the slice timer. Returns the current vCPU of `p`, and the chosen one.
    #[inline(always)]
    pub(crate) fn choose(&mut self, p: PcpuId) -> Result<(VcpuId, VcpuId), Broken> {
        self.view.state.work.schedule_calls += 1;
        let Decision { next, slice } = self.policy.schedule(&mut self.view, p);
        self.blame("schedule");
        let expiry = match slice {
            Slice::For(time) => {
                debug_assert!(!time.is_negative(), "a slice is a time from now on");
                self.view.state.handled_at(self.view.state.now.saturating_add(time))
            }
            Slice::Unlimited => NEVER,
        };
        let slice_timer = self.view.state.pcpus[p].slice_timer;
        self.view.state.queue.set(Rank::Timer, slice_timer.index(), expiry);
        let from = self.view.state.pcpus[p].current;
        if next != from {
            self.check_choice(p, next)?;
        } else if !self.view.state.unit_may_run(next) {
            let what = format!("pCPU {} was given {}, which is not runnable", p.0, self.name(next));
            return Err(self.broken_in("schedule", what));
        }
        Ok((from, next))
    }

    #[inline]
    fn check_choice(&self, p: PcpuId, v: VcpuId) -> Result<(), Broken> {
        let state = &self.view.state;
        let fits = state.vcpus.get(v).is_some_and(|vcpu| {
            v == state.idle(p)
                || !state.is_idle(v) && vcpu.processor == p && !vcpu.current && state.unit_may_run(v)
        });
        if fits {
            return Ok(());
        }
        let why = match state.vcpus.get(v) {
            None => "does not exist",
            Some(_) if state.is_idle(v) => "is the idle vCPU of another pCPU",
            Some(vcpu) if self.view.state.pool_of(vcpu.dom) != self.view.state.pool_of_pcpu(p) => {
                "is in another CPU pool"
            }
            Some(vcpu) if vcpu.pause_flags != 0 => "is not runnable",
            Some(vcpu) if vcpu.processor != p => "is assigned to another pCPU",
            Some(_) => "already runs",
        };
        let name = if v.index() < state.vcpus.len() { self.name(v) } else { format!("vCPU number {}", v.0) };
        Err(self.broken_in("schedule", format!("pCPU {} was given {name}, which {why}", p.0)))
    }

    #[inline]
    fn switch(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        self.view.state.make_current(p, from, to);
        self.execute(p, from, to);
        self.save_context(from);
    }

    /// Switches `p` from `from` to `to`.
    #[inline(always)]
    pub(crate) fn execute(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        let state = &mut self.view.state;
        let now = state.now;
        state.settle(p);
        let polled = state.end_poll(p);
        let outgoing = &mut state.vcpus[from];
        // It looks for something to do when it is back.
        outgoing.interrupted |= polled;
        let changed = outgoing.enter_state(outgoing.state_without_pcpu(), now);
        state.note_runstates(from, changed);
        let to_idle = state.is_idle(to);
        let incoming = &mut state.vcpus[to];
        let waited = incoming.state == RunState::Runnable && !to_idle;
        let (waited_ns, woken) =
            if waited { (now - incoming.state_since, incoming.woken) } else { (Span::ZERO, None) };
        let changed = incoming.enter_state(RunState::Running, now);
        state.note_runstates(to, changed);
        state.pcpus[p].executes = to;
        state.update_speeds(p);
        state.charge_switch(p, from, to);
        if waited {
            state.charge_return(p, woken.is_some());
        }
        if state.is_idle(from) {
            self.world.resumed(&mut WorldContext { state: &mut *state }, p);
        }
        self.observer.switched(&self.view.state, Switch { time: now, pcpu: p, from, to, waited_ns, woken });
    }

    /// Notes that the outgoing `v` runs nowhere now.
    #[inline(always)]
    pub(crate) fn save_context(&mut self, v: VcpuId) {
        self.policy.context_saved(&mut self.view, v);
        self.blame("context_saved");
        self.finish_migration(v);
    }

    /// Calls the policy's wake hook for a vCPU that has become runnable, unless another reason keeps it from running.
    #[inline]
    pub(crate) fn wake_if_runnable(&mut self, v: VcpuId) {
        if self.view.state.vcpu_runnable(v) {
            let unit = self.view.state.unit(v);
            if self.view.state.accounts.has_locks() {
                self.lock_to_wake(unit);
            }
            self.policy.wake(&mut self.view, unit);
            self.blame("wake");
            if self.view.state.has_units() {
                self.view.state.join_unit(v);
            }
        }
    }

    /// Charges the pCPU that wakes a unit for the lock of the unit's run queue; the time for which the lock is held is
    /// part of the cost of waking.
    #[cold]
    fn lock_to_wake(&mut self, unit: VcpuId) {
        let (p, lock) = (self.view.state.executing, self.policy.lock(self.view.state.processor(unit)));
        self.view.state.charge_lock(p, lock, Span::ZERO);
        self.observer.busy(&self.view.state, p);
    }

    /// Calls the policy's sleep hook for a vCPU that is no longer runnable, unless others of its unit are.
    pub(crate) fn sleep_unless_runnable(&mut self, v: VcpuId) {
        if self.view.state.vcpu_runnable(v) {
            return;
        }
        let unit = self.view.state.unit(v);
        if self.view.state.unit_runnable(unit) {
            self.view.state.leave_unit(v);
        } else {
            self.policy.sleep(&mut self.view, unit);
            self.blame("sleep");
        }
    }

    // ---- rules that were broken ----

    #[cold]
    fn broken(&self, what: String) -> Broken {
        Broken { time: self.view.state.now, hook: None, what }
    }

    #[cold]
    fn broken_in(&self, hook: &'static str, what: String) -> Broken {
        Broken { hook: Some(hook), ..self.broken(what) }
    }

    /// The error at an event at which time stands still, with the hook at fault.
    #[cold]
    fn standstill(&mut self, rank: Rank, id: usize) -> Broken {
        let what = "time stands still: events at one instant do not end";
        match (rank, self.view.state.timers.get(TimerId(id as u32))) {
            (Rank::Timer, Some(TimerOwner::Slice(p))) => {
                let what = format!("time stands still: pCPU {} is given slices of 0 ns without end", p.0);
                self.broken_in("schedule", what)
            }
            (Rank::Timer, Some(TimerOwner::Policy { .. })) => self.broken_in("timer", what.into()),
            _ => match self.blame_busiest() {
                Ok(()) => self.broken(what.into()),
                Err(broken) => broken,
            },
        }
    }

    pub(crate) fn rules_for(&self, v: VcpuId) -> HostRules {
        self.rules[self.view.state.pool_of(self.view.state.dom(v))]
    }

    /// Attributes a violation of the rules to the hook that has just returned.
    #[inline(always)]
    pub(crate) fn blame(&mut self, hook: &'static str) {
        if let Some(violation) = self.view.state.outbox.violation.get_mut() {
            violation.hook.get_or_insert(hook);
        }
    }

    /// Fails if the policy failed, or has violated the rules.
    #[inline(always)]
    fn check_policy(&self) -> Result<(), Broken> {
        if let Some(violation) = self.view.state.outbox.violation.get() {
            return Err(Broken { hook: violation.hook, ..self.broken(violation.what.clone()) });
        }
        match self.policy.failure() {
            None => Ok(()),
            Some((hook, what)) => Err(self.broken_in(hook, what)),
        }
    }

    pub(crate) fn name(&self, v: VcpuId) -> String {
        let (domain, vcpu) = self.view.state.name(v);
        format!("vCPU {vcpu} of domain {domain}")
    }
}
