//! The threads, cores, sockets and nodes of a machine, and what is scheduled together.

use vcpulab_host::topology::resources;
use vcpulab_host::{CpuMask, Granularity, HostConfig, TopologyConfig};
use vcpulab_sched::host_rules;
use vcpulab_spec::{HostSpec, PoolSpec};

use crate::check::fields::Checker;
use crate::file::raw::RawHost;
use crate::file::topology::topology;
use crate::text::problem::Problem;
use crate::text::read::At;

/// The topology that the scenario gives, or else the profile's, unless the scenario gives a number of pCPUs.
pub(crate) fn host_topology(
    checker: &mut Checker<'_, '_>,
    raw: &RawHost,
    of_profile: Option<TopologyConfig>,
    pcpus: u32,
) -> Option<TopologyConfig> {
    let Some(given) = &raw.topology.0 else {
        return of_profile.filter(|_| raw.pcpus.is_none() && raw.pcpus_per_socket.is_none());
    };
    if let Some(At { place, .. }) = &raw.pcpus_per_socket.0 {
        let problem = Problem::says("`pcpus_per_socket` and `topology` exclude each other");
        checker.report.error(place, problem.hint("`topology` says how many cores and threads a socket has"));
    }
    topology(given, pcpus, !raw.pcpus.is_none(), checker.report)
}

/// Reports pools that cannot schedule vCPUs by cores or sockets, if the scenario asks for that.
pub(crate) fn granularity<'p>(
    checker: &mut Checker<'_, '_>,
    raw: &RawHost,
    host: &HostSpec,
    pools: impl Iterator<Item = &'p PoolSpec>,
) {
    let Some(At { place, .. }) = raw.sched_gran.0.as_ref().filter(|_| host.granularity != Granularity::Cpu)
    else {
        return;
    };
    let together = resources(&HostConfig {
        pcpus: host.pcpus,
        pcpus_per_socket: host.pcpus_per_socket,
        topology: host.topology,
        granularity: host.granularity,
        ..HostConfig::default()
    });
    for PoolSpec { name, pcpus, policy, generation, .. } in pools {
        if !host_rules(policy.name, generation.name).is_some_and(|rules| rules.core_scheduling()) {
            let message = format!("`{}` of {} schedules each vCPU by itself", policy.name, generation.name);
            checker
                .report
                .error(place, Problem::says(message).hint("core scheduling is Xen's, from 4.13 on"));
        }
        let torn = |resource: &&CpuMask| {
            let inside = resource.and(pcpus);
            !inside.is_empty() && inside != **resource
        };
        if let Some(resource) = together.iter().find(torn) {
            let message =
                format!("pool `{name}` has only some of the pCPUs {resource}, which are scheduled together");
            checker.report.error(place, Problem::says(message));
        }
    }
}
