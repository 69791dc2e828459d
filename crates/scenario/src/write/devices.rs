//! NICs and disks, and the domains' front ends.

use vcpulab_spec::{BlkfrontSpec, DeviceSpec, DiskSpec, Drivers, NetfrontSpec, Spec};

use crate::file::raw::{RawDisk, RawNetfront, RawNic, RawVirtualDisk};
use crate::file::words::{DRIVERS, MEDIA, word};
use crate::text::read::{Field, Named};

/// The name of the domain that owns a device, where a file would state it.
fn raw_owner(device: &DeviceSpec, spec: &Spec) -> Field<String> {
    let owner = device.owner.filter(|_| spec.host.drivers == Drivers::Domains);
    owner.map(|owner| spec.domains[owner].name.clone()).into()
}

pub(crate) fn raw_nics(spec: &Spec) -> Field<Named<RawNic>> {
    let raw = |nic: &DeviceSpec| {
        let raw = RawNic { driver_domain: raw_owner(nic, spec), vcpu: i64::from(nic.vcpu).into() };
        Some((nic.name.clone()?.into(), raw.into()))
    };
    let nics: Vec<_> = spec.nics.iter().filter_map(raw).collect();
    (!nics.is_empty()).then_some(Named(nics)).into()
}

pub(crate) fn raw_netfront(netfront: &NetfrontSpec, spec: &Spec) -> RawNetfront {
    RawNetfront {
        driver_domain: netfront.driver.map(|driver| spec.domains[driver].name.clone()).into(),
        device: spec.nics[netfront.nic].name.clone().into(),
        vcpu: i64::from(netfront.vcpu).into(),
        driver_vcpu: i64::from(netfront.driver_vcpu).into(),
        tso: netfront.tso.into(),
        checksum_offload: netfront.checksum_offload.into(),
        emulated: netfront.emulated.into(),
    }
}

pub(crate) fn raw_drivers(drivers: Drivers) -> (Field<String>, Field<bool>) {
    let word = word(&DRIVERS, &drivers);
    let bare_metal = word.is_none();
    (word.into(), bare_metal.into())
}

pub(crate) fn raw_disks(spec: &Spec) -> Field<Named<RawDisk>> {
    let raw = |disk: &DiskSpec| {
        let raw = RawDisk {
            driver_domain: raw_owner(&disk.device, spec),
            vcpu: i64::from(disk.device.vcpu).into(),
            kind: word(&MEDIA, &disk.medium).into(),
        };
        Some((disk.device.name.clone()?.into(), raw.into()))
    };
    let disks: Vec<_> = spec.disks.iter().filter_map(raw).collect();
    (!disks.is_empty()).then_some(Named(disks)).into()
}

pub(crate) fn raw_virtual_disk(disk: &BlkfrontSpec, spec: &Spec) -> RawVirtualDisk {
    let device = disk.disk.and_then(|disk| spec.disks[disk].device.name.clone());
    RawVirtualDisk {
        driver_domain: disk.driver.map(|driver| spec.domains[driver].name.clone()).into(),
        device: device.into(),
        vcpu: i64::from(disk.vcpu).into(),
        driver_vcpu: i64::from(disk.driver_vcpu).into(),
        emulated: disk.emulated.into(),
    }
}
