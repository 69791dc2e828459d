//! The flat hierarchy of 7.3: only tasks compete, all tasks of a CPU on its root queue, each by its effective weight. Groups are counted, weighed and limited level by level as before.

use vcpulab_host::{Class, PcpuId, Time};

use super::cfs_rq::{CfsRqId, EntityId, Kind, Task, TaskId, vruntime_diff};
use super::eevdf::Eevdf;
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::load_weight::{NICE_0_LOAD, NICE_0_SHIFT};
use super::task_group::MIN_SHARES;

impl Fair<Eevdf> {
    /// The root queue of the CPU that an entity is on.
    pub(super) fn root_cfs_rq(&self, e: EntityId) -> CfsRqId {
        CfsRqId(self.cpu_of(e).0)
    }

    /// Whether the hierarchy of groups is flat.
    pub(super) fn is_flat(&self) -> bool {
        self.flavor.rules.flat
    }

    /// Weight of a task among all tasks of its CPU: the product of the shares of the task and of the groups around it.
    fn effective_weight(&self, task: EntityId) -> u64 {
        self.upwards(task).fold(NICE_0_LOAD, |weight, e| {
            let entity = &self.entities[e];
            let cfs_rq = &self.cfs_rqs[entity.cfs_rq];
            let product = weight * entity.load.weight;
            let share = match cfs_rq.group {
                Some(_) => product / cfs_rq.load.max(1),
                None => product >> NICE_0_SHIFT,
            };
            share.max(MIN_SHARES)
        })
    }

    /// Gives a queued task the effective weight that it has now.
    fn update_effective_weight(&mut self, task: EntityId) {
        let (before, weight) = (self.entities[task].policy.weight, self.effective_weight(task));
        if weight != before {
            self.reweight_queued(task, [before, weight], |entity| entity.policy.weight = weight);
        }
    }

    /// Charges the running task of a CPU.
    pub(super) fn update_running(&mut self, cpu: PcpuId, now: Time) {
        if let Some(e) = self.cfs_rqs[CfsRqId(cpu.0)].policy.curr {
            Eevdf::update_curr(self, self.entities[e].cfs_rq, now);
        }
    }

    /// Queues a task, and counts it in the groups around it.
    pub(super) fn enqueue_flat(&mut self, task: EntityId, now: Time) {
        self.update_running(self.cpu_of(task), now);
        let mut up = Some(task);
        while let Some(e) = up {
            let q = self.entities[e].cfs_rq;
            Eevdf::update_curr(self, q, now);
            self.update_cfs_group(e, now);
            if !self.entities[e].on_rq {
                self.count_entity(e, now);
                if self.cfs_rqs[q].nr_running == 1 {
                    self.check_enqueue_throttle(q, now);
                }
            }
            self.update_runnable_avg(q, now);
            self.cfs_rqs[q].h_nr_running += 1;
            up = self.parent_entity(e);
        }
        let weight = self.effective_weight(task);
        self.entities[task].policy.set_weight(weight);
        self.place_entity(task);
        self.insert_into_timeline(task);
    }

    /// Takes a task off the root queue, and out of the counts of the groups around it. The dequeue may be delayed.
    pub(super) fn dequeue_flat(&mut self, task: EntityId, now: Time, flags: DequeueFlags) {
        self.clear_buddies(task);
        self.update_running(self.cpu_of(task), now);
        let lag = if flags.delayed { self.lag_after_delay(task) } else { self.entity_lag(task) };
        if flags.delayed {
            self.note_finished(task);
        }
        let may_delay = flags.sleep && !flags.delayed && !flags.special;
        if may_delay && !self.entity_eligible(task) {
            let request = &mut self.entities[task].policy;
            (request.vlag, request.sched_delayed) = (lag, true);
            self.count_delayed(task, now, true);
            return;
        }
        if self.entities[task].policy.sched_delayed {
            self.count_delayed(task, now, false);
        }
        let root = self.root_cfs_rq(task);
        if self.cfs_rqs[root].policy.curr != Some(task) {
            self.remove_from_timeline(task);
        }
        let mut up = Some(task);
        let mut leaves = true;
        while let Some(e) = up {
            let q = self.entities[e].cfs_rq;
            Eevdf::update_curr(self, q, now);
            if leaves {
                self.uncount_entity(e, now);
                leaves = self.cfs_rqs[q].load == 0;
                if self.cfs_rqs[q].nr_running == 0 {
                    self.return_cfs_rq_runtime(q, now);
                }
            }
            self.update_cfs_group(e, now);
            self.update_runnable_avg(q, now);
            self.cfs_rqs[q].h_nr_running -= 1;
            up = self.parent_entity(e);
        }
        let entity = &mut self.entities[task];
        (entity.policy.vlag, entity.policy.sched_delayed) = (lag, false);
        if !flags.sleep {
            entity.policy.deadline = entity.policy.deadline.wrapping_sub(entity.vruntime);
            entity.policy.rel_deadline = true;
        }
    }

