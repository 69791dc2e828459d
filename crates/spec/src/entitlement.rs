//! Entitlements: the CPU time that weights promise each domain.

use vcpulab_host::{DomId, ParamSpec, Scope, Time};

use crate::action::{ActionSpec, Change};
use crate::domain::DomainSpec;
use crate::group_shares::group_shares;
use crate::host::{POOL_0, PoolSpec};
use crate::shares::{fair_shares, share, weight};
use crate::spec::Spec;

/// The unit of parameters that are a share of one pCPU: no more than all of a domain's vCPUs can be meant.
pub const PERCENT_OF_PCPU: &str = "% of one pCPU";

/// The limit of all of a VM's threads together, in schedulers that look at control groups.
const GROUP_LIMIT: &str = "global_quota_us";

/// CPU time each domain is entitled to when all want all they can get, in pCPUs: shares by weight, none above what a
/// domain's vCPUs or its cap allow, and what those leave shared by weight again (weighted max-min fairness). `None` where the
/// weights do not decide: a scheduler without weights, pinned vCPUs, or domains, parameters and pools that change during the run. On a
/// KVM host under a scheduler of Linux those of the control groups count.
pub fn entitlements(spec: &Spec) -> Vec<Option<f64>> {
    let mut all = vec![None; spec.domains.len()];
    let changing = |action: &ActionSpec| !matches!(action.change, Change::AdjustGlobal(..));
    if spec.actions.iter().any(changing) || spec.domains.iter().any(|domain| domain.start > Time::ZERO) {
        return all;
    }
    if let Some(kvm) = &spec.host.kvm {
        return if has_groups(&spec.pools[POOL_0]) { group_shares(spec, kvm) } else { all };
    }
    for (id, pool) in spec.pools.enumerate() {
        let here: Vec<DomId> = spec.domains.ids().filter(|&d| spec.domains[d].pool == id).collect();
        let pinned = here.iter().any(|&d| spec.domains[d].affinity.iter().any(Option::is_some));
        let Some(share) = share(pool).filter(|_| !pinned) else { continue };
        let weights: Vec<f64> = here.iter().map(|&d| weight(&spec.domains[d], share) as f64).collect();
        let limits: Vec<f64> = here.iter().map(|&d| limit(&spec.domains[d], pool)).collect();
        for (d, share) in here.into_iter().zip(fair_shares(f64::from(pool.pcpus.len()), &weights, &limits)) {
            all[d.index()] = Some(share);
        }
    }
    all
}

/// Does its scheduler look at control groups? It has limits of groups then.
pub fn has_groups(pool: &PoolSpec) -> bool {
    pool.generation.params.iter().any(|param| param.name == GROUP_LIMIT)
}

/// Most a domain can get, in pCPUs.
fn limit(domain: &DomainSpec, pool: &PoolSpec) -> f64 {
    let is_cap = |param: &&ParamSpec| param.scope == Scope::Domain && param.unit == PERCENT_OF_PCPU;
    let caps = pool.generation.params.iter().filter(is_cap);
    let caps =
        caps.map(|param| domain.params.int(param.name).unwrap_or(param.default)).filter(|cap| *cap > 0);
    caps.map(|cap| cap as f64 / 100.0).fold(f64::from(domain.vcpus()), f64::min)
}
