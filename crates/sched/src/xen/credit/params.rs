//! Credit's parameters, and the commands that set them on a real host.

use crate::param_spec::{ParamKind, ParamSpec};
use crate::role::Per;

pub use crate::params::{SMT_POWER_SAVINGS, WEIGHT};
use crate::params::{cap, global, ratelimit, weight};
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

pub const TICKLE_ONE_IDLE: ParamSpec = global(
    "tickle_one_idle",
    "",
    ParamKind::Flag,
    1,
    "Whether a vCPU that begins to wait makes one suitable idle pCPU decide, or all of them.",
);
pub const BALANCE_RATELIMIT: ParamSpec = global(
    "load_balance_ratelimit_us",
    "us",
    ParamKind::int(0, 1_000_000),
    1000,
    "Time after a pCPU has looked for work elsewhere in which it does not look again.",
);

/// Parameters of all releases from `xen4.18` on; earlier releases have the first ones of this list.
const ALL: &[ParamSpec] =
    &[WEIGHT, CAP, TSLICE, RATELIMIT, MIGRATION_DELAY, SMT_POWER_SAVINGS, TICKLE_ONE_IDLE, BALANCE_RATELIMIT];
/// Parameters of the releases in which a domain's weight counts once, whatever the number of its vCPUs.
pub const OF_3: &[ParamSpec] = &[weight(Per::Domain), CAP];
pub const OF_4_4: &[ParamSpec] = ALL.split_at(5).0;
pub const OF_4_17: &[ParamSpec] = ALL.split_at(7).0;
pub const OF_4_18: &[ParamSpec] = ALL;

/// The parameters of the whole scheduler that change while the host runs. The hypervisor's command line sets the others.
pub const TUNABLE: &[ParamSpec] = &[TSLICE, RATELIMIT, MIGRATION_DELAY];

pub const XM: Toolstack = Toolstack {
    tool: "xm",
    sched: "credit",
    domain: "sched-credit -d DOM",
    global: "",
    set: SET.split_at(2).0,
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
/// Commands that set the parameters in releases from `xen4.17` on; releases before `xen4.18` lack the last one.
const SET: &[(&str, Set)] = &[
    (WEIGHT.name, Set::Option("-w")),
    (CAP.name, Set::Option("-c")),
    (TSLICE.name, Set::Option("-t")),
    (RATELIMIT.name, Set::Option("-r")),
    (MIGRATION_DELAY.name, Set::Option("-m")),
    (SMT_POWER_SAVINGS.name, Set::Boot("sched_smt_power_savings")),
    (TICKLE_ONE_IDLE.name, Set::Boot("tickle_one_idle_cpu")),
    (BALANCE_RATELIMIT.name, Set::Boot("load-balance-ratelimit")),
];
pub const XL_4_17: Toolstack = Toolstack { set: SET.split_at(7).0, ..XL_4_4 };
pub const XL_4_18: Toolstack = Toolstack { set: SET, ..XL_4_17 };
