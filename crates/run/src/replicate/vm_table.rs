//! The result table of the VMs and daemons of a KVM host: what each costs and is denied in all.

use vcpulab_host::{DomId, HostState, Table, Throttling};
use vcpulab_measure::{DomainRow, ThreadRow, VmRow};
use vcpulab_spec::Spec;

/// Throttling of each domain by its limits.
pub(crate) type Throttled = Table<DomId, Throttling>;

/// Throttling of each domain by its limits, up to now.
pub(crate) fn throttled(host: &HostState) -> Throttled {
    (0..host.domain_count() as u32).map(|d| host.throttling(DomId(d))).collect()
}

/// A row for each VM and daemon, from the rows of the domains and of the threads that serve them, with the throttling
/// since `before`.
pub(crate) fn vm_rows(
    spec: &Spec,
    host: &HostState,
    before: &Throttled,
    (domains, threads): (&[DomainRow], &[ThreadRow]),
) -> Vec<VmRow> {
    let row = |(d, row): (DomId, &DomainRow)| {
        let serving = threads.iter().filter(|thread| thread.domain == row.domain);
        let (now, then) = (host.throttling(d), before.get(d).copied().unwrap_or_default());
        VmRow {
            replication: row.replication,
            domain: row.domain.clone(),
            elapsed_ns: row.elapsed_ns,
            vcpus_ns: row.running_ns,
            threads_ns: serving.map(|thread| thread.running_ns).sum(),
            steal_ns: row.runnable_ns,
            periods: now.periods - then.periods,
            throttled_periods: now.throttled_periods - then.throttled_periods,
            throttled_ns: (now.throttled_ns - then.throttled_ns).ns(),
        }
    };
    let rows = spec.domains.ids().zip(domains);
    rows.filter(|(d, _)| spec.domains[*d].guest.threads().is_some()).map(row).collect()
}
