//! Counters of a run, and what monitors read of them at regular intervals.

mod by_pcpu;
mod meter;
mod samples;

pub use meter::{Keep, Meter, TRACE_ROWS_MAX};
pub use samples::Sampler;
