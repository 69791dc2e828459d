//! A replication: a host prepared, driven to its end, and its results.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::{env, io};

use vcpulab_host::{Action, Host, HostConfig, Pools, Scheduler, Time};
use vcpulab_io::{GuestId, Machine};
use vcpulab_measure::{
    Decisions, Measuring, Meter, Names, NotAttributed, Recorder, Results, Spool, Traced, collect,
};
use vcpulab_sched::Runner;
use vcpulab_spec::limits::ROWS_MAX;
use vcpulab_spec::{PoolSpec, Spec};

use crate::assemble::machine::machine_config;
use crate::error::RunError;
use crate::options::RunOptions;
use crate::replicate::app_table::app_rows;
use crate::replicate::io_table::io_rows;
use crate::replicate::jtl::Logs;
use crate::replicate::manager::{Manager, decided};
use crate::replicate::monitors::Monitors;
use crate::replicate::overload::{blame, called, events_between_looks, too_many_connections};
use crate::replicate::pace::Getting;
use crate::replicate::progress::{Progress, STEPS};
use crate::replicate::schedulers::{MakeScheduler, all_registered, pools_of};
use crate::replicate::thread_table::thread_rows;
use crate::replicate::vm_table::{Throttled, throttled, vm_rows};

/// A replication that waits for its scheduler.
pub(crate) struct Replication<'a> {
    pub spec: &'a Spec,
    pub config: &'a HostConfig,
    pub options: &'a RunOptions,
    /// Spool for samples and decisions.
    pub spool: &'a Spool,
    pub replication: u32,
    /// Entitlements by domain.
    pub entitlements: Vec<Option<f64>>,
    pub progress: &'a Progress<'a>,
    pub manager: Option<&'a mut dyn Manager>,
}

impl Runner for Replication<'_> {
    type Out = Result<Results, RunError>;

    fn run<S: Scheduler + 'static>(self, scheduler: S) -> Self::Out {
        self.under(scheduler)
    }
}

impl Replication<'_> {
    /// Runs the replication under the schedulers that the scenario names; `make` makes those that are not in the registry.
    pub fn with(self, make: MakeScheduler<'_, '_>) -> Result<Results, RunError> {
        let spec = self.spec;
        match spec.pools.as_slice() {
            [PoolSpec { policy, generation, params, pcpus, .. }] if all_registered(spec) => {
                vcpulab_sched::with(policy.name, generation.name, params, pcpus.len(), self)
                    .expect("the registry makes what it has")
            }
            _ => {
                let pools = pools_of(spec, self.replication, make);
                self.under_pools(pools)
            }
        }
    }

    pub fn under<S: Scheduler>(self, scheduler: S) -> Result<Results, RunError> {
        if self.options.events.is_some() {
            // Where everything is written down, one more indirection does not matter.
            let scheduler: Box<dyn Scheduler> = Box::new(scheduler);
            return self.under_pools(Pools::new(vec![scheduler]));
        }
        let meter = self.meter();
        self.measured(scheduler, meter)
    }

    pub fn under_pools(self, pools: Pools<'_>) -> Result<Results, RunError> {
        let meter = self.meter();
        let Some(directory) = &self.options.events else { return self.measured(pools, meter) };
        let file = directory.join(format!("events-{}.arrow", self.replication));
        let failed = |reason| RunError::Events { file: file.clone(), reason };
        let recorder = Recorder::create(&file).map_err(failed)?;
        self.measured(pools, Traced { meter, recorder })
    }

    fn meter(&self) -> Meter {
        let Replication { spec, options, replication, spool, .. } = *self;
        let decisions = || Decisions::new(replication, spec.replications, spool);
        Meter::new(options.keep(spec), options.trace.then(decisions))
    }

    fn measured<S: Scheduler, O: Measuring>(self, scheduler: S, observer: O) -> Result<Results, RunError> {
        let mut running = Running::prepare(self, scheduler, observer)?;
        running.drive()?;
        running.harvest()
    }
}

