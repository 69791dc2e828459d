//! Throttling: what stops the tasks of a queue that has used up its CPU time, until its group's pool has more.
//!
//! Up to 6.17 the queue leaves its parent's queue, with all its tasks. From 6.18 on the queue stays, and each task that runs
//! there leaves it when it returns to user mode: a vCPU before it enters its guest. Each further task of the group is
//! so switched to once more, for the microseconds that it takes to leave the kernel.

use vcpulab_host::{CpuMask, GroupId, PcpuId, Span, ThreadMode, Time};

use super::bandwidth::MIN_RUNTIME;
use super::cfs_rq::{CfsRqId, Task, TaskId};
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::task_group::Throttle;

impl<F: Flavor> Fair<F> {
    /// Whether a queue and its tasks do not compete, because the queue or an ancestor is throttled.
    pub(super) fn throttled_hierarchy(&self, q: CfsRqId) -> bool {
        self.cfs_rqs[q].throttle_count > 0 && self.flavor.throttle() == Throttle::Queue
    }

    /// Whether a queue is throttled and its entity has left the parent's queue.
    pub(super) fn has_left_parent(&self, q: CfsRqId) -> bool {
        self.cfs_rqs[q].throttled && self.flavor.throttle() == Throttle::Queue
    }

    /// Throttles a queue that has used up its CPU time.
    pub(super) fn throttle_cfs_rq(&mut self, q: CfsRqId, now: Time) {
        let cfs_rq = &mut self.cfs_rqs[q];
        let Some((group, entity)) = cfs_rq.group else { return };
        (cfs_rq.throttled, cfs_rq.throttled_clock) = (true, now);
        let (cpu, tasks) = (cfs_rq.cpu, cfs_rq.h_nr_running);
        if let Some(limit) = &mut self.groups[group].cfs_bandwidth {
            limit.throttled_cfs_rqs.push(q);
        }
        self.tg_throttle_down(group, cpu);
        if self.flavor.throttle() == Throttle::Queue {
            let flags = DequeueFlags { sleep: true, throttled: true, ..DequeueFlags::default() };
            self.dequeue_entities(entity, now, flags, tasks);
        } else if self.cfs_rqs[q].curr.is_some() && self.returns_to_user_mode(cpu) {
            self.throttle_work.insert(cpu);
        }
    }

    /// Ends the throttling of a queue that has CPU time again.
    pub(super) fn unthrottle_cfs_rq(&mut self, now: Time, q: CfsRqId) {
        self.cfs_rqs[q].throttled = false;
        let Some((group, entity)) = self.cfs_rqs[q].group else { return };
        self.groups[group].throttling.throttled_ns += now - self.cfs_rqs[q].throttled_clock;
        let cpu = self.cfs_rqs[q].cpu;
        self.tg_unthrottle_up(now, group, cpu);
        if self.cfs_rqs[q].load == 0 {
            return;
        }
        if self.flavor.throttle() == Throttle::Queue {
            if F::sched_delayed(&self.entities[entity]) {
                let delayed = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                F::dequeue_entity(self, entity, now, delayed);
            }
            self.enqueue_entities(entity, now, true, false, self.cfs_rqs[q].h_nr_running);
        }
        if self.curr(cpu).is_none() {
            self.resched_idle_cpu(cpu);
        }
    }

    /// Counts a throttled queue on the queues of a group and the groups in it.
    fn tg_throttle_down(&mut self, group: GroupId, cpu: PcpuId) {
        // A group has a queue wherever a group in it has one.
        let Some(q) = self.groups[group].cfs_rqs[cpu] else { return };
        self.cfs_rqs[q].throttle_count += 1;
        for place in 0..self.groups[group].children.len() {
            self.tg_throttle_down(self.groups[group].children[place], cpu);
        }
    }

