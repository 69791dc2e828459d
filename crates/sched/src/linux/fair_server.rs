//! The fair server, from Linux 6.12 on: if real-time threads leave the fair threads of a CPU nothing, these run before
//! them for `runtime` in each `period`, as late in the period as is possible.
//!
//! The kernel's server is a deadline task with a timer of its own. Here its state changes at ticks and at decisions.

use vcpulab_host::{CpuMask, PcpuId, Span, Table, Time};

use super::rank::{FAIR, Rank};

/// The server of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    /// Time up to which `used` counts; `None`: nothing was counted yet.
    updated: Option<Time>,
    /// Whether fair threads were queued at the last update.
    active: bool,
    /// CPU time that fair threads have had in the present period.
    used: Span,
    /// End of the present period.
    deadline: Time,
}

/// The fair servers of a host.
#[derive(Clone, Debug, Default)]
pub struct FairServers {
    /// CPU time of fair threads in each period; `None`: no servers.
    runtime: Option<Span>,
    period: Span,
    servers: Table<PcpuId, Server>,
    /// CPUs whose fair threads run before real-time threads.
    running: CpuMask,
}

impl FairServers {
    /// Servers with a runtime in each period (`None`: no servers).
    pub fn new(runtime: Option<Span>, period: Span) -> Self {
        FairServers { runtime, period, ..FairServers::default() }
    }

    /// Changes runtime and period. The CPUs that are released, because there is no limit any more.
    pub fn tune(&mut self, runtime: Option<Span>, period: Span) -> CpuMask {
        (self.runtime, self.period) = (runtime, period);
        if runtime.is_none() { std::mem::take(&mut self.running) } else { CpuMask::EMPTY }
    }

    /// CPUs whose fair threads run before real-time threads.
    pub fn running(&self) -> &CpuMask {
        &self.running
    }

    /// Charges the thread that a CPU has run since the last update (`dl_server_update`), while `queued` fair threads
    /// could run. True: the CPU should decide again.
    pub fn update(&mut self, now: Time, cpu: PcpuId, current: Rank, queued: u32) -> bool {
        let Some(runtime) = self.runtime else { return false };
        let period = self.period;
        let server = self.servers.entry(cpu);
        let span = now - server.updated.replace(now).unwrap_or(now);
        if current == FAIR {
            server.used += span;
        }
        let (active, was_active) = (queued > 0, std::mem::replace(&mut server.active, queued > 0));
        if self.running.contains(cpu) {
            if server.used >= runtime {
                server.used -= runtime;
                server.deadline += period;
            } else if active {
                return false;
            }
            self.running.remove(cpu);
            return true;
        }
        if !active {
            return false;
        }
        // What is left until the deadline may not be more than the bandwidth allows, as for a deadline task that wakes.
        let left = runtime - server.used;
        let too_much = || {
            i128::from(left.ns()) * i128::from(period.ns())
                > i128::from((server.deadline - now).ns()) * i128::from(runtime.ns())
        };
        if left <= Span::ZERO || !was_active && (server.deadline <= now || too_much()) {
            (server.used, server.deadline) = (Span::ZERO, now + period);
        } else if current > FAIR && now >= server.deadline - left {
            self.running.insert(cpu);
            return true;
        }
        false
    }
}
