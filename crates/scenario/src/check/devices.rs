//! The common part of all devices: driver domains, owners, and front ends that lead to them.

use vcpulab_host::{DomId, Id, Table};
use vcpulab_sched::policies;
use vcpulab_spec::{DeviceSpec, DomainSpec, Drivers, POOL_0, Platform, Spec};

use crate::check::fields::Checker;
use crate::check::kvm;
use crate::file::raw::RawScenario;
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field};
use crate::text::value::limited;

/// The only domain on bare metal.
const DOM0: DomId = DomId(0);

pub(crate) fn bare_metal(checker: &mut Checker<'_, '_>, spec: &Spec, raw: &RawScenario, place: &Place) {
    let one = spec.domains.len() == 1 && spec.domains[DOM0].vcpus() == spec.host.pcpus;
    if !one {
        let pcpus = spec.host.pcpus;
        let problem = Problem::says(format!(
            "on bare metal there is one domain, with a vCPU for each of the {pcpus} pCPUs"
        ));
        checker.report.error(&place.member("domain"), problem);
    }
    let scheduler = raw.host.get().and_then(|host| host.scheduler.0.as_ref());
    if let Some(At { place, .. }) = scheduler
        && !spec.pools[POOL_0].policy.leaves_in_place
    {
        let problem =
            Problem::says("on bare metal nothing schedules vCPUs; their tasks share them in time slices");
        let in_place = policies().iter().find(|policy| policy.leaves_in_place);
        let hint = in_place
            .map(|policy| format!("say `scheduler = \"{}\"`, which leaves each where it is", policy.name));
        checker.report.error(place, problem.maybe_hint(hint));
    }
}

/// The driver domain that a field names.
fn driver(checker: &mut Checker<'_, '_>, field: &Field<String>, place: &Place, spec: &Spec) -> Option<DomId> {
    if field.is_none() {
        checker.report.error(&place.member("driver_domain"), Problem::says("required, but not given"));
    }
    let driver = checker.domain(field, &spec.domains)?;
    let At { place, .. } = field.0.as_ref()?;
    let domain = &spec.domains[driver];
    if !domain.has_back_ends() {
        let name = &domain.name;
        let problem = Problem::says(format!("domain `{name}` is not a driver domain")).found(name);
        checker.report.error(place, problem.hint(format!("set `driver_domain = true` in [domain.{name}]")));
    }
    Some(driver)
}

/// Refuses a driver domain where the drivers are not in domains.
fn refuse_driver(checker: &mut Checker<'_, '_>, field: &Field<String>) {
    if let Some(At { place, .. }) = &field.0 {
        checker.report.error(place, Problem::says("the drivers are not in a domain here"));
    }
}

/// A device with its owner, and the vCPU that takes its interrupts.
pub(crate) fn device(
    checker: &mut Checker<'_, '_>,
    name: &At<String>,
    place: &Place,
    driver_domain: &Field<String>,
    (vcpu, pcpu): (&Field<i64>, &Field<i64>),
    spec: &Spec,
) -> Option<DeviceSpec> {
    checker.word_of_commands(name);
    let device = |owner, vcpu, pcpu| DeviceSpec { name: Some(name.value.clone()), owner, vcpu, pcpu };
    let owner = match spec.host.platform {
        Platform::Kvm(_) => {
            // The domain that owns it is made once all VMs are known.
            let pcpu = kvm::interrupts(checker, driver_domain, vcpu, pcpu, spec.host.pcpus);
            return Some(device(None, 0, pcpu));
        }
        Platform::Xen(Drivers::Domains) => driver(checker, driver_domain, place, spec).map(Some),
        Platform::Xen(Drivers::Hypervisor) => {
            refuse_driver(checker, driver_domain);
            Some(None)
        }
        Platform::BareMetal => {
            refuse_driver(checker, driver_domain);
            Some(Some(DOM0))
        }
    };
    kvm::refuse_in_device(checker, pcpu);
    let owner = owner?;
    let vcpus = owner.and_then(|owner| spec.domains.get(owner)).map_or(1, DomainSpec::vcpus);
    let vcpu = if vcpu.is_none() { 0 } else { limited(vcpu, 0..=vcpus - 1, checker.report)? };
    Some(device(owner, vcpu, None))
}

