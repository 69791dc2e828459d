//! Control groups: shares, queues, and the state of a bandwidth limit, a pool of CPU time that is refilled each period.

use vcpulab_host::{GroupConfig, GroupId, PcpuId, Span, Table, Throttling, Time};

use super::cfs_rq::CfsRqId;

/// The number 1 in averages of numbers of tasks.
pub const ONE_TASK: u64 = 1024;

/// The least weight of a group on a CPU, and of a task in a flat hierarchy after each step to the root.
pub const MIN_SHARES: u64 = 2;

/// The number by which the shares of a group are multiplied before the CPUs divide them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharesMultiplier {
    /// The group has its shares on every CPU.
    Undivided,
    /// The CPUs divide this multiple of the shares, in 1024ths.
    Divided(u64),
    /// The CPUs divide this multiple of the shares, in 1024ths, but at most the second number.
    DividedAtMost(u64, u64),
}

/// The effect of a used-up `cpu.max` quota on tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Throttle {
    /// The queue: its entity leaves the parent's queue at the next decision (to 6.17).
    Queue,
    /// Tasks that decisions choose in the throttled queue, as they return to user mode (6.18 to 7.1).
    Task,
    /// Tasks as they return to user mode; the queue is throttled as soon as a charge uses up its CPU time (7.2 and later).
    TaskWhenCharged,
}

/// Action of the period timer of a group that used no CPU time in its last period, and of which no queue is throttled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdlePeriod {
    /// The timer refills the pool and stops.
    RefillAndStop,
    /// The timer stops; the pool keeps what queues gave back, even above the quota.
    Stop,
}

/// A control group (`task_group`).
#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub parent: Option<GroupId>,
    pub children: Vec<GroupId>,
    /// Weight of the whole group, which its queues divide among them.
    pub shares: u64,
    pub idle: bool,
    /// Queues of the group by CPU, made on first use.
    pub cfs_rqs: Table<PcpuId, Option<CfsRqId>>,
    /// Number of the group's queues.
    pub cfs_rq_count: u32,
    /// Sum of the queues' contributions to the group's load.
    pub load_avg: u64,
    /// Sum of the queues' contributions to the group's average number of runnable tasks, in 1024ths.
    pub runnable_avg: u64,
    pub cfs_bandwidth: Option<CfsBandwidth>,
    /// Start of the group's periods; `None`: unspecified.
    pub phase: Option<Span>,
    pub throttling: Throttling,
}

impl TaskGroup {
    pub fn new(config: &GroupConfig, shares: u64, cpus: usize) -> Self {
        TaskGroup {
            parent: config.parent,
            children: Vec::new(),
            shares,
            idle: config.idle,
            cfs_rqs: Table::filled(cpus, None),
            cfs_rq_count: 0,
            load_avg: 0,
            runnable_avg: 0,
            cfs_bandwidth: Bandwidth::of(config).map(|bandwidth| CfsBandwidth::new(bandwidth, Time::ZERO)),
            phase: config.phase,
            throttling: Throttling::default(),
        }
    }

    /// Queues of the group that exist.
    pub fn existing_cfs_rqs(&self) -> impl Iterator<Item = CfsRqId> + '_ {
        self.cfs_rqs.iter().copied().flatten()
    }
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
pub struct CfsBandwidth {
    /// The limit.
    pub max: Bandwidth,
    /// Start of some period; the others follow at whole multiples.
    pub phase: Time,
    /// CPU time in the pool.
    pub runtime: Span,
    /// Whether no queue has taken CPU time since the last refill.
    pub idle: bool,
    /// Time of the next refill.
    pub period_timer: Option<Time>,
    /// Time at which the slack timer expires.
    pub slack_timer: Option<Time>,
    /// Throttled queues, in the order in which they were throttled.
    pub throttled_cfs_rqs: Vec<CfsRqId>,
}

impl CfsBandwidth {
    pub fn new(max: Bandwidth, phase: Time) -> Self {
        CfsBandwidth {
            max,
            phase,
            runtime: max.quota,
            idle: false,
            period_timer: None,
            slack_timer: None,
            throttled_cfs_rqs: Vec::new(),
        }
    }

    /// Adds a quota to the pool; CPU time that was not used stays, up to the burst.
    pub fn refill(&mut self) {
        self.runtime = (self.runtime + self.max.quota).min(self.runtime_max());
    }

    /// The greatest CPU time that the pool may hold.
    pub fn runtime_max(&self) -> Span {
        self.max.quota + self.max.burst
    }

    /// Starts the period timer: the next refill is at the end of the current period.
    pub fn start_period_timer(&mut self, now: Time) {
        let period = self.max.period;
        let since = now - self.phase;
        let over = if since.is_negative() { 0 } else { since / period + 1 };
        self.period_timer = Some(self.phase + over * period);
    }

    /// Moves CPU time from the pool to a queue until it has `most`. True: the period timer was started.
    pub fn assign_runtime(&mut self, now: Time, runtime: &mut Span, most: Span) -> bool {
        let amount = self.runtime.min(most - *runtime).max(Span::ZERO);
        self.runtime -= amount;
        *runtime += amount;
        self.idle = false;
        let stopped = self.period_timer.is_none();
        if stopped {
            self.start_period_timer(now);
        }
        stopped
    }
}
