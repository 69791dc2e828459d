//! Demands of threads on a CPU, from a recording: CPU time from waking to blocking, then time asleep. The times at
//! which they got the CPU are left out, so that another scheduler or setting can decide them; the time of switches,
//! ticks and timer interrupts is left out too, because it may fall elsewhere then.

use std::collections::BTreeMap;

use vcpulab_host::program::Step;
use vcpulab_host::{Span, Time};

use super::folder::Recording;
use super::overheads::Overheads;
use super::trace::{Event, Line, PRIO_NICE_0};

/// The demands of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demands {
    /// The host's monotonic clock as the recording begins and ends.
    pub window: [Time; 2],
    /// Of threads of VMs, by thread.
    pub threads: BTreeMap<u32, Demand>,
    /// Of other threads, the host's own, by thread.
    pub others: BTreeMap<u32, Arrivals>,
    /// First wake-ups of threads of VMs, in their order: those that one interrupt did before the CPU decided stand together,
    /// at the time of the last.
    pub first: Vec<(Time, Vec<u32>)>,
}

impl Demands {
    /// Demands like these on the host of another kernel. Its own threads are those of `host`, counted from the beginning of both
    /// recordings on.
    #[must_use]
    pub fn with_host_threads_of(self, host: &Demands) -> Self {
        let later = self.window[0] - host.window[0];
        let moved = |(thread, arrivals): (&u32, &Arrivals)| {
            let works = arrivals.works.iter().map(|&(at, work)| (at + later, work)).collect();
            (*thread, Arrivals { works, ..*arrivals })
        };
        Demands { others: host.others.iter().map(moved).collect(), ..self }
    }
}

/// Demand of a VM's thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    /// Steps of the thread from its first wake-up on.
    pub steps: Vec<Step>,
}

/// Demand of a host thread: its work arrives at times that others decide.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// Priority of the thread, as the kernel numbers priorities.
    pub prio: i32,
    /// Times of its wake-ups, and the work of each.
    pub works: Vec<(Time, Span)>,
}

/// A thread, while its demands are read.
#[derive(Default)]
struct Reading {
    prio: Option<i32>,
    /// Time at which the thread blocked, until it wakes.
    blocked_at: Option<i64>,
    woke_at: Option<i64>,
    first: Option<i64>,
    /// Not yet part of a step, and without what it paid for the kernel's own work.
    ran: i64,
    steps: Vec<Step>,
    works: Vec<(Time, Span)>,
}

impl Reading {
    fn wake(&mut self, now: i64) {
        if let Some(at) = self.blocked_at.take() {
            self.steps.push(Step::Block(Span::from_ns((now - at).max(0))));
        } else if self.first.is_some() {
            return;
        }
        self.first.get_or_insert(now);
        self.woke_at = Some(now);
    }

    fn take_ran(&mut self) -> Span {
        Span::from_ns(std::mem::take(&mut self.ran)).max(Span::ZERO)
    }

    fn run_ends(&mut self, step: Option<Step>) {
        let ran = self.take_ran();
        self.steps.push(Step::Run(ran));
        self.steps.extend(step);
    }

    fn block(&mut self, now: i64) {
        // Who runs as the recording begins woke before.
        let at = self.woke_at.take().or(self.first).unwrap_or(now);
        let ran = self.take_ran();
        self.works.push((Time::from_ns(at), ran));
        self.steps.push(Step::Run(ran));
        self.blocked_at = Some(now);
    }

    /// Completes the steps at the end of the recording. They repeat after that, unless the last run was the longest:
    /// then the thread is a hog.
    fn ends(&mut self, end: i64) {
        if let Some(at) = self.blocked_at {
            // It slept for longer than was recorded.
            return self.steps.push(Step::Block(Span::from_ns((end - at).max(0))));
        }
        let mut runs = self.steps.iter().filter_map(|step| match step {
            Step::Run(ran) => Some(ran.ns()),
            _ => None,
        });
        if runs.all(|ran| ran < self.ran) {
            self.steps.push(Step::Hog);
        }
    }
}

/// Charges threads for the kernel's own work.
struct Costs<'a> {
    overheads: &'a Overheads,
    /// The thread that runs.
    current: Option<u32>,
    /// The interrupts since the CPU was flagged, not lazily, for which the next thread pays: the decision's clock is that of the
    /// wake-up that asked for it.
    since_flagged: Span,
}

