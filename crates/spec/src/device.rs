//! Devices, and the front ends of domains that lead to them.

use vcpulab_host::DomId;
use vcpulab_io::{DiskId, NicId};

/// The way in which a driver domain finds where packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// A bridge, by hardware addresses.
    #[default]
    Bridge,
    /// Routing, by network addresses.
    Routing,
}

/// The medium of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Turning platters under a head.
    Spindle,
    /// Flash memory.
    Flash,
}

/// A NIC, or a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Name of the device; `None`: the default device of a scenario that names none.
    pub name: Option<String>,
    /// The domain that owns it; `None`: the hypervisor.
    pub owner: Option<DomId>,
    /// The owner's vCPU that takes its interrupts.
    pub vcpu: u32,
    /// The pCPU that takes them, on a KVM host. `None`: those of a NIC go to all, by VM; those of a disk to where its thread runs.
    pub pcpu: Option<u32>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSpec {
    /// Name and owner of the disk.
    pub device: DeviceSpec,
    /// Medium of the disk.
    pub medium: Medium,
}

/// A domain's network interface.
#[derive(Clone, Debug, PartialEq)]
pub struct NetfrontSpec {
    /// The driver domain whose netback carries its packets; `None`: the hypervisor does, or the domain itself.
    pub driver: Option<DomId>,
    /// The NIC by which its packets leave.
    pub nic: NicId,
    /// The domain's vCPU that takes its events.
    pub vcpu: u32,
    /// The driver domain's vCPU that its netback is on.
    pub driver_vcpu: u32,
    /// TCP segmentation offload.
    pub tso: bool,
    /// Whether the NIC computes checksums.
    pub checksum_offload: bool,
    /// Whether the driver domain emulates the interface.
    pub emulated: bool,
}

/// A domain's virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct BlkfrontSpec {
    /// The driver domain whose blkback serves it; `None`: the hypervisor does, or the domain itself.
    pub driver: Option<DomId>,
    /// The disk it is on; `None`: its driver domain is a stub domain, which passes requests on to its own virtual disk.
    pub disk: Option<DiskId>,
    /// The domain's vCPU that takes its events.
    pub vcpu: u32,
    /// The driver domain's vCPU that its blkback is on.
    pub driver_vcpu: u32,
    /// Whether the driver domain emulates the disk.
    pub emulated: bool,
}
