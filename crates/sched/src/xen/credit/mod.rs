//! Credit: shares by weight through credits that running burns and accounting hands out, caps, boosts on waking, and
//! load balancing by stealing. Generations from `xen3.0.3` to `xen4.22`, whose differences are [`Rules`]. All rules in words: `docs/schedulers/credit.md`.
//!
//! This file: state, hooks and the decision. `queue`: run queues. `accounting`: ticks, charging, and the pass that hands
//! out credits. `balance`: stealing. `pick`: which pCPU suits a vCPU, and which ones decide because one waits.
//!
//! One credit is 100 µs of CPU time (1 ms in `xen3.0.3`). Amounts of the accounting pass are unsigned 32-bit numbers
//! that wrap, as in the hypervisor.

mod accounting;
mod balance;
pub(crate) mod params;
mod pick;
mod queue;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
mod tuning;

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, Params, PcpuId, Placement, PolicyContext, Rejected, Scheduler,
    Scope, Slice, Span, Table, Time, TimerId, VcpuId,
};

use self::params::{
    BALANCE_RATELIMIT, CAP, MIGRATION_DELAY, RATELIMIT, SMT_POWER_SAVINGS, TICKLE_ONE_IDLE, TSLICE, TUNABLE,
    WEIGHT,
};
use self::rules::{Pick, Rules};
use self::tuning::Tuning;
use crate::list::{Links, List};
use crate::param_spec::ParamSpec;
use crate::params::{MS, US, only, weight_counts};
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::table::put;
use crate::width::Width;

/// The order in which vCPUs run; the greatest first. State files show its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(i8)]
pub(crate) enum Priority {
    /// Over its cap. (Where capped vCPUs are not paused.)
    Parked = -65,
    Idle = -64,
    /// In debt.
    Over = -2,
    Under = -1,
    Boost = 0,
}

#[derive(Clone, Debug)]
struct Vcpu {
    /// The instant up to which the vCPU has paid; time in which it does not run is skipped when it runs again.
    start: Time,
    /// Time of the last decision that found the vCPU running.
    last_sched: Time,
    credit: i32,
    /// CPU time for which no whole credit was paid yet, in credits × 1 000 000.
    residual: i32,
    priority: Priority,
    /// Whether the vCPU takes part in accounting.
    active: bool,
    /// Whether accounting has parked the vCPU because of its cap.
    parked: bool,
    yielding: bool,
    /// Whether the vCPU's next wake-up gets no boost, because its pCPU was chosen since the last one.
    placed: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: u32,
    cap: u32,
    active: List<VcpuId>,
    active_count: u32,
}

