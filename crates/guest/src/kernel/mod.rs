//! The guest kernel: tasks share the vCPUs of their domain in time slices; a timer wakes sleepers; locks, points to wait at
//! and services make tasks wait for one another.

mod deadlines;
mod idle_tick;
mod service;
mod stretch;
mod sync;
mod syscall;
mod task;
#[cfg(test)]
mod tests;
mod vcpu;

use std::cmp::Reverse;
use std::sync::Arc;

use vcpulab_host::{Span, Table, Time};

pub use idle_tick::IdleTick;
pub use service::{Service, SynAnswer};
pub use task::{Io, Request};

use crate::ids::{AppId, ConnectionId, TaskId};
use crate::random::Random;
use crate::script::{AppConfig, Script, Softirq, Unit};
use crate::stats::AppStats;
use idle_tick::Tick;
use stretch::Stretch;
use sync::SyncObjects;
use task::{Context, Demand, Rank, State, Syscall, Task};
use vcpu::Vcpu;

/// The purpose of the random numbers that say how a task's phases follow one another; tasks count from there.
const STRETCHES: u64 = 6 << 32;

/// The stretches of a task, with the step at which it begins; `None`: the script's phases come in their order.
fn stretch_of(script: &Script, seed: u64, domain: u64, task: u64) -> Option<(Stretch, u32)> {
    let random = Random::new(seed, domain, STRETCHES + task);
    script.stretches.as_ref().map(|stretches| Stretch::new(stretches, random))
}

/// The unit of work of tasks that are counted by their CPU time.
const CPU_UNIT: Span = Span::from_ms(1);

/// Configuration of a domain's kernel and its applications.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelConfig {
    /// Number of vCPUs.
    pub vcpus: u32,
    /// Number of threads of each core, as the kernel is told: vCPUs with consecutive numbers share a core. 0 or 1: each
    /// vCPU is a core.
    pub threads_per_core: u32,
    /// Applications of the domain.
    pub apps: Table<AppId, AppConfig>,
    /// Cost of a page fault beyond that without a hypervisor, ns.
    pub page_fault_ns: Span,
    /// Time slice of a task while others wait for the same vCPU, ns.
    pub slice_ns: Span,
    /// The tick of the kernel, if it stays on while a vCPU is idle.
    pub idle_tick: Option<Box<IdleTick>>,
    /// CPU time each time that an idle vCPU wakes to do something, beside what its tasks compute, ns.
    pub wake_ns: Span,
    /// CPU time of the kernel each time that a vCPU goes idle, ns.
    pub idle_ns: Span,
}

/// The next use of a vCPU by its tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Compute for this long.
    Run(Span),
    /// Do the kernel's own work for this long.
    Kernel(Span),
    /// Burn time until a lock is given back.
    Spin,
    /// A task's request to the outside. The task continues at once unless it is made to wait ([`Kernel::wait`]).
    Io(TaskId, Io),
    /// All tasks sleep or wait.
    Idle,
}

/// The state of a task on its vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The task is current, and computes whenever the vCPU has nothing more urgent to do.
    Current,
    /// The task is current, and spins for a lock.
    Spins,
    /// Other tasks run before the task.
    Queued,
    /// The task waits until a time.
    Sleeps,
    /// The task waits for something other than time.
    Waits,
}

/// The state of an application, beside its tasks.
#[derive(Clone, Debug)]
struct App {
    /// CPU time of tasks that has not filled a unit yet.
    computed: Span,
    /// Synchronization objects of this application alone.
    sync_objects: SyncObjects,
    /// The service of the application; most applications are none.
    service: Option<Box<Service>>,
}

impl App {
    fn new(config: &AppConfig) -> Self {
        App {
            computed: Span::ZERO,
            sync_objects: SyncObjects::default(),
            service: config.service.map(|service| Box::new(Service::new(service, config.tasks))),
        }
    }
}

/// The kernel of one domain. Its vCPUs are numbered from 0.
#[derive(Clone, Debug)]
pub struct Kernel {
    config: Arc<KernelConfig>,
    stats: Table<AppId, AppStats>,
    apps: Table<AppId, App>,
    tasks: Table<TaskId, Task>,
    vcpus: Box<[Vcpu]>,
    /// Synchronization objects that applications share.
    sync_objects: SyncObjects,
    spin_ns: Span,
    /// vCPUs that should look for work, in the order in which they were found.
    kicks: Vec<usize>,
}

