//! Calls of tasks to their kernel: sleeping, locks, points to wait at, and requests to a service.

use vcpulab_host::Time;

use super::Kernel;
use super::sync::SyncObject;
use super::task::{State, Syscall};
use crate::ids::{AppId, TaskId};

impl Kernel {
    /// Serves a call of a current task.
    pub(super) fn serve(&mut self, id: TaskId, call: Syscall, now: Time) {
        let (app, vcpu) = (self.tasks[id].app, self.tasks[id].vcpu());
        match call {
            Syscall::Sleep(until) => {
                self.vcpus[vcpu].current = None;
                self.vcpus[vcpu].sleep(id, &mut self.tasks[id], until);
            }
            Syscall::Ticks(ticks) => {
                let until = self.vcpus[vcpu].after_ticks(now, ticks);
                self.serve(id, Syscall::Sleep(until), now);
            }
            Syscall::Await => self.await_request(id),
            Syscall::Lock(lock) => self.lock(id, lock),
            Syscall::Unlock(lock) => self.unlock(id, lock),
            Syscall::Wait { at, unlocks } => {
                self.sync_object(app, at).wait(id);
                self.wait(id);
                if let Some(lock) = unlocks {
                    self.unlock(id, lock);
                }
            }
            Syscall::Wake { at, all } => self.wake(app, at, if all { usize::MAX } else { 1 }),
            Syscall::Barrier { at, tasks } => {
                match self.sync_object(app, at).wait_for_all(id, tasks as usize) {
                    true => self.wait(id),
                    false => self.wake(app, at, usize::MAX),
                }
            }
            Syscall::Stop => self.wait(id),
        }
    }

    fn sync_object(&mut self, app: AppId, number: u32) -> &mut SyncObject {
        match self.config.apps[app].shares_sync_objects {
            true => self.sync_objects.of(number),
            false => self.apps[app].sync_objects.of(number),
        }
    }

    fn lock(&mut self, id: TaskId, lock: u32) {
        let app = self.tasks[id].app;
        let acquired = self.sync_object(app, lock).acquire(id);
        if self.config.apps[app].spins {
            let task = &mut self.tasks[id];
            match acquired {
                true => task.holds += 1,
                false => task.state = State::Spins,
            }
        } else if !acquired {
            self.wait(id);
        }
    }

    fn unlock(&mut self, id: TaskId, lock: u32) {
        let app = self.tasks[id].app;
        let next = self.sync_object(app, lock).release();
        let holds = &mut self.tasks[id].holds;
        *holds = holds.saturating_sub(1);
        let Some(next) = next else { return };
        let task = &mut self.tasks[next];
        if task.state == State::Spins {
            task.state = State::Ready;
            task.holds += 1;
            self.vcpus[task.vcpu()].requeue(next, task);
            self.kicks.push(task.vcpu());
        } else {
            self.resume(next);
        }
    }

    /// Resumes the tasks that have waited longest at a point, at most `most`.
    fn wake(&mut self, app: AppId, at: u32, most: usize) {
        for id in self.sync_object(app, at).wake(most) {
            self.resume(id);
        }
    }

    fn await_request(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        let app = task.app;
        let Some(service) = &mut self.apps[app].service else { return self.wait(id) };
        match service.take(id) {
            Some(request) => task.take(request, &self.config.apps[app].script),
            None => self.wait(id),
        }
    }
}
