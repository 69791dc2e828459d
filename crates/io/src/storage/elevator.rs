//! The order of the requests that a disk serves: a one-way elevator with deadlines, and merging of neighbors.
//!
//! Reads and writes wait apart and are served in batches of one direction, in ascending order from where the head is.
//! Reads go first, but are not preferred for ever; a batch begins with what has waited too long, if anything has. These
//! are the rules of Linux's deadline elevator (`Documentation/block/deadline-iosched`, and the chapter on I/O schedulers
//! in Red Hat's performance tuning guide).

use vcpulab_host::{Span, Time};

/// The elevator's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElevatorConfig {
    /// Wait of a read after which it begins the next batch of reads, ns.
    pub read_expires_ns: Span,
    /// Wait of a write after which it begins the next batch of writes, ns.
    pub write_expires_ns: Span,
    /// Most merged requests in a batch.
    pub batch: u32,
    /// Batches of reads that waiting writes let pass.
    pub writes_starved: u32,
    /// Largest merged request, bytes.
    pub merged_bytes_max: u32,
}

impl ElevatorConfig {
    /// The defaults of Linux's deadline elevator (tunables of the same names; `max_sectors_kb` is 512).
    pub const LINUX: ElevatorConfig = ElevatorConfig {
        read_expires_ns: Span::from_ms(500),
        write_expires_ns: Span::from_secs(5),
        batch: 16,
        writes_starved: 2,
        merged_bytes_max: 512 << 10,
    };
}

/// A group of one or more requests that are served together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Unique number of the extent.
    pub id: u64,
    /// Start of the extent on the disk, bytes.
    pub start: u64,
    /// Length of the extent, bytes.
    pub bytes: u32,
    pub write: bool,
    /// Arrival of its oldest request.
    since: Time,
}

impl Extent {
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }
}

/// The extents that wait for a disk.
#[derive(Clone, Debug)]
pub(crate) struct Elevator {
    config: ElevatorConfig,
    /// Reads and writes, each in ascending order.
    queues: [Vec<Extent>; 2],
    next_id: u64,
    /// The direction of the batch, and the extents left of it.
    writes: bool,
    left: u32,
    /// Batches of reads that writes have let pass.
    passed: u32,
}

impl Elevator {
    /// An empty elevator, with memory for `capacity` requests.
    pub fn new(config: ElevatorConfig, capacity: usize) -> Self {
        let queue = || Vec::with_capacity(capacity);
        Elevator { config, queues: [queue(), queue()], next_id: 0, writes: false, left: 0, passed: 0 }
    }

    /// Adds a request. Returns the extent that it has become, or become part of, and whether the latter.
    pub fn add(&mut self, now: Time, start: u64, bytes: u32, write: bool) -> (u64, bool) {
        let queue = &mut self.queues[usize::from(write)];
        let at = queue.partition_point(|extent| extent.start < start);
        let fits = |extent: &Extent| {
            u64::from(extent.bytes) + u64::from(bytes) <= u64::from(self.config.merged_bytes_max)
        };
        let before = at.checked_sub(1).filter(|&before| queue[before].end() == start && fits(&queue[before]));
        if let Some(before) = before {
            queue[before].bytes += bytes;
            return (queue[before].id, true);
        }
        if let Some(after) = queue.get_mut(at)
            && after.start == start + u64::from(bytes)
            && fits(after)
        {
            (after.start, after.bytes) = (start, after.bytes + bytes);
            return (after.id, true);
        }
        let id = self.next_id;
        self.next_id += 1;
        queue.insert(at, Extent { id, start, bytes, write, since: now });
        (id, false)
    }

    /// Removes the extent that is served next, with the head at `head`.
    pub fn take(&mut self, now: Time, head: u64) -> Option<Extent> {
        let direction = usize::from(self.writes);
        if self.left > 0
            && let Some(at) = self.ahead(direction, head)
        {
            self.left -= 1;
            return Some(self.queues[direction].remove(at));
        }
        self.begin_batch(now, head)
    }

    fn begin_batch(&mut self, now: Time, head: u64) -> Option<Extent> {
        let [reads, writes] = [0, 1].map(|direction: usize| !self.queues[direction].is_empty());
        if !reads && !writes {
            return None;
        }
        self.writes = writes && (!reads || self.passed >= self.config.writes_starved);
        self.passed = if writes && !self.writes { self.passed + 1 } else { 0 };
        self.left = self.config.batch.saturating_sub(1);
        let direction = usize::from(self.writes);
        let at = self.expired(direction, now).or_else(|| self.ahead(direction, head)).unwrap_or(0);
        Some(self.queues[direction].remove(at))
    }

