//! The floor: a bare round-robin loop over the event queue, with nothing around it. What a host could be at best.

use std::collections::VecDeque;

use vcpulab_host::queue::{EventQueue, Rank};
use vcpulab_host::{NEVER, Span, Time};

const EVENTS_AT_A_TIME: u64 = 10_000;

/// Lengths of time for which vCPUs, numbered from 0, run and block.
pub trait Lengths {
    /// The longest that a vCPU runs while others wait; `None`: to its end.
    const SLICE: Option<Span>;

    /// Time of the first wake-up of a vCPU.
    fn start(&self, vcpu: usize) -> Time;

    /// CPU time that it needs next.
    fn run(&mut self, vcpu: usize) -> Span;

    /// Time that it blocks next.
    fn block(&mut self, vcpu: usize) -> Span;
}

/// vCPUs wake up, wait in one queue, run, block.
pub struct Floor<L> {
    lengths: L,
    queue: EventQueue,
    running: Vec<Option<usize>>,
    /// CPU time that each vCPU needs until it blocks, without the slice that it runs now.
    left: Vec<Span>,
    waiting: VecDeque<usize>,
    idle: Vec<usize>,
    counts: FloorCounts,
}

/// Counts of a loop's events since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloorCounts {
    /// Wake-ups, ends of slices and ends of runs.
    pub events: u64,
    /// vCPUs switched in.
    pub dispatches: u64,
    /// Wake-ups alone.
    pub wakeups: u64,
}

impl<L: Lengths> Floor<L> {
    /// A loop of this number of pCPUs and vCPUs.
    pub fn new(pcpus: usize, vcpus: usize, lengths: L) -> Self {
        let mut queue = EventQueue::default();
        queue.make_room(Rank::RunEnd, pcpus);
        queue.make_room(Rank::WakeUp, vcpus);
        for v in 0..vcpus {
            queue.set(Rank::WakeUp, v, lengths.start(v));
        }
        Floor {
            lengths,
            queue,
            running: vec![None; pcpus],
            left: vec![Span::ZERO; vcpus],
            waiting: VecDeque::with_capacity(vcpus),
            idle: (0..pcpus).collect(),
            counts: FloorCounts::default(),
        }
    }

    /// Handles all events before that time.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let event = self.queue.next();
            if event.0 >= end {
                return;
            }
            self.handle(event);
        }
    }

    #[inline(always)]
    fn handle(&mut self, (now, rank, id): (Time, Rank, usize)) {
        self.counts.events += 1;
        if rank == Rank::WakeUp {
            self.counts.wakeups += 1;
            self.queue.set(Rank::WakeUp, id, NEVER);
            self.left[id] = self.lengths.run(id);
            self.waiting.push_back(id);
        } else if let Some(v) = self.running[id] {
            if self.left[v].is_zero() {
                self.queue.set(Rank::WakeUp, v, now + self.lengths.block(v));
            } else if self.waiting.is_empty() {
                return self.go_on(id, v, now);
            } else {
                self.waiting.push_back(v);
            }
            self.running[id] = None;
            self.queue.set(Rank::RunEnd, id, NEVER);
            self.idle.push(id);
        }
        while let (Some(&p), Some(&v)) = (self.idle.last(), self.waiting.front()) {
            self.idle.pop();
            self.waiting.pop_front();
            self.running[p] = Some(v);
            self.counts.dispatches += 1;
            self.go_on(p, v, now);
        }
    }

    /// Runs a vCPU for a slice, or to its end if that is sooner.
    #[inline(always)]
    fn go_on(&mut self, p: usize, v: usize, now: Time) {
        let length = L::SLICE.map_or(self.left[v], |slice| slice.min(self.left[v]));
        self.left[v] -= length;
        self.queue.set(Rank::RunEnd, p, now + length);
    }
}

/// A bare loop, whatever its lengths.
pub trait Bare {
    /// Handles some events; returns how many.
    fn advance(&mut self) -> u64;

    /// Counts of the events since the loop was made.
    fn counts(&self) -> FloorCounts;
}

impl<L: Lengths> Bare for Floor<L> {
    fn advance(&mut self) -> u64 {
        for _ in 0..EVENTS_AT_A_TIME {
            let event = self.queue.next();
            self.handle(event);
        }
        EVENTS_AT_A_TIME
    }

    fn counts(&self) -> FloorCounts {
        self.counts
    }
}
