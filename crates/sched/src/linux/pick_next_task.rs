//! Decisions: which task a CPU runs, the switch to it, and the flags that ask for a decision (`need_resched`).

use vcpulab_host::{CpuMask, PcpuId, Time};

use super::cfs_rq::{CfsRqId, EntityId, Kind, TaskId};
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::task_group::Throttle;

impl<F: Flavor> Fair<F> {
    /// Whether a CPU is flagged to decide.
    pub fn need_resched(&self, cpu: PcpuId) -> bool {
        self.need_resched.contains(cpu)
    }

    /// All flagged CPUs.
    pub fn resched_cpus(&self) -> &CpuMask {
        &self.need_resched
    }

    /// Sets or clears the flag of a CPU.
    pub fn set_need_resched(&mut self, cpu: PcpuId, on: bool) {
        self.need_resched.put(cpu, on);
    }

    /// Flags the CPU of a queue.
    pub(super) fn resched_curr(&mut self, q: CfsRqId) {
        self.need_resched.insert(self.cfs_rqs[q].cpu);
    }

    /// Flags a CPU that runs no fair task, unless it runs a thread of a class above.
    pub(super) fn resched_idle_cpu(&mut self, cpu: PcpuId) {
        if !self.higher_class.contains(cpu) {
            self.need_resched.insert(cpu);
        }
    }

    /// Notes whether a CPU runs a thread of a class above the fair one.
    pub fn set_higher_class(&mut self, cpu: PcpuId, on: bool) {
        self.higher_class.put(cpu, on);
    }

    /// The task that a CPU runs, if it is a fair one.
    pub fn curr(&self, cpu: PcpuId) -> Option<TaskId> {
        self.curr[cpu]
    }

    /// Tests whether a task that woke preempts the running one.
    pub(super) fn wakeup_preempt(&mut self, now: Time, cpu: PcpuId, woken: TaskId) {
        let Some(running) = self.curr[cpu] else { return self.resched_idle_cpu(cpu) };
        let waking = self.tasks[woken];
        if self.flavor.is_flat() {
            if running != woken {
                F::wakeup_preempt_flat(self, now, cpu, [self.tasks[running], waking]);
            }
            return;
        }
        let throttled = self.throttled_hierarchy(self.entities[waking.entity].cfs_rq);
        if running == woken || self.need_resched(cpu) || throttled {
            return;
        }
        let current = self.tasks[running];
        let (mut se, mut pse) = (current.entity, waking.entity);
        while self.entities[se].cfs_rq != self.entities[pse].cfs_rq {
            let (se_depth, pse_depth) = (self.depth(Some(se)), self.depth(Some(pse)));
            let up = |fair: &Self, e: EntityId| fair.parent_entity(e).unwrap_or(e);
            if se_depth >= pse_depth {
                se = up(self, se);
            }
            if pse_depth >= se_depth {
                pse = up(self, pse);
            }
        }
        if F::check_preempt_wakeup(self, [current, waking], [se, pse], now) {
            self.need_resched.insert(cpu);
        }
    }

    /// Decides what a CPU runs, and switches to it.
    pub fn pick_next_task(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        let picked = self.pick_task(now, cpu);
        self.set_next_task(now, cpu, picked);
        picked
    }

