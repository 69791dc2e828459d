//! The host as the world around it sees it.

use crate::context::observer::HostState;
use crate::queue::Rank;
use crate::{IoStep, PcpuId, SetId, Span, Time, VcpuId, WakeCause};

/// The host as a [`World`](crate::World) sees it, and the requests that a world may make.
pub struct WorldContext<'a> {
    pub(crate) core: &'a mut HostState,
}

impl WorldContext<'_> {
    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// The host as seen from outside the scheduler: pCPUs, vCPUs, runstates.
    pub fn host(&self) -> &HostState {
        self.core
    }

    /// Makes sure sources 0 to `count` − 1 exist. Call it in [`World::start`](crate::World::start).
    pub fn make_sources(&mut self, count: usize) {
        self.core.queue.make_room(Rank::Source, count);
    }

    /// Sets the time of a source's next event ([`NEVER`](crate::NEVER): none). A time already past counts as now.
    #[inline(always)]
    pub fn set_source(&mut self, source: usize, time: Time) {
        let time = time.max(self.core.now);
        let fired = self.core.fired == Some(source);
        // Devices set the same time again and again.
        if fired || time != self.core.queue.time_of(Rank::Source, source) {
            self.core.queue.set(Rank::Source, source, time);
        }
        if fired {
            self.core.fired = None;
        }
    }

    /// Raises a virtual interrupt at `v`: a blocked vCPU wakes; a running vCPU is asked for its next operation at once;
    /// a waiting vCPU is asked when it runs again. A paused vCPU wakes when it is unpaused. The cause is only for
    /// observers.
    #[inline(always)]
    pub fn kick(&mut self, v: VcpuId, cause: WakeCause) {
        self.core.kicks.push((v, cause, self.core.interrupted));
    }

    /// Declares that the rest of the event at hand, which belongs to no executing vCPU, happens on `p`, which has taken
    /// an interrupt: `p` is the waker of the vCPUs that wake. (Without this call, each vCPU is woken by its own pCPU.)
    pub fn interrupted_on(&mut self, p: PcpuId) {
        self.core.interrupted = Some(p);
    }

    /// Whether an observer wants steps of I/O.
    #[inline(always)]
    pub fn wants_steps(&self) -> bool {
        self.core.wants_io
    }

    /// Reports a step of I/O to the observer.
    #[inline(always)]
    pub fn step(&mut self, step: IoStep) {
        if self.core.wants_io {
            self.keep(step);
        }
    }

    #[cold]
    fn keep(&mut self, step: IoStep) {
        self.core.io_steps.push(step);
    }

    /// Charges a physical interrupt to a pCPU (`Costs::interrupt_ns`).
    pub fn interrupt(&mut self, p: PcpuId) {
        self.charge(p, self.core.costs().interrupt_ns);
    }

    /// Charges work of the hypervisor to a pCPU.
    pub fn charge(&mut self, p: PcpuId, cost: Span) {
        let HostState { policy, accounting, charged, .. } = self.core;
        accounting.charge(policy, p, cost);
        charged.push(p);
    }

    /// Whether caches have a cost here: if not, working sets need not be made.
    pub fn has_caches(&self) -> bool {
        self.core.costs().l2_bytes > 0
    }

    /// Makes a working set, something that occupies this many bytes of cache. One [`cache`](crate::cache) model for all: a
    /// set may be used by several vCPUs.
    pub fn make_set(&mut self, bytes: u64) -> SetId {
        self.core.accounting.caches.make_set(bytes)
    }

    /// Changes the size of a working set: the effect comes when it is used next.
    pub fn resize_set(&mut self, set: SetId, bytes: u64) {
        self.core.accounting.caches.resize_set(set, bytes);
    }

    /// Gives `v` these working sets from now on, at most [`SETS_MAX`](crate::cache::SETS_MAX): whenever it is switched in,
    /// what is missing of them is brought in again, and at once if it runs now.
    pub fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        let HostState { policy, accounting, .. } = self.core;
        accounting.use_sets(policy, v, sets);
    }

    /// Gives `v` one working set of its own and no other. Call it in [`World::start`](crate::World::start).
    pub fn set_working_set(&mut self, v: VcpuId, bytes: u64) {
        let set = self.make_set(bytes);
        self.use_sets(v, &[set]);
    }
}
