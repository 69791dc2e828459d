//! pCPUs that have switched to another vCPU recently: the rate limit keeps those vCPUs where they are.

use std::collections::VecDeque;

use vcpulab_host::{CpuMask, PcpuId, Table, Time};

/// The latest switches, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    switches: VecDeque<(Time, PcpuId)>,
    /// Time of the last switch of each pCPU that has switched.
    last: Table<PcpuId, Time>,
    pcpus: CpuMask,
}

impl Recent {
    /// Notes that a pCPU switches now, and drops switches before `from`.
    pub fn note(&mut self, now: Time, p: PcpuId, from: Time) {
        self.forget_before(from);
        self.switches.push_back((now, p));
        *self.last.entry(p) = now;
        self.pcpus.insert(p);
    }

    /// pCPUs that have switched at `from` or later; `from` never decreases.
    pub fn since(&mut self, from: Time) -> &CpuMask {
        self.forget_before(from);
        &self.pcpus
    }

    fn forget_before(&mut self, from: Time) {
        while let Some((at, p)) = self.switches.pop_front_if(|&mut (at, _)| at < from) {
            if self.last[p] == at {
                self.pcpus.remove(p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pcpu_is_recent_until_its_last_switch_is_long_ago() {
        let (mut recent, at) = (Recent::default(), Time::from_ns);
        for (now, p) in [(10, 0), (20, 3), (20, 3), (30, 0)] {
            recent.note(at(now), PcpuId(p), Time::ZERO);
        }
        let mut since = |from| recent.since(at(from)).iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!([since(10), since(11), since(20)], [[0, 3], [0, 3], [0, 3]]);
        assert_eq!((since(21), since(30), since(31)), (vec![0], vec![0], vec![]));
    }
}
