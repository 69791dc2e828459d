//! A group and its bandwidth limit: a pool that is refilled each period, from which queues take slices.

use vcpulab_host::{GroupConfig, PcpuId, Span, Table, Time};

use super::tree::QueueId;

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    pub shares: u64,
    /// By CPU.
    pub queues: Table<PcpuId, QueueId>,
    pub limit: Option<Limit>,
}

/// Its limit.
#[derive(Clone, Debug)]
pub struct Limit {
    pub quota: Span,
    pub period: Span,
    pub burst: Span,
    pub pool: Span,
    /// Nothing was asked for since the last refill.
    pub idle: bool,
    /// The time of the next refill, and of the next sharing out.
    pub refill: Option<Time>,
    pub slack: Option<Time>,
    /// In the order in which they were.
    pub throttled: Vec<QueueId>,
}

impl Group {
    pub fn new(config: &GroupConfig, shares: u64, queues: Table<PcpuId, QueueId>) -> Self {
        let limit = config.quota.map(|quota| Limit {
            quota,
            period: config.period,
            burst: config.burst,
            pool: quota + config.burst,
            idle: false,
            refill: None,
            slack: None,
            throttled: Vec::with_capacity(queues.len()),
        });
        Group { shares, queues, limit }
    }
}

impl Limit {
    /// Moves what is missing to `most` from the pool to a queue.
    pub fn give(&mut self, now: Time, runtime: &mut Span, most: Span) {
        let amount = self.pool.min(most - *runtime).max(Span::ZERO);
        self.pool -= amount;
        *runtime += amount;
        self.idle = false;
        if self.refill.is_none() {
            let periods = (now - Time::ZERO) / self.period + 1;
            self.refill = Some(Time::ZERO + periods * self.period);
        }
    }
}
