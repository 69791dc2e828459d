//! The fair class as a scheduler of a host: vCPUs are its threads; threads of real-time classes come before them.
//!
//! A decision follows at once where a thread blocks, yields or wakes, and where a CPU idles; other requests on a
//! busy CPU, usually from ticks, are served `resched_ns` later.

use std::fmt;

use vcpulab_host::{
    AffinityRule, Class, CpuMask, Decision, DomId, HostRules, Params, PauseRule, PcpuId, Placement,
    PolicyContext, Rejected, Scheduler, Slice, Span, Table, ThreadMode, Time, VcpuId,
};

use super::cfs_rq::TaskId;
use super::cfs_tasks::CfsTasks;
use super::cgroups::Cgroups;
use super::hierarchy::Fair;
use super::idle_scan::IdleScans;
use super::llc_balancing::LlcBalancing;
use super::newidle::Dice;
use super::params::{self, Common, Tuned};
use super::pelt::PeltAverage;
use super::preempt::Preempt;
use super::rank::{self, FAIR, Rank, rank};
use super::realtime::{self, RealTime, RtLimit, root_domain};
use super::sched_domains::SchedDomains;
use super::timers::{Kind, Timers};
use super::wakee_flips::WakeeFlips;
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::table::put;

/// The time between two visits to a CPU of `nohz_full` whose tick is stopped.
const REMOTE_TICK: Span = Span::from_secs(1);

/// A vCPU as a thread of Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    /// Task of the fair class; `None`: the thread is of a real-time class.
    pub task: Option<TaskId>,
    pub class: Class,
    pub mode: ThreadMode,
    pub rank: Rank,
    /// Whether the thread moves to another CPU when it leaves its queue.
    pub must_migrate: bool,
    /// Whether the thread has left its queue to move to another CPU.
    pub migrating: bool,
    /// The CPU that active balance pushes the thread to.
    pub push_cpu: Option<PcpuId>,
    /// The CPU that the thread was placed on when it was created.
    placed: PcpuId,
    /// The CPU on which the thread ran before its last CPU.
    pub recent_used_cpu: Option<PcpuId>,
    pub wakee_flips: WakeeFlips,
    /// Whether a real-time thread goes behind the threads of its rank.
    pub behind: bool,
    /// Ticks that are left of a real-time thread's slice.
    pub time_slice: i64,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Linux<F: Tuned> {
    pub(super) rules: F::Rules,
    pub(super) fair: Fair<F>,
    pub(super) common: Common,
    preempt: Preempt,
    /// Parameters of the scheduler itself that the scenario gives.
    given: Params,
    pub(super) threads: Table<VcpuId, Option<Thread>>,
    pub(super) vcpus: Table<TaskId, VcpuId>,
    pub(super) cgroups: Cgroups,
    pub(super) realtime: RealTime,
    rt_limit: RtLimit,
    pub(super) cfs_tasks: CfsTasks,
    /// CPUs that run no thread, and for which no thread is about to be queued.
    pub(super) idle_cpus: CpuMask,
    pub(super) sched_domains: SchedDomains,
    /// Idle times of CPUs and costs of searches for idle CPUs.
    pub(super) idle_scans: IdleScans,
    /// Random numbers by which CPUs that are about to idle search domains.
    pub(super) newidle_dice: Dice,
    /// Preferred last-level caches of VMs.
    pub(super) llc_balancing: LlcBalancing,
    /// Utilization of each CPU.
    pub(super) util_avg: Table<PcpuId, PeltAverage>,
    /// Time at which the load averages of each CPU were last decayed.
    pub(super) last_blocked_load_update: Table<PcpuId, Time>,
    /// Time at which a busy CPU next balances for idle CPUs.
    pub(super) nohz_next_balance: Time,
    /// CPUs from which a decision has been requested: flagged CPUs, and CPUs whose thread a limit will stop.
    resched_requested: CpuMask,
    /// Flagged CPUs whose thread gives way even in the kernel: a tick came after the flag, or another class raised it.
    resched_in_kernel: CpuMask,
    /// CPUs whose thread returns to user mode, where a limit stops it.
    returning: CpuMask,
    timers: Timers,
    /// CPUs of `nohz_full` whose tick is stopped.
    tick_stopped: CpuMask,
    /// The CPU to which the last thread was sent whose affinity excluded its own.
    distribute_cpu_prev: Option<PcpuId>,
}

