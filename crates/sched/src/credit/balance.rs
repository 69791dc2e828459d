//! Load balancing: a pCPU steals the vCPU of another one's queue that deserves to run more than its own.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::rules::StealFrom;
use super::{Credit, Priority};

impl Credit {
    /// A vCPU of higher priority than `than` that waits elsewhere and may run on `p`, taken off its queue.
    pub(crate) fn steal(&mut self, ctx: &mut PolicyContext, p: PcpuId, than: Priority) -> Option<VcpuId> {
        let mut peers = ctx.pcpus().without(&self.idlers);
        peers.remove(p);
        let mut after = match self.rules.steal_from {
            StealFrom::Next => p,
            StealFrom::Lowest => last(ctx.pcpus()),
            StealFrom::NextVictim => self.last_victim,
        };
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
                let v = u;
                if ctx.affinity(v).contains(p) && !self.cache_hot(ctx, v) {
                    self.dequeue(peer, v);
                    ctx.set_processor(v, p);
                    self.last_victim = peer;
                    return Some(v);
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
