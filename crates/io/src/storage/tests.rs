//! Disk, virtual disks and blkbacks together, with a pCPU for each guest and for the driver domain.

use std::collections::VecDeque;

use proptest::prelude::*;
use vcpulab_guest::script::DiskAccess;
use vcpulab_guest::{AppId, Random, TaskId};
use vcpulab_host::{NEVER, Span, Table, Time, VcpuId};

use super::blkback::{Blkback, BlkbackCosts, BlkbackWork, Store};
use super::blkfront::{Blkfront, BlkfrontConfig, BlkfrontCosts, BlkfrontWork, Submitted};
use super::disk::tests::{FLASH, SPINDLE};
use super::disk::{Disk, DiskConfig};
use super::file_set::FileSetConfig;
use super::page_cache::CacheConfig;
use crate::ids::BlkfrontId;

const KB: u32 = 1 << 10;
const MB: u32 = 1 << 20;
const SECOND: Span = Span::from_secs(1);

/// Assumed: some microseconds for everything, as for packets.
const COSTS: BlkfrontCosts = BlkfrontCosts {
    upcall_ns: Span::from_ns(6_000),
    request_ns: Span::from_ns(8_000),
    response_ns: Span::from_ns(6_000),
    copy_ps_per_byte: 250,
};
const BACK_COSTS: BlkbackCosts = BlkbackCosts {
    request_ns: Span::from_ns(10_000),
    grant_ns: Span::from_ns(1_000),
    response_ns: Span::from_ns(8_000),
};

const CACHE: CacheConfig = CacheConfig::linux(100 << 20);
const SPLIT: BlkfrontConfig = BlkfrontConfig::split(COSTS, CACHE);
const STRAIGHT: BlkfrontConfig = BlkfrontConfig::straight(COSTS, CACHE);

#[derive(Clone, Copy, Debug)]
enum Step {
    Access(DiskAccess),
    /// A file of this size, of those served, and the number of processes meanwhile.
    File(u32, u32),
    Sync,
}

fn access(bytes: u32, file_bytes: u64) -> DiskAccess {
    DiskAccess { bytes, write: false, random: false, direct: false, file_bytes }
}

/// A guest whose tasks do nothing but their steps.
struct Guest {
    awake: bool,
    busy: Option<(Time, BlkfrontWork)>,
    tasks: Vec<Task>,
}

#[derive(Default)]
struct Task {
    steps: VecDeque<Step>,
    waits: bool,
    /// The completion of each step.
    done: Vec<Time>,
}

struct Bench {
    now: Time,
    store: Store,
    blkfronts: Table<BlkfrontId, Blkfront>,
    guests: Vec<Guest>,
    back: Blkback,
    notified: bool,
    awake: bool,
    busy: Option<(Time, BlkbackWork)>,
    most_under_way: u64,
}

impl Bench {
    fn new(disk: DiskConfig, guests: &[BlkfrontConfig]) -> Self {
        let blkfront = |(i, &config): (usize, &BlkfrontConfig)| {
            Blkfront::new(config, BlkfrontId(i as u32), VcpuId(i as u32), Random::new(1, i as u64, 1))
        };
        let guest = |_: &BlkfrontConfig| Guest { awake: true, busy: None, tasks: Vec::new() };
        Bench {
            now: Time::ZERO,
            store: Store::Disk(Box::new(Disk::new(disk, guests.len() as u32, Random::new(1, 0, 0)))),
            blkfronts: guests.iter().enumerate().map(blkfront).collect(),
            guests: guests.iter().map(guest).collect(),
            back: Blkback::new(BACK_COSTS, true),
            notified: false,
            awake: false,
            busy: None,
            most_under_way: 0,
        }
    }

    fn task(&mut self, guest: usize, steps: impl IntoIterator<Item = Step>) {
        let steps = steps.into_iter().collect();
        self.guests[guest].tasks.push(Task { steps, ..Task::default() });
        self.guests[guest].awake = true;
    }

    fn disk(&self) -> &Disk {
        self.store.disk().unwrap()
    }

    /// Runs until no event is left; returns the time of the last.
    fn run(&mut self) -> Span {
        self.run_until(NEVER) - Time::ZERO
    }