impl Kernel {
    /// A kernel that boots at `now`. Tasks are spread over the vCPUs in turn, over the first threads of all cores first; each draws from a stream of its own.
    pub fn new(config: &Arc<KernelConfig>, now: Time, seed: u64, domain: u64) -> Self {
        let tasks: usize = config.apps.iter().map(|app| app.tasks as usize).sum();
        let mut kernel = Kernel {
            stats: Table::filled(config.apps.len(), AppStats::default()),
            apps: config.apps.iter().map(App::new).collect(),
            tasks: Table::with_capacity(tasks),
            vcpus: vec![Vcpu::new(true, now, tasks, config.slice_ns); config.vcpus as usize].into(),
            sync_objects: SyncObjects::default(),
            spin_ns: Span::ZERO,
            kicks: Vec::new(),
            config: Arc::clone(config),
        };
        if let Some(tick) = config.idle_tick.as_deref().copied() {
            // Those of a guest's vCPUs are in step.
            let phase = Time::ZERO + tick.at_ns.unwrap_or_default();
            kernel.vcpus.iter_mut().for_each(|vcpu| vcpu.tick = Some(Box::new(Tick::new(tick, phase))));
        }
        for (app, configured) in config.apps.enumerate() {
            for _ in 0..configured.tasks {
                let task = 1 + kernel.tasks.len() as u64;
                let random = Random::new(seed, domain, task);
                let stretch = stretch_of(&configured.script, seed, domain, task);
                kernel.start_task(app, configured, now, random, stretch);
            }
        }
        kernel
    }

    fn start_task(
        &mut self,
        app: AppId,
        config: &AppConfig,
        now: Time,
        random: Random,
        stretch: Option<(Stretch, u32)>,
    ) {
        let id = TaskId(self.tasks.len() as u32);
        let vcpu = self.first_vcpu(id);
        let begins = now + config.delay_ns;
        let mut task = Task::new(app, vcpu, &config.script, begins, random);
        if config.softirq == Softirq::All {
            task.context = Context::Softirq;
        }
        if let Some((stretch, first)) = stretch {
            task.go_in_stretches(stretch, first);
        }
        let mut sleeps = (config.delay_ns > Span::ZERO).then_some(begins);
        // A task that begins with a sleep does not wait for it behind other tasks.
        if sleeps.is_none() {
            match task.begin_timed(&config.script, now) {
                Some(Demand::Kernel(Syscall::Sleep(until))) => sleeps = Some(until),
                Some(Demand::Kernel(Syscall::Ticks(ticks))) => {
                    sleeps = Some(self.vcpus[vcpu].after_ticks(now, ticks));
                }
                _ => {}
            }
        }
        match sleeps {
            Some(until) => self.vcpus[vcpu].sleep(id, &mut task, until),
            None => self.vcpus[vcpu].push(id, &task),
        }
        self.tasks.push(task);
    }

    fn threads_per_core(&self) -> usize {
        self.config.threads_per_core.max(1) as usize
    }

    /// The vCPU on which a task starts.
    fn first_vcpu(&self, id: TaskId) -> usize {
        let (vcpus, threads) = (self.vcpus.len(), self.threads_per_core());
        let in_order = (0..threads.min(vcpus)).flat_map(|thread| (thread..vcpus).step_by(threads));
        in_order.cycle().nth(id.index() % vcpus).expect("every vCPU is a thread of a core")
    }

    /// Boots again at `now`; the statistics stay.
    pub fn reboot(&mut self, now: Time, seed: u64, domain: u64) {
        let stats = std::mem::take(&mut self.stats);
        let spin_ns = self.spin_ns;
        *self = Kernel::new(&self.config.clone(), now, seed, domain);
        (self.stats, self.spin_ns) = (stats, spin_ns);
    }

    /// Configuration of the kernel; guests that are alike share it.
    pub fn config(&self) -> &Arc<KernelConfig> {
        &self.config
    }

    /// Number of vCPUs.
    pub fn vcpus(&self) -> usize {
        self.vcpus.len()
    }

    /// The applications, as configured.
    pub fn apps(&self) -> &Table<AppId, AppConfig> {
        &self.config.apps
    }

    /// Achievements of each application.
    pub fn stats(&self) -> &Table<AppId, AppStats> {
        &self.stats
    }

    /// CPU time that tasks burnt waiting for locks, ns.
    pub fn spin_ns(&self) -> Span {
        self.spin_ns
    }

    /// Counts the jobs whose deadlines have passed by now: those not done are missed, too.
    pub fn judge_deadlines(&mut self, now: Time) {
        for task in self.tasks.iter_mut() {
            self.stats[task.app].failed += task.overdue(now);
        }
    }

    /// Sets all statistics to zero.
    pub fn reset_stats(&mut self) {
        self.stats.iter_mut().for_each(AppStats::reset);
        self.spin_ns = Span::ZERO;
    }

    /// Counts a failed unit of work of an application.
    pub fn count_failure(&mut self, app: AppId) {
        self.stats[app].failed += 1;
    }

    // ---- what a vCPU does ----

