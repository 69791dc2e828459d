//! What a recording holds, counted in one pass.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::{Event, Kind, Runstate, Who};
use crate::histogram::{Spread, Times};
use crate::{PCPUS_MAX, VCPUS_MAX};

/// Pairs (who wakes whom, who ran where) that are told apart.
const PAIRS_MAX: usize = 1 << 16;

/// What a recording holds. Times are ns; rates per second of the recording.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// From the first record to the last.
    pub span_ns: i64,
    /// By number.
    pub domains: Vec<Domain>,
    /// By domain and number.
    pub vcpus: Vec<Vcpu>,
    /// By number; those with records only.
    pub pcpus: Vec<Pcpu>,
    /// Who woke whom.
    pub wakers: Vec<Waking>,
    /// Records that were never written, where the recorder knew their number.
    pub lost_records: u64,
    /// Gaps in the recording, these and those of damage.
    pub gaps: u64,
    /// Changes that contradict what was known.
    pub contradictions: u64,
}

/// All vCPUs of a domain together.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Domain {
    pub domain: u32,
    pub vcpus: u32,
    pub running_ns: i64,
    /// Of the pCPUs seen, 0 to 1.
    pub share: f64,
    pub wakes_per_s: f64,
    pub executions_per_s: f64,
    /// When it was created, if that was recorded.
    pub added_ns: Option<i64>,
    /// When it was destroyed, if that was recorded.
    pub removed_ns: Option<i64>,
}

/// What a vCPU did.
#[derive(Clone, Debug, Serialize)]
pub struct Vcpu {
    /// Its domain.
    pub domain: u32,
    /// Its number there.
    pub vcpu: u32,
    /// Time in each runstate.
    pub running_ns: i64,
    /// Waiting for a pCPU.
    pub runnable_ns: i64,
    /// Waiting for events.
    pub blocked_ns: i64,
    /// Not allowed to run.
    pub offline_ns: i64,
    /// What it was at then is not known: records are missing.
    pub unknown_ns: i64,
    /// Running, of one pCPU, 0 to 1.
    pub share: f64,
    /// Times that it was put on a pCPU.
    pub executions: u64,
    /// The same, a second.
    pub executions_per_s: f64,
    /// Times that it lost the pCPU though it could go on.
    pub preempted: u64,
    /// Times that the scheduler looked and let it go on.
    pub continued: u64,
    /// Times that it yielded.
    pub yields: u64,
    /// Times that it was put on another pCPU than before.
    pub migrations: u64,
    /// Times that it woke.
    pub wakes: u64,
    /// The same, a second.
    pub wakes_per_s: f64,
    /// Wake-ups with its pCPU idle.
    pub wakes_to_idle: u64,
    /// Wake-ups after which it was the next to run there.
    pub wakes_ran_next: u64,
    /// Wake-ups after which others went first.
    pub wakes_ran_later: u64,
    /// Wake-ups after which another pCPU took it.
    pub wakes_ran_elsewhere: u64,
    /// Mean time that the scheduler granted an execution; 0 where it does not say.
    pub slice_mean_ns: i64,
    /// From waking to running.
    pub wake_latency: Spread,
    /// Each wait for a pCPU, after waking or preemption.
    pub wait: Spread,
    /// Each stay on a pCPU.
    pub execution: Spread,
    /// CPU time from waking to blocking, over all executions between, whatever kept it from running meanwhile.
    pub burst: Spread,
    /// From blocking to waking.
    pub block: Spread,
}

/// Where the time of a pCPU went.
#[derive(Clone, Debug, Serialize)]
pub struct Pcpu {
    /// Its number.
    pub pcpu: u32,
    /// vCPUs.
    pub busy_ns: i64,
    /// Nothing.
    pub idle_ns: i64,
    /// Threads that are no vCPUs.
    pub host_ns: i64,
    /// From one's stop to the next's start.
    pub switching_ns: i64,
    /// Before the first record, and where records are missing.
    pub unknown_ns: i64,
    /// Times that someone else was put on it, idle too.
    pub switches: u64,
    /// The same, a second.
    pub switches_per_s: f64,
    /// vCPUs by what they ran here.
    pub shares: Vec<Share>,
}

