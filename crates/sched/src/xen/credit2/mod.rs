//! Credit2: proportional shares for general-purpose hosts. pCPUs share run queues; vCPUs burn credit, faster the lower
//! their weight, and the one with most credit runs; decaying load averages drive placement and balancing between run
//! queues. Generations `xen4.4.1`, `xen4.17`, which adds caps, a rate limit, affinity and cores, and `xen4.22`; their
//! differences are [`Rules`]. All rules in words: `docs/schedulers/credit2.md`.
//!
//! This file: state, hooks and the decision. `charging`: burning credit, and the reset. `runqueue`: which pCPUs share a
//! run queue, and which vCPUs are in it. `wakeup`: which pCPU decides because a vCPU waits; `recent`: which ones need
//! not be asked for that. `load`: load averages. `balance`: moves between run queues. `caps`: budgets.
//!
//! Times and credits are nanoseconds.

mod balance;
mod caps;
mod charging;
mod load;
mod params;
mod recent;
mod rules;
mod runqueue;
mod wakeup;

use std::fmt;

use vcpulab_host::{
    CpuMask, Creation, Decision, DomId, HostRules, Params, PcpuId, Placement, PolicyContext, Rejected,
    Scheduler, Scope, Slice, Span, Table, Time, TimerId, VcpuId, ids,
};

use self::params::{
    CAP, CAP_PERIOD, MIGRATE_RESIST, OVER, PRECISION, RATELIMIT, RUNQUEUE, RUNQUEUE_MAX, SMT_POWER_SAVINGS,
    SOCKET, UNDER, WEIGHT, WINDOW_4_4, WINDOW_4_17, cap_fits,
};
use self::recent::Recent;
use self::rules::{Rules, Scan, Window};
use crate::list::{Links, List};
use crate::param_spec::ParamSpec;
use crate::params::{MS, US, only, weight_counts};
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::table::put;
use crate::width::Width;

/// The credit of a new vCPU, and that of a reset.
const ALLOTMENT: i32 = 10_000_000;
/// The credit that a vCPU gets for being moved to another pCPU.
const COMPENSATION: i32 = 50_000;
const SLICE_MIN: Span = Span::from_us(500);

ids! {
    /// A run queue, numbered in order of creation.
    struct RunQueueId;
}

/// The number of runnable vCPUs, averaged over the load window.
#[derive(Clone, Copy, Debug, Default)]
struct LoadAverage {
    value: i64,
    /// Time of the last update, in units of 1024 ns.
    time: i64,
}

#[derive(Clone, Debug)]
struct Vcpu {
    credit: i32,
    weight: i32,
    /// CPU time, times weight, for which no whole credit was paid yet.
    residual: i64,
    /// The instant up to which the vCPU has paid.
    start: Time,
    load: LoadAverage,
    /// Budget left under a cap; `None`: no cap.
    budget: Option<Span>,
    /// The most that the vCPU takes out of its domain's budget at a time.
    quota: Span,
    runqueue: RunQueueId,
    /// The pCPU that was tickled for this vCPU.
    tickled_for: Option<PcpuId>,
    /// The run queue that the vCPU is to be moved to once it does not run.
    moving_to: Option<RunQueueId>,
    on_cpu: bool,
    /// Whether the vCPU joins its run queue once its context is saved.
    delayed_add: bool,
    yielding: bool,
    pinned: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: i32,
    cap: i64,
    /// Budget that the domain's vCPUs have not taken yet.
    budget: Span,
    budget_per_period: Span,
    next_refill: Time,
    refill: Option<TimerId>,
    /// vCPUs of the domain that wait for budget.
    parked: List<VcpuId>,
}

