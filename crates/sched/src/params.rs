//! Parameters and units that several policies share.

use vcpulab_host::{Params, Scope, Span};

use crate::param_spec::{ParamKind, ParamSpec};
use crate::proposal::{Proposal, Refusal};
use crate::role::{Per, Role};

pub const US: Span = Span::from_us(1);
pub const MS: Span = Span::from_ms(1);

/// A domain's share under Credit and Credit2, which counts for each of its vCPUs.
pub const WEIGHT: ParamSpec = weight(Per::Vcpu);

/// A domain's share under Credit and Credit2.
pub const fn weight(per: Per) -> ParamSpec {
    ParamSpec {
        name: "weight",
        scope: Scope::Domain,
        role: Role::Weight(per),
        unit: "",
        kind: ParamKind::Int { min: 1, max: 65535, also: &[0] },
        default: 256,
        doc: "Share of CPU time under contention, relative to the other domains' (0 in an adjust: leave as it is).",
    }
}

/// A domain's cap under Credit and Credit2.
pub const fn cap(doc: &'static str) -> ParamSpec {
    ParamSpec {
        name: "cap",
        scope: Scope::Domain,
        role: Role::CapPercent,
        unit: "% of one pCPU",
        kind: ParamKind::int(0, 65535),
        default: 0,
        doc,
    }
}

/// The ratelimit of Credit and Credit2.
pub const fn ratelimit(doc: &'static str) -> ParamSpec {
    let kind = ParamKind::Int { min: 100, max: 500_000, also: &[0] };
    global("ratelimit_us", "us", kind, 1000, doc)
}

/// The hypervisor's choice between idle cores and idle threads, which Credit and Credit2 look at.
pub const SMT_POWER_SAVINGS: ParamSpec = global(
    "smt_power_savings",
    "",
    ParamKind::Flag,
    0,
    "1: vCPUs are packed on the threads of few cores; 0: they get cores of their own as long as there are any.",
);

/// A parameter of a whole scheduler.
pub const fn global(
    name: &'static str,
    unit: &'static str,
    kind: ParamKind,
    default: i64,
    doc: &'static str,
) -> ParamSpec {
    ParamSpec { name, scope: Scope::Global, role: Role::Plain, unit, kind, default, doc }
}

/// Checks the weight of a new domain: 0 means the present weight, which a new domain does not have.
pub fn weight_counts(proposal: &Proposal<'_>) -> Result<(), Refusal> {
    match proposal.given.int(WEIGHT.name) {
        Some(0) if proposal.is_new() => {
            Err(Refusal::new([WEIGHT.name], "an integer from 1 to 65535 for a new domain"))
        }
        _ => Ok(()),
    }
}

/// Checks that only these parameters are given while the host runs.
pub fn only(given: &Params, tunable: &[ParamSpec]) -> Result<(), Refusal> {
    let fixed = || given.iter().map(|(name, _)| name).filter(|&name| tunable.iter().all(|t| t.name != name));
    if fixed().next().is_none() {
        return Ok(());
    }
    let names: Vec<&str> = tunable.iter().map(|param| param.name).collect();
    let names = if names.is_empty() { "no parameter".to_owned() } else { names.join(", ") };
    Err(Refusal::new(fixed(), format!("{names} while the host runs")))
}
