//! The blkbacks of the virtual disks on one disk, on one vCPU of the driver domain that has it: between the disk and the rings
//! of the guests behind it. Completions are taken on the vCPU of the disk's interrupts.
//!
//! They poll as those of the network do: first completions of the disk, then requests in the rings, each guest in turn;
//! guests are notified at the end of a poll. Taking notifications, and the cost of an upcall, belong to the driver domain's
//! loop.

use std::collections::VecDeque;

use vcpulab_host::{Span, Table, Time};

use super::blkfront::Blkfront;
use super::disk::{Disk, DiskRequest};
use crate::ids::BlkfrontId;

/// The store to which blkbacks pass requests.
#[derive(Clone, Debug)]
pub(crate) enum Store {
    /// A disk.
    Disk(Box<Disk>),
    /// The own virtual disk of the blkbacks' domain: a stub domain, between its guest and the driver domain.
    Front(BlkfrontId),
}

impl Store {
    /// The disk, if it is one.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Store::Disk(disk) => Some(disk),
            Store::Front(_) => None,
        }
    }

    /// The disk, if it is one, to change it.
    pub fn disk_mut(&mut self) -> Option<&mut Disk> {
        match self {
            Store::Disk(disk) => Some(disk),
            Store::Front(_) => None,
        }
    }

    /// Whether there is room for a request. A stub domain's requests are in its memory, and its guest's ring bounds them.
    pub fn can_submit(&self) -> bool {
        self.disk().is_none_or(Disk::can_submit)
    }

    fn has_completed(&self, blkfronts: &Table<BlkfrontId, Blkfront>) -> bool {
        match self {
            Store::Disk(disk) => disk.has_completed(),
            Store::Front(own) => blkfronts[*own].has_passed(),
        }
    }

    fn take_completed(&mut self, blkfronts: &mut Table<BlkfrontId, Blkfront>) -> Option<DiskRequest> {
        match self {
            Store::Disk(disk) => disk.take_completed(),
            Store::Front(own) => blkfronts[*own].take_passed(),
        }
    }

    fn submit(&mut self, now: Time, request: DiskRequest, blkfronts: &mut Table<BlkfrontId, Blkfront>) {
        match self {
            Store::Disk(disk) => disk.submit(now, request),
            Store::Front(own) => blkfronts[*own].pass_on(request),
        }
    }
}

/// Requests, and completions, in one poll (a ring's worth).
const POLL_BUDGET: usize = 32;

/// Costs of the blkbacks, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlkbackCosts {
    /// Passing a request from a ring to the disk, its driver included.
    pub request_ns: Span,
    /// Mapping and unmapping one page of it.
    pub grant_ns: Span,
    /// Passing a completion from the disk to a ring.
    pub response_ns: Span,
}

/// A piece of work of the blkbacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlkbackWork {
    /// Passing a guest's request to the disk.
    Request(DiskRequest),
    /// Passing the response to the guest.
    Response(DiskRequest),
}

impl BlkbackWork {
    /// The request that it is about.
    pub fn request(&self) -> &DiskRequest {
        match self {
            BlkbackWork::Request(request) | BlkbackWork::Response(request) => request,
        }
    }
}

/// The blkbacks on one disk and one vCPU.
#[derive(Clone, Debug)]
pub(crate) struct Blkback {
    costs: BlkbackCosts,
    /// Whether the vCPU takes the disk's interrupts, and with them completions.
    completes: bool,
    /// Completions that an interrupt on some pCPU has left to these blkbacks.
    left: VecDeque<DiskRequest>,
    /// Virtual disks with requests in their rings, each once, the next one first.
    filled: VecDeque<BlkfrontId>,
    /// Virtual disks whose guests are notified at the end of the poll.
    to_notify: VecDeque<BlkfrontId>,
    /// The rest of the poll's budget.
    requests: usize,
    responses: usize,
}

impl Blkback {
    /// Blkbacks with nothing to do. `completes`: on the vCPU that takes the disk's interrupts.
    pub fn new(costs: BlkbackCosts, completes: bool) -> Self {
        let (left, filled, to_notify) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Blkback { costs, completes, left, filled, to_notify, requests: 0, responses: 0 }
    }

    /// Whether there are requests in the rings.
    pub fn has_requests(&self) -> bool {
        !self.filled.is_empty()
    }

    /// Leaves them a completion.
    pub fn leave(&mut self, completed: DiskRequest) {
        self.left.push_back(completed);
    }

    /// Whether completions have been left to them.
    pub fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Notes a virtual disk's first request in an empty ring.
    pub fn ring_filled(&mut self, blkfront: BlkfrontId) {
        self.filled.push_back(blkfront);
    }

    /// Begins a poll.
    pub fn begin_poll(&mut self) {
        (self.requests, self.responses) = (POLL_BUDGET, POLL_BUDGET);
    }

    /// Whether there is something for another poll.
    pub fn has_work(&self, blkfronts: &Table<BlkfrontId, Blkfront>, store: &Store) -> bool {
        self.has_left()
            || (self.completes && store.has_completed(blkfronts))
            || (!self.filled.is_empty() && store.can_submit())
    }

    /// The next work of this poll, with its cost; `None`: the poll is over.
    ///
    /// A completion for a virtual disk of the domain itself goes to its block layer, which it costs.
    pub fn next_work(
        &mut self,
        blkfronts: &mut Table<BlkfrontId, Blkfront>,
        store: &mut Store,
    ) -> Option<(BlkbackWork, Span)> {
        while self.responses > 0
            && let Some(request) = self.next_completed(blkfronts, store)
        {
            let blkfront = &mut blkfronts[request.blkfront];
            if blkfront.is_split() {
                self.responses -= 1;
                return Some((BlkbackWork::Response(request), self.costs.response_ns));
            }
            blkfront.respond(request.tag);
        }
        if self.requests == 0 || !store.can_submit() {
            return None;
        }
        let request = self.take(blkfronts)?;
        self.requests -= 1;
        let cost = self.costs.request_ns + request.pages() * self.costs.grant_ns;
        Some((BlkbackWork::Request(request), cost))
    }

    /// The next completion.
    fn next_completed(
        &mut self,
        blkfronts: &mut Table<BlkfrontId, Blkfront>,
        store: &mut Store,
    ) -> Option<DiskRequest> {
        let left = self.left.pop_front();
        left.or_else(|| if self.completes { store.take_completed(blkfronts) } else { None })
    }

    /// The next request from the rings.
    fn take(&mut self, blkfronts: &mut Table<BlkfrontId, Blkfront>) -> Option<DiskRequest> {
        let blkfront = self.filled.pop_front()?;
        let request = blkfronts[blkfront].take_request()?;
        if blkfronts[blkfront].has_requests() {
            self.filled.push_back(blkfront);
        }
        Some(request)
    }

    /// Ends a piece of work.
    pub fn finish(
        &mut self,
        now: Time,
        work: BlkbackWork,
        blkfronts: &mut Table<BlkfrontId, Blkfront>,
        store: &mut Store,
    ) {
        match work {
            BlkbackWork::Request(request) => store.submit(now, request, blkfronts),
            BlkbackWork::Response(request) => {
                if blkfronts[request.blkfront].respond(request.tag) {
                    self.to_notify.push_back(request.blkfront);
                }
            }
        }
    }

    /// Removes a virtual disk whose guest is to be notified now that the poll is over: send its event.
    pub fn take_to_notify(&mut self) -> Option<BlkfrontId> {
        self.to_notify.pop_front()
    }
}
