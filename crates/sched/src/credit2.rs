//! Credit2: proportional shares for general-purpose hosts. pCPUs share run queues; vCPUs burn credit, faster the lower
//! their weight, and whoever has most credit runs; decaying load averages drive placement and balancing between run
//! queues. Generations `xen4.4.1` and `xen4.17`, which adds caps, a rate limit and hard affinity.
//!
//! Times and credits are nanoseconds. The specification numbers its rules; comments here name what they say.

use std::fmt;

use vcpulab_host::{
    AffinityRule, CpuMask, Decision, DomId, HostRules, ParamKind, ParamSpec, Params, PcpuId, Placement,
    PolicyContext, Rejected, Scheduler, Scope, Span, Time, TimerId, VcpuId,
};

use crate::list::{Links, List};
use crate::table::put;
use crate::{Generation, Policy, Registered, Set, Toolstack};

const MS: Span = 1_000_000;
const US: Span = 1_000;

/// What a new vCPU has, and what a reset gives.
const ALLOTMENT: i32 = 10_000_000;
/// Most credit after a reset.
const CREDIT_MAX: i32 = 10_500_000;
/// Floor of credit (4.17).
const CREDIT_MIN: i32 = -10_000_000;
/// What a vCPU gets for being moved to another pCPU.
const COMPENSATION: i32 = 50_000;
const SLICE_MIN: Span = 500_000;
/// How much of the rate limit may be missing when a vCPU is preempted all the same.
const RATELIMIT_TOLERANCE: Span = 50_000;
const SHARE_MIN: Span = 500_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Release {
    Xen441,
    Xen417,
}
use Release::{Xen417, Xen441};

const XL_4_4: Toolstack = Toolstack {
    tool: "xl",
    sched: "credit2",
    domain: "sched-credit2 -d DOM",
    global: "",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (MIGRATE_RESIST.name, Set::Boot("sched_credit2_migrate_resist")),
        (WINDOW_441.name, Set::Boot("credit2_load_window_shift")),
        (UNDER.name, Set::Boot("credit2_balance_under")),
        (OVER.name, Set::Boot("credit2_balance_over")),
    ],
};
const XL_4_17: Toolstack = Toolstack {
    global: "sched-credit2 -s",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATE_RESIST.name, Set::Boot("sched_credit2_migrate_resist")),
        (WINDOW_417.name, Set::Boot("credit2_load_window_shift")),
        (PRECISION.name, Set::Boot("credit2_load_precision_shift")),
        (UNDER.name, Set::Boot("credit2_balance_under")),
        (OVER.name, Set::Boot("credit2_balance_over")),
        (CAP_PERIOD.name, Set::Boot("credit2_cap_period_ms")),
        (RUNQUEUE.name, Set::Boot("credit2_runqueue")),
        (RUNQUEUE_MAX.name, Set::Boot("sched_credit2_max_cpus_runqueue")),
    ],
    ..XL_4_4
};

const WEIGHT: ParamSpec = ParamSpec {
    name: "weight",
    scope: Scope::Domain,
    unit: "",
    kind: ParamKind::Int { min: 1, max: 65535, also: &[0] },
    default: 256,
    doc: "Share of CPU time under contention, relative to the other domains' (0 in an adjust: leave as it is).",
};
const CAP: ParamSpec = ParamSpec {
    name: "cap",
    scope: Scope::Domain,
    unit: "% of one pCPU",
    kind: ParamKind::Int { min: 0, max: 65535, also: &[] },
    default: 0,
    doc: "Most CPU time the domain gets even if more is free; 0: no limit. At most 100 for each vCPU.",
};

const fn global(
    name: &'static str,
    unit: &'static str,
    kind: ParamKind,
    default: i64,
    doc: &'static str,
) -> ParamSpec {
    ParamSpec { name, scope: Scope::Global, unit, kind, default, doc }
}

const RATELIMIT: ParamSpec = global(
    "ratelimit_us",
    "us",
    ParamKind::Int { min: 100, max: 500_000, also: &[0] },
    1000,
    "Least time that a vCPU runs before another one preempts it; 0: none.",
);
const MIGRATE_RESIST: ParamSpec = global(
    "migrate_resist_us",
    "us",
    ParamKind::Int { min: 0, max: 1_000_000, also: &[] },
    500,
    "Credit by which a vCPU must be ahead to run on another pCPU than it did.",
);
const fn window_shift(default: i64, least: i64, doc: &'static str) -> ParamSpec {
    global("load_window_shift", "", ParamKind::Int { min: least, max: 40, also: &[] }, default, doc)
}
const WINDOW_441: ParamSpec = window_shift(
    18,
    4,
    "Logarithm of the load window in units of 1024 ns, and of the scale of load averages.",
);
const WINDOW_417: ParamSpec = window_shift(30, 11, "Logarithm of the load window in ns.");
const PRECISION: ParamSpec = global(
    "load_precision_shift",
    "",
    ParamKind::Int { min: 4, max: 20, also: &[] },
    18,
    "Logarithm of the scale of load averages.",
);
const UNDER: ParamSpec = global(
    "balance_under",
    "",
    ParamKind::Int { min: -4, max: 20, also: &[] },
    0,
    "Logarithm of the difference in load that is tolerated between run queues below full load.",
);
const OVER: ParamSpec = global(
    "balance_over",
    "",
    ParamKind::Int { min: -4, max: 20, also: &[] },
    -3,
    "Logarithm of the difference in load that is tolerated between run queues above full load.",
);
const CAP_PERIOD: ParamSpec = global(
    "cap_period_ms",
    "ms",
    ParamKind::Int { min: 1, max: 1000, also: &[] },
    10,
    "How often the budget of a capped domain is refilled.",
);
const ARRANGEMENTS: &[&str] = &["cpu", "core", "socket", "node", "all"];
const RUNQUEUE: ParamSpec =
    global("runqueue", "", ParamKind::Choice(ARRANGEMENTS), 2, "Which pCPUs share a run queue.");