    /// Counts a throttled queue less on the queues of a group and the groups in it, the deepest first. Tasks that no limit stops
    /// any longer return to their queues, first the task that left last.
    fn tg_unthrottle_up(&mut self, now: Time, group: GroupId, cpu: PcpuId) {
        let Some(q) = self.groups[group].cfs_rqs[cpu] else { return };
        for place in 0..self.groups[group].children.len() {
            self.tg_unthrottle_up(now, self.groups[group].children[place], cpu);
        }
        self.cfs_rqs[q].throttle_count -= 1;
        while self.cfs_rqs[q].throttle_count == 0
            && let Some(task) = self.cfs_rqs[q].throttled_limbo.pop()
        {
            self.tasks[task].throttled = false;
            self.enqueue_entities(self.tasks[task].entity, now, true, false, 1);
            self.hrtick_update(now, cpu);
        }
    }

    /// Marks the task that a CPU has just chosen if its queue is throttled: it leaves the queue when it returns to user mode.
    pub(super) fn throttle_setup_work(&mut self, cpu: PcpuId) {
        if self.flavor.throttle() != Throttle::Queue {
            let q = |task: TaskId| self.entities[self.tasks[task].entity].cfs_rq;
            let throttled = self.curr[cpu].is_some_and(|task| self.cfs_rqs[q(task)].throttle_count > 0);
            self.throttle_work.put(cpu, throttled && self.returns_to_user_mode(cpu));
        }
    }

    /// Whether a CPU's running task returns to user mode; a task in the kernel is charged, and no limit stops it there.
    fn returns_to_user_mode(&self, cpu: PcpuId) -> bool {
        self.curr[cpu].is_some_and(|task| self.tasks[task].mode == ThreadMode::User)
    }

    /// CPUs whose running task leaves its queue when it returns to user mode ([`Fair::throttle_task`]).
    pub fn throttle_work_cpus(&self) -> &CpuMask {
        &self.throttle_work
    }

    /// Handles the return of a CPU's running task to user mode (`throttle_cfs_rq_work`). True: a limit stops the task; a decision
    /// follows.
    pub fn throttle_task(&mut self, now: Time, cpu: PcpuId) -> bool {
        if !self.throttle_work.contains(cpu) {
            return false;
        }
        self.throttle_work.remove(cpu);
        let Some(task) = self.curr[cpu] else { return false };
        let Task { entity, throttled, .. } = self.tasks[task];
        if throttled || !self.is_queued(task) {
            return false;
        }
        let q = self.entities[entity].cfs_rq;
        if self.cfs_rqs[q].throttle_count == 0 {
            return false;
        }
        let flags = DequeueFlags { sleep: true, special: true, ..DequeueFlags::default() };
        self.dequeue_entities(entity, now, flags, 1);
        self.tasks[task].throttled = true;
        self.cfs_rqs[q].throttled_limbo.push(task);
        // The charge that came with it may have marked the task again.
        self.throttle_work.remove(cpu);
        true
    }

    /// Stops a CPU's running task as if the limit around it that has the least CPU time left were used up. False: no limit stops
    /// tasks there. For replays: the kernel stopped the task.
    pub fn exhaust_limit(&mut self, now: Time, cpu: PcpuId) -> bool {
        let Some(task) = self.curr[cpu].filter(|&task| !self.tasks[task].throttled) else { return false };
        let mut around = vec![self.entities[self.tasks[task].entity].cfs_rq];
        while let Some((_, above)) = around.last().and_then(|&q| self.cfs_rqs[q].group) {
            around.push(self.entities[above].cfs_rq);
        }
        let limited = around.into_iter().filter(|&q| self.is_limited(q));
        let least = limited.min_by_key(|&q| self.cfs_rqs[q].runtime_remaining);
        let Some(q) = least.filter(|_| self.flavor.throttle() != Throttle::Queue) else { return false };
        let left = &mut self.cfs_rqs[q].runtime_remaining;
        *left = (*left).min(Span::ZERO);
        if !self.cfs_rqs[q].throttled {
            self.throttle_cfs_rq(q, now);
        }
        self.throttle_work.insert(cpu);
        self.throttle_task(now, cpu)
    }

