//! The floor: a bare round-robin loop over the event queue, with nothing around it. What a host could be at best.

use std::collections::VecDeque;

use vcpulab_host::queue::{EventQueue, Rank};
use vcpulab_host::{NEVER, Time};

use crate::size::Size;
use crate::workload::{Draws, RUN_MEAN_NS, block_mean_ns};

const EVENTS_AT_A_TIME: u64 = 10_000;

/// vCPUs wake up, wait in one queue, run about 2 ms, block.
pub struct Floor {
    queue: EventQueue,
    draws: Vec<Draws>,
    running: Vec<Option<usize>>,
    waiting: VecDeque<usize>,
    idle: Vec<usize>,
    block_mean_ns: u64,
}

impl Floor {
    /// With all vCPUs about to wake.
    pub fn new(size: Size) -> Self {
        let (pcpus, vcpus) = (size.pcpus as usize, size.vcpus as usize);
        let mut queue = EventQueue::default();
        queue.make_room(Rank::RunEnd, pcpus);
        queue.make_room(Rank::WakeUp, vcpus);
        for v in 0..vcpus {
            queue.set(Rank::WakeUp, v, Time::from_ns(v as i64));
        }
        Floor {
            queue,
            draws: (0..vcpus as u64).map(Draws::new).collect(),
            running: vec![None; pcpus],
            waiting: VecDeque::with_capacity(vcpus),
            idle: (0..pcpus).collect(),
            block_mean_ns: block_mean_ns(size.pcpus, size.vcpus),
        }
    }

    /// Handles some events; returns how many.
    pub fn advance(&mut self) -> u64 {
        for _ in 0..EVENTS_AT_A_TIME {
            let (now, rank, id) = self.queue.next();
            if rank == Rank::WakeUp {
                self.queue.set(Rank::WakeUp, id, NEVER);
                self.waiting.push_back(id);
            } else {
                if let Some(v) = self.running[id].take() {
                    self.queue.set(Rank::WakeUp, v, now + self.draws[v].around(self.block_mean_ns));
                }
                self.queue.set(Rank::RunEnd, id, NEVER);
                self.idle.push(id);
            }
            while let (Some(&p), Some(&v)) = (self.idle.last(), self.waiting.front()) {
                self.idle.pop();
                self.waiting.pop_front();
                self.running[p] = Some(v);
                self.queue.set(Rank::RunEnd, p, now + self.draws[v].around(RUN_MEAN_NS));
            }
        }
        EVENTS_AT_A_TIME
    }
}
