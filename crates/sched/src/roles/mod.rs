//! The meaning of parameters for the CPU time of domains: weights, limits, reservations and timetables, and what they promise.

mod member;
mod reserved;
mod shares;

use vcpulab_host::Params;

use crate::param_spec::ParamSpec;
use crate::policy::Generation;
use crate::role::{GroupWeight, Per, Role};

pub use member::Member;
pub use shares::fair_shares;

impl Generation {
    /// The parameter that has a role, if one has.
    pub fn param_of(&self, role: Role) -> Option<&'static ParamSpec> {
        self.params.iter().find(|param| param.role == role)
    }

    /// The parameter for the weights of domains, if there is one.
    pub fn weight(&self) -> Option<&'static ParamSpec> {
        self.params.iter().find(|param| matches!(param.role, Role::Weight(_)))
    }

    /// Whether a domain with these parameters runs only when nothing else wants to.
    pub fn is_idle(&self, params: &Params) -> bool {
        self.param_of(Role::GroupIdle).is_some_and(|idle| idle.number_in(params) == 1)
    }

    /// The number of times that the weight of a control group counts, on a host with these global parameters.
    pub fn group_weight(&self, global: &Params) -> GroupWeight {
        let modes = self.params.iter().find_map(|param| match param.role {
            Role::GroupWeightMode(modes) => Some((param, modes)),
            _ => None,
        });
        let mode = modes.and_then(|(param, modes)| modes.get(usize::try_from(param.number_in(global)).ok()?));
        mode.copied().unwrap_or(GroupWeight::Once)
    }

    /// CPU time that each domain of a pool is entitled to when all want all they can get, in pCPUs, by the roles of the parameters:
    ///
    /// * Weights: shares in proportion to them, none above what a domain's vCPUs, cap and quotas allow, and what those leave shared by
    ///   weight again (weighted max-min fairness). A weight counts once for a domain, or for each of its vCPUs; that of a control group
    ///   as [`Generation::group_weight`] has it. Where nothing balances pCPUs, weights decide in a pool of one pCPU only.
    /// * Reservations: what is reserved for its vCPUs, as long as the pCPUs have room for all reservations.
    /// * A timetable: its slots, as a part of the frame.
    ///
    /// `global` holds the pool's own parameters that are given. `None` where the roles do not decide: a scheduler without such
    /// parameters, pinned vCPUs, domains without a reservation.
    pub fn entitlements(&self, pcpus: u32, global: &Params, members: &[Member<'_>]) -> Vec<Option<f64>> {
        if self.param_of(Role::Timetable).is_some() {
            self.timetable(global, members)
        } else if let Some(reservation) = self.reservation() {
            reservation.promised(pcpus, members)
        } else {
            self.by_weight(pcpus, global, members).unwrap_or_else(|| vec![None; members.len()])
        }
    }

    fn by_weight(&self, pcpus: u32, global: &Params, members: &[Member<'_>]) -> Option<Vec<Option<f64>>> {
        let weighs =
            |role: Role| matches!(role, Role::Weight(_) | Role::InverseWeight(_) | Role::GroupWeight);
        let param = self.params.iter().find(|param| weighs(param.role))?;
        let special = |member: &Member<'_>| member.pinned || self.is_idle(member.params);
        let stay = matches!(param.role, Role::Weight(Per::VcpuOfPcpu) | Role::InverseWeight(Per::VcpuOfPcpu));
        if members.iter().any(special) || (stay && pcpus > 1) {
            return None;
        }
        let total = |weight: f64, per: Per, vcpus: u32| match per {
            Per::Domain => weight,
            Per::Vcpu | Per::VcpuOfPcpu => weight * f64::from(vcpus),
        };
        let group_weight = self.group_weight(global);
        let weight = |member: &Member<'_>| {
            let own = param.number_in(member.params) as f64;
            match param.role {
                Role::Weight(per) => total(own, per, member.vcpus),
                Role::InverseWeight(per) => total(1.0 / own, per, member.vcpus),
                // The domains' groups are all in the root group.
                _ => group_weight.total(own, member.vcpus, pcpus),
            }
        };
        let weights: Vec<f64> = members.iter().map(weight).collect();
        let limits: Vec<f64> = members.iter().map(|member| self.limit(member)).collect();
        let shares = fair_shares(f64::from(pcpus), &weights, &limits);
        Some(shares.into_iter().map(Some).collect())
    }
}
