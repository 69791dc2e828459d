//! The guest kernel: tasks share the vCPUs of their domain in time slices; a timer wakes those that sleep; locks, points
//! to wait at, and services make them wait for one another.
//!
//! Who had least of a vCPU goes first. So a task that waited for something goes before those that only compute, as long
//! as it takes no more than its part. (What general-purpose kernels aim at with virtual run times; here all weigh alike.)
//!
//! Who holds a spin lock or spins for one is not preempted, as in any kernel (Linux: `preempt_disable`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use vcpulab_host::{NEVER, Span, Time};

use crate::idle_tick::{IdleTick, Tick};
use crate::script::{AppConfig, ServiceConfig, Unit};
use crate::task::{Demand, Io, Request, Task};
use crate::{AppStats, Random};

/// The purpose of the random number that says when ticks are; tasks count from 1.
const TICKS: u64 = 5 << 32;

/// A domain's inside as configured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelConfig {
    /// How many vCPUs it has.
    pub vcpus: usize,
    /// Its applications.
    pub apps: Vec<AppConfig>,
    /// What a page fault costs more than without a hypervisor, ns.
    pub page_fault_ns: Span,
    /// Time slice of a task while others wait for the same vCPU, ns.
    pub slice_ns: Span,
    /// Its tick, if it is left on when a vCPU goes idle.
    pub idle_tick: Option<IdleTick>,
}

/// What a vCPU does next for its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Compute for this long, ns.
    Run(Span),
    /// Do the kernel's own work for this long, ns.
    Tick(Span),
    /// Burn time until a lock is given back.
    Spin,
    /// This task asks for something. It goes on at once unless it is told to wait ([`Kernel::wait`]).
    Io(usize, Io),
    /// All tasks sleep or wait.
    Idle,
}

/// Who goes before whom whatever they had so far: who holds a spin lock, then who spins for one, then the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Rank {
    Holds,
    Spins,
    Other,
}

fn rank(task: &Task) -> Rank {
    match task {
        Task { spins: true, .. } => Rank::Spins,
        Task { holds: 0, .. } => Rank::Other,
        _ => Rank::Holds,
    }
}

#[derive(Clone, Debug)]
struct Vcpu {
    online: bool,
    /// The task that it is at, what is left of its time slice, and since when it computes.
    current: Option<usize>,
    slice: Span,
    began: Time,
    /// The others that can go on: the first to go first, which is who had least, and of several the one that came first.
    queue: BinaryHeap<Reverse<(Rank, Span, u64, usize)>>,
    /// How many have come so far, and whether one has since the current one was compared with them.
    came: u64,
    new: bool,
    /// What a task that always wanted to compute has had so far, ns.
    had: Span,
    sleepers: BinaryHeap<Reverse<(Time, usize)>>,
    tick: Option<Tick>,
    /// A full time slice.
    slice_ns: Span,
}

impl Vcpu {
    fn new(online: bool, now: Time, tasks: usize, slice_ns: Span) -> Self {
        Vcpu {
            online,
            current: None,
            slice_ns,
            slice: slice_ns,
            began: now,
            queue: BinaryHeap::with_capacity(tasks),
            came: 0,
            new: false,
            had: 0,
            sleepers: BinaryHeap::with_capacity(tasks),
            tick: None,
        }
    }

    fn push(&mut self, number: usize, task: &Task) {
        self.came += 1;
        self.queue.push(Reverse((rank(task), task.had, self.came, number)));
    }

    /// A task that waited for something, or comes from another vCPU, can go on. Waiting earns it no more than a slice.
    fn wake(&mut self, number: usize, task: &mut Task) {
        task.had = task.had.max(self.had - self.slice_ns);
        self.push(number, task);
        self.new = true;
    }

    /// The task that it is at; if it is at none, it takes the first one.
    fn choose(&mut self) -> Option<usize> {
        if self.current.is_none() {
            let Reverse((rank, had, _, number)) = self.queue.pop()?;
            if rank == Rank::Other {
                self.had = self.had.max(had);
            }
            self.slice = self.slice_ns;
            self.current = Some(number);
        }
        self.current
    }

