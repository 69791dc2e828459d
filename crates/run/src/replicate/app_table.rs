//! Work completed by applications and clients: in the whole measured time, and from one sample to the next.

use vcpulab_guest::AppStats;
use vcpulab_host::{DomId, Span, Time};
use vcpulab_io::{AppResult, Machine};
use vcpulab_measure::{AppRow, AppSampleRow, Spool, Spooler};
use vcpulab_spec::{DomainSpec, Spec};

/// A row for each application and client.
pub(crate) fn app_rows(spec: &Spec, replication: u32, machine: &Machine) -> Vec<AppRow> {
    let row = |Named { domain, app, kind, stats }: Named<'_>| {
        let responses = Some(stats.responses().read()).filter(|responses| !responses.is_empty());
        let quantile = |share| responses.as_ref().map(|responses| responses.quantile(share));
        AppRow {
            replication,
            domain: domain.to_owned(),
            app,
            kind: kind.to_owned(),
            completed: stats.completed,
            failed: stats.failed,
            throughput_per_s: stats.completed as f64 * 1e9 / spec.duration.ns() as f64,
            last_completed_ns: stats.last_completed.map(Time::ns),
            response_p50_ns: quantile(0.50),
            response_p95_ns: quantile(0.95),
            response_p99_ns: quantile(0.99),
            response_max_ns: responses.as_ref().map(|responses| responses.max()),
            response_mean_ns: responses
                .as_ref()
                .map(|responses| stats.response_sum_ns.ns() as f64 / responses.len() as f64),
            response_sd_ns: responses.as_ref().map(|responses| responses.stdev()),
        }
    };
    named(spec, machine).map(row).collect()
}

/// Reads the counters of applications and clients at a regular interval.
pub(crate) struct AppSampler {
    replication: u32,
    /// Time of the last sample.
    time: Time,
    seen: Vec<Seen>,
    /// The samples.
    pub rows: Spooler<AppSampleRow>,
}

/// An application or client, and its counters at the last sample.
struct Seen {
    domain: String,
    app: u32,
    kind: &'static str,
    progress: Progress,
}

#[derive(Clone, Copy)]
struct Progress {
    completed: u64,
    failed: u64,
    responses: u64,
    response_sum_ns: Span,
}

impl AppSampler {
    /// Begins now.
    pub fn new(spec: &Spec, replication: u32, spool: &Spool, now: Time, machine: &Machine) -> Self {
        let seen = named(spec, machine).map(|Named { domain, app, kind, stats }| Seen {
            domain: domain.to_owned(),
            app,
            kind,
            progress: Progress::of(stats),
        });
        AppSampler { replication, time: now, seen: seen.collect(), rows: Spooler::new(spool) }
    }

    /// Takes a sample, unless no time has passed.
    pub fn take(&mut self, now: Time, machine: &Machine) {
        let elapsed = now - std::mem::replace(&mut self.time, now);
        if elapsed.is_zero() {
            return;
        }
        for (seen, result) in self.seen.iter_mut().zip(machine.results()) {
            let progress = Progress::of(result.stats);
            let before = std::mem::replace(&mut seen.progress, progress);
            let responded = progress.responses > before.responses;
            self.rows.push(AppSampleRow {
                replication: self.replication,
                time_ns: now.ns(),
                domain: seen.domain.clone(),
                app: seen.app,
                kind: seen.kind.to_owned(),
                elapsed_ns: elapsed.ns(),
                completed: progress.completed - before.completed,
                failed: progress.failed - before.failed,
                response_sum_ns: responded.then(|| (progress.response_sum_ns - before.response_sum_ns).ns()),
            });
        }
    }
}

impl Progress {
    fn of(stats: &AppStats) -> Self {
        Progress {
            completed: stats.completed,
            failed: stats.failed,
            responses: stats.responses().len(),
            response_sum_ns: stats.response_sum_ns,
        }
    }
}

/// An application or client in the scenario's words, and its statistics.
struct Named<'a> {
    domain: &'a str,
    app: u32,
    kind: &'static str,
    stats: &'a AppStats,
}

fn named<'a>(spec: &'a Spec, machine: &'a Machine) -> impl Iterator<Item = Named<'a>> {
    let kinds: Vec<Vec<&str>> = spec.domains.iter().map(DomainSpec::app_kinds).collect();
    let named = move |AppResult { guest, app, client, stats }| Named {
        domain: &spec.domains[DomId(guest.0)].name,
        app: app.0,
        kind: match client {
            Some(client) => spec.clients[client].kind(),
            None => kinds[guest.index()][app.index()],
        },
        stats,
    };
    machine.results().into_iter().map(named)
}

#[cfg(test)]
mod tests {
    use vcpulab_measure::{AppRow, AppSampleRow, Results};
    use vcpulab_scenario::Scenario;

