//! The sources of events that the host knows by number: each is registered once, and its owner keeps the number.

use vcpulab_host::{PcpuId, Table, Time, VcpuId, WorldContext};

use crate::ids::{ClientId, ClientMachineId, DiskId, NicId, SourceId};

/// A source of events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// A NIC interrupts.
    Interrupt(NicId),
    /// A packet arrives at a NIC.
    Inbound(NicId),
    /// A packet of a NIC arrives at the switch.
    Outbound(NicId),
    /// A user of a client acts.
    User(ClientId),
    /// A client gives up a request.
    Timeout(ClientId),
    /// Lost packets are sent again.
    Retransmission,
    /// A delayed acknowledgement is due.
    DelayedAck,
    /// A lost SYN is sent again.
    SynRetransmission,
    /// A disk completes a request.
    Disk(DiskId),
    /// The timer of a guest's vCPU expires.
    Timer(VcpuId),
    /// The profiler's counter of a pCPU overflows.
    Counter(PcpuId),
    /// A client machine has done something.
    ClientMachine(ClientMachineId),
}

/// All sources. Those that are due at one instant act in the order in which they were registered.
#[derive(Debug, Default)]
pub(crate) struct Sources(Table<SourceId, Source>);

impl Sources {
    /// Adds a source.
    pub fn register(&mut self, source: Source) -> SourceId {
        self.0.push(source)
    }

    /// The source that the host knows by this number.
    pub fn of(&self, number: usize) -> Source {
        self.0.as_slice()[number]
    }

    /// The number of sources.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl SourceId {
    /// Sets the time of its next event (`NEVER`: none).
    #[inline(always)]
    pub fn set(self, ctx: &mut WorldContext<'_>, time: Time) {
        ctx.set_source(self.index(), time);
    }
}
