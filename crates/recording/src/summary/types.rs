//! The summary of a recording.

use serde::Serialize;

use crate::histogram::Spread;

/// Summary of a recording: domains, vCPUs and pCPUs. Times are ns; rates per second of the recording.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Time from the first record to the last.
    pub span_ns: i64,
    /// By number.
    pub domains: Vec<Domain>,
    /// By domain and number.
    pub vcpus: Vec<Vcpu>,
    /// By number; those with records only.
    pub pcpus: Vec<Pcpu>,
    /// Wake-ups by waker and woken vCPU.
    pub wakers: Vec<Waking>,
    /// Records that were never written, where the recorder knew their number.
    pub lost_records: u64,
    /// Gaps in the recording, these and those of damage.
    pub gaps: u64,
    /// Changes that contradict what was known.
    pub contradictions: u64,
    /// Switches whose counterpart is missing: from a thread that was not the one that had started there, or to one that had
    /// started elsewhere and not stopped.
    pub unrecorded: u64,
}

/// A domain: all its vCPUs together.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Domain {
    pub domain: u32,
    pub vcpus: u32,
    pub running_ns: i64,
    /// Of the pCPUs seen, 0 to 1.
    pub share: f64,
    pub wakes_per_s: f64,
    pub executions_per_s: f64,
    /// Time at which it was created, if that was recorded.
    pub added_ns: Option<i64>,
    /// Time at which it was destroyed, if that was recorded.
    pub removed_ns: Option<i64>,
}

impl Domain {
    /// A domain of which nothing is known yet.
    pub(super) fn of(domain: u32) -> Self {
        Domain {
            domain,
            vcpus: 0,
            running_ns: 0,
            share: 0.0,
            wakes_per_s: 0.0,
            executions_per_s: 0.0,
            added_ns: None,
            removed_ns: None,
        }
    }
}

/// A vCPU: its runstates, wake-ups and executions.
#[derive(Clone, Debug, Serialize)]
pub struct Vcpu {
    /// The domain's number.
    pub domain: u32,
    /// Number of the vCPU in its domain.
    pub vcpu: u32,
    /// Time running.
    pub running_ns: i64,
    /// Time waiting for a pCPU.
    pub runnable_ns: i64,
    /// Time waiting for events.
    pub blocked_ns: i64,
    /// Time not allowed to run.
    pub offline_ns: i64,
    /// Time in an unknown runstate: records are missing.
    pub unknown_ns: i64,
    /// Running, of one pCPU, 0 to 1.
    pub share: f64,
    /// Number of executions: the vCPU was put on a pCPU.
    pub executions: u64,
    /// Executions per second.
    pub executions_per_s: f64,
    /// Number of preemptions: the vCPU lost the pCPU though it could continue.
    pub preempted: u64,
    /// Number of decisions that let the running vCPU continue.
    pub continued: u64,
    /// Number of yields.
    pub yields: u64,
    /// Number of migrations: the vCPU was put on another pCPU than before.
    pub migrations: u64,
    /// Number of wake-ups.
    pub wakes: u64,
    /// Wake-ups per second.
    pub wakes_per_s: f64,
    /// Wake-ups with its pCPU idle.
    pub wakes_to_idle: u64,
    /// Wake-ups after which it was the next to run there.
    pub wakes_ran_next: u64,
    /// Wake-ups after which others went first.
    pub wakes_ran_later: u64,
    /// Wake-ups after which another pCPU took it.
    pub wakes_ran_elsewhere: u64,
    /// Mean slice that the scheduler granted; 0 where it was not recorded.
    pub slice_mean_ns: i64,
    /// Time from waking to running.
    pub wake_latency: Spread,
    /// Each wait for a pCPU, after waking or preemption.
    pub wait: Spread,
    /// Each stay on a pCPU.
    pub execution: Spread,
    /// CPU time from waking to blocking, over all executions between, whatever kept it from running meanwhile.
    pub burst: Spread,
    /// Time from blocking to waking.
    pub block: Spread,
}

/// A pCPU: the uses of its time.
#[derive(Clone, Debug, Serialize)]
pub struct Pcpu {
    /// The pCPU's number.
    pub pcpu: u32,
    /// Time running vCPUs.
    pub busy_ns: i64,
    /// Time idle.
    pub idle_ns: i64,
    /// Time running threads that are no vCPUs.
    pub host_ns: i64,
    /// Time from the stop of one vCPU to the start of the next.
    pub switching_ns: i64,
    /// Time before the first record, and where records are missing.
    pub unknown_ns: i64,
    /// Number of context switches on the pCPU, to the idle vCPU too.
    pub switches: u64,
    /// Context switches per second.
    pub switches_per_s: f64,
    /// Time of each vCPU that ran on it.
    pub shares: Vec<Share>,
}

/// CPU time of a vCPU on a pCPU.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Share {
    pub domain: u32,
    pub vcpu: u32,
    pub running_ns: i64,
    /// Of the pCPU, 0 to 1.
    pub share: f64,
}

/// The vCPU that ran on the pCPU where another was woken: for wake-ups from outside (timers, devices) any that happened to run.
#[derive(Clone, Debug, Serialize)]
pub struct Waking {
    /// Domain and number of the vCPU; `None`: the pCPU was idle, it was the host, or that is not known.
    pub waker: Option<(u32, u32)>,
    /// Domain and number.
    pub woken: (u32, u32),
    /// Number of wake-ups.
    pub count: u64,
}
