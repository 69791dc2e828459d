//! The host: its costs, its domains, and the toolstack's actions.

use vcpulab_host::{
    Action, Bound, Costs, CpuMask, DomId, DomainConfig, Hardware, HostConfig, Isolation, Span, ThreadConfig,
    Time, TimedAction, TopologyConfig, VcpuConfig, VcpuId,
};
use vcpulab_spec::{ActionSpec, Affinity, Change, DomainSpec, POOL_0, Platform, Spec, within};

use crate::assemble::endings::Endings;
use crate::assemble::groups::Groups;

/// The host of a scenario. The same for all its replications: they differ in what surrounds it.
pub fn host_config(spec: &Spec) -> HostConfig {
    let Groups { all, threads } = Groups::of(spec);
    HostConfig {
        pcpus: spec.host.pcpus,
        topology: spec.host.topology,
        pcpus_per_socket: spec.host.pcpus_per_socket,
        creation: spec.host.creation,
        granularity: spec.host.granularity,
        pools: spec.pools.iter().map(|pool| pool.pcpus).collect(),
        costs: costs(spec),
        hardware: spec.host.topology.map_or(Hardware::NONE, |_| hardware(spec)),
        domains: spec.domains.enumerate().map(|(d, it)| domain(spec, d, it, &threads[d])).collect(),
        groups: all,
        isolation: spec.host.platform.kvm().map_or_else(Isolation::default, |kvm| kvm.isolation),
        actions: actions(spec),
    }
}

/// On bare metal there is no hypervisor whose work would cost anything.
fn costs(spec: &Spec) -> Costs {
    let constants = &spec.host.constants;
    let bare_metal = spec.host.platform == Platform::BareMetal;
    let hypervisor = |cost| if bare_metal { Span::ZERO } else { Span::from_ns(cost) };
    // The schedulers of other pools are assumed to take as long as the first one.
    let percent = spec.pools[POOL_0].policy.decision_cost.and_then(|name| constants.get(name)).unwrap_or(100);
    let deciding = |cost: i64| hypervisor(cost * percent / 100);
    Costs {
        decision_ns: hypervisor(constants.decision_ns),
        context_switch_ns: hypervisor(constants.context_switch_ns),
        resume_ns: hypervisor(constants.resume_ns),
        block_ns: deciding(constants.block_ns),
        wake_ns: deciding(constants.wake_ns),
        timer_ns: hypervisor(constants.timer_ns),
        interrupt_ns: hypervisor(constants.interrupt_ns),
        ipi_ns: hypervisor(constants.ipi_ns),
        lock_ns: hypervisor(constants.lock_ns),
        l2_bytes: constants.l2_bytes as u64,
        l3_bytes: constants.l3_bytes as u64,
        l3_pcpus: constants.l3_pcpus as u32,
        cache_line_bytes: constants.cache_line_bytes as u64,
        l2_miss_ps: constants.l2_miss_ps / constants.misses_at_once,
        l3_miss_ps: constants.l3_miss_ps / constants.misses_at_once,
    }
}

/// Hardware of the host. Cores, nodes and power are shared only where the scenario gives a topology.
fn hardware(spec: &Spec) -> Hardware {
    let constants = &spec.host.constants;
    let of = |name: String| constants.get(&name).expect("it is a constant's name") as u32;
    let kinds = Bound::ALL.map(|(word, _)| word);
    let or = |mhz: i64, other: i64| if mhz == 0 { other } else { mhz };
    let nominal = constants.cpu_mhz;
    let highest = or(constants.turbo_one_core_mhz, nominal);
    Hardware {
        beside_percent: kinds.map(|a| kinds.map(|b| of(format!("smt_{a}_beside_{b}_percent")))),
        memory_share_percent: kinds.map(|a| of(format!("memory_share_{a}_percent"))),
        bandwidth_mb_per_s: kinds.map(|a| of(format!("bandwidth_{a}_mb_per_s"))),
        node_mb_per_s: constants.node_mb_per_s as u32,
        link_mb_per_s: constants.link_mb_per_s as u32,
        numa_distance: constants.numa_distance as u32,
        nominal_mhz: nominal as u32,
        turbo_one_core_mhz: highest as u32,
        turbo_all_cores_mhz: or(constants.turbo_all_cores_mhz, nominal.min(highest)) as u32,
        min_mhz: or(constants.min_mhz, highest) as u32,
        governor: spec.host.governor,
        governor_sample: Span::from_ns(constants.governor_sample_ns),
        governor_up_percent: constants.governor_up_percent as u32,
    }
}

