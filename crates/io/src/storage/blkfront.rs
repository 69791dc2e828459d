//! A guest's virtual disk: the block layer with the front end below it, and the ring to the back end.
//!
//! Accesses of tasks become requests. A direct one waits for the disk; a cached one goes through the page cache, which
//! reads ahead and writes back. What tasks wait for goes before what is written back, without starving it. A domain that
//! has the disk to itself uses the same layer without a ring: its requests go straight to the disk.
//!
//! A state machine: [`next_work`](Block::next_work) says what the guest's CPU does next, [`finish`](Block::finish) that it
//! is done, [`take_resumed`](Block::take_resumed) which tasks can go on.

use std::collections::VecDeque;

use vcpulab_guest::Random;
use vcpulab_guest::script::DiskAccess;
use vcpulab_host::{Span, Time, VcpuId};

use crate::disk::DiskRequest;
use crate::file_set::{FileSet, FileSetConfig};
use crate::page_cache::{CacheConfig, Found, PageCache, Stretch};
use crate::write_back::WriteBack;

/// A page of memory, bytes: what a segment of a request holds.
pub const PAGE_BYTES: u64 = 4096;

/// Segments of a request through a ring (`BLKIF_MAX_SEGMENTS_PER_REQUEST` in Xen's public header `io/blkif.h`).
const RING_SEGMENTS: u64 = 11;

/// Requests that a ring of one page holds, each 112 bytes (the same header, and `io/ring.h`, which rounds down to a power
/// of two).
const RING_SLOTS: usize = 32;

/// Largest request straight to a disk, bytes (Linux's `max_sectors_kb`).
const STRAIGHT_BYTES: u64 = 512 << 10;

/// Requests under way straight to a disk (Linux's `nr_requests`).
const STRAIGHT_SLOTS: usize = 128;

/// Requests that tasks wait for which those that write back let pass when both wait for room. (Two to one is how Linux's
/// deadline elevator shares out its batches.)
const WRITE_BACK_STARVED: u32 = 2;

/// A virtual disk as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockConfig {
    /// Does it go through a ring to a driver domain, or straight to the disk?
    pub split: bool,
    /// Largest request, bytes.
    pub request_bytes_max: u64,
    /// Most requests under way.
    pub slots: usize,
    /// What it costs.
    pub costs: BlockCosts,
    /// The guest's page cache.
    pub cache: CacheConfig,
}

impl BlockConfig {
    /// Through a ring of Xen's.
    pub const fn split(costs: BlockCosts, cache: CacheConfig) -> Self {
        let request_bytes_max = RING_SEGMENTS * PAGE_BYTES;
        BlockConfig { split: true, request_bytes_max, slots: RING_SLOTS, costs, cache }
    }

    /// Straight to the disk.
    pub const fn straight(costs: BlockCosts, cache: CacheConfig) -> Self {
        BlockConfig { split: false, request_bytes_max: STRAIGHT_BYTES, slots: STRAIGHT_SLOTS, costs, cache }
    }
}

/// What a virtual disk costs in its guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCosts {
    /// Taking one event, whatever came with it, ns.
    pub upcall_ns: Span,
    /// One request: block layer and front end, or the disk's own driver, ns.
    pub request_ns: Span,
    /// One response, ns.
    pub response_ns: Span,
    /// One byte copied from or to the page cache, ps.
    pub copy_ps_per_byte: i64,
}

/// What the block layer is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockWork {
    /// It takes an event.
    Upcall,
    /// It takes the response to the request with that tag.
    Response(u32),
    /// It copies between the page cache and a task.
    Copy(usize),
    /// It makes a request ready.
    Request(DiskRequest),
}

/// Where a request goes that has been made ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// Into the ring. `first`: it is the only one there.
    Ring {
        /// Was the ring empty?
        first: bool,
    },
    /// To the disk: submit it.
    Disk(DiskRequest),
}

/// What went through a virtual disk since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockCounts {
    /// Accesses by tasks.
    pub accesses: u64,
    /// Cached reads that did not have to wait for the disk.
    pub hits: u64,
    /// Requests made.
    pub requests: u64,
    /// Those among them that write.
    pub writes: u64,
    /// Responses taken.
    pub responses: u64,
    /// Pages granted to the back end: one for each segment.
    pub grants: u64,
    /// Events sent to the guest.
    pub events: u64,
    /// Bytes asked for.
    pub read_bytes: u64,
    /// Bytes handed over.
    pub written_bytes: u64,
}

