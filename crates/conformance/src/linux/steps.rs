//! Replays a recording step by step.
//!
//! The kernel's clock is not in the trace, but follows from it: a thread that was switched in at some time and then charged
//! with some ns tells what the clock said at the charge. A wake-up that charges nobody is placed by its line's time.

use std::collections::{BTreeMap, BTreeSet};

use vcpulab_host::{Class, GroupConfig, GroupId, PcpuId, Span, Time};

use super::beginning;
use super::clock::{Cause, Lateness, median};
use super::error::LinuxError;
use super::folder::Setup;
use super::outcome::{Beginning, Difference, Outcome, Whose};
use super::timers::Candidates;
use super::trace::{Event, Line, PRIO_FAIR, PRIO_NICE_0};

/// The only CPU.
const CPU: PcpuId = PcpuId(0);

/// A scheduler of the fair class, driven from outside.
pub trait Steps {
    /// Name of a task.
    type Task: Copy + PartialEq;
    /// Makes a control group.
    fn add_group(&mut self, config: &GroupConfig) -> GroupId;
    /// Makes a task, which is blocked (`None`: in the root group).
    fn add_task(&mut self, group: Option<GroupId>, class: Class, nice: i8) -> Self::Task;
    /// Sets the virtual run time of a blocked task to the value at which it has `_virtual_time` after `_ran` ns.
    fn set_vruntime_before(&mut self, _task: Self::Task, _virtual_time: u64, _ran: u64) {}
    /// Greatest lag, positive or negative, with which a task may come back, in virtual time.
    fn lag_limit(&self) -> Span {
        Span::ZERO
    }
    /// Sets the lag of a blocked task of the weight of nice 0.
    fn set_vlag(&mut self, _task: Self::Task, _lag: Span) {}
    /// Sets the lag of a group of the weight of nice 0.
    fn set_group_vlag(&mut self, _group: GroupId, _lag: Span) {}
    /// Sets the runtime that a limited group has used of the rest that its queue kept when its last thread blocked.
    fn set_used_runtime(&mut self, _group: GroupId, _used: Span) {}
    /// Queues a task and decides whether it preempts: may raise the flag.
    fn wake(&mut self, now: Time, cpu: PcpuId, task: Self::Task);
    /// The current task blocks; a choice follows.
    fn block(&mut self, now: Time, cpu: PcpuId);
    /// The current task yields; a choice follows.
    fn yield_task(&mut self, now: Time, cpu: PcpuId);
    /// The current task returns to user mode. True: a limit stops it there; a choice follows.
    fn throttle_task(&mut self, _now: Time, _cpu: PcpuId) -> bool {
        false
    }
    /// A limit stops the current task though CPU time is left. False: the task has no such limit.
    fn exhaust_limit(&mut self, _now: Time, _cpu: PcpuId) -> bool {
        false
    }
    /// The kernel chose a task: ends what limits do to the task, if anything.
    fn run_despite_limits(&mut self, _now: Time, _task: Self::Task) {}
    /// The tick: may raise the flag.
    fn task_tick(&mut self, now: Time, cpu: PcpuId);
    /// Time at which the running task's request ends by a timer.
    fn hrtick_at(&self, _cpu: PcpuId) -> Option<Time> {
        None
    }
    /// The timer that ends the running task's request: raises the flag.
    fn hrtick(&mut self, _now: Time, _cpu: PcpuId) {}
    /// Stops the timer that ends the running task's request.
    fn hrtick_clear(&mut self, _cpu: PcpuId) {}
    /// A group's period timer.
    fn period_timer(&mut self, now: Time, group: GroupId);
    /// Chooses the next task.
    fn pick_task(&mut self, now: Time, cpu: PcpuId) -> Option<Self::Task>;
    /// After a choice: switches to this task, which the kernel chose.
    fn set_next_task(&mut self, now: Time, cpu: PcpuId, task: Option<Self::Task>);
    /// Whether the CPU is flagged.
    fn need_resched(&self, cpu: PcpuId) -> bool;
    /// Sets the flag.
    fn set_need_resched(&mut self, cpu: PcpuId, on: bool);
}

