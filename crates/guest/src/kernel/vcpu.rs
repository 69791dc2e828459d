//! A vCPU as its guest kernel sees it: the current task, the run queue and the sleepers.
//!
//! The task with the least virtual run time goes first. So a task that waited for something goes before those that only
//! compute, as long as it takes no more than its part. (General-purpose kernels aim at the same; here all tasks weigh
//! alike.)
//!
//! A task that holds a spin lock or spins for one is not preempted, as in any kernel (Linux: `preempt_disable`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcpulab_host::{NEVER, Span, Time};

use super::idle_tick::Tick;
use super::task::{Rank, State, Task};
use crate::ids::TaskId;

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub online: bool,
    /// The task that runs, what is left of its time slice, and since when it computes.
    pub current: Option<TaskId>,
    pub slice: Span,
    pub began: Time,
    /// Other runnable tasks by rank, virtual run time and sequence number; the first runs next.
    pub queue: BinaryHeap<Reverse<(Rank, Span, u64, TaskId)>>,
    /// The last sequence number given, and whether a task has woken since the current one was compared with them.
    sequence: u64,
    woken: bool,
    /// The virtual run time of a task that always wants to compute, ns.
    pub vruntime: Span,
    sleepers: BinaryHeap<Reverse<(Time, TaskId)>>,
    /// Whether the vCPU is idle, and no work has come since.
    pub idle: bool,
    /// Whether the vCPU has woken since it was idle, so that its kernel has work to do before it goes idle again.
    pub winds_down: bool,
    /// The rest of the kernel's own work, which goes before any task, ns.
    pub own_work: Span,
    /// The tick, if the kernel has one while a vCPU is idle.
    pub tick: Option<Box<Tick>>,
    /// A full time slice.
    slice_ns: Span,
}

impl Vcpu {
    /// A vCPU with nothing to do, and room for this many tasks.
    pub fn new(online: bool, now: Time, tasks: usize, slice_ns: Span) -> Self {
        Vcpu {
            online,
            current: None,
            slice_ns,
            slice: slice_ns,
            began: now,
            queue: BinaryHeap::with_capacity(tasks),
            sequence: 0,
            woken: false,
            vruntime: Span::ZERO,
            sleepers: BinaryHeap::with_capacity(tasks),
            idle: false,
            winds_down: false,
            own_work: Span::ZERO,
            tick: None,
        }
    }

    /// Adds a runnable task.
    pub fn push(&mut self, id: TaskId, task: &Task) {
        self.sequence += 1;
        let rank = task.rank();
        // Interrupts come in the order of their events.
        let vruntime = if rank == Rank::Softirq { Span::ZERO } else { task.vruntime };
        self.queue.push(Reverse((rank, vruntime, self.sequence, id)));
    }

    /// Adds a task that waited for something, or comes from another vCPU. Waiting earns it no more than a slice.
    pub fn wake(&mut self, id: TaskId, task: &mut Task) {
        task.vruntime = task.vruntime.max(self.vruntime - self.slice_ns);
        self.push(id, task);
        self.woken = true;
    }

    /// Lets the current task continue behind all others that are runnable.
    pub fn hand_over(&mut self, id: TaskId, task: &mut Task) {
        self.current = None;
        task.vruntime = task.vruntime.max(self.vruntime);
        self.push(id, task);
    }

    /// The current task; if there is none, the first of the queue becomes it.
    pub fn choose(&mut self) -> Option<TaskId> {
        if self.current.is_none() {
            let Reverse((rank, vruntime, _, id)) = self.queue.pop()?;
            if rank == Rank::Other {
                self.vruntime = self.vruntime.max(vruntime);
            }
            self.slice = self.slice_ns;
            self.current = Some(id);
        }
        self.current
    }

    /// Whether the first of the queue should preempt the current task.
    pub fn should_preempt(&mut self, current: &Task) -> bool {
        let woken = std::mem::take(&mut self.woken);
        let Some(&Reverse((first, vruntime, ..))) = self.queue.peek() else { return false };
        let own = current.rank();
        let late = self.slice <= Span::ZERO || woken && vruntime < current.vruntime;
        first < own || first == own && own == Rank::Other && late
    }

    /// Gives a queued task the place of its new rank.
    pub fn requeue(&mut self, id: TaskId, task: &Task) {
        let before = self.queue.len();
        self.queue.retain(|Reverse((.., queued))| *queued != id);
        if self.queue.len() < before {
            self.push(id, task);
        }
    }

    /// Begins the kernel's own work that is due: once for each time that the vCPU wakes, either that of a tick or that
    /// before any task, perhaps with some to come when the vCPU winds down.
    pub fn begin_own_work(&mut self, now: Time, wake_ns: Span, winds_down: bool) {
        if self.load() > 0 {
            if std::mem::take(&mut self.idle) {
                (self.own_work, self.winds_down) = (wake_ns, winds_down);
                if let Some(tick) = &mut self.tick {
                    tick.wake(now);
                }
            } else if self.own_work.is_zero()
                && let Some(tick) = &mut self.tick
            {
                self.own_work = tick.found_busy(now);
            }
        } else if let Some(span) = self.tick.as_mut().and_then(|tick| tick.take(now)) {
            (self.own_work, self.idle) = (span, false);
        }
    }

    /// Runnable tasks, the current one included.
    pub fn load(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// Puts a task to sleep.
    pub fn sleep(&mut self, id: TaskId, task: &mut Task, until: Time) {
        task.state = State::Sleeps;
        self.sleepers.push(Reverse((until, id)));
    }

    /// Time at which the vCPU has had this number of ticks more; `now` if it has no tick.
    pub fn after_ticks(&self, now: Time, ticks: u32) -> Time {
        self.tick.as_ref().map_or(now, |tick| tick.after(now, ticks))
    }

    /// Takes over the sleepers of a vCPU that goes offline.
    pub fn adopt_sleepers(&mut self, from: Vcpu) {
        self.sleepers.extend(from.sleepers);
    }

    /// Removes the next sleeper whose time has come.
    pub fn take_sleeper(&mut self, now: Time) -> Option<TaskId> {
        let &Reverse((time, id)) = self.sleepers.peek()?;
        if time > now {
            return None;
        }
        self.sleepers.pop();
        Some(id)
    }

    /// The time of the next sleeper or tick (`NEVER`: neither).
    #[inline]
    pub fn next_timer(&self) -> Time {
        let tick = self.tick.as_ref().map_or(NEVER, |tick| tick.due());
        self.sleepers.peek().map_or(tick, |&Reverse((time, _))| time.min(tick))
    }
}
