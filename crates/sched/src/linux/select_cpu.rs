//! The choice of a CPU for a thread: when it is created, when it wakes, and when another thread yields to it.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::cfs_rq::TaskId;
use super::params::Tuned;
use super::policy::Linux;

impl<F: Tuned> Linux<F> {
    /// The CPU for a new thread: in the last-level cache, the core and the CPU on which the fewest threads were placed.
    pub(super) fn select_task_rq_fork(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let placed = |cpus: &CpuMask| cpus.iter().map(|cpu| self.cfs_tasks.placed(cpu)).sum::<u32>();
        // By what is placed on each of its CPUs, as a fraction of all caches alike.
        let in_cache = |cpu: PcpuId| {
            let cache = self.sched_domains.llc(cpu);
            u64::from(placed(cache)) * u64::from(ctx.pcpu_count()) / u64::from(cache.len().max(1))
        };
        let crowd =
            |&cpu: &PcpuId| (in_cache(cpu), placed(self.sched_domains.smt(cpu)), self.cfs_tasks.placed(cpu));
        allowed.iter().min_by_key(crowd).unwrap_or(ctx.processor(v))
    }

    /// Whether a CPU runs nothing, or only `SCHED_IDLE` tasks.
    fn available_idle_cpu(&self, cpu: PcpuId) -> bool {
        self.idle_cpus.contains(cpu) || self.fair.sched_idle_cpu(cpu)
    }

    /// The CPUs among `cpus` that run nothing, or only `SCHED_IDLE` tasks.
    fn available_idle_cpus(&self, cpus: &CpuMask) -> CpuMask {
        let mut idle = cpus.and(&self.idle_cpus);
        if self.fair.any_idle {
            cpus.iter().filter(|&cpu| self.fair.sched_idle_cpu(cpu)).for_each(|cpu| idle.insert(cpu));
        }
        idle
    }

    /// The CPU for a waking thread.
    pub(super) fn select_task_rq(&mut self, ctx: &PolicyContext, v: VcpuId, task: TaskId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let (this_cpu, prev_cpu) = (ctx.executing(), ctx.processor(v));
        if allowed.len() <= 1 {
            return allowed.first().unwrap_or(prev_cpu);
        }
        let waker = Some(ctx.current(this_cpu)).filter(|&waker| !ctx.is_idle(waker) && waker != v);
        let wide = waker.is_some_and(|waker| {
            self.thread_mut(waker).wakee_flips.record_wakee(ctx.now(), v);
            self.wake_wide(this_cpu, waker, v)
        });
        let prev_cpu = if allowed.contains(prev_cpu) {
            prev_cpu
        } else {
            allowed.next_after(prev_cpu).unwrap_or(prev_cpu)
        };
        let mut target = prev_cpu;
        if this_cpu != prev_cpu && allowed.contains(this_cpu) && !wide {
            target = self.wake_affine(ctx, this_cpu, prev_cpu, task);
        }
        self.select_idle_sibling(v, &allowed, prev_cpu, target)
    }

    /// An idle CPU that shares the last-level cache with `target`, or `target` itself.
    fn select_idle_sibling(
        &mut self,
        v: VcpuId,
        allowed: &CpuMask,
        prev_cpu: PcpuId,
        target: PcpuId,
    ) -> PcpuId {
        if self.available_idle_cpu(target) {
            return target;
        }
        let llc = *self.sched_domains.llc(target);
        if prev_cpu != target && llc.contains(prev_cpu) && self.available_idle_cpu(prev_cpu) {
            return prev_cpu;
        }
        let recent = self.thread_mut(v).recent_used_cpu.replace(prev_cpu);
        let usable =
            |&cpu: &PcpuId| cpu != prev_cpu && cpu != target && llc.contains(cpu) && allowed.contains(cpu);
        if let Some(recent) = recent.filter(usable).filter(|&cpu| self.available_idle_cpu(cpu)) {
            return recent;
        }
        let idle = self.available_idle_cpus(&llc.and(allowed));
        if self.sched_domains.smt_active {
            if self.sched_domains.has_idle_cores(target) {
                return self.select_idle_core(&idle, target).unwrap_or(target);
            }
            let siblings = self.sched_domains.smt(prev_cpu).and(&idle);
            if llc.contains(prev_cpu)
                && let Some(cpu) = siblings.first()
            {
                return cpu;
            }
        }
        self.select_idle_cpu(&idle, &llc.and(allowed), target).unwrap_or(target)
    }

