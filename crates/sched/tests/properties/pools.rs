//! CPU pools: each is a host of its own, and domains move between them.

use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, CpuMask, DomId, DomainConfig, Host, HostConfig, HostState, Observer, ParamValue, Params, PcpuId,
    PoolId, Pools, Span, Switch, Time, TimedAction, TimetableEntry, VcpuConfig, VcpuId,
};
use vcpulab_sched::{boxed, policies};

use crate::hosts::{Allow, Case, MS, case, on_every_policy, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Time is conserved, nobody runs twice or in another pool, no wake-up is lost, while domains move to and fro.
    #[test]
    fn time_is_conserved_across_pools(
        case in case(Allow { affinity: true, actions: true, costs: true, pools: true, cores: false, topology: false })
    ) {
        on_every_policy(|policy, generation| {
            let trace = run(policy, generation, &case, false);
            assert_eq!(trace, run(policy, generation, &case, false), "{policy} {}: same bytes", generation.name);
        });
    }

    /// Two pools of one host decide exactly as two hosts. (SEDF of 4.4.1 turns a vCPU's number into a pCPU's number when it
    /// picks, so there it matters which numbers a pool's pCPUs have.)
    #[test]
    fn pools_do_not_touch_each_other(
        left in case(Allow { affinity: true, actions: true, costs: true, pools: false, cores: false, topology: false }),
        right in case(Allow { affinity: true, actions: true, costs: true, pools: false, cores: false, topology: false }),
    ) {
        let right = Case { config: HostConfig { costs: left.config.costs, ..right.config }, ..right };
        let all: Vec<_> = policies().iter().flat_map(|p| p.generations.iter().map(move |g| (p.name, g.name))).collect();
        let all: Vec<_> = all.into_iter().filter(|&which| which != ("sedf", "xen4.4.1")).collect();
        let of = |case: &Case| all[case.choice as usize % all.len()];
        let apart = [&left, &right].map(|case| decisions(&case.config, case, None, &[of(case)]));
        let host = together(&left, &right);
        let shared = [PoolId(0), PoolId(1)].map(|pool| decisions(&host.config, &host, Some(pool), &[of(&left), of(&right)]));
        for (pool, (apart, shared)) in apart.iter().zip(&shared).enumerate() {
            let differs = apart.iter().zip(shared).position(|(a, b)| a != b);
            let at = differs.map(|i| (apart[i], shared[i]));
            let same = at.is_none() && apart.len() == shared.len();
            prop_assert!(same, "{:?}, pool {pool}: apart, shared: {at:?}", [of(&left), of(&right)]);
        }
    }
}

/// One host with both: the second one's pCPUs and domains follow those of the first.
fn together(left: &Case, right: &Case) -> Case {
    let pcpus = left.config.pcpus + right.config.pcpus;
    let own = CpuMask::first_n(left.config.pcpus);
    let shift = |mask: CpuMask| mask.iter().map(|p| PcpuId(p.0 + left.config.pcpus)).collect::<CpuMask>();
    let mut config =
        HostConfig { pcpus, pools: vec![own, CpuMask::first_n(pcpus).without(&own)], ..left.config.clone() };
    let (domains, vcpus) = (left.config.domains.len() as u32, left.programs.len() as u32);
    let moved = |action: &Action, second: bool| {
        let d = |d: DomId| DomId(d.0 + if second { domains } else { 0 });
        // vCPUs are numbered after the idle ones, of which there are more now.
        let v = |v: VcpuId| VcpuId(v.0 + if second { left.config.pcpus + vcpus } else { right.config.pcpus });
        match action.clone() {
            Action::Adjust(domain, params) => Action::Adjust(d(domain), params),
            Action::AdjustGlobal(_, params) => Action::AdjustGlobal(PoolId(u32::from(second)), params),
            Action::Pause(domain) => Action::Pause(d(domain)),
            Action::Unpause(domain) => Action::Unpause(d(domain)),
            Action::Affinity(vcpu, mask) => {
                Action::Affinity(v(vcpu), if second { shift(mask) } else { mask })
            }
            Action::SoftAffinity(..) | Action::BothAffinities(..) => {
                unreachable!("no host here has a soft affinity")
            }
            Action::MovePool(domain, pool) => Action::MovePool(d(domain), pool),
            Action::Create(domain) => Action::Create(d(domain)),
            Action::Destroy(domain) => Action::Destroy(d(domain)),
            Action::Shutdown(domain) => Action::Shutdown(d(domain)),
            Action::Crash(domain) => Action::Crash(d(domain)),
            Action::Kill(domain) => Action::Kill(d(domain)),
            Action::Reboot(domain) => Action::Reboot(d(domain)),
            Action::Save(domain) => Action::Save(d(domain)),
            Action::Restore(domain) => Action::Restore(d(domain)),
            Action::Online(vcpu) => Action::Online(v(vcpu)),
            Action::Offline(vcpu) => Action::Offline(v(vcpu)),
        }
    };
    for action in &mut config.actions {
        action.action = moved(&action.action, false);
    }
    for action in &right.config.actions {
        let mut action = action.clone();
        action.action = moved(&action.action, true);
        config.actions.push(action);
    }
    for domain in &right.config.domains {
        let mut domain = domain.clone();
        domain.pool = PoolId(1);
        for vcpu in &mut domain.vcpus {
            vcpu.affinity = vcpu.affinity.map(shift);
        }
        config.domains.push(domain);
    }
    let programs = left.programs.iter().chain(&right.programs).cloned().collect();
    Case { config, programs, end: left.end, choice: 0 }
}

/// Time, pCPU, and domain and vCPU (or idle), counted from the pool's first.
type Seen = (Time, u32, Option<(u32, u32)>);

