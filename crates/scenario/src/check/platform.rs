//! The platform that domains run on.

use vcpulab_spec::Platform;

use crate::check::fields::Checker;
use crate::check::kvm;
use crate::file::raw::{RawHost, RawScenario};
use crate::file::words::Hypervisor;
use crate::text::problem::Problem;
use crate::text::read::At;
use crate::text::value::Scalar;

/// The hypervisor, Xen by default; `None`: its name is unknown, which is reported.
pub(crate) fn hypervisor(checker: &mut Checker<'_, '_>, raw: &RawHost) -> Option<Hypervisor> {
    match &raw.hypervisor.0 {
        Some(At { value, place }) => Hypervisor::checked(value, place, checker.report),
        None => Some(raw.hypervisor(checker.report)),
    }
}

/// The platform. Fields of a host that the platform does not have are reported.
pub(crate) fn platform(
    checker: &mut Checker<'_, '_>,
    scenario: &RawScenario,
    raw: &RawHost,
    hypervisor: Hypervisor,
    pcpus: u32,
) -> Platform {
    if hypervisor == Hypervisor::Kvm {
        return Platform::Kvm(kvm::host(checker, scenario, raw, pcpus));
    }
    kvm::refuse_in_host(checker, scenario, raw);
    let drivers = raw.drivers(checker.report);
    match (raw.bare_metal(checker.report), &raw.drivers.0) {
        (true, Some(At { place, .. })) => {
            checker
                .report
                .error(place, Problem::says("not allowed on bare metal: the one domain has the drivers"));
            Platform::BareMetal
        }
        (true, None) => Platform::BareMetal,
        _ => Platform::Xen(drivers),
    }
}
