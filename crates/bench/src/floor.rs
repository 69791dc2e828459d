//! The floor: a bare round-robin loop over the event queue, with nothing around it. What a host could be at best.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use vcpulab_host::queue::{EventQueue, Rank};
use vcpulab_host::{NEVER, Time};

use crate::Size;
use crate::workload::Draws;

const RUN_MEAN_NS: u64 = 2_000_000;

/// Events per wall-clock second of the bare loop: vCPUs wake up, wait in one queue, run about 2 ms, block.
pub fn events_per_s(size: Size, wall: Duration) -> f64 {
    let (pcpus, vcpus) = (size.pcpus as usize, size.vcpus as usize);
    let block_mean = RUN_MEAN_NS * (u64::from(size.vcpus) / u64::from(size.pcpus) - 1);
    let mut draws: Vec<Draws> = (0..vcpus as u64).map(Draws::new).collect();
    let mut queue = EventQueue::default();
    queue.make_room(Rank::RunEnd, pcpus);
    queue.make_room(Rank::WakeUp, vcpus);
    for v in 0..vcpus {
        queue.set(Rank::WakeUp, v, v as Time);
    }
    let mut running: Vec<Option<usize>> = vec![None; pcpus];
    let mut waiting: VecDeque<usize> = VecDeque::with_capacity(vcpus);
    let mut idle: Vec<usize> = (0..pcpus).collect();
    let (mut events, mut checksum) = (0u64, 0i64);
    let start = Instant::now();
    loop {
        for _ in 0..10_000 {
            let (now, rank, id) = queue.next();
            events += 1;
            if rank == Rank::WakeUp {
                queue.set(Rank::WakeUp, id, NEVER);
                waiting.push_back(id);
            } else {
                if let Some(v) = running[id].take() {
                    queue.set(Rank::WakeUp, v, now + draws[v].around(block_mean));
                }
                queue.set(Rank::RunEnd, id, NEVER);
                idle.push(id);
            }
            while let (Some(&p), Some(&v)) = (idle.last(), waiting.front()) {
                idle.pop();
                waiting.pop_front();
                running[p] = Some(v);
                queue.set(Rank::RunEnd, p, now + draws[v].around(RUN_MEAN_NS));
            }
            checksum ^= now;
        }
        let elapsed = start.elapsed();
        if elapsed >= wall {
            std::hint::black_box(checksum);
            return events as f64 / elapsed.as_secs_f64();
        }
    }
}
