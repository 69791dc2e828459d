//! A vCPU as the host keeps it: its runstate, the reasons why it may not run, and what is left of its operation.

use crate::{DomId, PcpuId, Span, Time};

/// The domain that the idle vCPUs count to, which has no entry in any table.
const IDLE_DOMAIN: DomId = DomId(u32::MAX);

/// The state of a vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunState {
    /// Executing on a pCPU.
    Running = 0,
    /// Waiting for an event.
    Blocked = 1,
    /// Paused, off line, or not there at all: its domain is not created yet, gone, or saved.
    Offline = 2,
    /// Ready, waiting for a pCPU.
    Runnable = 3,
}

impl RunState {
    /// Name of the runstate in tables and traces.
    pub fn name(self) -> &'static str {
        match self {
            RunState::Running => "running",
            RunState::Blocked => "blocked",
            RunState::Offline => "offline",
            RunState::Runnable => "runnable",
        }
    }
}

/// Time spent in each runstate. The four sum to the time since the host started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunTimes {
    /// Time executing.
    pub running_ns: Span,
    /// Time ready but waiting for a pCPU (steal, CPU ready).
    pub runnable_ns: Span,
    /// Time waiting for an event.
    pub blocked_ns: Span,
    /// Time paused, off line or not there.
    pub offline_ns: Span,
}

/// The cause of a vCPU's wake-up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WakeCause {
    /// The first wake-up that was scheduled for it, before it had ever been woken.
    Start,
    /// A timer that its own program or guest kernel had set.
    Timer,
    /// A device's interrupt.
    Interrupt,
    /// An event sent by the vCPU that executed (event channel, inter-processor interrupt).
    Event,
    /// The end of a pause (by the toolstack, or parked by the scheduler).
    Unpause,
}

impl WakeCause {
    /// Name of the cause in tables and traces.
    pub fn name(self) -> &'static str {
        match self {
            WakeCause::Start => "start",
            WakeCause::Timer => "timer",
            WakeCause::Interrupt => "interrupt",
            WakeCause::Event => "event",
            WakeCause::Unpause => "unpause",
        }
    }
}

/// Reasons for not being runnable, as bits: a vCPU with none is runnable.
pub(crate) mod pause_flag {
    pub const BLOCKED: u8 = 1;
    pub const MIGRATING: u8 = 2;
    pub const PAUSED: u8 = 4;
    pub const DOMAIN_PAUSED: u8 = 8;
    /// Paused by its policy.
    pub const PARKED: u8 = 16;
    /// Taken off line.
    pub const DOWN: u8 = 32;
    /// The vCPU's domain does not exist now: no scheduler has it.
    pub const ABSENT: u8 = 64;
    pub const OFFLINE: u8 = PAUSED | DOMAIN_PAUSED | PARKED | DOWN | ABSENT;
}

/// The state of a vCPU: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Vcpu {
    pub pause_flags: u8,
    pub pauses: u8,
    /// Whether the policy has chosen the vCPU for its processor. (Of a unit's vCPUs: the first one, for all of them.)
    pub current: bool,
    /// Whether the vCPU was interrupted, so that it is asked for its next operation when it runs.
    pub interrupted: bool,
    /// Whether the vCPU has ever been woken.
    pub started: bool,
    /// The cause of the wake-up that ended the present block, or that will end it.
    pub cause: WakeCause,
    /// The cause of the wake-up with which its wait began, if it began with one (of no meaning while it does not wait).
    pub woken: Option<WakeCause>,
    pub state: RunState,
    /// The pCPU it is assigned to.
    pub processor: PcpuId,
    pub dom: DomId,
    /// The rest of its present `Run`.
    pub left: Span,
    /// The time of the last change of its runstate.
    pub state_since: Time,
    /// The time since when it is `current`, or is not any more.
    pub switched_at: Time,
    /// Time in each runstate but runnable, which is the rest.
    pub times: [Span; 3],
}

const _: () = assert!(size_of::<Vcpu>() == 64, "a vCPU fills one cache line");

impl Vcpu {
    /// A vCPU that does not run.
    pub fn new(dom: DomId, processor: PcpuId, pause_flags: u8) -> Self {
        let mut vcpu = Vcpu {
            pause_flags,
            pauses: 0,
            current: false,
            interrupted: false,
            started: false,
            cause: WakeCause::Start,
            woken: None,
            state: RunState::Runnable,
            processor,
            dom,
            left: Span::ZERO,
            state_since: Time::ZERO,
            switched_at: Time::ZERO,
            times: [Span::ZERO; 3],
        };
        vcpu.state = vcpu.state_without_pcpu();
        vcpu
    }

    /// The idle vCPU of a pCPU, which runs.
    pub fn idle(p: PcpuId) -> Self {
        Vcpu { current: true, state: RunState::Running, ..Vcpu::new(IDLE_DOMAIN, p, 0) }
    }

    /// Whether the vCPU's processor executes it.
    #[inline(always)]
    pub fn runs(&self) -> bool {
        self.state == RunState::Running
    }

    /// The time in each runstate up to now.
    #[inline]
    pub fn run_times(&self, now: Time) -> RunTimes {
        let mut times = self.times;
        if let Some(time) = times.get_mut(self.state as usize) {
            *time += now - self.state_since;
        }
        let [running_ns, blocked_ns, offline_ns] = times;
        let runnable_ns = now - Time::ZERO - running_ns - blocked_ns - offline_ns;
        RunTimes { running_ns, runnable_ns, blocked_ns, offline_ns }
    }

    /// The runstate that follows from its pause flags if it does not run.
    #[inline(always)]
    pub fn state_without_pcpu(&self) -> RunState {
        if self.pause_flags & pause_flag::OFFLINE != 0 {
            RunState::Offline
        } else if self.pause_flags & pause_flag::BLOCKED != 0 {
            RunState::Blocked
        } else {
            RunState::Runnable
        }
    }

    /// Brings its runstate up to date with its pause flags. The states that have ended and begun, as bits.
    #[inline(always)]
    pub fn update_state(&mut self, now: Time) -> u8 {
        let state = if self.runs() { self.state } else { self.state_without_pcpu() };
        self.enter_state(state, now)
    }

    /// Enters a runstate. The states that have ended and begun, as bits.
    #[inline(always)]
    pub fn enter_state(&mut self, state: RunState, now: Time) -> u8 {
        let before = self.state;
        if state == before {
            return 0;
        }
        if state == RunState::Runnable {
            self.woken = match before {
                RunState::Blocked => Some(self.cause),
                RunState::Offline => Some(WakeCause::Unpause),
                _ => None,
            };
        }
        if let Some(time) = self.times.get_mut(before as usize) {
            *time += now - self.state_since;
        }
        (self.state, self.state_since) = (state, now);
        1 << before as u8 | 1 << state as u8
    }

    /// Whether a reason for not running (any of them, if there are several) is in force.
    #[inline(always)]
    pub fn has(&self, flags: u8) -> bool {
        self.pause_flags & flags != 0
    }
}
