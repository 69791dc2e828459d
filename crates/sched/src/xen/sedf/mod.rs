//! SEDF, simple earliest deadline first: a guaranteed slice in every period of one pCPU, and the rest as *extra
//! time* in quanta of 0.5 ms, first to those that lost time by blocking (the penalty queue), then by weight (the
//! utilisation queue). Generations `xen3.0.2`, `xen3.0.3`, `xen3.3.0` and `xen4.4.1`, whose differences are [`Rules`].
//! All rules in words: `docs/schedulers/sedf.md`.

mod entitlement;
mod params;
mod rules;

use std::fmt;

use vcpulab_host::{
    Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope, Slice, Span,
    Table, Time, VcpuId,
};

use self::entitlement::{Entitlement, Share};
use self::params::{PERIOD, SLICE, WEIGHT};
use self::rules::Rules;
use crate::list::{Links, List};
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::table::put;
use crate::width::Width;

const EXTRA_QUANTUM: Span = Span::from_us(500);
/// The period of reservations by weight and of best-effort domains.
const WEIGHT_PERIOD: Span = Span::from_ms(100);
/// The time that reservations by weight leave free in each weight period.
const WEIGHT_SAFETY: Span = Span::from_ms(5);
/// Cost of one quantum for extraweight 1. (For a reservation: period / slice, times 1024.)
const QUANTUM_COST: i64 = 131_072;
const RESERVATION_COST: i64 = 1024;

const PENALTY: usize = 0;
const UTILISATION: usize = 1;

#[derive(Clone, Debug)]
struct Vcpu {
    period: Span,
    slice: Span,
    period_orig: Span,
    slice_orig: Span,
    weight: i16,
    extraweight: i16,
    deadline: Time,
    /// The used part of the current slice.
    cputime: Span,
    /// Time of the last decision that chose the vCPU.
    start: Time,
    blocked_at: Time,
    loss: Span,
    /// The price of a quantum in the penalty queue and in the utilization queue.
    score: [i32; 2],
    /// Whether the vCPU accepts extra time.
    aware: bool,
    asleep: bool,
    wants_penalty: bool,
    /// The extra queue from which the vCPU is being run.
    extra: Option<usize>,
    /// Whether the vCPU's present queue is the wait queue, and not the run queue.
    on_wait: bool,
}

impl Vcpu {
    fn begin(&self) -> Time {
        self.deadline - self.period
    }
}

#[derive(Clone, Debug, Default)]
struct Pcpu {
    /// vCPUs whose period has begun, by deadline.
    run: List<VcpuId>,
    /// vCPUs that wait for their next period, by its begin.
    wait: List<VcpuId>,
    extra: [List<VcpuId>; 2],
    /// End of the slice that the last decision gave.
    slice_end: Time,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Sedf {
    rules: Rules,
    pcpus: Table<PcpuId, Pcpu>,
    vcpus: Table<VcpuId, Vcpu>,
    /// Links of run and wait queues, and of both extra queues.
    queued: Links<VcpuId>,
    extra: [Links<VcpuId>; 2],
}

/// a / b rounded up, for positive numbers.
fn div_up(a: Span, b: Span) -> i64 {
    (a + b - Span::from_ns(1)) / b
}

impl Sedf {
    // ---- queues ----

    fn enqueue_run(&mut self, p: PcpuId, v: VcpuId) {
        let deadline = self.vcpus[v].deadline;
        let queue = &mut self.pcpus[p].run;
        let before = self.queued.iter(queue).find(|&u| self.vcpus[u].deadline > deadline);
        self.queued.insert_before(queue, v, before);
        self.vcpus[v].on_wait = false;
    }

    fn enqueue_wait(&mut self, p: PcpuId, v: VcpuId) {
        let begin = self.vcpus[v].begin();
        let queue = &mut self.pcpus[p].wait;
        let before = self.queued.iter(queue).find(|&u| self.vcpus[u].begin() > begin);
        self.queued.insert_before(queue, v, before);
        self.vcpus[v].on_wait = true;
    }

    fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        if self.queued.listed(v) {
            let pcpu = &mut self.pcpus[p];
            let queue = if self.vcpus[v].on_wait { &mut pcpu.wait } else { &mut pcpu.run };
            self.queued.remove(queue, v);
        }
    }

