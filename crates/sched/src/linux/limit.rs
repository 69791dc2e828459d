//! A group and its bandwidth limit: a pool that is refilled each period, from which queues take slices.

use vcpulab_host::{GroupConfig, GroupId, PcpuId, Span, Table, Throttling, Time};

use super::cfs_rq::QueueId;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    pub parent: Option<GroupId>,
    pub shares: u64,
    pub idle: bool,
    /// Queues of the group by CPU, made on first use.
    pub queues: Table<PcpuId, Option<QueueId>>,
    /// Number of the group's queues.
    pub made_on: u32,
    /// Sum of the queues' contributions to the group's load.
    pub contributed: u64,
    pub limit: Option<Limit>,
    /// Start of the group's periods; `None`: unspecified.
    pub phase: Option<Span>,
    pub throttling: Throttling,
}

/// A bandwidth limit: `cpu.max`, `cpu.max.burst`.
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

/// The state of a bandwidth limit.
#[derive(Clone, Debug)]
pub struct Limit {
    pub bandwidth: Bandwidth,
    /// Start of some period; the others follow at whole multiples.
    pub phase: Time,
    pub pool: Span,
    /// Whether no queue has taken CPU time since the last refill.
    pub idle: bool,
    /// Times of the next refill and of the slack timer.
    pub refill: Option<Time>,
    pub slack: Option<Time>,
    /// Throttled queues, in the order in which they were throttled.
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

    /// The greatest CPU time that the pool may hold.
    pub fn most(&self) -> Span {
        self.bandwidth.quota + self.bandwidth.burst
    }

    /// Starts the period timer: the next refill is at the end of the current period.
    pub fn start(&mut self, now: Time) {
        let period = self.bandwidth.period;
        let since = now - self.phase;
        let over = if since.is_negative() { 0 } else { since / period + 1 };
        self.refill = Some(self.phase + over * period);
    }

    /// Moves CPU time from the pool to a queue until it has `most`. True: the period timer was started.
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
