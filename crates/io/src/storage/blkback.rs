//! The back ends of the virtual disks on one disk, in the driver domain that has it: between the disk and the rings of
//! the guests behind it.
//!
//! They work in rounds as those of the network do: first what the disk has completed, then what is in the rings, each
//! guest in turn; guests hear of it at the end of a round. Being notified, and what an upcall costs, is the business of
//! the driver domain's loop.

use std::collections::VecDeque;

use vcpulab_host::{Span, Time};

use crate::block::{Block, PAGE_BYTES};
use crate::disk::{Disk, DiskRequest};

/// What back ends hand requests to.
#[derive(Clone, Debug)]
pub enum Store {
    /// A disk.
    Disk(Box<Disk>),
    /// Their domain's own virtual disk, by number: it is a stub domain, between its guest and the driver domain.
    Front(usize),
}

impl Store {
    /// The disk, if it is one.
    pub fn disk(&self) -> Option<&Disk> {
        match self {
            Store::Disk(disk) => Some(disk),
            Store::Front(_) => None,
        }
    }

    /// The disk, if it is one.
    pub fn disk_mut(&mut self) -> Option<&mut Disk> {
        match self {
            Store::Disk(disk) => Some(disk),
            Store::Front(_) => None,
        }
    }

    /// Is there room for a request? A stub domain's is in its memory, and its guest's ring bounds it.
    pub fn can_submit(&self) -> bool {
        self.disk().is_none_or(Disk::can_submit)
    }

    fn has_completed(&self, blocks: &[Block]) -> bool {
        match self {
            Store::Disk(disk) => disk.has_completed(),
            Store::Front(own) => blocks[*own].has_passed(),
        }
    }

    fn take_completed(&mut self, blocks: &mut [Block]) -> Option<DiskRequest> {
        match self {
            Store::Disk(disk) => disk.take_completed(),
            Store::Front(own) => blocks[*own].take_passed(),
        }
    }

    fn submit(&mut self, now: Time, request: DiskRequest, blocks: &mut [Block]) {
        match self {
            Store::Disk(disk) => disk.submit(now, request),
            Store::Front(own) => blocks[*own].pass_on(request),
        }
    }
}

/// Requests, and completions, that the back ends take in one round before they look at the other (a ring's worth).
const ROUND: usize = 32;

/// What the back ends cost, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockBackCosts {
    /// One request from a ring to the disk, its driver included.
    pub request_ns: Span,
    /// Mapping and unmapping one page of it.
    pub grant_ns: Span,
    /// One completion from the disk to a ring.
    pub response_ns: Span,
}

/// What the back ends are at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockBackWork {
    /// They hand a guest's request to the disk.
    Request(DiskRequest),
    /// They hand a guest the response.
    Response(DiskRequest),
}

/// The back ends on one disk. Virtual disks are named by their position among all.
#[derive(Clone, Debug)]
pub struct BlockBack {
    costs: BlockBackCosts,
    /// Virtual disks with requests in their rings, each once, the next one first.
    filled: VecDeque<usize>,
    /// Virtual disks whose guests are to be told at the end of the round.
    to_tell: VecDeque<usize>,
    /// What is left of the round.
    requests: usize,
    responses: usize,
}

impl BlockBack {
    /// Back ends with nothing to do.
    pub fn new(costs: BlockBackCosts) -> Self {
        BlockBack { costs, filled: VecDeque::new(), to_tell: VecDeque::new(), requests: 0, responses: 0 }
    }

    /// A request has been put into the ring of that virtual disk. `first`: it is the only one there.
    pub fn ring_filled(&mut self, block: usize, first: bool) {
        if first {
            self.filled.push_back(block);
        }
    }

    /// A round begins.
    pub fn begin_round(&mut self) {
        (self.requests, self.responses) = (ROUND, ROUND);
    }

    /// Is there something for another round?
    pub fn has_work(&self, blocks: &[Block], store: &Store) -> bool {
        store.has_completed(blocks) || (!self.filled.is_empty() && store.can_submit())
    }

    /// What is next in this round, and what that costs; `None`: the round is over.
    ///
    /// What has been completed for a virtual disk of the domain itself goes to its block layer, which it costs.
    pub fn next_work(&mut self, blocks: &mut [Block], store: &mut Store) -> Option<(BlockBackWork, Span)> {
        while self.responses > 0
            && let Some(request) = store.take_completed(blocks)
        {
            let block = &mut blocks[request.block as usize];
            if block.is_split() {
                self.responses -= 1;
                return Some((BlockBackWork::Response(request), self.costs.response_ns));
            }
            block.respond(request.tag);
        }
        if self.requests == 0 || !store.can_submit() {
            return None;
        }
        let request = self.take(blocks)?;
        self.requests -= 1;
        let pages = u64::from(request.bytes).div_ceil(PAGE_BYTES) as i64;
        Some((BlockBackWork::Request(request), self.costs.request_ns + pages * self.costs.grant_ns))
    }

    /// The next request from the rings.
    fn take(&mut self, blocks: &mut [Block]) -> Option<DiskRequest> {
        let block = self.filled.pop_front()?;
        let request = blocks[block].take_request()?;
        if blocks[block].has_requests() {
            self.filled.push_back(block);
        }
        Some(request)
    }

    /// A piece of work is done.
    pub fn finish(&mut self, now: Time, work: BlockBackWork, blocks: &mut [Block], store: &mut Store) {
        match work {
            BlockBackWork::Request(request) => store.submit(now, request, blocks),
            BlockBackWork::Response(request) => {
                let block = request.block as usize;
                if blocks[block].respond(request.tag) {
                    self.to_tell.push_back(block);
                }
            }
        }
    }

    /// A virtual disk whose guest is to be told now that the round is over: send its event.
    pub fn take_to_tell(&mut self) -> Option<usize> {
        self.to_tell.pop_front()
    }
}