impl<F: Tuned> Linux<F> {
    /// A scheduler for a host with these parameters given.
    pub(super) fn with(rules: F::Rules, given: Params) -> Self {
        let common = Common::new(&given);
        let rt_rule = F::rt_rule(rules);
        let (runtime, period) = params::rt_limit(rt_rule, &given);
        let rt_limit = RtLimit::new(rt_rule, runtime, period);
        Linux {
            rules,
            fair: Fair::new(F::new(rules, &given, 1), 0, common.settings()),
            common,
            preempt: params::preempt_model(F::preempt_models(rules), &given),
            given,
            threads: Table::new(),
            vcpus: Table::new(),
            cgroups: Cgroups::default(),
            realtime: RealTime::default(),
            rt_limit,
            cfs_tasks: CfsTasks::default(),
            idle_cpus: CpuMask::EMPTY,
            sched_domains: SchedDomains::default(),
            idle_scans: IdleScans::default(),
            newidle_dice: Dice::default(),
            llc_balancing: LlcBalancing::default(),
            util_avg: Table::new(),
            last_blocked_load_update: Table::new(),
            nohz_next_balance: Time::ZERO,
            resched_requested: CpuMask::EMPTY,
            resched_in_kernel: CpuMask::EMPTY,
            returning: CpuMask::EMPTY,
            timers: Timers::default(),
            tick_stopped: CpuMask::EMPTY,
            distribute_cpu_prev: None,
        }
    }

    pub(super) fn thread(&self, v: VcpuId) -> Thread {
        self.threads[v].expect("a vCPU was inserted")
    }

    pub(super) fn thread_mut(&mut self, v: VcpuId) -> &mut Thread {
        self.threads[v].as_mut().expect("a vCPU was inserted")
    }

    /// Updates the utilization of a CPU, which was busy until now, or idle.
    fn update_util_avg(&mut self, ctx: &PolicyContext, cpu: PcpuId, busy: bool) {
        self.util_avg[cpu].update(ctx.now(), if busy { 1024 } else { 0 });
        if busy && self.sched_domains.smt_active && self.idle_cpus.contains_all(self.sched_domains.smt(cpu)) {
            self.sched_domains.set_has_idle_cores(cpu, true);
        }
    }

    /// Begins cache-aware balancing, or ends it.
    fn tune_llc_balancing(&mut self, ctx: &PolicyContext) {
        let enabled = self.common.llc_balancing && F::balance(&self.rules).cache_aware;
        self.llc_balancing = LlcBalancing::new(ctx, &self.sched_domains, enabled);
    }

    /// Charges the VM of the vCPU that a CPU runs for its time in the CPU's last-level cache.
    fn charge_llc(&mut self, ctx: &PolicyContext, cpu: PcpuId) {
        let current = ctx.current(cpu);
        let is_vcpu = !ctx.is_idle(current) && self.cgroups.is_vcpu(ctx, current);
        self.llc_balancing.charge(ctx.now(), cpu, is_vcpu.then(|| ctx.dom(current)));
    }

    /// Rank of the thread that a CPU runs.
    fn rank_on(&self, ctx: &PolicyContext, cpu: PcpuId) -> Rank {
        let current = ctx.current(cpu);
        if ctx.is_idle(current) { rank::IDLE } else { self.thread(current).rank }
    }

    // ---- flags ----

    /// Completes an event: sets the timers of groups that changed, and asks flagged CPUs to decide.
    fn complete_event(&mut self, ctx: &mut PolicyContext) {
        self.remove_finished();
        while let Some(group) = self.fair.next_changed_timers() {
            self.timers.set_group(
                ctx,
                group,
                self.fair.period_timer_at(group),
                self.fair.slack_timer_at(group),
            );
        }
        while let Some(cpu) = self.fair.next_changed_hrtick() {
            self.timers.set_hrtick(ctx, cpu, self.fair.hrtick_at(cpu));
        }
        for cpu in self.fair.resched_cpus().without(&self.resched_requested).iter() {
            let current = ctx.current(cpu);
            if ctx.is_idle(current) {
                self.resched_now(ctx, cpu);
            } else if !self.continues_in_kernel(cpu, current) {
                self.resched_requested.insert(cpu);
                self.timers.set_resched(ctx, cpu, ctx.now() + self.common.resched);
            }
        }
        if !self.fair.throttle_work_cpus().is_empty() {
            for cpu in self.fair.throttle_work_cpus().without(&self.resched_requested).iter() {
                self.resched_requested.insert(cpu);
                self.timers.set_resched(ctx, cpu, ctx.now() + self.common.resched);
            }
        }
        if !ctx.isolation().nohz_full.is_empty() {
            let nohz_full = ctx.isolation().nohz_full.and(ctx.pcpus());
            nohz_full.iter().for_each(|cpu| self.update_tick_dependency(ctx, cpu));
        }
    }

