//! BVT of Xen. Generations `xen2.0` and `xen3.0`.
//!
//! Virtual times are unsigned 32-bit numbers that wrap, as in the hypervisor.

use std::fmt;

use vcpulab_host::{
    AffinityRule, CpuMask, Decision, DomId, HostRules, Params, PauseRule, PcpuId, Placement, PolicyContext,
    Rejected, Scheduler, Scope, Slice, Span, Table, Time, TimerId, VcpuId,
};

use crate::list::{Links, List};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::MS;
use crate::policy::{Generation, Registered};
use crate::role::{Per, Role};
use crate::table::put;
use crate::toolstack::{Set, Toolstack};
use crate::width::Width;

/// Minimum charging unit, ns: time run is charged in whole ones, rounded up.
const MCU: u32 = 100_000;
const NEVER_RUNS: u32 = u32::MAX;
/// Scheduler virtual time from which all virtual times of the pCPU are set back.
const WRAP_FROM: u32 = 0xF000_0000;
const WRAP_BY: u32 = 0xE000_0000;

#[derive(Clone, Debug, Default)]
struct Vcpu {
    /// Actual virtual time.
    avt: u32,
    /// Effective virtual time: the actual less the borrowed.
    evt: u32,
    /// The instant up to which the vCPU's running time is counted.
    since: Time,
    /// Whether the vCPU has been put on another pCPU since it last woke.
    moved: bool,
}

#[derive(Clone, Debug)]
struct Domain {
    mcu_adv: u32,
    warpback: bool,
    /// The last given value, which an adjust without a value repeats.
    warpback_given: bool,
    warpvalue: i32,
    warpl: Span,
    warpu: Span,
    warped: bool,
    warp_timer: TimerId,
    unwarp_timer: TimerId,
}

#[derive(Clone, Debug, Default)]
struct Pcpu {
    /// Runnable vCPUs, including the running one and the idle one.
    queue: List<VcpuId>,
    svt: u32,
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Bvt {
    rules: Rules,
    ctx_allow: i32,
    pcpus: Table<PcpuId, Pcpu>,
    vcpus: Table<VcpuId, Vcpu>,
    domains: Table<DomId, Domain>,
    queued: Links<VcpuId>,
}

impl Bvt {
    /// Actual virtual time of `v` once the time it has run is charged.
    fn charged(&self, ctx: &PolicyContext, v: VcpuId) -> u32 {
        let vcpu = &self.vcpus[v];
        let ran = (ctx.now() - vcpu.since).ns() as u32;
        let units = ran.wrapping_add(MCU - 1) / MCU;
        vcpu.avt.wrapping_add(units.wrapping_mul(self.domains[ctx.dom(v)].mcu_adv))
    }

    fn effective(&self, ctx: &PolicyContext, v: VcpuId, avt: u32) -> u32 {
        let domain = &self.domains[ctx.dom(v)];
        if domain.warped { avt.wrapping_sub(domain.warpvalue as u32) } else { avt }
    }

    fn report(&self, ctx: &mut PolicyContext, v: VcpuId) {
        if !ctx.is_idle(v) {
            let vcpu = &self.vcpus[v];
            ctx.report(v, "avt", i64::from(vcpu.avt));
            ctx.report(v, "evt", i64::from(vcpu.evt));
        }
    }

    /// Sets virtual times of the pCPU back before they wrap.
    fn set_back(&mut self, ctx: &PolicyContext, p: PcpuId) {
        self.pcpus[p].svt -= WRAP_BY;
        for v in ctx.pool_vcpus().filter(|&v| ctx.processor(v) == p) {
            let vcpu = &mut self.vcpus[v];
            vcpu.avt = vcpu.avt.wrapping_sub(WRAP_BY);
            vcpu.evt = vcpu.evt.wrapping_sub(WRAP_BY);
        }
    }

