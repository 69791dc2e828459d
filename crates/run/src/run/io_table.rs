//! The result table of what crossed each domain's devices.

use vcpulab_io::Machine;
use vcpulab_measure::IoRow;
use vcpulab_spec::{DomainSpec, Spec};

/// A row for each domain.
pub(crate) fn io_rows(spec: &Spec, replication: u32, machine: &Machine) -> Vec<IoRow> {
    let row = |(index, domain): (usize, &DomainSpec)| {
        let counts = machine.io_counts(index);
        let (interface, nics, block, disks) = (counts.interface, counts.nics, counts.block, counts.disks);
        IoRow {
            replication,
            domain: domain.name.clone(),
            elapsed_ns: spec.duration_ns,
            packets_received: interface.map(|interface| interface.received),
            packets_sent: interface.map(|interface| interface.sent),
            bytes_received: interface.map(|interface| interface.bytes_received),
            bytes_sent: interface.map(|interface| interface.bytes_sent),
            page_exchanges: interface.map(|interface| interface.page_exchanges),
            page_grants: interface.map(|interface| interface.page_grants),
            events: interface.map(|interface| interface.events),
            ring_drops: interface.map(|interface| interface.dropped),
            retransmissions: interface.map(|_| counts.retransmissions),
            nic_received: nics.map(|nics| nics.received),
            nic_sent: nics.map(|nics| nics.sent),
            nic_interrupts: nics.map(|nics| nics.interrupts),
            nic_drops: nics.map(|nics| nics.dropped),
            disk_requests: block.map(|block| block.requests),
            disk_read_bytes: block.map(|block| block.read_bytes),
            disk_written_bytes: block.map(|block| block.written_bytes),
            disk_grants: block.map(|block| block.grants),
            disk_events: block.map(|block| block.events),
            device_requests: disks.map(|disks| disks.requests),
            device_merges: disks.map(|disks| disks.merges),
            device_seeks: disks.map(|disks| disks.seeks),
            device_interrupts: disks.map(|disks| disks.interrupts),
            device_busy_ns: disks.map(|disks| disks.busy_ns),
        }
    };
    spec.domains.iter().enumerate().map(row).collect()
}
