//! A free run: a host of one CPU whose threads demand what those of a recording did, under a policy of the registry that
//! decides all by itself.

use std::collections::BTreeMap;

use vcpulab_host::{
    Broken, Class, Costs, DomainConfig, Host, HostConfig, HostState, Membership, Observer, Params, PcpuId,
    Pools, Span, Switch, Table, ThreadConfig, Time, VcpuConfig, VcpuId,
};

use super::before::spans;
use super::demand::Demands;
use super::error::LinuxError;
use super::folder::Setup;
use super::measured::{Got, Measured};
use super::outcome::Whose;
use super::overheads::Overheads;
use super::play::{Event, Noise, Play, Player};
use super::trace::{PRIO_FAIR, PRIO_NICE_0};

/// A run that takes more events than this is stopped.
const EVENTS_MAX: u64 = 100_000_000;

/// Length of the history before a recording: the host itself runs first, for long; this long before the first wake-up
/// each thread runs alone for an instant or more, so that its limits and groups have their state; then the host runs
/// again, for longer than any thread was ahead.
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
    /// The caller stopped the run.
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
    /// Lags of the setting's groups at the beginning.
    pub lags: &'a BTreeMap<Whose, Span>,
    /// Ticks in a second.
    pub hz: i64,
}

impl Free<'_> {
    /// Runs a variant. Variants differ by some microseconds here and there.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, variant: u64, variants: u64) -> Result<Measured, RunError> {
        let Free { setups: [_, setting], demands, overheads, hz, .. } = *self;
        let (policy, generation) = setting.scheduler();
        let params = params(setting, overheads.resched(variant, variants), hz);
        let Made { config, play, names } = self.make(variant)?;
        let scheduler = vcpulab_sched::boxed(policy, generation, &params, config.pcpus);
        let scheduler = Pools::new(vec![scheduler.ok_or(RunError::Policy(policy))?]);
        let [begin, end] = demands.window;
        let got = Table::filled(play.len(), Got::default());
        let watch = Watch { begin, since: begin, switches: 0, got };
        let broken = |error: Broken| RunError::Broken(error.to_string());
        let mut host = Host::new(&config, scheduler, play, watch).map_err(broken)?;
        host.limit_events(EVENTS_MAX);
        host.run_until(end).map_err(broken)?;
        let (host, _, _, mut watch) = host.into_parts();
        watch.charge(host.executes(PcpuId(0)), end);
        let mut threads = BTreeMap::new();
        for (v, name) in names {
            let mut got = std::mem::take(&mut watch.got[v]);
            got.waits_ns.sort_unstable();
            threads.insert(name, got);
        }
        Ok(Measured { window: end - begin, switches: watch.switches, threads })
    }

    /// Makes the host and what its threads do. All are of one domain, in the groups of the setting.
    fn make(&self, variant: u64) -> Result<Made, RunError> {
        let Free { setups: [demanding, setting], demands, overheads, lags, hz } = *self;
        let costs = Costs { context_switch_ns: overheads.switch, ..Costs::ZERO };
        let groups = setting.groups.clone();
        let mut config = HostConfig { pcpus: 1, groups, costs, ..HostConfig::default() };
        let mut domain = DomainConfig::default();
        // The idle vCPU is the first.
        let mut players: Table<VcpuId, Player> = Table::filled(1, Player::default());
        let mut add = |thread, player| {
            domain.vcpus.push(VcpuConfig { thread, ..VcpuConfig::default() });
            players.push(player)
        };
        let of_host = ThreadConfig { group: Membership::Root, ..ThreadConfig::default() };
        let host = add(of_host, Player::default());
        let (mut names, mut vcpu_of) = (BTreeMap::new(), BTreeMap::new());
        let (ran, mut ran_before) = (spans(setting, lags, INSTANT), BTreeMap::new());
        for (place, (&thread, demand)) in (0u64..).zip(&demands.threads) {
            let made = &demanding.threads[&thread];
            let same =
                setting.threads.iter().find(|(_, other)| other.vm == made.vm && other.vcpu == made.vcpu);
            let (number, set) =
                same.ok_or_else(|| RunError::Threads(format!("{}/{}", made.vm, made.vcpu)))?;
            let group = set.group.map_or(Membership::Root, Membership::Of);
            let config = ThreadConfig { group, class: set.class, nice: set.nice, ..ThreadConfig::default() };
            let v =
                add(config, Player::new(demand.steps.clone(), Noise::of(variant, place, overheads.timer)));
            vcpu_of.insert(thread, v);
            ran_before.insert(v, ran.get(number).copied().unwrap_or(INSTANT));
            names.insert(v, (made.vm.clone(), made.vcpu));
        }
        let mut events = before(demands, &vcpu_of, &ran_before, host);
        for (at, threads) in &demands.first {
            let begin = |thread| Some((*at, *vcpu_of.get(thread)?, None));
            events.extend(threads.iter().filter_map(begin));
        }
        for (&number, arrivals) in &demands.others {
            let v =
                add(ThreadConfig { group: Membership::Root, ..of_prio(arrivals.prio) }, Player::default());
            let mut noise = Noise::of(variant, u64::from(number), overheads.timer);
            events.extend(arrivals.works.iter().map(|&(at, work)| {
                let late = noise.as_mut().map_or(Span::ZERO, Noise::draw);
                (at + late, v, Some(work))
            }));
        }
        config.domains.push(domain);
        let tick = Span::from_secs(1) / hz;
        Ok(Made { config, play: Play::new(players, events, overheads.clone(), tick), names })
    }
}

/// A host that can be run.
struct Made {
    config: HostConfig,
    play: Play,
    /// The threads of VMs.
    names: BTreeMap<VcpuId, (String, u32)>,
}

/// Events before the recording began, if that is long enough after the start of the host.
fn before(
    demands: &Demands,
    vcpu_of: &BTreeMap<u32, VcpuId>,
    ran: &BTreeMap<VcpuId, Span>,
    host: VcpuId,
) -> Vec<Event> {
    let Some(&(first, _)) = demands.first.first() else { return Vec::new() };
    if first - Time::ZERO < BEFORE + HOST_RAN {
        return Vec::new();
    }
    let threads =
        demands.first.iter().flat_map(|(_, threads)| threads).filter_map(|thread| vcpu_of.get(thread));
    let mut at = first - BEFORE;
    let alone: Vec<Event> = threads
        .map(|v| {
            let ran = ran.get(v).copied().unwrap_or(INSTANT);
            let event = (at, *v, Some(ran));
            at += ran + APART;
            event
        })
        .collect();
    if at > first - BEFORE / 2 {
        // Weights are too far apart.
        return Vec::new();
    }
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
        ("preempt", setting.preempt()),
    ];
    let given = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.fold(Params::new(), |params, (name, value)| params.with(name, value))
}

/// Counts what [`Measured`] has.
struct Watch {
    begin: Time,
    since: Time,
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
    fn switched(&mut self, host: &HostState, switch: Switch) {
        self.charge(switch.from, switch.time);
        if switch.time < self.begin {
            return;
        }
        self.switches += 1;
        if switch.woken.is_some() {
            // The waits that are recorded end when the switch is done.
            let done = host.hypervisor_until(switch.pcpu) - switch.time;
            self.got[switch.to].waits_ns.push((switch.waited_ns + done).ns());
        }
    }
}
