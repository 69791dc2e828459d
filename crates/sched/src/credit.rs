//! Credit: shares by weight through credits that running burns and accounting hands out, caps, boosts on waking, and
//! load balancing by stealing. Generations `xen3.0.3`, `xen3.3.0`, `xen4.4.1` and `xen4.17`.
//!
//! One credit is 100 µs of CPU time (1 ms in `xen3.0.3`). Amounts of the accounting pass are unsigned 32-bit numbers
//! that wrap, as in the hypervisor.

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

pub(crate) const BOOST: i8 = 0;
pub(crate) const UNDER: i8 = -1;
pub(crate) const OVER: i8 = -2;
pub(crate) const IDLE: i8 = -64;
/// Below idle: a capped vCPU in debt in `xen3.0.3`. (Later generations park by pausing.)
const PARKED: i8 = -65;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Release {
    Xen303,
    Xen330,
    Xen441,
    Xen417,
}
use Release::{Xen303, Xen330, Xen417, Xen441};

const RELEASES: [Release; 4] = [Xen303, Xen330, Xen441, Xen417];

pub(crate) const WEIGHT: ParamSpec = ParamSpec {
    name: "weight",
    scope: Scope::Domain,
    unit: "",
    kind: ParamKind::Int { min: 1, max: 65535, also: &[0] },
    default: 256,
    doc: "Share of CPU time under contention, relative to the other domains' (0 in an adjust: leave as it is).",
};
pub(crate) const CAP: ParamSpec = ParamSpec {
    name: "cap",
    scope: Scope::Domain,
    unit: "% of one pCPU",
    kind: ParamKind::Int { min: 0, max: 65535, also: &[] },
    default: 0,
    doc: "Most CPU time the domain gets even if more is free; 0: no limit (65535 in an adjust: leave as it is).",
};
pub(crate) const TSLICE: ParamSpec = ParamSpec {
    name: "tslice_ms",
    scope: Scope::Global,
    unit: "ms",
    kind: ParamKind::Int { min: 1, max: 1000, also: &[] },
    default: 30,
    doc: "Timeslice; also the accounting period.",
};
pub(crate) const RATELIMIT: ParamSpec = ParamSpec {
    name: "ratelimit_us",
    scope: Scope::Global,
    unit: "us",
    kind: ParamKind::Int { min: 100, max: 500_000, also: &[0] },
    default: 1000,
    doc: "Least time that a vCPU runs before another one preempts it; 0: none. Not longer than the timeslice.",
};
pub(crate) const MIGRATION_DELAY: ParamSpec = ParamSpec {
    name: "migration_delay_us",
    scope: Scope::Global,
    unit: "us",
    kind: ParamKind::Int { min: 0, max: 100_000, also: &[] },
    default: 0,
    doc: "How long after it ran a vCPU is taken to be cache-hot, and not stolen.",
};

const fn generation(name: &'static str, params: &'static [ParamSpec], toolstack: Toolstack) -> Generation {
    Generation { name, params, work_conserving: true, hard_affinity: true, toolstack }
}

const XM: Toolstack = Toolstack {
    tool: "xm",
    sched: "credit",
    domain: "sched-credit -d DOM",
    global: "",
    set: &[(WEIGHT.name, Set::Option("-w")), (CAP.name, Set::Option("-c"))],
};
const XL_4_4: Toolstack = Toolstack {
    tool: "xl",
    global: "sched-credit -s",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (TSLICE.name, Set::Option("-t")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATION_DELAY.name, Set::Boot("vcpu_migration_delay")),
    ],
    ..XM
};
const XL_4_17: Toolstack = Toolstack {
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (TSLICE.name, Set::Option("-t")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATION_DELAY.name, Set::Option("-m")),
    ],
    ..XL_4_4
};

#[derive(Clone, Debug)]
struct Vcpu {
    start: Time,
    /// When last a decision found it running (`xen4.17`).
    last_sched: Time,
    credit: i32,
    residual: i32,
    priority: i8,
    active: bool,
    parked: bool,
    yielding: bool,
    /// Was its pCPU chosen for creation or migration since it last woke (`xen4.17`)?
    migrated: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    weight: u32,
    cap: u32,
    active: List,
    active_count: u32,
}

