//! The use of a pCPU's time.

use crate::event::{RunState, Who};

/// Counters of a pCPU.
#[derive(Debug, Default)]
pub struct OnPcpu {
    pub seen: bool,
    /// The thread or vCPU that runs, and since when; `None`: none, or not known.
    pub current: Option<(Who, i64)>,
    /// Time up to which its time is accounted.
    pub until_ns: i64,
    /// Whether a vCPU has stopped, and the next one has not started yet.
    pub switching: bool,
    pub busy_ns: i64,
    pub idle_ns: i64,
    pub host_ns: i64,
    pub switching_ns: i64,
    pub unknown_ns: i64,
    pub switches: u64,
    pub gaps: u64,
    /// Time at which the latest gap began.
    pub gap_from_ns: i64,
}

impl OnPcpu {
    /// A thread or vCPU starts to run here, or stops.
    pub fn switch(&mut self, now: i64, who: Who, to: RunState) {
        if to == RunState::Running {
            self.account(now);
            if self.current.is_none_or(|(current, _)| current != who) {
                self.switches += 1;
            }
            (self.current, self.switching) = (Some((who, now)), false);
        } else {
            if self.current.is_none() && !self.switching && self.gaps == 0 && self.switches == 0 {
                // It ran since the recording began.
                self.current = Some((who, 0));
            }
            self.account(now);
            (self.current, self.switching) = (None, true);
        }
    }

    /// Marks the pCPU's occupant as unknown since this time.
    pub fn lose(&mut self, since_ns: i64, now: i64) {
        self.account(since_ns.clamp(self.until_ns, now.max(self.until_ns)));
        (self.current, self.switching) = (None, false);
        self.account(now);
    }

    pub fn account(&mut self, now: i64) {
        let passed = (now - self.until_ns).max(0);
        *(match self.current {
            Some((Who::Idle, _)) => &mut self.idle_ns,
            Some((Who::Host, _)) => &mut self.host_ns,
            Some((Who::Vcpu { .. }, _)) => &mut self.busy_ns,
            None if self.switching => &mut self.switching_ns,
            None => &mut self.unknown_ns,
        }) += passed;
        self.until_ns = self.until_ns.max(now);
    }
}
