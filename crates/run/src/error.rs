//! Failures of runs.

use std::path::PathBuf;

use vcpulab_host::{Broken, Time};

/// The reason why a run gave no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scheduler or the world broke the rules of the host.
    #[error("replication {replication}: {broken}")]
    Broken {
        /// The number of the replication, from 0.
        replication: u32,
        /// The breach.
        broken: Broken,
    },
    /// The scheduler refused the parameters of a domain when it was created or restored.
    #[error(
        "replication {replication}: at {time} ns: the scheduler `{scheduler}` refused the parameters of domain `{domain}`: {params}"
    )]
    Refused {
        /// The number of the replication, from 0.
        replication: u32,
        /// The time.
        time: Time,
        /// The scheduler's name.
        scheduler: &'static str,
        /// The domain's name.
        domain: String,
        /// The parameters: their names and values.
        params: String,
    },
    /// The run exceeds a limit.
    #[error("replication {replication}: at {time} ns: {what}")]
    Limit {
        /// The number of the replication, from 0.
        replication: u32,
        /// The time.
        time: Time,
        /// The limit, and what passes it.
        what: String,
    },
    /// The watcher of the progress asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The events, a log of requests, samples or decisions could not be written.
    #[error("{}: {reason}", file.display())]
    Events {
        /// The file, or the folder of temporary files.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The manager of the run gave up, or asked for something impossible.
    #[error("replication {replication}: the manager: {reason}")]
    Manager {
        /// The replication.
        replication: u32,
        /// The manager's reason, or the fault of its request.
        reason: String,
    },
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
    /// A failed scenario among several.
    #[error("scenario {index}: {error}")]
    OneOf {
        /// The number of the scenario, from 0.
        index: usize,
        /// Error of the scenario.
        error: Box<RunError>,
    },
}

impl RunError {
    /// The error as that of scenario number `index` among several.
    pub fn of(self, index: usize) -> RunError {
        match self {
            RunError::Cancelled | RunError::Threads(_) => self,
            error => RunError::OneOf { index, error: Box::new(error) },
        }
    }
}