#[derive(Clone, Debug)]
struct Pcpu {
    queue: List,
    tick: TimerId,
    /// Ticks so far (3.x).
    ticks: u32,
    /// The accounting pass that its queue was last sorted after.
    epoch: u32,
    last_tickle: PcpuId,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Credit {
    release: Release,
    tslice: Span,
    tick: Span,
    ratelimit: Span,
    migration_delay: Span,
    /// Credits that one pCPU is worth in an accounting period.
    period_credit: u32,
    /// Credits that all pCPUs are worth in an accounting period.
    total_credit: u32,
    /// Sum of the weights of active domains (3.x) or of active vCPUs (4.x).
    total_weight: u32,
    balance: i32,
    epoch: u32,
    /// pCPUs that chose to idle.
    idlers: CpuMask,
    /// Where a vCPU was last stolen (`xen4.17`).
    balance_bias: PcpuId,
    accounting: Option<TimerId>,
    pcpus: Vec<Pcpu>,
    vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    /// Links of the run queues, of the domains' lists of active vCPUs, and of the list of active domains.
    queued: Links,
    active: Links,
    active_domains: Links,
    active_domain_list: List,
}

/// The accounting timer's token; ticks have their pCPU's number.
pub(crate) const ACCOUNTING: u32 = u32::MAX;

/// The generation that Enhanced builds on, as an index.
pub(crate) const XEN_4_4_1: usize = 2;

impl Registered for Credit {
    const POLICY: Policy = Policy {
        name: "credit",
        doc: "Proportional shares by weight, caps, boost on waking, global load balancing.",
        generations: &[
            generation("xen3.0.3", &[WEIGHT, CAP], XM),
            generation("xen3.3.0", &[WEIGHT, CAP], XM),
            generation("xen4.4.1", &[WEIGHT, CAP, TSLICE, RATELIMIT, MIGRATION_DELAY], XL_4_4),
            generation("xen4.17", &[WEIGHT, CAP, TSLICE, RATELIMIT, MIGRATION_DELAY], XL_4_17),
        ],
    };

    fn new(generation: usize, global: &Params, pcpus: u32) -> Self {
        let release = RELEASES[generation];
        let given = |spec: &ParamSpec| global.int(spec.name).unwrap_or(spec.default);
        let tslice = match given(&TSLICE) {
            ms @ 1..=1000 if release >= Xen441 => ms * MS,
            _ => TSLICE.default * MS,
        };
        let delay = match given(&MIGRATION_DELAY) {
            0..=100_000 => given(&MIGRATION_DELAY) * US,
            us if release == Xen441 => us.saturating_mul(US),
            _ => 0,
        };
        let mut credit = Credit {
            release,
            tslice: 0,
            tick: 0,
            ratelimit: if release >= Xen441 { given(&RATELIMIT).saturating_mul(US).min(tslice) } else { 0 },
            migration_delay: if release >= Xen441 { delay } else { 0 },
            period_credit: 0,
            total_credit: 0,
            total_weight: 0,
            balance: 0,
            epoch: 0,
            idlers: CpuMask::EMPTY,
            balance_bias: PcpuId(0),
            accounting: None,
            pcpus: Vec::new(),
            vcpus: Vec::new(),
            domains: Vec::new(),
            queued: Links::default(),
            active: Links::default(),
            active_domains: Links::default(),
            active_domain_list: List::default(),
        };
        credit.set_timeslice(tslice);
        credit.total_credit = credit.period_credit.wrapping_mul(pcpus);
        credit
    }
}

impl Credit {
    fn set_timeslice(&mut self, tslice: Span) {
        let ticks = if tslice < 3 * MS { 1 } else { 3 };
        self.tslice = tslice;
        self.tick = tslice / US / ticks * US;
        let per_ms = if self.release == Xen303 { 1 } else { 10 };
        self.period_credit = (tslice / MS) as u32 * per_ms;
    }

    // ---- active vCPUs and domains ----

    fn activate(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if self.vcpus[v.index()].active {
            return;
        }
        self.vcpus[v.index()].active = true;
        let d = ctx.dom(v);
        let domain = &mut self.domains[d.index()];
        domain.active_count += 1;
        self.active.push_front(&mut domain.active, v.0);
        let first = domain.active_count == 1;
        if self.release >= Xen441 || first {
            self.total_weight = self.total_weight.wrapping_add(domain.weight);
        }
        if first {
            self.active_domains.push_front(&mut self.active_domain_list, d.0);
        }
    }

