//! vCPUs that poll before they block.

use vcpulab_host::{
    Action, Decision, DomId, DomainConfig, Host, HostConfig, HostRules, Op, PcpuId, PolicyContext, Scheduler,
    Slice, Span, Time, TimedAction, VcpuConfig, VcpuId, WakeCause, World, WorldContext,
};

const POLLER: VcpuId = VcpuId(1);
const OTHER: VcpuId = VcpuId(2);

/// Nobody is preempted.
struct Staying;

impl Scheduler for Staying {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn wake(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        if ctx.is_idle(ctx.current(PcpuId(0))) {
            ctx.raise_reschedule(PcpuId(0));
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        ctx.raise_reschedule(PcpuId(0));
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let current = ctx.current(p);
        let stays = !ctx.is_idle(current) && ctx.runnable(current);
        let next = if stays { Some(current) } else { ctx.pool_vcpus().find(|&v| ctx.runnable(v)) };
        Decision { next: next.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
    }

    fn pick(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) -> PcpuId {
        PcpuId(0)
    }
}

/// One vCPU polls for a microsecond when it is first asked, and blocks from then on; the other runs for 100 ns when it is woken.
/// One of them is woken after 300 ns.
struct Polls {
    woken: Option<VcpuId>,
    /// When the one that polls was asked, and how much of its polling was left.
    asked: Vec<(i64, i64)>,
    /// When the other one was.
    other: Vec<i64>,
}

impl World for Polls {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(1);
        ctx.set_source(0, Time::from_ns(300));
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, _source: usize) {
        self.woken.into_iter().for_each(|v| ctx.kick(v, WakeCause::Event));
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let now = (ctx.now() - Time::ZERO).ns();
        if v == OTHER {
            self.other.push(now);
            return if self.other.len() == 1 { Op::Run(Span::from_ns(100)) } else { Op::Block(None) };
        }
        self.asked.push((now, left.ns()));
        if self.asked.len() == 1 { Op::Poll(Span::from_us(1)) } else { Op::Block(None) }
    }
}

/// What happens until 5 µs, and how long the one that polls was running.
fn run(woken: Option<VcpuId>, actions: Vec<TimedAction>) -> (Polls, i64) {
    let vcpu = |start| VcpuConfig { start, ..VcpuConfig::default() };
    let config = HostConfig {
        pcpus: 1,
        domains: vec![DomainConfig {
            number: 1,
            vcpus: vec![vcpu(Some(Span::ZERO)), vcpu(None)],
            ..DomainConfig::default()
        }],
        actions,
        ..HostConfig::default()
    };
    let world = Polls { woken, asked: Vec::new(), other: Vec::new() };
    let mut host = Host::new(&config, Staying, world, ()).unwrap();
    host.run_until(Time::from_ns(5_000)).unwrap();
    let running = host.context().run_times(POLLER).running_ns.ns();
    (host.into_parts().2, running)
}

#[test]
fn a_poll_that_nothing_disturbs_lasts_and_is_time_running() {
    let (world, running) = run(None, Vec::new());
    assert_eq!((world.asked, running), (vec![(0, 0), (1_000, 0)], 1_000));
}

#[test]
fn a_poll_ends_when_its_vcpu_is_woken() {
    let (world, running) = run(Some(POLLER), Vec::new());
    assert_eq!((world.asked, running), (vec![(0, 0), (300, 700)], 300));
}

#[test]
fn a_poll_ends_at_once_when_somebody_else_is_queued() {
    let (world, running) = run(Some(OTHER), Vec::new());
    assert_eq!((world.asked, running), (vec![(0, 0), (300, 700)], 300));
    assert_eq!(world.other, [300, 400], "though nobody is preempted");
}

#[test]
fn who_was_taken_off_its_pcpu_does_not_go_on_polling() {
    let at = |ns, action| TimedAction { at: Time::from_ns(ns), action };
    let actions = vec![at(200, Action::Pause(DomId(0))), at(2_000, Action::Unpause(DomId(0)))];
    let (world, running) = run(None, actions);
    assert_eq!((world.asked, running), (vec![(0, 0), (2_000, 800)], 200));
}
