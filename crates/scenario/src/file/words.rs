//! The words of a scenario file for values that are one of a few.

use vcpulab_host::{Bound, Class, Creation, Governor, Granularity, Numbering};
use vcpulab_spec::{Drivers, Forwarding, Medium, OnCrash, Platform, SourceKind, Toolstack};

use crate::text::value::Words;

/// The domain that has number 0.
pub(crate) const DOM0: &str = "dom0";

/// All toolstacks: those of Xen hosts, whose last one is the first of those of KVM hosts.
const ALL_TOOLSTACKS: &[(&str, Toolstack)] = &[
    ("xl", Toolstack::Xl),
    ("xapi", Toolstack::Xapi),
    ("libvirt", Toolstack::Libvirt),
    ("proxmox", Toolstack::Proxmox),
    ("cgroup", Toolstack::Cgroup),
];

/// The toolstacks of hosts of this platform. The first is the default.
pub(crate) fn toolstacks(platform: &Platform) -> &'static [(&'static str, Toolstack)] {
    match platform {
        Platform::Kvm(_) => &ALL_TOOLSTACKS[2..],
        Platform::Xen(_) | Platform::BareMetal => &ALL_TOOLSTACKS[..3],
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
            fn words() -> &'static [(&'static str, $type)] {
                &[$(($word, $value)),+]
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
    fn words() -> &'static [(&'static str, Bound)] {
        &Bound::ALL
    }
}

impl Words for SourceKind {
    fn words() -> &'static [(&'static str, SourceKind)] {
        &SourceKind::ALL
    }
}

/// All toolstacks; which are allowed depends on the hypervisor.
impl Words for Toolstack {
    fn words() -> &'static [(&'static str, Toolstack)] {
        ALL_TOOLSTACKS
    }
}
