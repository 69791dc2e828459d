//! The platform that domains run on, and the kinds of domains on each.

use vcpulab_host::CpuMask;

use crate::device::Forwarding;
use crate::kvm::{KvmSpec, ServiceThread, ThreadKind, ThreadsSpec};
use crate::profile::ConstantDoc;

/// The platform that domains run on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Platform {
    /// Xen, and the place of the drivers of the devices.
    Xen(Drivers),
    /// Linux with KVM. The drivers are in its kernel, and in threads of its domain [`HOST`](crate::HOST).
    Kvm(KvmSpec),
    /// The machine itself, without a hypervisor: the one domain has the drivers.
    BareMetal,
}

impl Platform {
    /// The settings of a host of Linux with KVM.
    pub fn kvm(&self) -> Option<&KvmSpec> {
        match self {
            Platform::Kvm(kvm) => Some(kvm),
            Platform::Xen(_) | Platform::BareMetal => None,
        }
    }

    /// Whether a constant of a profile is a cost of this platform.
    pub fn has(&self, constant: &ConstantDoc) -> bool {
        !constant.of_kvm() || self.kvm().is_some()
    }
}

/// The places that the drivers of the devices can have on a host of Xen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drivers {
    /// In driver domains.
    Domains,
    /// In the hypervisor.
    Hypervisor,
}

/// The kind of a domain: its vCPUs are those of a domain of Xen, or threads of Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guest {
    /// A domain of Xen. The one domain on bare metal counts as one.
    XenDomain(XenDomain),
    /// A virtual machine of a KVM host.
    Vm(VmSpec),
    /// A daemon of a KVM host.
    Daemon(ThreadsSpec),
    /// The threads of a KVM host that serve its VMs: a vCPU each.
    HostThreads(Vec<ServiceThread>),
}

impl Default for Guest {
    fn default() -> Self {
        Guest::XenDomain(XenDomain::default())
    }
}

impl Guest {
    /// The threads that are the vCPUs of a VM, or those of a daemon.
    pub fn threads(&self) -> Option<&ThreadsSpec> {
        match self {
            Guest::Vm(vm) => Some(&vm.threads),
            Guest::Daemon(threads) => Some(threads),
            Guest::XenDomain(_) | Guest::HostThreads(_) => None,
        }
    }
}

/// A domain of Xen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XenDomain {
    /// Whether the domain owns the devices.
    pub driver_domain: bool,
    /// The way in which it finds where packets go.
    pub forwarding: Forwarding,
}

/// A virtual machine of a KVM host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmSpec {
    /// The threads of its vCPUs.
    pub threads: ThreadsSpec,
    /// The pCPUs that its emulator and vhost threads may run on; `None`: every one.
    pub emulator_affinity: Option<CpuMask>,
    /// The pCPUs that its I/O thread may run on; `None`: every one.
    pub iothread_affinity: Option<CpuMask>,
    /// The number of its I/O threads; 0: the emulator does the work of its disk.
    pub iothreads: u32,
    /// The number of threads of each core, as its guest is told.
    pub threads_per_core: u32,
}

impl VmSpec {
    /// The kind of thread that serves a network interface.
    pub fn nic_thread(emulated: bool) -> ThreadKind {
        if emulated { ThreadKind::Emulator } else { ThreadKind::Vhost }
    }

    /// The kind of thread that serves the VM's disk.
    pub fn disk_thread(&self, emulated: bool) -> ThreadKind {
        if emulated || self.iothreads == 0 { ThreadKind::Emulator } else { ThreadKind::IoThread }
    }

    /// The pCPUs that a thread which serves the VM may run on; `None`: every one.
    pub fn affinity_of(&self, kind: ThreadKind) -> Option<CpuMask> {
        match kind {
            ThreadKind::Vhost | ThreadKind::Emulator => self.emulator_affinity,
            ThreadKind::IoThread => self.iothread_affinity,
        }
    }
}
