//! The walks along the hierarchy: what an event does from a task's queue up to the root.

use vcpulab_host::{Class, CpuMask, GroupConfig, GroupId, PcpuId, Span, Table, Time};

use super::average::Average;
use super::limit::Group;
use super::tree::{Entity, EntityId, Kind, Queue, QueueId, Task, TaskId, ahead};
use super::weight::{Weight, ns};

/// Reason for which an entity leaves its queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    /// Because what it stands for does not want to run.
    pub sleep: bool,
    /// Because a limit is exhausted.
    pub throttled: bool,
    /// Because a delayed dequeue ends: the entity blocked before, and stayed on the queue to compete until now.
    pub finish: bool,
}

/// A policy of the fair class: what it does on one queue.
pub trait Flavor: Clone {
    /// State that the policy keeps for each entity.
    type Entity: Clone + Default + std::fmt::Debug;
    /// State that the policy keeps for each queue.
    type Queue: Clone + Default + std::fmt::Debug;
    /// Is a queue throttled by a decision only while one of its entities is current?
    const THROTTLES_CURRENT_ONLY: bool;
    /// Does a group whose queue is empty keep its weight?
    const EMPTY_KEEPS_WEIGHT: bool;
    /// Are all groups of one period refilled at once? Otherwise each has an offset of its own.
    const REFILLS_TOGETHER: bool;
    /// Least time between two updates of a group's load by one of its queues.
    const CONTRIBUTES_EVERY: Span;
    /// Does who sleeps keep what it was behind the others, however long? Otherwise only as long as they do not run on.
    const KEEPS_LAG: bool;

    /// The order of a queue, as a virtual time.
    fn key(entity: &Entity<Self::Entity>) -> u64;
    /// The most by which an entity of the weight of nice 0 that left may be behind the others, or ahead of them, as it comes back.
    fn lag_max(fair: &Fair<Self>) -> Span;
    /// An entity that is not queued is so much behind the others, in virtual time.
    fn set_lag(entity: &mut Entity<Self::Entity>, lag: Span);
    /// Has it left, and competes on?
    fn delayed(_entity: &Entity<Self::Entity>) -> bool {
        false
    }
    /// A new entity, or one that is as good as new, stands where its queue does.
    fn fresh(fair: &mut Fair<Self>, e: EntityId);
    /// An entity that is not queued leaves its queue for one on another CPU or of another group.
    fn leave(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Charges the current entity of a queue.
    fn update(fair: &mut Fair<Self>, q: QueueId, now: Time);
    /// Puts an entity on its queue. `moved`: it comes from another CPU.
    fn enqueue(fair: &mut Fair<Self>, e: EntityId, now: Time, wakeup: bool, moved: bool);
    /// Takes it off. False: it competes on.
    fn dequeue(fair: &mut Fair<Self>, e: EntityId, now: Time, leaving: Leaving) -> bool;
    /// A delayed entity wakes.
    fn requeue(_fair: &mut Fair<Self>, _e: EntityId) {}
    /// Follows what was taken out of a queue's tree, or put into it.
    fn in_tree(_fair: &mut Fair<Self>, _q: QueueId, _e: EntityId, _there: bool) {}
    /// The entity to run; it may be a delayed one.
    fn pick(fair: &mut Fair<Self>, q: QueueId) -> EntityId;
    /// An entity becomes current.
    fn begin(_entity: &mut Entity<Self::Entity>) {}
    /// The tick's own test, once the queue is up to date.
    fn tick(fair: &mut Fair<Self>, e: EntityId);
    /// Should a task that woke preempt the running one? The running one first, and their entities on one queue.
    fn preempts(fair: &mut Fair<Self>, tasks: [Task; 2], entities: [EntityId; 2], now: Time) -> bool;
    /// The current task yields; others are there.
    fn yielded(fair: &mut Fair<Self>, e: EntityId, now: Time);
    /// The weight of a queued or absent entity changes.
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
    /// The CPUs that are asked to decide.
    flags: CpuMask,
    /// The CPUs that run what is above the fair class.
    above: CpuMask,
    /// Are there several CPUs, so that loads are averaged?
    pub(super) several: bool,
    /// Is, or was, any task or group idle?
    pub(super) any_idle: bool,
    /// By CPU, the queues whose groups know of a load there.
    pub(super) contributing: Table<PcpuId, Vec<QueueId>>,
    /// Groups whose timers have changed.
    pub(super) retimed: Vec<GroupId>,
}

impl<F: Flavor> Fair<F> {
    /// A host of so many CPUs without groups and tasks.
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

    /// Adds a group; the one around it is there.
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

