//! The guest kernel: tasks share the vCPUs of their domain in time slices; a timer wakes those that sleep; locks and
//! services make them wait for one another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use vcpulab_host::{NEVER, Span, Time};

use crate::script::{AppConfig, ServiceConfig, Unit};
use crate::task::{Demand, Io, Request, Task};
use crate::{AppStats, Random};

/// Time slice of a task while others wait for the same vCPU, ns. (The order of magnitude of what general-purpose
/// kernels give.)
pub const TIME_SLICE: Span = 10_000_000;

/// A domain's inside as configured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelConfig {
    /// How many vCPUs it has.
    pub vcpus: usize,
    /// Its applications.
    pub apps: Vec<AppConfig>,
    /// Does a task that waits for a lock spin (as kernels do for short sections) or sleep?
    pub spins: bool,
}

/// What a vCPU does next for its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Compute for this long, ns.
    Run(Span),
    /// Burn time until a lock is given back.
    Spin,
    /// This task asks for something. It goes on at once unless it is told to wait ([`Kernel::wait`]).
    Io(usize, Io),
    /// All tasks sleep or wait.
    Idle,
}

#[derive(Clone, Debug)]
struct Vcpu {
    online: bool,
    /// Tasks that waited for something and can go on: they go first, in the order they came.
    woken: VecDeque<usize>,
    /// The others.
    ready: VecDeque<usize>,
    sleepers: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Vcpu {
    /// The task that it is at.
    fn current(&self) -> Option<usize> {
        self.woken.front().or(self.ready.front()).copied()
    }

    fn remove_current(&mut self) {
        if self.woken.pop_front().is_none() {
            self.ready.pop_front();
        }
    }

    /// The current task lets the others go first.
    fn rotate(&mut self) {
        if let Some(task) = self.woken.pop_front().or_else(|| self.ready.pop_front()) {
            self.ready.push_back(task);
        }
    }

    fn load(&self) -> usize {
        self.woken.len() + self.ready.len()
    }
}

/// A lock, given on in the order in which it was asked for (a ticket lock).
#[derive(Clone, Debug, Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<usize>,
}

#[derive(Clone, Debug)]
struct Service {
    config: ServiceConfig,
    connections: u32,
    requests: VecDeque<Request>,
    idle: Vec<usize>,
}

/// The kernel of one domain.
#[derive(Clone, Debug)]
pub struct Kernel {
    config: KernelConfig,
    stats: Vec<AppStats>,
    /// CPU time of tasks that counts as units, not full ones yet, by application.
    computed: Vec<Span>,
    tasks: Vec<Task>,
    vcpus: Vec<Vcpu>,
    locks: Vec<Lock>,
    /// By application.
    services: Vec<Option<Service>>,
    spin_ns: Span,
    /// vCPUs that are to look for work, in the order found.
    kicks: Vec<usize>,
}

impl Kernel {
    /// A kernel that boots at `now`. Tasks are spread over the vCPUs in turn; each draws from a stream of its own.
    pub fn new(config: &KernelConfig, now: Time, seed: u64, domain: u64) -> Self {
        let tasks: usize = config.apps.iter().map(|app| app.tasks as usize).sum();
        let vcpu = Vcpu {
            online: true,
            woken: VecDeque::with_capacity(tasks),
            ready: VecDeque::with_capacity(tasks),
            sleepers: BinaryHeap::with_capacity(tasks),
        };
        let service = |app: &AppConfig| {
            app.service.map(|config| Service {
                config,
                connections: 0,
                requests: VecDeque::with_capacity(config.connections_max.min(1024) as usize),
                idle: Vec::with_capacity(app.tasks as usize),
            })
        };
        let mut kernel = Kernel {
            stats: vec![AppStats::default(); config.apps.len()],
            computed: vec![0; config.apps.len()],
            tasks: Vec::with_capacity(tasks),
            vcpus: vec![vcpu; config.vcpus],
            locks: Vec::new(),
            services: config.apps.iter().map(service).collect(),
            spin_ns: 0,
            kicks: Vec::with_capacity(tasks.max(config.vcpus)),
            config: config.clone(),
        };
        for (index, app) in config.apps.iter().enumerate() {
            for _ in 0..app.tasks {
                let number = kernel.tasks.len();
                let vcpu = number % config.vcpus;
                let random = Random::new(seed, domain, 1 + number as u64);
                kernel.tasks.push(Task::new(index, vcpu, &app.script, now, random));
                // One whose time is yet to come must not be kept from its sleep by those before it.
                if kernel.tasks[number].is_timed(&app.script) {
                    match kernel.tasks[number].advance(&app.script, now) {
                        Demand::Sleep(until) => {
                            kernel.sleep(number, until);
                            continue;
                        }
                        Demand::Compute(span) => kernel.tasks[number].left = span,
                        _ => {}
                    }
                }
                kernel.vcpus[vcpu].ready.push_back(number);
            }
        }
        kernel
    }