    /// Whether the running thread of a flagged CPU continues to the next tick: it is in the kernel, and the flag is lazy.
    fn continues_in_kernel(&self, cpu: PcpuId, current: VcpuId) -> bool {
        let thread = self.thread(current);
        self.preempt == Preempt::Lazy
            && thread.mode == ThreadMode::Kernel
            && thread.rank == FAIR
            && !self.resched_in_kernel.contains(cpu)
    }

    /// Flags a CPU for a thread of another class than the fair one.
    fn flag_for_another_class(&mut self, cpu: PcpuId) {
        self.fair.set_need_resched(cpu, true);
        self.resched_in_kernel.insert(cpu);
    }

    /// Handles the end of the time from a request for a decision to the decision, or to the return to user mode of a thread that
    /// a limit stops there.
    fn resched(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        if self.fair.throttle_work_cpus().contains(cpu) && !self.fair.need_resched(cpu) {
            let in_kernel_until = ctx.hypervisor_until(cpu);
            if in_kernel_until > ctx.now() {
                return self.timers.set_resched(ctx, cpu, in_kernel_until + self.common.resched);
            }
            self.returning.insert(cpu);
        }
        ctx.raise_reschedule(cpu);
    }

    /// Stops the tick of a busy CPU of `nohz_full` that has one thread, without a limit; starts it again for another one
    /// (`sched_can_stop_tick`).
    fn update_tick_dependency(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        let current = ctx.current(cpu);
        if ctx.is_idle(current) {
            return;
        }
        let task = self.thread(current).task;
        let is_alone =
            !self.contended(ctx, cpu) && task.is_none_or(|task| !self.fair.has_bandwidth_limit(task));
        if is_alone != self.tick_stopped.contains(cpu) {
            self.tick_stopped.put(cpu, is_alone);
            self.timers.set_tick(ctx, cpu, self.next_tick(ctx.now(), cpu));
        }
    }

    /// The next tick of a CPU. One that has stopped its tick is visited each second.
    fn next_tick(&self, now: Time, cpu: PcpuId) -> Time {
        let tick = if self.tick_stopped.contains(cpu) { REMOTE_TICK } else { self.common.tick() };
        Time::ZERO + ((now - Time::ZERO) / tick + 1) * tick
    }

    // ---- real-time threads ----

    /// Charges the thread that a CPU runs to the limit of real-time threads.
    fn update_rt_limit(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        if !self.realtime.exists {
            return;
        }
        let rank = self.rank_on(ctx, cpu);
        if self.rt_limit.update(ctx.now(), cpu, rank, self.fair.h_nr_running(cpu)) {
            self.flag_for_another_class(cpu);
        }
        if let Some(at) = self.rt_limit.period_timer() {
            self.timers.set_rt_period(ctx, at);
        }
    }

    /// Begins a period of real-time throttling: real-time threads that used up their time may run again.
    fn begin_rt_period(&mut self, ctx: &mut PolicyContext) {
        for cpu in ctx.pcpus().iter().filter(|&cpu| self.rank_on(ctx, cpu) > FAIR).collect::<CpuMask>().iter()
        {
            self.update_rt_limit(ctx, cpu);
        }
        for cpu in self.rt_limit.begin_period(ctx.now()).iter() {
            if self.realtime.first(cpu).is_some() {
                self.flag_for_another_class(cpu);
            }
        }
        if let Some(at) = self.rt_limit.period_timer() {
            self.timers.set_rt_period(ctx, at);
        }
    }

    /// Whether a CPU may not run real-time threads now: they are throttled, or its fair server runs.
    fn holds_back_rt(&self, cpu: PcpuId) -> bool {
        self.rt_limit.held_back().contains(cpu)
    }

    pub(super) fn resched_now(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        self.resched_requested.insert(cpu);
        ctx.raise_reschedule(cpu);
    }

