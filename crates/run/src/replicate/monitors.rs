//! Samples of the counters, and busy time by layers.

use std::io;

use vcpulab_host::{HostState, PcpuId, Span, Time, VcpuId};
use vcpulab_io::{BlkfrontCounts, GuestId, Layer, Layers, Machine, NetfrontCounts, Samples};
use vcpulab_measure::{Meter, Names, ProfileRow, Results, SampleRow, Sampler, Spool};
use vcpulab_spec::Spec;

use crate::assemble::profiler::profiler;
use crate::replicate::app_table::AppSampler;
use crate::replicate::live::LiveSamples;

/// Listens to one replication from the end of the warm-up on.
pub(crate) struct Monitors {
    replication: u32,
    /// Sampler of each kind, if samples are wanted.
    samplers: Option<Samplers>,
    layers: Vec<Layers>,
    samples: Option<Samples>,
    overhead: Span,
    refill: Span,
}

/// Takes the samples of each kind, all at the same times.
struct Samplers {
    domains: Sampler,
    apps: AppSampler,
    /// Each domain's counters at the last sample.
    counts: Vec<Counts>,
}

impl Monitors {
    /// Starts to monitor now.
    pub fn begin(
        spec: &Spec,
        replication: u32,
        spool: &Spool,
        host: &HostState,
        meter: &Meter,
        machine: &Machine,
    ) -> Self {
        let guests = (0..spec.domains.len() as u32).map(GuestId);
        let samplers = || Samplers {
            domains: Sampler::new(spec.sample, spool, host, meter),
            apps: AppSampler::new(spec, replication, spool, host.now(), machine),
            counts: guests.clone().map(|guest| Counts::of(machine, guest)).collect(),
        };
        Monitors {
            replication,
            samplers: (!spec.sample.is_zero()).then(samplers),
            layers: guests.clone().map(|guest| machine.layers(host, guest)).collect(),
            samples: machine.samples().cloned(),
            overhead: overhead(host),
            refill: refill(host),
        }
    }

    /// Time of the next sample, if that is before `end`.
    pub fn next(&self, end: Time) -> Option<Time> {
        self.samplers.as_ref().map(|samplers| samplers.domains.next()).filter(|&next| next < end)
    }

    /// Takes a sample.
    pub fn sample(
        &mut self,
        names: &Names,
        host: &HostState,
        meter: &mut Meter,
        machine: &Machine,
        live: Option<&LiveSamples>,
    ) {
        let Some(Samplers { domains, apps, counts }) = &mut self.samplers else { return };
        let taken = domains.take(self.replication, names, host, meter, |domain, row| {
            let now = Counts::of(machine, GuestId(domain.0));
            let before = std::mem::replace(&mut counts[domain.index()], now);
            fill_in(row, before, now);
        });
        if let (true, Some(live)) = (taken, live) {
            live.show(self.replication, &domains.last.0, &domains.last.1);
        }
        apps.take(host.now(), machine);
    }

    /// The last sample of each domain; empty if none was taken.
    pub fn latest(&self) -> &[SampleRow] {
        self.samplers.as_ref().map_or(&[], |samplers| &samplers.domains.last.0)
    }

    /// Takes the last sample, and fills in the tables of samples and of the profile.
    ///
    /// # Errors
    /// Samples could not be written.
    #[allow(clippy::too_many_arguments, reason = "the parts of a run")]
    pub fn finish(
        mut self,
        results: &mut Results,
        spec: &Spec,
        names: &Names,
        host: &HostState,
        meter: &mut Meter,
        machine: &Machine,
        live: Option<&LiveSamples>,
    ) -> io::Result<()> {
        self.sample(names, host, meter, machine, live);
        results.profile = self.profile(spec, names, host, machine);
        if let Some(Samplers { domains: Sampler { domains, vcpus, pcpus, .. }, apps, .. }) = self.samplers {
            results.samples = domains.finish()?;
            results.vcpu_samples = vcpus.finish()?;
            results.pcpu_samples = pcpus.finish()?;
            results.app_samples = apps.rows.finish()?;
        }
        Ok(())
    }