    /// The next use of `vcpu` by its tasks.
    pub fn next(&mut self, vcpu: usize, now: Time) -> Next {
        let of_kernel = &mut self.vcpus[vcpu];
        while let Some(id) = of_kernel.take_sleeper(now) {
            let task = &mut self.tasks[id];
            task.state = State::Ready;
            of_kernel.wake(id, task);
        }
        of_kernel.begin_own_work(now, self.config.wake_ns, !self.config.idle_ns.is_zero());
        if of_kernel.own_work > Span::ZERO {
            return Next::Kernel(of_kernel.own_work);
        }
        while let Some(id) = self.vcpus[vcpu].choose() {
            if let Some(next) = self.advance(vcpu, id, now) {
                return next;
            }
        }
        let vcpu = &mut self.vcpus[vcpu];
        if std::mem::take(&mut vcpu.winds_down) {
            vcpu.own_work = self.config.idle_ns;
            return Next::Kernel(vcpu.own_work);
        }
        vcpu.idle = true;
        if let Some(tick) = &mut vcpu.tick {
            tick.go_idle(now);
        }
        Next::Idle
    }

    /// The next use of a vCPU by its current task; `None`: the vCPU has to choose again.
    fn advance(&mut self, vcpu: usize, id: TaskId, now: Time) -> Option<Next> {
        let vcpu = &mut self.vcpus[vcpu];
        let task = &mut self.tasks[id];
        if task.context == Context::FurtherThread {
            task.context = Context::Thread;
            vcpu.hand_over(id, task);
            return None;
        }
        let config = &self.config.apps[task.app];
        if let Some(tick) = &mut vcpu.tick
            && config.softirq != Softirq::All
        {
            tick.restart();
        }
        while task.state == State::Ready {
            match task.advance(&config.script, self.config.page_fault_ns, now) {
                Demand::Compute(span) => task.state = State::Computes(span),
                Demand::Io(io) => {
                    if config.softirq == Softirq::First {
                        task.pass_on(io);
                    }
                    return Some(Next::Io(id, io));
                }
                Demand::Done { response, late } => {
                    let stats = &mut self.stats[task.app];
                    stats.complete(response, now);
                    stats.failed += u64::from(late);
                }
                Demand::Kernel(call) => {
                    self.serve(id, call, now);
                    return None;
                }
            }
        }
        if vcpu.should_preempt(task) {
            vcpu.current = None;
            vcpu.push(id, task);
            return None;
        }
        vcpu.began = now;
        let State::Computes(left) = task.state else { return Some(Next::Spin) };
        let tick = vcpu.tick.as_ref().and_then(|tick| tick.until_busy(now));
        let most = tick.map_or(left, |tick| tick.min(left));
        let shares = task.rank() == Rank::Other && !vcpu.queue.is_empty();
        Some(Next::Run(if shares { most.min(vcpu.slice) } else { most }))
    }

    /// Accounts for `span` that `vcpu` has computed, or spun.
    #[inline]
    pub fn computed(&mut self, vcpu: usize, span: Span) {
        let Vcpu { current, slice, began, own_work, .. } = &mut self.vcpus[vcpu];
        if *own_work > Span::ZERO {
            *own_work -= span.min(*own_work);
            return;
        }
        let Some(id) = current else { return };
        let task = &mut self.tasks[*id];
        *slice -= span;
        task.vruntime += span;
        let State::Computes(left) = task.state else {
            self.spin_ns += span;
            return;
        };
        task.state = if span < left { State::Computes(left - span) } else { State::Ready };
        let app = task.app;
        if self.config.apps[app].script.unit == Unit::CpuMillisecond {
            let computed = &mut self.apps[app].computed;
            *computed += span;
            self.stats[app].count((*computed / CPU_UNIT) as u64, *began + span);
            *computed = *computed % CPU_UNIT;
        }
    }

    /// The current task of `vcpu`.
    #[inline]
    pub fn current(&self, vcpu: usize) -> Option<TaskId> {
        self.vcpus[vcpu].current
    }

    /// The application that a task belongs to.
    pub fn app_of(&self, task: TaskId) -> AppId {
        self.tasks[task].app
    }

    /// The request that a task has taken last, if it has taken one.
    pub fn request_of(&self, task: TaskId) -> Option<Request> {
        self.tasks[task].request
    }

    /// The task of an application that has taken a request.
    pub fn server_of(&self, app: AppId, request: &Request) -> Option<TaskId> {
        let serves = |(_, task): &(TaskId, &Task)| task.app == app && task.request == Some(*request);
        self.tasks.enumerate().find(serves).map(|(id, _)| id)
    }

    /// The vCPU of a task, and the task's state there.
    pub fn standing(&self, id: TaskId) -> (usize, Standing) {
        let task = &self.tasks[id];
        let vcpu = &self.vcpus[task.vcpu()];
        let standing = match task.state {
            State::Waits => Standing::Waits,
            State::Sleeps => Standing::Sleeps,
            _ if vcpu.current != Some(id) => Standing::Queued,
            State::Spins => Standing::Spins,
            State::Ready | State::Computes(_) => Standing::Current,
        };
        (task.vcpu(), standing)
    }

