//! A policy that breaks the rules of the host ends the run: with the rule, the time and the hook.

use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, Broken, CpuMask, Decision, DomId, DomainConfig, Host, HostConfig, HostRules, PcpuId,
    PolicyContext, PoolId, Pools, Scheduler, Slice, Span, Time, TimedAction, TimerId, VcpuConfig, VcpuId,
};

/// Two pCPUs (idle vCPUs 0 and 1), one domain: vCPU 2 wakes at 5 ns and computes without end, vCPU 3 never wakes.
struct Wrong {
    decide: fn(&mut PolicyContext, PcpuId) -> Decision,
    failed: bool,
}

impl Scheduler for Wrong {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        ctx.set_processor(v, PcpuId(0));
    }

    fn wake(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        ctx.raise_reschedule(PcpuId(0));
        ctx.raise_reschedule(PcpuId(1));
    }

    fn sleep(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let decision = (self.decide)(ctx, p);
        self.failed = decision.next == FAIL.next;
        if self.failed { Decision { next: ctx.idle(p), slice: Slice::Unlimited } } else { decision }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }

    fn failure(&self) -> Option<(&'static str, String)> {
        self.failed.then(|| ("schedule", "it says so itself".into()))
    }
}

/// What stands for a failure of the policy's own.
const FAIL: Decision = Decision { next: VcpuId(u32::MAX), slice: Slice::For(Span::from_ns(0)) };

fn run(decide: fn(&mut PolicyContext, PcpuId) -> Decision) -> Result<(), Broken> {
    let vcpus = vec![
        VcpuConfig { start: Some(Span::from_ns(5)), affinity: None, ..VcpuConfig::default() },
        VcpuConfig::default(),
    ];
    let config = HostConfig {
        pcpus: 2,
        domains: vec![DomainConfig { number: 7, vcpus, ..DomainConfig::default() }],
        ..HostConfig::default()
    };
    let mut world = Programs::default();
    world.set(VcpuId(2), Program { steps: vec![Step::Hog], repeat: true });
    let mut host = Host::new(&config, Wrong { decide, failed: false }, world, ()).unwrap();
    host.run_until(Time::from_ns(100))
}

#[test]
fn a_rule_that_is_broken_is_named_with_time_and_hook() {
    type Decide = fn(&mut PolicyContext, PcpuId) -> Decision;
    let cases: [(Decide, &str); 9] = [
        (
            |_, _| Decision { next: VcpuId(3), slice: Slice::For(Span::from_ns(9)) },
            "pCPU 0 was given vCPU 1 of domain 7, which is not runnable",
        ),
        (
            |_, p| Decision { next: VcpuId(2 * p.0), slice: Slice::For(Span::from_ns(9)) },
            "pCPU 1 was given vCPU 0 of domain 7, which is assigned to another pCPU",
        ),
        (
            |ctx, p| {
                ctx.set_processor(VcpuId(2), p);
                Decision { next: VcpuId(2), slice: Slice::For(Span::from_ns(9)) }
            },
            "pCPU 1 was given vCPU 0 of domain 7, which already runs",
        ),
        (
            |_, p| Decision { next: VcpuId(1 - p.0), slice: Slice::For(Span::from_ns(9)) },
            "pCPU 0 was given vCPU 1 of domain -1, which is the idle vCPU of another pCPU",
        ),
        (
            |_, _| Decision { next: VcpuId(4), slice: Slice::For(Span::from_ns(9)) },
            "pCPU 0 was given vCPU number 4, which does not exist",
        ),
        (
            |ctx, p| Decision { next: ctx.idle(p), slice: Slice::For(Span::from_ns(0)) },
            "time stands still: pCPU 0 is given slices of 0 ns without end",
        ),
        (
            |ctx, p| {
                ctx.raise_reschedule(p);
                Decision { next: ctx.idle(p), slice: Slice::For(Span::from_ns(9)) }
            },
            "decisions keep asking for decisions at one instant",
        ),
        (|_, _| FAIL, "it says so itself"),
        (
            |ctx, p| {
                if p.0 == 1 {
                    FAIL
                } else {
                    Decision { next: ctx.idle(p), slice: Slice::For(Span::from_ns(9)) }
                }
            },
            "it says so itself",
        ),
    ];
    for (decide, what) in cases {
        let broken = run(decide).unwrap_err();
        assert_eq!(broken, Broken { time: Time::from_ns(5), hook: Some("schedule"), what: what.into() });
        assert_eq!(broken.to_string(), format!("at 5 ns, in `schedule`: {what}"));
    }
}

