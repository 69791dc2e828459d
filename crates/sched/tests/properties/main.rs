//! Properties of the policies, checked on hosts of all kinds.

mod cores;
mod hosts;
mod invariants;
mod linux;
mod pools;
mod promises;
mod refusals;
mod topology;

use vcpulab_host::{Params, Pools};

/// A policy that has the whole host, behind a pointer: compiled once for all policies.
fn alone(policy: &str, generation: &str, global: &Params, pcpus: u32) -> Pools<'static> {
    Pools::new(vec![vcpulab_sched::boxed(policy, generation, global, pcpus).expect("it is registered")])
}
