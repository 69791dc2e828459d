//! The host's counters at regular intervals, as monitors read them.

use vcpulab_host::{CacheCounts, DomId, HostState, RunTimes, Slowed, Span, Time, VcpuId};

use crate::collect::Names;
use crate::counters::meter::{Meter, VcpuCounts};
use crate::tables::{PcpuSampleRow, SampleRow, Spool, Spooler, VcpuSampleRow};

/// A vCPU's counters at the last sample.
type Seen = (RunTimes, VcpuCounts, CacheCounts, Slowed);

/// Takes samples of a host, each of the time since the one before.
#[derive(Debug)]
pub struct Sampler {
    interval_ns: Span,
    /// Time of the last sample.
    time: Time,
    /// By number of the vCPU.
    seen: Vec<Seen>,
    /// The last sample, of the domains and of their vCPUs.
    pub last: (Vec<SampleRow>, Vec<VcpuSampleRow>),
    /// Samples of the domains.
    pub domains: Spooler<SampleRow>,
    /// Samples of the vCPUs.
    pub vcpus: Spooler<VcpuSampleRow>,
    /// Samples of the domains by pCPU.
    pub pcpus: Spooler<PcpuSampleRow>,
}

impl Sampler {
    /// A sampler that begins now.
    pub fn new(interval_ns: Span, spool: &Spool, host: &HostState, meter: &Meter) -> Self {
        Sampler {
            interval_ns,
            time: host.now(),
            seen: (0..host.vcpu_count() as u32).map(|v| look(host, meter, VcpuId(v))).collect(),
            last: Default::default(),
            domains: Spooler::new(spool),
            vcpus: Spooler::new(spool),
            pcpus: Spooler::new(spool),
        }
    }

    /// Time at which the next sample is due.
    pub fn next(&self) -> Time {
        self.time.saturating_add(self.interval_ns)
    }

    /// Takes a sample now; false: no time has passed. The host knows nothing of the domains' I/O, which is asked for to be filled in,
    /// domain by domain.
    pub fn take(
        &mut self,
        replication: u32,
        names: &Names,
        host: &HostState,
        meter: &mut Meter,
        mut fill_in: impl FnMut(DomId, &mut SampleRow),
    ) -> bool {
        if host.now() == self.time {
            return false;
        }
        self.last.0.clear();
        self.last.1.clear();
        for d in (0..host.domain_count() as u32).map(DomId) {
            let mut row = self.domain(replication, names, host, meter, d);
            fill_in(d, &mut row);
            self.domains.push(row.clone());
            self.last.0.push(row);
        }
        self.time = host.now();
        for (d, p, did) in meter.by_pcpu.as_mut().map(|by_pcpu| by_pcpu.take(host)).unwrap_or_default() {
            self.pcpus.push(PcpuSampleRow {
                replication,
                time_ns: host.now().ns(),
                domain: names.domains[d.index()].clone(),
                number: host.domain_number(d),
                pcpu: p.0,
                running_ns: did.running_ns.ns(),
                runnable_ns: did.runnable_ns.ns(),
                blocked_ns: did.blocked_ns.ns(),
                allocated_ns: did.allocated_ns.ns(),
                executions: did.executions,
            });
        }
        true
    }

    /// The sample of a domain; those of its vCPUs are kept on the way.
    fn domain(
        &mut self,
        replication: u32,
        names: &Names,
        host: &HostState,
        meter: &Meter,
        d: DomId,
    ) -> SampleRow {
        let domain = &names.domains[d.index()];
        let mut row = SampleRow {
            replication,
            time_ns: host.now().ns(),
            domain: domain.clone(),
            number: host.domain_number(d),
            state: host.domain_state(d).map(|state| state.to_string()),
            elapsed_ns: (host.now() - self.time).ns(),
            ..SampleRow::default()
        };
        for v in host.all_vcpus_of(d) {
            let now = look(host, meter, v);
            let before = std::mem::replace(&mut self.seen[v.index()], now);
            let of_vcpu = VcpuSampleRow {
                replication,
                time_ns: host.now().ns(),
                domain: domain.clone(),
                vcpu: row.vcpus,
                running_ns: (now.0.running_ns - before.0.running_ns).ns(),
            };
            self.vcpus.push(of_vcpu.clone());
            self.last.1.push(of_vcpu);
            row.vcpus += 1;
            add(&mut row, before, now);
        }
        row
    }
}

/// Adds what a vCPU did between two looks.
fn add(row: &mut SampleRow, before: Seen, now: Seen) {
    let (times, counts, caches, slowed) = now;
    let (times_before, counts_before, caches_before, slowed_before) = before;
    let running = times.running_ns - times_before.running_ns;
    row.running_ns += running.ns();
    row.work_ns += (running - (slowed - slowed_before).total()).ns();
    row.runnable_ns += (times.runnable_ns - times_before.runnable_ns).ns();
    row.blocked_ns += (times.blocked_ns - times_before.blocked_ns).ns();
    row.offline_ns += (times.offline_ns - times_before.offline_ns).ns();
    row.allocated_ns += (counts.allocated_ns - counts_before.allocated_ns).ns();
    row.executions += counts.executions - counts_before.executions;
    row.wakeups += counts.wakeups - counts_before.wakeups;
    row.context_switches += counts.switched_out - counts_before.switched_out;
    row.preemptions += counts.preemptions - counts_before.preemptions;
    row.migrations += counts.migrations - counts_before.migrations;
    row.l2_misses += caches.l2_misses - caches_before.l2_misses;
    row.l3_misses += caches.l3_misses - caches_before.l3_misses;
    row.refill_ns += (caches.refill_ns - caches_before.refill_ns).ns();
}

fn look(host: &HostState, meter: &Meter, v: VcpuId) -> Seen {
    (host.run_times(v), meter.counts(v), host.cache_counts(v), host.slowed(v))
}