    /// Counts a task whose dequeue is delayed in the groups around it, or no longer: it is not runnable.
    pub(super) fn count_delayed(&mut self, task: EntityId, now: Time, delayed: bool) {
        let mut up = Some(task);
        while let Some(e) = up {
            let q = self.entities[e].cfs_rq;
            self.update_runnable_avg(q, now);
            let count = &mut self.cfs_rqs[q].h_nr_delayed;
            *count = if delayed { *count + 1 } else { *count - 1 };
            up = self.parent_entity(e);
        }
    }

    /// The task that a CPU should run. Delayed dequeues that are due end.
    pub(super) fn pick_flat(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        let root = CfsRqId(cpu.0);
        loop {
            if self.cfs_rqs[root].h_nr_running == 0 {
                return None;
            }
            if self.cfs_rqs[root].policy.curr.is_some_and(|e| self.entities[e].on_rq) {
                self.update_running(cpu, now);
            }
            let picked = Eevdf::pick_next_entity(self, root);
            if self.entities[picked].policy.sched_delayed {
                self.finish_flat(picked, now);
                continue;
            }
            let Kind::Task(task) = self.entities[picked].kind else { return None };
            return Some(task);
        }
    }

    /// Ends a delayed dequeue.
    fn finish_flat(&mut self, task: EntityId, now: Time) {
        let delayed = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
        self.dequeue_flat(task, now, delayed);
    }

    /// Tests whether a task that woke preempts the running one.
    pub(super) fn wakeup_preempt_flat(&mut self, now: Time, cpu: PcpuId, running: Task, woken: Task) {
        let (current, waking) = (running.entity, woken.entity);
        if woken.throttled {
            return;
        }
        let idle = [running, woken].map(|task| task.class == Class::Idle);
        if idle == [true, false] {
            self.flavor.end_protection(&mut self.entities[current]);
            self.need_resched.insert(cpu);
            return;
        }
        let mut up = Some(current);
        while let Some(e) = up {
            Eevdf::update_curr(self, self.entities[e].cfs_rq, now);
            up = self.parent_entity(e);
        }
        let root = CfsRqId(cpu.0);
        let competes = idle != [false, true] && woken.class != Class::Batch;
        if competes && self.slice(waking) < self.slice(current) {
            let preempts = self.pick_eevdf(root, false) == waking || self.entity_eligible(waking);
            if preempts {
                let buddy = self.cfs_rqs[root].next.filter(|&next| self.slice(next) < self.slice(waking));
                if buddy.is_none() {
                    self.set_next_buddy(waking);
                }
                self.flavor.end_protection(&mut self.entities[current]);
                self.need_resched.insert(cpu);
                return;
            }
        }
        let preempts =
            competes && self.pick_flat(now, cpu).is_some_and(|picked| self.tasks[picked].entity == waking);
        if preempts {
            self.flavor.end_protection(&mut self.entities[current]);
            self.need_resched.insert(cpu);
            return;
        }
        let avg_vruntime = self.avg_vruntime(root);
        let slice = self.virtual_slice(current, self.min_slice(root));
        let own = self.entities[current].vruntime;
        let from = if vruntime_diff(own, avg_vruntime) < 0 { own } else { avg_vruntime };
        self.limit_protection(current, from.wrapping_add(slice));
    }

