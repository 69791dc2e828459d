//! Random hosts, and what must always hold on one.

use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, Bound, Costs, CpuMask, Creation, DomId, DomainConfig, Governor, Granularity, Hardware, Host,
    HostConfig, HostState, LifeEvent, Numbering, Observer, Op, Params, PcpuId, PoolId, Pools, RunState,
    Scheduler, Scope, Span, Switch, Time, TimedAction, TopologyConfig, VcpuConfig, VcpuId, WakeCause, World,
    WorldContext,
};
use vcpulab_sched::{Generation, ParamKind, boxed, policies};

pub const MS: Span = Span::from_ms(1);
pub const END: Time = Time::from_ns(700_000_000);

fn span(from: Span, to: Span) -> impl Strategy<Value = Span> {
    (from.ns()..to.ns()).prop_map(Span::from_ns)
}

/// A random host, but for the policy.
#[derive(Clone, Debug)]
pub struct Case {
    pub config: HostConfig,
    /// By vCPU, the idle ones not counted.
    pub programs: Vec<Program>,
    pub end: Time,
    /// Which of its own choices the policy makes, and which policy the other pools have.
    pub choice: u64,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..20_000i64).prop_map(|us| Step::Run(Span::from_us(us))),
        1 => (1..50i64).prop_map(|ns| Step::Run(Span::from_ns(ns))),
        1 => Just(Step::Yield),
        3 => (1..30_000i64).prop_map(|us| Step::Block(Span::from_us(us))),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    prop_oneof![
        2 => Just(Program { steps: vec![Step::Hog], repeat: false }),
        5 => (prop::collection::vec(step(), 0..6), span(Span::from_us(100), 9 * MS), any::<bool>()).prop_map(|(mut steps, run, repeat)| {
            // A program of nothing but yields would stop time.
            steps.insert(0, Step::Run(run));
            Program { steps, repeat }
        }),
    ]
}

fn mask(pcpus: u32) -> impl Strategy<Value = CpuMask> {
    prop::collection::vec(0..pcpus, 1..=pcpus as usize).prop_map(|members| {
        let mut mask = CpuMask::EMPTY;
        members.into_iter().for_each(|p| mask.insert(PcpuId(p)));
        mask
    })
}

/// Which disturbances a case may hold.
#[derive(Clone, Copy)]
pub struct Allow {
    pub affinity: bool,
    pub actions: bool,
    pub costs: bool,
    pub pools: bool,
    /// Core scheduling.
    pub cores: bool,
    /// Threads, cores, sockets and nodes, soft affinity, and creation as a release does it.
    pub topology: bool,
}

/// Random threads, cores, sockets and nodes, of 18 pCPUs at most.
pub fn topology() -> impl Strategy<Value = TopologyConfig> {
    let numbering = prop_oneof![Just(Numbering::Adjacent), Just(Numbering::Spread)];
    (1..=2u32, 1..=3u32, 1..=3u32, 0..3u32, numbering).prop_map(
        |(sockets, cores, threads, nodes, numbering)| {
            let nodes = [1, sockets, sockets * cores][nodes as usize];
            TopologyConfig { sockets, cores, threads, nodes, numbering }
        },
    )
}

/// The threads, cores and sockets of a host, and what of them is scheduled together: the latter are numbered beside each other
/// if they are to be divided into pools.
fn shape(allow: Allow) -> impl Strategy<Value = (u32, Option<TopologyConfig>, Granularity)> {
    if !allow.cores {
        let topology = if allow.topology { prop::option::of(topology()).boxed() } else { Just(None).boxed() };
        return (1 + u32::from(allow.pools)..5, topology)
            .prop_map(|(pcpus, topology)| {
                (topology.map_or(pcpus, |topology| topology.pcpus()), topology, Granularity::Cpu)
            })
            .boxed();
    }
    let granularity = prop_oneof![3 => Just(Granularity::Core), 1 => Just(Granularity::Socket)];
    (1..3_u32, 1..4_u32, 1..5_u32, any::<bool>(), granularity)
        .prop_map(move |(sockets, cores, threads, spread, granularity)| {
            let numbering = if spread && !allow.pools { Numbering::Spread } else { Numbering::Adjacent };
            let topology = TopologyConfig { sockets, cores, threads, nodes: sockets, numbering };
            (topology.pcpus(), Some(topology), granularity)
        })
        .boxed()
}

