//! The life of domains and vCPUs, on scripted guests under the simplest of policies.

use std::collections::VecDeque;

use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, Decision, DomId, DomainConfig, Host, HostConfig, HostRules, HostState, LifeEvent, Observer, Op,
    Params, PcpuId, PolicyContext, PoolId, RunTimes, Scheduler, Slice, Span, Time, TimedAction, VcpuConfig,
    VcpuId, WakeCause, World, WorldContext,
};

const MS: Span = Span::from_ms(1);

/// First come, first served on one pCPU. Knows which vCPUs it was given.
#[derive(Default)]
struct Fifo {
    own: Vec<VcpuId>,
    queue: VecDeque<VcpuId>,
    /// Whose vCPU sleeps is left on its pCPU until the next decision, as Xen 2.0's Atropos does.
    leaves: bool,
}

impl Scheduler for Fifo {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        assert!(!ctx.runnable(v) && !self.own.contains(&v));
        self.own.push(v);
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        assert!(!ctx.runnable(v) && !ctx.is_current(v) && !self.queue.contains(&v));
        self.own.retain(|&own| own != v);
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        assert!(self.own.contains(&v));
        if !ctx.is_current(v) && !self.queue.contains(&v) {
            self.queue.push_back(v);
            ctx.raise_reschedule(PcpuId(0));
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        assert!(self.own.contains(&v));
        self.queue.retain(|&queued| queued != v);
        if ctx.is_current(v) && !self.leaves {
            ctx.raise_reschedule(PcpuId(0));
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let current = ctx.current(p);
        let goes_on = !ctx.is_idle(current) && ctx.runnable(current);
        let next = if goes_on { Some(current) } else { self.queue.pop_front() };
        Decision { next: next.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
    }

    fn pick(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) -> PcpuId {
        PcpuId(0)
    }

    fn adjust(&mut self, _: &mut PolicyContext, _: DomId, _: &Params) -> Result<(), vcpulab_host::Rejected> {
        Ok(())
    }
}

/// Scripted vCPUs that keep what happened to them.
#[derive(Default)]
struct Guests {
    programs: Programs,
    events: Vec<(i64, LifeEvent)>,
}

impl World for Guests {
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        self.programs.next_op(ctx, v, left)
    }

    fn life(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        self.events.push(((ctx.now() - Time::ZERO) / MS, event));
        self.programs.life(ctx, event);
    }
}

/// Whether each action was carried out, and who woke when.
#[derive(Default)]
struct Acted(Vec<bool>, Vec<(Time, VcpuId)>);

impl Observer for Acted {
    fn acted(&mut self, _host: &HostState, acted: vcpulab_host::Acted) {
        self.0.push(acted.accepted);
    }

    fn woke(&mut self, host: &HostState, v: VcpuId, _cause: WakeCause, _by: Option<VcpuId>) {
        self.1.push((host.now(), v));
    }
}

const D0: DomId = DomId(0);
const D1: DomId = DomId(1);
const V: [VcpuId; 3] = [VcpuId(1), VcpuId(2), VcpuId(3)];

/// One pCPU; a domain with two vCPUs, and one with one. What has no program blocks for ever.
fn host(programs: &[(VcpuId, &[Step])], actions: &[(i64, Action)]) -> Host<Fifo, Guests, Acted> {
    host_under(Fifo::default(), programs, actions)
}

fn host_under(
    policy: Fifo,
    programs: &[(VcpuId, &[Step])],
    actions: &[(i64, Action)],
) -> Host<Fifo, Guests, Acted> {
    let vcpu = VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() };
    let domain = |number, vcpus| DomainConfig {
        number,
        params: Params::new().with("weight", 1),
        vcpus: vec![vcpu.clone(); vcpus],
        ..DomainConfig::default()
    };
    let action =
        |&(ms, ref action): &(i64, Action)| TimedAction { at: Time::ZERO + ms * MS, action: action.clone() };
    let config = HostConfig {
        pcpus: 1,
        domains: vec![domain(1, 2), domain(2, 1)],
        actions: actions.iter().map(action).collect(),
        ..HostConfig::default()
    };
    let mut guests = Guests::default();
    for &(v, steps) in programs {
        guests.programs.set(v, Program { steps: steps.to_vec(), repeat: true });
    }
    Host::new(&config, policy, guests, Acted::default()).unwrap()
}

