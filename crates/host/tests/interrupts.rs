//! The pCPU on which a device's event happens, as a scheduler sees it.

use vcpulab_host::{
    Decision, DomainConfig, Host, HostConfig, HostRules, Op, PcpuId, PolicyContext, Scheduler, Slice, Span,
    Time, VcpuConfig, VcpuId, WakeCause, World, WorldContext,
};

/// Runs nobody, and keeps on which pCPU vCPUs are woken.
#[derive(Default)]
struct Watches(Vec<u32>);

impl Scheduler for Watches {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn wake(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        self.0.push(ctx.executing().0);
    }

    fn sleep(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        Decision { next: ctx.idle(p), slice: Slice::Unlimited }
    }

    fn pick(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) -> PcpuId {
        PcpuId(0)
    }
}

/// The first device wakes nobody, the second one a vCPU, the third one another by an interrupt on pCPU 2.
struct Devices;

impl World for Devices {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(3);
        (0..3).for_each(|source| ctx.set_source(source, Time::from_ns(100 * (source as i64 + 1))));
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        match source {
            // An interrupt that wakes nobody leaves nothing behind.
            0 => ctx.interrupted_on(PcpuId(1)),
            1 => ctx.kick(VcpuId(4), WakeCause::Interrupt),
            _ => {
                ctx.interrupted_on(PcpuId(2));
                ctx.kick(VcpuId(3), WakeCause::Interrupt);
            }
        }
    }

    fn next_op(&mut self, _ctx: &mut WorldContext<'_>, _v: VcpuId, _left: Span) -> Op {
        Op::Block(None)
    }
}

#[test]
fn whom_an_interrupt_wakes_is_woken_by_the_pcpu_that_took_it() {
    let domain = DomainConfig { number: 1, vcpus: vec![VcpuConfig::default(); 2], ..DomainConfig::default() };
    let config = HostConfig { pcpus: 3, domains: vec![domain], ..HostConfig::default() };
    let mut host = Host::new(&config, Watches::default(), Devices, ()).unwrap();
    host.run_until(Time::from_ns(1_000)).unwrap();
    let own = host.context().processor(VcpuId(4)).0;
    assert_eq!(host.policy().0, [own, 2], "the first by its own pCPU");
}
