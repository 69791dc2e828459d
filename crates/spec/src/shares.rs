//! Weights and caps, and how CPU time is shared by them.

use vcpulab_host::{ParamSpec, Part, Role};

use crate::domain::DomainSpec;
use crate::host::PoolSpec;

/// The parameter of a pool's scheduler that has this meaning, if it has one.
pub(crate) fn param_of(pool: &PoolSpec, role: Role) -> Option<&'static ParamSpec> {
    pool.generation.params.iter().find(|param| param.role == role)
}

/// A scheduler's parameter for the weights of domains, if it has one.
pub fn weight_param(pool: &PoolSpec) -> Option<&'static ParamSpec> {
    pool.generation.params.iter().find(|param| matches!(param.role, Role::Weight(_)))
}

/// The number that a domain has for a parameter.
pub fn value(domain: &DomainSpec, param: &ParamSpec) -> i64 {
    domain.params.int(param.name).unwrap_or(param.default)
}

/// Most a domain can get by its vCPUs, its cap and its quotas, in pCPUs.
pub(crate) fn most(domain: &DomainSpec, pool: &PoolSpec) -> f64 {
    let value_of = |role: Role| param_of(pool, role).map(|param| value(domain, param));
    let quota = |part: Part| match (value_of(Role::GroupQuota(part)), value_of(Role::GroupPeriod(part))) {
        (Some(quota @ 1..), Some(period)) => quota as f64 / period as f64,
        _ => f64::INFINITY,
    };
    let cap = match value_of(Role::CapPercent) {
        Some(cap @ 1..) => cap as f64 / 100.0,
        _ => f64::INFINITY,
    };
    let each = quota(Part::Vcpu).min(1.0);
    cap.min(quota(Part::Whole)).min(each * f64::from(domain.vcpus()))
}

/// Whether a domain runs only when nothing else wants to.
pub(crate) fn is_idle(domain: &DomainSpec, pool: &PoolSpec) -> bool {
    param_of(pool, Role::GroupIdle).is_some_and(|idle| value(domain, idle) == 1)
}

/// Shares by weight, none above its limit, and what those leave shared by weight again.
pub(crate) fn fair_shares(capacity: f64, weights: &[f64], limits: &[f64]) -> Vec<f64> {
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
