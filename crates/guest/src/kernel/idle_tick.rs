//! The tick of a kernel that goes idle: Linux leaves it on at first. The next one finds the vCPU idle, and only then is it
//! stopped (`tick_stop`), until a task is to run. So a vCPU that sleeps longer than a tick wakes twice. What interrupts alone
//! deal with (`softirq`) does not start it again: the kernel stays in its idle loop. Ticks that find it busy take part of the
//! time of whatever it does.

use vcpulab_host::{NEVER, Span, Time};

/// A kernel's tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleTick {
    /// Time from one to the next, ns, at least 1.
    pub period_ns: Span,
    /// CPU time of one that finds the vCPU idle, ns, at least 1.
    pub cpu_ns: Span,
    /// CPU time of one that finds it busy, beside what its tasks compute, ns.
    pub busy_ns: Span,
    /// Time of a tick since the start of the run, ns; `None`: open. A run then chooses the time; a kernel on its own
    /// takes the start.
    pub at_ns: Option<Span>,
}

/// The tick of one vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    config: IdleTick,
    /// A time at which the tick is due while it is on.
    phase: Time,
    /// Time of the next tick (`NEVER`: the vCPU is busy, or the tick is stopped).
    due: Time,
    /// Whether a tick has found the vCPU idle, and no task has run since.
    stopped: bool,
    /// Ticks until then have had their time, or have found it idle.
    charged: Time,
}

impl Tick {
    pub fn new(config: IdleTick, phase: Time) -> Self {
        Tick { config, phase, due: NEVER, stopped: false, charged: Time::ZERO }
    }

    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Time at which this number of ticks after `now` is over. A tick that is due exactly at `now` does not count.
    pub fn after(&self, now: Time, ticks: u32) -> Time {
        let period = self.config.period_ns;
        let since = Span::from_ns((now - self.phase).ns().rem_euclid(period.ns()));
        now.saturating_add(period.saturating_mul(ticks.into())) - since
    }

    /// CPU time of the tick that finds the vCPU idle now, ns; `None`: none is due. The time of one that finds it with something
    /// to do is in that of its tasks.
    pub fn take(&mut self, now: Time) -> Option<Span> {
        let is_due = self.due <= now;
        if is_due {
            (self.due, self.charged, self.stopped) = (NEVER, now, true);
        }
        is_due.then_some(self.config.cpu_ns)
    }

    /// The vCPU wakes: no tick has found it busy yet.
    pub fn wake(&mut self, now: Time) {
        (self.due, self.charged) = (NEVER, now);
    }

    /// CPU time of ticks that have found it busy, ns: several that came while it could not run are one.
    pub fn found_busy(&mut self, now: Time) -> Span {
        if !self.takes_time() || self.after(self.charged, 1) > now {
            return Span::ZERO;
        }
        self.charged = now;
        self.config.busy_ns
    }

    /// Computing time from `now` until a tick takes time (`None`: no tick does).
    pub fn until_busy(&self, now: Time) -> Option<Span> {
        self.takes_time().then(|| self.after(now, 1) - now)
    }

    /// Whether the tick takes CPU time from the vCPU's tasks.
    fn takes_time(&self) -> bool {
        !self.stopped && !self.config.busy_ns.is_zero()
    }

    /// Starts it again: the vCPU has found a task.
    pub fn restart(&mut self) {
        (self.due, self.stopped) = (NEVER, false);
    }

    /// Leaves it on for one more time, unless it is stopped: the vCPU has found nothing.
    pub fn go_idle(&mut self, now: Time) {
        if !self.stopped {
            self.due = self.after(now, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tick_finds_it_idle_and_no_other() {
        let (time, span) = (Time::from_ns, Span::from_ns);
        let mut tick = Tick::new(
            IdleTick { period_ns: span(100), cpu_ns: span(7), busy_ns: Span::ZERO, at_ns: None },
            time(30),
        );
        assert_eq!((tick.take(time(0)), tick.due()), (None, NEVER), "it was not idle yet");
        tick.go_idle(time(10));
        assert_eq!((tick.take(time(29)), tick.due()), (None, time(30)));
        assert_eq!(tick.take(time(30)), Some(span(7)));
        assert_eq!(tick.take(time(37)), None);
        tick.go_idle(time(37));
        assert_eq!(tick.due(), NEVER, "stopped");
        tick.restart();
        tick.go_idle(time(30));
        assert_eq!(tick.due(), time(130), "a tick that is due just now is over");
        assert_eq!((tick.after(time(29), 1), tick.after(time(30), 2)), (time(30), time(230)));
        tick.restart();
        assert_eq!((tick.take(time(130)), tick.due()), (None, NEVER), "something was to be done before");
    }

    #[test]
    fn ticks_find_it_busy_once_for_each_time_that_it_can_run() {
        let (time, span) = (Time::from_ns, Span::from_ns);
        let mut tick = Tick::new(
            IdleTick { period_ns: span(100), cpu_ns: span(7), busy_ns: span(3), at_ns: None },
            time(30),
        );
        tick.wake(time(50));
        assert_eq!((tick.found_busy(time(129)), tick.until_busy(time(50))), (Span::ZERO, Some(span(80))));
        assert_eq!((tick.found_busy(time(130)), tick.found_busy(time(133))), (span(3), Span::ZERO));
        assert_eq!(tick.found_busy(time(590)), span(3), "it was kept from running meanwhile");
        tick.wake(time(690));
        assert_eq!(tick.found_busy(time(729)), Span::ZERO, "none came since it woke");
    }
}