/// Running, runnable, blocked and off-line time so far, ms.
fn times(host: &mut Host<Fifo, Guests, Acted>, ms: i64, v: VcpuId) -> [i64; 4] {
    host.run_until(Time::ZERO + ms * MS).unwrap();
    let RunTimes { running_ns, runnable_ns, blocked_ns, offline_ns } = host.context().run_times(v);
    let times = [running_ns, runnable_ns, blocked_ns, offline_ns];
    assert_eq!(times.iter().sum::<Span>(), ms * MS, "runstates sum to the time elapsed");
    times.map(|ns| ns / MS)
}

fn letters(host: &Host<Fifo, Guests, Acted>, d: DomId) -> Option<String> {
    host.context().domain_state(d).map(|state| state.to_string())
}

#[test]
fn a_domain_that_is_created_later_is_not_there_before() {
    let mut host = host(&[(V[2], &[Step::Hog])], &[(5, Action::Create(D1))]);
    assert_eq!(times(&mut host, 5, V[2]), [0, 0, 0, 5]);
    assert_eq!((letters(&host, D1), host.context().toolstack_id(D1)), (None, None));
    assert_eq!(host.policy().own, V[..2]);
    assert_eq!(times(&mut host, 9, V[2]), [4, 0, 0, 5]);
    assert_eq!((letters(&host, D1).unwrap(), host.context().toolstack_id(D1)), ("r-----".into(), Some(2)));
    assert_eq!(host.policy().own, V);
    assert_eq!(host.world().events, [(5, LifeEvent::Booted(D1))]);
}

#[test]
fn what_is_destroyed_is_gone_and_begins_anew() {
    let steps = [Step::Run(2 * MS), Step::Block(4 * MS)];
    let actions = [(3, Action::Destroy(D1)), (20, Action::Create(D1)), (21, Action::Reboot(D1))];
    let mut host = host(&[(V[2], &steps)], &actions);
    // It would have woken at 6 ms.
    assert_eq!(times(&mut host, 20, V[2]), [2, 0, 1, 17]);
    // It runs for 1 ms, is rebooted, and runs for the full 2 ms again.
    assert_eq!(times(&mut host, 25, V[2]), [5, 0, 3, 17]);
    assert_eq!(host.context().cpu_time(V[2]), 2 * MS, "a new life begins at nothing");
    assert_eq!(host.context().toolstack_id(D1), Some(4), "each life has an id of its own");
    let events = [
        (3, LifeEvent::Stopped(D1)),
        (20, LifeEvent::Booted(D1)),
        (21, LifeEvent::Stopped(D1)),
        (21, LifeEvent::Booted(D1)),
    ];
    assert_eq!(host.world().events, events);
}

#[test]
fn what_is_saved_goes_on_where_it_stood() {
    let steps = [Step::Run(4 * MS), Step::Block(2 * MS)];
    let mut running = host(&[(V[2], &steps)], &[(1, Action::Save(D1)), (11, Action::Restore(D1))]);
    assert_eq!(times(&mut running, 11, V[2]), [1, 0, 0, 10]);
    assert_eq!(times(&mut running, 15, V[2]), [4, 0, 1, 10], "3 of its 4 ms were left");
    // Due at 6 ms, while it is saved: it wakes when it is restored.
    let mut asleep = host(&[(V[2], &steps)], &[(5, Action::Save(D1)), (11, Action::Restore(D1))]);
    assert_eq!(times(&mut asleep, 11, V[2]), [4, 0, 1, 6]);
    assert_eq!(times(&mut asleep, 13, V[2]), [6, 0, 1, 6]);
    // Due at 8 ms, which is after it is restored.
    let steps = [Step::Run(4 * MS), Step::Block(4 * MS)];
    let mut early = host(&[(V[2], &steps)], &[(5, Action::Save(D1)), (6, Action::Restore(D1))]);
    assert_eq!(times(&mut early, 9, V[2]), [5, 0, 3, 1]);
}

#[test]
fn an_unplugged_vcpu_stops_and_its_wake_up_is_kept() {
    let steps = [Step::Run(4 * MS), Step::Block(2 * MS)];
    let actions = [
        (1, Action::Offline(V[1])),
        (3, Action::Online(V[1])),
        (7, Action::Offline(V[1])),
        (20, Action::Online(V[1])),
    ];
    let mut host = host(&[(V[1], &steps)], &actions);
    assert_eq!(times(&mut host, 3, V[1]), [1, 0, 0, 2]);
    assert_eq!(host.context().vcpu_state(V[1]).unwrap().to_string(), "--p");
    assert_eq!(letters(&host, D0).unwrap(), "-b----", "the other one is blocked");
    assert_eq!(times(&mut host, 7, V[1]), [4, 0, 1, 2]);
    assert_eq!(times(&mut host, 22, V[1]), [6, 0, 1, 15]);
    assert_eq!(host.policy().own, V, "it never left the scheduler");
    assert_eq!(host.observer().0, [true; 4]);
}

