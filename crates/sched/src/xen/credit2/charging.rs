//! Burning credit, and the reset, which gives every vCPU a fresh allotment.

use vcpulab_host::{PolicyContext, Span, VcpuId};

use super::{ALLOTMENT, Credit2, RunQueueId};

/// Most credit after a reset.
const CREDIT_MAX: i32 = 10_500_000;

impl Credit2 {
    /// Charges `v` for the time since it was last charged, by the ratio of the greatest weight to its own.
    pub(super) fn charge(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let now = ctx.now();
        let max_weight = i64::from(self.runqueues[self.vcpus[v].runqueue].max_weight);
        let vcpu = &mut self.vcpus[v];
        let span = now - vcpu.start;
        if span <= Span::ZERO {
            return;
        }
        let weight = i64::from(vcpu.weight);
        let amount = span.ns() * max_weight + vcpu.residual;
        vcpu.residual = amount % weight;
        let burnt = amount / weight;
        vcpu.credit = match self.rules.credit_min {
            Some(min) => (i64::from(vcpu.credit) - burnt).max(i64::from(min)) as i32,
            None => vcpu.credit.wrapping_sub(burnt as i32),
        };
        if let Some(budget) = &mut vcpu.budget {
            *budget -= span;
        }
        vcpu.start = now;
    }

    /// Resets credit: gives every vCPU of the run queue a fresh allotment, because `next`, chosen to run, or the
    /// waiting vCPUs have none left.
    pub(super) fn reset(&mut self, ctx: &mut PolicyContext, r: RunQueueId, next: VcpuId) {
        let credit = self.vcpus[next].credit;
        let allotment = match self.rules.credit_min {
            Some(min) if credit == min => 2 * ALLOTMENT,
            None if credit < -ALLOTMENT => {
                (1 - i64::from(credit) / i64::from(ALLOTMENT)).wrapping_mul(i64::from(ALLOTMENT)) as i32
            }
            _ => ALLOTMENT,
        };
        let mut element = self.runqueues[r].assigned.first();
        while let Some(u) = element {
            element = self.assigned_links.next(u);
            let v = u;
            if self.rules.reset_charges && ctx.is_current(v) {
                self.charge(ctx, v);
                if self.vcpus[v].budget.is_some_and(|budget| budget <= Span::ZERO) {
                    self.tickle(ctx, ctx.processor(v));
                }
            }
            let vcpu = &mut self.vcpus[v];
            vcpu.credit = vcpu.credit.wrapping_add(allotment).min(CREDIT_MAX);
            vcpu.start = ctx.now();
            let credit = i64::from(vcpu.credit);
            ctx.report(v, "credit", credit);
        }
    }
}
