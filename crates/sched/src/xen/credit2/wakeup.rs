//! Tickling: the pCPU that is asked to decide because a vCPU has begun to wait.

use vcpulab_host::{CpuMask, NEVER, PcpuId, PolicyContext, Span, Time, VcpuId};

use super::{Credit2, RunQueueId};

/// Tolerance of the rate limit: a vCPU that has less than this of it left can be preempted.
const RATELIMIT_TOLERANCE: Span = Span::from_us(50);

/// Gain in score where the waking vCPU prefers the pCPU, and again where the pCPU's current vCPU does not.
const PREFERENCE: i64 = 10_000_000;

impl Credit2 {
    pub(super) fn find_pcpu(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let found = if self.rules.idle_first {
            self.idle_or_preemptable(ctx, v)
        } else {
            self.preemptable_or_idle(ctx, v)
        };
        if let Some(p) = found {
            self.tickle(ctx, p);
            self.vcpus[v].tickled_for = Some(p);
        }
    }

    /// An idle pCPU, one that the vCPU prefers and its own if possible; or its own; or the pCPU over whose vCPU its
    /// lead is greatest.
    fn idle_or_preemptable(&mut self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let own = ctx.processor(v);
        let r = self.vcpus[v].runqueue;
        let runqueue = &self.runqueues[r];
        if self.vcpus[v].pinned && runqueue.idle.contains(own) && !runqueue.tickled.contains(own) {
            return Some(own);
        }
        let preferred = ctx.preferred(v).and_then(|preferred| self.idle_among(r, &preferred, own));
        if let Some(idle) = preferred.or_else(|| self.idle_among(r, ctx.affinity(v), own)) {
            return Some(idle);
        }
        let mut busy =
            runqueue.members.without(&runqueue.idle).without(&runqueue.tickled).and(ctx.affinity(v));
        let kept_from = self.kept_from(ctx.now());
        let (mut best, mut best_score) = (None, 0);
        if busy.contains(own) {
            let score = self.score(ctx, own, v, kept_from);
            if score > 0 {
                if ctx.soft_affinity(v).is_none_or(|soft| soft.contains(own)) {
                    return Some(own);
                }
                (best, best_score) = (Some(own), score);
            }
            busy.remove(own);
        }
        // On a busy host as good as all would be asked at each wake-up, and most have only begun.
        let asked = busy.without(self.recent.since(kept_from));
        for p in asked.iter() {
            let score = self.score(ctx, p, v, kept_from);
            if score > best_score {
                (best, best_score) = (Some(p), score);
            }
        }
        best
    }

    /// The idle pCPU nearest to `own` among some, on a wholly idle core if possible, or, to save power, on a core that
    /// works already.
    #[inline(always)]
    fn idle_among(&self, r: RunQueueId, among: &CpuMask, own: PcpuId) -> Option<PcpuId> {
        let runqueue = &self.runqueues[r];
        let nearest = |idle: CpuMask| {
            let idle = idle.and(among);
            match idle.is_empty() {
                true => None,
                false if idle.contains(own) => Some(own),
                false => idle.next_after(own),
            }
        };
        let any = runqueue.idle.without(&runqueue.tickled);
        // Without threads each idle pCPU that was not tickled is a wholly idle core.
        let cores = if self.has_threads { &runqueue.idle_cores } else { &any };
        let first = match self.saves_power {
            true => nearest(runqueue.idle.without(cores)),
            false if self.has_threads => nearest(*cores),
            false => None,
        };
        first.or_else(|| nearest(any))
    }

    /// The time after which a vCPU must have begun to run for the rate limit to keep it.
    pub(super) fn kept_from(&self, now: Time) -> Time {
        let kept = self.ratelimit - RATELIMIT_TOLERANCE;
        if kept > Span::ZERO { now - kept } else { NEVER }
    }

    /// The gain of running `v` on `p` in place of its current vCPU.
    fn score(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId, kept_from: Time) -> i64 {
        let current = ctx.current(p);
        let too_early = ctx.switched_at(current) >= kept_from;
        if ctx.is_idle(current) || too_early { -1 } else { self.lead(ctx, p, v, current) }
    }

    /// The lead in credit of `v` over the current vCPU of `p`, which is charged for the comparison. A positive lead
    /// grows where either vCPU gets nearer to its soft affinity.
    fn lead(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId, current: VcpuId) -> i64 {
        self.charge(ctx, current);
        let ahead = i64::from(self.vcpus[v].credit) - i64::from(self.vcpus[current].credit);
        let lead = if p == ctx.processor(v) { ahead } else { ahead - i64::from(self.migrate_resist) };
        let would_be_here = |u| ctx.soft_affinity(u).is_none_or(|soft| soft.contains(p));
        let gains = i64::from(would_be_here(v)) + i64::from(!would_be_here(current));
        if lead > 0 { lead + gains * PREFERENCE } else { lead }
    }

    /// The vCPU's own pCPU if the vCPU there has less credit; else an idle pCPU; else the pCPU whose vCPU has the least
    /// credit.
    fn preemptable_or_idle(&mut self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let own = ctx.processor(v);
        let credit = self.vcpus[v].credit;
        self.charge(ctx, ctx.current(own));
        if self.vcpus[ctx.current(own)].credit < credit {
            return Some(own);
        }
        let runqueue = &self.runqueues[self.vcpus[v].runqueue];
        let idle = runqueue.idle.without(&runqueue.tickled);
        if !idle.is_empty() {
            return idle.next_after(own);
        }
        let mut busy = runqueue.members.without(&runqueue.idle).without(&runqueue.tickled);
        busy.remove(own);
        let (mut least, mut least_credit) = (None, 1 << 30);
        for p in busy.iter() {
            self.charge(ctx, ctx.current(p));
            let credit = self.vcpus[ctx.current(p)].credit;
            if credit < least_credit {
                (least, least_credit) = (Some(p), credit);
            }
        }
        least.filter(|_| i64::from(least_credit) + i64::from(self.migrate_resist) <= i64::from(credit))
    }
}
