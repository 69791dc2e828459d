//! Topology: the pCPUs that share a socket, a cache, or a CPU pool.

use crate::{CpuMask, PcpuId, PoolId, Table};

/// The pCPUs of a host, their sockets and their pools.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    per_socket: u32,
    pools: Table<PoolId, CpuMask>,
    pool_of: Table<PcpuId, PoolId>,
}

impl Topology {
    /// Of `pcpus` pCPUs, `per_socket` share a socket (0: all of them). No pool given: one has them all.
    ///
    /// # Panics
    /// If a pCPU is in no pool.
    pub fn new(pcpus: u32, per_socket: u32, pools: &[CpuMask]) -> Self {
        let all = CpuMask::first_n(pcpus);
        let pools: Table<PoolId, _> = if pools.is_empty() { vec![all].into() } else { pools.to_vec().into() };
        let pool_of = |p| pools.ids().find(|&pool| pools[pool].contains(p)).expect("each pCPU is in a pool");
        let pool_of = all.iter().map(pool_of).collect();
        Topology { per_socket: if per_socket == 0 { pcpus } else { per_socket }, pools, pool_of }
    }

    /// The socket of a pCPU.
    pub fn socket(&self, p: PcpuId) -> u32 {
        p.0 / self.per_socket
    }

    /// The number of CPU pools.
    pub fn pools(&self) -> usize {
        self.pools.len()
    }

    /// The pCPUs of a pool.
    #[inline(always)]
    pub fn pcpus(&self, pool: PoolId) -> &CpuMask {
        &self.pools[pool]
    }

    /// The first of them.
    pub fn first_pcpu(&self, pool: PoolId) -> PcpuId {
        self.pcpus(pool).first().expect("a pool has a pCPU")
    }

    /// The pool of a pCPU, if the host has one of that number.
    #[inline(always)]
    pub fn pool_of(&self, p: PcpuId) -> Option<PoolId> {
        self.pool_of.get(p).copied()
    }

    /// The group of pCPUs that share an L3 with each pCPU, as groups numbered from 0: `per_l3` of a socket (0: all).
    pub fn l3_groups(&self, per_l3: u32) -> Table<PcpuId, usize> {
        let per_socket = self.per_socket;
        let per_l3 = if per_l3 == 0 { per_socket } else { per_l3.min(per_socket) };
        let group = |p: PcpuId| self.socket(p) * per_socket.div_ceil(per_l3) + p.0 % per_socket / per_l3;
        self.pool_of.ids().map(|p| group(p) as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_l3_may_be_shared_by_fewer_pcpus_than_a_socket_has() {
        let l3_of = |pcpus, per_socket, per_l3| Topology::new(pcpus, per_socket, &[]).l3_groups(per_l3);
        assert_eq!(l3_of(4, 4, 0).as_slice(), [0, 0, 0, 0]);
        assert_eq!(l3_of(4, 4, 2).as_slice(), [0, 0, 1, 1]);
        assert_eq!(l3_of(6, 3, 2).as_slice(), [0, 0, 1, 2, 2, 3]);
        assert_eq!(l3_of(4, 2, 8).as_slice(), [0, 0, 1, 1]);
    }
}
