//! Whom a thread wakes: by it a host of Linux tells whether wakers and those they wake should be near each other.

use vcpulab_host::{Span, Time, VcpuId};

/// How often the count of a thread's partners is halved.
const FORGETS: Span = Span::from_secs(1);

/// Whom a thread has woken: how often it was another one than the time before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Partners {
    last: Option<VcpuId>,
    changes: u32,
    halved_at: Time,
}

impl Partners {
    /// It wakes another thread.
    pub fn woke(&mut self, now: Time, v: VcpuId) {
        if now - self.halved_at > FORGETS {
            (self.changes, self.halved_at) = (self.changes / 2, now);
        }
        if self.last != Some(v) {
            (self.last, self.changes) = (Some(v), self.changes + 1);
        }
    }

    /// How often it was another one, lately.
    pub fn changes(&self) -> u32 {
        self.changes
    }
}
