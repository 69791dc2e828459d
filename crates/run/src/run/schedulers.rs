//! The schedulers of a scenario.

use vcpulab_host::{Pools, Scheduler};
use vcpulab_spec::{PoolSpec, Spec};

/// The schedulers of a scenario's pools, where speed does not matter.
pub(crate) fn pools_of<'s>(spec: &Spec) -> Pools<'s> {
    Pools::new(spec.pools.iter().map(scheduler_of).collect())
}

/// The scheduler of a pool where others are beside it.
pub(crate) fn scheduler_of<'s>(pool: &PoolSpec) -> Box<dyn Scheduler + 's> {
    vcpulab_sched::boxed(pool.policy.name, pool.generation.name, &pool.params, pool.pcpus.len())
        .expect("a checked scenario names registered schedulers")
}
