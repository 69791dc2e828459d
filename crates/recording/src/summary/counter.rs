//! The events of a recording, counted in one pass.

use std::collections::BTreeMap;

use crate::event::{Event, Kind, RunState, Who};
use crate::histogram::Times;
use crate::limits::{PAIRS_MAX, PCPUS_MAX, VCPUS_MAX};
use crate::summary::pcpu::OnPcpu;

/// Counters of a vCPU.
#[derive(Debug, Default)]
pub(super) struct Counted {
    stay: Option<Stay>,
    /// By runstate.
    pub(super) times: [i64; 4],
    pub(super) unknown_ns: i64,
    pub(super) executions: u64,
    pub(super) preempted: u64,
    pub(super) continued: u64,
    pub(super) yields: u64,
    pub(super) migrations: u64,
    pub(super) wakes: u64,
    pub(super) to_idle: u64,
    pub(super) ran_next: u64,
    pub(super) ran_later: u64,
    pub(super) ran_elsewhere: u64,
    pub(super) slices: u64,
    pub(super) slice_ns: i64,
    /// The pCPU that it ran on last.
    pcpu: Option<u32>,
    /// Last wake-up of the vCPU, until it runs: the time, the pCPU that it ran on before, and the number of switches there.
    woken: Option<(i64, Option<u32>, u64)>,
    /// CPU time since it woke; `None`: not known since when.
    burst_ns: Option<i64>,
    pub(super) latency: Times,
    pub(super) wait: Times,
    pub(super) execution: Times,
    pub(super) burst: Times,
    pub(super) block: Times,
}

impl Counted {
    /// A stay in a runstate ends; its length is given if all of it is known.
    fn ended(&mut self, state: Option<RunState>, whole_ns: Option<i64>) {
        let Some(ns) = whole_ns else {
            (self.woken, self.burst_ns) = (None, None);
            return;
        };
        match state {
            Some(RunState::Running) => {
                self.execution.add(ns);
                self.burst_ns = self.burst_ns.map(|burst| burst.saturating_add(ns));
            }
            Some(RunState::Runnable) => self.wait.add(ns),
            Some(RunState::Blocked) => self.block.add(ns),
            _ => {}
        }
    }

    /// An execution begins on a pCPU, which has switched this many times.
    fn runs(&mut self, pcpu: u32, switches: u64, now: i64) {
        self.executions += 1;
        if let Some((at, before, switches_before)) = self.woken.take() {
            self.latency.add(now - at);
            match before {
                Some(before) if before != pcpu => self.ran_elsewhere += 1,
                _ if switches <= switches_before => self.ran_next += 1,
                _ => self.ran_later += 1,
            }
        }
        if self.pcpu.replace(pcpu).is_some_and(|before| before != pcpu) {
            self.migrations += 1;
        }
    }

    /// Counts a block of the vCPU, which ends its burst.
    fn blocks(&mut self) {
        if let Some(burst) = self.burst_ns.filter(|&burst| burst > 0) {
            self.burst.add(burst);
        }
        (self.woken, self.burst_ns) = (None, None);
    }
}

/// The runstate that a vCPU is in.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// `None`: unknown.
    state: Option<RunState>,
    since_ns: i64,
    /// Whether the stay began with a record and no record is missing since.
    whole: bool,
    /// Number of gaps when it began: of its pCPU if it runs, of all if not.
    gaps: u64,
}

/// Counts events for a [`Summary`](crate::Summary).
#[derive(Debug, Default)]
pub struct Counter {
    /// The index of each vCPU.
    pub(super) number: BTreeMap<(u32, u32), usize>,
    pub(super) vcpus: Vec<Counted>,
    pub(super) pcpus: Vec<OnPcpu>,
    /// By domain: when it was created and destroyed.
    pub(super) added: BTreeMap<u32, (Option<i64>, Option<i64>)>,
    /// By pCPU and vCPU: time run.
    pub(super) ran_on: BTreeMap<(u32, usize), i64>,
    /// By waker and woken vCPU: wake-ups.
    pub(super) wakings: BTreeMap<(Option<usize>, usize), u64>,
    pub(super) end_ns: i64,
    pub(super) lost_records: u64,
    pub(super) gaps: u64,
    /// Time at which the latest gap began.
    gap_from_ns: i64,
    pub(super) contradictions: u64,
    /// Switches whose counterpart is missing.
    pub(super) unrecorded: u64,
    /// Changes of runstates.
    pub(super) runstates: u64,
    /// Records of vCPUs beyond the limit.
    pub(super) not_shown: u64,
    /// Records of pairs beyond the limit.
    pub(super) pairs_not_shown: u64,
}

