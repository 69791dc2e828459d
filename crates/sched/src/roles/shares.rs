//! Shares by weight, and the limits of a domain.

use super::member::Member;
use crate::policy::Generation;
use crate::role::{Part, Role};

impl Generation {
    /// Greatest CPU time of a domain by its vCPUs, its cap and its quotas, in pCPUs.
    pub fn limit(&self, member: &Member<'_>) -> f64 {
        let value_of = |role: Role| self.param_of(role).map(|param| param.number_in(member.params));
        let quota = |part: Part| match (value_of(Role::GroupQuota(part)), value_of(Role::GroupPeriod(part))) {
            (Some(quota @ 1..), Some(period)) => quota as f64 / period as f64,
            _ => f64::INFINITY,
        };
        let cap = match value_of(Role::CapPercent) {
            Some(cap @ 1..) => cap as f64 / 100.0,
            _ => f64::INFINITY,
        };
        let each = quota(Part::Vcpu).min(1.0);
        cap.min(quota(Part::Whole)).min(each * f64::from(member.vcpus))
    }
}

/// Shares by weight, none above its limit, and what those leave shared by weight again.
pub fn fair_shares(capacity: f64, weights: &[f64], limits: &[f64]) -> Vec<f64> {
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
