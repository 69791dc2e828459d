//! SEDF's parameters, and the commands that set them on a real host.

use vcpulab_host::{Scope, Span};

use crate::param_spec::{ParamKind, ParamSpec};
use crate::role::{ReservationPart, ReservedOn, Role};
use crate::toolstack::{Set, Toolstack};

const PERIOD_MIN: i64 = 10_000;
const PERIOD_MAX: i64 = 10_000_000_000;
const SLICE_MIN: i64 = 5_000;

/// Unit of periods and slices.
const UNIT: Span = Span::from_ns(1);

const fn reserved(part: ReservationPart, param: ParamSpec) -> ParamSpec {
    ParamSpec { role: Role::Reserved(part, ReservedOn::OwnPcpu), ..param }
}

const fn param(name: &'static str, unit: &'static str, kind: ParamKind, doc: &'static str) -> ParamSpec {
    ParamSpec { name, scope: Scope::Domain, role: Role::Plain, unit, kind, default: 0, doc }
}

pub const PERIOD: ParamSpec = param(
    "period",
    "ns",
    ParamKind::Int { min: PERIOD_MIN, max: PERIOD_MAX, also: &[0] },
    "Length of a period, also the relative deadline; 0: extra time or a reservation by weight.",
);
pub const SLICE: ParamSpec = param(
    "slice",
    "ns",
    ParamKind::Int { min: SLICE_MIN, max: PERIOD_MAX, also: &[0] },
    "Guaranteed CPU time of each vCPU in each period; not more than the period.",
);
const LATENCY: ParamSpec = param(
    "latency",
    "ns",
    ParamKind::Int { min: 0, max: i64::MAX, also: &[] },
    "Latency hint; it has no effect.",
);
pub const EXTRATIME: ParamSpec = ParamSpec {
    default: 1,
    ..param(
        "extratime",
        "",
        ParamKind::Flag,
        "1: takes part in extra time. Left out beside other parameters of SEDF it counts as 0.",
    )
};
pub const WEIGHT: ParamSpec = param(
    "weight",
    "",
    ParamKind::Int { min: 0, max: i16::MAX as i64, also: &[] },
    "With extratime and no period: share of the extra time; else share of what reservations leave of 95 ms per 100 ms on each pCPU.",
);

pub const ALL: &[ParamSpec] = &[
    reserved(ReservationPart::Period { unit: UNIT }, PERIOD),
    reserved(ReservationPart::Time { unit: UNIT }, SLICE),
    LATENCY,
    reserved(ReservationPart::Extra { by_default: false }, EXTRATIME),
    reserved(ReservationPart::Weight, WEIGHT),
];

pub const XM: Toolstack = Toolstack {
    tool: "xm",
    sched: "sedf",
    domain: "sched-sedf DOM",
    global: "",
    set: &[
        ("period", Set::OptionPer("-p", 1_000_000)),
        ("slice", Set::OptionPer("-s", 1_000_000)),
        ("extratime", Set::Option("-e")),
        ("weight", Set::Option("-w")),
    ],
};
pub const XL: Toolstack = Toolstack { tool: "xl", domain: "sched-sedf -d DOM", ..XM };
