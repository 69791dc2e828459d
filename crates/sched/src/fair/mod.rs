//! Linux's fair class: weights, control groups as a tree with a queue for each group and CPU, bandwidth limits. What CFS and
//! EEVDF share is here, a [`Flavor`] is what they do differently on one queue.
//!
//! An event (a wake-up, a block, a tick, a refill) changes the queues and may flag a CPU, which asks for a decision;
//! [`Fair::choose`] takes it. Who feeds the events, and when decisions are due, is not known here. (Linux's documentation:
//! `scheduler/sched-design-CFS`, `scheduler/sched-eevdf`, `scheduler/sched-bwc`.)

pub mod cfs;
pub mod eevdf;
pub mod weight;

mod average;
mod balance;
mod bandwidth;
mod class;
mod domains;
mod levels;
mod limit;
mod load;
mod moves;
mod params;
mod partners;
mod policy;
mod ready;
mod realtime;
mod timers;
mod tree;

#[cfg(test)]
mod tests;

pub use cfs::Cfs;
pub use class::{Fair, Flavor, Settings};
pub use eevdf::Eevdf;
pub use limit::Bandwidth;
pub use params::limited_part;
pub use policy::Linux;
pub use tree::TaskId;
