//! The records of many pCPUs in order of time.
//!
//! `xentrace` empties the pCPUs' buffers in turn, over and over. What it reads of a pCPU in one round is later than what it
//! read in the round before the last of any pCPU; so two rounds are held, and events not later than the first of them are
//! in order.

use crate::event::Event;

/// Events held at most; if two rounds have more, order is kept among this number only.
const HELD_MAX: usize = 1 << 20;

/// Events that wait for earlier ones; their times are ticks yet.
#[derive(Debug, Default)]
pub struct Order {
    held: Vec<Event>,
    /// The latest time of the round before.
    horizon: i64,
    latest: i64,
}

impl Order {
    pub fn push(&mut self, event: Event) {
        self.latest = self.latest.max(event.time_ns);
        self.held.push(event);
    }

    pub fn full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    /// A round begins: takes the events that are in order.
    pub fn round(&mut self) -> impl Iterator<Item = Event> {
        self.held.sort_by_key(|event| event.time_ns);
        let done = self.held.partition_point(|event| event.time_ns <= self.horizon);
        self.horizon = self.latest;
        self.held.drain(..done)
    }

    /// Takes the earlier half.
    pub fn half(&mut self) -> impl Iterator<Item = Event> {
        self.held.sort_by_key(|event| event.time_ns);
        self.held.drain(..self.held.len() / 2)
    }

    /// Takes all.
    pub fn rest(&mut self) -> impl Iterator<Item = Event> {
        self.held.sort_by_key(|event| event.time_ns);
        self.held.drain(..)
    }

    pub fn latest(&self) -> i64 {
        self.latest
    }
}