impl Counter {
    /// Counts an event.
    pub fn count(&mut self, event: &Event) {
        let now = event.time_ns;
        self.end_ns = self.end_ns.max(now);
        if event.pcpu >= PCPUS_MAX || event.kind == Kind::End {
            return;
        }
        let p = event.pcpu as usize;
        if self.pcpus.len() <= p {
            self.pcpus.resize_with(p + 1, OnPcpu::default);
        }
        self.pcpus[p].seen = true;
        match event.kind {
            Kind::Lost { records, since_ns } => return self.lost(p, records, since_ns, now),
            Kind::Unknown { since_ns } => return self.unknown(p, event.who, since_ns, now),
            Kind::Added | Kind::Removed => {
                if let Who::Vcpu { domain, .. } = event.who
                    && (self.added.len() < VCPUS_MAX || self.added.contains_key(&domain))
                {
                    let (added, removed) = self.added.entry(domain).or_default();
                    *(if event.kind == Kind::Added { added } else { removed }) = Some(now);
                }
                return;
            }
            _ => {}
        }
        let on_this = event.kind.states();
        let Who::Vcpu { domain, vcpu } = event.who else {
            if let Some((_, to)) = on_this {
                self.pcpus[p].switch(now, event.who, to);
            }
            return;
        };
        let Some(v) = self.vcpu(domain, vcpu) else {
            if let Some((_, to)) = on_this {
                self.pcpus[p].switch(now, Who::Host, to);
            }
            return;
        };
        match event.kind {
            Kind::Continue => self.vcpus[v].continued += 1,
            Kind::Yield => self.vcpus[v].yields += 1,
            Kind::Slice(ns) => {
                self.vcpus[v].slices += 1;
                self.vcpus[v].slice_ns = self.vcpus[v].slice_ns.saturating_add(i64::from(ns));
            }
            _ => {}
        }
        if let Some((from, to)) = on_this {
            self.runstates += 1;
            self.change(p, v, now, from, to);
            let is_current = self.pcpus[p].current.is_some_and(|(who, _)| who == event.who);
            if to == RunState::Running || from == Some(RunState::Running) || is_current {
                self.pcpus[p].switch(now, event.who, to);
            }
        }
    }

    /// The index of a vCPU; `None` if there are too many.
    fn vcpu(&mut self, domain: u32, vcpu: u32) -> Option<usize> {
        if let Some(&v) = self.number.get(&(domain, vcpu)) {
            return Some(v);
        }
        if self.vcpus.len() == VCPUS_MAX {
            self.not_shown += 1;
            return None;
        }
        self.number.insert((domain, vcpu), self.vcpus.len());
        self.vcpus.push(Counted::default());
        Some(self.vcpus.len() - 1)
    }

    fn change(&mut self, p: usize, v: usize, now: i64, from: Option<RunState>, to: RunState) {
        if self.vcpus[v].pcpu.is_none() && from == Some(RunState::Running) {
            self.vcpus[v].pcpu = Some(p as u32);
        }
        if self.vcpus[v].stay.is_some_and(|stay| stay.state == Some(to) && from.is_none_or(|from| from == to))
        {
            // Recorded twice: it goes on.
            return;
        }
        let (state, whole_ns) = self.leave(v, now, from);
        let gaps = if to == RunState::Running { self.pcpus[p].gaps } else { self.gaps };
        let counted = &mut self.vcpus[v];
        counted.ended(state, whole_ns);
        counted.stay = Some(Stay { state: Some(to), since_ns: now, whole: true, gaps });
        match to {
            RunState::Running => {
                counted.runs(p as u32, self.pcpus[p].switches, now);
                // A vCPU that runs without having waited (a record is missing) was woken unseen.
                if !matches!(state, Some(RunState::Runnable | RunState::Offline)) {
                    counted.burst_ns = None;
                }
            }
            RunState::Runnable if state == Some(RunState::Running) => counted.preempted += 1,
            // A cap lets it go on, or begins to hold it back: nothing woke it.
            RunState::Runnable if state == Some(RunState::Offline) => {}
            RunState::Offline if state != Some(RunState::Blocked) => {}
            // Woken, even if a cap holds it back at first.
            RunState::Runnable | RunState::Offline => self.wakes(p, v, now),
            RunState::Blocked => counted.blocks(),
        }
    }

