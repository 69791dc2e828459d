//! The fair class: walks along the hierarchy of groups that an event makes, from a task's queue up to the root.

use vcpulab_host::{Class, CpuMask, GroupConfig, GroupId, PcpuId, Span, Table, Time};

use super::cfs_rq::{Entity, EntityId, Kind, Queue, QueueId, Task, TaskId, ahead};
use super::limit::Group;
use super::load_weight::{Weight, ns};
use super::pelt::Average;

/// Reason for which an entity leaves its queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    /// Because its task does not want to run.
    pub sleep: bool,
    /// Because a limit is exhausted.
    pub throttled: bool,
    /// Because a delayed dequeue ends: the entity blocked before, and stayed on the queue to compete until now.
    pub finish: bool,
}

/// A policy of the fair class: the operations of a single queue, in which CFS and EEVDF differ.
pub trait Flavor: Clone {
    /// State that the policy keeps for each entity.
    type Entity: Clone + Default + std::fmt::Debug;
    /// State that the policy keeps for each queue.
    type Queue: Clone + Default + std::fmt::Debug;
    /// Whether a decision throttles a queue only while one of its entities is current.
    const THROTTLES_CURRENT_ONLY: bool;
    /// Whether a group whose queue is empty keeps its weight.
    const EMPTY_KEEPS_WEIGHT: bool;
    /// Whether all groups with the same period are refilled at the same time. `false`: each group has an offset of its own.
    const REFILLS_TOGETHER: bool;
    /// Least time between two updates of a group's load by one of its queues.
    const CONTRIBUTES_EVERY: Span;

    /// Key by which a queue is sorted, as a virtual time: `vruntime` (CFS) or `deadline` (EEVDF).
    fn key(entity: &Entity<Self::Entity>) -> u64;
    /// Limit of the lag, positive or negative, of a returning entity of the weight of nice 0.
    fn lag_max(fair: &Fair<Self>) -> Span;
    /// Sets the lag of an entity that is not queued, in virtual time.
    fn set_lag(entity: &mut Entity<Self::Entity>, lag: Span);
    /// Whether an entity has blocked, and still competes (a delayed dequeue).
    fn delayed(_entity: &Entity<Self::Entity>) -> bool {
        false
    }
    /// Initializes an entity, new or renewed, at its queue's virtual time.
    fn fresh(fair: &mut Fair<Self>, e: EntityId);
    /// Removes an entity that is not queued from its queue, to join a queue of another CPU or group.
    fn leave(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Charges the current entity of a queue, and advances the queue's virtual time (`update_curr`).
    fn update(fair: &mut Fair<Self>, q: QueueId, now: Time);
    /// Puts an entity on its queue (`enqueue_entity`). `moved`: it comes from another CPU.
    fn enqueue(fair: &mut Fair<Self>, e: EntityId, now: Time, wakeup: bool, moved: bool);
    /// Takes an entity off its queue (`dequeue_entity`). False: the dequeue is delayed, and the entity still competes.
    fn dequeue(fair: &mut Fair<Self>, e: EntityId, now: Time, leaving: Leaving) -> bool;
    /// Wakes an entity whose dequeue was delayed.
    fn requeue(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Updates the policy's sums after an entity was put into a queue's tree (`_there`), or taken out.
    fn in_tree(_fair: &mut Fair<Self>, _q: QueueId, _e: EntityId, _there: bool) {}
    /// The entity that should run next (`pick_next_entity`); its dequeue may be delayed.
    fn pick(fair: &mut Fair<Self>, q: QueueId) -> EntityId;
    /// Prepares an entity that becomes current (`set_next_entity`).
    fn begin(_entity: &mut Entity<Self::Entity>) {}
    /// Tests at a tick whether the current entity should be preempted (`entity_tick`), after the queue was charged.
    fn tick(fair: &mut Fair<Self>, e: EntityId);
    /// Whether a task that woke should preempt the running task. Arguments: the running task first, and the entities of
    /// both on a common queue.
    fn preempts(fair: &mut Fair<Self>, tasks: [Task; 2], entities: [EntityId; 2], now: Time) -> bool;
    /// Handles `sched_yield` of the current task, if other tasks are queued.
    fn yielded(fair: &mut Fair<Self>, e: EntityId, now: Time);
    /// Changes the weight of an entity, queued or not (`reweight_entity`).
    fn reweigh(fair: &mut Fair<Self>, e: EntityId, weight: Weight, now: Time);
}

/// Accessor of a buddy (`next`, `last` or `skip`) of a queue.
type Buddy<F> = fn(&mut Queue<<F as Flavor>::Queue>) -> &mut Option<EntityId>;

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
    pub(super) queues: Table<QueueId, Queue<F::Queue>>,
    pub(super) groups: Table<GroupId, Group>,
    pub(super) tasks: Table<TaskId, Task>,
    /// The running task of each CPU; `None`: no fair one.
    running: Table<PcpuId, Option<TaskId>>,
    /// CPUs with a flag, which are asked to decide (`need_resched`).
    flags: CpuMask,
    /// CPUs that run a thread of a class above the fair one.
    above: CpuMask,
    /// Whether there are several CPUs, so that loads are averaged.
    pub(super) several: bool,
    /// Whether a task or group is or was idle (`SCHED_IDLE`, `cpu.idle`).
    pub(super) any_idle: bool,
    /// Queues of each CPU whose load their groups include.
    pub(super) contributing: Table<PcpuId, Vec<QueueId>>,
    /// Groups whose timers have changed.
    pub(super) retimed: Vec<GroupId>,
}

impl<F: Flavor> Fair<F> {
    /// A host with this number of CPUs, without groups and tasks.
    pub fn new(flavor: F, cpus: u32, settings: Settings) -> Self {
        Fair {
            flavor,
            settings,
            entities: Table::new(),
            queues: (0..cpus).map(|cpu| Queue::new(PcpuId(cpu), None, 0)).collect(),
            groups: Table::new(),
            tasks: Table::new(),
            running: Table::filled(cpus as usize, None),
            flags: CpuMask::EMPTY,
            above: CpuMask::EMPTY,
            several: cpus > 1,
            any_idle: false,
            contributing: Table::filled(cpus as usize, Vec::new()),
            retimed: Vec::new(),
        }
    }

