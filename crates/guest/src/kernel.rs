//! The guest kernel: tasks share the vCPUs of their domain in time slices; a timer wakes those that sleep.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Time};

use crate::app::{App, Demand};
use crate::{AppStats, GuestConfig, Random};

/// Time slice of a task while others wait for the same vCPU, ns. (The order of magnitude of what general-purpose
/// kernels give.)
pub const TIME_SLICE: Span = 10_000_000;

/// Something that a finished piece of work leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing for others to do.
    Nothing,
    /// The request of this connection has been served.
    Served(u32),
}

#[derive(Clone, Debug)]
struct Task {
    app: App,
    vcpu: usize,
    /// What is left of what it computes.
    left: Span,
    /// What is left of its time slice.
    slice: Span,
    /// When its sleep is over (`NEVER`: it does not sleep).
    wakes_at: Time,
    waits: bool,
}

#[derive(Clone, Debug)]
struct Vcpu {
    /// Tasks that can go on, first the one that does.
    ready: VecDeque<usize>,
    sleepers: Vec<usize>,
    /// When the first sleeper wakes (`NEVER`: nobody sleeps).
    next_wake: Time,
}

/// The kernel of one domain.
#[derive(Clone, Debug)]
pub struct Kernel {
    tasks: Vec<Task>,
    vcpus: Vec<Vcpu>,
}

impl Kernel {
    /// The kernel of the domain in that place. Each of its applications draws from a stream of its own.
    pub fn new(config: &GuestConfig, seed: u64, domain: u64) -> Self {
        let count = config.vcpus as usize;
        let tasks = config.apps.iter().enumerate().map(|(i, app)| Task {
            app: App::new(app, Random::new(seed, domain, 1 + i as u64)),
            vcpu: i % count,
            left: 0,
            slice: TIME_SLICE,
            wakes_at: NEVER,
            waits: false,
        });
        let tasks: Vec<Task> = tasks.collect();
        let vcpus = (0..count).map(|vcpu| {
            let ready: VecDeque<usize> = (vcpu..tasks.len()).step_by(count).collect();
            Vcpu { sleepers: Vec::with_capacity(ready.len()), ready, next_wake: NEVER }
        });
        Kernel { vcpus: vcpus.collect(), tasks }
    }

    /// What each application achieved, in the order configured.
    pub fn stats(&self) -> impl Iterator<Item = &AppStats> {
        self.tasks.iter().map(|task| &task.app.stats)
    }

    /// What the application in that place achieved, to count or to reset.
    pub fn stats_mut(&mut self, app: usize) -> &mut AppStats {
        &mut self.tasks[app].app.stats
    }

    /// How many applications `vcpu` runs.
    pub fn tasks_of(&self, vcpu: usize) -> usize {
        self.tasks.iter().filter(|task| task.vcpu == vcpu).count()
    }

    /// How long `vcpu` should compute next for its tasks, ns; `None`: they all sleep or wait.
    pub fn next(&mut self, vcpu: usize, now: Time) -> Option<Span> {
        if self.vcpus[vcpu].next_wake <= now {
            self.wake_sleepers(vcpu, now);
        }
        while let Some(&i) = self.vcpus[vcpu].ready.front() {
            let task = &mut self.tasks[i];
            if task.left == 0 {
                match task.app.next(now) {
                    Demand::Compute(span) => task.left = span,
                    Demand::Sleep(until) => {
                        task.wakes_at = until;
                        let vcpu = &mut self.vcpus[vcpu];
                        vcpu.ready.pop_front();
                        vcpu.sleepers.push(i);
                        vcpu.next_wake = vcpu.next_wake.min(until);
                        continue;
                    }
                    Demand::Wait => {
                        task.waits = true;
                        self.vcpus[vcpu].ready.pop_front();
                        continue;
                    }
                }
            }
            let shared = self.vcpus[vcpu].ready.len() > 1;
            return Some(if shared { task.left.min(task.slice) } else { task.left });
        }
        None
    }

