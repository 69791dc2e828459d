//! The choice of a CPU for a thread: when it is created, when it wakes, and when another thread yields to it.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::cfs_rq::TaskId;
use super::params::Tuned;
use super::policy::Linux;

impl<F: Tuned> Linux<F> {
    /// The CPU for a new thread: in the last-level cache, the core and the CPU on which the fewest threads were placed.
    pub(super) fn place(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let placed = |cpus: &CpuMask| cpus.iter().map(|cpu| self.ready.placed(cpu)).sum::<u32>();
        // By what is placed on each of its CPUs, as a fraction of all caches alike.
        let in_cache = |cpu: PcpuId| {
            let cache = self.levels.cache(cpu);
            u64::from(placed(cache)) * u64::from(ctx.pcpu_count()) / u64::from(cache.len().max(1))
        };
        let crowd = |&cpu: &PcpuId| (in_cache(cpu), placed(self.levels.core(cpu)), self.ready.placed(cpu));
        allowed.iter().min_by_key(crowd).unwrap_or(ctx.processor(v))
    }

    fn is_idle(&self, cpu: PcpuId) -> bool {
        self.idle.contains(cpu) || self.fair.sched_idle_cpu(cpu)
    }

    /// The idle CPUs among `cpus`.
    fn idle_of(&self, cpus: &CpuMask) -> CpuMask {
        let mut idle = cpus.and(&self.idle);
        if self.fair.any_idle {
            cpus.iter().filter(|&cpu| self.fair.sched_idle_cpu(cpu)).for_each(|cpu| idle.insert(cpu));
        }
        idle
    }

    /// The CPU for a waking thread (`select_task_rq`).
    pub(super) fn choose_cpu(&mut self, ctx: &PolicyContext, v: VcpuId, task: TaskId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let (this, before) = (ctx.executing(), ctx.processor(v));
        if allowed.len() <= 1 {
            return allowed.first().unwrap_or(before);
        }
        let wide = self.note_waking(ctx, this, v);
        let before =
            if allowed.contains(before) { before } else { allowed.next_after(before).unwrap_or(before) };
        let mut target = before;
        if this != before && allowed.contains(this) && !wide {
            target = self.this_or_before(ctx, this, before, task);
        }
        if self.is_idle(target) {
            return target;
        }
        let cache = *self.levels.cache(target);
        if before != target && cache.contains(before) && self.is_idle(before) {
            return before;
        }
        let thread = self.thread_mut(v);
        let recent = thread.recent.replace(before);
        let other =
            |&cpu: &PcpuId| cpu != before && cpu != target && cache.contains(cpu) && allowed.contains(cpu);
        if let Some(recent) = recent.filter(other).filter(|&cpu| self.is_idle(cpu)) {
            return recent;
        }
        let idle = self.idle_of(&cache.and(&allowed));
        if self.levels.threads {
            if self.levels.idle_core(target) {
                return self.idle_core(&idle, target).unwrap_or(target);
            }
            let beside = self.levels.core(before).and(&idle);
            if cache.contains(before)
                && let Some(cpu) = beside.first()
            {
                return cpu;
            }
        }
        self.next_idle(&idle, &cache.and(&allowed), target).unwrap_or(target)
    }

    /// Counts a wake-up of `v` by the running thread of a CPU. True: waker and wakee have so many partners that these
    /// do not fit into a cache (`wake_wide`).
    fn note_waking(&mut self, ctx: &PolicyContext, this: PcpuId, v: VcpuId) -> bool {
        let waker = ctx.current(this);
        if ctx.is_idle(waker) || waker == v {
            return false;
        }
        let partners = &mut self.thread_mut(waker).partners;
        partners.woke(ctx.now(), v);
        let (of_waker, of_wakee) = (partners.changes(), self.thread(v).partners.changes());
        let (less, more) = (of_waker.min(of_wakee), of_waker.max(of_wakee));
        let size = self.levels.cache(this).len();
        less >= size && more >= less * size
    }

    /// The better CPU for a waking thread: `this`, where its waker runs, or `before`, where the thread ran (`wake_affine`).
    fn this_or_before(&mut self, ctx: &PolicyContext, this: PcpuId, before: PcpuId, task: TaskId) -> PcpuId {
        if self.is_idle(this) && self.levels.cache(this).contains(before) {
            return if self.is_idle(before) { before } else { this };
        }
        if self.is_idle(before) {
            return before;
        }
        let beside = self.levels.core(this).contains(before);
        let percent: u64 = if beside { 110 } else { 117 };
        let now = ctx.now();
        let own = self.fair.task_h_load(task, now);
        let here = (self.fair.cpu_load(this, now) + own) * 100;
        let there = self.fair.cpu_load(before, now).saturating_sub(own) * (100 + (percent - 100) / 2);
        if here < there { this } else { before }
    }

    /// An idle core of a cache, from a CPU on (`select_idle_core`); without one, the first idle CPU.
    fn idle_core(&mut self, idle: &CpuMask, target: PcpuId) -> Option<PcpuId> {
        let found = after(idle, target).find(|&cpu| self.idle.contains_all(self.levels.core(cpu)));
        if found.is_none() {
            self.levels.set_idle_core(target, false);
        }
        found.or(idle.next_after(target))
    }

    /// The first idle CPU of a cache after `target`, among the first few that are scanned (`select_idle_cpu`).
    fn next_idle(&self, idle: &CpuMask, cpus: &CpuMask, target: PcpuId) -> Option<PcpuId> {
        let scan = self.levels.scan(target);
        if scan >= cpus.len() {
            return idle.next_after(target);
        }
        after(cpus, target).take(scan as usize).find(|&cpu| idle.contains(cpu))
    }

    /// Moves a waiting thread to another CPU.
    pub(super) fn take_over(&mut self, ctx: &mut PolicyContext, v: VcpuId, task: TaskId, cpu: PcpuId) {
        self.ready.remove(v);
        self.fair.dequeue_task(ctx.now(), task, false);
        ctx.set_processor(v, cpu);
        self.ready.insert(cpu, v);
        self.fair.attach_task(ctx.now(), cpu, task);
    }

    /// Makes a spinning vCPU yield to a waiting vCPU of its guest, the next after the last one that was chosen.
    pub(super) fn yield_to_another(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let d = ctx.dom(v);
        let count = ctx.vcpus_of(d).count();
        let last = *self.domains.preferred(d);
        let waits = |&(_, u): &(usize, VcpuId)| {
            let held = self.thread(u).task.is_none_or(|task| self.fair.is_throttled(task));
            self.ready.waits(u) && !held
        };
        let all = || ctx.vcpus_of(d).enumerate();
        let found = all().skip(last + 1).chain(all().take(last + 1)).take(count).find(waits);
        let Some((number, u)) = found else { return };
        *self.domains.preferred(d) = number;
        if let Some(task) = self.thread(u).task {
            self.fair.yield_to(ctx.now(), ctx.processor(v), task);
        }
    }
}

/// The CPUs of a set, starting after a CPU.
fn after(cpus: &CpuMask, cpu: PcpuId) -> impl Iterator<Item = PcpuId> + '_ {
    let first = cpus.next_after(cpu);
    std::iter::successors(first, move |&cpu| cpus.next_after(cpu).filter(|&next| Some(next) != first))
}
