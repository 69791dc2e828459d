//! A host to be brought up: its pCPUs, domains and vCPUs, and the toolstack's actions.

use crate::{
    Bound, Costs, CpuMask, GroupConfig, Hardware, Isolation, Params, PoolId, Span, ThreadConfig, TimedAction,
};

/// A vCPU to be created.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VcpuConfig {
    /// The time from the boot of its domain to its first wake-up (`None`: only a virtual interrupt wakes it).
    pub start: Option<Span>,
    /// Hard affinity of the vCPU (`None`: every pCPU).
    pub affinity: Option<CpuMask>,
    /// Soft affinity of the vCPU (`None`: it prefers no pCPU).
    pub soft_affinity: Option<CpuMask>,
    /// Control group, class and nice value of the vCPU as a thread of Linux.
    pub thread: ThreadConfig,
}

/// A domain to be created.
#[derive(Clone, Debug, Default)]
pub struct DomainConfig {
    /// Number of the domain as an administrator sees it.
    pub number: i64,
    /// The CPU pool in which the domain is created.
    pub pool: PoolId,
    /// Scheduler parameters of the domain, applied by one adjust once its vCPUs exist.
    pub params: Params,
    /// The resource that bounds the speed of the domain's work.
    pub bound: Bound,
    /// The NUMA nodes that hold the domain's memory, in equal parts (empty: all).
    pub memory_nodes: Vec<u32>,
    /// vCPUs of the domain.
    pub vcpus: Vec<VcpuConfig>,
}

/// The threads, cores, sockets and nodes of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopologyConfig {
    /// The number of sockets.
    pub sockets: u32,
    /// The number of cores of each socket.
    pub cores: u32,
    /// The number of threads of each core.
    pub threads: u32,
    /// The number of NUMA nodes of the host: a divisor or a multiple of the number of sockets, as on real hosts.
    pub nodes: u32,
    /// The numbers of the pCPUs.
    pub numbering: Numbering,
}

impl TopologyConfig {
    /// The number of pCPUs.
    pub fn pcpus(&self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}

/// The order in which firmware lists the threads of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Numbering {
    /// The threads of a core have consecutive numbers.
    #[default]
    Adjacent,
    /// All first threads of cores come before all second threads.
    Spread,
}

/// The order in which new vCPUs come to their affinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Creation {
    /// Affinity is in force when a vCPU comes to its scheduler: the host contract.
    #[default]
    Contract,
    /// vCPUs come with every pCPU allowed, and the toolstack sets their affinity when all vCPUs of the domain exist:
    /// real hosts.
    Release,
}

/// The unit of scheduling (Xen's `sched-gran`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Granularity {
    /// A vCPU by itself.
    #[default]
    Cpu,
    /// The vCPUs of a domain in groups of as many as a core has threads, each group on the threads of one core.
    Core,
    /// The vCPUs of a domain in groups of as many as a socket has threads, each group on the threads of one socket.
    Socket,
}

/// A host to be brought up.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// The number of pCPUs, 1 to [`PCPUS_MAX`](crate::PCPUS_MAX).
    pub pcpus: u32,
    /// Threads, cores, sockets and nodes of the pCPUs, as many as there are pCPUs (`None`: each pCPU is a core of its
    /// own, on one node).
    pub topology: Option<TopologyConfig>,
    /// The number of pCPUs that share a socket where no topology is given (0: one socket holds all).
    pub pcpus_per_socket: u32,
    /// The unit of scheduling.
    pub granularity: Granularity,
    /// The pCPUs of each CPU pool: disjoint, none empty, all pCPUs together. Empty: one pool has them all. Each pool
    /// needs a scheduler of its own, see [`Pools`](crate::Pools).
    pub pools: Vec<CpuMask>,
    /// The costs of the hypervisor's own work ([`Costs::ZERO`]: exact mode).
    pub costs: Costs,
    /// Properties of the hardware that decide the speed of the pCPUs.
    pub hardware: Hardware,
    /// The domains, in order of creation, those included that are created later.
    pub domains: Vec<DomainConfig>,
    /// The control groups of a host of Linux, each after the one around it.
    pub groups: Vec<GroupConfig>,
    /// The pCPUs that the kernel of a host of Linux leaves alone.
    pub isolation: Isolation,
    /// The order in which new vCPUs come to their affinity.
    pub creation: Creation,
    /// The toolstack's actions.
    pub actions: Vec<TimedAction>,
}
