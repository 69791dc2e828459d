//! A disk that all virtual disks on it share: a spindle with one head, or flash with channels.
//!
//! Not modelled: zones of different rates, errors, and most of what a drive's own cache does. Two parts of it are: a read that
//! begins where the last request ended never waits for the platter, as the drive has read ahead; nor does such a write if
//! the drive has a write cache, which answers before anything is on the platter.

use std::collections::VecDeque;

use vcpulab_guest::Random;
use vcpulab_host::{NEVER, Span, Time};

use super::elevator::{Elevator, ElevatorConfig, Extent};
use super::stretch::PAGE_BYTES;
use crate::ids::BlkfrontId;

const SECOND: Span = Span::from_secs(1);

/// Precision of square roots.
const ROOT_ONE: i64 = 1 << 20;

/// A disk as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// Mechanism of the disk.
    pub kind: DiskKind,
    /// Size of the disk, bytes.
    pub capacity_bytes: u64,
    /// Requests that it and its queue hold at once; others wait.
    pub queue_depth: usize,
    /// The order in which it serves them.
    pub elevator: ElevatorConfig,
}

/// The mechanism of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskKind {
    /// Turning platters under one head.
    Spindle {
        /// Rate while the head stays on its way.
        bytes_per_s: i64,
        /// Seek to the next track, ns.
        track_seek_ns: Span,
        /// Mean seek between random places, ns.
        average_seek_ns: Span,
        /// Turns of the platter per minute.
        rotations_per_min: i64,
        /// Whether writes are complete once they are in the drive's cache.
        write_cache: bool,
    },
    /// Flash memory.
    Flash {
        /// Time of one request besides the transfer, ns.
        latency_ns: Span,
        /// Rate of all transfers together.
        bytes_per_s: i64,
        /// Requests served at once.
        channels: usize,
    },
}

/// A request to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskRequest {
    /// Number of the request among those of its virtual disk.
    pub tag: u32,
    /// The virtual disk that asks, and is answered.
    pub blkfront: BlkfrontId,
    /// The area of the disk: that of the virtual disk whose data they are.
    pub area: u32,
    /// Start of the request within the area, bytes.
    pub start: u64,
    /// Length of the request, bytes; more than 0.
    pub bytes: u32,
    /// Whether the request writes; otherwise it reads.
    pub write: bool,
}

impl DiskRequest {
    /// Pages of memory that it takes.
    pub fn pages(&self) -> i64 {
        u64::from(self.bytes).div_ceil(PAGE_BYTES) as i64
    }
}

/// Work of a disk since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskCounts {
    /// Requests taken in.
    pub requests: u64,
    /// Requests that joined one that waited already.
    pub merges: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Movements of the head.
    pub seeks: u64,
    /// Completion interrupts.
    pub interrupts: u64,
    /// Time with something to serve, ns.
    pub busy_ns: Span,
}

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    config: DiskConfig,
    area_bytes: u64,
    random: Random,
    elevator: Elevator,
    /// Requests that wait or are served, each with the extent it is part of, in order of arrival.
    requests: Vec<(u64, DiskRequest)>,
    /// The extents being served, each with the time at which it is complete.
    serving: Vec<(Time, Extent)>,
    /// Requests that are complete, but not yet taken by the driver.
    completed: VecDeque<DiskRequest>,
    /// The position of the head.
    head: u64,
    /// End of the transfers of flash that have begun.
    transfers_end: Time,
    busy_until: Time,
    /// Counts of the disk's work.
    pub counts: DiskCounts,
}

impl Disk {
    /// An idle disk whose capacity `areas` virtual disks (at least one) share evenly.
    pub fn new(config: DiskConfig, areas: u32, random: Random) -> Self {
        Disk {
            config,
            area_bytes: config.capacity_bytes / u64::from(areas.max(1)),
            random,
            elevator: Elevator::new(config.elevator, config.queue_depth),
            requests: Vec::with_capacity(config.queue_depth),
            serving: Vec::with_capacity(config.channels()),
            completed: VecDeque::with_capacity(config.queue_depth),
            head: 0,
            transfers_end: Time::ZERO,
            busy_until: Time::ZERO,
            counts: DiskCounts::default(),
        }
    }

    /// Whether there is room for another request.
    pub fn can_submit(&self) -> bool {
        self.requests.len() < self.config.queue_depth
    }

    /// Takes a request in.
    pub fn submit(&mut self, now: Time, request: DiskRequest) {
        debug_assert!(request.bytes > 0, "there is nothing to do");
        let start = u64::from(request.area) * self.area_bytes + request.start;
        let (extent, merged) = self.elevator.add(now, start, request.bytes, request.write);
        self.requests.push((extent, request));
        self.counts.requests += 1;
        self.counts.merges += u64::from(merged);
        self.start(now);
    }