/// Longest time between the time at which a request's timer should expire and the clock at its end: the timer is started some µs
/// after the clock was read, and interrupts may be off.
const LATE: Span = Span::from_us(50);

/// Most replays that look for the groups of period timers.
const TRIES_MAX: u32 = 100;

/// Replays a recording of one CPU. What it does not tell of the time before it (which groups its period timers are of, where the
/// host's own threads stood) is what the fewest differences are found with, by small changes, one at a time.
///
/// # Errors
///
/// It has more period timers than groups with `max`.
pub fn replay<S: Steps + Clone>(setup: &Setup, lines: &[Line], steps: &S) -> Result<Outcome, LinuxError> {
    let lateness = Lateness::of(lines);
    // `None`: more decisions differ than that.
    let with = |beginning: &Beginning, most: u64| {
        let mut replay = Replay::new(setup, lines, &lateness, steps.clone(), beginning);
        for at in 0..lines.len() {
            replay.line(at);
            if replay.outcome.differing > most {
                return None;
            }
        }
        Some(Outcome { beginning: beginning.clone(), ..replay.outcome })
    };
    // The number of lines up to the first difference.
    let agrees = |beginning: &Beginning| {
        let mut replay = Replay::new(setup, lines, &lateness, steps.clone(), beginning);
        (0..lines.len()).find(|&at| {
            replay.line(at);
            replay.outcome.differing > 0
        })
    };
    let candidates = Candidates::of(setup, lines);
    let begun = Beginning { timers: candidates.guessed()?, ..Beginning::default() };
    let mut best = with(&begun, u64::MAX).unwrap_or_default();
    let mut tries = 0;
    'better: loop {
        for timers in candidates.exchanged(&best.beginning.timers) {
            tries += 1;
            if tries > TRIES_MAX || best.differing == 0 {
                break 'better;
            }
            let other = Beginning { timers, ..best.beginning.clone() };
            if let Some(outcome) =
                with(&other, best.differing).filter(|found| found.differing < best.differing)
            {
                best = outcome;
                continue 'better;
            }
        }
        break;
    }
    // EEVDF keeps a sleeping thread's lag; under CFS only groups lag.
    let whose = match setup.tunables.base_slice {
        Some(_) => beginning::of_host(setup, lines),
        None => beginning::nested(setup),
    };
    let untold: BTreeSet<Whose> = whose.iter().copied().chain(beginning::limited(setup)).collect();
    if best.differing > 0 && !untold.is_empty() {
        let drawn = beginning::draw_lags(&best.beginning, &untold, steps.lag_limit(), agrees);
        best = with(&drawn, best.differing).unwrap_or(best);
    }
    best = beginning::with_lags(best, &whose, steps.lag_limit(), with);
    Ok(beginning::with_lags(best, &beginning::limited(setup), beginning::USED_MAX, with))
}

struct Known<T> {
    task: T,
    queued: bool,
    /// Whether the thread has woken before.
    woke: bool,
}

struct Replay<'a, S: Steps> {
    setup: &'a Setup,
    lines: &'a [Line],
    steps: S,
    tasks: BTreeMap<u32, Known<S::Task>>,
    /// The fair thread that runs.
    current: Option<u32>,
    /// Up to where it is charged.
    charged: i64,
    /// The kernel's clock, as last read.
    clock: i64,
    /// Time from the clock that the last charge by a timer told to the time of its line.
    written_after: i64,
    lateness: &'a Lateness,
    /// Times from the clock to the lines of charges, less their lateness, until the first switch at which the clock is read again.
    behind: Vec<i64>,
    /// Median of the times in `behind`, once it is known.
    settled: Option<i64>,
    /// A wake-up's clock less the time of its line: the last that was told by a charge.
    ahead: i64,
    begun: bool,
    /// Whether the kernel's CPU is flagged.
    flag: bool,
    /// A wake-up is under way, whose flag is known before the kernel raises it.
    waking: bool,
    /// A yield, until its choice.
    yielding: bool,
    /// Whether the CPU was flagged as the current thread was last charged.
    charged_flagged: bool,
    beginning: &'a Beginning,
    groups: Vec<GroupId>,
    outcome: Outcome,
}

