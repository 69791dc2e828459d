//! A free run: a host of one CPU whose threads demand what those of a recording did, under a policy of the registry that
//! decides all by itself.

use std::collections::BTreeMap;

use vcpulab_host::program::Step;
use vcpulab_host::{
    Class, DomainConfig, Host, HostConfig, HostState, Membership, Observer, Op, Params, PcpuId, Scheduler, Span,
    Switch, Table, ThreadConfig, Time, VcpuConfig, VcpuId, WakeCause, World, WorldContext,
};
use vcpulab_sched::Runner;

use super::demand::{Arrivals, Demand, Demands};
use super::error::LinuxError;
use super::folder::Setup;
use super::measured::{Got, Measured};
use super::overheads::Overheads;

/// A run that takes more events than this is stopped.
const EVENTS_MAX: u64 = 100_000_000;
/// The least and the most `nice` can be, and the priorities of the fair class.
const PRIO_NICE_0: i32 = 120;
const PRIO_FAIR: i32 = 100;

/// Each thread of a recording ran once for an instant, alone, so long before it began. (That is what its limits remember.)
const BEFORE: Span = Span::from_secs(1);
const INSTANT: Span = Span::from_us(10);
/// One after the other.
const APART: Span = Span::from_ms(1);

/// The reason why there is no run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// A recording is of several CPUs.
    #[error(transparent)]
    Recording(#[from] LinuxError),
    /// A thread of the demands is not in the setting, or the other way round.
    #[error("threads differ: {0} has no counterpart")]
    Threads(String),
    /// The registry has no such policy.
    #[error("scheduler: found `{0}`, which is not implemented")]
    Policy(&'static str),
    /// The run broke a rule of the host.
    #[error("{0}")]
    Broken(String),
}

/// Runs the demands of one recording in the setting of another (or the same).
///
/// # Errors
/// See [`RunError`].
pub fn free_run(
    [demanding, setting]: [&Setup; 2],
    demands: &Demands,
    overheads: Overheads,
    hz: i64,
) -> Result<Measured, RunError> {
    let mut config = HostConfig { pcpus: 1, groups: setting.groups.clone(), ..HostConfig::default() };
    let mut players = Table::new();
    // The idle vCPU.
    players.push(Player::None);
    let mut domain = DomainConfig::default();
    let mut names = BTreeMap::new();
    for (place, (thread, demand)) in (0..).zip(&demands.threads) {
        let made = &demanding.threads[thread];
        let same = setting.threads.values().find(|other| other.vm == made.vm && other.vcpu == made.vcpu);
        let Some(set) = same else {
            return Err(RunError::Threads(format!("{}/{}", made.vm, made.vcpu)));
        };
        let group = set.group.map_or(Membership::Root, Membership::Of);
        let config = ThreadConfig { group, class: Class::Other, nice: set.nice };
        let player = Threads::new(demand, place);
        let start = Some(player.start - Time::ZERO);
        domain.vcpus.push(VcpuConfig { start, thread: config, ..VcpuConfig::default() });
        names.insert(players.push(Player::Thread(player)), (made.vm.clone(), made.vcpu));
    }
    for arrivals in demands.others.values() {
        let thread = ThreadConfig { group: Membership::Root, ..of_prio(arrivals.prio) };
        domain.vcpus.push(VcpuConfig { thread, ..VcpuConfig::default() });
        players.push(Player::Other { arrivals: arrivals.clone(), next: 0, owed: Span::ZERO });
    }
    config.domains.push(domain);
    let (policy, generation) = setting.scheduler();
    let run = Run { config: &config, players, names, window: demands.window, overheads };
    let params = params(setting, overheads, hz);
    vcpulab_sched::with(policy, generation, &params, 1, run).unwrap_or(Err(RunError::Policy(policy)))
}

fn of_prio(prio: i32) -> ThreadConfig {
    if prio < PRIO_FAIR {
        let priority = u8::try_from((PRIO_FAIR - 1 - prio).clamp(1, 99)).unwrap_or(1);
        return ThreadConfig { class: Class::Fifo(priority), ..ThreadConfig::default() };
    }
    let nice = i8::try_from((prio - PRIO_NICE_0).clamp(-20, 19)).unwrap_or(0);
    ThreadConfig { nice, ..ThreadConfig::default() }
}

/// The policy's parameters.
fn params(setting: &Setup, overheads: Overheads, hz: i64) -> Params {
    let us = |span: Option<Span>| span.map(|span| span.ns() / 1000);
    let tunables = setting.tunables;
    let all = [
        ("hz", Some(hz)),
        ("resched_ns", Some(overheads.resched.ns())),
        ("bandwidth_slice_us", us(tunables.bandwidth_slice)),
        ("latency_us", us(tunables.latency)),
        ("min_granularity_us", us(tunables.min_granularity)),
        ("wakeup_granularity_us", us(tunables.wakeup_granularity)),
        ("base_slice_us", us(tunables.base_slice)),
    ];
    let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.fold(Params::new(), |params, (name, value)| params.with(name, value))
}

struct Run<'a> {
    config: &'a HostConfig,
    players: Table<VcpuId, Player>,
    names: BTreeMap<VcpuId, (String, u32)>,
    window: [Time; 2],
    overheads: Overheads,
}

