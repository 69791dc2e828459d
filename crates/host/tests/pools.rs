//! CPU pools: to the scheduler of each, its pool is the whole host, whichever scheduler was at work before.

use std::fmt;

use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    CpuMask, Decision, DomainConfig, Host, HostConfig, HostRules, PcpuId, PolicyContext, PoolId, Pools,
    Scheduler, Slice, Span, Time, TimerId, VcpuConfig, VcpuId,
};

/// Runs any vCPU of its own that can run, and looks around in each hook.
struct Here {
    pcpus: Vec<PcpuId>,
    timer: Option<TimerId>,
}

impl Here {
    fn look(&self, ctx: &PolicyContext) {
        assert!(ctx.pcpus().iter().eq(self.pcpus.iter().copied()), "its pCPUs are those of its pool");
        assert!(self.pcpus.contains(&ctx.executing()), "it executes in its pool");
        assert!(self.timer.is_none_or(|timer| ctx.is_own_timer(timer)));
    }
}

impl Scheduler for Here {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.look(ctx);
        if self.timer.is_none() {
            let timer = ctx.new_timer(p, 7);
            ctx.set_timer(timer, Time::from_ns(10 + i64::from(p.0)));
            self.timer = Some(timer);
        }
    }

    fn insert(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        self.look(ctx);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.look(ctx);
        ctx.raise_reschedule(ctx.processor(v));
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        self.look(ctx);
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        self.look(ctx);
        let next = ctx.pool_vcpus().find(|&v| ctx.runnable(v) && ctx.processor(v) == p);
        Decision { next: next.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.look(ctx);
        assert_eq!(token, 7);
        let again = ctx.now() + Span::from_ns(20);
        ctx.set_timer(self.timer.expect("it was made"), again);
        ctx.raise_reschedule(ctx.executing());
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        for p in ctx.pcpus().iter() {
            write!(out, "{} ", p.0)?;
        }
        Ok(())
    }
}

#[test]
fn each_scheduler_sees_its_pool_in_hooks_and_in_dumps() {
    let pools = [vec![PcpuId(0), PcpuId(2)], vec![PcpuId(1)], vec![PcpuId(3)]];
    let domain = |pool| DomainConfig {
        pool: PoolId(pool),
        vcpus: vec![VcpuConfig { start: Some(Span::from_ns(5)), affinity: None, ..VcpuConfig::default() }],
        ..DomainConfig::default()
    };
    let config = HostConfig {
        pcpus: 4,
        pools: pools.iter().map(|pcpus| pcpus.iter().copied().collect::<CpuMask>()).collect(),
        domains: vec![domain(0), domain(2), domain(1)],
        ..HostConfig::default()
    };
    let mut programs = Programs::default();
    for v in 4..7 {
        let steps = vec![Step::Run(Span::from_ns(3)), Step::Block(Span::from_ns(8))];
        programs.set(VcpuId(v), Program { steps, repeat: true });
    }
    let schedulers =
        pools.into_iter().map(|pcpus| Box::new(Here { pcpus, timer: None }) as Box<dyn Scheduler>);
    let mut host = Host::new(&config, Pools::new(schedulers.collect()), programs, ()).unwrap();
    for ns in [12, 13, 14, 100] {
        host.run_until(Time::from_ns(ns)).unwrap();
        let mut text = String::new();
        host.dump(&mut text).unwrap();
        assert_eq!(text, "0 2 1 3 ", "each has its own, in the order of the pools");
    }
}
