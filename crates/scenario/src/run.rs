//! Runs a scenario: its replications in parallel, their results in order.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use vcpulab_host::{Action, Broken, DomId, Host, HostConfig, Params, Pools, Scheduler, Time};
use vcpulab_io::Machine;
use vcpulab_measure::{
    Keep, Measuring, Meter, Names, NotAttributed, Recorder, Results, TRACE_ROWS_MAX, Traced, collect,
};
use vcpulab_sched::Runner;

use crate::app_table::app_rows;
use crate::assemble::{host_config, machine_config};
use crate::entitlement::entitlements;
use crate::io_table::io_rows;
use crate::jtl::{Jtl, Logs};
use crate::limits::ROWS_MAX;
use crate::live::LiveSamples;
use crate::manager::{Manager, decided};
use crate::monitors::Monitors;
use crate::scenario::Scenario;
use crate::spec::{PoolSpec, Spec};

/// A replication is run in this many steps; between two of them it can be cancelled.
pub(crate) const STEPS: u64 = 100;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Threads; 0: one for each processor. It never changes the results.
    pub jobs: usize,
    /// Keep every scheduling decision?
    pub trace: bool,
    /// Ask who made whom wait, and how long vCPUs waited by what woke them?
    pub waits: bool,
    /// A directory that is there, to which each replication writes all its events while it runs: `events-0.arrow` and so on.
    pub events: Option<PathBuf>,
    /// Log the requests of clients?
    pub jtl: Option<Jtl>,
    /// Show samples while the run goes on?
    pub live: Option<LiveSamples>,
}

impl RunOptions {
    fn keep(&self, spec: &Spec) -> Keep {
        Keep { trace: self.trace, waits: self.waits, by_pcpu: spec.sample_ns > 0 }
    }
}

/// Why a run gave no results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scheduler or the world broke the rules of the host.
    #[error("replication {replication}: {broken}")]
    Broken {
        /// Which replication, from 0.
        replication: u32,
        /// What happened.
        broken: Broken,
    },
    /// Whoever watched the progress asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The events, or a log of requests, could not be written.
    #[error("{}: {reason}", file.display())]
    Events {
        /// Where to.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Whoever managed the run gave up, or asked for what cannot be.
    #[error("replication {replication}: the manager: {reason}")]
    Manager {
        /// Which replication.
        replication: u32,
        /// What it says, or what is wrong with what it asked for.
        reason: String,
    },
    /// The threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(String),
    /// One of several scenarios failed.
    #[error("scenario {index}: {error}")]
    OneOf {
        /// Which, from 0.
        index: usize,
        /// Why.
        error: Box<RunError>,
    },
}

/// Runs all replications of a scenario. `progress` is told the fraction done, never less than before; if it answers
/// `false` the run stops.
///
/// # Errors
/// See [`RunError`]. When several replications fail, the error is that of the first.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Results, RunError> {
    let mut all = run_all(&[scenario], options, progress).map_err(|(_, error)| error)?;
    Ok(all.pop().unwrap_or_default())
}