/// The pCPUs that are scheduled together with `p`, ascending.
pub fn resource(config: &HostConfig, p: PcpuId) -> Vec<PcpuId> {
    let alike = |q: PcpuId| match (config.topology, config.granularity) {
        (None, _) | (_, Granularity::Cpu) => q == p,
        (Some(TopologyConfig { sockets, cores, threads, numbering, .. }), granularity) => {
            let core = |p: PcpuId| match numbering {
                Numbering::Adjacent => p.0 / threads,
                Numbering::Spread => p.0 % (sockets * cores),
            };
            match granularity {
                Granularity::Socket => core(p) / cores == core(q) / cores,
                _ => core(p) == core(q),
            }
        }
    };
    (0..config.pcpus).map(PcpuId).filter(|&q| alike(q)).collect()
}

/// Hardware on which everything makes a difference.
const SHARED: Hardware = Hardware {
    beside_percent: [[55, 63, 81], [47, 59, 77], [89, 93, 97]],
    memory_share_percent: [7, 61, 13],
    bandwidth_mb_per_s: [900, 11_000, 1300],
    node_mb_per_s: 17_000,
    link_mb_per_s: 8000,
    numa_distance: 21,
    nominal_mhz: 2300,
    turbo_one_core_mhz: 3700,
    turbo_all_cores_mhz: 2500,
    min_mhz: 1100,
    governor: Governor::Ondemand,
    governor_sample: Span::from_ms(3),
    governor_up_percent: 80,
};

pub fn case(allow: Allow) -> impl Strategy<Value = Case> {
    let domain = move |pcpus: u32| {
        let affinity =
            if allow.affinity { prop::option::of(mask(pcpus)).boxed() } else { Just(None).boxed() };
        let soft = if allow.topology { prop::option::of(mask(pcpus)).boxed() } else { Just(None).boxed() };
        let most = if allow.cores { 10 } else { 4 };
        prop::collection::vec((program(), span(Span::ZERO, 50 * MS), affinity, soft), 1..most)
    };
    shape(allow)
        .prop_flat_map(move |(pcpus, topology, granularity)| {
            let domains = prop::collection::vec(domain(pcpus), 1..5);
            let kinds = if allow.topology { 0..22u8 } else { 0..18u8 };
            let actions = prop::collection::vec((0..END.ns(), kinds, 0..64usize, mask(pcpus)), 0..16);
            let host = HostConfig { pcpus, topology, granularity, ..HostConfig::default() };
            (Just(host), domains, actions, 0..3000i64, any::<u64>())
        })
        .prop_map(move |(host, domains, actions, cost, choice)| {
            let pcpus = host.pcpus;
            let programs: Vec<Program> =
                domains.iter().flatten().map(|(program, ..)| program.clone()).collect();
            // The pCPUs from the split on are a second pool.
            let together = resource(&host, PcpuId(0)).len() as u32;
            let resources = pcpus / together;
            let divided = allow.pools && resources > 1;
            let split = together * (1 + choice as u32 % resources.max(2).wrapping_sub(1));
            let pools = if divided {
                vec![CpuMask::first_n(split), CpuMask::first_n(pcpus).without(&CpuMask::first_n(split))]
            } else {
                Vec::new()
            };
            let pool_of = |which: usize| if divided { (choice >> (which % 64)) as usize % 2 } else { 0 };
            let action = |(at, kind, which, mask): (i64, u8, usize, CpuMask)| {
                let domain = DomId((which % domains.len()) as u32);
                let vcpu = VcpuId(pcpus + (which % programs.len()) as u32);
                let action = match kind {
                    0 => Action::Adjust(domain, Params::new()),
                    1 => Action::Pause(domain),
                    2 => Action::Unpause(domain),
                    3 if divided => Action::MovePool(domain, PoolId((which % 2) as u32)),
                    4 | 5 => Action::Create(domain),
                    6 => Action::Destroy(domain),
                    7 => Action::Shutdown(domain),
                    8 => Action::Reboot(domain),
                    9 => Action::Save(domain),
                    10 | 11 => Action::Restore(domain),
                    12 => Action::Online(vcpu),
                    13 => Action::Offline(vcpu),
                    14 => Action::Crash(domain),
                    15 => Action::Kill(domain),
                    18 | 19 => Action::SoftAffinity(vcpu, mask),
                    20 => Action::BothAffinities(vcpu, mask, CpuMask::first_n(pcpus).without(&mask)),
                    _ => Action::Affinity(vcpu, mask),
                };
                TimedAction { at: Time::from_ns(at), action }
            };
            let actions = if allow.actions { actions.into_iter().map(action).collect() } else { Vec::new() };
            let configs = domains.iter().enumerate().map(|(i, vcpus)| DomainConfig {
                number: i as i64 + 1,
                pool: PoolId(pool_of(i) as u32),
                bound: [Bound::Compute, Bound::Memory, Bound::Io][i % 3],
                memory_nodes: if i < 2 { vec![i as u32] } else { Vec::new() },
                vcpus: vcpus
                    .iter()
                    .map(|&(_, start, affinity, soft_affinity)| VcpuConfig {
                        start: Some(start),
                        affinity,
                        soft_affinity,
                        ..VcpuConfig::default()
                    })
                    .collect(),
                ..DomainConfig::default()
            });
            let costs = if allow.costs {
                let cost = Span::from_ns(cost);
                // A third of them take time until they decide, at the expense of vCPUs.
                let deciding = if choice % 3 == 0 { cost } else { Span::ZERO };
                Costs {
                    decision_ns: cost,
                    context_switch_ns: 2 * cost,
                    interrupt_ns: cost,
                    resume_ns: 3 * deciding,
                    block_ns: deciding,
                    wake_ns: 2 * deciding,
                    timer_ns: deciding,
                    ..Costs::ZERO
                }
            } else {
                Costs::ZERO
            };
            // With a topology, half of the hosts with costs are slowed by all that threads, nodes and sockets share.
            let slowed = host.topology.is_some() && allow.costs && choice % 4 < 2;
            let hardware = if slowed { SHARED } else { Hardware::NONE };
            let lock_ns = if slowed { costs.decision_ns / 4 } else { Span::ZERO };
            let costs = Costs { ipi_ns: 2 * lock_ns, lock_ns, ..costs };
            let domains = configs.collect();
            let real = allow.topology && choice % 2 == 0;
            let creation = if real { Creation::Release } else { Creation::Contract };
            let config = HostConfig { pools, costs, hardware, domains, creation, actions, ..host };
            Case { config, programs, end: END, choice }
        })
}

