//! The result table of the traffic of each domain's devices.

use vcpulab_host::DomId;
use vcpulab_io::{GuestId, Machine};
use vcpulab_measure::IoRow;
use vcpulab_spec::{DomainSpec, Spec};

/// A row for each domain.
pub(crate) fn io_rows(spec: &Spec, replication: u32, machine: &Machine) -> Vec<IoRow> {
    let row = |(id, domain): (DomId, &DomainSpec)| {
        let counts = machine.io_counts(GuestId::from(id));
        let (netfront, nics, blkfront, disks) = (counts.netfront, counts.nics, counts.blkfront, counts.disks);
        IoRow {
            replication,
            domain: domain.name.clone(),
            elapsed_ns: spec.duration.ns(),
            packets_received: netfront.map(|netfront| netfront.received),
            packets_sent: netfront.map(|netfront| netfront.sent),
            bytes_received: netfront.map(|netfront| netfront.bytes_received),
            bytes_sent: netfront.map(|netfront| netfront.bytes_sent),
            page_exchanges: netfront.map(|netfront| netfront.page_exchanges),
            page_grants: netfront.map(|netfront| netfront.page_grants),
            events: netfront.map(|netfront| netfront.events),
            ring_drops: netfront.map(|netfront| netfront.dropped),
            retransmissions: netfront.map(|_| counts.retransmissions),
            nic_received: nics.map(|nics| nics.received),
            nic_sent: nics.map(|nics| nics.sent),
            nic_interrupts: nics.map(|nics| nics.interrupts),
            nic_drops: nics.map(|nics| nics.dropped),
            disk_requests: blkfront.map(|blkfront| blkfront.requests),
            disk_read_bytes: blkfront.map(|blkfront| blkfront.read_bytes),
            disk_written_bytes: blkfront.map(|blkfront| blkfront.written_bytes),
            disk_grants: blkfront.map(|blkfront| blkfront.grants),
            disk_events: blkfront.map(|blkfront| blkfront.events),
            device_requests: disks.map(|disks| disks.requests),
            device_merges: disks.map(|disks| disks.merges),
            device_seeks: disks.map(|disks| disks.seeks),
            device_interrupts: disks.map(|disks| disks.interrupts),
            device_busy_ns: disks.map(|disks| disks.busy_ns.ns()),
        }
    };
    spec.domains.enumerate().map(row).collect()
}
