//! BVT as ACRN documents it. Generation `acrn3`: *documented, not recorded*.
//!
//! Sources: ACRN's tutorial on CPU sharing, the options of a VM's scheduling in its scenario configuration, the
//! descriptions of the changes that added the scheduler (2020) and its weights (2023), and the paper that all of them refer
//! to. They state:
//!
//! * the vCPU with the earliest effective virtual time (EVT) runs; EVT is the actual virtual time (AVT), less the warp
//!   value while the vCPU warps; the scheduler virtual time (SVT) is the least AVT of the runnable vCPUs;
//! * a weight from 1 to 128, in proportion to which vCPUs of a pCPU share it;
//! * a minimum charging unit (MCU) of 1 ms, in which running time is charged; warp value, warp limit and unwarp period are
//!   given in it;
//! * a context switch allowance of 5 MCU: the real time by which a vCPU may advance beyond the next one;
//! * a vCPU does not move: vCPU 0 of a VM is on the lowest pCPU of its affinity, vCPU 1 on the second lowest, and so on.
//!
//! Where they leave a rule open, it is read thus:
//!
//! * *Virtual time* is that of a vCPU of weight 128, to which it is real time; at weight w it is 128/w times as fast.
//! * *Charging*: only whole MCU are charged; what is left counts towards the next one, so that no way of dividing up a run
//!   changes a share.
//! * *Waking*: AVT becomes SVT if it is less. The vCPU preempts one whose EVT is greater; behind others it
//!   waits, and the running one may advance beyond it by the allowance.
//! * *Slice*: the time in which the vCPU gets ahead of the second in line, and the allowance. It ends to the nanosecond, not
//!   at a tick. Nobody else in line: no limit. Among equals the one that has waited longer runs.
//! * *Warp*: who has a warp value warps. One warp lasts until the vCPU has run for the warp limit in it, to the nanosecond;
//!   blocking neither ends nor renews it. Then the vCPU does not warp for the unwarp period, of real time. A limit of 0 is
//!   none.
//! * *Default*: weight 128, no warp.
//! * Parameters change when they are set. (ACRN sets them when it is configured.)

use std::fmt;

use vcpulab_host::{
    AffinityRule, Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope,
    Slice, Span, Table, Time, TimerId, VcpuId,
};

use crate::list::{Links, List};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::MS;
use crate::policy::{Generation, Registered};
use crate::role::{Per, Role};
use crate::table::put;
use crate::toolstack::Toolstack;

/// Minimum charging unit.
const MCU: Span = MS;
const ALLOWANCE: Span = Span::from_ms(5);
/// The weight at which virtual time is real time.
const WEIGHT_MAX: i64 = 128;

#[derive(Clone, Debug)]
struct Domain {
    weight: i64,
    warp_value: Span,
    warp_limit: Span,
    unwarp_period: Span,
}

impl Domain {
    /// Virtual time in which the domain runs for a time.
    fn virtual_time(&self, real: Span) -> Span {
        real.ns() * WEIGHT_MAX / self.weight * Span::from_ns(1)
    }

    /// The limit of one warp; `None` if the domain's vCPUs do not warp or no limit is set.
    fn limit(&self) -> Option<Span> {
        (self.warp_value > Span::ZERO && self.warp_limit > Span::ZERO).then_some(self.warp_limit)
    }

    fn real_time(&self, virtual_time: Span) -> Span {
        virtual_time.ns() * self.weight / WEIGHT_MAX * Span::from_ns(1)
    }
}

#[derive(Clone, Debug)]
struct Vcpu {
    /// Actual virtual time.
    avt: Span,
    /// Time run that is shorter than an MCU, and not charged yet.
    uncharged: Span,
    /// The instant up to which the vCPU's running time is counted.
    since: Time,
    warps: bool,
    /// Time run in the present warp.
    warped: Span,
    /// Ends the unwarp period.
    timer: TimerId,
}

#[derive(Clone, Debug, Default)]
struct Pcpu {
    /// Waiting vCPUs in order of effective virtual time.
    queue: List<VcpuId>,
    /// Scheduler virtual time.
    svt: Span,
}

/// The policy.
#[derive(Clone, Debug, Default)]
pub struct Bvt {
    pcpus: Table<PcpuId, Pcpu>,
    vcpus: Table<VcpuId, Vcpu>,
    domains: Table<DomId, Domain>,
    queued: Links<VcpuId>,
}

impl Bvt {
    /// Effective virtual time.
    fn evt(&self, ctx: &PolicyContext, v: VcpuId) -> Span {
        let vcpu = &self.vcpus[v];
        if vcpu.warps { vcpu.avt - self.domains[ctx.dom(v)].warp_value } else { vcpu.avt }
    }