    fn run_until(&mut self, end: Time) -> Time {
        loop {
            self.run_now();
            let ends = self.guests.iter().filter_map(|guest| guest.busy.map(|(end, _)| end));
            let next = ends.chain(self.busy.map(|(end, _)| end)).chain([self.disk().next_completion()]).min();
            match next {
                Some(next) if next < NEVER && next <= end => self.now = next,
                _ => return self.now,
            }
            let now = self.now;
            if self.disk().next_completion() <= now && self.store.disk_mut().unwrap().complete(now) {
                (self.awake, self.notified) = (true, true);
            }
        }
    }

    /// Runs everything that happens at this instant.
    fn run_now(&mut self) {
        loop {
            let before = self
                .guests
                .iter()
                .any(|guest| guest.awake && guest.busy.is_none_or(|(end, _)| end <= self.now));
            (0..self.guests.len()).for_each(|guest| self.run_guest(guest));
            let driver = self.awake && self.busy.is_none_or(|(end, _)| end <= self.now);
            if driver {
                self.run_driver();
            }
            if !before && !driver {
                return;
            }
        }
    }

    fn run_guest(&mut self, index: usize) {
        let Bench { now, blkfronts, guests, store, .. } = self;
        let disk = store.disk_mut().unwrap();
        let (now, blkfront, guest) = (*now, &mut blkfronts[BlkfrontId(index as u32)], &mut guests[index]);
        if let Some((end, work)) = guest.busy {
            if end > now {
                return;
            }
            guest.busy = None;
            match blkfront.finish(now, work) {
                Some(Submitted::Disk(request)) => disk.submit(now, request),
                Some(Submitted::Ring { first }) => {
                    if first {
                        self.back.ring_filled(BlkfrontId(index as u32));
                    }
                    if !std::mem::replace(&mut self.awake, true) {
                        self.notified = true;
                    }
                }
                None => {}
            }
        }
        while guest.awake && guest.busy.is_none() {
            while let Some(task) = blkfront.take_resumed() {
                assert!(std::mem::take(&mut guest.tasks[task.index()].waits), "it goes on once");
                guest.tasks[task.index()].done.push(now);
            }
            self.most_under_way =
                self.most_under_way.max(blkfront.counts().requests - blkfront.counts().responses);
            if let Some((work, cost)) = blkfront.next_work(now, true, disk.can_submit()) {
                guest.busy = Some((now + cost, work));
                continue;
            }
            let ready = guest.tasks.iter().position(|task| !task.waits && !task.steps.is_empty());
            let Some(task) = ready else {
                guest.awake = false;
                break;
            };
            guest.tasks[task].waits = true;
            match guest.tasks[task].steps.pop_front() {
                Some(Step::Access(access)) => {
                    blkfront.access(TaskId(task as u32), AppId(task as u32), access)
                }
                Some(Step::File(bytes, processes)) => {
                    let task_waits = blkfront.read_file(TaskId(task as u32), bytes, processes);
                    guest.tasks[task].waits = task_waits;
                    guest.tasks[task].done.extend((!task_waits).then_some(now));
                }
                Some(Step::Sync) => blkfront.sync(TaskId(task as u32)),
                None => unreachable!("it has steps"),
            }
        }
    }

    fn run_driver(&mut self) {
        let Bench { now, blkfronts, store, back, .. } = self;
        if let Some((_, work)) = self.busy.take() {
            back.finish(*now, work, blkfronts, store);
        }
        loop {
            if std::mem::take(&mut self.notified) {
                back.begin_poll();
            }
            if let Some((work, cost)) = back.next_work(blkfronts, store) {
                self.busy = Some((*now + cost, work));
                break;
            }
            while let Some(blkfront) = back.take_to_notify() {
                self.guests[blkfront.index()].awake |= blkfronts[blkfront].send_event();
            }
            if !back.has_work(blkfronts, store) {
                self.awake = false;
                break;
            }
            back.begin_poll();
        }
        // Domains without a ring share the vCPU of the back ends here, as far as waking up goes.
        for (guest, _) in self.guests.iter_mut().zip(&*blkfronts).filter(|(_, blkfront)| !blkfront.is_split())
        {
            guest.awake = true;
        }
    }

