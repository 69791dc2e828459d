//! What runs inside a domain.
//!
//! [`kernel`] is a small guest kernel: each vCPU has a queue of tasks that share it in time slices, and sleepers that a
//! timer wakes. [`app`] holds the applications, each a task that computes, sleeps or serves requests. Network packets
//! and interrupts are not its business: they belong to the I/O path (crate `vcpulab-io`), which asks the kernel for
//! task work when it has nothing more urgent to do.
//!
//! A guest knows nothing of schedulers, nor of what other domains do.

pub mod app;
pub mod kernel;
pub mod random;
pub mod stats;

pub use app::{AppConfig, Phase, PhaseEvent};
pub use kernel::Kernel;
pub use random::Random;
pub use stats::AppStats;
