//! Domains.

use vcpulab_host::CpuMask;
use vcpulab_spec::{DomainSpec, Guest, Spec, XenDomain};

use crate::file::raw::{RawApp, RawDomain};
use crate::text::read::{At, Field, OneOrMany};
use crate::text::units::{CpuList, Size};
use crate::write::apps::raw_app;
use crate::write::devices::{raw_netfront, raw_virtual_disk};
use crate::write::host::pool_name;
use crate::write::kvm::raw_guest;
use crate::write::params::raw_params;

pub(crate) fn raw_domain(domain: &DomainSpec, spec: &Spec) -> RawDomain {
    let apps: Vec<At<RawApp>> = domain.apps.iter().map(|app| raw_app(app, spec).into()).collect();
    let nic = domain.nic.as_ref().map(|nic| raw_netfront(nic, spec));
    let disk = domain.disk.as_ref().map(|disk| raw_virtual_disk(disk, spec));
    let XenDomain { driver_domain, forwarding } = match domain.guest {
        Guest::XenDomain(xen) => xen,
        Guest::Vm(_) | Guest::Daemon(_) | Guest::HostThreads(_) => XenDomain::default(),
    };
    RawDomain {
        count: Field::default(),
        vcpus: domain.vcpus().into(),
        pool: spec.host.platform.kvm().is_none().then(|| pool_name(domain.pool, spec)).into(),
        start: domain.start.into(),
        affinity: raw_masks(&domain.affinity).into(),
        soft_affinity: raw_masks(&domain.soft_affinity).into(),
        bound_by: domain.bound.into(),
        memory_nodes: raw_nodes(&domain.memory_nodes).into(),
        driver_domain: driver_domain.into(),
        forwarding: forwarding.into(),
        working_set: Size(domain.working_set_bytes as i64).into(),
        nic: nic.into(),
        disk: disk.into(),
        page_cache: Size(domain.page_cache_bytes as i64).into(),
        memory: Size(domain.memory_bytes as i64).into(),
        shutdown: domain.shutdown.into(),
        idle_tick: domain.idle_tick.map(|tick| tick.period_ns).into(),
        idle_tick_cpu: domain.idle_tick.map(|tick| tick.cpu_ns).into(),
        busy_tick_cpu: domain.idle_tick.map(|tick| tick.busy_ns).into(),
        idle_tick_at: domain.idle_tick.and_then(|tick| tick.at_ns).into(),
        wake_cpu: domain.wake_cpu.into(),
        idle_cpu: domain.idle_cpu.into(),
        on_crash: domain.on_crash.into(),
        app: (!apps.is_empty()).then_some(apps).into(),
        params: raw_params(&domain.params, &spec.pools[domain.pool], spec),
        ..raw_guest(&domain.guest)
    }
}

/// The nodes that hold the domain's memory, where the scenario gives them.
fn raw_nodes(nodes: &[u32]) -> Option<OneOrMany<i64>> {
    match *nodes {
        [] => None,
        [node] => Some(OneOrMany::One(node.into())),
        ref nodes => Some(OneOrMany::Many(nodes.iter().map(|&node| i64::from(node).into()).collect())),
    }
}

/// Affinities as a scenario gives them: a set for all vCPUs, or a set for each; `None` where there are no vCPUs.
fn raw_masks(masks: &[Option<CpuMask>]) -> Option<OneOrMany<CpuList>> {
    let list = |mask: &Option<_>| match mask {
        Some(mask) => CpuList::from(mask),
        None => CpuList::all(),
    };
    let first = masks.first()?;
    Some(match masks.iter().all(|mask| mask == first) {
        true => OneOrMany::One(list(first)),
        false => OneOrMany::Many(masks.iter().map(|mask| list(mask).into()).collect()),
    })
}
