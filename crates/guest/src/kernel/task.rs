//! A task: its place in its script, and its next demand.

use vcpulab_host::{Span, Time};

use super::deadlines::Deadlines;
use super::stretch::Stretch;
use crate::ids::{AppId, ChannelId, ConnectionId};
use crate::random::Random;
use crate::script::{Call, DiskAccess, Peer, Script, Step};

/// CPU time between two looks of a `Runtime` step at the clock. (rt-app's own busy loop works 32 us between them.)
const RUNTIME_STEP: Span = Span::from_us(32);

/// Number of steps without CPU time at one instant after which they cost some: a script that loops without computing or
/// waiting would stay at one instant forever.
const FREE_STEPS_MAX: u32 = 10_000;

/// CPU time of that number of steps: about 10 ns a step, as for a system call that has nothing to do.
const FREE_STEPS: Span = Span::from_us(100);

/// A request to a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The connection that it came over.
    pub connection: ConnectionId,
    /// Class of the request.
    pub class: u32,
    /// Bytes of the answer that it asks for.
    pub asks: u32,
    /// Time of arrival of the request.
    pub since: Time,
}

/// A demand of a task on the surroundings of its guest kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Io {
    /// Answer the request of this connection.
    Reply { connection: ConnectionId, bytes: u32 },
    /// Send an event over a channel.
    Notify(ChannelId),
    /// Continue with an event of a channel.
    AwaitEvent(ChannelId),
    /// Ask a service, and continue with the answer.
    Call(Call),
    /// Open a stream, and continue when it is open.
    Connect(Peer),
    /// Enqueue bytes for the stream.
    Send { stream: ConnectionId, bytes: u32, push: bool },
    /// Take bytes from the stream, once they are there.
    Receive { stream: ConnectionId, bytes: u32 },
    /// Access the disk.
    Disk(DiskAccess),
    /// Continue when a file of this size, one of those that the application serves, is in memory.
    ReadFile { bytes: u32 },
    /// Continue when all written data is on the disk.
    Sync,
}

/// A call of a task to its guest kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub(crate) enum Syscall {
    /// Sleep until this time.
    Sleep(Time),
    /// Sleep until the kernel has had this number of ticks.
    Ticks(u32),
    /// Wait for a request.
    Await,
    /// Take a lock.
    Lock(u32),
    /// Give a lock back.
    Unlock(u32),
    /// Wait at a point; release a lock meanwhile.
    Wait { at: u32, unlocks: Option<u32> },
    /// Wake the tasks that wait at a point: all, or the first.
    Wake { at: u32, all: bool },
    /// Wait at a point until this number of tasks is there.
    Barrier { at: u32, tasks: u32 },
    /// End for good.
    Stop,
}

/// A demand of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub(crate) enum Demand {
    /// To compute for this long (more than 0).
    Compute(Span),
    /// To be served by the guest kernel.
    Kernel(Syscall),
    /// To be served by the surroundings of the guest kernel.
    Io(Io),
    /// To have a unit of work counted.
    Done { response: Span, late: bool },
}

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Runnable: its next step begins when the task is current.
    Ready,
    /// Runnable, with this much of its computation left (more than 0).
    Computes(Span),
    /// Runnable, and spins until a lock is free.
    Spins,
    /// Waits until a time.
    Sleeps,
    /// Waits for something other than time.
    Waits,
}

/// The context in which the work of a task is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Context {
    /// A thread.
    Thread,
    /// A further thread, which goes behind all work that waits.
    FurtherThread,
    /// Interrupts.
    Softirq,
}

/// The order of runnable tasks before their virtual run times: work of interrupts, the holder of a spin lock, those that spin
/// for one, others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rank {
    Softirq,
    Holds,
    Spins,
    Other,
}

/// A running task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub app: AppId,
    vcpu: u32,
    pub state: State,
    pub context: Context,
    /// Virtual run time, compared with those of the other tasks on the vCPU.
    pub vruntime: Span,
    /// Number of spin locks that it holds.
    pub holds: u32,
    /// The stream of the task, if it has one.
    pub stream: Option<ConnectionId>,
    pub request: Option<Request>,
    position: u32,
    counters: Box<[u32]>,
    timer: Time,
    busy_until: Time,
    release: Option<Time>,
    /// Most tasks have none.
    stretch: Option<Box<Stretch>>,
    deadlines: Option<Box<Deadlines>>,
    began: Time,
    random: Random,
    /// Steps taken at one instant, and that instant.
    free_steps: u32,
    stepped_at: Time,
}