/// The device that a front end leads to, of those of its driver domain: the one named, or the first.
pub(crate) fn device_of<'d, I: Id>(
    checker: &mut Checker<'_, '_>,
    field: &Field<String>,
    driver: Option<DomId>,
    what: &str,
    devices: impl Iterator<Item = (I, &'d DeviceSpec)> + Clone,
) -> Option<I> {
    let Some(At { value, place }) = &field.0 else {
        return devices
            .clone()
            .find(|(_, device)| driver.is_none() || device.owner == driver)
            .map(|(id, _)| id);
    };
    let found = devices.clone().find(|(_, device)| device.name.as_ref() == Some(value));
    match found {
        None => {
            let names: Vec<&str> = devices.filter_map(|(_, device)| device.name.as_deref()).collect();
            let hint = match names[..] {
                [] => "none has a name here; leave this out".to_owned(),
                _ => format!("known here: {}", names.join(", ")),
            };
            let problem = Problem::says(format!("there is no {what} `{value}`")).found(value);
            checker.report.error(place, problem.hint(hint));
        }
        Some((_, device)) if driver.is_some() && device.owner != driver => {
            let problem = Problem::says(format!("the {what} belongs to another domain")).found(value);
            checker.report.error(place, problem);
        }
        Some(_) => {}
    }
    found.map(|(id, _)| id)
}

/// The driver domain of a front end in domain `own`; `None` if that is wrong.
pub(crate) fn front_driver(
    checker: &mut Checker<'_, '_>,
    field: &Field<String>,
    place: &Place,
    own: DomId,
    spec: &Spec,
) -> Option<Option<DomId>> {
    let driver = match spec.host.platform {
        Platform::Kvm(_) => {
            kvm::refuse_driver_domain(checker, field);
            return Some(None);
        }
        Platform::Xen(Drivers::Hypervisor) | Platform::BareMetal => {
            refuse_driver(checker, field);
            return Some(None);
        }
        Platform::Xen(Drivers::Domains) => driver(checker, field, place, spec)?,
    };
    if driver == own {
        let problem =
            Problem::says("a domain cannot be its own driver domain").found(&spec.domains[own].name);
        let place = field.0.as_ref().map_or(place, |at| &at.place);
        checker.report.error(place, problem.hint("a driver domain owns the devices; leave this out"));
        return None;
    }
    Some(Some(driver))
}

/// The vCPU of a driver domain that a netback or blkback is on; `served` has the number of those before it.
pub(crate) fn driver_vcpu(
    checker: &mut Checker<'_, '_>,
    field: &Field<i64>,
    driver: Option<DomId>,
    served: &mut Table<DomId, usize>,
    spec: &Spec,
) -> Option<u32> {
    if let Platform::Kvm(_) = spec.host.platform {
        kvm::refuse_driver_vcpu(checker, field);
        return Some(0);
    }
    let usual = driver.map_or(0, |driver| {
        served[driver] += 1;
        spec.usual_vcpu(driver, served[driver] - 1)
    });
    let vcpus = driver.map_or(1, |driver| spec.domains[driver].vcpus());
    if field.is_none() { Some(usual) } else { limited(field, 0..=vcpus - 1, checker.report) }
}

/// The devices of a scenario that names none: one for each possible owner.
pub(crate) fn usual_devices<I>(spec: &Spec) -> Table<I, DeviceSpec> {
    let device = |owner| DeviceSpec { name: None, owner, vcpu: 0, pcpu: None };
    match spec.host.platform {
        Platform::Xen(Drivers::Domains) => {
            let drivers = spec.domains.enumerate().filter(|(_, domain)| domain.has_back_ends());
            drivers.map(|(id, _)| device(Some(id))).collect()
        }
        Platform::Xen(Drivers::Hypervisor) | Platform::Kvm(_) => vec![device(None)].into(),
        Platform::BareMetal => vec![device(Some(DOM0))].into(),
    }
}

/// A front end in the words of a scenario, for hints.
pub(crate) fn front_to(spec: &Spec) -> &'static str {
    match spec.host.platform {
        Platform::Xen(Drivers::Domains) => "{ driver_domain = \"dom0\" }",
        Platform::Xen(Drivers::Hypervisor) | Platform::BareMetal | Platform::Kvm(_) => "{}",
    }
}