    fn done(&self, guest: usize) -> usize {
        self.guests[guest].tasks.iter().map(|task| task.done.len()).sum()
    }
}

fn rate(bytes: u64, time: Span) -> u64 {
    bytes * 1_000_000_000 / time.ns() as u64
}

/// `count` direct accesses one after another.
fn direct(count: usize, bytes: u32, write: bool, random: bool) -> Vec<Step> {
    let file_bytes = count as u64 * u64::from(bytes);
    vec![Step::Access(DiskAccess { write, random, direct: true, ..access(bytes, file_bytes) }); count]
}

#[test]
fn a_file_of_512_mb_in_direct_records_of_1_mb_comes_close_to_the_rate_of_the_disk() {
    for write in [false, true] {
        let rates = [SPLIT, STRAIGHT].map(|config| {
            let mut bench = Bench::new(SPINDLE, &[config]);
            bench.task(0, direct(512, MB, write, false));
            let time = bench.run();
            assert_eq!((bench.done(0), bench.disk().counts.seeks), (512, 0));
            let requests = if config.split { 24 } else { 2 };
            let counts = bench.blkfronts[BlkfrontId(0)].counts();
            assert_eq!((counts.requests, counts.responses), (512 * requests, 512 * requests));
            assert_eq!(counts.grants, if config.split { 512 * 256 } else { 0 });
            assert!(counts.events < counts.responses, "rounds batch them");
            rate(512 << 20, time)
        });
        assert!((70_000_000..80_000_000).contains(&rates[0]) && rates[0] < rates[1], "{rates:?}");
        assert!((79_000_000..80_000_000).contains(&rates[1]), "{rates:?}");
    }
}

#[test]
fn random_records_cost_a_seek_and_a_rotation_each_even_if_large() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, direct(512, MB, false, true));
    let random = rate(512 << 20, bench.run());
    assert!(bench.disk().counts.seeks > 500 && (50_000_000..75_000_000).contains(&random), "{random}");
    let mut flash = [true, false].map(|random| {
        let mut bench = Bench::new(FLASH, &[SPLIT]);
        bench.task(0, direct(512, MB, false, random));
        bench.run()
    });
    flash.sort_unstable();
    assert_eq!(flash[0], flash[1], "flash does not care");
}

#[test]
fn two_guests_in_sequence_disturb_each_other() {
    let run = |guests: usize| {
        let mut bench = Bench::new(SPINDLE, &vec![SPLIT; guests]);
        (0..guests).for_each(|guest| bench.task(guest, direct(256, MB, false, false)));
        let time = bench.run();
        (rate((guests as u64) << 28, time), bench.disk().counts)
    };
    let ((alone, counts), (both, shared)) = (run(1), run(2));
    assert!(counts.seeks == 0 && shared.seeks > 256, "{shared:?}");
    assert!(both < alone * 9 / 10 && both > alone / 3, "{both} together, {alone} alone");
    assert!(shared.merges > shared.requests / 3, "merging keeps them useful: {shared:?}");
}

#[test]
fn small_cached_reads_in_sequence_find_what_was_read_ahead() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, vec![Step::Access(access(KB, 100 << 20)); 1000]);
    let time = bench.run();
    let counts = bench.blkfronts[BlkfrontId(0)].counts();
    assert_eq!((bench.done(0), counts.accesses), (1000, 1000));
    assert!(counts.hits > 970 && counts.hits < 1000, "{counts:?}");
    assert!(counts.requests < 60 && counts.read_bytes < 1400 << 10, "{counts:?}");
    assert!(rate(1000 << 10, time) > 40_000_000, "{time}");
}

#[test]
fn a_second_reading_needs_no_disk_if_the_file_fits() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, vec![Step::Access(access(64 * KB, 16 << 20)); 512]);
    bench.run();
    assert_eq!(bench.disk().counts.read_bytes, 16 << 20);
    let random = DiskAccess { random: true, ..access(4 * KB, 400 << 20) };
    bench.task(0, vec![Step::Access(random); 50_000]);
    bench.run();
    let hits = bench.blkfronts[BlkfrontId(0)].counts().hits;
    assert!((1000..20_000).contains(&hits), "as much as is in memory, and not more: {hits}");
}

