//! What recordings of all kinds are turned into.

use serde::Serialize;

/// Something that happened on a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, ns since the first record.
    pub time_ns: i64,
    /// Where it was recorded.
    pub pcpu: u32,
    /// To whom.
    pub who: Who,
    /// What.
    pub kind: Kind,
}

/// What a pCPU can execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Nothing.
    Idle,
    /// A thread of the host that is no vCPU.
    Host,
    /// A vCPU.
    Vcpu {
        /// Its domain: the number that Xen gave it; for KVM that of the VM (see [`crate::sched_text::Thread`]).
        domain: u32,
        /// Its number in the domain.
        vcpu: u32,
    },
}

/// What a vCPU is at, as Xen defines it; the numbers are those in its trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It executes.
    Running = 0,
    /// It could, and waits for a pCPU.
    Runnable = 1,
    /// It waits for an event.
    Blocked = 2,
    /// It may not run.
    Offline = 3,
}

impl RunState {
    /// All, in the order of their numbers.
    pub const ALL: [RunState; 4] =
        [RunState::Running, RunState::Runnable, RunState::Blocked, RunState::Offline];

    /// The state of that number.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// In lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["running", "runnable", "blocked", "offline"][self as usize]
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A pCPU begins to execute it; what it was at before, if the record says so.
    Run(Option<RunState>),
    /// It stops, though it could go on: its slice is over, another goes first, or it yields.
    Preempted,
    /// It stops, or no longer waits for a pCPU, until an event wakes it.
    Block(Option<RunState>),
    /// It waits for a pCPU from now on.
    Wake(Option<RunState>),
    /// It may not run from now on.
    Offline(Option<RunState>),
    /// The scheduler has looked, and lets it go on.
    Continue,
    /// It asks to let others run.
    Yield,
    /// The scheduler lets it run for at most so long, ns; what happens next on that pCPU is that it runs.
    Slice(u32),
    /// Its domain was created.
    Added,
    /// Its domain was destroyed.
    Removed,
    /// Records of this pCPU are missing from then until now.
    Lost {
        /// So many, if that is known.
        records: u32,
        /// Since when, ns.
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

    /// What it was at until now (if that is known) and is at from now on; `None`: that does not change.
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

/// How often an event was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventCount {
    /// Its number, as 0x and hexadecimal digits.
    pub event: String,
    /// What it is; `None`: unknown.
    pub name: Option<&'static str>,
    /// How often.
    pub count: u64,
    /// Whether figures are made of it.
    pub used: bool,
}
