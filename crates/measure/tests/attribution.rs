//! Attribution of waits on hosts of all kinds, compared with a count that goes through every vCPU and pCPU at every change.

#[allow(dead_code, reason = "only the random hosts are of use here")]
#[path = "../../sched/tests/properties/hosts.rs"]
mod hosts;

use std::collections::BTreeMap;

use hosts::{Allow, Case, END, case};
use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, CpuMask, DomId, DomainConfig, Host, HostConfig, HostState, Observer, PcpuId, PoolId, Pools,
    RunState, Span, Switch, Time, TimedAction, VcpuConfig, VcpuId, WakeCause,
};
use vcpulab_measure::waits::Waits;
use vcpulab_measure::{Keep, Meter, Names, collect};
use vcpulab_sched::{boxed, policies};

/// Divided by every number of pCPUs that there is on a random host.
const PARTS: i64 = 60;

/// By domain, and what is charged (−1: idle, −2: the hypervisor): parts of a ns.
type Charges = BTreeMap<(usize, i64), Span>;

/// The meter, and beside it the plain count.
struct Both {
    meter: Meter,
    last: Time,
    /// As of the last change: domain and pCPUs of each vCPU that waits; owner of each pCPU, and until when it is busy.
    waiting: Vec<(usize, CpuMask)>,
    pcpus: Vec<(i64, Time)>,
    charges: Charges,
}

impl Both {
    fn look(&mut self, host: &HostState) {
        let now = host.now();
        for (p, &(owner, until)) in self.pcpus.iter().enumerate() {
            let busy = until.clamp(self.last, now) - self.last;
            for (domain, mask) in &self.waiting {
                if mask.contains(PcpuId(p as u32)) {
                    let parts = PARTS / i64::from(mask.len());
                    *self.charges.entry((*domain, -2)).or_default() += parts * busy;
                    *self.charges.entry((*domain, owner)).or_default() += parts * (now - self.last - busy);
                }
            }
        }
        self.last = now;
        let waits = |v: &VcpuId| host.runstate(*v) == RunState::Runnable;
        self.waiting =
            host.all_guest_vcpus().filter(waits).map(|v| (host.dom(v).index(), *host.affinity(v))).collect();
        let pcpu = |p| {
            let v = host.executes(p);
            (if host.is_idle(v) { -1 } else { host.dom(v).index() as i64 }, host.busy_until(p))
        };
        self.pcpus = (0..host.pcpu_count()).map(|p| pcpu(PcpuId(p))).collect();
    }
}

impl Observer for Both {
    fn wanted_runstates(&self) -> &[RunState] {
        self.meter.wanted_runstates()
    }

    fn switched(&mut self, host: &HostState, switch: Switch) {
        self.look(host);
        self.meter.switched(host, switch);
    }

    fn woke(&mut self, host: &HostState, v: VcpuId, cause: WakeCause, by: Option<VcpuId>) {
        self.look(host);
        self.meter.woke(host, v, cause, by);
    }

    fn runstate_changed(&mut self, host: &HostState, v: VcpuId) {
        self.look(host);
        self.meter.runstate_changed(host, v);
    }

    fn affinity_changed(&mut self, host: &HostState, v: VcpuId) {
        self.look(host);
        self.meter.affinity_changed(host, v);
    }

    fn busy(&mut self, host: &HostState, p: PcpuId) {
        self.look(host);
        self.meter.busy(host, p);
    }
}

