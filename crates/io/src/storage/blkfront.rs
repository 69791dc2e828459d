//! A guest's virtual disk: the block layer with the blkfront below it, and the ring to the blkback.
//!
//! Accesses of tasks become requests. A direct one waits for the disk; a cached one goes through the page cache, which
//! reads ahead and writes back. Requests that tasks wait for go before those that write back, without starving them. A
//! domain that has the disk to itself uses the same layer without a ring: its requests go straight to the disk.
//!
//! A state machine: [`next_work`](Blkfront::next_work) gives the guest's CPU its next work, [`finish`](Blkfront::finish)
//! ends it, [`take_resumed`](Blkfront::take_resumed) names the tasks that can continue.

use std::collections::VecDeque;

use vcpulab_guest::script::DiskAccess;
use vcpulab_guest::{AppId, Random, TaskId};
use vcpulab_host::{Span, Table, Time, VcpuId};

use super::disk::DiskRequest;
use super::file_set::{FileSet, FileSetConfig};
use super::page_cache::{CacheConfig, FileId, Found, PageCache};
use super::stretch::{PAGE_BYTES, Stretch};
use super::write_back::WriteBack;
use crate::ids::BlkfrontId;

/// Segments of a request through a ring (`BLKIF_MAX_SEGMENTS_PER_REQUEST` in Xen's public header `io/blkif.h`).
const RING_SEGMENTS: u64 = 11;

/// Requests that a ring of one page holds, each 112 bytes (the same header, and `io/ring.h`, which rounds down to a power
/// of two).
const RING_SLOTS: usize = 32;

/// Largest request straight to a disk, bytes (Linux's `max_sectors_kb`).
const STRAIGHT_BYTES: u64 = 512 << 10;

/// Requests under way straight to a disk (Linux's `nr_requests`).
const STRAIGHT_SLOTS: usize = 128;

/// Requests that tasks wait for which go before one that writes back when both wait for room. (Two to one is how Linux's
/// deadline elevator shares out its batches.)
const WRITE_BACK_STARVED: u32 = 2;

/// A virtual disk as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlkfrontConfig {
    /// Whether requests go through a ring to a driver domain; otherwise they go straight to the disk.
    pub split: bool,
    /// Largest request, bytes.
    pub request_bytes_max: u64,
    /// Most requests under way.
    pub slots: usize,
    /// Costs of requests and responses.
    pub costs: BlkfrontCosts,
    /// The guest's page cache.
    pub cache: CacheConfig,
}

impl BlkfrontConfig {
    /// Through a ring of Xen's.
    pub const fn split(costs: BlkfrontCosts, cache: CacheConfig) -> Self {
        let request_bytes_max = RING_SEGMENTS * PAGE_BYTES;
        BlkfrontConfig { split: true, request_bytes_max, slots: RING_SLOTS, costs, cache }
    }

    /// Straight to the disk.
    pub const fn straight(costs: BlkfrontCosts, cache: CacheConfig) -> Self {
        BlkfrontConfig {
            split: false,
            request_bytes_max: STRAIGHT_BYTES,
            slots: STRAIGHT_SLOTS,
            costs,
            cache,
        }
    }
}

/// Costs of a virtual disk in its guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlkfrontCosts {
    /// Taking one event, whatever came with it, ns.
    pub upcall_ns: Span,
    /// CPU time for a request: block layer and blkfront, or the disk's own driver, ns.
    pub request_ns: Span,
    /// CPU time for a response, ns.
    pub response_ns: Span,
    /// CPU time for a byte copied from or to the page cache, ps.
    pub copy_ps_per_byte: i64,
}

/// A piece of work of the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlkfrontWork {
    /// Taking an event.
    Upcall,
    /// Taking the response to the request with that tag.
    Response(u32),
    /// Copying between the page cache and a task.
    Copy(TaskId),
    /// Making a request ready.
    Request(DiskRequest),
}

/// The way of a request that has been made ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// Into the ring.
    Ring {
        /// Whether the ring was empty.
        first: bool,
    },
    /// To the disk: submit it.
    Disk(DiskRequest),
}

