//! The fair class: walks along the hierarchy of groups that an event makes, from a task's queue up to the root.

use vcpulab_host::{Class, CpuMask, GroupConfig, GroupId, PcpuId, Span, Table, ThreadMode, Time};

use super::cfs_rq::{CfsRq, CfsRqId, Entity, EntityId, Kind, Task, TaskId};
use super::task_group::{IdlePeriod, ONE_TASK, SharesMultiplier, TaskGroup, Throttle};

use super::load_weight::{LoadWeight, ns};
use super::pelt::PeltAverage;

/// Reason for which an entity leaves its queue (`DEQUEUE_SLEEP`, `DEQUEUE_SPECIAL`, `DEQUEUE_DELAYED`).
#[derive(Clone, Copy, Debug, Default)]
pub struct DequeueFlags {
    /// Because its task does not want to run.
    pub sleep: bool,
    /// Because a limit is exhausted.
    pub throttled: bool,
    /// Because its task was throttled: the dequeue is never delayed.
    pub special: bool,
    /// Because a delayed dequeue ends: the entity blocked before, and stayed on the queue to compete until now.
    pub delayed: bool,
}

/// A policy of the fair class: the operations of a single queue, in which CFS and EEVDF differ.
pub trait Flavor: Clone {
    /// State that the policy keeps for each entity.
    type Entity: Clone + Default + std::fmt::Debug;
    /// State that the policy keeps for each queue.
    type CfsRq: Clone + Default + std::fmt::Debug;
    /// Whether a decision throttles a queue only while one of its entities is current.
    const THROTTLES_CURRENT_ONLY: bool;
    /// The effect of a used-up `cpu.max` quota on tasks.
    fn throttle(&self) -> Throttle {
        Throttle::Queue
    }
    /// Whether a group whose queue is empty keeps its weight.
    const EMPTY_KEEPS_WEIGHT: bool;
    /// Whether all groups with the same period are refilled at the same time. `false`: each group has an offset of its own.
    const REFILLS_TOGETHER: bool;
    /// Least time between two updates of a group's load by one of its queues.
    const TG_LOAD_AVG_INTERVAL: Span;