#[test]
fn the_ring_holds_back_what_does_not_fit() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, direct(1, 10 * MB, false, false));
    bench.run();
    assert_eq!((bench.most_under_way, bench.blkfronts[BlkfrontId(0)].counts().requests), (32, 233));
    let mut bench = Bench::new(DiskConfig { queue_depth: 3, ..SPINDLE }, &[SPLIT, STRAIGHT]);
    (0..2).for_each(|guest| bench.task(guest, direct(10, MB, true, false)));
    bench.run();
    assert_eq!((bench.done(0), bench.done(1)), (10, 10), "a short queue behind it delays, but loses nothing");
}

#[test]
fn cached_writes_go_on_until_too_much_is_dirty_and_sync_waits_for_the_disk() {
    let cached = |bytes| Step::Access(DiskAccess { write: true, ..access(bytes, 1 << 30) });
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, vec![cached(MB); 10]);
    let memory = bench.run();
    assert_eq!(
        (bench.done(0), bench.disk().counts.requests),
        (10, 0),
        "less than a tenth of memory stays there"
    );
    assert_eq!(memory, Span::from_ns(10 * (1 << 20) / 4), "copying is all it costs");
    bench.task(0, [Step::Sync]);
    let end = bench.run();
    assert_eq!(bench.guests[0].tasks[1].done, [Time::ZERO + end], "nothing is left to happen");
    assert!(
        end - memory > Span::from_ns(10 * (1 << 20) * 1000 / 80)
            && bench.disk().counts.written_bytes == 10 << 20
    );

    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, vec![cached(MB); 400]);
    bench.task(0, [Step::Sync]);
    bench.run();
    let done = &bench.guests[0].tasks[0].done;
    assert!(
        done[15] < Time::ZERO + SECOND / 100,
        "what fits into memory is written at its speed: {}",
        done[15]
    );
    let throttled = rate(300 << 20, done[399] - done[99]);
    assert!((70_000_000..81_000_000).contains(&throttled), "then at that of the disk: {throttled}");
    assert_eq!(bench.done(0), 401);
    let left = (400 << 20) - bench.disk().counts.written_bytes;
    assert!(left <= CACHE.dirty_background_bytes, "the rest may wait: {left}");
}

#[test]
fn what_a_guest_asked_for_before_it_booted_comes_for_nobody() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    bench.task(0, direct(4, 4 * MB, false, false));
    bench.task(0, vec![Step::Access(DiskAccess { write: true, ..access(MB, 1 << 30) }); 90]);
    bench.task(0, vec![Step::Access(access(MB, 1 << 30)); 90]);
    bench.run_until(Time::ZERO + SECOND / 50);
    assert!(bench.disk().next_completion() < NEVER && bench.done(0) > 0);
    bench.blkfronts[BlkfrontId(0)].reboot();
    bench.guests[0].tasks.clear();
    (0..3).for_each(|_| bench.task(0, direct(3, MB, true, false).into_iter().chain([Step::Sync])));
    bench.run();
    assert_eq!(bench.done(0), 12);
    let counts = bench.blkfronts[BlkfrontId(0)].counts();
    assert_eq!(counts.requests, counts.responses, "nothing is left in the ring");
}

/// Two files, of 300 KB and of 4 KB, which both fit in memory.
fn serve_two_files(blkfront: &mut Blkfront) {
    let sizes = vec![(4 * KB, 1), (300 * KB, 1)];
    let files =
        FileSetConfig { sizes, per_size: 1, memory_bytes: 304 << 10, process_bytes: u64::from(100 * KB) };
    blkfront.serve_files(&files, Random::new(1, 0, 0));
}