impl Runner for Run<'_> {
    type Out = Result<Measured, RunError>;

    fn run<S: Scheduler>(self, scheduler: S) -> Self::Out {
        let [begin, end] = self.window;
        let watch = Watch { begin, since: begin, overheads: self.overheads, switches: 0, got: Table::filled(self.players.len(), Got::default()) };
        let broken = |error: vcpulab_host::Broken| RunError::Broken(error.to_string());
        let mut host = Host::new(self.config, scheduler, Play { players: self.players }, watch).map_err(broken)?;
        host.limit_events(EVENTS_MAX);
        host.run_until(end).map_err(broken)?;
        let (host, _, _, mut watch) = host.into_parts();
        watch.charge(host.current(PcpuId(0)), end);
        let mut threads = BTreeMap::new();
        for (v, name) in self.names {
            let mut got = std::mem::take(&mut watch.got[v]);
            got.waits_ns.sort_unstable();
            threads.insert(name, got);
        }
        Ok(Measured { window: end - begin, switches: watch.switches, threads })
    }
}

/// Counts what [`Measured`] has.
struct Watch {
    begin: Time,
    since: Time,
    overheads: Overheads,
    switches: u64,
    got: Table<VcpuId, Got>,
}

impl Watch {
    fn charge(&mut self, v: VcpuId, now: Time) {
        self.got[v].ran_ns += (now - self.since).max(Span::ZERO).ns();
        self.since = now.max(self.begin);
    }
}

impl Observer for Watch {
    fn switched(&mut self, _host: &HostState, switch: Switch) {
        self.charge(switch.from, switch.time);
        if switch.time < self.begin {
            return;
        }
        self.switches += 1;
        if switch.woken.is_some() {
            let waited = switch.waited_ns;
            let then = if waited == Span::ZERO { self.overheads.wake } else { self.overheads.switch };
            self.got[switch.to].waits_ns.push((waited + then).ns());
        }
    }
}

/// What the threads do.
struct Play {
    players: Table<VcpuId, Player>,
}

enum Player {
    None,
    Thread(Threads),
    Other { arrivals: Arrivals, next: usize, owed: Span },
}

/// A thread of a VM.
struct Threads {
    /// Its first wake-up, and that in the recording.
    start: Time,
    first: Time,
    /// What it has done: ran for an instant, and slept till the recording's.
    before: u32,
    steps: Vec<Step>,
    next: usize,
}

impl Threads {
    fn new(demand: &Demand, place: i64) -> Self {
        let Demand { first, ref steps } = *demand;
        let early = first - Time::ZERO > BEFORE && !steps.is_empty();
        let (start, before) = if early { (first - BEFORE + place * APART, 0) } else { (first, 2) };
        Threads { start, first, before, steps: steps.clone(), next: 0 }
    }

    fn next_op(&mut self, now: Time) -> Op {
        if self.before < 2 {
            self.before += 1;
            return if self.before == 1 { Op::Run(INSTANT) } else { Op::Block(Some(self.first)) };
        }
        for _ in 0..=self.steps.len() {
            let Some(&step) = self.steps.get(self.next) else {
                self.next = 0;
                continue;
            };
            self.next += 1;
            match step {
                Step::Run(Span::ZERO) => {}
                Step::Run(span) => return Op::Run(span),
                Step::Hog => return Op::HOG,
                Step::Block(span) => return Op::Block(Some(now.saturating_add(span))),
                Step::Yield => return Op::Yield,
            }
        }
        Op::Block(None)
    }
}

impl World for Play {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(self.players.len());
        for (v, player) in self.players.enumerate() {
            if let Player::Other { arrivals, .. } = player
                && let Some(&(at, _)) = arrivals.works.first()
            {
                ctx.set_source(v.index(), at);
            }
        }
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        let v = VcpuId(source as u32);
        if let Player::Other { arrivals, next, owed } = &mut self.players[v]
            && let Some(&(_, work)) = arrivals.works.get(*next)
        {
            *owed += work;
            *next += 1;
            if let Some(&(at, _)) = arrivals.works.get(*next) {
                ctx.set_source(source, at);
            }
            ctx.kick(v, WakeCause::Timer);
        }
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        match &mut self.players[v] {
            Player::None => Op::Block(None),
            Player::Thread(thread) => thread.next_op(ctx.now()),
            Player::Other { owed, .. } => match left + std::mem::take(owed) {
                Span::ZERO => Op::Block(None),
                work => Op::Run(work),
            },
        }
    }
}
