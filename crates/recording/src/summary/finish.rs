//! From counters to a summary.

use std::collections::BTreeMap;

use crate::summary::counter::Counter;
use crate::summary::pcpu::OnPcpu;
use crate::summary::types::{Domain, Pcpu, Share, Summary, Vcpu, Waking};

/// A finding, its number, and its consequence.
pub type Finding = (&'static str, u64, &'static str);

impl Counter {
    /// The recording ends: the summary, and what there is to note.
    #[must_use]
    pub fn finish(mut self) -> (Summary, Vec<Finding>) {
        for v in 0..self.vcpus.len() {
            self.leave(v, self.end_ns, None);
        }
        for pcpu in &mut self.pcpus {
            pcpu.account(self.end_ns);
        }
        let (vcpus, pcpus) = (self.vcpu_summaries(), self.pcpu_summaries());
        let summary = Summary {
            span_ns: self.end_ns,
            domains: self.domain_summaries(&vcpus, pcpus.len()),
            vcpus,
            pcpus,
            wakers: self.waker_summaries(),
            lost_records: self.lost_records,
            gaps: self.gaps,
            contradictions: self.contradictions,
            unrecorded: self.unrecorded,
        };
        (summary, self.findings())
    }

    fn vcpu_summaries(&self) -> Vec<Vcpu> {
        let summary = |(&(domain, vcpu), &v): (&(u32, u32), &usize)| {
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
                share: share(running_ns, self.end_ns),
                executions: counted.executions,
                executions_per_s: self.per_s(counted.executions),
                preempted: counted.preempted,
                continued: counted.continued,
                yields: counted.yields,
                migrations: counted.migrations,
                wakes: counted.wakes,
                wakes_per_s: self.per_s(counted.wakes),
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
        self.number.iter().map(summary).collect()
    }

    fn pcpu_summaries(&self) -> Vec<Pcpu> {
        let names = self.names();
        let summary = |p: u32, pcpu: &OnPcpu| Pcpu {
            pcpu: p,
            busy_ns: pcpu.busy_ns,
            idle_ns: pcpu.idle_ns,
            host_ns: pcpu.host_ns,
            switching_ns: pcpu.switching_ns,
            unknown_ns: pcpu.unknown_ns,
            switches: pcpu.switches,
            switches_per_s: self.per_s(pcpu.switches),
            shares: self.shares(p, &names),
        };
        let seen = (0..).zip(&self.pcpus).filter(|(_, pcpu)| pcpu.seen);
        seen.map(|(p, pcpu)| summary(p, pcpu)).collect()
    }

    /// The vCPUs that ran on a pCPU.
    fn shares(&self, p: u32, names: &[(u32, u32)]) -> Vec<Share> {
        let ran = self.ran_on.range((p, 0)..(p + 1, 0));
        let share = |(&(_, v), &running_ns): (&(u32, usize), &i64)| {
            let (domain, vcpu) = names[v];
            Share { domain, vcpu, running_ns, share: share(running_ns, self.end_ns) }
        };
        let mut shares: Vec<Share> = ran.map(share).collect();
        shares.sort_by_key(|share| (share.domain, share.vcpu));
        shares
    }

    fn domain_summaries(&self, vcpus: &[Vcpu], pcpus: usize) -> Vec<Domain> {
        let capacity_ns = self.end_ns.saturating_mul(pcpus as i64);
        let mut domains: BTreeMap<u32, Domain> = BTreeMap::new();
        for vcpu in vcpus {
            let domain = domains.entry(vcpu.domain).or_insert_with(|| Domain::of(vcpu.domain));
            domain.vcpus += 1;
            domain.running_ns += vcpu.running_ns;
            domain.share = share(domain.running_ns, capacity_ns);
            domain.wakes_per_s += vcpu.wakes_per_s;
            domain.executions_per_s += vcpu.executions_per_s;
        }
        for (&number, &(added, removed)) in &self.added {
            let domain = domains.entry(number).or_insert_with(|| Domain::of(number));
            (domain.added_ns, domain.removed_ns) = (added, removed);
        }
        domains.into_values().collect()
    }

    fn waker_summaries(&self) -> Vec<Waking> {
        let names = self.names();
        let waking = |(&(waker, woken), &count): (&(Option<usize>, usize), &u64)| Waking {
            waker: waker.map(|v| names[v]),
            woken: names[woken],
            count,
        };
        let mut wakers: Vec<Waking> = self.wakings.iter().map(waking).collect();
        wakers.sort_by_key(|waking| (waking.woken, waking.waker));
        wakers
    }

    fn findings(&self) -> Vec<Finding> {
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
                "switches without a counterpart",
                self.unrecorded,
                "the record before each is missing; who ran there since the one before that is unknown, and that time is nobody's",
            ),
            (
                "records of more vCPUs than are counted",
                self.not_shown,
                "those vCPUs are not shown; what they ran counts as the host's",
            ),
            (
                "pairs of vCPUs beyond those counted",
                self.pairs_not_shown,
                "who wakes whom, and who runs where, are not complete",
            ),
        ];
        findings.retain(|(_, count, _)| *count > 0);
        if self.runstates == 0 {
            let means = "nothing can be said of vCPUs: record the scheduler's class (xentrace -e 0x0002f000), or say which threads are vCPUs";
            findings.push(("no vCPU that runs, waits or blocks", 1, means));
        }
        findings
    }

    /// Domain and number of each vCPU, by its index.
    fn names(&self) -> Vec<(u32, u32)> {
        let mut names = vec![(0, 0); self.vcpus.len()];
        for (&name, &v) in &self.number {
            names[v] = name;
        }
        names
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.end_ns > 0 { count as f64 / (self.end_ns as f64 / 1e9) } else { 0.0 }
    }
}

fn share(ns: i64, all_ns: i64) -> f64 {
    if all_ns > 0 { ns as f64 / all_ns as f64 } else { 0.0 }
}
