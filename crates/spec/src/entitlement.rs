//! What the weights promise each domain.

use vcpulab_host::{ParamSpec, Scope};

use crate::params::PERCENT_OF_PCPU;
use crate::spec::{ActionSpec, Change, DomainSpec, PoolSpec, Spec};

/// The parameter that is a domain's share of CPU time under contention, in every scheduler that has shares.
pub(crate) const SHARE: &str = "weight";

/// A scheduler's parameter for shares, if it has one.
pub(crate) fn share(pool: &PoolSpec) -> Option<&'static ParamSpec> {
    pool.generation.params.iter().find(|param| param.scope == Scope::Domain && param.name == SHARE)
}

/// A domain's weight.
pub(crate) fn weight(domain: &DomainSpec, share: &ParamSpec) -> i64 {
    domain.params.int(SHARE).unwrap_or(share.default)
}

/// CPU time each domain is entitled to when all want all they can get, in pCPUs: shares by weight, none above what a
/// domain's vCPUs or its cap allow, and what those leave shared by weight again (weighted max-min fairness). `None` where the
/// weights do not decide: a scheduler without weights, pinned vCPUs, or domains, parameters and pools that change during the run.
pub fn entitlements(spec: &Spec) -> Vec<Option<f64>> {
    let mut all = vec![None; spec.domains.len()];
    let changing = |action: &ActionSpec| !matches!(action.change, Change::AdjustGlobal(..));
    if spec.actions.iter().any(changing) || spec.domains.iter().any(|domain| domain.start_ns > 0) {
        return all;
    }
    for (index, pool) in spec.pools.iter().enumerate() {
        let here: Vec<usize> = (0..spec.domains.len()).filter(|&d| spec.domains[d].pool == index).collect();
        let pinned = here.iter().any(|&d| spec.domains[d].affinity.iter().any(Option::is_some));
        let Some(share) = share(pool).filter(|_| !pinned) else { continue };
        let weights: Vec<f64> = here.iter().map(|&d| weight(&spec.domains[d], share) as f64).collect();
        let limits: Vec<f64> = here.iter().map(|&d| limit(&spec.domains[d], pool)).collect();
        for (d, share) in here.into_iter().zip(fair_shares(f64::from(pool.pcpus.len()), &weights, &limits)) {
            all[d] = Some(share);
        }
    }
    all
}

/// Most a domain can get, in pCPUs.
fn limit(domain: &DomainSpec, pool: &PoolSpec) -> f64 {
    let is_cap = |param: &&ParamSpec| param.scope == Scope::Domain && param.unit == PERCENT_OF_PCPU;
    let caps = pool.generation.params.iter().filter(is_cap);
    let caps =
        caps.map(|param| domain.params.int(param.name).unwrap_or(param.default)).filter(|cap| *cap > 0);
    caps.map(|cap| cap as f64 / 100.0).fold(domain.affinity.len() as f64, f64::min)
}

fn fair_shares(capacity: f64, weights: &[f64], limits: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).filter(|&d| weights[d] > 0.0).collect();
    let mut left = capacity;
    while !open.is_empty() {
        let sum: f64 = open.iter().map(|&d| weights[d]).sum();
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|&&d| limits[d] <= left * weights[d] / sum);
        if full.is_empty() {
            rest.iter().for_each(|&d| shares[d] = left * weights[d] / sum);
            break;
        }
        for d in full {
            shares[d] = limits[d];
            left -= limits[d];
        }
        open = rest;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn of(host: &str, domains: &str) -> Vec<Option<f64>> {
        let text = format!("[host]\nscheduler = \"credit\"\nprofile = \"exact\"\n{host}\n{domains}");
        entitlements(&Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}")))
    }

    #[test]
    fn weights_decide_up_to_what_a_domain_can_use() {
        assert_eq!(of("", "[domain.a]\nweight = 512"), [Some(1.0)]);
        assert_eq!(
            of("pcpus = 3", "[domain.a]\nvcpus = 4\nweight = 512\n[domain.b]\nvcpus = 4"),
            [Some(2.0), Some(1.0)]
        );
        // One vCPU uses no more than one pCPU; a cap holds too; the others share the rest.
        let three = "[domain.a]\nweight = 60000\n[domain.b]\nvcpus = 4\ncap = 50\n[domain.c]\nvcpus = 4";
        assert_eq!(of("pcpus = 4", three), [Some(1.0), Some(0.5), Some(2.5)]);
    }

    #[test]
    fn each_pool_is_shared_by_the_domains_in_it() {
        let pool = "pcpus = 3\n[pool.rest]\npcpus = \"1-2\"\nscheduler = \"credit2\"";
        let domains = "[domain.a]\n[domain.b]\nweight = 768\n[domain.c]\npool = \"rest\"\nvcpus = 2";
        assert_eq!(of(pool, domains), [Some(0.25), Some(0.75), Some(2.0)]);
    }

    #[test]
    fn nothing_is_said_where_weights_do_not_decide() {
        assert_eq!(of("pcpus = 2", "[domain.a]\naffinity = \"0\""), [None]);
        assert_eq!(of("", "[domain.a]\n[[action]]\nat = \"1s\"\nop = \"pause\"\ndomain = \"a\""), [None]);
    }
}
