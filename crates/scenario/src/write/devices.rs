//! NICs and disks, and the domains' front ends.

use vcpulab_host::DomId;
use vcpulab_spec::{BlkfrontSpec, DeviceSpec, DiskSpec, Drivers, NetfrontSpec, Platform, Spec};

use crate::file::raw::{RawDisk, RawNetfront, RawNic, RawVirtualDisk};
use crate::text::read::{Field, Named};

/// The name of a driver domain, where a file would state it.
fn raw_driver(driver: Option<DomId>, spec: &Spec) -> Field<String> {
    let driver = driver.filter(|_| spec.host.platform == Platform::Xen(Drivers::Domains));
    driver.map(|driver| spec.domains[driver].name.clone()).into()
}

/// The number of a driver domain's vCPU, where a file would state it.
fn raw_vcpu(vcpu: u32, spec: &Spec) -> Field<i64> {
    spec.host.platform.kvm().is_none().then_some(vcpu).into()
}

pub(crate) fn raw_nics(spec: &Spec) -> Field<Named<RawNic>> {
    let raw = |nic: &DeviceSpec| {
        let raw = RawNic {
            driver_domain: raw_driver(nic.owner, spec),
            vcpu: raw_vcpu(nic.vcpu, spec),
            pcpu: nic.pcpu.into(),
        };
        Some((nic.name.clone()?.into(), raw.into()))
    };
    let nics: Vec<_> = spec.nics.iter().filter_map(raw).collect();
    (!nics.is_empty()).then_some(Named(nics)).into()
}

pub(crate) fn raw_netfront(netfront: &NetfrontSpec, spec: &Spec) -> RawNetfront {
    RawNetfront {
        driver_domain: raw_driver(netfront.driver, spec),
        device: spec.nics[netfront.nic].name.clone().into(),
        vcpu: netfront.vcpu.into(),
        driver_vcpu: raw_vcpu(netfront.driver_vcpu, spec),
        tso: netfront.tso.into(),
        checksum_offload: netfront.checksum_offload.into(),
        emulated: netfront.emulated.into(),
    }
}

pub(crate) fn raw_disks(spec: &Spec) -> Field<Named<RawDisk>> {
    let raw = |disk: &DiskSpec| {
        let raw = RawDisk {
            driver_domain: raw_driver(disk.device.owner, spec),
            vcpu: raw_vcpu(disk.device.vcpu, spec),
            pcpu: disk.device.pcpu.into(),
            kind: disk.medium.into(),
        };
        Some((disk.device.name.clone()?.into(), raw.into()))
    };
    let disks: Vec<_> = spec.disks.iter().filter_map(raw).collect();
    (!disks.is_empty()).then_some(Named(disks)).into()
}

pub(crate) fn raw_virtual_disk(disk: &BlkfrontSpec, spec: &Spec) -> RawVirtualDisk {
    let device = disk.disk.and_then(|disk| spec.disks[disk].device.name.clone());
    RawVirtualDisk {
        driver_domain: raw_driver(disk.driver, spec),
        device: device.into(),
        vcpu: disk.vcpu.into(),
        driver_vcpu: raw_vcpu(disk.driver_vcpu, spec),
        emulated: disk.emulated.into(),
    }
}