    use crate::{RunOptions, run};

    /// Units with response times, with late ones, without response times, and requests refused; one domain comes later,
    /// another is rebooted.
    fn several(run_table: &str, jobs: usize) -> Results {
        let text = format!(
            "run = {{ duration = '2s', replications = 2, {run_table} }}\n\
             [host]\nscheduler = 'credit'\nprofile = 'lp200r'\npcpus = 1\n\
             [domain.dom0]\ndriver_domain = true\n\
             [domain.web]\nnic.driver_domain = 'dom0'\napp = [{{ kind = 'web-server', request_cpu = '5ms' }}]\n\
             [domain.jobs]\napp = [{{ kind = 'periodic', run = '1ms', period = '7ms', instance = 2 }}, {{ kind = 'hog' }}]\n\
             [domain.later]\nstart = '900ms'\napp = [{{ kind = 'hog' }}]\n\
             [client.users]\nkind = 'open-loop'\nserver = 'web'\nrate = 400\nconnections_max = 8\n\
             [[action]]\nat = '1300ms'\nop = 'reboot'\ndomain = 'jobs'\n"
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        run(&scenario, &RunOptions { jobs, ..RunOptions::default() }, &|_| true).unwrap()
    }

    fn of(results: &Results, app: &AppRow) -> Vec<AppSampleRow> {
        let is_it = |row: &&AppSampleRow| {
            (row.replication, &row.domain, row.app, &row.kind)
                == (app.replication, &app.domain, app.app, &app.kind)
        };
        results.app_samples.in_memory().filter(is_it).cloned().collect()
    }

    #[test]
    fn samples_sum_to_what_was_achieved_and_change_nothing() {
        for warmup in ["warmup = '500ms'", "warmup = '0s'"] {
            let results = several(&format!("sample = '300ms', {warmup}"), 1);
            assert_eq!(
                results.app_samples.in_memory().count(),
                results.apps.len() * 7,
                "6 of 300 ms, and 200 ms at the end"
            );
            let first = results.samples.in_memory().next().unwrap();
            let begins = first.time_ns - first.elapsed_ns;
            assert_eq!(begins, if warmup.contains('5') { 500_000_000 } else { 0 });
            for app in &results.apps {
                let rows = of(&results, app);
                assert_eq!(rows.iter().map(|row| row.elapsed_ns).sum::<i64>(), 2_000_000_000);
                assert_eq!(rows.iter().map(|row| row.completed).sum::<u64>(), app.completed);
                assert_eq!(rows.iter().map(|row| row.failed).sum::<u64>(), app.failed);
                let sum_ns: i64 = rows.iter().filter_map(|row| row.response_sum_ns).sum();
                let mean_ns = (sum_ns > 0).then(|| sum_ns as f64 / app.completed as f64);
                assert_eq!(mean_ns, app.response_mean_ns, "{app:?}");
                assert!(rows.is_sorted_by_key(|row| row.time_ns));
            }
            let without = several(&format!("sample = '0s', {warmup}"), 1);
            assert!(without.app_samples.is_empty());
            assert_eq!((&without.domains, &without.apps), (&results.domains, &results.apps));
            let failed = |kind| results.apps.iter().filter(|app| app.kind == kind).any(|app| app.failed > 0);
            assert!(failed("open-loop") && failed("periodic"), "something to lose");
        }
    }

    #[test]
    fn the_number_of_threads_never_changes_samples() {
        let [one, two] = [1, 2].map(|jobs| several("sample = '100ms'", jobs));
        assert_eq!(one.app_samples, two.app_samples);
        let [first, second] = [0, 1].map(|replication| {
            let of = one.app_samples.in_memory().filter(move |row| row.replication == replication);
            of.map(|row| row.completed).collect::<Vec<_>>()
        });
        assert!(first.len() == second.len() && first != second, "each has its own random numbers");
    }

    #[test]
    fn what_happened_when_stands_in_its_sample() {
        let text = "run = { duration = '100ms', warmup = '0s', sample = '20ms' }\n\
                    [host]\nscheduler = 'round-robin'\nprofile = 'exact'\npcpus = 1\n\
                    [domain.a]\napp = [{ kind = 'phases', loop = 3, phase = [{ event = [{ run = '15ms' }] }] }]\n";
        let results = run(&Scenario::parse(text, "f").unwrap(), &RunOptions::default(), &|_| true).unwrap();
        let rows =
            results.app_samples.in_memory().map(|row| (row.time_ns, row.completed, row.response_sum_ns));
        let expected = [(20, Some(15)), (40, Some(15)), (60, Some(15)), (80, None), (100, None)];
        let expected = expected.map(|(time, sum): (i64, Option<i64>)| {
            (time * 1_000_000, u64::from(sum.is_some()), sum.map(|sum| sum * 1_000_000))
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
