//! Credit2's generations: the rules in which they differ, as constants.

use vcpulab_host::{AffinityRule, HostRules, Placement, Slice, Span};

use super::params::{OF_4_4, OF_4_17, XL_4_4, XL_4_17};
use crate::param_spec::ParamSpec;
use crate::policy::Generation;
use crate::toolstack::Toolstack;

/// The rules of one generation. The text behind `false` says what holds where a field is `false`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The host around it.
    pub host: HostRules,
    /// Hard affinity counts. `false`: it is ignored.
    pub hard_affinity: bool,
    /// Domains may have caps. `false`: they may not.
    pub caps: bool,
    /// There is a rate limit. `false`: there is none.
    pub ratelimit: bool,
    /// Run queues are arranged and limited in size by parameters. `false`: there is one for each socket.
    pub arranges: bool,
    /// A run queue of all pCPUs takes single threads up to its limit. `false`: it takes them while whole cores have room.
    pub all_takes_threads: bool,
    /// Wholly idle cores come before idle threads. `false`: all pCPUs are alike.
    pub looks_at_cores: bool,

    /// The floor of credit; `None`: no floor, credit wraps.
    pub credit_min: Option<i32>,
    /// The credit of idle vCPUs.
    pub idle_credit: i32,
    /// A reset comes once neither the chosen vCPU nor the first that waits has credit. `false`: the chosen one alone
    /// decides.
    pub reset_looks_at_queue: bool,
    /// A reset charges running vCPUs first. `false`: time since their last charge is forgotten.
    pub reset_charges: bool,

    /// The longest slice.
    pub slice_max: Span,
    /// The slice of idle vCPUs.
    pub idle_slice: Slice,
    /// A slice ends where the vCPU meets the credit of the one it preempts, too. `false`: it ends where it meets that
    /// of one in the run queue.
    pub slice_counts_preempted: bool,
    /// A vCPU that yields lets the next run, whatever their credits. `false`: it does not.
    pub yields: bool,

    /// The parameter of the load window.
    pub window: Window,
    /// Load averages are signed and those of run queues stay above 0. `false`: they are unsigned and wrap.
    pub signed_loads: bool,
    /// The load average of a new vCPU starts at its creation. `false`: it starts with the host.
    pub load_from_creation: bool,
    /// A vCPU that is kept brings its load up to date. `false`: it does not.
    pub kept_updates_load: bool,
    /// Moving a vCPU that waits leaves its own load alone. `false`: it counts as sleep and wake-up.
    pub move_keeps_load: bool,

    /// A vCPU that begins to wait goes to an idle pCPU before it preempts. `false`: it first looks at its own pCPU.
    pub idle_first: bool,
    /// The choice among the vCPUs that wait.
    pub scan: Scan,
    /// A running vCPU that has to stop or move tickles its pCPU. `false`: it only asks it to decide when it has to stop.
    pub leaving_tickles: bool,
    /// A vCPU gets the pCPUs of a run queue in turn. `false`: it gets the next after its own, or when moved the first.
    pub rotates: bool,
    /// A migration within the run queue changes the pCPU. `false`: it changes nothing.
    pub migrates_within: bool,
}

/// The parameter of the load window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// In units of 1024 ns; it is also the scale of load averages.
    Coarse,
    /// In ns; the scale is a parameter of its own.
    Fine,
}

/// The choice among the vCPUs that wait, from the one with most credit on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The first of this pCPU, or of another one and ahead by the migration resistance, if it has more credit.
    Near,
    /// The first with more credit that is so, may run here, has no other pCPU tickled for it, and has budget.
    Eligible,
}

const XEN_4_4_1: Rules = Rules {
    host: HostRules {
        placement: Placement::LeastPopulated,
        affinity: AffinityRule::AlwaysPickFirst,
        soft_affinity: false,
        ..HostRules::XEN_4_17
    },
    hard_affinity: false,
    caps: false,
    ratelimit: false,
    arranges: false,
    all_takes_threads: false,
    looks_at_cores: false,
    credit_min: None,
    idle_credit: -(1 << 30),
    reset_looks_at_queue: false,
    reset_charges: false,
    slice_max: Span::from_ms(2),
    idle_slice: Slice::For(Span::from_ms(2)),
    slice_counts_preempted: false,
    yields: false,
    window: Window::Coarse,
    signed_loads: false,
    load_from_creation: false,
    kept_updates_load: false,
    move_keeps_load: false,
    idle_first: false,
    scan: Scan::Near,
    leaving_tickles: false,
    rotates: false,
    migrates_within: false,
};

const CREDIT_MIN: i32 = -10_000_000;

const XEN_4_17_0: Rules = Rules {
    host: HostRules::XEN_4_17,
    hard_affinity: true,
    caps: true,
    ratelimit: true,
    arranges: true,
    all_takes_threads: false,
    looks_at_cores: true,
    credit_min: Some(CREDIT_MIN),
    idle_credit: CREDIT_MIN - 1,
    reset_looks_at_queue: true,
    reset_charges: true,
    slice_max: Span::from_ms(10),
    idle_slice: Slice::Unlimited,
    slice_counts_preempted: false,
    yields: true,
    window: Window::Fine,
    signed_loads: true,
    load_from_creation: true,
    kept_updates_load: true,
    move_keeps_load: true,
    idle_first: true,
    scan: Scan::Eligible,
    leaving_tickles: true,
    rotates: true,
    migrates_within: true,
};

const XEN_4_17: Rules = Rules { all_takes_threads: true, ..XEN_4_17_0 };

const XEN_4_22: Rules = Rules { slice_counts_preempted: true, ..XEN_4_17 };

/// The run queue of all pCPUs is known to be as in 4.17.0 there and otherwise from 4.17.7 at the latest.
const OF_XEN_4_17: &[(&str, u32)] = &[("xen4.17", 1), ("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0)];
const OF_XEN_4_22: &[(&str, u32)] = &[("xen4.19", 3), ("xen4.20", 2), ("xen4.21", 0), ("xen4.22", 0)];

/// Oldest first.
pub const GENERATIONS: &[(Generation, Rules)] = &[
    (generation("xen4.4.1", &[], OF_4_4, XL_4_4, XEN_4_4_1), XEN_4_4_1),
    (generation("xen4.17.0", &[("xen4.17", 0)], OF_4_17, XL_4_17, XEN_4_17_0), XEN_4_17_0),
    (generation("xen4.17", OF_XEN_4_17, OF_4_17, XL_4_17, XEN_4_17), XEN_4_17),
    (generation("xen4.22", OF_XEN_4_22, OF_4_17, XL_4_17, XEN_4_22), XEN_4_22),
];

const fn generation(
    name: &'static str,
    since: &'static [(&'static str, u32)],
    params: &'static [ParamSpec],
    toolstack: Toolstack,
    rules: Rules,
) -> Generation {
    Generation { name, since, params, work_conserving: false, hard_affinity: rules.hard_affinity, toolstack }
}
