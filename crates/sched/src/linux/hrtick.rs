//! The timer that ends the running task's request (`HRTICK`, on by default from 7.1 on).

use vcpulab_host::{PcpuId, Span, Time};

use super::hierarchy::{Fair, Flavor};

/// The shortest time to which the timer is set.
const SHORTEST: Span = Span::from_us(10);

/// A running timer is left alone if it would move by no more than this.
const TOLERANCE: Span = Span::from_us(5);

impl<F: Flavor> Fair<F> {
    /// Time at which a CPU's timer expires.
    pub fn hrtick_at(&self, cpu: PcpuId) -> Option<Time> {
        self.hrtick_timers[cpu]
    }

    /// Sets the timer after another task became current (`hrtick_start_fair`).
    pub(super) fn hrtick_start(&mut self, now: Time, cpu: PcpuId) {
        let Some(task) = self.curr[cpu].filter(|_| self.flavor.hrtick() && self.h_nr_running(cpu) > 1) else {
            return;
        };
        let left = self.flavor.request_left(&self.entities[self.tasks[task].entity]);
        if left < 0 {
            self.need_resched.insert(cpu);
            return;
        }
        let at = now + Span::from_ns(left).max(SHORTEST);
        let moves = |before: Time| at > before + TOLERANCE || at + TOLERANCE < before;
        if self.hrtick_timers[cpu].is_none_or(moves) {
            self.set_hrtick(cpu, Some(at));
        }
    }

    /// Sets the timer after a task was queued, unless the timer is running (`hrtick_update`).
    pub(super) fn hrtick_update(&mut self, now: Time, cpu: PcpuId) {
        if self.hrtick_timers[cpu].is_none() {
            self.hrtick_start(now, cpu);
        }
    }

    /// Stops the timer (`hrtick_clear`).
    pub fn hrtick_clear(&mut self, cpu: PcpuId) {
        if self.hrtick_timers[cpu].is_some() {
            self.set_hrtick(cpu, None);
        }
    }

    /// Handles the expiry of the timer: charges the running task, and flags the CPU.
    pub fn hrtick(&mut self, now: Time, cpu: PcpuId) {
        self.hrtick_clear(cpu);
        if self.curr[cpu].is_some() {
            self.task_tick(now, cpu);
            self.need_resched.insert(cpu);
        }
    }

    /// Takes a CPU whose timer has changed.
    pub fn next_changed_hrtick(&mut self) -> Option<PcpuId> {
        let cpu = self.changed_hrtick.first()?;
        self.changed_hrtick.remove(cpu);
        Some(cpu)
    }

    fn set_hrtick(&mut self, cpu: PcpuId, at: Option<Time>) {
        self.hrtick_timers[cpu] = at;
        self.changed_hrtick.insert(cpu);
    }
}
