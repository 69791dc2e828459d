//! From a checked scenario to what the engine takes.

use vcpulab_guest::{KernelConfig, Random};
use vcpulab_host::{
    Action, Costs, CpuMask, DomId, DomainConfig, HostConfig, Span, TimedAction, VcpuConfig, VcpuId,
};
use vcpulab_io::{GuestConfig, MachineConfig};

use crate::ending::Endings;
use crate::phases::{Channels, Meetings};
use crate::spec::{ActionSpec, Change, DomainSpec, Drivers, Spec};
use crate::{apps, client_machines, clients, disks, files, network};

/// The purpose of the random number that says when applications begin: others' are in `vcpulab-io` (up to `4 << 32`) and in
/// `vcpulab-guest` (`5 << 32`).
const START: u64 = 6 << 32;

/// The host of a scenario. The same for all its replications: they differ in what surrounds it.
pub fn host_config(spec: &Spec) -> HostConfig {
    HostConfig {
        pcpus: spec.host.pcpus,
        pcpus_per_socket: spec.host.pcpus_per_socket,
        pools: spec.pools.iter().map(|pool| pool.pcpus).collect(),
        costs: costs(spec),
        domains: spec.domains.iter().map(domain).collect(),
        actions: actions(spec),
    }
}

/// On bare metal there is no hypervisor whose work would cost anything.
fn costs(spec: &Spec) -> Costs {
    let constants = &spec.host.constants;
    let hypervisor = |cost| if spec.host.drivers == Drivers::BareMetal { 0 } else { cost };
    Costs {
        decision_ns: hypervisor(constants.decision_ns),
        context_switch_ns: hypervisor(constants.context_switch_ns),
        interrupt_ns: hypervisor(constants.interrupt_ns),
        l2_bytes: constants.l2_bytes as u64,
        l3_bytes: constants.l3_bytes as u64,
        l3_pcpus: constants.l3_pcpus as u32,
        cache_line_bytes: constants.cache_line_bytes as u64,
        l2_miss_ps: constants.l2_miss_ps / constants.misses_at_once,
        l3_miss_ps: constants.l3_miss_ps / constants.misses_at_once,
    }
}

fn domain(domain: &DomainSpec) -> DomainConfig {
    let vcpu = |affinity: &Option<CpuMask>| VcpuConfig { start: Some(0), affinity: *affinity };
    DomainConfig {
        number: domain.number,
        pool: domain.pool,
        params: domain.params.clone(),
        vcpus: domain.affinity.iter().map(vcpu).collect(),
    }
}

/// What each application of a domain is called in a scenario, in the order in which the engine counts them.
pub fn app_kinds(domain: &DomainSpec) -> Vec<&'static str> {
    let kinds = domain.apps.iter().map(|app| std::iter::repeat_n(app.kind(), app.instances() as usize));
    kinds.flatten().collect()
}

/// The services of a scenario, by number: each a domain and the position of the application there.
fn services(spec: &Spec) -> Vec<(usize, usize)> {
    let of = |(index, domain): (usize, &DomainSpec)| {
        let serving = domain.apps.iter().enumerate().filter(|(_, app)| app.serves());
        serving.map(move |(position, _)| (index, position)).collect::<Vec<_>>()
    };
    spec.domains.iter().enumerate().flat_map(of).collect()
}

/// Where an application stands among a domain's as the engine counts them: each instance is one of its own.
fn engine_position(domain: &DomainSpec, position: usize) -> usize {
    domain.apps[..position].iter().map(|app| app.instances() as usize).sum()
}

