//! Requests of a guest's block layer: the stretches that wait for requests, and the requests under way.
//!
//! Requests that tasks wait for go before those that write back, without starving them.

use std::collections::VecDeque;

use vcpulab_guest::TaskId;

use super::disk::DiskRequest;
use super::page_cache::FileId;
use super::stretch::Stretch;

/// Requests that tasks wait for which go before one that writes back when both wait for room. (Two to one is how Linux's
/// deadline elevator shares out its batches.)
const WRITE_BACK_STARVED: u32 = 2;

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
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
pub(crate) struct Run {
    pub stretch: Stretch,
    pub write: bool,
    pub purpose: Purpose,
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub stretch: Stretch,
    pub purpose: Purpose,
}

/// The requests of a block layer.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    /// Stretches that tasks wait for.
    runs: VecDeque<Run>,
    /// Requests for tasks that went before some that write back.
    passed: u32,
    /// Requests under way by tag, and the tags that are free again.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Most requests under way.
    slots_max: usize,
}

impl Requests {
    /// No requests, and room for this many under way.
    pub fn new(slots_max: usize) -> Self {
        let (runs, slots, free) = (VecDeque::new(), Vec::new(), Vec::new());
        Requests { runs, passed: 0, slots, free, slots_max: slots_max.max(1) }
    }

    /// Queues a stretch.
    pub fn push(&mut self, run: Run) {
        self.runs.push_back(run);
    }

    /// Queues a stretch to read ahead, as part of the last one if it continues that.
    pub fn read_ahead(&mut self, file: FileId, wanted: Stretch) {
        let purpose = Purpose::ReadAhead(file);
        match self.runs.back_mut() {
            Some(last) if last.purpose == purpose && last.stretch.end() == wanted.start => {
                last.stretch.bytes += wanted.bytes;
            }
            _ => self.runs.push_back(Run { stretch: wanted, write: false, purpose }),
        }
    }

    /// Whether the next request is to write back. `due`: there is something to write back.
    pub fn writes_back_next(&mut self, due: bool) -> bool {
        let write_back = due && (self.runs.is_empty() || self.passed >= WRITE_BACK_STARVED);
        self.passed = if due && !write_back { self.passed + 1 } else { 0 };
        write_back
    }

    /// Takes as much as fits into a request of the first stretch that a task waits for.
    pub fn take_run(&mut self, request_bytes_max: u64) -> Option<Run> {
        let run = self.runs.front_mut()?;
        let bytes = run.stretch.bytes.min(request_bytes_max);
        let taken = Run { stretch: Stretch { bytes, ..run.stretch }, ..*run };
        run.stretch = Stretch { start: taken.stretch.end(), bytes: run.stretch.bytes - bytes };
        if run.stretch.bytes == 0 {
            self.runs.pop_front();
        }
        Some(taken)
    }

    /// Whether another request can be under way.
    pub fn has_slot(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < self.slots_max
    }

    /// Takes a slot for a request, and returns its tag. Slots that are never taken take no memory.
    pub fn take_slot(&mut self, request: Slot) -> u32 {
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

    /// Completes a request: its slot is free again.
    pub fn complete(&mut self, tag: u32) -> Slot {
        let slot = &mut self.slots[tag as usize];
        let completed = *slot;
        slot.purpose = Purpose::Nobody;
        self.free.push(tag);
        completed
    }

    /// The first byte, of all that were ever written back, that is under way.
    pub fn oldest_write_back(&self) -> Option<u64> {
        let first = |slot: &Slot| match slot.purpose {
            Purpose::WriteBack(from) => Some(from),
            _ => None,
        };
        self.slots.iter().filter_map(first).min()
    }

    /// Forgets what tasks wait for. Requests under way complete, for no purpose.
    pub fn forget(&mut self) {
        for slot in &mut self.slots {
            if !matches!(slot.purpose, Purpose::WriteBack(_)) {
                slot.purpose = Purpose::Nobody;
            }
        }
        self.runs.clear();
    }
}
