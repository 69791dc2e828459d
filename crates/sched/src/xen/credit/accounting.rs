//! Ticks, charging, and the accounting pass.

use vcpulab_host::{DomId, PcpuId, PolicyContext, Scheduler, Span, Time, VcpuId};

use super::{Credit, Priority};

/// CPU time that a tick costs where it is not measured, ms.
const TICK_MS: i32 = 10;

impl Credit {
    /// Charges `v` for the time since it was last charged. A charge of no whole credit leaves `start` but keeps the
    /// residual, so that time counts twice; the releases do so.
    #[inline]
    pub(super) fn burn(&mut self, v: VcpuId, now: Time) {
        let vcpu = &mut self.vcpus[v];
        let elapsed = now - vcpu.start;
        if elapsed <= Span::ZERO {
            return;
        }
        let amount = elapsed.ns() * 10 + i64::from(vcpu.residual);
        let credits = amount / 1_000_000;
        vcpu.residual = (amount % 1_000_000) as i32;
        vcpu.credit = vcpu.credit.wrapping_sub(credits as i32);
        vcpu.start += credits * Span::from_us(100);
    }

    pub(super) fn tick(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let v = ctx.current(p);
        self.pcpus[p].ticks += 1;
        if !ctx.is_idle(v) {
            let vcpu = &mut self.vcpus[v];
            if vcpu.priority == Priority::Boost {
                vcpu.priority = Priority::Under;
            }
            if self.rules.measured {
                self.burn(v, ctx.now());
            } else {
                vcpu.credit = vcpu.credit.wrapping_sub(TICK_MS * self.rules.credits_per_ms as i32);
            }
            if !self.vcpus[v].active {
                self.activate(ctx, v);
            } else if self.rules.tick_migrates && self.choose(ctx, v).pcpu != p {
                ctx.start_migration(v);
                ctx.raise_reschedule(p);
            }
        }
        let third = p == ctx.first_pcpu() && self.pcpus[p].ticks.is_multiple_of(3);
        if !self.rules.accounting_timer && third {
            self.account(ctx);
        }
        self.sort(p);
        let pcpu = &self.pcpus[p];
        ctx.set_timer(pcpu.tick, ctx.now() + self.tick);
    }

    // ---- active vCPUs and domains ----

    pub(super) fn activate(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if self.vcpus[v].active {
            return;
        }
        self.vcpus[v].active = true;
        let d = ctx.dom(v);
        let domain = &mut self.domains[d];
        domain.active_count += 1;
        self.active_links.push_front(&mut domain.active, v);
        let first = domain.active_count == 1;
        if self.rules.weight_per_vcpu || first {
            self.total_weight = self.total_weight.wrapping_add(domain.weight);
        }
        if first {
            self.active_domain_links.push_front(&mut self.active_domains, d);
        }
    }

    pub(super) fn deactivate(&mut self, d: DomId, v: VcpuId) {
        self.vcpus[v].active = false;
        let domain = &mut self.domains[d];
        domain.active_count -= 1;
        self.active_links.remove(&mut domain.active, v);
        let last = domain.active_count == 0;
        if self.rules.weight_per_vcpu || last {
            self.total_weight = self.total_weight.wrapping_sub(domain.weight);
        }
        if last {
            self.active_domain_links.remove(&mut self.active_domains, d);
        }
    }

    pub(super) fn set_weight(&mut self, d: DomId, weight: u32) {
        let domain = &mut self.domains[d];
        let count = if self.rules.weight_per_vcpu { domain.active_count } else { domain.active_count.min(1) };
        let change = weight.wrapping_sub(domain.weight).wrapping_mul(count);
        self.total_weight = self.total_weight.wrapping_add(change);
        domain.weight = weight;
    }

    // ---- the accounting pass ----