/// What a vCPU ran on a pCPU.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Share {
    pub domain: u32,
    pub vcpu: u32,
    pub running_ns: i64,
    /// Of the pCPU, 0 to 1.
    pub share: f64,
}

/// Who was on the pCPU where a vCPU was woken: for wake-ups from outside (timers, devices) whoever happened to be there.
#[derive(Clone, Debug, Serialize)]
pub struct Waking {
    /// Domain and number of the vCPU; `None`: the pCPU was idle, it was the host, or that is not known.
    pub waker: Option<(u32, u32)>,
    /// Domain and number.
    pub woken: (u32, u32),
    /// How often.
    pub count: u64,
}

#[derive(Debug, Default)]
struct Counted {
    at: Option<Stay>,
    times: [i64; 4],
    unknown_ns: i64,
    executions: u64,
    preempted: u64,
    continued: u64,
    yields: u64,
    migrations: u64,
    wakes: u64,
    to_idle: u64,
    ran_next: u64,
    ran_later: u64,
    ran_elsewhere: u64,
    slices: u64,
    slice_ns: i64,
    home: Option<u32>,
    /// Its last wake-up, until it runs: when, where it ran before, and the number of switches there.
    woken: Option<(i64, Option<u32>, u64)>,
    /// CPU time since it woke; `None`: not known since when.
    burst_ns: Option<i64>,
    latency: Times,
    wait: Times,
    execution: Times,
    burst: Times,
    block: Times,
}

/// What a vCPU has been at since when.
#[derive(Clone, Copy, Debug)]
struct Stay {
    state: Runstate,
    since_ns: i64,
    /// Began with a record, not before the first of all, and nothing is missing since.
    whole: bool,
    /// Gaps there were when it began: of its pCPU if it runs, of all if not.
    gaps: u64,
}

#[derive(Debug, Default)]
struct OnPcpu {
    seen: bool,
    /// Who, since when; `None`: nobody, or not known.
    current: Option<(Who, i64)>,
    /// Until when its time is accounted.
    until_ns: i64,
    /// What it is at without a current is known: it switches.
    switching: bool,
    busy_ns: i64,
    idle_ns: i64,
    host_ns: i64,
    switching_ns: i64,
    unknown_ns: i64,
    switches: u64,
    gaps: u64,
    /// When the latest gap began.
    gap_from_ns: i64,
}

/// Counts events into a [`Summary`].
#[derive(Debug, Default)]
pub struct Counter {
    number: BTreeMap<(u32, u32), usize>,
    vcpus: Vec<Counted>,
    pcpus: Vec<OnPcpu>,
    added: BTreeMap<u32, (Option<i64>, Option<i64>)>,
    ran_on: BTreeMap<(u32, usize), i64>,
    wakings: BTreeMap<(Option<usize>, usize), u64>,
    end_ns: i64,
    lost_records: u64,
    gaps: u64,
    gap_from_ns: i64,
    contradictions: u64,
    runstates: u64,
    not_shown: u64,
    pairs_not_shown: u64,
}

/// What, how often, and what it means.
pub type Finding = (&'static str, u64, &'static str);

