//! Caps: a domain has a budget of CPU time in each period, from which its vCPUs take their quotas. A vCPU without
//! budget is parked.

use vcpulab_host::{DomId, PolicyContext, Rejected, Span, VcpuId};

use super::params::cap_fits;
use super::{Credit2, Vcpu};
use crate::list::List;

/// The least that a vCPU takes out of its domain's budget at a time, if the budget has that much.
const QUOTA_MIN: Span = Span::from_us(500);

impl Credit2 {
    /// Whether `v` has budget, needs none, or could take some out of its domain's. If not, `v` is parked.
    pub(super) fn grab_budget(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> bool {
        let Vcpu { budget, quota, .. } = self.vcpus[v];
        let Some(budget) = budget.filter(|&budget| budget <= Span::ZERO) else { return true };
        let d = ctx.dom(v);
        let domain = &mut self.domains[d];
        domain.budget += budget;
        if domain.budget > Span::ZERO {
            let grabbed = quota.min(domain.budget);
            domain.budget -= grabbed;
            self.vcpus[v].budget = Some(grabbed);
            return true;
        }
        self.vcpus[v].budget = Some(Span::ZERO);
        ctx.park(v);
        if self.waits(v) {
            self.dequeue(v);
            self.update_load(ctx, v, -1);
        }
        self.parked_links.push_front(&mut self.domains[d].parked, v);
        false
    }

    /// Gives the rest of the budget of `v` back when it stops running; returns the parked vCPUs that can continue with it.
    pub(super) fn return_budget(&mut self, ctx: &PolicyContext, v: VcpuId) -> List<VcpuId> {
        let vcpu = &mut self.vcpus[v];
        let Some(budget) = vcpu.budget.filter(|&budget| budget > Span::ZERO) else { return List::default() };
        vcpu.budget = Some(Span::ZERO);
        let domain = &mut self.domains[ctx.dom(v)];
        domain.budget += budget;
        if domain.budget > Span::ZERO { std::mem::take(&mut domain.parked) } else { List::default() }
    }

    pub(super) fn unpark(&mut self, ctx: &mut PolicyContext, mut parked: List<VcpuId>) {
        while let Some(u) = parked.first() {
            self.parked_links.remove(&mut parked, u);
            let v = u;
            ctx.unpark(v);
            if self.vcpus[v].on_cpu {
                self.vcpus[v].delayed_add = true;
            } else if ctx.runnable(v) {
                self.update_load(ctx, v, 1);
                self.enqueue(v);
                self.find_pcpu(ctx, v);
            }
        }
    }

    pub(super) fn refill(&mut self, ctx: &mut PolicyContext, d: DomId) {
        let (now, period) = (ctx.now(), self.cap_period);
        let domain = &mut self.domains[d];
        while domain.next_refill <= now {
            domain.next_refill += period;
            domain.budget += domain.budget_per_period;
        }
        let Some(refill) = domain.refill else { return };
        ctx.set_timer(refill, domain.next_refill);
        if domain.budget <= Span::ZERO {
            return;
        }
        domain.budget = domain.budget.min(domain.budget_per_period);
        let (budget, parked) = (domain.budget, std::mem::take(&mut domain.parked));
        ctx.report_domain(d, "budget", budget.ns());
        self.unpark(ctx, parked);
    }

    pub(super) fn set_cap(&mut self, ctx: &mut PolicyContext, d: DomId, cap: i64) -> Result<(), Rejected> {
        let count = ctx.vcpus_of(d).count() as i64;
        cap_fits(cap, count)?;
        let was_capped = self.domains[d].cap != 0;
        self.domains[d].cap = cap;
        let Some(refill) = self.domains[d].refill else { return Ok(()) };
        if cap == 0 {
            if was_capped {
                ctx.stop_timer(refill);
                for v in ctx.vcpus_of(d) {
                    self.vcpus[v].budget = None;
                    self.vcpus[v].quota = Span::ZERO;
                }
                let parked = std::mem::take(&mut self.domains[d].parked);
                self.unpark(ctx, parked);
            }
            return Ok(());
        }
        let per_period = self.cap_period * cap / 100;
        self.domains[d].budget_per_period = per_period;
        for v in ctx.vcpus_of(d) {
            self.vcpus[v].quota = (per_period / count).max(QUOTA_MIN);
        }
        if !was_capped {
            let next_refill = ctx.now() + self.cap_period;
            let domain = &mut self.domains[d];
            (domain.budget, domain.next_refill) = (per_period, next_refill);
            ctx.set_timer(refill, next_refill);
            for v in ctx.vcpus_of(d) {
                if ctx.is_current(v) {
                    self.charge(ctx, v);
                    self.tickle(ctx, ctx.processor(v));
                }
                self.vcpus[v].budget = Some(Span::ZERO);
            }
        }
        Ok(())
    }
}
