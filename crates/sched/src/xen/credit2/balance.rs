//! Moves between run queues, which their load averages drive.

use vcpulab_host::{CpuMask, PolicyContext, Table, VcpuId};

use super::{Credit2, RunQueueId, Vcpu};

impl Credit2 {
    pub(super) fn move_to(&mut self, ctx: &mut PolicyContext, v: VcpuId, target: RunQueueId) {
        if self.vcpus[v].on_cpu {
            self.vcpus[v].moving_to = Some(target);
            ctx.start_migration(v);
            if self.rules.leaving_tickles {
                self.tickle(ctx, ctx.processor(v));
            }
            return;
        }
        let waited = self.waits(v);
        if waited {
            self.dequeue(v);
            self.update_load_of_mover(ctx, v, -1);
        }
        self.unassign(v);
        let own = if self.rules.rotates {
            self.turn_rotor(ctx, v, target)
        } else {
            self.runqueues[target].members.first()
        };
        ctx.set_processor(v, own.unwrap_or(ctx.processor(v)));
        self.assign(v, target);
        if waited {
            self.update_load_of_mover(ctx, v, 1);
            self.enqueue(v);
            self.find_pcpu(ctx, v);
        }
    }

    fn update_load_of_mover(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        if self.rules.move_keeps_load {
            self.update_runqueue_load(ctx, self.vcpus[v].runqueue, change);
        } else {
            self.update_load(ctx, v, change);
        }
    }

    /// The run queue with the least balance load, without `v` itself, among those that `v` may go to, except one; and
    /// the same among those that have some of the preferred pCPUs.
    pub(super) fn least_loaded(
        &self,
        ctx: &PolicyContext,
        v: VcpuId,
        preferred: Option<&CpuMask>,
        left_out: Option<RunQueueId>,
    ) -> (Option<RunQueueId>, Option<RunQueueId>) {
        let vcpu = &self.vcpus[v];
        let (mut least, mut least_preferred) = (None, None);
        let below = |least: Option<(RunQueueId, i64)>, load| least.is_none_or(|(_, least)| load < least);
        for (r, runqueue) in self.runqueues.enumerate() {
            let own = self.assigned_links.listed(v) && vcpu.runqueue == r;
            let load =
                if own { self.without(runqueue.balance_load, vcpu.load) } else { runqueue.balance_load };
            if left_out == Some(r) || !self.suits(ctx, v, r) || load >= 1 << 60 {
                continue;
            }
            if below(least, load) {
                least = Some((r, load));
            }
            let has_preferred = preferred.is_some_and(|preferred| runqueue.members.meets(preferred));
            if has_preferred && below(least_preferred, load) {
                least_preferred = Some((r, load));
            }
        }
        (least.map(|(r, _)| r), least_preferred.map(|(r, _)| r))
    }

    fn suits(&self, ctx: &PolicyContext, v: VcpuId, r: RunQueueId) -> bool {
        !self.rules.hard_affinity || self.runqueues[r].members.meets(ctx.affinity(v))
    }

    fn may_move(&self, ctx: &PolicyContext, v: VcpuId, r: RunQueueId) -> bool {
        self.vcpus[v].moving_to.is_none() && self.suits(ctx, v, r)
    }

    /// Moves a vCPU between this run queue and the one whose load differs most from it, or swaps two.
    pub(super) fn balance(&mut self, ctx: &mut PolicyContext, own: RunQueueId) {
        self.update_runqueue_load(ctx, own, 0);
        let (mut partner, mut difference) = (None, 0);
        for r in self.runqueues.ids().filter(|&r| r != own) {
            self.update_runqueue_load(ctx, r, 0);
            let (here, there) = (&self.runqueues[own], &self.runqueues[r]);
            let apart = here.balance_load.wrapping_sub(there.balance_load).wrapping_abs();
            if apart > difference {
                (partner, difference) = (Some(r), apart);
            }
        }
        let Some(other) = partner else { return };
        // The release looks at whichever run queue its loop saw last, not at the partner.
        let (here, last) =
            (&self.runqueues[own], self.runqueues.iter().next_back().expect("there is a run queue"));
        let load = here.balance_load.max(last.balance_load);
        let full = i64::from(here.members.len().max(last.members.len())) << self.scale_shift;
        let below = if self.rules.signed_loads { load < full } else { (load as u64) < full as u64 };
        let exponent = if below { self.balance_under } else { self.balance_over };
        if difference < 1 << (i64::from(self.scale_shift) + exponent) {
            return;
        }
        let (push, pull) = self.best_exchange(ctx, own, other, difference);
        if let Some(v) = push {
            self.move_to(ctx, v, other);
        }
        if let Some(v) = pull {
            self.move_to(ctx, v, own);
        }
    }

    /// The vCPU to push to the other run queue and the one to pull from it, of which either may be missing, that bring
    /// the two balance loads closest to each other.
    fn best_exchange(
        &mut self,
        ctx: &PolicyContext,
        own: RunQueueId,
        other: RunQueueId,
        mut difference: i64,
    ) -> (Option<VcpuId>, Option<VcpuId>) {
        let (own_load, other_load) = (self.runqueues[own].balance_load, self.runqueues[other].balance_load);
        let mut best = (None, None);
        let mut consider = |vcpus: &Table<VcpuId, Vcpu>, push: Option<VcpuId>, pull: Option<VcpuId>| {
            let load = |v: Option<VcpuId>| v.map_or(0, |v| vcpus[v].load.value);
            let moved = load(push).wrapping_sub(load(pull));
            let apart =
                own_load.wrapping_sub(moved).wrapping_sub(other_load.wrapping_add(moved)).wrapping_abs();
            if apart < difference {
                difference = apart;
                best = (push, pull);
            }
        };
        let mut first = true;
        let mut push = self.runqueues[own].assigned.first();
        while let Some(a) = push {
            push = self.assigned_links.next(a);
            self.update_vcpu_load(ctx, a, 0);
            if !self.may_move(ctx, a, other) {
                continue;
            }
            let mut pull = self.runqueues[other].assigned.first();
            while let Some(b) = pull {
                pull = self.assigned_links.next(b);
                if first {
                    self.update_vcpu_load(ctx, b, 0);
                }
                if self.may_move(ctx, b, own) {
                    consider(&self.vcpus, Some(a), Some(b));
                }
            }
            first = false;
            consider(&self.vcpus, Some(a), None);
        }
        for b in self.assigned_links.iter(&self.runqueues[other].assigned) {
            if self.may_move(ctx, b, own) {
                consider(&self.vcpus, None, Some(b));
            }
        }
        best
    }
}
