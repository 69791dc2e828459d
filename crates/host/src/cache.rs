//! Cold caches: what a vCPU finds left of its working set when it comes back to a pCPU.
//!
//! Each pCPU has a private cache of fixed size under least-recently-used replacement, and each vCPU a working set that
//! it touches whenever it runs. What the *other* vCPUs that ran here since have touched lies on top of it in the LRU
//! stack; what then no longer fits is gone and must be brought in again, at so much per line. So two vCPUs whose
//! working sets fit together do not disturb each other, and two that do not fit pay at every switch.

use crate::{PcpuId, Span, VcpuId};

const NONE: u32 = u32::MAX;

/// One pCPU's LRU stack of vCPUs, most recent first, as a linked list over vCPU numbers.
#[derive(Clone, Debug, Default)]
struct Stack {
    head: Option<u32>,
    /// Next less recent vCPU, and next more recent one, by vCPU number ([`NONE`]: no such vCPU).
    older: Vec<u32>,
    newer: Vec<u32>,
    known: Vec<bool>,
}

impl Stack {
    fn move_to_front(&mut self, v: u32) {
        if self.head == Some(v) {
            return;
        }
        let i = v as usize;
        if self.known[i] {
            let (older, newer) = (self.older[i], self.newer[i]);
            if newer != NONE {
                self.older[newer as usize] = older;
            }
            if older != NONE {
                self.newer[older as usize] = newer;
            }
        }
        self.known[i] = true;
        self.newer[i] = NONE;
        self.older[i] = self.head.unwrap_or(NONE);
        if let Some(head) = self.head {
            self.newer[head as usize] = v;
        }
        self.head = Some(v);
    }
}

/// The private caches of all pCPUs.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    stacks: Vec<Stack>,
    working_set_bytes: Vec<u64>,
    /// Misses by vCPU since the host started, lines.
    misses: Vec<u64>,
}

/// What coming back to a pCPU costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refill {
    /// Lines brought in again.
    pub lines: u64,
    /// Time that takes, ns.
    pub time_ns: Span,
}

impl Caches {
    pub(crate) fn add_pcpu(&mut self) {
        self.stacks.push(Stack::default());
    }

    pub(crate) fn set_working_set(&mut self, v: VcpuId, bytes: u64) {
        let size = v.index() + 1;
        if self.working_set_bytes.len() < size {
            self.working_set_bytes.resize(size, 0);
            self.misses.resize(size, 0);
            for stack in &mut self.stacks {
                stack.older.resize(size, NONE);
                stack.newer.resize(size, NONE);
                stack.known.resize(size, false);
            }
        }
        self.working_set_bytes[v.index()] = bytes;
    }

    /// Lines missed by `v` so far.
    pub fn misses(&self, v: VcpuId) -> u64 {
        self.misses.get(v.index()).copied().unwrap_or(0)
    }

    /// `v` starts to run on `p`: what must it bring in again?
    pub(crate) fn switch_in(&mut self, costs: &crate::Costs, p: PcpuId, v: VcpuId) -> Refill {
        let none = Refill { lines: 0, time_ns: 0 };
        let Some(&own) = self.working_set_bytes.get(v.index()) else { return none };
        let stack = &mut self.stacks[p.index()];
        let mut on_top = 0;
        let mut found = false;
        let mut next = stack.head;
        while let Some(u) = next {
            if u == v.0 {
                found = true;
                break;
            }
            on_top += self.working_set_bytes[u as usize];
            if on_top >= costs.cache_bytes {
                break;
            }
            let older = stack.older[u as usize];
            next = (older != NONE).then_some(older);
        }
        stack.move_to_front(v.0);
        let left = if found { own.min(costs.cache_bytes.saturating_sub(on_top)) } else { 0 };
        let lines = (own.min(costs.cache_bytes) - left).div_ceil(costs.cache_line_bytes);
        self.misses[v.index()] += lines;
        Refill { lines, time_ns: lines as i64 * costs.cache_miss_ps / 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Costs;

    fn caches(sets: &[u64]) -> Caches {
        let mut caches = Caches::default();
        caches.add_pcpu();
        for (v, &bytes) in sets.iter().enumerate() {
            caches.set_working_set(VcpuId(v as u32), bytes);
        }
        caches
    }

    const COSTS: Costs =
        Costs { cache_bytes: 1000, cache_line_bytes: 10, cache_miss_ps: 5000, ..Costs::ZERO };

    #[test]
    fn sets_that_fit_together_do_not_disturb_each_other() {
        let mut caches = caches(&[400, 500]);
        let lines: Vec<u64> =
            [0, 1, 0, 1, 0].map(|v| caches.switch_in(&COSTS, PcpuId(0), VcpuId(v)).lines).to_vec();
        assert_eq!(lines, [40, 50, 0, 0, 0], "only the first touch misses");
    }

    #[test]
    fn sets_that_do_not_fit_pay_for_the_overlap_at_every_switch() {
        let mut caches = caches(&[600, 700]);
        let refills = [0, 1, 0, 1].map(|v| caches.switch_in(&COSTS, PcpuId(0), VcpuId(v)));
        assert_eq!(refills.map(|r| r.lines), [60, 70, 30, 30]);
        assert_eq!(refills[2].time_ns, 150);
        assert_eq!(caches.misses(VcpuId(0)), 90);
    }

    #[test]
    fn a_vcpu_that_ran_twice_in_between_counts_once() {
        let mut caches = caches(&[400, 300, 300]);
        for v in [0, 1, 2, 1, 2, 1] {
            caches.switch_in(&COSTS, PcpuId(0), VcpuId(v));
        }
        assert_eq!(caches.switch_in(&COSTS, PcpuId(0), VcpuId(0)).lines, 0);
    }
}
