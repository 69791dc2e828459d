//! Parameters and units that several policies share.

use vcpulab_host::{ParamKind, ParamSpec, Scope, Span};

pub const US: Span = 1_000;
pub const MS: Span = 1_000_000;

/// A domain's share under Credit and Credit2.
pub const WEIGHT: ParamSpec = ParamSpec {
    name: "weight",
    scope: Scope::Domain,
    unit: "",
    kind: ParamKind::Int { min: 1, max: 65535, also: &[0] },
    default: 256,
    doc: "Share of CPU time under contention, relative to the other domains' (0 in an adjust: leave as it is).",
};