    /// It boots again at `now`; what was counted stays.
    pub fn reboot(&mut self, now: Time, seed: u64, domain: u64) {
        let stats = std::mem::take(&mut self.stats);
        let spin_ns = self.spin_ns;
        *self = Kernel::new(&self.config.clone(), now, seed, domain);
        (self.stats, self.spin_ns) = (stats, spin_ns);
    }

    /// How many vCPUs it has.
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// The applications, as configured.
    pub fn apps(&self) -> &[AppConfig] {
        &self.config.apps
    }

    /// What each application achieved, in the order configured.
    pub fn stats(&self) -> &[AppStats] {
        &self.stats
    }

    /// CPU time that tasks burnt waiting for locks, ns.
    pub fn spin_ns(&self) -> Span {
        self.spin_ns
    }

    /// Forgets what was counted.
    pub fn reset_stats(&mut self) {
        self.stats.iter_mut().for_each(AppStats::reset);
        self.spin_ns = 0;
    }

    /// Has an application of it failed to do something?
    pub fn count_failure(&mut self, app: usize) {
        self.stats[app].failed += 1;
    }

    // ---- what a vCPU does ----

    /// What `vcpu` does next for its tasks.
    pub fn next(&mut self, vcpu: usize, now: Time) -> Next {
        self.wake_sleepers(vcpu, now);
        while let Some(number) = self.vcpus[vcpu].current() {
            let task = &mut self.tasks[number];
            if task.spins {
                return Next::Spin;
            }
            if task.left == 0 {
                let script = &self.config.apps[task.app].script;
                match task.advance(script, now) {
                    Demand::Compute(span) => task.left = span,
                    Demand::Io(io) => return Next::Io(number, io),
                    demand => {
                        self.grant(vcpu, number, demand);
                        continue;
                    }
                }
            }
            let shared = self.vcpus[vcpu].load() > 1;
            let task = &mut self.tasks[number];
            if task.slice <= 0 {
                task.slice = TIME_SLICE;
                if shared {
                    self.vcpus[vcpu].rotate();
                    continue;
                }
            }
            return Next::Run(if shared { task.left.min(task.slice) } else { task.left });
        }
        Next::Idle
    }

    /// What the kernel itself can do for a task, the current one of `vcpu`.
    fn grant(&mut self, vcpu: usize, number: usize, demand: Demand) {
        let app = self.tasks[number].app;
        match demand {
            Demand::Sleep(until) => {
                self.vcpus[vcpu].remove_current();
                self.sleep(number, until);
            }
            Demand::Await => self.await_request(vcpu, number),
            Demand::Lock(lock) => {
                let lock = self.lock(lock);
                if !std::mem::replace(&mut lock.held, true) {
                    return;
                }
                lock.waiting.push_back(number);
                if self.config.spins {
                    self.tasks[number].spins = true;
                } else {
                    self.wait(number);
                }
            }
            Demand::Unlock(lock) => {
                let lock = self.lock(lock);
                match lock.waiting.pop_front() {
                    None => lock.held = false,
                    Some(next) if self.tasks[next].spins => {
                        self.tasks[next].spins = false;
                        self.kicks.push(self.tasks[next].vcpu);
                    }
                    Some(next) => self.resume(next),
                }
            }
            Demand::Done(response, late) => {
                self.stats[app].complete(response);
                self.stats[app].failed += u64::from(late);
            }
            Demand::Stop => self.wait(number),
            Demand::Compute(_) | Demand::Io(_) => unreachable!("the caller sees to these"),
        }
    }