    // ---- waiting and going on ----

    /// Makes a task, the current one of its vCPU, wait until it is resumed.
    pub fn wait(&mut self, id: TaskId) {
        let task = &mut self.tasks[id];
        task.state = State::Waits;
        let left = self.vcpus[task.vcpu()].current.take();
        debug_assert_eq!(left, Some(id), "only the current task of a vCPU can begin to wait");
    }

    /// Lets a waiting task continue, on a free vCPU rather than behind others on its own: the first of a free core, if the
    /// kernel knows of cores with several threads.
    pub fn resume(&mut self, id: TaskId) {
        if self.tasks[id].state != State::Waits {
            return;
        }
        self.tasks[id].state = State::Ready;
        let own = self.tasks[id].vcpu();
        let free = |vcpu: &Vcpu| vcpu.online && vcpu.load() == 0;
        let vcpu = match free(&self.vcpus[own]) {
            true => own,
            false => {
                let threads = self.threads_per_core();
                let mut cores = self.vcpus.chunks(threads);
                let free_core = cores.position(|core| core.iter().all(free)).map(|core| core * threads);
                free_core.or_else(|| self.vcpus.iter().position(free)).unwrap_or(own)
            }
        };
        self.move_task(id, own, vcpu);
    }

    /// Makes a task that is in no queue runnable on vCPU `to`, with its virtual run time relative to that vCPU's as it
    /// was on `from`.
    fn move_task(&mut self, id: TaskId, from: usize, to: usize) {
        let task = &mut self.tasks[id];
        task.vruntime += self.vcpus[to].vruntime - self.vcpus[from].vruntime;
        task.move_to(to);
        self.vcpus[to].wake(id, task);
        self.kicks.push(to);
    }

    /// Gives a task the stream that was opened for it.
    pub fn set_stream(&mut self, task: TaskId, stream: ConnectionId) {
        self.tasks[task].stream = Some(stream);
    }

    /// Takes a vCPU that should look for work now.
    #[inline]
    pub fn take_kick(&mut self) -> Option<usize> {
        self.kicks.pop()
    }

    /// The time at which the next sleeper of `vcpu` is woken (`NEVER`: there is none).
    #[inline]
    pub fn next_timer(&self, vcpu: usize) -> Time {
        self.vcpus[vcpu].next_timer()
    }

    // ---- services ----

    /// The service of an application, if it is one.
    pub fn service(&self, app: AppId) -> Option<&Service> {
        self.apps[app].service.as_deref()
    }

    /// The service of an application, mutable.
    pub fn service_mut(&mut self, app: AppId) -> Option<&mut Service> {
        self.apps[app].service.as_deref_mut()
    }

    /// Gives a request to a task of the service that waits for one, or queues it.
    pub fn request(&mut self, app: AppId, request: Request) {
        let Some(service) = &mut self.apps[app].service else { return };
        if let Some(id) = service.offer(request) {
            self.tasks[id].take(request, &self.config.apps[app].script);
            self.resume(id);
        }
    }

    // ---- vCPUs that come and go ----

    /// Brings a vCPU online: it takes over runnable tasks of the busiest ones.
    pub fn bring_online(&mut self, vcpu: usize) {
        self.vcpus[vcpu].online = true;
        while let Some(busiest) = (0..self.vcpus.len()).max_by_key(|&other| self.vcpus[other].load())
            && self.vcpus[busiest].load() > self.vcpus[vcpu].load() + 1
            && let Some(Reverse((.., id))) = self.vcpus[busiest].queue.pop()
        {
            self.move_task(id, busiest, vcpu);
        }
    }

    /// Takes a vCPU offline: its tasks continue elsewhere.
    pub fn take_offline(&mut self, vcpu: usize) {
        self.vcpus[vcpu].online = false;
        let Some(other) = self.vcpus.iter().position(|vcpu| vcpu.online) else { return };
        let mut off = Vcpu::new(false, Time::ZERO, self.tasks.len(), self.config.slice_ns);
        off.tick = self.vcpus[vcpu].tick.clone();
        let mut from = std::mem::replace(&mut self.vcpus[vcpu], off);
        let to = &mut self.vcpus[other];
        for task in self.tasks.iter_mut().filter(|task| task.vcpu() == vcpu) {
            task.move_to(other);
            task.vruntime += to.vruntime - from.vruntime;
        }
        let queued = std::iter::from_fn(|| from.queue.pop().map(|Reverse((.., id))| id));
        for id in from.current.into_iter().chain(queued) {
            to.wake(id, &mut self.tasks[id]);
        }
        to.adopt_sleepers(from);
        self.kicks.push(other);
    }
}
