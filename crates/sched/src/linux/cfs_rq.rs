//! Scheduling entities (`sched_entity`) and the queues on which they compete (`cfs_rq`): a tree of control groups, with a queue
//! for each group and CPU.

use vcpulab_host::{Class, GroupId, PcpuId, Span, ThreadMode, Time};

use super::load_weight::LoadWeight;
use super::pelt::PeltAverage;

vcpulab_host::ids! {
    /// A thread.
    pub struct TaskId;

    /// An entity that competes on a queue (`sched_entity`): a task, or a group on a CPU.
    pub struct EntityId;

    /// The queue of a group on a CPU. The root queues come first, by CPU.
    pub struct CfsRqId;
}

/// The task or group that an entity represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A thread.
    Task(TaskId),
    /// A group on one CPU, by its own queue.
    Group(CfsRqId),
}

/// An entity on a queue (`sched_entity`); `X` is the state that only one policy keeps.
#[derive(Clone, Debug)]
pub struct Entity<X> {
    pub kind: Kind,
    /// The queue that the entity is on, or was on last.
    pub cfs_rq: CfsRqId,
    pub load: LoadWeight,
    /// Virtual run time, ns; wraps.
    pub vruntime: u64,
    pub on_rq: bool,
    /// Whether the entity has left its queue and will join another one.
    pub detached: bool,
    /// Whether the entity is a `SCHED_IDLE` task, or a group with `cpu.idle`.
    pub idle: bool,
    /// Total run time, ns.
    pub sum_exec_runtime: u64,
    /// Total run time when the entity last became current, ns.
    pub prev_sum_exec_runtime: u64,
    /// Time up to which the entity has been charged.
    pub exec_start: Time,
    /// PELT average of the entity's weight while it is queued.
    pub load_avg: PeltAverage,
    /// State that only one policy keeps.
    pub policy: X,
}

/// A queue of entities (`cfs_rq`); `Y` is the state that only one policy keeps.
#[derive(Clone, Debug)]
pub struct CfsRq<Y> {
    pub cpu: PcpuId,
    /// The queue's group, and the entity that represents the queue in its parent; `None`: a root queue.
    pub group: Option<(GroupId, EntityId)>,
    /// Number of groups around the queue's entities: 0 for a root queue.
    pub depth: u32,
    /// Queued entities without the current one, sorted by [`Flavor::timeline_key`](super::Flavor::timeline_key); equal keys in
    /// order of insertion.
    pub timeline: Vec<EntityId>,
    pub curr: Option<EntityId>,
    /// Number of queued entities.
    pub nr_running: u32,
    /// Number of tasks on the queue and below it.
    pub h_nr_running: u32,
    /// Number of those tasks whose dequeue is delayed; counted in a flat hierarchy.
    pub h_nr_delayed: u32,
    /// Sum of the queued weights.
    pub load: u64,
    /// Buddies: entities to be preferred (`next`, `last`), and to be passed over (`skip`).
    pub next: Option<EntityId>,
    pub last: Option<EntityId>,
    pub skip: Option<EntityId>,
    /// Whether the queue has used up its CPU time, and waits for its group's pool.
    pub throttled: bool,
    pub throttled_clock: Time,
    /// Number of throttled queues among the queue and its ancestors.
    pub throttle_count: u32,
    /// Tasks that left the queue because of a limit, in the order in which they left (`throttled_limbo_list`).
    pub throttled_limbo: Vec<TaskId>,
    /// CPU time that is left of the slice that the queue took from its group's pool.
    pub runtime_remaining: Span,
    /// PELT average of the plain weight that is queued.
    pub load_avg: PeltAverage,
    /// Fraction of `load_avg` that the group's load includes.
    pub tg_load_avg_contrib: u64,
    pub last_update_tg_load_avg: Time,
    /// PELT average of the number of runnable tasks on the queue and below it, in 1024ths.
    pub runnable_avg: PeltAverage,
    /// Fraction of `runnable_avg` that the group's average includes.
    pub tg_runnable_contrib: u64,
    /// State that only one policy keeps.
    pub policy: Y,
}

impl<Y: Default> CfsRq<Y> {
    /// An empty queue.
    pub fn new(cpu: PcpuId, group: Option<(GroupId, EntityId)>, depth: u32) -> Self {
        CfsRq {
            cpu,
            group,
            depth,
            timeline: Vec::new(),
            curr: None,
            nr_running: 0,
            h_nr_running: 0,
            h_nr_delayed: 0,
            load: 0,
            next: None,
            last: None,
            skip: None,
            throttled: false,
            throttled_clock: Time::ZERO,
            throttle_count: 0,
            throttled_limbo: Vec::new(),
            runtime_remaining: Span::ZERO,
            load_avg: PeltAverage::default(),
            tg_load_avg_contrib: 0,
            last_update_tg_load_avg: Time::ZERO,
            runnable_avg: PeltAverage::default(),
            tg_runnable_contrib: 0,
            policy: Y::default(),
        }
    }
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub entity: EntityId,
    pub group: Option<GroupId>,
    pub class: Class,
    pub mode: ThreadMode,
    /// Whether the task has left its queue because of a limit, and waits in `CfsRq::throttled_limbo`.
    pub throttled: bool,
}

/// The signed difference of two virtual times, which wrap.
pub fn vruntime_diff(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// The later of two virtual times.
pub fn max_vruntime(a: u64, b: u64) -> u64 {
    if vruntime_diff(a, b) > 0 { a } else { b }
}
