//! The pCPU that decides because a vCPU has begun to wait.

use vcpulab_host::{NEVER, PcpuId, PolicyContext, Span, Time, VcpuId};

use super::Credit2;

/// How much of the rate limit may be missing when a vCPU is preempted all the same.
const RATELIMIT_TOLERANCE: Span = Span::from_us(50);

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

    /// An idle pCPU, its own if possible; or its own; or the one whose vCPU it is furthest ahead of.
    fn idle_or_preemptable(&mut self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let own = ctx.processor(v);
        let runqueue = &self.runqueues[self.vcpus[v].runqueue];
        if self.vcpus[v].pinned && runqueue.idle.contains(own) && !runqueue.tickled.contains(own) {
            return Some(own);
        }
        let idle = runqueue.idle.without(&runqueue.tickled).and(ctx.affinity(v));
        if !idle.is_empty() {
            return if idle.contains(own) { Some(own) } else { idle.next_after(own) };
        }
        let mut busy =
            runqueue.members.without(&runqueue.idle).without(&runqueue.tickled).and(ctx.affinity(v));
        let kept_from = self.kept_from(ctx.now());
        if busy.contains(own) {
            if self.score(ctx, own, v, kept_from) > 0 {
                return Some(own);
            }
            busy.remove(own);
        }
        // On a busy host as good as all would be asked at each wake-up, and most have only begun.
        let asked = busy.without(self.recent.since(kept_from));
        let (mut best, mut best_score) = (None, 0);
        for p in asked.iter() {
            let score = self.score(ctx, p, v, kept_from);
            if score > best_score {
                (best, best_score) = (Some(p), score);
            }
        }
        best
    }

    /// The time from which on vCPUs must have begun to run for the rate limit to keep them.
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

    /// The lead in credit of `v` over the current vCPU of `p`, which is charged for the comparison.
    fn lead(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId, current: VcpuId) -> i64 {
        self.charge(ctx, current);
        let ahead = i64::from(self.vcpus[v].credit) - i64::from(self.vcpus[current].credit);
        if p == ctx.processor(v) { ahead } else { ahead - i64::from(self.migrate_resist) }
    }

    /// Its own pCPU if that runs a vCPU of less credit; else an idle one; else the one whose vCPU has least credit.
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