    /// Key by which the timeline of a queue is sorted, as a virtual time: `vruntime` (CFS) or `deadline` (EEVDF).
    fn timeline_key(entity: &Entity<Self::Entity>) -> u64;
    /// Action of the period timer of a group that used no CPU time in its last period.
    fn idle_period(&self) -> IdlePeriod {
        IdlePeriod::RefillAndStop
    }
    /// Limit of the lag, positive or negative, of a returning entity of the weight of nice 0.
    fn lag_limit(fair: &Fair<Self>) -> Span;
    /// Sets the lag of an entity that is not queued, in virtual time.
    fn set_vlag(entity: &mut Entity<Self::Entity>, lag: Span);
    /// Whether an entity has had no more than its share.
    fn is_eligible(_fair: &Fair<Self>, _e: EntityId) -> bool {
        true
    }
    /// Whether an entity has blocked, and still competes (a delayed dequeue).
    fn sched_delayed(_entity: &Entity<Self::Entity>) -> bool {
        false
    }
    /// Makes a queued entity one that has blocked, and still competes.
    fn delay_dequeue(_fair: &mut Fair<Self>, _e: EntityId, _now: Time) {}
    /// Initializes an entity, new or renewed, at its queue's virtual time.
    fn init_entity(fair: &mut Fair<Self>, e: EntityId);
    /// Removes an entity that is not queued from its queue, to join a queue of another CPU or group.
    fn detach_entity(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Charges the current entity of a queue, and advances the queue's virtual time.
    fn update_curr(fair: &mut Fair<Self>, q: CfsRqId, now: Time);
    /// Puts an entity on its queue. `moved`: it comes from another CPU.
    fn enqueue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, wakeup: bool, moved: bool);
    /// Takes an entity off its queue. False: the dequeue is delayed, and the entity still competes.
    fn dequeue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, flags: DequeueFlags) -> bool;
    /// Wakes an entity whose dequeue was delayed.
    fn requeue_delayed_entity(_fair: &mut Fair<Self>, _e: EntityId, _now: Time) {}
    /// Updates the policy's sums after an entity was put into a queue's timeline (`_inserted`), or taken out of it.
    fn update_sums(_fair: &mut Fair<Self>, _q: CfsRqId, _e: EntityId, _inserted: bool) {}
    /// The entity that should run next; its dequeue may be delayed.
    fn pick_next_entity(fair: &mut Fair<Self>, q: CfsRqId) -> EntityId;
    /// Protects an entity that becomes current from preemption (`RUN_TO_PARITY`).
    fn protect_slice(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Sets the length of an entity's requests; `None`: the kernel's.
    fn set_slice(_entity: &mut Entity<Self::Entity>, _slice: Option<Span>) {}
    /// Updates the slice of a group's entity, after an entity joined or left the group's queue.
    fn update_group_slice(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Tests at a tick whether the current entity should be preempted, after the queue was charged.
    fn entity_tick(fair: &mut Fair<Self>, e: EntityId);
    /// Whether a task that woke should preempt the running task. Arguments: the running task first, and the entities of
    /// both on a common queue.
    fn check_preempt_wakeup(
        fair: &mut Fair<Self>,
        tasks: [Task; 2],
        entities: [EntityId; 2],
        now: Time,
    ) -> bool;
    /// Handles `sched_yield` of the current task, if other tasks are queued.
    fn yield_task(fair: &mut Fair<Self>, e: EntityId, now: Time);
    /// Changes the weight of an entity, queued or not.
    fn reweight_entity(fair: &mut Fair<Self>, e: EntityId, load: LoadWeight, now: Time);
    /// The virtual time that passes for an entity in `delta` ns.
    fn calc_delta_fair(&self, entity: &Entity<Self::Entity>, delta: u64) -> u64 {
        entity.load.calc_delta_fair(delta)
    }
    /// Whether a timer ends requests (`HRTICK`).
    fn hrtick(&self) -> bool {
        false
    }
    /// Time that an entity must run until its request is used up; negative: it is used up.
    fn request_left(&self, _entity: &Entity<Self::Entity>) -> i64 {
        0
    }

    /// Whether groups average the number of their runnable tasks.
    fn counts_runnable(&self) -> bool {
        false
    }
    /// Whether a group may have more than its shares, also where all its tasks are on one CPU.
    fn multiplies_shares(&self) -> bool {
        false
    }
    /// The number by which the shares of a group are multiplied, from its average number of runnable tasks in 1024ths and the
    /// number of CPUs.
    fn shares_multiplier(&self, _runnable: u64, _cpus: u64) -> SharesMultiplier {
        SharesMultiplier::Divided(ONE_TASK)
    }

    // ---- a flat hierarchy: only tasks compete ----

    /// Whether all tasks of a CPU compete on its root queue.
    fn is_flat(&self) -> bool {
        false
    }
    /// The queue on whose timeline an entity is.
    fn timeline_of(fair: &Fair<Self>, e: EntityId) -> CfsRqId {
        fair.entities[e].cfs_rq
    }
    /// Queues a task, and counts it in the groups around it.
    fn enqueue_flat(_fair: &mut Fair<Self>, _task: EntityId, _now: Time) {}
    /// Takes a task off the queue, and out of the counts of the groups around it.
    fn dequeue_flat(_fair: &mut Fair<Self>, _task: EntityId, _now: Time, _flags: DequeueFlags) {}
    /// The task that a CPU should run.
    fn pick_flat(_fair: &mut Fair<Self>, _now: Time, _cpu: PcpuId) -> Option<TaskId> {
        None
    }
    /// Puts the running task back on the queue.
    fn put_flat(_fair: &mut Fair<Self>, _task: EntityId) {}
    /// Completes a switch to a task.
    fn set_flat(_fair: &mut Fair<Self>, _task: EntityId) {}
    /// Completes a tick.
    fn tick_flat(_fair: &mut Fair<Self>, _cpu: PcpuId) {}
    /// Tests whether a task that woke preempts the running task. Arguments: the running task first.
    fn wakeup_preempt_flat(_fair: &mut Fair<Self>, _now: Time, _cpu: PcpuId, _tasks: [Task; 2]) {}
}

/// Settings of the fair class that CFS and EEVDF share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The time between two ticks.
    pub tick: Span,
    /// CPU time that a queue takes from its group's pool at a time.
    pub bandwidth_slice: Span,
}