/// The scripted vCPUs, counting the wake-ups they ask for: all but those that a domain took with it when it stopped.
struct Counting {
    programs: Programs,
    wakes_due: u64,
    /// The last one of each vCPU.
    wakes_at: Vec<Time>,
    /// From when its domain boots.
    starts: Vec<Span>,
    end: Time,
}

impl Counting {
    fn wakes(&mut self, v: VcpuId, at: Time) {
        self.wakes_at[v.index()] = at;
        self.wakes_due += u64::from(at < self.end);
    }
}

impl World for Counting {
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let op = self.programs.next_op(ctx, v, left);
        // Some policies leave a guest that is over on its pCPU until they are asked next: it sleeps no more.
        if let Op::Block(Some(at)) = op
            && ctx.host().is_there(ctx.host().dom(v))
        {
            self.wakes(v, at);
        }
        op
    }

    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        for v in ctx.host().all_guest_vcpus().filter(|&v| ctx.host().vcpu_state(v).is_some()) {
            self.wakes(v, ctx.now() + self.starts[v.index()]);
        }
    }

    fn life(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        self.programs.life(ctx, event);
        match event {
            LifeEvent::Booted(d) => {
                ctx.host().all_vcpus_of(d).for_each(|v| self.wakes(v, ctx.now() + self.starts[v.index()]));
            }
            LifeEvent::Stopped(d) => {
                let lost = |v: &VcpuId| (ctx.now()..self.end).contains(&self.wakes_at[v.index()]);
                self.wakes_due -= ctx.host().all_vcpus_of(d).filter(lost).count() as u64;
            }
            _ => {}
        }
    }
}

/// Rebuilds from the switches alone what runs where.
struct Watch {
    running: Vec<Option<VcpuId>>,
    /// The pCPUs that are scheduled together with each.
    resources: Vec<Vec<PcpuId>>,
    last: Time,
    woken: u64,
    /// Time in which each vCPU was switched in, ns, and since when.
    gotten: Vec<Span>,
    since: Vec<Time>,
    bytes: Vec<u8>,
    /// Does the policy honour hard affinity?
    affinity: bool,
}

