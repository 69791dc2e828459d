//! The words of a scenario file for values that are one of a few.

use vcpulab_host::{Class, Creation, Governor, Granularity, Numbering};
use vcpulab_spec::{Drivers, Forwarding, Medium, OnCrash, Platform, Toolstack};

/// The hypervisors, and whether each is KVM. The first is the default.
pub(crate) const HYPERVISORS: [(&str, bool); 2] = [("xen", false), ("kvm", true)];

/// The domain that has number 0.
pub(crate) const DOM0: &str = "dom0";

/// The places that drivers can have. (Bare metal has a field of its own.)
pub(crate) const DRIVERS: [(&str, Drivers); 2] =
    [("driver-domain", Drivers::Domains), ("hypervisor", Drivers::Hypervisor)];

/// The units of scheduling. The first is the default.
pub(crate) const GRANULARITIES: [(&str, Granularity); 3] =
    [("cpu", Granularity::Cpu), ("core", Granularity::Core), ("socket", Granularity::Socket)];

/// The orders in which firmware lists threads. The first is the default.
pub(crate) const NUMBERINGS: [(&str, Numbering); 2] =
    [("adjacent", Numbering::Adjacent), ("spread", Numbering::Spread)];

/// The orders in which new vCPUs come to their affinity. The first is the default.
pub(crate) const CREATIONS: [(&str, Creation); 2] =
    [("contract", Creation::Contract), ("release", Creation::Release)];

/// Governors that choose the frequencies of cores. The first is the default.
pub(crate) const GOVERNORS: [(&str, Governor); 3] = [
    ("performance", Governor::Performance),
    ("powersave", Governor::Powersave),
    ("ondemand", Governor::Ondemand),
];

/// The toolstacks of Xen hosts. The first is the default.
const TOOLSTACKS: [(&str, Toolstack); 3] =
    [("xl", Toolstack::Xl), ("xapi", Toolstack::Xapi), ("libvirt", Toolstack::Libvirt)];

/// The toolstacks of KVM hosts. The first is the default.
const KVM_TOOLSTACKS: [(&str, Toolstack); 3] =
    [("libvirt", Toolstack::Libvirt), ("proxmox", Toolstack::Proxmox), ("cgroup", Toolstack::Cgroup)];

/// The toolstacks of hosts of this platform. The first is the default.
pub(crate) fn toolstacks(platform: &Platform) -> &'static [(&'static str, Toolstack)] {
    match platform {
        Platform::Kvm(_) => &KVM_TOOLSTACKS,
        Platform::Xen(_) | Platform::BareMetal => &TOOLSTACKS,
    }
}

/// The scheduling classes and policies of Linux, each at the lowest priority it has. The first is the default.
pub(crate) const CLASSES: [(&str, Class); 5] = [
    ("other", Class::Other),
    ("batch", Class::Batch),
    ("idle", Class::Idle),
    ("fifo", Class::Fifo(1)),
    ("rr", Class::RoundRobin(1)),
];

/// The ways in which driver domains can forward packets.
pub(crate) const FORWARDING: [(&str, Forwarding); 2] =
    [("bridge", Forwarding::Bridge), ("routing", Forwarding::Routing)];

/// The media of disks.
pub(crate) const MEDIA: [(&str, Medium); 2] = [("spindle", Medium::Spindle), ("ssd", Medium::Flash)];

/// The answers to a crash, in the toolstack's words. Its own default is the first.
pub(crate) const ON_CRASH: [(&str, OnCrash); 3] =
    [("destroy", OnCrash::Destroy), ("restart", OnCrash::Restart), ("preserve", OnCrash::Preserve)];

/// The word for a value, if it has one.
pub(crate) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> Option<String> {
    words.iter().find(|(_, known)| known == value).map(|(word, _)| (*word).to_owned())
}