impl<'a, S: Steps> Replay<'a, S> {
    fn new(
        setup: &'a Setup,
        lines: &'a [Line],
        lateness: &'a Lateness,
        mut steps: S,
        beginning: &'a Beginning,
    ) -> Self {
        let groups: Vec<GroupId> = setup.groups.iter().map(|group| steps.add_group(group)).collect();
        let found = |group: GroupId| groups.get(group.index()).copied();
        for (&whose, &lag) in &beginning.lags {
            match whose {
                Whose::Thread(_) => {}
                Whose::Group(group) => {
                    found(group).into_iter().for_each(|group| steps.set_group_vlag(group, lag))
                }
                Whose::Limit(group) => {
                    found(group).into_iter().for_each(|group| steps.set_used_runtime(group, lag))
                }
            }
        }
        let mut tasks = BTreeMap::new();
        for (&thread, made) in &setup.threads {
            let group = made.group.and_then(|group| groups.get(group.index()).copied());
            let task = steps.add_task(group, made.class, made.nice);
            tasks.insert(thread, Known { task, queued: false, woke: false });
        }
        Replay {
            setup,
            lines,
            steps,
            tasks,
            current: None,
            charged: 0,
            clock: 0,
            written_after: 0,
            lateness,
            behind: Vec::new(),
            settled: None,
            ahead: 0,
            begun: false,
            flag: false,
            waking: false,
            yielding: false,
            charged_flagged: false,
            beginning,
            groups,
            outcome: Outcome::default(),
        }
    }

    fn line(&mut self, at: usize) {
        let line = &self.lines[at];
        if !self.begun {
            self.begin(line);
        }
        if self.of_tick(at) {
            return;
        }
        let is_switch = matches!(line.event, Event::Switch { .. });
        if self.flag && !line.flagged && !is_switch && !self.waking && self.current.is_some() {
            // The flag is gone: a choice that kept the thread and charged it with nothing.
            self.decision(line.number, self.current);
        }
        self.miss_request_end(line);
        match &line.event {
            Event::Tick => self.tick(at),
            Event::RequestEnd => self.request_end(at),
            Event::Refill(timer) => self.refill(at, timer),
            &Event::Waking(thread, prio) => {
                self.waking = true;
                self.wake(at, thread, prio);
            }
            Event::Wakeup(_) => self.waking = false,
            &Event::Charge(thread, runtime) => self.charge(at, thread, runtime),
            &Event::Switch { from, runnable, in_kernel, to } => {
                self.switch(at, from, [runnable, in_kernel], to);
            }
            Event::Migrate(..) | Event::Other => {}
        }
    }

    fn refill(&mut self, at: usize, timer: &str) {
        let group = self.beginning.timers.get(timer).and_then(|group| self.groups.get(group.index()));
        let Some(&group) = group else { return };
        // A thread that the refill releases is enqueued, which may charge the running one.
        let charge = self.lines.get(at + 1).filter(|next| next.interrupt).map(|next| &next.event);
        self.clock = match charge {
            Some(&Event::Charge(thread, runtime)) if self.current == Some(thread) => self.charged + runtime,
            _ => self.estimate(&self.lines[at]),
        };
        self.steps.period_timer(Time::from_ns(self.clock), group);
        if self.current.is_some() {
            self.steps.set_need_resched(CPU, self.flag);
        }
    }

    /// The thread that runs at the beginning.
    fn begin(&mut self, line: &Line) {
        self.begun = true;
        let charge = match line.event {
            Event::Charge(_, runtime) => runtime,
            _ => 0,
        };
        self.clock = line.time_ns - charge;
        self.charged = self.clock;
        if line.thread == 0 {
            return;
        }
        let prio = match line.event {
            Event::Switch { from, .. } => from.1,
            _ => PRIO_NICE_0,
        };
        if self.awake(line.thread, prio) {
            self.current = Some(line.thread);
            let now = Time::from_ns(self.clock);
            self.steps.pick_task(now, CPU);
            self.steps.set_next_task(now, CPU, self.task(self.current));
        }
    }

    fn task(&self, thread: Option<u32>) -> Option<S::Task> {
        thread.and_then(|thread| self.tasks.get(&thread)).map(|known| known.task)
    }

