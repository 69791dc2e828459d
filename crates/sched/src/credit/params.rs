//! Credit's parameters, and the commands that set them on a real host.

use vcpulab_host::{ParamKind, ParamSpec};

pub use crate::params::WEIGHT;
use crate::params::{cap, global, ratelimit};
use crate::toolstack::{Set, Toolstack};

pub const CAP: ParamSpec = cap(
    "Most CPU time the domain gets even if more is free; 0: no limit (65535 in an adjust: leave as it is).",
);
pub const TSLICE: ParamSpec =
    global("tslice_ms", "ms", ParamKind::int(1, 1000), 30, "Timeslice; also the accounting period.");
pub const RATELIMIT: ParamSpec = ratelimit(
    "Least time that a vCPU runs before another one preempts it; 0: none. Not longer than the timeslice.",
);
pub const MIGRATION_DELAY: ParamSpec = global(
    "migration_delay_us",
    "us",
    ParamKind::int(0, 100_000),
    0,
    "Time after its run in which a vCPU counts as cache-hot and is not stolen.",
);

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
