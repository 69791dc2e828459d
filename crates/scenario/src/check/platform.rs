//! The platform that domains run on.

use vcpulab_spec::{Drivers, Platform};

use crate::check::fields::Checker;
use crate::check::kvm;
use crate::file::raw::{RawHost, RawScenario};
use crate::file::words::{DRIVERS, HYPERVISORS};
use crate::text::problem::Problem;
use crate::text::read::At;

/// The platform. Fields of a host that the platform does not have are reported.
pub(crate) fn platform(
    checker: &mut Checker<'_, '_>,
    scenario: &RawScenario,
    raw: &RawHost,
    pcpus: u32,
) -> Platform {
    let is_kvm = checker.word(&raw.hypervisor, &HYPERVISORS);
    if is_kvm {
        return Platform::Kvm(kvm::host(checker, scenario, raw, pcpus));
    }
    kvm::refuse_in_host(checker, scenario, raw);
    let drivers = checker.choice(&raw.drivers, &DRIVERS, |(name, _)| name);
    match (raw.bare_metal.get(), &raw.drivers.0) {
        (Some(true), Some(At { place, .. })) => {
            checker.report.error(place, Problem::says("on bare metal there is neither"));
            Platform::BareMetal
        }
        (Some(true), None) => Platform::BareMetal,
        _ => Platform::Xen(drivers.map_or(Drivers::Domains, |(_, drivers)| *drivers)),
    }
}
