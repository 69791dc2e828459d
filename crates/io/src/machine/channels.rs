//! Event channels between tasks of different domains, which carry nothing but that something happened.
//!
//! Xen's are a bit each: an event that comes while one is pending is lost, and drivers look into their rings for its meaning.
//! There are no rings here, so that channels count.

use std::collections::VecDeque;

use vcpulab_guest::{ChannelId, TaskId};
use vcpulab_host::Table;

use crate::ids::GuestId;

#[derive(Clone, Debug, Default)]
struct Channel {
    /// Events that no task has taken.
    pending: u64,
    /// Tasks that wait for one, the one that has waited longest first.
    waiting: VecDeque<(GuestId, TaskId)>,
}

/// The event channels of a machine.
#[derive(Debug)]
pub(crate) struct Channels(Table<ChannelId, Channel>);

impl Channels {
    /// Channels without events.
    pub fn new(count: usize) -> Self {
        Channels(Table::filled(count, Channel::default()))
    }

    /// Sends an event. The task that has waited longest for it, if one waits: it is to be resumed.
    pub fn notify(&mut self, channel: ChannelId) -> Option<(GuestId, TaskId)> {
        let channel = &mut self.0[channel];
        let waiting = channel.waiting.pop_front();
        channel.pending += u64::from(waiting.is_none());
        waiting
    }

    /// Takes an event for a task if one is pending; otherwise the task is queued for it, and the answer is no.
    pub fn take(&mut self, channel: ChannelId, guest: GuestId, task: TaskId) -> bool {
        let channel = &mut self.0[channel];
        let pending = channel.pending > 0;
        match pending {
            true => channel.pending -= 1,
            false => channel.waiting.push_back((guest, task)),
        }
        pending
    }

    /// Forgets the waiting tasks of a guest that has stopped.
    pub fn forget(&mut self, guest: GuestId) {
        for channel in self.0.iter_mut() {
            channel.waiting.retain(|&(waiting, _)| waiting != guest);
        }
    }
}