    /// Refills the groups whose periods end now. A single interrupt refills them all, and no decision is made before it
    /// is over. A tick that is due at the same time comes after them, because its timer was set later.
    fn expire_period_timers(&mut self, ctx: &mut PolicyContext) {
        while let Some(group) = self.timers.next_refill(ctx.now()) {
            self.fair.period_timer(ctx.now(), group);
            self.cgroups.note_throttling(ctx, &self.fair, group);
        }
    }

    fn tick(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        let (now, current) = (ctx.now(), ctx.current(cpu));
        if ctx.is_idle(current) {
            return;
        }
        self.timers.set_tick(ctx, cpu, self.next_tick(now, cpu));
        if self.llc_balancing.active {
            self.charge_llc(ctx, cpu);
        }
        if self.fair.need_resched(cpu) {
            self.resched_in_kernel.insert(cpu);
        }
        self.update_rt_limit(ctx, cpu);
        if self.thread(current).rank == FAIR {
            self.fair.task_tick(now, cpu);
        } else {
            self.task_tick_rt(cpu, current);
        }
        if ctx.pcpus().len() > 1 {
            self.trigger_load_balance(ctx, cpu);
        }
    }

    /// Sends a thread of `SCHED_RR` behind those of its rank once its slice is over.
    fn task_tick_rt(&mut self, cpu: PcpuId, v: VcpuId) {
        let slice = realtime::slice_ticks(self.common.hz);
        let thread = self.thread_mut(v);
        if !matches!(thread.class, Class::RoundRobin(_)) {
            return;
        }
        thread.time_slice -= 1;
        if thread.time_slice <= 0 {
            let own = thread.rank;
            thread.time_slice = slice;
            if self.realtime.first(cpu).is_some_and(|(rank, _)| rank == own) {
                self.thread_mut(v).behind = true;
                self.fair.set_need_resched(cpu, true);
            }
        }
    }

    // ---- threads ----

    /// Dequeues the running thread, which blocks or moves to another CPU.
    fn dequeue_thread(&mut self, ctx: &PolicyContext, v: VcpuId) {
        let thread = self.thread_mut(v);
        thread.migrating = std::mem::take(&mut thread.must_migrate);
        let migrating = thread.migrating;
        if let Some(task) = thread.task
            && !self.fair.is_delayed(task)
        {
            self.fair.dequeue_task(ctx.now(), task, !migrating);
            if self.fair.smp && self.fair.is_delayed(task) {
                self.cfs_tasks.insert(ctx.processor(v), v);
            }
        }
    }

    /// Takes threads from the lists of waiting threads that blocked a while ago and no longer compete.
    pub(super) fn remove_finished(&mut self) {
        while let Some(task) = self.fair.finished_delays.pop() {
            self.cfs_tasks.remove(self.vcpus[task]);
        }
    }

    fn wake_fair(&mut self, ctx: &mut PolicyContext, v: VcpuId, task: TaskId) {
        let migrating = std::mem::take(&mut self.thread_mut(v).migrating);
        let cpu = match migrating {
            true => ctx.processor(v),
            false if self.fair.is_delayed(task) => self.fair.task_cpu(task),
            false => self.select_task_rq(ctx, v, task),
        };
        ctx.set_processor(v, cpu);
        // A thread that blocked and still competes is in a list.
        self.cfs_tasks.remove(v);
        self.cfs_tasks.insert(cpu, v);
        self.idle_cpus.remove(cpu);
        if migrating {
            self.fair.attach_task(ctx.now(), cpu, task);
        } else {
            self.fair.wake(ctx.now(), cpu, task);
        }
        // The decision that follows a wake-up does not read the clock again, unless the flag is lazy.
        if self.fair.need_resched(cpu) && self.preempt != Preempt::Lazy {
            self.resched_now(ctx, cpu);
        }
    }

    fn wake_real_time(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let rank = self.thread(v).rank;
        self.thread_mut(v).migrating = false;
        let cpu = self.select_task_rq_rt(ctx, v, rank);
        ctx.set_processor(v, cpu);
        self.realtime.enqueue(cpu, rank, v, true);
        if rank > self.rank_on(ctx, cpu) && !self.holds_back_rt(cpu) {
            self.idle_cpus.remove(cpu);
            self.resched_now(ctx, cpu);
        }
    }