    fn deactivate(&mut self, d: DomId, v: VcpuId) {
        self.vcpus[v.index()].active = false;
        let domain = &mut self.domains[d.index()];
        domain.active_count -= 1;
        self.active.remove(&mut domain.active, v.0);
        let last = domain.active_count == 0;
        if self.release >= Xen441 || last {
            self.total_weight = self.total_weight.wrapping_sub(domain.weight);
        }
        if last {
            self.active_domains.remove(&mut self.active_domain_list, d.0);
        }
    }

    // ---- run queue ----

    /// Puts `v` behind the last of its equals, as far as the queue is in order: before the first of lower priority.
    #[inline]
    pub(crate) fn enqueue(&mut self, p: PcpuId, v: VcpuId) {
        let priority = self.vcpus[v.index()].priority;
        let mut lower = self.pcpus[p.index()].queue.first();
        while let Some(u) = lower
            && self.vcpus[u as usize].priority >= priority
        {
            lower = self.queued.next(u);
        }
        if self.vcpus[v.index()].yielding
            && let Some(u) = lower
            && self.vcpus[u as usize].priority > IDLE
        {
            lower = self.queued.next(u);
        }
        self.queued.insert_before(&mut self.pcpus[p.index()].queue, v.0, lower);
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        self.queued.remove(&mut self.pcpus[p.index()].queue, v.0);
    }

    /// After an accounting pass: those with credit left before those without, else in the order they were.
    fn sort(&mut self, p: PcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        if pcpu.epoch == self.epoch {
            return;
        }
        pcpu.epoch = self.epoch;
        let mut over = List::default();
        let mut element = pcpu.queue.first();
        while let Some(u) = element {
            element = self.queued.next(u);
            if self.vcpus[u as usize].priority < UNDER {
                self.queued.remove(&mut pcpu.queue, u);
                self.queued.push_back(&mut over, u);
            }
        }
        while let Some(u) = over.first() {
            self.queued.remove(&mut over, u);
            self.queued.push_back(&mut pcpu.queue, u);
        }
    }

    /// Charges `v` for the time since it was last charged (4.x). A charge of no whole credit leaves `start` but keeps
    /// the residual, so that time counts twice; the releases do so.
    #[inline]
    fn burn(&mut self, v: VcpuId, now: Time) {
        let vcpu = &mut self.vcpus[v.index()];
        let elapsed = now - vcpu.start;
        if elapsed <= 0 {
            return;
        }
        let amount = elapsed * 10 + i64::from(vcpu.residual);
        let credits = amount / 1_000_000;
        vcpu.residual = (amount % 1_000_000) as i32;
        vcpu.credit = vcpu.credit.wrapping_sub(credits as i32);
        vcpu.start += credits * 100_000;
    }

    // ---- choosing pCPUs ----

    /// The pCPU that suits `v` best now.
    fn choose(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let (home, affinity) = (ctx.processor(v), ctx.affinity(v));
        let after = |p: PcpuId, set: &CpuMask| set.next_after(p);
        if self.release == Xen303 {
            return affinity.first().unwrap_or(home);
        }
        let own = affinity.contains(home);
        let choice = if own { home } else { after(home, affinity).unwrap_or(home) };
        if self.release == Xen330 {
            return choice;
        }
        let mut idle = self.idlers;
        if own && self.pcpus[home.index()].queue.first().is_none_or(|u| ctx.is_idle(VcpuId(u))) {
            // Nobody waits here: as good as idle, even if someone else runs.
            idle.insert(home);
        }
        let idle = idle.and(affinity);
        if idle.contains(choice) { choice } else { after(choice, &idle).unwrap_or(choice) }
    }