#[derive(Clone, Debug)]
struct Pcpu {
    queue: List<VcpuId>,
    tick: TimerId,
    /// The number of ticks so far.
    ticks: u32,
    /// Number of the accounting pass after which the queue was last sorted.
    epoch: u32,
    /// The pCPU of this core or socket that was last chosen for its idleness (`idle_bias`).
    idle_bias: PcpuId,
    /// Time of the pCPU's last attempt to steal work.
    last_balance: Time,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Credit {
    rules: Rules,
    tslice: Span,
    tick: Span,
    ratelimit: Span,
    migration_delay: Span,
    /// Time after balancing in which a pCPU does not balance again, if there is such a limit.
    balance_ratelimit: Option<Span>,
    smt_power_savings: bool,
    tickle_one_idle: bool,
    /// Whether the choices of pCPUs look at cores and sockets. Not where every pCPU is a core of its own in the same socket.
    grouped: bool,
    /// Credits that one pCPU is worth in an accounting period.
    period_credit: u32,
    /// Credits that all pCPUs are worth in an accounting period.
    total_credit: u32,
    /// Sum of the weights of active domains, or of active vCPUs ([`Rules::weight_per_vcpu`]).
    total_weight: u32,
    /// Sum of the credits after the last accounting pass.
    credit_balance: i32,
    /// The number of accounting passes.
    epoch: u32,
    /// Idle pCPUs, which chose to run their idle vCPU.
    idlers: CpuMask,
    /// pCPUs whose queue does not start with the idle vCPU, and perhaps others: only these have work to steal.
    at_work: CpuMask,
    /// The last victim of stealing in each NUMA node.
    last_victims: Vec<PcpuId>,
    /// The idle pCPU that code on each real pCPU tickled last.
    last_tickle: Table<PcpuId, PcpuId>,
    accounting: Option<TimerId>,
    pcpus: Table<PcpuId, Pcpu>,
    vcpus: Table<VcpuId, Vcpu>,
    domains: Table<DomId, Domain>,
    /// Links of the run queues, of the domains' lists of active vCPUs, and of the list of active domains.
    queue_links: Links<VcpuId>,
    active_links: Links<VcpuId>,
    active_domain_links: Links<DomId>,
    active_domains: List<DomId>,
}

/// The accounting timer's token; ticks have their pCPU's number.
pub(crate) const ACCOUNTING: u32 = u32::MAX;

impl Scheduler for Credit {
    fn rules(&self) -> HostRules {
        self.rules.host
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        if self.rules.accounting_timer && self.accounting.is_none() {
            let timer = ctx.new_timer(p, ACCOUNTING);
            ctx.set_timer(timer, Time::ZERO + self.tslice);
            self.accounting = Some(timer);
        }
        self.total_credit = self.period_credit.wrapping_mul(ctx.pcpus().len());
        let tick = ctx.new_timer(p, p.0);
        ctx.set_timer(tick, Time::ZERO + self.tick);
        let ticks = self.rules.ticks_at_start;
        let pcpu = Pcpu {
            queue: List::default(),
            tick,
            ticks,
            epoch: 0,
            idle_bias: PcpuId(ctx.pcpu_count() - 1),
            last_balance: Time::ZERO,
        };
        put(&mut self.pcpus, p, pcpu);
        self.last_tickle.resize(ctx.pcpu_count() as usize, ctx.first_pcpu());
        let alone = ctx.siblings(p).len() == 1 && ctx.socket_mates(p).contains_all(ctx.pcpus());
        self.grouped |= self.rules.pick == Pick::IdleCore && !alone;
        if self.last_victims.is_empty() {
            let lowest = |node: &CpuMask| node.and(ctx.pcpus()).first().unwrap_or(p);
            self.last_victims = ctx.nodes().iter().map(lowest).collect();
        }
        self.idlers.insert(p);
        self.new_vcpu(ctx.idle(p), Priority::Idle);
    }

    fn add_domain(&mut self, _ctx: &mut PolicyContext, d: DomId) {
        let domain = Domain {
            weight: WEIGHT.default as u32,
            cap: CAP.default as u32,
            active: List::default(),
            active_count: 0,
        };
        put(&mut self.domains, d, domain);
        self.active_domain_links.grow(d);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.new_vcpu(v, Priority::Under);
        if self.rules.active_at_creation {
            self.activate(ctx, v);
        }
        if self.rules.host.placement == Placement::Policy {
            let own = self.pick(ctx, v);
            ctx.set_processor(v, own);
        }
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.vcpus[v].active {
            self.deactivate(ctx.dom(v), v);
        }
        if self.vcpus[v].parked {
            ctx.unpark(v);
        }
    }

    #[inline]
    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.queue_links.listed(v) {
            return;
        }
        let vcpu = &mut self.vcpus[v];
        if self.rules.boost && vcpu.priority == Priority::Under && !vcpu.parked && !vcpu.placed {
            vcpu.priority = Priority::Boost;
        }
        vcpu.placed = false;
        let p = ctx.processor(v);
        self.enqueue(p, v);
        self.tickle(ctx, p, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        if ctx.is_current(v) {
            ctx.raise_reschedule(p);
        } else if self.queue_links.listed(v) {
            self.dequeue(p, v);
        }
    }

    fn yielded(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        self.vcpus[v].yielding = self.rules.yields;
    }

    #[inline]
    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let current = ctx.current(p);
        if let Some(kept) = self.charge_or_keep(ctx, current) {
            return kept;
        }
        if ctx.runnable(current) {
            self.enqueue(p, current);
        }
        if !self.rules.yield_lasts {
            self.forget_yield(current);
        }
        let head = self.pcpus[p].queue.first().expect("the idle vCPU is always there");
        let priority = self.vcpus[head].priority;
        let balances = priority <= Priority::Over && self.may_balance(ctx, p);
        let stolen = if balances { self.steal(ctx, p, priority) } else { None };
        let next = stolen.unwrap_or_else(|| {
            self.dequeue(p, head);
            head
        });
        self.dispatch(ctx, p, next)
    }

