//! Credit2's parameters, and the commands that set them on a real host.

use vcpulab_host::PCPUS_MAX;

use crate::param_spec::{ParamKind, ParamSpec};
pub use crate::params::{SMT_POWER_SAVINGS, WEIGHT};
use crate::params::{cap, global, ratelimit};
use crate::proposal::Refusal;
use crate::toolstack::{Set, Toolstack};

pub const CAP: ParamSpec =
    cap("Most CPU time the domain gets even if more is free; 0: no limit. At most 100 for each vCPU.");
pub const RATELIMIT: ParamSpec =
    ratelimit("Least time that a vCPU runs before another one preempts it; 0: none.");
pub const MIGRATE_RESIST: ParamSpec = global(
    "migrate_resist_us",
    "us",
    ParamKind::int(0, 1_000_000),
    500,
    "Credit by which a vCPU must be ahead to run on another pCPU than it did.",
);
const fn window_shift(default: i64, least: i64, doc: &'static str) -> ParamSpec {
    global("load_window_shift", "", ParamKind::int(least, 40), default, doc)
}
pub const WINDOW_4_4: ParamSpec = window_shift(
    18,
    4,
    "Logarithm of the load window in units of 1024 ns, and of the scale of load averages.",
);
pub const WINDOW_4_17: ParamSpec = window_shift(30, 11, "Logarithm of the load window in ns.");
pub const PRECISION: ParamSpec =
    global("load_precision_shift", "", ParamKind::int(4, 20), 18, "Logarithm of the scale of load averages.");
pub const UNDER: ParamSpec = global(
    "balance_under",
    "",
    ParamKind::int(-4, 20),
    0,
    "Logarithm of the difference in load that is tolerated between run queues below full load.",
);
pub const OVER: ParamSpec = global(
    "balance_over",
    "",
    ParamKind::int(-4, 20),
    -3,
    "Logarithm of the difference in load that is tolerated between run queues above full load.",
);
pub const CAP_PERIOD: ParamSpec = global(
    "cap_period_ms",
    "ms",
    ParamKind::int(1, 1000),
    10,
    "Period after which the budget of a capped domain is refilled.",
);
pub const ARRANGEMENTS: &[&str] = &["cpu", "core", "socket", "node", "all"];
pub const RUNQUEUE: ParamSpec =
    global("runqueue", "", ParamKind::Choice(ARRANGEMENTS), 2, "pCPUs that share a run queue.");
pub const RUNQUEUE_MAX: ParamSpec = global(
    "max_cpus_runqueue",
    "pCPUs",
    ParamKind::int(1, PCPUS_MAX as i64),
    16,
    "Most pCPUs in a run queue, but for the threads of one core, which stay together.",
);
pub const SOCKET: ParamSpec = global(
    "cpus_per_socket",
    "pCPUs",
    ParamKind::Int { min: 1, max: PCPUS_MAX as i64, also: &[0] },
    0,
    "Topology as the scheduler sees it; 0: the host's.",
);

pub const OF_4_4: &[ParamSpec] = &[WEIGHT, MIGRATE_RESIST, WINDOW_4_4, UNDER, OVER, SOCKET];
pub const OF_4_17: &[ParamSpec] = &[
    WEIGHT,
    CAP,
    RATELIMIT,
    MIGRATE_RESIST,
    WINDOW_4_17,
    PRECISION,
    UNDER,
    OVER,
    CAP_PERIOD,
    RUNQUEUE,
    RUNQUEUE_MAX,
    SMT_POWER_SAVINGS,
    SOCKET,
];

pub const XL_4_4: Toolstack = Toolstack {
    tool: "xl",
    sched: "credit2",
    domain: "sched-credit2 -d DOM",
    global: "",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (MIGRATE_RESIST.name, Set::Boot("sched_credit2_migrate_resist")),
        (WINDOW_4_4.name, Set::Boot("credit2_load_window_shift")),
        (UNDER.name, Set::Boot("credit2_balance_under")),
        (OVER.name, Set::Boot("credit2_balance_over")),
    ],
};
pub const XL_4_17: Toolstack = Toolstack {
    global: "sched-credit2 -s",
    set: &[
        (WEIGHT.name, Set::Option("-w")),
        (CAP.name, Set::Option("-c")),
        (RATELIMIT.name, Set::Option("-r")),
        (MIGRATE_RESIST.name, Set::Boot("sched_credit2_migrate_resist")),
        (WINDOW_4_17.name, Set::Boot("credit2_load_window_shift")),
        (PRECISION.name, Set::Boot("credit2_load_precision_shift")),
        (UNDER.name, Set::Boot("credit2_balance_under")),
        (OVER.name, Set::Boot("credit2_balance_over")),
        (CAP_PERIOD.name, Set::Boot("credit2_cap_period_ms")),
        (RUNQUEUE.name, Set::Boot("credit2_runqueue")),
        (RUNQUEUE_MAX.name, Set::Boot("sched_credit2_max_cpus_runqueue")),
        (SMT_POWER_SAVINGS.name, Set::Boot("sched_smt_power_savings")),
    ],
    ..XL_4_4
};

/// Checks that a domain with this number of units can use its cap.
pub(super) fn cap_fits(cap: i64, units: i64) -> Result<(), Refusal> {
    let most = 100 * units;
    match (0..=most).contains(&cap) {
        true => Ok(()),
        false => Err(Refusal::new(
            [CAP.name],
            format!("at most {most}, 100 for each of its {units} scheduling units"),
        )),
    }
}
