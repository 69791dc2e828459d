//! Counters of a run, and what monitors read of them at regular intervals.

mod by_pcpu;
mod decisions;
mod meter;
mod rejected;
mod samples;

pub use decisions::Decisions;
pub use meter::{Keep, Meter};
pub use samples::Sampler;