    /// Adds a task, blocked, that was last on a CPU; `None`: in the root group.
    pub fn add_task(&mut self, cpu: PcpuId, group: Option<GroupId>, class: Class, nice: i8) -> TaskId {
        let task = TaskId(self.tasks.len() as u32);
        let queue = self.queue_of(group, cpu);
        let weight = Weight::of_task(class, nice);
        self.any_idle |= class == Class::Idle;
        let entity = self.add_entity(Kind::Task(task), queue, weight, class == Class::Idle);
        self.tasks.push(Task { entity, group, class })
    }

    /// A task that is there no more begins anew, blocked, on a CPU.
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

    /// The queue of a group on a CPU, which is made when it is first wanted.
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

    /// Sets where a blocked task stands, by the virtual run time that it has once it has run for so many ns.
    pub fn reaches(&mut self, task: TaskId, virtual_time: u64, ran: u64) {
        let entity = &mut self.entities[self.tasks[task].entity];
        entity.v = virtual_time.wrapping_sub(entity.weight.virtual_time(ran));
    }

    /// A blocked task is by so much virtual time behind the others.
    pub fn set_lag(&mut self, task: TaskId, lag: Span) {
        let e = self.tasks[task].entity;
        F::set_lag(&mut self.entities[e], lag);
    }

    /// A group in which nothing is queued is so on a CPU.
    pub fn set_group_lag(&mut self, group: GroupId, cpu: PcpuId, lag: Span) {
        let q = self.queue_of(Some(group), cpu);
        if let Some((_, e)) = self.queues[q].group {
            F::set_lag(&mut self.entities[e], lag);
        }
    }

    // ---- events ----

    /// A blocked task wakes on a CPU.
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

    /// A task that left its queue without blocking joins one on a CPU.
    pub fn join(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        let Task { entity, group, .. } = self.tasks[task];
        let to = self.queue_of(group, cpu);
        self.settle_on(entity, to, now);
        self.enqueue_upwards(entity, now, false, false, 1);
        self.test_preemption(now, cpu, task);
    }

    /// A queued task leaves its queue: `sleep`: since it does not want to run; otherwise it will join another one.
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

    /// A task that has blocked competes no more.
    pub fn finish(&mut self, now: Time, task: TaskId) {
        let e = self.tasks[task].entity;
        if self.entities[e].queued {
            let finish = Leaving { sleep: true, finish: true, ..Leaving::default() };
            self.dequeue_task(e, now, finish);
        }
    }

    /// Puts a task into another group.
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

    /// Moves an entity that is not queued to a queue. True: it is another one.
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

    /// Is a task queued, and wants to run?
    pub fn is_queued(&self, task: TaskId) -> bool {
        let entity = &self.entities[self.tasks[task].entity];
        entity.queued && !F::delayed(entity)
    }

    /// Does a task that has blocked compete on?
    pub fn is_delayed(&self, task: TaskId) -> bool {
        F::delayed(&self.entities[self.tasks[task].entity])
    }

    /// Is its group, or one around it, throttled where it is?
    pub fn is_held_back(&self, task: TaskId) -> bool {
        self.is_throttled(self.entities[self.tasks[task].entity].queue)
    }

    /// Changes the tunables.
    pub fn tune(&mut self, flavor: F, settings: Settings) {
        (self.flavor, self.settings) = (flavor, settings);
    }

    /// May a task that waits be moved to a CPU: is nothing around it throttled, here or there?
    pub fn may_move(&self, task: TaskId, to: PcpuId) -> bool {
        let Task { entity, group, .. } = self.tasks[task];
        let there = group.and_then(|group| self.groups[group].queues[to]);
        !self.is_throttled(self.entities[entity].queue) && there.is_none_or(|q| !self.is_throttled(q))
    }

    /// Is it its queue's next buddy?
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

    /// The running task blocks; a decision follows.
    pub fn block(&mut self, now: Time, cpu: PcpuId) {
        if let Some(task) = self.running[cpu] {
            self.dequeue_task(self.tasks[task].entity, now, Leaving { sleep: true, ..Leaving::default() });
        }
    }

    /// The running task yields; a decision follows.
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

    /// The running task of a CPU gives way to another one that waits on some CPU.
    pub fn yield_to(&mut self, now: Time, cpu: PcpuId, target: TaskId) {
        self.prefer(self.tasks[target].entity);
        self.yielded(now, cpu);
        let other = self.cpu_of(target);
        if other != cpu {
            self.flags.insert(other);
        }
    }

    /// A tick on a CPU that is not idle.
    pub fn tick(&mut self, now: Time, cpu: PcpuId) {
        let mut up = self.running[cpu].map(|task| self.tasks[task].entity);
        while let Some(e) = up {
            F::update(self, self.entities[e].queue, now);
            self.refresh_weight(e, now);
            F::tick(self, e);
            up = self.parent(e);
        }
    }

