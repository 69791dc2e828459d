//! Runs checked scenarios.
//!
//! `assemble` turns a [`Spec`](vcpulab_spec::Spec) into the configurations of a host and of the machine around it; `replicate` drives
//! the replications in parallel, and their results are in order. What is in a scenario's file is not known
//! here.
//! ```
//! use vcpulab_run::{RunOptions, run};
//! use vcpulab_scenario::Scenario;
//!
//! let text = "
//!     run = { duration = '1s', warmup = '0s' }
//!     host = { pcpus = 1, scheduler = 'credit2' }
//!     domain.web = { weight = 512, app = [{ kind = 'hog' }] }
//!     domain.batch = { app = [{ kind = 'hog' }] }
//! ";
//! let scenario = Scenario::parse(text, "two.toml")?;
//! let results = run(&scenario, &RunOptions::default(), &|_| true)?;
//! let of = |name: &str| results.domains.iter().find(|row| row.domain == name).map_or(0, |row| row.running_ns);
//! assert!((of("web") as f64 / of("batch") as f64 - 2.0).abs() < 0.1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assemble;
#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod entitlement_tests;
mod error;
mod follow;
#[cfg(test)]
mod kvm_tests;
mod listing;
mod options;
pub mod own;
mod replicate;
pub mod starvation;
#[cfg(test)]
mod tests;

pub use assemble::host::host_config;
pub use assemble::machine::machine_config;
pub use error::RunError;
pub use follow::follow;
pub use listing::listing_json;
pub use options::RunOptions;
pub use replicate::jtl::{JTL_EPOCH_MS, Jtl};
pub use replicate::live::{LiveSamples, Sampled};
pub use replicate::manager::{Manager, Wanted};
pub use replicate::pace::{Pace, pace};
pub use replicate::runs::{Own, Part, Ran, Runs, SoFar, run};
pub use replicate::schedulers::{MakeScheduler, none_to_make};
pub use replicate::stream::{Outcome, Stream};