const RUNQUEUE_MAX: ParamSpec = global(
    "max_cpus_runqueue",
    "pCPUs",
    ParamKind::Int { min: 1, max: 256, also: &[] },
    16,
    "Most pCPUs in a run queue.",
);
const SOCKET: ParamSpec = global(
    "cpus_per_socket",
    "pCPUs",
    ParamKind::Int { min: 1, max: 256, also: &[0] },
    0,
    "Topology as the scheduler sees it; 0: the host's.",
);

/// Sum of what is runnable, decaying over the load window.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    average: i64,
    /// When it was last brought up to date, in units of 1024 ns.
    time: i64,
}

#[derive(Clone, Debug)]
struct Vcpu {
    credit: i32,
    weight: i32,
    residual: i64,
    start: Time,
    load: Load,
    /// Budget left under a cap; `None`: no cap.
    budget: Option<Span>,
    quota: Span,
    runqueue: usize,
    /// The pCPU that was asked to decide for its sake.
    tickled_for: Option<PcpuId>,
    /// The run queue it is to be moved to once it does not run.
    moving_to: Option<usize>,
    on_cpu: bool,
    delayed_add: bool,
    yielding: bool,
    pinned: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: i32,
    cap: i64,
    /// Budget to hand out, and budget for each period.
    pool: Span,
    total: Span,
    next_refill: Time,
    refill: Option<TimerId>,
    parked: List,
}

#[derive(Clone, Debug)]
struct RunQueue {
    socket: u32,
    members: CpuMask,
    idle: CpuMask,
    /// pCPUs asked to decide that have not done so yet.
    tickled: CpuMask,
    /// Runnable vCPUs that do not run, by credit.
    waiting: List,
    /// All its vCPUs, in order of assignment.
    assigned: List,
    max_weight: i32,
    /// How many vCPUs are runnable.
    load: i64,
    average: Load,
    /// The average with what vCPUs on the move bring and take.
    balance: i64,
    rotor: PcpuId,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Credit2 {
    release: Release,
    ratelimit: Span,
    migrate_resist: i32,
    /// Logarithms of the load window (in units of 1024 ns) and of the scale of load averages.
    window: u32,
    scale: u32,
    balance_under: i64,
    balance_over: i64,
    cap_period: Span,
    arrangement: i64,
    runqueue_max: u32,
    cpus_per_socket: u32,
    runqueues: Vec<RunQueue>,
    runqueue_of: Vec<usize>,
    vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    waiting: Links,
    assigned: Links,
    parked: Links,
}

impl Registered for Credit2 {
    const POLICY: Policy = Policy {
        name: "credit2",
        doc: "Proportional shares by weight with shared run queues and load balancing; caps.",
        generations: &[
            Generation {
                name: "xen4.4.1",
                params: &[WEIGHT, MIGRATE_RESIST, WINDOW_441, UNDER, OVER, SOCKET],
                work_conserving: false,
                hard_affinity: false,
                toolstack: XL_4_4,
            },
            Generation {
                name: "xen4.17",
                params: &[
                    WEIGHT,
                    CAP,
                    RATELIMIT,
                    MIGRATE_RESIST,
                    WINDOW_417,
                    PRECISION,
                    UNDER,
                    OVER,
                    CAP_PERIOD,
                    RUNQUEUE,
                    RUNQUEUE_MAX,
                    SOCKET,
                ],
                work_conserving: false,
                hard_affinity: true,
                toolstack: XL_4_17,
            },
        ],
    };

    fn new(generation: usize, global: &Params, _pcpus: u32) -> Self {
        let release = [Xen441, Xen417][generation];
        let given = |spec: &ParamSpec| global.int(spec.name).unwrap_or(spec.default);
        let (window, scale) = match release {
            Xen441 => {
                let shift = given(&WINDOW_441).clamp(4, 40) as u32;
                (shift, shift)
            }
            Xen417 => {
                let shift = given(&WINDOW_417).min(40);
                let shift = if shift <= 10 { WINDOW_417.default } else { shift };
                (shift as u32 - 10, given(&PRECISION).clamp(4, 20) as u32)
            }
        };
        let exponent = |spec: &ParamSpec| given(spec).clamp(-i64::from(scale), 20);
        Credit2 {
            release,
            ratelimit: if release == Xen417 { given(&RATELIMIT).saturating_mul(US) } else { 0 },
            migrate_resist: given(&MIGRATE_RESIST).saturating_mul(US).clamp(0, i64::from(i32::MAX)) as i32,
            window,
            scale,
            balance_under: exponent(&UNDER),
            balance_over: exponent(&OVER),
            cap_period: given(&CAP_PERIOD).max(1).saturating_mul(MS),
            arrangement: if release == Xen417 { given(&RUNQUEUE) } else { RUNQUEUE.default },
            runqueue_max: given(&RUNQUEUE_MAX).clamp(1, i64::from(u32::MAX)) as u32,
            cpus_per_socket: given(&SOCKET).clamp(0, i64::from(u32::MAX)) as u32,
            runqueues: Vec::new(),
            runqueue_of: Vec::new(),
            vcpus: Vec::new(),
            domains: Vec::new(),
            waiting: Links::default(),
            assigned: Links::default(),
            parked: Links::default(),
        }
    }
}

// ---- load ----

impl Credit2 {
    /// What an average becomes after `span` units of 1024 ns with `load` runnable, or all of it when that is long ago.
    fn decay(&self, average: i64, load: i64, since: Time, now: Time) -> i64 {
        let full = load << self.scale;
        if since + (1 << self.window) < now {
            return full;
        }
        let span = now - since;
        match self.release {
            // Unsigned and wrapping, as the release computes it.
            Xen441 => {
                let old = ((1i64 << self.window) - span).wrapping_mul(average) as u64;
                ((span.wrapping_mul(full) as u64).wrapping_add(old) >> self.window) as i64
            }
            Xen417 => average + ((span * full) >> self.window) - ((span * average) >> self.window),
        }
    }

