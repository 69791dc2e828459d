//! Interrupts of devices that no domain has, but the kernel below all of them: on which pCPU they are taken.

use vcpulab_host::{CpuMask, PcpuId, Span, VcpuId, WorldContext};

/// The pCPUs that take the interrupts of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// The pCPU of the vCPU that receives the interrupt.
    OfReceiver,
    /// A fixed pCPU.
    Pcpu(PcpuId),
    /// A number of pCPUs, from the first on: the device has a queue for each, and receivers are assigned to the queues
    /// in turn.
    Spread(u32),
}

impl Interrupts {
    /// The pCPU that is interrupted for vCPU `receiver`, whose frontend is the device's number `index`.
    pub(crate) fn pcpu(self, ctx: &WorldContext<'_>, receiver: VcpuId, index: usize) -> PcpuId {
        match self {
            Interrupts::OfReceiver => ctx.host().processor(receiver),
            Interrupts::Pcpu(p) => p,
            Interrupts::Spread(pcpus) => PcpuId(index as u32 % pcpus.max(1)),
        }
    }
}

/// The cost of what a device's interrupts bring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterruptCost {
    /// CPU time for each packet or request.
    pub each: Span,
    /// The pCPUs that it is charged to.
    pub pcpus: Interrupts,
}

/// The pCPUs that one interrupt of a device has been taken on so far.
#[derive(Debug)]
pub(crate) struct Taken(CpuMask);

impl Taken {
    /// On none.
    pub fn none() -> Self {
        Taken(CpuMask::EMPTY)
    }

    /// Takes the interrupt on `p` too, if it was not taken there before.
    pub fn on(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        if !self.0.contains(p) {
            self.0.insert(p);
            ctx.interrupt(p);
        }
    }

    /// Takes the interrupt on `p`, unless it was taken on any pCPU before.
    pub fn once(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        if self.0.is_empty() {
            self.on(ctx, p);
        }
    }
}
