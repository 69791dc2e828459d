//! Rules of topology, soft affinity and balancing, each on the smallest host that shows it.

use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, CpuMask, DomainConfig, Host, HostConfig, Params, PcpuId, PoolId, Span, Time, TimedAction,
    TopologyConfig, VcpuConfig, VcpuId,
};

use super::params::{BALANCE_RATELIMIT, RATELIMIT, SMT_POWER_SAVINGS};
use super::rules::GENERATIONS;
use super::{Credit, Registered};

const MS: Span = Span::from_ms(1);

fn mask(pcpus: &[u32]) -> Option<CpuMask> {
    Some(pcpus.iter().copied().map(PcpuId).collect())
}

fn topology(sockets: u32, cores: u32, threads: u32) -> TopologyConfig {
    TopologyConfig { sockets, cores, threads, nodes: 1, numbering: Default::default() }
}

/// A vCPU, which is a domain of its own.
#[derive(Clone)]
struct Guest {
    config: VcpuConfig,
    steps: Vec<Step>,
}

impl Guest {
    fn new(steps: &[Step]) -> Self {
        let config = VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() };
        Guest { config, steps: steps.to_vec() }
    }

    fn hog() -> Self {
        Guest::new(&[Step::Hog])
    }

    fn with(mut self, change: impl FnOnce(&mut VcpuConfig)) -> Self {
        change(&mut self.config);
        self
    }
}

fn credit(generation: &str, global: &Params, pcpus: u32) -> Credit {
    let (_, rules) = GENERATIONS.iter().find(|(g, _)| g.name == generation).unwrap();
    Credit::new(*rules, global, pcpus)
}

fn host(
    generation: &str,
    global: &Params,
    topology: TopologyConfig,
    guests: &[Guest],
    actions: Vec<TimedAction>,
) -> Host<Credit, Programs, ()> {
    let pcpus = topology.pcpus();
    let mut programs = Programs::default();
    for (i, guest) in guests.iter().enumerate() {
        programs.set(VcpuId(pcpus + i as u32), Program { steps: guest.steps.clone(), repeat: false });
    }
    let domain = |(i, guest): (usize, &Guest)| DomainConfig {
        number: i as i64 + 1,
        vcpus: vec![guest.config.clone()],
        ..DomainConfig::default()
    };
    let domains = guests.iter().enumerate().map(domain).collect();
    let config = HostConfig { pcpus, topology: Some(topology), domains, actions, ..HostConfig::default() };
    Host::new(&config, credit(generation, global, pcpus), programs, ()).unwrap()
}

/// The pCPU on which each guest runs at a time, if it does.
fn running(
    generation: &str,
    global: &Params,
    topology: TopologyConfig,
    guests: &[Guest],
    at: Span,
) -> Vec<Option<u32>> {
    let mut host = host(generation, global, topology, guests, Vec::new());
    host.run_until(Time::ZERO + at).unwrap();
    let ctx = host.context();
    ctx.all_guest_vcpus().map(|v| ctx.is_executing(v).then(|| ctx.processor(v).0)).collect()
}

#[test]
fn running_vcpus_spread_over_cores_unless_power_is_saved() {
    let guests = [Guest::hog(), Guest::hog()];
    let at = |ms: i64, global: &Params| running("xen4.17", global, topology(1, 2, 2), &guests, ms * MS);
    // The first tick that finds a vCPU running makes it active, the second one moves it.
    assert_eq!(at(15, &Params::new()), [Some(0), Some(1)]);
    assert_eq!(at(25, &Params::new()), [Some(2), Some(1)]);
    assert_eq!(at(25, &Params::new().with(SMT_POWER_SAVINGS.name, 1)), [Some(0), Some(1)]);
}

#[test]
fn a_socket_attracts_with_more_than_twice_as_many_idle_pcpus() {
    let at_25_ms = |cores: u32| {
        let guests = vec![Guest::hog(); cores as usize];
        running("xen4.17", &Params::new(), topology(2, cores, 1), &guests, 25 * MS)
    };
    // One here counts as idle for the vCPU that runs on it. Two there are twice as many, three are more.
    assert_eq!(at_25_ms(2), [Some(0), Some(1)]);
    assert_eq!(at_25_ms(3), [Some(3), Some(1), Some(2)]);
}