#[test]
fn a_served_file_that_is_not_in_memory_is_read_as_far_ahead_as_files_are() {
    for (config, requests) in [(STRAIGHT, 3), (SPLIT, 7)] {
        let mut bench = Bench::new(SPINDLE, &[config]);
        serve_two_files(&mut bench.blkfronts[BlkfrontId(0)]);
        bench.task(0, [Step::File(300 * KB, 0), Step::File(4 * KB, 0)]);
        assert_eq!((bench.run(), bench.done(0)), (Span::ZERO, 2), "all are in memory");
        bench.blkfronts[BlkfrontId(0)].reboot();
        bench.task(0, [Step::File(300 * KB, 0), Step::File(300 * KB, 0)]);
        bench.run();
        let counts = bench.blkfronts[BlkfrontId(0)].counts();
        assert_eq!((bench.done(0), counts.accesses, counts.hits), (4, 4, 3));
        assert_eq!((counts.requests, counts.read_bytes), (requests, 300 << 10), "128, 128 and 44 KB");
    }
}

#[test]
fn processes_that_take_the_memory_make_files_come_from_the_disk() {
    let mut bench = Bench::new(SPINDLE, &[SPLIT]);
    serve_two_files(&mut bench.blkfronts[BlkfrontId(0)]);
    bench.task(0, [Step::File(4 * KB, 3), Step::File(300 * KB, 3), Step::File(4 * KB, 4)]);
    bench.run();
    let counts = bench.blkfronts[BlkfrontId(0)].counts();
    assert_eq!(
        (counts.accesses, counts.hits),
        (3, 1),
        "4 KB are left, which the large file takes from the small"
    );
    assert_eq!(counts.read_bytes, 304 << 10);
}

#[test]
fn reads_do_not_keep_writes_in_memory_for_ever() {
    let mut bench = Bench::new(SPINDLE, &[BlkfrontConfig { slots: 2, ..SPLIT }]);
    (0..8).for_each(|_| bench.task(0, direct(300, 64 * KB, false, false)));
    bench.task(0, vec![Step::Access(DiskAccess { write: true, ..access(MB, 1 << 30) }), Step::Sync]);
    bench.run();
    let tasks = &bench.guests[0].tasks;
    assert!(
        tasks[8].done[1] - Time::ZERO < (tasks[0].done[299] - Time::ZERO) / 2,
        "{} of {}",
        tasks[8].done[1],
        tasks[0].done[299]
    );
}

#[test]
fn who_waits_for_room_gets_it_even_if_the_background_would_not_begin() {
    let cache = CacheConfig { dirty_background_bytes: 1 << 30, dirty_max_bytes: 1 << 20, ..CACHE };
    let mut bench = Bench::new(SPINDLE, &[BlkfrontConfig { cache, ..SPLIT }]);
    (0..2).for_each(|_| {
        bench.task(0, vec![Step::Access(DiskAccess { write: true, ..access(MB, 1 << 30) }); 5])
    });
    bench.run();
    assert_eq!(bench.done(0), 10);
}

#[test]
fn a_copy_that_a_boot_cut_short_is_not_taken_for_another() {
    let mut blkfront = Blkfront::new(SPLIT, BlkfrontId(0), VcpuId(0), Random::new(1, 0, 1));
    blkfront.access(TaskId(0), AppId(0), DiskAccess { write: true, ..access(KB, 1 << 20) });
    let (copy, _) = blkfront.next_work(Time::ZERO, true, true).unwrap();
    blkfront.reboot();
    blkfront.access(TaskId(0), AppId(0), DiskAccess { direct: true, ..access(KB, 1 << 20) });
    assert_eq!((copy, blkfront.finish(Time::from_ns(1), copy)), (BlkfrontWork::Copy(TaskId(0)), None));
    let (request, _) = blkfront.next_work(Time::from_ns(1), true, true).unwrap();
    assert_eq!(blkfront.finish(Time::from_ns(1), request), Some(Submitted::Ring { first: true }));
    assert_eq!(blkfront.next_work(Time::from_ns(1), true, true), None, "nothing but the one direct access");
}

