//! A queue that a vCPU joins before the first whose key is greater, or at the end.
//!
//! Keys may change where they are, so the queue need not be sorted, and a place in it cannot be bisected. It is a skip list: a
//! linked list in which about an eighth of the vCPUs have a *floor*, an eighth of these another one above it, and so on. The
//! floors of a level are a list of their own, the first of which is the queue's. Each has a bound on the keys of its *part*: of
//! all after its vCPU, up to and including the next one with a floor of that level. A search passes over the parts whose
//! bound is not greater, and so takes steps like the logarithm of the queue's length.
//!
//! A bound may be too great, because the greatest key has left. Only a search that finds nothing in the part corrects it: a
//! vCPU that leaves costs only its links, and a short queue costs little more than a list.
//!
//! How many floors a vCPU has follows from its number. Nothing is allocated but when vCPUs come.

use vcpulab_host::{Id, VcpuId};

use super::key::Key;

/// The sentinel node before the first and after the last.
const ENDS: u32 = 0;

/// The number of vCPUs for each with a floor, as bits; and the number of these for each with a further floor.
const EACH_BITS: u32 = 3;

/// Most levels, for any number of vCPUs.
const LEVELS_MAX: u32 = u32::BITS / EACH_BITS;

/// The node of a vCPU: vCPU number n has node n + 1.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    next: u32,
    prev: u32,
    /// The node's floor of level 0; its floors of higher levels follow.
    lowest: u32,
    /// The number of the node's floors.
    floors: u16,
    listed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    /// Bound of the floor's part: no key is greater.
    bound: Key,
    /// Floors of its level, in a ring.
    next: u32,
    prev: u32,
    node: u32,
    /// Whether the node has another floor above this one.
    goes_on: bool,
}

/// The queue, with a place for each vCPU.
#[derive(Clone, Debug)]
pub struct Queue {
    nodes: Vec<Node>,
    /// Floors: number l is the queue's own floor of level l; those of the vCPUs follow.
    floors: Vec<Floor>,
    /// Levels in use: one at least, and those on which a vCPU in the queue has a floor.
    levels: u32,
}

