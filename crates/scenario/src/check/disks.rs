//! Disks, and the domains' virtual disks on them.

use vcpulab_guest::Step;
use vcpulab_host::{DomId, Table};
use vcpulab_io::DiskId;
use vcpulab_spec::limits::DEVICES_MAX;
use vcpulab_spec::{AppSpec, BlkfrontSpec, DiskSpec, Medium, Spec};

use crate::check::devices::{device, device_of, driver_vcpu, front_driver, front_to, usual_devices};
use crate::check::fields::Checker;
use crate::file::raw::{NamedDomain, RawScenario, RawVirtualDisk};
use crate::text::problem::{Place, Problem};
use crate::text::read::At;

/// The disks, and the domains' virtual disks on them.
pub(crate) fn check(
    checker: &mut Checker<'_, '_>,
    spec: &mut Spec,
    raw: &RawScenario,
    raw_domains: &[&NamedDomain],
    place: &Place,
) {
    let given = raw.disk.get().map_or(&[][..], |named| &named.0);
    checker.count(given.len(), 0, DEVICES_MAX, "disks", &place.member("disk"));
    for (name, At { value, place }) in given.iter().take(DEVICES_MAX) {
        let medium = value.kind(checker.report);
        let device = device(checker, name, place, &value.driver_domain, (&value.vcpu, &value.pcpu), spec);
        if let Some(device) = device {
            spec.disks.push(DiskSpec { device, medium });
        }
    }
    if given.is_empty() {
        let usual = usual_devices::<DiskId>(spec).into_iter();
        spec.disks = usual.map(|device| DiskSpec { device, medium: Medium::Spindle }).collect();
    }
    let mut blkbacks = Table::filled(spec.domains.len(), 0);
    for (domain, (_, raw)) in spec.domains.ids().zip(raw_domains) {
        if let Some(At { value, place }) = &raw.value.disk.0 {
            let has_disk = |driver: DomId| {
                raw_domains.get(driver.index()).is_some_and(|(_, raw)| !raw.value.disk.is_none())
            };
            let disk = virtual_disk(checker, value, place, domain, spec, &has_disk, &mut blkbacks);
            spec.domains[domain].disk = disk;
        }
    }
    ways_to_disks(checker, spec, raw_domains);
}

/// Reports stub domains whose disks form a circle: from each, the way from disk to disk must end at a real disk.
fn ways_to_disks(checker: &mut Checker<'_, '_>, spec: &mut Spec, raw_domains: &[&NamedDomain]) {
    for (domain, (_, raw)) in spec.domains.ids().zip(raw_domains) {
        let mut at = domain;
        let next = |at: DomId| spec.domains[at].disk.as_ref().filter(|disk| disk.disk.is_none())?.driver;
        let ends = (0..=spec.domains.len()).any(|_| next(at).map(|next| at = next).is_none());
        if let (false, Some(At { place, .. })) = (ends, &raw.value.disk.0) {
            let problem = Problem::says("the driver domains behind this disk lead in a circle");
            checker.report.error(place, problem.hint("one of them owns the disk"));
        }
    }
}

fn virtual_disk(
    checker: &mut Checker<'_, '_>,
    raw: &RawVirtualDisk,
    place: &Place,
    own: DomId,
    spec: &Spec,
    has_disk: &dyn Fn(DomId) -> bool,
    blkbacks: &mut Table<DomId, usize>,
) -> Option<BlkfrontSpec> {
    let driver = front_driver(checker, &raw.driver_domain, place, own, spec)?;
    let through_stub = raw.device.is_none() && driver.is_some_and(has_disk);
    let devices = spec.disks.enumerate().map(|(id, disk)| (id, &disk.device));
    let disk = match through_stub {
        true => None,
        false => Some(device_of(checker, &raw.device, driver, "disk", devices)?),
    };
    let vcpu = raw.vcpu(spec.domains[own].vcpus() - 1, checker.report);
    // A stub domain passes requests on where its own disk's events are.
    let spread = driver.filter(|_| !through_stub);
    Some(BlkfrontSpec {
        driver,
        disk,
        vcpu,
        driver_vcpu: driver_vcpu(checker, &raw.driver_vcpu, spread, blkbacks, spec)?,
        emulated: raw.emulated(checker.report),
    })
}

/// An application that reads or writes files needs a disk.
pub(crate) fn disk_needed(
    checker: &mut Checker<'_, '_>,
    spec: &Spec,
    domain: DomId,
    app: &AppSpec,
    place: &Place,
) {
    let config = app.alone();
    let uses =
        config.script.steps.iter().any(|step| matches!(step, Step::Disk(_) | Step::ReadAsked | Step::Sync));
    if uses && !spec.has_disk(domain) {
        let problem = Problem::says(format!("`{}` needs a disk in its domain", app.kind()));
        checker.report.error(place, problem.hint(format!("add `disk = {}`", front_to(spec))));
    }
}
