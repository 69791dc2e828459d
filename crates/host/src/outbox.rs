//! The outbox of an event: the requests and reports that the policy and the world make during it. The
//! [engine](crate::host) handles them at the end of the event.

use std::cell::OnceCell;

use crate::broken::Violation;
use crate::{IoStep, PcpuId, RunState, StateRow, VcpuId, WakeCause};

/// The requests and reports of the event at hand.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    /// Virtual interrupts raised by the world.
    pub kicks: Vec<Kick>,
    /// pCPUs to which the world charged work.
    pub charged: Vec<PcpuId>,
    /// Steps of I/O, for the observer.
    pub io_steps: Vec<IoStep>,
    /// Moves of vCPUs, for the observer.
    pub migrations: Vec<Migration>,
    /// Values that the policy reported, for the observer.
    pub state_rows: Vec<StateRow>,
    /// vCPUs for which a wanted runstate began or ended, for the observer.
    pub changed_runstates: Vec<VcpuId>,
    /// The first violation of the host's rules, which ends the run.
    pub violation: OnceCell<Box<Violation>>,
    /// Whether the observer wants steps of I/O.
    pub wants_io: bool,
    /// Whether the observer wants the policy's values.
    pub wants_state: bool,
    /// The runstates whose beginning and end the observer wants to know, as bits.
    pub wanted_runstates: u8,
}

/// A virtual interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kick {
    pub vcpu: VcpuId,
    pub cause: WakeCause,
    /// The pCPU that raises the interrupt; `None`: the processor of the vCPU.
    pub raised_on: Option<PcpuId>,
}

/// The move of a vCPU to another pCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub vcpu: VcpuId,
    pub from: PcpuId,
    pub to: PcpuId,
}

/// The reports that the [`Observer`](crate::Observer) wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub state: bool,
    pub io: bool,
    pub runstates: &'a [RunState],
}

impl Outbox {
    /// An empty outbox.
    pub fn new(wanted: Wanted<'_>) -> Self {
        let Wanted { state, io, runstates } = wanted;
        Outbox {
            kicks: Vec::with_capacity(64),
            charged: Vec::new(),
            io_steps: Vec::new(),
            migrations: Vec::with_capacity(64),
            state_rows: Vec::new(),
            changed_runstates: Vec::with_capacity(if runstates.is_empty() { 0 } else { 64 }),
            violation: OnceCell::new(),
            wants_io: io,
            wants_state: state,
            wanted_runstates: runstates.iter().fold(0, |bits, &state| bits | 1 << state as u8),
        }
    }

    /// Adds a move of `vcpu` in place of all its moves in this event.
    pub fn replace_migrations(&mut self, vcpu: VcpuId, from: PcpuId, to: PcpuId) {
        self.migrations.retain(|migration| migration.vcpu != vcpu);
        self.migrations.push(Migration { vcpu, from, to });
    }

    /// Keeps the first violation of the rules.
    #[cold]
    pub fn violate(&self, what: String) {
        self.violation.get_or_init(|| Box::new(Violation { hook: None, what }));
    }
}
