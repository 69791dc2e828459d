//! A free run: a host of one CPU whose threads demand what those of a recording did, under a policy of the registry that
//! decides all by itself.

use std::collections::BTreeMap;

use vcpulab_host::program::Step;
use vcpulab_host::{
    Broken, Class, DomainConfig, Host, HostConfig, HostState, Membership, Observer, Op, Params, PcpuId,
    Scheduler, Span, Switch, Table, ThreadConfig, Time, VcpuConfig, VcpuId, WakeCause, World, WorldContext,
};
use vcpulab_sched::Runner;

use super::demand::Demands;
use super::error::LinuxError;
use super::folder::Setup;
use super::measured::{Got, Measured};
use super::overheads::Overheads;

/// A run that takes more events than this is stopped.
const EVENTS_MAX: u64 = 100_000_000;
/// The least and the most `nice` can be, and the priorities of the fair class.
const PRIO_NICE_0: i32 = 120;
const PRIO_FAIR: i32 = 100;

/// What a host remembers of the time before a recording: the host itself ran, for long; so long before the first wake-up each
/// thread ran for an instant, alone, one after the other, as its limits remember; then the host ran again, for longer than any
/// of them was ahead.
const BEFORE: Span = Span::from_secs(1);
const APART: Span = Span::from_ms(1);
const INSTANT: Span = Span::from_us(10);
const HOST_RAN: Span = Span::from_ms(50);

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
    /// It was not to go on.
    #[error("stopped")]
    Stopped,
    /// The run broke a rule of the host.
    #[error("{0}")]
    Broken(String),
}

/// A free run that is to be made.
pub struct Free<'a> {
    /// The recordings' setups that the demands and the setting are of; they may be one.
    pub setups: [&'a Setup; 2],
    /// The demands.
    pub demands: &'a Demands,
    /// The kernel's own work.
    pub overheads: &'a Overheads,
    /// Ticks in a second.
    pub hz: i64,
}

impl Free<'_> {
    /// Runs one of so many variants, which differ by a microsecond here and there.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, variant: u64, variants: u64) -> Result<Measured, RunError> {
        let Free { setups: [demanding, setting], demands, overheads, hz } = *self;
        let mut config = HostConfig { pcpus: 1, groups: setting.groups.clone(), ..HostConfig::default() };
        let mut domain = DomainConfig::default();
        // The idle vCPU, and the host itself.
        let mut players: Table<VcpuId, Player> = Table::new();
        players.push(Player::default());
        let host = players.push(Player::default());
        domain.vcpus.push(VcpuConfig::default());
        domain.vcpus[0].thread.group = Membership::Root;
        let mut names = BTreeMap::new();
        let mut vcpu_of = BTreeMap::new();
        for (place, (&thread, demand)) in (0u64..).zip(&demands.threads) {
            let made = &demanding.threads[&thread];
            let same = setting.threads.values().find(|other| other.vm == made.vm && other.vcpu == made.vcpu);
            let Some(set) = same else {
                return Err(RunError::Threads(format!("{}/{}", made.vm, made.vcpu)));
            };
            let group = set.group.map_or(Membership::Root, Membership::Of);
            let thread_config = ThreadConfig { group, class: Class::Other, nice: set.nice };
            domain.vcpus.push(VcpuConfig { thread: thread_config, ..VcpuConfig::default() });
            let noise = Noise::of(variant, place);
            let v = players.push(Player { steps: demand.steps.clone(), noise, ..Player::default() });
            vcpu_of.insert(thread, v);
            names.insert(v, (made.vm.clone(), made.vcpu));
        }
        let mut events = before(demands, &vcpu_of, host);
        for (at, threads) in &demands.first {
            let begin = |thread| Some((*at, *vcpu_of.get(thread)?, None));
            events.extend(threads.iter().filter_map(begin));
        }
        for (&number, arrivals) in &demands.others {
            let thread = ThreadConfig { group: Membership::Root, ..of_prio(arrivals.prio) };
            domain.vcpus.push(VcpuConfig { thread, ..VcpuConfig::default() });
            let mut noise = Noise::of(variant, u64::from(number));
            let v = players.push(Player::default());
            events.extend(arrivals.works.iter().map(|&(at, work)| {
                let late = noise.as_mut().map_or(Span::ZERO, Noise::draw);
                (at + late, v, Some(work))
            }));
        }
        events.sort_by_key(|&(at, ..)| at);
        config.domains.push(domain);
        let (policy, generation) = setting.scheduler();
        let play = Play { players, events, next: 0 };
        let run = Run { config: &config, play, names, window: demands.window, overheads };
        let resched = overheads.resched(variant, variants);
        let params = params(setting, resched, hz);
        vcpulab_sched::with(policy, generation, &params, 1, run).unwrap_or(Err(RunError::Policy(policy)))
    }
}

