//! The page cache of a guest: the parts of its files that are in memory, and reading ahead of sequential readers.
//!
//! A file is the target of the accesses of one owner (an application, say) with one file size; its tasks share it, and the
//! place where the last sequential access ended. Files lie one behind the other on the virtual disk.
//!
//! Kept is how much of each file is in memory, not which pages: a random access finds its data there with that
//! probability, a sequential one if the whole file is there. Memory that is full takes no more; nothing is evicted.

use vcpulab_guest::AppId;
use vcpulab_host::{Span, Table};

use super::stretch::{PAGE_BYTES, Stretch};

vcpulab_host::ids! {
    /// A file of a virtual disk.
    pub(crate) struct FileId;
}

/// Memory for pages, and the rules of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Memory for pages of files, bytes.
    pub bytes: u64,
    /// Least that a sequential read which finds nothing reads at once, bytes.
    pub readahead_first_bytes: u64,
    /// Greatest number of bytes that are read ahead at once.
    pub readahead_max_bytes: u64,
    /// Dirty memory above which write-out begins, bytes.
    pub dirty_background_bytes: u64,
    /// Dirty memory with which writers wait, bytes.
    pub dirty_max_bytes: u64,
    /// Age after which dirty memory is written out too, ns.
    pub dirty_expires_ns: Span,
}

impl CacheConfig {
    /// Linux's defaults for a guest with this memory free: four pages at first, 128 KB (`read_ahead_kb`),
    /// `vm.dirty_background_ratio` 10 %, `vm.dirty_ratio` 20 %, `vm.dirty_expire_centisecs` 30 s.
    pub const fn linux(memory_bytes: u64) -> CacheConfig {
        CacheConfig {
            bytes: memory_bytes,
            readahead_first_bytes: 4 * PAGE_BYTES,
            readahead_max_bytes: 128 << 10,
            dirty_background_bytes: memory_bytes / 10,
            dirty_max_bytes: memory_bytes / 5,
            dirty_expires_ns: Span::from_secs(30),
        }
    }
}

/// A stretch read at once for a sequential reader.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    stretch: Stretch,
    /// Bytes of it that have not arrived yet.
    left: u64,
}

impl Window {
    fn new(stretch: Stretch) -> Self {
        Window { stretch, left: stretch.bytes }
    }

    fn contains(&self, place: u64) -> bool {
        (self.stretch.start..self.stretch.end()).contains(&place)
    }

    /// Takes bytes that have arrived. True: they were the last of this window.
    fn arrived(&mut self, bytes: Stretch) -> bool {
        let from = bytes.start.max(self.stretch.start);
        let overlap = bytes.end().min(self.stretch.end()).saturating_sub(from);
        self.left -= overlap;
        overlap > 0 && self.left == 0
    }
}

#[derive(Clone, Debug)]
struct File {
    /// `None`: the files that a server answers with.
    owner: Option<AppId>,
    stretch: Stretch,
    /// End of the last sequential access, from its beginning.
    position: u64,
    /// Bytes of it in memory.
    cached: u64,
    /// The stretch being read, and the one after it.
    current: Window,
    ahead: Window,
}

/// The data that a sequential reader finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// In memory: this number of bytes, from the reader's position on.
    Here(u64),
    /// The data is on its way from the disk.
    Coming,
}

/// The files of a guest, as far as they are in memory.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    config: CacheConfig,
    files: Table<FileId, File>,
    cached: u64,
}

impl PageCache {
    /// No files.
    pub fn new(config: CacheConfig) -> Self {
        PageCache { config, files: Table::new(), cached: 0 }
    }

    /// The file of that owner with that size; at first mention it gets its place on the disk.
    pub fn file(&mut self, owner: Option<AppId>, bytes: u64) -> FileId {
        let same = |(_, file): &(FileId, &File)| file.owner == owner && file.stretch.bytes == bytes;
        let known = self.files.enumerate().find(same).map(|(id, _)| id);
        known.unwrap_or_else(|| {
            let start = self.files.iter().last().map_or(0, |file| file.stretch.pages().end());
            self.files.push(File {
                owner,
                stretch: Stretch { start, bytes },
                position: 0,
                cached: 0,
                current: Window::default(),
                ahead: Window::default(),
            })
        })
    }

    /// Place of the file on the disk.
    pub fn stretch(&self, file: FileId) -> Stretch {
        self.files[file].stretch
    }

    /// The place of its next sequential access of this number of bytes; at its end it begins again.
    pub fn advance(&mut self, file: FileId, bytes: u64) -> u64 {
        let File { stretch, position, .. } = &mut self.files[file];
        if *position + bytes > stretch.bytes {
            *position = 0;
        }
        *position += bytes;
        stretch.start + *position - bytes
    }

    /// Bytes of it in memory.
    pub fn cached(&self, file: FileId) -> u64 {
        self.files[file].cached
    }

    /// Adds bytes of it to those in memory, as far as there is room.
    pub fn add(&mut self, file: FileId, bytes: u64) {
        let File { stretch, cached, .. } = &mut self.files[file];
        let added = bytes.min(stretch.bytes - *cached).min(self.config.bytes - self.cached);
        *cached += added;
        self.cached += added;
    }

    /// Empties the memory, as at a boot.
    pub fn forget(&mut self) {
        self.cached = 0;
        for file in &mut self.files {
            (file.position, file.cached) = (0, 0);
            (file.current, file.ahead) = (Window::default(), Window::default());
        }
    }