    /// `vcpu` has computed for this long of what [`next`](Kernel::next) said.
    pub fn computed(&mut self, vcpu: usize, now: Time, span: Span) -> Outcome {
        let Some(&i) = self.vcpus[vcpu].ready.front() else { return Outcome::Nothing };
        let task = &mut self.tasks[i];
        task.left -= span;
        task.slice -= span;
        task.app.computed(span);
        let outcome = match task.left {
            0 => task.app.finished(now).map_or(Outcome::Nothing, Outcome::Served),
            _ => Outcome::Nothing,
        };
        if task.slice <= 0 {
            task.slice = TIME_SLICE;
            self.vcpus[vcpu].ready.rotate_left(1);
        }
        outcome
    }

    /// Gives a request to the application in that place. Which vCPU has to look at it now, if its task was waiting.
    pub fn request(&mut self, app: usize, connection: u32, now: Time) -> Option<usize> {
        let task = &mut self.tasks[app];
        task.app.request(connection, now);
        if !std::mem::take(&mut task.waits) {
            return None;
        }
        task.slice = TIME_SLICE;
        self.vcpus[task.vcpu].ready.push_back(app);
        Some(task.vcpu)
    }

    /// When the next sleeper of `vcpu` is to be woken (`NEVER`: nobody sleeps).
    pub fn next_timer(&self, vcpu: usize) -> Time {
        self.vcpus[vcpu].next_wake
    }

    /// Those whose sleep is over go first, as interactive tasks do.
    fn wake_sleepers(&mut self, vcpu: usize, now: Time) {
        let Vcpu { ready, sleepers, next_wake } = &mut self.vcpus[vcpu];
        *next_wake = NEVER;
        let mut i = 0;
        while i < sleepers.len() {
            let task = &mut self.tasks[sleepers[i]];
            if task.wakes_at <= now {
                task.wakes_at = NEVER;
                task.slice = TIME_SLICE;
                ready.push_front(sleepers.remove(i));
            } else {
                *next_wake = task.wakes_at.min(*next_wake);
                i += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppConfig, Phase, PhaseEvent};

    fn kernel(vcpus: u32, apps: Vec<AppConfig>) -> Kernel {
        Kernel::new(&GuestConfig { vcpus, working_set_bytes: 0, apps }, 1, 0)
    }

    #[test]
    fn tasks_share_a_vcpu_in_slices() {
        let mut kernel = kernel(1, vec![AppConfig::Hog, AppConfig::Hog]);
        let mut after_ms = Vec::new();
        for _ in 0..100 {
            let span = kernel.next(0, 0).unwrap();
            kernel.computed(0, 0, span);
            after_ms.push(kernel.stats().next().unwrap().completed);
        }
        assert_eq!((after_ms[9], after_ms[19], after_ms[29], after_ms[99]), (10, 10, 20, 50));
        assert_eq!(kernel.stats().last().unwrap().completed, 50);
    }

    #[test]
    fn a_sleeper_that_wakes_goes_before_a_hog() {
        let phases = vec![Phase { rounds: 1, events: vec![PhaseEvent::Sleep(30), PhaseEvent::Run(5)] }];
        let script = AppConfig::Phases { phases, rounds: None };
        let mut kernel = kernel(1, vec![script, AppConfig::Hog]);
        assert_eq!(kernel.next(0, 0), Some(1_000_000), "only the hog can go on");
        assert_eq!(kernel.next_timer(0), 30);
        kernel.computed(0, 30, 30);
        assert_eq!(kernel.next(0, 30), Some(5));
        kernel.computed(0, 35, 5);
        assert_eq!(kernel.next(0, 35), Some(1_000_000 - 30));
    }

    #[test]
    fn tasks_spread_over_the_vcpus_and_requests_find_their_server() {
        let server = AppConfig::WebServer { request_ns: 9, spread_percent: 0, connections_max: 4 };
        let mut kernel = kernel(2, vec![AppConfig::Hog, server]);
        assert_eq!(kernel.next(1, 0), None);
        assert_eq!(kernel.request(1, 77, 0), Some(1));
        assert_eq!(kernel.request(1, 78, 0), None, "it is awake already");
        assert_eq!(kernel.next(1, 0), Some(9));
        assert_eq!(kernel.computed(1, 4, 4), Outcome::Nothing);
        assert_eq!(kernel.next(1, 4), Some(5));
        assert_eq!(kernel.computed(1, 9, 5), Outcome::Served(77));
    }
}