#[test]
fn a_policy_that_keeps_the_rules_is_left_alone() {
    let decide: fn(&mut PolicyContext, PcpuId) -> Decision = |ctx, p| Decision {
        next: if p.0 == 0 { VcpuId(2) } else { ctx.idle(p) },
        slice: Slice::For(Span::from_ns(9)),
    };
    assert_eq!(run(decide), Ok(()));
}

/// What a hook reaches for that is not the policy's own.
#[derive(Clone, Copy)]
enum Reach {
    Nothing,
    Raise(PcpuId),
    Processor(PcpuId),
    Pick(PcpuId),
    Choose(VcpuId),
}

impl Scheduler for Reach {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        match *self {
            Reach::Raise(p) => ctx.raise_reschedule(p),
            Reach::Processor(p) => ctx.set_processor(v, p),
            _ => ctx.raise_reschedule(ctx.processor(v)),
        }
    }

    fn sleep(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let next = if let Reach::Choose(v) = *self { v } else { ctx.idle(p) };
        Decision { next, slice: Slice::For(Span::from_ns(9)) }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        if let Reach::Pick(p) = *self { p } else { ctx.processor(v) }
    }
}

/// Two CPU pools of one pCPU each, and in each a domain of one vCPU: vCPU 2 in the first, vCPU 3 in the second. Both wake
/// at 5 ns, and the affinity of vCPU 2 is set at 7 ns.
fn reach(first: Reach, second: Reach) -> Result<(), Broken> {
    let of = |p| [PcpuId(p)].into_iter().collect::<CpuMask>();
    let domain = |pool: u32| DomainConfig {
        number: 7 + i64::from(pool),
        pool: PoolId(pool),
        vcpus: vec![VcpuConfig { start: Some(Span::from_ns(5)), affinity: None, ..VcpuConfig::default() }],
        ..DomainConfig::default()
    };
    let config = HostConfig {
        pcpus: 2,
        pools: vec![of(0), of(1)],
        domains: vec![domain(0), domain(1)],
        actions: vec![TimedAction { at: Time::from_ns(7), action: Action::Affinity(VcpuId(2), of(0)) }],
        ..HostConfig::default()
    };
    let pools = Pools::new(vec![Box::new(first), Box::new(second)]);
    Host::new(&config, pools, Programs::default(), ()).unwrap().run_until(Time::from_ns(100))
}

#[test]
fn what_is_outside_its_host_or_its_pool_is_not_the_policys() {
    let cases = [
        (Reach::Raise(PcpuId(1)), 5, "wake", "a decision was asked of pCPU 1, which is in another CPU pool"),
        (Reach::Raise(PcpuId(2)), 5, "wake", "a decision was asked of pCPU 2, which does not exist"),
        (
            Reach::Processor(PcpuId(1)),
            5,
            "wake",
            "vCPU 0 of domain 7 was assigned to pCPU 1, which is in another CPU pool",
        ),
        (
            Reach::Processor(PcpuId(999)),
            5,
            "wake",
            "vCPU 0 of domain 7 was assigned to pCPU 999, which does not exist",
        ),
        (
            Reach::Pick(PcpuId(1)),
            7,
            "pick",
            "pCPU 1 was picked for vCPU 0 of domain 7, which it cannot be on",
        ),
        (
            Reach::Pick(PcpuId(u32::MAX)),
            7,
            "pick",
            "pCPU 4294967295 was picked for vCPU 0 of domain 7, which it cannot be on",
        ),
        (
            Reach::Choose(VcpuId(3)),
            5,
            "schedule",
            "pCPU 0 was given vCPU 0 of domain 8, which is in another CPU pool",
        ),
    ];
    for (first, time, hook, what) in cases {
        let broken = reach(first, Reach::Nothing).unwrap_err();
        assert_eq!(broken, Broken { time: Time::from_ns(time), hook: Some(hook), what: what.into() });
    }
    // The second pool reaches for what is the first one's.
    for second in [Reach::Raise(PcpuId(0)), Reach::Processor(PcpuId(0)), Reach::Choose(VcpuId(2))] {
        let broken = reach(Reach::Nothing, second).unwrap_err();
        assert!(broken.what.ends_with("which is in another CPU pool"), "{broken}");
    }
    assert_eq!(reach(Reach::Nothing, Reach::Nothing), Ok(()));
}