impl Observer for Watch {
    fn switched(&mut self, host: &HostState, switch: Switch) {
        assert!(switch.time >= self.last, "time runs forward");
        if switch.time > self.last {
            self.check_units(host);
        }
        self.last = switch.time;
        let p = switch.pcpu.index();
        let real = |v: VcpuId| (!host.is_idle(v)).then_some(v);
        assert_eq!(self.running[p], real(switch.from), "a switch leaves what the one before chose");
        if let Some(v) = real(switch.to) {
            assert!(!self.running.contains(&Some(v)), "one vCPU on one pCPU at a time");
            assert!(!self.affinity || host.affinity(v).contains(switch.pcpu), "hard affinity holds");
            self.since[v.index()] = switch.time;
        }
        if let Some(v) = real(switch.from) {
            self.gotten[v.index()] += switch.time - self.since[v.index()];
        }
        self.running[p] = real(switch.to);
        self.bytes.extend(switch.time.ns().to_le_bytes());
        self.bytes.extend([switch.pcpu.0 as u8, switch.from.0 as u8, switch.to.0 as u8]);
    }

    fn woke(&mut self, _host: &HostState, _v: VcpuId, _cause: WakeCause, _by: Option<VcpuId>) {
        self.woken += 1;
    }
}

impl Watch {
    /// The place of a vCPU on a resource of `size` pCPUs: its unit, by domain and number, and its index in that.
    fn place(host: &HostState, v: VcpuId, size: usize) -> ((DomId, usize), usize) {
        let d = host.dom(v);
        let number = host.all_vcpus_of(d).position(|u| u == v).unwrap();
        ((d, number / size), number % size)
    }

    /// vCPUs that run on pCPUs that are scheduled together are of one unit, each on the pCPU of its index; and no other one of
    /// that unit waits.
    fn check_units(&self, host: &HostState) {
        for (p, resource) in self.resources.iter().enumerate().filter(|(_, resource)| resource.len() > 1) {
            let Some(v) = self.running[p] else { continue };
            let (unit, index) = Self::place(host, v, resource.len());
            assert_eq!(resource[index].index(), p, "each vCPU on the pCPU of its index");
            for v in resource.iter().filter_map(|q| self.running[q.index()]) {
                assert_eq!(Self::place(host, v, resource.len()).0, unit, "one unit on a resource at a time");
            }
        }
    }
}

/// Runs a case in steps, and checks at each step what must always hold; returns the trace as bytes.
struct Check<'a> {
    case: &'a Case,
    /// Also: no pCPU idles while a vCPU waits that may run there.
    work_conserving: bool,
    affinity: bool,
}

impl Check<'_> {
    fn run<S: Scheduler>(self, scheduler: S) -> Vec<u8> {
        let Case { config, programs, end, .. } = self.case;
        let mut scripts = Programs::default();
        for (i, program) in programs.iter().enumerate() {
            scripts.set(VcpuId(config.pcpus + i as u32), program.clone());
        }
        let count = config.pcpus as usize + programs.len();
        let watch = Watch {
            running: vec![None; config.pcpus as usize],
            resources: (0..config.pcpus).map(|p| resource(config, PcpuId(p))).collect(),
            last: Time::ZERO,
            woken: 0,
            gotten: vec![Span::ZERO; count],
            since: vec![Time::ZERO; count],
            bytes: Vec::new(),
            affinity: self.affinity,
        };
        let never = *end - Time::ZERO;
        let starts =
            config.domains.iter().flat_map(|domain| &domain.vcpus).map(|vcpu| vcpu.start.unwrap_or(never));
        let starts = std::iter::repeat_n(never, config.pcpus as usize).chain(starts).collect();
        let world =
            Counting { programs: scripts, wakes_due: 0, wakes_at: vec![*end; count], starts, end: *end };
        let mut host = Host::new(config, scheduler, world, watch).unwrap();
        let mut now = Time::ZERO;
        while now < *end {
            now = (now + Span::from_ns(1_234_567)).min(*end);
            host.run_until(now).unwrap();
            check_times(host.context(), host.observer());
            host.observer().check_units(host.context());
            check_companions(host.context(), host.observer());
            if self.work_conserving {
                check_work_conserved(host.context(), host.observer());
            }
        }
        assert_eq!(host.observer().woken, host.world().wakes_due, "no wake-up is lost");
        host.into_parts().3.bytes
    }
}