    /// Asks a pCPU or several to decide because `v` has been queued on `p`.
    #[inline]
    fn tickle(&mut self, ctx: &mut PolicyContext, p: PcpuId, v: VcpuId) {
        let current = ctx.current(p);
        let current_priority = self.vcpus[current.index()].priority;
        let above = self.vcpus[v.index()].priority > current_priority;
        if self.release <= Xen330 {
            let mut mask = if above { CpuMask::only(p) } else { CpuMask::EMPTY };
            if current_priority > IDLE && !self.idlers.is_empty() {
                mask = mask.or(&self.idlers).and(ctx.affinity(v));
            }
            for q in mask.iter() {
                ctx.raise_reschedule(q);
            }
            return;
        }
        // A pinned vCPU on an idle pCPU has a rule of its own in xen4.17; it does what the first one here does.
        let target = if current_priority == IDLE || self.idlers.is_empty() && above {
            p
        } else if self.idlers.is_empty() {
            return;
        } else {
            let suitable = self.idlers.and(ctx.affinity(v));
            let last = &mut self.pcpus[ctx.executing().index()].last_tickle;
            if let Some(idler) = suitable.next_after(*last) {
                *last = idler;
                idler
            } else if above {
                if self.release == Xen441 {
                    ctx.start_migration(current);
                }
                p
            } else {
                return;
            }
        };
        ctx.raise_reschedule(target);
        if self.release == Xen417 {
            self.idlers.remove(target);
        }
    }

    /// Looks for a vCPU of higher priority than `than` that waits elsewhere and may run on `p`; takes it off its queue.
    pub(crate) fn steal(&mut self, ctx: &mut PolicyContext, p: PcpuId, than: i8) -> Option<VcpuId> {
        let mut peers = if self.release == Xen303 { *ctx.pcpus() } else { ctx.pcpus().without(&self.idlers) };
        peers.remove(p);
        let mut after = match self.release {
            Xen303 | Xen330 => p,
            Xen441 => last(ctx.pcpus()),
            Xen417 => self.balance_bias,
        };
        while let Some(peer) = peers.next_after(after) {
            peers.remove(peer);
            after = peer;
            if ctx.is_idle(ctx.current(peer)) {
                continue;
            }
            let mut element = self.pcpus[peer.index()].queue.first();
            while let Some(u) = element {
                let (v, priority) = (VcpuId(u), self.vcpus[u as usize].priority);
                if priority <= than || self.release == Xen303 && priority <= IDLE {
                    break;
                }
                if ctx.affinity(v).contains(p) && !self.cache_hot(ctx, v) {
                    self.dequeue(peer, v);
                    ctx.set_processor(v, p);
                    if self.release == Xen417 {
                        self.balance_bias = peer;
                    }
                    return Some(v);
                }
                element = self.queued.next(u);
            }
        }
        None
    }

    fn cache_hot(&self, ctx: &PolicyContext, v: VcpuId) -> bool {
        let ran = if self.release == Xen417 { self.vcpus[v.index()].last_sched } else { ctx.switched_at(v) };
        self.migration_delay != 0 && ctx.now() - ran < self.migration_delay
    }

    // ---- what a policy built on this one needs ----

    pub(crate) fn credit(&self, v: VcpuId) -> i32 {
        self.vcpus[v.index()].credit
    }

    pub(crate) fn priority(&self, v: VcpuId) -> i8 {
        self.vcpus[v.index()].priority
    }

    /// Who waits on `p`, from the head of its queue; not the idle vCPU.
    pub(crate) fn waiting(&self, p: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        let waiting = self.queued.iter(&self.pcpus[p.index()].queue).map(VcpuId);
        waiting.filter(|v| self.vcpus[v.index()].priority != IDLE)
    }

    pub(crate) fn enqueue_first(&mut self, p: PcpuId, v: VcpuId) {
        self.queued.push_front(&mut self.pcpus[p.index()].queue, v.0);
    }

    pub(crate) fn enqueue_last(&mut self, p: PcpuId, v: VcpuId) {
        self.queued.push_back(&mut self.pcpus[p.index()].queue, v.0);
    }

    pub(crate) fn forget_yield(&mut self, v: VcpuId) {
        self.vcpus[v.index()].yielding = false;
    }

    // ---- decision ----

    /// Charges the outgoing vCPU (4.x); the decision, if the rate limit keeps it.
    #[inline]
    pub(crate) fn charge_or_keep(&mut self, ctx: &PolicyContext, current: VcpuId) -> Option<Decision> {
        if self.release < Xen441 || ctx.is_idle(current) {
            return None;
        }
        let now = ctx.now();
        self.burn(current, now);
        let vcpu = &mut self.vcpus[current.index()];
        vcpu.last_sched = now;
        let ran = now - ctx.switched_at(current);
        let yields = self.release == Xen417 && vcpu.yielding;
        if ctx.runnable(current) && ran < self.ratelimit && !yields {
            let rest = if self.release == Xen441 { self.ratelimit } else { self.ratelimit - ran };
            // Less than 100 ns is 100 ns run: the release mistakes the unit of its least slice of 100 µs.
            let slice = if self.release == Xen417 && ran < 100 { 100 } else { rest };
            return Some(Decision { next: current, slice });
        }
        vcpu.start -= now;
        None
    }

