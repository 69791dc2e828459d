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
