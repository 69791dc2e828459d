//! A queue that a vCPU joins before the first whose key is greater, or at the end.
//!
//! Keys may change where they are, so the queue need not be sorted, and a place in it cannot be bisected. It is a skip list: a
//! linked list in which about a quarter of the vCPUs have a *floor*, a quarter of these another one above it, and so on. The
//! floors of a level are a list of their own, and each knows the greatest key of its *part*: of all after its vCPU, up to
//! and including the next one with a floor of that level. A search passes over parts that have no greater key, and so takes
//! steps like the logarithm of the queue's length. The first floor of each level is the queue's own.
//!
//! How many floors a vCPU has follows from its number. Nothing is allocated but when vCPUs come.

use vcpulab_host::{Id, VcpuId};

use super::key::Key;

/// The node before the first and after the last.
const ENDS: u32 = 0;

/// Most levels: each is for four times as many vCPUs as the one below.
const LEVELS_MAX: u32 = 16;

/// The place of a vCPU: that of number n is node n + 1.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    next: u32,
    prev: u32,
    /// Its floor of level 0; those above follow.
    lowest: u32,
    /// The number of its floors.
    floors: u16,
    listed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    /// The greatest key of its part; [`Key::LEAST`] where nobody is in it.
    greatest: Key,
    /// Floors of its level, in a ring.
    next: u32,
    prev: u32,
    node: u32,
    /// Is another one above it?
    goes_on: bool,
}

/// The queue, with a place for each vCPU.
#[derive(Clone, Debug)]
pub struct Queue {
    nodes: Vec<Node>,
    /// Number l is the queue's own of level l. The vCPUs' follow.
    floors: Vec<Floor>,
    /// Levels in use, one at least.
    levels: u32,
}

impl Default for Queue {
    fn default() -> Self {
        let mut queue = Queue { nodes: Vec::new(), floors: Vec::new(), levels: 1 };
        queue.add_node(LEVELS_MAX);
        queue.nodes[ENDS as usize].listed = true;
        queue
    }
}

#[inline(always)]
fn node_of(v: VcpuId) -> u32 {
    v.index() as u32 + 1
}

#[inline(always)]
fn vcpu_at(node: u32) -> Option<VcpuId> {
    (node != ENDS).then(|| VcpuId::from_index(node as usize - 1))
}

/// How many floors a node has. Scrambled, because which vCPUs wait may follow some pattern of their numbers.
fn floors_of(node: u32) -> u32 {
    let mixed = (node ^ node >> 16).wrapping_mul(0x7feb_352d);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    ((mixed ^ mixed >> 16).trailing_zeros() / 2).min(LEVELS_MAX)
}

impl Queue {
    /// Makes places for `v` and all below.
    pub fn grow(&mut self, v: VcpuId) {
        for node in self.nodes.len() as u32..=node_of(v) {
            let floors = floors_of(node);
            self.add_node(floors);
            while self.levels < floors {
                self.floors[self.levels as usize].greatest = self.greatest_in(self.levels, self.levels);
                self.levels += 1;
            }
        }
    }

    fn add_node(&mut self, floors: u32) {
        let (node, lowest) = (self.nodes.len() as u32, self.floors.len() as u32);
        for floor in 0..floors {
            let (own, goes_on) = (lowest + floor, floor + 1 < floors);
            self.floors.push(Floor { greatest: Key::LEAST, next: own, prev: own, node, goes_on });
        }
        let (key, floors) = (Key::LEAST, floors as u16);
        self.nodes.push(Node { key, next: ENDS, prev: ENDS, lowest, floors, listed: false });
    }

    /// Is `v` in the queue?
    #[inline(always)]
    pub fn listed(&self, v: VcpuId) -> bool {
        self.nodes[node_of(v) as usize].listed
    }

    /// The first.
    #[inline(always)]
    pub fn first(&self) -> Option<VcpuId> {
        vcpu_at(self.nodes[ENDS as usize].next)
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = VcpuId> + '_ {
        std::iter::successors(self.first(), |&v| vcpu_at(self.nodes[node_of(v) as usize].next))
    }

