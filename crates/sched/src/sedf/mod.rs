//! SEDF, simple earliest deadline first: a guaranteed slice in every period of one pCPU, and what is left as *extra
//! time* in quanta of 0.5 ms, first to those that lost time by blocking (the penalty queue), then by weight (the
//! utilisation queue). Generations `xen3.0.2`, `xen3.0.3`, `xen3.3.0` and `xen4.4.1`, whose differences are [`Rules`].
//! All rules in words: `docs/schedulers/sedf.md`.

mod params;
mod rules;

use std::fmt;

use vcpulab_host::{
    Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Span, Time, VcpuId,
};

use self::params::{PERIOD_MAX, PERIOD_MIN, SLICE_MIN};
use self::rules::Rules;
use crate::list::{Links, List};
use crate::params::MS;
use crate::policy::{Generation, Registered};
use crate::table::put;

const EXTRA_QUANTUM: Span = 500_000;
/// The period that reservations by weight and best-effort domains have.
const WEIGHT_PERIOD: Span = 100 * MS;
/// What reservations by weight leave free in each weight period.
const WEIGHT_SAFETY: Span = 5 * MS;
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
    /// Time used of the current slice.
    cputime: Span,
    /// The last decision that chose it.
    start: Time,
    blocked_at: Time,
    loss: Span,
    /// What a quantum costs in the penalty and in the utilisation queue.
    score: [i32; 2],
    /// Does it accept extra time?
    aware: bool,
    asleep: bool,
    wants_penalty: bool,
    /// The extra queue from which it is being run.
    extra: Option<usize>,
    /// Is the queue it is on the wait queue (and not the run queue)?
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
    run: List,
    /// vCPUs that wait for their next period, by its begin.
    wait: List,
    extra: [List; 2],
    /// When the slice of the last decision ends.
    slice_end: Time,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Sedf {
    rules: Rules,
    pcpus: Vec<Pcpu>,
    vcpus: Vec<Vcpu>,
    /// Links of run and wait queues, and of both extra queues.
    queued: Links,
    extra: [Links; 2],
}