    /// Puts `v` into an extra queue by score, and takes `amount` off the scores of all others there.
    fn enqueue_extra(&mut self, p: PcpuId, i: usize, v: VcpuId, amount: i32) {
        let score = self.vcpus[v].score[i];
        let queue = &mut self.pcpus[p].extra[i];
        let mut before = None;
        let mut element = queue.first();
        while let Some(u) = element {
            let other = &mut self.vcpus[u].score[i];
            *other = other.wrapping_sub(amount);
            if before.is_none() && *other > score {
                before = Some(u);
                if amount == 0 {
                    break;
                }
            }
            element = self.extra[i].next(u);
        }
        self.extra[i].insert_before(queue, v, before);
    }

    fn dequeue_extra(&mut self, p: PcpuId, i: usize, v: VcpuId) {
        if self.extra[i].listed(v) {
            self.extra[i].remove(&mut self.pcpus[p].extra[i], v);
        }
    }

    // ---- decision ----

    fn leave_edf(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId) {
        let vcpu = &mut self.vcpus[v];
        vcpu.cputime += ctx.now() - vcpu.start;
        if vcpu.cputime < vcpu.slice && !vcpu.asleep {
            return;
        }
        self.dequeue(p, v);
        let vcpu = &mut self.vcpus[v];
        if vcpu.cputime >= vcpu.slice {
            vcpu.cputime -= vcpu.slice;
            if vcpu.period < vcpu.period_orig {
                vcpu.period = 2 * vcpu.period;
                vcpu.slice = 2 * vcpu.slice;
                if vcpu.period > vcpu.period_orig || vcpu.slice > vcpu.slice_orig {
                    (vcpu.period, vcpu.slice) = (vcpu.period_orig, vcpu.slice_orig);
                }
            }
            vcpu.deadline += vcpu.period;
        }
        if vcpu.asleep {
            self.dequeue_extra(p, PENALTY, v);
            self.dequeue_extra(p, UTILISATION, v);
        } else {
            self.enqueue_wait(p, v);
        }
    }

    fn leave_extra_time(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId, i: usize) {
        self.dequeue_extra(p, i, v);
        let vcpu = &mut self.vcpus[v];
        vcpu.extra = None;
        vcpu.cputime = Span::ZERO;
        let mut amount = vcpu.score[i];
        if i == UTILISATION {
            // A slice of 0 without extraweight has no cost; the releases divide by zero here.
            vcpu.score[i] = if vcpu.extraweight != 0 {
                (QUANTUM_COST / i64::from(vcpu.extraweight)) as i32
            } else if vcpu.slice.is_zero() {
                i32::MAX
            } else {
                (vcpu.period * RESERVATION_COST / vcpu.slice) as i32
            };
        } else {
            vcpu.loss = if self.rules.repays_all { vcpu.loss - (ctx.now() - vcpu.start) } else { Span::ZERO };
            if vcpu.loss <= Span::ZERO {
                vcpu.loss = Span::ZERO;
                vcpu.wants_penalty = false;
            } else {
                vcpu.score[i] = (vcpu.period * RESERVATION_COST / vcpu.loss) as i32;
                amount = 0;
            }
        }
        if vcpu.asleep {
            self.dequeue(p, v);
            self.dequeue_extra(p, 1 - i, v);
        } else if i == UTILISATION && vcpu.aware || i == PENALTY && vcpu.wants_penalty {
            self.enqueue_extra(p, i, v, amount);
        }
    }

    /// Moves vCPUs between the run queue and the wait queue as their periods begin and end.
    fn update_queues(&mut self, p: PcpuId, now: Time) {
        while let Some(u) = self.pcpus[p].wait.first()
            && self.vcpus[u].begin() <= now
        {
            self.dequeue(p, u);
            self.enqueue_run(p, u);
        }
        let mut element = self.pcpus[p].run.first();
        while let Some(u) = element {
            element = self.queued.next(u);
            let v = u;
            let vcpu = &mut self.vcpus[u];
            let period = vcpu.period;
            if vcpu.slice.is_zero() {
                self.dequeue(p, v);
                let vcpu = &mut self.vcpus[u];
                vcpu.deadline += period;
                if vcpu.begin() < now {
                    vcpu.deadline += div_up(now - vcpu.begin(), period) * period;
                }
                self.enqueue_wait(p, v);
            } else if vcpu.deadline < now || vcpu.cputime > vcpu.slice {
                self.dequeue(p, v);
                let vcpu = &mut self.vcpus[u];
                vcpu.deadline += period;
                if vcpu.deadline < now {
                    vcpu.deadline += div_up(now - vcpu.deadline, period) * period;
                }
                vcpu.cputime = Span::ZERO;
                if vcpu.begin() > now {
                    self.enqueue_wait(p, v);
                } else {
                    self.enqueue_run(p, v);
                }
            } else {
                break;
            }
        }
    }