    fn update_runqueue_load(&mut self, ctx: &PolicyContext, r: usize, change: i64) {
        let now = ctx.now() >> 10;
        let RunQueue { load, average, balance, .. } = self.runqueues[r];
        let decayed = self.decay(average.average, load, average.time, now);
        let balance = self.decay(balance, load, average.time, now);
        let runqueue = &mut self.runqueues[r];
        runqueue.average = Load { average: decayed, time: now };
        runqueue.balance = balance;
        runqueue.load = load + change;
    }

    fn update_vcpu_load(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        let now = ctx.now() >> 10;
        let load = match change {
            0 => i64::from(ctx.runnable(v)),
            change => i64::from(change < 0),
        };
        let before = self.vcpus[v.index()].load;
        let average = self.decay(before.average, load, before.time, now);
        self.vcpus[v.index()].load = Load { average, time: now };
    }

    fn update_load(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        self.update_runqueue_load(ctx, self.vcpus[v.index()].runqueue, change);
        self.update_vcpu_load(ctx, v, change);
    }

    // ---- run queues ----

    fn update_max_weight(&mut self, r: usize, new: i32, old: i32) {
        let runqueue = &self.runqueues[r];
        let max = if new > runqueue.max_weight {
            new
        } else if old == runqueue.max_weight {
            self.assigned
                .iter(&runqueue.assigned)
                .map(|u| self.vcpus[u as usize].weight)
                .max()
                .unwrap_or(1)
                .max(1)
        } else {
            return;
        };
        self.runqueues[r].max_weight = max;
    }

    fn assign(&mut self, v: VcpuId, r: usize) {
        self.vcpus[v.index()].runqueue = r;
        self.assigned.push_back(&mut self.runqueues[r].assigned, v.0);
        let Vcpu { weight, load, .. } = self.vcpus[v.index()];
        self.update_max_weight(r, weight, 0);
        self.runqueues[r].balance += load.average;
    }

    fn unassign(&mut self, v: VcpuId) {
        let Vcpu { runqueue: r, weight, load, .. } = self.vcpus[v.index()];
        self.assigned.remove(&mut self.runqueues[r].assigned, v.0);
        self.update_max_weight(r, 0, weight);
        self.runqueues[r].balance = self.without(self.runqueues[r].balance, load.average);
    }

    /// A balance load without what one vCPU adds to it.
    fn without(&self, balance: i64, load: i64) -> i64 {
        let rest = balance - load;
        if self.release == Xen417 { rest.max(0) } else { rest }
    }

    fn enqueue(&mut self, v: VcpuId) {
        let Vcpu { credit, runqueue: r, .. } = self.vcpus[v.index()];
        let queue = &mut self.runqueues[r].waiting;
        let before = self.waiting.iter(queue).find(|&u| self.vcpus[u as usize].credit < credit);
        self.waiting.insert_before(queue, v.0, before);
    }

    fn dequeue(&mut self, v: VcpuId) {
        let r = self.vcpus[v.index()].runqueue;
        self.waiting.remove(&mut self.runqueues[r].waiting, v.0);
    }

    fn waits(&self, v: VcpuId) -> bool {
        self.waiting.listed(v.0)
    }

    fn tickle(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.runqueues[self.runqueue_of[p.index()]].tickled.insert(p);
        ctx.raise_reschedule(p);
    }

    // ---- charging ----

    fn charge(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let now = ctx.now();
        let max_weight = i64::from(self.runqueues[self.vcpus[v.index()].runqueue].max_weight);
        let vcpu = &mut self.vcpus[v.index()];
        let span = now - vcpu.start;
        if span <= 0 {
            return;
        }
        let weight = i64::from(vcpu.weight);
        let amount = span * max_weight + vcpu.residual;
        vcpu.residual = amount % weight;
        let burnt = amount / weight;
        if self.release == Xen441 {
            vcpu.credit = vcpu.credit.wrapping_sub(burnt as i32);
        } else {
            vcpu.credit = (i64::from(vcpu.credit) - burnt).max(i64::from(CREDIT_MIN)) as i32;
        }
        if let Some(budget) = &mut vcpu.budget {
            *budget -= span;
        }
        vcpu.start = now;
    }