    fn profile(&self, spec: &Spec, names: &Names, host: &HostState, machine: &Machine) -> Vec<ProfileRow> {
        let profiler = profiler(spec);
        let both = self.samples.as_ref().zip(machine.samples());
        let row = |domain: Option<&String>, layer, samples: Option<u64>, exact: Span| ProfileRow {
            replication: self.replication,
            domain: domain.cloned(),
            layer,
            samples,
            estimated_ns: samples
                .zip(profiler)
                .map(|(samples, config)| samples as i64 * config.period_ns.ns()),
            exact_ns: exact.ns(),
        };
        let mut rows = Vec::new();
        for (domain, name) in names.domains.iter().enumerate() {
            let exact = machine.layers(host, GuestId(domain as u32)).since(&self.layers[domain]);
            for layer in Layer::ALL {
                let of = |samples: &Samples| samples.domains[GuestId(domain as u32)][layer as usize];
                let found = both.map(|(before, now)| of(now) - of(before));
                rows.push(row(Some(name), layer.name(), found, exact.of(layer)));
            }
        }
        let taken = both.map_or(0, |(before, now)| now.count() - before.count());
        let sampling = taken as i64 * profiler.map_or(Span::ZERO, |config| config.sample_ns);
        let refill = refill(host) - self.refill;
        let overhead = overhead(host) - self.overhead - refill - sampling;
        let found = |of: fn(&Samples) -> u64| both.map(|(before, now)| of(now) - of(before));
        rows.push(row(None, "overhead", found(|samples| samples.overhead), overhead.max(Span::ZERO)));
        rows.push(row(None, "refill", found(|samples| samples.refill), refill.max(Span::ZERO)));
        rows.push(row(None, "profiler", None, sampling));
        rows
    }
}

/// The world's counters of a domain.
#[derive(Clone, Copy)]
struct Counts {
    io: u64,
    netfront: Option<NetfrontCounts>,
    disk: Option<BlkfrontCounts>,
}

impl Counts {
    fn of(machine: &Machine, domain: GuestId) -> Self {
        Counts {
            io: machine.io_count(domain),
            netfront: machine.netfront_counts(domain),
            disk: machine.blkfront_counts(domain),
        }
    }
}

fn fill_in(row: &mut SampleRow, before: Counts, now: Counts) {
    row.io_count = now.io - before.io;
    let network = |of: fn(&NetfrontCounts) -> u64| since(before.netfront, now.netfront, of);
    row.packets_received = network(|counts| counts.received);
    row.packets_sent = network(|counts| counts.sent);
    row.packets_dropped = network(|counts| counts.dropped);
    row.bytes_received = network(|counts| counts.bytes_received);
    row.bytes_sent = network(|counts| counts.bytes_sent);
    row.page_exchanges = network(|counts| counts.page_exchanges);
    row.events = network(|counts| counts.events);
    let disk = |of: fn(&BlkfrontCounts) -> u64| since(before.disk, now.disk, of);
    row.disk_reads = disk(|counts| counts.requests - counts.writes);
    row.disk_writes = disk(|counts| counts.writes);
    row.disk_read_bytes = disk(|counts| counts.read_bytes);
    row.disk_written_bytes = disk(|counts| counts.written_bytes);
}

fn since<T>(before: Option<T>, now: Option<T>, of: fn(&T) -> u64) -> Option<u64> {
    Some(of(&now?) - before.as_ref().map_or(0, of))
}

/// Time that all pCPUs were busy without progress of any vCPU.
fn overhead(host: &HostState) -> Span {
    (0..host.pcpu_count()).map(|p| host.pcpu_times(PcpuId(p)).2).sum()
}

/// The part of that time in which cold caches were filled again.
fn refill(host: &HostState) -> Span {
    (0..host.vcpu_count() as u32).map(|v| host.cache_counts(VcpuId(v)).refill_ns).sum()
}

#[cfg(test)]
mod tests {
    use crate::{RunOptions, run};
    use vcpulab_host::Span;
    use vcpulab_measure::{ProfileRow, Results};
    use vcpulab_scenario::Scenario;

