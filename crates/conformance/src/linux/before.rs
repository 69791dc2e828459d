//! CPU time of each thread before a recording began, chosen so that the groups' lags under CFS are those at its beginning.

use std::collections::BTreeMap;

use vcpulab_host::{GroupId, Span};

use super::folder::Setup;
use super::outcome::Whose;

/// The weight of nice 0, and of a group with `cpu.weight` 100.
const NICE_0: i64 = 1024;
/// The weight of what runs only where nothing else does.
const IDLE: i64 = 3;

/// An entity on a queue.
enum Node {
    Thread(u32),
    Group { weight: i64, behind: Span, within: Vec<Node> },
}

/// CPU time that each thread runs, alone, one after the other: at least an instant, and so that groups of one parent
/// have these lags.
pub fn spans(setup: &Setup, lags: &BTreeMap<Whose, Span>, instant: Span) -> BTreeMap<u32, Span> {
    let mut spans = BTreeMap::new();
    for node in nodes(setup, lags, None) {
        give(&node, least(&node, instant), instant, &mut spans);
    }
    spans
}

/// Entities on the queue of a group (`None`: on the root queue), without groups that contain no thread.
fn nodes(setup: &Setup, lags: &BTreeMap<Whose, Span>, parent: Option<GroupId>) -> Vec<Node> {
    let threads = setup.threads.iter().filter(|(_, made)| made.group == parent);
    let mut all: Vec<Node> = threads.map(|(&thread, _)| Node::Thread(thread)).collect();
    for (id, group) in (0..).map(GroupId).zip(&setup.groups).filter(|(_, group)| group.parent == parent) {
        let within = nodes(setup, lags, Some(id));
        let weight = if group.idle { IDLE } else { (NICE_0 * i64::from(group.weight) + 50) / 100 };
        let behind = lags.get(&Whose::Group(id)).copied().unwrap_or_default();
        if !within.is_empty() {
            all.push(Node::Group { weight, behind, within });
        }
    }
    all
}

impl Node {
    fn weight(&self) -> i64 {
        match self {
            Node::Thread(_) => NICE_0,
            Node::Group { weight, .. } => *weight,
        }
    }

    fn behind(&self) -> Span {
        match self {
            Node::Thread(_) => Span::ZERO,
            Node::Group { behind, .. } => *behind,
        }
    }

    /// CPU time that the entity has run when entities without lag are at the virtual time `at`.
    fn ran(&self, at: Span) -> Span {
        (at - self.behind()) * self.weight() / NICE_0
    }

    /// The virtual time of entities without lag when the entity has run for `ran`.
    fn at(&self, ran: Span) -> Span {
        ran * NICE_0 / self.weight() + self.behind()
    }
}

/// The least that something runs so that each thread in it runs for an instant.
fn least(node: &Node, instant: Span) -> Span {
    let Node::Group { within, .. } = node else { return instant };
    let at = within.iter().map(|node| node.at(least(node, instant))).max().unwrap_or_default();
    within.iter().map(|node| node.ran(at)).fold(Span::ZERO, |sum, ran| sum + ran)
}

/// Gives a thread, or the threads of a group together, this CPU time.
fn give(node: &Node, all: Span, instant: Span, spans: &mut BTreeMap<u32, Span>) {
    match node {
        Node::Thread(thread) => {
            spans.insert(*thread, all.max(instant));
        }
        Node::Group { within, .. } => {
            let weights: i64 = within.iter().map(Node::weight).sum();
            let behind = within.iter().fold(Span::ZERO, |sum, node| sum + node.behind() * node.weight());
            let at = (all * NICE_0 + behind) / weights;
            within.iter().for_each(|node| give(node, node.ran(at), instant, spans));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::folder::{self, Texts};

    #[test]
    fn groups_are_as_far_behind_each_other_as_they_were() {
        let experiment = "cg m\ncg m/a weight=200\ncg m/b\ncg m/b/x\ncg m/b/y weight=50\ncg empty\n\
                          vm a m/a\nth\nvm b m/b\nth cg=m/b/x\nth cg=m/b/y\nvm c\nth\n";
        let threads = "1 a 0\n2 b 0\n3 b 1\n4 c 0\n";
        let texts = Texts { experiment, threads, tunables: "", trace: "", expected: None };
        let setup = folder::read(&texts).unwrap();
        let us = Span::from_us;
        let ran =
            |lags| spans(&setup, &lags, us(10)).into_values().map(|ran| ran.ns() / 1000).collect::<Vec<_>>();
        // x and y have 20 µs of virtual time behind them, b 30, and so a, with twice the weight, 60.
        assert_eq!(ran(BTreeMap::new()), [60, 20, 10, 10]);
        let group = |id| Whose::Group(GroupId(id));
        // y is 500 µs ahead of x, b 1 ms behind a.
        let found = ran(BTreeMap::from([(group(4), us(-500)), (group(2), us(1000))]));
        let virtual_times = [found[0] / 2, found[1] + found[2], found[1], found[2] * 2];
        assert_eq!(virtual_times[0] - virtual_times[1], 1000);
        assert_eq!(virtual_times[3] - virtual_times[2], 500);
        assert_eq!(found[3], 10);
    }
}