impl Settings {
    /// The kernel's defaults at 250 Hz.
    pub const DEFAULT: Settings = Settings { tick: Span::from_ms(4), bandwidth_slice: Span::from_ms(5) };
}

/// The fair class of a host.
#[derive(Clone, Debug)]
pub struct Fair<F: Flavor> {
    pub(super) flavor: F,
    pub(super) settings: Settings,
    pub(super) entities: Table<EntityId, Entity<F::Entity>>,
    pub(super) cfs_rqs: Table<CfsRqId, CfsRq<F::CfsRq>>,
    pub(super) groups: Table<GroupId, TaskGroup>,
    pub(super) tasks: Table<TaskId, Task>,
    /// The running task of each CPU; `None`: no fair one.
    pub(super) curr: Table<PcpuId, Option<TaskId>>,
    /// Flagged CPUs, which should decide.
    pub(super) need_resched: CpuMask,
    /// CPUs that run a thread of a class above the fair one.
    pub(super) higher_class: CpuMask,
    /// Whether there are several CPUs, so that loads are averaged.
    pub(super) smp: bool,
    /// Number of CPUs on which tasks run.
    pub(super) online: u32,
    /// Whether a task or group is or was idle (`SCHED_IDLE`, `cpu.idle`).
    pub(super) any_idle: bool,
    /// Whether a task has or had a slice of its own.
    pub(super) own_slices: bool,
    /// Queues of each CPU whose load their groups include.
    pub(super) leaf_cfs_rqs: Table<PcpuId, Vec<CfsRqId>>,
    /// CPUs whose running task leaves its queue when it returns to user mode.
    pub(super) throttle_work: CpuMask,
    /// Groups whose timers have changed.
    pub(super) changed_timers: Vec<GroupId>,
    /// Timer of each CPU that ends the running task's request (`hrtick_timer`).
    pub(super) hrtick_timers: Table<PcpuId, Option<Time>>,
    /// CPUs whose timer has changed.
    pub(super) changed_hrtick: CpuMask,
    /// Tasks whose delayed dequeue has ended, on a host with several CPUs.
    pub(super) finished_delays: Vec<TaskId>,
}

impl<F: Flavor> Fair<F> {
    /// A host with this number of CPUs, without groups and tasks.
    pub fn new(flavor: F, cpus: u32, settings: Settings) -> Self {
        Fair {
            flavor,
            settings,
            entities: Table::new(),
            cfs_rqs: (0..cpus).map(|cpu| CfsRq::new(PcpuId(cpu), None, 0)).collect(),
            groups: Table::new(),
            tasks: Table::new(),
            curr: Table::filled(cpus as usize, None),
            need_resched: CpuMask::EMPTY,
            higher_class: CpuMask::EMPTY,
            smp: cpus > 1,
            online: cpus,
            any_idle: false,
            own_slices: false,
            leaf_cfs_rqs: Table::filled(cpus as usize, Vec::new()),
            throttle_work: CpuMask::EMPTY,
            changed_timers: Vec::new(),
            hrtick_timers: Table::filled(cpus as usize, None),
            changed_hrtick: CpuMask::EMPTY,
            finished_delays: Vec::new(),
        }
    }

    pub(super) fn calc_delta_fair(&self, e: EntityId, delta: u64) -> u64 {
        self.flavor.calc_delta_fair(&self.entities[e], delta)
    }

    /// Sets the number of CPUs on which tasks run, where other CPUs of the host belong to other schedulers.
    pub fn set_online(&mut self, cpus: u32) {
        self.online = cpus;
    }