    /// The next completion (`NEVER`: it is idle).
    pub fn next_completion(&self) -> Time {
        self.serving.iter().map(|&(time, _)| time).min().unwrap_or(NEVER)
    }

    /// Completes the extents that are due and serves the next. True: that is worth an interrupt.
    pub fn complete(&mut self, now: Time) -> bool {
        let mut interrupts = false;
        while let Some(at) = self.due(now) {
            let (time, extent) = self.serving.remove(at);
            let completed = &mut self.completed;
            self.requests.retain(|&(id, request)| {
                if id == extent.id {
                    completed.push_back(request);
                }
                id != extent.id
            });
            self.start(time);
            interrupts = true;
        }
        self.counts.interrupts += u64::from(interrupts);
        interrupts
    }

    /// Removes a request that is complete, for the driver.
    pub fn take_completed(&mut self) -> Option<DiskRequest> {
        self.completed.pop_front()
    }

    /// Whether there is a complete request that the driver has not taken yet.
    pub fn has_completed(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Of the extents being served, the first to be complete, if it is by now.
    fn due(&self, now: Time) -> Option<usize> {
        let first = self.serving.iter().enumerate().min_by_key(|(_, (time, extent))| (*time, extent.id));
        first.filter(|(_, (time, _))| *time <= now).map(|(at, _)| at)
    }

    /// Serves waiting extents, as far as it can.
    fn start(&mut self, now: Time) {
        while self.serving.len() < self.config.channels()
            && let Some(extent) = self.elevator.take(now, self.head)
        {
            let done = self.serve(now, &extent);
            let bytes = u64::from(extent.bytes);
            match extent.write {
                true => self.counts.written_bytes += bytes,
                false => self.counts.read_bytes += bytes,
            }
            self.counts.busy_ns += (done - now.max(self.busy_until)).max(Span::ZERO);
            self.busy_until = self.busy_until.max(done);
            self.head = extent.end();
            self.serving.push((done, extent));
        }
    }

    /// The time at which an extent that is begun now is complete.
    fn serve(&mut self, now: Time, extent: &Extent) -> Time {
        match self.config.kind {
            DiskKind::Spindle {
                bytes_per_s,
                track_seek_ns,
                average_seek_ns,
                rotations_per_min,
                write_cache,
            } => {
                let distance = extent.start.abs_diff(self.head);
                let rotation = 60 * SECOND / rotations_per_min;
                let mut reached = now;
                if distance == 0 {
                    if extent.write && !write_cache {
                        reached += until_back(now - self.busy_until, rotation);
                    }
                } else {
                    self.counts.seeks += 1;
                    reached += seek(distance, self.config.capacity_bytes, track_seek_ns, average_seek_ns);
                    reached += Span::from_ns(self.random.below(rotation.ns() as u64) as i64);
                }
                reached + transfer(extent.bytes, bytes_per_s)
            }
            DiskKind::Flash { latency_ns, bytes_per_s, .. } => {
                let found = now + latency_ns;
                self.transfers_end = found.max(self.transfers_end) + transfer(extent.bytes, bytes_per_s);
                self.transfers_end
            }
        }
    }
}

impl DiskConfig {
    /// Number of merged requests served at once.
    fn channels(&self) -> usize {
        match self.kind {
            DiskKind::Spindle { .. } => 1,
            DiskKind::Flash { channels, .. } => channels.max(1),
        }
    }
}

/// Time on the way between disk and memory, ns; at least 1, so that time advances however fast it is.
fn transfer(bytes: u32, bytes_per_s: i64) -> Span {
    (i64::from(bytes) * SECOND / bytes_per_s).max(Span::from_ns(1))
}

/// Time until the place where the head stood `gap` ago is under it again.
fn until_back(gap: Span, rotation: Span) -> Span {
    Span::from_ns((rotation.ns() - gap.ns() % rotation.ns()) % rotation.ns())
}

/// Time to move the head, ns: the track-to-track seek, and a part that grows with the square root of the distance, as
/// that of a head which accelerates half the way and brakes the other half. (So do short seeks in Ruemmler and Wilkes, An
/// introduction to disk drive modeling, 1994; long ones, at the head's full speed, grow evenly there. Assumption: the root
/// stands for both.) Over random pairs of places that root, as a part of the whole disk's, has the mean 8/15
/// (the integral of 2 (1 - x) √x from 0 to 1): so the average seek of the data sheet gives the factor.
fn seek(distance: u64, capacity: u64, track_ns: Span, average_ns: Span) -> Span {
    let square = u128::from(distance) * (ROOT_ONE * ROOT_ONE) as u128 / u128::from(capacity.max(1));
    let root = square.isqrt().min(ROOT_ONE as u128) as i64;
    track_ns + (average_ns - track_ns).max(Span::ZERO) * root / ROOT_ONE * 15 / 8
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Assumed values of the order of a desktop drive's data sheet.
    pub(crate) const SPINDLE: DiskConfig = DiskConfig {
        kind: DiskKind::Spindle {
            bytes_per_s: 80_000_000,
            track_seek_ns: Span::from_ns(1_000_000),
            average_seek_ns: Span::from_ns(9_000_000),
            rotations_per_min: 7200,
            write_cache: true,
        },
        capacity_bytes: 320_000_000_000,
        queue_depth: 128,
        elevator: ElevatorConfig::LINUX,
    };

    /// And of a solid-state disk's.
    pub(crate) const FLASH: DiskConfig = DiskConfig {
        kind: DiskKind::Flash { latency_ns: Span::from_ns(100_000), bytes_per_s: 500_000_000, channels: 8 },
        ..SPINDLE
    };

    const KB: u32 = 1 << 10;

    fn disk(config: DiskConfig) -> Disk {
        Disk::new(config, 4, Random::new(1, 0, 0))
    }

    fn read(area: u32, start: u64, bytes: u32) -> DiskRequest {
        DiskRequest { tag: 0, blkfront: BlkfrontId(area), area, start, bytes, write: false }
    }

    /// Keeps one stream for each area going, each with `depth` requests under way; the time for `count` of them in all.
    fn run(disk: &mut Disk, count: u64, areas: u32, depth: usize, next: impl Fn(u64) -> (u64, u32)) -> Span {
        let mut positions = vec![0; areas as usize];
        let mut under_way = vec![0; areas as usize];
        let (mut now, mut left) = (Time::ZERO, count);
        for _ in 0..count * 2 {
            for area in 0..areas {
                let a = area as usize;
                while left > 0 && under_way[a] < depth {
                    let (start, bytes) = next(positions[a]);
                    disk.submit(now, read(area, start, bytes));
                    (positions[a], under_way[a], left) = (positions[a] + 1, under_way[a] + 1, left - 1);
                }
            }
            now = match disk.next_completion() {
                NEVER => break,
                time => time,
            };
            assert!(disk.complete(now));
            while let Some(request) = disk.take_completed() {
                under_way[request.area as usize] -= 1;
            }
        }
        assert_eq!((left, under_way.iter().sum::<usize>()), (0, 0));
        now - Time::ZERO
    }

    fn bytes_per_s(bytes: u64, time: Span) -> u64 {
        bytes * 1_000_000_000 / time.ns() as u64
    }

    #[test]
    fn sequential_reads_reach_the_rate_of_the_disk() {
        let mut disk = disk(SPINDLE);
        let time = run(&mut disk, 512, 1, 2, |i| (i << 20, KB << 10));
        assert_eq!(bytes_per_s(512 << 20, time), 80_000_000);
        assert_eq!((disk.counts.seeks, disk.counts.busy_ns), (0, time));
    }

    #[test]
    fn random_reads_cost_a_seek_and_half_a_rotation() {
        let mut disk = Disk::new(SPINDLE, 1, Random::new(1, 0, 0));
        let mut random = Random::new(2, 0, 0);
        let count = 20_000;
        let starts: Vec<u64> = (0..count).map(|_| random.below(SPINDLE.capacity_bytes - 4096)).collect();
        let place = |i: u64| (starts[i as usize], 4 * KB);
        let time = run(&mut disk, count, 1, 1, place);
        let expected = Span::from_ms(9) + 60 * SECOND / 7200 / 2 + Span::from_ns(51_200);
        let mean = time / count as i64;
        assert!((mean - expected).abs() < expected / 50, "{mean} instead of {expected}");
        assert_eq!(disk.counts.seeks, count);
        let queued = run(&mut Disk::new(SPINDLE, 1, Random::new(1, 0, 0)), count, 1, 64, place);
        assert!(queued < time * 2 / 3, "an elevator shortens the way: {queued} against {time}");
    }

    #[test]
    fn a_log_is_committed_once_a_turn_unless_there_is_a_write_cache() {
        // A record after another, each sent 100 us after the one before is on the disk: as a database commits.
        let commits_per_s = |cached| {
            let mut config = SPINDLE;
            if let DiskKind::Spindle { write_cache, .. } = &mut config.kind {
                *write_cache = cached;
            }
            let mut disk = disk(config);
            let (mut now, mut count) = (Time::ZERO, 0);
            while now < Time::ZERO + Span::from_secs(1) {
                disk.submit(now, DiskRequest { write: true, ..read(0, count * 2048, 2048) });
                now = disk.next_completion();
                assert!(disk.complete(now) && disk.take_completed().is_some());
                now += Span::from_us(100);
                count += 1;
            }
            count
        };
        assert_eq!(commits_per_s(false), 121, "one at once, then one with each of 7200 turns a minute");
        assert!(commits_per_s(true) > 7000);
    }

    #[test]
    fn a_seek_over_random_distances_has_the_mean_of_the_data_sheet() {
        let mut random = Random::new(3, 0, 0);
        let capacity = SPINDLE.capacity_bytes;
        let count = 100_000;
        let sum: Span = (0..count)
            .map(|_| random.below(capacity).abs_diff(random.below(capacity)))
            .map(|distance| seek(distance, capacity, Span::from_ms(1), Span::from_ms(9)))
            .sum();
        let mean = sum / count;
        assert!((mean - Span::from_ms(9)).abs() < Span::from_us(50), "{mean}");
        let of_all = |parts| seek(capacity / parts, capacity, Span::from_ms(1), Span::from_ms(9));
        assert_eq!(
            [of_all(1), of_all(4), of_all(capacity)],
            [16_000_000, 8_500_000, 1_000_013].map(Span::from_ns)
        );
    }

    #[test]
    fn two_streams_disturb_each_other_less_the_more_merges() {
        let rate = |depth| {
            let mut disk = disk(SPINDLE);
            let time = run(&mut disk, 4000, 2, depth, |i| (i * 44 * 1024, 44 * KB));
            (bytes_per_s(4000 * 44 * 1024, time), disk.counts)
        };
        let (rate_single, single) = rate(1);
        assert!(single.seeks > 3990 && rate_single < 5_000_000, "a seek for each: {rate_single}, {single:?}");
        let (rate_merged, merged) = rate(32);
        assert!(merged.merges > 2000 && rate_merged > 10 * rate_single, "{rate_merged}, {merged:?}");
        assert!(merged.seeks >= 4, "neither waits much longer than reads may: {merged:?}");
    }

    #[test]
    fn flash_does_not_care_where() {
        let scattered = |i: u64| (i % 2 * 1_000_000_000 + i * 8192, 4 * KB);
        let (mut near, mut far) = (disk(FLASH), disk(FLASH));
        let together = run(&mut near, 8000, 1, 8, |i| (i * 8192, 4 * KB));
        assert_eq!(run(&mut far, 8000, 1, 8, scattered), together);
        assert_eq!(far.counts.seeks, 0);
        let single = run(&mut disk(FLASH), 8000, 1, 1, scattered);
        assert!(single > 7 * together, "channels work at once: {single} against {together}");
        assert_eq!(single, 8000 * Span::from_ns(100_000 + 8192));
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let mut disk = disk(DiskConfig { queue_depth: 2, ..SPINDLE });
        disk.submit(Time::ZERO, read(0, 0, KB));
        assert!(disk.can_submit());
        disk.submit(Time::ZERO, read(0, 9999, KB));
        assert!(!disk.can_submit());
        assert!(!disk.complete(disk.next_completion() - Span::from_ns(1)), "too early");
        assert!(disk.complete(disk.next_completion()) && disk.has_completed() && disk.can_submit());
    }

    proptest::proptest! {
        #[test]
        fn every_request_completes_exactly_once(
            flash in proptest::bool::ANY,
            requests in proptest::collection::vec((0u32..3, 0u64..50, 1u32..20, proptest::bool::ANY, 0i64..30), 1..80),
        ) {
            let mut disk = disk(if flash { FLASH } else { SPINDLE });
            let mut now = Time::ZERO;
            let mut done = Vec::new();
            for (tag, &(area, place, pages, write, gap)) in requests.iter().enumerate() {
                now += Span::from_ms(gap);
                disk.complete(now);
                done.extend(std::iter::from_fn(|| disk.take_completed()).map(|request| request.tag));
                disk.submit(now, DiskRequest { tag: tag as u32, blkfront: BlkfrontId(area), area, start: place * 4096, bytes: pages * 4096, write });
            }
            while disk.next_completion() < NEVER {
                disk.complete(disk.next_completion());
                done.extend(std::iter::from_fn(|| disk.take_completed()).map(|request| request.tag));
            }
            done.sort_unstable();
            assert_eq!(done, (0..requests.len() as u32).collect::<Vec<_>>());
            let counts = disk.counts;
            let bytes: u64 = requests.iter().map(|request| u64::from(request.2) * 4096).sum();
            assert_eq!((counts.requests, counts.read_bytes + counts.written_bytes), (done.len() as u64, bytes));
        }
    }
}