fn check_times(host: &HostState, watch: &Watch) {
    let elapsed = host.now() - Time::ZERO;
    for v in host.all_guest_vcpus() {
        let times = host.run_times(v);
        let sum = times.running_ns + times.runnable_ns + times.blocked_ns + times.offline_ns;
        assert_eq!(sum, elapsed, "runstates sum to the time elapsed");
        let still = if host.is_executing(v) { host.now() - watch.since[v.index()] } else { Span::ZERO };
        assert_eq!(
            times.running_ns,
            watch.gotten[v.index()] + still,
            "the trace tells the same running time"
        );
    }
    let (mut total, mut idle_total) = (Span::ZERO, Span::ZERO);
    for p in (0..host.pcpu_count()).map(PcpuId) {
        let (run, idle, overhead) = host.pcpu_times(p);
        assert_eq!(run + idle + overhead, elapsed, "run, idle and overhead sum to the time elapsed");
        assert!(!run.is_negative() && !idle.is_negative() && !overhead.is_negative());
        total += run;
        idle_total += idle;
    }
    let running: Span = host.all_guest_vcpus().map(|v| host.run_times(v).running_ns).sum();
    assert!(running >= total, "vCPUs that make progress are running");
    assert!(running <= i64::from(host.pcpu_count()) * elapsed - idle_total, "no vCPU runs on an idle pCPU");
}

/// No vCPU waits while another one of its unit runs.
fn check_companions(host: &HostState, watch: &Watch) {
    let size = watch.resources[0].len();
    let unit = |v: VcpuId| Watch::place(host, v, size).0;
    for v in host.all_guest_vcpus().filter(|&v| size > 1 && host.runstate(v) == RunState::Runnable) {
        let runs = host.all_vcpus_of(host.dom(v)).find(|&u| unit(u) == unit(v) && host.is_executing(u));
        assert!(runs.is_none() || !host.vcpu_runnable(v), "{:?} waits while its unit runs", host.name(v));
    }
}

fn check_work_conserved(host: &HostState, watch: &Watch) {
    let idles = |p: PcpuId| watch.resources[p.index()].iter().all(|&q| host.is_idle(host.executes(q)));
    for v in host.all_guest_vcpus().filter(|&v| host.runstate(v) == RunState::Runnable) {
        let idle = host.affinity(v).iter().find(|&p| idles(p));
        assert_eq!(
            idle,
            None,
            "at {} ns {:?} waits while a pCPU that it may use idles",
            host.now(),
            host.name(v)
        );
    }
}

pub fn on_every_policy(mut check: impl FnMut(&'static str, &'static Generation)) {
    for policy in policies() {
        policy.generations.iter().for_each(|generation| check(policy.name, generation));
    }
}

/// The policy's own choices, made by the digits of `choice`.
fn global_choices(generation: &Generation, case: &Case) -> Params {
    let (mut params, mut choice) = (Params::new(), case.choice);
    // Numbers of pCPUs mean something else where several of them are scheduled together.
    let numbers = case.config.topology.is_some() && case.config.granularity == Granularity::Cpu;
    for spec in generation.params.iter().filter(|spec| spec.scope == Scope::Global) {
        let (least, count) = match spec.kind {
            ParamKind::Choice(words) => (0, words.len() as u64),
            ParamKind::Flag => (0, 2),
            ParamKind::Int { min, .. } if numbers && spec.unit == "pCPUs" => (min, 5),
            _ => continue,
        };
        params.set(spec.name, (least + (choice % count) as i64).into());
        choice /= count;
    }
    params
}

pub fn run(policy: &str, generation: &Generation, case: &Case, work_conserving: bool) -> Vec<u8> {
    let global = global_choices(generation, case);
    let pools = &case.config.pools;
    let count = |pool: usize| pools.get(pool).map_or(case.config.pcpus, CpuMask::len);
    let scheduler = boxed(policy, generation.name, &global, count(0)).expect("it is registered");
    let mut affinity = generation.hard_affinity;
    let mut schedulers = vec![scheduler];
    for pool in 1..pools.len() {
        let other = &policies()[(case.choice >> 32) as usize % policies().len()];
        let newest = other.default_generation();
        affinity &= newest.hard_affinity;
        schedulers
            .push(boxed(other.name, newest.name, &Params::new(), count(pool)).expect("it is registered"));
    }
    Check { case, work_conserving, affinity }.run(Pools::new(schedulers))
}
