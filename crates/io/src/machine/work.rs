//! Pieces of work of a vCPU.

use vcpulab_host::Span;

use crate::ids::PacketId;
use crate::path::route::Step;
use crate::storage::BlkbackAt;
use crate::storage::blkback::BlkbackWork;
use crate::storage::blkfront::BlkfrontWork;

/// A piece of work of a vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Taking the notifications of the domain's back ends.
    BackendUpcall,
    /// Serving virtual disks.
    Blkback(BlkbackAt, BlkbackWork),
    /// Taking the event of the domain's netfront.
    NetfrontUpcall,
    /// A step of a packet.
    Packet(Step),
    /// Work of the domain's virtual disk.
    Blkfront(BlkfrontWork),
    /// Computing or spinning of the guest's tasks, for this long.
    Tasks(Span),
    /// Polling of the vCPU's thread while the guest has halted.
    Poll,
}

impl Work {
    /// The packet that it is about, if it is about one.
    pub fn packet(self) -> Option<PacketId> {
        if let Work::Packet(step) = self { Some(step.packet) } else { None }
    }

    /// Whether the domain's back ends do the work.
    pub fn is_backend(self) -> bool {
        match self {
            Work::BackendUpcall | Work::Blkback(..) => true,
            Work::Packet(step) => step.from.is_backend(),
            Work::NetfrontUpcall | Work::Blkfront(_) | Work::Tasks(_) | Work::Poll => false,
        }
    }
}