    /// Hands out the credits of a period by weight. (`docs/schedulers/credit.md`, *The accounting pass*, whose names
    /// these are.)
    pub(super) fn account(&mut self, ctx: &mut PolicyContext) {
        let mut total = self.total_credit;
        if self.credit_balance < 0 {
            total = total.wrapping_add(self.credit_balance.wrapping_neg() as u32);
        }
        let all_weight = self.total_weight;
        if all_weight == 0 {
            self.credit_balance = 0;
            return;
        }
        let (debt, mut left) = (self.credit_balance.wrapping_neg(), all_weight);
        let (mut sum, mut extra) = (0i32, false);
        let mut next_domain = self.active_domains.first();
        while let Some(number) = next_domain {
            next_domain = self.active_domain_links.next(number);
            let domain = &self.domains[number];
            let (count, cap) = (domain.active_count, domain.cap);
            let weight =
                if self.rules.weight_per_vcpu { domain.weight.wrapping_mul(count) } else { domain.weight };
            left = left.wrapping_sub(weight);
            let mut peak = count.wrapping_mul(self.period_credit);
            if self.credit_balance < 0 {
                peak = peak.wrapping_add(up((debt as u32).wrapping_mul(weight), all_weight));
            }
            let mut cap_each = 0;
            if cap != 0 {
                let cap_credit = up(cap.wrapping_mul(self.period_credit), 100);
                peak = peak.min(cap_credit);
                cap_each = up(cap_credit, count);
            }
            let mut fair = up(total.wrapping_mul(weight), all_weight);
            if fair < peak {
                extra = true;
            } else {
                if left != 0 {
                    total = total.wrapping_add(up((fair - peak).wrapping_mul(all_weight), left));
                }
                if extra {
                    self.active_domain_links.remove(&mut self.active_domains, number);
                    self.active_domain_links.push_front(&mut self.active_domains, number);
                }
                fair = peak;
            }
            let share = up(fair, count) as i32;
            let mut next_vcpu = self.domains[number].active.first();
            while let Some(u) = next_vcpu {
                next_vcpu = self.active_links.next(u);
                sum = sum.wrapping_add(self.credit_vcpu(ctx, number, u, share, cap_each));
            }
        }
        // Priorities have changed in the queues.
        ctx.pcpus().iter().for_each(|p| self.note_head(p));
        self.credit_balance = sum;
        self.epoch = self.epoch.wrapping_add(1);
        self.report(ctx);
    }

    /// Gives `v` its share of the period; returns the share's part in the balance. `cap_each`: the debt at which a
    /// capped vCPU is parked.
    fn credit_vcpu(
        &mut self,
        ctx: &mut PolicyContext,
        d: DomId,
        v: VcpuId,
        share: i32,
        cap_each: u32,
    ) -> i32 {
        let bound = self.period_credit as i32;
        let capped = self.domains[d].cap != 0;
        let vcpu = &mut self.vcpus[v];
        vcpu.credit = vcpu.credit.wrapping_add(share);
        let credit = vcpu.credit;
        if credit < 0 {
            vcpu.credit = credit.max(-bound);
            let kept = vcpu.credit;
            if !self.rules.cap_pauses {
                vcpu.priority = if capped { Priority::Parked } else { Priority::Over };
                return kept;
            }
            vcpu.priority = Priority::Over;
            if capped && i64::from(credit) < -i64::from(cap_each) && !vcpu.parked {
                vcpu.parked = true;
                ctx.park(v);
                self.sleep(ctx, v);
            }
            return kept;
        }
        vcpu.priority = Priority::Under;
        if vcpu.parked {
            // One that is still called parked when it wakes is not boosted.
            vcpu.parked = !self.rules.boost_unparked;
            ctx.unpark(v);
            if ctx.runnable(v) {
                self.wake(ctx, v);
            }
            self.vcpus[v].parked = false;
        }
        if credit <= bound {
            return credit;
        }
        self.deactivate(d, v);
        let kept = if self.rules.inactive_keeps_half { credit / 2 } else { 0 };
        self.vcpus[v].credit = kept;
        if self.rules.balance_counts_lost { credit } else { kept }
    }

    fn report(&self, ctx: &mut PolicyContext) {
        if !ctx.wants_state() {
            return;
        }
        for (index, vcpu) in self.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.active) {
            let v = VcpuId(index as u32);
            ctx.report(v, "credit", i64::from(vcpu.credit));
            ctx.report(v, "priority", vcpu.priority as i64);
        }
    }
}

/// a / b rounded up, unless the sum wraps.
fn up(a: u32, b: u32) -> u32 {
    a.wrapping_add(b.wrapping_sub(1)) / b
}
