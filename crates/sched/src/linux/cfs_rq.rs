//! Entities and the queues they compete on: a tree of control groups, with a queue for each group and CPU.

use vcpulab_host::{Class, GroupId, PcpuId, Span, Time};

use super::load_weight::Weight;
use super::pelt::Average;

vcpulab_host::ids! {
    /// A thread.
    pub struct TaskId;

    /// An entity that competes on a queue (`sched_entity`): a task, or a group on a CPU.
    pub struct EntityId;

    /// The queue of a group on a CPU. The root queues come first, by CPU.
    pub struct QueueId;
}

/// The task or group that an entity represents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A thread.
    Task(TaskId),
    /// A group on one CPU, by its own queue.
    Group(QueueId),
}

/// An entity on a queue (`sched_entity`); `X` is the state that only one policy keeps.
#[derive(Clone, Debug)]
pub struct Entity<X> {
    pub kind: Kind,
    /// The queue that the entity is on, or was on last.
    pub queue: QueueId,
    pub weight: Weight,
    /// Virtual run time (`vruntime`), ns; wraps.
    pub v: u64,
    pub queued: bool,
    /// Whether the entity has left its queue to join another one.
    pub roams: bool,
    /// Whether the entity is a `SCHED_IDLE` task, or a group with `cpu.idle`.
    pub idle: bool,
    /// Total run time, and its value when the entity last became current, ns.
    pub sum: u64,
    pub sum_before: u64,
    pub charged_at: Time,
    /// Average of the entity's weight while it is queued (PELT: `load_avg`).
    pub average: Average,
    pub own: X,
}

/// A queue of entities (`cfs_rq`); `Y` is the state that only one policy keeps.
#[derive(Clone, Debug)]
pub struct Queue<Y> {
    pub cpu: PcpuId,
    /// The queue's group, and the entity that represents the queue in its parent; `None`: a root queue.
    pub group: Option<(GroupId, EntityId)>,
    /// Number of groups around the queue's entities: 0 for a root queue.
    pub depth: u32,
    /// Queued entities without the current one, in the policy's order.
    pub tree: Vec<EntityId>,
    pub current: Option<EntityId>,
    /// Number of queued entities, and of tasks on the queue and below it.
    pub nr: u32,
    pub tasks: u32,
    /// Sum of the queued weights.
    pub load: u64,
    /// Buddies: entities to be preferred (`next`, `last`), and to be passed over (`skip`).
    pub next: Option<EntityId>,
    pub last: Option<EntityId>,
    pub skip: Option<EntityId>,
    pub throttled: bool,
    pub throttled_at: Time,
    /// CPU time left of the slice that the queue took from its group's pool.
    pub runtime: Span,
    /// Average of the plain weight queued (PELT: `load_avg`), and the part of it that the group's load includes.
    pub average: Average,
    pub contributed: u64,
    pub contributed_at: Time,
    pub own: Y,
}

impl<Y: Default> Queue<Y> {
    /// An empty queue.
    pub fn new(cpu: PcpuId, group: Option<(GroupId, EntityId)>, depth: u32) -> Self {
        Queue {
            cpu,
            group,
            depth,
            tree: Vec::new(),
            current: None,
            nr: 0,
            tasks: 0,
            load: 0,
            next: None,
            last: None,
            skip: None,
            throttled: false,
            throttled_at: Time::ZERO,
            runtime: Span::ZERO,
            average: Average::default(),
            contributed: 0,
            contributed_at: Time::ZERO,
            own: Y::default(),
        }
    }
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub entity: EntityId,
    pub group: Option<GroupId>,
    pub class: Class,
}

/// The signed difference of two virtual times, which wrap.
pub fn ahead(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// The later of two virtual times.
pub fn later(a: u64, b: u64) -> u64 {
    if ahead(a, b) > 0 { a } else { b }
}
