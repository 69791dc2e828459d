//! Pieces of work of a vCPU. A packet's hop is part of its piece of work: it is decided once, when the packet is taken.

use vcpulab_host::Span;

use crate::ids::{NetfrontId, NicId, PacketId};
use crate::network::netfront::NetfrontWork;
use crate::path::route::Hop;
use crate::storage::BlkbackAt;
use crate::storage::blkback::BlkbackWork;
use crate::storage::blkfront::BlkfrontWork;

/// A piece of work of a vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Work of the back ends of the vCPU's domain.
    Driver(DriverWork),
    /// Work of the domain's netfront and network stack, with the hop of the packet.
    Netfront(NetfrontWork, Hop),
    /// Work of the domain's virtual disk.
    Blkfront(BlkfrontWork),
    /// A packet from one task of the guest to another.
    Loopback(PacketId),
    /// Computing or spinning of the guest's tasks, for this long.
    Tasks(Span),
    /// Polling of the vCPU's thread while the guest has halted.
    Poll,
}

impl Work {
    /// The packet that it is about, if it is about one.
    pub fn packet(self) -> Option<PacketId> {
        match self {
            Work::Driver(DriverWork::Upcall | DriverWork::Disk(..))
            | Work::Blkfront(_)
            | Work::Tasks(_)
            | Work::Poll => None,
            Work::Driver(
                DriverWork::Receive(_, packet, _)
                | DriverWork::Deliver(_, packet)
                | DriverWork::Send(_, packet, _),
            )
            | Work::Loopback(packet) => Some(packet),
            Work::Netfront(work, _) => match work {
                NetfrontWork::Upcall => None,
                NetfrontWork::Receive(packet) | NetfrontWork::Send(packet) => Some(packet),
            },
        }
    }
}

/// A piece of work of a driver domain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DriverWork {
    /// Taking the notifications that are pending.
    Upcall,
    /// Taking a packet from that NIC.
    Receive(NicId, PacketId, Hop),
    /// Taking one that another vCPU has left, for that netfront's ring.
    Deliver(NetfrontId, PacketId),
    /// Taking one from that netfront's ring.
    Send(NetfrontId, PacketId, Hop),
    /// Serving virtual disks.
    Disk(BlkbackAt, BlkbackWork),
}
