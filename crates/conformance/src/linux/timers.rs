//! Groups that the period timers of `cpu.max` refill: a trace names timers by address, not by group.
//!
//! A timer stops and starts on a grid of its period: what lies between two of its expiries is a multiple of it, which tells
//! groups of different periods apart. Among those that fit a replay decides: see [`steps`](super::steps).

use std::collections::BTreeMap;

use vcpulab_host::{GroupId, Span};

use super::error::{At, LinuxError};
use super::folder::Setup;
use super::trace::{Event, Line};

/// Timers by their addresses, and their groups.
pub type Timers = BTreeMap<String, GroupId>;

/// Start of the periods of each group that has a timer, modulo their length, on the host's clock: the timer expires on
/// that grid or a little later.
pub fn phases(setup: &Setup, lines: &[Line], timers: &Timers) -> BTreeMap<GroupId, Span> {
    let candidates = Candidates::of(setup, lines);
    let phase = |seen: &Seen<'_>| {
        let group = *timers.get(seen.name)?;
        let period = setup.groups.get(group.index())?.period.ns().max(1);
        let first = *seen.expiries.first()?;
        // How much later than the first one, of its own time, an expiry was.
        let later = |at: &i64| (at - first + period / 2).rem_euclid(period) - period / 2;
        let least = seen.expiries.iter().map(later).min()?;
        Some((group, Span::from_ns((first + least).rem_euclid(period))))
    };
    candidates.seen.iter().filter_map(phase).collect()
}

/// Longest delay of a timer's expiry: interrupts may be off.
const LATE: Span = Span::from_us(200);

/// Expiries of a timer in the trace.
struct Seen<'a> {
    name: &'a str,
    at: At,
    expiries: Vec<i64>,
}

impl Seen<'_> {
    /// The number of periods between the two nearest expiries; `None` if the expiries are not on a grid of this period.
    fn fits(&self, period: Span) -> Option<i64> {
        let (period, late) = (period.ns().max(1), LATE.ns());
        let gaps = self.expiries.windows(2).map(|pair| pair[1] - pair[0]);
        let mut nearest = 1;
        for (index, gap) in gaps.enumerate() {
            let periods = (gap + period / 2) / period;
            if periods == 0 || (gap - periods * period).abs() > late {
                return None;
            }
            nearest = if index == 0 { periods } else { nearest.min(periods) };
        }
        Some(nearest)
    }
}

/// The timers of a recording, and the groups that they may be of.
pub struct Candidates<'a> {
    seen: Vec<Seen<'a>>,
    /// The groups with a quota, and their periods.
    limited: Vec<(GroupId, Span)>,
}

impl<'a> Candidates<'a> {
    /// Finds them.
    pub fn of(setup: &Setup, lines: &'a [Line]) -> Self {
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for line in lines {
            let Event::Refill(name) = &line.event else { continue };
            let expiry = line.monotonic_ns.unwrap_or(line.time_ns);
            match seen.iter_mut().find(|timer| timer.name == name) {
                Some(timer) => timer.expiries.push(expiry),
                None => {
                    let at = At { file: "trace.txt", line: line.number };
                    seen.push(Seen { name, at, expiries: vec![expiry] });
                }
            }
        }
        let groups = setup.groups.iter().zip(0..).filter(|(group, _)| group.quota.is_some());
        Candidates { seen, limited: groups.map(|(group, id)| (GroupId(id), group.period)).collect() }
    }

