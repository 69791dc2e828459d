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

/// The back ends on one disk. Virtual disks are named by their position among all, which is their area too.
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
    pub fn has_work(&self, disk: &Disk) -> bool {
        disk.has_completed() || (!self.filled.is_empty() && disk.can_submit())
    }

    /// What is next in this round, and what that costs; `None`: the round is over.
    ///
    /// What has been completed for a virtual disk of the domain itself goes to its block layer, which it costs.
    pub fn next_work(&mut self, blocks: &mut [Block], disk: &mut Disk) -> Option<(BlockBackWork, Span)> {
        while self.responses > 0
            && let Some(request) = disk.take_completed()
        {
            let block = &mut blocks[request.area as usize];
            if block.is_split() {
                self.responses -= 1;
                return Some((BlockBackWork::Response(request), self.costs.response_ns));
            }
            block.respond(request.tag);
        }
        if self.requests == 0 || !disk.can_submit() {
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
    pub fn finish(&mut self, now: Time, work: BlockBackWork, blocks: &mut [Block], disk: &mut Disk) {
        match work {
            BlockBackWork::Request(request) => disk.submit(now, request),
            BlockBackWork::Response(request) => {
                let block = request.area as usize;
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
