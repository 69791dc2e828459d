//! RTDS: every vCPU is a deferrable server with a budget in each period; global preemptive earliest deadline first.
//!
//! There is one run queue and one queue of refills for all pCPUs, and who waits may have to be compared with all that run.
//! `queue` and `running` are how that takes steps like a logarithm of the vCPUs and of the pCPUs.

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope, Slice,
    Span, Table, Time, TimerId, VcpuId,
};

use self::key::Key;
use self::queue::Queue;
use self::running::Running;
use crate::list::{Links, List};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::US;
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::role::{ReservationPart, ReservedOn, Role};
use crate::table::put;
use crate::toolstack::{Set, Toolstack};

mod key;
mod queue;
mod running;

/// Least period and budget.
const LEAST: Span = Span::from_us(10);

/// The budget of a vCPU in each period.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    period: Span,
    budget: Span,
}

impl Reservation {
    const NEW: Reservation =
        Reservation { period: Span::from_us(PERIOD.default), budget: Span::from_us(BUDGET.default) };

    /// The reservation with the given values changed.
    fn adjusted(self, params: &Params) -> Result<Reservation, Refusal> {
        let period = params.int(PERIOD.name).map_or(self.period, |us| US.saturating_mul(us));
        let budget = params.int(BUDGET.name).map_or(self.budget, |us| US.saturating_mul(us));
        if period < LEAST || budget < LEAST || budget > period {
            let allowed = "a budget of at most the period, both of at least 10 us";
            return Err(Refusal::new([PERIOD.name, BUDGET.name], allowed));
        }
        Ok(Reservation { period, budget })
    }
}

#[derive(Clone, Debug)]
struct Vcpu {
    reservation: Reservation,
    remaining: Span,
    charged_at: Time,
    deadline: Time,
    level: u32,
    extratime: bool,
    on_cpu: bool,
    delayed_add: bool,
    depleted: bool,
    waits: Waits,
}

/// The queue that a vCPU waits on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waits {
    Nowhere,
    ToRun,
    WithoutBudget,
}

impl Vcpu {
    const NEW: Vcpu = Vcpu {
        reservation: Reservation::NEW,
        remaining: Span::ZERO,
        charged_at: Time::ZERO,
        deadline: Time::ZERO,
        level: 0,
        extratime: true,
        on_cpu: false,
        delayed_add: false,
        depleted: false,
        waits: Waits::Nowhere,
    };

    /// Gives the vCPU a new budget, one priority level lower.
    fn go_on(&mut self, rules: Rules) {
        self.level =
            if rules.level_saturates { self.level.saturating_add(1) } else { self.level.wrapping_add(1) };
        self.remaining = self.reservation.budget;
    }

    #[inline(always)]
    fn key(&self) -> Key {
        Key::new(self.level, self.deadline)
    }

    fn beats(&self, other: &Vcpu) -> bool {
        self.key() < other.key()
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Rtds {
    rules: Rules,
    /// vCPUs by id; the entries of idle vCPUs are never read.
    vcpus: Table<VcpuId, Vcpu>,
    run_queue: Queue,
    refill_queue: Queue,
    depleted_queue: List<VcpuId>,
    depleted_links: Links<VcpuId>,
    /// Refilled vCPUs that are not back on the refill queue yet. Empty outside the refill timer's hook.
    refilled: Vec<VcpuId>,
    /// Keys of the pCPUs' current vCPUs; the least key for pCPUs that idle or are tickled.
    running: Running,
    tickled: CpuMask,
    /// Idle pCPUs, which chose to run their idle vCPU.
    idlers: CpuMask,
    refill_timer: Option<TimerId>,
    first_pcpu: Option<PcpuId>,
}

impl Rtds {
    fn refresh(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let now = ctx.now();
        let vcpu = &mut self.vcpus[v];
        let periods = (now - vcpu.deadline) / vcpu.reservation.period + 1;
        vcpu.deadline += periods * vcpu.reservation.period;
        vcpu.charged_at = now;
        vcpu.remaining = vcpu.reservation.budget;
        vcpu.level = 0;
        let (deadline, remaining) = (vcpu.deadline, vcpu.remaining);
        ctx.report(v, "deadline", deadline.ns());
        ctx.report(v, "budget", remaining.ns());
    }

    /// Updates the key of `v`, which has changed; `v` does not wait.
    fn rekey_running(&mut self, ctx: &PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        if ctx.is_current(v) && !self.tickled.contains(p) {
            self.running.set(p, self.vcpus[v].key());
        }
    }

    // ---- refill queue ----

    fn set_refill_timer(&mut self, ctx: &mut PolicyContext) {
        let Some(timer) = self.refill_timer else { return };
        match self.refill_queue.first() {
            Some(first) => ctx.set_timer(timer, self.vcpus[first].deadline),
            None => ctx.stop_timer(timer),
        }
    }

    /// Inserts a vCPU in order, without setting the timer.
    fn await_refill(&mut self, v: VcpuId) {
        self.refill_queue.insert(v, self.vcpus[v].key());
    }

    fn refill_insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.await_refill(v);
        if self.refill_queue.first() == Some(v) {
            self.set_refill_timer(ctx);
        }
    }

    fn refill_remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if !self.refill_queue.listed(v) {
            return;
        }
        let was_first = self.refill_queue.first() == Some(v);
        self.refill_queue.remove(v);
        if was_first {
            self.set_refill_timer(ctx);
        }
    }

