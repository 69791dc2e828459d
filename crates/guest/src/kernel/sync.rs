//! Synchronisation objects of tasks: locks, points to wait at, and barriers.

use std::collections::VecDeque;

use crate::ids::TaskId;

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

/// Synchronisation objects by number. Each is made when it is used first.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncObjects(Vec<SyncObject>);

impl SyncObjects {
    /// The object of this number.
    pub fn of(&mut self, number: u32) -> &mut SyncObject {
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize(number + 1, SyncObject::default());
        }
        &mut self.0[number]
    }
}
