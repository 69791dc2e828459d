//! CFS, Linux's fair scheduler up to 6.5: the entity with the least virtual run time runs.

use vcpulab_host::{Class, Span, Time};

use super::cfs_rq::{Entity, EntityId, Kind, QueueId, Task, ahead, later};
use super::hierarchy::{Fair, Flavor, Leaving};
use super::load_weight::{Weight, ns};

/// Virtual time at which queues start.
const BEGINNING: u64 = 0u64.wrapping_sub(1 << 20);

/// A sleep so long that virtual times cannot be compared any more.
const LONG_SLEEP: Span = Span::from_ns(1 << 53);

/// Tunables of CFS.
#[derive(Clone, Copy, Debug)]
pub struct Cfs {
    /// The period in which every task should run once (`sched_latency`).
    pub latency: Span,
    /// The least slice (`sched_min_granularity`).
    pub min_granularity: Span,
    /// Virtual run time by which a waking task must be behind the running task to preempt it (`sched_wakeup_granularity`).
    pub wakeup_granularity: Span,
    /// The least slice of an idle entity beside others that are not.
    pub idle_min_granularity: Span,
}

impl Cfs {
    /// The kernel's defaults on one CPU; the first three are multiplied by `factor`.
    pub const fn scaled(factor: i64) -> Self {
        Cfs {
            latency: Span::from_us(6_000 * factor),
            min_granularity: Span::from_us(750 * factor),
            wakeup_granularity: Span::from_us(1_000 * factor),
            idle_min_granularity: Span::from_us(750),
        }
    }

    /// The greatest number of tasks for which the period need not be extended.
    fn tasks_in_latency(&self) -> u64 {
        ns(self.latency).div_ceil(ns(self.min_granularity).max(1))
    }
}

/// State that CFS keeps for each queue.
#[derive(Clone, Debug)]
pub struct Own {
    /// The least virtual run time of the queue's entities (`min_vruntime`); never decreases.
    min_v: u64,
}

impl Default for Own {
    fn default() -> Self {
        Own { min_v: BEGINNING }
    }
}

impl Fair<Cfs> {
    fn advance(&mut self, q: QueueId) {
        let queue = &self.queues[q];
        let current = queue.current.map(|e| &self.entities[e]).filter(|entity| entity.queued).map(|e| e.v);
        let first = queue.tree.first().map(|&e| self.entities[e].v);
        let candidate = match (current, first) {
            (Some(a), Some(b)) => Some(if ahead(a, b) < 0 { a } else { b }),
            (a, b) => a.or(b),
        };
        if let Some(candidate) = candidate {
            self.queues[q].own.min_v = later(self.queues[q].own.min_v, candidate);
        }
    }

    fn place(&mut self, e: EntityId, now: Time) {
        let Entity { idle, queue, v, charged_at, .. } = self.entities[e];
        let least = if idle { self.flavor.min_granularity } else { self.flavor.latency };
        let placed = self.queues[queue].own.min_v.wrapping_sub(ns(least) / 2);
        let long = now - charged_at > LONG_SLEEP;
        self.entities[e].v = if long { placed } else { later(v, placed) };
    }

    /// Slice of an entity: its share of the period by weight, level by level (`sched_slice`).
    fn slice(&self, e: EntityId) -> u64 {
        let root = QueueId(self.cpu(e).0);
        let tasks = u64::from(self.queues[root].tasks) + u64::from(!self.entities[e].queued);
        let least = ns(self.flavor.min_granularity);
        let mut slice = ns(self.flavor.latency);
        if tasks > self.flavor.tasks_in_latency() {
            slice = tasks * least;
        }
        let mut up = Some(e);
        while let Some(e) = up {
            let entity = &self.entities[e];
            let missing = if entity.queued { 0 } else { entity.weight.full };
            let load = Weight::of_sum(self.queues[entity.queue].load + missing);
            slice = load.part(slice, entity.weight.full);
            up = self.parent(e);
        }
        let entity = &self.entities[e];
        let alone = self.queues[entity.queue].load == entity.weight.full;
        let least = if entity.idle && !alone { ns(self.flavor.idle_min_granularity) } else { least };
        slice.max(least)
    }

    /// Compares two entities on a queue: 1 if `b` should preempt `a`; 0 if `b` is behind, but not by the wakeup
    /// granularity; −1 otherwise.
    fn late(&self, a: EntityId, b: EntityId) -> i32 {
        let delta = ahead(self.entities[a].v, self.entities[b].v);
        let enough = self.entities[b].weight.virtual_time(ns(self.flavor.wakeup_granularity));
        match delta {
            ..=0 => -1,
            _ => i32::from(delta > enough.cast_signed()),
        }
    }
}

impl Flavor for Cfs {
    type Entity = ();
    type Queue = Own;
    const THROTTLES_CURRENT_ONLY: bool = true;
    const EMPTY_KEEPS_WEIGHT: bool = false;
    const REFILLS_TOGETHER: bool = true;
    const CONTRIBUTES_EVERY: Span = Span::ZERO;

    fn key(entity: &Entity<()>) -> u64 {
        entity.v
    }

    fn lag_max(fair: &Fair<Self>) -> Span {
        fair.flavor.latency / 2
    }

    fn set_lag(entity: &mut Entity<()>, lag: Span) {
        entity.v = entity.v.wrapping_add_signed(lag.ns().wrapping_neg());
    }