/// What happened before the recording began, if that was long enough after the host's own beginning.
fn before(demands: &Demands, vcpu_of: &BTreeMap<u32, VcpuId>, host: VcpuId) -> Vec<Event> {
    let Some(&(first, _)) = demands.first.first() else { return Vec::new() };
    if first - Time::ZERO < BEFORE + HOST_RAN {
        return Vec::new();
    }
    let threads =
        demands.first.iter().flat_map(|(_, threads)| threads).filter_map(|thread| vcpu_of.get(thread));
    let alone = (0..).zip(threads).map(|(place, &v)| (first - BEFORE + place * APART, v, Some(INSTANT)));
    let ran = [Time::ZERO, first - BEFORE / 2].map(|at| (at, host, Some(HOST_RAN)));
    ran.into_iter().chain(alone).collect()
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
fn params(setting: &Setup, resched: Span, hz: i64) -> Params {
    let us = |span: Option<Span>| span.map(|span| span.ns() / 1000);
    let tunables = setting.tunables;
    let all = [
        ("hz", Some(hz)),
        ("resched_ns", Some(resched.ns().max(1))),
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
    overheads: &'a Overheads,
    play: Play,
    names: BTreeMap<VcpuId, (String, u32)>,
    window: [Time; 2],
}

impl Runner for Run<'_> {
    type Out = Result<Measured, RunError>;

    fn run<S: Scheduler>(self, scheduler: S) -> Self::Out {
        let [begin, end] = self.window;
        let got = Table::filled(self.play.players.len(), Got::default());
        let watch = Watch { begin, since: begin, overheads: self.overheads, switches: 0, got };
        let broken = |error: Broken| RunError::Broken(error.to_string());
        let mut host = Host::new(self.config, scheduler, self.play, watch).map_err(broken)?;
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
struct Watch<'a> {
    begin: Time,
    since: Time,
    overheads: &'a Overheads,
    switches: u64,
    got: Table<VcpuId, Got>,
}

impl Watch<'_> {
    fn charge(&mut self, v: VcpuId, now: Time) {
        self.got[v].ran_ns += (now - self.since).max(Span::ZERO).ns();
        self.since = now.max(self.begin);
    }
}

impl Observer for Watch<'_> {
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

/// A thread has this work more; `None`: it begins with its steps.
type Event = (Time, VcpuId, Option<Span>);

/// What the threads do.
struct Play {
    players: Table<VcpuId, Player>,
    /// In the order of their times.
    events: Vec<Event>,
    next: usize,
}

/// A thread.
#[derive(Default)]
struct Player {
    /// Work that came and was not done yet.
    owed: Span,
    begun: bool,
    steps: Vec<Step>,
    next: usize,
    noise: Option<Noise>,
}

/// The source of all events.
const EVENTS: usize = 0;

impl Play {
    fn wait(&self, ctx: &mut WorldContext<'_>) {
        if let Some(&(at, ..)) = self.events.get(self.next) {
            ctx.set_source(EVENTS, at);
        }
    }
}

impl World for Play {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(EVENTS + 1);
        self.wait(ctx);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, _source: usize) {
        while let Some(&(_, v, work)) = self.events.get(self.next).filter(|(at, ..)| *at <= ctx.now()) {
            let player = &mut self.players[v];
            match work {
                Some(work) => player.owed += work,
                None => player.begun = true,
            }
            self.next += 1;
            ctx.kick(v, WakeCause::Timer);
        }
        self.wait(ctx);
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let player = &mut self.players[v];
        match left + std::mem::take(&mut player.owed) {
            Span::ZERO if player.begun => player.step(ctx.now()),
            Span::ZERO => Op::Block(None),
            work => Op::Run(work),
        }
    }
}

impl Player {
    fn step(&mut self, now: Time) -> Op {
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
                Step::Block(span) => {
                    let noise = self.noise.as_mut().map_or(Span::ZERO, Noise::draw);
                    return Op::Block(Some(now.saturating_add(span) + noise));
                }
                Step::Yield => return Op::Yield,
            }
        }
        Op::Block(None)
    }
}

/// What recordings of the same differ by: the phase of threads to each other.
struct Noise(u64);

/// The most that a sleep is longer, ns.
const NOISE_NS: u64 = 1000;

impl Noise {
    /// None for variant 0.
    fn of(variant: u64, place: u64) -> Option<Self> {
        let seed = (variant << 32 | place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (variant > 0).then_some(Noise(seed))
    }

    /// Marsaglia's xorshift.
    fn draw(&mut self) -> Span {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        Span::from_ns((self.0 % NOISE_NS).cast_signed())
    }
}
