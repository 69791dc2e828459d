//! Event channels between tasks of different domains, which carry nothing but that something happened.
//!
//! Xen's are a bit each: an event that comes while one is pending is lost, and drivers look into their rings for what it meant.
//! There are no rings here, so that channels count.

use std::collections::VecDeque;

use vcpulab_host::WorldContext;

use super::Machine;

/// A channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// Events that nobody has taken.
    pending: u64,
    /// Guests and tasks that wait for one, who has waited longest first.
    waiting: VecDeque<(usize, usize)>,
}

impl Machine {
    /// A task sends an event.
    pub(super) fn notify(&mut self, ctx: &mut WorldContext<'_>, channel: u32) {
        let channel = &mut self.channels[channel as usize];
        match channel.waiting.pop_front() {
            Some((guest, task)) => {
                self.guests[guest].kernel.resume(task);
                self.kick_tasks(ctx, guest);
            }
            None => channel.pending += 1,
        }
    }

    /// A task of a guest, the current one of the vCPU that executes, takes an event or waits for one.
    pub(super) fn await_event(&mut self, guest: usize, task: usize, channel: u32) {
        let channel = &mut self.channels[channel as usize];
        if channel.pending > 0 {
            channel.pending -= 1;
        } else {
            channel.waiting.push_back((guest, task));
            self.guests[guest].kernel.wait(task);
        }
    }

    /// A guest has stopped: none of its tasks waits any more.
    pub(super) fn leave_channels(&mut self, guest: usize) {
        for channel in &mut self.channels {
            channel.waiting.retain(|&(waiting, _)| waiting != guest);
        }
    }
}
