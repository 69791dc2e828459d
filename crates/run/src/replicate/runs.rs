//! Runs of scenarios: which replications, how, and what came of them.

use std::ops::Range;

use vcpulab_host::HostConfig;
use vcpulab_measure::{Results, Spool};
use vcpulab_spec::{Spec, entitlements};

use crate::assemble::host::host_config;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::replicate::manager::Manager;
use crate::replicate::progress::Progress;
use crate::replicate::replication::Replication;
use crate::replicate::schedulers::{MakeScheduler, none_to_make};

/// Runs of scenarios that were not started yet.
///
/// ```
/// use vcpulab_host::Scheduler;
/// use vcpulab_run::{Own, Part, RunOptions, Runs};
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
/// let mut scheduler = |pool: &PoolSpec, _seed| -> Box<dyn Scheduler> {
///     Box::new(RoundRobin::new((), &pool.params, pool.pcpus.len()))
/// };
/// let runs = Runs {
///     parts: vec![Part::whole(&scenario)],
///     options: &RunOptions::default(),
///     progress: &|_| true,
///     own: Some(Own { scheduler: &mut scheduler, manager: None }),
/// };
/// let results = runs.start().results().unwrap();
/// assert_eq!(results[0].domains[0].running_ns, 1_000_000_000);
/// ```
pub struct Runs<'a, 's> {
    /// The scenarios, and which replications of each to run.
    pub parts: Vec<Part<'a>>,
    /// Options of all runs.
    pub options: &'a RunOptions,
    /// Gets the fraction done, never less than before; the runs stop if it answers `false`.
    pub progress: &'a (dyn Fn(f64) -> bool + Sync),
    /// Schedulers and a manager of the caller's. With them the replications run one after the other in this thread, and
    /// `options.jobs` has no effect.
    pub own: Option<Own<'a, 's>>,
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

/// Parts of a run that the caller provides.
pub struct Own<'o, 's> {
    /// Makes the schedulers of pools whose policies are not in the registry.
    pub scheduler: MakeScheduler<'o, 's>,
    /// Looks at each sample and sets parameters (`run.sample` is how often). Entitlements are then unknown.
    pub manager: Option<&'o mut dyn Manager>,
}

/// The results of runs as far as they went.
#[derive(Debug, Default)]
pub struct Ran {
    /// The results of each part.
    pub so_far: Vec<SoFar>,
    /// The reason why some replications are missing, and the number of the part, from 0, whose replication failed first.
    pub failure: Option<(usize, RunError)>,
}

impl Ran {
    /// The results of each part, if all are complete.
    ///
    /// # Errors
    /// See [`RunError`]; of several parts, the error says which failed.
    pub fn results(self) -> Result<Vec<Results>, RunError> {
        match self.failure {
            None => Ok(self.so_far.into_iter().map(|part| part.results).collect()),
            Some((_, error)) if self.so_far.len() == 1 => Err(error),
            Some((index, error)) => Err(error.of(index)),
        }
    }
}

/// The results of a scenario as far as it was run.
///
/// The results of a stopped run are those of its first replications, like those of a run with that many: among all replications
/// that had ended, the short ones would be too frequent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// The number of replications that were run, from the first of the part on.
    pub replications: u32,
    /// Results of these replications.
    pub results: Results,
}

/// A replication of one of the parts: its number, and the part's.
type Unit = (u32, usize);

impl Runs<'_, '_> {
    /// Runs the replications. The first replications of all parts come first, so that stopped scenarios that are compared have
    /// the same number.
    pub fn start(mut self) -> Ran {
        let own = self.own.take();
        let replications =
            |index: usize| self.parts[index].replications.clone().map(move |number| (number, index));
        let mut units: Vec<Unit> = (0..self.parts.len()).flat_map(replications).collect();
        units.sort_unstable();
        let progress = Progress::new(units.len(), self.progress);
        let parts: Vec<Prepared<'_>> = self.parts.iter().map(|part| self.prepared(part, &progress)).collect();
        let outcomes = match own {
            Some(own) => in_turn(&parts, units, own),
            None => {
                let outcomes = vcpulab_parallel::map(&units, self.options.jobs, |&(number, index)| {
                    if progress.is_stopped() {
                        return Err(RunError::Cancelled);
                    }
                    parts[index].replication(number, None).with(&mut none_to_make)
                });
                units.into_iter().zip(outcomes).collect()
            }
        };
        self.ran(outcomes)
    }

    fn prepared<'p>(&'p self, part: &Part<'p>, progress: &'p Progress<'p>) -> Prepared<'p> {
        Prepared {
            spec: part.spec,
            config: host_config(part.spec),
            options: self.options,
            spool: Spool::new(part.replications.len().max(1) as u32),
            progress,
        }
    }

    /// The results in the order of the parts, from the outcomes in any order.
    fn ran(&self, mut outcomes: Vec<(Unit, Result<Results, RunError>)>) -> Ran {
        outcomes.sort_unstable_by_key(|&((number, index), _)| (index, number));
        let mut so_far = vec![SoFar::default(); self.parts.len()];
        let mut failure = None;
        for ((number, index), outcome) in outcomes {
            let part = &mut so_far[index];
            match outcome {
                Ok(results) if number == self.parts[index].replications.start + part.replications => {
                    part.replications += 1;
                    part.results.append(results);
                }
                Ok(_) => {}
                Err(error) => {
                    if matches!(failure, None | Some((_, RunError::Cancelled))) {
                        failure = Some((index, error));
                    }
                }
            }
        }
        Ran { so_far, failure }
    }
}

/// Runs replications one after the other in this thread, up to the first that fails.
fn in_turn(
    parts: &[Prepared<'_>],
    units: Vec<Unit>,
    mut own: Own<'_, '_>,
) -> Vec<(Unit, Result<Results, RunError>)> {
    let mut outcomes = Vec::with_capacity(units.len());
    for unit in units {
        let (number, index) = unit;
        let manager = own.manager.as_deref_mut().map(|manager| manager as &mut dyn Manager);
        let outcome = parts[index].replication(number, manager).with(&mut *own.scheduler);
        let failed = outcome.is_err();
        outcomes.push((unit, outcome));
        if failed {
            break;
        }
    }
    outcomes
}

/// A part, with what all its replications share.
struct Prepared<'a> {
    spec: &'a Spec,
    config: HostConfig,
    options: &'a RunOptions,
    spool: Spool,
    progress: &'a Progress<'a>,
}

impl Prepared<'_> {
    fn replication<'b>(&'b self, number: u32, manager: Option<&'b mut dyn Manager>) -> Replication<'b> {
        let entitlements = match manager {
            Some(_) => vec![None; self.spec.domains.len()],
            None => entitlements(self.spec),
        };
        Replication {
            spec: self.spec,
            config: &self.config,
            options: self.options,
            spool: &self.spool,
            replication: number,
            entitlements,
            progress: self.progress,
            manager,
        }
    }
}

/// Runs all replications of a scenario.
///
/// # Errors
/// See [`RunError`]. When several replications fail, the error is that of the first.
pub fn run(
    spec: &Spec,
    options: &RunOptions,
    progress: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Results, RunError> {
    let runs = Runs { parts: vec![Part::whole(spec)], options, progress, own: None };
    Ok(runs.start().results()?.pop().unwrap_or_default())
}
