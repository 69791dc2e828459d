//! Identities of the devices and machines around the vCPUs of a host.

use std::num::NonZeroU32;

use vcpulab_host::{DomId, Id};

vcpulab_host::ids! {
    /// The inside of a domain, with the number of the domain.
    pub struct GuestId;

    /// A NIC of the host.
    pub struct NicId;

    /// A domain's virtual network interface, numbered over all guests that have one.
    pub struct NetfrontId;

    /// A disk of the host, or the stand-in for one in a stub domain.
    pub struct DiskId;

    /// A domain's virtual disk, numbered over all guests that have one.
    pub struct BlkfrontId;

    /// A client outside the host.
    pub struct ClientId;

    /// A machine outside the host, on which clients run.
    pub struct ClientMachineId;

    /// The back ends on one vCPU of a driver domain, numbered over all driver domains.
    pub(crate) struct BackendId;

    /// A source of events of the host.
    pub(crate) struct SourceId;

    /// A packet under way.
    pub(crate) struct PacketId;
}

/// A leg of the path of a request that is followed. An `Option` of it takes no more room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegId(NonZeroU32);

impl Id for LegId {
    fn from_index(index: usize) -> Self {
        LegId(NonZeroU32::MIN.saturating_add(index as u32))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl From<DomId> for GuestId {
    fn from(domain: DomId) -> Self {
        GuestId(domain.0)
    }
}

/// A vCPU of a guest, by its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GuestVcpu {
    pub guest: GuestId,
    pub number: u32,
}

impl GuestVcpu {
    /// The number, as an index of the guest's vCPUs.
    pub fn index(self) -> usize {
        self.number as usize
    }
}