impl Task {
    pub fn new(app: AppId, vcpu: usize, script: &Script, now: Time, random: Random) -> Self {
        Task {
            app,
            vcpu: vcpu as u32,
            state: State::Ready,
            context: Context::Thread,
            vruntime: Span::ZERO,
            holds: 0,
            stream: None,
            request: None,
            position: 0,
            counters: vec![0; script.counters as usize].into(),
            timer: now,
            busy_until: now,
            release: None,
            stretch: None,
            deadlines: Deadlines::of(script).map(Box::new),
            began: now,
            random,
            free_steps: 0,
            stepped_at: now,
        }
    }

    /// Begins at that step, that of the first phase of its stretch.
    pub fn go_in_stretches(&mut self, stretch: Stretch, first: u32) {
        (self.stretch, self.position) = (Some(Box::new(stretch)), first);
    }

    /// Whether the task's next step waits for a time.
    fn is_timed(&self, script: &Script) -> bool {
        let timed = |step: &Step| {
            matches!(
                step,
                Step::Sleep(_)
                    | Step::SleepDrawn(_)
                    | Step::Timer(_)
                    | Step::Ticks(_)
                    | Step::Think(_)
                    | Step::Release(_)
            )
        };
        script.steps.get(self.position as usize).is_some_and(timed)
    }

    /// The place of the task among the runnable ones.
    pub fn rank(&self) -> Rank {
        match self.state {
            _ if self.context == Context::Softirq => Rank::Softirq,
            State::Spins => Rank::Spins,
            _ if self.holds > 0 => Rank::Holds,
            _ => Rank::Other,
        }
    }

    /// Passes work between interrupts and threads: interrupts handle an awaited event until the task notifies another one; another thread does the rest.
    pub fn pass_on(&mut self, io: Io) {
        match io {
            Io::AwaitEvent(_) => self.context = Context::Softirq,
            Io::Notify(_) => self.context = Context::FurtherThread,
            _ => {}
        }
    }

    /// Begins the next step if it waits for a time, and no further step. The demand of the step; `None` if its time is over.
    pub fn begin_timed(&mut self, script: &Script, now: Time) -> Option<Demand> {
        if !self.is_timed(script) {
            return None;
        }
        let step = script.steps[self.position as usize];
        self.position += 1;
        self.begin(step, script, Span::ZERO, now)
    }

    /// The task's next demand; the previous demand has been met. `page_fault` is the CPU time of a page fault.
    pub fn advance(&mut self, script: &Script, page_fault: Span, now: Time) -> Demand {
        if self.busy_until > now {
            return Demand::Compute((self.busy_until - now).min(RUNTIME_STEP));
        }
        if now > self.stepped_at {
            (self.stepped_at, self.free_steps) = (now, 0);
        }
        loop {
            self.free_steps += 1;
            if self.free_steps > FREE_STEPS_MAX {
                self.free_steps = 0;
                return Demand::Compute(FREE_STEPS);
            }
            let Some(&step) = script.steps.get(self.position as usize) else {
                if script.steps.is_empty() {
                    return Demand::Kernel(Syscall::Stop);
                }
                self.position = 0;
                continue;
            };
            self.position += 1;
            if let Some(demand) = self.begin(step, script, page_fault, now) {
                return demand;
            }
        }
    }