    /// Makes a thread known; whether it is of the fair class.
    fn known(&mut self, thread: u32, prio: i32) -> bool {
        if thread == 0 || (prio < PRIO_FAIR && !self.tasks.contains_key(&thread)) {
            return false;
        }
        let nice = i8::try_from(prio.saturating_sub(PRIO_NICE_0).clamp(-20, 19)).unwrap_or(0);
        let (steps, lags) = (&mut self.steps, &self.beginning.lags);
        self.tasks.entry(thread).or_insert_with(|| {
            let task = steps.add_task(None, Class::Other, nice);
            if let Some(&lag) = lags.get(&Whose::Thread(thread)) {
                steps.set_vlag(task, lag);
            }
            Known { task, queued: false, woke: false }
        });
        true
    }

    /// Queues a thread whose wake-up the recording does not tell; whether it is of the fair class.
    fn awake(&mut self, thread: u32, prio: i32) -> bool {
        if !self.known(thread, prio) {
            return false;
        }
        if let Some(known) = self.tasks.get_mut(&thread).filter(|known| !known.queued) {
            known.queued = true;
            self.steps.wake(Time::from_ns(self.clock), CPU, known.task);
        }
        true
    }

    /// The clock, by a line's time.
    fn estimate(&self, line: &Line) -> i64 {
        self.clock.max(line.time_ns + self.ahead)
    }

    fn compare(&mut self, line: usize, what: &'static str, same: bool, texts: impl FnOnce() -> [String; 2]) {
        self.outcome.decisions += 1;
        let count = self.outcome.by_kind.entry(what).or_default();
        count.0 += 1;
        if !same {
            count.1 += 1;
            self.outcome.differing += 1;
            self.outcome.first.get_or_insert_with(|| {
                let [expected, got] = texts();
                Difference { line, what, expected, got }
            });
        }
    }

    fn compare_flag(&mut self, line: usize, what: &'static str, expected: bool) {
        let got = self.steps.need_resched(CPU);
        let text = |on| if on { "flags" } else { "does not flag" }.to_owned();
        self.compare(line, what, expected == got, || [text(expected), text(got)]);
        self.flag = expected;
        if expected != got {
            self.steps.set_need_resched(CPU, expected);
        }
    }

    fn decision(&mut self, line: usize, expected: Option<u32>) {
        let now = Time::from_ns(self.clock);
        if std::mem::take(&mut self.yielding) {
            self.steps.yield_task(now, CPU);
        }
        let got = self.steps.pick_task(now, CPU);
        let task = self.task(expected);
        let made = |id| self.setup.threads.get(&id).map(|made| format!(" ({}/{})", made.vm, made.vcpu));
        let run = |id| format!("runs thread {id}{}", made(id).unwrap_or_default());
        let name = |thread: Option<u32>| thread.map_or("idles".to_owned(), run);
        let found = got.and_then(|got| self.tasks.iter().find(|(_, known)| known.task == got));
        let found = found.map(|(&thread, _)| thread);
        self.compare(line, "choice", got == task, || [name(expected), name(found)]);
        if got != task {
            task.into_iter().for_each(|task| self.steps.run_despite_limits(now, task));
        }
        self.steps.set_next_task(now, CPU, task);
        self.steps.set_need_resched(CPU, false);
        self.flag = false;
    }

    fn tick(&mut self, at: usize) {
        let number = self.lines[at].number;
        let (Some(current), Some(next)) = (self.current, self.lines.get(at + 1)) else { return };
        let Event::Charge(thread, runtime) = next.event else { return };
        if thread != current {
            return;
        }
        let now = self.charged + runtime;
        self.told(at + 1, now);
        self.steps.task_tick(Time::from_ns(self.clock), CPU);
        let expected = self.flagged_after(at + 2);
        self.compare_flag(number, "tick", expected);
    }

