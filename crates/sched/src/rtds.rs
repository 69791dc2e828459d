//! RTDS: every vCPU is a deferrable server with a budget in each period; global preemptive earliest deadline first.

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, ParamKind, ParamSpec, Params, PcpuId, PolicyContext, Rejected,
    Scheduler, Scope, Span, Table, Time, TimerId, VcpuId,
};

use crate::list::{Links, List};
use crate::params::US;
use crate::policy::{Generation, Registered};
use crate::table::put;
use crate::toolstack::{Set, Toolstack};

/// Least period and budget.
const LEAST: Span = Span::from_us(10);

#[derive(Clone, Debug)]
struct Vcpu {
    period: Span,
    budget: Span,
    remaining: Span,
    charged_at: Time,
    deadline: Time,
    level: u32,
    extratime: bool,
    on_cpu: bool,
    delayed_add: bool,
    depleted: bool,
    /// Is the queue that it waits on the depleted one?
    without_budget: bool,
}

impl Vcpu {
    const NEW: Vcpu = Vcpu {
        period: Span::from_us(PERIOD.default),
        budget: Span::from_us(BUDGET.default),
        remaining: Span::ZERO,
        charged_at: Time::ZERO,
        deadline: Time::ZERO,
        level: 0,
        extratime: true,
        on_cpu: false,
        delayed_add: false,
        depleted: false,
        without_budget: false,
    };

    /// A new budget, one level further back.
    fn go_on(&mut self, rules: Rules) {
        self.level =
            if rules.level_saturates { self.level.saturating_add(1) } else { self.level.wrapping_add(1) };
        self.remaining = self.budget;
    }

    fn beats(&self, other: &Vcpu) -> bool {
        (self.level, self.deadline) < (other.level, other.deadline)
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Rtds {
    rules: Rules,
    /// By vCPU; the idle ones' entries are never read.
    vcpus: Table<VcpuId, Vcpu>,
    run_queue: List<VcpuId>,
    depleted_queue: List<VcpuId>,
    refill_queue: List<VcpuId>,
    /// Links of the run queue and the depleted queue, and of the refill queue.
    waiting: Links<VcpuId>,
    refilling: Links<VcpuId>,
    tickled: CpuMask,
    /// The pCPUs that chose to idle.
    idlers: CpuMask,
    refill_timer: Option<TimerId>,
    first_pcpu: Option<PcpuId>,
}

impl Rtds {
    fn refresh(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let now = ctx.now();
        let vcpu = &mut self.vcpus[v];
        let periods = (now - vcpu.deadline) / vcpu.period + 1;
        vcpu.deadline += periods * vcpu.period;
        vcpu.charged_at = now;
        vcpu.remaining = vcpu.budget;
        vcpu.level = 0;
        let (deadline, remaining) = (vcpu.deadline, vcpu.remaining);
        ctx.report(v, "deadline", deadline.ns());
        ctx.report(v, "budget", remaining.ns());
    }

    /// The first of a queue that `v` beats.
    fn first_beaten(&self, links: &Links<VcpuId>, queue: &List<VcpuId>, v: VcpuId) -> Option<VcpuId> {
        links.iter(queue).find(|&u| self.vcpus[v].beats(&self.vcpus[u]))
    }

    // ---- refill queue ----

    fn set_refill_timer(&mut self, ctx: &mut PolicyContext) {
        let Some(timer) = self.refill_timer else { return };
        match self.refill_queue.first() {
            Some(first) => ctx.set_timer(timer, self.vcpus[first].deadline),
            None => ctx.stop_timer(timer),
        }
    }

    /// Insertion by order, without touching the timer.
    fn await_refill(&mut self, v: VcpuId) {
        let before = self.first_beaten(&self.refilling, &self.refill_queue, v);
        self.refilling.insert_before(&mut self.refill_queue, v, before);
    }

    fn refill_insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.await_refill(v);
        if self.refill_queue.first() == Some(v) {
            self.set_refill_timer(ctx);
        }
    }

    fn refill_remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if !self.refilling.listed(v) {
            return;
        }
        let was_first = self.refill_queue.first() == Some(v);
        self.refilling.remove(&mut self.refill_queue, v);
        if was_first {
            self.set_refill_timer(ctx);
        }
    }

