//! Atropos: a slice of CPU time in every period by earliest deadline first, a latency hint for wake-ups after a long
//! block, and slack for the vCPUs that take it. Generations `xen2.0`, in which guarantees fade away because the port lost
//! three steps, and `xen2.0-intended`, which has them.

use std::fmt;

use vcpulab_host::{
    AffinityRule, Decision, DomId, HostRules, Params, PauseRule, PcpuId, Placement, PolicyContext, Rejected,
    Scheduler, Scope, Slice, Span, Table, Time, VcpuId,
};

use crate::list::{Links, List};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::policy::{Generation, Registered};
use crate::proposal::{Proposal, Refusal};
use crate::role::{ReservationPart, ReservedOn, Role};
use crate::table::put;
use crate::toolstack::{Set, Toolstack};
use crate::width::Width;

/// Quantum of slack, and the shortest slice there is.
const QUANTUM: Span = Span::from_ms(5);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Run = 0,
    Unblocked = 16,
    Wait = 32,
    Blocked = 48,
}

/// The CPU time that a vCPU is entitled to.
#[derive(Clone, Copy, Debug)]
struct Contract {
    period: Span,
    slice: Span,
    latency: Span,
}

impl Contract {
    const NEW: Contract = Contract {
        period: Span::from_ns(PERIOD.default),
        slice: Span::from_ns(SLICE.default),
        latency: Span::from_ns(LATENCY.default),
    };

    /// The contract with the given values changed.
    fn adjusted(self, params: &Params) -> Result<Contract, Refusal> {
        let value = |param: &ParamSpec, present: Span| params.int(param.name).map_or(present, Span::from_ns);
        let (period, slice) = (value(&PERIOD, self.period), value(&SLICE, self.slice));
        let latency = value(&LATENCY, self.latency);
        if latency <= Span::ZERO || latency > period {
            let allowed = "a latency above 0 and of at most the natural period";
            return Err(Refusal::new([PERIOD.name, LATENCY.name], allowed));
        }
        if slice > period {
            return Err(Refusal::new(
                [PERIOD.name, SLICE.name],
                "a natural slice of at most the natural period",
            ));
        }
        Ok(Contract { period, slice, latency })
    }
}

#[derive(Clone, Debug)]
struct Vcpu {
    contract: Contract,
    xtratime: bool,
    period: Span,
    slice: Span,
    remain: Span,
    deadline: Time,
    class: Class,
    since: Time,
    /// Whether the vCPU's present queue is the wait queue.
    on_wait: bool,
}

#[derive(Clone, Debug, Default)]
struct Pcpu {
    /// vCPUs with time left, by deadline; the idle vCPU is always last. Running vCPUs stay on their queue.
    run: List<VcpuId>,
    wait: List<VcpuId>,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Atropos {
    rules: Rules,
    pcpus: Table<PcpuId, Pcpu>,
    vcpus: Table<VcpuId, Vcpu>,
    queued: Links<VcpuId>,
    /// Counter that picks the next vCPU for the slack; all pCPUs share it.
    slack_turn: usize,
}

impl Atropos {
    fn enqueue(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if !ctx.runnable(v) {
            return;
        }
        let deadline = self.vcpus[v].deadline;
        let on_wait = matches!(self.vcpus[v].class, Class::Wait | Class::Unblocked);
        let pcpu = &mut self.pcpus[ctx.processor(v)];
        let queue = if on_wait { &mut pcpu.wait } else { &mut pcpu.run };
        let later = |&u: &VcpuId| ctx.is_idle(u) || self.vcpus[u].deadline > deadline;
        let before = self.queued.iter(queue).find(later);
        self.queued.insert_before(queue, v, before);
        self.vcpus[v].on_wait = on_wait;
    }

    fn dequeue(&mut self, ctx: &PolicyContext, v: VcpuId) {
        if self.queued.listed(v) {
            let pcpu = &mut self.pcpus[ctx.processor(v)];
            let queue = if self.vcpus[v].on_wait { &mut pcpu.wait } else { &mut pcpu.run };
            self.queued.remove(queue, v);
        }
    }

    fn charge(&mut self, ctx: &PolicyContext, v: VcpuId) {
        let runnable = ctx.runnable(v);
        let vcpu = &mut self.vcpus[v];
        let guaranteed = !self.rules.keeps_guarantees || vcpu.class == Class::Run;
        if runnable && guaranteed || vcpu.class == Class::Unblocked {
            vcpu.remain -= ctx.now() - vcpu.since;
            if vcpu.remain <= Span::ZERO {
                vcpu.class = Class::Wait;
            }
        }
    }

