//! Partners of a thread, the threads that it wakes: a host of Linux decides by their number whether wakers and wakees
//! should be close to each other.

use vcpulab_host::{Span, Time, VcpuId};

/// Interval at which the count of a thread's partners is halved.
const FORGETS: Span = Span::from_secs(1);

/// Number of times that a thread woke another thread than the time before (the kernel's `wakee_flips`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Partners {
    last: Option<VcpuId>,
    changes: u32,
    halved_at: Time,
}

impl Partners {
    /// Counts a wake-up of `v` by the thread.
    pub fn woke(&mut self, now: Time, v: VcpuId) {
        if now - self.halved_at > FORGETS {
            (self.changes, self.halved_at) = (self.changes / 2, now);
        }
        if self.last != Some(v) {
            (self.last, self.changes) = (Some(v), self.changes + 1);
        }
    }

    /// The count of the thread's changes of partner, which decays.
    pub fn changes(&self) -> u32 {
        self.changes
    }
}
