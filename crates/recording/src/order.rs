//! The records of many pCPUs in order of time.
//!
//! `xentrace` empties the pCPUs' buffers in turn, over and over. What it reads of a pCPU in one round is later than what it
//! read in the round before the last of any pCPU; so two rounds are held, and what is not later than the first of them is
//! in order.

use crate::event::Event;

/// Events held at most; with more than that in two rounds, order is kept among so many.
const HELD_MAX: usize = 1 << 20;

/// Events that wait for earlier ones; their times are ticks yet.
#[derive(Debug, Default)]
pub struct Order {
    held: Vec<Event>,
    /// All of the round before this was not later.
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

    /// A round begins: takes what is in order.
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
