//! From a meter and its host to the rows of the result tables.

use vcpulab_host::{Acted, DomId, HostState, PcpuId, Span, Time, VcpuId};

use crate::counters::Meter;
use crate::tables::{
    DomainRow, PcpuRow, RejectedAction, Results, VcpuRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};
use crate::waits::{Charged, NotAttributed, steps};

/// Names of domains and pools.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The domains, in order of creation.
    pub domains: Vec<String>,
    /// The CPU pools.
    pub pools: Vec<String>,
}

/// Collects the results of a host from the meter's last reset up to now. The host has neither applications, devices nor
/// entitlements: their tables are empty, I/O counts zero and entitlements null. Decisions stay with the meter.
pub fn collect(replication: u32, names: &Names, host: &HostState, meter: &Meter) -> Results {
    let vcpus: Vec<VcpuRow> = host
        .all_guest_vcpus()
        .map(|v| vcpu_row(replication, &names.domains[host.dom(v).index()], host, meter, v))
        .collect();
    let domains = (0..host.domain_count() as u32)
        .map(|d| domain_row(replication, names, host, meter, DomId(d), &vcpus))
        .collect();
    let pcpus = (0..host.pcpu_count()).map(|p| pcpu_row(replication, names, host, meter, PcpuId(p)));
    let pcpus = pcpus.collect();
    let rejected = |(time, acted): &(Time, Acted)| RejectedAction {
        time_ns: time.ns(),
        action: acted.action,
        domain: acted.domain.map(|d| names.domains[d.index()].clone()),
    };
    let mut results = Results {
        domains,
        vcpus,
        pcpus,
        rejected_actions: meter.rejected_actions.count,
        rejected: meter.rejected_actions.first.iter().map(rejected).collect(),
        ..Results::default()
    };
    match wait_rows(replication, names, host, meter) {
        Ok(waits) => results.waits = waits,
        Err(why) => results.not_attributed = Some(why),
    }
    for d in (0..host.domain_count() as u32).map(DomId) {
        add_wake_ups(&mut results, replication, names, meter, d);
    }
    results
}

fn wait_rows(
    replication: u32,
    names: &Names,
    host: &HostState,
    meter: &Meter,
) -> Result<Vec<WaitRow>, NotAttributed> {
    let row = |(d, charged, wait): (DomId, Charged, Span)| WaitRow {
        replication,
        domain: names.domains[d.index()].clone(),
        by: match charged {
            Charged::Domain(by) => names.domains[by.index()].clone(),
            Charged::Idle => "idle".to_owned(),
            Charged::Hypervisor => "hypervisor".to_owned(),
        },
        by_domain: matches!(charged, Charged::Domain(_)),
        wait_ns: wait.ns(),
    };
    let rows = meter.attributed.read(host, host.now() - meter.baseline.time)?;
    Ok(rows.into_iter().map(row).collect())
}

fn add_wake_ups(results: &mut Results, replication: u32, names: &Names, meter: &Meter, d: DomId) {
    for (cause, by, waited) in meter.waits.wake_ups(d) {
        let domain = &names.domains[d.index()];
        let cause = match by {
            Some(by) => format!("event from {}", names.domains[by.index()]),
            None => cause.name().to_owned(),
        };
        let waits = waited.histogram.read();
        let count = waits.len();
        let max_ns = waited.max_ns.ns() as u64;
        // A bucket reaches beyond the greatest of its values.
        let quantile = |share| waits.quantile(share).min(max_ns);
        results.wakeups.push(WakeUpRow {
            replication,
            domain: domain.clone(),
            cause: cause.clone(),
            count,
            mean_ns: waited.sum_ns.ns() as f64 / count as f64,
            p50_ns: quantile(0.50),
            p90_ns: quantile(0.90),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            max_ns,
        });
        let buckets = steps(&waits).into_iter().map(|(from_ns, below_ns, count)| WakeUpBucketRow {
            replication,
            domain: domain.clone(),
            cause: cause.clone(),
            from_ns,
            below_ns,
            count,
        });
        results.wakeup_buckets.extend(buckets);
    }
}