#[test]
fn a_preferred_pcpu_is_taken_when_it_is_idle_and_another_one_when_not() {
    let prefers_2 = |guest: Guest| guest.with(|config| config.soft_affinity = mask(&[2]));
    let guests = [prefers_2(Guest::new(&[Step::Run(25 * MS)])), prefers_2(Guest::hog())];
    let at = |ms: i64| running("xen4.17", &Params::new(), topology(1, 4, 1), &guests, ms * MS);
    assert_eq!(at(1), [Some(2), Some(1)]);
    assert_eq!(at(29), [None, Some(1)]);
    assert_eq!(at(31), [None, Some(2)]);
}

#[test]
fn work_that_prefers_the_thief_is_stolen_first() {
    // Both wait on pCPU 0 behind a pinned hog while pCPU 1 is busy.
    let pinned = |pcpu: u32, guest: Guest| guest.with(|config| config.affinity = mask(&[pcpu]));
    let waiting = |soft: &[u32]| {
        Guest::hog().with(|config| (config.start, config.soft_affinity) = (Some(MS), mask(soft)))
    };
    let guests = |second: &[u32]| {
        [pinned(0, Guest::hog()), pinned(1, Guest::new(&[Step::Run(5 * MS)])), waiting(&[0]), waiting(second)]
    };
    let at_6_ms = |guests: &[Guest]| running("xen4.17", &Params::new(), topology(1, 2, 1), guests, 6 * MS);
    assert_eq!(at_6_ms(&guests(&[0])), [Some(0), None, Some(1), None]);
    assert_eq!(at_6_ms(&guests(&[1])), [Some(0), None, None, Some(1)]);
}

#[test]
fn a_pcpu_does_not_balance_again_until_the_limit_is_over() {
    // pCPU 1 idles when a second hog begins to wait on pCPU 0.
    let second_runs = |generation: &str, limit_us: i64, start: Span| {
        let second = Guest::hog().with(|config| config.start = Some(start));
        let global = match generation {
            "xen4.17" => Params::new(),
            _ => Params::new().with(BALANCE_RATELIMIT.name, limit_us),
        };
        let guests = [Guest::hog(), second];
        running(generation, &global, topology(1, 2, 1), &guests, 5 * MS)[1] == Some(1)
    };
    assert!(second_runs("xen4.17", 0, Span::ZERO));
    assert!(!second_runs("xen4.22", 1000, MS), "an exact millisecond is not enough");
    assert!(second_runs("xen4.22", 1000, MS + Span::from_ns(1)));
    assert!(!second_runs("xen4.22", 0, Span::ZERO), "once at an instant, even without a limit");
    assert!(second_runs("xen4.22", 0, Span::from_ns(1)));
}

#[test]
fn a_vcpu_that_has_yielded_is_not_stolen_from_4_18_on() {
    let pinned = |pcpu: u32, guest: Guest| guest.with(|config| config.affinity = mask(&[pcpu]));
    let yields = Guest::new(&[Step::Run(5 * MS), Step::Yield, Step::Hog]);
    let guests = [yields, pinned(0, Guest::hog()), pinned(1, Guest::new(&[Step::Run(7 * MS)]))];
    let at_8_ms = |generation: &str| running(generation, &Params::new(), topology(1, 2, 1), &guests, 8 * MS);
    assert_eq!(at_8_ms("xen4.17"), [Some(1), Some(0), None]);
    assert_eq!(at_8_ms("xen4.22"), [None, Some(0), None]);
}

#[test]
fn parameters_of_the_boot_are_cut_off_and_not_changed_later() {
    let limit = |us: i64| {
        let global = Params::new().with(BALANCE_RATELIMIT.name, us);
        credit("xen4.22", &global, 1).balance_ratelimit
    };
    assert_eq!(limit(1_000_001), Some(1000 * MS));
    assert_eq!(limit(0), Some(Span::ZERO));
    assert_eq!(credit("xen4.17", &Params::new(), 1).balance_ratelimit, None);

    let change = |params: Params| {
        let action = TimedAction { at: Time::ZERO + MS, action: Action::AdjustGlobal(PoolId(0), params) };
        let mut host = host("xen4.22", &Params::new(), topology(1, 1, 1), &[Guest::hog()], vec![action]);
        host.run_until(Time::ZERO + 2 * MS).unwrap();
        (host.policy().ratelimit, host.policy().balance_ratelimit)
    };
    let ratelimit = Params::new().with(RATELIMIT.name, 0);
    assert_eq!(change(ratelimit.clone()), (Span::ZERO, Some(MS)));
    assert_eq!(change(ratelimit.with(BALANCE_RATELIMIT.name, 0)), (MS, Some(MS)));
}