impl Default for Queue {
    fn default() -> Self {
        let mut queue = Queue { nodes: Vec::new(), floors: Vec::new(), levels: 1 };
        queue.add_node(LEVELS_MAX);
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

/// Number of a node's floors. Scrambled, because the numbers of waiting vCPUs may follow a pattern.
fn floors_of(node: u32) -> u32 {
    let mixed = (node ^ node >> 16).wrapping_mul(0x7feb_352d);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    (mixed ^ mixed >> 16).trailing_zeros() / EACH_BITS
}

impl Queue {
    /// Makes nodes for `v` and all vCPUs with lower numbers.
    pub fn grow(&mut self, v: VcpuId) {
        for node in self.nodes.len() as u32..=node_of(v) {
            self.add_node(floors_of(node));
        }
    }

    fn add_node(&mut self, floors: u32) {
        let (node, lowest) = (self.nodes.len() as u32, self.floors.len() as u32);
        for floor in 0..floors {
            let (own, goes_on) = (lowest + floor, floor + 1 < floors);
            self.floors.push(Floor { bound: Key::LEAST, next: own, prev: own, node, goes_on });
        }
        let (key, floors) = (Key::LEAST, floors as u16);
        self.nodes.push(Node { key, next: ENDS, prev: ENDS, lowest, floors, listed: false });
    }

    /// Whether `v` is in the queue.
    #[inline(always)]
    pub fn listed(&self, v: VcpuId) -> bool {
        self.nodes[node_of(v) as usize].listed
    }

    /// The first vCPU.
    #[inline(always)]
    pub fn first(&self) -> Option<VcpuId> {
        vcpu_at(self.nodes[ENDS as usize].next)
    }

    /// All vCPUs, in order.
    pub fn iter(&self) -> impl Iterator<Item = VcpuId> + '_ {
        std::iter::successors(self.first(), |&v| vcpu_at(self.nodes[node_of(v) as usize].next))
    }

    /// Inserts `v` before the first vCPU with a greater key, or at the end.
    #[inline]
    pub fn insert(&mut self, v: VcpuId, key: Key) {
        debug_assert!(!self.listed(v), "a vCPU is in the queue once at most");
        let (next, part) = self.place(key);
        let node = node_of(v);
        let prev = std::mem::replace(&mut self.nodes[next as usize].prev, node);
        self.nodes[prev as usize].next = node;
        let own = &mut self.nodes[node as usize];
        (own.key, own.next, own.prev, own.listed) = (key, next, prev, true);
        if own.floors > 0 {
            self.insert_floors(node, part);
        }
    }

    /// Removes `v`.
    #[inline]
    pub fn remove(&mut self, v: VcpuId) {
        let node = node_of(v);
        let own = &mut self.nodes[node as usize];
        debug_assert!(own.listed, "only who is in the queue can be taken out");
        own.listed = false;
        let Node { next, prev, floors, .. } = *own;
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        if floors > 0 {
            self.remove_floors(node);
        }
    }

    /// Changes the key of `v`, which stays in its place.
    pub fn rekey(&mut self, v: VcpuId, key: Key) {
        let node = node_of(v) as usize;
        debug_assert!(self.nodes[node].listed, "only who is in the queue has a key");
        self.nodes[node].key = key;
        let mut before = self.nodes[node].prev;
        while self.nodes[before as usize].floors == 0 {
            before = self.nodes[before as usize].prev;
        }
        let mut part = self.nodes[before as usize].lowest;
        for level in 0..self.levels {
            if level > 0 {
                part = self.above(part);
            }
            let bound = &mut self.floors[part as usize].bound;
            *bound = key.max(*bound);
        }
    }

    /// The node before which a key belongs, and the floor of level 0 whose part it belongs to. The bounds of all parts
    /// around that place are raised to the key.
    fn place(&mut self, key: Key) -> (u32, u32) {
        // A floor and its level; no key up to that of its node is greater.
        let (mut at, mut level) = (self.levels - 1, self.levels - 1);
        loop {
            let Floor { bound, next, node, .. } = self.floors[at as usize];
            if bound > key {
                if level > 0 {
                    (at, level) = (at - 1, level - 1);
                    continue;
                }
                let (mut node, last) = (node, self.floors[next as usize].node);
                loop {
                    node = self.nodes[node as usize].next;
                    if self.nodes[node as usize].key > key {
                        return (node, at);
                    }
                    if node == last {
                        break;
                    }
                }
            }
            if next == level {
                // The last part.
                self.floors[at as usize].bound = key;
                if level == 0 {
                    return (ENDS, at);
                }
                (at, level) = (at - 1, level - 1);
                continue;
            }
            if bound > key {
                self.floors[at as usize].bound = key;
            }
            at = next;
            while self.floors[at as usize].goes_on {
                (at, level) = (at + 1, level + 1);
                let whole = self.floors[at as usize].prev;
                self.floors[whole as usize].bound = key;
            }
        }
    }

    /// The floor of the next level whose part contains the part of a floor.
    fn above(&self, mut floor: u32) -> u32 {
        while !self.floors[floor as usize].goes_on {
            floor = self.floors[floor as usize].prev;
        }
        floor + 1
    }

    /// Splits the parts that contain an inserted node.
    fn insert_floors(&mut self, node: u32, mut part: u32) {
        let Node { key, lowest, floors, .. } = self.nodes[node as usize];
        while self.levels < u32::from(floors) {
            self.floors[self.levels as usize].bound = Key::GREATEST;
            self.levels += 1;
        }
        for own in lowest..lowest + u32::from(floors) {
            if own > lowest {
                part = self.above(part);
            }
            let before = &mut self.floors[part as usize];
            let (next, bound) = (before.next, before.bound);
            (before.next, before.bound) = (own, key);
            self.floors[next as usize].prev = own;
            let own = &mut self.floors[own as usize];
            (own.next, own.prev, own.bound) = (next, part, bound);
        }
    }

    /// Merges the parts that a node had split.
    fn remove_floors(&mut self, node: u32) {
        let Node { lowest, floors, .. } = self.nodes[node as usize];
        for own in lowest..lowest + u32::from(floors) {
            let Floor { bound, next, prev, .. } = self.floors[own as usize];
            let before = &mut self.floors[prev as usize];
            (before.next, before.bound) = (next, bound.max(before.bound));
            self.floors[next as usize].prev = prev;
        }
        while self.levels > 1 && self.floors[self.levels as usize - 1].next == self.levels - 1 {
            self.levels -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vcpulab_host::Time;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        /// Inserts or removes the node.
        Turn,
        Rekey,
    }

    fn key(number: i64) -> Key {
        Key::new(0, Time::from_ns(number))
    }

    impl Queue {
        /// Checks that no bound is below a key of its part, and that only queued nodes have floors in rings.
        fn check(&self) {
            for level in 0..self.levels {
                let (mut node, mut floor) = (ENDS, level);
                loop {
                    let Floor { bound, next, .. } = self.floors[floor as usize];
                    let last = self.floors[next as usize].node;
                    assert_eq!(self.floors[next as usize].prev, floor);
                    loop {
                        node = self.nodes[node as usize].next;
                        assert!(self.nodes[node as usize].key <= bound || node == ENDS, "level {level}");
                        if node == last {
                            break;
                        }
                        assert!(u32::from(self.nodes[node as usize].floors) <= level);
                    }
                    floor = next;
                    if floor == level {
                        break;
                    }
                }
            }
            for level in self.levels..LEVELS_MAX {
                assert_eq!(self.floors[level as usize].next, level);
            }
        }
    }

    proptest! {
        #[test]
        fn a_queue_is_a_list_searched_from_the_front(
            ops in prop::collection::vec((0..400u32, prop_oneof![3 => Just(Op::Turn), 1 => Just(Op::Rekey)], 0..40i64), 0..800),
        ) {
            let mut queue = Queue::default();
            let mut list: Vec<(VcpuId, Key)> = Vec::new();
            for (v, op, number) in ops {
                let (v, key) = (VcpuId(v), key(number));
                queue.grow(v);
                let at = list.iter().position(|&(u, _)| u == v);
                prop_assert_eq!(queue.listed(v), at.is_some());
                match (op, at) {
                    (Op::Turn, None) => {
                        let before = list.iter().position(|&(_, its)| its > key).unwrap_or(list.len());
                        list.insert(before, (v, key));
                        queue.insert(v, key);
                    }
                    (Op::Turn, Some(at)) => {
                        list.remove(at);
                        queue.remove(v);
                    }
                    (Op::Rekey, Some(at)) => {
                        list[at].1 = key;
                        queue.rekey(v, key);
                    }
                    (Op::Rekey, None) => {}
                }
                queue.check();
                prop_assert_eq!(queue.first(), list.first().map(|&(v, _)| v));
                prop_assert!(queue.iter().eq(list.iter().map(|&(v, _)| v)));
            }
        }
    }

    /// No pattern of waiting vCPUs makes the parts long.
    #[test]
    fn an_eighth_have_a_floor_whichever_wait() {
        for stride in 1..=64 {
            let count = (0..1024).filter(|i| floors_of(1 + i * stride) > 0).count();
            assert!((96..160).contains(&count), "{count} of 1024, every {stride}th");
        }
    }
}
