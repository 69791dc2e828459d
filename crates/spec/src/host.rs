//! The machine and its CPU pools.

use vcpulab_host::{CpuMask, Creation, Governor, Granularity, Params, PoolId, TopologyConfig};
use vcpulab_sched::{Generation, Policy};

use crate::platform::Platform;
use crate::profile::Constants;

/// The machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSpec {
    /// The built-in hardware profile; `custom`: none of them.
    pub profile: String,
    /// Constants of the profile; the scenario may replace some of them.
    pub constants: Constants,
    /// Number of pCPUs.
    pub pcpus: u32,
    /// Threads, cores, sockets and nodes of the pCPUs (`None`: each pCPU is a core of its own, on one node).
    pub topology: Option<TopologyConfig>,
    /// pCPUs on one socket, where no topology is given.
    pub pcpus_per_socket: u32,
    /// The unit of scheduling.
    pub granularity: Granularity,
    /// The order in which new vCPUs come to their affinity.
    pub creation: Creation,
    /// The governor that chooses the frequencies of the cores.
    pub governor: Governor,
    /// The platform that domains run on.
    pub platform: Platform,
    /// The toolstack in whose commands advice is given. It changes no result.
    pub toolstack: Toolstack,
}

/// The tool with which administrators set a host up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolstack {
    /// Xen's own, `xl` (before Xen 4.1 `xm`).
    Xl,
    /// XAPI, of XCP-ng and XenServer.
    Xapi,
    /// libvirt, of Xen and of KVM.
    Libvirt,
    /// Proxmox VE, of KVM.
    Proxmox,
    /// Files of control groups and systemd, on any host of Linux.
    Cgroup,
}

/// The CPU pool that every host has.
pub const POOL_0: PoolId = PoolId(0);

/// A CPU pool and its scheduler.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// Name of the pool.
    pub name: String,
    /// pCPUs of the pool.
    pub pcpus: CpuMask,
    /// The scheduler.
    pub policy: &'static Policy,
    /// The release that it is of.
    pub release: String,
    /// The rules that it has there.
    pub generation: &'static Generation,
    /// Global parameters of the pool's scheduler that the scenario gives.
    pub params: Params,
}

impl PartialEq for PoolSpec {
    fn eq(&self, other: &Self) -> bool {
        // The name of a policy is its identity.
        let key = |pool: &Self| (pool.pcpus, pool.policy.name);
        let named = self.name == other.name && self.release == other.release;
        named && key(self) == key(other) && self.params == other.params
    }
}