    /// Does its current task let others go first?
    fn gives_way(&mut self, task: &Task) -> bool {
        let new = std::mem::take(&mut self.new);
        let Some(&Reverse((first, had, ..))) = self.queue.peek() else { return false };
        let own = rank(task);
        first < own || first == own && own == Rank::Other && (self.slice <= 0 || new && had < task.had)
    }

    /// One of the queue is of another rank now.
    fn rank_again(&mut self, number: usize, task: &Task) {
        let before = self.queue.len();
        self.queue.retain(|Reverse((.., queued))| *queued != number);
        if self.queue.len() < before {
            self.push(number, task);
        }
    }

    fn load(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }
}

/// Where tasks meet: a lock, given on in the order in which it was asked for (a ticket lock), or a point to wait at.
#[derive(Clone, Debug, Default)]
struct Meeting {
    held: bool,
    waiting: VecDeque<usize>,
}

/// What becomes of a call to a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// It is answered: the set-up of a connection is under way.
    Answered,
    /// There is no room for it, and its caller hears nothing.
    Lost,
    /// There is no room for one more connection, and its caller hears so.
    Refused,
}

#[derive(Clone, Debug)]
struct Service {
    config: ServiceConfig,
    /// Connections whose set-up is under way.
    half_open: u32,
    /// Those that are served.
    served: u32,
    /// Those that wait for that, who has waited longest first.
    waiting: VecDeque<u64>,
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
    /// By whose they are: the domain's, then each application's own.
    meetings: Vec<Vec<Meeting>>,
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
        let service = |app: &AppConfig| {
            app.service.map(|config| Service {
                config,
                half_open: 0,
                served: 0,
                waiting: VecDeque::new(),
                requests: VecDeque::with_capacity(config.connections_max.min(1024) as usize),
                idle: Vec::with_capacity(app.tasks as usize),
            })
        };
        let mut kernel = Kernel {
            stats: vec![AppStats::default(); config.apps.len()],
            computed: vec![0; config.apps.len()],
            tasks: Vec::with_capacity(tasks),
            vcpus: vec![Vcpu::new(true, now, tasks, config.slice_ns); config.vcpus],
            meetings: vec![Vec::new(); config.apps.len() + 1],
            services: config.apps.iter().map(service).collect(),
            spin_ns: 0,
            kicks: Vec::with_capacity(tasks.max(config.vcpus)),
            config: config.clone(),
        };
        if let Some(tick) = config.idle_tick {
            // Those of different guests are not in step; those of a guest's vCPUs are.
            let phase = Random::new(seed, domain, TICKS).below(tick.period_ns as u64) as Time;
            kernel.vcpus.iter_mut().for_each(|vcpu| vcpu.tick = Some(Tick::new(tick, phase)));
        }
        for (index, app) in config.apps.iter().enumerate() {
            for _ in 0..app.tasks {
                let number = kernel.tasks.len();
                let vcpu = number % config.vcpus;
                let random = Random::new(seed, domain, 1 + number as u64);
                kernel.tasks.push(Task::new(
                    index,
                    vcpu,
                    &app.script,
                    now + app.delay,
                    config.page_fault_ns,
                    random,
                ));
                if app.delay > 0 {
                    kernel.sleep(number, now + app.delay);
                    continue;
                }
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
                kernel.vcpus[vcpu].push(number, &kernel.tasks[number]);
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
        if let Some(span) = self.vcpus[vcpu].tick.as_mut().and_then(|tick| tick.work(now)) {
            return Next::Tick(span);
        }
        while let Some(number) = self.vcpus[vcpu].choose() {
            if let Some(tick) = &mut self.vcpus[vcpu].tick {
                tick.goes_on();
            }
            let task = &mut self.tasks[number];
            if task.left == 0 && !task.spins {
                let script = &self.config.apps[task.app].script;
                match task.advance(script, now) {
                    Demand::Compute(span) => task.left = span,
                    Demand::Io(io) => return Next::Io(number, io),
                    demand => {
                        self.grant(number, demand, now);
                        continue;
                    }
                }
            }
            let vcpu = &mut self.vcpus[vcpu];
            if vcpu.gives_way(task) {
                vcpu.current = None;
                vcpu.push(number, task);
                continue;
            }
            vcpu.began = now;
            return match rank(task) {
                Rank::Spins => Next::Spin,
                Rank::Other if !vcpu.queue.is_empty() => Next::Run(task.left.min(vcpu.slice)),
                Rank::Other | Rank::Holds => Next::Run(task.left),
            };
        }
        if let Some(tick) = &mut self.vcpus[vcpu].tick {
            tick.idles(now);
        }
        Next::Idle
    }

    /// What the kernel itself can do for a task, the current one of `vcpu`.
    fn grant(&mut self, number: usize, demand: Demand, now: Time) {
        let app = self.tasks[number].app;
        match demand {
            Demand::Sleep(until) => {
                self.vcpus[self.tasks[number].vcpu].current = None;
                self.sleep(number, until);
            }
            Demand::Await => self.await_request(number),
            Demand::Lock(lock) => self.lock(number, lock),
            Demand::Unlock(lock) => self.unlock(number, lock),
            Demand::Wait(at, unlocks) => {
                self.meeting(app, at).waiting.push_back(number);
                self.wait(number);
                if let Some(lock) = unlocks {
                    self.unlock(number, lock);
                }
            }
            Demand::Wake(at, all) => self.wake(app, at, if all { usize::MAX } else { 1 }),
            Demand::Barrier(at, tasks) => {
                let waiting = &mut self.meeting(app, at).waiting;
                if waiting.len() + 1 < tasks as usize {
                    waiting.push_back(number);
                    self.wait(number);
                } else {
                    self.wake(app, at, usize::MAX);
                }
            }
            Demand::Done(response, late) => {
                self.stats[app].complete(response, now);
                self.stats[app].failed += u64::from(late);
            }
            Demand::Stop => self.wait(number),
            Demand::Compute(_) | Demand::Io(_) => unreachable!("the caller sees to these"),
        }
    }

    /// The lock or point of that number that an application means.
    fn meeting(&mut self, app: usize, number: u32) -> &mut Meeting {
        let whose = if self.config.apps[app].meets_others { 0 } else { app + 1 };
        let (meetings, number) = (&mut self.meetings[whose], number as usize);
        if meetings.len() <= number {
            meetings.resize(number + 1, Meeting::default());
        }
        &mut meetings[number]
    }

    /// A task, the current one of its vCPU, wants a lock.
    fn lock(&mut self, number: usize, lock: u32) {
        let app = self.tasks[number].app;
        let lock = self.meeting(app, lock);
        let waits = std::mem::replace(&mut lock.held, true);
        if waits {
            lock.waiting.push_back(number);
        }
        if self.config.apps[app].spins {
            let task = &mut self.tasks[number];
            task.spins = waits;
            task.holds += u32::from(!waits);
        } else if waits {
            self.wait(number);
        }
    }

    fn unlock(&mut self, number: usize, lock: u32) {
        let app = self.tasks[number].app;
        let lock = self.meeting(app, lock);
        let next = lock.waiting.pop_front();
        lock.held = next.is_some();
        let holds = &mut self.tasks[number].holds;
        *holds = holds.saturating_sub(1);
        let Some(next) = next else { return };
        let task = &mut self.tasks[next];
        if std::mem::take(&mut task.spins) {
            task.holds += 1;
            self.vcpus[task.vcpu].rank_again(next, task);
            self.kicks.push(task.vcpu);
        } else {
            self.resume(next);
        }
    }

    /// So many of those that wait at a point go on.
    fn wake(&mut self, app: usize, at: u32, most: usize) {
        let waiting = &mut self.meeting(app, at).waiting;
        let woken: Vec<usize> = waiting.drain(..most.min(waiting.len())).collect();
        for number in woken {
            self.resume(number);
        }
    }

    fn await_request(&mut self, number: usize) {
        let task = &mut self.tasks[number];
        let Some(service) = &mut self.services[task.app] else { return self.wait(number) };
        match service.requests.pop_front() {
            Some(request) => task.take(request, &self.config.apps[task.app].script),
            None => {
                service.idle.push(number);
                self.wait(number);
            }
        }
    }

    /// `vcpu` has computed, or spun, for this long.
    pub fn computed(&mut self, vcpu: usize, span: Span) {
        let Vcpu { current, slice, began, tick, .. } = &mut self.vcpus[vcpu];
        let Some(number) = current else {
            if let Some(tick) = tick {
                tick.worked(span);
            }
            return;
        };
        let task = &mut self.tasks[*number];
        *slice -= span;
        task.had += span;
        if task.left == 0 {
            self.spin_ns += span;
            return;
        }
        task.left -= span.min(task.left);
        if self.config.apps[task.app].script.unit == Unit::CpuMillisecond {
            let computed = &mut self.computed[task.app];
            *computed += span;
            self.stats[task.app].count((*computed / 1_000_000) as u64, *began + span);
            *computed %= 1_000_000;
        }
    }

    /// The task that `vcpu` is at.
    pub fn current(&self, vcpu: usize) -> Option<usize> {
        self.vcpus[vcpu].current
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
        let left = self.vcpus[task.vcpu].current.take();
        debug_assert_eq!(left, Some(number), "who waits was at work");
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
        task.had += self.vcpus[vcpu].had - self.vcpus[home].had;
        task.vcpu = vcpu;
        self.vcpus[vcpu].wake(number, task);
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
        self.vcpus[self.tasks[number].vcpu].sleepers.push(Reverse((until, number)));
    }

    /// When the next sleeper of `vcpu` is to be woken (`NEVER`: nobody sleeps).
    pub fn next_timer(&self, vcpu: usize) -> Time {
        let Vcpu { sleepers, tick, .. } = &self.vcpus[vcpu];
        let tick = tick.as_ref().map_or(NEVER, Tick::due);
        sleepers.peek().map_or(tick, |&Reverse((time, _))| time.min(tick))
    }

    fn wake_sleepers(&mut self, vcpu: usize, now: Time) {
        let vcpu = &mut self.vcpus[vcpu];
        while let Some(&Reverse((time, number))) = vcpu.sleepers.peek()
            && time <= now
        {
            vcpu.sleepers.pop();
            vcpu.wake(number, &mut self.tasks[number]);
        }
    }

    // ---- services ----

    /// Somebody calls the service of an application: a SYN comes.
    pub fn call(&mut self, app: usize) -> Called {
        let Some(service) = &mut self.services[app] else { return Called::Refused };
        let ServiceConfig { connections_max, backlog, ignores, syn_queue, .. } = service.config;
        let known = service.served + service.half_open + service.waiting.len() as u32;
        if known >= connections_max.saturating_add(backlog) {
            return if ignores { Called::Lost } else { Called::Refused };
        }
        if service.half_open >= syn_queue {
            return Called::Lost;
        }
        service.half_open += 1;
        Called::Answered
    }

    /// The set-up of a connection is complete. True: it is served; otherwise it waits in the backlog.
    pub fn connect(&mut self, app: usize, connection: u64) -> bool {
        let Some(service) = &mut self.services[app] else { return false };
        service.half_open = service.half_open.saturating_sub(1);
        let room = service.served < service.config.connections_max;
        match room {
            true => service.served += 1,
            false => service.waiting.push_back(connection),
        }
        room
    }

    /// A connection whose set-up was under way is given up.
    pub fn give_up_call(&mut self, app: usize) {
        if let Some(service) = &mut self.services[app] {
            service.half_open = service.half_open.saturating_sub(1);
        }
    }

    /// A connection that waited is closed.
    pub fn stop_waiting(&mut self, app: usize, connection: u64) {
        if let Some(service) = &mut self.services[app] {
            service.waiting.retain(|&waiting| waiting != connection);
        }
    }

    /// A connection that was served is closed: the one that is served instead.
    pub fn disconnect(&mut self, app: usize) -> Option<u64> {
        let service = self.services[app].as_mut()?;
        let next = service.waiting.pop_front();
        if next.is_none() {
            service.served = service.served.saturating_sub(1);
        }
        next
    }

    /// How many connections a service has at once now; those in its backlog are not among them.
    pub fn connections(&self, app: usize) -> u32 {
        self.services[app].as_ref().map_or(0, |service| service.served)
    }

    /// After how many requests a service closes a connection; 0: never.
    pub fn requests_max(&self, app: usize) -> u32 {
        self.services[app].as_ref().map_or(0, |service| service.config.requests_max)
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

    /// A vCPU is plugged, and the others give it of what waits there; or unplugged, and its tasks go on elsewhere.
    pub fn set_online(&mut self, vcpu: usize, online: bool) {
        self.vcpus[vcpu].online = online;
        if online {
            while let Some(busiest) = (0..self.vcpus.len()).max_by_key(|&other| self.vcpus[other].load())
                && self.vcpus[busiest].load() > self.vcpus[vcpu].load() + 1
                && let Some(Reverse((.., number))) = self.vcpus[busiest].queue.pop()
            {
                let task = &mut self.tasks[number];
                task.vcpu = vcpu;
                task.had += self.vcpus[vcpu].had - self.vcpus[busiest].had;
                self.vcpus[vcpu].wake(number, task);
                self.kicks.push(vcpu);
            }
            return;
        }
        let Some(other) = self.vcpus.iter().position(|vcpu| vcpu.online) else { return };
        let tasks = self.tasks.len();
        let off = Vcpu { tick: self.vcpus[vcpu].tick, ..Vcpu::new(false, 0, tasks, self.config.slice_ns) };
        let from = std::mem::replace(&mut self.vcpus[vcpu], off);
        let to = &mut self.vcpus[other];
        for task in self.tasks.iter_mut().filter(|task| task.vcpu == vcpu) {
            task.vcpu = other;
            task.had += to.had - from.had;
        }
        let mut queued = from.queue.into_sorted_vec();
        queued.reverse();
        for number in from.current.into_iter().chain(queued.into_iter().map(|Reverse((.., number))| number)) {
            to.wake(number, &mut self.tasks[number]);
        }
        to.sleepers.extend(from.sleepers);
        self.kicks.push(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Script, Step};

    const TIME_SLICE: Span = 10_000_000;

    fn kernel(vcpus: usize, apps: Vec<AppConfig>) -> Kernel {
        let config = KernelConfig { vcpus, apps, page_fault_ns: 100, slice_ns: TIME_SLICE, idle_tick: None };
        Kernel::new(&config, 0, 1, 0)
    }

    fn compute(ns: Span) -> Step {
        Step::Compute { ns, per_byte_ps: 0 }
    }

    fn app(steps: Vec<Step>) -> AppConfig {
        AppConfig::new(Script::new(steps))
    }

    /// So many tasks whose locks spin.
    fn spinning(steps: Vec<Step>, tasks: u32) -> AppConfig {
        AppConfig { tasks, spins: true, ..app(steps) }
    }

    /// Lets all vCPUs, with a pCPU each, go on until then.
    fn run(kernel: &mut Kernel, vcpus: usize, from: Time, until: Time) {
        let mut now = from;
        while now < until {
            let mut next: Vec<Next> = (0..vcpus).map(|vcpu| kernel.next(vcpu, now)).collect();
            while let Some(vcpu) = kernel.take_kick() {
                next[vcpu] = kernel.next(vcpu, now);
            }
            let spans =
                next.iter().filter_map(|next| if let Next::Run(span) = next { Some(*span) } else { None });
            let timers = (0..vcpus).map(|vcpu| kernel.next_timer(vcpu) - now);
            let span = spans.chain(timers).chain([until - now]).min().unwrap();
            now += span;
            for (vcpu, next) in next.iter().enumerate() {
                if matches!(next, Next::Run(_) | Next::Spin) {
                    kernel.computed(vcpu, span);
                }
            }
        }
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
    fn who_is_to_begin_later_sleeps_until_then() {
        let late = AppConfig { delay: 70, ..app(vec![compute(5), Step::Timer(20), Step::Done]) };
        let mut kernel = kernel(1, vec![late]);
        assert_eq!((kernel.next(0, 0), kernel.next_timer(0)), (Next::Idle, 70));
        run(&mut kernel, 1, 70, 1071);
        let stats = &kernel.stats()[0];
        assert_eq!((stats.completed, stats.responses().unwrap().max()), (50, 20));
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
        let service = Some(ServiceConfig::of(2));
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
    }

    #[test]
    fn calls_wait_in_the_syn_queue_and_connections_in_the_backlog() {
        use Called::{Answered, Lost, Refused};
        let service = Some(ServiceConfig { backlog: 1, syn_queue: 2, ..ServiceConfig::of(2) });
        let mut kernel = kernel(1, vec![hog(), AppConfig { service, ..app(vec![Step::Await, Step::Done]) }]);
        assert_eq!([0; 3].map(|_| kernel.call(1)), [Answered, Answered, Lost]);
        assert!(kernel.connect(1, 10) && kernel.connect(1, 11));
        assert_eq!([0; 2].map(|_| kernel.call(1)), [Answered, Refused]);
        assert!(!kernel.connect(1, 12), "two are served");
        assert_eq!(kernel.disconnect(1), Some(12), "it is its turn");
        assert_eq!(kernel.disconnect(1), None);
        assert_eq!(kernel.call(1), Answered);
        kernel.give_up_call(1);
        assert_eq!([0; 2].map(|_| kernel.call(1)), [Answered, Answered]);
        assert!(kernel.connect(1, 13) && !kernel.connect(1, 14));
        kernel.stop_waiting(1, 14);
        assert_eq!(kernel.disconnect(1), None);
        assert_eq!(kernel.call(0), Refused, "a hog is no service");
    }

    #[test]
    fn who_waits_for_a_lock_spins_until_its_holder_gives_it_back() {
        let locked = || spinning(vec![Step::Lock(0), compute(10), Step::Unlock(0), Step::Stop], 1);
        let locked = || AppConfig { meets_others: true, ..locked() };
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
    fn who_holds_a_spin_lock_keeps_its_vcpu_until_it_gives_it_back() {
        let holder = spinning(vec![Step::Lock(0), compute(3 * TIME_SLICE), Step::Unlock(0), compute(7)], 1);
        let mut kernel = kernel(1, vec![holder, app(vec![Step::Sleep(5), compute(2), Step::Stop]), hog()]);
        assert_eq!(kernel.next(0, 0), Next::Run(3 * TIME_SLICE), "no slices, though the hog waits");
        kernel.computed(0, TIME_SLICE);
        assert_eq!(
            kernel.next(0, TIME_SLICE),
            Next::Run(2 * TIME_SLICE),
            "nor does one go first that is woken"
        );
        kernel.computed(0, 2 * TIME_SLICE);
        assert_eq!(kernel.next(0, 3 * TIME_SLICE), Next::Run(TIME_SLICE), "then it lets the hog go first");
        kernel.computed(0, TIME_SLICE);
        assert_eq!(kernel.next(0, 4 * TIME_SLICE), Next::Run(2), "and the one that was woken");
        kernel.computed(0, 2);
        assert_eq!(kernel.next(0, 4 * TIME_SLICE + 2), Next::Run(TIME_SLICE), "and the hog, which had least");
    }

    #[test]
    fn spinners_and_holders_that_share_vcpus_all_make_progress() {
        // Five tasks on two vCPUs; every third section lasts longer than a slice; a holder may even sleep.
        for hold in [0, TIME_SLICE / 3] {
            let section = [Step::Lock(0), compute(2 * TIME_SLICE / 5), Step::Sleep(hold), Step::Lock(1)];
            let rest = [compute(TIME_SLICE), Step::Unlock(1), Step::Unlock(0), Step::Done, compute(1000)];
            let mut kernel = kernel(2, vec![spinning([&section[..], &rest].concat(), 5), hog()]);
            run(&mut kernel, 2, 0, 1000 * TIME_SLICE);
            // A round takes 1.4 slices, and what the holder sleeps; the lock is hardly ever free.
            let rounds = 1000 * TIME_SLICE / (7 * TIME_SLICE / 5 + hold);
            let done = kernel.stats()[0].completed as i64;
            assert!((rounds * 9 / 10..=rounds).contains(&done), "{done} of {rounds} rounds");
            assert!(kernel.spin_ns() > 0);
        }
    }

    #[test]
    fn applications_have_locks_of_their_own_unless_they_meet() {
        let locked = |meets_others| AppConfig { meets_others, ..app(vec![Step::Lock(0), compute(10)]) };
        let mut apart = kernel(2, vec![locked(false), locked(false)]);
        assert_eq!([0, 1].map(|vcpu| apart.next(vcpu, 0)), [Next::Run(10); 2]);
        let mut together = kernel(2, vec![locked(true), locked(true)]);
        assert_eq!([0, 1].map(|vcpu| together.next(vcpu, 0)), [Next::Run(10), Next::Idle]);
    }

    #[test]
    fn who_waits_at_a_point_goes_on_when_another_wakes_it() {
        let lock = Step::Lock(0);
        let waits =
            [lock, Step::Wait { at: 1, unlocks: Some(0) }, lock, Step::Unlock(0), compute(5), Step::Done];
        for (all, woken) in [(false, 1), (true, 2)] {
            let wakes = [Step::Sleep(10), lock, Step::Wake { at: 1, all }, Step::Unlock(0), Step::Stop];
            let apps = [&waits[..], &waits, &wakes];
            let apps = apps.map(|steps| AppConfig { meets_others: true, ..app(steps.into()) });
            let mut kernel = kernel(1, apps.into());
            run(&mut kernel, 1, 0, 100);
            let completed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
            assert_eq!(completed, [1, woken - 1, 0], "the first is woken first; then both wait again");
        }
    }

    #[test]
    fn at_a_barrier_the_last_one_lets_all_go_on() {
        let steps = |ns| vec![compute(ns), Step::Barrier { at: 0, tasks: 3 }, Step::Done];
        let apps = [10, 20, 70].map(|ns| AppConfig { meets_others: true, ..app(steps(ns)) });
        let mut kernel = kernel(3, apps.into());
        run(&mut kernel, 3, 0, 701);
        let completed: Vec<u64> = kernel.stats().iter().map(|stats| stats.completed).collect();
        assert_eq!(completed, [10; 3]);
        assert_eq!(kernel.stats()[0].last_completed, Some(700));
    }

    #[test]
    fn no_script_lets_time_stand_still() {
        let point = |steps: &[Step]| AppConfig { meets_others: true, ..app(steps.into()) };
        let there = Step::Wake { at: 0, all: true };
        let here = Step::Wait { at: 0, unlocks: None };
        let scripts: [&[Step]; 7] = [
            &[Step::Done],
            &[Step::Lock(0), Step::Unlock(0)],
            &[Step::Runtime(0), Step::Sleep(0), Step::Timer(0), compute(0)],
            &[Step::Release(0), Step::Deadline(0)],
            &[Step::Barrier { at: 0, tasks: 1 }],
            &[there, here],
            &[Step::Restart],
        ];
        for steps in scripts {
            for vcpus in [1, 2] {
                let mut kernel = kernel(vcpus, vec![point(steps), point(steps)]);
                run(&mut kernel, vcpus, 0, 5_000_000);
            }
        }
    }

    #[test]
    fn who_sleeps_often_gets_no_more_than_its_part_but_that_at_once() {
        // Ten workers would like the vCPU for themselves.
        let worker = || app(vec![compute(1_000_000), Step::Sleep(5_000_000), Step::Done]);
        let mut apps: Vec<AppConfig> = (0..10).map(|_| worker()).collect();
        apps.push(hog());
        let mut crowd = kernel(1, apps);
        run(&mut crowd, 1, 0, 1100 * TIME_SLICE);
        let completed: Vec<u64> = crowd.stats().iter().map(|stats| stats.completed).collect();
        assert!((900..1300).contains(&completed[10]), "{completed:?}: the hog's eleventh");
        assert!(completed[..10].iter().all(|done| (900..1100).contains(done)), "{completed:?}");

        // One that asks for a tenth is never kept waiting by a hog.
        let periodic = app(vec![Step::Release(10_000_000), compute(1_000_000), Step::Deadline(1_000_000)]);
        let mut two = kernel(1, vec![periodic, hog()]);
        run(&mut two, 1, 0, 1000 * TIME_SLICE);
        let stats = &two.stats()[0];
        assert!(stats.completed >= 998 && stats.failed == 0, "{stats:?}");
    }

    #[test]
    fn where_locks_sleep_others_go_on_meanwhile() {
        let locked = |ns| app(vec![Step::Lock(0), compute(ns), Step::Unlock(0), Step::Stop]);
        let [first, second] = [20_000_000, 5].map(|ns| AppConfig { meets_others: true, ..locked(ns) });
        let mut kernel = kernel(1, vec![first, second, hog()]);
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

    #[test]
    fn a_vcpu_that_is_plugged_again_takes_of_what_waits() {
        let mut kernel = kernel(2, vec![hog(), hog()]);
        kernel.set_online(1, false);
        assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, 0)), [Next::Run(TIME_SLICE), Next::Idle]);
        while kernel.take_kick().is_some() {}
        kernel.set_online(1, true);
        assert_eq!(kernel.take_kick(), Some(1));
        assert_eq!([0, 1].map(|vcpu| kernel.next(vcpu, 0)), [Next::Run(TIME_SLICE); 2]);
    }
}
