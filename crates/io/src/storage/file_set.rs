//! The files that a server answers with, and which of them are in its guest's memory: those asked for last (LRU), as many
//! as fit beside what the server's processes take.
//!
//! A file is in memory whole or not at all. One that is being read counts as there already: a task that asks for it
//! meanwhile does not wait. Memory that processes give back is free at once. When processes take more memory than there is, no file
//! stays; that the guest swaps then is not modelled.

use vcpulab_guest::Random;

use super::stretch::Stretch;

/// Files that an application serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSetConfig {
    /// Sizes of the files, bytes, distinct and ascending, and the frequency of each size relative to the others.
    pub sizes: Vec<(u32, u64)>,
    /// Number of files of each size; all of a size are asked for equally often.
    pub per_size: u32,
    /// Memory for them and for the processes that serve them, bytes.
    pub memory_bytes: u64,
    /// Memory of each process, bytes.
    pub process_bytes: u64,
}

/// The neighbors of a file among those in memory, from the one used last to the one to be dropped first. Both lists of
/// neighbors end at a file that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbours {
    newer: u32,
    older: u32,
}

const NOT_HERE: Neighbours = Neighbours { newer: u32::MAX, older: u32::MAX };

/// A server's files.
#[derive(Clone, Debug)]
pub(crate) struct FileSet {
    /// Sizes of the files, ascending, and the place on the disk at which the files of each size start.
    sizes: Vec<(u32, u64)>,
    per_size: u32,
    memory_bytes: u64,
    process_bytes: u64,
    random: Random,
    /// By file, those of a size together; behind them the end of the list.
    neighbours: Vec<Neighbours>,
    here_bytes: u64,
    bytes: u64,
}

impl FileSet {
    /// Files whose server has been at work for long: those asked for most often are in memory.
    pub fn new(config: &FileSetConfig, random: Random) -> Self {
        let FileSetConfig { ref sizes, per_size, memory_bytes, process_bytes } = *config;
        let mut bytes = 0;
        let place = |&(size, _): &(u32, u64)| {
            let start = bytes;
            bytes += u64::from(per_size) * pages(size);
            (size, start)
        };
        let mut files = FileSet {
            sizes: sizes.iter().map(place).collect(),
            per_size,
            memory_bytes,
            process_bytes,
            random,
            neighbours: Vec::new(),
            here_bytes: 0,
            bytes,
        };
        files.forget();
        let asked = |file: u32| sizes[(file / per_size) as usize].1;
        let mut by_use: Vec<u32> = (0..files.end()).collect();
        by_use.sort_by_key(|&file| (asked(file), file % per_size));
        by_use.into_iter().for_each(|file| files.add(file));
        files.make_room(0);
        files
    }

    /// The file set moved to `start` on the disk.
    pub fn at(mut self, start: u64) -> Self {
        self.sizes.iter_mut().for_each(|(_, place)| *place += start);
        self
    }

    /// Size of all on a disk, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Asks for one of this size while there are `processes`: the stretch to be read from the disk for it, if any.
    pub fn read(&mut self, bytes: u32, processes: u32) -> Option<Stretch> {
        let size = self.sizes.binary_search_by_key(&bytes, |&(size, _)| size).ok()?;
        let number = self.random.below(self.per_size.into()) as u32;
        let file = size as u32 * self.per_size + number;
        let here = self.neighbours[file as usize] != NOT_HERE;
        if here {
            self.remove(file);
        }
        self.add(file);
        self.make_room(processes);
        let start = self.sizes[size].1 + u64::from(number) * pages(bytes);
        (!here).then_some(Stretch { start, bytes: pages(bytes) })
    }

    /// Empties the memory, as at a boot.
    pub fn forget(&mut self) {
        let end = self.sizes.len() as u32 * self.per_size;
        self.neighbours.clear();
        self.neighbours.resize(end as usize, NOT_HERE);
        self.neighbours.push(Neighbours { newer: end, older: end });
        self.here_bytes = 0;
    }

    /// Drops the files not used for longest until the rest fits.
    fn make_room(&mut self, processes: u32) {
        let taken = self.process_bytes.saturating_mul(processes.into());
        let room = self.memory_bytes.saturating_sub(taken);
        while self.here_bytes > room {
            self.remove(self.neighbours[self.end() as usize].newer);
        }
    }

    fn end(&self) -> u32 {
        self.neighbours.len() as u32 - 1
    }

    fn pages_of(&self, file: u32) -> u64 {
        pages(self.sizes[(file / self.per_size) as usize].0)
    }

