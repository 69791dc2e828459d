//! Lottery scheduling on a host with scripted programs.

use lottery::Lottery;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    CpuMask, DomainConfig, Host, HostConfig, Params, PcpuId, RunState, Span, Time, VcpuConfig, VcpuId,
};

const SECOND: Span = Span::from_secs(1);

fn us(us: i64) -> Span {
    Span::from_us(us)
}

/// A vCPU's program, and the pCPUs it may run on.
type Vcpu<'a> = (&'a [Step], CpuMask);

/// A host with one domain for each row: its tickets and its vCPUs.
fn host(pcpus: u32, seed: u64, domains: &[(i64, &[Vcpu<'_>])]) -> Host<Lottery, Programs, ()> {
    let mut world = Programs::default();
    let mut config = HostConfig { pcpus, ..HostConfig::default() };
    let mut number = pcpus;
    for (tickets, vcpus) in domains {
        let vcpu = |(_, pcpus): &Vcpu<'_>| VcpuConfig {
            start: Some(Span::ZERO),
            affinity: Some(*pcpus),
            ..VcpuConfig::default()
        };
        config.domains.push(DomainConfig {
            number: config.domains.len() as i64 + 1,
            params: Params::new().with("weight", *tickets),
            vcpus: vcpus.iter().map(vcpu).collect(),
            ..DomainConfig::default()
        });
        for (steps, _) in *vcpus {
            world.set(VcpuId(number), Program { steps: steps.to_vec(), repeat: true });
            number += 1;
        }
    }
    Host::new(&config, Lottery::new(seed), world, ()).unwrap()
}

fn run_times(host: &Host<Lottery, Programs, ()>) -> Vec<Span> {
    let context = host.context();
    context.all_guest_vcpus().map(|v| context.run_times(v).running_ns).collect()
}

#[test]
fn shares_follow_tickets() {
    let hog: &[Vcpu<'_>] = &[(&[Step::Hog], CpuMask::only(PcpuId(0)))];
    let mut host = host(1, 1, &[(100, hog), (200, hog), (500, hog)]);
    host.run_until(Time::ZERO + 1000 * SECOND).unwrap();
    let got = run_times(&host);
    for (got, share) in got.iter().zip([0.125, 0.25, 0.625]) {
        let got = got.ns() as f64 / (1000 * SECOND).ns() as f64;
        assert!((got - share).abs() < 0.01, "{got} of {share}");
    }
}

#[test]
fn tickets_are_a_domains_however_many_vcpus_it_has() {
    let p = CpuMask::only(PcpuId(0));
    let hog: Vcpu<'_> = (&[Step::Hog], p);
    let mut host = host(1, 1, &[(256, &[hog]), (256, &[hog, hog, hog])]);
    host.run_until(Time::ZERO + 1000 * SECOND).unwrap();
    let got = run_times(&host);
    assert!((got[0].ns() as f64 / (1000 * SECOND).ns() as f64 - 0.5).abs() < 0.01, "{got:?}");
    assert!(
        (got[1] - got[2]).abs() <= Span::from_ms(10) && (got[2] - got[3]).abs() <= Span::from_ms(10),
        "taking turns: {got:?}"
    );
}

/// Three pCPUs, domains that compute, block, yield and are pinned.
fn busy_host(seed: u64) -> Host<Lottery, Programs, ()> {
    let all = CpuMask::first_n(3);
    let pinned = CpuMask::only(PcpuId(2));
    let naps: &[Step] = &[Step::Run(us(1_700)), Step::Block(us(2_300))];
    let bursts: &[Step] = &[Step::Run(us(40_000)), Step::Block(us(200_000))];
    let polite: &[Step] = &[Step::Run(us(400)), Step::Yield, Step::Run(us(900)), Step::Block(us(3_000))];
    host(
        3,
        seed,
        &[
            (100, &[(naps, all), (naps, pinned), (polite, all)]),
            (300, &[(bursts, all), (polite, pinned)]),
            (50, &[(naps, all), (naps, all), (polite, all)]),
        ],
    )
}

#[test]
fn the_host_keeps_its_accounts_and_nobody_waits_beside_an_idle_pcpu() {
    let mut host = busy_host(7);
    let (mut idled, mut waited) = (0, 0);
    for step in 1..=20_000 {
        host.run_until(Time::from_ns(step * 100_000 + 1)).unwrap();
        let context = host.context();
        let running: Vec<VcpuId> = context.all_pcpus().iter().map(|p| context.executes(p)).collect();
        let idle: CpuMask =
            context.all_pcpus().iter().filter(|&p| context.is_idle(context.executes(p))).collect();
        idled += idle.len();
        for v in context.all_guest_vcpus() {
            let times = context.run_times(v);
            let sum = times.running_ns + times.runnable_ns + times.blocked_ns + times.offline_ns;
            assert_eq!(sum, host.now() - Time::ZERO);
            let places = running.iter().filter(|&&other| other == v).count();
            assert_eq!(places, usize::from(context.runstate(v) == RunState::Running));
            if places == 1 {
                assert!(context.affinity(v).contains(context.processor(v)));
            }
            if context.runstate(v) == RunState::Runnable {
                waited += 1;
                assert!(context.affinity(v).and(&idle).is_empty(), "{v:?} waits at {} ns", host.now());
            }
        }
    }
    assert!(idled > 1000 && waited > 1000, "both happened: {idled}, {waited}");
}

#[test]
fn a_seed_says_all_that_happens() {
    let after = |seed| {
        let mut host = busy_host(seed);
        host.run_until(Time::ZERO + 2 * SECOND).unwrap();
        run_times(&host)
    };
    assert_eq!(after(1), after(1));
    assert_ne!(after(1), after(2));
}
