//! The machine and its CPU pools.

use vcpulab_host::{CpuMask, PoolId, TopologyConfig};
use vcpulab_spec::{CONSTANTS, Cgroups, POOL_0, Platform, PoolSpec, Spec};

use crate::file::raw::{RawHost, RawPool, RawTopology};
use crate::file::words::Hypervisor;
use crate::text::read::{Named, named};
use crate::text::units::CpuList;
use crate::write::params::raw_params;

pub(crate) fn raw_host(spec: &Spec) -> RawHost {
    let (host, pool) = (&spec.host, &spec.pools[POOL_0]);
    let constant =
        |name: &str| named(name, host.constants.get(name).expect("it is in the list of constants"));
    let drivers = match host.platform {
        Platform::Xen(drivers) => Some(drivers),
        Platform::Kvm(_) | Platform::BareMetal => None,
    };
    let kvm = host.platform.kvm();
    let costs = CONSTANTS.iter().filter(|doc| host.platform.has(doc));
    RawHost {
        hypervisor: if kvm.is_some() { Hypervisor::Kvm } else { Hypervisor::Xen }.into(),
        drivers: drivers.into(),
        bare_metal: (host.platform == Platform::BareMetal).into(),
        toolstack: host.toolstack.into(),
        polls_recorded: kvm.map(|kvm| kvm.polls_recorded).into(),
        cgroups: kvm.map(|kvm| if kvm.version == Cgroups::V1 { 1_u32 } else { 2 }).into(),
        isolated_cpus: kvm.and_then(|kvm| raw_cpus(&kvm.isolation.isolated)).into(),
        nohz_full: kvm.and_then(|kvm| raw_cpus(&kvm.isolation.nohz_full)).into(),
        halt_poll_us: kvm.map(|kvm| kvm.halt_poll.ns() / 1000).into(),
        profile: host.profile.clone().into(),
        pcpus: host.pcpus.into(),
        topology: host.topology.as_ref().map(raw_topology).into(),
        pcpus_per_socket: host.topology.is_none().then_some(host.pcpus_per_socket).into(),
        sched_gran: host.granularity.into(),
        creation: host.creation.into(),
        governor: host.governor.into(),
        scheduler: pool.policy.name.to_owned().into(),
        generation: pool.release.clone().into(),
        costs: Named(costs.map(|doc| constant(doc.name)).collect()).into(),
        params: raw_params(&pool.params, pool, spec),
    }
}

/// A set of pCPUs as a file states it; an empty one is not stated.
fn raw_cpus(cpus: &CpuMask) -> Option<CpuList> {
    (!cpus.is_empty()).then(|| CpuList::from(cpus))
}

pub(crate) fn raw_topology(topology: &TopologyConfig) -> RawTopology {
    let TopologyConfig { sockets, cores, threads, nodes, numbering } = *topology;
    RawTopology {
        sockets: sockets.into(),
        cores: cores.into(),
        threads: threads.into(),
        nodes: nodes.into(),
        numbering: numbering.into(),
    }
}

pub(crate) fn raw_pool(pool: &PoolSpec, spec: &Spec) -> RawPool {
    RawPool {
        pcpus: CpuList::from(&pool.pcpus).into(),
        scheduler: pool.policy.name.to_owned().into(),
        generation: pool.release.clone().into(),
        params: raw_params(&pool.params, pool, spec),
    }
}

/// The name of a pool.
pub(crate) fn pool_name(pool: PoolId, spec: &Spec) -> String {
    spec.pools[pool].name.clone()
}
