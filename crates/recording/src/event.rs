//! Events, the same for recordings of all kinds.

use serde::Serialize;

/// An event on a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time of the event, ns since the first record.
    pub time_ns: i64,
    /// The pCPU that recorded it.
    pub pcpu: u32,
    /// The vCPU or thread of the event.
    pub who: Who,
    /// The kind of event.
    pub kind: Kind,
}

/// An occupant of a pCPU: a vCPU, a thread, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// No occupant: the pCPU is idle.
    Idle,
    /// A thread of the host, not a vCPU.
    Host,
    /// A vCPU.
    Vcpu {
        /// The domain's number, given by Xen; for KVM that of the VM (see [`crate::Thread`]).
        domain: u32,
        /// The vCPU's number in the domain.
        vcpu: u32,
    },
}

/// The runstate of a vCPU as Xen defines it; the numbers are those in its trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Executing.
    Running = 0,
    /// Able to execute, and waiting for a pCPU.
    Runnable = 1,
    /// Waiting for an event.
    Blocked = 2,
    /// Not allowed to run.
    Offline = 3,
}

impl RunState {
    /// All runstates, in the order of their numbers.
    pub const ALL: [RunState; 4] =
        [RunState::Running, RunState::Runnable, RunState::Blocked, RunState::Offline];

    /// The state of that number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// Name of the state, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["running", "runnable", "blocked", "offline"][self as usize]
    }
}

/// The kinds of events. Changes of runstates give the previous one if the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The pCPU begins to execute the vCPU.
    Run(Option<RunState>),
    /// The vCPU stops, though it could continue: its slice ends, another vCPU goes first, or it yields.
    Preempted,
    /// The vCPU stops, or no longer waits for a pCPU, until an event wakes it.
    Block(Option<RunState>),
    /// The vCPU waits for a pCPU from now on.
    Wake(Option<RunState>),
    /// The vCPU may not run from now on.
    Offline(Option<RunState>),
    /// The scheduler decides that the vCPU continues.
    Continue,
    /// The vCPU yields the pCPU.
    Yield,
    /// The scheduler grants the vCPU a slice of this length, ns; the next event on that pCPU is that the vCPU runs.
    Slice(u32),
    /// The domain of the vCPU was created.
    Added,
    /// The domain of the vCPU was destroyed.
    Removed,
    /// The vCPU's runstate and the work of the pCPU are unknown since then: a record is missing.
    Unknown {
        /// Time since which they are unknown, ns.
        since_ns: i64,
    },
    /// Records of this pCPU are missing from then until now.
    Lost {
        /// Number of lost records; 0: unknown.
        records: u32,
        /// Time since which they are missing, ns.
        since_ns: i64,
    },
    /// The recording ends.
    End,
}

impl Kind {
    /// The change from one runstate to another.
    #[must_use]
    pub fn change(from: RunState, to: RunState) -> Self {
        match (from, to) {
            (_, RunState::Running) => Kind::Run(Some(from)),
            (RunState::Running, RunState::Runnable) => Kind::Preempted,
            (_, RunState::Runnable) => Kind::Wake(Some(from)),
            (_, RunState::Blocked) => Kind::Block(Some(from)),
            (_, RunState::Offline) => Kind::Offline(Some(from)),
        }
    }

    /// The runstates until now (if that is known) and from now on; `None`: it does not change.
    #[must_use]
    pub fn states(self) -> Option<(Option<RunState>, RunState)> {
        match self {
            Kind::Run(from) => Some((from, RunState::Running)),
            Kind::Preempted => Some((Some(RunState::Running), RunState::Runnable)),
            Kind::Wake(from) => Some((from, RunState::Runnable)),
            Kind::Block(from) => Some((from, RunState::Blocked)),
            Kind::Offline(from) => Some((from, RunState::Offline)),
            _ => None,
        }
    }
}

/// Number of records of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// The event's number, as 0x and hexadecimal digits.
    pub event: String,
    /// The event's name; `None`: unknown.
    pub name: Option<&'static str>,
    /// Number of records.
    pub count: u64,
    /// Whether metrics are made of them.
    pub used: bool,
}
