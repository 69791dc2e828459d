//! Changes of vCPUs' pause flags, runstates and wake-ups, and the time spent in each state.

use crate::queue::Rank;
use crate::vcpu::pause_flag;
use crate::{HostState, Time, VcpuId};

impl HostState {
    /// Sets reasons for not being runnable.
    #[inline(always)]
    pub(crate) fn set_pause_flags(&mut self, v: VcpuId, flags: u8) {
        let vcpu = &mut self.vcpus[v];
        vcpu.pause_flags |= flags;
        let changed = vcpu.update_state(self.now);
        self.note_runstates(v, changed);
    }

    /// Clears reasons for not being runnable.
    #[inline(always)]
    pub(crate) fn clear_pause_flags(&mut self, v: VcpuId, flags: u8) {
        let vcpu = &mut self.vcpus[v];
        vcpu.pause_flags &= !flags;
        let changed = vcpu.update_state(self.now);
        self.note_runstates(v, changed);
    }

    /// Pauses `v` itself. Pauses nest.
    pub(crate) fn pause_vcpu(&mut self, v: VcpuId) {
        self.vcpus[v].pauses += 1;
        self.set_pause_flags(v, pause_flag::PAUSED);
    }

    /// Takes back one pause; true when none is left.
    pub(crate) fn unpause_vcpu(&mut self, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v];
        assert!(vcpu.pauses > 0, "an unpause without a pause");
        vcpu.pauses -= 1;
        let last = vcpu.pauses == 0;
        if last {
            self.clear_pause_flags(v, pause_flag::PAUSED);
        }
        last
    }

    /// Sets the time of the wake-up of `v`. A time already past counts as now.
    #[inline(always)]
    pub(crate) fn set_wake_up(&mut self, v: VcpuId, at: Time) {
        let (slot, at) = (self.wake_slot(v), at.max(self.now));
        if at != self.queue.time_of(Rank::WakeUp, slot) {
            self.queue.set(Rank::WakeUp, slot, at);
        }
    }

    /// Notes for the observer that these runstates of `v`, as bits, have ended or begun.
    #[inline(always)]
    pub(crate) fn note_runstates(&mut self, v: VcpuId, changed: u8) {
        if changed & self.outbox.wanted_runstates != 0 && !self.is_idle(v) {
            self.outbox.changed_runstates.push(v);
        }
    }
}