    fn refill_reinsert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let was_first = self.refill_queue.first() == Some(v);
        self.refill_queue.remove(v);
        self.await_refill(v);
        if was_first || self.refill_queue.first() == Some(v) {
            self.set_refill_timer(ctx);
        }
    }

    /// Gives `v` a new budget, one priority level lower, without moving it in the refill queue.
    fn go_on(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v];
        vcpu.go_on(self.rules);
        if self.refill_queue.listed(v) {
            self.refill_queue.rekey(v, vcpu.key());
        }
    }

    // ---- run queue ----

    fn enqueue(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v];
        if vcpu.remaining <= Span::ZERO && !vcpu.extratime {
            vcpu.waits = Waits::WithoutBudget;
            self.depleted_links.push_front(&mut self.depleted_queue, v);
        } else {
            vcpu.waits = Waits::ToRun;
            self.run_queue.insert(v, vcpu.key());
        }
    }

    /// The first vCPU with budget that may run on `p`, or its idle vCPU (`runq_pick`).
    fn first_for(&self, ctx: &PolicyContext, p: PcpuId) -> VcpuId {
        let first = self.run_queue.iter().find(|&v| ctx.affinity(v).contains(p));
        first.unwrap_or(ctx.idle(p))
    }

    fn dequeue(&mut self, v: VcpuId) {
        match std::mem::replace(&mut self.vcpus[v].waits, Waits::Nowhere) {
            Waits::Nowhere => debug_assert!(false, "only who waits can be taken off a queue"),
            Waits::ToRun => self.run_queue.remove(v),
            Waits::WithoutBudget => self.depleted_links.remove(&mut self.depleted_queue, v),
        }
    }

    fn waits(&self, v: VcpuId) -> bool {
        self.vcpus[v].waits != Waits::Nowhere
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
            self.go_on(v);
        } else {
            vcpu.remaining = Span::ZERO;
            vcpu.depleted = true;
        }
    }

    /// Tickles an idle pCPU, or the one that runs the least urgent vCPU, because `v` waits.
    fn tickle(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let suitable = ctx.affinity(v).and(ctx.pcpus()).without(&self.tickled);
        let own = ctx.processor(v);
        debug_assert!(ctx.pcpus().iter().all(|p| self.knows_what_runs(ctx, p)));
        let idlers = suitable.and(&self.idlers);
        let idler = if idlers.contains(own) { Some(own) } else { idlers.next_after(own) };
        let key = self.vcpus[v].key();
        if let Some(p) = idler.or_else(|| self.running.greatest(own, &suitable, key)) {
            self.take(ctx, p);
        }
    }

    /// Whether the state kept for `p` agrees with the host's.
    fn knows_what_runs(&self, ctx: &PolicyContext, p: PcpuId) -> bool {
        let (v, key) = (ctx.current(p), self.running.key(p));
        let asked = !ctx.is_idle(v) && !self.tickled.contains(p);
        self.idlers.contains(p) == ctx.is_idle(v)
            && key == if asked { self.vcpus[v].key() } else { Key::LEAST }
            && (ctx.is_idle(v) || ctx.processor(v) == p)
    }

    fn take(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.tickled.insert(p);
        self.running.set(p, Key::LEAST);
        ctx.raise_reschedule(p);
    }

    fn dump_queue(
        &self,
        ctx: &PolicyContext,
        out: &mut dyn fmt::Write,
        name: &str,
        queue: impl Iterator<Item = VcpuId>,
    ) -> fmt::Result {
        write!(out, "{name}:")?;
        for u in queue {
            let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
            let (deadline, level, left) = (vcpu.deadline, vcpu.level, vcpu.remaining);
            write!(out, " d{domain}v{number}(deadline {deadline} level {level} left {left})")?;
        }
        writeln!(out)
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
        self.running.grow(p);
    }

    /// Lock of a run queue: all pCPUs share one.
    fn lock(&self, p: PcpuId) -> PcpuId {
        self.first_pcpu.unwrap_or(p)
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        put(&mut self.vcpus, v, Vcpu::NEW);
        self.run_queue.grow(v);
        self.refill_queue.grow(v);
        self.depleted_links.grow(v);
        self.refilled.reserve(self.vcpus.len());
        let own = self.pick(ctx, v);
        ctx.set_processor(v, own);
        self.refresh(ctx, v);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.waits(v) {
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
        } else if self.waits(v) {
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
            self.running.set(p, Key::LEAST);
            return Decision { next, slice: Slice::Unlimited };
        }
        if next != current {
            self.dequeue(next);
            self.vcpus[next].on_cpu = true;
        }
        ctx.set_processor(next, p);
        let vcpu = &mut self.vcpus[next];
        vcpu.charged_at = ctx.now();
        self.running.set(p, vcpu.key());
        Decision { next, slice: Slice::For(vcpu.remaining) }
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

    /// Handles the refill timer: gives new budgets to all vCPUs whose period is over.
    fn timer(&mut self, ctx: &mut PolicyContext, _token: u32) {
        while let Some(v) = self.refill_queue.first()
            && self.vcpus[v].deadline <= ctx.now()
        {
            self.refill_queue.remove(v);
            self.refresh(ctx, v);
            self.refilled.push(v);
            if self.waits(v) {
                self.dequeue(v);
                self.enqueue(v);
            } else {
                self.rekey_running(ctx, v);
            }
        }
        while let Some(v) = self.refilled.pop() {
            match self.run_queue.first().filter(|_| ctx.is_current(v)) {
                Some(first) if self.vcpus[first].beats(&self.vcpus[v]) => {
                    self.tickle(ctx, first);
                }
                Some(_) => {}
                None => {
                    if std::mem::take(&mut self.vcpus[v].depleted) && self.waits(v) {
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
            match vcpu.reservation.adjusted(params) {
                Ok(reservation) => vcpu.reservation = reservation,
                Err(refusal) => {
                    result = Err(refusal.into());
                    continue;
                }
            }
            let before = vcpu.extratime;
            vcpu.extratime = params.int(EXTRATIME.name).map_or(before, |flag| flag != 0);
            let gained = vcpu.extratime && !before;
            if self.rules.extratime_refills && gained && vcpu.remaining <= Span::ZERO {
                vcpu.depleted = false;
                self.go_on(v);
                if self.waits(v) {
                    self.dequeue(v);
                    self.enqueue(v);
                } else {
                    self.rekey_running(ctx, v);
                }
            }
        }
        result
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let depleted = self.depleted_links.iter(&self.depleted_queue);
        self.dump_queue(ctx, out, "run queue", self.run_queue.iter())?;
        self.dump_queue(ctx, out, "depleted", depleted)
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
    role: Role::Reserved(ReservationPart::Period { unit: US }, ReservedOn::Pool),
    unit: "us",
    kind: ParamKind::Int { min: 10, max: 1_000_000_000, also: &[] },
    default: 10_000,
    doc: "How often each vCPU's budget is refilled; also its relative deadline.",
};
const BUDGET: ParamSpec = ParamSpec {
    name: "budget_us",
    scope: Scope::Domain,
    role: Role::Reserved(ReservationPart::Time { unit: US }, ReservedOn::Pool),
    unit: "us",
    kind: ParamKind::Int { min: 10, max: 1_000_000_000, also: &[] },
    default: 4_000,
    doc: "CPU time for each vCPU in each period; not more than the period.",
};
const EXTRATIME: ParamSpec = ParamSpec {
    name: "extratime",
    scope: Scope::Domain,
    role: Role::Reserved(ReservationPart::Extra { by_default: true }, ReservedOn::Pool),
    unit: "",
    kind: ParamKind::Flag,
    default: 1,
    doc: "1: a vCPU that has used its budget goes on in the time that nobody with budget wants.",
};

/// The rules of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A decision takes the next waiting vCPU when the first cannot run. `false`: it leaves the pCPU idle.
    looks_again: bool,
    /// Extra time given to a vCPU without budget refills it at once. `false`: the vCPU waits for its next period.
    extratime_refills: bool,
    /// The level stops at the greatest number. `false`: it wraps.
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

    fn check(_rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        Reservation::NEW.adjusted(&proposal.kept_and_given()).map(|_| ())
    }

    fn shortest_interval(_rules: Rules, _scope: Scope, given: &Params) -> Option<(&'static str, Span)> {
        let us = |param: &ParamSpec| given.int(param.name).map(|us| (param.name, US.saturating_mul(us)));
        us(&PERIOD).into_iter().chain(us(&BUDGET)).min_by_key(|&(_, span)| span)
    }

    fn new(rules: Rules, _global: &Params, _pcpus: u32) -> Self {
        Rtds {
            rules,
            vcpus: Table::new(),
            run_queue: Queue::default(),
            refill_queue: Queue::default(),
            depleted_queue: List::default(),
            depleted_links: Links::default(),
            refilled: Vec::new(),
            running: Running::default(),
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

    /// The last level is the worst. No run reaches it: that takes more than four billion budgets within one period.
    #[test]
    fn the_last_level_is_the_worst_from_4_22_on() {
        let after = |rules| {
            let mut vcpu = Vcpu { level: u32::MAX, ..Vcpu::NEW };
            vcpu.go_on(rules);
            (vcpu.level, vcpu.remaining)
        };
        assert_eq!(after(XEN_4_20_4), (0, Reservation::NEW.budget));
        assert_eq!(after(XEN_4_22), (u32::MAX, Reservation::NEW.budget));
    }
}
