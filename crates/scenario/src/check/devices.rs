//! The common part of all devices: driver domains, owners, and front ends that lead to them.

use vcpulab_host::{DomId, Id, Table};
use vcpulab_sched::policies;
use vcpulab_spec::{DeviceSpec, DomainSpec, Drivers, POOL_0, Spec};

use crate::check::fields::Checker;
use crate::check::kvm;
use crate::file::raw::{RawHost, RawScenario};
use crate::file::words::DRIVERS;
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field};

/// The only domain on bare metal.
const DOM0: DomId = DomId(0);

pub(crate) fn drivers(checker: &mut Checker<'_, '_>, raw: &RawHost) -> Drivers {
    let drivers = checker.choice(&raw.drivers, &DRIVERS, |(name, _)| name).map(|(_, drivers)| *drivers);
    match (raw.bare_metal.get(), &raw.drivers.0) {
        (Some(true), Some(At { place, .. })) => {
            checker.report.error(place, Problem::says("on bare metal there is neither"));
            Drivers::BareMetal
        }
        (Some(true), None) => Drivers::BareMetal,
        _ => drivers.unwrap_or(Drivers::Domains),
    }
}

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

/// The driver domain that a field names, as far as the drivers are in domains.
fn driver(checker: &mut Checker<'_, '_>, field: &Field<String>, place: &Place, spec: &Spec) -> Option<DomId> {
    if spec.host.drivers != Drivers::Domains {
        // A KVM host says it in its own words.
        if let (Some(At { place, .. }), None) = (&field.0, &spec.host.kvm) {
            checker.report.error(place, Problem::says("the drivers are not in a domain here"));
        }
        return None;
    }
    if field.is_none() {
        checker.report.error(&place.member("driver_domain"), Problem::says("required, but not given"));
    }
    let driver = checker.domain(field, &spec.domains)?;
    let At { place, .. } = field.0.as_ref()?;
    let DomainSpec { name, driver_domain, .. } = &spec.domains[driver];
    if !driver_domain {
        let problem = Problem::says(format!("domain `{name}` is not a driver domain")).found(name);
        checker.report.error(place, problem.hint(format!("set `driver_domain = true` in [domain.{name}]")));
    }
    Some(driver)
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
    let pcpu = kvm::interrupts(checker, vcpu, pcpu, &spec.host);
    if spec.host.kvm.is_some() {
        kvm::no_driver_domain(checker, driver_domain);
    }
    let driver = driver(checker, driver_domain, place, spec);
    let owner = match spec.host.drivers {
        Drivers::Domains => Some(driver?),
        // That of a KVM host is known once all VMs are.
        Drivers::Hypervisor | Drivers::Kvm => None,
        Drivers::BareMetal => Some(DOM0),
    };
    let vcpus = owner.and_then(|owner| spec.domains.get(owner)).map_or(1, DomainSpec::vcpus);
    let vcpu = match spec.host.drivers {
        Drivers::Kvm => 0,
        _ => checker.int(vcpu, 0, 0..=i64::from(vcpus) - 1)?,
    };
    Some(DeviceSpec { name: Some(name.value.clone()), owner, vcpu: vcpu as u32, pcpu })
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
    let driver = driver(checker, field, place, spec);
    if driver == Some(own) {
        let problem =
            Problem::says("a domain cannot be its own driver domain").found(&spec.domains[own].name);
        let place = field.0.as_ref().map_or(place, |at| &at.place);
        checker.report.error(place, problem.hint("a driver domain owns the devices; leave this out"));
        return None;
    }
    (spec.host.drivers != Drivers::Domains || driver.is_some()).then_some(driver)
}

/// The vCPU of a driver domain that its next netback or blkback is on by default; `served` has the number of those before it.
pub(crate) fn usual_vcpu(spec: &Spec, driver: DomId, served: &mut Table<DomId, usize>) -> u32 {
    let before = served[driver];
    served[driver] += 1;
    spec.usual_vcpu(driver, before)
}

/// The devices of a scenario that names none: one for each possible owner.
pub(crate) fn usual_devices<I>(spec: &Spec) -> Table<I, DeviceSpec> {
    let device = |owner| DeviceSpec { name: None, owner, vcpu: 0, pcpu: None };
    match spec.host.drivers {
        Drivers::Domains => {
            let drivers = spec.domains.enumerate().filter(|(_, domain)| domain.driver_domain);
            drivers.map(|(id, _)| device(Some(id))).collect()
        }
        Drivers::Hypervisor | Drivers::Kvm => vec![device(None)].into(),
        Drivers::BareMetal => vec![device(Some(DOM0))].into(),
    }
}

/// A front end in the words of a scenario, for hints.
pub(crate) fn front_to(spec: &Spec) -> &'static str {
    match spec.host.drivers {
        Drivers::Domains => "{ driver_domain = \"dom0\" }",
        Drivers::Hypervisor | Drivers::BareMetal | Drivers::Kvm => "{}",
    }
}
