//! The classes `SCHED_FIFO` and `SCHED_RR`, which run before every fair thread: a queue for each CPU, by priority.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, Span, Table, Time, VcpuId};

use super::fair_server::FairServers;
use super::rank::Rank;
use super::rt_bandwidth::RtBandwidth;

/// The slice of `SCHED_RR`, ms.
const SLICE_MS: i64 = 100;

/// The rule of a kernel that leaves fair threads time beside real-time threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtRule {
    /// Real-time throttling, up to 6.11.
    Throttling,
    /// The fair server, from 6.12 on.
    FairServer,
}

/// The limit of real-time threads, with its state.
#[derive(Clone, Debug)]
pub enum RtLimit {
    Throttling(RtBandwidth),
    FairServer(FairServers),
}

impl RtLimit {
    /// The limit under a rule; `runtime` (`None`: no limit) is that of real-time threads or of the fair server.
    pub fn new(rule: RtRule, runtime: Option<Span>, period: Span) -> Self {
        match rule {
            RtRule::Throttling => RtLimit::Throttling(RtBandwidth::new(runtime, period)),
            RtRule::FairServer => RtLimit::FairServer(FairServers::new(runtime, period)),
        }
    }

    /// Changes runtime and period. The CPUs whose real-time threads may run again, because there is no limit any more.
    pub fn tune(&mut self, runtime: Option<Span>, period: Span) -> CpuMask {
        match self {
            RtLimit::Throttling(bandwidth) => bandwidth.tune(runtime, period),
            RtLimit::FairServer(servers) => servers.tune(runtime, period),
        }
    }

    /// CPUs on which real-time threads may not run now: on a CPU with a running fair server, as long as a fair thread
    /// can.
    pub fn held_back(&self) -> &CpuMask {
        match self {
            RtLimit::Throttling(bandwidth) => bandwidth.throttled(),
            RtLimit::FairServer(servers) => servers.running(),
        }
    }

    /// Charges the thread that a CPU has run since the last update, while `queued` fair threads could run. True: the CPU
    /// should decide again.
    pub fn update(&mut self, now: Time, cpu: PcpuId, current: Rank, queued: u32) -> bool {
        match self {
            RtLimit::Throttling(bandwidth) => bandwidth.update_curr(now, cpu, current),
            RtLimit::FairServer(servers) => servers.update(now, cpu, current, queued),
        }
    }

    /// The end of the present period, if it is an event.
    pub fn period_timer(&self) -> Option<Time> {
        match self {
            RtLimit::Throttling(bandwidth) => bandwidth.period_timer(),
            RtLimit::FairServer(_) => None,
        }
    }

    /// Begins a period, once all running threads are charged. The CPUs whose real-time threads may run again.
    pub fn begin_period(&mut self, now: Time) -> CpuMask {
        match self {
            RtLimit::Throttling(bandwidth) => bandwidth.begin_period(now),
            RtLimit::FairServer(_) => CpuMask::EMPTY,
        }
    }
}

/// Waiting real-time threads.
#[derive(Clone, Debug, Default)]
pub struct RealTime {
    /// Whether the host has had a real-time thread.
    pub exists: bool,
    /// Waiting threads of each CPU by rank, the greatest first, and in order of arrival.
    waiting: Table<PcpuId, Vec<(Rank, VcpuId)>>,
    count: usize,
}

impl RealTime {
    pub fn add_cpu(&mut self, cpu: PcpuId) {
        self.waiting.entry(cpu);
    }

    /// Whether a real-time thread waits on any CPU.
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Queues a thread on a CPU, behind the threads of its rank, or in front of them.
    pub fn enqueue(&mut self, cpu: PcpuId, rank: Rank, v: VcpuId, behind: bool) {
        let waiting = &mut self.waiting[cpu];
        let before = |&(other, _): &(Rank, VcpuId)| if behind { other >= rank } else { other > rank };
        let position = waiting.partition_point(before);
        waiting.insert(position, (rank, v));
        self.count += 1;
    }

    /// Removes a thread from a CPU's queue. False: it was not there.
    pub fn dequeue(&mut self, cpu: PcpuId, v: VcpuId) -> bool {
        let waiting = &mut self.waiting[cpu];
        let position = waiting.iter().position(|&(_, other)| other == v);
        if let Some(position) = position {
            waiting.remove(position);
            self.count -= 1;
        }
        position.is_some()
    }

    /// Whether a thread waits on a CPU.
    pub fn waits(&self, cpu: PcpuId, v: VcpuId) -> bool {
        self.waiting[cpu].iter().any(|&(_, other)| other == v)
    }

    /// The first waiting thread of a CPU.
    pub fn first(&self, cpu: PcpuId) -> Option<(Rank, VcpuId)> {
        self.waiting[cpu].first().copied()
    }

    /// The first waiting thread of one of the CPUs `from` that may run on this one and is above a rank.
    pub fn elsewhere(
        &self,
        ctx: &PolicyContext,
        cpu: PcpuId,
        from: &CpuMask,
        above: Rank,
    ) -> Option<(PcpuId, Rank, VcpuId)> {
        let mut best: Option<(PcpuId, Rank, VcpuId)> = None;
        for other in from.iter().filter(|&other| other != cpu) {
            let may = |&&(_, v): &&(Rank, VcpuId)| ctx.affinity(v).contains(cpu) && !ctx.is_current(v);
            let Some(&(rank, v)) = self.waiting[other].iter().find(may) else { continue };
            if rank > best.map_or(above, |(_, rank, _)| rank) {
                best = Some((other, rank, v));
            }
        }
        best
    }
}

/// CPUs between which real-time threads move: the isolated CPUs of a host, or all others.
pub fn root_domain(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    let isolated = &ctx.isolation().isolated;
    if isolated.contains(cpu) { isolated.and(ctx.pcpus()) } else { ctx.pcpus().without(isolated) }
}

/// Number of ticks in a slice.
pub fn slice_ticks(hz: i64) -> i64 {
    (SLICE_MS * hz / 1000).max(1)
}