    /// Chooses a pCPU for creation and migration.
    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        self.vcpus[v].placed = !self.rules.boost_placed;
        let choice = self.choose(ctx, v);
        if let Some(attractive) = choice.attractive {
            self.pcpus[attractive].idle_bias = choice.pcpu;
        }
        choice.pcpu
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        if token != ACCOUNTING {
            return self.tick(ctx, PcpuId(token));
        }
        self.account(ctx);
        if let Some(timer) = self.accounting {
            ctx.set_timer(timer, ctx.now() + self.tslice);
        }
    }

    fn adjust(&mut self, _ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        match params.int(WEIGHT.name) {
            None | Some(0) => {}
            Some(weight) => self.set_weight(d, weight as u32),
        }
        match params.int(CAP.name) {
            None | Some(65535) => {}
            Some(cap) => self.domains[d].cap = cap as u32,
        }
        Ok(())
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        if !self.rules.tunable {
            return Err(Rejected);
        }
        only(params, TUNABLE)?;
        let Credit { tslice, ratelimit, migration_delay, .. } = *self;
        if let (Some(delay), false) = (params.int(MIGRATION_DELAY.name), self.rules.checks_migration_delay) {
            // It holds even if the others are refused.
            self.migration_delay = US.saturating_mul(delay);
        }
        let tuning = Tuning { tslice, ratelimit, migration_delay }.adjusted(&self.rules, params)?;
        (self.ratelimit, self.migration_delay) = (tuning.ratelimit, tuning.migration_delay);
        self.set_timeslice(tuning.tslice);
        if self.rules.timeslice_changes_total {
            self.total_credit = self.period_credit.wrapping_mul(ctx.pcpus().len());
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let show = |out: &mut dyn fmt::Write, v: VcpuId| {
            let (domain, number) = ctx.name(v);
            let vcpu = &self.vcpus[v];
            let priority = match vcpu.priority {
                Priority::Boost => "boost",
                Priority::Under => "under",
                Priority::Over => "over",
                Priority::Idle => return write!(out, " idle"),
                Priority::Parked => "parked",
            };
            let active = if vcpu.active { "" } else { " inactive" };
            write!(out, " d{domain}v{number}({priority} {}{active})", vcpu.credit)
        };
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p, &self.pcpus[p])) {
            write!(out, "pCPU {}: runs", p.0)?;
            show(out, ctx.current(p))?;
            write!(out, "; waiting:")?;
            for u in self.queue_links.iter(&pcpu.queue) {
                show(out, u)?;
            }
            writeln!(out)?;
        }
        let Credit { credit_balance, total_weight, total_credit, .. } = self;
        writeln!(out, "balance {credit_balance}, weight {total_weight}, credit {total_credit}")
    }
}

// ---- the decision ----

impl Credit {
    /// Charges the outgoing vCPU, if CPU time is measured. Returns the decision, if the rate limit keeps the vCPU.
    #[inline]
    pub(crate) fn charge_or_keep(&mut self, ctx: &PolicyContext, current: VcpuId) -> Option<Decision> {
        if !self.rules.measured || ctx.is_idle(current) {
            return None;
        }
        let now = ctx.now();
        self.burn(current, now);
        let vcpu = &mut self.vcpus[current];
        vcpu.last_sched = now;
        let ran = now - ctx.switched_at(current);
        let yields = self.rules.yield_ends_ratelimit && vcpu.yielding;
        if ctx.runnable(current) && ran < self.ratelimit && !yields {
            let slice = match self.rules.ratelimit_remainder {
                false => self.ratelimit,
                // The release mistakes the unit of its least slice of 100 µs.
                true if ran < Span::from_ns(100) => Span::from_ns(100),
                true => self.ratelimit - ran,
            };
            return Some(Decision { next: current, slice: Slice::For(slice) });
        }
        None
    }

    /// Makes `next`, which is on no queue any more, current on `p`.
    #[inline]
    pub(crate) fn dispatch(&mut self, ctx: &mut PolicyContext, p: PcpuId, next: VcpuId) -> Decision {
        let (now, current, idle) = (ctx.now(), ctx.current(p), ctx.idle(p));
        if next == idle {
            self.idlers.insert(p);
        } else {
            self.idlers.remove(p);
            if self.rules.measured {
                let vcpu = &mut self.vcpus[next];
                vcpu.start += now - vcpu.last_sched;
            }
        }
        if !self.rules.idle_ticks && (current == idle) != (next == idle) {
            let tick = self.pcpus[p].tick;
            if next == idle {
                ctx.stop_timer(tick);
            } else {
                ctx.set_timer(tick, now + self.tick - (now - Time::ZERO) % self.tick);
            }
        }
        let slice =
            if next == idle && !self.rules.idle_slice { Slice::Unlimited } else { Slice::For(self.tslice) };
        Decision { next, slice }
    }

