//! Samples of a run for somebody who watches it while it goes on.

use std::sync::{Arc, Mutex, PoisonError};

use vcpulab_measure::{SampleRow, VcpuSampleRow};

/// What was sampled at some times, of domains and of vCPUs.
pub type Sampled = (Vec<SampleRow>, Vec<VcpuSampleRow>);

/// Where the samples of one replication are shown as they are taken. Clones show the same.
#[derive(Clone, Debug)]
pub struct LiveSamples {
    replication: u32,
    new: Arc<Mutex<Sampled>>,
}

impl LiveSamples {
    /// Of that replication.
    pub fn of(replication: u32) -> Self {
        LiveSamples { replication, new: Arc::default() }
    }

    pub(crate) fn show(&self, replication: u32, domains: &[SampleRow], vcpus: &[VcpuSampleRow]) {
        if replication == self.replication {
            let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
            new.0.extend_from_slice(domains);
            new.1.extend_from_slice(vcpus);
        }
    }

    /// Takes what was sampled since it was last taken.
    pub fn take(&self) -> Sampled {
        std::mem::take(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