    /// A web server, a receiver of streams and a hog beside the driver domain, on two pCPUs.
    fn several_guests(run_table: &str) -> Results {
        let text = format!(
            "run = {{ duration = '4s', warmup = '500ms', {run_table} }}\n\
             [host]\nscheduler = 'credit'\nprofile = 'lp200r'\npcpus = 2\n\
             [domain.dom0]\ndriver_domain = true\n\
             [domain.web]\nnic.driver_domain = 'dom0'\napp = [{{ kind = 'web-server' }}]\n\
             [domain.sink]\nnic.driver_domain = 'dom0'\napp = [{{ kind = 'tcp-receiver', streams = 2 }}]\n\
             [domain.hog]\napp = [{{ kind = 'hog' }}]\n\
             [client.users]\nkind = 'open-loop'\nserver = 'web'\nrate = 150\n\
             [client.streams]\nkind = 'stream'\nserver = 'sink'\nstreams = 2\npacket = '1KiB'\ngap = '2ms'\n"
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        run(&scenario, &RunOptions::default(), &|_| true).unwrap()
    }

    fn exact_ns(results: &Results, layer: &str) -> i64 {
        results.profile.iter().filter(|row| row.layer == layer).map(|row| row.exact_ns).sum()
    }

    #[test]
    fn layers_sum_to_what_the_pcpus_ran() {
        for profiler in ["sample = '0s'", "profiler = { cycles = 50_000 }"] {
            let results = several_guests(profiler);
            let of_domains = results.profile.iter().filter(|row| row.domain.is_some());
            let layers: i64 = of_domains.map(|row| row.exact_ns).sum();
            assert_eq!(layers, results.pcpus.iter().map(|row| row.run_ns).sum::<i64>());
            let own = ["overhead", "refill", "profiler"].map(|layer| exact_ns(&results, layer));
            assert_eq!(own.iter().sum::<i64>(), results.pcpus.iter().map(|row| row.overhead_ns).sum::<i64>());
            assert!(
                ["application", "kernel", "hypervisor"].iter().all(|layer| exact_ns(&results, layer) > 0)
            );
        }
    }

    #[test]
    fn samples_find_the_truth() {
        let results = several_guests("profiler = { cycles = 50_000 }");
        let busy: i64 = results.profile.iter().map(|row| row.exact_ns).sum();
        let taken: u64 = results.profile.iter().filter_map(|row| row.samples).sum();
        assert!(taken > 50_000, "{taken} samples");
        let mut seen = 0;
        for row in results.profile.iter().filter(|row| row.samples.is_some()) {
            // Four standard deviations of a count of independent samples, and what the last ones may be short.
            let share = row.exact_ns as f64 / busy as f64;
            let error = 4.0 * (share * (1.0 - share) / taken as f64).sqrt() * busy as f64 + 100_000.0;
            let off = (row.estimated_ns.unwrap() - row.exact_ns) as f64;
            assert!(off.abs() <= error, "{row:?}: {off} ns off, allowed {error}");
            seen += usize::from(row.samples > Some(100));
        }
        assert!(seen >= 8, "enough to compare: {seen}");
    }

    #[test]
    fn the_profiler_costs_as_often_as_it_looks() {
        let overhead = [1_000_000, 500_000, 250_000].map(|cycles| {
            let results = several_guests(&format!("profiler = {{ cycles = {cycles} }}"));
            let busy: i64 = results.profile.iter().map(|row| row.exact_ns).sum();
            exact_ns(&results, "profiler") as f64 / (busy - exact_ns(&results, "profiler")) as f64
        });
        // 22,500 cycles for each sample (`lp200r`).
        for (overhead, expected) in overhead.into_iter().zip([0.0225, 0.045, 0.09]) {
            assert!((overhead / expected - 1.0).abs() < 0.01, "{overhead}, expected {expected}");
        }
        let none = several_guests("sample = '0s'");
        assert_eq!(exact_ns(&none, "profiler"), 0);
        assert!(none.profile.iter().all(|row| row.samples.is_none()));
    }

    #[test]
    fn samples_sum_to_what_was_measured_and_change_nothing() {
        let results = several_guests("sample = '300ms'");
        for domain in &results.domains {
            let rows = results.samples.in_memory().filter(|row| row.domain == domain.domain);
            let rows: Vec<_> = rows.collect();
            assert_eq!(rows.len(), 14, "13 of 300 ms, and 100 ms at the end");
            assert_eq!(rows.iter().map(|row| row.elapsed_ns).sum::<i64>(), domain.elapsed_ns);
            assert_eq!(rows.iter().map(|row| row.running_ns).sum::<i64>(), domain.running_ns);
            assert_eq!(rows.iter().map(|row| row.blocked_ns).sum::<i64>(), domain.blocked_ns);
            assert_eq!(rows.iter().map(|row| row.executions).sum::<u64>(), domain.executions);
            assert_eq!(rows.iter().map(|row| row.io_count).sum::<u64>(), domain.io_count);
            let vcpus = results.vcpu_samples.in_memory().filter(|row| row.domain == domain.domain);
            assert_eq!(vcpus.map(|row| row.running_ns).sum::<i64>(), domain.running_ns);
            let pcpus = results.pcpu_samples.in_memory().filter(|row| row.domain == domain.domain);
            assert_eq!(pcpus.map(|row| row.running_ns).sum::<i64>(), domain.running_ns);
            if ["web", "sink"].contains(&domain.domain.as_str()) {
                let exchanged: u64 = rows.iter().filter_map(|row| row.page_exchanges).sum();
                let received: u64 = rows.iter().filter_map(|row| row.packets_received).sum();
                assert!(exchanged > 100 && exchanged.abs_diff(received) < 300, "{exchanged}, {received}");
            }
        }
        let without = several_guests("sample = '0s'");
        assert!(without.pcpu_samples.is_empty());
        assert!(without.samples.is_empty() && without.vcpu_samples.is_empty());
        assert_eq!((without.domains, without.apps), (results.domains, results.apps));
    }

    #[test]
    fn what_ran_on_a_pcpu_is_what_its_domains_ran_there() {
        let sleeper = "app = [{ kind = 'periodic', run = '3ms', period = '10ms' }]";
        let text = format!(
            "run = {{ duration = '4s', warmup = '500ms', sample = '100ms' }}\n\
             [host]\nscheduler = 'credit2'\nprofile = 'exact'\npcpus = 2\n\
             [domain.a]\nvcpus = 2\n{sleeper}\n[domain.b]\n{sleeper}\n[domain.c]\nvcpus = 2\n\
             app = [{{ kind = 'hog', instance = 2 }}]\n[domain.d]\napp = [{{ kind = 'hog' }}]\n\
             [[action]]\nat = '2s'\nop = 'affinity'\ndomain = 'd'\naffinity = '0'\n\
             [[action]]\nat = '3s'\nop = 'reboot'\ndomain = 'd'\n"
        );
        let results = run(&Scenario::parse(&text, "f").unwrap(), &RunOptions::default(), &|_| true).unwrap();
        assert!(results.vcpus.iter().map(|row| row.migrations).sum::<u64>() > 0, "they move");
        for pcpu in &results.pcpus {
            let there = || results.pcpu_samples.in_memory().filter(|row| row.pcpu == pcpu.pcpu);
            assert_eq!(there().map(|row| row.running_ns).sum::<i64>(), pcpu.run_ns);
            let executions: u64 = there().map(|row| row.executions).sum();
            assert!((pcpu.switches / 2..=pcpu.switches).contains(&executions), "{executions}");
        }
        for domain in &results.domains {
            let of = || results.pcpu_samples.in_memory().filter(|row| row.domain == domain.domain);
            assert_eq!(of().map(|row| row.running_ns).sum::<i64>(), domain.running_ns);
            assert!(of().map(|row| row.runnable_ns).sum::<i64>() <= domain.runnable_ns);
            assert!(of().map(|row| row.blocked_ns).sum::<i64>() <= domain.blocked_ns);
        }
    }

    #[test]
    fn samples_are_an_hours_and_those_that_would_not_fit_are_refused_or_left_out() {
        let text = |run: &str| {
            format!("run = {{ {run} }}\n[host]\npcpus = 1\nscheduler = 'credit'\n[domain.a]\n[domain.b]\n")
        };
        let of = |run: &str| Scenario::parse(&text(run), "f").unwrap().sample;
        for (duration, seconds) in [(1, 1), (3600, 1), (3601, 2), (7200, 2), (86_399, 24), (86_400, 24)] {
            assert_eq!(of(&format!("duration = '{duration}s'")), Span::from_secs(seconds), "{duration}");
        }
        let long = "duration = '600min', replications = 20";
        assert_eq!(of(long), Span::from_secs(10));
        assert_eq!(of("duration = '600min', replications = 50"), Span::ZERO);
        let refused = text(&format!("{long}, sample = '1s'"));
        let refused = Scenario::parse(&refused, "f").unwrap_err().to_string();
        assert!(refused.contains("run.sample") && refused.contains("at least"), "{refused}");
        assert_eq!(of(&format!("{long}, sample = '5s'")), Span::from_secs(5));
        let few = "profiler = { cycles = 1 }";
        let refused = Scenario::parse(&text(few), "f").unwrap_err().to_string();
        assert!(
            refused.contains("run.profiler.cycles: found `1`; allowed: an integer from 10000"),
            "{refused}"
        );
    }

    #[test]
    fn without_costs_the_profiler_sees_the_truth_too() {
        let text = "run = { duration = '1s', warmup = '0s', profiler = { cycles = 10_000 } }\n\
                    [host]\nscheduler = 'credit'\nprofile = 'exact'\npcpus = 1\n\
                    [domain.a]\napp = [{ kind = 'periodic', run = '3ms', period = '10ms' }]\n\
                    [domain.b]\napp = [{ kind = 'periodic', run = '1ms', period = '7ms' }]\n";
        let results = run(&Scenario::parse(text, "f").unwrap(), &RunOptions::default(), &|_| true).unwrap();
        let of = |domain: &str| -> Vec<&ProfileRow> {
            results.profile.iter().filter(|row| row.domain.as_deref() == Some(domain)).collect()
        };
        for domain in ["a", "b"] {
            let [application, kernel, hypervisor] = of(domain)[..] else { panic!("three layers") };
            assert!((application.estimated_ns.unwrap() - application.exact_ns).abs() <= 1_000_000);
            assert!(application.exact_ns > 100_000_000 && kernel.exact_ns + hypervisor.exact_ns == 0);
        }
    }
}