    /// Adds a group. Its parent has been added before.
    pub fn add_group(&mut self, config: &GroupConfig) -> GroupId {
        let shares = Weight::shares(config.weight, config.idle);
        self.groups.push(Group::new(config, shares, self.running.len()))
    }

    /// Changes a group's `cpu.weight` and `cpu.idle`.
    pub fn set_weight(&mut self, now: Time, group: GroupId, weight: u32, idle: bool) {
        let shares = Weight::shares(weight, idle);
        if (shares, idle) == (self.groups[group].shares, self.groups[group].idle) {
            return;
        }
        (self.groups[group].shares, self.groups[group].idle) = (shares, idle);
        self.any_idle |= idle;
        for cpu in self.groups[group].queues.ids() {
            let Some((_, e)) = self.groups[group].queues[cpu].and_then(|q| self.queues[q].group) else {
                continue;
            };
            self.entities[e].idle = idle;
            let mut up = Some(e);
            while let Some(e) = up {
                self.refresh_weight(e, now);
                up = self.parent(e);
            }
        }
    }

    /// Adds a blocked task whose last CPU is `cpu`. `group`: `None` is the root group.
    pub fn add_task(&mut self, cpu: PcpuId, group: Option<GroupId>, class: Class, nice: i8) -> TaskId {
        let task = TaskId(self.tasks.len() as u32);
        let queue = self.queue_of(group, cpu);
        let weight = Weight::of_task(class, nice);
        self.any_idle |= class == Class::Idle;
        let entity = self.add_entity(Kind::Task(task), queue, weight, class == Class::Idle);
        self.tasks.push(Task { entity, group, class })
    }

    /// Makes a task that has ended new: blocked, on this CPU.
    pub fn renew(&mut self, cpu: PcpuId, task: TaskId, group: Option<GroupId>) {
        let e = self.tasks[task].entity;
        self.tasks[task].group = group;
        let queue = self.queue_of(group, cpu);
        let entity = &mut self.entities[e];
        (entity.queue, entity.sum, entity.sum_before) = (queue, 0, 0);
        F::fresh(self, e);
    }

    fn add_entity(&mut self, kind: Kind, queue: QueueId, weight: Weight, idle: bool) -> EntityId {
        self.queues[queue].tree.reserve(1);
        self.entities.push(Entity {
            kind,
            queue,
            weight,
            v: 0,
            queued: false,
            roams: false,
            idle,
            sum: 0,
            sum_before: 0,
            charged_at: Time::ZERO,
            average: Average::default(),
            own: F::Entity::default(),
        })
    }