/// For whom a request is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// A task that waits for it.
    Task(usize),
    /// Who reads this file in sequence.
    ReadAhead(usize),
    /// A guest behind this one that asked so: what reaches this domain as an emulated disk's request goes on from it.
    Behind(DiskRequest),
    /// Nobody in particular: it writes back, beginning with that byte of all that were ever written back.
    WriteBack(u64),
    /// Nobody any more.
    Nobody,
}

/// Something to read or write that waits for its requests.
#[derive(Clone, Copy, Debug)]
struct Run {
    stretch: Stretch,
    write: bool,
    purpose: Purpose,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    stretch: Stretch,
    purpose: Purpose,
}

/// The access that a task is at.
#[derive(Clone, Copy, Debug)]
struct Operation {
    access: DiskAccess,
    file: usize,
    /// Most of it that is read or written at once past the page cache, bytes.
    piece: u64,
    /// What is left of it.
    left: Stretch,
    /// What of that is being copied.
    copying: u32,
    /// Bytes that it waits for.
    under_way: u64,
    /// Has it had to wait for the disk?
    waited: bool,
}

/// A virtual disk.
#[derive(Clone, Debug)]
pub struct Block {
    /// Where events go.
    pub vcpu: VcpuId,
    /// Its number, and area of the disk.
    pub area: u32,
    /// What each of its requests takes more in the domain that emulates it, ns of CPU time.
    pub emulation_ns: Span,
    /// What went through it.
    pub counts: BlockCounts,
    config: BlockConfig,
    random: Random,
    cache: PageCache,
    files: Option<FileSet>,
    write_back: WriteBack,
    /// By task.
    operations: Vec<Option<Operation>>,
    /// What tasks wait for.
    runs: VecDeque<Run>,
    /// Requests for tasks that went before some that write back.
    passed: u32,
    /// Requests under way by tag, and the tags that are free.
    slots: Vec<Slot>,
    free: Vec<u32>,
    request_ring: VecDeque<DiskRequest>,
    responses: VecDeque<u32>,
    /// Tasks whose data are to be copied; that wait for read-ahead; for room to write; for all that was written up to a
    /// byte; and that can go on.
    copies: VecDeque<usize>,
    readers: VecDeque<usize>,
    writers: VecDeque<usize>,
    syncs: VecDeque<(u64, usize)>,
    resumed: VecDeque<usize>,
    /// Requests of guests behind this one that are complete.
    behind: VecDeque<DiskRequest>,
    /// An event has been sent that the guest has not taken yet.
    event_pending: bool,
    /// An event is due at the end of the back end's round.
    event_due: bool,
}

impl Block {
    /// An idle virtual disk; events go to `vcpu`.
    pub fn new(config: BlockConfig, area: u32, vcpu: VcpuId, random: Random) -> Self {
        let slots = config.slots.max(1);
        Block {
            vcpu,
            area,
            emulation_ns: 0,
            counts: BlockCounts::default(),
            config,
            random,
            cache: PageCache::new(config.cache),
            files: None,
            write_back: WriteBack::new(&config.cache),
            operations: Vec::new(),
            runs: VecDeque::new(),
            passed: 0,
            slots: vec![Slot { stretch: Stretch::default(), purpose: Purpose::Nobody }; slots],
            free: (0..slots as u32).rev().collect(),
            request_ring: VecDeque::with_capacity(slots),
            responses: VecDeque::with_capacity(slots),
            copies: VecDeque::new(),
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            syncs: VecDeque::new(),
            resumed: VecDeque::new(),
            behind: VecDeque::new(),
            event_pending: false,
            event_due: false,
        }
    }

    /// Does it go through a ring?
    pub fn is_split(&self) -> bool {
        self.config.split
    }

    // ---- tasks ----

    /// A task accesses a file of `owner`. It waits until [`take_resumed`](Self::take_resumed) names it.
    pub fn access(&mut self, task: usize, owner: usize, access: DiskAccess) {
        self.counts.accesses += 1;
        let bytes = u64::from(access.bytes);
        if bytes == 0 {
            self.resumed.push_back(task);
            return;
        }
        let file = self.cache.file(owner, access.file_bytes.max(bytes));
        let Stretch { start: file_start, bytes: file_bytes } = self.cache.stretch(file);
        let start = match access.random {
            true => file_start + self.random.below(file_bytes / bytes) * bytes,
            false => self.cache.advance(file, bytes),
        };
        let left = Stretch { start, bytes };
        self.operations.resize(self.operations.len().max(task + 1), None);
        let operation =
            Operation { access, file, piece: bytes, left, copying: 0, under_way: 0, waited: false };
        self.operations[task] = Some(operation);
        match access {
            DiskAccess { direct: true, .. } => self.go_on_past_cache(task),
            DiskAccess { write: false, random: true, .. } => {
                if self.random.below(file_bytes) < self.cache.cached(file) {
                    self.copy(task, bytes);
                } else {
                    self.request(task, left.pages(), false);
                }
            }
            DiskAccess { write: true, .. } if !self.writers.is_empty() => self.writers.push_back(task),
            _ => self.go_on(task),
        }
    }

