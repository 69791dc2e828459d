//! Failures of runs.

use std::path::PathBuf;

use vcpulab_host::Broken;

/// The reason why a run gave no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scheduler or the world broke the rules of the host.
    #[error("replication {replication}: {broken}")]
    Broken {
        /// Which replication, from 0.
        replication: u32,
        /// What happened.
        broken: Broken,
    },
    /// Whoever watched the progress asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The events, or a log of requests, could not be written.
    #[error("{}: {reason}", file.display())]
    Events {
        /// Where to.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Whoever managed the run gave up, or asked for what cannot be.
    #[error("replication {replication}: the manager: {reason}")]
    Manager {
        /// Which replication.
        replication: u32,
        /// What it says, or what is wrong with what it asked for.
        reason: String,
    },
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
    /// One of several scenarios failed.
    #[error("scenario {index}: {error}")]
    OneOf {
        /// Which, from 0.
        index: usize,
        /// Why.
        error: Box<RunError>,
    },
}
