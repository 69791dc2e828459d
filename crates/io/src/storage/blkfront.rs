//! A guest's virtual disk: the block layer with the blkfront below it, and the ring to the blkback.
//!
//! [Accesses](Accesses) of tasks become [requests](Requests). A domain that has the disk to itself uses the same layer
//! without a ring: its requests go straight to the disk.
//!
//! A state machine: [`next_work`](Blkfront::next_work) gives the guest's CPU its next work, [`finish`](Blkfront::finish)
//! ends it, [`take_resumed`](Blkfront::take_resumed) names the tasks that can continue.

use std::collections::VecDeque;

use vcpulab_guest::script::DiskAccess;
use vcpulab_guest::{AppId, Random, TaskId};
use vcpulab_host::{Span, Time, VcpuId};

use super::accesses::Accesses;
use super::disk::DiskRequest;
use super::file_set::FileSetConfig;
use super::page_cache::CacheConfig;
use super::requests::{Purpose, Requests, Run, Slot};
use super::stretch::{PAGE_BYTES, Stretch};
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

/// A virtual disk.
#[derive(Clone, Debug)]
pub(crate) struct Blkfront {
    /// The vCPU that takes its events.
    pub vcpu: VcpuId,
    /// Id of the virtual disk, and so its area of the disk.
    id: BlkfrontId,
    /// Emulation of its disk, ns of CPU time for each request in the domain that emulates it.
    pub emulation_ns: Span,
    /// Traffic of the virtual disk, without accesses.
    counts: BlkfrontCounts,
    config: BlkfrontConfig,
    accesses: Accesses,
    requests: Requests,
    request_ring: VecDeque<DiskRequest>,
    responses: VecDeque<u32>,
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
            accesses: Accesses::new(config.cache, random),
            requests: Requests::new(config.slots),
            request_ring: VecDeque::new(),
            responses: VecDeque::new(),
            behind: VecDeque::new(),
            event_pending: false,
            event_due: false,
        }
    }

    /// Whether requests go through a ring.
    pub fn is_split(&self) -> bool {
        self.config.split
    }

    /// Traffic of the virtual disk since the last reset.
    pub fn counts(&self) -> BlkfrontCounts {
        BlkfrontCounts { accesses: self.accesses.count, hits: self.accesses.hits, ..self.counts }
    }

    /// Sets all counts to zero.
    pub fn reset_counts(&mut self) {
        self.counts = BlkfrontCounts::default();
        (self.accesses.count, self.accesses.hits) = (0, 0);
    }

    // ---- tasks ----

    /// Begins an access of a task to a file of an application. The task waits until [`take_resumed`](Self::take_resumed) names it.
    pub fn access(&mut self, task: TaskId, app: AppId, access: DiskAccess) {
        self.accesses.begin(task, app, access, &mut self.requests);
    }

    /// Gives the guest files to serve.
    pub fn serve_files(&mut self, config: &FileSetConfig, random: Random) {
        self.accesses.serve_files(config, random);
    }

    /// Begins a task's reading of a file of this size, one of those served, while `processes` take memory from them. True:
    /// the task waits until [`take_resumed`](Self::take_resumed) names it; false: the file is in memory.
    pub fn read_file(&mut self, task: TaskId, bytes: u32, processes: u32) -> bool {
        self.accesses.read_file(task, bytes, processes, &mut self.requests)
    }

    /// Makes a task wait until all that was written is on the disk: until [`take_resumed`](Self::take_resumed) names it.
    pub fn sync(&mut self, task: TaskId) {
        self.accesses.sync(task, &self.requests);
    }

    /// Removes a task that can continue.
    pub fn take_resumed(&mut self) -> Option<TaskId> {
        self.accesses.take_resumed()
    }

    /// The time at which the oldest dirty memory is to be written out: a vCPU should look for work then (`NEVER`: there is
    /// none).
    pub fn next_expiry(&self) -> Time {
        self.accesses.next_expiry()
    }

    /// Forgets the tasks and the memory of the guest, which boots. Requests under way complete, for no purpose.
    pub fn reboot(&mut self) {
        self.requests.forget();
        self.accesses.forget();
        self.behind.clear();
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
        if let Some((task, bytes)) = self.accesses.take_copy() {
            let cost = Span::from_ns(i64::from(bytes) * costs.copy_ps_per_byte / 1000);
            return Some((BlkfrontWork::Copy(task), cost));
        }
        if !self.requests.has_slot() || (!self.config.split && !disk_has_room) {
            return None;
        }
        let request = self.next_request(now)?;
        Some((BlkfrontWork::Request(request), costs.request_ns))
    }

    fn next_request(&mut self, now: Time) -> Option<DiskRequest> {
        let bytes_max = self.config.request_bytes_max;
        let write_back = self.requests.writes_back_next(self.accesses.write_back_is_due(now));
        let Run { stretch, write, purpose } = match write_back {
            true => self.accesses.take_write_back(bytes_max)?,
            false => self.requests.take_run(bytes_max)?,
        };
        let tag = self.requests.take_slot(Slot { stretch, purpose });
        let area = match purpose {
            Purpose::Behind(request) => request.area,
            _ => self.id.0,
        };
        let (blkfront, bytes) = (self.id, stretch.bytes as u32);
        Some(DiskRequest { tag, blkfront, area, start: stretch.start, bytes, write })
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
                self.accesses.copied(now, task, &mut self.requests);
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

    /// Completes a request: the tasks that wait for it may continue.
    fn complete(&mut self, tag: u32) {
        let Slot { stretch, purpose } = self.requests.complete(tag);
        let requests = &mut self.requests;
        match purpose {
            Purpose::Task(task) => self.accesses.complete_task_request(task, stretch.bytes, requests),
            Purpose::ReadAhead(file) => self.accesses.complete_read_ahead(file, stretch, requests),
            Purpose::WriteBack(_) => self.accesses.complete_write_back(stretch.bytes, requests),
            Purpose::Behind(request) => self.behind.push_back(request),
            Purpose::Nobody => {}
        }
    }

    // ---- guests behind this one ----

    /// Passes on a request of a guest whose disk this domain emulates, as a request of this virtual disk, whole.
    pub fn pass_on(&mut self, request: DiskRequest) {
        let DiskRequest { start, bytes, write, .. } = request;
        assert!(u64::from(bytes) <= self.config.request_bytes_max, "a request goes on whole");
        let stretch = Stretch { start, bytes: bytes.into() };
        self.requests.push(Run { stretch, write, purpose: Purpose::Behind(request) });
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