    /// The guest serves these files from now on.
    pub fn serve_files(&mut self, config: &FileSetConfig, random: Random) {
        let files = FileSet::new(config, random);
        let place = self.cache.file(usize::MAX, files.bytes());
        self.files = Some(files.at(self.cache.stretch(place).start));
    }

    /// A task reads a file of this size, one of those served, while so many processes take memory from them. True: it
    /// waits until [`take_resumed`](Self::take_resumed) names it; false: the file is in memory.
    ///
    /// What is not there is read as who goes through a file is read ahead for: in pieces, one after the other.
    pub fn read_file(&mut self, task: usize, bytes: u32, processes: u32) -> bool {
        self.counts.accesses += 1;
        let Some(left) = self.files.as_mut().and_then(|files| files.read(bytes, processes)) else {
            self.counts.hits += 1;
            return false;
        };
        let access = DiskAccess { bytes, write: false, random: false, direct: true, file_bytes: left.bytes };
        let piece = self.config.cache.readahead_max_bytes.max(PAGE_BYTES);
        self.operations.resize(self.operations.len().max(task + 1), None);
        self.operations[task] =
            Some(Operation { access, file: 0, piece, left, copying: 0, under_way: 0, waited: true });
        self.go_on_past_cache(task);
        true
    }

    /// A task waits until all that was written is on the disk: until [`take_resumed`](Self::take_resumed) names it.
    pub fn sync(&mut self, task: usize) {
        let wanted = self.write_back.want_all();
        self.syncs.push_back((wanted, task));
        self.end_syncs();
    }

    /// A task that can go on.
    pub fn take_resumed(&mut self) -> Option<usize> {
        self.resumed.pop_front()
    }

    /// When what was written has waited for so long that it is to be written out: a vCPU should look for work then.
    /// (`NEVER`: nothing waits.)
    pub fn next_expiry(&self) -> Time {
        self.write_back.next_expiry()
    }

    /// The guest boots: its tasks and its memory are gone. Requests under way complete, for nobody.
    pub fn reboot(&mut self) {
        for slot in &mut self.slots {
            if !matches!(slot.purpose, Purpose::WriteBack(_)) {
                slot.purpose = Purpose::Nobody;
            }
        }
        self.operations.fill(None);
        self.runs.clear();
        self.syncs.clear();
        for tasks in [&mut self.copies, &mut self.readers, &mut self.writers, &mut self.resumed] {
            tasks.clear();
        }
        self.behind.clear();
        self.cache.forget();
        self.files.iter_mut().for_each(FileSet::forget);
        self.write_back.forget();
    }

    /// The disk is to read or write something that a task waits for.
    fn request(&mut self, task: usize, stretch: Stretch, write: bool) {
        if let Some(operation) = &mut self.operations[task] {
            (operation.under_way, operation.waited) = (stretch.bytes, true);
        }
        self.runs.push_back(Run { stretch, write, purpose: Purpose::Task(task) });
    }

    /// A task goes on with its access past the page cache.
    fn go_on_past_cache(&mut self, task: usize) {
        let Some(Some(Operation { access, piece, left, .. })) = self.operations.get_mut(task) else { return };
        let next = Stretch { start: left.start, bytes: left.bytes.min(*piece) };
        *left = Stretch { start: next.end(), bytes: left.bytes - next.bytes };
        let write = access.write;
        match next.bytes {
            0 => self.end(task),
            _ => self.request(task, next, write),
        }
    }

    /// So many bytes are to be copied for a task.
    fn copy(&mut self, task: usize, bytes: u64) {
        if let Some(operation) = &mut self.operations[task] {
            operation.copying = bytes.min(operation.left.bytes) as u32;
            self.copies.push_back(task);
        }
    }