    /// Begins a new period for the head of the wait queue.
    fn renew(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v];
        if vcpu.period != vcpu.contract.period {
            vcpu.slice = 2 * vcpu.slice;
            vcpu.period = 2 * vcpu.period;
            if vcpu.period > vcpu.contract.period {
                (vcpu.period, vcpu.slice) = (vcpu.contract.period, vcpu.contract.slice);
            }
        }
        vcpu.remain = if vcpu.remain > Span::ZERO { vcpu.slice } else { vcpu.remain + vcpu.slice };
        vcpu.deadline += vcpu.period;
        if vcpu.remain <= Span::ZERO {
            vcpu.class = Class::Wait;
        } else if self.rules.keeps_guarantees {
            vcpu.class = Class::Run;
        }
    }

    /// The vCPU that gets unguaranteed time (slack) on `p`, and the length of that time.
    fn choose_slack(&mut self, p: PcpuId) -> Option<(VcpuId, Span)> {
        let wait = &self.pcpus[p].wait;
        let unblocked = |&u: &VcpuId| self.vcpus[u].class == Class::Unblocked;
        if let Some(u) = self.queued.iter(wait).find(unblocked) {
            return Some((u, self.vcpus[u].remain));
        }
        if self.slack_turn >= self.queued.iter(wait).count() {
            self.slack_turn = 0;
        }
        let willing = |&(_, u): &(usize, VcpuId)| self.vcpus[u].xtratime;
        let (turn, u) = self.queued.iter(wait).enumerate().skip(self.slack_turn).find(willing)?;
        self.slack_turn = turn + 1;
        Some((u, QUANTUM))
    }

    fn report(&self, ctx: &mut PolicyContext, v: VcpuId) {
        if !ctx.is_idle(v) {
            let vcpu = &self.vcpus[v];
            ctx.report(v, "deadline", vcpu.deadline.ns());
            ctx.report(v, "remain", vcpu.remain.ns());
            ctx.report(v, "slice", vcpu.slice.ns());
            ctx.report(v, "period", vcpu.period.ns());
            ctx.report(v, "state", vcpu.class as i64);
        }
    }
}

impl Vcpu {
    fn new() -> Self {
        Vcpu {
            contract: Contract::NEW,
            xtratime: true,
            period: Span::from_ns(PERIOD.default),
            slice: Span::from_ns(SLICE.default),
            remain: Span::ZERO,
            deadline: Time::ZERO,
            class: Class::Run,
            since: Time::ZERO,
            on_wait: false,
        }
    }
}

impl Scheduler for Atropos {
    fn rules(&self) -> HostRules {
        HostRules {
            reschedule_at_start: true,
            placement: Placement::RoundRobin,
            adjust_pauses: false,
            pause: PauseRule::Flag,
            affinity: AffinityRule::Ignored,
            soft_affinity: false,
        }
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let idle = ctx.idle(p);
        put(&mut self.vcpus, idle, Vcpu::new());
        self.queued.grow(idle);
        let mut pcpu = Pcpu::default();
        self.queued.push_back(&mut pcpu.run, idle);
        put(&mut self.pcpus, p, pcpu);
    }

