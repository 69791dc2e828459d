//! Reports of policies and worlds to observers: scheduler state, and steps of I/O.

use crate::{DomId, Time};

/// A row of scheduler state, for comparison with the release's own state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateRow {
    /// The time of the report.
    pub time: Time,
    /// The number of the domain it is about (−1: a pCPU).
    pub domain: i64,
    /// The vCPU's number in the domain, the pCPU's number, or −1 for the domain as a whole.
    pub vcpu: i64,
    /// The name of the value.
    pub key: &'static str,
    /// The value.
    pub value: i64,
}

/// A kind of [`IoStep`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// A packet or request was put into a ring.
    EnterRing,
    /// A packet or request was taken from a ring.
    LeaveRing,
    /// A device raised its interrupt.
    Interrupt,
    /// An event was sent through an event channel.
    EventSent,
}

impl IoKind {
    /// Name of the kind in traces.
    pub fn name(self) -> &'static str {
        match self {
            IoKind::EnterRing => "enter-ring",
            IoKind::LeaveRing => "leave-ring",
            IoKind::Interrupt => "interrupt",
            IoKind::EventSent => "event-sent",
        }
    }
}

/// A step of I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoStep {
    /// The kind of step.
    pub kind: IoKind,
    /// The domain whose ring or device it is, or that is notified.
    pub domain: DomId,
    /// The ring, device or packet, in the numbers of the device.
    pub id: u64,
    /// A number that goes with the step, such as the occupancy of the ring.
    pub value: i64,
}