    /// A vCPU wakes on a pCPU.
    fn wakes(&mut self, p: usize, v: usize, now: i64) {
        let counted = &mut self.vcpus[v];
        counted.wakes += 1;
        counted.burst_ns = Some(0);
        let there = &self.pcpus[counted.pcpu.map_or(p, |pcpu| pcpu as usize)];
        counted.woken = Some((now, counted.pcpu, there.switches));
        if matches!(there.current, Some((Who::Idle, _))) {
            counted.to_idle += 1;
        }
        let waker = match self.pcpus[p].current {
            Some((Who::Vcpu { domain, vcpu }, _)) => self.number.get(&(domain, vcpu)).copied(),
            _ => None,
        };
        if !add(&mut self.wakings, (waker, v), 1) {
            self.pairs_not_shown += 1;
        }
    }

    /// Accounts the time until now. Returns the runstate that ends, if it is known, and its length if all of it is.
    pub(super) fn leave(
        &mut self,
        v: usize,
        now: i64,
        from: Option<RunState>,
    ) -> (Option<RunState>, Option<i64>) {
        let counted = &mut self.vcpus[v];
        let Some(stay) = counted.stay else {
            // It was in this state since the recording began, if nothing is missing.
            let known = from.filter(|_| self.gaps == 0);
            let Some(from) = known else {
                counted.unknown_ns += now;
                return (from, None);
            };
            counted.times[from as usize] += now;
            if from == RunState::Running {
                let pcpu = counted.pcpu;
                self.ran(v, pcpu, now);
            }
            return (Some(from), None);
        };
        let lasted = (now - stay.since_ns).max(0);
        let Some(state) = stay.state else {
            counted.unknown_ns += lasted;
            return (from, None);
        };
        let (gaps, gap_from_ns) = match (state, counted.pcpu) {
            (RunState::Running, Some(pcpu)) => {
                let pcpu = &self.pcpus[pcpu as usize];
                (pcpu.gaps, pcpu.gap_from_ns)
            }
            _ => (self.gaps, self.gap_from_ns),
        };
        let contradicts = from.is_some_and(|from| from != state);
        // With a single gap, the time up to it is known.
        let known_ns = match gaps - stay.gaps {
            0 if contradicts => 0,
            0 => lasted,
            1 => (gap_from_ns - stay.since_ns).clamp(0, lasted),
            _ => 0,
        };
        if contradicts && gaps == stay.gaps {
            self.contradictions += 1;
        }
        self.stayed(v, state, known_ns, lasted);
        let whole = stay.whole && known_ns == lasted && !contradicts;
        let ended = if contradicts || gaps != stay.gaps { from } else { Some(state) };
        (ended, whole.then_some(lasted))
    }

    /// Accounts time since then as unknown, for the vCPU and for the pCPU.
    fn unknown(&mut self, p: usize, who: Who, since_ns: i64, now: i64) {
        let pcpu = &mut self.pcpus[p];
        if pcpu.current.is_some_and(|(current, _)| current == who) {
            pcpu.lose(since_ns, now);
            // At least that thread was switched out.
            pcpu.switches += 1;
            self.unrecorded += 1;
        }
        let Who::Vcpu { domain, vcpu } = who else { return };
        let Some(v) = self.vcpu(domain, vcpu) else { return };
        let (pcpu_gaps, gaps) = (self.pcpus[p].gaps, self.gaps);
        match self.vcpus[v].stay {
            Some(stay)
                if stay.gaps == if stay.state == Some(RunState::Running) { pcpu_gaps } else { gaps } =>
            {
                let lasted = (now - stay.since_ns).max(0);
                match stay.state {
                    Some(state) => {
                        self.stayed(v, state, (since_ns - stay.since_ns).clamp(0, lasted), lasted);
                    }
                    None => self.vcpus[v].unknown_ns += lasted,
                }
            }
            _ => drop(self.leave(v, now, None)),
        }
        let counted = &mut self.vcpus[v];
        counted.ended(None, None);
        counted.stay = Some(Stay { state: None, since_ns: now, whole: false, gaps });
    }