    pub(crate) fn forget_yield(&mut self, v: VcpuId) {
        self.vcpus[v].yielding = false;
    }

    pub(crate) fn credit(&self, v: VcpuId) -> i32 {
        self.vcpus[v].credit
    }

    pub(crate) fn priority(&self, v: VcpuId) -> Priority {
        self.vcpus[v].priority
    }
}

// ---- creation ----

impl Registered for Credit {
    type Rules = Rules;
    const NAME: &'static str = "credit";
    const DOC: &'static str = "Proportional shares by weight, caps, boost on waking, global load balancing.";
    const GENERATIONS: &'static [(Generation, Rules)] = rules::GENERATIONS;

    fn check(rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        match proposal.scope {
            Scope::Domain => weight_counts(proposal),
            Scope::Global => {
                if !proposal.is_new() {
                    only(proposal.given, TUNABLE)?;
                }
                Tuning::NEW.adjusted(&rules, &proposal.kept_and_given()).map(|_| ())
            }
        }
    }

    fn width(_rules: Rules, param: &str) -> Width {
        if [WEIGHT.name, CAP.name].contains(&param) { Width::Bits16 } else { Width::Bits32 }
    }

    fn new(rules: Rules, global: &Params, pcpus: u32) -> Self {
        let given = |spec: &ParamSpec| global.int(spec.name).unwrap_or(spec.default);
        let tslice = match given(&TSLICE) {
            ms @ 1..=1000 if rules.tunable => ms * MS,
            _ => TSLICE.default * MS,
        };
        let delay = given(&MIGRATION_DELAY);
        let delay_counts =
            rules.tunable && (!rules.checks_migration_delay || MIGRATION_DELAY.allows(&delay.into()));
        let balance_ratelimit = given(&BALANCE_RATELIMIT).clamp(0, 1_000_000) * US;
        let mut credit = Credit {
            rules,
            tslice: Span::ZERO,
            tick: Span::ZERO,
            ratelimit: if rules.tunable {
                US.saturating_mul(given(&RATELIMIT)).min(tslice)
            } else {
                Span::ZERO
            },
            migration_delay: if delay_counts { US.saturating_mul(delay) } else { Span::ZERO },
            balance_ratelimit: rules.balance_ratelimit.then_some(balance_ratelimit),
            smt_power_savings: given(&SMT_POWER_SAVINGS) != 0,
            tickle_one_idle: given(&TICKLE_ONE_IDLE) != 0,
            grouped: false,
            period_credit: 0,
            total_credit: 0,
            total_weight: 0,
            credit_balance: 0,
            epoch: 0,
            idlers: CpuMask::EMPTY,
            at_work: CpuMask::EMPTY,
            last_victims: Vec::new(),
            last_tickle: Table::new(),
            accounting: None,
            pcpus: Table::new(),
            vcpus: Table::new(),
            domains: Table::new(),
            queue_links: Links::default(),
            active_links: Links::default(),
            active_domain_links: Links::default(),
            active_domains: List::default(),
        };
        credit.set_timeslice(tslice);
        credit.total_credit = credit.period_credit.wrapping_mul(pcpus);
        credit
    }
}

impl Credit {
    fn set_timeslice(&mut self, tslice: Span) {
        let ticks = if tslice < Span::from_ms(3) { 1 } else { 3 };
        self.tslice = tslice;
        self.tick = tslice / US / ticks * US;
        self.period_credit = (tslice / MS) as u32 * self.rules.credits_per_ms;
    }

    fn new_vcpu(&mut self, v: VcpuId, priority: Priority) {
        let vcpu = Vcpu {
            start: Time::ZERO,
            last_sched: Time::ZERO,
            credit: 0,
            residual: 0,
            priority,
            active: false,
            parked: false,
            yielding: false,
            placed: false,
        };
        put(&mut self.vcpus, v, vcpu);
        self.queue_links.grow(v);
        self.active_links.grow(v);
    }
}
