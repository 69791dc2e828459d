//! A host to be brought up: its pCPUs, domains and vCPUs, and the toolstack's actions.

use crate::{Costs, CpuMask, Params, PoolId, Span, TimedAction};

/// One vCPU to be created.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VcpuConfig {
    /// The time from the boot of its domain to its first wake-up (`None`: only a virtual interrupt wakes it).
    pub start: Option<Span>,
    /// Its hard affinity (`None`: every pCPU).
    pub affinity: Option<CpuMask>,
}

/// One domain to be created.
#[derive(Clone, Debug, Default)]
pub struct DomainConfig {
    /// Its number as an administrator sees it.
    pub number: i64,
    /// The CPU pool it is created in.
    pub pool: PoolId,
    /// The scheduler parameters it is given, applied by one adjust once its vCPUs exist.
    pub params: Params,
    /// Its vCPUs.
    pub vcpus: Vec<VcpuConfig>,
}

/// A host to be brought up.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// The number of pCPUs, 1 to [`PCPUS_MAX`](crate::PCPUS_MAX).
    pub pcpus: u32,
    /// The number of pCPUs that share a socket (0: one socket holds all).
    pub pcpus_per_socket: u32,
    /// The pCPUs of each CPU pool: disjoint, none empty, all pCPUs together. Empty: one pool has them all. Each needs a
    /// scheduler of its own, see [`Pools`](crate::Pools).
    pub pools: Vec<CpuMask>,
    /// The costs of the hypervisor's own work ([`Costs::ZERO`]: exact mode).
    pub costs: Costs,
    /// The domains, in order of creation, those included that are created later.
    pub domains: Vec<DomainConfig>,
    /// The toolstack's actions.
    pub actions: Vec<TimedAction>,
}
