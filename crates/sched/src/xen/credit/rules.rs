//! Credit's generations: the rules in which they differ, as constants.

use vcpulab_host::{AffinityRule, HostRules, Placement};

use super::params::{OF_3, OF_4_4, OF_4_17, OF_4_18, XL_4_4, XL_4_17, XL_4_18, XM};
use crate::param_spec::ParamSpec;
use crate::policy::Generation;
use crate::toolstack::Toolstack;

/// The rules of one generation. The text behind `false` says what holds where a field is `false`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The host around it.
    pub host: HostRules,
    /// There are global parameters, also at run time.
    pub tunable: bool,
    /// A migration delay out of range is refused, and counts as 0 at the start. `false`: it is accepted.
    pub checks_migration_delay: bool,
    /// A new timeslice changes the credit that a pass hands out. `false`: it changes only the credit that each vCPU may
    /// hold.
    pub timeslice_changes_total: bool,

    /// Credits that 1 ms of CPU time costs.
    pub credits_per_ms: u32,
    /// CPU time is measured. `false`: the vCPU that a tick finds running pays for a whole tick.
    pub measured: bool,
    /// The accounting pass has a timer of its own. `false`: every third tick of the first pCPU is one.
    pub accounting_timer: bool,
    /// Ticks that a pCPU has counted when it comes up.
    pub ticks_at_start: u32,
    /// A vCPU is active from its creation on. `false`: the first tick that finds it running makes it active.
    pub active_at_creation: bool,
    /// A domain's weight counts for each of its active vCPUs. `false`: it counts once.
    pub weight_per_vcpu: bool,
    /// A vCPU that becomes inactive keeps half of its credit. `false`: it loses it.
    pub inactive_keeps_half: bool,
    /// The balance of a pass counts the credit that a vCPU loses when it becomes inactive. `false`: it counts the rest.
    pub balance_counts_lost: bool,
    /// A capped vCPU in debt is paused. `false`: its priority falls below the idle vCPU's.
    pub cap_pauses: bool,

    /// A vCPU with credit is boosted when it wakes. `false`: there is no boost.
    pub boost: bool,
    /// A vCPU that an accounting pass unpauses is boosted. `false`: it is not.
    pub boost_unparked: bool,
    /// A vCPU whose pCPU was chosen for creation or migration since it last woke is boosted. `false`: it is not.
    pub boost_placed: bool,
    /// A vCPU that yields goes behind one of lower priority. `false`: it goes behind its equals.
    pub yields: bool,
    /// The mark of a yield lasts until the vCPU leaves a run queue, and one that has it is not stolen. `false`: it
    /// lasts until the vCPU has been queued.
    pub yield_lasts: bool,
    /// The rate limit does not hold for a vCPU that yields. `false`: it holds.
    pub yield_ends_ratelimit: bool,
    /// The rate limit keeps a vCPU for what is left of it. `false`: it keeps it for the whole limit once more.
    pub ratelimit_remainder: bool,

    /// The choice of a pCPU.
    pub pick: Pick,
    /// A vCPU that begins to wait makes all suitable idle pCPUs decide. `false`: it makes one decide.
    pub tickles_all: bool,
    /// A vCPU that is preempted for want of a suitable idle pCPU is to migrate. `false`: it stays.
    pub preempted_migrates: bool,
    /// A pCPU counts as busy once it was asked to decide. `false`: it does so once it has decided.
    pub tickled_is_busy: bool,
    /// A running vCPU migrates at the tick that finds a better pCPU for it. `false`: it stays.
    pub tick_migrates: bool,
    /// The first pCPU to steal from.
    pub steal_from: StealFrom,
    /// Balancing has a rate limit. `false`: each decision for want of credit balances.
    pub balance_ratelimit: bool,
    /// The migration delay counts from the last decision that found the vCPU running. `false`: it counts from its last
    /// switch.
    pub delay_from_decision: bool,
    /// An idle pCPU has ticks. `false`: it has none.
    pub idle_ticks: bool,
    /// An idle pCPU decides again after a timeslice. `false`: it waits until it is asked.
    pub idle_slice: bool,
}

/// The choice of a pCPU for a vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The lowest of its affinity.
    Lowest,
    /// The vCPU's present pCPU, or the next pCPU of its affinity.
    Own,
    /// An idle pCPU of the affinity, else the choice of `Own`.
    Idle,
    /// The choice of `Idle`, but a pCPU on a core with more idle threads, or in a socket with far more idle pCPUs,
    /// comes first.
    IdleCore,
}

