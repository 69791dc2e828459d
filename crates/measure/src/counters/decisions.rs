//! The decisions of one run that changed what a pCPU runs.

use std::io;

use vcpulab_host::{HostState, Switch};

use crate::tables::{Spool, Spooled, Spooler, TraceRow};

/// Most decisions that all replications of a run keep; the rest is counted.
const TRACE_ROWS_MAX: usize = 4_000_000;

/// Keeps the first decisions, as many as there is room for.
#[derive(Debug)]
pub struct Decisions {
    replication: u32,
    spool: Spool,
    rows: Spooler<TraceRow>,
    room: usize,
    /// Rows that still have room.
    left: usize,
    /// Number of decisions for which there was no room.
    untraced: u64,
}

impl Decisions {
    /// Keeps the decisions of replication number `replication` out of `replications`.
    pub fn new(replication: u32, replications: u32, spool: &Spool) -> Self {
        let room = TRACE_ROWS_MAX / replications as usize;
        let (rows, spool) = (Spooler::new(spool), spool.clone());
        Decisions { replication, spool, rows, room, left: room, untraced: 0 }
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        (self.rows, self.left, self.untraced) = (Spooler::new(&self.spool), self.room, 0);
    }

    pub(crate) fn push(&mut self, host: &HostState, switch: &Switch) {
        if self.left == 0 {
            self.untraced += 1;
            return;
        }
        self.left -= 1;
        let (from_domain, from_vcpu) = host.name(switch.from);
        let (to_domain, to_vcpu) = host.name(switch.to);
        self.rows.push(TraceRow {
            replication: self.replication,
            time_ns: switch.time.ns(),
            pcpu: switch.pcpu.0,
            from_domain,
            from_vcpu,
            to_domain,
            to_vcpu,
            waited_ns: switch.waited_ns.ns(),
        });
    }

    /// All kept decisions, and the number of decisions for which there was no room.
    ///
    /// # Errors
    /// They could not be written.
    pub fn finish(self) -> io::Result<(Spooled<TraceRow>, u64)> {
        Ok((self.rows.finish()?, self.untraced))
    }
}
