//! The kernel's clock at the events of a trace: lines are written some microseconds after it was read, by how many depends on
//! the event.
//!
//! A wake-up's line is written at once, and one on an idle CPU begins the execution that follows; from then on each charge
//! tells what the clock said. Where a refilled group ends idleness, the decision reads the clock, its line comes as late as those
//! of other switches.

use std::collections::BTreeMap;

use vcpulab_host::Span;

use super::trace::{Event, Line};

/// The clock at the lines of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// By line, ns of the trace's clock.
    at: Vec<i64>,
    /// Lead of the host's grid of ticks over the trace's clock, ns.
    ahead: i64,
}

impl Clock {
    /// The clock at the lines of a CPU whose ticks are `tick` apart.
    pub fn of(lines: &[Line], tick: Span) -> Self {
        let mut at = Vec::with_capacity(lines.len());
        let mut ahead = Vec::new();
        // Who runs, and what the clock said when it was last charged or began.
        let mut running: Option<(u32, i64)> = None;
        let mut woke_at = None;
        // How long after the clock was read the line of a switch was written, and whether a wake-up told the clock since
        // the CPU idled.
        let (mut late, mut told) = (0, false);
        // How long after the clock was read the line of a charge by an interrupt was written.
        let mut charge_late = 0;
        let mut before = None;
        for (index, line) in lines.iter().enumerate() {
            let mut clock = line.time_ns;
            match line.event {
                Event::Waking(..) => woke_at = Some(line.time_ns),
                Event::Charge(thread, ran) => {
                    if let Some((_, charged)) = running.as_mut().filter(|(running, _)| *running == thread) {
                        *charged += ran;
                        clock = (*charged).min(line.time_ns);
                        if line.interrupt {
                            charge_late = line.time_ns - clock;
                        }
                        if let Some(expired) = before {
                            let tick = tick.ns().max(1);
                            ahead.push((expired + tick / 2) / tick * tick - clock);
                        }
                    }
                }
                Event::Switch { from, to, in_kernel, .. } => {
                    let charged = running.filter(|&(thread, _)| thread == from.0).map(|(_, charged)| charged);
                    // After a limit has stopped a thread, the decision reads the clock again, and mostly charges nobody.
                    let flagged = index.checked_sub(1).is_some_and(|before| lines[before].flagged);
                    let in_kernel = in_kernel && !flagged;
                    let goes_on = charged.filter(|_| !in_kernel);
                    let known = goes_on.or(woke_at.filter(|_| from.0 == 0));
                    let least = charged.unwrap_or(i64::MIN);
                    let estimate = || {
                        let start = in_kernel.then(|| start_told(lines, index, to.0, charge_late)).flatten();
                        start.unwrap_or(line.time_ns - late).max(least)
                    };
                    clock = known.unwrap_or_else(estimate).min(line.time_ns);
                    if goes_on.is_some() && told {
                        late = line.time_ns - clock;
                    }
                    told = known.is_some() && (told || goes_on.is_none()) || in_kernel && told;
                    running = Some((to.0, clock)).filter(|_| to.0 != 0);
                    woke_at = None;
                }
                // It has decided: who woke is throttled, an idle CPU stays so.
                _ if !line.flagged => woke_at = None,
                _ => {}
            }
            before = line.monotonic_ns.filter(|_| line.event == Event::Tick);
            at.push(clock);
        }
        // Where no tick charges anybody, timers tell the time at least.
        let told = || lines.iter().filter_map(|line| Some(line.monotonic_ns? - line.time_ns)).max();
        let ahead = median(ahead).or_else(told).unwrap_or(0);
        Clock { at, ahead }
    }

    /// The clock at the line of that index, as time of the host's monotonic clock.
    pub fn at(&self, index: usize) -> i64 {
        self.at.get(index).map_or(0, |at| at + self.ahead)
    }

    /// Time from reading the clock to writing the line, ns.
    pub fn written_after(&self, line: &Line, index: usize) -> i64 {
        self.at.get(index).map_or(0, |at| line.time_ns - at)
    }
}

/// Time at which a thread starts to run at a switch, told by its first charge after that, whose line is written this long after the
/// clock was read.
fn start_told(lines: &[Line], switch: usize, thread: u32, written_after: i64) -> Option<i64> {
    let mut after = lines.get(switch + 1..)?.iter();
    after.find_map(|line| match line.event {
        Event::Charge(charged, ran) if charged == thread => Some(line.time_ns - written_after - ran),
        _ => None,
    })
}

/// Times from reading the clock to writing the lines of charges, by their causes, less the time of ticks and ends of requests.
#[derive(Clone, Debug, Default)]
pub struct Lateness(BTreeMap<Cause, i64>);