/// What surrounds the host in one replication.
pub fn machine_config(spec: &Spec, seed: u64) -> MachineConfig {
    let (constants, drivers) = (&spec.host.constants, spec.host.drivers);
    let services = services(spec);
    let channels = Channels::of(&spec.domains);
    let later = Random::new(seed, 0, START).below(spec.start_spread_ns as u64 + 1) as Span;
    let number = |service: (usize, usize)| {
        services.iter().position(|&known| known == service).expect("a checked scenario refers to services")
    };
    let apps = |domain: &DomainSpec| {
        let meetings = Meetings::of(domain);
        let instances = domain.apps.iter().flat_map(|app| {
            let service = |value| number(apps::service_of(value)) as i64;
            let mut config = apps::config(app, &service, &meetings, &channels, constants);
            config.delay += later;
            std::iter::repeat_n(config, app.instances() as usize)
        });
        instances.collect()
    };
    let guest = |(index, domain): (usize, &DomainSpec)| {
        let mut devices = spec.cards.iter().chain(spec.disks.iter().map(|(device, _)| device));
        let owns = devices.any(|device| device.owner == Some(index));
        GuestConfig {
            first_vcpu: vcpu_id(spec, index, 0),
            kernel: KernelConfig {
                vcpus: domain.affinity.len(),
                apps: apps(domain),
                slice_ns: constants.task_slice_ns,
                idle_tick: domain.idle_tick,
                page_fault_ns: if drivers == Drivers::BareMetal { 0 } else { constants.page_fault_ns },
            },
            working_set_bytes: domain.working_set_bytes,
            interface: network::interface(index, spec),
            network: network::network_costs(domain, drivers, constants),
            block: disks::virtual_disk(index, spec),
            files: files::served(index, spec),
            driver: (owns || domain.driver_domain).then(|| network::driver_costs(domain, drivers, constants)),
        }
    };
    MachineConfig {
        seed,
        guests: spec.domains.iter().enumerate().map(guest).collect(),
        nics: network::cards(spec),
        disks: disks::disks(spec),
        services: services
            .iter()
            .map(|&(domain, position)| (domain, engine_position(&spec.domains[domain], position)))
            .collect(),
        channels: channels.len(),
        // Network back ends were tasklets until well into the days of Xen 4.
        packets_in_turn: ["xen2", "xen3"].iter().any(|old| spec.pools[0].generation.name.starts_with(old)),
        initial_segments: constants.tcp_initial_segments as u32,
        spread_percent: constants.cost_spread_percent,
        clients: spec
            .clients
            .iter()
            .map(|client| clients::config(client, number(client.service), spec))
            .collect(),
        client_machines: spec.client_machines.iter().map(client_machines::config).collect(),
        profiler: crate::monitors::profiler(spec),
    }
}

/// All that the toolstack does, in the order of time: what begins a life, and what each action of the scenario comes to.
fn actions(spec: &Spec) -> Vec<TimedAction> {
    let starts = spec.domains.iter().enumerate().filter(|(_, domain)| domain.start_ns > 0);
    let mut all: Vec<TimedAction> = starts
        .map(|(index, domain)| TimedAction {
            at: domain.start_ns,
            action: Action::Create(DomId(index as u32)),
        })
        .collect();
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

/// An action of the scenario as actions of the host: a change of affinity is one for each vCPU. (Those on lives are not here.)
fn actions_for(spec: &Spec, change: &Change) -> Vec<Action> {
    let id = |index: usize| DomId(index as u32);
    match change {
        Change::Adjust(domain, params) => vec![Action::Adjust(id(*domain), params.clone())],
        Change::AdjustGlobal(pool, params) => vec![Action::AdjustGlobal(*pool, params.clone())],
        Change::MovePool(domain, pool) => vec![Action::MovePool(id(*domain), *pool)],
        Change::Pause(domain) => vec![Action::Pause(id(*domain))],
        Change::Unpause(domain) => vec![Action::Unpause(id(*domain))],
        Change::Life(..) => Vec::new(),
        Change::Plug(domain, vcpu, on) => {
            let action = if *on { Action::Plug } else { Action::Unplug };
            vec![action(vcpu_id(spec, *domain, *vcpu))]
        }
        Change::Affinity(domain, vcpu, mask) => {
            let all = 0..spec.domains[*domain].affinity.len() as u32;
            let chosen = vcpu.map_or(all, |vcpu| vcpu..vcpu + 1);
            chosen.map(|vcpu| Action::Affinity(vcpu_id(spec, *domain, vcpu), *mask)).collect()
        }
    }
}

/// The vCPU of that number in a domain. The idle vCPUs come first, then the domains' in order of creation.
pub fn vcpu_id(spec: &Spec, domain: usize, vcpu: u32) -> VcpuId {
    let before: usize = spec.domains[..domain].iter().map(|domain| domain.affinity.len()).sum();
    VcpuId(spec.host.pcpus + before as u32 + vcpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use vcpulab_host::PcpuId;

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
        let expected = expected
            .map(|(s, v, mask)| TimedAction { at: s * 1_000_000_000, action: Action::Affinity(v, mask) });
        assert_eq!(config.actions, expected);
        assert_eq!(config.costs, Costs::ZERO);
    }
}
