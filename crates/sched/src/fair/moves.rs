//! Which CPU a thread goes to.

use vcpulab_host::{PcpuId, PolicyContext, VcpuId};

use super::params::Tuned;
use super::policy::Linux;

impl<F: Tuned> Linux<F> {
    /// The CPU that a new thread is placed on: the one with the fewest threads placed.
    pub(super) fn place(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        allowed.iter().min_by_key(|&cpu| self.ready.placed(cpu)).unwrap_or(ctx.processor(v))
    }

    /// The CPU that a waking thread goes to.
    pub(super) fn choose_cpu(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let before = ctx.processor(v);
        if !allowed.contains(before) {
            return allowed
                .and(&self.idle)
                .next_after(before)
                .or(allowed.next_after(before))
                .unwrap_or(before);
        }
        if self.idle.contains(before) {
            return before;
        }
        allowed.and(&self.idle).next_after(before).unwrap_or(before)
    }

    /// A CPU that is about to idle takes a thread from the one on which most wait. True: it did.
    pub(super) fn pull(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) -> bool {
        let mut from = *self.ready.loaded();
        while let Some(busiest) = from.iter().max_by_key(|&other| self.ready.count(other)) {
            let movable = |v: &VcpuId| {
                let task = self.thread(*v).task;
                ctx.affinity(*v).contains(cpu)
                    && !ctx.is_current(*v)
                    && task.is_some_and(|task| !self.fair.is_held_back(task))
            };
            let found = self.ready.from_last(busiest).find(movable);
            if let Some(v) = found {
                self.take_over(ctx, v, cpu);
                return true;
            }
            from.remove(busiest);
        }
        false
    }

    /// Moves a thread that waits to another CPU.
    fn take_over(&mut self, ctx: &mut PolicyContext, v: VcpuId, cpu: PcpuId) {
        let Some(task) = self.thread(v).task else { return };
        self.ready.remove(v);
        self.fair.leave(ctx.now(), task, false);
        ctx.set_processor(v, cpu);
        self.ready.insert(cpu, v);
        self.fair.join(ctx.now(), cpu, task);
    }

    /// A vCPU that spins gives way to another one of its guest that waits, beginning after the one before.
    pub(super) fn yield_to_another(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let d = ctx.dom(v);
        let count = ctx.vcpus_of(d).count();
        let last = *self.domains.preferred(d);
        let waits = |&(_, u): &(usize, VcpuId)| {
            let held = self.thread(u).task.is_none_or(|task| self.fair.is_held_back(task));
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
