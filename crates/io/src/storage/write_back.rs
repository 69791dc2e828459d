//! Dirty memory of a guest: written to its files, and not yet to its disk.
//!
//! It is written out in the order it was written in: in the background once there is much of it or it has waited for
//! long, and at once if a task waits for it. Not modelled: order by place before the disk's own.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Table, Time};

use super::page_cache::{CacheConfig, FileId};
use super::stretch::{PAGE_BYTES, Stretch};

#[derive(Clone, Copy, Debug)]
struct Dirty {
    file: FileId,
    stretch: Stretch,
    /// The time at which the oldest of it was written.
    since: Time,
}

/// The dirty memory of a guest.
#[derive(Clone, Debug)]
pub(crate) struct WriteBack {
    background_bytes: u64,
    max_bytes: u64,
    expires: Span,
    /// The oldest first.
    dirty: VecDeque<Dirty>,
    /// Bytes of each file among them.
    dirty_of: Table<FileId, u64>,
    /// Bytes among them; on their way to the disk; being written by tasks.
    waiting: u64,
    under_way: u64,
    promised: u64,
    /// Bytes taken out of the queue since the beginning, and the last of them that a task waits for.
    taken: u64,
    wanted: u64,
}

impl WriteBack {
    /// A queue without data to write back.
    pub fn new(config: &CacheConfig) -> Self {
        WriteBack {
            background_bytes: config.dirty_background_bytes,
            // With less than a page no task could write.
            max_bytes: config.dirty_max_bytes.max(PAGE_BYTES),
            expires: config.dirty_expires_ns,
            dirty: VecDeque::new(),
            dirty_of: Table::new(),
            waiting: 0,
            under_way: 0,
            promised: 0,
            taken: 0,
            wanted: 0,
        }
    }

    /// The part of `bytes` that may be written now; 0: wait. The room is taken until it has been added.
    pub fn promise(&mut self, bytes: u32) -> u32 {
        let room = self.max_bytes.saturating_sub(self.waiting + self.under_way + self.promised);
        if room < PAGE_BYTES.min(u64::from(bytes)) {
            return 0;
        }
        let promised = room.min(u64::from(bytes));
        self.promised += promised;
        promised as u32
    }

    /// Adds a promised stretch that was written to a file of that size. Dirty memory does not get dirtier.
    pub fn add(&mut self, now: Time, file: FileId, file_bytes: u64, written: Stretch) {
        self.promised -= written.bytes;
        let dirty_of = self.dirty_of.entry(file);
        let bytes = written.bytes.min(file_bytes.saturating_sub(*dirty_of));
        if bytes == 0 {
            return;
        }
        *dirty_of += bytes;
        self.waiting += bytes;
        match self.dirty.back_mut() {
            Some(last) if last.file == file && last.stretch.end() == written.start => {
                last.stretch.bytes += bytes
            }
            _ => {
                let stretch = Stretch { bytes, ..written };
                self.dirty.push_back(Dirty { file, stretch, since: now });
            }
        }
    }

    /// Wants all of it on the disk; returns the number of the last byte since the beginning.
    pub fn want_all(&mut self) -> u64 {
        self.wanted = self.taken + self.waiting;
        self.wanted
    }

    /// Whether some of it is to be written out now. (`pressed`: a task waits for room.)
    pub fn is_due(&self, now: Time, pressed: bool) -> bool {
        let due = self.waiting > self.background_bytes || self.taken < self.wanted || pressed;
        self.waiting > 0 && (due || self.next_expiry() <= now)
    }

    /// The time at which the oldest of it expires (`NEVER`: there is none).
    pub fn next_expiry(&self) -> Time {
        self.dirty.front().map_or(NEVER, |dirty| dirty.since.saturating_add(self.expires))
    }

    /// Takes at most `bytes_max` bytes to write out; with the number of the first since the beginning.
    pub fn take(&mut self, bytes_max: u64) -> Option<(Stretch, u64)> {
        let Dirty { file, stretch, .. } = self.dirty.front_mut()?;
        let taken = Stretch { bytes: stretch.bytes.min(bytes_max), ..*stretch };
        *stretch = Stretch { start: taken.end(), bytes: stretch.bytes - taken.bytes };
        let done = stretch.bytes == 0;
        self.dirty_of[*file] -= taken.bytes;
        if done {
            self.dirty.pop_front();
        }
        self.waiting -= taken.bytes;
        self.under_way += taken.bytes;
        self.taken += taken.bytes;
        Some((taken, self.taken - taken.bytes))
    }

    /// Bytes taken out since the beginning.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Notes that this number of bytes has been written out.
    pub fn written(&mut self, bytes: u64) {
        self.under_way -= bytes;
    }

    /// Forgets all that is not on its way to the disk, as at a boot.
    pub fn forget(&mut self) {
        self.dirty.clear();
        self.dirty_of.clear();
        (self.waiting, self.promised, self.wanted) = (0, 0, self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: u64 = 1 << 30;

    fn write_back(background: u64, max: u64) -> WriteBack {
        WriteBack::new(&CacheConfig {
            dirty_background_bytes: background,
            dirty_max_bytes: max,
            dirty_expires_ns: Span::from_ns(1000),
            ..CacheConfig::linux(0)
        })
    }

    fn write(write_back: &mut WriteBack, start: u64, bytes: u32) -> u32 {
        let bytes = write_back.promise(bytes);
        write_back.add(Time::from_ns(5), FileId(0), FILE_BYTES, Stretch { start, bytes: u64::from(bytes) });
        bytes
    }

    #[test]
    fn who_writes_too_much_waits_for_room() {
        let mut write_back = write_back(0, 10_000);
        assert_eq!([write(&mut write_back, 0, 6000), write(&mut write_back, 6000, 6000)], [6000, 0]);
        assert_eq!(write_back.take(3000), Some((Stretch { start: 0, bytes: 3000 }, 0)));
        assert_eq!(write(&mut write_back, 6000, 6000), 0, "not there yet");
        write_back.written(3000);
        assert_eq!(write(&mut write_back, 6000, 6000), 6000);
        assert_eq!(
            write_back.take(u64::MAX),
            Some((Stretch { start: 3000, bytes: 9000 }, 3000)),
            "one stretch"
        );
    }

    #[test]
    fn much_or_old_or_wanted_is_due() {
        let mut write_back = write_back(4096, 1 << 20);
        assert!(!write_back.is_due(Time::from_ns(9999), true), "nothing there");
        write(&mut write_back, 0, 4096);
        assert!(
            !write_back.is_due(Time::from_ns(6), false)
                && write_back.is_due(Time::from_ns(6), true)
                && write_back.is_due(Time::from_ns(1005), false)
        );
        write(&mut write_back, 8192, 1);
        assert!(write_back.is_due(Time::from_ns(6), false));
        write_back.take(1);
        assert!(!write_back.is_due(Time::from_ns(6), false));
        assert_eq!(write_back.want_all(), 4097);
        write_back.take(4095);
        assert!(write_back.is_due(Time::from_ns(6), false));
        write_back.take(u64::MAX);
        assert_eq!(
            (write_back.is_due(Time::from_ns(6), true), write_back.next_expiry(), write_back.taken()),
            (false, NEVER, 4097)
        );
    }

    #[test]
    fn what_is_dirty_already_does_not_get_dirtier() {
        let mut write_back = write_back(0, 1 << 20);
        for _ in 0..3 {
            let bytes = u64::from(write_back.promise(600));
            write_back.add(Time::ZERO, FileId(2), 1000, Stretch { start: 0, bytes });
        }
        assert_eq!(write_back.want_all(), 1000);
    }
}