/// Traffic of a virtual disk since the last reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlkfrontCounts {
    /// Accesses by tasks.
    pub accesses: u64,
    /// Cached reads that did not have to wait for the disk.
    pub hits: u64,
    /// Requests made.
    pub requests: u64,
    /// Requests among them that write.
    pub writes: u64,
    /// Responses taken.
    pub responses: u64,
    /// Pages granted to the blkback: one for each segment.
    pub grants: u64,
    /// Events sent to the guest.
    pub events: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// A task that waits for it.
    Task(TaskId),
    /// Sequential readers of this file.
    ReadAhead(FileId),
    /// A guest behind this one: a request to the disk that this domain emulates continues from it.
    Behind(DiskRequest),
    /// Writing back, beginning with that byte of all that were ever written back.
    WriteBack(u64),
    /// No purpose any more: the result is dropped.
    Nobody,
}

/// A stretch to read or write that waits for its requests.
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

/// The access at hand of a task.
#[derive(Clone, Copy, Debug)]
struct Operation {
    access: DiskAccess,
    file: FileId,
    /// Most of it that is read or written at once past the page cache, bytes.
    piece: u64,
    /// The rest of it.
    left: Stretch,
    /// Bytes of the rest that are being copied.
    copying: u32,
    /// Bytes that it waits for.
    under_way: u64,
    /// Whether the operation had to wait for the disk.
    waited: bool,
}

/// A virtual disk.
#[derive(Clone, Debug)]
pub(crate) struct Blkfront {
    /// The vCPU that takes its events.
    pub vcpu: VcpuId,
    /// Id of the virtual disk, and so its area of the disk.
    id: BlkfrontId,
    /// Emulation of its disk, ns of CPU time for each request in the domain that emulates it.
    pub emulation_ns: Span,
    /// Traffic of the virtual disk.
    pub counts: BlkfrontCounts,
    config: BlkfrontConfig,
    random: Random,
    cache: PageCache,
    files: Option<FileSet>,
    write_back: WriteBack,
    operations: Table<TaskId, Option<Operation>>,
    /// Stretches that tasks wait for.
    runs: VecDeque<Run>,
    /// Requests for tasks that went before some that write back.
    passed: u32,
    /// Requests under way by tag, and the tags that are free again.
    slots: Vec<Slot>,
    free: Vec<u32>,
    request_ring: VecDeque<DiskRequest>,
    responses: VecDeque<u32>,
    /// Tasks whose data are to be copied; that wait for read-ahead; for room to write; for all that was written up to a
    /// byte; and that can continue.
    copies: VecDeque<TaskId>,
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
    syncs: VecDeque<(u64, TaskId)>,
    resumed: VecDeque<TaskId>,
    /// Requests of guests behind this one that are complete.
    behind: VecDeque<DiskRequest>,
    /// Whether an event has been sent that the guest has not taken yet.
    event_pending: bool,
    /// Whether an event is due at the end of the blkback's poll.
    event_due: bool,
}