#[derive(Clone, Debug)]
struct RunQueue {
    /// The number of the core, socket or node that the queue's pCPUs share.
    place: u32,
    /// The number of cores with threads in the queue.
    cores: u32,
    members: CpuMask,
    idle: CpuMask,
    /// pCPUs of wholly idle cores, none of whose threads is tickled. Only updated on a host with threads.
    idle_cores: CpuMask,
    /// Tickled pCPUs, which have not decided yet.
    tickled: CpuMask,
    /// Runnable vCPUs that do not run, by credit.
    waiting: List<VcpuId>,
    /// All vCPUs assigned to the run queue, in order of assignment.
    assigned: List<VcpuId>,
    max_weight: i32,
    /// The number of the queue's runnable vCPUs.
    runnable: i64,
    load: LoadAverage,
    /// The load average as if vCPUs that join and leave had always been here, or never. Last updated with `load`.
    balance_load: i64,
    /// The pCPU that was last chosen in turn.
    rotor: PcpuId,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Credit2 {
    rules: Rules,
    ratelimit: Span,
    migrate_resist: i32,
    /// Logarithm of the load window in units of 1024 ns.
    window_shift: u32,
    /// Logarithm of the scale of load averages.
    scale_shift: u32,
    balance_under: i64,
    balance_over: i64,
    cap_period: Span,
    /// Index into [`params::ARRANGEMENTS`].
    arrangement: i64,
    runqueue_max: u32,
    cpus_per_socket: u32,
    /// Whether vCPUs are packed on few cores.
    saves_power: bool,
    /// Whether a core may have more than one pCPU, so that idle cores and idle pCPUs are two things.
    has_threads: bool,
    runqueues: Table<RunQueueId, RunQueue>,
    runqueue_of: Table<PcpuId, RunQueueId>,
    vcpus: Table<VcpuId, Vcpu>,
    domains: Table<DomId, Domain>,
    recent: Recent,
    /// Links of the run queues' lists, and of the domains' lists of parked vCPUs.
    waiting_links: Links<VcpuId>,
    assigned_links: Links<VcpuId>,
    parked_links: Links<VcpuId>,
}

impl Scheduler for Credit2 {
    fn rules(&self) -> HostRules {
        self.rules.host
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let idle = Vcpu { credit: self.rules.idle_credit, ..self.new_vcpu(ctx, 1) };
        put(&mut self.vcpus, ctx.idle(p), idle);
        self.grow(ctx.idle(p));
        self.has_threads = self.rules.looks_at_cores && ctx.threads_per_core() > 1;
        self.join_runqueue(ctx, p);
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        let domain = Domain {
            weight: WEIGHT.default as i32,
            cap: 0,
            budget: Span::ZERO,
            budget_per_period: Span::ZERO,
            next_refill: Time::ZERO,
            refill: self.rules.caps.then(|| ctx.new_timer(ctx.first_pcpu(), d.0)),
            parked: List::default(),
        };
        put(&mut self.domains, d, domain);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let mut vcpu = self.new_vcpu(ctx, self.domains[ctx.dom(v)].weight);
        vcpu.pinned = ctx.affinity(v).len() == 1;
        put(&mut self.vcpus, v, vcpu);
        self.grow(v);
        if self.rules.host.placement == Placement::Policy {
            // The hypervisor holds the lock of this run queue itself, and passes over those that are locked.
            let provisional = self.runqueue_of[ctx.processor(v)];
            let locked = (ctx.creation() == Creation::Release).then_some(provisional);
            let own = self.pick_but(ctx, v, locked);
            ctx.set_processor(v, own);
        }
        self.assign(v, self.runqueue_of[ctx.processor(v)]);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.parked_links.listed(v) {
            self.parked_links.remove(&mut self.domains[ctx.dom(v)].parked, v);
            ctx.unpark(v);
        }
        self.unassign(v);
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        if let Some(refill) = self.domains[d].refill.take() {
            ctx.drop_timer(refill);
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.waits(v) {
            return;
        }
        if self.vcpus[v].on_cpu {
            self.vcpus[v].delayed_add = true;
            return;
        }
        self.update_load(ctx, v, 1);
        self.enqueue(v);
        self.find_pcpu(ctx, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            if self.rules.leaving_tickles {
                self.tickle(ctx, ctx.processor(v));
            } else {
                ctx.raise_reschedule(ctx.processor(v));
            }
        } else if self.waits(v) {
            self.update_load(ctx, v, -1);
            self.dequeue(v);
        } else {
            self.vcpus[v].delayed_add = false;
        }
    }

    fn yielded(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        self.vcpus[v].yielding = self.rules.yields;
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let r = self.runqueue_of[p];
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        self.untickle(ctx, r, p);
        self.charge(ctx, current);
        self.grab_budget(ctx, current);
        let next = match self.rules.scan {
            Scan::Near => self.choose_near(ctx, p, r, current),
            Scan::Eligible => self.choose_eligible(ctx, p, r, current),
        };
        if next != current && current != idle && ctx.runnable(current) {
            self.vcpus[current].delayed_add = true;
        }
        if next == idle {
            self.begin_idling(ctx, r, p);
            self.update_runqueue_load(ctx, r, 0);
            return Decision { next, slice: self.rules.idle_slice };
        }
        if next != current {
            self.dequeue(next);
            self.vcpus[next].on_cpu = true;
            self.recent.note(ctx.now(), p, self.kept_from(ctx.now()));
        } else if self.rules.kept_updates_load {
            self.update_load(ctx, next, 0);
        }
        self.end_idling(ctx, r, p);
        let mut most = self.vcpus[next].credit;
        if self.rules.reset_looks_at_queue
            && let Some(u) = self.runqueues[r].waiting.first()
        {
            most = most.max(self.vcpus[u].credit);
        }
        if most <= 0 {
            self.reset(ctx, r, next);
            self.balance(ctx, r);
        }
        let vcpu = &mut self.vcpus[next];
        vcpu.start = ctx.now();
        vcpu.tickled_for = None;
        if ctx.processor(next) != p {
            vcpu.credit = vcpu.credit.wrapping_add(COMPENSATION);
            ctx.set_processor(next, p);
        }
        Decision { next, slice: Slice::For(self.slice(ctx, r, next, current)) }
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let vcpu = &mut self.vcpus[v];
        vcpu.on_cpu = false;
        let delayed_add = std::mem::take(&mut vcpu.delayed_add);
        let released = self.return_budget(ctx, v);
        if delayed_add && ctx.runnable(v) {
            self.enqueue(v);
            self.find_pcpu(ctx, v);
        } else {
            self.update_load(ctx, v, -1);
        }
        self.unpark(ctx, released);
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        self.pick_but(ctx, v, None)
    }

    fn lock(&self, p: PcpuId) -> PcpuId {
        self.runqueues[self.runqueue_of[p]].members.first().unwrap_or(p)
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        let target = self.runqueue_of[p];
        if target != self.vcpus[v].runqueue {
            self.move_to(ctx, v, target);
        } else if self.rules.migrates_within {
            ctx.set_processor(v, p);
        }
    }

    fn affinity(&mut self, _ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        self.vcpus[v].pinned = mask.len() == 1;
    }

    /// Refills the budget of a capped domain.
    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.refill(ctx, DomId(token));
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        if let Some(weight @ 1..) = params.int(WEIGHT.name) {
            self.set_weight(ctx, d, weight.min(i64::from(i32::MAX)) as i32);
        }
        match params.int(CAP.name) {
            Some(cap) if self.rules.caps => self.set_cap(ctx, d, cap),
            _ => Ok(()),
        }
    }

