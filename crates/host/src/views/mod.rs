//! The views that each side has of the host's one [state](crate::state).
//!
//! * A scheduler has a [`PolicyContext`](policy::PolicyContext): time, timers, topology, affinity and runstates.
//! * Observers read the [`HostState`](crate::HostState) by the methods in [`observer`]: the same values, and besides them
//!   accounts, caches, costs, and the rest of what each vCPU executes.
//! * A world has a [`WorldContext`](world::WorldContext): it reads the state, raises virtual interrupts, sets the times of
//!   its devices, and charges work of the hypervisor.

pub mod observer;
pub mod policy;
pub mod world;