/// The nodes that hold a domain's memory: as the toolstack allocates it, those of the pCPUs that its vCPUs prefer, or else may run on.
fn memory_nodes(domain: &DomainSpec, allowed: &[Option<CpuMask>], topology: &TopologyConfig) -> Vec<u32> {
    if !domain.memory_nodes.is_empty() {
        return domain.memory_nodes.clone();
    }
    let all = CpuMask::first_n(topology.pcpus());
    let of = |vcpu: usize| {
        let hard = allowed[vcpu].unwrap_or(all);
        let soft = domain.soft_affinity.get(vcpu).copied().flatten().map_or(hard, |soft| soft.and(&hard));
        if soft.is_empty() { hard } else { soft }
    };
    let masks = (0..domain.affinity.len()).map(of);
    let mut nodes: Vec<u32> =
        masks.flat_map(|mask| mask.iter().map(|p| topology.node(p)).collect::<Vec<_>>()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn domain(spec: &Spec, d: DomId, domain: &DomainSpec, threads: &[ThreadConfig]) -> DomainConfig {
    let own = domain.affinity.iter().zip(0..);
    let allowed: Vec<_> = own.map(|(own, number)| within(spec.cpuset(d, number), *own)).collect();
    let vcpu = |(number, affinity): (usize, &Option<CpuMask>)| VcpuConfig {
        start: Some(Span::ZERO),
        affinity: *affinity,
        soft_affinity: domain.soft_affinity.get(number).copied().flatten(),
        thread: threads[number],
    };
    DomainConfig {
        number: domain.number,
        pool: domain.pool,
        params: domain.params.clone(),
        bound: domain.bound,
        memory_nodes: spec
            .host
            .topology
            .map_or_else(Vec::new, |topology| memory_nodes(domain, &allowed, &topology)),
        vcpus: allowed.iter().enumerate().map(vcpu).collect(),
    }
}

/// All actions of the toolstack, in the order of time: the beginnings of lives, then the steps of each action.
fn actions(spec: &Spec) -> Vec<TimedAction> {
    let starts = spec.domains.enumerate().filter(|(_, domain)| domain.start > Time::ZERO);
    let mut all: Vec<TimedAction> =
        starts.map(|(d, domain)| TimedAction { at: domain.start, action: Action::Create(d) }).collect();
    let mut ordered: Vec<&ActionSpec> = spec.actions.iter().collect();
    ordered.sort_by_key(|action| action.at);
    let mut endings = Endings::default();
    for &ActionSpec { at, ref change } in ordered {
        match *change {
            Change::Life(domain, change) => endings.change(spec, domain, change, at),
            ref change => endings.other(at, actions_for(spec, change)),
        }
    }
    all.extend(endings.actions());
    all
}

/// An action of the scenario as actions of the host: a change of affinity is one for each vCPU. (Changes of lives are in
/// `endings`.)
fn actions_for(spec: &Spec, change: &Change) -> Vec<Action> {
    match change {
        Change::Adjust(domain, params) => vec![Action::Adjust(*domain, params.clone())],
        Change::AdjustGlobal(pool, params) => vec![Action::AdjustGlobal(*pool, params.clone())],
        Change::MovePool(domain, pool) => vec![Action::MovePool(*domain, *pool)],
        Change::Pause(domain) => vec![Action::Pause(*domain)],
        Change::Unpause(domain) => vec![Action::Unpause(*domain)],
        Change::Life(..) => Vec::new(),
        Change::Online(domain, vcpu, online) => {
            let action = if *online { Action::Online } else { Action::Offline };
            vec![action(vcpu_id(spec, *domain, *vcpu))]
        }
        Change::Affinity(domain, vcpu, affinity) => {
            let all = 0..spec.domains[*domain].vcpus();
            let chosen = vcpu.map_or(all, |vcpu| vcpu..vcpu + 1);
            let action = |vcpu| {
                let v = vcpu_id(spec, *domain, vcpu);
                let left = |own| within(spec.cpuset(*domain, vcpu), Some(own)).unwrap_or(own);
                match *affinity {
                    Affinity::Hard(hard) => Action::Affinity(v, left(hard)),
                    Affinity::Soft(soft) => Action::SoftAffinity(v, soft),
                    Affinity::Both(hard, soft) => Action::BothAffinities(v, left(hard), soft),
                }
            };
            chosen.map(action).collect()
        }
    }
}

/// The vCPU of that number in a domain.
fn vcpu_id(spec: &Spec, domain: DomId, vcpu: u32) -> VcpuId {
    let first = first_vcpus(spec).nth(domain.index()).expect("the domain is the scenario's");
    VcpuId(first.0 + vcpu)
}

/// The first vCPU of each domain. The idle vCPUs come first, then the domains' in order of creation.
pub fn first_vcpus(spec: &Spec) -> impl Iterator<Item = VcpuId> + '_ {
    spec.domains.iter().scan(spec.host.pcpus, |next, domain| {
        let first = VcpuId(*next);
        *next += domain.vcpus();
        Some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_host::PcpuId;
    use vcpulab_scenario::Scenario;

    #[test]
    fn actions_name_the_hosts_own_numbers() {
        let text = "[host]\nscheduler = \"credit\"\npcpus = 4\nprofile = \"exact\"\n[domain.a]\nvcpus = 2\n[domain.b]\nvcpus = 2\n\
             [[action]]\nat = \"1s\"\nop = \"affinity\"\ndomain = \"b\"\naffinity = \"1\"\n\
             [[action]]\nat = \"2s\"\nop = \"affinity\"\ndomain = \"b\"\nvcpu = 1\naffinity = \"all\"\n";
        let config = host_config(&Scenario::parse(text, "f").unwrap());
        let expected = [
            (1, VcpuId(6), CpuMask::only(PcpuId(1))),
            (1, VcpuId(7), CpuMask::only(PcpuId(1))),
            (2, VcpuId(7), CpuMask::first_n(4)),
        ];
        let expected = expected.map(|(s, v, mask)| TimedAction {
            at: Time::ZERO + Span::from_secs(s),
            action: Action::Affinity(v, mask),
        });
        assert_eq!(config.actions, expected);
        assert_eq!(config.costs, Costs::ZERO);
    }
}