/// Runs all replications of several scenarios, together on `jobs` threads (0: one for each processor); results come in the order of
/// the scenarios, and are what [`run`] would answer for each, without traces and logs.
///
/// # Errors
/// See [`RunError`]; that of a scenario says of which. When several fail, the error is that of the first.
pub fn run_many(
    scenarios: &[Scenario],
    jobs: usize,
    waits: bool,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Vec<Results>, RunError> {
    let scenarios: Vec<&Scenario> = scenarios.iter().collect();
    let options = RunOptions { jobs, waits, ..RunOptions::default() };
    run_all(&scenarios, &options, progress).map_err(|(index, error)| match error {
        RunError::Cancelled | RunError::Threads(_) => error,
        error => RunError::OneOf { index, error: Box::new(error) },
    })
}

/// The results of each scenario, or which of them failed first.
fn run_all(
    scenarios: &[&Scenario],
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Vec<Results>, (usize, RunError)> {
    let configs: Vec<HostConfig> = scenarios.iter().map(|scenario| host_config(scenario)).collect();
    let replications = |index: usize| (0..scenarios[index].replications).map(move |number| (index, number));
    let units: Vec<(usize, u32)> = (0..scenarios.len()).flat_map(replications).collect();
    let progress = Progress::new(units.len(), progress);
    let one = |&(index, replication): &(usize, u32)| {
        if progress.is_stopped() {
            return Err(RunError::Cancelled);
        }
        let spec: &Spec = scenarios[index];
        let one = Replication {
            spec,
            config: &configs[index],
            options,
            replication,
            entitlements: entitlements(spec),
            progress: &progress,
            manager: None,
        };
        one.under_its_own()
    };
    let outcomes: Vec<Result<Results, RunError>> = if options.jobs == 1 || units.len() == 1 {
        units.iter().map(one).collect()
    } else {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(options.jobs).build();
        let pool = pool.map_err(|error| (0, RunError::Threads(error.to_string())))?;
        // One may take much longer than another: whoever is free takes the next.
        pool.install(|| units.par_iter().with_max_len(1).map(one).collect())
    };
    if progress.is_stopped() {
        return Err((0, RunError::Cancelled));
    }
    let mut all = vec![Results::default(); scenarios.len()];
    for ((index, _), outcome) in units.into_iter().zip(outcomes) {
        all[index].append(outcome.map_err(|error| (index, error))?);
    }
    Ok(all)
}

/// Runs all replications of a scenario, one after the other in this thread, while `manager` looks at each sample and sets
/// parameters (`run.sample` is how often). `options.jobs` is of no effect. Entitlements are unknown.
///
/// # Errors
/// See [`RunError`]; the first replication that fails ends the run.
pub fn run_managed(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
    manager: &mut dyn Manager,
) -> Result<Results, RunError> {
    let spec: &Spec = scenario;
    let config = host_config(spec);
    let progress = Progress::new(spec.replications as usize, progress);
    let mut all = Results::default();
    for replication in 0..spec.replications {
        let one = Replication {
            spec,
            config: &config,
            options,
            replication,
            entitlements: vec![None; spec.domains.len()],
            progress: &progress,
            manager: Some(&mut *manager),
        };
        all.append(one.under_its_own()?);
    }
    Ok(all)
}

/// The schedulers of a scenario's pools, where speed does not matter.
pub(crate) fn pools_of<'s>(spec: &Spec) -> Pools<'s> {
    Pools::new(spec.pools.iter().map(scheduler_of).collect())
}

/// The scheduler of a pool where others are beside it.
fn scheduler_of<'s>(pool: &PoolSpec) -> Box<dyn Scheduler + 's> {
    vcpulab_sched::boxed(pool.policy.name, pool.generation.name, &pool.params, pool.pcpus.len())
        .expect("a checked scenario names registered schedulers")
}

/// Runs all replications of a scenario, one after the other in this thread, under a scheduler of the caller's instead
/// of the one that the scenario names (in other CPU pools the scenario's own stay). `make` makes it anew for each replication, from those of the scenario's global
/// parameters that are given and a seed of its own. `options.jobs` is of no effect. Domains are given the parameters of the scheduler in the scenario,
/// by the adjust hook. Entitlements are unknown.
///
/// ```
/// use vcpulab_scenario::{RunOptions, Scenario, run_under};
/// use vcpulab_sched::{Registered, round_robin::RoundRobin};
///
/// let text = "host.scheduler = 'credit'\ndomain.a.app = [{ kind = 'hog' }]\nrun.duration = '1s'";
/// let scenario = Scenario::parse(text, "one.toml").unwrap();
/// let make = |params: &_, _seed| RoundRobin::new((), params, scenario.host.pcpus);
/// let results = run_under(&scenario, &RunOptions::default(), &|_| true, make).unwrap();
/// assert_eq!(results.domains[0].entitlement, None);
/// ```
///
/// # Errors
/// See [`RunError`]; the first replication that fails ends the run.
pub fn run_under<S: Scheduler>(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
    mut make: impl FnMut(&Params, u64) -> S,
) -> Result<Results, RunError> {
    let spec: &Spec = scenario;
    let config = host_config(spec);
    let progress = Progress::new(spec.replications as usize, progress);
    let mut all = Results::default();
    for replication in 0..spec.replications {
        let entitlements = vec![None; spec.domains.len()];
        let one = Replication {
            spec,
            config: &config,
            options,
            replication,
            entitlements,
            progress: &progress,
            manager: None,
        };
        // A stream of its own, so that what a policy draws changes nothing of what surrounds the host.
        let seed = replication_seed(!replication_seed(spec.seed, replication), 0);
        let scheduler = make(&spec.pools[0].params, seed);
        let outcome = match &spec.pools[1..] {
            [] => one.under(scheduler),
            others => {
                let first: Box<dyn Scheduler> = Box::new(scheduler);
                one.under_pools(Pools::new(
                    std::iter::once(first).chain(others.iter().map(scheduler_of)).collect(),
                ))
            }
        };
        all.append(outcome?);
    }
    Ok(all)
}

/// One replication, waiting for its scheduler.
struct Replication<'a> {
    spec: &'a Spec,
    config: &'a HostConfig,
    options: &'a RunOptions,
    replication: u32,
    /// By domain.
    entitlements: Vec<Option<f64>>,
    progress: &'a Progress<'a>,
    manager: Option<&'a mut dyn Manager>,
}

impl Runner for Replication<'_> {
    type Out = Result<Results, RunError>;

    fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out {
        self.under(scheduler)
    }
}

