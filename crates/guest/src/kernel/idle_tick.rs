//! The tick of a kernel that goes idle: Linux leaves it on at first. The next one finds the vCPU idle, and only then is it
//! stopped (`tick_stop`), until there is work again. So a vCPU that sleeps longer than a tick wakes twice.

use vcpulab_host::{NEVER, Span, Time};

/// A kernel's tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdleTick {
    /// Time from one to the next, ns, at least 1.
    pub period_ns: Span,
    /// CPU time of one that finds the vCPU idle, ns, at least 1.
    pub cpu_ns: Span,
    /// When one of them is, from the start of the run on, ns; `None`: at random.
    pub at_ns: Option<Span>,
}

/// The tick of one vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    config: IdleTick,
    /// One of the times at which it would be due.
    phase: Time,
    /// Its next time (`NEVER`: the vCPU is busy, or it is stopped).
    due: Time,
    stopped: bool,
}

impl Tick {
    pub fn new(config: IdleTick, phase: Time) -> Self {
        Tick { config, phase, due: NEVER, stopped: false }
    }

    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// When that many ticks after `now` are over: one that is due just now has been.
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
            self.due = NEVER;
        }
        is_due.then_some(self.config.cpu_ns)
    }

    /// Starts it again: the vCPU has found a task.
    pub fn restart(&mut self) {
        (self.due, self.stopped) = (NEVER, false);
    }

    /// Leaves it on for one more time: the vCPU has found nothing.
    pub fn go_idle(&mut self, now: Time) {
        if !std::mem::replace(&mut self.stopped, true) {
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
        let mut tick = Tick::new(IdleTick { period_ns: span(100), cpu_ns: span(7), at_ns: None }, time(30));
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
}
