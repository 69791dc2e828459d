//! SEDF's generations: the rules in which they differ, as constants.

use vcpulab_host::{AffinityRule, HostRules, PauseRule, Placement, Span};

use super::params::{ALL, XL, XM};
use crate::policy::Generation;
use crate::toolstack::Toolstack;

/// The rules of one generation. The text behind `false` says what holds where a field is `false`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The host around it.
    pub host: HostRules,
    /// The penalty queue repays all time lost by blocking. `false`: it gives one quantum, whatever was lost.
    pub repays_all: bool,
    /// The reservation of domain 0: period and slice.
    pub dom0_reservation: Option<(Span, Span)>,
    /// The extraweight of domain 0.
    pub dom0_extraweight: i16,
    /// A vCPU that migrates goes to the pCPU that its number gives. `false`: it goes to the lowest of its affinity.
    pub picks_by_number: bool,
    /// Slices are 64 bits wide. `false`: they wrap above 2.1 s.
    pub wide_slices: bool,
}

const XEN_3_0_2: Rules = Rules {
    host: HostRules {
        reschedule_at_start: false,
        placement: Placement::RoundRobin,
        adjust_pauses: true,
        pause: PauseRule::Flag,
        affinity: AffinityRule::IfExcluded,
        soft_affinity: false,
    },
    repays_all: true,
    dom0_reservation: Some((Span::from_ms(20), Span::from_ms(15))),
    dom0_extraweight: 0,
    picks_by_number: false,
    wide_slices: false,
};
/// Also of release 3.3.0.
const XEN_3_0_3: Rules = Rules { repays_all: false, dom0_extraweight: 1, ..XEN_3_0_2 };
const XEN_4_4_1: Rules = Rules {
    host: HostRules { adjust_pauses: false, affinity: AffinityRule::Always, ..XEN_3_0_3.host },
    dom0_reservation: None,
    picks_by_number: true,
    wide_slices: true,
    ..XEN_3_0_3
};

/// Oldest first.
pub const GENERATIONS: &[(Generation, Rules)] = &[
    (generation("xen3.0.2", XM), XEN_3_0_2),
    (generation("xen3.0.3", XM), XEN_3_0_3),
    (generation("xen3.3.0", XM), XEN_3_0_3),
    (generation("xen4.4.1", XL), XEN_4_4_1),
];

const fn generation(name: &'static str, toolstack: Toolstack) -> Generation {
    Generation { name, since: &[], params: ALL, work_conserving: false, hard_affinity: true, toolstack }
}