impl Costs<'_> {
    /// An interrupt wakes a thread, after which the CPU is flagged or not: what the thread that runs pays.
    fn interrupt(&mut self, flagged: bool) -> Span {
        self.since_flagged += self.overheads.interrupt();
        if flagged { Span::ZERO } else { std::mem::take(&mut self.since_flagged) }
    }

    /// Cost that the thread pays that is switched in.
    fn switch(&mut self, to: u32) -> Span {
        self.current = (to != 0).then_some(to);
        std::mem::take(&mut self.since_flagged) + self.overheads.switch
    }
}

/// Longest time after a tick at which the threads wake that it wakes: sooner than any CPU decides.
const AFTER_TICK_NS: i64 = 3_000;

impl Demands {
    /// Reads the demands. What the kernel's own work takes is no part of them.
    pub fn of(recording: &Recording, overheads: &Overheads) -> Self {
        let lines = &recording.lines;
        let clock = recording.clock();
        let mut reading: BTreeMap<u32, Reading> = BTreeMap::new();
        let mut first: Vec<(Time, Vec<u32>)> = Vec::new();
        let mut decided = true;
        let mut tick: Option<i64> = None;
        let mut costs = Costs { overheads, current: None, since_flagged: Span::ZERO };
        let pay = |reading: &mut BTreeMap<u32, Reading>, thread: Option<u32>, cost: Span| {
            if let Some(thread) = thread {
                reading.entry(thread).or_default().ran -= cost.ns();
            }
        };
        for (index, line) in lines.iter().enumerate() {
            let now = clock.at(index);
            match line.event {
                Event::Tick => {
                    // The charge that it makes tells its time.
                    tick = Some(clock.at(index + 1));
                    pay(&mut reading, costs.current, overheads.tick);
                }
                Event::Waking(number, prio) => {
                    // What a tick's softirqs wake is awake before the decision that the tick asked for.
                    let now = tick
                        .filter(|_| line.interrupt && line.flagged)
                        .map_or(now, |at| now.min(at + AFTER_TICK_NS));
                    let of_vm = recording.setup.threads.contains_key(&number);
                    if of_vm && line.interrupt && reading.contains_key(&number) {
                        let flagged = |line: &Line| line.flagged && !line.lazy;
                        let cost =
                            costs.interrupt(flagged(line) || lines.get(index + 1).is_some_and(flagged));
                        pay(&mut reading, costs.current, cost);
                    }
                    let thread = reading.entry(number).or_default();
                    thread.prio = Some(prio);
                    if thread.first.is_none() && of_vm {
                        match first.last_mut().filter(|_| !decided) {
                            Some((at, together)) => {
                                *at = Time::from_ns(now);
                                together.push(number);
                            }
                            None => first.push((Time::from_ns(now), vec![number])),
                        }
                        decided = false;
                    }
                    thread.wake(now);
                }
                Event::Charge(thread, ran) => {
                    let yields = recording.setup.threads.get(&thread).is_some_and(|made| made.yields)
                        && is_yield(lines, index);
                    let thread = reading.entry(thread).or_default();
                    thread.first.get_or_insert(now - ran);
                    if !line.interrupt {
                        tick = None;
                    }
                    thread.ran = thread.ran.saturating_add(ran);
                    if yields {
                        thread.run_ends(Some(Step::Yield));
                    }
                }
                Event::Switch { from: (thread, prio), runnable, to, .. } => {
                    decided = true;
                    tick = None;
                    if thread != 0 {
                        let thread = reading.entry(thread).or_default();
                        thread.prio = Some(prio);
                        if !runnable {
                            thread.block(now);
                        }
                    }
                    let cost = costs.switch(to.0);
                    pay(&mut reading, costs.current, cost);
                }
                Event::Refill(_) | Event::Other => tick = None,
                _ => {}
            }
        }
        let mut demands = Demands {
            window: [0, lines.len().saturating_sub(1)].map(|index| Time::from_ns(clock.at(index))),
            threads: BTreeMap::new(),
            others: BTreeMap::new(),
            first,
        };
        for (number, mut thread) in reading {
            if recording.setup.threads.contains_key(&number) {
                thread.ends(demands.window[1].ns());
                // It may have run as the recording began.
                if !demands.first.iter().any(|(_, threads)| threads.contains(&number))
                    && let Some(at) = thread.first
                {
                    demands.first.insert(0, (Time::from_ns(at), vec![number]));
                }
                demands.threads.insert(number, Demand { steps: thread.steps });
            } else {
                if thread.blocked_at.is_none() && thread.ran > 0 {
                    let at = Time::from_ns(thread.woke_at.or(thread.first).unwrap_or(0));
                    thread.works.push((at, Span::from_ns(thread.ran)));
                }
                let prio = thread.prio.unwrap_or(PRIO_NICE_0);
                demands.others.insert(number, Arrivals { prio, works: thread.works });
            }
        }
        demands
    }
}