impl Replication<'_> {
    /// Under the schedulers that the scenario names.
    fn under_its_own(self) -> Result<Results, RunError> {
        let spec = self.spec;
        match &spec.pools[..] {
            [PoolSpec { policy, generation, params, pcpus, .. }] => {
                vcpulab_sched::with(policy.name, generation.name, params, pcpus.len(), self)
                    .expect("a checked scenario names a registered scheduler")
            }
            _ => self.under_pools(pools_of(spec)),
        }
    }

    fn under<S: Scheduler>(self, scheduler: S) -> Result<Results, RunError> {
        if self.options.events.is_some() {
            // Where everything is written down, one more indirection does not matter.
            let scheduler: Box<dyn Scheduler> = Box::new(scheduler);
            return self.under_pools(Pools::new(vec![scheduler]));
        }
        let meter = Meter::new(self.options.keep(self.spec));
        self.measured(scheduler, meter)
    }

    fn under_pools(self, pools: Pools<'_>) -> Result<Results, RunError> {
        let meter = Meter::new(self.options.keep(self.spec));
        let Some(directory) = &self.options.events else { return self.measured(pools, meter) };
        let file = directory.join(format!("events-{}.arrow", self.replication));
        let failed = |reason| RunError::Events { file: file.clone(), reason };
        let recorder = Recorder::create(&file).map_err(failed)?;
        self.measured(pools, Traced { meter, recorder })
    }

    fn measured<S: Scheduler, O: Measuring>(self, scheduler: S, observer: O) -> Result<Results, RunError> {
        let Replication { spec, config, options, replication, entitlements, progress, mut manager } = self;
        let mut machine = Machine::new(&machine_config(spec, replication_seed(spec.seed, replication)));
        let logs = options.jtl.as_ref().map(|jtl| Logs::create(spec, replication, jtl)).transpose()?;
        if let Some(logs) = logs.clone() {
            machine.log_requests(move |sample| logs.borrow_mut().write(sample));
        }
        let broken = |broken| RunError::Broken { replication, broken };
        let mut host = Host::new(config, scheduler, machine, observer).map_err(broken)?;
        let (context, observer) = host.observe();
        observer.reset(context);
        let end = spec.warmup_ns + spec.duration_ns;
        let names = Names {
            domains: spec.domains.iter().map(|domain| domain.name.clone()).collect(),
            pools: spec.pools.iter().map(|pool| pool.name.clone()).collect(),
        };
        let mut monitors: Option<Monitors> = None;
        for step in 0..=STEPS {
            let until = (i128::from(end) * i128::from(step) / i128::from(STEPS)) as Time;
            if (host.now()..until).contains(&spec.warmup_ns) {
                host.run_until(spec.warmup_ns).map_err(broken)?;
                host.world_mut().reset_statistics();
                logs.iter().for_each(|logs| logs.borrow_mut().begin());
                let (context, observer) = host.observe();
                observer.begin(context);
                let meter = host.observer().meter();
                monitors = Some(Monitors::begin(spec, replication, host.context(), meter, host.world()));
            }
            while let Some(monitors) = &mut monitors
                && let Some(next) = monitors.next(until)
            {
                host.run_until(next).map_err(broken)?;
                let (context, observer, world) = host.parts();
                monitors.sample(&names, context, observer.meter_mut(), world, options.live.as_ref());
                let Some(manager) = &mut manager else { continue };
                let wanted = decided(&mut **manager, spec, monitors.latest(spec.domains.len()));
                let wanted = wanted.map_err(|reason| RunError::Manager { replication, reason })?;
                for (domain, params) in wanted.into_iter().rev() {
                    host.act_now(Action::Adjust(DomId(domain as u32), params));
                }
            }
            host.run_until(until).map_err(broken)?;
            if step > 0 && !progress.step() {
                return Err(RunError::Cancelled);
            }
        }
        let mut results = collect(replication, &names, host.context(), host.observer().meter());
        let (context, observer, world) = host.parts();
        let (sampler, app_samples, profile) = monitors.map_or_else(Default::default, |monitors| {
            monitors.finish(spec, &names, context, observer.meter_mut(), world, options.live.as_ref())
        });
        if let Some(sampler) = sampler {
            (results.samples, results.vcpu_samples, results.pcpu_samples) =
                (sampler.domains, sampler.vcpus, sampler.pcpus);
        }
        (results.app_samples, results.profile) = (app_samples, profile);
        results.apps = app_rows(spec, replication, host.world());
        results.io = io_rows(spec, replication, host.world());
        for (index, (row, entitlement)) in results.domains.iter_mut().zip(entitlements).enumerate() {
            row.io_count = host.world().io_count(index);
            row.entitlement = entitlement;
        }
        // All replications together keep what one may keep.
        let share = TRACE_ROWS_MAX / spec.replications as usize;
        results.untraced += results.trace.len().saturating_sub(share) as u64;
        results.trace.truncate(share);
        results.trace.shrink_to_fit();
        // All replications of a run have the same number of domains.
        if results.waits.len() > ROWS_MAX / spec.replications as usize {
            results.waits = Vec::new();
            results.not_attributed = Some(NotAttributed::Rows);
        }
        if let Some(logs) = logs {
            logs.borrow_mut().finish()?;
        }
        let (context, _, _, observer) = host.into_parts();
        observer.finish(&context).map_err(|reason| RunError::Events {
            file: options.events.clone().unwrap_or_default(),
            reason,
        })?;
        Ok(results)
    }
}