    /// `next`, which is on no queue any more, is what `p` runs.
    #[inline]
    pub(crate) fn dispatch(&mut self, ctx: &mut PolicyContext, p: PcpuId, next: VcpuId) -> Decision {
        let (now, current, idle) = (ctx.now(), ctx.current(p), ctx.idle(p));
        let measured = self.release >= Xen441;
        if next == idle {
            self.idlers.insert(p);
        } else {
            self.idlers.remove(p);
            if measured {
                self.vcpus[next.index()].start += now;
            }
        }
        if self.release == Xen417 && (current == idle) != (next == idle) {
            let tick = self.pcpus[p.index()].tick;
            if next == idle {
                ctx.stop_timer(tick);
            } else {
                ctx.set_timer(tick, now + self.tick - now % self.tick);
            }
        }
        let slice = if measured && next == idle { -1 } else { self.tslice };
        Decision { next, slice }
    }

    // ---- tick and accounting ----

    fn tick(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let v = ctx.current(p);
        self.pcpus[p.index()].ticks += 1;
        if !ctx.is_idle(v) {
            let vcpu = &mut self.vcpus[v.index()];
            if vcpu.priority == BOOST {
                vcpu.priority = UNDER;
            }
            match self.release {
                Xen303 => vcpu.credit = vcpu.credit.wrapping_sub(10),
                Xen330 => vcpu.credit = vcpu.credit.wrapping_sub(100),
                Xen441 | Xen417 => self.burn(v, ctx.now()),
            }
            if !self.vcpus[v.index()].active {
                self.activate(ctx, v);
            } else if self.release >= Xen441 && self.choose(ctx, v) != p {
                ctx.start_migration(v);
                ctx.raise_reschedule(p);
            }
        }
        if self.release <= Xen330 && p == ctx.first_pcpu() && self.pcpus[p.index()].ticks.is_multiple_of(3) {
            self.account(ctx);
        }
        self.sort(p);
        let pcpu = &self.pcpus[p.index()];
        ctx.set_timer(pcpu.tick, ctx.now() + self.tick);
    }

    /// Hands out the credits of a period by weight. (Specification, section 14, whose names these are.)
    fn account(&mut self, ctx: &mut PolicyContext) {
        let by_vcpu = self.release >= Xen441;
        let mut total = self.total_credit;
        if self.balance < 0 {
            total = total.wrapping_add(self.balance.wrapping_neg() as u32);
        }
        let all_weight = self.total_weight;
        if all_weight == 0 {
            self.balance = 0;
            return;
        }
        let (old_balance, mut left, mut sum, mut extra) = (self.balance, all_weight, 0i32, false);
        let mut next_domain = self.active_domain_list.first();
        while let Some(number) = next_domain {
            next_domain = self.active_domains.next(number);
            let domain = &self.domains[number as usize];
            let (count, cap) = (domain.active_count, domain.cap);
            let weight = if by_vcpu { domain.weight.wrapping_mul(count) } else { domain.weight };
            left = left.wrapping_sub(weight);
            let mut peak = count.wrapping_mul(self.period_credit);
            if old_balance < 0 {
                let owed = old_balance.wrapping_neg() as u32;
                peak = peak.wrapping_add(up(owed.wrapping_mul(weight), all_weight));
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
                    self.active_domains.remove(&mut self.active_domain_list, number);
                    self.active_domains.push_front(&mut self.active_domain_list, number);
                }
                fair = peak;
            }
            let share = up(fair, count) as i32;
            let mut next_vcpu = self.domains[number as usize].active.first();
            while let Some(u) = next_vcpu {
                next_vcpu = self.active.next(u);
                sum = sum.wrapping_add(self.credit_vcpu(ctx, DomId(number), VcpuId(u), share, cap, cap_each));
            }
        }
        self.balance = sum;
        self.epoch = self.epoch.wrapping_add(1);
        self.report(ctx);
    }

