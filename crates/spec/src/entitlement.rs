//! Entitlements: the CPU time that the parameters of a scheduler promise each domain.

use vcpulab_host::{DomId, Time};
use vcpulab_sched::{Member, ParamSpec, Role};

use crate::action::{ActionSpec, Change};
use crate::group_shares::group_shares;
use crate::host::POOL_0;
use crate::platform::Guest;
use crate::spec::Spec;

impl Spec {
    /// Most CPU time of a domain's vCPUs together, by cap and quotas, and of each, by its reservation, in pCPUs. Threads that
    /// serve VMs have the limits of their VMs.
    pub fn limits(&self, domain: DomId) -> (f64, f64) {
        let spec = &self.domains[domain];
        let generation = self.pools[spec.pool].generation;
        match spec.guest {
            Guest::HostThreads(_) => (f64::INFINITY, f64::INFINITY),
            _ => (generation.limit(&spec.member()), generation.reserved(&spec.params)),
        }
    }
}

/// CPU time that each domain is entitled to when every domain is always runnable, in pCPUs: by the parameters of its pool's scheduler
/// ([`Generation::entitlements`](vcpulab_sched::Generation::entitlements)), or by the control groups of a KVM host, level by level.
///
/// `None` where these do not decide, or where domains, parameters and pools change during the run.
pub fn entitlements(spec: &Spec) -> Vec<Option<f64>> {
    let mut all = vec![None; spec.domains.len()];
    let changing = |action: &ActionSpec| match &action.change {
        Change::AdjustGlobal(pool, params) => {
            let role = |param: &&ParamSpec| param.role != Role::Plain;
            let promises = spec.pools[*pool].generation.params.iter().filter(role);
            promises.into_iter().any(|param| params.get(param.name).is_some())
        }
        _ => true,
    };
    if spec.actions.iter().any(changing) || spec.domains.iter().any(|domain| domain.start > Time::ZERO) {
        return all;
    }
    if let Some(kvm) = spec.host.platform.kvm() {
        return match spec.pools[POOL_0].generation.param_of(Role::GroupWeight) {
            Some(weight) => group_shares(spec, kvm, weight),
            None => all,
        };
    }
    for (id, pool) in spec.pools.enumerate() {
        let here: Vec<DomId> = spec.domains.ids().filter(|&d| spec.domains[d].pool == id).collect();
        let members: Vec<Member<'_>> = here.iter().map(|&d| spec.domains[d].member()).collect();
        let shares = pool.generation.entitlements(pool.pcpus.len(), &pool.params, &members);
        for (d, share) in here.into_iter().zip(shares) {
            all[d.index()] = share;
        }
    }
    all
}