#[test]
fn what_cannot_be_done_changes_nothing_and_is_said() {
    let there = [Action::Restore(D0), Action::Create(D0), Action::Online(V[1]), Action::Offline(V[0])];
    let paused = [Action::Save(D0), Action::Shutdown(D0), Action::Crash(D0), Action::Offline(V[1])];
    let gone = [
        Action::Destroy(D1),
        Action::Shutdown(D1),
        Action::Crash(D1),
        Action::Kill(D1),
        Action::Reboot(D1),
        Action::Save(D1),
        Action::Restore(D1),
        Action::Pause(D1),
        Action::Unpause(D1),
        Action::Adjust(D1, Params::new()),
        Action::MovePool(D1, PoolId(0)),
        Action::Offline(V[2]),
    ];
    let mut actions: Vec<(i64, Action)> = there.into_iter().map(|action| (1, action)).collect();
    actions.push((2, Action::Pause(D0)));
    actions.extend(paused.into_iter().map(|action| (3, action)));
    actions.push((4, Action::Destroy(D1)));
    actions.extend(gone.into_iter().map(|action| (5, action)));
    let mut host = host(&[(V[0], &[Step::Hog])], &actions);
    assert_eq!(times(&mut host, 9, V[0]), [2, 0, 0, 7]);
    assert_eq!(letters(&host, D0).unwrap(), "--p---");
    let done: Vec<usize> = (0..actions.len()).filter(|&i| host.observer().0[i]).collect();
    assert_eq!(done, [4, 9], "the pause, and one destroyed");
    assert_eq!(host.world().events, [(4, LifeEvent::Stopped(D1))]);
}

#[test]
fn a_guest_that_is_over_is_listed_until_the_domain_is_destroyed() {
    let actions = [
        (2, Action::Crash(D0)),
        (3, Action::Shutdown(D1)),
        (4, Action::Kill(D1)),
        (6, Action::Destroy(D1)),
        (8, Action::Create(D1)),
        (10, Action::Kill(D1)),
        (11, Action::Reboot(D1)),
    ];
    let mut host = host(&[(V[0], &[Step::Hog]), (V[1], &[Step::Block(MS)]), (V[2], &[Step::Hog])], &actions);
    assert_eq!(times(&mut host, 3, V[1])[3], 1, "asleep or not, it is off line, and no timer wakes it");
    assert_eq!(letters(&host, D0).unwrap(), "---sc-");
    let mut seen = |ms: i64| {
        host.run_until(Time::ZERO + ms * MS + MS / 2).unwrap();
        letters(&host, D1)
    };
    assert_eq!(seen(3).unwrap(), "---s--");
    assert_eq!([seen(4).unwrap(), seen(5).unwrap()], ["--ps-d", "--ps-d"]);
    assert_eq!(seen(6), None);
    assert_eq!(seen(8).unwrap(), "r-----");
    assert_eq!(seen(10).unwrap(), "--p--d");
    assert_eq!(seen(11).unwrap(), "r-----");
    assert_eq!(times(&mut host, 20, V[0])[0] + times(&mut host, 20, V[2])[0], 3 + 2 + 9, "nobody else ran");
    assert_eq!(host.observer().0, [true; 7]);
    let stopped = host.world().events.iter().filter(|(_, event)| matches!(event, LifeEvent::Stopped(_)));
    assert_eq!(stopped.map(|&(ms, _)| ms).collect::<Vec<_>>(), [2, 3, 10], "once for each guest");
}

#[test]
fn a_guest_that_is_over_and_left_on_its_pcpu_sleeps_no_more() {
    let steps = [Step::Run(3 * MS), Step::Block(2 * MS)];
    let policy = Fifo { leaves: true, ..Fifo::default() };
    let mut host = host_under(policy, &[(V[2], &steps)], &[(2, Action::Crash(D1)), (9, Action::Destroy(D1))]);
    assert_eq!(times(&mut host, 20, V[2]), [3, 0, 0, 17]);
    let woke = host.observer().1.iter().filter(|&&(at, _)| at > Time::ZERO);
    assert_eq!(woke.count(), 0, "its timer does not wake it");
}

#[test]
fn a_saved_domain_can_be_destroyed() {
    let actions =
        [(2, Action::Save(D1)), (4, Action::Destroy(D1)), (6, Action::Create(D1)), (7, Action::Restore(D1))];
    let mut host = host(&[(V[2], &[Step::Hog])], &actions);
    assert_eq!(times(&mut host, 10, V[2]), [6, 0, 0, 4]);
    assert_eq!(host.observer().0, [true, true, true, false]);
}