    fn refill_reinsert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let was_first = self.refill_queue.first() == Some(v);
        self.refilling.remove(&mut self.refill_queue, v);
        self.await_refill(v);
        if was_first || self.refill_queue.first() == Some(v) {
            self.set_refill_timer(ctx);
        }
    }

    // ---- run queue ----

    fn enqueue(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v];
        vcpu.without_budget = vcpu.remaining <= Span::ZERO && !vcpu.extratime;
        if vcpu.without_budget {
            self.waiting.push_front(&mut self.depleted_queue, v);
        } else {
            let before = self.first_beaten(&self.waiting, &self.run_queue, v);
            self.waiting.insert_before(&mut self.run_queue, v, before);
        }
    }

    /// The first that waits with budget and may run on `p`, or its idle vCPU.
    fn first_for(&self, ctx: &PolicyContext, p: PcpuId) -> VcpuId {
        let first = self.waiting.iter(&self.run_queue).find(|&v| ctx.affinity(v).contains(p));
        first.unwrap_or(ctx.idle(p))
    }

    fn dequeue(&mut self, v: VcpuId) {
        let without_budget = self.vcpus[v].without_budget;
        let queue = if without_budget { &mut self.depleted_queue } else { &mut self.run_queue };
        self.waiting.remove(queue, v);
    }

    /// Charges `v` for the time since it was last charged.
    fn charge(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let vcpu = &mut self.vcpus[v];
        vcpu.remaining -= ctx.now() - vcpu.charged_at;
        vcpu.charged_at = ctx.now();
        if vcpu.remaining > Span::ZERO {
            return;
        }
        if vcpu.extratime {
            vcpu.go_on(self.rules);
        } else {
            vcpu.remaining = Span::ZERO;
            vcpu.depleted = true;
        }
    }

    /// Asks an idle pCPU, or the one that runs the least urgent vCPU, to decide because `v` waits.
    fn tickle(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let mut suitable = ctx.affinity(v).and(ctx.pcpus()).without(&self.tickled);
        let own = ctx.processor(v);
        let from = |pcpus: &CpuMask| if pcpus.contains(own) { Some(own) } else { pcpus.next_after(own) };
        debug_assert!(ctx.pcpus().iter().all(|p| self.idlers.contains(p) == ctx.is_idle(ctx.current(p))));
        if let Some(idler) = from(&suitable.and(&self.idlers)) {
            return self.take(ctx, idler);
        }
        let mut visited = from(&suitable);
        let mut worst: Option<VcpuId> = None;
        while let Some(p) = visited {
            suitable.remove(p);
            let current = ctx.current(p);
            if worst.is_none_or(|worst| self.vcpus[worst].beats(&self.vcpus[current])) {
                worst = Some(current);
            }
            visited = suitable.next_after(p);
        }
        if let Some(worst) = worst
            && self.vcpus[v].beats(&self.vcpus[worst])
        {
            self.take(ctx, ctx.processor(worst));
        }
    }

    fn take(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.tickled.insert(p);
        ctx.raise_reschedule(p);
    }
}

