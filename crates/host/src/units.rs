//! Units: the vCPUs of a domain that are scheduled together, on pCPUs that are so too (core scheduling).
//!
//! With a granularity of g pCPUs, unit k of a domain has its vCPUs k × g to k × g + g − 1, as far as there are so many, and the
//! vCPU of index i in its unit runs on the i-th pCPU of a *resource*, the threads of a core or of a socket. A policy never
//! hears of that: to it, a unit is a vCPU, the unit's first, and a resource is a pCPU, its first, the *master*. The records
//! of these two hold what the policy sees. With g = 1 a unit is a vCPU, and nothing here is ever looked at.

use crate::{CpuMask, Table, VcpuId};

/// State that exists only where units have more than one vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Units {
    /// pCPUs that are to look whether their vCPU has to come or to go while its unit stays.
    pub join: CpuMask,
    /// vCPUs that have to, until their pCPU has looked.
    pub forced: Table<VcpuId, bool>,
    /// The hard affinity of each unit as it was given, in its pool. (Its vCPUs have what follows from it.)
    pub given: Table<VcpuId, CpuMask>,
}
