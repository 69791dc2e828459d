//! The state before a recording, which the recording does not contain: the state with the fewest differences is searched for.
//!
//! Under EEVDF a thread keeps, however long it sleeps, what it was behind its share, or ahead of it, as it blocked. VMs' threads
//! begin with nothing, as each has run alone. The host's own have a past: each wakes but some times a second, for some
//! microseconds, and so keeps most of what it began with through a recording.
//!
//! Under CFS all who wake are behind the others of their queue by the same, unless they had run as recently as those: so it is with
//! groups of one parent, behind which nothing else ran in between. Threads tell themselves what they ran.
//!
//! A limited group's queue keeps 1 ms at most as its last thread blocks. Where several threads woke since, less is left of that.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use vcpulab_host::{GroupId, Span};

use super::folder::Setup;
use super::outcome::{Beginning, Outcome, Whose};
use super::trace::{Event, Line, PRIO_FAIR};

/// Precision of lags.
const FINEST: Span = Span::from_us(2);

/// The fair threads that are the host's own.
pub fn of_host(setup: &Setup, lines: &[Line]) -> BTreeSet<Whose> {
    let woken = lines.iter().filter_map(|line| match line.event {
        Event::Waking(thread, prio) if prio >= PRIO_FAIR => Some(thread),
        _ => None,
    });
    woken.filter(|thread| !setup.threads.contains_key(thread)).map(Whose::Thread).collect()
}

/// The groups that have a parent, but for the first of each: they stand to that one.
pub fn nested(setup: &Setup) -> BTreeSet<Whose> {
    let mut seen = BTreeSet::new();
    let of_parents = (0..).zip(&setup.groups).filter_map(|(id, group)| Some((GroupId(id), group.parent?)));
    of_parents.filter(|&(_, parent)| !seen.insert(parent)).map(|(group, _)| Whose::Group(group)).collect()
}

/// The groups with a limit.
pub fn limited(setup: &Setup) -> BTreeSet<Whose> {
    let limited = (0..).zip(&setup.groups).filter(|(_, group)| group.quota.is_some());
    limited.map(|(id, _)| Whose::Limit(GroupId(id))).collect()
}

/// The most of the runtime that a queue keeps that can have been used: all.
pub const USED_MAX: Span = Span::from_ms(1);

/// Changes one lag at a time, by `most` at first and by ever less, as long as fewer decisions differ, or the first one that does
/// comes later. `with` replays, and stops with `None` once more decisions differ than its second argument allows.
pub fn with_lags(
    mut best: Outcome,
    whose: &BTreeSet<Whose>,
    most: Span,
    with: impl Fn(&Beginning, u64) -> Option<Outcome>,
) -> Outcome {
    let worth = |outcome: &Outcome| {
        (outcome.differing, Reverse(outcome.first.as_ref().map_or(usize::MAX, |first| first.line)))
    };
    let mut step = most;
    while step >= FINEST {
        let before = worth(&best);
        for &whose in whose {
            for by in [step, Span::ZERO - step] {
                if best.differing == 0 {
                    return best;
                }
                let mut other = best.beginning.clone();
                let lag = other.lags.entry(whose).or_default();
                *lag = (*lag + by).clamp(Span::ZERO - most, most);
                if let Some(outcome) =
                    with(&other, best.differing).filter(|found| worth(found) < worth(&best))
                {
                    best = outcome;
                }
            }
        }
        if worth(&best) == before {
            step = step / 2;
        }
    }
    best
}

/// Draws some of the lags at random, and keeps those with which the first difference comes as late as before or later. `agrees` is
/// the number of lines up to the first difference; `None`: no decision differs.
///
/// Each wake-up of the host's own threads tells something of their lags alone, and what one of them can be depends on the others.
/// So one lag at a time is not enough, and the number of all differences does not tell which lags are wrong: a state that differs
/// once goes on differing.
pub fn draw_lags(
    begun: &Beginning,
    whose: &BTreeSet<Whose>,
    most: Span,
    agrees: impl Fn(&Beginning) -> Option<usize>,
) -> Beginning {
    let mut best = begun.clone();
    let mut random = Random(1);
    let mut lines = agrees(&best);
    for _ in 0..DRAWS {
        let Some(before) = lines else { break };
        let mut other = best.clone();
        for &whose in whose {
            if random.below(2) == 0 {
                continue;
            }
            let (least, most) = match whose {
                Whose::Limit(_) => (Span::ZERO, USED_MAX),
                _ => (Span::ZERO - most, most),
            };
            // Small changes as often as great ones, of the lag as it is or of none.
            let by = most.ns() >> random.below(SCALES);
            let by = i64::try_from(random.below(2 * by.unsigned_abs() + 1)).unwrap_or(0) - by;
            let lag = other.lags.entry(whose).or_default();
            let from = if random.below(2) == 0 { *lag } else { Span::ZERO };
            *lag = (from + Span::from_ns(by)).clamp(least, most);
        }
        let after = agrees(&other);
        if after.is_none_or(|after| after >= before) {
            (best, lines) = (other, after);
        }
    }
    best
}

