//! Core scheduling: a domain has a core, or a socket, for itself, or not at all.

use proptest::prelude::*;
use vcpulab_host::{
    Action, CpuMask, DomainConfig, Granularity, HostConfig, Numbering, PcpuId, TimedAction, TopologyConfig,
    VcpuId,
};

use crate::hosts::{Allow, Case, case, on_every_policy, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// On cores and sockets of all sizes: time is conserved, no wake-up is lost, one unit at a time has a resource, each vCPU runs
    /// on the pCPU of its index and with its unit, and a second run gives the same bytes.
    #[test]
    fn units_run_together(
        case in case(Allow { affinity: true, actions: true, costs: true, pools: false, cores: true, topology: false })
    ) {
        on_every_policy(|policy, generation| {
            let trace = run(policy, generation, &case, false);
            assert_eq!(trace, run(policy, generation, &case, false), "{policy} {}: same bytes", generation.name);
        });
    }

    /// The same across pools.
    #[test]
    fn units_run_together_across_pools(
        case in case(Allow { affinity: true, actions: true, costs: true, pools: true, cores: true, topology: false })
    ) {
        on_every_policy(|policy, generation| {
            run(policy, generation, &case, false);
        });
    }

    /// No resource idles while a unit waits that could run there.
    #[test]
    fn work_is_conserved(
        case in case(Allow { affinity: false, actions: false, costs: false, pools: false, cores: true, topology: false })
    ) {
        on_every_policy(|policy, generation| {
            if generation.work_conserving {
                run(policy, generation, &case, true);
            }
        });
    }

    /// Units of one vCPU each on cores of several threads are vCPUs on a host of as many pCPUs. (Credit of 4.x keeps the pCPU
    /// it has asked last by the thread that its code executes on.)
    #[test]
    fn units_of_one_vcpu_run_as_on_a_host_without_threads(
        case in case(Allow { affinity: true, actions: true, costs: false, pools: false, cores: false, topology: false }),
        threads in 2..5_u32,
    ) {
        let flat = alone(case);
        let cores = on_cores(&flat, threads);
        on_every_policy(|policy, generation| {
            let by_thread = policy == "credit" && generation.name.starts_with("xen4") || policy == "enhanced";
            if !by_thread {
                let expected = run(policy, generation, &flat, false);
                let got = run(policy, generation, &cores, false);
                assert_eq!(numbered(&flat, 1, &expected), numbered(&cores, threads, &got), "{policy} {}", generation.name);
            }
        });
    }

    /// Cores of one thread change nothing.
    #[test]
    fn units_on_cores_of_one_thread_are_vcpus(
        case in case(Allow { affinity: true, actions: true, costs: true, pools: false, cores: false, topology: false })
    ) {
        let cores = on_cores(&case, 1);
        on_every_policy(|policy, generation| {
            let expected = run(policy, generation, &case, false);
            assert_eq!(expected, run(policy, generation, &cores, false), "{policy} {}", generation.name);
        });
    }
}

/// The same case with each vCPU in a domain of its own.
fn alone(case: Case) -> Case {
    let Case { config, programs, end, choice } = case;
    let vcpus = config.domains.iter().flat_map(|domain| &domain.vcpus).cloned();
    let domains: Vec<DomainConfig> = (1..)
        .zip(vcpus)
        .map(|(number, vcpu)| DomainConfig { number, vcpus: vec![vcpu], ..DomainConfig::default() })
        .collect();
    Case { config: HostConfig { domains, ..config }, programs, end, choice }
}

/// The same case on a host whose pCPUs are the first of so many threads each.
fn on_cores(flat: &Case, threads: u32) -> Case {
    let config = &flat.config;
    let pcpus = config.pcpus * threads;
    let firsts = |mask: CpuMask| mask.iter().map(|p| PcpuId(p.0 * threads)).collect::<CpuMask>();
    // vCPUs are numbered after the idle ones.
    let later = |v: VcpuId| VcpuId(v.0 + pcpus - config.pcpus);
    let mut cores = config.clone();
    cores.pcpus = pcpus;
    cores.granularity = Granularity::Core;
    let numbering = Numbering::Adjacent;
    cores.topology = Some(TopologyConfig { sockets: 1, cores: config.pcpus, threads, nodes: 1, numbering });
    for vcpu in cores.domains.iter_mut().flat_map(|domain| &mut domain.vcpus) {
        vcpu.affinity = vcpu.affinity.map(firsts);
    }
    for TimedAction { action, .. } in &mut cores.actions {
        *action = match action.clone() {
            Action::Affinity(v, mask) => Action::Affinity(later(v), firsts(mask)),
            Action::Online(v) => Action::Online(later(v)),
            Action::Offline(v) => Action::Offline(later(v)),
            other => other,
        };
    }
    Case { config: cores, ..flat.clone() }
}

/// The switches of a trace, with pCPUs and vCPUs numbered as on a host without threads.
fn numbered(case: &Case, threads: u32, trace: &[u8]) -> Vec<([u8; 8], [u32; 3])> {
    let pcpus = case.config.pcpus;
    let vcpu = |v: u8| {
        if u32::from(v) < pcpus { u32::from(v) / threads } else { u32::from(v) - pcpus + pcpus / threads }
    };
    let (rows, rest) = trace.as_chunks::<11>();
    assert!(rest.is_empty());
    let row = |row: &[u8; 11]| {
        let (time, [p, from, to]) = (*row.first_chunk().unwrap(), *row.last_chunk().unwrap());
        (time, [u32::from(p) / threads, vcpu(from), vcpu(to)])
    };
    rows.iter().map(row).collect()
}
