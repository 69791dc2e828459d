//! Credit's parameters, and the commands that set them on a real host.

use vcpulab_host::{ParamKind, ParamSpec, Scope};

pub use crate::params::WEIGHT;
use crate::toolstack::{Set, Toolstack};

pub const CAP: ParamSpec = ParamSpec {
    name: "cap",
    scope: Scope::Domain,
    unit: "% of one pCPU",
    kind: ParamKind::Int { min: 0, max: 65535, also: &[] },
    default: 0,
    doc: "Most CPU time the domain gets even if more is free; 0: no limit (65535 in an adjust: leave as it is).",
};
pub const TSLICE: ParamSpec = ParamSpec {
    name: "tslice_ms",
    scope: Scope::Global,
    unit: "ms",
    kind: ParamKind::Int { min: 1, max: 1000, also: &[] },
    default: 30,
    doc: "Timeslice; also the accounting period.",
};
pub const RATELIMIT: ParamSpec = ParamSpec {
    name: "ratelimit_us",
    scope: Scope::Global,
    unit: "us",
    kind: ParamKind::Int { min: 100, max: 500_000, also: &[0] },
    default: 1000,
    doc: "Least time that a vCPU runs before another one preempts it; 0: none. Not longer than the timeslice.",
};
pub const MIGRATION_DELAY: ParamSpec = ParamSpec {
    name: "migration_delay_us",
    scope: Scope::Global,
    unit: "us",
    kind: ParamKind::Int { min: 0, max: 100_000, also: &[] },
    default: 0,
    doc: "How long after it ran a vCPU is taken to be cache-hot, and not stolen.",
};

pub const OF_DOMAINS: &[ParamSpec] = &[WEIGHT, CAP];
pub const ALL: &[ParamSpec] = &[WEIGHT, CAP, TSLICE, RATELIMIT, MIGRATION_DELAY];

pub const XM: Toolstack = Toolstack {
    tool: "xm",
    sched: "credit",
    domain: "sched-credit -d DOM",
    global: "",
    set: &[(WEIGHT.name, Set::Option("-w")), (CAP.name, Set::Option("-c"))],
};
pub const XL_4_4: Toolstack = Toolstack {
    tool: "xl",
    global: "sched-credit -s",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (TSLICE.name, Set::Option("-t")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATION_DELAY.name, Set::Boot("vcpu_migration_delay")),
    ],
    ..XM
};
pub const XL_4_17: Toolstack = Toolstack {
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (TSLICE.name, Set::Option("-t")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATION_DELAY.name, Set::Option("-m")),
    ],
    ..XL_4_4
};