    /// Puts `v` before the first with a greater key, or at the end.
    pub fn insert(&mut self, v: VcpuId, key: Key) {
        debug_assert!(!self.listed(v), "a vCPU is in the queue once at most");
        let node = node_of(v);
        let Node { lowest, floors, .. } = self.nodes[node as usize];
        // On each level to the part that v comes into. All before v have keys up to its own.
        let (mut at, mut level) = (self.levels, self.levels);
        let greatest = loop {
            (at, level) = (at - 1, level - 1);
            let mut floor = &self.floors[at as usize];
            while floor.greatest <= key && floor.next != level {
                at = floor.next;
                floor = &self.floors[at as usize];
            }
            let (greatest, next) = (floor.greatest, floor.next);
            if level < u32::from(floors) {
                let own = lowest + level;
                self.floors[next as usize].prev = own;
                let floor = &mut self.floors[at as usize];
                (floor.greatest, floor.next) = (key, own);
                let floor = &mut self.floors[own as usize];
                floor.greatest = if greatest > key { greatest } else { Key::LEAST };
                (floor.next, floor.prev) = (next, at);
            } else if greatest < key {
                self.floors[at as usize].greatest = key;
            }
            if level == 0 {
                break greatest;
            }
        };
        let mut next = ENDS;
        if greatest > key {
            next = self.nodes[self.floors[at as usize].node as usize].next;
            while self.nodes[next as usize].key <= key {
                next = self.nodes[next as usize].next;
            }
        }
        let prev = std::mem::replace(&mut self.nodes[next as usize].prev, node);
        self.nodes[prev as usize].next = node;
        self.nodes[node as usize] = Node { key, next, prev, lowest, floors, listed: true };
    }

    /// Takes `v` out.
    pub fn remove(&mut self, v: VcpuId) {
        let node = &mut self.nodes[node_of(v) as usize];
        debug_assert!(node.listed, "only who is in the queue can be taken out");
        node.listed = false;
        let Node { key, next, prev, lowest, floors, .. } = *node;
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        let own = lowest..lowest + u32::from(floors);
        for floor in own.clone() {
            let Floor { next, prev, .. } = self.floors[floor as usize];
            self.floors[prev as usize].next = next;
            self.floors[next as usize].prev = prev;
            self.floors[prev as usize].greatest = self.greatest_in(prev, floor - lowest);
        }
        match own.last() {
            None => self.settle(self.part_after(prev), 0, key),
            Some(top) => {
                let level = u32::from(floors);
                if level < self.levels {
                    self.settle(self.above(self.floors[top as usize].prev), level, key);
                }
            }
        }
    }

    /// Changes the key of `v` where it is.
    pub fn rekey(&mut self, v: VcpuId, key: Key) {
        let node = &mut self.nodes[node_of(v) as usize];
        debug_assert!(node.listed, "only who is in the queue has a key");
        let before = std::mem::replace(&mut node.key, key);
        let prev = node.prev;
        self.settle(self.part_after(prev), 0, before.max(key));
    }

    /// Brings the greatest keys of a part of that level, and of those that it belongs to, up to date. No key above
    /// `bound` has come or gone.
    fn settle(&mut self, mut at: u32, mut level: u32, bound: Key) {
        while self.floors[at as usize].greatest <= bound {
            let greatest = self.greatest_in(at, level);
            let before = std::mem::replace(&mut self.floors[at as usize].greatest, greatest);
            level += 1;
            if greatest == before || level == self.levels {
                return;
            }
            at = self.above(at);
        }
    }

    /// The floor of level 0 whose part has what comes after a node.
    #[inline(always)]
    fn part_after(&self, mut node: u32) -> u32 {
        while self.nodes[node as usize].floors == 0 {
            node = self.nodes[node as usize].prev;
        }
        self.nodes[node as usize].lowest
    }

    /// The floor of the next level whose part has that of a floor.
    fn above(&self, mut floor: u32) -> u32 {
        while !self.floors[floor as usize].goes_on {
            floor = self.floors[floor as usize].prev;
        }
        floor + 1
    }

    /// The greatest key of a floor's part, from what is below it.
    fn greatest_in(&self, floor: u32, level: u32) -> Key {
        let Floor { node, next: end, .. } = self.floors[floor as usize];
        let mut greatest = Key::LEAST;
        if level == 0 {
            let (mut node, last) = (node, self.floors[end as usize].node);
            loop {
                node = self.nodes[node as usize].next;
                greatest = greatest.max(self.nodes[node as usize].key);
                if node == last {
                    return greatest;
                }
            }
        }
        let mut below = floor - 1;
        loop {
            let Floor { greatest: its, next, .. } = self.floors[below as usize];
            greatest = greatest.max(its);
            if next == end - 1 {
                return greatest;
            }
            below = next;
        }
    }
}
