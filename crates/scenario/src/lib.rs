//! Scenario files.

mod assemble;
mod check;
mod describe;
mod entitlement;
pub mod limits;
mod lint;
mod params;
mod problem;
mod profile;
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

pub use assemble::{host_config, vcpu_id};
pub use describe::{profiles_json, schedulers_json};
pub use entitlement::entitlements;
pub use problem::{Problem, Problems};
pub use profile::{CONSTANTS, ConstantDoc, Constants, Profile, Sourced, profiles};
pub use run::{Machine, Results, RunError, RunOptions};
pub use scenario::{Scenario, starter};
pub use schema::schema;
pub use spec::*;
pub use units::{Duration, Size};