    /// The data that a sequential reader of this number of bytes finds at `place`, and the stretch to be read from the disk
    /// now.
    ///
    /// The first window is as large as a small read warrants; each one after it is twice as large, up to the largest. A
    /// window is asked for when the one before it comes into use.
    pub fn read(&mut self, file: FileId, place: u64, bytes: u64) -> (Found, Option<Stretch>) {
        let CacheConfig { readahead_first_bytes: first, readahead_max_bytes: most, .. } = self.config;
        let File { stretch, cached, current, ahead, .. } = &mut self.files[file];
        if *cached == stretch.bytes {
            return (Found::Here(stretch.end() - place), None);
        }
        let end = stretch.pages().end();
        let moves_on = !current.contains(place) && current.left == 0 && ahead.contains(place);
        if moves_on {
            *current = std::mem::take(ahead);
        }
        if !current.contains(place) {
            if current.left + ahead.left > 0 {
                return (Found::Coming, None);
            }
            let start = place / PAGE_BYTES * PAGE_BYTES;
            let wanted = (2 * bytes).next_multiple_of(PAGE_BYTES).clamp(first, most.max(first));
            (*current, *ahead) = (window(start, wanted, end), Window::default());
            return (Found::Coming, Some(current.stretch));
        }
        let wants_more = ahead.stretch.bytes == 0 && current.stretch.end() < end;
        let more = (wants_more && (moves_on || current.left == 0)).then(|| {
            let wanted = (2 * current.stretch.bytes).clamp(first, most.max(first));
            *ahead = window(current.stretch.end(), wanted, end);
            ahead.stretch
        });
        match current.left {
            0 => (Found::Here(current.stretch.end() - place), more),
            _ => (Found::Coming, more),
        }
    }

    /// Takes a stretch that was read for sequential readers. True: those that wait for it may continue.
    pub fn arrived(&mut self, file: FileId, bytes: Stretch) -> bool {
        let File { current, ahead, .. } = &mut self.files[file];
        let complete = [current.arrived(bytes), ahead.arrived(bytes)].contains(&true);
        self.add(file, bytes.bytes);
        complete
    }
}

fn window(start: u64, bytes: u64, end: u64) -> Window {
    Window::new(Stretch { start, bytes: bytes.max(PAGE_BYTES).min(end - start) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;

    fn cache(bytes: u64) -> PageCache {
        PageCache::new(CacheConfig { bytes, ..CacheConfig::linux(0) })
    }

    #[test]
    fn files_lie_one_behind_the_other_and_begin_again_at_their_end() {
        let mut cache = cache(0);
        let files = [0, 1, 0].map(|app| cache.file(Some(AppId(app)), 5000));
        assert_eq!(files, [FileId(0), FileId(1), FileId(0)]);
        assert_eq!(cache.stretch(FileId(1)), Stretch { start: 8192, bytes: 5000 });
        assert_eq!(
            [2000, 2000, 2000, 5000].map(|bytes| cache.advance(FileId(1), bytes)),
            [8192, 10_192, 8192, 8192]
        );
    }

    #[test]
    fn windows_double_and_are_asked_for_ahead() {
        let mut cache = cache(0);
        let file = cache.file(Some(AppId(0)), 1024 * KB);
        let mut windows = Vec::new();
        let mut place = 0;
        while place < 700 * KB {
            let (found, more) = cache.read(file, place, KB);
            windows.extend(more.map(|more| (place / KB, more.bytes / KB)));
            if let Some(more) = more {
                cache.arrived(file, more);
            }
            place += if matches!(found, Found::Here(_)) { KB } else { 0 };
        }
        let expected =
            [(0, 16), (0, 32), (16, 64), (48, 128), (112, 128), (240, 128), (368, 128), (496, 128)];
        assert_eq!(windows[..8], expected, "at which KB how many are asked for");
    }

    #[test]
    fn a_window_is_there_when_all_of_it_is() {
        let mut cache = cache(0);
        let file = cache.file(Some(AppId(0)), 1024 * KB);
        let (_, first) = cache.read(file, 0, 1);
        assert_eq!(first, Some(Stretch { start: 0, bytes: 16 * KB }));
        assert!(!cache.arrived(file, Stretch { start: 4 * KB, bytes: 12 * KB }));
        assert_eq!(cache.read(file, 0, 1), (Found::Coming, None));
        assert_eq!(cache.read(file, 500 * KB, 1), (Found::Coming, None), "one after the other");
        assert!(cache.arrived(file, Stretch { start: 0, bytes: 4 * KB }));
        assert_eq!(cache.read(file, KB, 1).0, Found::Here(15 * KB));
    }

    #[test]
    fn a_file_that_was_read_is_in_memory_if_it_fits() {
        for (memory, again) in [(64 * KB, Found::Here(48 * KB)), (32 * KB, Found::Coming)] {
            let mut cache = cache(memory);
            let file = cache.file(Some(AppId(0)), 48 * KB);
            for start in [0, 16 * KB, 32 * KB] {
                let wanted = cache.read(file, start, 16 * KB).1;
                wanted.map(|wanted| cache.arrived(file, wanted));
                let more = cache.read(file, start, 16 * KB).1;
                more.map(|more| cache.arrived(file, more));
            }
            assert_eq!((cache.cached(file), cache.read(file, 0, KB).0), (memory.min(48 * KB), again));
            cache.forget();
            assert_eq!(cache.read(file, 0, KB).0, Found::Coming);
        }
    }
}
