//! Changes of vCPUs' pause flags, runstates and wake-ups, and the time spent in each state.

use crate::context::policy::PolicyContext;
use crate::queue::Rank;
use crate::vcpu::pause_flag;
use crate::{RunState, Time, VcpuId, WakeCause};

impl PolicyContext {
    /// Sets reasons for not being runnable.
    #[inline(always)]
    pub(crate) fn set_pause_flags(&mut self, v: VcpuId, flags: u8) {
        self.vcpus[v].pause_flags |= flags;
        self.enter_state(v);
    }

    /// Clears reasons for not being runnable.
    #[inline(always)]
    pub(crate) fn clear_pause_flags(&mut self, v: VcpuId, flags: u8) {
        self.vcpus[v].pause_flags &= !flags;
        self.enter_state(v);
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

    /// Brings the runstate of `v` up to date with its pause flags and whether it runs.
    #[inline(always)]
    pub(crate) fn enter_state(&mut self, v: VcpuId) {
        let now = self.now;
        let vcpu = &mut self.vcpus[v];
        let state = vcpu.present_state();
        if state != vcpu.state {
            if state == RunState::Runnable {
                vcpu.woken = match vcpu.state {
                    RunState::Blocked => Some(vcpu.cause),
                    RunState::Offline => Some(WakeCause::Unpause),
                    _ => None,
                };
            }
            if let Some(time) = vcpu.times.get_mut(vcpu.state as usize) {
                *time += now - vcpu.state_since;
            }
            let before = std::mem::replace(&mut vcpu.state, state);
            vcpu.state_since = now;
            if self.wanted_runstates != 0 {
                self.note_runstate(v, before, state);
            }
        }
    }

    fn note_runstate(&mut self, v: VcpuId, before: RunState, after: RunState) {
        let changed = 1 << before as u8 | 1 << after as u8;
        if self.wanted_runstates & changed != 0 && !self.is_idle(v) {
            self.changed_runstates.push(v);
        }
    }
}
