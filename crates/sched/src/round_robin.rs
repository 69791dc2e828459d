//! Round-robin: one queue for the whole host, and the same slice for every vCPU. The shortest example of a policy.

use std::collections::VecDeque;
use std::fmt;

use vcpulab_host::{
    CpuMask, Decision, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Scope, Slice, Span,
    VcpuId,
};

use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::MS;
use crate::policy::{Generation, Registered};
use crate::role::Role;
use crate::toolstack::Toolstack;

/// The policy.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    slice: Span,
    /// Runnable vCPUs that do not run, in the order in which they will.
    queue: VecDeque<VcpuId>,
    /// pCPUs that idle and have not been asked to decide.
    idlers: CpuMask,
}

impl RoundRobin {
    /// Takes the first vCPU of the queue that may run on `p`: usually the head.
    #[inline]
    fn take_first(&mut self, ctx: &PolicyContext, p: PcpuId) -> Option<VcpuId> {
        let may_run = |&v: &VcpuId| ctx.affinity(v).contains(p);
        if self.queue.front().is_some_and(may_run) {
            return self.queue.pop_front();
        }
        let position = self.queue.iter().position(may_run)?;
        self.queue.remove(position)
    }

    /// Makes an idle pCPU that may run `v`, which has begun to wait, decide.
    fn tickle_an_idler(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if let Some(p) = self.idlers.and(ctx.affinity(v)).first() {
            self.idlers.remove(p);
            ctx.raise_reschedule(p);
        }
    }
}

impl Scheduler for RoundRobin {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, p: PcpuId) {
        self.idlers.insert(p);
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.queue.reserve(ctx.vcpu_count());
        let own = self.pick(ctx, v);
        ctx.set_processor(v, own);
    }

    #[inline]
    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let queued = ctx.unit_size() > 1 && self.queue.contains(&v);
        if ctx.is_current(v) || queued {
            return;
        }
        self.queue.push_back(v);
        self.tickle_an_idler(ctx, v);
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        } else {
            self.queue.retain(|&queued| queued != v);
        }
    }

    #[inline]
    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let current = ctx.current(p);
        if !ctx.is_idle(current) && ctx.runnable(current) {
            self.queue.push_back(current);
        }
        let Some(next) = self.take_first(ctx, p) else {
            self.idlers.insert(p);
            return Decision { next: ctx.idle(p), slice: Slice::Unlimited };
        };
        self.idlers.remove(p);
        ctx.set_processor(next, p);
        if next != current && self.queue.back() == Some(&current) {
            self.tickle_an_idler(ctx, current);
        }
        Decision { next, slice: Slice::from_signed(self.slice) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (own, affinity) = (ctx.processor(v), ctx.affinity(v));
        if affinity.contains(own) { own } else { affinity.next_after(own).expect("affinity is never empty") }
    }

    fn adjust_global(&mut self, _ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        match params.int(SLICE.name) {
            Some(ms @ 1..=1000) => self.slice = ms * MS,
            Some(_) => return Err(Rejected),
            None => {}
        }
        Ok(())
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "queue:")?;
        for &v in &self.queue {
            let (domain, vcpu) = ctx.name(v);
            write!(out, " d{domain}v{vcpu}")?;
        }
        writeln!(out)
    }
}

const SLICE: ParamSpec = ParamSpec {
    name: "slice_ms",
    scope: Scope::Global,
    role: Role::Plain,
    unit: "ms",
    kind: ParamKind::Int { min: 1, max: 1000, also: &[] },
    default: 10,
    doc: "The longest that a vCPU runs before the next one has its turn.",
};

impl Registered for RoundRobin {
    type Rules = ();
    const NAME: &'static str = "round-robin";
    const DOC: &'static str = "One queue for the whole host; each vCPU in turn gets the same slice.";
    const GENERATIONS: &'static [(Generation, ())] = &[(
        Generation {
            name: "v1",
            since: &[],
            params: &[SLICE],
            work_conserving: true,
            hard_affinity: true,
            toolstack: Toolstack::NONE,
        },
        (),
    )];

    fn new(_rules: (), global: &Params, _pcpus: u32) -> Self {
        let slice = global.int(SLICE.name).unwrap_or(SLICE.default) * MS;
        RoundRobin { slice, queue: VecDeque::new(), idlers: CpuMask::EMPTY }
    }
}