/// What happened in one pool, or on the whole host.
struct Decisions {
    pool: Option<PoolId>,
    seen: Vec<Seen>,
}

impl Observer for Decisions {
    fn switched(&mut self, host: &HostState, switch: Switch) {
        let pool = host.pool_of_pcpu(switch.pcpu);
        if self.pool.is_some_and(|wanted| wanted != pool) {
            return;
        }
        let first_pcpu = (0..).map(PcpuId).find(|&p| host.pool_of_pcpu(p) == pool).unwrap();
        let first_domain = (0..)
            .map(DomId)
            .find(|&d| d.0 as usize >= host.domain_count() || host.pool_of(d) == pool)
            .unwrap();
        let to = (!host.is_idle(switch.to)).then(|| {
            let d = host.dom(switch.to);
            (d.0 - first_domain.0, host.name(switch.to).1 as u32)
        });
        self.seen.push((switch.time, switch.pcpu.0 - first_pcpu.0, to));
    }
}

fn decisions(
    config: &HostConfig,
    case: &Case,
    pool: Option<PoolId>,
    schedulers: &[(&str, &str)],
) -> Vec<Seen> {
    let mut programs = Programs::default();
    for (i, program) in case.programs.iter().enumerate() {
        programs.set(VcpuId(config.pcpus + i as u32), program.clone());
    }
    let pcpus = |pool: usize| config.pools.get(pool).map_or(config.pcpus, CpuMask::len);
    let make = |(pool, (name, generation)): (usize, &(&str, &str))| {
        boxed(name, generation, &Params::new(), pcpus(pool)).unwrap()
    };
    let pools = Pools::new(schedulers.iter().enumerate().map(make).collect());
    let mut host = Host::new(config, pools, programs, Decisions { pool, seen: Vec::new() }).unwrap();
    host.run_until(case.end).unwrap();
    host.into_parts().3.seen
}

/// Nothing of the old pool follows a domain: not its cap, not its parking. And it can come back.
#[test]
fn a_domain_that_moves_is_free_of_its_old_pool() {
    on_every_policy(|policy, generation| {
        let capped = generation.params.iter().any(|spec| spec.name == "cap");
        let params = if capped { Params::new().with("cap", 5) } else { Params::new() };
        let vcpus = vec![VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() }];
        let move_at = |ms: i64, pool| TimedAction {
            at: Time::ZERO + ms * MS,
            action: Action::MovePool(DomId(0), pool),
        };
        let config = HostConfig {
            pcpus: 2,
            pools: vec![CpuMask::only(PcpuId(0)), CpuMask::only(PcpuId(1))],
            domains: vec![DomainConfig { number: 1, params, vcpus, ..DomainConfig::default() }],
            actions: vec![move_at(500, PoolId(1)), move_at(1500, PoolId(0))],
            ..HostConfig::default()
        };
        let scheduler = |name, generation| boxed(name, generation, &Params::new(), 1).unwrap();
        let pools = Pools::new(vec![scheduler(policy, generation.name), scheduler("round-robin", "v1")]);
        let mut programs = Programs::default();
        programs.set(VcpuId(2), Program { steps: vec![Step::Hog], repeat: false });
        let mut host = Host::new(&config, pools, programs, ()).unwrap();
        let mut until = |ms: i64| {
            host.run_until(Time::ZERO + ms * MS).unwrap();
            host.context().run_times(VcpuId(2)).running_ns
        };
        let gotten = [until(500), until(1500), until(2500)];
        assert!(!capped || gotten[0] < 100 * MS, "{policy}: capped at first");
        assert_eq!(gotten[1] - gotten[0], 1000 * MS, "{policy} {}: alone there", generation.name);
        let timetable = policy == "arinc653";
        assert_eq!(
            gotten[2] > gotten[1] + 300 * MS,
            !timetable,
            "{policy} {}: welcome back",
            generation.name
        );
    });
}

/// ARINC 653: a slot of 10 ms in 20 beside, in another pool, one of 4 ms in 7. The other pool's second frame turns the shared
/// position back to slot 0 until 11 ms.
#[test]
fn timetables_of_two_pools_share_their_position_in_old_releases() {
    for (generation, first_slot) in [("xen4.4.1", 11), ("xen4.18.4", 11), ("xen4.18.5", 10), ("xen4.22", 10)]
    {
        let timetable = |domain: i64, runtime: i64, frame: i64| {
            let entry = TimetableEntry { domain, vcpu: 0, runtime: runtime * MS };
            let mut params = Params::new().with("major_frame_ns", (frame * MS).ns());
            params.set("entries", ParamValue::Timetable([entry].into()));
            boxed("arinc653", generation, &params, 1).unwrap()
        };
        let pools = Pools::new(vec![timetable(1, 10, 20), timetable(2, 4, 7)]);
        let domain = |pool: u32| DomainConfig {
            number: i64::from(pool) + 1,
            pool: PoolId(pool),
            vcpus: vec![VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() }],
            ..DomainConfig::default()
        };
        let config = HostConfig {
            pcpus: 2,
            pools: vec![CpuMask::only(PcpuId(0)), CpuMask::only(PcpuId(1))],
            domains: vec![domain(0), domain(1)],
            ..HostConfig::default()
        };
        let mut programs = Programs::default();
        for v in [VcpuId(2), VcpuId(3)] {
            programs.set(v, Program { steps: vec![Step::Hog], repeat: false });
        }
        let mut host = Host::new(&config, pools, programs, ()).unwrap();
        host.run_until(Time::ZERO + 20 * MS).unwrap();
        assert_eq!(host.context().run_times(VcpuId(2)).running_ns, first_slot * MS, "{generation}");
    }
}