    fn choose(&mut self, p: PcpuId, idle: VcpuId, now: Time) -> (VcpuId, Span) {
        let pcpu = &self.pcpus[p];
        let next_begin = pcpu.wait.first().map(|u| self.vcpus[u].begin());
        if let Some(u) = pcpu.run.first() {
            let vcpu = &self.vcpus[u];
            let left = vcpu.slice - vcpu.cputime;
            return (u, next_begin.map_or(left, |begin| left.min(begin - now)));
        }
        let Some(begin) = next_begin else { return (idle, Span::from_ms(1000)) };
        if begin - now >= EXTRA_QUANTUM {
            for i in [PENALTY, UTILISATION] {
                if let Some(u) = pcpu.extra[i].first() {
                    self.vcpus[u].extra = Some(i);
                    return (u, EXTRA_QUANTUM);
                }
            }
        }
        (idle, begin - now)
    }

    fn report(&self, ctx: &mut PolicyContext, v: VcpuId) {
        if !ctx.is_idle(v) {
            let vcpu = &self.vcpus[v];
            ctx.report(v, "deadline", vcpu.deadline.ns());
            ctx.report(v, "cputime", vcpu.cputime.ns());
            ctx.report(v, "score0", i64::from(vcpu.score[0]));
            ctx.report(v, "score1", i64::from(vcpu.score[1]));
        }
    }

    // ---- adjusting ----

    /// Turns weights into reservations again, for all vCPUs of each pCPU together.
    fn recompute_weights(&mut self, ctx: &PolicyContext) {
        for p in ctx.pcpus().iter() {
            let here = || ctx.pool_vcpus().filter(|&v| ctx.processor(v) == p && v.index() < self.vcpus.len());
            let (mut weights, mut reserved) = (0i64, Span::ZERO);
            for vcpu in here().map(|v| &self.vcpus[v]) {
                if vcpu.weight != 0 {
                    weights += i64::from(vcpu.weight);
                } else {
                    reserved += WEIGHT_PERIOD * vcpu.slice_orig.ns() / vcpu.period_orig.ns();
                }
            }
            let share = WEIGHT_PERIOD - WEIGHT_SAFETY - reserved;
            let weighted: Vec<VcpuId> = here().filter(|&v| self.vcpus[v].weight != 0).collect();
            for v in weighted {
                let vcpu = &mut self.vcpus[v];
                (vcpu.period, vcpu.period_orig) = (WEIGHT_PERIOD, WEIGHT_PERIOD);
                // Weights that cancel out have no share; the releases divide by zero here.
                vcpu.slice = if weights == 0 { Span::ZERO } else { i64::from(vcpu.weight) * share / weights };
                vcpu.slice_orig = vcpu.slice;
            }
        }
    }
}