    /// Adds a group. Its parent has been added before.
    pub fn add_group(&mut self, config: &GroupConfig) -> GroupId {
        let shares = LoadWeight::shares(config.weight, config.idle);
        let group = self.groups.push(TaskGroup::new(config, shares, self.curr.len()));
        if let Some(parent) = config.parent {
            self.groups[parent].children.push(group);
        }
        group
    }

    /// Changes a group's `cpu.weight` and `cpu.idle`.
    pub fn set_weight(&mut self, now: Time, group: GroupId, weight: u32, idle: bool) {
        let shares = LoadWeight::shares(weight, idle);
        if (shares, idle) == (self.groups[group].shares, self.groups[group].idle) {
            return;
        }
        (self.groups[group].shares, self.groups[group].idle) = (shares, idle);
        self.any_idle |= idle;
        for cpu in self.groups[group].cfs_rqs.ids() {
            let Some((_, e)) = self.groups[group].cfs_rqs[cpu].and_then(|q| self.cfs_rqs[q].group) else {
                continue;
            };
            self.entities[e].idle = idle;
            let mut up = Some(e);
            while let Some(e) = up {
                self.update_cfs_group(e, now);
                up = self.parent_entity(e);
            }
        }
    }

    /// Adds a blocked task whose last CPU is `cpu`. `group`: `None` is the root group.
    pub fn add_task(&mut self, cpu: PcpuId, group: Option<GroupId>, class: Class, nice: i8) -> TaskId {
        let task = TaskId(self.tasks.len() as u32);
        let cfs_rq = self.cfs_rq_of(group, cpu);
        let weight = LoadWeight::of_task(class, nice);
        self.any_idle |= class == Class::Idle;
        let entity = self.add_entity(Kind::Task(task), cfs_rq, weight, class == Class::Idle);
        self.tasks.push(Task { entity, group, class, mode: ThreadMode::User, throttled: false })
    }

    /// Sets the mode in which a task executes.
    pub fn set_mode(&mut self, task: TaskId, mode: ThreadMode) {
        self.tasks[task].mode = mode;
    }

    /// Makes a task that has ended new: blocked, on this CPU.
    pub fn renew(&mut self, cpu: PcpuId, task: TaskId, group: Option<GroupId>) {
        let e = self.tasks[task].entity;
        self.tasks[task].group = group;
        let cfs_rq = self.cfs_rq_of(group, cpu);
        let entity = &mut self.entities[e];
        (entity.cfs_rq, entity.sum_exec_runtime, entity.prev_sum_exec_runtime) = (cfs_rq, 0, 0);
        F::init_entity(self, e);
    }

    fn add_entity(&mut self, kind: Kind, cfs_rq: CfsRqId, weight: LoadWeight, idle: bool) -> EntityId {
        self.cfs_rqs[cfs_rq].timeline.reserve(1);
        self.entities.push(Entity {
            kind,
            cfs_rq,
            load: weight,
            vruntime: 0,
            on_rq: false,
            detached: false,
            idle,
            sum_exec_runtime: 0,
            prev_sum_exec_runtime: 0,
            exec_start: Time::ZERO,
            load_avg: PeltAverage::default(),
            policy: F::Entity::default(),
        })
    }

    /// The queue of a group on a CPU. It is made on first use.
    pub(super) fn cfs_rq_of(&mut self, group: Option<GroupId>, cpu: PcpuId) -> CfsRqId {
        let Some(group) = group else { return CfsRqId(cpu.0) };
        if let Some(cfs_rq) = self.groups[group].cfs_rqs[cpu] {
            return cfs_rq;
        }
        let TaskGroup { parent, shares, idle, .. } = self.groups[group];
        let parent = self.cfs_rq_of(parent, cpu);
        let cfs_rq = CfsRqId(self.cfs_rqs.len() as u32);
        let entity = self.add_entity(Kind::Group(cfs_rq), parent, LoadWeight::of_sum(shares), idle);
        let CfsRq { depth, throttle_count, .. } = self.cfs_rqs[parent];
        let own = CfsRq { throttle_count, ..CfsRq::new(cpu, Some((group, entity)), depth + 1) };
        self.cfs_rqs.push(own);
        self.groups[group].cfs_rqs[cpu] = Some(cfs_rq);
        self.groups[group].cfs_rq_count += 1;
        cfs_rq
    }