    /// Charges the running vCPU for the time since it was last charged, and ends its warp at the limit.
    fn charge(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let (now, domain) = (ctx.now(), &self.domains[ctx.dom(v)]);
        let vcpu = &mut self.vcpus[v];
        let ran = now - vcpu.since;
        let due = vcpu.uncharged + ran;
        vcpu.since = now;
        vcpu.uncharged = due % MCU;
        vcpu.avt += domain.virtual_time(due - vcpu.uncharged);
        vcpu.warped += ran;
        if vcpu.warps && domain.limit().is_some_and(|limit| vcpu.warped >= limit) {
            vcpu.warps = false;
            ctx.set_timer(vcpu.timer, now + domain.unwarp_period);
        }
    }

    fn enqueue(&mut self, ctx: &PolicyContext, v: VcpuId) {
        let queue = &self.pcpus[ctx.processor(v)].queue;
        let evt = self.evt(ctx, v);
        let before = self.queued.iter(queue).find(|&u| evt < self.evt(ctx, u));
        self.queued.insert_before(&mut self.pcpus[ctx.processor(v)].queue, v, before);
    }

    fn dequeue(&mut self, ctx: &PolicyContext, v: VcpuId) {
        self.queued.remove(&mut self.pcpus[ctx.processor(v)].queue, v);
    }

    /// Sets scheduler virtual time to the least actual virtual time of the running and waiting vCPUs, if there is one.
    fn update_svt(&mut self, p: PcpuId, running: Option<VcpuId>) {
        let waiting = self.queued.iter(&self.pcpus[p].queue);
        if let Some(least) = waiting.chain(running).map(|v| self.vcpus[v].avt).min() {
            self.pcpus[p].svt = least;
        }
    }

    /// The time for which `v` may run before `second`, the next in line.
    fn lead(&self, ctx: &PolicyContext, v: VcpuId, second: VcpuId) -> Span {
        let ahead = self.evt(ctx, second) - self.evt(ctx, v);
        self.domains[ctx.dom(v)].real_time(ahead) + ALLOWANCE
    }

    /// Starts a warp of the vCPU, for as long as it may, if it has a warp value.
    fn start_warp(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let queued = self.queued.listed(v);
        if queued {
            self.dequeue(ctx, v);
        }
        let vcpu = &mut self.vcpus[v];
        (vcpu.warps, vcpu.warped) = (true, Span::ZERO);
        if queued {
            self.enqueue(ctx, v);
        }
        if queued || ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }
}

impl Scheduler for Bvt {
    fn rules(&self) -> HostRules {
        HostRules { affinity: AffinityRule::Ignored, soft_affinity: false, ..HostRules::XEN_4_17 }
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, p: PcpuId) {
        put(&mut self.pcpus, p, Pcpu::default());
    }

    fn add_domain(&mut self, _ctx: &mut PolicyContext, d: DomId) {
        let domain = Domain {
            weight: WEIGHT.default,
            warp_value: Span::ZERO,
            warp_limit: Span::ZERO,
            unwarp_period: Span::ZERO,
        };
        put(&mut self.domains, d, domain);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let own = self.pick(ctx, v);
        ctx.set_processor(v, own);
        let vcpu = Vcpu {
            avt: self.pcpus[own].svt,
            uncharged: Span::ZERO,
            since: ctx.now(),
            warps: true,
            warped: Span::ZERO,
            timer: ctx.new_timer(own, v.0),
        };
        put(&mut self.vcpus, v, vcpu);
        self.queued.grow(v);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        ctx.drop_timer(self.vcpus[v].timer);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) || self.queued.listed(v) {
            return;
        }
        let p = ctx.processor(v);
        let current = Some(ctx.current(p)).filter(|&current| !ctx.is_idle(current));
        if let Some(current) = current {
            self.charge(ctx, current);
        }
        self.update_svt(p, current);
        let vcpu = &mut self.vcpus[v];
        vcpu.avt = vcpu.avt.max(self.pcpus[p].svt);
        self.enqueue(ctx, v);
        match current {
            Some(current) if self.evt(ctx, current) <= self.evt(ctx, v) => {
                let until = ctx.now() + self.lead(ctx, current, v);
                let slice = ctx.slice_timer(p);
                if ctx.timer_expiry(slice) > until {
                    ctx.set_timer(slice, until);
                }
            }
            _ => ctx.raise_reschedule(p),
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        } else if self.queued.listed(v) {
            self.dequeue(ctx, v);
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let (current, idle) = (ctx.current(p), ctx.idle(p));
        if current != idle {
            self.charge(ctx, current);
            if ctx.runnable(current) {
                self.enqueue(ctx, current);
            }
        }
        self.update_svt(p, None);
        let Some(next) = self.pcpus[p].queue.first() else {
            return Decision { next: idle, slice: Slice::Unlimited };
        };
        self.dequeue(ctx, next);
        let second = self.pcpus[p].queue.first();
        let lead = second.map(|second| self.lead(ctx, next, second));
        let limit = self.domains[ctx.dom(next)].limit();
        let vcpu = &mut self.vcpus[next];
        vcpu.since = ctx.now();
        let warp = limit.filter(|_| vcpu.warps).map(|limit| limit - vcpu.warped);
        let slice = lead.into_iter().chain(warp).min().map_or(Slice::Unlimited, Slice::from_signed);
        Decision { next, slice }
    }