    /// The queue of a group on a CPU. It is made on first use.
    pub(super) fn queue_of(&mut self, group: Option<GroupId>, cpu: PcpuId) -> QueueId {
        let Some(group) = group else { return QueueId(cpu.0) };
        if let Some(queue) = self.groups[group].queues[cpu] {
            return queue;
        }
        let Group { parent, shares, idle, .. } = self.groups[group];
        let parent = self.queue_of(parent, cpu);
        let queue = QueueId(self.queues.len() as u32);
        let entity = self.add_entity(Kind::Group(queue), parent, Weight::of_sum(shares), idle);
        let depth = self.queues[parent].depth + 1;
        self.queues.push(Queue::new(cpu, Some((group, entity)), depth));
        self.groups[group].queues[cpu] = Some(queue);
        self.groups[group].made_on += 1;
        queue
    }

    /// Sets the virtual run time of a blocked task to the value at which it has `virtual_time` after `ran` ns.
    pub fn reaches(&mut self, task: TaskId, virtual_time: u64, ran: u64) {
        let entity = &mut self.entities[self.tasks[task].entity];
        entity.v = virtual_time.wrapping_sub(entity.weight.virtual_time(ran));
    }

    /// Sets the lag of a blocked task, in virtual time.
    pub fn set_lag(&mut self, task: TaskId, lag: Span) {
        let e = self.tasks[task].entity;
        F::set_lag(&mut self.entities[e], lag);
    }

    /// Sets the lag of a group's entity on a CPU, if its queue is empty.
    pub fn set_group_lag(&mut self, group: GroupId, cpu: PcpuId, lag: Span) {
        let q = self.queue_of(Some(group), cpu);
        if let Some((_, e)) = self.queues[q].group {
            F::set_lag(&mut self.entities[e], lag);
        }
    }

    // ---- events ----

    /// Wakes a blocked task on a CPU.
    pub fn wake(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, .. } = self.tasks[task];
        if self.entities[entity].queued {
            if !F::delayed(&self.entities[entity]) {
                return;
            }
            F::requeue(self, entity);
        } else {
            let to = self.queue_of(group, cpu);
            let moves = self.settle_on(entity, to, now);
            self.enqueue_upwards(entity, now, true, moves, 1);
        }
        self.test_preemption(now, cpu, task);
    }