    fn insert(&mut self, _ctx: &mut PolicyContext, v: VcpuId) {
        put(&mut self.vcpus, v, Vcpu::new());
        self.queued.grow(v);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.dequeue(ctx, v);
        let now = ctx.now();
        let vcpu = &mut self.vcpus[v];
        if vcpu.deadline < now {
            vcpu.deadline = now + vcpu.contract.latency;
            vcpu.slice = vcpu.contract.slice / (vcpu.contract.period / vcpu.contract.latency);
            vcpu.period = vcpu.contract.latency;
            vcpu.remain = vcpu.slice;
            if self.rules.keeps_guarantees {
                vcpu.class = Class::Run;
            }
        } else {
            vcpu.class = if vcpu.remain > Span::ZERO { Class::Unblocked } else { Class::Wait };
        }
        self.enqueue(ctx, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.vcpus[v].class = Class::Blocked;
        self.dequeue(ctx, v);
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let now = ctx.now();
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        if current != idle {
            self.dequeue(ctx, current);
            self.charge(ctx, current);
            self.enqueue(ctx, current);
        }
        while let Some(head) = self.pcpus[p].wait.first()
            && self.vcpus[head].deadline <= now
        {
            self.dequeue(ctx, head);
            self.renew(head);
            self.enqueue(ctx, head);
        }
        let mut next = self.pcpus[p].run.first().expect("the idle vCPU is always there");
        let mut until = now + self.vcpus[next].remain;
        if let Some(waiting) = self.pcpus[p].wait.first() {
            if next == idle
                && let Some((v, span)) = self.choose_slack(p)
            {
                (next, until) = (v, now + span);
            }
            until = until.min(self.vcpus[waiting].deadline);
        }
        self.vcpus[next].since = now;
        if next != current {
            self.report(ctx, current);
            self.report(ctx, next);
        }
        Decision { next, slice: Slice::For((until - now).max(QUANTUM)) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        for v in ctx.vcpus_of(d) {
            let vcpu = &mut self.vcpus[v];
            vcpu.contract = vcpu.contract.adjusted(params)?;
            vcpu.xtratime = params.int(XTRATIME.name).map_or(vcpu.xtratime, |flag| flag != 0);
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p.0, &self.pcpus[p])) {
            for (name, queue) in [("run", &pcpu.run), ("wait", &pcpu.wait)] {
                write!(out, "pCPU {p}: {name}:")?;
                for u in self.queued.iter(queue) {
                    let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
                    let Vcpu { deadline, remain, class, .. } = vcpu;
                    write!(out, " d{domain}v{number}({class:?} deadline {deadline} remain {remain})")?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

// ---- parameters, generations and creation ----

const fn span(name: &'static str, default: Span, doc: &'static str) -> ParamSpec {
    let kind = ParamKind::Int { min: 1, max: i64::MAX, also: &[] };
    ParamSpec { name, scope: Scope::Domain, role: Role::Plain, unit: "ns", kind, default: default.ns(), doc }
}

const PERIOD: ParamSpec =
    span("nat_period", Span::from_ms(10_000), "Natural period: how often the slice is due.");
const SLICE: ParamSpec =
    span("nat_slice", Span::from_ms(10), "Natural slice: CPU time in each period; not more than the period.");
const LATENCY: ParamSpec =
    span("latency", Span::from_ms(10_000), "How soon to run after a long block; not more than the period.");
const XTRATIME: ParamSpec = ParamSpec {
    name: "xtratime",
    scope: Scope::Domain,
    role: Role::Plain,
    unit: "",
    kind: ParamKind::Flag,
    default: 1,
    doc: "1: takes part in the slack.",
};
const XM: Toolstack = Toolstack {
    tool: "xm",
    sched: "atropos",
    domain: "atropos DOM",
    global: "",
    set: &[
        ("nat_period", Set::Place),
        ("nat_slice", Set::Place),
        ("latency", Set::Place),
        ("xtratime", Set::Place),
    ],
};
/// Parameters of the generation whose guarantees fade away: they promise no CPU time.
const FADING: &[ParamSpec] = &reserving(ReservedOn::Nothing);
const PARAMS: &[ParamSpec] = &reserving(ReservedOn::OwnPcpu);

const fn reserving(on: ReservedOn) -> [ParamSpec; 4] {
    let unit = Span::from_ns(1);
    [
        ParamSpec { role: Role::Reserved(ReservationPart::Period { unit }, on), ..PERIOD },
        ParamSpec { role: Role::Reserved(ReservationPart::Time { unit }, on), ..SLICE },
        ParamSpec { role: Role::Reserved(ReservationPart::Latency, on), ..LATENCY },
        ParamSpec { role: Role::Reserved(ReservationPart::Extra { by_default: true }, on), ..XTRATIME },
    ]
}

/// The rules of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Slack is not charged to the slice, and a new period or a long block makes the guarantee hold again. The release
    /// lost these three steps, so its guarantees fade away.
    keeps_guarantees: bool,
}

const fn generation(name: &'static str, params: &'static [ParamSpec], toolstack: Toolstack) -> Generation {
    Generation { name, since: &[], params, work_conserving: false, hard_affinity: true, toolstack }
}

impl Registered for Atropos {
    type Rules = Rules;
    const NAME: &'static str = "atropos";
    const DOC: &'static str = "Soft real-time: a slice in every period, latency hints, and slack.";
    const GENERATIONS: &'static [(Generation, Rules)] = &[
        (generation("xen2.0", FADING, XM), Rules { keeps_guarantees: false }),
        (generation("xen2.0-intended", PARAMS, Toolstack::NONE), Rules { keeps_guarantees: true }),
    ];

    fn check(_rules: Rules, proposal: &Proposal<'_>) -> Result<(), Refusal> {
        Contract::NEW.adjusted(&proposal.kept_and_given()).map(|_| ())
    }

    fn shortest_interval(_rules: Rules, _scope: Scope, given: &Params) -> Option<(&'static str, Span)> {
        let params = [PERIOD, LATENCY].into_iter();
        let ns = params.filter_map(|param| Some((param.name, Span::from_ns(given.int(param.name)?))));
        ns.min_by_key(|&(_, span)| span)
    }

    fn width(_rules: Rules, param: &str) -> Width {
        if param == XTRATIME.name { Width::Bits32 } else { Width::Bits64 }
    }

    fn new(rules: Rules, _global: &Params, _pcpus: u32) -> Self {
        Atropos { rules, pcpus: Table::new(), vcpus: Table::new(), queued: Links::default(), slack_turn: 0 }
    }
}