impl Lateness {
    /// The lateness of the charges of a trace. The charges of a piece in which each follows from the one before tell how late they
    /// are by the time that they began; the pieces are compared by their timers.
    pub fn of(lines: &[Line]) -> Self {
        let mut by_cause: BTreeMap<Cause, Vec<i64>> = BTreeMap::new();
        let mut at = 0;
        while at < lines.len() {
            let piece: Vec<(Cause, i64)> = piece(lines, at).collect();
            let timers = piece.iter().filter(|(cause, _)| matches!(cause, Cause::Tick | Cause::RequestEnd));
            if let Some(of_timers) = median(timers.map(|&(_, late)| late).collect()) {
                for &(cause, late) in &piece {
                    by_cause.entry(cause).or_default().push(late - of_timers);
                }
            }
            at = (at + 1..lines.len()).find(|&at| restarts(lines, at)).unwrap_or(lines.len());
        }
        let median = |(cause, late): (Cause, Vec<i64>)| Some((cause, median(late)?));
        Lateness(by_cause.into_iter().filter_map(median).collect())
    }

    /// Lateness of a cause.
    pub fn get(&self, cause: Cause) -> i64 {
        self.0.get(&cause).copied().unwrap_or(0)
    }

    /// The time at a switch at which the clock is read again, on a clock on which the charges of ticks and ends of requests are
    /// written at once: told by the charges up to the next such switch.
    pub fn start(&self, lines: &[Line], switch: usize) -> Option<i64> {
        let starts = piece(lines, switch).take(CHARGES).map(|(cause, late)| late - self.get(cause));
        median(starts.collect())
    }
}

/// The number of charges that tell the time of a switch.
const CHARGES: usize = 15;

/// Whether the clock is read again at a switch, and no charge tells what it said.
fn restarts(lines: &[Line], at: usize) -> bool {
    let flagged = at.checked_sub(1).is_some_and(|before| lines[before].flagged);
    matches!(lines[at].event, Event::Switch { in_kernel: true, .. } if !flagged)
}

/// The charges after a switch, up to the next one at which the clock is read again: the cause of each, and the time of its line
/// less all that was charged.
fn piece(lines: &[Line], switch: usize) -> impl Iterator<Item = (Cause, i64)> + '_ {
    let to = |line: &Line| match line.event {
        Event::Switch { to, .. } => Some(to.0),
        _ => None,
    };
    let (mut running, mut charged) = (lines.get(switch).and_then(to), 0);
    let after =
        (switch + 1..lines.len()).take_while(move |&at| !restarts(lines, at) && to(&lines[at]) != Some(0));
    after.filter_map(move |at| {
        let line = &lines[at];
        running = to(line).or(running);
        match line.event {
            Event::Charge(thread, ran) if running == Some(thread) => {
                charged += ran;
                Some((Cause::of(lines, at), line.time_ns - charged))
            }
            _ => None,
        }
    })
}

/// Cause of a charge. The time from reading the clock to writing the charge's line depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The tick.
    Tick,
    /// The end of a request.
    RequestEnd,
    /// A period timer, which releases a thread.
    Refill,
    /// A wake-up.
    Wakeup,
    /// A decision that a flag asked for.
    Flag,
    /// The running thread: it blocks, yields or returns to user mode.
    Thread,
}

impl Cause {
    /// The cause of the charge on a line.
    pub fn of(lines: &[Line], at: usize) -> Self {
        let before = at.checked_sub(1).map(|before| &lines[before].event);
        match before {
            Some(Event::Tick) => Cause::Tick,
            Some(Event::RequestEnd) => Cause::RequestEnd,
            Some(Event::Refill(_)) => Cause::Refill,
            Some(Event::Waking(..)) => Cause::Wakeup,
            _ if lines[at].flagged => Cause::Flag,
            _ => Cause::Thread,
        }
    }
}