/// A replication with its host.
struct Running<'a, S, O> {
    of: Replication<'a>,
    host: Host<S, Machine, O>,
    names: Names,
    logs: Option<Rc<RefCell<Logs>>>,
    /// From the end of the warm-up on.
    monitors: Option<Monitors>,
    /// Up to the end of the warm-up.
    throttled: Throttled,
    getting: Getting,
    events_between_looks: u64,
}

impl<'a, S: Scheduler, O: Measuring> Running<'a, S, O> {
    fn prepare(of: Replication<'a>, scheduler: S, observer: O) -> Result<Self, RunError> {
        let Replication { spec, config, options, replication, .. } = of;
        let mut machine = Machine::new(&machine_config(spec, replication));
        let logs = options.jtl.as_ref().map(|jtl| Logs::create(spec, replication, jtl)).transpose()?;
        if let Some(logs) = logs.clone() {
            machine.log_requests(move |sample| logs.borrow_mut().write(sample));
        }
        let broken = |broken| RunError::Broken { replication, broken };
        let mut host = Host::new(config, scheduler, machine, observer).map_err(broken)?;
        let (state, observer) = host.observe();
        observer.reset(state);
        refusal_at_boot(spec, replication, &host)?;
        let names = Names {
            domains: spec.domains.iter().map(|domain| domain.name.clone()).collect(),
            pools: spec.pools.iter().map(|pool| pool.name.clone()).collect(),
        };
        Ok(Running {
            of,
            host,
            names,
            logs,
            monitors: None,
            throttled: Throttled::new(),
            getting: Getting::default(),
            events_between_looks: events_between_looks(spec),
        })
    }

