//! Load balancing: a pCPU steals the vCPU of another one's queue that deserves to run more than its own.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::rules::StealFrom;
use super::{Credit, Priority};

/// The vCPUs that a search looks at: those that prefer the thief (soft affinity), or all that may run there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Soft,
    Hard,
}

impl Credit {
    /// Does the rate limit on balancing let `p` balance now? The answer yes begins the next period of the limit.
    #[inline]
    pub(super) fn may_balance(&mut self, ctx: &PolicyContext, p: PcpuId) -> bool {
        let Some(limit) = self.balance_ratelimit else { return true };
        let last = &mut self.pcpus[p].last_balance;
        let over = ctx.now() - *last > limit;
        if over {
            *last = ctx.now();
        }
        over
    }

    /// A vCPU of higher priority than `than` that waits elsewhere and may run on `p`, taken off its queue.
    pub(crate) fn steal(&mut self, ctx: &mut PolicyContext, p: PcpuId, than: Priority) -> Option<VcpuId> {
        let mut busy = ctx.pcpus().without(&self.idlers);
        busy.remove(p);
        if busy.is_empty() {
            return None;
        }
        let (victim, v) = match self.rules.steal_from {
            StealFrom::Next => self.find(ctx, p, than, busy, p, Step::Hard),
            StealFrom::Lowest => self.find(ctx, p, than, busy, last(ctx.pcpus()), Step::Hard),
            StealFrom::NextVictim => self.find_by_node(ctx, p, than, &busy),
        }?;
        self.dequeue(victim, v);
        ctx.set_processor(v, p);
        Some(v)
    }

    /// Every node is searched for work that prefers `p` before any is searched for work that merely may run there.
    #[inline]
    fn find_by_node(
        &mut self,
        ctx: &PolicyContext,
        p: PcpuId,
        than: Priority,
        busy: &CpuMask,
    ) -> Option<(PcpuId, VcpuId)> {
        let (nodes, own) = (ctx.nodes(), ctx.node(p) as usize);
        let steps: &[Step] = if ctx.any_soft_affinity() { &[Step::Soft, Step::Hard] } else { &[Step::Hard] };
        for &step in steps {
            for node in (own..nodes.len()).chain(0..own) {
                let peers = if nodes.len() == 1 { *busy } else { busy.and(&nodes[node]) };
                let found = self.find(ctx, p, than, peers, self.last_victims[node], step);
                if let Some((victim, _)) = found {
                    self.last_victims[node] = victim;
                    return found;
                }
            }
        }
        None
    }

    /// Looks through the queues of `peers`, from that of the pCPU after `after`.
    #[inline]
    fn find(
        &self,
        ctx: &PolicyContext,
        p: PcpuId,
        than: Priority,
        mut peers: CpuMask,
        mut after: PcpuId,
        step: Step,
    ) -> Option<(PcpuId, VcpuId)> {
        let than = than.max(Priority::Idle);
        while let Some(peer) = peers.next_after(after) {
            peers.remove(peer);
            after = peer;
            if ctx.is_idle(ctx.current(peer)) {
                continue;
            }
            let mut element = self.pcpus[peer].queue.first();
            while let Some(u) = element
                && self.vcpus[u].priority > than
            {
                let suits = match step {
                    Step::Soft => ctx.preferred(u).is_some_and(|preferred| preferred.contains(p)),
                    Step::Hard => ctx.affinity(u).contains(p),
                };
                if suits && !self.vcpus[u].yielding && !self.cache_hot(ctx, u) {
                    return Some((peer, u));
                }
                element = self.queue_links.next(u);
            }
        }
        None
    }

    fn cache_hot(&self, ctx: &PolicyContext, v: VcpuId) -> bool {
        let ran = if self.rules.delay_from_decision { self.vcpus[v].last_sched } else { ctx.switched_at(v) };
        !self.migration_delay.is_zero() && ctx.now() - ran < self.migration_delay
    }
}

fn last(pcpus: &CpuMask) -> PcpuId {
    pcpus.iter().last().expect("a pool has a pCPU")
}