    /// The CPU where a real-time thread ran last, unless it runs another one that is as good; then the one that runs the least
    /// important.
    fn select_task_rq_rt(&self, ctx: &PolicyContext, v: VcpuId, own: Rank) -> PcpuId {
        let before = ctx.processor(v);
        let near = ctx.affinity(v).and(&root_domain(ctx, before));
        let allowed = if near.is_empty() { ctx.affinity(v).and(ctx.pcpus()) } else { near };
        let on =
            |cpu: PcpuId| self.rank_on(ctx, cpu).max(self.realtime.first(cpu).map_or(-1, |(rank, _)| rank));
        if allowed.contains(before) && (on(before) <= FAIR || on(before) < own) {
            return before;
        }
        let least = allowed.iter().min_by_key(|&cpu| on(cpu));
        let fallback = if allowed.contains(before) { Some(before) } else { least };
        least.filter(|&cpu| on(cpu) < own).or(fallback).unwrap_or(before)
    }

    /// The real-time thread that a CPU should run, if there is one: the running one, or one that waits here or on
    /// another CPU.
    fn pick_next_task_rt(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) -> Option<VcpuId> {
        let current = ctx.current(cpu);
        let runs = !ctx.is_idle(current) && ctx.runnable(current) && self.thread(current).rank > FAIR;
        let own = if runs { self.thread(current).rank } else { FAIR };
        let behind = runs && std::mem::take(&mut self.thread_mut(current).behind);
        if self.holds_back_rt(cpu) {
            if runs {
                self.realtime.enqueue(cpu, own, current, behind);
            }
            return None;
        }
        let here = self.realtime.first(cpu).map(|(rank, v)| (cpu, rank, v));
        let beats = |rank: Rank| rank > own || behind && rank == own;
        let least = here.map_or(own, |(_, rank, _)| rank.max(own));
        let from = || root_domain(ctx, cpu).without(self.rt_limit.held_back());
        let elsewhere = match self.realtime.any() {
            true => self.realtime.elsewhere(ctx, cpu, &from(), least),
            false => None,
        };
        let next = elsewhere.or(here.filter(|&(_, rank, _)| beats(rank)));
        let Some((from, _, v)) = next else { return runs.then_some(current) };
        self.realtime.dequeue(from, v);
        ctx.set_processor(v, cpu);
        if runs {
            self.realtime.enqueue(cpu, own, current, behind);
        }
        Some(v)
    }

    /// The fair thread that a CPU should run.
    fn pick_next_task_fair(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) -> Option<VcpuId> {
        let now = ctx.now();
        let mut chosen = self.fair.pick_task(now, cpu);
        // The thread that was pulled may have blocked a while ago: the decision takes it off the queue.
        while chosen.is_none() && self.newidle_balance(ctx, cpu) {
            chosen = self.fair.pick_task(now, cpu);
        }
        self.fair.set_next_task(now, cpu, chosen);
        chosen.map(|task| self.vcpus[task])
    }
}

