//! A group and its bandwidth limit: a pool that is refilled each period, from which queues take slices.

use vcpulab_host::{GroupConfig, GroupId, PcpuId, Span, Table, Throttling, Time};

use super::tree::QueueId;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    pub parent: Option<GroupId>,
    pub shares: u64,
    pub idle: bool,
    /// By CPU; made when they are first wanted.
    pub queues: Table<PcpuId, Option<QueueId>>,
    /// Number of the group's queues.
    pub made_on: u32,
    /// The sum of what its queues have told of their loads.
    pub contributed: u64,
    pub limit: Option<Limit>,
    /// Start of the group's periods; `None`: unspecified.
    pub phase: Option<Span>,
    pub throttling: Throttling,
}

/// A limit as it is set: `cpu.max`, `cpu.max.burst`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth {
    /// CPU time in each period.
    pub quota: Span,
    /// Length of a period.
    pub period: Span,
    /// Quota not used in earlier periods that may be used later.
    pub burst: Span,
}

impl Bandwidth {
    /// The limit in a group's configuration, if it has one.
    pub fn of(config: &GroupConfig) -> Option<Self> {
        let GroupConfig { quota, period, burst, .. } = *config;
        quota.map(|quota| Bandwidth { quota, period, burst })
    }
}

/// A limit.
#[derive(Clone, Debug)]
pub struct Limit {
    pub bandwidth: Bandwidth,
    /// The beginning of a period.
    pub phase: Time,
    pub pool: Span,
    /// Whether no queue has taken CPU time since the last refill.
    pub idle: bool,
    /// The time of the next refill, and of the next sharing out.
    pub refill: Option<Time>,
    pub slack: Option<Time>,
    /// In the order in which they were.
    pub throttled: Vec<QueueId>,
}

impl Group {
    pub fn new(config: &GroupConfig, shares: u64, cpus: usize) -> Self {
        Group {
            parent: config.parent,
            shares,
            idle: config.idle,
            queues: Table::filled(cpus, None),
            made_on: 0,
            contributed: 0,
            limit: Bandwidth::of(config).map(|bandwidth| Limit::new(bandwidth, Time::ZERO)),
            phase: config.phase,
            throttling: Throttling::default(),
        }
    }

    /// Queues of the group that exist.
    pub fn made(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.queues.iter().copied().flatten()
    }
}

impl Limit {
    pub fn new(bandwidth: Bandwidth, phase: Time) -> Self {
        Limit {
            bandwidth,
            phase,
            pool: bandwidth.quota,
            idle: false,
            refill: None,
            slack: None,
            throttled: Vec::new(),
        }
    }

    /// Adds a quota to the pool; CPU time that was not used stays, up to the burst.
    pub fn fill(&mut self) {
        self.pool = (self.pool + self.bandwidth.quota).min(self.most());
    }

    /// The most that the pool may hold.
    pub fn most(&self) -> Span {
        self.bandwidth.quota + self.bandwidth.burst
    }

    /// Starts the timer: the next refill is at the end of the period that it is.
    pub fn start(&mut self, now: Time) {
        let period = self.bandwidth.period;
        let since = now - self.phase;
        let over = if since.is_negative() { 0 } else { since / period + 1 };
        self.refill = Some(self.phase + over * period);
    }

    /// Moves what is missing to `most` from the pool to a queue. True: the timer was started.
    pub fn give(&mut self, now: Time, runtime: &mut Span, most: Span) -> bool {
        let amount = self.pool.min(most - *runtime).max(Span::ZERO);
        self.pool -= amount;
        *runtime += amount;
        self.idle = false;
        let stopped = self.refill.is_none();
        if stopped {
            self.start(now);
        }
        stopped
    }
}