impl Blkfront {
    /// An idle virtual disk; events go to `vcpu`.
    pub fn new(config: BlkfrontConfig, id: BlkfrontId, vcpu: VcpuId, random: Random) -> Self {
        Blkfront {
            vcpu,
            id,
            emulation_ns: Span::ZERO,
            counts: BlkfrontCounts::default(),
            config,
            random,
            cache: PageCache::new(config.cache),
            files: None,
            write_back: WriteBack::new(&config.cache),
            operations: Table::new(),
            runs: VecDeque::new(),
            passed: 0,
            slots: Vec::new(),
            free: Vec::new(),
            request_ring: VecDeque::new(),
            responses: VecDeque::new(),
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

    /// Whether requests go through a ring.
    pub fn is_split(&self) -> bool {
        self.config.split
    }

    // ---- tasks ----

    /// Begins an access of a task to a file of an application. The task waits until [`take_resumed`](Self::take_resumed) names it.
    pub fn access(&mut self, task: TaskId, app: AppId, access: DiskAccess) {
        self.counts.accesses += 1;
        let bytes = u64::from(access.bytes);
        if bytes == 0 {
            self.resumed.push_back(task);
            return;
        }
        let file = self.cache.file(Some(app), access.file_bytes.max(bytes));
        let Stretch { start: file_start, bytes: file_bytes } = self.cache.stretch(file);
        let start = match access.random {
            true => file_start + self.random.below(file_bytes / bytes) * bytes,
            false => self.cache.advance(file, bytes),
        };
        let left = Stretch { start, bytes };
        let operation =
            Operation { access, file, piece: bytes, left, copying: 0, under_way: 0, waited: false };
        *self.operations.entry(task) = Some(operation);
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

    /// Gives the guest files to serve.
    pub fn serve_files(&mut self, config: &FileSetConfig, random: Random) {
        let files = FileSet::new(config, random);
        let place = self.cache.file(None, files.bytes());
        self.files = Some(files.at(self.cache.stretch(place).start));
    }

    /// Begins a task's reading of a file of this size, one of those served, while `processes` take memory from them. True:
    /// the task waits until [`take_resumed`](Self::take_resumed) names it; false: the file is in memory.
    ///
    /// A file that is not there is read as a sequential reader reads ahead: in pieces, one after the other.
    pub fn read_file(&mut self, task: TaskId, bytes: u32, processes: u32) -> bool {
        self.counts.accesses += 1;
        let Some(left) = self.files.as_mut().and_then(|files| files.read(bytes, processes)) else {
            self.counts.hits += 1;
            return false;
        };
        let access = DiskAccess { bytes, write: false, random: false, direct: true, file_bytes: left.bytes };
        let piece = self.config.cache.readahead_max_bytes.max(PAGE_BYTES);
        *self.operations.entry(task) =
            Some(Operation { access, file: FileId(0), piece, left, copying: 0, under_way: 0, waited: true });
        self.go_on_past_cache(task);
        true
    }

    /// Makes a task wait until all that was written is on the disk: until [`take_resumed`](Self::take_resumed) names it.
    pub fn sync(&mut self, task: TaskId) {
        let wanted = self.write_back.want_all();
        self.syncs.push_back((wanted, task));
        self.end_syncs();
    }

    /// Removes a task that can continue.
    pub fn take_resumed(&mut self) -> Option<TaskId> {
        self.resumed.pop_front()
    }

    /// The time at which the oldest dirty memory is to be written out: a vCPU should look for work then (`NEVER`: there is
    /// none).
    pub fn next_expiry(&self) -> Time {
        self.write_back.next_expiry()
    }

    /// Forgets the tasks and the memory of the guest, which boots. Requests under way complete, for no purpose.
    pub fn reboot(&mut self) {
        for slot in &mut self.slots {
            if !matches!(slot.purpose, Purpose::WriteBack(_)) {
                slot.purpose = Purpose::Nobody;
            }
        }
        self.operations.iter_mut().for_each(|operation| *operation = None);
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

    /// Queues a stretch that a task waits for.
    fn request(&mut self, task: TaskId, stretch: Stretch, write: bool) {
        if let Some(operation) = &mut self.operations[task] {
            (operation.under_way, operation.waited) = (stretch.bytes, true);
        }
        self.runs.push_back(Run { stretch, write, purpose: Purpose::Task(task) });
    }

    /// Lets a task continue with its access past the page cache.
    fn go_on_past_cache(&mut self, task: TaskId) {
        let Some(Some(Operation { access, piece, left, .. })) = self.operations.get_mut(task) else { return };
        let next = Stretch { start: left.start, bytes: left.bytes.min(*piece) };
        *left = Stretch { start: next.end(), bytes: left.bytes - next.bytes };
        let write = access.write;
        match next.bytes {
            0 => self.end(task),
            _ => self.request(task, next, write),
        }
    }

    /// Queues the copying of bytes for a task.
    fn copy(&mut self, task: TaskId, bytes: u64) {
        if let Some(operation) = &mut self.operations[task] {
            operation.copying = bytes.min(operation.left.bytes) as u32;
            self.copies.push_back(task);
        }
    }

    /// Lets a task continue with its cached access.
    fn go_on(&mut self, task: TaskId) {
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

    fn read_ahead(&mut self, file: FileId, wanted: Stretch) {
        let purpose = Purpose::ReadAhead(file);
        match self.runs.back_mut() {
            Some(last) if last.purpose == purpose && last.stretch.end() == wanted.start => {
                last.stretch.bytes += wanted.bytes;
            }
            _ => self.runs.push_back(Run { stretch: wanted, write: false, purpose }),
        }
    }

    /// An access is complete.
    fn end(&mut self, task: TaskId) {
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

    /// The next work of the block layer, with its cost. Of a split one only the vCPU that takes its events takes responses;
    /// all make requests. `disk_has_room` is asked only of a disk without a ring between.
    pub fn next_work(
        &mut self,
        now: Time,
        takes_events: bool,
        disk_has_room: bool,
    ) -> Option<(BlkfrontWork, Span)> {
        let costs = self.config.costs;
        if takes_events || !self.config.split {
            if std::mem::take(&mut self.event_pending) {
                return Some((BlkfrontWork::Upcall, costs.upcall_ns));
            }
            if let Some(tag) = self.responses.pop_front() {
                return Some((BlkfrontWork::Response(tag), costs.response_ns));
            }
        }
        if let Some(task) = self.copies.pop_front() {
            let bytes = self.operations[task].map_or(0, |operation| operation.copying);
            let cost = Span::from_ns(i64::from(bytes) * costs.copy_ps_per_byte / 1000);
            return Some((BlkfrontWork::Copy(task), cost));
        }
        if !self.has_slot() || (!self.config.split && !disk_has_room) {
            return None;
        }
        let request = self.next_request(now)?;
        Some((BlkfrontWork::Request(request), costs.request_ns))
    }

    fn has_slot(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < self.config.slots.max(1)
    }

    /// Takes a slot for a request. Those that are never taken take no memory.
    fn take_slot(&mut self, request: Slot) -> u32 {
        match self.free.pop() {
            Some(tag) => {
                self.slots[tag as usize] = request;
                tag
            }
            None => {
                self.slots.push(request);
                self.slots.len() as u32 - 1
            }
        }
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
        let tag = self.take_slot(Slot { stretch, purpose });
        let area = match purpose {
            Purpose::Behind(request) => request.area,
            _ => self.id.0,
        };
        let (blkfront, bytes) = (self.id, stretch.bytes as u32);
        Some(DiskRequest { tag, blkfront, area, start: stretch.start, bytes, write })
    }

    /// Takes as much as fits into a request of the first stretch that a task waits for.
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

    /// Ends a piece of work. If it was a request: the way of that.
    pub fn finish(&mut self, now: Time, work: BlkfrontWork) -> Option<Submitted> {
        match work {
            BlkfrontWork::Upcall => None,
            BlkfrontWork::Response(tag) => {
                self.counts.responses += 1;
                self.complete(tag);
                None
            }
            BlkfrontWork::Copy(task) => {
                self.copied(now, task);
                None
            }
            BlkfrontWork::Request(request) => Some(self.put(request)),
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

    fn copied(&mut self, now: Time, task: TaskId) {
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

    /// Completes a request: the tasks that wait for it may continue.
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

    /// Takes some of the bytes that a task waits for.
    fn came(&mut self, task: TaskId, bytes: u64) {
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

    /// Passes on a request of a guest whose disk this domain emulates, as a request of this virtual disk, whole.
    pub fn pass_on(&mut self, request: DiskRequest) {
        let DiskRequest { start, bytes, write, .. } = request;
        assert!(u64::from(bytes) <= self.config.request_bytes_max, "a request goes on whole");
        let stretch = Stretch { start, bytes: bytes.into() };
        self.runs.push_back(Run { stretch, write, purpose: Purpose::Behind(request) });
    }

    /// Whether a request of a guest behind this one is complete.
    pub fn has_passed(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Removes a request of a guest behind this one that is complete.
    pub fn take_passed(&mut self) -> Option<DiskRequest> {
        self.behind.pop_front()
    }

    // ---- the other side of the ring ----

    /// Removes a request from the ring.
    pub fn take_request(&mut self) -> Option<DiskRequest> {
        self.request_ring.pop_front()
    }

    /// Whether there is a request in the ring for the blkback.
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
