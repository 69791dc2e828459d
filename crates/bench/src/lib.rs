//! The speed of the engine.
//!
//! [`run`] measures every policy on the same [workload] and [whole runs](whole), each beside a [bare event-queue loop](floor), in
//! one process and one thread, so that the *ratio* means something on any machine. Statistics are on: the meter listens, as in a
//! real run; waits are attributed in whole runs only.

pub mod clock;
pub mod floor;
mod host;
pub mod memory;
mod rates;
mod size;
pub mod whole;
mod whole_rates;
pub mod workload;

pub use clock::Metrics;
pub use host::host;
pub use rates::run;
pub use size::{SIZES, Size};