    /// A task goes on with its cached access.
    fn go_on(&mut self, task: usize) {
        let Some(Some(Operation { access, file, left, .. })) = self.operations.get(task).copied() else {
            return;
        };
        if left.bytes == 0 {
            self.end(task);
            return;
        }
        if access.write {
            match self.write_back.promise(left.bytes as u32) {
                0 => self.writers.push_back(task),
                bytes => self.copy(task, u64::from(bytes)),
            }
            return;
        }
        let (found, wanted) = self.cache.read(file, left.start, left.bytes);
        if let Some(wanted) = wanted {
            self.read_ahead(file, wanted);
        }
        match found {
            Found::Here(bytes) => self.copy(task, bytes),
            Found::Coming => {
                if let Some(operation) = &mut self.operations[task] {
                    operation.waited = true;
                }
                self.readers.push_back(task);
            }
        }
    }

    fn read_ahead(&mut self, file: usize, wanted: Stretch) {
        let purpose = Purpose::ReadAhead(file);
        match self.runs.back_mut() {
            Some(last) if last.purpose == purpose && last.stretch.end() == wanted.start => {
                last.stretch.bytes += wanted.bytes;
            }
            _ => self.runs.push_back(Run { stretch: wanted, write: false, purpose }),
        }
    }

    /// An access is complete.
    fn end(&mut self, task: usize) {
        if let Some(operation) = self.operations[task].take() {
            let Operation { access, waited, .. } = operation;
            self.counts.hits += u64::from(!access.write && !waited);
            self.resumed.push_back(task);
        }
    }

    fn end_syncs(&mut self) {
        if self.syncs.is_empty() {
            return;
        }
        let oldest = |slot: &Slot| match slot.purpose {
            Purpose::WriteBack(from) => Some(from),
            _ => None,
        };
        let written = self.slots.iter().filter_map(oldest).min().unwrap_or(self.write_back.taken());
        while let Some(&(wanted, task)) = self.syncs.front()
            && wanted <= written
        {
            self.syncs.pop_front();
            self.resumed.push_back(task);
        }
    }

    // ---- the guest's CPU ----

    /// What the block layer does next, and what that costs. Of a front end only the vCPU that takes its events takes
    /// responses; all make requests. `disk_has_room` is asked only of a disk without a ring between.
    pub fn next_work(
        &mut self,
        now: Time,
        takes_events: bool,
        disk_has_room: bool,
    ) -> Option<(BlockWork, Span)> {
        let costs = self.config.costs;
        if takes_events || !self.config.split {
            if std::mem::take(&mut self.event_pending) {
                return Some((BlockWork::Upcall, costs.upcall_ns));
            }
            if let Some(tag) = self.responses.pop_front() {
                return Some((BlockWork::Response(tag), costs.response_ns));
            }
        }
        if let Some(task) = self.copies.pop_front() {
            let bytes = self.operations[task].map_or(0, |operation| operation.copying);
            return Some((BlockWork::Copy(task), i64::from(bytes) * costs.copy_ps_per_byte / 1000));
        }
        if self.free.is_empty() || (!self.config.split && !disk_has_room) {
            return None;
        }
        let request = self.next_request(now)?;
        Some((BlockWork::Request(request), costs.request_ns))
    }

    fn next_request(&mut self, now: Time) -> Option<DiskRequest> {
        let due = self.write_back.is_due(now, !self.writers.is_empty());
        let write_back = due && (self.runs.is_empty() || self.passed >= WRITE_BACK_STARVED);
        self.passed = if due && !write_back { self.passed + 1 } else { 0 };
        let run = match write_back {
            true => {
                let (stretch, from) = self.write_back.take(self.config.request_bytes_max)?;
                Run { stretch, write: true, purpose: Purpose::WriteBack(from) }
            }
            false => self.take_run()?,
        };
        let Run { stretch, write, purpose } = run;
        let tag = self.free.pop()?;
        self.slots[tag as usize] = Slot { stretch, purpose };
        let area = match purpose {
            Purpose::Behind(request) => request.area,
            _ => self.area,
        };
        let (block, bytes) = (self.area, stretch.bytes as u32);
        Some(DiskRequest { tag, block, area, start: stretch.start, bytes, write })
    }

    /// Takes as much as fits into a request from what tasks wait for.
    fn take_run(&mut self) -> Option<Run> {
        let run = self.runs.front_mut()?;
        let bytes = run.stretch.bytes.min(self.config.request_bytes_max);
        let taken = Run { stretch: Stretch { bytes, ..run.stretch }, ..*run };
        run.stretch = Stretch { start: taken.stretch.end(), bytes: run.stretch.bytes - bytes };
        if run.stretch.bytes == 0 {
            self.runs.pop_front();
        }
        Some(taken)
    }