fn check(case: &Case, policy: usize) {
    let Case { config, programs, .. } = case;
    let mut scripts = Programs::default();
    for (i, program) in programs.iter().enumerate() {
        scripts.set(VcpuId(config.pcpus + i as u32), program.clone());
    }
    let policy = &policies()[policy % policies().len()];
    let pools = config.pools.len().max(1);
    let scheduler = |pool: usize| {
        let pcpus = config.pools.get(pool).map_or(config.pcpus, CpuMask::len);
        boxed(policy.name, policy.default_generation().name, &Default::default(), pcpus).expect("registered")
    };
    let both = Both {
        meter: Meter::new(Keep { waits: true, ..Keep::default() }, None),
        last: Time::ZERO,
        waiting: Vec::new(),
        pcpus: Vec::new(),
        charges: Charges::new(),
    };
    let schedulers = Pools::new((0..pools).map(scheduler).collect());
    let mut host = Host::new(config, schedulers, scripts, both).expect("the policy keeps the rules");
    let (context, both) = host.observe();
    both.meter.reset(context);
    // Measuring begins in the middle of things.
    let begin = Time::from_ns(END.ns() / 7);
    host.run_until(begin).expect("the policy keeps the rules");
    let (context, both) = host.observe();
    both.look(context);
    both.charges.clear();
    both.meter.reset(context);
    host.run_until(END).expect("the policy keeps the rules");
    let (context, both) = host.observe();
    both.look(context);

    let names = Names {
        domains: (0..context.domain_count()).map(|d| d.to_string()).collect(),
        pools: vec![String::new(); pools],
    };
    let measured = collect(0, &names, context, &both.meter);
    for row in &measured.domains {
        let waits = measured.waits.iter().filter(|wait| wait.domain == row.domain);
        assert_eq!(waits.map(|wait| wait.wait_ns).sum::<i64>(), row.runnable_ns, "domain {}", row.domain);
    }
    // Each change of affinity may make another set of pCPUs.
    let sets = (programs.len() + config.actions.len()) as i64;
    for wait in &measured.waits {
        let by = match wait.by.as_str() {
            "idle" => -1,
            "hypervisor" => -2,
            domain => domain.parse().expect("domains are numbered"),
        };
        let domain: usize = wait.domain.parse().expect("domains are numbered");
        let counted = both.charges.remove(&(domain, by)).unwrap_or_default().ns();
        // Less than 1 ns for each set of pCPUs.
        let error = (wait.wait_ns * PARTS - counted).abs();
        assert!(error < PARTS * sets, "{wait:?}, counted {counted}/{PARTS} ns");
    }
    let rest: Vec<_> = both.charges.iter().filter(|(_, parts)| parts.ns() >= PARTS * sets).collect();
    assert!(rest.is_empty(), "waits without a row: {rest:?}");
    let woken: u64 = measured.wakeups.iter().map(|row| row.count).sum();
    let bucketed: u64 = measured.wakeup_buckets.iter().map(|row| row.count).sum();
    assert_eq!(woken, bucketed, "buckets hold every wake-up");
    assert!(measured.wakeups.iter().all(|row| row.p50_ns <= row.p99_ns && row.mean_ns <= row.max_ns as f64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn waits_sum_to_the_time_runnable_and_go_to_whom_they_belong(
        case in any::<(bool, bool)>().prop_flat_map(|(pools, cores)| case(Allow { affinity: true, actions: true, costs: true, pools, cores, topology: false })),
        policy in any::<usize>(),
    ) {
        check(&case, policy);
    }
}

/// A domain that comes while measuring, goes, and comes back; another that changes its CPU pool and leaves from there.
#[test]
fn domains_that_come_and_go_wait_only_while_they_are_there() {
    let [late, mover] = [DomId(1), DomId(2)];
    let domain = |number: i64, affinity: [Option<u32>; 2]| DomainConfig {
        number,
        vcpus: affinity
            .map(|p| VcpuConfig {
                start: Some(Span::ZERO),
                affinity: p.map(|p| CpuMask::only(PcpuId(p))),
                ..VcpuConfig::default()
            })
            .to_vec(),
        ..DomainConfig::default()
    };
    let action = |at, action| TimedAction { at: Time::from_ns(END.ns() / 100 * at), action };
    let config = HostConfig {
        pcpus: 4,
        pools: vec![CpuMask::first_n(3), CpuMask::only(PcpuId(3))],
        domains: vec![domain(1, [None; 2]), domain(2, [Some(1), None]), domain(3, [Some(0), Some(2)])],
        actions: vec![
            action(20, Action::Create(late)),
            action(30, Action::Affinity(VcpuId(6), CpuMask::first_n(2))),
            action(35, Action::Save(late)),
            action(40, Action::MovePool(mover, PoolId(1))),
            action(45, Action::Restore(late)),
            action(50, Action::Reboot(late)),
            action(60, Action::Destroy(mover)),
            action(65, Action::Offline(VcpuId(7))),
            action(70, Action::Create(mover)),
            action(75, Action::Online(VcpuId(7))),
            action(80, Action::Destroy(late)),
        ],
        ..HostConfig::default()
    };
    let programs = vec![Program { steps: vec![Step::Hog], repeat: false }; 6];
    let case = Case { config, programs, end: END, choice: 0 };
    (0..policies().len()).for_each(|policy| check(&case, policy));
}

#[test]
fn what_is_not_asked_is_not_attributed() {
    let mut meter = Meter::new(Keep::default(), None);
    assert!(meter.wanted_runstates().is_empty());
    let config = HostConfig { pcpus: 1, ..Default::default() };
    let scheduler = Pools::new(vec![boxed("round-robin", "v1", &Default::default(), 1).expect("registered")]);
    let host = Host::new(&config, scheduler, Programs::default(), ()).expect("nothing happens");
    meter.reset(host.context());
    let names = Names { domains: Vec::new(), pools: vec![String::new()] };
    let why = collect(0, &names, host.context(), &meter).not_attributed.expect("nobody asked").to_string();
    assert_eq!(why, "the run was not asked to attribute waits");
}

#[test]
fn many_domains_are_said_to_be_too_many() {
    let config = HostConfig { pcpus: 1, domains: vec![DomainConfig::default(); 65], ..Default::default() };
    let scheduler = Pools::new(vec![boxed("round-robin", "v1", &Default::default(), 1).expect("registered")]);
    let host = Host::new(&config, scheduler, Programs::default(), ()).expect("nothing happens");
    let mut waits = Waits::default();
    waits.reset(host.context());
    let why = waits.read(host.context(), Span::ZERO).expect_err("65 domains are too many").to_string();
    assert_eq!(why, "the host has 65 domains; waits are attributed among at most 64");
}