    fn adjust_global(&mut self, _ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        only(params, tunable(&self.rules))?;
        match params.int(RATELIMIT.name) {
            Some(us) if RATELIMIT.allows(&us.into()) => {
                self.ratelimit = us * US;
                Ok(())
            }
            _ => Err(Rejected),
        }
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (RunQueueId(r), runqueue) in self.runqueues.enumerate() {
            let members: Vec<u32> = runqueue.members.iter().map(|p| p.0).collect();
            let RunQueue { runnable, balance_load, max_weight, .. } = runqueue;
            writeln!(
                out,
                "run queue {r}: pCPUs {members:?}, load {runnable}, balance load {balance_load}, max weight {max_weight}"
            )?;
            for (name, links, list) in [
                ("waiting", &self.waiting_links, &runqueue.waiting),
                ("assigned", &self.assigned_links, &runqueue.assigned),
            ] {
                write!(out, "  {name}:")?;
                for u in links.iter(list) {
                    let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
                    write!(out, " d{domain}v{number}(credit {})", vcpu.credit)?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

// ---- the pCPU of a vCPU that is created or migrates ----

impl Credit2 {
    /// A pCPU of the run queue that `v` is to be moved to, or else of the least loaded one except one.
    fn pick_but(&mut self, ctx: &PolicyContext, v: VcpuId, left_out: Option<RunQueueId>) -> PcpuId {
        let own = ctx.processor(v);
        let target = self.vcpus[v].moving_to.take();
        let picked = if self.rules.rotates {
            let picked = target.and_then(|r| self.turn_rotor(ctx, v, r));
            picked.or_else(|| self.pick_by_load(ctx, v, left_out))
        } else {
            let r = target.or_else(|| self.least_loaded(ctx, v, None, left_out).0);
            r.and_then(|r| self.runqueues[r].members.next_after(own))
        };
        picked.unwrap_or(own)
    }

    /// The next pCPU in turn. The rotor is that of the least loaded run queue, even where one with preferred pCPUs is chosen.
    fn pick_by_load(
        &mut self,
        ctx: &PolicyContext,
        v: VcpuId,
        left_out: Option<RunQueueId>,
    ) -> Option<PcpuId> {
        let preferred = ctx.preferred(v);
        let (least, least_preferred) = self.least_loaded(ctx, v, preferred.as_ref(), left_out);
        match least_preferred.zip(preferred) {
            Some((r, preferred)) => self.turn_rotor_among(least?, &self.runqueues[r].members.and(&preferred)),
            None => self.turn_rotor(ctx, v, least?),
        }
    }
}

// ---- the decision ----

impl Credit2 {
    /// The vCPU that runs next under [`Scan::Near`].
    fn choose_near(&self, ctx: &PolicyContext, p: PcpuId, r: RunQueueId, current: VcpuId) -> VcpuId {
        let best = if ctx.runnable(current) { current } else { ctx.idle(p) };
        let best_credit = i64::from(self.vcpus[best].credit);
        let near = |&u: &VcpuId| {
            let credit = i64::from(self.vcpus[u].credit);
            ctx.processor(u) == p || best_credit + i64::from(self.migrate_resist) <= credit
        };
        match self.waiting_links.iter(&self.runqueues[r].waiting).find(near) {
            Some(u) if i64::from(self.vcpus[u].credit) > best_credit => u,
            _ => best,
        }
    }

    /// The vCPU that runs next under [`Scan::Eligible`], unless the rate limit keeps the current vCPU.
    fn choose_eligible(
        &mut self,
        ctx: &mut PolicyContext,
        p: PcpuId,
        r: RunQueueId,
        current: VcpuId,
    ) -> VcpuId {
        let idle = ctx.idle(p);
        let mut yields = false;
        let mut best = current;
        if current != idle {
            yields = std::mem::take(&mut self.vcpus[current].yielding);
            let runnable = ctx.runnable(current);
            let ran = ctx.now() - ctx.switched_at(current);
            if !yields && self.ratelimit > Span::ZERO && runnable && ran < self.ratelimit {
                return current;
            }
            if !runnable || self.idles_where_preferred(ctx, r, p, current) {
                best = idle;
            }
        }
        let best_credit = i64::from(self.vcpus[best].credit);
        let mut element = self.runqueues[r].waiting.first();
        while let Some(u) = element {
            element = self.waiting_links.next(u);
            let (v, vcpu) = (u, &self.vcpus[u]);
            let credit = i64::from(vcpu.credit);
            if !yields && credit <= best_credit {
                break;
            }
            let reserved = vcpu.tickled_for.is_some_and(|q| q != p && self.runqueues[r].tickled.contains(q));
            let resists = ctx.processor(v) != p && best_credit + i64::from(self.migrate_resist) > credit;
            let passed = !ctx.runnable(v) || !ctx.affinity(v).contains(p) || reserved || resists;
            if !passed && self.grab_budget(ctx, v) {
                return v;
            }
        }
        best
    }

    /// Whether `v` runs on `p` outside its soft affinity while a pCPU that it prefers idles.
    fn idles_where_preferred(&self, ctx: &PolicyContext, r: RunQueueId, p: PcpuId, v: VcpuId) -> bool {
        let RunQueue { idle, tickled, .. } = &self.runqueues[r];
        let elsewhere = ctx.preferred(v).filter(|preferred| !preferred.contains(p));
        elsewhere.is_some_and(|preferred| preferred.meets(&idle.without(tickled)))
    }

    /// The time until `next` has no more credit than the first waiting vCPU, which may be the outgoing one.
    fn slice(&self, ctx: &PolicyContext, r: RunQueueId, next: VcpuId, outgoing: VcpuId) -> Span {
        let runqueue = &self.runqueues[r];
        let kept = next == outgoing;
        let vcpu = &self.vcpus[next];
        let credit = |u: VcpuId| i64::from(self.vcpus[u].credit);
        let mut most = runqueue.waiting.first().map_or(0, credit).max(0);
        if self.rules.slice_counts_preempted && !kept && self.vcpus[outgoing].delayed_add {
            most = most.max(credit(outgoing));
        }
        let ahead = credit(next) - most;
        let span = Span::from_ns(ahead.max(0) * i64::from(vcpu.weight) / i64::from(runqueue.max_weight));
        let limit = if kept { ctx.switched_at(next) + self.ratelimit - ctx.now() } else { self.ratelimit };
        let least = if self.ratelimit > Span::ZERO { limit.max(SLICE_MIN) } else { SLICE_MIN };
        let span = vcpu.budget.map_or(span, |budget| span.min(budget));
        if span < least { least } else { span.min(self.rules.slice_max) }
    }
}

// ---- creation ----

/// The parameters that change while the host runs.
fn tunable(rules: &Rules) -> &'static [ParamSpec] {
    if rules.ratelimit { &[RATELIMIT] } else { &[] }
}

impl Registered for Credit2 {
    type Rules = Rules;
    const NAME: &'static str = "credit2";
    const DOC: &'static str =
        "Proportional shares by weight with shared run queues and load balancing; caps.";
    const DECISION_COST: Option<&'static str> = Some("credit2_percent");
    const GENERATIONS: &'static [(Generation, Rules)] = rules::GENERATIONS;

    fn check(rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        let Proposal { scope, given, units, .. } = *proposal;
        match (scope, given.int(CAP.name)) {
            (Scope::Global, _) if proposal.is_new() => Ok(()),
            (Scope::Global, _) => only(given, tunable(&rules)),
            (Scope::Domain, cap) => {
                weight_counts(proposal)?;
                cap.filter(|_| rules.caps).map_or(Ok(()), |cap| cap_fits(cap, i64::from(units)))
            }
        }
    }

    fn width(_rules: Rules, param: &str) -> Width {
        if [WEIGHT.name, CAP.name].contains(&param) { Width::Bits16 } else { Width::Bits32 }
    }

    fn new(rules: Rules, global: &Params, _pcpus: u32) -> Self {
        let given = |spec: &ParamSpec| global.int(spec.name).unwrap_or(spec.default);
        let (window_shift, scale_shift) = match rules.window {
            Window::Coarse => {
                let shift = given(&WINDOW_4_4).clamp(4, 40) as u32;
                (shift, shift)
            }
            Window::Fine => {
                let shift = given(&WINDOW_4_17).min(40);
                let shift = if shift <= 10 { WINDOW_4_17.default } else { shift };
                (shift as u32 - 10, given(&PRECISION).clamp(4, 20) as u32)
            }
        };
        let exponent = |spec: &ParamSpec| given(spec).clamp(-i64::from(scale_shift), 20);
        let runqueue_max = given(&RUNQUEUE_MAX).clamp(1, i64::from(u32::MAX)) as u32;
        Credit2 {
            rules,
            ratelimit: if rules.ratelimit { US.saturating_mul(given(&RATELIMIT)) } else { Span::ZERO },
            migrate_resist: US.saturating_mul(given(&MIGRATE_RESIST)).ns().clamp(0, i64::from(i32::MAX))
                as i32,
            window_shift,
            scale_shift,
            balance_under: exponent(&UNDER),
            balance_over: exponent(&OVER),
            cap_period: MS.saturating_mul(given(&CAP_PERIOD).max(1)),
            arrangement: if rules.arranges { given(&RUNQUEUE) } else { RUNQUEUE.default },
            runqueue_max: if rules.arranges { runqueue_max } else { u32::MAX },
            cpus_per_socket: given(&SOCKET).clamp(0, i64::from(u32::MAX)) as u32,
            saves_power: rules.looks_at_cores && given(&SMT_POWER_SAVINGS) != 0,
            has_threads: false,
            runqueues: Table::new(),
            runqueue_of: Table::new(),
            vcpus: Table::new(),
            domains: Table::new(),
            recent: Recent::default(),
            waiting_links: Links::default(),
            assigned_links: Links::default(),
            parked_links: Links::default(),
        }
    }
}

impl Credit2 {
    fn new_vcpu(&self, ctx: &PolicyContext, weight: i32) -> Vcpu {
        let time = if self.rules.load_from_creation { ctx.now().ns() >> 10 } else { 0 };
        Vcpu {
            credit: ALLOTMENT,
            weight,
            residual: 0,
            start: Time::ZERO,
            load: LoadAverage { value: 1 << (self.scale_shift - 1), time },
            budget: None,
            quota: Span::ZERO,
            runqueue: RunQueueId(0),
            tickled_for: None,
            moving_to: None,
            on_cpu: false,
            delayed_add: false,
            yielding: false,
            pinned: false,
        }
    }

    fn grow(&mut self, v: VcpuId) {
        for links in [&mut self.waiting_links, &mut self.assigned_links, &mut self.parked_links] {
            links.grow(v);
        }
    }
}