    fn lock(&mut self, number: u32) -> &mut Lock {
        let number = number as usize;
        if self.locks.len() <= number {
            self.locks.resize(number + 1, Lock::default());
        }
        &mut self.locks[number]
    }

    fn await_request(&mut self, vcpu: usize, number: usize) {
        let task = &mut self.tasks[number];
        let Some(service) = &mut self.services[task.app] else { return self.wait(number) };
        match service.requests.pop_front() {
            Some(request) => task.take(request, &self.config.apps[task.app].script),
            None => {
                service.idle.push(number);
                task.waits = true;
                self.vcpus[vcpu].remove_current();
            }
        }
    }

    /// `vcpu` has computed, or spun, for this long.
    pub fn computed(&mut self, vcpu: usize, span: Span) {
        let Some(number) = self.vcpus[vcpu].current() else { return };
        let task = &mut self.tasks[number];
        task.slice -= span;
        if task.left == 0 {
            self.spin_ns += span;
            return;
        }
        task.left -= span.min(task.left);
        if self.config.apps[task.app].script.unit == Unit::CpuMillisecond {
            let computed = &mut self.computed[task.app];
            *computed += span;
            self.stats[task.app].completed += (*computed / 1_000_000) as u64;
            *computed %= 1_000_000;
        }
    }

    /// The task that `vcpu` is at.
    pub fn current(&self, vcpu: usize) -> Option<usize> {
        self.vcpus[vcpu].current()
    }

    /// The application that a task belongs to.
    pub fn app_of(&self, task: usize) -> usize {
        self.tasks[task].app
    }

    // ---- waiting and going on ----

    /// A task, the current one of its vCPU, waits until it is resumed.
    pub fn wait(&mut self, number: usize) {
        let task = &mut self.tasks[number];
        task.waits = true;
        self.vcpus[task.vcpu].remove_current();
    }

    /// What a task waited for has come.
    pub fn resume(&mut self, number: usize) {
        if !std::mem::take(&mut self.tasks[number].waits) {
            return;
        }
        let home = self.tasks[number].vcpu;
        let free = |vcpu: &Vcpu| vcpu.online && vcpu.load() == 0;
        // Rather than behind others it goes to a vCPU that has nothing to do.
        let vcpu = match free(&self.vcpus[home]) {
            true => home,
            false => self.vcpus.iter().position(free).unwrap_or(home),
        };
        let task = &mut self.tasks[number];
        task.vcpu = vcpu;
        task.slice = TIME_SLICE;
        self.vcpus[vcpu].woken.push_back(number);
        self.kicks.push(vcpu);
    }

    /// The stream of a task is open.
    pub fn set_stream(&mut self, task: usize, stream: u64) {
        self.tasks[task].stream = Some(stream);
    }

    /// A vCPU that is to look for work now.
    pub fn take_kick(&mut self) -> Option<usize> {
        self.kicks.pop()
    }

    fn sleep(&mut self, number: usize, until: Time) {
        let task = &mut self.tasks[number];
        task.wakes_at = until;
        self.vcpus[task.vcpu].sleepers.push(Reverse((until, number)));
    }

    /// When the next sleeper of `vcpu` is to be woken (`NEVER`: nobody sleeps).
    pub fn next_timer(&self, vcpu: usize) -> Time {
        self.vcpus[vcpu].sleepers.peek().map_or(NEVER, |&Reverse((time, _))| time)
    }

    fn wake_sleepers(&mut self, vcpu: usize, now: Time) {
        let Vcpu { woken, sleepers, .. } = &mut self.vcpus[vcpu];
        while let Some(&Reverse((time, number))) = sleepers.peek()
            && time <= now
        {
            sleepers.pop();
            let task = &mut self.tasks[number];
            task.wakes_at = NEVER;
            task.slice = TIME_SLICE;
            woken.push_back(number);
        }
    }

    // ---- services ----

    /// A connection to the service of an application comes: is there room for it?
    pub fn connect(&mut self, app: usize) -> bool {
        let Some(service) = &mut self.services[app] else { return false };
        let ServiceConfig { connections_max, backlog } = service.config;
        let room = service.connections < connections_max.saturating_add(backlog);
        service.connections += u32::from(room);
        room
    }

