//! The schedulers of a scenario: those of the registry, and the caller's own.

use vcpulab_host::{Pools, Scheduler};
use vcpulab_spec::{PoolSpec, Spec};

use crate::replicate::seed::replication_seed;

/// Makes the scheduler of a pool whose policy is not in the registry, once for each replication: from the pool, and a
/// seed of its own.
pub type MakeScheduler<'m, 's> = &'m mut dyn FnMut(&PoolSpec, u64) -> Box<dyn Scheduler + 's>;

/// Whether the policies of all pools are in the registry.
pub(crate) fn all_registered(spec: &Spec) -> bool {
    spec.pools.iter().all(is_registered)
}

fn is_registered(pool: &PoolSpec) -> bool {
    vcpulab_sched::find(pool.policy.name).is_some()
}

/// The schedulers of a scenario's pools in one replication, where speed does not matter.
pub(crate) fn pools_of<'s>(spec: &Spec, replication: u32, make: MakeScheduler<'_, 's>) -> Pools<'s> {
    // A stream of its own, so that what a policy draws changes nothing of what surrounds the host.
    let seed = !replication_seed(spec.seed, replication);
    let scheduler = |(number, pool): (u32, &PoolSpec)| {
        if is_registered(pool) { registered(pool) } else { make(pool, replication_seed(seed, number)) }
    };
    Pools::new((0..).zip(spec.pools.iter()).map(scheduler).collect())
}

fn registered<'s>(pool: &PoolSpec) -> Box<dyn Scheduler + 's> {
    vcpulab_sched::boxed(pool.policy.name, pool.generation.name, &pool.params, pool.pcpus.len())
        .expect("the registry makes what it has")
}

/// A [`MakeScheduler`] for where the policies of all pools are in the registry.
///
/// # Panics
/// If one is not.
pub fn none_to_make<'s>(pool: &PoolSpec, _seed: u64) -> Box<dyn Scheduler + 's> {
    unreachable!("the policy `{}` is in the registry", pool.policy.name)
}
