//! Domains.

use vcpulab_guest::IdleTick;
use vcpulab_host::{Bound, CpuMask, DomId, Params, PoolId, Span, Time};
use vcpulab_sched::Member;

use crate::app::AppSpec;
use crate::device::{BlkfrontSpec, NetfrontSpec};
use crate::kvm::ThreadKind;
use crate::platform::{Guest, VmSpec, XenDomain};

/// A domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainSpec {
    /// Name of the domain.
    pub name: String,
    /// Number of the domain: 0 for `dom0`, and for the domain of a KVM host's own threads.
    pub number: i64,
    /// The scheduler's parameters for it, those given.
    pub params: Params,
    /// The CPU pool it is created in.
    pub pool: PoolId,
    /// The time of its creation.
    pub start: Time,
    /// Hard affinity for each vCPU; `None`: every pCPU of its pool. Its length is the number of vCPUs.
    pub affinity: Vec<Option<CpuMask>>,
    /// Soft affinity for each vCPU; `None`: it prefers no pCPU. As long as `affinity`, or empty: no vCPU has one.
    pub soft_affinity: Vec<Option<CpuMask>>,
    /// The resource that bounds the speed of the domain's work.
    pub bound: Bound,
    /// The NUMA nodes that hold its memory; empty: those of the pCPUs that it prefers, or else may run on.
    pub memory_nodes: Vec<u32>,
    /// Working set of each vCPU, bytes.
    pub working_set_bytes: u64,
    /// Network interface of the domain.
    pub nic: Option<NetfrontSpec>,
    /// Virtual disk of the domain.
    pub disk: Option<BlkfrontSpec>,
    /// Memory for pages of files, bytes.
    pub page_cache_bytes: u64,
    /// Memory of the domain, bytes.
    pub memory_bytes: u64,
    /// Time that its guest takes to shut down.
    pub shutdown: Span,
    /// The tick of the guest's kernel, where it stays on while a vCPU is idle.
    pub idle_tick: Option<IdleTick>,
    /// CPU time of its kernel each time that an idle vCPU wakes to do something.
    pub wake_cpu: Span,
    /// CPU time of the guest's kernel each time that a vCPU goes idle.
    pub idle_cpu: Span,
    /// The toolstack's answer to a crash of its guest.
    pub on_crash: OnCrash,
    /// Applications of the domain.
    pub apps: Vec<AppSpec>,
    /// Kind of the domain.
    pub guest: Guest,
}

impl DomainSpec {
    /// The default bound of a domain's work: I/O for Dom0 and driver domains, computing for the others.
    pub fn usual_bound(number: i64, driver_domain: bool) -> Bound {
        if driver_domain || number == 0 { Bound::Io } else { Bound::Compute }
    }

    /// The domain as promises of its pool's scheduler depend on it.
    pub(crate) fn member(&self) -> Member<'_> {
        Member {
            number: self.number,
            vcpus: self.vcpus(),
            pinned: self.affinity.iter().any(Option::is_some),
            params: &self.params,
        }
    }

    /// The number of its vCPUs.
    pub fn vcpus(&self) -> u32 {
        self.affinity.len() as u32
    }

    /// The driver domain behind its network interface.
    pub fn driver(&self) -> Option<DomId> {
        self.nic.as_ref().and_then(|nic| nic.driver)
    }

    /// The driver domains behind its network interface and its virtual disk.
    pub fn drivers(&self) -> impl Iterator<Item = DomId> {
        self.driver().into_iter().chain(self.disk.as_ref().and_then(|disk| disk.driver))
    }

    /// Whether the domain is a driver domain of Xen.
    pub fn is_driver_domain(&self) -> bool {
        matches!(self.guest, Guest::XenDomain(XenDomain { driver_domain: true, .. }))
    }

    /// Whether back ends of other domains are in the domain: in a driver domain, and among the threads of a KVM host.
    pub fn has_back_ends(&self) -> bool {
        self.is_driver_domain() || matches!(self.guest, Guest::HostThreads(_))
    }

    /// Whether the domain is on the network: by an interface, or because it owns NICs.
    pub fn is_on_network(&self) -> bool {
        self.nic.is_some() || self.has_back_ends()
    }

    /// The kinds of threads of a KVM host that serve its network interface and its virtual disk.
    pub fn served_by(&self, vm: &VmSpec) -> [Option<ThreadKind>; 2] {
        let of_disk = self.disk.as_ref().map(|disk| vm.disk_thread(disk.emulated));
        [self.nic.as_ref().map(|nic| VmSpec::nic_thread(nic.emulated)), of_disk]
    }

    /// The kinds of its applications, one for each instance, in the order in which the engine counts them.
    pub fn app_kinds(&self) -> Vec<&'static str> {
        let kinds = self.apps.iter().map(|app| std::iter::repeat_n(app.kind(), app.instances() as usize));
        kinds.flatten().collect()
    }
}

/// The toolstack's answer to the crash of a domain's guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCrash {
    /// The domain is destroyed.
    #[default]
    Destroy,
    /// The domain is destroyed and created again.
    Restart,
    /// The domain stays as it is until it is destroyed.
    Preserve,
}