    /// Ends the throttling of the queues around a task, as if their limits had CPU time again. For replays: the kernel runs the task.
    pub fn replenish_limits(&mut self, now: Time, task: TaskId) {
        let mut up = Some(self.entities[self.tasks[task].entity].cfs_rq);
        while let Some(q) = up {
            if self.cfs_rqs[q].throttled {
                if let Some(limit) = self.cfs_bandwidth_of(q) {
                    limit.throttled_cfs_rqs.retain(|&other| other != q);
                }
                let left = &mut self.cfs_rqs[q].runtime_remaining;
                *left = (*left).max(MIN_RUNTIME);
                self.unthrottle_cfs_rq(now, q);
            }
            up = self.cfs_rqs[q].group.map(|(_, above)| self.entities[above].cfs_rq);
        }
    }

    fn is_limited(&self, q: CfsRqId) -> bool {
        self.cfs_rqs[q].group.is_some_and(|(group, _)| self.groups[group].cfs_bandwidth.is_some())
    }

    /// Forgets that a limit stops a task: the task blocks or moves.
    pub(super) fn dequeue_throttled_task(&mut self, task: TaskId) {
        self.tasks[task].throttled = false;
        let q = self.entities[self.tasks[task].entity].cfs_rq;
        self.cfs_rqs[q].throttled_limbo.retain(|&other| other != task);
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{Class, GroupConfig};

    use super::super::eevdf::{Eevdf, Rules};
    use super::super::hierarchy::Settings;
    use super::super::task_group::Bandwidth;
    use super::*;

    const CPU: PcpuId = PcpuId(0);

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A CPU on which two tasks of a limited group, in a group without a limit, are awake. 5 ms of the group's 8 ms of each
    /// 100 ms are with the queue from the first charge on.
    struct Limited {
        fair: Fair<Eevdf>,
        group: GroupId,
        tasks: [TaskId; 2],
        other: TaskId,
    }

    impl Limited {
        fn new(throttle: Throttle) -> Self {
            let rules = Rules { throttle, ..Rules::V6_12 };
            let mut fair = Fair::new(Eevdf::with_base_slice(rules, Span::from_us(700)), 1, Settings::DEFAULT);
            let outer = fair.add_group(&GroupConfig::NEW);
            let limit = GroupConfig {
                parent: Some(outer),
                quota: Some(Span::from_ms(8)),
                period: Span::from_ms(100),
                ..GroupConfig::NEW
            };
            let group = fair.add_group(&limit);
            let tasks = [0, 1].map(|_| fair.add_task(CPU, Some(group), Class::Other, 0));
            let other = fair.add_task(CPU, None, Class::Other, 0);
            for task in tasks {
                fair.wake(at(0), CPU, task);
            }
            assert_eq!(fair.pick_next_task(at(0), CPU), Some(tasks[0]));
            Limited { fair, group, tasks, other }
        }

        /// Uses up the limit at 10 ms; both tasks then stop one after the other.
        fn stop_all(&mut self) {
            self.fair.task_tick(at(10_000), CPU);
            for us in [10_010, 10_020] {
                self.fair.pick_next_task(at(us), CPU);
                self.fair.throttle_task(at(us), CPU);
            }
            assert_eq!(self.fair.pick_next_task(at(10_020), CPU), None);
        }

        fn stopped(&self) -> Vec<TaskId> {
            let q = self.fair.groups[self.group].cfs_rqs[CPU].expect("tasks have run");
            self.fair.cfs_rqs[q].throttled_limbo.clone()
        }

        fn is_throttled(&self) -> bool {
            let q = self.fair.groups[self.group].cfs_rqs[CPU].expect("tasks have run");
            self.fair.cfs_rqs[q].throttled
        }
    }

    /// The queue is throttled at the decision that follows a tick; each task then leaves the kernel before it stops.
    #[test]
    fn each_task_is_stopped_as_it_returns_to_user_mode() {
        let Limited { mut fair, tasks: [first, second], other, group } = Limited::new(Throttle::Task);
        fair.task_tick(at(10_000), CPU);
        assert!(fair.need_resched(CPU) && fair.throttle_work_cpus().is_empty());
        let chosen = fair.pick_next_task(at(10_002), CPU).expect("both still compete");
        assert!(fair.throttle_work_cpus().contains(CPU));
        let left = if chosen == first { second } else { first };
        assert!(fair.throttle_task(at(10_010), CPU));
        assert_eq!(fair.h_nr_running(CPU), 1);
        assert_eq!(fair.pick_next_task(at(10_010), CPU), Some(left));
        fair.wake(at(10_012), CPU, other);
        assert!(fair.throttle_task(at(10_020), CPU) && !fair.throttle_task(at(10_020), CPU));
        assert_eq!(fair.pick_next_task(at(10_020), CPU), Some(other));
        assert!(fair.throttle_work_cpus().is_empty());
        assert!(fair.is_throttled(first) && fair.is_queued(first));
        // A wake-up by other means does not let a stopped task run.
        fair.wake(at(20_000), CPU, first);
        assert_eq!(fair.h_nr_running(CPU), 1);
        fair.period_timer(at(100_000), group);
        assert_eq!(fair.h_nr_running(CPU), 3);
        assert!(!fair.is_throttled(first) && !fair.is_throttled(second));
    }

    #[test]
    fn the_last_stopped_task_returns_first() {
        let mut host = Limited::new(Throttle::Task);
        host.fair.task_tick(at(10_000), CPU);
        host.fair.pick_next_task(at(10_002), CPU);
        for us in [10_010, 10_020] {
            assert!(host.fair.throttle_task(at(us), CPU));
            host.fair.pick_next_task(at(us), CPU);
        }
        let stopped = host.stopped();
        assert_eq!((stopped.len(), host.fair.curr(CPU)), (2, None));
        for task in host.tasks {
            // Both are placed alike, so that they run in the order of their return.
            host.fair.set_vlag(task, Span::ZERO);
        }
        host.fair.period_timer(at(100_000), host.group);
        assert!(host.fair.need_resched(CPU), "the CPU was idle");
        assert_eq!(host.fair.pick_next_task(at(100_000), CPU), Some(stopped[1]));
    }

    /// A task that wakes while its queue is throttled runs until it returns to user mode, or blocks before.
    #[test]
    fn what_wakes_in_a_throttled_queue_runs_in_the_kernel() {
        let mut host = Limited::new(Throttle::Task);
        let third = host.fair.add_task(CPU, Some(host.group), Class::Other, 0);
        host.fair.task_tick(at(10_000), CPU);
        for us in [10_010, 10_020] {
            host.fair.pick_next_task(at(us), CPU);
            assert!(host.fair.throttle_task(at(us), CPU));
        }
        assert_eq!(host.fair.pick_next_task(at(10_020), CPU), None);
        for us in [11_000, 12_000] {
            host.fair.wake(at(us), CPU, third);
            assert_eq!(host.fair.pick_next_task(at(us), CPU), Some(third));
            host.fair.block(at(us + 50), CPU);
            assert_eq!(host.fair.pick_next_task(at(us + 50), CPU), None);
        }
        assert_eq!(host.stopped().len(), 2);
        host.fair.wake(at(13_000), CPU, third);
        host.fair.pick_next_task(at(13_000), CPU);
        assert!(host.fair.throttle_task(at(13_010), CPU));
        assert_eq!(host.stopped().len(), 3);
    }

    /// A charge throttles the queue: no decision has to pass it, and none is asked for.
    #[test]
    fn from_7_2_on_a_charge_throttles() {
        for throttle in [Throttle::Task, Throttle::TaskWhenCharged] {
            let mut host = Limited::new(throttle);
            host.fair.dequeue_task(at(1000), host.tasks[1], true);
            host.fair.set_need_resched(CPU, false);
            host.fair.task_tick(at(10_000), CPU);
            let when_charged = throttle == Throttle::TaskWhenCharged;
            assert_eq!(host.is_throttled(), when_charged);
            assert_eq!(host.fair.need_resched(CPU), !when_charged);
            assert_eq!(host.fair.throttle_task(at(10_005), CPU), when_charged);
        }
    }

    /// A replay in which the kernel runs a task that is throttled here goes on from the kernel's choice.
    #[test]
    fn a_throttled_task_runs_if_the_kernel_ran_it() {
        for throttle in [Throttle::Queue, Throttle::Task, Throttle::TaskWhenCharged] {
            let mut host = Limited::new(throttle);
            host.stop_all();
            let task = host.tasks[0];
            assert!(host.fair.is_throttled(task));
            host.fair.replenish_limits(at(11_000), task);
            assert!(!host.fair.is_throttled(task) && !host.is_throttled());
            assert_eq!(host.fair.h_nr_running(CPU), 2);
            host.fair.set_next_task(at(11_000), CPU, Some(task));
            host.fair.block(at(11_100), CPU);
            // The block may be delayed.
            assert!(!host.fair.is_queued(task) && (1..=2).contains(&host.fair.h_nr_running(CPU)));
        }
    }

    /// A waiting task that leaves a throttled group is chosen even if the CPU idles.
    #[test]
    fn a_task_that_leaves_a_throttled_group_runs() {
        for throttle in [Throttle::Queue, Throttle::Task] {
            let mut host = Limited::new(throttle);
            host.stop_all();
            host.fair.move_to_group(at(11_000), host.tasks[0], None);
            assert!(host.fair.need_resched(CPU));
            assert_eq!(host.fair.pick_next_task(at(11_000), CPU), Some(host.tasks[0]));
        }
    }

    #[test]
    fn no_limit_stops_what_never_leaves_the_kernel() {
        for throttle in [Throttle::Task, Throttle::TaskWhenCharged] {
            let mut host = Limited::new(throttle);
            host.tasks.into_iter().for_each(|task| host.fair.set_mode(task, ThreadMode::Kernel));
            for tick in 1..20 {
                host.fair.task_tick(at(4_000 * tick), CPU);
                assert!(host.fair.pick_next_task(at(4_000 * tick + 2), CPU).is_some());
                assert!(!host.fair.throttle_task(at(4_000 * tick + 10), CPU));
            }
            assert!(host.is_throttled() && host.stopped().is_empty());
        }
        let mut host = Limited::new(Throttle::Queue);
        host.tasks.into_iter().for_each(|task| host.fair.set_mode(task, ThreadMode::Kernel));
        host.fair.task_tick(at(12_000), CPU);
        assert_eq!(host.fair.pick_next_task(at(12_002), CPU), None, "up to 6.17 the queue leaves");
    }

    #[test]
    fn a_task_returns_once_no_limit_around_it_is_used_up() {
        let mut host = Limited::new(Throttle::Task);
        let inner = Bandwidth { quota: Span::from_ms(1), period: Span::from_ms(10), burst: Span::ZERO };
        let outer = host.fair.groups[host.group].parent.expect("it was made in one");
        host.fair.set_bandwidth(at(0), outer, Some(Bandwidth { quota: Span::from_ms(6), ..inner }));
        host.fair.task_tick(at(10_000), CPU);
        for us in [10_010, 10_020] {
            host.fair.pick_next_task(at(us), CPU);
            assert!(host.fair.throttle_task(at(us), CPU));
        }
        // Of 10 ms, 6 are paid for: the outer group's debt is gone after the next refill, the inner group's after 100 ms.
        host.fair.period_timer(at(20_000), outer);
        assert_eq!(host.stopped().len(), 2);
        host.fair.period_timer(at(100_000), host.group);
        assert!(host.stopped().is_empty());
    }
}