    /// Sets the virtual run time of a blocked task to the value at which it has `virtual_time` after `ran` ns.
    pub fn set_vruntime_before(&mut self, task: TaskId, virtual_time: u64, ran: u64) {
        let entity = &mut self.entities[self.tasks[task].entity];
        let passed = self.flavor.calc_delta_fair(entity, ran);
        entity.vruntime = virtual_time.wrapping_sub(passed);
    }

    /// Sets the lag of a blocked task, in virtual time.
    pub fn set_vlag(&mut self, task: TaskId, lag: Span) {
        let e = self.tasks[task].entity;
        F::set_vlag(&mut self.entities[e], lag);
    }

    /// Sets the lag of a group's entity on a CPU, if its queue is empty.
    pub fn set_group_vlag(&mut self, group: GroupId, cpu: PcpuId, lag: Span) {
        let q = self.cfs_rq_of(Some(group), cpu);
        if let Some((_, e)) = self.cfs_rqs[q].group {
            F::set_vlag(&mut self.entities[e], lag);
        }
    }

    // ---- events ----

    /// Wakes a blocked task on a CPU.
    pub fn wake(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, throttled, .. } = self.tasks[task];
        if throttled {
            return;
        }
        if self.entities[entity].on_rq {
            if !F::sched_delayed(&self.entities[entity]) {
                return;
            }
            F::requeue_delayed_entity(self, entity, now);
        } else {
            let to = self.cfs_rq_of(group, cpu);
            let moves = self.move_to_cfs_rq(entity, to, now);
            self.enqueue_entities(entity, now, true, moves, 1);
            self.hrtick_update(now, cpu);
        }
        self.wakeup_preempt(now, cpu, task);
    }

    /// Queues a task on a CPU that left its queue without blocking.
    pub fn attach_task(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, .. } = self.tasks[task];
        let to = self.cfs_rq_of(group, cpu);
        self.move_to_cfs_rq(entity, to, now);
        self.enqueue_entities(entity, now, false, false, 1);
        self.hrtick_update(now, cpu);
        self.wakeup_preempt(now, cpu, task);
    }

    /// Moves a blocked task that still competes to another CPU, where it competes on.
    pub fn move_delayed(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, .. } = self.tasks[task];
        self.dequeue_task(now, task, false);
        let to = self.cfs_rq_of(group, cpu);
        self.move_to_cfs_rq(entity, to, now);
        self.enqueue_entities(entity, now, false, false, 1);
        F::delay_dequeue(self, entity, now);
        self.hrtick_update(now, cpu);
        if self.curr[cpu].is_none() {
            self.resched_idle_cpu(cpu);
        }
    }

    /// Notes that the delayed dequeue of an entity has ended: balancing does not know it any more.
    pub(super) fn note_finished(&mut self, e: EntityId) {
        if self.smp
            && let Kind::Task(task) = self.entities[e].kind
        {
            self.finished_delays.push(task);
        }
    }

    /// Takes a queued task off its queue. `sleep`: it does not want to run; otherwise it will join another queue.
    pub fn dequeue_task(&mut self, now: Time, task: TaskId, sleep: bool) {
        let e = self.tasks[task].entity;
        if self.entities[e].on_rq {
            self.dequeue_entities(e, now, DequeueFlags { sleep, ..DequeueFlags::default() }, 1);
        } else if self.tasks[task].throttled {
            self.dequeue_throttled_task(task);
        }
        if !sleep {
            // It has left its queue's virtual time.
            self.entities[e].detached = true;
        }
    }

    /// Ends the delayed dequeue of a blocked task: it no longer competes.
    pub fn finish_delayed_dequeue(&mut self, now: Time, task: TaskId) {
        let e = self.tasks[task].entity;
        if self.entities[e].on_rq {
            let delayed = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
            self.dequeue_task_or_group(e, now, delayed);
        }
    }

    /// Moves a task to another group.
    pub fn move_to_group(&mut self, now: Time, task: TaskId, group: Option<GroupId>) {
        let Task { entity: e, group: before, .. } = self.tasks[task];
        if before == group {
            return;
        }
        let cpu = self.cpu_of(e);
        let (queued, runs) = (self.is_queued(task), self.curr[cpu] == Some(task));
        if F::sched_delayed(&self.entities[e]) {
            self.finish_delayed_dequeue(now, task);
        } else if queued {
            self.dequeue_task(now, task, false);
        }
        if runs {
            self.put_prev_set_next(Some(e), None, now);
        }
        self.tasks[task].group = group;
        let to = self.cfs_rq_of(group, cpu);
        self.entities[e].detached = self.move_to_cfs_rq(e, to, now) && !queued;
        if queued {
            self.enqueue_entities(e, now, false, false, 1);
            if self.curr[cpu].is_none() {
                self.resched_idle_cpu(cpu);
            }
        }
        if runs {
            self.put_prev_set_next(None, Some(e), now);
            // The task may have joined a throttled group.
            self.need_resched.insert(cpu);
        } else if queued && self.curr[cpu].is_none() {
            // The task may have left a throttled group.
            self.resched_idle_cpu(cpu);
        }
    }

    /// Moves an entity that is not queued to a queue. True: that is another queue than before.
    fn move_to_cfs_rq(&mut self, e: EntityId, to: CfsRqId, now: Time) -> bool {
        let from = self.entities[e].cfs_rq;
        let moves = from != to;
        if moves
            && self.cfs_rqs[from].group.map(|(group, _)| group)
                == self.cfs_rqs[to].group.map(|(group, _)| group)
        {
            self.migrate_load_avg(e, to, now);
        }
        let detached = std::mem::take(&mut self.entities[e].detached);
        if moves && !detached {
            F::detach_entity(self, e);
        }
        self.entities[e].cfs_rq = to;
        moves || detached
    }

    /// Whether a task wants to run: it is queued or throttled.
    pub fn is_queued(&self, task: TaskId) -> bool {
        let Task { entity, throttled, .. } = self.tasks[task];
        let entity = &self.entities[entity];
        entity.on_rq && !F::sched_delayed(entity) || throttled
    }

    /// Whether the dequeue of a blocked task is delayed.
    pub fn is_delayed(&self, task: TaskId) -> bool {
        F::sched_delayed(&self.entities[self.tasks[task].entity])
    }

    /// Whether a limit keeps a task from running.
    pub fn is_throttled(&self, task: TaskId) -> bool {
        let Task { entity, throttled, .. } = self.tasks[task];
        throttled || self.throttled_hierarchy(self.entities[entity].cfs_rq)
    }

    /// Whether a group around a task has a bandwidth limit (`cfs_task_bw_constrained`).
    pub fn has_bandwidth_limit(&self, task: TaskId) -> bool {
        let mut entities = self.upwards(self.tasks[task].entity);
        let group = |e: EntityId| self.cfs_rqs[self.entities[e].cfs_rq].group;
        entities.any(|e| group(e).is_some_and(|(group, _)| self.groups[group].cfs_bandwidth.is_some()))
    }

    /// Changes the tunables.
    pub fn tune(&mut self, flavor: F, settings: Settings) {
        (self.flavor, self.settings) = (flavor, settings);
    }

    /// Whether a waiting task may be moved to a CPU: no group around it is throttled, on its CPU or there.
    pub fn can_migrate(&self, task: TaskId, to: PcpuId) -> bool {
        let Task { entity, group, .. } = self.tasks[task];
        // Queues are made on first use: the group of a vCPU may have none where the VM's group has one.
        let parent = |&group: &GroupId| self.groups[group].parent;
        let target = std::iter::successors(group, parent).find_map(|group| self.groups[group].cfs_rqs[to]);
        let throttled = |q: CfsRqId| self.cfs_rqs[q].throttle_count > 0;
        !throttled(self.entities[entity].cfs_rq) && !target.is_some_and(throttled)
    }

    /// Whether balancing does not take a task to a CPU at first: the task is not eligible on its CPU, and others are queued on its
    /// queue of the other CPU.
    pub fn is_kept(&self, task: TaskId, to: PcpuId) -> bool {
        let Task { entity, group, .. } = self.tasks[task];
        let target = match group {
            Some(group) if !self.flavor.is_flat() => self.groups[group].cfs_rqs[to],
            _ => Some(CfsRqId(to.0)),
        };
        target.is_some_and(|q| self.cfs_rqs[q].nr_running > 0) && !F::is_eligible(self, entity)
    }

    /// Whether a task is the `next` buddy of its queue.
    pub fn is_next_buddy(&self, task: TaskId) -> bool {
        let e = self.tasks[task].entity;
        self.cfs_rqs[self.entities[e].cfs_rq].next == Some(e)
    }

    /// Time at which a task was last charged, or began to run.
    pub fn exec_start(&self, task: TaskId) -> Time {
        self.entities[self.tasks[task].entity].exec_start
    }

    /// The CPU that a task is on, or was on last.
    pub fn task_cpu(&self, task: TaskId) -> PcpuId {
        self.cpu_of(self.tasks[task].entity)
    }

    /// Blocks the running task; a decision follows.
    pub fn block(&mut self, now: Time, cpu: PcpuId) {
        if let Some(task) = self.curr[cpu] {
            self.dequeue_task_or_group(
                self.tasks[task].entity,
                now,
                DequeueFlags { sleep: true, ..DequeueFlags::default() },
            );
        }
    }

    /// Yields the running task's CPU; a decision follows.
    pub fn yield_task(&mut self, now: Time, cpu: PcpuId) {
        if let Some(task) = self.curr[cpu]
            && self.cfs_rqs[CfsRqId(cpu.0)].h_nr_running > 1
        {
            let e = self.tasks[task].entity;
            self.clear_buddies(e);
            F::update_curr(self, self.entities[e].cfs_rq, now);
            F::yield_task(self, e, now);
        }
    }

    /// Makes the running task of a CPU give way to a task that waits on some CPU.
    pub fn yield_to(&mut self, now: Time, cpu: PcpuId, target: TaskId) {
        if !(self.flavor.is_flat() && self.is_delayed(target)) {
            self.set_next_buddy(self.tasks[target].entity);
        }
        self.yield_task(now, cpu);
        let other = self.task_cpu(target);
        if other != cpu {
            self.need_resched.insert(other);
        }
    }

    /// Handles a tick on a CPU that is not idle.
    pub fn task_tick(&mut self, now: Time, cpu: PcpuId) {
        let mut up = self.curr[cpu].map(|task| self.tasks[task].entity);
        while let Some(e) = up {
            F::update_curr(self, self.entities[e].cfs_rq, now);
            self.update_cfs_group(e, now);
            F::entity_tick(self, e);
            up = self.parent_entity(e);
        }
        if self.flavor.is_flat() {
            F::tick_flat(self, cpu);
        }
    }

    /// Number of tasks on a CPU that could run, including those whose dequeue is delayed.
    pub fn h_nr_running(&self, cpu: PcpuId) -> u32 {
        self.cfs_rqs[CfsRqId(cpu.0)].h_nr_running
    }

    // ---- hierarchy ----

    /// The entity that represents the queue of `e` in its parent group.
    pub(super) fn parent_entity(&self, e: EntityId) -> Option<EntityId> {
        self.cfs_rqs[self.entities[e].cfs_rq].group.map(|(_, entity)| entity)
    }

    /// An entity and its ancestors.
    pub(super) fn upwards(&self, e: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        std::iter::successors(Some(e), |&e| self.parent_entity(e))
    }

    /// Depth of an entity: 0 without one, 1 on a root queue.
    pub(super) fn depth(&self, e: Option<EntityId>) -> u32 {
        e.map_or(0, |e| self.cfs_rqs[self.entities[e].cfs_rq].depth + 1)
    }

    /// Enqueues an entity and its ancestors that are not queued, and adds `tasks` to the counts up to the root or a
    /// throttled queue.
    pub(super) fn enqueue_entities(
        &mut self,
        first: EntityId,
        now: Time,
        wakeup: bool,
        moved: bool,
        tasks: u32,
    ) {
        if self.flavor.is_flat() {
            return F::enqueue_flat(self, first, now);
        }
        let mut up = Some(first);
        let mut enqueues = true;
        while let Some(e) = up {
            enqueues = enqueues && !self.entities[e].on_rq;
            if e != first {
                F::update_group_slice(self, e);
            }
            if enqueues {
                let is_first = e == first;
                F::enqueue_entity(self, e, now, wakeup || !is_first, moved && is_first);
            } else {
                if F::sched_delayed(&self.entities[e]) {
                    F::requeue_delayed_entity(self, e, now);
                }
                self.update_cfs_group(e, now);
            }
            let q = self.entities[e].cfs_rq;
            self.cfs_rqs[q].h_nr_running += tasks;
            if self.has_left_parent(q) {
                return;
            }
            up = self.parent_entity(e);
        }
    }

    /// Dequeues a task, or an entity whose dequeue was delayed.
    pub(super) fn dequeue_task_or_group(&mut self, first: EntityId, now: Time, flags: DequeueFlags) {
        let tasks = u32::from(matches!(self.entities[first].kind, Kind::Task(_)));
        self.dequeue_entities(first, now, flags, tasks);
    }

    /// Dequeues an entity and its ancestors whose queues are empty then, and subtracts `tasks` from the counts up to
    /// the root or a throttled queue.
    pub(super) fn dequeue_entities(&mut self, first: EntityId, now: Time, flags: DequeueFlags, tasks: u32) {
        if self.flavor.is_flat() {
            return F::dequeue_flat(self, first, now, flags);
        }
        let mut up = Some(first);
        while let Some(e) = up {
            if flags.throttled && !self.entities[e].on_rq {
                return;
            }
            if e != first {
                F::update_group_slice(self, e);
            }
            let sleep = flags.sleep || e != first;
            let delayed =
                (flags.delayed && e == first) || (flags.throttled && F::sched_delayed(&self.entities[e]));
            let special = flags.special && e == first;
            if !F::dequeue_entity(self, e, now, DequeueFlags { sleep, delayed, special, ..flags }) {
                if e == first {
                    return;
                }
                break;
            }
            let q = self.entities[e].cfs_rq;
            self.cfs_rqs[q].h_nr_running -= tasks;
            if self.has_left_parent(q) {
                return;
            }
            up = self.parent_entity(e);
            if self.cfs_rqs[q].load > 0 {
                if let Some(group) =
                    up.filter(|_| flags.sleep && !flags.throttled && !self.throttled_hierarchy(q))
                {
                    self.set_next_buddy(group);
                }
                break;
            }
        }
        while let Some(e) = up {
            if flags.throttled && !self.entities[e].on_rq {
                return;
            }
            F::update_group_slice(self, e);
            self.update_cfs_group(e, now);
            let q = self.entities[e].cfs_rq;
            self.cfs_rqs[q].h_nr_running -= tasks;
            if self.has_left_parent(q) {
                return;
            }
            up = self.parent_entity(e);
        }
    }

    /// Charges the current entity of a queue for the time since its last charge. Returns the entity and that time, ns.
    pub(super) fn update_curr_se(&mut self, q: CfsRqId, now: Time) -> Option<(EntityId, u64)> {
        let e = self.cfs_rqs[q].curr?;
        let entity = &mut self.entities[e];
        let ran = ns(now - entity.exec_start);
        if ran == 0 {
            return None;
        }
        entity.exec_start = now;
        entity.sum_exec_runtime += ran;
        if !self.flavor.is_flat() || matches!(entity.kind, Kind::Task(_)) {
            let passed = self.flavor.calc_delta_fair(entity, ran);
            entity.vruntime = entity.vruntime.wrapping_add(passed);
        }
        Some((e, ran))
    }

    pub(super) fn cpu_of(&self, e: EntityId) -> PcpuId {
        self.cfs_rqs[self.entities[e].cfs_rq].cpu
    }
}
