//! Synchronisation objects of tasks: locks, points to wait at, and barriers.

use std::collections::VecDeque;

use vcpulab_host::Table;

use crate::ids::{AppId, TaskId};

/// A lock, passed on in the order of its requests (a ticket lock), or a point to wait at.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncObject {
    held: bool,
    waiting: VecDeque<TaskId>,
}

impl SyncObject {
    /// Takes the lock for a task if it is free; otherwise the task is queued for it, and the answer is no.
    pub fn acquire(&mut self, task: TaskId) -> bool {
        let free = !std::mem::replace(&mut self.held, true);
        if !free {
            self.waiting.push_back(task);
        }
        free
    }

    /// Gives the lock back. The next holder, if a task is queued for it.
    pub fn release(&mut self) -> Option<TaskId> {
        let next = self.waiting.pop_front();
        self.held = next.is_some();
        next
    }

    /// Lets a task wait here.
    pub fn wait(&mut self, task: TaskId) {
        self.waiting.push_back(task);
    }

    /// Lets a task wait at the barrier here unless it is the last of `tasks`; yes if it waits.
    pub fn wait_for_all(&mut self, task: TaskId, tasks: usize) -> bool {
        let waits = self.waiting.len() + 1 < tasks;
        if waits {
            self.waiting.push_back(task);
        }
        waits
    }

    /// Removes the tasks that have waited longest, at most `most`.
    pub fn wake(&mut self, most: usize) -> Vec<TaskId> {
        self.waiting.drain(..most.min(self.waiting.len())).collect()
    }
}

/// The synchronisation objects of a guest: those that applications share, and each application's own.
#[derive(Clone, Debug)]
pub(super) struct SyncObjects {
    shared: Vec<SyncObject>,
    own: Table<AppId, Vec<SyncObject>>,
}

impl SyncObjects {
    /// None yet. Each is made when it is used first.
    pub fn new(apps: usize) -> Self {
        SyncObjects { shared: Vec::new(), own: Table::filled(apps, Vec::new()) }
    }

    /// An object of those that applications share.
    pub fn shared(&mut self, number: u32) -> &mut SyncObject {
        at(&mut self.shared, number)
    }

    /// An object of an application's own.
    pub fn own(&mut self, app: AppId, number: u32) -> &mut SyncObject {
        at(&mut self.own[app], number)
    }
}

fn at(objects: &mut Vec<SyncObject>, number: u32) -> &mut SyncObject {
    let number = number as usize;
    if objects.len() <= number {
        objects.resize(number + 1, SyncObject::default());
    }
    &mut objects[number]
}