/// The first pCPU to steal from; the others follow in cyclic order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StealFrom {
    /// The pCPU after the thief.
    Next,
    /// The lowest.
    Lowest,
    /// The pCPU after the last victim of its NUMA node; the thief's own node comes first, the other nodes follow.
    NextVictim,
}

const XEN_3_0_3: Rules = Rules {
    host: HostRules {
        placement: Placement::LeastPopulated,
        adjust_pauses: true,
        affinity: AffinityRule::IfExcluded,
        soft_affinity: false,
        ..HostRules::XEN_4_17
    },
    tunable: false,
    checks_migration_delay: false,
    timeslice_changes_total: false,
    credits_per_ms: 1,
    measured: false,
    accounting_timer: false,
    // The tick's handler also runs once when a pCPU comes up, and only counts.
    ticks_at_start: 1,
    active_at_creation: true,
    weight_per_vcpu: false,
    inactive_keeps_half: false,
    balance_counts_lost: true,
    cap_pauses: false,
    boost: false,
    boost_unparked: false,
    boost_placed: true,
    yields: false,
    yield_lasts: false,
    yield_ends_ratelimit: false,
    ratelimit_remainder: false,
    pick: Pick::Lowest,
    tickles_all: true,
    preempted_migrates: false,
    tickled_is_busy: false,
    tick_migrates: false,
    steal_from: StealFrom::Next,
    balance_ratelimit: false,
    delay_from_decision: false,
    idle_ticks: true,
    idle_slice: true,
};

const XEN_3_3_0: Rules = Rules {
    credits_per_ms: 10,
    ticks_at_start: 0,
    active_at_creation: false,
    balance_counts_lost: false,
    cap_pauses: true,
    boost: true,
    pick: Pick::Own,
    ..XEN_3_0_3
};

/// Enhanced builds on these, too.
pub const XEN_4_4_1: Rules = Rules {
    host: HostRules { placement: Placement::LeastPopulated, soft_affinity: false, ..HostRules::XEN_4_17 },
    tunable: true,
    measured: true,
    accounting_timer: true,
    weight_per_vcpu: true,
    inactive_keeps_half: true,
    boost_unparked: true,
    yields: true,
    pick: Pick::Idle,
    tickles_all: false,
    preempted_migrates: true,
    tick_migrates: true,
    steal_from: StealFrom::Lowest,
    idle_slice: false,
    ..XEN_3_3_0
};

const XEN_4_17: Rules = Rules {
    host: HostRules::XEN_4_17,
    checks_migration_delay: true,
    timeslice_changes_total: true,
    boost_unparked: false,
    boost_placed: false,
    yield_ends_ratelimit: true,
    ratelimit_remainder: true,
    pick: Pick::IdleCore,
    preempted_migrates: false,
    tickled_is_busy: true,
    steal_from: StealFrom::NextVictim,
    delay_from_decision: true,
    idle_ticks: false,
    ..XEN_4_4_1
};

/// And of all releases up to 4.22.
const XEN_4_18: Rules = Rules { yield_lasts: true, balance_ratelimit: true, ..XEN_4_17 };

/// The first point release of each series with the rules of 4.18.
const SINCE_4_18: &[(&str, u32)] =
    &[("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0), ("xen4.21", 0), ("xen4.22", 0)];

/// Oldest first.
pub const GENERATIONS: &[(Generation, Rules)] = &[
    (generation("xen3.0.3", &[], XEN_3_0_3, OF_3, XM), XEN_3_0_3),
    (generation("xen3.3.0", &[], XEN_3_3_0, OF_3, XM), XEN_3_3_0),
    (generation("xen4.4.1", &[], XEN_4_4_1, OF_4_4, XL_4_4), XEN_4_4_1),
    (generation("xen4.17", &[("xen4.17", 0)], XEN_4_17, OF_4_17, XL_4_17), XEN_4_17),
    (generation("xen4.22", SINCE_4_18, XEN_4_18, OF_4_18, XL_4_18), XEN_4_18),
];

const fn generation(
    name: &'static str,
    since: &'static [(&'static str, u32)],
    rules: Rules,
    params: &'static [ParamSpec],
    toolstack: Toolstack,
) -> Generation {
    // A pCPU whose balancing is held back idles beside work until it is asked to decide.
    let work_conserving = !rules.balance_ratelimit;
    Generation { name, since, params, work_conserving, hard_affinity: true, toolstack }
}
