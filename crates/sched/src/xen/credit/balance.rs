//! Load balancing: a pCPU steals the vCPU of another one's queue that deserves to run more than its own.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::rules::StealFrom;
use super::{Credit, Priority};

impl Credit {
    /// Whether the rate limit on balancing allows `p` to balance now. If it does, the next period of the limit begins.
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
        debug_assert!(self.at_work.contains_all(&self.heads_above(ctx, Priority::Idle)));
        let mut peers = self.at_work.and(ctx.pcpus()).without(&self.idlers);
        peers.remove(p);
        if peers.is_empty() {
            return None;
        }
        let may = |v| ctx.affinity(v).contains(p);
        let (victim, v) = match self.rules.steal_from {
            StealFrom::Next => self.find(ctx, than, peers, p, may),
            StealFrom::Lowest => self.find(ctx, than, peers, last(ctx.pcpus()), may),
            StealFrom::NextVictim if ctx.nodes().len() == 1 && !ctx.any_soft_affinity() => {
                self.find_in_node(ctx, than, peers, 0, may)
            }
            StealFrom::NextVictim => self.find_by_node(ctx, p, than, &peers),
        }?;
        self.dequeue(victim, v);
        ctx.set_processor(v, p);
        Some(v)
    }

    /// Steals work for `p`: all nodes are searched for vCPUs that prefer `p` before any is searched for vCPUs that
    /// merely may run there.
    #[inline(never)]
    fn find_by_node(
        &mut self,
        ctx: &PolicyContext,
        p: PcpuId,
        than: Priority,
        peers: &CpuMask,
    ) -> Option<(PcpuId, VcpuId)> {
        let (nodes, own) = (ctx.nodes(), ctx.node(p) as usize);
        let in_order = || (own..nodes.len()).chain(0..own).map(|node| (node, peers.and(&nodes[node])));
        if ctx.any_soft_affinity() {
            let prefers = |v| ctx.preferred(v).is_some_and(|preferred| preferred.contains(p));
            for (node, peers) in in_order() {
                let found = self.find_in_node(ctx, than, peers, node, prefers);
                if found.is_some() {
                    return found;
                }
            }
        }
        let may = |v| ctx.affinity(v).contains(p);
        in_order().find_map(|(node, peers)| self.find_in_node(ctx, than, peers, node, may))
    }

    /// Searches the queues of a node's `peers`, starting after the node's last victim.
    #[inline(always)]
    fn find_in_node(
        &mut self,
        ctx: &PolicyContext,
        than: Priority,
        peers: CpuMask,
        node: usize,
        suits: impl Fn(VcpuId) -> bool,
    ) -> Option<(PcpuId, VcpuId)> {
        let found = self.find(ctx, than, peers, self.last_victims[node], suits);
        if let Some((victim, _)) = found {
            self.last_victims[node] = victim;
        }
        found
    }

    /// Searches the queues of `peers`, starting with the pCPU after `after`.
    #[inline(always)]
    fn find(
        &self,
        ctx: &PolicyContext,
        than: Priority,
        mut peers: CpuMask,
        mut after: PcpuId,
        suits: impl Fn(VcpuId) -> bool,
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
                if suits(u) && !self.vcpus[u].yielding && !self.cache_hot(ctx, u) {
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