    /// The end of a request by its timer.
    fn request_end(&mut self, at: usize) {
        let line = &self.lines[at];
        let charge = self.lines.get(at + 1).and_then(|next| match next.event {
            Event::Charge(thread, runtime) if Some(thread) == self.current => Some(runtime),
            _ => None,
        });
        let now = charge.map_or(line.time_ns - self.written_after, |runtime| self.charged + runtime);
        let expiry = self.steps.hrtick_at(CPU).map(|at| at.ns());
        let due = expiry.is_some_and(|expiry| (now - expiry).abs() <= LATE.ns());
        let text = |expiry: i64| format!("expires {} us later", (expiry - now) / 1000);
        self.compare(line.number, "request", due, || {
            ["expires".to_owned(), expiry.map_or("does not expire".to_owned(), text)]
        });
        self.steps.hrtick_clear(CPU);
        if charge.is_some() {
            self.told(at + 1, now);
            self.steps.hrtick(Time::from_ns(self.clock), CPU);
            self.flag = true;
        }
    }

    /// Counts a timer that the kernel would have handled before this line, and did not have.
    fn miss_request_end(&mut self, line: &Line) {
        let Some(expiry) = self.steps.hrtick_at(CPU) else { return };
        if line.event != Event::RequestEnd && line.time_ns - self.written_after > expiry.ns() + LATE.ns() {
            self.compare(line.number, "request", false, || {
                ["does not expire".to_owned(), "expires".to_owned()]
            });
            self.steps.hrtick_clear(CPU);
        }
    }

    /// Sets the clock to the time that a charge tells.
    fn told(&mut self, charge: usize, clock: i64) {
        (self.charged, self.clock) = (clock, clock);
        self.written_after = self.lines[charge].time_ns - clock;
        self.observe(charge);
    }

    /// Notes how late the line of a charge is.
    fn observe(&mut self, charge: usize) {
        if self.settled.is_none() {
            let late = self.lateness.get(Cause::of(self.lines, charge));
            self.behind.push(self.lines[charge].time_ns - self.charged - late);
        }
    }

    /// The clock at a switch at which it is read again.
    fn restart(&mut self, switch: usize) -> Option<i64> {
        if self.settled.is_none() {
            self.settled = median(std::mem::take(&mut self.behind));
        }
        Some(self.lateness.start(self.lines, switch)? - self.settled?)
    }

