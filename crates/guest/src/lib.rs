//! The inside of a domain.
//!
//! [`script`] holds the steps of which every application is made; [`kernel`] is a small guest kernel: each vCPU has a queue
//! of tasks that share it in time slices, and sleepers that a timer wakes; services hand requests to tasks. Demands of
//! tasks on the network or a disk belong to the I/O path (crate `vcpulab-io`), which asks the kernel for task work when it
//! has nothing more urgent to do. [`apps`] has the applications by name.
//!
//! A guest knows nothing of schedulers, nor of other domains.

pub mod apps;
pub mod ids;
pub mod kernel;
pub mod random;
pub mod script;
pub mod stats;

pub use ids::{AppId, ChannelId, ConnectionId, ServiceId, TaskId};
pub use kernel::{IdleTick, Io, Kernel, KernelConfig, Next, Request, Service, Standing, SynAnswer};
pub use random::Random;
pub use script::{AppConfig, Script, ServiceConfig, Softirq, Step, Stretches, Unit};
pub use stats::AppStats;
