//! Scenario files.

mod check;
mod describe;
pub mod limits;
mod lint;
mod params;
mod problem;
mod profile;
mod raw;
mod read;
mod scenario;
mod schema;
mod spec;
#[cfg(test)]
mod tests;
mod units;
mod write;

pub use describe::{profiles_json, schedulers_json};
pub use problem::{Problem, Problems};
pub use profile::{CONSTANTS, ConstantDoc, Constants, Profile, Sourced, profiles};
pub use scenario::{Scenario, starter};
pub use schema::schema;
pub use spec::*;
pub use units::{Duration, Size};
