//! Load on several CPUs: load averages of queues, and from them the part of a group's shares that it has on each CPU.

use vcpulab_host::{GroupId, PcpuId, Time};

use super::cfs_rq::{CfsRqId, EntityId, Kind, Task, TaskId};
use super::hierarchy::{Fair, Flavor};
use super::load_weight::{LoadWeight, scale_load_down};
use super::pelt::FRACTION_BITS;
use super::task_group::{MIN_SHARES, ONE_TASK, SharesMultiplier};

/// Divisor of a queue's load: a smaller change does not change the group's load.
const NOTICED: u64 = 64;

impl<F: Flavor> Fair<F> {
    /// Advances the averages of an entity and its queue to `now`. Called before the averaged values change.
    pub(super) fn update_load_avg(&mut self, e: EntityId, now: Time) {
        if self.smp {
            let entity = &mut self.entities[e];
            entity.load_avg.update(now, if entity.on_rq { entity.load.scaled_down() } else { 0 });
            let cfs_rq = &mut self.cfs_rqs[entity.cfs_rq];
            cfs_rq.load_avg.update(now, scale_load_down(cfs_rq.load));
        }
    }

    fn update_cfs_rq_load_avg(&mut self, q: CfsRqId, now: Time) {
        let cfs_rq = &mut self.cfs_rqs[q];
        cfs_rq.load_avg.update(now, scale_load_down(cfs_rq.load));
    }

    /// Advances the average number of runnable tasks of a queue. Called before the number changes.
    pub(super) fn update_runnable_avg(&mut self, q: CfsRqId, now: Time) {
        // The average of a root queue is never read.
        let of_group = q.index() >= self.curr.len();
        if self.smp && of_group && self.flavor.counts_runnable() {
            let cfs_rq = &mut self.cfs_rqs[q];
            let runnable = cfs_rq.h_nr_running - cfs_rq.h_nr_delayed;
            cfs_rq.runnable_avg.update(now, u64::from(runnable) * ONE_TASK);
        }
    }

    /// Updates the weight of a group on a CPU: its shares, times the fraction that its load there is of its whole load.
    pub(super) fn update_cfs_group(&mut self, e: EntityId, now: Time) {
        let Kind::Group(own) = self.entities[e].kind else { return };
        let Some((group, _)) = self.cfs_rqs[own].group else { return };
        let multiplied = self.smp && self.flavor.multiplies_shares();
        let spread = self.groups[group].cfs_rq_count > 1 || multiplied;
        if spread {
            self.update_cfs_rq_load_avg(own, now);
            self.update_runnable_avg(own, now);
            self.update_tg_load_avg(own, group, now);
        }
        let keeps = F::EMPTY_KEEPS_WEIGHT && self.cfs_rqs[own].load == 0;
        if keeps || self.throttled_hierarchy(own) {
            return;
        }
        let shares = if spread { self.calc_group_shares(own, group) } else { self.groups[group].shares };
        if shares != self.entities[e].load.weight {
            F::reweight_entity(self, e, LoadWeight::of_sum(shares), now);
        }
    }

    fn calc_group_shares(&self, own: CfsRqId, group: GroupId) -> u64 {
        let (cfs_rq, group) = (&self.cfs_rqs[own], &self.groups[group]);
        let shares = match self.flavor.shares_multiplier(group.runnable_avg, u64::from(self.online)) {
            SharesMultiplier::Undivided => return group.shares,
            SharesMultiplier::Divided(multiple) => group.shares * multiple / ONE_TASK,
            SharesMultiplier::DividedAtMost(multiple, most) => (group.shares * multiple / ONE_TASK).min(most),
        };
        let load = scale_load_down(cfs_rq.load).max(cfs_rq.load_avg.whole());
        let total = group.load_avg - cfs_rq.tg_load_avg_contrib + load;
        if total == 0 {
            return MIN_SHARES;
        }
        let part = match shares.checked_mul(load) {
            Some(product) => product / total,
            None => (u128::from(shares) * u128::from(load) / u128::from(total)) as u64,
        };
        part.clamp(MIN_SHARES, shares)
    }

    /// Updates a queue's part in its group's load, if the queue's average load has changed enough.
    fn update_tg_load_avg(&mut self, own: CfsRqId, group: GroupId, now: Time) {
        let cfs_rq = &mut self.cfs_rqs[own];
        let (load, before) = (cfs_rq.load_avg.whole(), cfs_rq.tg_load_avg_contrib);
        let (runnable, runnable_before) = (cfs_rq.runnable_avg.whole(), cfs_rq.tg_runnable_contrib);
        let soon = now - cfs_rq.last_update_tg_load_avg < F::TG_LOAD_AVG_INTERVAL && before != 0;
        let changed = |value: u64, before: u64| value.abs_diff(before) > before / NOTICED;
        if soon || !(changed(load, before) || changed(runnable, runnable_before)) {
            return;
        }
        (cfs_rq.tg_load_avg_contrib, cfs_rq.last_update_tg_load_avg) = (load, now);
        cfs_rq.tg_runnable_contrib = runnable;
        let group = &mut self.groups[group];
        group.load_avg = group.load_avg - before + load;
        group.runnable_avg = group.runnable_avg - runnable_before + runnable;
        if before == 0 {
            self.leaf_cfs_rqs[cfs_rq.cpu].push(own);
        }
    }