fn vcpu_row(replication: u32, domain: &str, host: &HostState, meter: &Meter, v: VcpuId) -> VcpuRow {
    let (now, before, counts) = (host.run_times(v), meter.baseline.vcpus[v.index()], meter.counts(v));
    let caches = host.cache_counts(v);
    let caches_before = meter.baseline.caches.get(v.index()).copied().unwrap_or_default();
    let slowed = host.slowed(v) - meter.baseline.slowed[v.index()];
    let (number, vcpu) = host.name(v);
    VcpuRow {
        replication,
        domain: domain.to_owned(),
        number,
        vcpu: vcpu as u32,
        elapsed_ns: (host.now() - meter.baseline.time).ns(),
        running_ns: (now.running_ns - before.running_ns).ns(),
        work_ns: (now.running_ns - before.running_ns - slowed.total()).ns(),
        slowed_threads_ns: slowed.threads_ns.ns(),
        slowed_memory_ns: slowed.memory_ns.ns(),
        slowed_frequency_ns: slowed.frequency_ns.ns(),
        runnable_ns: (now.runnable_ns - before.runnable_ns).ns(),
        blocked_ns: (now.blocked_ns - before.blocked_ns).ns(),
        offline_ns: (now.offline_ns - before.offline_ns).ns(),
        executions: counts.executions,
        wakeups: counts.wakeups,
        context_switches: counts.switched_out,
        preemptions: counts.preemptions,
        migrations: counts.migrations,
        wait_max_ns: counts.wait_max_ns.ns() as u64,
        l2_misses: caches.l2_misses - caches_before.l2_misses,
        l3_misses: caches.l3_misses - caches_before.l3_misses,
        refill_ns: (caches.refill_ns - caches_before.refill_ns).ns(),
    }
}

fn domain_row(
    replication: u32,
    names: &Names,
    host: &HostState,
    meter: &Meter,
    d: DomId,
    vcpus: &[VcpuRow],
) -> DomainRow {
    let idle = host.pcpu_count() as usize;
    let own: Vec<&VcpuRow> = host.all_vcpus_of(d).map(|v| &vcpus[v.index() - idle]).collect();
    let time = |of: fn(&VcpuRow) -> i64| own.iter().map(|row| of(row)).sum::<i64>();
    let count = |of: fn(&VcpuRow) -> u64| own.iter().map(|row| of(row)).sum::<u64>();
    let waits = meter.waits.all(d);
    let after_waking = meter.waits.after_waking(d);
    let wait_max_ns = own.iter().map(|row| row.wait_max_ns).max().unwrap_or(0);
    let wait = |share| waits.quantile(share).min(wait_max_ns);
    let wake = |share| after_waking.as_ref().map(|waits| waits.quantile(share).min(wait_max_ns));
    DomainRow {
        replication,
        domain: names.domains[d.index()].clone(),
        number: host.domain_number(d),
        pool: names.pools[host.pool_of(d).index()].clone(),
        state: host.domain_state(d).map(|state| state.to_string()),
        vcpus: own.len() as u32,
        elapsed_ns: (host.now() - meter.baseline.time).ns(),
        running_ns: time(|row| row.running_ns),
        work_ns: time(|row| row.work_ns),
        slowed_threads_ns: time(|row| row.slowed_threads_ns),
        slowed_memory_ns: time(|row| row.slowed_memory_ns),
        slowed_frequency_ns: time(|row| row.slowed_frequency_ns),
        runnable_ns: time(|row| row.runnable_ns),
        blocked_ns: time(|row| row.blocked_ns),
        offline_ns: time(|row| row.offline_ns),
        executions: count(|row| row.executions),
        wakeups: count(|row| row.wakeups),
        context_switches: count(|row| row.context_switches),
        preemptions: count(|row| row.preemptions),
        migrations: count(|row| row.migrations),
        io_count: 0,
        entitlement: None,
        wait_p50_ns: wait(0.50),
        wait_p95_ns: wait(0.95),
        wait_p99_ns: wait(0.99),
        wait_max_ns,
        wake_p50_ns: wake(0.50),
        wake_p90_ns: wake(0.90),
        l2_misses: count(|row| row.l2_misses),
        l3_misses: count(|row| row.l3_misses),
        refill_ns: time(|row| row.refill_ns),
    }
}

fn pcpu_row(replication: u32, names: &Names, host: &HostState, meter: &Meter, p: PcpuId) -> PcpuRow {
    let (run, idle, overhead) = host.pcpu_times(p);
    let (run_before, idle_before, overhead_before, decisions_before) = meter.baseline.pcpus[p.index()];
    PcpuRow {
        replication,
        pcpu: p.0,
        pool: names.pools[host.pool_of_pcpu(p).index()].clone(),
        elapsed_ns: (host.now() - meter.baseline.time).ns(),
        run_ns: (run - run_before).ns(),
        idle_ns: (idle - idle_before).ns(),
        overhead_ns: (overhead - overhead_before).ns(),
        decisions: host.pcpu_decisions(p) - decisions_before,
        switches: meter.switches[p.index()],
    }
}