    /// Puts an entity of the running task back: the task returns to the root queue, if it is queued.
    pub(super) fn put_flat(&mut self, e: EntityId) {
        let root = self.root_cfs_rq(e);
        if self.cfs_rqs[root].policy.curr == Some(e) {
            if self.entities[e].on_rq {
                self.insert_into_timeline(e);
            }
            self.cfs_rqs[root].policy.curr = None;
        }
    }

    /// Completes a switch to a task: its effective weight, and its protection.
    pub(super) fn set_flat(&mut self, task: EntityId) {
        let root = self.root_cfs_rq(task);
        self.cfs_rqs[root].policy.curr = Some(task);
        self.update_effective_weight(task);
        self.set_protect_slice(task);
    }

    /// Completes a tick: the effective weight of the running task.
    pub(super) fn tick_flat(&mut self, cpu: PcpuId) {
        if let Some(e) = self.cfs_rqs[CfsRqId(cpu.0)].policy.curr {
            self.update_effective_weight(e);
        }
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{GroupConfig, Span};

    use super::super::eevdf::Rules;
    use super::super::hierarchy::Settings;
    use super::*;

    const CPU: PcpuId = PcpuId(0);

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A task of a group and a hog outside of it, awake on one of two CPUs.
    fn task_beside_hog() -> (Fair<Eevdf>, TaskId) {
        let eevdf = Eevdf::with_base_slice(Rules::V7_3, Span::from_us(700));
        let mut fair = Fair::new(eevdf, 2, Settings::DEFAULT);
        let group = fair.add_group(&GroupConfig::NEW);
        let task = fair.add_task(CPU, Some(group), Class::Other, 0);
        let hog = fair.add_task(CPU, None, Class::Other, 0);
        fair.wake(at(0), CPU, hog);
        fair.wake(at(0), CPU, task);
        (fair, task)
    }

    /// A task of a group waits for 100 ms, runs, and blocks ahead of its share. For the next 64 ms it competes and is not runnable: the
    /// group's average falls to a quarter. It rises again once the task has woken.
    #[test]
    fn a_delayed_task_is_not_runnable() {
        let (mut fair, task) = task_beside_hog();
        fair.set_next_task(at(100_000), CPU, Some(task));
        fair.task_tick(at(100_300), CPU);
        fair.block(at(100_600), CPU);
        assert!(fair.is_delayed(task));
        let q = fair.entities[fair.tasks[task].entity].cfs_rq;
        let average = |fair: &mut Fair<Eevdf>, us| {
            fair.update_runnable_avg(q, at(us));
            fair.cfs_rqs[q].runnable_avg.whole()
        };
        let blocked = average(&mut fair, 100_600);
        assert!((850..950).contains(&blocked), "{blocked}");
        let later = average(&mut fair, 100_600 + 67_109);
        assert!((blocked / 4 - 2..=blocked / 4 + 2).contains(&later), "{later} of {blocked}");
        fair.wake(at(170_000), CPU, task);
        assert!(average(&mut fair, 250_000) > 2 * later);
        assert_eq!(fair.cfs_rqs[q].h_nr_delayed, 0);
    }

    #[test]
    fn a_delayed_task_is_counted_where_it_competes() {
        let (mut fair, task) = task_beside_hog();
        fair.set_next_task(at(0), CPU, Some(task));
        fair.block(at(600), CPU);
        let delayed = |fair: &Fair<Eevdf>| [0, 1].map(|cpu| fair.cfs_rqs[CfsRqId(cpu)].h_nr_delayed);
        assert_eq!(delayed(&fair), [1, 0]);
        fair.pick_next_task(at(600), CPU);
        fair.move_delayed(at(700), PcpuId(1), task);
        assert_eq!(delayed(&fair), [0, 1]);
        fair.wake(at(800), PcpuId(1), task);
        assert_eq!(delayed(&fair), [0, 0]);
    }
}
