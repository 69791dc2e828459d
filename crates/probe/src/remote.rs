//! Latency of memory on other nodes, relative to the latency of local memory.

use std::{io, thread};

use crate::chase::{self, BYTES_MAX, Line, Step};
use crate::layout::Node;
use crate::pin;

/// By node: its number, its firmware's distance from the first one, and the steps of a walk through its memory on the first one's CPU.
pub(crate) type Walks = Vec<(usize, i64, Step)>;

/// Walks through memory of each node with a CPU that we may run on, the first one's first; `None` once `go_on` says no.
///
/// # Errors
/// A thread cannot be pinned.
pub(crate) fn walks(
    nodes: &[Node],
    allowed: &[usize],
    last_level_bytes: usize,
    go_on: &dyn Fn() -> bool,
) -> io::Result<Option<Walks>> {
    let reachable: Vec<(&Node, usize)> = nodes
        .iter()
        .filter_map(|node| Some((node, *node.cpus.iter().find(|cpu| allowed.contains(cpu))?)))
        .collect();
    let count = last_level_bytes.saturating_mul(4).min(BYTES_MAX) / size_of::<Line>();
    let mut walks = Vec::new();
    for &(node, cpu) in &reachable {
        if !go_on() {
            return Ok(None);
        }
        // Linux takes memory from the node of the CPU that touches it first.
        let touched = thread::scope(|scope| {
            let touch = scope.spawn(|| pin::pin_to(cpu).map(|()| chase::one_cycle(count)));
            touch.join().expect("touching memory does not panic")
        });
        let lines = touched?;
        pin::pin_to(reachable[0].1)?;
        let distance = reachable[0].0.distances.get(node.number).copied().unwrap_or(10);
        walks.push((node.number, distance, chase::step_through(&lines)));
    }
    Ok(Some(walks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize, cpus: Vec<usize>) -> Node {
        Node { number, cpus, distances: vec![10, 21] }
    }

    #[test]
    fn memory_of_each_node_that_we_reach_is_walked_through() {
        let cpu = pin::allowed().unwrap()[0];
        let nodes = [node(0, vec![cpu]), node(1, vec![cpu]), node(2, vec![usize::MAX])];
        let walks = walks(&nodes, &[cpu], 1 << 18, &|| true).unwrap().unwrap();
        let read: Vec<_> = walks.iter().map(|(number, distance, _)| (*number, *distance)).collect();
        assert_eq!(read, [(0, 10), (1, 21)]);
        assert!(walks.iter().all(|(.., step)| step.bytes == 1 << 20 && step.median_ps() > 0));
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        let cpu = pin::allowed().unwrap()[0];
        assert!(walks(&[node(0, vec![cpu])], &[cpu], 1 << 18, &|| false).unwrap().is_none());
    }
}
