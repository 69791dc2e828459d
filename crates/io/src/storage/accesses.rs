//! Accesses of a guest's tasks to files on its virtual disk: past the page cache, or through it, which reads ahead and writes
//! back. Each access queues its [requests](Requests), and continues when they are complete.

use std::collections::VecDeque;

use vcpulab_guest::script::DiskAccess;
use vcpulab_guest::{AppId, Random, TaskId};
use vcpulab_host::{Table, Time};

use super::file_set::{FileSet, FileSetConfig};
use super::page_cache::{CacheConfig, FileId, Found, PageCache};
use super::requests::{Purpose, Requests, Run};
use super::stretch::{PAGE_BYTES, Stretch};
use super::write_back::WriteBack;

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

/// The accesses of a guest's tasks, with its page cache.
#[derive(Clone, Debug)]
pub(crate) struct Accesses {
    /// Accesses since the last reset, and cached reads among them that did not have to wait for the disk.
    pub count: u64,
    pub hits: u64,
    random: Random,
    readahead_max_bytes: u64,
    cache: PageCache,
    files: Option<FileSet>,
    write_back: WriteBack,
    operations: Table<TaskId, Option<Operation>>,
    /// Tasks whose data are to be copied.
    copies: VecDeque<TaskId>,
    /// Tasks that wait for read-ahead.
    readers: VecDeque<TaskId>,
    /// Tasks that wait for room to write.
    writers: VecDeque<TaskId>,
    /// Tasks that wait for all that was written up to a byte.
    syncs: VecDeque<(u64, TaskId)>,
    /// Tasks that can continue.
    resumed: VecDeque<TaskId>,
}

impl Accesses {
    /// No accesses, and an empty cache.
    pub fn new(cache: CacheConfig, random: Random) -> Self {
        Accesses {
            count: 0,
            hits: 0,
            random,
            readahead_max_bytes: cache.readahead_max_bytes,
            cache: PageCache::new(cache),
            files: None,
            write_back: WriteBack::new(&cache),
            operations: Table::new(),
            copies: VecDeque::new(),
            readers: VecDeque::new(),
            writers: VecDeque::new(),
            syncs: VecDeque::new(),
            resumed: VecDeque::new(),
        }
    }

    // ---- tasks ----

