//! Deadlines of periodic jobs: each is judged once, when it passes, whether its job is complete, late, or has not begun.

use vcpulab_host::{Span, Time};

use crate::script::{Script, Step};

/// The deadlines of one task, whose jobs are released at even intervals and done in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadlines {
    period: Span,
    /// From a job's release to its deadline.
    within: Span,
    /// Deadlines up to here are judged.
    judged: Time,
}

impl Deadlines {
    /// The deadlines of a script; `None`: it has none.
    pub fn of(script: &Script) -> Option<Self> {
        let period = script.steps.iter().find_map(|step| match *step {
            Step::Release(period) if !period.is_zero() => Some(period),
            _ => None,
        })?;
        let within = script.steps.iter().find_map(|step| match *step {
            Step::Deadline(within) => Some(within),
            _ => None,
        })?;
        Some(Deadlines { period, within, judged: Time::ZERO })
    }

    /// The job released at `release` is complete: whether it is late, and was not counted as overdue before.
    pub fn complete(&mut self, release: Time, now: Time) -> bool {
        let deadline = release.saturating_add(self.within);
        let counted = deadline <= self.judged;
        self.judged = self.judged.max(deadline);
        now > deadline && !counted
    }

    /// Counts the jobs whose deadlines have passed since it was last asked, from the one released at `release`, which is
    /// the first that is not complete.
    pub fn overdue(&mut self, release: Time, now: Time) -> u64 {
        let first = release.saturating_add(self.within);
        let until =
            |last: Time| if last < first { 0 } else { ((last - first).ns() / self.period.ns()) as u64 + 1 };
        // A job that is complete at its deadline is in time.
        let passed = until(now - Span::from_ns(1)).saturating_sub(until(self.judged));
        self.judged = self.judged.max(now - Span::from_ns(1));
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    fn deadlines() -> Deadlines {
        let steps = vec![Step::Release(Span::from_ms(10)), Step::Deadline(Span::from_ms(10))];
        Deadlines::of(&Script::new(steps)).expect("it has one")
    }

    #[test]
    fn who_never_runs_misses_every_deadline() {
        let mut deadlines = deadlines();
        assert_eq!(deadlines.overdue(at(5), at(15)), 0, "the first is just in time");
        assert_eq!(deadlines.overdue(at(5), at(16)), 1);
        assert_eq!(deadlines.overdue(at(5), at(106)), 9, "one each 10 ms, each once");
        assert_eq!(deadlines.overdue(at(5), at(106)), 0);
    }

    #[test]
    fn a_late_job_is_counted_once_and_one_in_time_never() {
        let mut deadlines = deadlines();
        assert!(!deadlines.complete(at(0), at(10)), "in time");
        assert!(deadlines.complete(at(10), at(21)), "late");
        assert_eq!(deadlines.overdue(at(20), at(35)), 1);
        assert!(!deadlines.complete(at(20), at(36)), "counted when its deadline passed");
        assert_eq!(deadlines.overdue(at(30), at(45)), 1);
    }

    #[test]
    fn only_periodic_jobs_have_deadlines() {
        assert_eq!(Deadlines::of(&Script::new(vec![Step::Deadline(Span::from_ms(1))])), None);
        assert_eq!(
            Deadlines::of(&Script::new(vec![Step::Release(Span::ZERO), Step::Deadline(Span::ZERO)])),
            None
        );
    }
}