    /// Adds a file to those in memory, as the one used last.
    fn add(&mut self, file: u32) {
        let end = self.end();
        let second = std::mem::replace(&mut self.neighbours[end as usize].older, file);
        self.neighbours[second as usize].newer = file;
        self.neighbours[file as usize] = Neighbours { newer: end, older: second };
        self.here_bytes += self.pages_of(file);
    }

    fn remove(&mut self, file: u32) {
        let Neighbours { newer, older } = std::mem::replace(&mut self.neighbours[file as usize], NOT_HERE);
        self.neighbours[newer as usize].older = older;
        self.neighbours[older as usize].newer = newer;
        self.here_bytes -= self.pages_of(file);
    }
}

/// Size of a file in memory and on a disk, bytes.
fn pages(bytes: u32) -> u64 {
    Stretch { start: 0, bytes: bytes.into() }.pages().bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u32 = 1 << 10;

    /// Four files of 8 KB that are asked for often, and four of 64 KB.
    fn files(memory_kb: u64) -> FileSet {
        let config = FileSetConfig {
            sizes: vec![(8 * KB, 9), (64 * KB, 1)],
            per_size: 4,
            memory_bytes: memory_kb << 10,
            process_bytes: 32 << 10,
        };
        FileSet::new(&config, Random::new(1, 0, 0))
    }

    /// The files in memory, the one used last first.
    fn here(files: &FileSet) -> Vec<u32> {
        let older = |&file: &u32| Some(files.neighbours[file as usize].older);
        std::iter::successors(Some(files.end()), older)
            .skip(1)
            .take_while(|&file| file != files.end())
            .collect()
    }

    #[test]
    fn those_asked_for_most_are_in_memory_at_first() {
        assert_eq!(here(&files(1000)).len(), 8);
        let some = files(32 + 2 * 64 + 10);
        assert_eq!(here(&some), [3, 2, 1, 0, 7, 6], "the small ones, and two of the others");
        assert_eq!((some.here_bytes, some.bytes()), (160 << 10, 288 << 10));
        assert_eq!(here(&files(0)), []);
    }

    #[test]
    fn what_is_not_in_memory_is_read_once_from_its_place() {
        let mut files = files(1000).at(4096);
        files.forget();
        let reads: Vec<Stretch> = (0..100).filter_map(|_| files.read(64 * KB, 0)).collect();
        let mut places: Vec<u64> = reads.iter().map(|read| read.start).collect();
        places.sort_unstable();
        let first = 4096 + (32 << 10);
        assert_eq!(places, [0, 1, 2, 3].map(|number| first + (number << 16)));
        assert!(reads.iter().all(|read| read.bytes == 64 << 10));
        assert_eq!(files.read(77, 0), None, "no such file");
    }

    #[test]
    fn who_was_not_used_for_longest_goes_first() {
        let mut files = files(32 + 2 * 64);
        for _ in 0..200 {
            let before = here(&files);
            let read = files.read(64 * KB, 0);
            let after = here(&files);
            let (used, oldest) = (after[0], before[before.len() - 1]);
            assert_eq!(read.is_some(), !before.contains(&used));
            assert!(read.is_none() || !after.contains(&oldest), "{before:?} {after:?}");
        }
    }

    #[test]
    fn processes_take_memory_from_files() {
        let mut all = files(1000);
        assert_eq!((all.read(8 * KB, 20), all.here_bytes), (None, 288 << 10));
        assert_eq!((all.read(8 * KB, 24), all.here_bytes / 1024), (None, 224), "232 KB are left");
        all.read(8 * KB, 100);
        assert_eq!((all.here_bytes, here(&all)), (0, vec![]));
        assert!((0..20).all(|_| all.read(8 * KB, 1000).is_some()), "each is read from the disk");
        all.read(8 * KB, 0);
        assert_eq!(all.here_bytes, 8 << 10, "there is room again, but what was dropped is gone");
    }

    #[test]
    fn as_many_are_found_as_ches_approximation_says() {
        // Of sizes asked for equally often, in memory for a third: the least recently used of equals is any of them.
        let config = FileSetConfig {
            sizes: vec![(40_960, 1), (81_920, 1)],
            per_size: 100,
            memory_bytes: 4_096_000,
            process_bytes: 0,
        };
        let mut files = FileSet::new(&config, Random::new(1, 0, 0));
        let found = (0..100_000).filter(|i| files.read(config.sizes[i % 2].0, 0).is_none()).count();
        assert!((32_000..34_500).contains(&found), "{found} of 100000");
    }
}
