//! Ways to run.

use std::path::PathBuf;

use vcpulab_measure::Keep;
use vcpulab_spec::Spec;

use crate::replicate::jtl::Jtl;
use crate::replicate::live::LiveSamples;

/// A way to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Threads; 0: one for each processor. It never changes the results.
    pub jobs: usize,
    /// Keep every scheduling decision?
    pub trace: bool,
    /// Attribute waits: to the domains that caused them, and to the causes of wake-ups?
    pub waits: bool,
    /// A directory that is there, to which each replication writes all its events while it runs: `events-0.arrow` and so on.
    pub events: Option<PathBuf>,
    /// Log the requests of clients?
    pub jtl: Option<Jtl>,
    /// Show samples during the run?
    pub live: Option<LiveSamples>,
}

impl RunOptions {
    pub(crate) fn keep(&self, spec: &Spec) -> Keep {
        Keep { waits: self.waits, by_pcpu: !spec.sample.is_zero() }
    }
}