    /// The pCPU of vCPU k of a domain: number k of its pCPUs.
    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (affinity, (_, number)) = (ctx.affinity(v), ctx.name(v));
        let place = number as usize % (affinity.len() as usize).max(1);
        affinity.iter().nth(place).unwrap_or(ctx.processor(v))
    }

    /// Handles the end of an unwarp period.
    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.start_warp(ctx, VcpuId(token));
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        if PARAMS.iter().any(|spec| params.int(spec.name).is_some_and(|value| !spec.kind.allows(value))) {
            return Err(Rejected);
        }
        let domain = &self.domains[d];
        let ms = |spec: &ParamSpec, now: Span| params.int(spec.name).map_or(now, |ms| MS.saturating_mul(ms));
        let new = Domain {
            weight: params.int(WEIGHT.name).unwrap_or(domain.weight),
            warp_value: ms(&WARP_VALUE, domain.warp_value),
            warp_limit: ms(&WARP_LIMIT, domain.warp_limit),
            unwarp_period: ms(&UNWARP_PERIOD, domain.unwarp_period),
        };
        for v in ctx.vcpus_of(d) {
            if ctx.is_current(v) {
                self.charge(ctx, v);
            }
        }
        self.domains[d] = new;
        for v in ctx.vcpus_of(d) {
            ctx.stop_timer(self.vcpus[v].timer);
            self.start_warp(ctx, v);
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for (p, pcpu) in ctx.pcpus().iter().map(|p| (p.0, &self.pcpus[p])) {
            write!(out, "pCPU {p}: svt {}; queue:", pcpu.svt)?;
            for v in self.queued.iter(&pcpu.queue) {
                let (domain, number) = ctx.name(v);
                write!(out, " d{domain}v{number}(avt {} evt {})", self.vcpus[v].avt, self.evt(ctx, v))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

// ---- parameters and creation ----

const WEIGHT: ParamSpec = ParamSpec {
    name: "weight",
    scope: Scope::Domain,
    role: Role::Weight(Per::VcpuOfPcpu),
    unit: "",
    kind: ParamKind::int(1, WEIGHT_MAX),
    default: WEIGHT_MAX,
    doc: "Share of a pCPU, relative to the other vCPUs that belong to it.",
};
const WARP_VALUE: ParamSpec =
    in_ms("warp_value", "Virtual time that each vCPU borrows while it warps; 0: it does not.");
const WARP_LIMIT: ParamSpec =
    in_ms("warp_limit", "Longest time that a vCPU may run in one warp; 0: no limit.");
const UNWARP_PERIOD: ParamSpec = in_ms("unwarp_period", "Shortest time that it must then stay unwarped.");

const fn in_ms(name: &'static str, doc: &'static str) -> ParamSpec {
    let kind = ParamKind::int(0, i32::MAX as i64);
    ParamSpec { name, scope: Scope::Domain, role: Role::Plain, unit: "ms", kind, default: 0, doc }
}

const PARAMS: &[ParamSpec] = &[WEIGHT, WARP_VALUE, WARP_LIMIT, UNWARP_PERIOD];

impl Registered for Bvt {
    type Rules = ();
    const NAME: &'static str = super::xen::Bvt::NAME;
    const DOC: &'static str = super::xen::Bvt::DOC;
    const GENERATIONS: &'static [(Generation, ())] = &[(
        Generation {
            name: "acrn3",
            since: &[],
            params: PARAMS,
            work_conserving: false,
            hard_affinity: true,
            toolstack: Toolstack::NONE,
        },
        (),
    )];

    fn new(_rules: (), _global: &Params, _pcpus: u32) -> Self {
        Bvt::default()
    }
}