    /// Gives everybody a fresh allotment, because `next`, chosen to run, or those that wait have none left.
    fn reset(&mut self, ctx: &mut PolicyContext, r: usize, next: VcpuId) {
        let credit = self.vcpus[next.index()].credit;
        let allotment = match self.release {
            Xen441 if credit < -ALLOTMENT => {
                (1 - i64::from(credit) / i64::from(ALLOTMENT)).wrapping_mul(i64::from(ALLOTMENT)) as i32
            }
            Xen417 if credit == CREDIT_MIN => 2 * ALLOTMENT,
            _ => ALLOTMENT,
        };
        let mut element = self.runqueues[r].assigned.first();
        while let Some(u) = element {
            element = self.assigned.next(u);
            let v = VcpuId(u);
            if self.release == Xen417 && ctx.is_current(v) {
                self.charge(ctx, v);
                if self.vcpus[v.index()].budget.is_some_and(|budget| budget <= 0) {
                    self.tickle(ctx, ctx.processor(v));
                }
            }
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.credit = vcpu.credit.wrapping_add(allotment).min(CREDIT_MAX);
            vcpu.start = ctx.now();
            let credit = i64::from(vcpu.credit);
            ctx.report(v, "credit", credit);
        }
    }

    // ---- finding a pCPU for a vCPU that has begun to wait ----

    fn find_pcpu(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let found = match self.release {
            Xen441 => self.preemptable_441(ctx, v),
            Xen417 => self.idle_or_preemptable(ctx, v),
        };
        if let Some(p) = found {
            self.tickle(ctx, p);
            self.vcpus[v.index()].tickled_for = Some(p);
        }
    }

    /// An idle pCPU, at home if possible; or home; or the one whose vCPU has least credit.
    fn idle_or_preemptable(&mut self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let home = ctx.processor(v);
        let runqueue = &self.runqueues[self.vcpus[v.index()].runqueue];
        if self.vcpus[v.index()].pinned && runqueue.idle.contains(home) && !runqueue.tickled.contains(home) {
            return Some(home);
        }
        let idle = runqueue.idle.without(&runqueue.tickled).and(ctx.affinity(v));
        if !idle.is_empty() {
            return if idle.contains(home) { Some(home) } else { idle.next_after(home) };
        }
        let mut busy =
            runqueue.members.without(&runqueue.idle).without(&runqueue.tickled).and(ctx.affinity(v));
        if busy.contains(home) {
            if self.score(ctx, home, v) > 0 {
                return Some(home);
            }
            busy.remove(home);
        }
        let (mut best, mut best_score) = (None, 0);
        for p in busy.iter() {
            let score = self.score(ctx, p, v);
            if score > best_score {
                (best, best_score) = (Some(p), score);
            }
        }
        best
    }

    /// How much better it would be to run `v` on `p` than what runs there. Charges what runs there.
    fn score(&mut self, ctx: &PolicyContext, p: PcpuId, v: VcpuId) -> i64 {
        let current = ctx.current(p);
        let ran = ctx.now() - ctx.switched_at(current);
        let too_early = self.ratelimit > RATELIMIT_TOLERANCE && ran <= self.ratelimit - RATELIMIT_TOLERANCE;
        if ctx.is_idle(current) || too_early {
            return -1;
        }
        self.charge(ctx, current);
        let ahead = i64::from(self.vcpus[v.index()].credit) - i64::from(self.vcpus[current.index()].credit);
        if p == ctx.processor(v) { ahead } else { ahead - i64::from(self.migrate_resist) }
    }

    /// Home if its vCPU has less credit; else an idle pCPU; else the one whose vCPU has least credit.
    fn preemptable_441(&mut self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let home = ctx.processor(v);
        let credit = self.vcpus[v.index()].credit;
        self.charge(ctx, ctx.current(home));
        if self.vcpus[ctx.current(home).index()].credit < credit {
            return Some(home);
        }
        let runqueue = &self.runqueues[self.vcpus[v.index()].runqueue];
        let idle = runqueue.idle.without(&runqueue.tickled);
        if !idle.is_empty() {
            return idle.next_after(home);
        }
        let mut busy = runqueue.members.without(&runqueue.idle).without(&runqueue.tickled);
        busy.remove(home);
        let (mut least, mut least_credit) = (None, 1 << 30);
        for p in busy.iter() {
            self.charge(ctx, ctx.current(p));
            let credit = self.vcpus[ctx.current(p).index()].credit;
            if credit < least_credit {
                (least, least_credit) = (Some(p), credit);
            }
        }
        least.filter(|_| i64::from(least_credit) + i64::from(self.migrate_resist) <= i64::from(credit))
    }

    // ---- caps ----