#[test]
fn back_ends_leave_in_the_ring_what_the_disk_has_no_room_for() {
    let disk = Disk::new(DiskConfig { queue_depth: 1, ..SPINDLE }, 1, Random::new(1, 0, 0));
    let mut store = Store::Disk(Box::new(disk));
    let mut blkfronts = Table::new();
    let id = blkfronts.push(Blkfront::new(SPLIT, BlkfrontId(0), VcpuId(0), Random::new(1, 0, 1)));
    let mut back = Blkback::new(BACK_COSTS, true);
    blkfronts[id].access(TaskId(0), AppId(0), DiskAccess { direct: true, ..access(MB, 1 << 20) });
    while let Some((work, _)) = blkfronts[id].next_work(Time::ZERO, true, false) {
        if let Some(Submitted::Ring { first: true }) = blkfronts[id].finish(Time::ZERO, work) {
            back.ring_filled(id);
        }
    }
    back.begin_poll();
    let (work, cost) = back.next_work(&mut blkfronts, &mut store).unwrap();
    assert_eq!(cost, Span::from_us(10 + 11), "eleven pages");
    back.finish(Time::ZERO, work, &mut blkfronts, &mut store);
    assert_eq!(
        (back.next_work(&mut blkfronts, &mut store), back.has_work(&blkfronts, &store)),
        (None, false)
    );
    let disk = store.disk_mut().unwrap();
    disk.complete(disk.next_completion());
    assert!(back.has_work(&blkfronts, &store));
}

#[test]
fn more_completions_than_a_poll_takes_all_arrive() {
    let mut bench =
        Bench::new(SPINDLE, &[BlkfrontConfig { slots: 100, costs: BlkfrontCosts::default(), ..SPLIT }]);
    bench.back = Blkback::new(BlkbackCosts::default(), true);
    // The tasks' files lie side by side: all but the first request merge.
    (0..100).for_each(|_| bench.task(0, direct(1, 4 * KB, false, false)));
    bench.run();
    assert_eq!((bench.done(0), bench.disk().counts.interrupts), (100, 2));
}

fn any_step() -> impl Strategy<Value = Step> {
    let access = (0u32..300_000, any::<bool>(), any::<bool>(), any::<bool>(), 0u64..2_000_000).prop_map(
        |(bytes, write, random, direct, file_bytes)| DiskAccess { bytes, write, random, direct, file_bytes },
    );
    prop_oneof![6 => access.prop_map(Step::Access), 1 => Just(Step::Sync)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_access_completes_exactly_once(
        flash in any::<bool>(),
        depth in 1usize..40,
        free in any::<bool>(),
        guests in prop::collection::vec(
            (
                any::<bool>(),
                1usize..33,
                prop::sample::select(vec![0u64, 60_000, 1_000_000, 100 << 20]),
                prop::collection::vec(prop::collection::vec(any_step(), 0..12), 1..5),
            ),
            1..4,
        ),
    ) {
        let costs = if free { BlkfrontCosts::default() } else { COSTS };
        let configs: Vec<BlkfrontConfig> = guests.iter().map(|&(split, slots, memory, _)| {
            let base = if split { SPLIT } else { STRAIGHT };
            BlkfrontConfig { slots, costs, cache: CacheConfig::linux(memory), ..base }
        }).collect();
        let disk = DiskConfig { queue_depth: depth, ..if flash { FLASH } else { SPINDLE } };
        let mut bench = Bench::new(disk, &configs);
        for (guest, (.., tasks)) in guests.iter().enumerate() {
            tasks.iter().for_each(|steps| bench.task(guest, steps.iter().copied()));
        }
        bench.run();
        for (guest, (.., tasks)) in guests.iter().enumerate() {
            let done: Vec<usize> = bench.guests[guest].tasks.iter().map(|task| task.done.len()).collect();
            prop_assert_eq!(done, tasks.iter().map(Vec::len).collect::<Vec<_>>());
            let counts = bench.blkfronts[BlkfrontId(guest as u32)].counts();
            prop_assert_eq!(counts.requests, counts.responses);
        }
        let asked: (u64, u64) = bench.blkfronts.iter().fold((0, 0), |sum, blkfront| {
            (sum.0 + blkfront.counts().read_bytes, sum.1 + blkfront.counts().written_bytes)
        });
        prop_assert_eq!(asked, (bench.disk().counts.read_bytes, bench.disk().counts.written_bytes));
        prop_assert!(!bench.disk().has_completed() && bench.disk().next_completion() == NEVER);
        let longest: Span = bench.disk().counts.busy_ns;
        prop_assert!(longest <= bench.now - Time::ZERO);
    }
}