    /// Gives `v` its share of the period; returns what counts towards the balance.
    fn credit_vcpu(
        &mut self,
        ctx: &mut PolicyContext,
        d: DomId,
        v: VcpuId,
        share: i32,
        cap: u32,
        cap_each: u32,
    ) -> i32 {
        let bound = self.period_credit as i32;
        let release = self.release;
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.credit = vcpu.credit.wrapping_add(share);
        let credit = vcpu.credit;
        if credit < 0 {
            vcpu.priority = if release == Xen303 && cap != 0 { PARKED } else { OVER };
            let credit = credit.max(-bound);
            if release != Xen303 && cap != 0 && i64::from(vcpu.credit) < -i64::from(cap_each) && !vcpu.parked
            {
                vcpu.parked = true;
                vcpu.credit = credit;
                ctx.park(v);
                self.sleep(ctx, v);
            } else {
                vcpu.credit = credit;
            }
            return credit;
        }
        vcpu.priority = UNDER;
        if vcpu.parked {
            // Who is still called parked when it wakes is not boosted.
            vcpu.parked = release != Xen441;
            ctx.unpark(v);
            if ctx.runnable(v) {
                self.wake(ctx, v);
            }
            self.vcpus[v.index()].parked = false;
        }
        if credit > bound {
            self.deactivate(d, v);
            self.vcpus[v.index()].credit = if release <= Xen330 { 0 } else { credit / 2 };
            if release == Xen303 {
                return credit;
            }
        }
        self.vcpus[v.index()].credit
    }

    fn report(&self, ctx: &mut PolicyContext) {
        if !ctx.wants_state() {
            return;
        }
        for (index, vcpu) in self.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.active) {
            let v = VcpuId(index as u32);
            ctx.report(v, "credit", i64::from(vcpu.credit));
            ctx.report(v, "priority", i64::from(vcpu.priority));
        }
    }
}

fn last(pcpus: &CpuMask) -> PcpuId {
    pcpus.iter().last().expect("a pool has a pCPU")
}

/// a / b rounded up, unless the sum wraps.
fn up(a: u32, b: u32) -> u32 {
    a.wrapping_add(b.wrapping_sub(1)) / b
}

impl Scheduler for Credit {
    fn rules(&self) -> HostRules {
        let base = HostRules::XEN_4_17;
        match self.release {
            Xen417 => base,
            Xen441 => HostRules { placement: Placement::LeastPopulated, ..base },
            Xen303 | Xen330 => HostRules {
                placement: Placement::LeastPopulated,
                adjust_pauses: true,
                affinity: AffinityRule::IfExcluded,
                ..base
            },
        }
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        if self.release >= Xen441 && self.accounting.is_none() {
            let timer = ctx.new_timer(p, ACCOUNTING);
            ctx.set_timer(timer, self.tslice);
            self.accounting = Some(timer);
        }
        let tick = ctx.new_timer(p, p.0);
        ctx.set_timer(tick, self.tick);
        // The first release runs its tick handler at bring-up, which only counts.
        let ticks = u32::from(self.release == Xen303);
        let pcpu = Pcpu { queue: List::default(), tick, ticks, epoch: 0, last_tickle: ctx.first_pcpu() };
        put(&mut self.pcpus, p.index(), pcpu);
        self.balance_bias = ctx.first_pcpu();
        self.idlers.insert(p);
        self.new_vcpu(ctx.idle(p), IDLE);
    }

    fn add_domain(&mut self, _ctx: &mut PolicyContext, d: DomId) {
        let domain = Domain {
            weight: WEIGHT.default as u32,
            cap: CAP.default as u32,
            active: List::default(),
            active_count: 0,
        };
        put(&mut self.domains, d.index(), domain);
        self.active_domains.grow(d.index() + 1);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.new_vcpu(v, UNDER);
        match self.release {
            Xen303 => self.activate(ctx, v),
            Xen417 => {
                let home = self.pick(ctx, v);
                ctx.set_processor(v, home);
            }
            Xen330 | Xen441 => {}
        }
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.vcpus[v.index()].active {
            self.deactivate(ctx.dom(v), v);
        }
        if self.vcpus[v.index()].parked {
            ctx.unpark(v);
        }
    }