    /// Is the CPU asked to decide?
    pub fn flagged(&self, cpu: PcpuId) -> bool {
        self.flags.contains(cpu)
    }

    /// The CPUs that are.
    pub fn flags(&self) -> &CpuMask {
        &self.flags
    }

    /// Does a CPU run what is above the fair class?
    pub fn set_above(&mut self, cpu: PcpuId, on: bool) {
        self.above.put(cpu, on);
    }

    /// Tasks on a CPU that could run, those that blocked and compete on included.
    pub fn tasks_on(&self, cpu: PcpuId) -> u32 {
        self.queues[QueueId(cpu.0)].tasks
    }

    /// Asks it, or takes that back.
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

    /// Switches to a task, `None`: to none of the fair class. What is flagged on the way is dropped.
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

    /// The entity of the group that an entity is in.
    pub(super) fn parent(&self, e: EntityId) -> Option<EntityId> {
        self.queues[self.entities[e].queue].group.map(|(_, entity)| entity)
    }

    /// An entity and all those above it.
    fn upwards(&self, e: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        std::iter::successors(Some(e), |&e| self.parent(e))
    }

    /// 0: none; 1: on the root queue.
    fn depth(&self, e: Option<EntityId>) -> u32 {
        e.map_or(0, |e| self.queues[self.entities[e].queue].depth + 1)
    }

    /// Is a queue throttled, or one above it?
    pub(super) fn is_throttled(&self, q: QueueId) -> bool {
        let above = self.queues[q].group.map(|(_, entity)| entity);
        let mut above = above.into_iter().flat_map(|e| self.upwards(e));
        self.queues[q].throttled || above.any(|e| self.queues[self.entities[e].queue].throttled)
    }

    /// Enqueues an entity and those above it that are not queued, and counts `tasks` more up to the root or a throttled queue.
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

    /// Dequeues a task, or what is delayed.
    fn dequeue_task(&mut self, first: EntityId, now: Time, leaving: Leaving) {
        let tasks = u32::from(matches!(self.entities[first].kind, Kind::Task(_)));
        self.dequeue_upwards(first, now, leaving, tasks);
    }

    /// Dequeues an entity and those above it whose queues are empty then, and counts `tasks` less up to the root or a
    /// throttled queue.
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

    /// Charges the current entity of a queue for the time since it was last charged. The answer is it, and that time, ns.
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

    /// Asks a CPU that runs no fair task to decide, unless it runs something better.
    pub(super) fn flag_idle(&mut self, cpu: PcpuId) {
        if !self.above.contains(cpu) {
            self.flags.insert(cpu);
        }
    }

    pub(super) fn cpu(&self, e: EntityId) -> PcpuId {
        self.queues[self.entities[e].queue].cpu
    }

    /// Asks the CPU of a queue to decide.
    pub(super) fn flag(&mut self, q: QueueId) {
        self.flags.insert(self.queues[q].cpu);
    }

    // ---- buddies ----

    /// Names an entity and all above it next buddies of their queues.
    pub(super) fn prefer(&mut self, e: EntityId) {
        self.name(e, |queue| &mut queue.next);
    }

    /// Names an entity and all above it buddies of their queues.
    pub(super) fn name(&mut self, e: EntityId, buddy: Buddy<F>) {
        let mut up = Some(e);
        while let Some(e) = up.filter(|&e| self.entities[e].queued && !self.entities[e].idle) {
            *buddy(&mut self.queues[self.entities[e].queue]) = Some(e);
            up = self.parent(e);
        }
    }

    /// An entity, and those above it as long as they are, is nobody's buddy any more.
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

    /// Puts an entity into its queue's tree, behind those of the same key.
    pub(super) fn put_into_tree(&mut self, e: EntityId) {
        let q = self.entities[e].queue;
        let key = F::key(&self.entities[e]);
        let behind = |&other: &EntityId| ahead(F::key(&self.entities[other]), key) <= 0;
        let position = self.queues[q].tree.partition_point(behind);
        self.queues[q].tree.insert(position, e);
        F::in_tree(self, q, e, true);
    }

    /// Takes it out, if it is there.
    pub(super) fn take_out_of_tree(&mut self, e: EntityId) {
        let q = self.entities[e].queue;
        if let Some(position) = self.queues[q].tree.iter().position(|&other| other == e) {
            self.queues[q].tree.remove(position);
            F::in_tree(self, q, e, false);
        }
    }

    /// Counts an entity as queued.
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

    /// Counts it as queued no more.
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