impl<F: Tuned> Scheduler for Linux<F> {
    fn rules(&self) -> HostRules {
        HostRules {
            reschedule_at_start: false,
            placement: Placement::Policy,
            adjust_pauses: false,
            pause: PauseRule::Flag,
            affinity: AffinityRule::IfExcluded,
            soft_affinity: false,
        }
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        if self.timers.is_empty() {
            let flavor = F::new(self.rules, &self.given, ctx.pcpus().len());
            self.fair = Fair::new(flavor, ctx.pcpu_count(), self.common.settings());
            self.cgroups.add_groups(ctx, &mut self.fair);
            self.sched_domains = SchedDomains::new(ctx);
            self.tune_llc_balancing(ctx);
        }
        self.fair.set_online(ctx.pcpus().len());
        self.idle_scans.add_cpu(p, ctx.now());
        self.util_avg.entry(p);
        self.last_blocked_load_update.entry(p);
        self.timers.add_cpu(ctx, p);
        self.realtime.add_cpu(p);
        self.cfs_tasks.add_cpu(p);
        self.idle_cpus.insert(p);
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.cgroups.add_domain(ctx, &mut self.fair, d);
        self.complete_event(ctx);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let config = ctx.thread(v);
        let cpu = self.select_task_rq_fork(ctx, v);
        ctx.set_processor(v, cpu);
        let rank = rank(config.class);
        self.realtime.exists |= rank > FAIR;
        let group = self.cgroups.group_of(ctx, v);
        let before = self.threads.get(v).copied().flatten().and_then(|thread| thread.task);
        let task = (rank == FAIR).then(|| {
            let task = before.unwrap_or_else(|| self.fair.add_task(cpu, group, config.class, config.nice));
            self.fair.renew(cpu, task, group);
            self.fair.set_mode(task, config.mode);
            self.fair.set_slice(task, self.cgroups.slice_of(ctx.dom(v)));
            put(&mut self.vcpus, task, v);
            task
        });
        *self.threads.entry(v) = Some(Thread {
            task,
            class: config.class,
            mode: config.mode,
            rank,
            must_migrate: false,
            migrating: false,
            push_cpu: None,
            placed: cpu,
            recent_used_cpu: None,
            wakee_flips: WakeeFlips::default(),
            behind: false,
            time_slice: realtime::slice_ticks(self.common.hz),
        });
        self.cfs_tasks.grow(v);
        self.cfs_tasks.place(cpu, true);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if let Some(task) = self.thread(v).task {
            self.fair.finish_delayed_dequeue(ctx.now(), task);
        }
        self.cfs_tasks.place(self.thread(v).placed, false);
        self.complete_event(ctx);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            return;
        }
        match self.thread(v).task {
            Some(task) if !self.fair.is_queued(task) => self.wake_fair(ctx, v, task),
            None if !self.realtime.waits(ctx.processor(v), v) => self.wake_real_time(ctx, v),
            _ => {}
        }
        self.complete_event(ctx);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            return ctx.raise_reschedule(ctx.processor(v));
        }
        let queued = match self.thread(v).task {
            Some(task) => self.fair.is_queued(task),
            None => self.realtime.dequeue(ctx.processor(v), v),
        };
        if queued {
            self.cfs_tasks.remove(v);
            self.dequeue_thread(ctx, v);
        }
        self.complete_event(ctx);
    }

    fn yielded(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        match self.thread(v).task {
            None => self.thread_mut(v).behind = true,
            Some(_) if self.cgroups.is_vcpu(ctx, v) => self.kvm_vcpu_on_spin(ctx, v),
            Some(_) => self.fair.yield_task(ctx.now(), p),
        }
        self.complete_event(ctx);
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        if self.resched_requested.contains(p) {
            self.resched_requested.remove(p);
            self.timers.stop_resched(ctx, p);
        }
        self.resched_in_kernel.remove(p);
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        self.update_rt_limit(ctx, p);
        if self.llc_balancing.active {
            self.charge_llc(ctx, p);
        }
        if current != idle && !ctx.runnable(current) {
            self.dequeue_thread(ctx, current);
        }
        if self.returning.contains(p) {
            self.returning.remove(p);
            if !self.fair.need_resched(p) {
                self.fair.throttle_task(ctx.now(), p);
            }
        }
        let first = self.pick_next_task_rt(ctx, p);
        self.fair.set_higher_class(p, first.is_some());
        if first.is_some() {
            self.fair.set_next_task(ctx.now(), p, None);
        }
        let next = first.or_else(|| self.pick_next_task_fair(ctx, p)).unwrap_or(idle);
        if next != current {
            self.cfs_tasks.remove(next);
            if current != idle && self.thread(current).task.is_some_and(|task| self.fair.is_queued(task)) {
                self.cfs_tasks.insert(p, current);
            }
        }
        if next != current && self.fair.hrtick_at(p).is_some() {
            // The timer of the request starts once the switch is over.
            let switched = ctx.hypervisor_until(p).max(ctx.now()) + ctx.context_switch_cost();
            self.fair.hrtick_start(switched, p);
        }
        self.idle_cpus.put(p, next == idle);
        if (current == idle) != (next == idle) {
            self.update_util_avg(ctx, p, current != idle);
            self.note_idle(ctx, p, next == idle);
            self.tick_stopped.remove(p);
            match next == idle {
                true => self.timers.stop_tick(ctx, p),
                false => self.timers.set_tick(ctx, p, self.next_tick(ctx.now(), p)),
            }
        }
        self.complete_event(ctx);
        Decision { next, slice: Slice::Unlimited }
    }

    /// Whether another fair task than the running one, or a real-time thread, is queued on the CPU.
    fn contended(&self, ctx: &PolicyContext, cpu: PcpuId) -> bool {
        let own = u32::from(self.rank_on(ctx, cpu) == FAIR);
        self.fair.h_nr_running(cpu) > own || self.realtime.first(cpu).is_some()
    }

    /// A preempted real-time thread moves to a CPU that runs a thread of lower rank.
    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) || self.thread(v).rank == FAIR || !ctx.runnable(v) {
            return;
        }
        let (from, own) = (ctx.processor(v), self.thread(v).rank);
        if self.holds_back_rt(from) {
            return;
        }
        let to = self.select_task_rq_rt(ctx, v, own);
        if to != from && self.rank_on(ctx, to) < own && self.realtime.dequeue(from, v) {
            ctx.set_processor(v, to);
            self.realtime.enqueue(to, own, v, false);
            self.idle_cpus.remove(to);
            self.resched_now(ctx, to);
        }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (own, allowed) = (ctx.processor(v), ctx.affinity(v).and(ctx.pcpus()));
        let target = self.thread_mut(v).push_cpu.take();
        if let Some(target) = target.filter(|&target| allowed.contains(target)) {
            return target;
        }
        if allowed.contains(own) {
            return own;
        }
        // The first one of its pool is where the rotation begins, whatever its number on the host.
        let prev = self.distribute_cpu_prev.or(ctx.pcpus().first()).unwrap_or(own);
        *self.distribute_cpu_prev.insert(allowed.next_after(prev).unwrap_or(own))
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        if let Some(task) = self.thread(v).task
            && self.fair.is_delayed(task)
        {
            self.fair.finish_delayed_dequeue(ctx.now(), task);
        }
        self.thread_mut(v).must_migrate = false;
        ctx.set_processor(v, p);
        self.complete_event(ctx);
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        let now = ctx.now();
        match Kind::of(token) {
            Kind::Tick(cpu) => {
                self.expire_period_timers(ctx);
                self.tick(ctx, cpu);
            }
            Kind::Resched(cpu) => self.resched(ctx, cpu),
            Kind::Hrtick(cpu) => {
                self.fair.hrtick(now, cpu);
                self.resched_in_kernel.insert(cpu);
            }
            Kind::Refill(_) => self.expire_period_timers(ctx),
            Kind::Slack(group) => self.fair.slack_timer(now, group),
            Kind::RtPeriod => self.begin_rt_period(ctx),
        }
        self.complete_event(ctx);
    }

    fn affinity(&mut self, ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        self.thread_mut(v).must_migrate = !mask.contains(ctx.processor(v));
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        self.cgroups.adjust(ctx, &mut self.fair, d, params)?;
        for v in ctx.vcpus_of(d) {
            if let Some(task) = self.thread(v).task {
                let group = self.cgroups.group_of(ctx, v);
                self.fair.move_to_group(ctx.now(), task, group);
                self.fair.set_slice(task, self.cgroups.slice_of(d));
            }
        }
        self.complete_event(ctx);
        Ok(())
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        let mut given = self.given.clone();
        for (name, value) in params.iter() {
            given.set(name, value.clone());
        }
        if !self.common.takes(params) || params::check_rt_limit(&given).is_err() {
            return Err(Rejected);
        }
        self.given = given;
        self.common = Common::new(&self.given);
        self.tune_llc_balancing(ctx);
        self.preempt = params::preempt_model(F::preempt_models(self.rules), &self.given);
        let (runtime, period) = params::rt_limit(F::rt_rule(self.rules), &self.given);
        for cpu in self.rt_limit.tune(runtime, period).iter() {
            self.flag_for_another_class(cpu);
        }
        self.fair.tune(F::new(self.rules, &self.given, ctx.pcpus().len()), self.common.settings());
        self.complete_event(ctx);
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for p in ctx.pcpus().iter() {
            write!(out, "CPU {}:", p.0)?;
            let current = ctx.current(p);
            if !ctx.is_idle(current) {
                let (domain, number) = ctx.name(current);
                write!(out, " runs d{domain}v{number}")?;
            }
            for v in self.cfs_tasks.longest_first(p) {
                let (domain, number) = ctx.name(v);
                write!(out, " d{domain}v{number}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl<F: Tuned> Registered for Linux<F> {
    type Rules = F::Rules;
    const NAME: &'static str = F::NAME;
    const DOC: &'static str = F::DOC;
    const GENERATIONS: &'static [(Generation, F::Rules)] = F::GENERATIONS;

    fn check(_rules: F::Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        params::check(proposal)
    }

    fn new(rules: F::Rules, global: &Params, _pcpus: u32) -> Self {
        Linux::with(rules, global.clone())
    }
}
