//! The event queue: a winner tree with a fixed slot for every source of events.
//!
//! Every source (the action list, each timer, each pCPU, each vCPU's wake-up, each device or client) owns one slot
//! that holds the time of its next event. Slots are numbered in the host contract's order of rank and id, so the
//! earliest slot with ties broken by its number *is* the contract's order (time, rank, id), whatever the order of
//! insertion. Setting a slot replays one path to the root: no allocation, and no search.

use std::hint::select_unpredictable;

use crate::{NEVER, Time};

/// The ranks of the host contract, in order; events of one rank are ordered by an id of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// The next scripted action (id 0: one list, kept in order).
    Action = 0,
    /// A scheduler's timer (id: order of creation).
    Timer = 1,
    /// The running vCPU's operation is used up (id: pCPU).
    RunEnd = 2,
    /// A vCPU's wake-up (id: vCPU).
    WakeUp = 3,
    /// A device, link, client or guest timer (id: order of creation). The contract, which has none, ends at rank 3.
    Source = 4,
}

const RANKS: [Rank; 5] = [Rank::Action, Rank::Timer, Rank::RunEnd, Rank::WakeUp, Rank::Source];

/// The earliest event below a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Winner {
    time: u64,
    slot: u64,
}

/// The event queue. Times must not be negative.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// `nodes[leaves + slot]` is the slot's own time, `nodes[i]` the earlier of its two children, `nodes[1]` the next event.
    nodes: Vec<Winner>,
    leaves: usize,
    /// First slot of each rank, and past the end of the last.
    base: [usize; 6],
}

impl Default for EventQueue {
    fn default() -> Self {
        Self::with_room([1, 0, 0, 0, 0])
    }
}

impl EventQueue {
    fn with_room(room: [usize; 5]) -> Self {
        let mut base = [0; 6];
        for rank in 0..5 {
            base[rank + 1] = base[rank] + room[rank];
        }
        let leaves = base[5].next_power_of_two();
        let mut nodes = vec![Winner { time: NEVER.ns() as u64, slot: 0 }; 2 * leaves];
        for slot in 0..leaves {
            nodes[leaves + slot].slot = slot as u64;
        }
        for i in (1..leaves).rev() {
            nodes[i] = nodes[2 * i];
        }
        EventQueue { nodes, leaves, base }
    }

    /// Makes sure that ids 0 to `count` − 1 of this rank have slots. (Rebuilds the tree with room to spare when it
    /// must, so growing one by one costs little; a run in its steady state does not grow.)
    pub fn make_room(&mut self, rank: Rank, count: usize) {
        let room = |q: &Self, r: Rank| q.base[r as usize + 1] - q.base[r as usize];
        if count <= room(self, rank) {
            return;
        }
        let mut rooms = RANKS.map(|r| room(self, r));
        rooms[rank as usize] = count.next_power_of_two();
        let mut grown = Self::with_room(rooms);
        for r in RANKS {
            for id in 0..room(self, r) {
                grown.set(r, id, self.time_of(r, id));
            }
        }
        *self = grown;
    }

    /// Gives up the room to spare, so that the tree is no deeper than it must be. Call it when nothing is added any more.
    pub fn fit(&mut self, counts: [usize; 5]) {
        let mut fitted = Self::with_room(counts);
        for (r, count) in RANKS.into_iter().zip(counts) {
            for id in 0..count {
                fitted.set(r, id, self.time_of(r, id));
            }
        }
        *self = fitted;
    }

    /// The time of this source's next event ([`NEVER`]: there is none).
    #[inline(always)]
    pub fn time_of(&self, rank: Rank, id: usize) -> Time {
        Time::from_ns(self.nodes[self.leaves + self.base[rank as usize] + id].time as i64)
    }

    /// Sets the time of this source's next event.
    #[inline(always)]
    pub fn set(&mut self, rank: Rank, id: usize, time: Time) {
        debug_assert!(time >= Time::ZERO, "an event before the beginning of time");
        let slot = self.base[rank as usize] + id;
        debug_assert!(slot < self.base[rank as usize + 1], "no room was made for this source");
        let mut node = self.leaves + slot;
        let mut winner = Winner { time: time.ns() as u64, slot: slot as u64 };
        self.nodes[node] = winner;
        // All the way up, without looking whether anything changes: a branch that is guessed wrong costs more.
        while node > 1 {
            let other = self.nodes[node ^ 1];
            // Of equals the left one is first: it holds the lower slots.
            let other_wins = other.time < winner.time + (node as u64 & 1);
            winner.time = select_unpredictable(other_wins, other.time, winner.time);
            winner.slot = select_unpredictable(other_wins, other.slot, winner.slot);
            node >>= 1;
            self.nodes[node] = winner;
        }
    }

    /// The next event: its time, rank and id. Nothing due: time [`NEVER`].
    #[inline(always)]
    pub fn next(&self) -> (Time, Rank, usize) {
        let Winner { time, slot } = self.nodes[1];
        let slot = slot as usize;
        let rank = if slot >= self.base[4] {
            Rank::Source
        } else if slot >= self.base[3] {
            Rank::WakeUp
        } else if slot >= self.base[2] {
            Rank::RunEnd
        } else if slot >= self.base[1] {
            Rank::Timer
        } else {
            Rank::Action
        };
        (Time::from_ns(time as i64), rank, slot - self.base[rank as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn orders_by_time_then_rank_then_id() {
        let mut queue = EventQueue::default();
        queue.make_room(Rank::WakeUp, 3);
        queue.make_room(Rank::Timer, 2);
        queue.set(Rank::WakeUp, 0, Time::from_ns(5));
        queue.set(Rank::Timer, 1, Time::from_ns(5));
        queue.set(Rank::Timer, 0, Time::from_ns(5));
        assert_eq!(queue.next(), (Time::from_ns(5), Rank::Timer, 0));
        queue.set(Rank::Timer, 0, NEVER);
        assert_eq!(queue.next(), (Time::from_ns(5), Rank::Timer, 1));
        queue.set(Rank::WakeUp, 2, Time::from_ns(4));
        assert_eq!(queue.next(), (Time::from_ns(4), Rank::WakeUp, 2));
    }

    proptest! {
        /// The tree agrees with a sorted list, also while it grows.
        #[test]
        fn agrees_with_a_sorted_list(steps in prop::collection::vec((0usize..5, 0usize..40, 0i64..50), 1..300)) {
            let mut queue = EventQueue::default();
            let mut model = std::collections::BTreeMap::new();
            let (mut counts, mut left) = ([1, 0, 0, 0, 0], steps.len());
            for (rank, id, time) in steps {
                left -= 1;
                let (id, time) = (if rank == 0 { 0 } else { id }, Time::from_ns(time));
                queue.make_room(RANKS[rank], id + 1);
                counts[rank] = counts[rank].max(id + 1);
                queue.set(RANKS[rank], id, time);
                model.insert((rank, id), time);
                let least = model.iter().map(|(&(r, i), &t)| (t, r, i)).min().unwrap();
                let (t, r, i) = queue.next();
                prop_assert_eq!((t, r as usize, i), least);
                if left % 7 == 0 {
                    queue.fit(counts);
                    prop_assert_eq!(queue.next(), (t, r, i));
                }
            }
        }
    }
}
