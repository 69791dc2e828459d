//! Null: every vCPU has a pCPU of its own and runs there whenever it can; a vCPU that finds no free pCPU waits.

use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, HostRules, Params, PcpuId, PolicyContext, Scheduler, Slice, Table, VcpuId,
};

use crate::list::{Links, List};
use crate::policy::{Generation, Registered};
use crate::table::put;
use crate::toolstack::Toolstack;

/// The policy.
#[derive(Clone, Debug)]
pub struct Null {
    /// The vCPU that each pCPU is assigned to.
    assigned: Table<PcpuId, Option<VcpuId>>,
    free: CpuMask,
    /// vCPUs without a pCPU, in order of arrival.
    waiting: List<VcpuId>,
    links: Links<VcpuId>,
}

/// The first point release of each series that has the generation. All of them decide alike. (Some fixed the removal of
/// a vCPU whose domain could not be created, which does not happen here.)
const SINCE: &[(&str, u32)] =
    &[("xen4.17", 0), ("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0), ("xen4.21", 0), ("xen4.22", 0)];

impl Registered for Null {
    type Rules = ();
    const NAME: &'static str = "null";
    const DOC: &'static str = "One vCPU for each pCPU and nothing to decide.";
    const LEAVES_IN_PLACE: bool = true;
    const GENERATIONS: &'static [(Generation, ())] = &[(
        Generation {
            name: "xen4.17",
            since: SINCE,
            params: &[],
            work_conserving: false,
            hard_affinity: true,
            toolstack: Toolstack { tool: "xl", sched: "null", domain: "", global: "", set: &[] },
        },
        (),
    )];

    fn new(_rules: (), _global: &Params, _pcpus: u32) -> Self {
        Null {
            assigned: Table::new(),
            free: CpuMask::EMPTY,
            waiting: List::default(),
            links: Links::default(),
        }
    }
}

impl Null {
    fn assign(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        self.assigned[p] = Some(v);
        self.free.remove(p);
        ctx.set_processor(v, p);
    }

    /// Takes the pCPU of `v`, if it has one, away from it and gives it to the first vCPU that waits for it.
    fn release(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let own = ctx.processor(v);
        if self.assigned[own] == Some(v) {
            self.assigned[own] = None;
            self.free.insert(own);
            if let Some(next) = self.take_waiting(ctx, own) {
                self.assign(ctx, next, own);
                ctx.raise_reschedule(own);
            }
        }
    }

    /// A pCPU of `mask` for `v`: its own, if no other vCPU has it, or the first free one.
    fn vacant(&self, v: VcpuId, own: PcpuId, mask: &CpuMask) -> Option<PcpuId> {
        if mask.contains(own) && self.assigned[own].is_none_or(|u| u == v) {
            return Some(own);
        }
        mask.and(&self.free).first()
    }

    fn waits(&self, v: VcpuId) -> bool {
        self.links.listed(v)
    }

    /// Takes the first waiting vCPU that prefers `p`, or else the first that may run on it.
    fn take_waiting(&mut self, ctx: &PolicyContext, p: PcpuId) -> Option<VcpuId> {
        let prefers = |&v: &VcpuId| ctx.preferred(v).is_some_and(|soft| soft.contains(p));
        let may = |&v: &VcpuId| ctx.affinity(v).contains(p);
        let waiting = || self.links.iter(&self.waiting);
        let first = waiting().find(prefers).or_else(|| waiting().find(may))?;
        self.links.remove(&mut self.waiting, first);
        Some(first)
    }
}

impl Scheduler for Null {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, p: PcpuId) {
        put(&mut self.assigned, p, None);
        self.free.insert(p);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.links.grow(v);
        let own = self.pick(ctx, v);
        ctx.set_processor(v, own);
        if self.free.contains(own) {
            self.assign(ctx, v, own);
        } else {
            self.links.push_back(&mut self.waiting, v);
        }
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if self.waits(v) {
            self.links.remove(&mut self.waiting, v);
        } else {
            self.release(ctx, v);
        }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if !ctx.is_current(v) && !self.waits(v) {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        if self.assigned[p].is_none()
            && let Some(v) = self.take_waiting(ctx, p)
        {
            self.assign(ctx, v, p);
        }
        let next = self.assigned[p].filter(|&v| ctx.runnable(v)).unwrap_or(ctx.idle(p));
        Decision { next, slice: Slice::Unlimited }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (own, affinity) = (ctx.processor(v), ctx.affinity(v));
        let preferred = ctx.preferred(v).and_then(|soft| self.vacant(v, own, &soft));
        preferred.or_else(|| self.vacant(v, own, affinity)).or(affinity.first()).unwrap_or(own)
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        if p == ctx.processor(v) {
            return;
        }
        self.release(ctx, v);
        if self.assigned[p].is_none() && ctx.affinity(v).contains(p) {
            if self.waits(v) {
                self.links.remove(&mut self.waiting, v);
            }
            self.assign(ctx, v, p);
        } else if !self.waits(v) {
            self.links.push_back(&mut self.waiting, v);
        }
        ctx.set_processor(v, p);
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for p in ctx.pcpus().iter() {
            match self.assigned[p].map(|v| ctx.name(v)) {
                Some((domain, vcpu)) => writeln!(out, "pCPU {}: d{domain}v{vcpu}", p.0)?,
                None => writeln!(out, "pCPU {}: free", p.0)?,
            }
        }
        write!(out, "waiting:")?;
        for (domain, vcpu) in self.links.iter(&self.waiting).map(|v| ctx.name(v)) {
            write!(out, " d{domain}v{vcpu}")?;
        }
        writeln!(out)
    }
}
