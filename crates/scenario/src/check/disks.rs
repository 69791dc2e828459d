//! Disks and virtual disks in a scenario: whose they are, and how they work.

use std::collections::BTreeSet;

use vcpulab_guest::Step;
use vcpulab_io::block::{BlockConfig, BlockCosts};
use vcpulab_io::blockback::BlockBackCosts;
use vcpulab_io::disk::{DiskConfig, DiskKind};
use vcpulab_io::elevator::ElevatorConfig;
use vcpulab_io::page_cache::CacheConfig;
use vcpulab_io::{DiskUnitConfig, VirtualDiskConfig};

use crate::check::{Checker, NamedDomain};
use crate::limits::CARDS_MAX;
use crate::network::raw_owner;
use crate::problem::{Place, Problem};
use crate::profile::Constants;
use crate::raw::{RawDisk, RawScenario, RawVirtualDisk};
use crate::read::{At, Field, Named};
use crate::spec::{AppSpec, DeviceSpec, DiskSpec, DomainSpec, Drivers, Spec, VirtualDiskSpec};

/// How disks work, in the scenario's words.
const KINDS: [(&str, DiskSpec); 2] = [("spindle", DiskSpec::Spindle), ("ssd", DiskSpec::Flash)];

impl Checker<'_, '_> {
    /// The disks, and the domains' virtual disks on them.
    pub(crate) fn disks(
        &mut self,
        spec: &mut Spec,
        raw: &RawScenario,
        raw_domains: &[&NamedDomain],
        place: &Place,
    ) {
        let given = raw.disk.get().map_or(&[][..], |named| &named.0);
        self.count(given.len(), 0, CARDS_MAX, "disks", &place.member("disk"));
        for (name, At { value, place }) in given.iter().take(CARDS_MAX) {
            let kind = self
                .choice(&value.kind, &KINDS, |(word, _)| word)
                .map_or(DiskSpec::Spindle, |(_, kind)| *kind);
            let device = self.device(name, place, &value.driver_domain, &value.vcpu, spec);
            spec.disks.extend(device.map(|device| (device, kind)));
        }
        if given.is_empty() {
            spec.disks =
                Self::usual_devices(spec).into_iter().map(|device| (device, DiskSpec::Spindle)).collect();
        }
        for (index, (_, raw)) in raw_domains.iter().enumerate().take(spec.domains.len()) {
            if let Some(At { value, place }) = &raw.value.disk.0 {
                let has_disk =
                    |driver: usize| raw_domains.get(driver).is_some_and(|(_, raw)| !raw.value.disk.is_none());
                let disk = self.virtual_disk(value, place, index, spec, &has_disk);
                spec.domains[index].disk = disk;
            }
        }
        self.ways_to_disks(spec, raw_domains);
    }

    /// From one stub domain to the next the way must end at a disk.
    fn ways_to_disks(&mut self, spec: &mut Spec, raw_domains: &[&NamedDomain]) {
        for (index, (_, raw)) in raw_domains.iter().enumerate().take(spec.domains.len()) {
            let mut at = index;
            let next = |at: usize| spec.domains[at].disk.as_ref().filter(|disk| disk.disk.is_none())?.driver;
            let ends = (0..=spec.domains.len()).any(|_| next(at).map(|next| at = next).is_none());
            if let (false, Some(At { place, .. })) = (ends, &raw.value.disk.0) {
                let problem = Problem::says("the driver domains behind this disk lead in a circle");
                self.report.error(place, problem.hint("one of them owns the disk"));
            }
        }
    }

    fn virtual_disk(
        &mut self,
        raw: &RawVirtualDisk,
        place: &Place,
        own: usize,
        spec: &Spec,
        has_disk: &dyn Fn(usize) -> bool,
    ) -> Option<VirtualDiskSpec> {
        let driver = self.front_driver(&raw.driver_domain, place, own, spec)?;
        let through_stub = raw.device.is_none() && driver.is_some_and(has_disk);
        let devices = spec.disks.iter().map(|(device, _)| device);
        let disk = match through_stub {
            true => None,
            false => Some(self.device_of(&raw.device, driver, "disk", devices)?),
        };
        let vcpus = spec.domains[own].affinity.len() as i64;
        let vcpu = self.int(&raw.vcpu, 0, 0..=vcpus - 1)?;
        Some(VirtualDiskSpec {
            driver,
            disk,
            vcpu: vcpu as u32,
            emulated: raw.emulated.get().copied().unwrap_or(false),
        })
    }

    /// What reads or writes files needs a disk.
    pub(crate) fn disk_needed(&mut self, spec: &Spec, domain: usize, app: &AppSpec, place: &Place) {
        let config = app.alone();
        let uses = config
            .script
            .steps
            .iter()
            .any(|step| matches!(step, Step::Disk(_) | Step::ReadAsked | Step::Sync));
        if uses && virtual_disk(domain, spec).is_none() {
            let problem = Problem::says(format!("`{}` needs a disk in its domain", app.kind()));
            self.report.error(place, problem.hint("add `disk = { driver_domain = \"dom0\" }`"));
        }
    }
}