    /// Whether waker and wakee have more partners than CPUs share a cache, so that the wakee need not be near the waker.
    fn wake_wide(&self, this_cpu: PcpuId, waker: VcpuId, wakee: VcpuId) -> bool {
        let [waker, wakee] = [waker, wakee].map(|v| self.thread(v).wakee_flips.count());
        let (less, more) = (waker.min(wakee), waker.max(wakee));
        let llc_size = self.sched_domains.llc(this_cpu).len();
        less >= llc_size && more >= less * llc_size
    }

    /// The better CPU for a waking thread: `this_cpu`, where its waker runs, or `prev_cpu`, where the thread ran.
    fn wake_affine(
        &mut self,
        ctx: &PolicyContext,
        this_cpu: PcpuId,
        prev_cpu: PcpuId,
        task: TaskId,
    ) -> PcpuId {
        if self.available_idle_cpu(this_cpu) && self.sched_domains.llc(this_cpu).contains(prev_cpu) {
            return if self.available_idle_cpu(prev_cpu) { prev_cpu } else { this_cpu };
        }
        if self.available_idle_cpu(prev_cpu) {
            return prev_cpu;
        }
        let siblings = self.sched_domains.smt(this_cpu).contains(prev_cpu);
        let percent: u64 = if siblings { 110 } else { 117 };
        let now = ctx.now();
        let own = self.fair.task_h_load(task, now);
        let this_load = (self.fair.cpu_load(this_cpu, now) + own) * 100;
        let prev_load = self.fair.cpu_load(prev_cpu, now).saturating_sub(own) * (100 + (percent - 100) / 2);
        if this_load < prev_load { this_cpu } else { prev_cpu }
    }

    /// The first wholly idle core of a cache after `target`; without one, the first idle CPU.
    fn select_idle_core(&mut self, idle: &CpuMask, target: PcpuId) -> Option<PcpuId> {
        let core = after(idle, target).find(|&cpu| self.idle_cpus.contains_all(self.sched_domains.smt(cpu)));
        if core.is_none() {
            self.sched_domains.set_has_idle_cores(target, false);
        }
        core.or(idle.next_after(target))
    }

    /// The first idle CPU of a cache after `target`, among the first few that are scanned.
    fn select_idle_cpu(&self, idle: &CpuMask, cpus: &CpuMask, target: PcpuId) -> Option<PcpuId> {
        let scan = self.sched_domains.nr_idle_scan(target);
        if scan >= cpus.len() {
            return idle.next_after(target);
        }
        after(cpus, target).take(scan as usize).find(|&cpu| idle.contains(cpu))
    }

    /// Moves a waiting thread to another CPU.
    pub(super) fn migrate_task(&mut self, ctx: &mut PolicyContext, v: VcpuId, task: TaskId, cpu: PcpuId) {
        self.cfs_tasks.remove(v);
        self.fair.dequeue_task(ctx.now(), task, false);
        ctx.set_processor(v, cpu);
        self.cfs_tasks.insert(cpu, v);
        self.fair.attach_task(ctx.now(), cpu, task);
    }

    /// Makes a spinning vCPU yield to a waiting vCPU of its guest: the next after the vCPU that was chosen last.
    pub(super) fn kvm_vcpu_on_spin(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let d = ctx.dom(v);
        let count = ctx.vcpus_of(d).count();
        let last = *self.cgroups.last_boosted_vcpu(d);
        let waits = |&(_, u): &(usize, VcpuId)| {
            let throttled = self.thread(u).task.is_none_or(|task| self.fair.is_throttled(task));
            self.cfs_tasks.waits(u) && !throttled
        };
        let all = || ctx.vcpus_of(d).enumerate();
        let next = all().skip(last + 1).chain(all().take(last + 1)).take(count).find(waits);
        let Some((number, u)) = next else { return };
        *self.cgroups.last_boosted_vcpu(d) = number;
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