impl Counter {
    /// Counts one more.
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
            if to == Runstate::Running || from == Some(Runstate::Running) || is_current {
                self.pcpus[p].switch(now, event.who, to);
            }
        }
    }

    /// Its index; `None` if there are too many.
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

    fn change(&mut self, p: usize, v: usize, now: i64, from: Option<Runstate>, to: Runstate) {
        if self.vcpus[v].home.is_none() && from == Some(Runstate::Running) {
            self.vcpus[v].home = Some(p as u32);
        }
        if self.vcpus[v].at.is_some_and(|stay| stay.state == to && from.is_none_or(|from| from == to)) {
            // Said twice: it goes on.
            return;
        }
        let stay = self.leave(v, now, from);
        let counted = &mut self.vcpus[v];
        let (state, whole_ns) = match stay {
            Some((state, lasted)) => (Some(state), lasted),
            None => (from, None),
        };
        if let Some(ns) = whole_ns {
            match state {
                Some(Runstate::Running) => counted.execution.add(ns),
                Some(Runstate::Runnable) => counted.wait.add(ns),
                Some(Runstate::Blocked) => counted.block.add(ns),
                _ => {}
            }
        } else {
            (counted.woken, counted.burst_ns) = (None, None);
        }
        if state == Some(Runstate::Running)
            && let (Some(burst), Some(ran)) = (&mut counted.burst_ns, whole_ns)
        {
            *burst = burst.saturating_add(ran);
        }
        let running = to == Runstate::Running;
        let gaps = if running { self.pcpus[p].gaps } else { self.gaps };
        counted.at = Some(Stay { state: to, since_ns: now, whole: true, gaps });
        match to {
            Runstate::Running => {
                counted.executions += 1;
                let pcpu = p as u32;
                if let Some((at, before, switches)) = counted.woken.take() {
                    counted.latency.add(now - at);
                    match before {
                        Some(before) if before != pcpu => counted.ran_elsewhere += 1,
                        _ if self.pcpus[p].switches <= switches => counted.ran_next += 1,
                        _ => counted.ran_later += 1,
                    }
                }
                if counted.home.replace(pcpu).is_some_and(|home| home != pcpu) {
                    counted.migrations += 1;
                }
            }
            Runstate::Runnable if state == Some(Runstate::Running) => counted.preempted += 1,
            // A cap lets it go on, or begins to hold it back: nothing woke it.
            Runstate::Runnable if state == Some(Runstate::Offline) => {}
            Runstate::Offline if state != Some(Runstate::Blocked) => {}
            // Woken, even if a cap holds it back at first.
            Runstate::Runnable | Runstate::Offline => {
                counted.wakes += 1;
                counted.burst_ns = Some(0);
                let home = counted.home.map_or(p, |home| home as usize);
                let there = &self.pcpus[home];
                counted.woken = Some((now, counted.home, there.switches));
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
            Runstate::Blocked => {
                if let Some(burst) = counted.burst_ns.filter(|&burst| burst > 0) {
                    counted.burst.add(burst);
                }
                (counted.woken, counted.burst_ns) = (None, None);
            }
        }
        // A vCPU that runs without having waited (a record is missing, or it was never said) was woken unseen.
        if running && !matches!(state, Some(Runstate::Runnable | Runstate::Offline)) {
            counted.burst_ns = None;
        }
    }

    /// Accounts the time until now: what it was at, and for how long if all of that is known.
    fn leave(&mut self, v: usize, now: i64, from: Option<Runstate>) -> Option<(Runstate, Option<i64>)> {
        let counted = &mut self.vcpus[v];
        let Some(stay) = counted.at else {
            // It was at this since the recording began, if nothing is missing.
            let known = from.filter(|_| self.gaps == 0);
            let Some(from) = known else {
                counted.unknown_ns += now;
                return None;
            };
            counted.times[from as usize] += now;
            if from == Runstate::Running {
                let home = counted.home;
                self.ran(v, home, now);
            }
            return Some((from, None));
        };
        let lasted = (now - stay.since_ns).max(0);
        let home = counted.home.map(|home| home as usize);
        let (gaps, gap_from_ns) = match (stay.state, home) {
            (Runstate::Running, Some(home)) => (self.pcpus[home].gaps, self.pcpus[home].gap_from_ns),
            _ => (self.gaps, self.gap_from_ns),
        };
        let contradicts = from.is_some_and(|from| from != stay.state);
        // What is not known begins with the only gap, if there was but one.
        let known_ns = match gaps - stay.gaps {
            0 if contradicts => 0,
            0 => lasted,
            1 => (gap_from_ns - stay.since_ns).clamp(0, lasted),
            _ => 0,
        };
        if contradicts && gaps == stay.gaps {
            self.contradictions += 1;
        }
        counted.times[stay.state as usize] += known_ns;
        counted.unknown_ns += lasted - known_ns;
        if stay.state == Runstate::Running {
            let home = counted.home;
            self.ran(v, home, known_ns);
        }
        let whole = stay.whole && known_ns == lasted && !contradicts;
        let state = if contradicts || gaps != stay.gaps { from? } else { stay.state };
        Some((state, whole.then_some(lasted)))
    }

    fn ran(&mut self, v: usize, home: Option<u32>, ns: i64) {
        if let Some(pcpu) = home
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
        pcpu.account(since_ns.clamp(pcpu.until_ns, now));
        (pcpu.current, pcpu.switching) = (None, false);
        pcpu.account(now);
        pcpu.gaps += 1;
        pcpu.gap_from_ns = since_ns;
    }

    /// Domains have other numbers from now on; unless two vCPUs would be the same one then: all stay as they are.
    pub fn rename_domains(&mut self, to: &BTreeMap<u32, u32>) {
        let name = |domain| to.get(domain).copied().unwrap_or(*domain);
        let renamed: BTreeMap<(u32, u32), usize> =
            self.number.iter().map(|((domain, vcpu), &v)| ((name(domain), *vcpu), v)).collect();
        if renamed.len() == self.number.len() {
            self.number = renamed;
        }
    }

    /// The end: the summary, and what there is to note.
    #[must_use]
    pub fn finish(mut self) -> (Summary, Vec<Finding>) {
        let end = self.end_ns;
        for v in 0..self.vcpus.len() {
            self.leave(v, end, None);
        }
        for pcpu in &mut self.pcpus {
            pcpu.account(end);
        }
        let seconds = end as f64 / 1e9;
        let per_s = |count: u64| if end > 0 { count as f64 / seconds } else { 0.0 };
        let of = |ns: i64, all: i64| if all > 0 { ns as f64 / all as f64 } else { 0.0 };
        let mut names: Vec<(u32, u32)> = vec![(0, 0); self.vcpus.len()];
        for (&name, &v) in &self.number {
            names[v] = name;
        }
        let shown = |(&(domain, vcpu), &v): (&(u32, u32), &usize)| {
            let counted = &self.vcpus[v];
            let [running_ns, runnable_ns, blocked_ns, offline_ns] = counted.times;
            Vcpu {
                domain,
                vcpu,
                running_ns,
                runnable_ns,
                blocked_ns,
                offline_ns,
                unknown_ns: counted.unknown_ns,
                share: of(running_ns, end),
                executions: counted.executions,
                executions_per_s: per_s(counted.executions),
                preempted: counted.preempted,
                continued: counted.continued,
                yields: counted.yields,
                migrations: counted.migrations,
                wakes: counted.wakes,
                wakes_per_s: per_s(counted.wakes),
                wakes_to_idle: counted.to_idle,
                wakes_ran_next: counted.ran_next,
                wakes_ran_later: counted.ran_later,
                wakes_ran_elsewhere: counted.ran_elsewhere,
                slice_mean_ns: counted.slice_ns / counted.slices.max(1).cast_signed(),
                wake_latency: counted.latency.spread(),
                wait: counted.wait.spread(),
                execution: counted.execution.spread(),
                burst: counted.burst.spread(),
                block: counted.block.spread(),
            }
        };
        let vcpus: Vec<Vcpu> = self.number.iter().map(shown).collect();
        let on = |p: u32, pcpu: &OnPcpu| {
            let here = self.ran_on.range((p, 0)..(p + 1, 0));
            let mut shares: Vec<Share> = here
                .map(|(&(_, v), &ns)| {
                    let (domain, vcpu) = names[v];
                    Share { domain, vcpu, running_ns: ns, share: of(ns, end) }
                })
                .collect();
            shares.sort_by_key(|share| (share.domain, share.vcpu));
            Pcpu {
                pcpu: p,
                busy_ns: pcpu.busy_ns,
                idle_ns: pcpu.idle_ns,
                host_ns: pcpu.host_ns,
                switching_ns: pcpu.switching_ns,
                unknown_ns: pcpu.unknown_ns,
                switches: pcpu.switches,
                switches_per_s: per_s(pcpu.switches),
                shares,
            }
        };
        let seen = (0..).zip(&self.pcpus).filter(|(_, pcpu)| pcpu.seen);
        let pcpus: Vec<Pcpu> = seen.map(|(p, pcpu)| on(p, pcpu)).collect();
        let capacity = end.saturating_mul(pcpus.len() as i64);
        let mut domains: BTreeMap<u32, Domain> = BTreeMap::new();
        let empty = |domain| Domain {
            domain,
            vcpus: 0,
            running_ns: 0,
            share: 0.0,
            wakes_per_s: 0.0,
            executions_per_s: 0.0,
            added_ns: None,
            removed_ns: None,
        };
        for vcpu in &vcpus {
            let domain = domains.entry(vcpu.domain).or_insert_with(|| empty(vcpu.domain));
            domain.vcpus += 1;
            domain.running_ns += vcpu.running_ns;
            domain.share = of(domain.running_ns, capacity);
            domain.wakes_per_s += vcpu.wakes_per_s;
            domain.executions_per_s += vcpu.executions_per_s;
        }
        for (&number, &(added, removed)) in &self.added {
            let domain = domains.entry(number).or_insert_with(|| empty(number));
            (domain.added_ns, domain.removed_ns) = (added, removed);
        }
        let mut wakers: Vec<Waking> = self
            .wakings
            .iter()
            .map(|(&(waker, v), &count)| Waking { waker: waker.map(|v| names[v]), woken: names[v], count })
            .collect();
        wakers.sort_by_key(|waking| (waking.woken, waking.waker));
        let mut findings: Vec<Finding> = vec![
            (
                "gaps",
                self.gaps,
                "what vCPUs were at across them counts as unknown, and so do waits across them",
            ),
            (
                "contradictions",
                self.contradictions,
                "records are missing there or out of order; the time before counts as unknown",
            ),
            (
                "records of more vCPUs than are told apart",
                self.not_shown,
                "those vCPUs are not shown; what they ran counts as the host's",
            ),
            (
                "pairs of vCPUs beyond those told apart",
                self.pairs_not_shown,
                "who wakes whom, and who runs where, are not complete",
            ),
        ];
        findings.retain(|(_, count, _)| *count > 0);
        if self.runstates == 0 {
            let means = "nothing can be said of vCPUs: record the scheduler's class (xentrace -e 0x0002f000), or say which threads are vCPUs";
            findings.push(("no vCPU that runs, waits or blocks", 1, means));
        }
        let summary = Summary {
            span_ns: end,
            domains: domains.into_values().collect(),
            vcpus,
            pcpus,
            wakers,
            lost_records: self.lost_records,
            gaps: self.gaps,
            contradictions: self.contradictions,
        };
        (summary, findings)
    }
}

