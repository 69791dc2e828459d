//! Count of the changes of the thread that a thread wakes. The number of partners that it stands for decides whether wakers and
//! wakees should be close to each other.

use vcpulab_host::{Span, Time, VcpuId};

/// Interval at which the count is halved.
const DECAY_INTERVAL: Span = Span::from_secs(1);

/// Number of times that a thread woke another thread than the time before (`wakee_flips`).
#[derive(Clone, Copy, Debug, Default)]
pub struct WakeeFlips {
    last_wakee: Option<VcpuId>,
    flips: u32,
    decayed_at: Time,
}

impl WakeeFlips {
    /// Counts a wake-up of `v` by the thread.
    pub fn record_wakee(&mut self, now: Time, v: VcpuId) {
        if now - self.decayed_at > DECAY_INTERVAL {
            (self.flips, self.decayed_at) = (self.flips / 2, now);
        }
        if self.last_wakee != Some(v) {
            (self.last_wakee, self.flips) = (Some(v), self.flips + 1);
        }
    }

    /// The count, which decays.
    pub fn count(&self) -> u32 {
        self.flips
    }
}