    /// The first guess: each timer, in the order of their first expiries, gets the first group left whose period fits best.
    ///
    /// # Errors
    /// There are more timers than groups with a quota.
    pub fn guessed(&self) -> Result<Timers, LinuxError> {
        // Those that fit few groups choose first.
        let fitting = |timer: &Seen<'_>| {
            self.limited.iter().filter(|&&(_, period)| timer.fits(period).is_some()).count()
        };
        let mut order: Vec<&Seen<'_>> = self.seen.iter().collect();
        order.sort_by_key(|timer| fitting(timer));
        let mut timers = Timers::new();
        for timer in order {
            let free = self.limited.iter().filter(|(group, _)| !timers.values().any(|taken| taken == group));
            let best = free.min_by_key(|&&(_, period)| timer.fits(period).unwrap_or(i64::MAX));
            let Some(&(group, _)) = best else {
                return timer.at.error("hrtimer", timer.name, "as many timers as groups with `max`");
            };
            timers.insert(timer.name.to_owned(), group);
        }
        Ok(timers)
    }

    /// Guesses that differ from `timers` by the exchange of two groups that fit each other's timers. A group without a
    /// timer counts too.
    pub fn exchanged(&self, timers: &Timers) -> Vec<Timers> {
        let timer_of = |group: GroupId| self.seen.iter().find(|timer| timers.get(timer.name) == Some(&group));
        let fits = |timer: Option<&Seen<'_>>, period| timer.is_none_or(|timer| timer.fits(period).is_some());
        let mut all = Vec::new();
        for (index, &(a, period_a)) in self.limited.iter().enumerate() {
            for &(b, period_b) in &self.limited[index + 1..] {
                let (timer_a, timer_b) = (timer_of(a), timer_of(b));
                let none = timer_a.is_none() && timer_b.is_none();
                if none || !fits(timer_a, period_b) || !fits(timer_b, period_a) {
                    continue;
                }
                let mut timers = timers.clone();
                for (timer, group) in [(timer_a, b), (timer_b, a)] {
                    if let Some(timer) = timer {
                        timers.insert(timer.name.to_owned(), group);
                    }
                }
                all.push(timers);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::folder::{self, Texts};
    use crate::linux::trace;

    fn setup(groups: &str) -> Setup {
        let experiment = groups;
        folder::read(&Texts { experiment, threads: "", tunables: "", trace: "", expected: None }).unwrap()
    }

    fn expiries(of: &[(&str, i64)]) -> Vec<Line> {
        let line = |&(name, ms): &(&str, i64)| {
            format!(
                " <idle>-0 (-) [000] d.h.. 7.{:09}: hrtimer_expire_entry: hrtimer={name} function=sched_cfs_period_timer now={}\n",
                ms * 1_000_000,
                ms * 1_000_000 + 300
            )
        };
        trace::read(&of.iter().map(line).collect::<String>()).unwrap()
    }

    #[test]
    fn a_period_tells_the_group() {
        let setup = setup("cg a max=5000,50000\ncg b max=5000,100000\ncg free\ncg c max=5000,20000\n");
        let lines = expiries(&[
            ("t1", 100),
            ("t2", 107),
            ("t3", 110),
            ("t2", 127),
            ("t3", 160),
            ("t2", 167),
            ("t1", 300),
        ]);
        let candidates = Candidates::of(&setup, &lines);
        let timers = candidates.guessed().unwrap();
        assert_eq!(
            timers,
            Timers::from([("t1".into(), GroupId(1)), ("t2".into(), GroupId(3)), ("t3".into(), GroupId(0))])
        );
        assert!(candidates.exchanged(&timers).is_empty());
    }

    #[test]
    fn groups_of_one_period_are_exchanged_also_with_those_that_have_no_timer() {
        let setup = setup("cg a max=5000,50000\ncg b max=9000,50000\ncg c max=9000,50000\n");
        let lines = expiries(&[("x", 100), ("y", 100)]);
        let candidates = Candidates::of(&setup, &lines);
        let timers = candidates.guessed().unwrap();
        assert_eq!(timers, Timers::from([("x".into(), GroupId(0)), ("y".into(), GroupId(1))]));
        let pairs = |timers: &Timers| timers.values().map(|group| group.0).collect::<Vec<_>>();
        let all: Vec<_> = candidates.exchanged(&timers).iter().map(pairs).collect();
        assert_eq!(all, [[1, 0], [2, 1], [0, 2]]);
    }

    #[test]
    fn a_timer_that_stopped_between_may_be_of_a_shorter_period() {
        let setup = setup("cg a max=5000,100000\ncg b max=5000,50000\n");
        let lines = expiries(&[("x", 100), ("y", 100), ("x", 200), ("y", 200), ("x", 300), ("y", 300)]);
        let candidates = Candidates::of(&setup, &lines);
        let timers = candidates.guessed().unwrap();
        assert_eq!(timers, Timers::from([("x".into(), GroupId(0)), ("y".into(), GroupId(1))]));
        let other = Timers::from([("x".into(), GroupId(1)), ("y".into(), GroupId(0))]);
        assert_eq!(candidates.exchanged(&timers), [other]);
    }

    #[test]
    fn periods_begin_where_the_earliest_expiry_says() {
        let setup = setup("cg a max=5000,50000\ncg b max=5000,100000\n");
        let lines = expiries(&[("x", 107), ("y", 120), ("x", 206), ("y", 222), ("x", 257)]);
        let timers = Timers::from([("x".into(), GroupId(0)), ("y".into(), GroupId(1))]);
        let begin = phases(&setup, &lines, &timers);
        let late = Span::from_ns(300);
        let expected = [(GroupId(0), Span::from_ms(6) + late), (GroupId(1), Span::from_ms(20) + late)];
        assert_eq!(begin.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn more_timers_than_groups_are_refused() {
        let lines = expiries(&[("x", 1), ("y", 2)]);
        let found = Candidates::of(&setup("cg a max=5000,50000\n"), &lines).guessed().unwrap_err();
        assert_eq!((found.line, found.field.as_str(), found.found.as_str()), (2, "hrtimer", "y"));
    }
}
