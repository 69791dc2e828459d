//! Parameters and units that several policies share.

use vcpulab_host::{ParamKind, ParamSpec, Scope, Span};

pub const US: Span = Span::from_us(1);
pub const MS: Span = Span::from_ms(1);

/// A domain's share under Credit and Credit2.
pub const WEIGHT: ParamSpec = ParamSpec {
    name: "weight",
    scope: Scope::Domain,
    unit: "",
    kind: ParamKind::Int { min: 1, max: 65535, also: &[0] },
    default: 256,
    doc: "Share of CPU time under contention, relative to the other domains' (0 in an adjust: leave as it is).",
};

/// A domain's cap under Credit and Credit2.
pub const fn cap(doc: &'static str) -> ParamSpec {
    ParamSpec {
        name: "cap",
        scope: Scope::Domain,
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
    ParamSpec { name, scope: Scope::Global, unit, kind, default, doc }
}