    /// Begins a step, which may change the position of the next one. The demand of the step, if it has one.
    fn begin(&mut self, step: Step, script: &Script, page_fault: Span, now: Time) -> Option<Demand> {
        let syscall = |call| Some(Demand::Kernel(call));
        let io = |io| Some(Demand::Io(io));
        match step {
            Step::Compute { span, per_byte_ps } => {
                let asks = self.request.map_or(0, |request| i64::from(request.asks));
                let cost = span + Span::from_ns(asks * per_byte_ps / 1000);
                compute(self.random.spread(cost, script.spread_percent))
            }
            Step::ComputeDrawn(number) => compute(self.random.drawn(&script.distributions[number as usize])),
            Step::PageFaults(count) => compute(i64::from(count) * page_fault),
            Step::Runtime(span) => {
                self.busy_until = now + span;
                compute(span.min(RUNTIME_STEP))
            }
            Step::Sleep(span) => sleep(now.saturating_add(span), now),
            Step::SleepDrawn(number) => {
                let span = self.random.drawn(&script.distributions[number as usize]);
                sleep(now.saturating_add(span), now)
            }
            Step::Timer(span) => {
                // Late: the period starts anew, as rt-app's does.
                self.timer = (self.timer + span).max(now);
                sleep(self.timer, now)
            }
            Step::Ticks(ticks) => syscall(Syscall::Ticks(ticks)),
            Step::Think(mean) => {
                let span = self.random.exponential(1e9 / mean.ns().max(1) as f64);
                self.began = now.saturating_add(span);
                sleep(self.began, now)
            }
            Step::Release(period) => {
                self.began = self.release(period, now);
                sleep(self.began, now)
            }
            Step::Lock(lock) => syscall(Syscall::Lock(lock)),
            Step::Unlock(lock) => syscall(Syscall::Unlock(lock)),
            Step::Wait { at, unlocks } => syscall(Syscall::Wait { at, unlocks }),
            Step::Wake { at, all } => syscall(Syscall::Wake { at, all }),
            Step::Barrier { at, tasks } => syscall(Syscall::Barrier { at, tasks }),
            Step::Await => syscall(Syscall::Await),
            Step::Notify(channel) => io(Io::Notify(channel)),
            Step::AwaitEvent(channel) => io(Io::AwaitEvent(channel)),
            Step::Reply(bytes) => {
                let Request { connection, asks, .. } = self.request?;
                io(Io::Reply { connection, bytes: bytes.unwrap_or(asks) })
            }
            Step::Call(call) => io(Io::Call(call)),
            Step::Connect(peer) => {
                if self.stream.is_none() {
                    io(Io::Connect(peer))
                } else {
                    None
                }
            }
            Step::Send { bytes, push } => io(Io::Send { stream: self.stream?, bytes, push }),
            Step::Receive(bytes) => io(Io::Receive { stream: self.stream?, bytes }),
            Step::Disk(access) => io(Io::Disk(access)),
            Step::ReadAsked => io(Io::ReadFile { bytes: self.request?.asks }),
            Step::Sync => io(Io::Sync),
            Step::Done => Some(self.done(now, None)),
            Step::Deadline(deadline) => Some(self.done(now, Some(deadline))),
            Step::Chance { ppm, skip } => {
                if self.random.below(1_000_000) >= u64::from(ppm) {
                    self.position += skip;
                }
                None
            }
            Step::Repeat { from, times, counter } => {
                let count = &mut self.counters[counter as usize];
                *count += 1;
                if *count < times {
                    self.position = from;
                } else {
                    *count = 0;
                }
                None
            }
            Step::NextPhase => {
                if let (Some(stretch), Some(of)) = (&mut self.stretch, &script.stretches) {
                    self.position = stretch.advance(of);
                }
                None
            }
            Step::Restart => {
                self.position = 0;
                None
            }
            Step::Stop => {
                self.position -= 1;
                syscall(Syscall::Stop)
            }
        }
    }

    /// The release of the next job. The first is at a random time: releases of different tasks and replications are not in
    /// step.
    fn release(&mut self, period: Span, now: Time) -> Time {
        let release = match self.release {
            Some(last) => last.saturating_add(period),
            None => now + Span::from_ns(self.random.below(period.ns().max(1) as u64) as i64),
        };
        self.release = Some(release);
        release
    }

    fn done(&mut self, now: Time, deadline: Option<Span>) -> Demand {
        let response = now - self.began;
        self.began = now;
        let late = match (&mut self.deadlines, self.release) {
            (Some(deadlines), Some(release)) => deadlines.complete(release, now),
            _ => deadline.is_some_and(|deadline| response > deadline),
        };
        Demand::Done { response, late }
    }

    /// The number of the task's vCPU.
    pub fn vcpu(&self) -> usize {
        self.vcpu as usize
    }

    /// Moves the task to another vCPU.
    pub fn move_to(&mut self, vcpu: usize) {
        self.vcpu = vcpu as u32;
    }

    /// Counts the jobs that are overdue by now and were not counted before.
    pub fn overdue(&mut self, now: Time) -> u64 {
        match (&mut self.deadlines, self.release) {
            (Some(deadlines), Some(release)) => deadlines.overdue(release, now),
            _ => 0,
        }
    }

    /// Takes a request, and continues at the steps for its class.
    pub fn take(&mut self, request: Request, script: &Script) {
        self.request = Some(request);
        self.stream = Some(request.connection);
        self.began = request.since;
        if let Some(&position) = script.classes.get(request.class as usize) {
            self.position = position;
        }
    }
}

/// The demand of a step that computes for this long.
fn compute(span: Span) -> Option<Demand> {
    (span > Span::ZERO).then_some(Demand::Compute(span))
}

/// The demand of a step that sleeps until then.
fn sleep(until: Time, now: Time) -> Option<Demand> {
    (until > now).then_some(Demand::Kernel(Syscall::Sleep(until)))
}