    /// Does capped `v` have budget, or can it get some? If not it is parked.
    fn grab_budget(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> bool {
        let Vcpu { budget, quota, .. } = self.vcpus[v.index()];
        let Some(budget) = budget else { return true };
        if budget > 0 {
            return true;
        }
        let d = ctx.dom(v);
        let domain = &mut self.domains[d.index()];
        domain.pool += budget;
        if domain.pool > 0 {
            let grabbed = quota.min(domain.pool);
            domain.pool -= grabbed;
            self.vcpus[v.index()].budget = Some(grabbed);
            return true;
        }
        self.vcpus[v.index()].budget = Some(0);
        ctx.park(v);
        if self.waits(v) {
            self.dequeue(v);
            self.update_load(ctx, v, -1);
        }
        self.parked.push_front(&mut self.domains[d.index()].parked, v.0);
        false
    }

    fn unpark(&mut self, ctx: &mut PolicyContext, mut list: List) {
        while let Some(u) = list.first() {
            self.parked.remove(&mut list, u);
            let v = VcpuId(u);
            ctx.unpark(v);
            if self.vcpus[v.index()].on_cpu {
                self.vcpus[v.index()].delayed_add = true;
            } else if ctx.runnable(v) {
                self.update_load(ctx, v, 1);
                self.enqueue(v);
                self.find_pcpu(ctx, v);
            }
        }
    }

    fn set_cap(&mut self, ctx: &mut PolicyContext, d: DomId, cap: i64) -> Result<(), Rejected> {
        let count = ctx.vcpus_of(d).count() as i64;
        if cap > 100 * count || cap < 0 {
            return Err(Rejected);
        }
        let had_cap = self.domains[d.index()].cap != 0;
        self.domains[d.index()].cap = cap;
        let Some(refill) = self.domains[d.index()].refill else { return Ok(()) };
        if cap == 0 {
            if had_cap {
                ctx.stop_timer(refill);
                for v in ctx.vcpus_of(d) {
                    self.vcpus[v.index()].budget = None;
                    self.vcpus[v.index()].quota = 0;
                }
                let parked = std::mem::take(&mut self.domains[d.index()].parked);
                self.unpark(ctx, parked);
            }
            return Ok(());
        }
        let total = self.cap_period * cap / 100;
        self.domains[d.index()].total = total;
        for v in ctx.vcpus_of(d) {
            self.vcpus[v.index()].quota = (total / count).max(SHARE_MIN);
        }
        if !had_cap {
            let next_refill = ctx.now() + self.cap_period;
            (self.domains[d.index()].pool, self.domains[d.index()].next_refill) = (total, next_refill);
            ctx.set_timer(refill, next_refill);
            for v in ctx.vcpus_of(d) {
                if ctx.is_current(v) {
                    self.charge(ctx, v);
                    self.tickle(ctx, ctx.processor(v));
                }
                self.vcpus[v.index()].budget = Some(0);
            }
        }
        Ok(())
    }

    // ---- moving between run queues ----

    fn move_to(&mut self, ctx: &mut PolicyContext, v: VcpuId, target: usize) {
        if self.vcpus[v.index()].on_cpu {
            self.vcpus[v.index()].moving_to = Some(target);
            ctx.start_migration(v);
            if self.release == Xen417 {
                self.tickle(ctx, ctx.processor(v));
            }
            return;
        }
        let waited = self.waits(v);
        if waited {
            self.dequeue(v);
            self.change_load_of_mover(ctx, v, -1);
        }
        self.unassign(v);
        let home = match self.release {
            Xen441 => self.runqueues[target].members.first(),
            Xen417 => self.turn_rotor(ctx, v, target),
        };
        ctx.set_processor(v, home.unwrap_or(ctx.processor(v)));
        self.assign(v, target);
        if waited {
            self.change_load_of_mover(ctx, v, 1);
            self.enqueue(v);
            self.find_pcpu(ctx, v);
        }
    }

    /// A vCPU that moves while it waits: 4.17 leaves its own load alone.
    fn change_load_of_mover(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        match self.release {
            Xen441 => self.update_load(ctx, v, change),
            Xen417 => self.update_runqueue_load(ctx, self.vcpus[v.index()].runqueue, change),
        }
    }

    /// The next pCPU in turn of a run queue that suits `v`.
    fn turn_rotor(&mut self, ctx: &PolicyContext, v: VcpuId, r: usize) -> Option<PcpuId> {
        let runqueue = &mut self.runqueues[r];
        let next = runqueue.members.and(ctx.affinity(v)).next_after(runqueue.rotor)?;
        runqueue.rotor = next;
        Some(next)
    }

    /// The run queue with the least balance load, without `v` itself, among those that `v` may go to.
    fn least_loaded(&self, ctx: &PolicyContext, v: VcpuId) -> Option<usize> {
        let vcpu = &self.vcpus[v.index()];
        let mut least = None;
        for (r, runqueue) in self.runqueues.iter().enumerate() {
            let suits = match self.release {
                Xen441 => true,
                Xen417 => !runqueue.members.and(ctx.affinity(v)).is_empty(),
            };
            let own = self.assigned.listed(v.0) && vcpu.runqueue == r;
            let load = if own { self.without(runqueue.balance, vcpu.load.average) } else { runqueue.balance };
            if suits && least.is_none_or(|(_, least)| load < least) && load < 1 << 60 {
                least = Some((r, load));
            }
        }
        least.map(|(r, _)| r)
    }

    // ---- balancing ----

    fn may_move(&self, ctx: &PolicyContext, v: VcpuId, r: usize) -> bool {
        let suits = self.release == Xen441 || !self.runqueues[r].members.and(ctx.affinity(v)).is_empty();
        self.vcpus[v.index()].moving_to.is_none() && suits
    }

    /// Moves a vCPU, or swaps two, between this run queue and the one whose load differs most from it.
    fn balance(&mut self, ctx: &mut PolicyContext, own: usize) {
        self.update_runqueue_load(ctx, own, 0);
        let (mut partner, mut difference) = (None, 0);
        for r in (0..self.runqueues.len()).filter(|&r| r != own) {
            self.update_runqueue_load(ctx, r, 0);
            let apart = self.runqueues[own].balance.wrapping_sub(self.runqueues[r].balance).wrapping_abs();
            if apart > difference {
                (partner, difference) = (Some(r), apart);
            }
        }
        let Some(other) = partner else { return };
        // The release looks at whichever run queue its loop saw last, not at the partner.
        let last = self.runqueues.len() - 1;
        let load = self.runqueues[own].balance.max(self.runqueues[last].balance);
        let full = i64::from(self.runqueues[own].members.len().max(self.runqueues[last].members.len()))
            << self.scale;
        let below = if self.release == Xen441 { (load as u64) < full as u64 } else { load < full };
        let exponent = if below { self.balance_under } else { self.balance_over };
        if difference < 1 << (i64::from(self.scale) + exponent) {
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

    fn best_exchange(
        &mut self,
        ctx: &PolicyContext,
        own: usize,
        other: usize,
        mut difference: i64,
    ) -> (Option<VcpuId>, Option<VcpuId>) {
        let (own_load, other_load) = (self.runqueues[own].balance, self.runqueues[other].balance);
        let mut best = (None, None);
        let mut consider = |vcpus: &[Vcpu], push: Option<VcpuId>, pull: Option<VcpuId>| {
            let average = |v: Option<VcpuId>| v.map_or(0, |v| vcpus[v.index()].load.average);
            let moved = average(push).wrapping_sub(average(pull));
            let apart =
                own_load.wrapping_sub(moved).wrapping_sub(other_load.wrapping_add(moved)).wrapping_abs();
            if apart < difference {
                difference = apart;
                best = (push, pull);
            }
        };
        let mut first = true;
        let mut push = self.runqueues[own].assigned.first();
        while let Some(a) = push.map(VcpuId) {
            push = self.assigned.next(a.0);
            self.update_vcpu_load(ctx, a, 0);
            if !self.may_move(ctx, a, other) {
                continue;
            }
            let mut pull = self.runqueues[other].assigned.first();
            while let Some(b) = pull.map(VcpuId) {
                pull = self.assigned.next(b.0);
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
        for b in self.assigned.iter(&self.runqueues[other].assigned).map(VcpuId) {
            if self.may_move(ctx, b, own) {
                consider(&self.vcpus, None, Some(b));
            }
        }
        best
    }

    // ---- decision ----

    fn choose_441(&self, ctx: &PolicyContext, p: PcpuId, r: usize, current: VcpuId) -> VcpuId {
        let best = if ctx.runnable(current) { current } else { ctx.idle(p) };
        let best_credit = i64::from(self.vcpus[best.index()].credit);
        let near = |&u: &u32| {
            let credit = i64::from(self.vcpus[u as usize].credit);
            ctx.processor(VcpuId(u)) == p || best_credit + i64::from(self.migrate_resist) <= credit
        };
        match self.waiting.iter(&self.runqueues[r].waiting).find(near) {
            Some(u) if i64::from(self.vcpus[u as usize].credit) > best_credit => VcpuId(u),
            _ => best,
        }
    }

    fn choose_417(&mut self, ctx: &mut PolicyContext, p: PcpuId, r: usize, current: VcpuId) -> VcpuId {
        let idle = ctx.idle(p);
        let mut yields = false;
        let mut best = current;
        if current != idle {
            yields = std::mem::take(&mut self.vcpus[current.index()].yielding);
            let runnable = ctx.runnable(current);
            let ran = ctx.now() - ctx.switched_at(current);
            if !yields && self.ratelimit > 0 && runnable && ran < self.ratelimit {
                return current;
            }
            if !runnable {
                best = idle;
            }
        }
        let best_credit = i64::from(self.vcpus[best.index()].credit);
        let mut element = self.runqueues[r].waiting.first();
        while let Some(u) = element {
            element = self.waiting.next(u);
            let (v, vcpu) = (VcpuId(u), &self.vcpus[u as usize]);
            let credit = i64::from(vcpu.credit);
            if !yields && credit <= best_credit {
                break;
            }
            let announced = vcpu.tickled_for.is_some_and(|q| q != p && self.runqueues[r].tickled.contains(q));
            let resists = ctx.processor(v) != p && best_credit + i64::from(self.migrate_resist) > credit;
            let passed = !ctx.runnable(v) || !ctx.affinity(v).contains(p) || announced || resists;
            if !passed && self.grab_budget(ctx, v) {
                return v;
            }
        }
        best
    }

    fn slice(&self, ctx: &PolicyContext, r: usize, next: VcpuId, kept: bool) -> Span {
        let runqueue = &self.runqueues[r];
        let vcpu = &self.vcpus[next.index()];
        let head = runqueue.waiting.first().map(|u| i64::from(self.vcpus[u as usize].credit));
        let ahead = i64::from(vcpu.credit) - head.filter(|&credit| credit > 0).unwrap_or(0);
        let span = ahead.max(0) * i64::from(vcpu.weight) / i64::from(runqueue.max_weight);
        if self.release == Xen441 {
            return span.clamp(SLICE_MIN, 2 * MS);
        }
        let limit = if kept { ctx.switched_at(next) + self.ratelimit - ctx.now() } else { self.ratelimit };
        let least = if self.ratelimit > 0 { limit.max(SLICE_MIN) } else { SLICE_MIN };
        let span = vcpu.budget.map_or(span, |budget| span.min(budget));
        if span < least { least } else { span.min(10 * MS) }
    }
}

impl Scheduler for Credit2 {
    fn rules(&self) -> HostRules {
        match self.release {
            Xen441 => {
                let (placement, affinity) = (Placement::LeastPopulated, AffinityRule::AlwaysPickFirst);
                HostRules { placement, affinity, ..HostRules::XEN_4_17 }
            }
            Xen417 => HostRules::XEN_4_17,
        }
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let idle_credit = if self.release == Xen441 { -(1 << 30) } else { CREDIT_MIN - 1 };
        let idle = self.new_vcpu(ctx, 1);
        put(&mut self.vcpus, ctx.idle(p).index(), Vcpu { credit: idle_credit, ..idle });
        self.grow(ctx.idle(p));
        let socket = p.0.checked_div(self.cpus_per_socket).unwrap_or_else(|| ctx.socket(p));
        let limit = match self.release {
            Xen441 => u32::MAX,
            Xen417 => {
                let pcpus = ctx.pcpus().len();
                pcpus / ((pcpus - 1) / self.runqueue_max + 1)
            }
        };
        let matches = |runqueue: &RunQueue| match ARRANGEMENTS[self.arrangement as usize] {
            "cpu" | "core" => false,
            "all" => true,
            _ => runqueue.socket == socket,
        };
        let open = |&(_, runqueue): &(usize, &RunQueue)| matches(runqueue) && runqueue.members.len() < limit;
        let fewest =
            self.runqueues.iter().enumerate().filter(open).min_by_key(|(_, runqueue)| runqueue.members.len());
        let r = fewest.map_or(self.runqueues.len(), |(r, _)| r);
        if r == self.runqueues.len() {
            self.runqueues.push(RunQueue {
                socket,
                members: CpuMask::EMPTY,
                idle: CpuMask::EMPTY,
                tickled: CpuMask::EMPTY,
                waiting: List::default(),
                assigned: List::default(),
                max_weight: 1,
                load: 0,
                average: Load::default(),
                balance: 0,
                rotor: p,
            });
        }
        self.runqueues[r].members.insert(p);
        self.runqueues[r].idle.insert(p);
        put(&mut self.runqueue_of, p.index(), r);
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        let domain = Domain {
            weight: WEIGHT.default as i32,
            cap: 0,
            pool: 0,
            total: 0,
            next_refill: 0,
            refill: (self.release == Xen417).then(|| ctx.new_timer(ctx.first_pcpu(), d.0)),
            parked: List::default(),
        };
        put(&mut self.domains, d.index(), domain);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let mut vcpu = self.new_vcpu(ctx, self.domains[ctx.dom(v).index()].weight);
        vcpu.pinned = ctx.affinity(v).len() == 1;
        put(&mut self.vcpus, v.index(), vcpu);
        self.grow(v);
        if self.release == Xen417 {
            let home = self.pick(ctx, v);
            ctx.set_processor(v, home);
        }
        self.assign(v, self.runqueue_of[ctx.processor(v).index()]);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.parked.listed(v.0) {
            self.parked.remove(&mut self.domains[ctx.dom(v).index()].parked, v.0);
            ctx.unpark(v);
        }
        self.unassign(v);
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        if let Some(refill) = self.domains[d.index()].refill.take() {
            ctx.drop_timer(refill);
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.waits(v) {
            return;
        }
        if self.vcpus[v.index()].on_cpu {
            self.vcpus[v.index()].delayed_add = true;
            return;
        }
        self.update_load(ctx, v, 1);
        self.enqueue(v);
        self.find_pcpu(ctx, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            match self.release {
                Xen441 => ctx.raise_reschedule(ctx.processor(v)),
                Xen417 => self.tickle(ctx, ctx.processor(v)),
            }
        } else if self.waits(v) {
            self.update_load(ctx, v, -1);
            self.dequeue(v);
        } else {
            self.vcpus[v.index()].delayed_add = false;
        }
    }

    fn yielded(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        self.vcpus[v.index()].yielding = self.release == Xen417;
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let r = self.runqueue_of[p.index()];
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        self.runqueues[r].tickled.remove(p);
        self.charge(ctx, current);
        let next = match self.release {
            Xen441 => self.choose_441(ctx, p, r, current),
            Xen417 => {
                if self.vcpus[current.index()].budget.is_some_and(|budget| budget <= 0) {
                    self.grab_budget(ctx, current);
                }
                self.choose_417(ctx, p, r, current)
            }
        };
        if next != current && current != idle && ctx.runnable(current) {
            self.vcpus[current.index()].delayed_add = true;
        }
        if next == idle {
            self.runqueues[r].idle.insert(p);
            self.update_runqueue_load(ctx, r, 0);
            return Decision { next, slice: if self.release == Xen441 { 2 * MS } else { -1 } };
        }
        if next != current {
            self.dequeue(next);
            self.vcpus[next.index()].on_cpu = true;
        } else if self.release == Xen417 {
            self.update_load(ctx, next, 0);
        }
        self.runqueues[r].idle.remove(p);
        let mut most = self.vcpus[next.index()].credit;
        if let (Xen417, Some(u)) = (self.release, self.runqueues[r].waiting.first()) {
            most = most.max(self.vcpus[u as usize].credit);
        }
        if most <= 0 {
            self.reset(ctx, r, next);
            self.balance(ctx, r);
        }
        let vcpu = &mut self.vcpus[next.index()];
        vcpu.start = ctx.now();
        vcpu.tickled_for = None;
        if ctx.processor(next) != p {
            vcpu.credit = vcpu.credit.wrapping_add(COMPENSATION);
            ctx.set_processor(next, p);
        }
        Decision { next, slice: self.slice(ctx, r, next, next == current) }
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_idle(v) {
            return;
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.on_cpu = false;
        let delayed_add = std::mem::take(&mut vcpu.delayed_add);
        let mut released = List::default();
        if let Some(budget) = vcpu.budget.filter(|&budget| budget > 0) {
            vcpu.budget = Some(0);
            let domain = &mut self.domains[ctx.dom(v).index()];
            domain.pool += budget;
            if domain.pool > 0 {
                released = std::mem::take(&mut domain.parked);
            }
        }
        if delayed_add && ctx.runnable(v) {
            self.enqueue(v);
            self.find_pcpu(ctx, v);
        } else {
            self.update_load(ctx, v, -1);
        }
        self.unpark(ctx, released);
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let home = ctx.processor(v);
        let target = self.vcpus[v.index()].moving_to.take();
        let picked = match self.release {
            Xen441 => {
                let r = target.or_else(|| self.least_loaded(ctx, v));
                r.and_then(|r| self.runqueues[r].members.next_after(home))
            }
            Xen417 => {
                let picked = target.and_then(|r| self.turn_rotor(ctx, v, r));
                picked.or_else(|| self.least_loaded(ctx, v).and_then(|r| self.turn_rotor(ctx, v, r)))
            }
        };
        picked.unwrap_or(home)
    }

    fn share_lock(&self, p: PcpuId, q: PcpuId) -> bool {
        self.runqueue_of[p.index()] == self.runqueue_of[q.index()]
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        let target = self.runqueue_of[p.index()];
        if target != self.vcpus[v.index()].runqueue {
            self.move_to(ctx, v, target);
        } else if self.release == Xen417 {
            ctx.set_processor(v, p);
        }
    }

    fn affinity(&mut self, _ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        self.vcpus[v.index()].pinned = mask.len() == 1;
    }

    /// A capped domain's budget is refilled.
    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        let d = DomId(token);
        let (now, period) = (ctx.now(), self.cap_period);
        let domain = &mut self.domains[d.index()];
        while domain.next_refill <= now {
            domain.next_refill += period;
            domain.pool += domain.total;
        }
        let Some(refill) = domain.refill else { return };
        ctx.set_timer(refill, domain.next_refill);
        if domain.pool <= 0 {
            return;
        }
        domain.pool = domain.pool.min(domain.total);
        let (pool, parked) = (domain.pool, std::mem::take(&mut domain.parked));
        ctx.report_domain(d, "budget", pool);
        self.unpark(ctx, parked);
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        if let Some(weight @ 1..) = params.int(WEIGHT.name) {
            let weight = weight.min(i64::from(i32::MAX)) as i32;
            let old = std::mem::replace(&mut self.domains[d.index()].weight, weight);
            for v in ctx.vcpus_of(d) {
                self.vcpus[v.index()].weight = weight;
                self.update_max_weight(self.vcpus[v.index()].runqueue, weight, old);
            }
        }
        match params.int(CAP.name) {
            Some(cap) if self.release == Xen417 => self.set_cap(ctx, d, cap),
            _ => Ok(()),
        }
    }

    fn adjust_global(&mut self, _ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        match params.int(RATELIMIT.name) {
            Some(us) if self.release == Xen417 && RATELIMIT.allows(&us.into()) => {
                self.ratelimit = us * US;
                Ok(())
            }
            _ => Err(Rejected),
        }
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (r, runqueue) in self.runqueues.iter().enumerate() {
            let members: Vec<u32> = runqueue.members.iter().map(|p| p.0).collect();
            let RunQueue { load, balance, max_weight, .. } = runqueue;
            writeln!(
                out,
                "run queue {r}: pCPUs {members:?}, load {load}, balance load {balance}, max weight {max_weight}"
            )?;
            for (name, links, list) in [
                ("waiting", &self.waiting, &runqueue.waiting),
                ("assigned", &self.assigned, &runqueue.assigned),
            ] {
                write!(out, "  {name}:")?;
                for u in links.iter(list) {
                    let ((domain, number), vcpu) = (ctx.name(VcpuId(u)), &self.vcpus[u as usize]);
                    write!(out, " d{domain}v{number}(credit {})", vcpu.credit)?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

impl Credit2 {
    fn new_vcpu(&self, ctx: &PolicyContext, weight: i32) -> Vcpu {
        let time = if self.release == Xen417 { ctx.now() >> 10 } else { 0 };
        Vcpu {
            credit: ALLOTMENT,
            weight,
            residual: 0,
            start: 0,
            load: Load { average: 1 << (self.scale - 1), time },
            budget: None,
            quota: 0,
            runqueue: 0,
            tickled_for: None,
            moving_to: None,
            on_cpu: false,
            delayed_add: false,
            yielding: false,
            pinned: false,
        }
    }

    fn grow(&mut self, v: VcpuId) {
        for links in [&mut self.waiting, &mut self.assigned, &mut self.parked] {
            links.grow(v.index() + 1);
        }
    }
}