/// a / b rounded up, for positive numbers.
fn div_up(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

impl Sedf {
    // ---- queues ----

    fn enqueue_run(&mut self, p: PcpuId, v: VcpuId) {
        let deadline = self.vcpus[v.index()].deadline;
        let queue = &mut self.pcpus[p.index()].run;
        let before = self.queued.iter(queue).find(|&u| self.vcpus[u as usize].deadline > deadline);
        self.queued.insert_before(queue, v.0, before);
        self.vcpus[v.index()].on_wait = false;
    }

    fn enqueue_wait(&mut self, p: PcpuId, v: VcpuId) {
        let begin = self.vcpus[v.index()].begin();
        let queue = &mut self.pcpus[p.index()].wait;
        let before = self.queued.iter(queue).find(|&u| self.vcpus[u as usize].begin() > begin);
        self.queued.insert_before(queue, v.0, before);
        self.vcpus[v.index()].on_wait = true;
    }

    fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        if self.queued.listed(v.0) {
            let pcpu = &mut self.pcpus[p.index()];
            let queue = if self.vcpus[v.index()].on_wait { &mut pcpu.wait } else { &mut pcpu.run };
            self.queued.remove(queue, v.0);
        }
    }

    /// Puts `v` into an extra queue by score, and takes `amount` off the scores of all others there.
    fn enqueue_extra(&mut self, p: PcpuId, i: usize, v: VcpuId, amount: i32) {
        let score = self.vcpus[v.index()].score[i];
        let queue = &mut self.pcpus[p.index()].extra[i];
        let mut before = None;
        let mut element = queue.first();
        while let Some(u) = element {
            let other = &mut self.vcpus[u as usize].score[i];
            *other = other.wrapping_sub(amount);
            if before.is_none() && *other > score {
                before = Some(u);
                if amount == 0 {
                    break;
                }
            }
            element = self.extra[i].next(u);
        }
        self.extra[i].insert_before(queue, v.0, before);
    }

    fn dequeue_extra(&mut self, p: PcpuId, i: usize, v: VcpuId) {
        if self.extra[i].listed(v.0) {
            self.extra[i].remove(&mut self.pcpus[p.index()].extra[i], v.0);
        }
    }

    // ---- decision ----

    fn leave_edf(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.cputime += ctx.now() - vcpu.start;
        if vcpu.cputime < vcpu.slice && !vcpu.asleep {
            return;
        }
        self.dequeue(p, v);
        let vcpu = &mut self.vcpus[v.index()];
        if vcpu.cputime >= vcpu.slice {
            vcpu.cputime -= vcpu.slice;
            if vcpu.period < vcpu.period_orig {
                vcpu.period *= 2;
                vcpu.slice *= 2;
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
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.extra = None;
        vcpu.cputime = 0;
        let mut amount = vcpu.score[i];
        if i == UTILISATION {
            vcpu.score[i] = if vcpu.extraweight != 0 {
                (QUANTUM_COST / i64::from(vcpu.extraweight)) as i32
            } else {
                // A slice of 0 without extraweight has no cost; the releases divide by zero here.
                (vcpu.period * RESERVATION_COST).checked_div(vcpu.slice).unwrap_or(i64::from(i32::MAX)) as i32
            };
        } else {
            vcpu.loss = if self.rules.repays_all { vcpu.loss - (ctx.now() - vcpu.start) } else { 0 };
            if vcpu.loss <= 0 {
                vcpu.loss = 0;
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
        while let Some(u) = self.pcpus[p.index()].wait.first()
            && self.vcpus[u as usize].begin() <= now
        {
            self.dequeue(p, VcpuId(u));
            self.enqueue_run(p, VcpuId(u));
        }
        let mut element = self.pcpus[p.index()].run.first();
        while let Some(u) = element {
            element = self.queued.next(u);
            let v = VcpuId(u);
            let vcpu = &mut self.vcpus[u as usize];
            let period = vcpu.period;
            if vcpu.slice == 0 {
                self.dequeue(p, v);
                let vcpu = &mut self.vcpus[u as usize];
                vcpu.deadline += period;
                if vcpu.begin() < now {
                    vcpu.deadline += div_up(now - vcpu.begin(), period) * period;
                }
                self.enqueue_wait(p, v);
            } else if vcpu.deadline < now || vcpu.cputime > vcpu.slice {
                self.dequeue(p, v);
                let vcpu = &mut self.vcpus[u as usize];
                vcpu.deadline += period;
                if vcpu.deadline < now {
                    vcpu.deadline += div_up(now - vcpu.deadline, period) * period;
                }
                vcpu.cputime = 0;
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
        let pcpu = &self.pcpus[p.index()];
        let next_begin = pcpu.wait.first().map(|u| self.vcpus[u as usize].begin());
        if let Some(u) = pcpu.run.first() {
            let vcpu = &self.vcpus[u as usize];
            let left = vcpu.slice - vcpu.cputime;
            return (VcpuId(u), next_begin.map_or(left, |begin| left.min(begin - now)));
        }
        let Some(begin) = next_begin else { return (idle, 1000 * MS) };
        if begin - now >= EXTRA_QUANTUM {
            for i in [PENALTY, UTILISATION] {
                if let Some(u) = pcpu.extra[i].first() {
                    self.vcpus[u as usize].extra = Some(i);
                    return (VcpuId(u), EXTRA_QUANTUM);
                }
            }
        }
        (idle, begin - now)
    }

    fn report(&self, ctx: &mut PolicyContext, v: VcpuId) {
        if !ctx.is_idle(v) {
            let vcpu = &self.vcpus[v.index()];
            ctx.report(v, "deadline", vcpu.deadline);
            ctx.report(v, "cputime", vcpu.cputime);
            ctx.report(v, "score0", i64::from(vcpu.score[0]));
            ctx.report(v, "score1", i64::from(vcpu.score[1]));
        }
    }

    // ---- adjusting ----

    /// Turns weights into reservations again, for all vCPUs of each pCPU together.
    fn recompute_weights(&mut self, ctx: &PolicyContext) {
        for p in ctx.pcpus().iter() {
            let here = || ctx.pool_vcpus().filter(|&v| ctx.processor(v) == p && v.index() < self.vcpus.len());
            let (mut weights, mut reserved) = (0i64, 0i64);
            for vcpu in here().map(|v| &self.vcpus[v.index()]) {
                if vcpu.weight != 0 {
                    weights += i64::from(vcpu.weight);
                } else {
                    reserved += WEIGHT_PERIOD * vcpu.slice_orig / vcpu.period_orig;
                }
            }
            let share = WEIGHT_PERIOD - WEIGHT_SAFETY - reserved;
            let weighted: Vec<VcpuId> = here().filter(|&v| self.vcpus[v.index()].weight != 0).collect();
            for v in weighted {
                let vcpu = &mut self.vcpus[v.index()];
                (vcpu.period, vcpu.period_orig) = (WEIGHT_PERIOD, WEIGHT_PERIOD);
                // Weights that cancel out have no share; the releases divide by zero here.
                vcpu.slice = (i64::from(vcpu.weight) * share).checked_div(weights).unwrap_or(0);
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
        put(&mut self.pcpus, p.index(), Pcpu::default());
        self.add_vcpu(ctx.idle(p), false, 0);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let dom0 = ctx.domain_number(ctx.dom(v)) == 0;
        self.add_vcpu(v, true, if dom0 { self.rules.dom0_extraweight } else { 1 });
        if let Some((period, slice)) = self.rules.dom0_reservation.filter(|_| dom0) {
            let vcpu = &mut self.vcpus[v.index()];
            (vcpu.period, vcpu.period_orig) = (period, period);
            (vcpu.slice, vcpu.slice_orig) = (slice, slice);
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.queued.listed(v.0) {
            return;
        }
        let (now, p) = (ctx.now(), ctx.processor(v));
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.asleep = false;
        if vcpu.deadline == 0 {
            vcpu.deadline = now + vcpu.slice;
        }
        if now < vcpu.begin() {
            if vcpu.wants_penalty && !self.extra[PENALTY].listed(v.0) {
                self.enqueue_extra(p, PENALTY, v, 0);
            }
        } else if now < vcpu.deadline {
            vcpu.deadline += vcpu.period;
            if vcpu.blocked_at != 0 {
                vcpu.loss = (vcpu.slice - vcpu.cputime).max(0);
                if vcpu.loss != 0 {
                    vcpu.score[PENALTY] = (vcpu.period * RESERVATION_COST / vcpu.loss) as i32;
                    if !self.extra[PENALTY].listed(v.0) {
                        vcpu.wants_penalty = true;
                    }
                    self.dequeue_extra(p, PENALTY, v);
                    self.enqueue_extra(p, PENALTY, v, 0);
                }
            }
            self.vcpus[v.index()].cputime = 0;
        } else {
            vcpu.deadline = now + vcpu.period;
            vcpu.cputime = 0;
        }
        if self.vcpus[v.index()].aware && !self.extra[UTILISATION].listed(v.0) {
            self.enqueue_extra(p, UTILISATION, v, 0);
        }
        let begin = self.vcpus[v.index()].begin();
        if begin > now {
            self.enqueue_wait(p, v);
        } else {
            self.enqueue_run(p, v);
        }
        let current = ctx.current(p);
        let (vcpu, running) = (&self.vcpus[v.index()], &self.vcpus[current.index()]);
        let interrupts = begin < self.pcpus[p.index()].slice_end
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
        self.vcpus[v.index()].asleep = true;
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
            let vcpu = &mut self.vcpus[current.index()];
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
        if slice < 0 {
            slice = EXTRA_QUANTUM;
        }
        self.vcpus[next.index()].start = now;
        self.pcpus[p.index()].slice_end = now + slice;
        if next != current {
            self.report(ctx, current);
            self.report(ctx, next);
            if next != idle {
                let mode = self.vcpus[next.index()].extra.map_or(0, |i| i as i64 + 1);
                ctx.report(next, "mode", mode);
            }
        }
        Decision { next, slice: if self.rules.wide_slices { slice } else { Span::from(slice as i32) } }
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
        // What an adjust leaves out is 0.
        let given = |name| params.int(name).unwrap_or(0);
        let (period, slice, weight) = (given("period"), given("slice"), given("weight") as i16);
        let extratime = given("extratime") & 1 != 0;
        let by_weight = weight != 0;
        if !by_weight {
            let (period, slice) = (period as u64, slice as u64);
            if !(PERIOD_MIN..=PERIOD_MAX).contains(&period) || slice > period || slice < SLICE_MIN {
                return Err(Rejected);
            }
        }
        for v in ctx.vcpus_of(d) {
            let vcpu = &mut self.vcpus[v.index()];
            if !by_weight {
                (vcpu.weight, vcpu.extraweight) = (0, 0);
                (vcpu.period, vcpu.period_orig) = (period, period);
                (vcpu.slice, vcpu.slice_orig) = (slice, slice);
            } else if extratime && period == 0 {
                (vcpu.weight, vcpu.extraweight) = (0, weight);
                (vcpu.period, vcpu.slice) = (WEIGHT_PERIOD, 0);
            } else {
                vcpu.weight = weight;
            }
        }
        self.recompute_weights(ctx);
        for v in ctx.vcpus_of(d) {
            let p = ctx.processor(v);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.aware = extratime;
            let (running_extra, asleep) = (vcpu.extra.is_some(), vcpu.asleep);
            if self.extra[UTILISATION].listed(v.0) {
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
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p.0, &self.pcpus[p.index()])) {
            let queues = [
                ("run", &pcpu.run, &self.queued),
                ("wait", &pcpu.wait, &self.queued),
                ("penalty", &pcpu.extra[PENALTY], &self.extra[PENALTY]),
                ("utilisation", &pcpu.extra[UTILISATION], &self.extra[UTILISATION]),
            ];
            for (name, queue, links) in queues {
                write!(out, "pCPU {p}: {name}:")?;
                for u in links.iter(queue) {
                    let ((domain, number), vcpu) = (ctx.name(VcpuId(u)), &self.vcpus[u as usize]);
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

    fn new(rules: Rules, _global: &Params, _pcpus: u32) -> Self {
        Sedf {
            rules,
            pcpus: Vec::new(),
            vcpus: Vec::new(),
            queued: Links::default(),
            extra: [Links::default(), Links::default()],
        }
    }
}

impl Sedf {
    fn add_vcpu(&mut self, v: VcpuId, guest: bool, extraweight: i16) {
        let vcpu = Vcpu {
            period: WEIGHT_PERIOD,
            slice: 0,
            period_orig: WEIGHT_PERIOD,
            slice_orig: 0,
            weight: 0,
            extraweight,
            deadline: 0,
            cputime: 0,
            start: 0,
            blocked_at: 0,
            loss: 0,
            score: [0; 2],
            aware: guest,
            asleep: guest,
            wants_penalty: false,
            extra: None,
            on_wait: false,
        };
        put(&mut self.vcpus, v.index(), vcpu);
        self.queued.grow(v.index() + 1);
        self.extra.iter_mut().for_each(|links| links.grow(v.index() + 1));
    }
}