    fn reschedule_domain(&self, ctx: &mut PolicyContext, d: DomId) {
        if let Some(v) = ctx.vcpus_of(d).next() {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }
}

impl Scheduler for Bvt {
    fn rules(&self) -> HostRules {
        self.rules.host
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let idle = ctx.idle(p);
        put(&mut self.vcpus, idle, Vcpu { avt: NEVER_RUNS, evt: NEVER_RUNS, ..Vcpu::default() });
        self.queued.grow(idle);
        let mut pcpu = Pcpu::default();
        self.queued.push_back(&mut pcpu.queue, idle);
        put(&mut self.pcpus, p, pcpu);
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        let p = ctx.first_pcpu();
        let domain = Domain {
            mcu_adv: MCU_ADV.default as u32,
            warpback: false,
            warpback_given: false,
            warpvalue: 0,
            warpl: WARPL.default * MS,
            warpu: WARPU.default * MS,
            warped: false,
            warp_timer: ctx.new_timer(p, 2 * d.0),
            unwarp_timer: ctx.new_timer(p, 2 * d.0 + 1),
        };
        put(&mut self.domains, d, domain);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let svt = self.pcpus[ctx.processor(v)].svt;
        put(&mut self.vcpus, v, Vcpu { avt: svt, evt: svt, ..Vcpu::default() });
        self.queued.grow(v);
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        ctx.drop_timer(self.domains[d].warp_timer);
        ctx.drop_timer(self.domains[d].unwarp_timer);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.queued.listed(v) {
            return;
        }
        let p = ctx.processor(v);
        let pcpu = &mut self.pcpus[p];
        self.queued.push_front(&mut pcpu.queue, v);
        let vcpu = &mut self.vcpus[v];
        if vcpu.avt < pcpu.svt || vcpu.moved {
            vcpu.avt = pcpu.svt;
            vcpu.moved = false;
        }
        let evt = self.effective(ctx, v, self.vcpus[v].avt);
        self.vcpus[v].evt = evt;
        let current = ctx.current(p);
        if ctx.is_idle(current) {
            return ctx.raise_reschedule(p);
        }
        let running = self.effective(ctx, current, self.charged(ctx, current));
        if evt <= running {
            return ctx.raise_reschedule(p);
        }
        let mcu_adv = self.domains[ctx.dom(current)].mcu_adv;
        let ahead = i64::from(evt.wrapping_sub(running) / mcu_adv);
        let until = self.vcpus[current].since + Span::from_ns(ahead + i64::from(self.ctx_allow));
        let slice = ctx.slice_timer(p);
        if ctx.timer_expiry(slice) > until {
            ctx.set_timer(slice, until);
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let p = ctx.processor(v);
        if ctx.is_current(v) {
            ctx.raise_reschedule(p);
        } else if self.queued.listed(v) {
            self.queued.remove(&mut self.pcpus[p].queue, v);
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let now = ctx.now();
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        if current != idle {
            let avt = self.charged(ctx, current);
            let evt = self.effective(ctx, current, avt);
            let vcpu = &mut self.vcpus[current];
            (vcpu.avt, vcpu.evt) = (avt, evt);
            let domain = &self.domains[ctx.dom(current)];
            if domain.warpback && domain.warpl > Span::ZERO {
                ctx.stop_timer(domain.warp_timer);
            }
            let queue = &mut self.pcpus[p].queue;
            self.queued.remove(queue, current);
            if ctx.runnable(current) {
                self.queued.push_back(queue, current);
            }
        }
        let (mut next, mut next_evt) = (idle, NEVER_RUNS);
        let (mut second, mut second_evt) = (None, NEVER_RUNS);
        let mut least_avt = NEVER_RUNS;
        for u in self.queued.iter(&self.pcpus[p].queue) {
            let vcpu = &self.vcpus[u];
            if vcpu.evt < next_evt {
                (second, second_evt) = (Some(next), next_evt);
                (next, next_evt) = (u, vcpu.evt);
            } else if second_evt == NEVER_RUNS || vcpu.evt < second_evt {
                (second, second_evt) = (Some(u), vcpu.evt);
            }
            least_avt = least_avt.min(vcpu.avt);
        }
        if next != idle {
            let domain = &self.domains[ctx.dom(next)];
            if domain.warped && domain.warpl > Span::ZERO {
                ctx.set_timer(domain.warp_timer, now.saturating_add(domain.warpl));
            }
        }
        if least_avt != NEVER_RUNS {
            self.pcpus[p].svt = least_avt;
        }
        if self.pcpus[p].svt >= WRAP_FROM {
            self.set_back(ctx, p);
        }
        let allow = self.ctx_allow as u32;
        let slice = if next == idle {
            allow
        } else if second.is_none_or(|second| second == idle) {
            allow.wrapping_mul(10)
        } else {
            let mcu_adv = self.domains[ctx.dom(next)].mcu_adv;
            let (next, second) = (&self.vcpus[next], &self.vcpus[second.unwrap_or(idle)]);
            (second.evt.wrapping_sub(next.evt) / mcu_adv).wrapping_add(allow)
        };
        if self.rules.counts_from_decision || next != current {
            self.vcpus[next].since = now;
        }
        self.report(ctx, current);
        if next != current {
            self.report(ctx, next);
        }
        ctx.report_pcpu(p, "svt", i64::from(self.pcpus[p].svt));
        Decision { next, slice: Slice::from_signed(Span::from_ns(i64::from(slice as i32))) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }

    fn affinity(&mut self, _ctx: &mut PolicyContext, v: VcpuId, _mask: &CpuMask) {
        self.vcpus[v].moved = true;
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        let d = DomId(token / 2);
        let domain = &mut self.domains[d];
        if token.is_multiple_of(2) {
            domain.warped = false;
            let at_once = domain.warpu.is_zero();
            if at_once {
                domain.warpback = false;
            }
            ctx.set_timer(domain.unwarp_timer, ctx.now().saturating_add(domain.warpu));
            if at_once {
                self.reschedule_domain(ctx, d);
            }
        } else if domain.warpback {
            domain.warped = true;
            self.reschedule_domain(ctx, d);
        }
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        let domain = &mut self.domains[d];
        let mcu_adv = params.int(MCU_ADV.name).map_or(domain.mcu_adv, |adv| adv as u32);
        let warpback = params.int(WARPBACK.name).map_or(domain.warpback_given, |flag| flag != 0);
        let warpvalue = params.int(WARPVALUE.name).map_or(domain.warpvalue, |value| value as i32);
        let warpl = params.int(WARPL.name).map_or(domain.warpl, |ms| MS.saturating_mul(ms));
        let warpu = params.int(WARPU.name).map_or(domain.warpu, |ms| MS.saturating_mul(ms));
        if mcu_adv == 0 || warpl.is_negative() || warpu.is_negative() {
            return Err(Rejected);
        }
        (domain.mcu_adv, domain.warpvalue, domain.warpl, domain.warpu) = (mcu_adv, warpvalue, warpl, warpu);
        (domain.warpback, domain.warpback_given, domain.warped) = (warpback, warpback, warpback);
        ctx.stop_timer(domain.unwarp_timer);
        if !warpback {
            ctx.stop_timer(domain.warp_timer);
        }
        Ok(())
    }

    fn adjust_global(&mut self, _ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        if let Some(allow) = params.int(CTX_ALLOW.name) {
            self.ctx_allow = allow as i32;
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p.0, &self.pcpus[p])) {
            write!(out, "pCPU {p}: svt {}; queue:", pcpu.svt)?;
            for u in self.queued.iter(&pcpu.queue) {
                let ((domain, number), vcpu) = (ctx.name(u), &self.vcpus[u]);
                write!(out, " d{domain}v{number}(avt {} evt {})", vcpu.avt, vcpu.evt)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

// ---- parameters, generations and creation ----

const CTX_ALLOW: ParamSpec = ParamSpec {
    name: "ctx_allow",
    scope: Scope::Global,
    role: Role::Plain,
    unit: "ns",
    kind: ParamKind::Int { min: 0, max: i32::MAX as i64, also: &[] },
    default: 5_000_000,
    doc: "Context switch allowance: how long the running vCPU may get ahead of another with an equal claim.",
};
const MCU_ADV: ParamSpec = ParamSpec {
    name: "mcu_adv",
    scope: Scope::Domain,
    role: Role::InverseWeight(Per::VcpuOfPcpu),
    unit: "virtual time per 100 us",
    kind: ParamKind::Int { min: 1, max: u32::MAX as i64, also: &[] },
    default: 10,
    doc: "How fast virtual time advances while the domain runs: the inverse of its weight.",
};
const WARPBACK: ParamSpec = ParamSpec {
    name: "warpback",
    scope: Scope::Domain,
    role: Role::Plain,
    unit: "",
    kind: ParamKind::Flag,
    default: 0,
    doc: "1: the domain warps.",
};
const WARPVALUE: ParamSpec = ParamSpec {
    name: "warpvalue",
    scope: Scope::Domain,
    role: Role::Plain,
    unit: "virtual time",
    kind: ParamKind::Int { min: i32::MIN as i64, max: i32::MAX as i64, also: &[] },
    default: 0,
    doc: "How much virtual time the domain borrows while it warps.",
};
const WARPL: ParamSpec = ParamSpec {
    name: "warpl",
    scope: Scope::Domain,
    role: Role::Plain,
    unit: "ms",
    kind: ParamKind::Int { min: 0, max: i32::MAX as i64, also: &[] },
    default: 2000,
    doc: "Longest time that the domain may stay warped; 0: no limit.",
};
const WARPU: ParamSpec = ParamSpec {
    name: "warpu",
    scope: Scope::Domain,
    role: Role::Plain,
    unit: "ms",
    kind: ParamKind::Int { min: 0, max: i32::MAX as i64, also: &[] },
    default: 1000,
    doc: "Shortest time that the domain must stay unwarped after that.",
};
const fn xm(domain: &'static str, global: &'static str) -> Toolstack {
    let set = &[
        (CTX_ALLOW.name, Set::Place),
        (MCU_ADV.name, Set::Place),
        (WARPBACK.name, Set::Place),
        (WARPVALUE.name, Set::Place),
        (WARPL.name, Set::Place),
        (WARPU.name, Set::Place),
    ];
    Toolstack { tool: "xm", sched: "bvt", domain, global, set }
}
const PARAMS: &[ParamSpec] = &[CTX_ALLOW, MCU_ADV, WARPBACK, WARPVALUE, WARPL, WARPU];

/// The rules of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    host: HostRules,
    /// Time run counts from the last decision. `false`: it counts from the switch, so that a vCPU that is kept pays twice.
    counts_from_decision: bool,
}

const XEN_2_0: Rules = Rules {
    host: HostRules {
        reschedule_at_start: true,
        placement: Placement::RoundRobin,
        adjust_pauses: false,
        pause: PauseRule::Flag,
        affinity: AffinityRule::Ignored,
        soft_affinity: false,
    },
    counts_from_decision: true,
};
const XEN_3_0: Rules = Rules {
    host: HostRules {
        reschedule_at_start: false,
        adjust_pauses: true,
        affinity: AffinityRule::Directly,
        soft_affinity: false,
        ..XEN_2_0.host
    },
    counts_from_decision: false,
};

const fn generation(name: &'static str, toolstack: Toolstack) -> Generation {
    Generation { name, since: &[], params: PARAMS, work_conserving: false, hard_affinity: true, toolstack }
}

impl Registered for Bvt {
    type Rules = Rules;
    const NAME: &'static str = "bvt";
    const DOC: &'static str =
        "Weighted fair shares by virtual time, with warping for latency-sensitive domains.";
    const GENERATIONS: &'static [(Generation, Rules)] = &[
        (generation("xen2.0", xm("bvt DOM", "bvt_ctxallow")), XEN_2_0),
        (generation("xen3.0", xm("sched-bvt DOM", "sched-bvt-ctxallow")), XEN_3_0),
    ];

    fn width(_rules: Rules, param: &str) -> Width {
        if [WARPL.name, WARPU.name].contains(&param) { Width::Bits64 } else { Width::Bits32 }
    }

    /// A pCPU that idles decides again after the allowance, one with a single vCPU after ten times as long, in 32 bits.
    fn shortest_interval(_rules: Rules, _scope: Scope, given: &Params) -> Option<(&'static str, Span)> {
        let allow = given.int(CTX_ALLOW.name)? as i32;
        let slices = [allow, allow.wrapping_mul(10)].map(|ns| Span::from_ns(ns.into()));
        let least = slices.into_iter().filter(|slice| !slice.is_negative()).min();
        least.map(|slice| (CTX_ALLOW.name, slice))
    }

    fn new(rules: Rules, global: &Params, _pcpus: u32) -> Self {
        Bvt {
            rules,
            ctx_allow: global.int(CTX_ALLOW.name).unwrap_or(CTX_ALLOW.default) as i32,
            pcpus: Table::new(),
            vcpus: Table::new(),
            domains: Table::new(),
            queued: Links::default(),
        }
    }
}
