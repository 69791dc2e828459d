//! Actions that were refused.

use vcpulab_host::{Acted, Time};

/// Refused actions that are kept with their times.
const KEPT: usize = 16;

/// The actions that were refused, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct RejectedActions {
    /// The number of all.
    pub count: u64,
    /// The first of them.
    pub first: Vec<(Time, Acted)>,
}

impl RejectedActions {
    pub fn add(&mut self, now: Time, acted: Acted) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push((now, acted));
        }
    }
}
