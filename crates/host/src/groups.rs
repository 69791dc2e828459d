//! Control groups and threads, as a host of Linux has them: what its schedulers know of a vCPU beside its affinity. Those of
//! Xen look at nothing here.

use crate::{CpuMask, DomId, GroupId, PartId, Span};

/// A control group with the controller `cpu`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupConfig {
    /// The group around it, which stands before it in the list (`None`: the root group).
    pub parent: Option<GroupId>,
    /// The share of the group in units of `cpu.weight`, at most 25600 (`cpu.shares` of 262144).
    pub weight: u32,
    /// `cpu.max`: the CPU time that its threads may have together in each period (`None`: as much as they get).
    pub quota: Option<Span>,
    /// The period of `cpu.max`.
    pub period: Span,
    /// `cpu.max.burst`: quota not used that may be used later.
    pub burst: Span,
    /// Start of the group's periods, modulo their length; `None`: the policy decides.
    pub phase: Option<Span>,
    /// `cpu.idle`: it runs when nothing else wants to.
    pub idle: bool,
    /// The part of a domain that it is, whose parameters it takes.
    pub part: Option<(DomId, PartId)>,
}

impl GroupConfig {
    /// A new group: the kernel's defaults.
    pub const NEW: GroupConfig = GroupConfig {
        parent: None,
        weight: 100,
        quota: None,
        period: Span::from_ms(100),
        burst: Span::ZERO,
        phase: None,
        idle: false,
        part: None,
    };

    /// Whether the kernel accepts a burst with this quota.
    pub fn takes_burst(quota: Option<Span>, burst: Span) -> bool {
        quota.is_none_or(|quota| burst <= quota)
    }
}

/// The pCPUs that a kernel of Linux leaves alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Isolation {
    /// The pCPUs in no scheduling domain (`isolcpus=`, isolated partitions of cpusets): balancing ignores them.
    pub isolated: CpuMask,
    /// The pCPUs whose tick stops while they have one task (`nohz_full=`).
    pub nohz_full: CpuMask,
}

/// Statistics of limits, as in `cpu.stat`, summed over a domain's groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Throttling {
    /// Periods that have ended in which anything ran (`nr_periods`).
    pub periods: i64,
    /// Periods at whose end a limit was exhausted (`nr_throttled`).
    pub throttled_periods: i64,
    /// The time for which limits were exhausted, summed up over CPUs (`throttled_usec`).
    pub throttled_ns: Span,
}

impl std::ops::Add for Throttling {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Throttling {
            periods: self.periods + other.periods,
            throttled_periods: self.throttled_periods + other.throttled_periods,
            throttled_ns: self.throttled_ns + other.throttled_ns,
        }
    }
}

/// The control group that a thread is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Membership {
    /// The group that the policy makes for the domain, or for the vCPU where the domain limits each vCPU.
    #[default]
    Own,
    /// The root group.
    Root,
    /// The group of this id.
    Of(GroupId),
}

/// A scheduling class of Linux and, in the fair one, the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Class {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_BATCH`: a waking thread preempts no other.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO` with a priority from 1 to 99.
    Fifo(u8),
    /// `SCHED_RR` with a priority from 1 to 99.
    RoundRobin(u8),
}

/// The mode in which a thread of Linux executes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ThreadMode {
    /// User or guest mode, to which the thread returns after each interrupt and system call.
    #[default]
    User,
    /// The kernel, which the thread never leaves: a kernel thread, or a worker of the kernel for a process (vhost).
    Kernel,
}

/// The thread that is a vCPU on a host of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadConfig {
    /// Control group of the thread.
    pub group: Membership,
    /// Scheduling class of the thread.
    pub class: Class,
    /// Nice value of the thread, −20 to 19.
    pub nice: i8,
    /// Mode in which the thread executes.
    pub mode: ThreadMode,
}
