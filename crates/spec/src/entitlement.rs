//! Entitlements: the CPU time that the parameters of a scheduler promise each domain.

use vcpulab_host::{DomId, Per, ReservationPart, Role, Time};

use crate::action::{ActionSpec, Change};
use crate::domain::DomainSpec;
use crate::group_shares::{group_shares, has_groups};
use crate::host::{POOL_0, PoolSpec};
use crate::reserved::{reserved, timetable};
use crate::shares::{fair_shares, is_idle, most, value};
use crate::spec::Spec;

/// CPU time each domain is entitled to when all want all they can get, in pCPUs, by the meaning of the parameters in the generation of its
/// pool's scheduler:
///
/// * Weights: shares in proportion to them, none above what a domain's vCPUs, cap and quotas allow, and what those leave shared by weight again
///   (weighted max-min fairness). A weight counts once for a domain, or for each of its vCPUs. Where nothing balances pCPUs, weights decide
///   on a host of one pCPU only.
/// * Reservations: what is reserved for its vCPUs, as long as the pCPUs have room for all reservations.
/// * A timetable: its slots, as a part of the frame.
/// * Control groups, on a KVM host under a scheduler of Linux: shares by weight, level by level.
///
/// `None` where that does not decide: a scheduler without such parameters, pinned vCPUs, domains without a reservation, or domains,
/// parameters and pools that change during the run.
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
        let domains: Vec<&DomainSpec> = here.iter().map(|&d| &spec.domains[d]).collect();
        for (d, share) in here.into_iter().zip(in_pool(pool, &domains)) {
            all[d.index()] = share;
        }
    }
    all
}

/// The entitlements of the domains in a pool.
fn in_pool(pool: &PoolSpec, domains: &[&DomainSpec]) -> Vec<Option<f64>> {
    let has = |role: Role| pool.generation.params.iter().any(|param| param.role == role);
    if has(Role::Timetable) {
        timetable(pool, domains)
    } else if has(Role::Reserved(ReservationPart::Time)) || has(Role::ReservedOnPcpu(ReservationPart::Time)) {
        reserved(pool, domains)
    } else {
        by_weight(pool, domains).unwrap_or_else(|| vec![None; domains.len()])
    }
}

fn by_weight(pool: &PoolSpec, domains: &[&DomainSpec]) -> Option<Vec<Option<f64>>> {
    let weights = pool.generation.params.iter().find_map(|param| match param.role {
        Role::Weight(per) => Some((param, per, false)),
        Role::InverseWeight(per) => Some((param, per, true)),
        // Beside each other in the root group.
        Role::GroupWeight => Some((param, Per::Domain, false)),
        _ => None,
    });
    let (param, per, inverse) = weights?;
    let special = |domain: &&DomainSpec| domain.affinity.iter().any(Option::is_some) || is_idle(domain, pool);
    if domains.iter().any(special) || (per == Per::VcpuOfPcpu && pool.pcpus.len() > 1) {
        return None;
    }
    let weight = |domain: &&DomainSpec| {
        let own = value(domain, param) as f64;
        let own = if inverse { 1.0 / own } else { own };
        match per {
            Per::Domain => own,
            Per::Vcpu | Per::VcpuOfPcpu => own * f64::from(domain.vcpus()),
        }
    };
    let weights: Vec<f64> = domains.iter().map(weight).collect();
    let limits: Vec<f64> = domains.iter().map(|domain| most(domain, pool)).collect();
    let shares = fair_shares(f64::from(pool.pcpus.len()), &weights, &limits);
    Some(shares.into_iter().map(Some).collect())
}
