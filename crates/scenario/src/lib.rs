//! Scenario files: what stands on a host, what it runs, and how it is measured.
//!
//! A scenario is a TOML file. It goes through four stations, each in a module of its own:
//!
//! 1. `raw` says which fields there are. From that one declaration (`read::record!`) follow the reader, which keeps every
//!    field's position and reports every unknown, missing and mistyped one, the writer, and the JSON [`schema`].
//! 2. `check` makes a [`Spec`] of it, in which every value is within its [`limits`] and every reference leads somewhere.
//!    It collects all [`Problems`]; what is allowed but doubtful becomes a warning (`lint`). Scheduler parameters are
//!    checked against the registry's tables alone; no scheduler is named here.
//! 3. `assemble` turns the [`Spec`] and its hardware [`Profile`] into the configurations of a host and of what surrounds it.
//! 4. `[`run`](run()) runs the replications in parallel and puts their results in order.
//!
//! ```
//! use vcpulab_scenario::Scenario;
//!
//! let text = "
//!     [host]
//!     scheduler = 'credit'
//!     [domain.web]
//!     weight = 70000
//! ";
//! let problems = Scenario::parse(text, "web.toml").unwrap_err();
//! assert_eq!(
//!     problems.to_string(),
//!     "web.toml:5:14: domain.web.weight: found `70000`; allowed: 0 or an integer from 1 to 65535"
//! );
//! ```

mod app_table;
mod apps;
mod assemble;
mod check;
mod client_machines;
#[cfg(test)]
mod client_tests;
mod clients;
mod describe;
mod disks;
mod ending;
mod entitlement;
mod files;
mod io_table;
mod jtl;
mod life;
pub mod limits;
mod lint;
mod listing;
mod live;
mod manager;
mod monitors;
mod network;
mod params;
mod phases;
mod problem;
mod profile;
mod profile_file;
mod raw;
mod read;
mod run;
mod scenario;
mod schema;
mod spec;
#[cfg(test)]
mod tests;
mod units;
mod write;

pub use assemble::{host_config, machine_config};
pub use describe::{profile_json, profiles_json, schedulers_json};
pub use entitlement::entitlements;
pub use jtl::{JTL_EPOCH_MS, Jtl};
pub use listing::listing_json;
pub use live::{LiveSamples, Sampled};
pub use manager::{Manager, Wanted};
pub use problem::{Problem, Problems};
pub use profile::{CONSTANTS, ConstantDoc, Constants, Profile, SourceKind, Sourced, profiles};
pub use run::{RunError, RunOptions, run, run_managed, run_many, run_under};
pub use scenario::{Scenario, starter};
pub use schema::schema;
pub use spec::*;
pub use units::{Duration, Size};
pub use vcpulab_measure::Results;