/// What `wake` does, under whatever policy.
struct Does(fn(&mut PolicyContext));

impl Scheduler for Does {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn wake(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
        (self.0)(ctx);
    }

    fn sleep(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        Decision { next: ctx.idle(p), slice: Slice::Unlimited }
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        ctx.processor(v)
    }
}

/// One pCPU, one domain with one vCPU that wakes at 5 ns.
fn does(wake: fn(&mut PolicyContext)) -> Result<(), Broken> {
    let vcpus = vec![VcpuConfig { start: Some(Span::from_ns(5)), affinity: None, ..VcpuConfig::default() }];
    let config = HostConfig {
        pcpus: 1,
        domains: vec![DomainConfig { vcpus, ..DomainConfig::default() }],
        ..HostConfig::default()
    };
    Host::new(&config, Does(wake), Programs::default(), ()).unwrap().run_until(Time::from_ns(100))
}

#[test]
fn what_is_not_on_the_host_ends_the_run_when_it_is_named() {
    const PCPU: &str = "pCPU number 1 was named, which does not exist";
    const VCPU: &str = "vCPU number 2 was named, which does not exist";
    const DOMAIN: &str = "domain number 1 was named, which does not exist";
    const TIMER: &str = "timer number 7 was named, which does not exist";
    const IDLE: &str = "vCPU number 0 was changed, which is an idle one";
    type Case = (fn(&mut PolicyContext), &'static str);
    let cases: [Case; 25] = [
        (|ctx| _ = ctx.current(PcpuId(1)), PCPU),
        (|ctx| _ = ctx.idle(PcpuId(1)), PCPU),
        (|ctx| _ = ctx.socket(PcpuId(1)), PCPU),
        (|ctx| _ = ctx.slice_timer(PcpuId(1)), PCPU),
        (|ctx| _ = ctx.pool_of_pcpu(PcpuId(1)), PCPU),
        (
            |ctx| {
                let timer = ctx.new_timer(PcpuId(1), 0);
                ctx.set_timer(timer, Time::from_ns(6));
            },
            "a timer was made on pCPU 1, which does not exist",
        ),
        (|ctx| ctx.set_timer(TimerId(7), Time::from_ns(9)), TIMER),
        (|ctx| ctx.stop_timer(TimerId(7)), TIMER),
        (|ctx| ctx.drop_timer(TimerId(7)), TIMER),
        (|ctx| _ = ctx.timer_expiry(TimerId(7)), TIMER),
        (|ctx| _ = ctx.processor(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.is_current(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.runnable(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.runstate(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.run_times(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.affinity(VcpuId(2)).first(), VCPU),
        (|ctx| _ = ctx.switched_at(VcpuId(2)), VCPU),
        (|ctx| _ = ctx.name(VcpuId(2)), VCPU),
        (|ctx| ctx.set_processor(VcpuId(2), PcpuId(1)), VCPU),
        (|ctx| ctx.park(VcpuId(2)), VCPU),
        (|ctx| ctx.start_migration(VcpuId(0)), IDLE),
        (|ctx| ctx.set_processor(VcpuId(0), PcpuId(1)), IDLE),
        (|ctx| _ = ctx.vcpus_of(DomId(1)).count(), DOMAIN),
        (|ctx| _ = ctx.domain_number(DomId(1)), DOMAIN),
        (|ctx| _ = ctx.pool_of(DomId(1)), DOMAIN),
    ];
    for (wake, what) in cases {
        let broken = does(wake).unwrap_err();
        assert_eq!(broken, Broken { time: Time::from_ns(5), hook: Some("wake"), what: what.into() });
    }
    assert_eq!(does(|ctx| assert!(!ctx.affinity(VcpuId(1)).contains(PcpuId(999)))), Ok(()));
}