    /// Decides what a CPU should run.
    pub fn pick_task(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        if self.flavor.is_flat() {
            return F::pick_flat(self, now, cpu);
        }
        let root = CfsRqId(cpu.0);
        'again: loop {
            let mut q = root;
            if self.cfs_rqs[q].nr_running == 0 {
                return None;
            }
            loop {
                let current = self.cfs_rqs[q].curr;
                if current.is_some_and(|e| self.entities[e].on_rq) {
                    F::update_curr(self, q, now);
                }
                let tested = current.is_some() || !F::THROTTLES_CURRENT_ONLY;
                if tested && self.check_cfs_rq_runtime(q, now) && self.has_left_parent(q) {
                    if F::THROTTLES_CURRENT_ONLY {
                        self.put_prev_task(now, cpu);
                    }
                    continue 'again;
                }
                let picked = F::pick_next_entity(self, q);
                if F::sched_delayed(&self.entities[picked]) {
                    let delayed = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                    self.dequeue_task_or_group(picked, now, delayed);
                    continue 'again;
                }
                match self.entities[picked].kind {
                    Kind::Task(task) => return Some(task),
                    Kind::Group(own) => q = own,
                }
            }
        }
    }

    /// Switches a CPU to a task, or to no fair task (`None`). Flags raised meanwhile are dropped.
    pub fn set_next_task(&mut self, now: Time, cpu: PcpuId, to: Option<TaskId>) {
        let from = self.curr[cpu];
        let changes = from != to || from.is_none();
        if changes {
            self.put_prev_set_next(from.map(|t| self.tasks[t].entity), to.map(|t| self.tasks[t].entity), now);
            self.curr[cpu] = to;
        }
        self.throttle_setup_work(cpu);
        self.need_resched.remove(cpu);
        match to {
            Some(_) if changes => self.hrtick_start(now, cpu),
            Some(_) => {}
            None => self.hrtick_clear(cpu),
        }
    }

    /// Switches a CPU from one entity and its ancestors to another and its ancestors, up to their common queue.
    pub(super) fn put_prev_set_next(
        &mut self,
        mut from: Option<EntityId>,
        mut to: Option<EntityId>,
        now: Time,
    ) {
        let task = to.filter(|_| self.flavor.is_flat());
        let cfs_rq = |fair: &Self, e: Option<EntityId>| e.map(|e| fair.entities[e].cfs_rq);
        while from.is_some() || to.is_some() {
            let (depth_from, depth_to) = (self.depth(from), self.depth(to));
            let meet = cfs_rq(self, from) == cfs_rq(self, to);
            if let Some(e) = from.filter(|_| depth_from >= depth_to) {
                self.put_prev_entity(e, now);
                from = self.parent_entity(e);
            }
            if let Some(e) = to.filter(|_| depth_to >= depth_from) {
                self.set_next_entity(e, now);
                to = self.parent_entity(e);
            }
            if meet {
                break;
            }
        }
        if let Some(task) = task {
            F::set_flat(self, task);
        }
    }

    /// Takes the running task off its CPU: none of its entities is current any more.
    fn put_prev_task(&mut self, now: Time, cpu: PcpuId) {
        let from = self.curr[cpu].take().map(|task| self.tasks[task].entity);
        self.put_prev_set_next(from, None, now);
    }

    /// Takes the current entity of a queue off the CPU, back into the timeline if it is queued.
    fn put_prev_entity(&mut self, e: EntityId, now: Time) {
        let q = self.entities[e].cfs_rq;
        if self.entities[e].on_rq {
            F::update_curr(self, q, now);
        }
        if self.flavor.is_flat() {
            F::put_flat(self, e);
        } else {
            self.check_cfs_rq_runtime(q, now);
            if self.entities[e].on_rq {
                self.insert_into_timeline(e);
            }
        }
        self.cfs_rqs[q].curr = None;
    }

    /// Makes an entity the current one of its queue.
    fn set_next_entity(&mut self, e: EntityId, now: Time) {
        let competes = !self.flavor.is_flat() || matches!(self.entities[e].kind, Kind::Task(_));
        if competes {
            self.clear_buddies(e);
            if self.entities[e].on_rq {
                self.remove_from_timeline(e);
            }
        }
        let entity = &mut self.entities[e];
        entity.exec_start = now;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
        let q = entity.cfs_rq;
        self.cfs_rqs[q].curr = Some(e);
        F::protect_slice(self, e);
        if self.flavor.throttle() == Throttle::TaskWhenCharged {
            self.account_cfs_rq_runtime(q, now, 0);
        }
    }
}