impl Scheduler for Sedf {
    fn rules(&self) -> HostRules {
        self.rules.host
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        put(&mut self.pcpus, p, Pcpu::default());
        self.add_vcpu(ctx.idle(p), false, 0);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let dom0 = ctx.domain_number(ctx.dom(v)) == 0;
        self.add_vcpu(v, true, if dom0 { self.rules.dom0_extraweight } else { 1 });
        if let Some((period, slice)) = self.rules.dom0_reservation.filter(|_| dom0) {
            let vcpu = &mut self.vcpus[v];
            (vcpu.period, vcpu.period_orig) = (period, period);
            (vcpu.slice, vcpu.slice_orig) = (slice, slice);
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.queued.listed(v) {
            return;
        }
        let (now, p) = (ctx.now(), ctx.processor(v));
        let vcpu = &mut self.vcpus[v];
        vcpu.asleep = false;
        if vcpu.deadline == Time::ZERO {
            vcpu.deadline = now + vcpu.slice;
        }
        if now < vcpu.begin() {
            if vcpu.wants_penalty && !self.extra[PENALTY].listed(v) {
                self.enqueue_extra(p, PENALTY, v, 0);
            }
        } else if now < vcpu.deadline {
            vcpu.deadline += vcpu.period;
            if vcpu.blocked_at != Time::ZERO {
                vcpu.loss = (vcpu.slice - vcpu.cputime).max(Span::ZERO);
                if vcpu.loss != Span::ZERO {
                    vcpu.score[PENALTY] = (vcpu.period * RESERVATION_COST / vcpu.loss) as i32;
                    if !self.extra[PENALTY].listed(v) {
                        vcpu.wants_penalty = true;
                    }
                    self.dequeue_extra(p, PENALTY, v);
                    self.enqueue_extra(p, PENALTY, v, 0);
                }
            }
            self.vcpus[v].cputime = Span::ZERO;
        } else {
            vcpu.deadline = now + vcpu.period;
            vcpu.cputime = Span::ZERO;
        }
        if self.vcpus[v].aware && !self.extra[UTILISATION].listed(v) {
            self.enqueue_extra(p, UTILISATION, v, 0);
        }
        let begin = self.vcpus[v].begin();
        if begin > now {
            self.enqueue_wait(p, v);
        } else {
            self.enqueue_run(p, v);
        }
        let current = ctx.current(p);
        let (vcpu, running) = (&self.vcpus[v], &self.vcpus[current]);
        let interrupts = begin < self.pcpus[p].slice_end
            || ctx.is_idle(current)
            || match running.extra {
                Some(PENALTY) => vcpu.wants_penalty && vcpu.score[PENALTY] < running.score[PENALTY],
                Some(_) => vcpu.wants_penalty,
                None => false,
            };
        if interrupts {
            ctx.raise_reschedule(p);
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        self.vcpus[v].asleep = true;
        if ctx.is_current(v) {
            return ctx.raise_reschedule(p);
        }
        self.dequeue(p, v);
        self.dequeue_extra(p, PENALTY, v);
        self.dequeue_extra(p, UTILISATION, v);
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let now = ctx.now();
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        if current != idle {
            let runnable = ctx.runnable(current);
            let vcpu = &mut self.vcpus[current];
            vcpu.asleep |= !runnable;
            if vcpu.asleep {
                vcpu.blocked_at = now;
            }
            match vcpu.extra {
                Some(i) => self.leave_extra_time(ctx, p, current, i),
                None => self.leave_edf(ctx, p, current),
            }
        }
        self.update_queues(p, now);
        let (next, mut slice) = self.choose(p, idle, now);
        if slice.is_negative() {
            slice = EXTRA_QUANTUM;
        }
        self.vcpus[next].start = now;
        self.pcpus[p].slice_end = now + slice;
        if next != current {
            self.report(ctx, current);
            self.report(ctx, next);
            if next != idle {
                let mode = self.vcpus[next].extra.map_or(0, |i| i as i64 + 1);
                ctx.report(next, "mode", mode);
            }
        }
        let slice = if self.rules.wide_slices { slice } else { Span::from_ns(i64::from(slice.ns() as i32)) };
        Decision { next, slice: Slice::from_signed(slice) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let affinity = ctx.affinity(v);
        let lowest = affinity.first().unwrap_or(ctx.processor(v));
        if !self.rules.picks_by_number {
            return lowest;
        }
        let (_, number) = ctx.name(v);
        let from = PcpuId((number % i64::from(affinity.len())) as u32);
        if affinity.contains(from) { from } else { affinity.first_above(from).unwrap_or(lowest) }
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        let Entitlement { extratime, share } = Entitlement::among(params)?;
        for v in ctx.vcpus_of(d) {
            let vcpu = &mut self.vcpus[v];
            match share {
                Share::Time { period, slice } => {
                    (vcpu.weight, vcpu.extraweight) = (0, 0);
                    (vcpu.period, vcpu.period_orig) = (period, period);
                    (vcpu.slice, vcpu.slice_orig) = (slice, slice);
                }
                Share::ExtraTimeByWeight(weight) => {
                    (vcpu.weight, vcpu.extraweight) = (0, weight);
                    (vcpu.period, vcpu.slice) = (WEIGHT_PERIOD, Span::ZERO);
                }
                Share::ReservedByWeight(weight) => vcpu.weight = weight,
            }
        }
        self.recompute_weights(ctx);
        for v in ctx.vcpus_of(d) {
            let p = ctx.processor(v);
            let vcpu = &mut self.vcpus[v];
            vcpu.aware = extratime;
            let (running_extra, asleep) = (vcpu.extra.is_some(), vcpu.asleep);
            if self.extra[UTILISATION].listed(v) {
                if !extratime && !running_extra {
                    self.dequeue_extra(p, UTILISATION, v);
                }
            } else if extratime && !asleep {
                self.enqueue_extra(p, UTILISATION, v, 0);
            }
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p.0, &self.pcpus[p])) {
            let queues = [
                ("run", &pcpu.run, &self.queued),
                ("wait", &pcpu.wait, &self.queued),
                ("penalty", &pcpu.extra[PENALTY], &self.extra[PENALTY]),
                ("utilisation", &pcpu.extra[UTILISATION], &self.extra[UTILISATION]),
            ];
            for (name, queue, links) in queues {
                write!(out, "pCPU {p}: {name}:")?;
                for u in links.iter(queue) {
                    let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
                    write!(out, " d{domain}v{number}(deadline {} used {})", vcpu.deadline, vcpu.cputime)?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

// ---- creation ----

impl Registered for Sedf {
    type Rules = Rules;
    const NAME: &'static str = "sedf";
    const DOC: &'static str =
        "Guaranteed slices in periods by earliest deadline first, and extra time by weight.";
    const GENERATIONS: &'static [(Generation, Rules)] = rules::GENERATIONS;

    fn check(_rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        let Entitlement { share, .. } = Entitlement::among(proposal.given)?;
        let slice = proposal.given.int(SLICE.name).unwrap_or(0);
        match share {
            Share::Time { .. } => Ok(()),
            // The release ignores it.
            Share::ReservedByWeight(_) | Share::ExtraTimeByWeight(_) if slice != 0 && proposal.is_new() => {
                Err(Refusal::new([SLICE.name, WEIGHT.name], "either a period and a slice, or a weight"))
            }
            Share::ReservedByWeight(_) | Share::ExtraTimeByWeight(_) => Ok(()),
        }
    }

    fn shortest_interval(_rules: Rules, _scope: Scope, given: &Params) -> Option<(&'static str, Span)> {
        let params = [PERIOD, SLICE].into_iter();
        let ns = params.filter_map(|param| Some((param.name, Span::from_ns(given.int(param.name)?))));
        ns.filter(|&(_, span)| span > Span::ZERO).min_by_key(|&(_, span)| span)
    }

    fn width(_rules: Rules, param: &str) -> Width {
        match param {
            "extratime" | "weight" => Width::Bits32,
            _ => Width::Bits64,
        }
    }

    fn new(rules: Rules, _global: &Params, _pcpus: u32) -> Self {
        Sedf {
            rules,
            pcpus: Table::new(),
            vcpus: Table::new(),
            queued: Links::default(),
            extra: [Links::default(), Links::default()],
        }
    }
}

impl Sedf {
    fn add_vcpu(&mut self, v: VcpuId, guest: bool, extraweight: i16) {
        let vcpu = Vcpu {
            period: WEIGHT_PERIOD,
            slice: Span::ZERO,
            period_orig: WEIGHT_PERIOD,
            slice_orig: Span::ZERO,
            weight: 0,
            extraweight,
            deadline: Time::ZERO,
            cputime: Span::ZERO,
            start: Time::ZERO,
            blocked_at: Time::ZERO,
            loss: Span::ZERO,
            score: [0; 2],
            aware: guest,
            asleep: guest,
            wants_penalty: false,
            extra: None,
            on_wait: false,
        };
        put(&mut self.vcpus, v, vcpu);
        self.queued.grow(v);
        self.extra.iter_mut().for_each(|links| links.grow(v));
    }
}
