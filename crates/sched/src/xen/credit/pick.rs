//! Choice of pCPUs (Xen's `pick_cpu`), and tickling: the pCPUs that are asked to decide because a vCPU has begun to wait.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::rules::Pick;
use super::{Credit, Priority};

/// The pCPU chosen for a vCPU.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub pcpu: PcpuId,
    /// The pCPU whose core or socket attracted the vCPU away from its first choice, if one did.
    pub attractive: Option<PcpuId>,
    /// Whether the pCPU is as good as idle: no vCPU waits there.
    idle: bool,
}

impl Credit {
    /// The pCPU that suits `v` best now.
    pub(super) fn choose(&self, ctx: &PolicyContext, v: VcpuId) -> Choice {
        let (own, affinity) = (ctx.processor(v), ctx.affinity(v));
        let any = |pcpu| Choice { pcpu, attractive: None, idle: false };
        match self.rules.pick {
            Pick::Lowest => any(affinity.first().unwrap_or(own)),
            Pick::Own => any(own_or_next(own, affinity)),
            Pick::Idle | Pick::IdleCore if !ctx.any_soft_affinity() => self.choose_among(ctx, own, affinity),
            Pick::Idle | Pick::IdleCore => {
                let preferred = ctx.preferred(v).filter(|preferred| !preferred.is_empty());
                let preferred = preferred.map(|preferred| self.choose_among(ctx, own, &preferred));
                let idle = preferred.filter(|choice| choice.idle);
                idle.unwrap_or_else(|| self.choose_among(ctx, own, affinity))
            }
        }
    }

    /// The best of the allowed pCPUs for a vCPU on `own`: an idle one, if there is any.
    fn choose_among(&self, ctx: &PolicyContext, own: PcpuId, allowed: &CpuMask) -> Choice {
        let mut pcpu = own_or_next(own, allowed);
        let mut idle = self.idlers;
        if pcpu == own && self.pcpus[own].queue.first().is_none_or(|u| ctx.is_idle(u)) {
            // With nothing waiting it is as good as idle, even if another vCPU runs.
            idle.insert(own);
        }
        let suitable = idle.and(allowed);
        if !suitable.contains(pcpu) {
            pcpu = suitable.next_after(pcpu).unwrap_or(pcpu);
        }
        let choice = Choice { pcpu, attractive: None, idle: idle.contains(pcpu) };
        if self.grouped { self.move_on(ctx, choice, &idle, suitable) } else { choice }
    }

    /// Replaces the choice by a core of the same socket with more `idle` threads, or by a socket with more than twice
    /// as many idle pCPUs; to save power, by one with fewer. `suitable`: the allowed idle pCPUs.
    fn move_on(
        &self,
        ctx: &PolicyContext,
        mut choice: Choice,
        idle: &CpuMask,
        mut suitable: CpuMask,
    ) -> Choice {
        suitable.remove(choice.pcpu);
        while let Some(next) = suitable.next_after(choice.pcpu) {
            let near = ctx.socket_mates(choice.pcpu).contains(next);
            let group = |p| idle.and(if near { ctx.siblings(p) } else { ctx.socket_mates(p) });
            let (here, there) = (group(choice.pcpu), group(next));
            let better = match self.smt_power_savings {
                true => here.len() > there.len(),
                false => here.len() * if near { 1 } else { 2 } < there.len(),
            };
            if better {
                let pcpu = there.and(&suitable).next_after(self.pcpus[next].idle_bias).unwrap_or(next);
                choice = Choice { pcpu, attractive: Some(next), ..choice };
                suitable = suitable.without(ctx.siblings(pcpu));
            } else {
                suitable = suitable.without(&there);
            }
        }
        choice
    }

    /// Tickles one or several pCPUs because `v` has been queued on `p`. (A pinned vCPU on an idle pCPU has a rule of
    /// its own from `xen4.17` on, with the result of the first rule here.)
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
        if priority > Priority::Idle && !self.idlers.is_empty() {
            if ctx.any_soft_affinity() || !self.tickle_one_idle {
                let suitable = self.suitable_idlers(ctx, v);
                if !suitable.is_empty() {
                    return self.ask_idlers(ctx, &suitable);
                }
            } else if let Some(idler) = self.next_idler(ctx, &self.idlers.and(ctx.affinity(v))) {
                return self.ask(ctx, idler);
            }
            if preempts && self.rules.preempted_migrates {
                ctx.start_migration(current);
            }
        }
        if preempts {
            self.ask(ctx, p);
        }
    }

    /// Idle pCPUs that `v` prefers, or else those that it may run on.
    fn suitable_idlers(&self, ctx: &PolicyContext, v: VcpuId) -> CpuMask {
        let preferred = ctx.preferred(v).map(|preferred| preferred.and(&self.idlers));
        let preferred = preferred.filter(|preferred| !preferred.is_empty());
        preferred.unwrap_or_else(|| self.idlers.and(ctx.affinity(v)))
    }

    /// Tickles the next of these idle pCPUs, or all of them.
    fn ask_idlers(&mut self, ctx: &mut PolicyContext, suitable: &CpuMask) {
        if !self.tickle_one_idle {
            suitable.iter().for_each(|idler| self.ask(ctx, idler));
        } else if let Some(idler) = self.next_idler(ctx, suitable) {
            self.ask(ctx, idler);
        }
    }

    /// The next of these pCPUs after the one that was tickled last.
    #[inline(always)]
    fn next_idler(&mut self, ctx: &PolicyContext, suitable: &CpuMask) -> Option<PcpuId> {
        let last = &mut self.last_tickle[ctx.executing()];
        let idler = suitable.next_after(*last)?;
        *last = idler;
        Some(idler)
    }

    #[inline]
    fn ask(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        ctx.raise_reschedule(p);
        if self.rules.tickled_is_busy {
            self.idlers.remove(p);
        }
    }
}

/// `own` if it is allowed, otherwise the next allowed pCPU.
fn own_or_next(own: PcpuId, allowed: &CpuMask) -> PcpuId {
    if allowed.contains(own) { own } else { allowed.next_after(own).unwrap_or(own) }
}