    fn fresh(fair: &mut Fair<Self>, e: EntityId) {
        fair.entities[e].v = fair.queues[fair.entities[e].queue].own.min_v;
    }

    fn leave(fair: &mut Fair<Self>, e: EntityId) {
        let min_v = fair.queues[fair.entities[e].queue].own.min_v;
        fair.entities[e].v = fair.entities[e].v.wrapping_sub(min_v);
    }

    fn update(fair: &mut Fair<Self>, q: QueueId, now: Time) {
        if let Some((_, ran)) = fair.charge_current(q, now) {
            fair.advance(q);
            fair.charge_queue(q, now, ran);
        }
    }

    fn enqueue(fair: &mut Fair<Self>, e: EntityId, now: Time, wakeup: bool, moved: bool) {
        let q = fair.entities[e].queue;
        let relative = !wakeup || moved;
        let current = fair.queues[q].current == Some(e);
        let absolute = |fair: &mut Fair<Self>| {
            let min_v = fair.queues[q].own.min_v;
            fair.entities[e].v = fair.entities[e].v.wrapping_add(min_v);
        };
        if relative && current {
            absolute(fair);
        }
        Self::update(fair, q, now);
        if relative && !current {
            absolute(fair);
        }
        fair.refresh_weight(e, now);
        if wakeup {
            fair.place(e, now);
        }
        fair.count_in(e, now);
    }

    fn dequeue(fair: &mut Fair<Self>, e: EntityId, now: Time, leaving: Leaving) -> bool {
        let q = fair.entities[e].queue;
        Self::update(fair, q, now);
        fair.clear_buddies(e);
        fair.count_out(e, now);
        if !leaving.sleep {
            Self::leave(fair, e);
        }
        if fair.queues[q].nr == 0 {
            fair.last_dequeued(q, now);
        }
        fair.refresh_weight(e, now);
        fair.advance(q);
        true
    }

    fn pick(fair: &mut Fair<Self>, q: QueueId) -> EntityId {
        let queue = &fair.queues[q];
        let v = |e: EntityId| fair.entities[e].v;
        let current = queue.current.filter(|&e| fair.entities[e].queued);
        let before = |a: EntityId, b: EntityId| ahead(v(a), v(b)) < 0;
        let first = queue.tree.first().copied();
        let left = match (first, current) {
            (Some(first), Some(current)) if before(current, first) => current,
            (Some(first), _) => first,
            (None, current) => current.expect("an entity is queued"),
        };
        let mut chosen = left;
        if queue.skip == Some(left) {
            let second = if Some(left) == current {
                first
            } else {
                let after = queue.tree.get(1).copied();
                match (after, current) {
                    (None, current) => current,
                    (Some(after), Some(current)) if before(current, after) => Some(current),
                    (after, _) => after,
                }
            };
            chosen = second.filter(|&second| fair.late(second, left) < 1).unwrap_or(left);
        }
        let buddy = |buddy: Option<EntityId>| buddy.filter(|&buddy| fair.late(buddy, left) < 1);
        buddy(queue.next).or_else(|| buddy(queue.last)).unwrap_or(chosen)
    }

    fn tick(fair: &mut Fair<Self>, e: EntityId) {
        let q = fair.entities[e].queue;
        if fair.queues[q].nr <= 1 {
            return;
        }
        let ran = fair.entities[e].sum - fair.entities[e].sum_before;
        let slice = fair.slice(e);
        if ran > slice {
            fair.flag(q);
            fair.clear_buddies(e);
            return;
        }
        if ran < ns(fair.flavor.min_granularity) {
            return;
        }
        let first = fair.queues[q].tree.first().map(|&first| fair.entities[first].v);
        if first.is_some_and(|first| ahead(fair.entities[e].v, first) > slice.cast_signed()) {
            fair.flag(q);
        }
    }

    fn preempts(
        fair: &mut Fair<Self>,
        [running, waking]: [Task; 2],
        [current, woken]: [EntityId; 2],
        now: Time,
    ) -> bool {
        match (running.class, waking.class) {
            (Class::Idle, Class::Idle) => return false,
            (Class::Idle, _) => return true,
            (_, Class::Batch | Class::Idle) => return false,
            _ => {}
        }
        let idle = |e: EntityId| fair.entities[e].idle;
        if idle(current) != idle(woken) {
            return idle(current);
        }
        Self::update(fair, fair.entities[woken].queue, now);
        if fair.late(current, woken) != 1 {
            return false;
        }
        fair.prefer(woken);
        let crowded =
            u64::from(fair.queues[fair.entities[running.entity].queue].nr) >= fair.flavor.tasks_in_latency();
        if crowded && matches!(fair.entities[current].kind, Kind::Task(_)) {
            fair.name(running.entity, |queue| &mut queue.last);
        }
        true
    }

    fn yielded(fair: &mut Fair<Self>, e: EntityId, _now: Time) {
        let mut up = Some(e);
        while let Some(e) = up {
            fair.queues[fair.entities[e].queue].skip = Some(e);
            up = fair.parent(e);
        }
    }

    fn reweigh(fair: &mut Fair<Self>, e: EntityId, weight: Weight, now: Time) {
        let q = fair.entities[e].queue;
        fair.average(e, now);
        if fair.entities[e].queued {
            if fair.queues[q].current == Some(e) {
                Self::update(fair, q, now);
            }
            let load = fair.queues[q].load - fair.entities[e].weight.full;
            fair.queues[q].load = load + weight.full;
        }
        fair.entities[e].weight = weight;
    }
}
