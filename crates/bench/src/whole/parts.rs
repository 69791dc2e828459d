//! The parts of a whole run.

use std::fmt;

use vcpulab_host::{Host, Pools, Span, Time};
use vcpulab_io::Machine;
use vcpulab_measure::{Keep, Meter, Results, Tabular, each_table};
use vcpulab_run::{RunOptions, host_config, machine_config};
use vcpulab_scenario::Scenario;

/// A part of a whole run, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Text to a checked scenario.
    Read,
    /// A checked scenario to a host with all that is on it.
    Build,
    /// The run itself, to its end; it builds a host once more.
    Run,
    /// Counters to the rows of the result tables.
    Rows,
    /// Rows to Arrow tables.
    Tables,
}

impl Part {
    /// All parts, in order.
    pub const ALL: [Part; 5] = [Part::Read, Part::Build, Part::Run, Part::Rows, Part::Tables];
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Part::Read => "read",
            Part::Build => "build",
            Part::Run => "run",
            Part::Rows => "rows",
            Part::Tables => "tables",
        })
    }
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// vCPUs switched in.
    pub dispatches: u64,
    /// vCPUs that became runnable after a block.
    pub wakeups: u64,
    /// Units of work that applications and clients completed.
    pub completed: u64,
    /// Rows of all result tables.
    pub rows: usize,
}

/// Does all parts on this thread, waits attributed, as `vcpulab run` does; `over` is called at the end of each part. The scenario
/// must be valid and have no warm-up, one replication and one CPU pool.
pub fn run_in_parts(text: &str, over: &(dyn Fn(Part) + Sync)) -> Counts {
    let scenario = read(text);
    over(Part::Read);
    drop(build(&scenario));
    over(Part::Build);
    let options = RunOptions { jobs: 1, waits: true, ..RunOptions::default() };
    let progress = |done: f64| {
        if done == 1.0 {
            over(Part::Run);
        }
        true
    };
    let results = vcpulab_run::run(&scenario, &options, &progress).expect("it runs");
    over(Part::Rows);
    let counts = Counts {
        dispatches: results.vcpus.iter().map(|row| row.executions).sum(),
        wakeups: results.vcpus.iter().map(|row| row.wakeups).sum(),
        completed: results.apps.iter().map(|row| row.completed).sum(),
        rows: tables(results),
    };
    over(Part::Tables);
    counts
}

/// A host with all that is on it.
pub type Built = Host<Pools<'static>, Machine, Meter>;

/// The host of a scenario, which must be as for [`run_in_parts`], after that much simulated time.
pub fn kept(text: &str, simulated: Span) -> Built {
    let mut host = build(&read(text));
    host.run_until(Time::ZERO + simulated).expect("the policy keeps the rules");
    host
}

fn read(text: &str) -> Scenario {
    Scenario::parse(text, "whole run").unwrap_or_else(|problems| panic!("{problems}"))
}

/// The host of a scenario, about to start: as each run builds one.
fn build(scenario: &Scenario) -> Built {
    let pool = scenario.pools.iter().next().expect("a host has a pool");
    let pcpus = pool.pcpus.len();
    let scheduler = vcpulab_sched::boxed(pool.policy.name, pool.generation.name, &pool.params, pcpus);
    let pools = Pools::new(vec![scheduler.expect("the registry makes what it has")]);
    let meter = Meter::new(Keep { waits: true, by_pcpu: !scenario.sample.is_zero() }, None);
    let machine = Machine::new(&machine_config(scenario, 0));
    let mut host =
        Host::new(&host_config(scenario), pools, machine, meter).expect("the policy keeps the rules");
    let (context, meter) = host.observe();
    meter.reset(context);
    host
}

/// Makes Arrow tables of all rows; answers how many rows there are.
fn tables(results: Results) -> usize {
    macro_rules! tables {
        ($($(#[doc = $doc:literal])* $table:ident: $kept:ident<$row:ty>,)*) => {
            [$(results.$table.in_parts()),*]
                .iter()
                .flatten()
                .map(|part| part.read().expect("what was written can be read").num_rows())
                .sum()
        };
    }
    each_table!(tables)
}