    /// Accounts the known part of a stay.
    fn stayed(&mut self, v: usize, state: RunState, known_ns: i64, lasted: i64) {
        let counted = &mut self.vcpus[v];
        counted.times[state as usize] += known_ns;
        counted.unknown_ns += lasted - known_ns;
        if state == RunState::Running {
            let pcpu = counted.pcpu;
            self.ran(v, pcpu, known_ns);
        }
    }

    fn ran(&mut self, v: usize, pcpu: Option<u32>, ns: i64) {
        if let Some(pcpu) = pcpu
            && !add(&mut self.ran_on, (pcpu, v), ns)
        {
            self.pairs_not_shown += 1;
        }
    }

    fn lost(&mut self, p: usize, records: u32, since_ns: i64, now: i64) {
        self.lost_records += u64::from(records);
        self.gaps += 1;
        self.gap_from_ns = since_ns;
        let pcpu = &mut self.pcpus[p];
        pcpu.lose(since_ns, now);
        pcpu.gaps += 1;
        pcpu.gap_from_ns = since_ns;
    }

    /// Gives domains other numbers, unless two vCPUs would be the same one then.
    pub fn rename_domains(&mut self, to: &BTreeMap<u32, u32>) {
        let name = |domain| to.get(domain).copied().unwrap_or(*domain);
        let renamed: BTreeMap<(u32, u32), usize> =
            self.number.iter().map(|((domain, vcpu), &v)| ((name(domain), *vcpu), v)).collect();
        if renamed.len() == self.number.len() {
            self.number = renamed;
        }
    }
}

/// Adds to one of a bounded number of sums; `false`: there are too many.
fn add<K: Ord, N: std::ops::AddAssign>(to: &mut BTreeMap<K, N>, key: K, more: N) -> bool {
    let room = to.len() < PAIRS_MAX;
    match to.get_mut(&key) {
        Some(sum) => *sum += more,
        None if room => drop(to.insert(key, more)),
        None => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::types::Vcpu;
    use RunState::{Blocked, Offline, Running};

    /// The summary of a vCPU on one pCPU with these events.
    fn vcpu(did: &[(i64, Kind)]) -> Vcpu {
        let mut counter = Counter::default();
        let who = Who::Vcpu { domain: 1, vcpu: 0 };
        for &(time_ns, kind) in did {
            counter.count(&Event { time_ns, pcpu: 0, who, kind });
        }
        counter.finish().0.vcpus.remove(0)
    }

    /// A cap took burst and wake-up away: what it interrupted counted as nothing, and going on as waking.
    #[test]
    fn a_cap_interrupts_a_burst_and_wakes_nobody() {
        let computes = [
            (1_000, Kind::Block(Some(Running))),
            (5_000, Kind::Wake(Some(Blocked))),
            (6_000, Kind::Run(None)),
            (9_000, Kind::Offline(Some(Running))),
            (30_000, Kind::Wake(Some(Offline))),
            (31_000, Kind::Run(None)),
            (33_000, Kind::Block(Some(Running))),
        ];
        let held_back = vcpu(&computes);
        assert_eq!((held_back.wakes, held_back.burst.count, held_back.burst.mean_ns), (1, 1, 5_000.0));
        assert_eq!(held_back.wake_latency.mean_ns, 1_000.0);
        let woken_while_held_back = vcpu(&[
            (1_000, Kind::Block(Some(Running))),
            (5_000, Kind::Offline(Some(Blocked))),
            (8_000, Kind::Run(Some(Offline))),
            (10_000, Kind::Block(Some(Running))),
        ]);
        assert_eq!((woken_while_held_back.wakes, woken_while_held_back.wake_latency.mean_ns), (1, 3_000.0));
        assert_eq!(
            (woken_while_held_back.block.mean_ns, woken_while_held_back.burst.mean_ns),
            (4_000.0, 2_000.0)
        );
    }
}
