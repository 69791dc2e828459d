//! The views that each side has of the host: one state, three views.
//!
//! * A scheduler has a [`PolicyContext`](policy::PolicyContext): time, timers, topology, affinity and runstates.
//! * Observers read the [`HostState`](observer::HostState), which is that and the rest: accounts, caches, costs, and what
//!   vCPUs have left to execute.
//! * A world has a [`WorldContext`](world::WorldContext): it reads the state, raises virtual interrupts, sets the times of
//!   its devices, and charges work of the hypervisor.

mod affinities;
pub mod observer;
pub mod policy;
mod runstates;
mod units;
pub mod world;