    /// The first at or after the head.
    fn ahead(&self, direction: usize, head: u64) -> Option<usize> {
        let queue = &self.queues[direction];
        let at = queue.partition_point(|extent| extent.start < head);
        (at < queue.len()).then_some(at)
    }

    /// The oldest, if it has waited too long.
    fn expired(&self, direction: usize, now: Time) -> Option<usize> {
        let expires = [self.config.read_expires_ns, self.config.write_expires_ns][direction];
        let oldest = self.queues[direction].iter().enumerate().min_by_key(|(_, extent)| extent.since);
        oldest.filter(|(_, extent)| now - extent.since >= expires).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ElevatorConfig = ElevatorConfig {
        read_expires_ns: Span::from_ns(1000),
        write_expires_ns: Span::from_ns(5000),
        merged_bytes_max: 30,
        ..ElevatorConfig::LINUX
    };

    fn elevator(batch: u32) -> Elevator {
        Elevator::new(ElevatorConfig { batch, ..CONFIG }, 8)
    }

    /// Serves everything from position 50 at that time; where each began.
    fn served(elevator: &mut Elevator, now: Time) -> Vec<u64> {
        let mut head = 50;
        std::iter::from_fn(|| elevator.take(now, head).inspect(|extent| head = extent.end()))
            .map(|extent| extent.start)
            .collect()
    }

    #[test]
    fn the_order_ascends_and_begins_again() {
        let mut elevator = elevator(16);
        for start in [80, 20, 60, 0] {
            elevator.add(Time::ZERO, start, 10, false);
        }
        assert_eq!(served(&mut elevator, Time::ZERO), [60, 80, 0, 20]);
    }

    #[test]
    fn neighbours_merge_on_both_sides_up_to_the_largest() {
        let mut elevator = elevator(16);
        let id = |(id, merged)| (id, merged);
        assert_eq!(id(elevator.add(Time::ZERO, 100, 10, false)), (0, false));
        assert_eq!(id(elevator.add(Time::ZERO, 110, 10, false)), (0, true), "behind");
        assert_eq!(id(elevator.add(Time::ZERO, 90, 10, false)), (0, true), "before");
        assert_eq!(id(elevator.add(Time::ZERO, 120, 10, false)), (1, false), "too large");
        assert_eq!(id(elevator.add(Time::ZERO, 130, 10, true)), (2, false), "another direction");
        let first = elevator.take(Time::ZERO, 0).unwrap();
        assert_eq!((first.start, first.bytes), (90, 30));
    }

    #[test]
    fn what_has_waited_too_long_begins_the_next_batch() {
        let mut elevator = elevator(2);
        elevator.add(Time::ZERO, 0, 10, false);
        for start in [60, 80, 100, 120] {
            elevator.add(Time::from_ns(900), start, 10, false);
        }
        assert_eq!(served(&mut elevator, Time::from_ns(1000))[0], 0);
        elevator.add(Time::ZERO, 0, 10, false);
        elevator.add(Time::from_ns(900), 60, 10, false);
        assert_eq!(served(&mut elevator, Time::from_ns(999)), [60, 0]);
    }

    #[test]
    fn reads_go_first_but_writes_do_not_starve() {
        let mut elevator = elevator(1);
        elevator.add(Time::ZERO, 500, 10, true);
        for start in [60, 80, 100, 120] {
            elevator.add(Time::ZERO, start, 10, false);
        }
        assert_eq!(served(&mut elevator, Time::ZERO), [60, 80, 500, 60 + 40, 120]);
    }

    proptest::proptest! {
        #[test]
        fn every_byte_comes_out_once_and_nothing_grows_too_large(
            adds in proptest::collection::vec((0u64..40, 1u32..4, proptest::bool::ANY), 0..60)
        ) {
            let mut elevator = elevator(3);
            let wanted: u64 = adds.iter().map(|&(_, bytes, _)| u64::from(bytes)).sum();
            for (now, &(start, bytes, write)) in adds.iter().enumerate() {
                elevator.add(Time::from_ns(now as i64), start, bytes, write);
            }
            let extents: Vec<_> = std::iter::from_fn(|| elevator.take(Time::from_ns(100), 20)).collect();
            assert_eq!(extents.iter().map(|extent| u64::from(extent.bytes)).sum::<u64>(), wanted);
            assert!(extents.iter().all(|extent| extent.bytes <= CONFIG.merged_bytes_max));
        }
    }
}