/// Number of draws, and of scales of the changes, each half of the one before.
const DRAWS: u32 = 1000;
const SCALES: u64 = 12;

/// Random numbers (SplitMix64), the same in each replay.
struct Random(u64);

impl Random {
    /// A number from 0 to below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::folder::{self, Texts};
    use crate::linux::outcome::Difference;

    /// A replay in which the number of differing decisions is the distance of two lags from `were`, in tenths of a ms;
    /// the greater the distance, the earlier the first.
    fn replayed(beginning: &Beginning, were: [i64; 2]) -> Outcome {
        let lag = |thread| beginning.lags.get(&Whose::Thread(thread)).copied().unwrap_or_default();
        let away: i64 = (1..).zip(were).map(|(thread, us)| (lag(thread).ns() - us * 1000).abs()).sum();
        let line = usize::try_from(1_000_000 - away / 1000).unwrap_or(0);
        let first = Difference { line, what: "choice", expected: String::new(), got: String::new() };
        Outcome {
            differing: away.unsigned_abs() / 100_000,
            first: Some(first),
            beginning: beginning.clone(),
            ..Outcome::default()
        }
    }

    #[test]
    fn groups_of_one_parent_stand_to_the_first_of_them() {
        let experiment = "cg a\ncg a/x\ncg b max=5000,20000\ncg a/y\ncg a/y/v\ncg a/z max=5000,20000\n";
        let texts = Texts { experiment, threads: "", tunables: "", trace: "", expected: None };
        let setup = folder::read(&texts).unwrap();
        assert_eq!(nested(&setup), BTreeSet::from([3, 5].map(|id| Whose::Group(GroupId(id)))));
        assert_eq!(limited(&setup), BTreeSet::from([2, 5].map(|id| Whose::Limit(GroupId(id)))));
    }

    /// The first thread's lag is told by line 10 and, together with the second's, by line 20.
    #[test]
    fn lags_that_depend_on_each_other_are_drawn() {
        let agrees = |beginning: &Beginning| {
            let us = |thread| beginning.lags.get(&Whose::Thread(thread)).map_or(0, |lag| lag.ns() / 1000);
            match (us(1), us(2)) {
                (first, _) if !(-900..-100).contains(&first) => Some(10),
                (first, second) if !(first + 300..first + 600).contains(&second) => Some(20),
                _ => None,
            }
        };
        let whose = BTreeSet::from([1, 2].map(Whose::Thread));
        let begun = Beginning::default();
        let drawn = draw_lags(&begun, &whose, Span::from_ms(4), agrees);
        assert_eq!(agrees(&drawn), None, "{drawn:?}");
        assert_eq!(drawn, draw_lags(&begun, &whose, Span::from_ms(4), agrees));
        let limit = BTreeSet::from([Whose::Limit(GroupId(0))]);
        let used = draw_lags(&begun, &limit, Span::from_ms(4), |_| Some(1));
        assert!((Span::ZERO..=USED_MAX).contains(&used.lags[&Whose::Limit(GroupId(0))]));
    }

    #[test]
    fn lags_are_found_one_at_a_time() {
        let with = |beginning: &Beginning, most| {
            Some(replayed(beginning, [-630, 3160])).filter(|outcome| outcome.differing <= most)
        };
        let begun = replayed(&Beginning::default(), [-630, 3160]);
        assert_eq!(begun.differing, 37);
        let found = with_lags(begun, &BTreeSet::from([1, 2].map(Whose::Thread)), Span::from_ms(4), with);
        assert_eq!(found.differing, 0);
        // None is beyond what may be.
        let with = |beginning: &Beginning, _| Some(replayed(beginning, [0, 9000]));
        let found = with_lags(
            with(&Beginning::default(), 0).unwrap(),
            &BTreeSet::from([Whose::Thread(2)]),
            Span::from_ms(4),
            with,
        );
        assert_eq!((found.differing, found.beginning.lags[&Whose::Thread(2)]), (50, Span::from_ms(4)));
    }
}