/// The median.
pub fn median(mut of: Vec<i64>) -> Option<i64> {
    of.sort_unstable();
    of.get(of.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::trace;

    #[test]
    fn the_clock_is_told_by_charges_from_a_wake_up_on() {
        let lines = trace::read(
            " <idle>-0 (-) [000] d.h3. 7.000001000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] d..2. 7.000012000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d.h.. 7.004000500: hrtimer_expire_entry: hrtimer=01 function=tick_sched_timer now=12000000400
 v-5 (5) [000] d.h1. 7.004004000: sched_stat_runtime: comm=v pid=5 runtime=4001000 [ns]
 v-5 (5) [000] d..2. 7.004010000: sched_stat_runtime: comm=v pid=5 runtime=5000 [ns]
 v-5 (5) [000] d..2. 7.004017000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=w next_pid=6 next_prio=120
 w-6 (6) [000] d..2. 7.005000000: sched_stat_runtime: comm=w pid=6 runtime=990000 [ns]
",
        )
        .unwrap();
        let clock = Clock::of(&lines, Span::from_ms(4));
        let ahead = 12_000_000_000 - 7_004_002_000;
        let at: Vec<i64> = (0..7).map(|index| clock.at(index) - ahead - 7_000_000_000).collect();
        assert_eq!(at, [1_000, 1_000, 4_000_500, 4_002_000, 4_007_000, 4_007_000, 4_997_000]);
    }

    #[test]
    fn a_wake_up_of_a_throttled_thread_does_not_begin_what_runs_once_its_group_is_refilled() {
        let lines = trace::read(
            " <idle>-0 (-) [000] d.h3. 7.000001000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] dNh4. 7.000008000: sched_wakeup: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] d..2. 7.000012000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d..2. 7.000105000: sched_stat_runtime: comm=v pid=5 runtime=100000 [ns]
 v-5 (5) [000] d..2. 7.000110000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 <idle>-0 (-) [000] d.h3. 7.000501000: sched_waking: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] dNh4. 7.000508000: sched_wakeup: comm=v pid=5 prio=120 target_cpu=000
 <idle>-0 (-) [000] d.h.. 7.003000000: hrtimer_expire_entry: hrtimer=02 function=sched_cfs_period_timer now=12000000000
 <idle>-0 (-) [000] d..2. 7.003019000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d..2. 7.003115000: sched_stat_runtime: comm=v pid=5 runtime=100000 [ns]
",
        )
        .unwrap();
        let clock = Clock::of(&lines, Span::from_ms(4));
        let at = |index| clock.at(index) - clock.at(0) + 1_000;
        // The line of the first switch by a thread came 9 µs after the clock was read.
        assert_eq!([4, 8, 9].map(at), [101_000, 3_010_000, 3_110_000]);
    }

    /// Lines of ticks come 2 µs after the clock was read, of a thread's own charges 5 µs.
    #[test]
    fn the_line_of_a_charge_comes_late_by_its_cause() {
        let lines = trace::read(
            " v-5 (5) [000] d..2. 7.000007000: sched_switch: prev_comm=w prev_pid=6 prev_prio=120 prev_state=S ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d.h.. 7.000100500: hrtimer_expire_entry: hrtimer=01 function=tick_sched_timer now=12000000000
 v-5 (5) [000] d.h1. 7.000102000: sched_stat_runtime: comm=v pid=5 runtime=100000 [ns]
 v-5 (5) [000] d..2. 7.000205000: sched_stat_runtime: comm=v pid=5 runtime=100000 [ns]
 v-5 (5) [000] d..2. 7.000209000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=w next_pid=6 next_prio=120
 w-6 (6) [000] d..2. 7.000259000: sched_stat_runtime: comm=w pid=6 runtime=50000 [ns]
 w-6 (6) [000] d..2. 7.000265000: sched_switch: prev_comm=w prev_pid=6 prev_prio=120 prev_state=S ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d..2. 7.000269000: sched_stat_runtime: comm=v pid=5 runtime=10000 [ns]
 v-5 (5) [000] d..2. 7.000275000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
 w-6 (6) [000] d..2. 7.000959000: sched_stat_runtime: comm=w pid=6 runtime=50000 [ns]
",
        )
        .unwrap();
        assert_eq!([2, 3].map(|at| Cause::of(&lines, at)), [Cause::Tick, Cause::Thread]);
        let lateness = Lateness::of(&lines);
        assert_eq!([Cause::Tick, Cause::Thread].map(|cause| lateness.get(cause)), [0, 3000]);
        // 204 µs, on a clock on which ticks are written at once.
        assert_eq!(lateness.start(&lines, 4), Some(7_000_206_000));
        assert_eq!(lateness.start(&lines, 8), None);
    }

    #[test]
    fn a_thread_that_runs_after_a_limit_stopped_another_began_when_its_first_charge_says() {
        let lines = trace::read(
            " v-5 (5) [000] d.h1. 7.000000000: sched_stat_runtime: comm=v pid=5 runtime=1000 [ns]
 v-5 (5) [000] d..2. 7.000001000: sched_switch: prev_comm=v prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=w next_pid=6 next_prio=120
 w-6 (6) [000] d..2. 7.000021000: sched_stat_runtime: comm=w pid=6 runtime=20000 [ns]
 w-6 (6) [000] d..2. 7.000030000: sched_switch: prev_comm=w prev_pid=6 prev_prio=120 prev_state=R+ ==> next_comm=v next_pid=5 next_prio=120
 v-5 (5) [000] d.h1. 7.000125000: sched_stat_runtime: comm=v pid=5 runtime=100000 [ns]
",
        )
        .unwrap();
        let clock = Clock::of(&lines, Span::from_ms(4));
        let at = |index| clock.at(index) - clock.at(1);
        assert_eq!([2, 3, 4].map(at), [20_000, 24_000, 124_000]);
    }
}