// ---- writing ----

pub(crate) fn raw_disks(spec: &Spec) -> Field<Named<RawDisk>> {
    let raw = |(device, kind): &(DeviceSpec, DiskSpec)| {
        let word = KINDS.iter().find(|(_, known)| known == kind).map(|(word, _)| (*word).to_owned());
        let raw = RawDisk {
            driver_domain: raw_owner(device, spec),
            vcpu: i64::from(device.vcpu).into(),
            kind: word.map_or_else(Field::default, Field::from),
        };
        Some((device.name.clone()?.into(), raw.into()))
    };
    let disks: Vec<_> = spec.disks.iter().filter_map(raw).collect();
    if disks.is_empty() { Field::default() } else { Named(disks).into() }
}

pub(crate) fn raw_virtual_disk(disk: &VirtualDiskSpec, spec: &Spec) -> RawVirtualDisk {
    let device = disk.disk.and_then(|disk| spec.disks[disk].0.name.clone());
    let driver = disk.driver.map(|driver| spec.domains[driver].name.clone());
    RawVirtualDisk {
        driver_domain: driver.map_or_else(Field::default, Field::from),
        device: device.map_or_else(Field::default, Field::from),
        vcpu: i64::from(disk.vcpu).into(),
        emulated: disk.emulated.into(),
    }
}

// ---- running ----

pub(crate) fn disks(spec: &Spec) -> Vec<DiskUnitConfig> {
    let constants = &spec.host.constants;
    let costs = BlockBackCosts {
        request_ns: constants.blockback_request_ns,
        grant_ns: constants.grant_ns,
        response_ns: constants.blockback_response_ns,
    };
    let unit = |(device, kind): &(DeviceSpec, DiskSpec)| DiskUnitConfig {
        disk: Some(disk(*kind, constants)),
        owner: device.owner.map(|owner| (owner, device.vcpu)),
        costs,
    };
    // A stub domain has no driver of a disk: a request goes on through its front end, which costs that.
    let stub = |stub: usize| DiskUnitConfig {
        disk: None,
        owner: Some((stub, spec.domains[stub].disk.as_ref().map_or(0, |disk| disk.vcpu))),
        costs: BlockBackCosts { request_ns: 0, ..costs },
    };
    spec.disks.iter().map(unit).chain(stubs(spec).map(stub)).collect()
}

/// The stub domains that virtual disks go through, each once, in order.
fn stubs(spec: &Spec) -> impl Iterator<Item = usize> {
    let through = |domain: &DomainSpec| domain.disk.as_ref().filter(|disk| disk.disk.is_none())?.driver;
    let stubs: BTreeSet<usize> = spec.domains.iter().filter_map(through).collect();
    stubs.into_iter()
}

fn disk(kind: DiskSpec, constants: &Constants) -> DiskConfig {
    DiskConfig {
        kind: match kind {
            DiskSpec::Spindle => DiskKind::Spindle {
                bytes_per_s: constants.disk_bytes_per_s,
                track_seek_ns: constants.disk_track_seek_ns,
                average_seek_ns: constants.disk_average_seek_ns,
                rotations_per_min: constants.disk_rotations_per_min,
            },
            DiskSpec::Flash => DiskKind::Flash {
                latency_ns: constants.ssd_latency_ns,
                bytes_per_s: constants.ssd_bytes_per_s,
                channels: constants.ssd_channels as usize,
            },
        },
        capacity_bytes: constants.disk_capacity_bytes as u64,
        queue_depth: constants.disk_queue_depth as usize,
        elevator: ElevatorConfig::LINUX,
    }
}

/// A domain's virtual disk. One that owns a disk has one straight on that, if it has no other.
pub(crate) fn virtual_disk(index: usize, spec: &Spec) -> Option<VirtualDiskConfig> {
    let (domain, constants) = (&spec.domains[index], &spec.host.constants);
    let costs = BlockCosts {
        upcall_ns: constants.guest_upcall_ns,
        request_ns: constants.block_request_ns,
        response_ns: constants.block_response_ns,
        copy_ps_per_byte: constants.copy_byte_ps,
    };
    let cache = CacheConfig::linux(domain.page_cache_bytes);
    let own = spec.disks.iter().position(|(device, _)| device.owner == Some(index));
    match (&domain.disk, own) {
        (Some(disk), _) if spec.host.drivers != Drivers::BareMetal => Some(VirtualDiskConfig {
            block: BlockConfig::split(costs, cache),
            disk: disk.disk.unwrap_or_else(|| {
                spec.disks.len() + stubs(spec).take_while(|&stub| Some(stub) != disk.driver).count()
            }),
            vcpu: disk.vcpu,
            emulation_ns: if disk.emulated { constants.emulation_ns } else { 0 },
        }),
        (given, Some(own)) => Some(VirtualDiskConfig {
            block: BlockConfig::straight(costs, cache),
            disk: own,
            vcpu: given.as_ref().map_or(spec.disks[own].0.vcpu, |disk| disk.vcpu),
            emulation_ns: 0,
        }),
        _ => None,
    }
}
