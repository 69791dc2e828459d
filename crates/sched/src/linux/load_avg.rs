//! Load on several CPUs: load averages of queues, and from them the part of a group's shares that it has on each CPU.

use vcpulab_host::{GroupId, PcpuId, Time};

use super::cfs_rq::{EntityId, Kind, QueueId, Task, TaskId};
use super::hierarchy::{Fair, Flavor};
use super::load_weight::{Weight, plain};
use super::pelt::FRACTION;

/// The least weight of a group on a CPU.
const LEAST: u64 = 2;

/// Least change of a queue's load, as a part of it, that its group is told of.
const NOTICED: u64 = 64;

impl<F: Flavor> Fair<F> {
    /// Advances the averages of an entity and its queue to `now`. Called before the averaged values change.
    pub(super) fn average(&mut self, e: EntityId, now: Time) {
        if self.several {
            let entity = &mut self.entities[e];
            entity.average.advance(now, if entity.queued { entity.weight.plain() } else { 0 });
            let queue = &mut self.queues[entity.queue];
            queue.average.advance(now, plain(queue.load));
        }
    }

    fn average_queue(&mut self, q: QueueId, now: Time) {
        let queue = &mut self.queues[q];
        queue.average.advance(now, plain(queue.load));
    }

    /// Updates the weight of a group on a CPU: the fraction of its shares that its load there is of its whole load
    /// (`update_cfs_group`).
    pub(super) fn refresh_weight(&mut self, e: EntityId, now: Time) {
        let Kind::Group(own) = self.entities[e].kind else { return };
        let Some((group, _)) = self.queues[own].group else { return };
        let spread = self.groups[group].made_on > 1;
        if spread {
            self.average_queue(own, now);
            self.contribute(own, group, now);
        }
        let keeps = F::EMPTY_KEEPS_WEIGHT && self.queues[own].load == 0;
        if keeps || self.is_throttled(own) {
            return;
        }
        let shares = if spread { self.part_of_shares(own, group) } else { self.groups[group].shares };
        if shares != self.entities[e].weight.full {
            F::reweigh(self, e, Weight::of_sum(shares), now);
        }
    }

    fn part_of_shares(&self, own: QueueId, group: GroupId) -> u64 {
        let (queue, group) = (&self.queues[own], &self.groups[group]);
        let load = plain(queue.load).max(queue.average.whole());
        let total = group.contributed - queue.contributed + load;
        if total == 0 {
            return LEAST;
        }
        ((u128::from(group.shares) * u128::from(load) / u128::from(total)) as u64).clamp(LEAST, group.shares)
    }

    /// Updates a queue's part in its group's load, if the queue's average load has changed enough (`update_tg_load_avg`).
    fn contribute(&mut self, own: QueueId, group: GroupId, now: Time) {
        let queue = &mut self.queues[own];
        let (load, before) = (queue.average.whole(), queue.contributed);
        let soon = now - queue.contributed_at < F::CONTRIBUTES_EVERY && before != 0;
        if load.abs_diff(before) <= before / NOTICED || soon {
            return;
        }
        (queue.contributed, queue.contributed_at) = (load, now);
        let contributed = &mut self.groups[group].contributed;
        *contributed = *contributed - before + load;
        if before == 0 {
            self.contributing[queue.cpu].push(own);
        }
    }

    /// Advances the averages of all queues of a CPU to `now`, also of those without events.
    pub(super) fn decay(&mut self, now: Time, cpu: PcpuId) {
        let mut i = 0;
        while let Some(&q) = self.contributing[cpu].get(i) {
            self.average_queue(q, now);
            if let Some((group, _)) = self.queues[q].group {
                self.contribute(q, group, now);
            }
            if self.queues[q].contributed == 0 {
                self.contributing[cpu].swap_remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Moves an entity's load average to another queue, and its part of the averages of the groups around both.
    pub(super) fn move_load(&mut self, e: EntityId, to: QueueId, now: Time) {
        if !self.several {
            return;
        }
        self.average(e, now);
        let mut part = self.entities[e].average.exact();
        let (mut from, mut to) = (self.entities[e].queue, to);
        loop {
            self.average_queue(from, now);
            self.average_queue(to, now);
            let whole = self.queues[from].average.exact();
            self.queues[from].average.shift(part, false);
            self.queues[to].average.shift(part, true);
            let [Some((group, left)), Some((_, joined))] = [from, to].map(|q| self.queues[q].group) else {
                return;
            };
            for q in [from, to] {
                self.contribute(q, group, now);
            }
            self.average(left, now);
            self.average(joined, now);
            let of_group = u128::from(self.entities[left].average.exact());
            part = (of_group * u128::from(part.min(whole)) / u128::from(whole.max(1))) as u64;
            self.entities[left].average.shift(part, false);
            self.entities[joined].average.shift(part, true);
            (from, to) = (self.entities[left].queue, self.entities[joined].queue);
        }
    }

    /// The load average of a CPU, as a whole number as in the kernel: differences of fractions do not count.
    pub(super) fn load_on(&mut self, cpu: PcpuId, now: Time) -> u64 {
        let root = QueueId(cpu.0);
        self.average_queue(root, now);
        self.queues[root].average.whole()
    }

    /// The load average of a task as seen from the root queue of its CPU, as a whole number (`task_h_load`).
    pub(super) fn load_of(&mut self, task: TaskId, now: Time) -> u64 {
        let Task { entity: e, .. } = self.tasks[task];
        self.average(e, now);
        let mut load = u128::from(self.entities[e].average.exact());
        let mut q = self.entities[e].queue;
        while let Some((_, group)) = self.queues[q].group {
            self.average_queue(q, now);
            self.average(group, now);
            let whole = u128::from(self.queues[q].average.exact()) + 1;
            load = load * u128::from(self.entities[group].average.exact()) / whole;
            q = self.entities[group].queue;
        }
        load as u64 >> FRACTION
    }

    /// Fraction of the time that a task is runnable, as a part of `whole`.
    pub(super) fn runnable_part(&mut self, task: TaskId, now: Time, whole: u64) -> u64 {
        let e = self.tasks[task].entity;
        self.average(e, now);
        let entity = &self.entities[e];
        entity.average.whole() * whole / entity.weight.plain().max(1)
    }

    /// Whether a CPU runs only `SCHED_IDLE` tasks.
    pub(super) fn only_idle(&self, cpu: PcpuId) -> bool {
        self.any_idle && self.tasks_on(cpu) > 0 && self.all_idle(QueueId(cpu.0))
    }

    fn all_idle(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let current = queue.current.filter(|&e| self.entities[e].queued);
        queue.tree.iter().copied().chain(current).all(|e| {
            let entity = &self.entities[e];
            entity.idle || matches!(entity.kind, Kind::Group(own) if self.all_idle(own))
        })
    }
}
