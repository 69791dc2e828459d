//! Halt polling, as KVM does it: the thread of a vCPU whose guest has halted keeps its pCPU for a while, in case something comes
//! soon. How long follows from how long halts lasted.

use vcpulab_host::{Op, Span, Time};

/// Halt polling as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaltPollConfig {
    /// Longest poll.
    pub longest: Span,
    /// The first poll, to which none at all grows. Each step after it doubles the poll.
    pub start: Span,
    /// Divisor of the poll after a halt that was longer than the longest poll; 0: polling stops.
    pub shrink: i64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    AtWork,
    /// The guest has halted, and its thread polls.
    Polls {
        since: Time,
    },
    /// The guest has halted, and its thread has blocked.
    Blocked {
        since: Time,
    },
}

/// The halts of one vCPU.
#[derive(Clone, Debug)]
pub(crate) struct HaltPoll {
    config: HaltPollConfig,
    /// The next poll's length.
    limit: Span,
    state: State,
}

impl HaltPoll {
    /// A vCPU that has not halted yet: its first halt finds no polling.
    pub fn new(config: HaltPollConfig) -> Self {
        HaltPoll { config, limit: Span::ZERO, state: State::AtWork }
    }

    /// Notes that the vCPU's thread runs again; if it had blocked, the halt is over.
    pub fn resumes(&mut self, now: Time) {
        if let State::Blocked { since } = self.state {
            self.ended(now - since);
        }
    }

    /// Replaces the vCPU's next operation `op` by a poll or a block if the vCPU halts.
    pub fn next(&mut self, op: Op, now: Time) -> Op {
        match (op, self.state) {
            (Op::Block(wake), State::AtWork) if self.limit.is_zero() => {
                self.state = State::Blocked { since: now };
                Op::Block(wake)
            }
            (Op::Block(_), State::AtWork) => {
                self.state = State::Polls { since: now };
                Op::Poll(self.limit)
            }
            // The poll was in vain.
            (Op::Block(wake), State::Polls { since } | State::Blocked { since }) => {
                self.state = State::Blocked { since };
                Op::Block(wake)
            }
            (op, State::Polls { since }) => {
                self.ended(now - since);
                op
            }
            (op, State::AtWork | State::Blocked { .. }) => {
                self.state = State::AtWork;
                op
            }
        }
    }

    /// Adjusts the next poll after a halt of this length.
    fn ended(&mut self, halt: Span) {
        self.state = State::AtWork;
        let HaltPollConfig { longest, start, shrink } = self.config;
        if halt <= self.limit {
            return;
        }
        if halt > longest {
            let shrunk = if shrink == 0 { Span::ZERO } else { self.limit / shrink };
            self.limit = if shrunk < start { Span::ZERO } else { shrunk };
        } else if self.limit < longest {
            self.limit = (2 * self.limit).max(start).min(longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: i64) -> Span {
        Span::from_us(us)
    }

    /// The limits after halts of these lengths, one after the other, each with 1 ms of work before it.
    fn limits(shrink: i64, halts: &[i64]) -> Vec<i64> {
        let mut poll = HaltPoll::new(HaltPollConfig { longest: us(200), start: us(10), shrink });
        let mut now = Time::ZERO;
        let mut limits = Vec::new();
        for &halt in halts {
            now += Span::from_ms(1);
            let halted = now;
            let op = poll.next(Op::Block(None), now);
            assert_eq!(op, if poll.limit.is_zero() { Op::Block(None) } else { Op::Poll(poll.limit) });
            if us(halt) > poll.limit && !poll.limit.is_zero() {
                assert_eq!(poll.next(Op::Block(None), now + poll.limit), Op::Block(None), "it was in vain");
            }
            now = halted + us(halt);
            poll.resumes(now);
            assert_eq!(poll.next(Op::Run(us(1)), now), Op::Run(us(1)));
            limits.push(poll.limit.ns() / 1000);
        }
        limits
    }

    #[test]
    fn short_halts_make_it_poll_for_longer() {
        assert_eq!(limits(2, &[150, 150, 150, 150, 150, 150, 150]), [10, 20, 40, 80, 160, 160, 160]);
        assert_eq!(limits(2, &[199, 199, 199, 199, 199, 199]), [10, 20, 40, 80, 160, 200]);
        assert_eq!(limits(2, &[150, 5]), [10, 10], "what comes while it polls changes nothing");
    }

    #[test]
    fn long_halts_make_it_poll_for_less() {
        assert_eq!(limits(2, &[150, 150, 150, 300, 300, 300]), [10, 20, 40, 20, 10, 0]);
        assert_eq!(limits(0, &[150, 150, 150, 300]), [10, 20, 40, 0], "or not at all");
        assert_eq!(limits(2, &[1000, 1000]), [0, 0]);
    }
}