    /// Runs to the end, in steps.
    fn drive(&mut self) -> Result<(), RunError> {
        let (warmup, end) = (Time::ZERO + self.of.spec.warmup, self.of.spec.end());
        for step in 0..=STEPS {
            let until = i128::from(end.ns()) * i128::from(step) / i128::from(STEPS);
            let until = Time::from_ns(until as i64);
            if (self.host.now()..until).contains(&warmup) {
                self.run_until(warmup)?;
                self.begin();
            }
            while let Some(next) = self.monitors.as_ref().and_then(|monitors| monitors.next(until)) {
                self.run_until(next)?;
                self.sample()?;
            }
            self.run_until(until)?;
            if step > 0 && !self.of.progress.step() {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        let Replication { spec, replication, progress, .. } = self.of;
        loop {
            let some = self.host.run_some(until, self.events_between_looks);
            let called = |cause| called(cause, spec, self.host.world());
            self.getting.on(
                self.host.context().work_done().events,
                self.host.now(),
                self.host.next_cause(),
                called,
            );
            match some {
                Ok(true) => return refusal_at_boot(spec, replication, &self.host),
                Ok(false) if !progress.goes_on() => return Err(RunError::Cancelled),
                Ok(false) => {}
                Err(broken) => {
                    let broken = self
                        .host
                        .busiest()
                        .map_or(broken.clone(), |busiest| blame(broken, busiest, spec, self.host.world()));
                    return Err(RunError::Broken { replication, broken });
                }
            }
            refusal_at_boot(spec, replication, &self.host)?;
            if let Some(what) = too_many_connections(spec, self.host.world()) {
                return Err(RunError::Limit { replication, time: self.host.now(), what });
            }
        }
    }

    /// Ends the warm-up.
    fn begin(&mut self) {
        self.settle();
        self.host.world_mut().reset_statistics();
        self.logs.iter().for_each(|logs| logs.borrow_mut().begin());
        let (state, observer) = self.host.observe();
        observer.begin(state);
        let (state, observer, machine) = self.host.parts();
        let meter = observer.meter();
        let Replication { spec, replication, spool, .. } = self.of;
        self.monitors = Some(Monitors::begin(spec, replication, spool, state, meter, machine));
        self.throttled = throttled(state);
    }

    fn settle(&mut self) {
        let now = self.host.now();
        self.host.world_mut().settle(now);
    }

    /// Takes a sample, and lets the manager act on it.
    fn sample(&mut self) -> Result<(), RunError> {
        self.settle();
        let Replication { spec, options, replication, .. } = self.of;
        let Some(monitors) = &mut self.monitors else { return Ok(()) };
        let (state, observer, machine) = self.host.parts();
        monitors.sample(&self.names, state, observer.meter_mut(), machine, options.live.as_ref());
        let Some(manager) = &mut self.of.manager else { return Ok(()) };
        let wanted = decided(&mut **manager, spec, monitors.latest());
        let wanted = wanted.map_err(|reason| RunError::Manager { replication, reason })?;
        for (domain, params) in wanted.into_iter().rev() {
            self.host.act_now(Action::Adjust(domain, params));
        }
        Ok(())
    }

    /// The results, once the end is reached.
    fn harvest(mut self) -> Result<Results, RunError> {
        self.settle();
        let Running { of, mut host, names, logs, monitors, throttled, .. } = self;
        let Replication { spec, options, replication, entitlements, .. } = of;
        let mut results = collect(replication, &names, host.context(), host.observer().meter());
        let (state, observer, machine) = host.parts();
        for (index, (row, entitlement)) in results.domains.iter_mut().zip(entitlements).enumerate() {
            row.io_count = machine.io_count(GuestId(index as u32));
            row.entitlement = entitlement;
        }
        results.apps = app_rows(spec, replication, machine);
        results.io = io_rows(spec, replication, machine);
        results.threads = thread_rows(spec, &results.vcpus);
        results.vms = vm_rows(spec, state, &throttled, (&results.domains, &results.threads));
        if let Some(monitors) = monitors {
            let live = options.live.as_ref();
            let finished =
                monitors.finish(&mut results, spec, &names, state, observer.meter_mut(), machine, live);
            finished.map_err(not_kept)?;
        }
        if let Some(decisions) = observer.meter_mut().decisions.take() {
            (results.trace, results.untraced) = decisions.finish().map_err(not_kept)?;
        }
        limit_to_share(&mut results, spec.replications as usize);
        if let Some(logs) = logs {
            logs.borrow_mut().finish()?;
        }
        let (state, _, _, observer) = host.into_parts();
        observer.finish(&state).map_err(|reason| RunError::Events {
            file: options.events.clone().unwrap_or_default(),
            reason,
        })?;
        Ok(results)
    }
}

/// The error of a domain whose parameters the scheduler refused when it was created: it would run with other parameters.
fn refusal_at_boot<S: Scheduler, O: Measuring>(
    spec: &Spec,
    replication: u32,
    host: &Host<S, Machine, O>,
) -> Result<(), RunError> {
    let Some(id) = host.refused_boot() else { return Ok(()) };
    let domain = &spec.domains[id];
    let params = domain.params.iter().map(|(name, value)| format!("`{name}` = {value}"));
    Err(RunError::Refused {
        replication,
        time: host.now(),
        scheduler: spec.pools[domain.pool].policy.name,
        domain: domain.name.clone(),
        params: params.collect::<Vec<_>>().join(", "),
    })
}

/// The error of samples or decisions that could not be written.
fn not_kept(error: io::Error) -> RunError {
    // A browser has no such folder, and asking for it would end the program.
    let folder = if cfg!(target_family = "wasm") { PathBuf::new() } else { env::temp_dir() };
    RunError::Events { file: folder, reason: format!("a temporary file for samples and decisions: {error}") }
}

/// Limits the results of one replication to its share of what all of them may keep together.
fn limit_to_share(results: &mut Results, replications: usize) {
    // All replications of a run have the same number of domains.
    if results.waits.len() > ROWS_MAX / replications {
        results.waits = Vec::new();
        results.not_attributed = Some(NotAttributed::Rows);
    }
}
