//! pCPUs for vCPUs: which one suits a vCPU, and which ones decide because a vCPU has begun to wait.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::rules::Pick;
use super::{Credit, Priority};

impl Credit {
    /// The pCPU that suits `v` best now.
    pub(super) fn choose(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let (own, affinity) = (ctx.processor(v), ctx.affinity(v));
        if self.rules.pick == Pick::Lowest {
            return affinity.first().unwrap_or(own);
        }
        let allowed = affinity.contains(own);
        let choice = if allowed { own } else { affinity.next_after(own).unwrap_or(own) };
        if self.rules.pick == Pick::Own {
            return choice;
        }
        let mut idle = self.idlers;
        if allowed && self.pcpus[own].queue.first().is_none_or(|u| ctx.is_idle(u)) {
            // With nothing waiting it is as good as idle, even if another vCPU runs.
            idle.insert(own);
        }
        let idle = idle.and(affinity);
        if idle.contains(choice) { choice } else { idle.next_after(choice).unwrap_or(choice) }
    }

    /// Makes a pCPU or several decide because `v` has been queued on `p`.
    #[inline]
    pub(super) fn tickle(&mut self, ctx: &mut PolicyContext, p: PcpuId, v: VcpuId) {
        let current = ctx.current(p);
        let priority = self.vcpus[current].priority;
        let preempts = self.vcpus[v].priority > priority;
        if self.rules.tickles_all {
            let mut mask = if preempts { CpuMask::only(p) } else { CpuMask::EMPTY };
            if priority > Priority::Idle && !self.idlers.is_empty() {
                mask = mask.or(&self.idlers).and(ctx.affinity(v));
            }
            for q in mask.iter() {
                ctx.raise_reschedule(q);
            }
            return;
        }
        if let Some(target) = self.tickled(ctx, p, v, preempts) {
            ctx.raise_reschedule(target);
            if self.rules.tickled_is_busy {
                self.idlers.remove(target);
            }
        }
    }

    /// The one pCPU that is to decide: `p`, or an idle one. `preempts`: `v` has a higher priority than the current vCPU of `p`.
    /// (A pinned vCPU on an idle pCPU has a rule of its own in `xen4.17`; it does what the first one here does.)
    #[inline]
    fn tickled(&mut self, ctx: &mut PolicyContext, p: PcpuId, v: VcpuId, preempts: bool) -> Option<PcpuId> {
        let current = ctx.current(p);
        if self.vcpus[current].priority == Priority::Idle {
            return Some(p);
        }
        if self.idlers.is_empty() {
            return preempts.then_some(p);
        }
        let last = &mut self.last_tickle[ctx.executing()];
        if let Some(idler) = self.idlers.and(ctx.affinity(v)).next_after(*last) {
            *last = idler;
            return Some(idler);
        }
        if preempts && self.rules.preempted_migrates {
            ctx.start_migration(current);
        }
        preempts.then_some(p)
    }
}
