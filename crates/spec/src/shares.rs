//! Weights, and what they promise: shares.

use vcpulab_host::{ParamSpec, Scope};

use crate::domain::DomainSpec;
use crate::host::PoolSpec;

/// The parameter that is a domain's share of CPU time under contention, in every scheduler that has shares.
pub const SHARE: &str = "weight";

/// A scheduler's parameter for shares, if it has one.
pub fn share(pool: &PoolSpec) -> Option<&'static ParamSpec> {
    pool.generation.params.iter().find(|param| param.scope == Scope::Domain && param.name == SHARE)
}

/// A domain's weight.
pub fn weight(domain: &DomainSpec, share: &ParamSpec) -> i64 {
    domain.params.int(SHARE).unwrap_or(share.default)
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
