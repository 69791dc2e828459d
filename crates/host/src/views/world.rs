//! The host as the world around it sees it.

use crate::outbox::Kick;
use crate::queue::Rank;
use crate::{HostState, IoStep, PcpuId, SetId, Span, Time, VcpuId, WakeCause};

/// The host as a [`World`](crate::World) sees it, and the requests that a world may make.
pub struct WorldContext<'a> {
    pub(crate) state: &'a mut HostState,
}

impl WorldContext<'_> {
    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Time {
        self.state.now
    }

    /// The host as seen from outside the scheduler: pCPUs, vCPUs, runstates.
    pub fn host(&self) -> &HostState {
        self.state
    }

    /// Makes sure sources 0 to `count` − 1 exist. Call it in [`World::start`](crate::World::start).
    pub fn make_sources(&mut self, count: usize) {
        self.state.queue.make_room(Rank::Source, count);
    }

    /// Sets the time of a source's next event ([`NEVER`](crate::NEVER): none). A time already past counts as now.
    #[inline(always)]
    pub fn set_source(&mut self, source: usize, time: Time) {
        let time = time.max(self.state.now);
        let fired = self.state.fired == Some(source);
        // Devices set the same time again and again.
        if fired || time != self.state.queue.time_of(Rank::Source, source) {
            self.state.queue.set(Rank::Source, source, time);
        }
        if fired {
            self.state.fired = None;
        }
    }

    /// Raises a virtual interrupt at `v`: a blocked vCPU wakes; a running vCPU is asked for its next operation at once;
    /// a waiting vCPU is asked when it runs again. A paused vCPU wakes when it is unpaused. The cause is only for
    /// observers.
    #[inline(always)]
    pub fn kick(&mut self, v: VcpuId, cause: WakeCause) {
        let raised_on = self.state.interrupted;
        self.state.outbox.kicks.push(Kick { vcpu: v, cause, raised_on });
    }

    /// Declares that the rest of the event at hand, which belongs to no executing vCPU, happens on `p`, which has taken
    /// an interrupt: `p` is the waker of the vCPUs that wake. (Without this call, each vCPU is woken by its own pCPU.)
    pub fn interrupted_on(&mut self, p: PcpuId) {
        self.state.interrupted = Some(p);
    }

    /// Whether an observer wants steps of I/O.
    #[inline(always)]
    pub fn wants_steps(&self) -> bool {
        self.state.outbox.wants_io
    }

    /// Reports a step of I/O to the observer.
    #[inline(always)]
    pub fn step(&mut self, step: IoStep) {
        if self.state.outbox.wants_io {
            self.keep(step);
        }
    }

    #[cold]
    fn keep(&mut self, step: IoStep) {
        self.state.outbox.io_steps.push(step);
    }

    /// Charges a physical interrupt to a pCPU (`Costs::interrupt_ns`).
    pub fn interrupt(&mut self, p: PcpuId) {
        self.charge(p, self.state.costs().interrupt_ns);
    }

    /// Charges work of the hypervisor to a pCPU.
    pub fn charge(&mut self, p: PcpuId, cost: Span) {
        self.state.charge(p, cost);
        self.state.outbox.charged.push(p);
    }

    /// Whether caches have a cost here: if not, working sets need not be made.
    pub fn has_caches(&self) -> bool {
        self.state.costs().l2_bytes > 0
    }

    /// Makes a working set, something that occupies this many bytes of cache. One [`cache`](crate::cache) model for all: a
    /// set may be used by several vCPUs.
    pub fn make_set(&mut self, bytes: u64) -> SetId {
        self.state.accounts.caches.make_set(bytes)
    }

    /// Changes the size of a working set: the effect comes when it is used next.
    pub fn resize_set(&mut self, set: SetId, bytes: u64) {
        self.state.accounts.caches.resize_set(set, bytes);
    }

    /// Gives `v` these working sets from now on, at most [`SETS_MAX`](crate::cache::SETS_MAX): whenever it is switched in,
    /// what is missing of them is brought in again, and at once if it runs now.
    pub fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        self.state.use_sets(v, sets);
    }

    /// Gives `v` one working set of its own and no other. Call it in [`World::start`](crate::World::start).
    pub fn set_working_set(&mut self, v: VcpuId, bytes: u64) {
        let set = self.make_set(bytes);
        self.use_sets(v, &[set]);
    }
}
