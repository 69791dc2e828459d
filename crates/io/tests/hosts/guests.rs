//! Guests without a network on a host: what their tasks get, and when.

use vcpulab_guest::{AppConfig, AppStats, Script, Step, Unit};
use vcpulab_host::{Costs, DomainConfig, Host, HostConfig, Span, Time, VcpuConfig, VcpuId};
use vcpulab_io::{GuestConfig, Machine, MachineConfig, Netbacks, NetworkCosts};

const MS: Span = Span::from_ms(1);

/// Domains by their applications, each with one vCPU, together on one pCPU for a second.
struct Domains(Vec<Vec<AppConfig>>);

impl Domains {
    fn run(self) -> Vec<AppStats> {
        let scheduler = crate::alone("round-robin", "v1", 1);
        let domain = |number| DomainConfig {
            number,
            vcpus: vec![VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() }],
            ..DomainConfig::default()
        };
        let domains = (0..self.0.len() as i64).map(domain).collect();
        let config = HostConfig { pcpus: 1, costs: Costs::ZERO, domains, ..HostConfig::default() };
        let guest = |(index, apps): (usize, Vec<AppConfig>)| GuestConfig {
            first_vcpu: VcpuId(1 + index as u32),
            kernel: crate::kernel(apps),
            working_set_bytes: 0,
            netfront: None,
            network: NetworkCosts::default(),
            virtual_disk: None,
            files: None,
            halt_poll: None,
            driver: None,
        };
        let guests = self.0.into_iter().enumerate().map(guest).collect();
        let machine = Machine::new(&MachineConfig {
            seed: 1,
            guests,
            nics: vec![].into(),
            disks: vec![].into(),
            services: vec![].into(),
            channels: 0,
            netbacks: Netbacks::Tasklets,
            initial_segments: 4,
            spread_percent: 0,
            clients: vec![].into(),
            profiler: None,
            client_machines: vec![].into(),
        });
        let mut host = Host::new(&config, scheduler, machine, ()).unwrap();
        host.run_until(Time::ZERO + 1000 * MS).unwrap();
        host.world().results().into_iter().map(|result| result.stats.clone()).collect()
    }
}

fn script(steps: &[Step]) -> AppConfig {
    AppConfig::new(Script::new([steps, &[Step::Done]].concat()))
}

fn run(span: Span) -> Step {
    Step::Compute { span, per_byte_ps: 0 }
}

fn hog() -> AppConfig {
    AppConfig::new(Script { unit: Unit::CpuMillisecond, ..Script::new(vec![run(10 * MS)]) })
}

fn periodic(cpu: Span, period: Span) -> AppConfig {
    let steps = vec![Step::Release(period), run(cpu), Step::Deadline(period)];
    AppConfig::new(Script::new(steps))
}

#[test]
fn a_timer_interrupts_the_hog_beside_a_periodic_task() {
    let stats = Domains(vec![vec![hog(), periodic(2 * MS, 10 * MS)]]).run();
    let (hog, periodic) = (&stats[0], &stats[1]);
    assert!((99..=100).contains(&periodic.completed) && periodic.failed == 0, "{periodic:?}");
    let longest = periodic.responses().read().max();
    assert!((2_000_000..2_010_000).contains(&longest), "each job begins at its release: {longest}");
    assert!((785..=802).contains(&hog.completed), "the rest is the hog's: {}", hog.completed);
}

#[test]
fn a_task_that_shares_its_pcpu_misses_deadlines() {
    let stats = Domains(vec![vec![periodic(8 * MS, 10 * MS)], vec![hog()]]).run();
    assert!(stats[0].failed > 10, "{:?}", stats[0]);
}

#[test]
fn runtime_passes_while_others_run_and_run_does_not() {
    use Step::{Runtime, Sleep};
    // A pCPU shared with a hog is there half of the time.
    let beside_a_hog = |event| {
        let stats = Domains(vec![vec![script(&[event, Sleep(MS)])], vec![hog()]]).run();
        stats[0].completed
    };
    let (by_time, by_work) = (beside_a_hog(Runtime(99 * MS)), beside_a_hog(run(99 * MS)));
    assert!((7..=10).contains(&by_time), "{by_time}");
    assert!((4..=6).contains(&by_work), "{by_work}");
}

#[test]
fn a_task_that_waits_for_its_time_costs_nothing() {
    let stats = Domains(vec![vec![script(&[Step::Sleep(100 * MS)])], vec![hog()]]).run();
    assert_eq!(stats[0].completed, 9, "the tenth sleep is over at the very end");
    assert!(stats[1].completed >= 990, "{}", stats[1].completed);
}