    /// Whether the line is the charge of a tick or of a request's end, which was handled with that.
    fn of_tick(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| &self.lines[before].event);
        matches!(before, Some(Event::Tick | Event::RequestEnd))
            && matches!(self.lines[at].event, Event::Charge(..))
    }

    /// Whether the CPU is flagged as this line is written, or was as its choice was taken.
    fn flagged_after(&self, at: usize) -> bool {
        let Some(line) = self.lines.get(at) else { return self.flag };
        match line.event {
            Event::Switch { runnable, .. } => runnable,
            _ => line.flagged,
        }
    }

    fn wake(&mut self, at: usize, thread: u32, prio: i32) {
        let line = &self.lines[at];
        // A thread that was about to block and did not is on its queue.
        if !self.known(thread, prio) || self.tasks.get(&thread).is_none_or(|known| known.queued) {
            return;
        }
        let of_it = |line: &&Line| line.event == Event::Wakeup(thread);
        let Some(expected) = self.lines[at..].iter().find(of_it).map(|line| line.flagged) else { return };
        let told = self.clock_of_wake(at, thread);
        if let Some(told) = told {
            self.ahead = told - line.time_ns;
        }
        self.clock = told.unwrap_or_else(|| self.estimate(line)).max(self.clock);
        self.tell_virtual_time(at, thread);
        if let Some(known) = self.tasks.get_mut(&thread) {
            known.queued = true;
            self.steps.wake(Time::from_ns(self.clock), CPU, known.task);
        }
        self.compare_flag(line.number, "wake-up", expected);
    }

    /// Sets the virtual times of threads of one group at the beginning of the recording, from their first charges.
    /// (Virtual times of groups are not recorded, so threads beside groups stay as they are.)
    fn tell_virtual_time(&mut self, at: usize, thread: u32) {
        let in_group = self.setup.threads.get(&thread).is_some_and(|made| made.group.is_some());
        let Some(known) = self.tasks.get_mut(&thread) else { return };
        if std::mem::replace(&mut known.woke, true) || !in_group {
            return;
        }
        let charge = self.lines[at..].iter().find_map(|line| match line.event {
            Event::Charge(charged, ran) if charged == thread => {
                Some((line.virtual_time?, ran.unsigned_abs()))
            }
            _ => None,
        });
        if let Some((virtual_time, ran)) = charge {
            self.steps.set_vruntime_before(known.task, virtual_time, ran);
        }
    }

    /// The clock at a wake-up, if a charge tells it: its own, or that of the choice that it asks for.
    fn clock_of_wake(&self, at: usize, thread: u32) -> Option<i64> {
        let current = self.current?;
        let mut awake = false;
        for line in self.lines.get(at + 1..)? {
            match line.event {
                Event::Charge(charged, runtime) if charged == current => {
                    let full = line.flagged && !line.lazy && !line.interrupt;
                    return (!awake || full).then_some(self.charged + runtime);
                }
                // The clock is read only once if this one asked for the choice.
                Event::Wakeup(woken) if woken == thread && line.flagged => awake = true,
                _ => return None,
            }
        }
        None
    }

    fn charge(&mut self, at: usize, thread: u32, runtime: i64) {
        if self.current != Some(thread) {
            return;
        }
        let line = &self.lines[at];
        self.charged_flagged = line.flagged;
        let now = (self.charged + runtime).max(self.clock);
        self.charged += runtime;
        self.observe(at);
        self.clock = now;
        let before = at.checked_sub(1).map(|before| &self.lines[before].event);
        if line.interrupt || line.depth > 2 || matches!(before, Some(Event::Waking(..))) {
            return;
        }
        let yields = self.setup.threads.get(&thread).is_some_and(|made| made.yields);
        self.yielding = yields && !line.flagged;
        let next = |by: usize| self.lines.get(at + by).map(|line| &line.event);
        match (next(1), next(2)) {
            (Some(Event::Switch { .. }), _) => {}
            // A limit stops the thread, which is charged once more before the switch.
            (Some(&Event::Charge(again, _)), Some(Event::Switch { in_kernel: true, .. }))
                if again == thread && !line.flagged && !self.lines[at + 1].flagged =>
            {
                self.limit(line.number);
            }
            _ => self.decision(line.number, Some(thread)),
        }
    }

    /// A limit stops the current thread as it returns to user mode: it gives way, and nothing asked for a choice.
    fn limit(&mut self, line: usize) {
        let now = Time::from_ns(self.clock);
        let stops = self.steps.throttle_task(now, CPU);
        if stops || self.steps.exhaust_limit(now, CPU) {
            let text = |stops| if stops { "stops the thread" } else { "does not stop the thread" }.to_owned();
            self.compare(line, "limit", stops, || [text(true), text(stops)]);
        }
    }

    fn switch(&mut self, at: usize, from: (u32, i32), [runnable, in_kernel]: [bool; 2], to: (u32, i32)) {
        let line = &self.lines[at];
        if self.current.is_some() && self.current == Some(from.0) {
            if !runnable {
                self.yielding = false;
                self.steps.block(Time::from_ns(self.clock), CPU);
                if let Some(known) = self.tasks.get_mut(&from.0) {
                    known.queued = false;
                }
            } else if (in_kernel || (!self.charged_flagged && !self.yielding)) && !self.flag {
                self.limit(line.number);
            }
            if in_kernel && !self.charged_flagged {
                // The decision reads the clock again, and charges nobody.
                let start = self.restart(at);
                self.clock = start.map_or(self.clock, |start| start.min(line.time_ns).max(self.clock));
            }
        } else if from.0 != 0 {
            self.clock = self.estimate(line);
        }
        let next = self.awake(to.0, to.1).then_some(to.0);
        if next.is_none() && to.0 != 0 {
            // A thread of another class takes over: nothing is chosen here.
            self.steps.set_next_task(Time::from_ns(self.clock), CPU, None);
            self.steps.set_need_resched(CPU, false);
            self.flag = false;
        } else {
            self.decision(line.number, next);
        }
        self.current = next;
        self.charged = self.clock;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::folder::{self, Texts};
    use crate::linux::trace;

    /// First come, first served; each wake-up and each tick flags.
    #[derive(Clone, Default)]
    struct Toy {
        tasks: u32,
        queue: Vec<u32>,
        flag: bool,
        current: Option<u32>,
        told: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
    }

    impl Toy {
        fn tell(&self, what: &str, now: Time) {
            self.told.borrow_mut().push(format!("{what} {}", now.ns() - 7_000_000_000));
        }
    }

    impl Steps for Toy {
        type Task = u32;
        fn add_group(&mut self, _: &GroupConfig) -> GroupId {
            GroupId(0)
        }
        fn add_task(&mut self, _: Option<GroupId>, _: Class, _: i8) -> u32 {
            self.tasks += 1;
            self.tasks - 1
        }
        fn wake(&mut self, now: Time, _: PcpuId, task: u32) {
            self.tell("wake", now);
            self.queue.push(task);
            self.flag = true;
        }
        fn block(&mut self, now: Time, _: PcpuId) {
            self.tell("block", now);
            self.current = None;
        }
        fn yield_task(&mut self, now: Time, _: PcpuId) {
            self.tell("yield", now);
        }
        fn task_tick(&mut self, now: Time, _: PcpuId) {
            self.tell("tick", now);
            self.flag = true;
        }
        fn period_timer(&mut self, now: Time, _: GroupId) {
            self.tell("refill", now);
        }
        fn pick_task(&mut self, now: Time, _: PcpuId) -> Option<u32> {
            self.tell("choose", now);
            self.queue.first().copied().or(self.current)
        }
        fn set_next_task(&mut self, _: Time, _: PcpuId, task: Option<u32>) {
            self.queue.extend(self.current.take());
            self.queue.retain(|&other| Some(other) != task);
            self.current = task;
        }
        fn need_resched(&self, _: PcpuId) -> bool {
            self.flag
        }
        fn set_need_resched(&mut self, _: PcpuId, on: bool) {
            self.flag = on;
        }
    }

    fn run(trace: &str) -> (Result<Outcome, LinuxError>, Vec<String>) {
        let texts = Texts {
            experiment: "vm a\nth\nth yield=2\n",
            threads: "5 a 0\n6 a 1\n",
            tunables: "",
            trace: "",
            expected: None,
        };
        let toy = Toy::default();
        let told = toy.told.clone();
        let outcome = replay(&folder::read(&texts).unwrap(), &trace::read(trace).unwrap(), &toy);
        (outcome, told.take())
    }

    const TRACE: &str = "\
 <idle>-0 (-------) [000] d.h3. 7.000001000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-------) [000] dNh4. 7.000001500: sched_wakeup: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-------) [000] d..2. 7.000002000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 ( 5) [000] d.h3. 7.000003000: sched_waking: comm=v pid=6 prio=120 target_cpu=000
 v-5 ( 5) [000] dNh4. 7.000003500: sched_wakeup: comm=v pid=6 prio=120 target_cpu=000
 v-5 ( 5) [000] dN.2. 7.000003600: sched_stat_runtime: comm=v pid=5 runtime=2100 [ns]
 v-5 ( 5) [000] d..2. 7.000004000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=v next_pid=6 next_prio=120
 v-6 ( 5) [000] d..1. 7.000005000: sched_stat_runtime: comm=v pid=6 runtime=2000 [ns]
 v-6 ( 5) [000] d..2. 7.000005500: sched_switch: prev_comm=v prev_pid=6 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 ( 5) [000] d.h.. 7.004000000: hrtimer_expire_entry: hrtimer=01 function=tick_sched_timer now=1
 v-5 ( 5) [000] d.h1. 7.004001000: sched_stat_runtime: comm=v pid=5 runtime=3995000 [ns]
 v-5 ( 5) [000] dN.2. 7.004002000: sched_stat_runtime: comm=v pid=5 runtime=5000 [ns]
 v-5 ( 5) [000] d..2. 7.004003000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=v next_pid=6 next_prio=120
 v-6 ( 5) [000] d..2. 7.004004000: sched_stat_runtime: comm=v pid=6 runtime=1000 [ns]
 v-6 ( 5) [000] d..2. 7.004005000: sched_switch: prev_comm=v prev_pid=6 prev_prio=120 prev_state=S ==> next_comm=v next_pid=5 next_prio=120
";

    #[test]
    fn what_happened_is_told_at_the_kernels_times() {
        let (outcome, told) = run(TRACE);
        let outcome = outcome.unwrap();
        assert_eq!((outcome.decisions, outcome.differing), (8, 0), "{outcome}");
        let expected = [
            "wake 1000",
            "choose 1000",
            "wake 3100",
            "choose 3100",
            "yield 5100",
            "choose 5100",
            "tick 4000100",
            "choose 4005100",
            "block 4006100",
            "choose 4006100",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_lazy_flag_lets_the_decision_read_the_clock_again() {
        let (outcome, told) = run(&TRACE
            .replace("dNh4. 7.000003500", "dlh4. 7.000003500")
            .replace("dN.2. 7.000003600", "dl.2. 7.000003600"));
        assert_eq!(outcome.unwrap().differing, 0);
        assert_eq!(told[2..4], ["wake 3000", "choose 3100"]);
    }

    /// The thread that the refill releases joins its queue, which charges the running thread.
    #[test]
    fn a_charge_after_a_refill_tells_its_clock() {
        let texts = Texts {
            experiment: "cg g max=1000,4000\nvm a g\nth\nth\n",
            threads: "5 a 0\n6 a 1\n",
            tunables: "",
            trace: "",
            expected: None,
        };
        let refill = " v-5 ( 5) [000] d.h.. 7.000004500: hrtimer_expire_entry: hrtimer=02 function=sched_cfs_period_timer now=1\n";
        let charge =
            " v-5 ( 5) [000] d.h1. 7.000004900: sched_stat_runtime: comm=v pid=5 runtime=3700 [ns]\n";
        let mut lines: Vec<&str> = TRACE.split_inclusive('\n').take(3).collect();
        let told = |lines: &[&str]| {
            let toy = Toy::default();
            let told = toy.told.clone();
            replay(&folder::read(&texts).unwrap(), &trace::read(&lines.concat()).unwrap(), &toy).unwrap();
            told.take().into_iter().find(|what| what.starts_with("refill"))
        };
        lines.push(refill);
        assert_eq!(told(&lines).as_deref(), Some("refill 4500"));
        lines.push(charge);
        assert_eq!(told(&lines).as_deref(), Some("refill 4700"));
    }

    #[test]
    fn ends_of_requests_are_compared() {
        let end = " v-5 ( 5) [000] d.h.. 7.004000000: hrtimer_expire_entry: hrtimer=01 function=hrtick now=1";
        let trace = TRACE.replace(
            " v-5 ( 5) [000] d.h.. 7.004000000: hrtimer_expire_entry: hrtimer=01 function=tick_sched_timer now=1",
            end,
        );
        // The first come, first served scheduler has no such timer.
        let outcome = run(&trace).0.unwrap();
        assert_eq!(outcome.by_kind["request"], (1, 1));
        assert!(
            outcome
                .to_string()
                .contains("line 10, request: the kernel expires, the scheduler does not expire")
        );
    }

    #[test]
    fn differences_are_counted_and_the_kernels_choice_adopted() {
        // The kernel does not flag at the tick, and the block ends in idleness.
        let other = TRACE.replace("dN.2. 7.004002000", "d..2. 7.004002000").replace(
            "prev_state=S ==> next_comm=v next_pid=5",
            "prev_state=S ==> next_comm=swapper/0 next_pid=0",
        );
        let outcome = run(&other).0.unwrap();
        assert_eq!(outcome.differing, 2);
        assert_eq!(outcome.by_kind["tick"], (1, 1));
        let first = outcome.first.clone().unwrap();
        assert_eq!((first.line, first.what), (10, "tick"));
        assert!(outcome.to_string().contains("line 10, tick: the kernel does not flag, the scheduler flags"));
    }

    #[test]
    fn unknown_timers_are_refused() {
        let found = run(&TRACE.replace("tick_sched_timer", "sched_cfs_period_timer")).0.unwrap_err();
        assert_eq!((found.line, found.field.as_str()), (10, "hrtimer"));
    }
}
