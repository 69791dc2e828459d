//! The words of a scenario file for values that are one of a few.

use vcpulab_host::{Bound, Class, Creation, Governor, Granularity, Numbering};
use vcpulab_spec::{Drivers, Forwarding, Medium, OnCrash, Platform, SourceKind, Toolstack};

use crate::text::value::Words;

/// The domain that has number 0.
pub(crate) const DOM0: &str = "dom0";

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

/// A hypervisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hypervisor {
    Xen,
    Kvm,
}

/// Declares the words of types: `TYPE: "word" => value, ...;`.
macro_rules! words {
    ($($type:ident: $($word:literal => $value:expr),+;)*) => {$(
        impl Words for $type {
            fn words() -> Vec<(&'static str, $type)> {
                vec![$(($word, $value)),+]
            }
        }
    )*};
}

words! {
    Hypervisor: "xen" => Hypervisor::Xen, "kvm" => Hypervisor::Kvm;
    // Bare metal has a field of its own.
    Drivers: "driver-domain" => Drivers::Domains, "hypervisor" => Drivers::Hypervisor;
    Granularity: "cpu" => Granularity::Cpu, "core" => Granularity::Core, "socket" => Granularity::Socket;
    Numbering: "adjacent" => Numbering::Adjacent, "spread" => Numbering::Spread;
    Creation: "contract" => Creation::Contract, "release" => Creation::Release;
    Governor: "performance" => Governor::Performance, "powersave" => Governor::Powersave, "ondemand" => Governor::Ondemand;
    // Real-time policies with the lowest priority.
    Class: "other" => Class::Other, "batch" => Class::Batch, "idle" => Class::Idle, "fifo" => Class::Fifo(1),
        "rr" => Class::RoundRobin(1);
    Forwarding: "bridge" => Forwarding::Bridge, "routing" => Forwarding::Routing;
    Medium: "spindle" => Medium::Spindle, "ssd" => Medium::Flash;
    OnCrash: "destroy" => OnCrash::Destroy, "restart" => OnCrash::Restart, "preserve" => OnCrash::Preserve;
}

impl Words for Bound {
    fn words() -> Vec<(&'static str, Bound)> {
        Bound::ALL.to_vec()
    }
}

impl Words for SourceKind {
    fn words() -> Vec<(&'static str, SourceKind)> {
        SourceKind::ALL.to_vec()
    }
}

/// All toolstacks; which are allowed depends on the hypervisor.
impl Words for Toolstack {
    fn words() -> Vec<(&'static str, Toolstack)> {
        let only_kvm = KVM_TOOLSTACKS.into_iter().filter(|word| !TOOLSTACKS.contains(word));
        TOOLSTACKS.into_iter().chain(only_kvm).collect()
    }
}
