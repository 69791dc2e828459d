//! Threads, cores and soft affinity: where vCPUs run that may run anywhere.

use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    CpuMask, DomainConfig, Host, HostConfig, HostState, Params, PcpuId, TopologyConfig, VcpuConfig, VcpuId,
};
use vcpulab_sched::{Generation, find};

use crate::alone;
use crate::hosts::{Allow, END, MS, case, on_every_policy, run, topology};

/// Hogs that start one after the other, each with its soft affinity.
fn hogs(topology: TopologyConfig, soft: &[Option<CpuMask>]) -> HostConfig {
    let vcpus = soft.iter().zip(0..);
    let vcpus = vcpus.map(|(&soft_affinity, number): (_, i64)| VcpuConfig {
        start: Some(number * 3 * MS),
        soft_affinity,
        ..VcpuConfig::default()
    });
    let domains = vec![DomainConfig { number: 1, vcpus: vcpus.collect(), ..DomainConfig::default() }];
    HostConfig { pcpus: topology.pcpus(), topology: Some(topology), domains, ..HostConfig::default() }
}

/// Runs hogs for a while in one run queue, and asks where they are.
fn after_a_while<R>(
    config: &HostConfig,
    generation: &Generation,
    params: Params,
    ask: impl Fn(&HostState) -> R,
) -> R {
    let params = params.with("runqueue", 4).with("max_cpus_runqueue", 256);
    let scheduler = alone("credit2", generation.name, &params, config.pcpus);
    let mut programs = Programs::default();
    for number in 0..config.domains[0].vcpus.len() as u32 {
        programs.set(VcpuId(config.pcpus + number), Program { steps: vec![Step::Hog], repeat: false });
    }
    let mut host = Host::new(config, scheduler, programs, ()).unwrap();
    host.run_until(END).unwrap();
    ask(host.context())
}

/// The generations of Credit2 that look at cores.
fn generations() -> impl Iterator<Item = &'static Generation> {
    find("credit2").unwrap().generations.iter().filter(|generation| generation.name != "xen4.4.1")
}

fn busy_cores(ctx: &HostState) -> usize {
    let busy = ctx.all_pcpus().iter().filter(|&p| !ctx.is_idle(ctx.executes(p)));
    let mut cores: Vec<u32> = busy.map(|p| ctx.core(p)).collect();
    cores.sort_unstable();
    cores.dedup();
    cores.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// As long as there are idle cores, nobody shares one; where power is saved, no core is begun before the others are full.
    #[test]
    fn credit2_spreads_over_cores_or_packs_them(topology in topology(), count in 1..18usize) {
        let pcpus = topology.pcpus() as usize;
        let count = count.min(pcpus);
        let config = hogs(topology, &vec![None; count]);
        let threads = topology.threads as usize;
        for generation in generations() {
            let spread = after_a_while(&config, generation, Params::new(), busy_cores);
            prop_assert_eq!(spread, count.min(pcpus / threads));
            let saving = Params::new().with("smt_power_savings", 1);
            let packed = after_a_while(&config, generation, saving, busy_cores);
            prop_assert_eq!(packed, count.div_ceil(threads));
        }
    }

    /// A vCPU that finds an idle pCPU which it prefers runs on one.
    #[test]
    fn credit2_runs_a_lone_vcpu_where_it_prefers_to(topology in topology(), bits in 1..1u32 << 18) {
        let soft: CpuMask = (0..topology.pcpus()).filter(|p| bits >> p & 1 == 1).map(PcpuId).collect();
        let config = hogs(topology, &[Some(soft)]);
        for generation in generations() {
            let own = after_a_while(&config, generation, Params::new(), |ctx| ctx.processor(VcpuId(config.pcpus)));
            prop_assert!(soft.contains(own) || soft.is_empty(), "{soft} does not have {}", own.0);
        }
    }

    /// Whoever prefers all pCPUs prefers none.
    #[test]
    fn a_soft_affinity_with_every_pcpu_changes_nothing(
        case in case(Allow { affinity: true, actions: false, costs: true, pools: false, cores: false, topology: true })
    ) {
        let (mut all, mut none) = (case.clone(), case);
        let every = CpuMask::first_n(all.config.pcpus);
        for (case, soft) in [(&mut all, Some(every)), (&mut none, None)] {
            case.config.creation = Default::default();
            for vcpu in case.config.domains.iter_mut().flat_map(|domain| &mut domain.vcpus) {
                vcpu.soft_affinity = soft;
            }
        }
        on_every_policy(|policy, generation| {
            let (all, none) = (run(policy, generation, &all, false), run(policy, generation, &none, false));
            assert_eq!(all, none, "{policy} {}", generation.name);
        });
    }
}
