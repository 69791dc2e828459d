//! The event queue: a winner tree of fours for each rank, with a fixed slot for every source of events.
//!
//! Every source (the action list, each timer, each pCPU, each vCPU's wake-up, each device or client) owns one slot
//! that holds the time of its next event. The slots of a rank are numbered by id, so the earliest slot with ties broken by its
//! number, of the earliest rank with ties broken in the ranks' order, *is* the host contract's order (time, rank, id),
//! whatever the order of insertion. Setting a slot replays one path to the root of its rank's tree: no allocation, and no
//! search. What pCPUs do, most of all, costs no more on a host with many vCPUs. The nodes of a tree are cache lines.

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
    id: u64,
}

impl Winner {
    /// No event, whatever the id.
    const NONE: Winner = Winner { time: NEVER.ns() as u64, id: 0 };
}

/// Number of children of a node: as many as a cache line has room for.
const ARITY: usize = 4;

/// The children of a node.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Children([Winner; ARITY]);

impl Children {
    /// The earliest of them, of equals the first: it holds the lower ids.
    #[inline(always)]
    fn first(&self) -> Winner {
        let [mut first, others @ ..] = self.0;
        for other in others {
            let wins = other.time < first.time;
            first.time = select_unpredictable(wins, other.time, first.time);
            first.id = select_unpredictable(wins, other.id, first.id);
        }
        first
    }
}

/// The events of one rank.
#[derive(Clone, Debug)]
struct Tree {
    /// By node, of which 0 is the root; the children of node i are 4 i to 4 i + 3. Those with a number from `first_slot` on are
    /// slots: a source's own event. Any other child c is the earliest of the children of node c + 1.
    nodes: Vec<Children>,
    first_slot: usize,
    /// The earliest event of all.
    first: Winner,
}

impl Tree {
    /// A tree with slots for ids 0 to `ids` − 1.
    fn with_room(ids: usize) -> Self {
        let (mut first_slot, mut slots) = (0, ARITY);
        while slots < ids {
            first_slot += slots;
            slots *= ARITY;
        }
        let nodes = vec![Children([Winner::NONE; ARITY]); first_slot / ARITY + ids.div_ceil(ARITY)];
        Tree { nodes, first_slot, first: Winner::NONE }
    }

    /// The number of ids that have a slot.
    fn room(&self) -> usize {
        self.nodes.len() * ARITY - self.first_slot
    }

    #[inline(always)]
    fn time_of(&self, id: usize) -> Time {
        let slot = self.first_slot + id;
        Time::from_ns(self.nodes[slot / ARITY].0[slot % ARITY].time as i64)
    }

    #[inline(always)]
    fn set(&mut self, id: usize, time: Time) {
        let mut winner = Winner { time: time.ns() as u64, id: id as u64 };
        let mut child = self.first_slot + id;
        // All the way up, without looking whether anything changes: a branch that is guessed wrong costs more.
        loop {
            let node = &mut self.nodes[child / ARITY];
            node.0[child % ARITY] = winner;
            winner = node.first();
            match (child / ARITY).checked_sub(1) {
                Some(parent) => child = parent,
                None => break,
            }
        }
        self.first = winner;
    }
}

/// The event queue. Times must not be negative.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// By rank.
    trees: [Tree; 5],
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { trees: RANKS.map(|_| Tree::with_room(1)) }
    }
}

impl EventQueue {
    /// Makes sure that ids 0 to `count` − 1 of this rank have slots. (Rebuilds a tree with room to spare when it
    /// must, so growing one by one costs little; a run in its steady state does not grow.)
    pub fn make_room(&mut self, rank: Rank, count: usize) {
        let tree = &mut self.trees[rank as usize];
        if count <= tree.room() {
            return;
        }
        let mut grown = Tree::with_room(count.next_power_of_two());
        for id in 0..tree.room() {
            grown.set(id, tree.time_of(id));
        }
        *tree = grown;
    }

    /// The time of this source's next event ([`NEVER`]: there is none).
    #[inline(always)]
    pub fn time_of(&self, rank: Rank, id: usize) -> Time {
        self.trees[rank as usize].time_of(id)
    }

    /// Sets the time of this source's next event.
    #[inline(always)]
    pub fn set(&mut self, rank: Rank, id: usize, time: Time) {
        debug_assert!(time >= Time::ZERO, "an event before the beginning of time");
        let tree = &mut self.trees[rank as usize];
        debug_assert!(id < tree.room(), "no room was made for this source");
        tree.set(id, time);
    }

    /// The next event: its time, rank and id. Nothing due: time [`NEVER`].
    #[inline(always)]
    pub fn next(&self) -> (Time, Rank, usize) {
        let [mut rank, others @ ..] = RANKS;
        let mut time = self.trees[rank as usize].first.time;
        for other in others {
            let others = self.trees[other as usize].first.time;
            // Of equals the one of the lower rank is first.
            let wins = others < time;
            time = select_unpredictable(wins, others, time);
            rank = select_unpredictable(wins, other, rank);
        }
        (Time::from_ns(time as i64), rank, self.trees[rank as usize].first.id as usize)
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
            for (rank, id, time) in steps {
                let (id, time) = (if rank == 0 { 0 } else { id }, Time::from_ns(time));
                queue.make_room(RANKS[rank], id + 1);
                queue.set(RANKS[rank], id, time);
                model.insert((rank, id), time);
                let least = model.iter().map(|(&(r, i), &t)| (t, r, i)).min().unwrap();
                let (t, r, i) = queue.next();
                prop_assert_eq!((t, r as usize, i), least);
                prop_assert_eq!(queue.time_of(RANKS[rank], id), time);
            }
        }
    }
}
