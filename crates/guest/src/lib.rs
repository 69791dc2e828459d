//! What runs inside a domain.
//!
//! [`script`] holds the words that every application is made of; [`kernel`] is a small guest kernel: each vCPU has queues
//! of tasks that share it in time slices, and sleepers that a timer wakes; services hand requests to tasks. What a
//! task asks of the network or a disk is not its business: that belongs to the I/O path (crate `vcpulab-io`), which asks
//! the kernel for task work when it has nothing more urgent to do. [`apps`] has the applications by name.
//!
//! A guest knows nothing of schedulers, nor of what other domains do.

pub mod apps;
mod idle_tick;
pub mod kernel;
pub mod random;
pub mod script;
pub mod stats;
mod task;

pub use idle_tick::IdleTick;
pub use kernel::{Called, Kernel, KernelConfig, Next};
pub use random::Random;
pub use script::{AppConfig, Script, ServiceConfig, Step, Unit};
pub use stats::AppStats;
pub use task::{Io, Request};