    /// Queues a task on a CPU that left its queue without blocking.
    pub fn join(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, .. } = self.tasks[task];
        let to = self.queue_of(group, cpu);
        self.settle_on(entity, to, now);
        self.enqueue_upwards(entity, now, false, false, 1);
        self.test_preemption(now, cpu, task);
    }

    /// Takes a queued task off its queue. `sleep`: it does not want to run; otherwise it will join another queue.
    pub fn leave(&mut self, now: Time, task: TaskId, sleep: bool) {
        let e = self.tasks[task].entity;
        if self.entities[e].queued {
            self.dequeue_upwards(e, now, Leaving { sleep, ..Leaving::default() }, 1);
        }
        if !sleep {
            // It has left its queue's virtual time.
            self.entities[e].roams = true;
        }
    }

    /// Ends the delayed dequeue of a blocked task: it no longer competes.
    pub fn finish(&mut self, now: Time, task: TaskId) {
        let e = self.tasks[task].entity;
        if self.entities[e].queued {
            let finish = Leaving { sleep: true, finish: true, ..Leaving::default() };
            self.dequeue_task(e, now, finish);
        }
    }

    /// Moves a task to another group.
    pub fn regroup(&mut self, now: Time, task: TaskId, group: Option<GroupId>) {
        let Task { entity: e, group: before, .. } = self.tasks[task];
        if before == group {
            return;
        }
        let cpu = self.cpu(e);
        let (queued, runs) = (self.is_queued(task), self.running[cpu] == Some(task));
        if F::delayed(&self.entities[e]) {
            self.finish(now, task);
        } else if queued {
            self.leave(now, task, false);
        }
        if runs {
            self.put_and_set(Some(e), None, now);
        }
        self.tasks[task].group = group;
        let to = self.queue_of(group, cpu);
        self.entities[e].roams = self.settle_on(e, to, now) && !queued;
        if queued {
            self.enqueue_upwards(e, now, false, false, 1);
        }
        if runs {
            self.put_and_set(None, Some(e), now);
        }
    }

    /// Moves an entity that is not queued to a queue. True: that is another queue than before.
    fn settle_on(&mut self, e: EntityId, to: QueueId, now: Time) -> bool {
        let from = self.entities[e].queue;
        let moves = from != to;
        if moves
            && self.queues[from].group.map(|(group, _)| group)
                == self.queues[to].group.map(|(group, _)| group)
        {
            self.move_load(e, to, now);
        }
        let roams = std::mem::take(&mut self.entities[e].roams);
        if moves && !roams {
            F::leave(self, e);
        }
        self.entities[e].queue = to;
        moves || roams
    }

    /// Whether a task is queued and wants to run.
    pub fn is_queued(&self, task: TaskId) -> bool {
        let entity = &self.entities[self.tasks[task].entity];
        entity.queued && !F::delayed(entity)
    }

    /// Whether the dequeue of a blocked task is delayed.
    pub fn is_delayed(&self, task: TaskId) -> bool {
        F::delayed(&self.entities[self.tasks[task].entity])
    }

    /// Whether the group of a task, or a group around it, is throttled on the task's CPU.
    pub fn is_held_back(&self, task: TaskId) -> bool {
        self.is_throttled(self.entities[self.tasks[task].entity].queue)
    }

    /// Changes the tunables.
    pub fn tune(&mut self, flavor: F, settings: Settings) {
        (self.flavor, self.settings) = (flavor, settings);
    }

    /// Whether a waiting task may be moved to a CPU: no group around it is throttled, on its CPU or there.
    pub fn may_move(&self, task: TaskId, to: PcpuId) -> bool {
        let Task { entity, group, .. } = self.tasks[task];
        let there = group.and_then(|group| self.groups[group].queues[to]);
        !self.is_throttled(self.entities[entity].queue) && there.is_none_or(|q| !self.is_throttled(q))
    }

    /// Whether a task is the `next` buddy of its queue.
    pub fn is_preferred(&self, task: TaskId) -> bool {
        let e = self.tasks[task].entity;
        self.queues[self.entities[e].queue].next == Some(e)
    }

    /// Time at which a task was last charged, or began to run.
    pub fn ran_at(&self, task: TaskId) -> Time {
        self.entities[self.tasks[task].entity].charged_at
    }

    /// The CPU that a task is on, or was on last.
    pub fn cpu_of(&self, task: TaskId) -> PcpuId {
        self.cpu(self.tasks[task].entity)
    }

    /// Blocks the running task; a decision follows.
    pub fn block(&mut self, now: Time, cpu: PcpuId) {
        if let Some(task) = self.running[cpu] {
            self.dequeue_task(self.tasks[task].entity, now, Leaving { sleep: true, ..Leaving::default() });
        }
    }

    /// Yields the running task's CPU; a decision follows.
    pub fn yielded(&mut self, now: Time, cpu: PcpuId) {
        if let Some(task) = self.running[cpu]
            && self.queues[QueueId(cpu.0)].tasks > 1
        {
            let e = self.tasks[task].entity;
            self.clear_buddies(e);
            F::update(self, self.entities[e].queue, now);
            F::yielded(self, e, now);
        }
    }

    /// Makes the running task of a CPU give way to a task that waits on some CPU (`yield_to`).
    pub fn yield_to(&mut self, now: Time, cpu: PcpuId, target: TaskId) {
        self.prefer(self.tasks[target].entity);
        self.yielded(now, cpu);
        let other = self.cpu_of(target);
        if other != cpu {
            self.flags.insert(other);
        }
    }

    /// Handles a tick on a CPU that is not idle.
    pub fn tick(&mut self, now: Time, cpu: PcpuId) {
        let mut up = self.running[cpu].map(|task| self.tasks[task].entity);
        while let Some(e) = up {
            F::update(self, self.entities[e].queue, now);
            self.refresh_weight(e, now);
            F::tick(self, e);
            up = self.parent(e);
        }
    }

    /// Whether a CPU is flagged to decide (`need_resched`).
    pub fn flagged(&self, cpu: PcpuId) -> bool {
        self.flags.contains(cpu)
    }

    /// All flagged CPUs.
    pub fn flags(&self) -> &CpuMask {
        &self.flags
    }

    /// Notes whether a CPU runs a thread of a class above the fair one.
    pub fn set_above(&mut self, cpu: PcpuId, on: bool) {
        self.above.put(cpu, on);
    }

    /// Number of tasks on a CPU that could run, including those whose dequeue is delayed.
    pub fn tasks_on(&self, cpu: PcpuId) -> u32 {
        self.queues[QueueId(cpu.0)].tasks
    }

    /// Sets or clears the flag of a CPU.
    pub fn set_flag(&mut self, cpu: PcpuId, on: bool) {
        self.flags.put(cpu, on);
    }

    /// The task that a CPU runs, if it is a fair one.
    pub fn running(&self, cpu: PcpuId) -> Option<TaskId> {
        self.running[cpu]
    }

    /// Decides what a CPU runs, and switches to it.
    pub fn choose(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        let chosen = self.pick(now, cpu);
        self.switch(now, cpu, chosen);
        chosen
    }

    /// Decides what a CPU should run.
    pub fn pick(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        let root = QueueId(cpu.0);
        'again: loop {
            let mut q = root;
            if self.queues[q].nr == 0 {
                return None;
            }
            loop {
                let current = self.queues[q].current;
                if current.is_some_and(|e| self.entities[e].queued) {
                    F::update(self, q, now);
                }
                let tested = current.is_some() || !F::THROTTLES_CURRENT_ONLY;
                if tested && self.throttle_if_exhausted(q, now) {
                    if F::THROTTLES_CURRENT_ONLY {
                        self.put_running(now, cpu);
                    }
                    continue 'again;
                }
                let chosen = F::pick(self, q);
                if F::delayed(&self.entities[chosen]) {
                    let finish = Leaving { sleep: true, finish: true, ..Leaving::default() };
                    self.dequeue_task(chosen, now, finish);
                    continue 'again;
                }
                match self.entities[chosen].kind {
                    Kind::Task(task) => return Some(task),
                    Kind::Group(own) => q = own,
                }
            }
        }
    }

    /// Switches a CPU to a task, or to no fair task (`None`). Flags raised meanwhile are dropped.
    pub fn switch(&mut self, now: Time, cpu: PcpuId, to: Option<TaskId>) {
        let from = self.running[cpu];
        if from != to || from.is_none() {
            self.put_and_set(from.map(|t| self.tasks[t].entity), to.map(|t| self.tasks[t].entity), now);
            self.running[cpu] = to;
        }
        self.flags.remove(cpu);
    }

    fn put_and_set(&mut self, mut from: Option<EntityId>, mut to: Option<EntityId>, now: Time) {
        let queue = |fair: &Self, e: Option<EntityId>| e.map(|e| fair.entities[e].queue);
        while from.is_some() || to.is_some() {
            let (depth_from, depth_to) = (self.depth(from), self.depth(to));
            let meet = queue(self, from) == queue(self, to);
            if let Some(e) = from.filter(|_| depth_from >= depth_to) {
                self.put(e, now);
                from = self.parent(e);
            }
            if let Some(e) = to.filter(|_| depth_to >= depth_from) {
                self.set(e, now);
                to = self.parent(e);
            }
            if meet {
                break;
            }
        }
    }

    /// Takes the running task off its CPU: none of its entities is current any more.
    fn put_running(&mut self, now: Time, cpu: PcpuId) {
        let from = self.running[cpu].take().map(|task| self.tasks[task].entity);
        self.put_and_set(from, None, now);
    }

    // ---- hierarchy ----

    /// The entity that represents the queue of `e` in its parent group.
    pub(super) fn parent(&self, e: EntityId) -> Option<EntityId> {
        self.queues[self.entities[e].queue].group.map(|(_, entity)| entity)
    }

    /// An entity and its ancestors.
    fn upwards(&self, e: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        std::iter::successors(Some(e), |&e| self.parent(e))
    }

    /// Depth of an entity: 0 without one, 1 on a root queue.
    fn depth(&self, e: Option<EntityId>) -> u32 {
        e.map_or(0, |e| self.queues[self.entities[e].queue].depth + 1)
    }

    /// Whether a queue or one of its ancestors is throttled.
    pub(super) fn is_throttled(&self, q: QueueId) -> bool {
        let above = self.queues[q].group.map(|(_, entity)| entity);
        let mut above = above.into_iter().flat_map(|e| self.upwards(e));
        self.queues[q].throttled || above.any(|e| self.queues[self.entities[e].queue].throttled)
    }

    /// Enqueues an entity and its ancestors that are not queued, and adds `tasks` to the counts up to the root or a
    /// throttled queue.
    pub(super) fn enqueue_upwards(
        &mut self,
        first: EntityId,
        now: Time,
        wakeup: bool,
        moved: bool,
        tasks: u32,
    ) {
        let mut up = Some(first);
        let mut enqueues = true;
        while let Some(e) = up {
            enqueues = enqueues && !self.entities[e].queued;
            if enqueues {
                let is_first = e == first;
                F::enqueue(self, e, now, wakeup || !is_first, moved && is_first);
            } else {
                if F::delayed(&self.entities[e]) {
                    F::requeue(self, e);
                }
                self.refresh_weight(e, now);
            }
            let queue = &mut self.queues[self.entities[e].queue];
            queue.tasks += tasks;
            if queue.throttled {
                return;
            }
            up = self.parent(e);
        }
    }

    /// Dequeues a task, or an entity whose dequeue was delayed.
    fn dequeue_task(&mut self, first: EntityId, now: Time, leaving: Leaving) {
        let tasks = u32::from(matches!(self.entities[first].kind, Kind::Task(_)));
        self.dequeue_upwards(first, now, leaving, tasks);
    }

    /// Dequeues an entity and its ancestors whose queues are empty then, and subtracts `tasks` from the counts up to
    /// the root or a throttled queue.
    pub(super) fn dequeue_upwards(&mut self, first: EntityId, now: Time, leaving: Leaving, tasks: u32) {
        let mut up = Some(first);
        while let Some(e) = up {
            if leaving.throttled && !self.entities[e].queued {
                return;
            }
            let sleep = leaving.sleep || e != first;
            let finish =
                (leaving.finish && e == first) || (leaving.throttled && F::delayed(&self.entities[e]));
            if !F::dequeue(self, e, now, Leaving { sleep, finish, ..leaving }) {
                if e == first {
                    return;
                }
                break;
            }
            let q = self.entities[e].queue;
            self.queues[q].tasks -= tasks;
            if self.queues[q].throttled {
                return;
            }
            up = self.parent(e);
            if self.queues[q].load > 0 {
                if let Some(group) =
                    up.filter(|_| leaving.sleep && !leaving.throttled && !self.is_throttled(q))
                {
                    self.prefer(group);
                }
                break;
            }
        }
        while let Some(e) = up {
            if leaving.throttled && !self.entities[e].queued {
                return;
            }
            self.refresh_weight(e, now);
            let queue = &mut self.queues[self.entities[e].queue];
            queue.tasks -= tasks;
            if queue.throttled {
                return;
            }
            up = self.parent(e);
        }
    }

    fn put(&mut self, e: EntityId, now: Time) {
        let q = self.entities[e].queue;
        if self.entities[e].queued {
            F::update(self, q, now);
        }
        self.throttle_if_exhausted(q, now);
        if self.entities[e].queued {
            self.put_into_tree(e);
        }
        self.queues[q].current = None;
    }

    fn set(&mut self, e: EntityId, now: Time) {
        self.clear_buddies(e);
        if self.entities[e].queued {
            self.take_out_of_tree(e);
        }
        let entity = &mut self.entities[e];
        entity.charged_at = now;
        entity.sum_before = entity.sum;
        F::begin(entity);
        self.queues[entity.queue].current = Some(e);
    }

    /// Charges the current entity of a queue for the time since its last charge. Returns the entity and that time, ns.
    pub(super) fn charge_current(&mut self, q: QueueId, now: Time) -> Option<(EntityId, u64)> {
        let e = self.queues[q].current?;
        let entity = &mut self.entities[e];
        let ran = ns(now - entity.charged_at);
        if ran == 0 {
            return None;
        }
        entity.charged_at = now;
        entity.sum += ran;
        entity.v = entity.v.wrapping_add(entity.weight.virtual_time(ran));
        Some((e, ran))
    }

    /// Tests whether a task that woke preempts the running one.
    fn test_preemption(&mut self, now: Time, cpu: PcpuId, woken: TaskId) {
        let Some(running) = self.running[cpu] else { return self.flag_idle(cpu) };
        let waking = self.tasks[woken];
        let throttled = self.is_throttled(self.entities[waking.entity].queue);
        if running == woken || self.flagged(cpu) || throttled {
            return;
        }
        let current = self.tasks[running];
        let (mut e, mut f) = (current.entity, waking.entity);
        while self.entities[e].queue != self.entities[f].queue {
            let (depth_e, depth_f) = (self.depth(Some(e)), self.depth(Some(f)));
            let up = |fair: &Self, e: EntityId| fair.parent(e).unwrap_or(e);
            if depth_e >= depth_f {
                e = up(self, e);
            }
            if depth_f >= depth_e {
                f = up(self, f);
            }
        }
        if F::preempts(self, [current, waking], [e, f], now) {
            self.flags.insert(cpu);
        }
    }

    /// Flags a CPU that runs no fair task, unless it runs a thread of a class above.
    pub(super) fn flag_idle(&mut self, cpu: PcpuId) {
        if !self.above.contains(cpu) {
            self.flags.insert(cpu);
        }
    }

    pub(super) fn cpu(&self, e: EntityId) -> PcpuId {
        self.queues[self.entities[e].queue].cpu
    }

    /// Flags the CPU of a queue.
    pub(super) fn flag(&mut self, q: QueueId) {
        self.flags.insert(self.queues[q].cpu);
    }

    // ---- buddies ----

    /// Makes an entity and its ancestors the `next` buddies of their queues.
    pub(super) fn prefer(&mut self, e: EntityId) {
        self.name(e, |queue| &mut queue.next);
    }

    /// Makes an entity and its ancestors buddies of their queues.
    pub(super) fn name(&mut self, e: EntityId, buddy: Buddy<F>) {
        let mut up = Some(e);
        while let Some(e) = up.filter(|&e| self.entities[e].queued && !self.entities[e].idle) {
            *buddy(&mut self.queues[self.entities[e].queue]) = Some(e);
            up = self.parent(e);
        }
    }

    /// Clears the buddies that name an entity, and those that name its ancestors as far up as they do.
    pub(super) fn clear_buddies(&mut self, e: EntityId) {
        let buddies: [Buddy<F>; 3] =
            [|queue| &mut queue.next, |queue| &mut queue.last, |queue| &mut queue.skip];
        for buddy in buddies {
            let mut up = Some(e);
            while let Some(e) = up {
                let named = buddy(&mut self.queues[self.entities[e].queue]);
                if *named != Some(e) {
                    break;
                }
                *named = None;
                up = self.parent(e);
            }
        }
    }

    // ---- trees ----

    /// Puts an entity into its queue's tree, behind entities with the same key.
    pub(super) fn put_into_tree(&mut self, e: EntityId) {
        let q = self.entities[e].queue;
        let key = F::key(&self.entities[e]);
        let behind = |&other: &EntityId| ahead(F::key(&self.entities[other]), key) <= 0;
        let position = self.queues[q].tree.partition_point(behind);
        self.queues[q].tree.insert(position, e);
        F::in_tree(self, q, e, true);
    }

    /// Takes an entity out of its queue's tree, if it is in the tree.
    pub(super) fn take_out_of_tree(&mut self, e: EntityId) {
        let q = self.entities[e].queue;
        if let Some(position) = self.queues[q].tree.iter().position(|&other| other == e) {
            self.queues[q].tree.remove(position);
            F::in_tree(self, q, e, false);
        }
    }

    /// Adds an entity to the counts and the load of its queue.
    pub(super) fn count_in(&mut self, e: EntityId, now: Time) {
        self.average(e, now);
        let queue = &mut self.queues[self.entities[e].queue];
        queue.load += self.entities[e].weight.full;
        queue.nr += 1;
        let (current, first) = (queue.current == Some(e), queue.nr == 1);
        self.entities[e].queued = true;
        if !current {
            self.put_into_tree(e);
        }
        if first {
            self.first_enqueued(self.entities[e].queue, now);
        }
    }

    /// Subtracts an entity from the counts and the load of its queue.
    pub(super) fn count_out(&mut self, e: EntityId, now: Time) {
        self.average(e, now);
        let q = self.entities[e].queue;
        if self.queues[q].current != Some(e) {
            self.take_out_of_tree(e);
        }
        self.entities[e].queued = false;
        let queue = &mut self.queues[q];
        queue.load -= self.entities[e].weight.full;
        queue.nr -= 1;
    }
}
