//! The classes `SCHED_FIFO` and `SCHED_RR`, which run before every fair thread: a queue for each CPU, by priority.

use vcpulab_host::{Class, PcpuId, PolicyContext, Table, VcpuId};

/// The slice of `SCHED_RR`, ms.
const SLICE_MS: i64 = 100;

/// Rank of a CPU's current thread: −1 for none, 0 for a fair one, or a real-time priority from 1 to 99.
pub type Rank = i16;

/// The rank of a CPU that runs nothing.
pub const IDLE: Rank = -1;

/// The rank of fair threads.
pub const FAIR: Rank = 0;

/// The rank of a class.
pub fn rank(class: Class) -> Rank {
    match class {
        Class::Fifo(priority) | Class::RoundRobin(priority) => priority.max(1).into(),
        Class::Other | Class::Batch | Class::Idle => FAIR,
    }
}

/// Waiting real-time threads.
#[derive(Clone, Debug, Default)]
pub struct RealTime {
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

    /// The first waiting thread of another CPU that may run on this one and is above a rank.
    pub fn elsewhere(&self, ctx: &PolicyContext, cpu: PcpuId, above: Rank) -> Option<(PcpuId, Rank, VcpuId)> {
        let mut best: Option<(PcpuId, Rank, VcpuId)> = None;
        for other in ctx.pcpus().iter().filter(|&other| other != cpu) {
            let may = |&&(_, v): &&(Rank, VcpuId)| ctx.affinity(v).contains(cpu) && !ctx.is_current(v);
            let Some(&(rank, v)) = self.waiting[other].iter().find(may) else { continue };
            if rank > best.map_or(above, |(_, rank, _)| rank) {
                best = Some((other, rank, v));
            }
        }
        best
    }
}

/// Number of ticks in a slice.
pub fn slice_ticks(hz: i64) -> i64 {
    (SLICE_MS * hz / 1000).max(1)
}
