//! The locks of run queues, where they cost something: on large hosts pCPUs wait for each other.

use crate::{PcpuId, Span, Table, Time};

/// A lock, with the pCPU that had it last and the time until which it is held.
#[derive(Clone, Copy, Debug)]
struct Lock {
    holder: PcpuId,
    until: Time,
}

/// All locks of a host, each named by a pCPU, as [`Scheduler::lock`](crate::Scheduler::lock) names them.
#[derive(Clone, Debug)]
pub(crate) struct Locks(Table<PcpuId, Lock>);

impl Locks {
    /// `count` locks, each held last by the pCPU of its name.
    pub fn new(count: usize) -> Self {
        Locks((0..count as u32).map(|p| Lock { holder: PcpuId(p), until: Time::ZERO }).collect())
    }

    /// `p` takes a lock: the answer is how long until it has it. It waits until those before it have let it go, and `transfer`
    /// more if the last of them was another pCPU. Then it holds it for so long.
    pub fn take(&mut self, now: Time, p: PcpuId, lock: PcpuId, held: Span, transfer: Span) -> Span {
        let Lock { holder, until } = self.0[lock];
        let transfer = if holder == p { Span::ZERO } else { transfer };
        // What the holder itself still does with it is part of its own work.
        let ours = if holder == p { now } else { until.max(now) } + transfer;
        self.0[lock] = Lock { holder: p, until: ours.max(until) + held };
        ours - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_waited_for_and_comes_from_its_last_holder() {
        let mut locks = Locks::new(2);
        let mut take = |now, p, held| {
            let (held, transfer) = (Span::from_ns(held), Span::from_ns(10));
            locks.take(Time::from_ns(now), PcpuId(p), PcpuId(0), held, transfer).ns()
        };
        assert_eq!(take(1000, 0, 500), 0, "its own, and free");
        assert_eq!(take(1200, 1, 500), 300 + 10, "after the holder");
        assert_eq!(take(1300, 2, 0), 200 + 10 + 500 + 10, "after both");
        assert_eq!(take(3000, 2, 500), 0, "nobody had it since");
        assert_eq!(take(4000, 1, 500), 10);
    }
}
