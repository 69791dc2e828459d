//! The guest kernel: tasks share the vCPUs of their domain in time slices; a timer wakes those that sleep.

use std::collections::VecDeque;

use vcpulab_host::{NEVER, Span, Time};

use crate::app::{App, Demand};
use crate::{AppConfig, Random};

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
    /// When the first of them wakes (`NEVER`: nobody sleeps).
    next_wake: Time,
}

/// The kernel of one domain.
#[derive(Clone, Debug)]
pub struct Kernel {
    tasks: Vec<Task>,
    vcpus: Vec<Vcpu>,
}

impl Kernel {
    /// A kernel with `vcpus` vCPUs. Task i runs on vCPU i modulo their number, and draws from its own stream.
    pub fn new(vcpus: usize, apps: &[AppConfig], seed: u64, domain: u64) -> Self {
        let idle = Vcpu { ready: VecDeque::new(), sleepers: Vec::new(), next_wake: NEVER };
        let mut kernel = Kernel { tasks: Vec::new(), vcpus: vec![idle; vcpus] };
        for (i, config) in apps.iter().enumerate() {
            let app = App::new(config, Random::new(seed, domain, 1 + i as u64));
            let vcpu = i % vcpus;
            kernel.tasks.push(Task { app, vcpu, left: 0, slice: TIME_SLICE, wakes_at: NEVER, waits: false });
            // One whose time is yet to come must not be kept from its sleep by those before it.
            if kernel.ask(i, 0) {
                kernel.vcpus[vcpu].ready.push_back(i);
            }
        }
        for vcpu in &mut kernel.vcpus {
            vcpu.ready.reserve(apps.len());
            vcpu.sleepers.reserve(apps.len());
        }
        kernel
    }

    /// The applications, in the order configured.
    pub fn apps(&self) -> impl Iterator<Item = &App> {
        self.tasks.iter().map(|task| &task.app)
    }

    /// The same, to change them.
    pub fn apps_mut(&mut self) -> impl Iterator<Item = &mut App> {
        self.tasks.iter_mut().map(|task| &mut task.app)
    }

    /// How long `vcpu` should compute next for its tasks, ns; `None`: they all sleep or wait.
    pub fn next(&mut self, vcpu: usize, now: Time) -> Option<Span> {
        if self.vcpus[vcpu].next_wake <= now {
            self.wake_sleepers(vcpu, now);
        }
        while let Some(&i) = self.vcpus[vcpu].ready.front() {
            if self.tasks[i].left == 0 && !self.ask(i, now) {
                self.vcpus[vcpu].ready.pop_front();
                continue;
            }
            let task = &self.tasks[i];
            let shared = self.vcpus[vcpu].ready.len() > 1;
            return Some(if shared { task.left.min(task.slice) } else { task.left });
        }
        None
    }

    /// Asks a task what it wants next. Can it go on?
    fn ask(&mut self, task: usize, now: Time) -> bool {
        let Task { app, vcpu, left, wakes_at, waits, .. } = &mut self.tasks[task];
        match app.next(now) {
            Demand::Compute(span) => {
                *left = span;
                return true;
            }
            Demand::Sleep(until) => {
                *wakes_at = until;
                let vcpu = &mut self.vcpus[*vcpu];
                vcpu.sleepers.push(task);
                vcpu.next_wake = vcpu.next_wake.min(until);
            }
            Demand::Wait => *waits = true,
        }
        false
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
        let slice_over = task.slice <= 0;
        if slice_over {
            task.slice = TIME_SLICE;
        }
        // A sleep begins now, even if others are next.
        let goes_on = task.left > 0 || self.ask(i, now);
        let ready = &mut self.vcpus[vcpu].ready;
        if !goes_on {
            ready.pop_front();
        } else if slice_over {
            ready.rotate_left(1);
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
    use crate::{Phase, PhaseEvent};

    #[test]
    fn tasks_share_a_vcpu_in_slices() {
        let mut kernel = Kernel::new(1, &[AppConfig::Hog, AppConfig::Hog], 1, 0);
        for _ in 0..10 {
            let span = kernel.next(0, 0).unwrap();
            assert_eq!(span, TIME_SLICE);
            kernel.computed(0, 0, span);
        }
        let computed: Vec<u64> = kernel.apps().map(|app| app.stats.completed).collect();
        assert_eq!(computed, [50, 50], "ms each");
    }

    #[test]
    fn a_sleeper_that_wakes_goes_before_a_hog() {
        let phases = vec![Phase { rounds: 1, events: vec![PhaseEvent::Sleep(30), PhaseEvent::Run(5)] }];
        let script = AppConfig::Phases { phases, rounds: None };
        let mut kernel = Kernel::new(1, &[script, AppConfig::Hog], 1, 0);
        assert_eq!(kernel.next(0, 0), Some(10_000_000), "only the hog can go on");
        assert_eq!(kernel.next_timer(0), 30);
        kernel.computed(0, 30, 30);
        assert_eq!(kernel.next(0, 30), Some(5));
        kernel.computed(0, 35, 5);
        assert_eq!(kernel.next(0, 35), Some(10_000_000 - 30));
    }

    #[test]
    fn a_sleep_begins_when_the_work_is_done_though_the_slice_is_over_too() {
        let events = vec![PhaseEvent::Run(TIME_SLICE), PhaseEvent::Sleep(30)];
        let script = AppConfig::Phases { phases: vec![Phase { rounds: 1, events }], rounds: None };
        let mut kernel = Kernel::new(1, &[script, AppConfig::Hog], 1, 0);
        assert_eq!(kernel.next(0, 0), Some(TIME_SLICE));
        kernel.computed(0, TIME_SLICE, TIME_SLICE);
        assert_eq!(kernel.next_timer(0), TIME_SLICE + 30);
    }

    #[test]
    fn every_sleeper_wakes_in_its_turn() {
        let sleep = |span| AppConfig::Phases {
            phases: vec![Phase { rounds: 1, events: vec![PhaseEvent::Sleep(span), PhaseEvent::Run(1)] }],
            rounds: Some(1),
        };
        let mut kernel = Kernel::new(1, &[sleep(30), sleep(10), sleep(20)], 1, 0);
        assert_eq!(kernel.next(0, 0), None);
        for now in [10, 20, 30] {
            assert_eq!((kernel.next_timer(0), kernel.next(0, now - 1)), (now, None));
            assert_eq!(kernel.next(0, now), Some(1));
            kernel.computed(0, now, 1);
            assert_eq!(kernel.next(0, now), None);
        }
        assert_eq!(kernel.next_timer(0), NEVER);
    }

    #[test]
    fn tasks_spread_over_the_vcpus_and_requests_find_their_server() {
        let server = AppConfig::WebServer { request_ns: 9, spread_percent: 0, connections_max: 4 };
        let mut kernel = Kernel::new(2, &[AppConfig::Hog, server], 1, 0);
        assert_eq!(kernel.next(1, 0), None);
        assert_eq!(kernel.request(1, 77, 0), Some(1));
        assert_eq!(kernel.request(1, 78, 0), None, "it is awake already");
        assert_eq!(kernel.next(1, 0), Some(9));
        assert_eq!(kernel.computed(1, 4, 4), Outcome::Nothing);
        assert_eq!(kernel.next(1, 4), Some(5));
        assert_eq!(kernel.computed(1, 9, 5), Outcome::Served(77));
    }
}
