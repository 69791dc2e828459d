//! The meaning of parameters for the CPU time of domains: weights, limits, reservations and timetables, and what they promise.

mod member;
mod reserved;
mod shares;

use vcpulab_host::Params;

use crate::param_spec::ParamSpec;
use crate::policy::Generation;
use crate::role::{Per, Role};

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

    /// CPU time that each domain of a pool is entitled to when all want all they can get, in pCPUs, by the roles of the parameters:
    ///
    /// * Weights: shares in proportion to them, none above what a domain's vCPUs, cap and quotas allow, and what those leave shared by
    ///   weight again (weighted max-min fairness). A weight counts once for a domain, or for each of its vCPUs. Where nothing balances
    ///   pCPUs, weights decide in a pool of one pCPU only.
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
            self.by_weight(pcpus, members).unwrap_or_else(|| vec![None; members.len()])
        }
    }

    fn by_weight(&self, pcpus: u32, members: &[Member<'_>]) -> Option<Vec<Option<f64>>> {
        let weights = self.params.iter().find_map(|param| match param.role {
            Role::Weight(per) => Some((param, per, false)),
            Role::InverseWeight(per) => Some((param, per, true)),
            // Beside each other in the root group.
            Role::GroupWeight => Some((param, Per::Domain, false)),
            _ => None,
        });
        let (param, per, inverse) = weights?;
        let special = |member: &Member<'_>| member.pinned || self.is_idle(member.params);
        if members.iter().any(special) || (per == Per::VcpuOfPcpu && pcpus > 1) {
            return None;
        }
        let weight = |member: &Member<'_>| {
            let own = param.number_in(member.params) as f64;
            let own = if inverse { 1.0 / own } else { own };
            match per {
                Per::Domain => own,
                Per::Vcpu | Per::VcpuOfPcpu => own * f64::from(member.vcpus),
            }
        };
        let weights: Vec<f64> = members.iter().map(weight).collect();
        let limits: Vec<f64> = members.iter().map(|member| self.limit(member)).collect();
        let shares = fair_shares(f64::from(pcpus), &weights, &limits);
        Some(shares.into_iter().map(Some).collect())
    }
}
