//! From a checked scenario to what the engine takes.

use vcpulab_guest::{AppConfig, Phase, PhaseEvent};
use vcpulab_host::{
    Action, Costs, CpuMask, DomId, DomainConfig, HostConfig, TimedAction, VcpuConfig, VcpuId,
};
use vcpulab_io::{ClientConfig, DriverCosts, GuestConfig, MachineConfig, NetworkCosts, NicConfig};

use crate::profile::Constants;
use crate::spec::{AppSpec, Change, ClientSpec, DomainSpec, EventSpec, LifeChange, PhaseSpec, Spec};

/// The host of a scenario. The same for all its replications: they differ in what surrounds it.
pub fn host_config(spec: &Spec) -> HostConfig {
    HostConfig {
        pcpus: spec.host.pcpus,
        pcpus_per_socket: spec.host.pcpus_per_socket,
        pools: spec.pools.iter().map(|pool| pool.pcpus).collect(),
        costs: costs(&spec.host.constants),
        domains: spec.domains.iter().map(domain).collect(),
        actions: starts(spec)
            .chain(spec.actions.iter().flat_map(|action| actions(spec, action.at, &action.change)))
            .collect(),
    }
}

fn costs(constants: &Constants) -> Costs {
    Costs {
        decision_ns: constants.decision_ns,
        context_switch_ns: constants.context_switch_ns,
        interrupt_ns: constants.interrupt_ns,
        l2_bytes: constants.l2_bytes as u64,
        l3_bytes: constants.l3_bytes as u64,
        l3_pcpus: constants.l3_pcpus as u32,
        cache_line_bytes: constants.cache_line_bytes as u64,
        l2_miss_ps: constants.l2_miss_ps,
        l3_miss_ps: constants.l3_miss_ps,
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

/// What a domain runs, each instance an application of its own.
pub fn apps(domain: &DomainSpec, constants: &Constants) -> Vec<AppConfig> {
    let app = |app: &AppSpec| {
        let (config, instances) = match app {
            AppSpec::Hog { instances } => (AppConfig::Hog, *instances),
            AppSpec::Periodic { run_ns, period_ns, instances } => {
                (AppConfig::Periodic { run_ns: *run_ns, period_ns: *period_ns }, *instances)
            }
            AppSpec::Phases { phases, rounds, instances } => (
                AppConfig::Phases { phases: phases.iter().map(phase).collect(), rounds: *rounds },
                *instances,
            ),
            AppSpec::WebServer { request_ns, connections_max } => {
                let spread_percent = constants.cost_spread_percent;
                let (request_ns, connections_max) = (*request_ns, *connections_max);
                (AppConfig::WebServer { request_ns, spread_percent, connections_max }, 1)
            }
        };
        std::iter::repeat_n(config, instances as usize)
    };
    domain.apps.iter().flat_map(app).collect()
}

fn phase(phase: &PhaseSpec) -> Phase {
    let event = |event: &EventSpec| match *event {
        EventSpec::Run(span) => PhaseEvent::Run(span),
        EventSpec::Runtime(span) => PhaseEvent::Runtime(span),
        EventSpec::Sleep(span) => PhaseEvent::Sleep(span),
        EventSpec::Timer(span) => PhaseEvent::Timer(span),
    };
    Phase { rounds: phase.rounds, events: phase.events.iter().map(event).collect() }
}

/// What each of them is called in a scenario, in the same order.
pub fn app_kinds(domain: &DomainSpec) -> Vec<&'static str> {
    let kind = |app: &AppSpec| {
        let (kind, instances) = match app {
            AppSpec::Hog { instances } => ("hog", *instances),
            AppSpec::Periodic { instances, .. } => ("periodic", *instances),
            AppSpec::Phases { instances, .. } => ("phases", *instances),
            AppSpec::WebServer { .. } => ("web-server", 1),
        };
        std::iter::repeat_n(kind, instances as usize)
    };
    domain.apps.iter().flat_map(kind).collect()
}

/// What surrounds the host in one replication.
pub fn machine_config(spec: &Spec, seed: u64) -> MachineConfig {
    let constants = &spec.host.constants;
    let guest = |(index, domain): (usize, &DomainSpec)| GuestConfig {
        first_vcpu: vcpu_id(spec, index, 0),
        vcpus: domain.affinity.len() as u32,
        working_set_bytes: domain.working_set_bytes,
        apps: apps(domain, constants),
        nic: domain.nic,
        network: NetworkCosts {
            upcall_ns: constants.guest_upcall_ns,
            receive_ns: constants.guest_receive_ns,
            send_ns: constants.guest_send_ns,
        },
        driver: domain.driver_domain.then_some(DriverCosts {
            upcall_ns: constants.driver_upcall_ns,
            receive_ns: constants.driver_receive_ns,
            send_ns: constants.driver_send_ns,
        }),
    };
    let client = |client: &ClientSpec| ClientConfig {
        server: client.server,
        rate_per_s: client.rate_per_s,
        file_bytes: client.file_bytes,
        connections_max: client.connections_max,
    };
    MachineConfig {
        seed,
        guests: spec.domains.iter().enumerate().map(guest).collect(),
        nic: NicConfig {
            bits_per_s: constants.nic_bits_per_s,
            interrupt_gap_ns: constants.nic_interrupt_gap_ns,
            latency_ns: constants.link_latency_ns,
            ring_slots: constants.ring_slots as usize,
        },
        spread_percent: constants.cost_spread_percent,
        clients: spec.clients.iter().map(client).collect(),
    }
}

/// Domains that are not there from the beginning are created by an action.
fn starts(spec: &Spec) -> impl Iterator<Item = TimedAction> {
    let later = spec.domains.iter().enumerate().filter(|(_, domain)| domain.start_ns > 0);
    later.map(|(index, domain)| TimedAction {
        at: domain.start_ns,
        action: Action::Create(DomId(index as u32)),
    })
}

/// An action of the scenario as actions of the host: a change of affinity is one for each vCPU.
fn actions(spec: &Spec, at: i64, change: &Change) -> Vec<TimedAction> {
    let id = |index: usize| DomId(index as u32);
    let actions = match change {
        Change::Adjust(domain, params) => vec![Action::Adjust(id(*domain), params.clone())],
        Change::AdjustGlobal(pool, params) => vec![Action::AdjustGlobal(*pool, params.clone())],
        Change::MovePool(domain, pool) => vec![Action::MovePool(id(*domain), *pool)],
        Change::Pause(domain) => vec![Action::Pause(id(*domain))],
        Change::Unpause(domain) => vec![Action::Unpause(id(*domain))],
        Change::Life(domain, change) => {
            let action = match change {
                LifeChange::Create => Action::Create,
                LifeChange::Shutdown => Action::Shutdown,
                LifeChange::Reboot => Action::Reboot,
                LifeChange::Destroy => Action::Destroy,
                LifeChange::Save => Action::Save,
                LifeChange::Restore => Action::Restore,
            };
            vec![action(id(*domain))]
        }
        Change::Plug(domain, vcpu, on) => {
            let action = if *on { Action::Plug } else { Action::Unplug };
            vec![action(vcpu_id(spec, *domain, *vcpu))]
        }
        Change::Affinity(domain, vcpu, mask) => {
            let all = 0..spec.domains[*domain].affinity.len() as u32;
            let chosen = vcpu.map_or(all, |vcpu| vcpu..vcpu + 1);
            chosen.map(|vcpu| Action::Affinity(vcpu_id(spec, *domain, vcpu), *mask)).collect()
        }
    };
    actions.into_iter().map(|action| TimedAction { at, action }).collect()
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
