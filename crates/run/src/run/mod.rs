//! Runs scenarios: replications in parallel, their results in order.

mod app_table;
mod io_table;
pub(crate) mod jtl;
pub(crate) mod live;
pub(crate) mod manager;
mod monitors;
mod overload;
pub mod pace;
pub(crate) mod progress;
mod replication;
pub(crate) mod schedulers;
pub(crate) mod seed;
pub(crate) mod stream;
mod thread_table;
mod vm_table;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use vcpulab_host::HostConfig;
use vcpulab_measure::{Results, Spool};
use vcpulab_spec::{Spec, entitlements};

use crate::build::host::host_config;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::run::manager::Manager;
use crate::run::progress::Progress;
use crate::run::replication::Replication;
use crate::run::schedulers::{MakeScheduler, none_to_make};

/// The results of a scenario as far as it was run.
///
/// The results of a stopped run are those of its first replications, like those of a run with that many: among all replications
/// that had ended, the short ones would be too frequent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// The replications that were run, from the first on.
    pub replications: u32,
    /// Results of these replications.
    pub results: Results,
}

impl SoFar {
    fn add(&mut self, results: Results) {
        self.replications += 1;
        self.results.append(results);
    }
}

/// Runs all replications of a scenario. `progress` gets the fraction done, never less than before; if it answers
/// `false` the run stops.
///
/// # Errors
/// See [`RunError`]. When several replications fail, the error is that of the first.
pub fn run(
    spec: &Spec,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Results, RunError> {
    let part = Part::whole(spec);
    let so_far = run_so_far(std::slice::from_ref(&part), options, progress).map_err(|(_, error)| error)?;
    Ok(whole(&[part], so_far)?.pop().unwrap_or_default())
}

/// Runs one replication of a scenario: a part of the results of [`run`], for callers that distribute replications themselves.
///
/// # Errors
/// See [`RunError`].
pub fn run_one(
    spec: &Spec,
    options: &RunOptions,
    replication: u32,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Results, RunError> {
    run_one_own(spec, options, replication, progress, &mut none_to_make)
}

/// Runs one replication like [`run_one`], with schedulers of the caller's.
///
/// # Errors
/// See [`RunError`].
pub fn run_one_own(
    spec: &Spec,
    options: &RunOptions,
    replication: u32,
    progress: &(dyn Fn(f64) -> bool + Sync),
    scheduler: MakeScheduler<'_, '_>,
) -> Result<Results, RunError> {
    let one = Replication {
        spec,
        config: &host_config(spec),
        options,
        spool: &Spool::new(spec.replications),
        replication,
        entitlements: entitlements(spec),
        progress: &Progress::new(1, progress),
        manager: None,
    };
    one.with(scheduler)
}

/// Runs all replications of several scenarios, together on `jobs` threads (0: one for each processor). Results come in
/// the order of the scenarios, and equal those of [`run`] for each, without traces and logs.
///
/// # Errors
/// See [`RunError`]; that of a scenario says of which. When several fail, the error is that of the first.
pub fn run_many(
    specs: &[&Spec],
    jobs: usize,
    waits: bool,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Vec<Results>, RunError> {
    let options = RunOptions { jobs, waits, ..RunOptions::default() };
    let parts: Vec<Part<'_>> = specs.iter().map(|spec| Part::whole(spec)).collect();
    whole(&parts, run_so_far(&parts, &options, progress).map_err(|(index, error)| error.of(index))?)
}

/// The results, unless a run was stopped.
fn whole(parts: &[Part<'_>], all: Vec<SoFar>) -> Result<Vec<Results>, RunError> {
    match parts.iter().zip(&all).all(|(part, so_far)| so_far.replications == part.replications.len() as u32) {
        true => Ok(all.into_iter().map(|so_far| so_far.results).collect()),
        false => Err(RunError::Cancelled),
    }
}

/// Consecutive replications of a scenario.
///
/// The results of a replication do not depend on the others that are run with it.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The scenario. Its own number of replications has no effect.
    pub spec: &'a Spec,
    /// The numbers of the replications, from 0.
    pub replications: Range<u32>,
}

impl<'a> Part<'a> {
    /// All replications of a scenario.
    pub fn whole(spec: &'a Spec) -> Self {
        Part { spec, replications: 0..spec.replications }
    }
}

/// Runs replications of several scenarios together. A run that is stopped is no error, but has fewer replications.
///
/// The first replications of all scenarios come first, so that stopped scenarios that are compared have the same number.
///
/// # Errors
/// The number of the scenario that failed, from 0, and its error. When several replications fail, the error is that of the first.
pub fn run_so_far(
    parts: &[Part<'_>],
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Vec<SoFar>, (usize, RunError)> {
    let configs: Vec<HostConfig> = parts.iter().map(|part| host_config(part.spec)).collect();
    let replications = |index: usize| parts[index].replications.clone().map(move |number| (number, index));
    let mut units: Vec<(u32, usize)> = (0..parts.len()).flat_map(replications).collect();
    units.sort_unstable();
    let spools: Vec<Spool> = parts.iter().map(|part| Spool::new(part.replications.len() as u32)).collect();
    let progress = Progress::new(units.len(), progress);
    let one = |(replication, index): (u32, usize)| {
        if progress.is_stopped() {
            return Err(RunError::Cancelled);
        }
        let spec = parts[index].spec;
        let one = Replication {
            spec,
            config: &configs[index],
            options,
            spool: &spools[index],
            replication,
            entitlements: entitlements(spec),
            progress: &progress,
            manager: None,
        };
        one.with(&mut none_to_make)
    };
    let mut outcomes: Vec<Outcome> = if options.jobs == 1 || units.len() == 1 {
        units.into_iter().map(|unit| (unit, one(unit))).collect()
    } else {
        in_parallel(units, options.jobs, &one).map_err(|error| (0, error))?
    };
    outcomes.sort_unstable_by_key(|&((replication, index), _)| (index, replication));
    let mut all = vec![SoFar::default(); parts.len()];
    for ((replication, index), outcome) in outcomes {
        let next = parts[index].replications.start + all[index].replications;
        match outcome {
            Ok(results) if replication == next => all[index].add(results),
            Ok(_) | Err(RunError::Cancelled) => {}
            Err(error) => return Err((index, error)),
        }
    }
    Ok(all)
}

/// A replication of a scenario, and its outcome.
type Outcome = ((u32, usize), Result<Results, RunError>);

/// Does all units of work on several threads; a free thread takes the next unit, because one may take much longer than
/// another.
fn in_parallel(
    units: Vec<(u32, usize)>,
    jobs: usize,
    one: &(dyn Fn((u32, usize)) -> Result<Results, RunError> + Sync),
) -> Result<Vec<Outcome>, RunError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|error| RunError::Threads(error.to_string()))?;
    let outcomes = Mutex::new(Vec::with_capacity(units.len()));
    let left = Mutex::new(units.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    pool.broadcast(|_| {
        while let Some(unit) = next() {
            let outcome = (unit, one(unit));
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }
    });
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Parts of a run that the caller provides.
pub struct Own<'o, 's> {
    /// Makes the schedulers of pools whose policies are not in the registry.
    pub scheduler: MakeScheduler<'o, 's>,
    /// Looks at each sample and sets parameters (`run.sample` is how often). Entitlements are then unknown.
    pub manager: Option<&'o mut dyn Manager>,
}

/// Runs all replications of a scenario, one after the other in this thread, with schedulers and a manager of the
/// caller's. `options.jobs` has no effect. `so_far` has the completed replications, also if the run ends early.
///
/// ```
/// use vcpulab_host::Scheduler;
/// use vcpulab_run::{Own, RunOptions, SoFar, run_own};
/// use vcpulab_scenario::{FoundPolicy, Outside, Scenario};
/// use vcpulab_sched::{Declaration, Registered, declare, round_robin::RoundRobin};
/// use vcpulab_spec::PoolSpec;
///
/// let find = |name: &str| {
///     let (name, doc, generation) = (name.to_owned(), "In turn.".to_owned(), "1".to_owned());
///     FoundPolicy::Found(declare(Declaration { name, doc, generation, params: Vec::new() }))
/// };
/// let text = "host.scheduler = 'turns'\ndomain.a.app = [{ kind = 'hog' }]\nrun.duration = '1s'";
/// let outside = Outside { policies: Some(&find), ..Outside::default() };
/// let scenario = Scenario::parse_in(text, "one.toml", outside).unwrap();
/// let mut make = |pool: &PoolSpec, _seed| -> Box<dyn Scheduler> {
///     Box::new(RoundRobin::new((), &pool.params, pool.pcpus.len()))
/// };
/// let own = Own { scheduler: &mut make, manager: None };
/// let mut so_far = SoFar::default();
/// run_own(&scenario, &RunOptions::default(), &|_| true, own, &mut so_far).unwrap();
/// assert_eq!(so_far.results.domains[0].running_ns, 1_000_000_000);
/// ```
///
/// # Errors
/// See [`RunError`]; the first replication that fails ends the run.
pub fn run_own(
    spec: &Spec,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
    own: Own<'_, '_>,
    so_far: &mut SoFar,
) -> Result<(), RunError> {
    let Own { scheduler, mut manager } = own;
    let config = host_config(spec);
    let spool = Spool::new(spec.replications);
    let progress = Progress::new(spec.replications as usize, progress);
    for replication in 0..spec.replications {
        let managed = manager.is_some();
        let one = Replication {
            spec,
            config: &config,
            options,
            spool: &spool,
            replication,
            entitlements: if managed { vec![None; spec.domains.len()] } else { entitlements(spec) },
            progress: &progress,
            manager: manager.as_deref_mut().map(|manager| manager as &mut dyn Manager),
        };
        so_far.add(one.with(&mut *scheduler)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use vcpulab_host::{Broken, Time};
    use vcpulab_measure::SampleRow;
    use vcpulab_scenario::Scenario;

    use super::*;

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
        assert_eq!(one.domains[0].entitlement, Some(1.5), "a weight counts for each vCPU");
        assert!(!one.trace.is_empty() && one.trace.in_memory().all(|row| row.time_ns >= 30_000_000));
    }

    #[test]
    fn replications_run_one_by_one_are_those_of_the_whole_run() {
        let (spec, options) = (scenario(), RunOptions { trace: true, ..RunOptions::default() });
        let mut all = Results::default();
        (0..spec.replications).for_each(|one| all.append(run_one(&spec, &options, one, &|_| true).unwrap()));
        let whole = run_with(2, true, &|_| true).unwrap();
        assert_eq!(all, whole);
        let parts = [0..2, 2..3, 3..5].map(|replications| Part { spec: &spec, replications });
        let so_far = run_so_far(&parts, &options, &|_| true).unwrap();
        assert_eq!(so_far.iter().map(|part| part.replications).collect::<Vec<_>>(), [2, 1, 2]);
        let mut joined = Results::default();
        so_far.into_iter().for_each(|part| joined.append(part.results));
        assert_eq!(joined, whole);
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
    fn a_run_that_is_stopped_has_its_first_replications() {
        let (one, two) = (scenario(), scenario().with_run(Some(7), None).unwrap());
        for jobs in [1, 3] {
            let options = RunOptions { jobs, ..RunOptions::default() };
            let stopped =
                run_so_far(&[Part::whole(&one), Part::whole(&two)], &options, &|done| done < 0.65).unwrap();
            let counts: Vec<u32> = stopped.iter().map(|one| one.replications).collect();
            // Of several threads any may be the last.
            assert!(if jobs == 1 { counts == [3, 3] } else { counts.iter().sum::<u32>() < 10 }, "{counts:?}");
            for (scenario, so_far) in
                [&one, &two].into_iter().zip(stopped).filter(|(_, so_far)| so_far.replications > 0)
            {
                let as_many = scenario.with_run(None, Some(so_far.replications)).unwrap();
                assert_eq!(run(&as_many, &RunOptions::default(), &|_| true), Ok(so_far.results));
            }
        }
    }

    #[test]
    fn many_scenarios_have_the_results_of_each_in_their_order() {
        let other = scenario().with_run(Some(7), Some(2)).unwrap();
        let each = |scenario: &Scenario| run(scenario, &RunOptions::default(), &|_| true).unwrap();
        let expected = vec![each(&scenario()), each(&other), each(&scenario())];
        let scenarios = [scenario(), other, scenario()];
        let specs: Vec<&Spec> = scenarios.iter().map(|scenario| &**scenario).collect();
        for jobs in [1, 4] {
            assert_eq!(run_many(&specs, jobs, false, &|_| true), Ok(expected.clone()));
        }
        assert_eq!(run_many(&[], 0, true, &|_| true), Ok(Vec::new()));
        assert_eq!(run_many(&specs, 2, false, &|fraction| fraction < 0.5), Err(RunError::Cancelled));
    }

    #[test]
    fn of_many_scenarios_the_first_that_fails_is_named() {
        let why = Broken { time: Time::from_ns(5), hook: None, what: "so it is".into() };
        let error = RunError::Broken { replication: 2, broken: why };
        let error = RunError::OneOf { index: 1, error: Box::new(error) };
        assert_eq!(error.to_string(), "scenario 1: replication 2: at 5 ns: so it is");
    }

    #[test]
    fn a_run_ends_soon_after_nobody_wants_it() {
        // One step of the hundred has a million events.
        let text = "[run]\nduration = '100s'\nwarmup = '0s'\nsample = '0s'\n[host]\npcpus = 1\nscheduler = 'credit'\n\
            profile = 'exact'\n[domain.a]\napp = [{ kind = 'periodic', run = '1us', period = '4us' }]\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        let asked = Mutex::new(0);
        let progress = |done: f64| {
            assert_eq!(done, 0.0, "the first step is not over");
            *asked.lock().unwrap() += 1;
            *asked.lock().unwrap() < 3
        };
        assert_eq!(run(&scenario, &RunOptions::default(), &progress), Err(RunError::Cancelled));
        assert_eq!(*asked.lock().unwrap(), 3, "nothing is asked any more");
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
            let results = {
                let own = Own { scheduler: &mut none_to_make, manager: Some(&mut manager) };
                let mut so_far = SoFar::default();
                run_own(&scenario, &RunOptions::default(), &|_| true, own, &mut so_far)
                    .map(|()| so_far.results)
            };
            (results, seen)
        };
        let (results, seen) = managed(20);
        let times: Vec<(u32, i64)> = seen.iter().map(|&(replication, time, _)| (replication, time)).collect();
        let (first, second) = (1_500_000_000, 2_500_000_000);
        assert_eq!(times, [(0, first), (0, second), (1, first), (1, second)]);
        assert_eq!(seen[0].2, 1_000_000_000, "there is no cap yet");
        let running = results.unwrap().domains[0].running_ns;
        assert!((1_350_000_000..1_500_000_000).contains(&running), "{running}");
        let (refused, _) = managed(1_000);
        assert!(refused.unwrap_err().to_string().contains("cap"), "a domain with one vCPU cannot use ten");
    }
}
