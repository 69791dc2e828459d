//! The world of a host: the programs of its vCPUs, and the devices and clients around it, behind one trait.

use crate::{LifeEvent, PcpuId, Span, Time, VcpuId, WorldContext};

/// A vCPU's next operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Use this much CPU time; then ask again. `Op::HOG` never ends by itself.
    Run(Span),
    /// Use CPU time for this long at most, but only while no other vCPU is queued on the pCPU; then ask again.
    Poll(Span),
    /// Block. With `Some(t)` a wake-up is due at time t. (A wake-up that is no longer wanted does no harm: it is
    /// ignored unless the vCPU is blocked.)
    Block(Option<Time>),
    /// Yield, and stay runnable; then ask again.
    Yield,
}

impl Op {
    /// Runs for ever.
    pub const HOG: Op = Op::Run(Span::MAX);
}

/// The programs of the vCPUs and the devices, links and clients around the host.
///
/// The host asks for a vCPU's next operation when the present one is used up; it fires a source (a device, link,
/// client or guest timer) when its time has come. The world answers through a [`WorldContext`]; what it asks for there
/// takes effect when the call returns, before the scheduler decides anything.
pub trait World {
    /// The running vCPU `v` needs its next operation. `left` is the rest of the last `Run`: 0 when it was used up, more
    /// when [`WorldContext::kick`] interrupted it, or when another vCPU was queued on the pCPU of a polling one. Never
    /// called for a vCPU that is not running.
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op;

    /// The time set for source `source` has come. (It is unset now; set it again for a further event.)
    fn fire(&mut self, _ctx: &mut WorldContext<'_>, _source: usize) {}

    /// Called once, before the first event.
    fn start(&mut self, _ctx: &mut WorldContext<'_>) {}

    /// The pCPU was idle, and now has a vCPU.
    fn resumed(&mut self, _ctx: &mut WorldContext<'_>, _pcpu: PcpuId) {}

    /// The toolstack has changed the life of a domain or vCPU. (Domains that exist at time 0 have no event for that.)
    fn life(&mut self, _ctx: &mut WorldContext<'_>, _event: LifeEvent) {}
}