/// Adds to one of a bounded number of things; `false`: there are too many.
fn add<K: Ord, N: std::ops::AddAssign>(to: &mut BTreeMap<K, N>, key: K, more: N) -> bool {
    let room = to.len() < PAIRS_MAX;
    match to.get_mut(&key) {
        Some(sum) => *sum += more,
        None if room => drop(to.insert(key, more)),
        None => return false,
    }
    true
}

impl OnPcpu {
    /// Someone starts to run here, or stops.
    fn switch(&mut self, now: i64, who: Who, to: Runstate) {
        if to == Runstate::Running {
            self.account(now);
            if self.current.is_none_or(|(current, _)| current != who) {
                self.switches += 1;
            }
            (self.current, self.switching) = (Some((who, now)), false);
        } else {
            if self.current.is_none() && !self.switching && self.gaps == 0 && self.switches == 0 {
                // It ran since the recording began.
                self.current = Some((who, 0));
            }
            self.account(now);
            (self.current, self.switching) = (None, true);
        }
    }

    fn account(&mut self, now: i64) {
        let passed = (now - self.until_ns).max(0);
        *(match self.current {
            Some((Who::Idle, _)) => &mut self.idle_ns,
            Some((Who::Host, _)) => &mut self.host_ns,
            Some((Who::Vcpu { .. }, _)) => &mut self.busy_ns,
            None if self.switching => &mut self.switching_ns,
            None => &mut self.unknown_ns,
        }) += passed;
        self.until_ns = self.until_ns.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Runstate::{Blocked, Offline, Running};

    /// What a vCPU on one pCPU did, by when and to what.
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
