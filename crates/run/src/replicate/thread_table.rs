//! The result table of the threads of a KVM host that serve its VMs.

use vcpulab_measure::{ThreadRow, VcpuRow};
use vcpulab_spec::{ServiceThread, Spec};

/// A row for each thread, from those of all vCPUs.
pub(crate) fn thread_rows(spec: &Spec, vcpus: &[VcpuRow]) -> Vec<ThreadRow> {
    let Some((host, threads)) = spec.host_threads() else { return Vec::new() };
    let own = vcpus.iter().filter(|row| row.domain == spec.domains[host].name);
    let row = |(thread, row): (&ServiceThread, &VcpuRow)| {
        let (domain, kind) = (spec.domains[thread.of].name.clone(), thread.kind.name());
        ThreadRow {
            replication: row.replication,
            thread: format!("{kind}-{domain}"),
            domain,
            kind,
            vcpu: row.vcpu,
            elapsed_ns: row.elapsed_ns,
            running_ns: row.running_ns,
            runnable_ns: row.runnable_ns,
            executions: row.executions,
            wakeups: row.wakeups,
            migrations: row.migrations,
        }
    };
    threads.iter().zip(own).map(row).collect()
}