/// Whether a charge is that of a yield: by the thread itself, which nobody had asked to let others run.
fn is_yield(lines: &[Line], index: usize) -> bool {
    let line = &lines[index];
    let before = index.checked_sub(1).map(|before| &lines[before].event);
    let blocks =
        matches!(lines.get(index + 1).map(|line| &line.event), Some(Event::Switch { runnable: false, .. }));
    !line.interrupt
        && !line.flagged
        && line.depth <= 2
        && !blocks
        && !matches!(before, Some(Event::Waking(..)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Texts;

    const TRACE: &str = "\
 <idle>-0 (-) [000] d.h1. 7.000000000: hrtimer_expire_entry: hrtimer=01 function=hrtimer_wakeup now=3000000000
 <idle>-0 (-) [000] d.h3. 7.000001000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] d.h3. 7.000002000: sched_waking: comm=w pid=6 prio=120 target_cpu=000
 <idle>-0 (-) [000] d..2. 7.000012000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d..2. 7.000305000: sched_stat_runtime: comm=v pid=5 runtime=300000 [ns]
 v-5 (5) [000] d..2. 7.000310000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=w next_pid=6 next_prio=120
 w-6 (6) [000] d..1. 7.000405000: sched_stat_runtime: comm=w pid=6 runtime=100000 [ns]
 w-6 (6) [000] d.h2. 7.000702000: sched_waking: comm=k pid=9 prio=100 target_cpu=000
 w-6 (6) [000] d..2. 7.000710000: sched_stat_runtime: comm=w pid=6 runtime=300000 [ns]
 w-6 (6) [000] d..2. 7.000720000: sched_switch: prev_comm=w prev_pid=6 prev_prio=120 prev_state=R ==> next_comm=k next_pid=9 next_prio=100
 k-9 (9) [000] d..2. 7.000735000: sched_stat_runtime: comm=k pid=9 runtime=30000 [ns]
 k-9 (9) [000] d..2. 7.000740000: sched_switch: prev_comm=k prev_pid=9 prev_prio=100 prev_state=I ==> next_comm=w next_pid=6 next_prio=120
 w-6 (6) [000] d.h3. 7.001302000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 w-6 (6) [000] d..2. 7.001333000: sched_stat_runtime: comm=w pid=6 runtime=600000 [ns]
";

    fn demands(experiment: &str) -> Demands {
        let (threads, trace) = ("5 a 0\n6 a 1\n", TRACE);
        let texts = Texts { experiment, threads, tunables: "", trace, expected: None };
        let recording = Recording::read(&texts).unwrap();
        Demands::of(&recording, &Overheads::with_us([15, 9, 10, 8]))
    }

    #[test]
    fn runs_and_sleeps_are_read_and_what_never_ends_goes_on() {
        let demands = demands("vm a\nth sl=1000\nth\n");
        let run = |ns| Step::Run(Span::from_ns(ns));
        // It blocked when it had run, at 7.000302, and was woken at 7.001302. The switch is no part of what it demands.
        let sleeper = [run(300_000 - 9_000), Step::Block(Span::from_ms(1))];
        assert_eq!(demands.threads[&5].steps, sleeper);
        assert_eq!(demands.threads[&6].steps, [Step::Hog]);
        // One interrupt woke both.
        assert_eq!(demands.first, [(Time::from_ns(3_000_002_000), vec![5, 6])]);
        let work = (Time::from_ns(3_000_702_000), Span::from_us(30 - 9));
        assert_eq!(demands.others[&9], Arrivals { prio: 100, works: vec![work] });
    }

    #[test]
    fn who_runs_pays_for_interrupts_until_one_asks_for_a_decision_and_then_who_comes() {
        let overheads = Overheads::with_us([15, 9, 10, 8]);
        let mut costs = Costs { overheads: &overheads, current: None, since_flagged: Span::ZERO };
        let us = |paid: Span| paid.ns() / 1000;
        assert_eq!(us(costs.switch(5)), 9);
        assert_eq!((us(costs.interrupt(false)), costs.current), (6, Some(5)));
        assert_eq!([true, true].map(|flagged| us(costs.interrupt(flagged))), [0, 0]);
        assert_eq!((us(costs.switch(6)), costs.current), (2 * 6 + 9, Some(6)));
        assert_eq!((us(costs.switch(0)), costs.current), (9, None));
    }

    #[test]
    fn a_yield_is_a_charge_that_nobody_asked_for() {
        let demands = demands("vm a\nth sl=1000\nth yield=10\n");
        let steps = &demands.threads[&6].steps;
        assert_eq!(steps[..2], [Step::Run(Span::from_us(100 - 9)), Step::Yield]);
    }
}