    /// Advances the averages of all queues of a CPU to `now`, also of those without events.
    pub(super) fn update_blocked_averages(&mut self, now: Time, cpu: PcpuId) {
        let mut i = 0;
        while let Some(&q) = self.leaf_cfs_rqs[cpu].get(i) {
            self.update_cfs_rq_load_avg(q, now);
            self.update_runnable_avg(q, now);
            if let Some((group, _)) = self.cfs_rqs[q].group {
                self.update_tg_load_avg(q, group, now);
            }
            if self.cfs_rqs[q].tg_load_avg_contrib == 0 {
                self.leaf_cfs_rqs[cpu].swap_remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Moves an entity's load average to another queue, and its part of the averages of the groups around both.
    pub(super) fn migrate_load_avg(&mut self, e: EntityId, to: CfsRqId, now: Time) {
        if !self.smp {
            return;
        }
        self.update_load_avg(e, now);
        let mut part = self.entities[e].load_avg.exact();
        let (mut from, mut to) = (self.entities[e].cfs_rq, to);
        loop {
            self.update_cfs_rq_load_avg(from, now);
            self.update_cfs_rq_load_avg(to, now);
            let whole = self.cfs_rqs[from].load_avg.exact();
            self.cfs_rqs[from].load_avg.shift(part, false);
            self.cfs_rqs[to].load_avg.shift(part, true);
            let [Some((group, left)), Some((_, joined))] = [from, to].map(|q| self.cfs_rqs[q].group) else {
                return;
            };
            for q in [from, to] {
                self.update_tg_load_avg(q, group, now);
            }
            self.update_load_avg(left, now);
            self.update_load_avg(joined, now);
            let of_group = u128::from(self.entities[left].load_avg.exact());
            part = (of_group * u128::from(part.min(whole)) / u128::from(whole.max(1))) as u64;
            self.entities[left].load_avg.shift(part, false);
            self.entities[joined].load_avg.shift(part, true);
            (from, to) = (self.entities[left].cfs_rq, self.entities[joined].cfs_rq);
        }
    }

    /// The load average of a CPU, as a whole number as in the kernel: differences of fractions do not count.
    pub(super) fn cpu_load(&mut self, cpu: PcpuId, now: Time) -> u64 {
        let root = CfsRqId(cpu.0);
        self.update_cfs_rq_load_avg(root, now);
        self.cfs_rqs[root].load_avg.whole()
    }

    /// The load average of a task as seen from the root queue of its CPU, as a whole number.
    pub(super) fn task_h_load(&mut self, task: TaskId, now: Time) -> u64 {
        let Task { entity: e, .. } = self.tasks[task];
        self.update_load_avg(e, now);
        let mut load = u128::from(self.entities[e].load_avg.exact());
        let mut q = self.entities[e].cfs_rq;
        while let Some((_, group)) = self.cfs_rqs[q].group {
            self.update_cfs_rq_load_avg(q, now);
            self.update_load_avg(group, now);
            let whole = u128::from(self.cfs_rqs[q].load_avg.exact()) + 1;
            load = load * u128::from(self.entities[group].load_avg.exact()) / whole;
            q = self.entities[group].cfs_rq;
        }
        load as u64 >> FRACTION_BITS
    }

    /// Fraction of the time that a task is runnable, as a part of `whole`.
    pub(super) fn task_util(&mut self, task: TaskId, now: Time, whole: u64) -> u64 {
        let e = self.tasks[task].entity;
        self.update_load_avg(e, now);
        let entity = &self.entities[e];
        entity.load_avg.whole() * whole / entity.load.scaled_down().max(1)
    }

    /// Whether a CPU runs only `SCHED_IDLE` tasks.
    pub(super) fn sched_idle_cpu(&self, cpu: PcpuId) -> bool {
        self.any_idle && self.h_nr_running(cpu) > 0 && self.sched_idle_cfs_rq(CfsRqId(cpu.0))
    }

    fn sched_idle_cfs_rq(&self, q: CfsRqId) -> bool {
        let cfs_rq = &self.cfs_rqs[q];
        let current = cfs_rq.curr.filter(|&e| self.entities[e].on_rq);
        cfs_rq.timeline.iter().copied().chain(current).all(|e| {
            let entity = &self.entities[e];
            entity.idle || matches!(entity.kind, Kind::Group(own) if self.sched_idle_cfs_rq(own))
        })
    }
}