    #[inline]
    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.queued.listed(v.0) {
            return;
        }
        let vcpu = &mut self.vcpus[v.index()];
        if self.release != Xen303 && vcpu.priority == UNDER && !vcpu.parked && !vcpu.migrated {
            vcpu.priority = BOOST;
        }
        vcpu.migrated = false;
        let p = ctx.processor(v);
        self.enqueue(p, v);
        self.tickle(ctx, p, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        if ctx.is_current(v) {
            ctx.raise_reschedule(p);
        } else if self.queued.listed(v.0) {
            self.dequeue(p, v);
        }
    }

    fn yielded(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        self.vcpus[v.index()].yielding = self.release >= Xen441;
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
        self.forget_yield(current);
        let head = VcpuId(self.pcpus[p.index()].queue.first().expect("the idle vCPU is always there"));
        let head_priority = self.vcpus[head.index()].priority;
        let stolen = if head_priority > OVER { None } else { self.steal(ctx, p, head_priority) };
        let next = stolen.unwrap_or_else(|| {
            self.dequeue(p, head);
            head
        });
        self.dispatch(ctx, p, next)
    }

    /// For creation and migration: in `xen4.17` the vCPU is not boosted when it wakes next.
    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        self.vcpus[v.index()].migrated = self.release == Xen417;
        self.choose(ctx, v)
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
        let domain = &mut self.domains[d.index()];
        match params.int(WEIGHT.name) {
            None | Some(0) => {}
            Some(weight) => {
                let weight = weight as u32;
                let count = match self.release {
                    Xen441 | Xen417 => domain.active_count,
                    Xen303 | Xen330 => domain.active_count.min(1),
                };
                let change = weight.wrapping_sub(domain.weight).wrapping_mul(count);
                self.total_weight = self.total_weight.wrapping_add(change);
                domain.weight = weight;
            }
        }
        match params.int(CAP.name) {
            None | Some(65535) => {}
            Some(cap) => domain.cap = cap as u32,
        }
        Ok(())
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        if self.release <= Xen330 {
            return Err(Rejected);
        }
        let delay = params.int(MIGRATION_DELAY.name).unwrap_or(self.migration_delay / US);
        if self.release == Xen441 {
            self.migration_delay = delay.saturating_mul(US);
        }
        let tslice = params.int(TSLICE.name).unwrap_or(self.tslice / MS);
        let ratelimit = params.int(RATELIMIT.name).unwrap_or(self.ratelimit / US);
        let good = TSLICE.allows(&tslice.into())
            && RATELIMIT.allows(&ratelimit.into())
            && ratelimit * US <= tslice * MS
            && (self.release == Xen441 || MIGRATION_DELAY.allows(&delay.into()));
        if !good {
            return Err(Rejected);
        }
        self.ratelimit = ratelimit * US;
        self.migration_delay = delay.saturating_mul(US);
        self.set_timeslice(tslice * MS);
        if self.release == Xen417 {
            self.total_credit = self.period_credit.wrapping_mul(ctx.pcpus().len());
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let show = |out: &mut dyn fmt::Write, v: VcpuId| {
            let (domain, number) = ctx.name(v);
            let vcpu = &self.vcpus[v.index()];
            let priority = match vcpu.priority {
                BOOST => "boost",
                UNDER => "under",
                OVER => "over",
                IDLE => return write!(out, " idle"),
                _ => "parked",
            };
            let active = if vcpu.active { "" } else { " inactive" };
            write!(out, " d{domain}v{number}({priority} {}{active})", vcpu.credit)
        };
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p, &self.pcpus[p.index()])) {
            write!(out, "pCPU {}: runs", p.0)?;
            show(out, ctx.current(p))?;
            write!(out, "; waiting:")?;
            for u in self.queued.iter(&pcpu.queue) {
                show(out, VcpuId(u))?;
            }
            writeln!(out)?;
        }
        writeln!(out, "balance {}, weight {}, credit {}", self.balance, self.total_weight, self.total_credit)
    }
}

impl Credit {
    fn new_vcpu(&mut self, v: VcpuId, priority: i8) {
        let vcpu = Vcpu {
            start: 0,
            last_sched: 0,
            credit: 0,
            residual: 0,
            priority,
            active: false,
            parked: false,
            yielding: false,
            migrated: false,
        };
        put(&mut self.vcpus, v.index(), vcpu);
        self.queued.grow(v.index() + 1);
        self.active.grow(v.index() + 1);
    }
}