impl Scheduler for Rtds {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.refill_timer.get_or_insert_with(|| ctx.new_timer(p, 0));
        self.first_pcpu.get_or_insert(p);
        self.idlers.insert(p);
    }

    /// There is one run queue.
    fn lock(&self, p: PcpuId) -> PcpuId {
        self.first_pcpu.unwrap_or(p)
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        put(&mut self.vcpus, v, Vcpu::NEW);
        self.waiting.grow(v);
        self.refilling.grow(v);
        let own = self.pick(ctx, v);
        ctx.set_processor(v, own);
        self.refresh(ctx, v);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.waiting.listed(v) {
            return;
        }
        let missed = ctx.now() >= self.vcpus[v].deadline;
        if missed {
            self.refresh(ctx, v);
        }
        if self.vcpus[v].on_cpu {
            self.vcpus[v].delayed_add = true;
            if missed {
                self.refill_reinsert(ctx, v);
            }
            return;
        }
        self.refill_insert(ctx, v);
        self.enqueue(v);
        self.tickle(ctx, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        } else if self.waiting.listed(v) {
            self.dequeue(v);
            self.refill_remove(ctx, v);
        } else {
            self.vcpus[v].delayed_add = false;
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        self.tickled.remove(p);
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        self.charge(ctx, current);
        let mut next = self.first_for(ctx, p);
        while !ctx.runnable(next) {
            self.dequeue(next);
            self.refill_remove(ctx, next);
            next = if self.rules.looks_again { self.first_for(ctx, p) } else { idle };
        }
        if current != idle && ctx.runnable(current) {
            let vcpu = &self.vcpus[current];
            if vcpu.remaining > Span::ZERO && (next == idle || vcpu.beats(&self.vcpus[next])) {
                next = current;
            } else {
                self.vcpus[current].delayed_add = true;
            }
        }
        self.idlers.put(p, next == idle);
        if next == idle {
            return Decision { next, slice: Decision::UNLIMITED };
        }
        if next != current {
            self.dequeue(next);
            self.vcpus[next].on_cpu = true;
        }
        ctx.set_processor(next, p);
        let vcpu = &mut self.vcpus[next];
        vcpu.charged_at = ctx.now();
        Decision { next, slice: vcpu.remaining }
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let vcpu = &mut self.vcpus[v];
        vcpu.on_cpu = false;
        if std::mem::take(&mut vcpu.delayed_add) && ctx.runnable(v) {
            self.enqueue(v);
            self.tickle(ctx, v);
        } else {
            self.refill_remove(ctx, v);
        }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (own, affinity) = (ctx.processor(v), ctx.affinity(v));
        if affinity.contains(own) { own } else { affinity.next_after(own).unwrap_or(own) }
    }

    /// The refill timer: new budgets for all whose period is over.
    fn timer(&mut self, ctx: &mut PolicyContext, _token: u32) {
        let mut refilled = List::default();
        while let Some(u) = self.refill_queue.first()
            && self.vcpus[u].deadline <= ctx.now()
        {
            self.refilling.remove(&mut self.refill_queue, u);
            self.refresh(ctx, u);
            self.refilling.push_front(&mut refilled, u);
            if self.waiting.listed(u) {
                self.dequeue(u);
                self.enqueue(u);
            }
        }
        while let Some(u) = refilled.first() {
            self.refilling.remove(&mut refilled, u);
            let v = u;
            match self.run_queue.first().filter(|_| ctx.is_current(v)) {
                Some(first) if self.vcpus[first].beats(&self.vcpus[v]) => {
                    self.tickle(ctx, first);
                }
                Some(_) => {}
                None => {
                    if std::mem::take(&mut self.vcpus[v].depleted) && self.waiting.listed(u) {
                        self.tickle(ctx, v);
                    }
                }
            }
            self.await_refill(v);
        }
        if self.refill_queue.first().is_some() {
            self.set_refill_timer(ctx);
        }
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        let mut result = Ok(());
        for v in ctx.vcpus_of(d) {
            let vcpu = &mut self.vcpus[v];
            let period = params.int(PERIOD.name).map_or(vcpu.period, |us| US.saturating_mul(us));
            let budget = params.int(BUDGET.name).map_or(vcpu.budget, |us| US.saturating_mul(us));
            if period < LEAST || budget < LEAST || budget > period {
                result = Err(Rejected);
                continue;
            }
            vcpu.period = period;
            vcpu.budget = budget;
            let before = vcpu.extratime;
            vcpu.extratime = params.int(EXTRATIME.name).map_or(before, |flag| flag != 0);
            let gained = vcpu.extratime && !before;
            if self.rules.extratime_refills && gained && vcpu.remaining <= Span::ZERO {
                vcpu.depleted = false;
                vcpu.go_on(self.rules);
                if self.waiting.listed(v) {
                    self.dequeue(v);
                    self.enqueue(v);
                }
            }
        }
        result
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (name, queue) in [("run queue", &self.run_queue), ("depleted", &self.depleted_queue)] {
            write!(out, "{name}:")?;
            for u in self.waiting.iter(queue) {
                let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
                write!(
                    out,
                    " d{domain}v{number}(deadline {} level {} left {})",
                    vcpu.deadline, vcpu.level, vcpu.remaining
                )?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

// ---- parameters and creation ----

const XL: Toolstack = Toolstack {
    tool: "xl",
    sched: "rtds",
    domain: "sched-rtds -d DOM -v all",
    global: "",
    set: &[
        (PERIOD.name, Set::Always("-p")),
        (BUDGET.name, Set::Always("-b")),
        (EXTRATIME.name, Set::Always("-e")),
    ],
};
const PERIOD: ParamSpec = ParamSpec {
    name: "period_us",
    scope: Scope::Domain,
    unit: "us",
    kind: ParamKind::Int { min: 10, max: 1_000_000_000, also: &[] },
    default: 10_000,
    doc: "How often each vCPU's budget is refilled; also its relative deadline.",
};
const BUDGET: ParamSpec = ParamSpec {
    name: "budget_us",
    scope: Scope::Domain,
    unit: "us",
    kind: ParamKind::Int { min: 10, max: 1_000_000_000, also: &[] },
    default: 4_000,
    doc: "CPU time for each vCPU in each period; not more than the period.",
};
const EXTRATIME: ParamSpec = ParamSpec {
    name: "extratime",
    scope: Scope::Domain,
    unit: "",
    kind: ParamKind::Flag,
    default: 1,
    doc: "1: a vCPU that has used its budget goes on in the time that nobody with budget wants.",
};

/// The rules of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A decision goes on to the next that waits when the first cannot run. Otherwise it leaves the pCPU idle.
    looks_again: bool,
    /// Extra time given to a vCPU without budget refills it at once. Otherwise it waits for its next period.
    extratime_refills: bool,
    /// The level stops at the greatest number. Otherwise it wraps.
    level_saturates: bool,
}

const XEN_4_17: Rules = Rules { looks_again: false, extratime_refills: false, level_saturates: false };
const XEN_4_18: Rules = Rules { looks_again: true, ..XEN_4_17 };
const XEN_4_20_4: Rules = Rules { extratime_refills: true, ..XEN_4_18 };
/// The release also checks settings of a whole domain; here they are made for each vCPU, and those were always checked.
const XEN_4_22: Rules = Rules { level_saturates: true, ..XEN_4_20_4 };

const fn generation(name: &'static str, since: &'static [(&'static str, u32)]) -> Generation {
    let params = &[PERIOD, BUDGET, EXTRATIME];
    Generation { name, since, params, toolstack: XL, work_conserving: false, hard_affinity: true }
}

impl Registered for Rtds {
    type Rules = Rules;
    const NAME: &'static str = "rtds";
    const DOC: &'static str = "Real-time: a budget in each period by global earliest deadline first.";
    const GENERATIONS: &'static [(Generation, Rules)] = &[
        (generation("xen4.17", &[("xen4.17", 0)]), XEN_4_17),
        (generation("xen4.19", &[("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0), ("xen4.21", 0)]), XEN_4_18),
        (generation("xen4.21", &[("xen4.20", 4), ("xen4.21", 2)]), XEN_4_20_4),
        (generation("xen4.22", &[("xen4.22", 0)]), XEN_4_22),
    ];

    fn new(rules: Rules, _global: &Params, _pcpus: u32) -> Self {
        Rtds {
            rules,
            vcpus: Table::new(),
            run_queue: List::default(),
            depleted_queue: List::default(),
            refill_queue: List::default(),
            waiting: Links::default(),
            refilling: Links::default(),
            tickled: CpuMask::EMPTY,
            idlers: CpuMask::EMPTY,
            refill_timer: None,
            first_pcpu: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No run gets there: it takes more than four billion budgets within one period.
    #[test]
    fn the_last_level_is_the_worst_from_4_22_on() {
        let after = |rules| {
            let mut vcpu = Vcpu { level: u32::MAX, ..Vcpu::NEW };
            vcpu.go_on(rules);
            (vcpu.level, vcpu.remaining)
        };
        assert_eq!(after(XEN_4_20_4), (0, Vcpu::NEW.budget));
        assert_eq!(after(XEN_4_22), (u32::MAX, Vcpu::NEW.budget));
    }
}
