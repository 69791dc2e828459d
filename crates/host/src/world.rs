//! What the vCPUs execute and what surrounds the host, behind one trait.

use crate::{DomId, HostState, IoStep, LifeEvent, PcpuId, SetId, Span, Time, VcpuId, WakeCause};

/// What a vCPU does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Use this much CPU time, ns; then ask again. `Op::HOG` never ends by itself.
    Run(Span),
    /// Block. With `Some(t)` a wake-up is due at time t (a wake-up that is no longer wanted does no harm: one of a
    /// vCPU that is not blocked is ignored).
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
/// The host asks for a vCPU's next operation when the present one is used up; it tells a source (a device, link,
/// client or guest timer) when its time has come. The world answers through a [`WorldContext`]; what it asks for there
/// takes effect when the call returns, before the scheduler decides anything.
pub trait World {
    /// The running vCPU `v` needs its next operation. `left` is what it did not execute of the last `Run`: 0 when it
    /// was used up, more when [`WorldContext::kick`] interrupted it. Never called for a vCPU that is not running.
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op;

    /// The time set for source `source` has come. (It is unset again; set it anew for a further event.)
    fn fire(&mut self, _ctx: &mut WorldContext<'_>, _source: usize) {}

    /// Called once, before the first event.
    fn start(&mut self, _ctx: &mut WorldContext<'_>) {}

    /// The pCPU was idle, and has just been given a vCPU.
    fn resumed(&mut self, _ctx: &mut WorldContext<'_>, _pcpu: PcpuId) {}

    /// The toolstack has changed the life of a domain or vCPU. (Domains that exist at time 0 have no event for that.)
    fn life(&mut self, _ctx: &mut WorldContext<'_>, _event: LifeEvent) {}
}

/// What a [`World`] may ask of the host.
pub struct WorldContext<'a> {
    pub(crate) core: &'a mut HostState,
}

impl WorldContext<'_> {
    /// The time now, ns.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.core.now()
    }

    /// The host as seen from outside the scheduler: pCPUs, vCPUs, runstates.
    pub fn host(&self) -> &HostState {
        self.core
    }

    /// Makes sure sources 0 to `count` − 1 exist. Call it in [`World::start`].
    pub fn make_sources(&mut self, count: usize) {
        self.core.make_sources(count);
    }

    /// Sets the time of a source's next event ([`crate::NEVER`]: none). A time already past counts as now.
    #[inline(always)]
    pub fn set_source(&mut self, source: usize, time: Time) {
        self.core.set_source(source, time);
    }

    /// Raises a virtual interrupt at `v`: a blocked vCPU is woken; a running one is asked for its next operation at
    /// once; one that waits is asked when it runs again. A paused one is woken when it is unpaused. The cause is only told to
    /// observers.
    #[inline(always)]
    pub fn kick(&mut self, v: VcpuId, cause: WakeCause) {
        self.core.kick(v, cause);
    }

    /// Reports a step of I/O to whoever observes the run.
    #[inline(always)]
    pub fn step(&mut self, step: IoStep) {
        if self.core.wants.io {
            self.core.io_steps.push(step);
        }
    }

    /// Charges a physical interrupt to a pCPU (`Costs::interrupt_ns`).
    pub fn interrupt(&mut self, p: PcpuId) {
        self.core.charge_overhead(p, self.core.costs().interrupt_ns);
        self.core.interrupted.push(p);
    }

    /// Charges work of the hypervisor to a pCPU, ns.
    pub fn charge(&mut self, p: PcpuId, cost: Span) {
        self.core.charge_overhead(p, cost);
        self.core.interrupted.push(p);
    }

    /// Makes a set, something that occupies this many bytes of cache. One [`cache`](crate::cache) model for all: a set may be
    /// used by several vCPUs.
    pub fn make_set(&mut self, bytes: u64) -> SetId {
        self.core.caches.make_set(bytes)
    }

    /// Changes the size of a set: felt when it is used next.
    pub fn resize_set(&mut self, set: SetId, bytes: u64) {
        self.core.caches.resize_set(set, bytes);
    }

    /// `v` uses these sets from now on, at most [`SETS_MAX`](crate::cache::SETS_MAX): whenever it is switched in, what is
    /// missing of them is brought in again, and at once if it runs now.
    pub fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        self.core.use_sets(v, sets);
    }

    /// Gives `v` one set of its own and no other. Call it in [`World::start`].
    pub fn set_working_set(&mut self, v: VcpuId, bytes: u64) {
        let set = self.make_set(bytes);
        self.use_sets(v, &[set]);
    }

    /// The vCPUs of a domain, in order.
    pub fn vcpus_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        self.core.vcpus_of(d)
    }
}