    /// Begins an access of a task to a file of an application.
    pub fn begin(&mut self, task: TaskId, app: AppId, access: DiskAccess, requests: &mut Requests) {
        self.count += 1;
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
            DiskAccess { direct: true, .. } => self.go_on_past_cache(task, requests),
            DiskAccess { write: false, random: true, .. } => {
                if self.random.below(file_bytes) < self.cache.cached(file) {
                    self.copy(task, bytes);
                } else {
                    self.request(task, left.pages(), false, requests);
                }
            }
            DiskAccess { write: true, .. } if !self.writers.is_empty() => self.writers.push_back(task),
            _ => self.go_on(task, requests),
        }
    }

    /// Gives the guest files to serve.
    pub fn serve_files(&mut self, config: &FileSetConfig, random: Random) {
        let files = FileSet::new(config, random);
        let place = self.cache.file(None, files.bytes());
        self.files = Some(files.at(self.cache.stretch(place).start));
    }

    /// Begins a task's reading of a file of this size, one of those served, while `processes` take memory from them. True:
    /// the task waits; false: the file is in memory.
    ///
    /// A file that is not there is read as a sequential reader reads ahead: in pieces, one after the other.
    pub fn read_file(&mut self, task: TaskId, bytes: u32, processes: u32, requests: &mut Requests) -> bool {
        self.count += 1;
        let Some(left) = self.files.as_mut().and_then(|files| files.read(bytes, processes)) else {
            self.hits += 1;
            return false;
        };
        let access = DiskAccess { bytes, write: false, random: false, direct: true, file_bytes: left.bytes };
        let piece = self.readahead_max_bytes.max(PAGE_BYTES);
        *self.operations.entry(task) =
            Some(Operation { access, file: FileId(0), piece, left, copying: 0, under_way: 0, waited: true });
        self.go_on_past_cache(task, requests);
        true
    }

    /// Makes a task wait until all that was written is on the disk.
    pub fn sync(&mut self, task: TaskId, requests: &Requests) {
        let wanted = self.write_back.want_all();
        self.syncs.push_back((wanted, task));
        self.end_syncs(requests);
    }

    /// Removes a task that can continue.
    pub fn take_resumed(&mut self) -> Option<TaskId> {
        self.resumed.pop_front()
    }

    /// Forgets the tasks and the memory of the guest, which boots.
    pub fn forget(&mut self) {
        self.operations.iter_mut().for_each(|operation| *operation = None);
        self.syncs.clear();
        for tasks in [&mut self.copies, &mut self.readers, &mut self.writers, &mut self.resumed] {
            tasks.clear();
        }
        self.cache.forget();
        self.files.iter_mut().for_each(FileSet::forget);
        self.write_back.forget();
    }

    /// Queues a stretch that a task waits for.
    fn request(&mut self, task: TaskId, stretch: Stretch, write: bool, requests: &mut Requests) {
        if let Some(operation) = &mut self.operations[task] {
            (operation.under_way, operation.waited) = (stretch.bytes, true);
        }
        requests.push(Run { stretch, write, purpose: Purpose::Task(task) });
    }

    /// Lets a task continue with its access past the page cache.
    fn go_on_past_cache(&mut self, task: TaskId, requests: &mut Requests) {
        let Some(Some(Operation { access, piece, left, .. })) = self.operations.get_mut(task) else { return };
        let next = Stretch { start: left.start, bytes: left.bytes.min(*piece) };
        *left = Stretch { start: next.end(), bytes: left.bytes - next.bytes };
        let write = access.write;
        match next.bytes {
            0 => self.end(task),
            _ => self.request(task, next, write, requests),
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
    fn go_on(&mut self, task: TaskId, requests: &mut Requests) {
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
            requests.read_ahead(file, wanted);
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

    /// An access is complete.
    fn end(&mut self, task: TaskId) {
        if let Some(operation) = self.operations[task].take() {
            let Operation { access, waited, .. } = operation;
            self.hits += u64::from(!access.write && !waited);
            self.resumed.push_back(task);
        }
    }

    fn end_syncs(&mut self, requests: &Requests) {
        if self.syncs.is_empty() {
            return;
        }
        let written = requests.oldest_write_back().unwrap_or(self.write_back.taken());
        while let Some(&(wanted, task)) = self.syncs.front()
            && wanted <= written
        {
            self.syncs.pop_front();
            self.resumed.push_back(task);
        }
    }

    // ---- copies between the page cache and tasks ----

    /// Takes the next task whose data are to be copied, with the number of bytes.
    pub fn take_copy(&mut self) -> Option<(TaskId, u32)> {
        let task = self.copies.pop_front()?;
        Some((task, self.operations[task].map_or(0, |operation| operation.copying)))
    }

    /// The data of a task have been copied.
    pub fn copied(&mut self, now: Time, task: TaskId, requests: &mut Requests) {
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
        self.go_on(task, requests);
    }

    // ---- requests that are complete ----

    /// Some of the bytes that a task waits for have come, or are on the disk.
    pub fn complete_task_request(&mut self, task: TaskId, bytes: u64, requests: &mut Requests) {
        let Some(Some(operation)) = self.operations.get_mut(task) else { return };
        operation.under_way -= bytes;
        if operation.under_way > 0 {
            return;
        }
        let Operation { access, file, left, .. } = *operation;
        if access.direct {
            self.go_on_past_cache(task, requests);
        } else {
            self.cache.add(file, left.pages().bytes);
            self.copy(task, left.bytes);
        }
    }

    /// A stretch of a file that was read ahead has come: its readers may continue.
    pub fn complete_read_ahead(&mut self, file: FileId, stretch: Stretch, requests: &mut Requests) {
        if self.cache.arrived(file, stretch) {
            for _ in 0..self.readers.len() {
                self.readers.pop_front().into_iter().for_each(|task| self.go_on(task, requests));
            }
        }
    }

    /// Some bytes have been written back: tasks that wait for that, or for room to write, may continue.
    pub fn complete_write_back(&mut self, bytes: u64, requests: &mut Requests) {
        self.write_back.written(bytes);
        self.end_syncs(requests);
        for _ in 0..self.writers.len() {
            self.writers.pop_front().into_iter().for_each(|task| self.go_on(task, requests));
        }
    }

    // ---- writing back ----

    /// Whether dirty memory is to be written out.
    pub fn write_back_is_due(&self, now: Time) -> bool {
        self.write_back.is_due(now, !self.writers.is_empty())
    }

    /// Takes the next stretch to write back, of at most this many bytes.
    pub fn take_write_back(&mut self, bytes_max: u64) -> Option<Run> {
        let (stretch, from) = self.write_back.take(bytes_max)?;
        Some(Run { stretch, write: true, purpose: Purpose::WriteBack(from) })
    }

    /// The time at which the oldest dirty memory is to be written out (`NEVER`: there is none).
    pub fn next_expiry(&self) -> Time {
        self.write_back.next_expiry()
    }
}