    /// A piece of work is done. If it was a request: where that goes.
    pub fn finish(&mut self, now: Time, work: BlockWork) -> Option<Submitted> {
        match work {
            BlockWork::Upcall => None,
            BlockWork::Response(tag) => {
                self.counts.responses += 1;
                self.complete(tag);
                None
            }
            BlockWork::Copy(task) => {
                self.copied(now, task);
                None
            }
            BlockWork::Request(request) => Some(self.put(request)),
        }
    }

    fn put(&mut self, request: DiskRequest) -> Submitted {
        let bytes = u64::from(request.bytes);
        self.counts.requests += 1;
        self.counts.writes += u64::from(request.write);
        match request.write {
            true => self.counts.written_bytes += bytes,
            false => self.counts.read_bytes += bytes,
        }
        if !self.config.split {
            return Submitted::Disk(request);
        }
        self.counts.grants += bytes.div_ceil(PAGE_BYTES);
        self.request_ring.push_back(request);
        Submitted::Ring { first: self.request_ring.len() == 1 }
    }

    fn copied(&mut self, now: Time, task: usize) {
        let Some(Some(operation)) = self.operations.get_mut(task) else { return };
        let bytes = u64::from(std::mem::take(&mut operation.copying));
        if bytes == 0 {
            // The guest has booted since; the task is another one.
            return;
        }
        let copied = Stretch { bytes, ..operation.left };
        operation.left = Stretch { start: copied.end(), bytes: operation.left.bytes - bytes };
        let Operation { file, access, .. } = *operation;
        if access.write {
            self.cache.add(file, bytes);
            self.write_back.add(now, file, self.cache.stretch(file).bytes, copied);
        }
        self.go_on(task);
    }

    /// A request has been answered: who waits for it may go on.
    fn complete(&mut self, tag: u32) {
        let slot = &mut self.slots[tag as usize];
        let Slot { stretch, purpose } = *slot;
        slot.purpose = Purpose::Nobody;
        self.free.push(tag);
        match purpose {
            Purpose::Task(task) => self.came(task, stretch.bytes),
            Purpose::ReadAhead(file) => {
                if self.cache.arrived(file, stretch) {
                    for _ in 0..self.readers.len() {
                        self.readers.pop_front().into_iter().for_each(|task| self.go_on(task));
                    }
                }
            }
            Purpose::WriteBack(_) => {
                self.write_back.written(stretch.bytes);
                self.end_syncs();
                for _ in 0..self.writers.len() {
                    self.writers.pop_front().into_iter().for_each(|task| self.go_on(task));
                }
            }
            Purpose::Behind(request) => self.behind.push_back(request),
            Purpose::Nobody => {}
        }
    }

    /// Some of what a task waits for is there.
    fn came(&mut self, task: usize, bytes: u64) {
        let Some(Some(operation)) = self.operations.get_mut(task) else { return };
        operation.under_way -= bytes;
        if operation.under_way > 0 {
            return;
        }
        let Operation { access, file, left, .. } = *operation;
        if access.direct {
            self.go_on_past_cache(task);
        } else {
            self.cache.add(file, left.pages().bytes);
            self.copy(task, left.bytes);
        }
    }

    // ---- guests behind this one ----

    /// A guest whose disk this domain emulates asks for something: it goes on as a request of this virtual disk, whole.
    pub fn pass_on(&mut self, request: DiskRequest) {
        let DiskRequest { start, bytes, write, .. } = request;
        assert!(u64::from(bytes) <= self.config.request_bytes_max, "a request goes on whole");
        let stretch = Stretch { start, bytes: bytes.into() };
        self.runs.push_back(Run { stretch, write, purpose: Purpose::Behind(request) });
    }

    /// Is a request of a guest behind this one complete?
    pub fn has_passed(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Takes a request of a guest behind this one that is complete.
    pub fn take_passed(&mut self) -> Option<DiskRequest> {
        self.behind.pop_front()
    }

    // ---- the other side of the ring ----

    /// Takes a request from the ring.
    pub fn take_request(&mut self) -> Option<DiskRequest> {
        self.request_ring.pop_front()
    }

    /// Is there something in the ring for the back end?
    pub fn has_requests(&self) -> bool {
        !self.request_ring.is_empty()
    }

    /// Puts a response into the ring. True: an event falls due with it.
    pub fn respond(&mut self, tag: u32) -> bool {
        self.responses.push_back(tag);
        self.config.split && !std::mem::replace(&mut self.event_due, true)
    }

    /// Sends the event that is due, unless one is on its way already. True: kick the vCPU.
    pub fn send_event(&mut self) -> bool {
        self.event_due = false;
        let sent = !std::mem::replace(&mut self.event_pending, true);
        self.counts.events += u64::from(sent);
        sent
    }
}