    /// A connection to it is closed.
    pub fn disconnect(&mut self, app: usize) {
        if let Some(service) = &mut self.services[app] {
            service.connections = service.connections.saturating_sub(1);
        }
    }

    /// A request to it has come.
    pub fn request(&mut self, app: usize, request: Request) {
        let Some(service) = &mut self.services[app] else { return };
        match service.idle.pop() {
            Some(number) => {
                self.tasks[number].take(request, &self.config.apps[app].script);
                self.resume(number);
            }
            None => service.requests.push_back(request),
        }
    }

    // ---- vCPUs that come and go ----

    /// A vCPU is plugged or unplugged; its tasks go on elsewhere.
    pub fn set_online(&mut self, vcpu: usize, online: bool) {
        self.vcpus[vcpu].online = online;
        if online {
            return;
        }
        let Some(other) = self.vcpus.iter().position(|vcpu| vcpu.online) else { return };
        let from = &mut self.vcpus[vcpu];
        let (woken, ready) = (std::mem::take(&mut from.woken), std::mem::take(&mut from.ready));
        let sleepers = std::mem::take(&mut from.sleepers);
        for task in self.tasks.iter_mut().filter(|task| task.vcpu == vcpu) {
            task.vcpu = other;
        }
        let to = &mut self.vcpus[other];
        to.woken.extend(woken);
        to.ready.extend(ready);
        to.sleepers.extend(sleepers);
        self.kicks.push(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Script, Step};

    fn kernel(vcpus: usize, apps: Vec<AppConfig>) -> Kernel {
        Kernel::new(&KernelConfig { vcpus, apps, spins: true }, 0, 1, 0)
    }

    fn compute(ns: Span) -> Step {
        Step::Compute { ns, per_byte_ps: 0 }
    }

    fn app(steps: Vec<Step>) -> AppConfig {
        AppConfig::new(Script::new(steps))
    }

    fn hog() -> AppConfig {
        let script = Script { unit: Unit::CpuMillisecond, ..Script::new(vec![compute(10_000_000)]) };
        AppConfig::new(script)
    }

    #[test]
    fn tasks_share_a_vcpu_in_slices() {
        let mut kernel = kernel(1, vec![hog(), hog()]);
        for _ in 0..10 {
            assert_eq!(kernel.next(0, 0), Next::Run(TIME_SLICE));
            kernel.computed(0, TIME_SLICE);
        }
        let computed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
        assert_eq!(computed, [50, 50], "ms each");
    }

    #[test]
    fn a_sleeper_that_wakes_goes_before_a_hog() {
        let mut kernel = kernel(1, vec![app(vec![Step::Sleep(30), compute(5)]), hog()]);
        assert_eq!(kernel.next(0, 0), Next::Run(10_000_000), "only the hog can go on");
        assert_eq!(kernel.next_timer(0), 30);
        kernel.computed(0, 30);
        assert_eq!(kernel.next(0, 30), Next::Run(5));
        kernel.computed(0, 5);
        assert_eq!(kernel.next(0, 35), Next::Run(10_000_000 - 30));
    }

    #[test]
    fn a_sleep_begins_when_the_work_is_done_though_the_slice_is_over_too() {
        let mut kernel = kernel(1, vec![app(vec![compute(TIME_SLICE), Step::Sleep(30)]), hog()]);
        assert_eq!(kernel.next(0, 0), Next::Run(TIME_SLICE));
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, TIME_SLICE), Next::Run(TIME_SLICE), "now the hog");
        assert_eq!(kernel.next_timer(0), TIME_SLICE + 30);
    }

    #[test]
    fn every_sleeper_wakes_in_its_turn() {
        let once = |span| app(vec![Step::Sleep(span), compute(1), Step::Done, Step::Stop]);
        let mut kernel = kernel(1, vec![once(30), once(10), once(20)]);
        assert_eq!(kernel.next(0, 0), Next::Idle);
        for now in [10, 20, 30] {
            assert_eq!((kernel.next_timer(0), kernel.next(0, now - 1)), (now, Next::Idle));
            assert_eq!(kernel.next(0, now), Next::Run(1));
            kernel.computed(0, 1);
            assert_eq!(kernel.next(0, now), Next::Idle);
        }
        assert_eq!(kernel.next_timer(0), NEVER);
        assert!(kernel.stats().iter().all(|stats| stats.completed == 1));
    }

    #[test]
    fn requests_find_a_task_that_waits_and_queue_when_none_does() {
        let service = Some(ServiceConfig { connections_max: 2, backlog: 1 });
        let steps = vec![Step::Await, compute(9), Step::Reply(None), Step::Done];
        let server = AppConfig { service, ..app(steps) };
        let mut kernel = kernel(2, vec![hog(), server]);
        let request = |connection| Request { connection, class: 0, asks: 77, since: 0 };
        assert_eq!(kernel.next(1, 0), Next::Idle);
        kernel.request(1, request(5));
        assert_eq!(kernel.take_kick(), Some(1));
        kernel.request(1, request(6));
        assert_eq!(kernel.take_kick(), None, "it is awake already");
        for connection in [5, 6] {
            assert_eq!(kernel.next(1, 0), Next::Run(9));
            kernel.computed(1, 9);
            assert_eq!(kernel.next(1, 20), Next::Io(1, Io::Reply { connection, bytes: 77 }));
        }
        assert_eq!(kernel.next(1, 20), Next::Idle);
        assert_eq!((kernel.stats()[1].completed, kernel.stats()[1].responses().unwrap().max()), (2, 20));
        assert_eq!([0; 4].map(|_| kernel.connect(1)), [true, true, true, false]);
        kernel.disconnect(1);
        assert!(kernel.connect(1));
    }

    #[test]
    fn who_waits_for_a_lock_spins_until_its_holder_gives_it_back() {
        let locked = || app(vec![Step::Lock(0), compute(10), Step::Unlock(0), Step::Stop]);
        let mut kernel = kernel(2, vec![locked(), locked()]);
        assert_eq!(kernel.next(0, 0), Next::Run(10));
        assert_eq!(kernel.next(1, 0), Next::Spin);
        kernel.computed(0, 10);
        assert_eq!((kernel.next(0, 10), kernel.take_kick()), (Next::Idle, Some(1)));
        kernel.computed(1, 10);
        assert_eq!(kernel.next(1, 10), Next::Run(10));
        assert_eq!(kernel.spin_ns(), 10);
    }

    #[test]
    fn where_locks_sleep_others_go_on_meanwhile() {
        let locked = |ns| app(vec![Step::Lock(0), compute(ns), Step::Unlock(0), Step::Stop]);
        let config = KernelConfig { vcpus: 1, apps: vec![locked(20_000_000), locked(5), hog()], spins: false };
        let mut kernel = Kernel::new(&config, 0, 1, 0);
        assert_eq!(kernel.next(0, 0), Next::Run(TIME_SLICE));
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, TIME_SLICE), Next::Run(TIME_SLICE), "the hog");
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, 2 * TIME_SLICE), Next::Run(TIME_SLICE), "the holder again");
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, 3 * TIME_SLICE), Next::Run(5), "it has the lock now");
    }

    #[test]
    fn a_task_that_can_go_on_takes_a_vcpu_that_is_free() {
        let mut kernel = kernel(2, vec![hog(), app(vec![Step::Stop]), app(vec![Step::Sync, compute(3)])]);
        assert_eq!((kernel.next(0, 0), kernel.next(1, 0)), (Next::Run(TIME_SLICE), Next::Idle));
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, 0), Next::Io(2, Io::Sync));
        kernel.wait(2);
        assert_eq!(kernel.next(0, 0), Next::Run(TIME_SLICE));
        kernel.resume(2);
        assert_eq!((kernel.take_kick(), kernel.next(1, 0)), (Some(1), Next::Run(3)));
    }

    #[test]
    fn an_unplugged_vcpu_leaves_its_tasks_to_another() {
        let mut kernel = kernel(2, vec![app(vec![Step::Stop]), hog()]);
        kernel.set_online(1, false);
        assert_eq!((kernel.take_kick(), kernel.next(1, 0)), (Some(0), Next::Idle));
        assert_eq!(kernel.next(0, 0), Next::Run(TIME_SLICE));
    }
}
