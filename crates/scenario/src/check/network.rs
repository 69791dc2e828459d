//! NICs, and the domains' interfaces to them.

use vcpulab_host::{DomId, Table};
use vcpulab_spec::limits::DEVICES_MAX;
use vcpulab_spec::{Drivers, NetfrontSpec, Platform, Spec};

use crate::check::devices::{bare_metal, device, device_of, driver_vcpu, front_driver, usual_devices};
use crate::check::fields::Checker;
use crate::file::raw::{NamedDomain, RawNetfront, RawScenario};
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field};

/// The NICs, and the domains' interfaces to them.
pub(crate) fn check(
    checker: &mut Checker<'_, '_>,
    spec: &mut Spec,
    raw: &RawScenario,
    raw_domains: &[&NamedDomain],
    place: &Place,
) {
    if spec.host.platform == Platform::BareMetal {
        bare_metal(checker, spec, raw, place);
    }
    let given = raw.nic.get().map_or(&[][..], |named| &named.0);
    checker.count(given.len(), 0, DEVICES_MAX, "NICs", &place.member("nic"));
    for (name, At { value, place }) in given.iter().take(DEVICES_MAX) {
        let nic = device(checker, name, place, &value.driver_domain, (&value.vcpu, &value.pcpu), spec);
        if let Some(nic) = nic {
            spec.nics.push(nic);
        }
    }
    if given.is_empty() {
        spec.nics = usual_devices(spec);
        if spec.host.platform == Platform::Xen(Drivers::Domains) {
            // A stub domain has an interface, to another domain, instead.
            let is_stub = |owner: DomId| {
                let (name, raw) = raw_domains[owner.index()];
                let driver = raw.value.nic.get().and_then(|nic| nic.driver_domain.get());
                driver.is_some_and(|driver| *driver != name.value)
            };
            let nics = std::mem::take(&mut spec.nics).into_iter();
            spec.nics = nics.filter(|nic| !nic.owner.is_some_and(is_stub)).collect();
        }
    }
    let mut netbacks = Table::filled(spec.domains.len(), 0);
    for (domain, (_, raw)) in spec.domains.ids().zip(raw_domains) {
        if let Some(At { value, place }) = &raw.value.nic.0 {
            let netfront = netfront(checker, value, place, domain, spec, raw_domains, &mut netbacks);
            spec.domains[domain].nic = netfront;
        }
    }
}

/// The owner of the NIC by which packets of a driver domain leave: itself, or the domain behind its own interface, and so on.
fn nic_owner(
    checker: &mut Checker<'_, '_>,
    driver: DomId,
    field: &Field<String>,
    spec: &Spec,
    raw_domains: &[&NamedDomain],
) -> Option<DomId> {
    let next = |at: DomId| {
        let name = raw_domains.get(at.index())?.1.value.nic.get()?.driver_domain.get()?;
        spec.domains.ids().find(|&domain| spec.domains[domain].name == *name)
    };
    let mut at = driver;
    for _ in 0..=spec.domains.len() {
        if spec.nics.iter().any(|nic| nic.owner == Some(at)) {
            return Some(at);
        }
        let Some(behind) = next(at) else { break };
        at = behind;
    }
    let domain = &spec.domains[at];
    if !domain.has_back_ends() {
        // That is reported where it is named.
        return None;
    }
    let name = &domain.name;
    let problem = match next(at) {
        Some(_) => Problem::says("the driver domains behind this interface lead in a circle")
            .hint("one of them owns the NIC"),
        None => Problem::says(format!("driver domain `{name}` owns no NIC"))
            .hint(format!("add [nic.NAME] with `driver_domain = \"{name}\"`")),
    };
    checker.report.error(&field.0.as_ref()?.place, problem);
    None
}

fn netfront(
    checker: &mut Checker<'_, '_>,
    raw: &RawNetfront,
    place: &Place,
    own: DomId,
    spec: &Spec,
    raw_domains: &[&NamedDomain],
    netbacks: &mut Table<DomId, usize>,
) -> Option<NetfrontSpec> {
    let driver = front_driver(checker, &raw.driver_domain, place, own, spec)?;
    let owner = match driver {
        Some(driver) => Some(nic_owner(checker, driver, &raw.driver_domain, spec, raw_domains)?),
        None => None,
    };
    let nic = device_of(checker, &raw.device, owner, "NIC", spec.nics.enumerate())?;
    let vcpu = raw.vcpu(spec.domains[own].vcpus() - 1, checker.report);
    Some(NetfrontSpec {
        driver,
        nic,
        vcpu,
        driver_vcpu: driver_vcpu(checker, &raw.driver_vcpu, driver, netbacks, spec)?,
        tso: raw.tso(checker.report),
        checksum_offload: raw.checksum_offload(checker.report),
        emulated: raw.emulated(checker.report),
    })
}