/// How far all replications of all scenarios together are.
struct Progress<'a> {
    report: &'a (dyn Fn(f64) -> bool + Sync),
    done: Mutex<u64>,
    all: u64,
    stop: AtomicBool,
}

impl<'a> Progress<'a> {
    fn new(replications: usize, report: &'a (dyn Fn(f64) -> bool + Sync)) -> Self {
        Progress {
            report,
            done: Mutex::new(0),
            all: replications as u64 * STEPS,
            stop: AtomicBool::new(false),
        }
    }

    /// Is nobody interested any more?
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One step more is done. Go on?
    fn step(&self) -> bool {
        // Reported under the lock, so that reports never go backwards.
        let mut done = self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *done += 1;
        if !self.is_stopped() && !(self.report)(*done as f64 / self.all as f64) {
            self.stop.store(true, Ordering::Relaxed);
        }
        !self.is_stopped()
    }
}

/// The seed of one replication: SplitMix64's output at that position of the scenario's stream (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn replication_seed(seed: u64, replication: u32) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(replication) + 1));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;
    use vcpulab_measure::SampleRow;

    fn scenario() -> Scenario {
        let text = "[run]\nduration = \"100ms\"\nwarmup = \"30ms\"\nreplications = 5\n[host]\nscheduler = \"credit\"\n\
             profile = \"generic\"\npcpus = 2\n[domain.a]\nvcpus = 3\nweight = 512\napp = [{ kind = \"hog\", instance = 3 }]\n\
             [domain.b]\nvcpus = 2\napp = [{ kind = \"periodic\", run = \"1ms\", period = \"3ms\", instance = 2 }]\n";
        Scenario::parse(text, "f").unwrap()
    }

    fn run_with(
        jobs: usize,
        trace: bool,
        progress: &(dyn Fn(f64) -> bool + Sync),
    ) -> Result<Results, RunError> {
        run(&scenario(), &RunOptions { jobs, trace, ..RunOptions::default() }, progress)
    }

    #[test]
    fn the_number_of_threads_never_changes_the_results() {
        let one = run_with(1, true, &|_| true).unwrap();
        assert_eq!(one, run_with(4, true, &|_| true).unwrap());
        let order: Vec<u32> = one.domains.iter().map(|row| row.replication).collect();
        assert_eq!(order, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_ne!(one.domains[0].running_ns, one.domains[2].running_ns, "each has its own random numbers");
        assert_eq!(one.domains[0].entitlement, Some(4.0 / 3.0));
        assert!(!one.trace.is_empty() && one.trace.iter().all(|row| row.time_ns >= 30_000_000));
    }

    #[test]
    fn what_is_measured_begins_after_the_warm_up() {
        let results = run_with(1, false, &|_| true).unwrap();
        assert!(results.trace.is_empty());
        for row in &results.domains {
            assert_eq!(row.elapsed_ns, 100_000_000);
            let sum = row.running_ns + row.runnable_ns + row.blocked_ns + row.offline_ns;
            assert_eq!(sum, row.elapsed_ns * i64::from(row.vcpus));
        }
        let kinds: Vec<&str> = results.apps.iter().take(5).map(|row| row.kind.as_str()).collect();
        assert_eq!(kinds, ["hog", "hog", "hog", "periodic", "periodic"]);
        for row in results.apps.iter().filter(|row| row.kind == "periodic") {
            assert!(
                (1..=36).contains(&row.completed),
                "at most one job every 3 ms for 100 ms: {}",
                row.completed
            );
            assert!(row.response_p50_ns.is_some());
        }
    }

    #[test]
    fn a_web_server_serves_what_it_is_asked_for() {
        for profile in ["exact", "generic", "lp200r"] {
            let text = format!(
                "[run]\nduration = \"1s\"\n[host]\nscheduler = \"credit\"\nprofile = \"{profile}\"\npcpus = 1\n\
                 [domain.dom0]\ndriver_domain = true\n\
                 [domain.web]\nnic.driver_domain = \"dom0\"\napp = [{{ kind = \"web-server\" }}]\n\
                 [client.c]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 200\n"
            );
            let scenario = Scenario::parse(&text, "f").unwrap();
            let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
            let client = results.apps.iter().find(|row| row.kind == "open-loop").unwrap();
            assert!((150..=250).contains(&client.completed), "{profile}: {client:?}");
            assert!(results.domains.iter().all(|row| row.io_count > 0), "{profile}");
        }
    }

    #[test]
    fn progress_rises_to_one_and_can_stop_the_run() {
        let seen = Mutex::new(vec![0.0]);
        run_with(2, false, &|fraction| {
            seen.lock().unwrap().push(fraction);
            true
        })
        .unwrap();
        let seen = seen.into_inner().unwrap();
        assert!(seen.is_sorted() && *seen.last().unwrap() == 1.0, "{seen:?}");
        assert_eq!(run_with(2, false, &|fraction| fraction < 0.3), Err(RunError::Cancelled));
    }

    #[test]
    fn many_scenarios_have_the_results_of_each_in_their_order() {
        let other = scenario().with_run(Some(7), Some(2)).unwrap();
        let each = |scenario: &Scenario| run(scenario, &RunOptions::default(), &|_| true).unwrap();
        let expected = vec![each(&scenario()), each(&other), each(&scenario())];
        let scenarios = [scenario(), other, scenario()];
        for jobs in [1, 4] {
            assert_eq!(run_many(&scenarios, jobs, false, &|_| true), Ok(expected.clone()));
        }
        assert_eq!(run_many(&[], 0, true, &|_| true), Ok(Vec::new()));
        assert_eq!(run_many(&scenarios, 2, false, &|fraction| fraction < 0.5), Err(RunError::Cancelled));
    }

    #[test]
    fn of_many_scenarios_the_first_that_fails_is_named() {
        let why = Broken { time: 5, hook: None, what: "so it is".into() };
        let error = RunError::Broken { replication: 2, broken: why };
        let error = RunError::OneOf { index: 1, error: Box::new(error) };
        assert_eq!(error.to_string(), "scenario 1: replication 2: at 5 ns: so it is");
    }

    #[test]
    fn a_manager_sets_parameters_at_each_sample() {
        let text = "[run]\nduration = '3s'\nwarmup = '500ms'\nsample = '1s'\nreplications = 2\n[host]\npcpus = 1\n\
             scheduler = 'credit'\nprofile = 'exact'\n[domain.a]\napp = [{ kind = 'hog' }]\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        let managed = |cap: i64| {
            let mut seen = Vec::new();
            let mut manager = |samples: &[SampleRow]| {
                seen.push((samples[0].replication, samples[0].time_ns, samples[0].running_ns));
                Ok(vec![("a".to_owned(), vec![("cap".to_owned(), cap)])])
            };
            let results = run_managed(&scenario, &RunOptions::default(), &|_| true, &mut manager);
            (results, seen)
        };
        let (results, seen) = managed(20);
        let times: Vec<(u32, Time)> =
            seen.iter().map(|&(replication, time, _)| (replication, time)).collect();
        let (first, second) = (1_500_000_000, 2_500_000_000);
        assert_eq!(times, [(0, first), (0, second), (1, first), (1, second)]);
        assert_eq!(seen[0].2, 1_000_000_000, "there is no cap yet");
        let running = results.unwrap().domains[0].running_ns;
        assert!((1_350_000_000..1_500_000_000).contains(&running), "{running}");
        let (refused, _) = managed(1_000);
        assert!(refused.unwrap_err().to_string().contains("cap"), "a domain with one vCPU cannot use ten");
    }

    #[test]
    fn seeds_of_replications_differ() {
        let mut seeds: Vec<u64> = (0..limits::REPLICATIONS_MAX).map(|r| replication_seed(1, r)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), limits::REPLICATIONS_MAX as usize);
        // The first output of SplitMix64 with seed 0, as published with the generator.
        assert_eq!(replication_seed(0, 0), 0xE220_A839_7B1D_CDAF);
    }
}
