//! Samples of a run for a watcher while it lasts.

use std::sync::{Arc, Mutex, PoisonError};

use vcpulab_measure::{SampleRow, VcpuSampleRow};

/// Samples of domains and of vCPUs at some times.
pub type Sampled = (Vec<SampleRow>, Vec<VcpuSampleRow>);

/// A view of the samples of one replication as they are taken. Clones show the same.
#[derive(Clone, Debug)]
pub struct LiveSamples {
    replication: u32,
    new: Arc<Mutex<Sampled>>,
}

impl LiveSamples {
    /// Live samples of a replication.
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

    /// Takes the samples since the last call.
    pub fn take(&self) -> Sampled {
        std::mem::take(&mut self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
