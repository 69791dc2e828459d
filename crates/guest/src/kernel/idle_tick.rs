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
}

/// The tick of one vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    config: IdleTick,
    /// One of the times at which it would be due.
    phase: Time,
    /// Its next time (`NEVER`: the vCPU is busy, or it is stopped).
    due: Time,
    /// The rest of its work, ns.
    left: Span,
    stopped: bool,
}

impl Tick {
    pub fn new(config: IdleTick, phase: Time) -> Self {
        Tick { config, phase, due: NEVER, left: 0, stopped: false }
    }

    pub fn due(&self) -> Time {
        self.due
    }

    /// Time of the tick before the vCPU looks for other work, ns; `None`: none is due.
    pub fn work(&mut self, now: Time) -> Option<Span> {
        if self.due <= now {
            (self.due, self.left) = (NEVER, self.config.cpu_ns);
        }
        (self.left > 0).then_some(self.left)
    }

    /// Accounts for `span` of its work.
    pub fn worked(&mut self, span: Span) {
        self.left -= span.min(self.left);
    }

    /// Starts it again: the vCPU has found a task.
    pub fn restart(&mut self) {
        (self.due, self.stopped) = (NEVER, false);
    }

    /// Leaves it on for one more time: the vCPU has found nothing.
    pub fn go_idle(&mut self, now: Time) {
        if !std::mem::replace(&mut self.stopped, true) {
            let since = (now - self.phase).rem_euclid(self.config.period_ns);
            self.due = now + self.config.period_ns - since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tick_finds_it_idle_and_no_other() {
        let mut tick = Tick::new(IdleTick { period_ns: 100, cpu_ns: 7 }, 30);
        assert_eq!((tick.work(0), tick.due()), (None, NEVER), "it was not idle yet");
        tick.go_idle(10);
        assert_eq!(tick.due(), 30);
        assert_eq!(tick.work(30), Some(7));
        tick.worked(5);
        assert_eq!(tick.work(35), Some(2), "it is not done with it");
        tick.worked(2);
        assert_eq!(tick.work(37), None);
        tick.go_idle(37);
        assert_eq!(tick.due(), NEVER, "stopped");
        tick.restart();
        tick.go_idle(30);
        assert_eq!(tick.due(), 130, "a tick that is due just now is over");
        tick.restart();
        assert_eq!((tick.work(130), tick.due()), (None, NEVER), "something was to be done before");
    }
}
