//! Topology: the threads, cores, sockets and nodes of a host, its CPU pools, and the resources that its schedulers share out.

use crate::{CpuMask, Granularity, HostConfig, Numbering, PcpuId, PoolId, Table, TopologyConfig};

/// The pCPUs of a host, their places in it and their pools.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    places: Table<PcpuId, Place>,
    siblings: Table<PcpuId, CpuMask>,
    sockets: Vec<CpuMask>,
    nodes: Vec<CpuMask>,
    threads: u32,
    pools: Table<PoolId, CpuMask>,
    pool_of: Table<PcpuId, PoolId>,
    granularity: Granularity,
    /// The number of pCPUs of each resource.
    unit_size: u32,
    /// The first pCPU of each resource of each pool.
    masters: Table<PoolId, CpuMask>,
}

/// The pCPUs that are scheduled together on a host, by its granularity: ascending by the lowest of each.
pub fn resources(config: &HostConfig) -> Vec<CpuMask> {
    let topology = Topology::new(&HostConfig { pools: Vec::new(), ..config.clone() });
    topology.all_masters().iter().map(|master| topology.resource(master)).collect()
}

/// The place of a pCPU. Cores are counted over the whole host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    core: u32,
    socket: u32,
    node: u32,
    /// Number of the pCPU among those of its socket, core by core.
    in_socket: u32,
}

impl Place {
    /// Without a topology each pCPU is a core of its own, and there is one node.
    fn flat(p: u32, per_socket: u32) -> Self {
        Place { core: p, socket: p / per_socket, node: 0, in_socket: p % per_socket }
    }

    fn within(p: u32, topology: &TopologyConfig) -> Self {
        let TopologyConfig { sockets, cores, threads, nodes, numbering } = *topology;
        let (core, thread) = match numbering {
            Numbering::Adjacent => (p / threads, p % threads),
            Numbering::Spread => (p % (sockets * cores), p / (sockets * cores)),
        };
        let (socket, within) = (core / cores, core % cores);
        let node = match nodes.checked_div(sockets) {
            Some(per_socket) if nodes > sockets => socket * per_socket + within * per_socket / cores,
            _ => socket * nodes / sockets,
        };
        Place { core, socket, node, in_socket: within * threads + thread }
    }
}

impl TopologyConfig {
    /// The NUMA node of a pCPU.
    pub fn node(&self, p: PcpuId) -> u32 {
        Place::within(p.0, self).node
    }
}

impl HostConfig {
    /// The number of vCPUs of a domain that are scheduled together.
    ///
    /// # Panics
    /// If a pCPU is in no pool, or a core or socket that is a unit of scheduling in several.
    pub fn unit_size(&self) -> u32 {
        Topology::new(self).unit_size()
    }
}

impl Topology {
    /// # Panics
    /// If a pCPU is in no pool, or a resource in several.
    pub fn new(config: &HostConfig) -> Self {
        let all = CpuMask::first_n(config.pcpus);
        let per_socket = if config.pcpus_per_socket == 0 { config.pcpus } else { config.pcpus_per_socket };
        let place = |p: PcpuId| match &config.topology {
            Some(topology) => Place::within(p.0, topology),
            None => Place::flat(p.0, per_socket),
        };
        let places: Table<PcpuId, Place> = all.iter().map(place).collect();
        let alike = |part: fn(&Place) -> u32, number: u32| -> CpuMask {
            places.enumerate().filter(|(_, place)| part(place) == number).map(|(p, _)| p).collect()
        };
        let groups = |part: fn(&Place) -> u32| -> Vec<CpuMask> {
            let count = places.iter().map(part).max().map_or(0, |last| last + 1);
            (0..count).map(|number| alike(part, number)).collect()
        };
        let cores = groups(|place| place.core);
        let pools: Table<PoolId, _> =
            if config.pools.is_empty() { vec![all].into() } else { config.pools.clone().into() };
        let pool_of = |p| pools.ids().find(|&pool| pools[pool].contains(p)).expect("each pCPU is in a pool");
        let mut topology = Topology {
            siblings: places.iter().map(|place| cores[place.core as usize]).collect(),
            sockets: groups(|place| place.socket),
            nodes: groups(|place| place.node),
            threads: config.topology.map_or(1, |topology| topology.threads),
            pool_of: all.iter().map(pool_of).collect(),
            places,
            granularity: Granularity::Cpu,
            unit_size: 1,
            masters: pools.clone(),
            pools,
        };
        topology.form_resources(config.granularity);
        topology
    }

    /// Makes resources of the granularity wanted; of a finer one, if they would not all have the same number of pCPUs.
    fn form_resources(&mut self, wanted: Granularity) {
        let all = CpuMask::first_n(self.places.len() as u32);
        self.granularity = wanted;
        self.unit_size = self.resource(PcpuId(0)).len();
        if all.iter().any(|p| self.resource(p).len() != self.unit_size) {
            let finer = if wanted == Granularity::Socket { Granularity::Core } else { Granularity::Cpu };
            return self.form_resources(finer);
        }
        let whole = |p| self.pools[self.pool_of[p]].contains_all(&self.resource(p));
        assert!(
            all.iter().all(whole),
            "a CPU pool has whole cores, or sockets, if they are the unit of scheduling"
        );
        let is_master = |&p: &PcpuId| self.resource(p).first() == Some(p);
        self.masters = self.pools.iter().map(|pool| pool.iter().filter(is_master).collect()).collect();
    }

    /// The core of a pCPU, counted over the whole host.
    pub fn core(&self, p: PcpuId) -> u32 {
        self.places[p].core
    }

    /// The core of each pCPU.
    pub fn cores(&self) -> Table<PcpuId, usize> {
        self.places.iter().map(|place| place.core as usize).collect()
    }

    /// The socket of a pCPU.
    pub fn socket(&self, p: PcpuId) -> u32 {
        self.places[p].socket
    }

    /// The NUMA node of a pCPU.
    pub fn node(&self, p: PcpuId) -> u32 {
        self.places[p].node
    }

    /// The threads of its core.
    #[inline(always)]
    pub fn siblings(&self, p: PcpuId) -> &CpuMask {
        &self.siblings[p]
    }

    /// The pCPUs of its socket.
    #[inline(always)]
    pub fn socket_mates(&self, p: PcpuId) -> &CpuMask {
        &self.sockets[self.places[p].socket as usize]
    }

    /// The pCPUs of each node.
    #[inline(always)]
    pub fn nodes(&self) -> &[CpuMask] {
        &self.nodes
    }

    /// The threads of each core.
    pub fn threads(&self) -> u32 {
        self.threads
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

    /// The number of pCPUs of each resource.
    #[inline(always)]
    pub fn unit_size(&self) -> u32 {
        self.unit_size
    }

    /// The pCPUs that are scheduled together with a pCPU, itself included.
    pub fn resource(&self, p: PcpuId) -> CpuMask {
        match self.granularity {
            Granularity::Cpu => CpuMask::only(p),
            Granularity::Core => *self.siblings(p),
            Granularity::Socket => *self.socket_mates(p),
        }
    }

    /// The resources of a pool, each by its first pCPU.
    #[inline(always)]
    pub fn masters(&self, pool: PoolId) -> &CpuMask {
        &self.masters[pool]
    }

    /// The resources of the host, each by its first pCPU.
    pub fn all_masters(&self) -> CpuMask {
        self.masters.iter().fold(CpuMask::EMPTY, |all, masters| all.or(masters))
    }

    /// The pool of a pCPU, if the host has one of that number.
    #[inline(always)]
    pub fn pool_of(&self, p: PcpuId) -> Option<PoolId> {
        self.pool_of.get(p).copied()
    }

    /// The group of pCPUs that share an L3 with each pCPU, as groups numbered from 0: `per_l3` of a socket (0: all).
    pub fn l3_groups(&self, per_l3: u32) -> Table<PcpuId, usize> {
        let per_socket = self.sockets.iter().map(CpuMask::len).max().unwrap_or(1);
        let per_l3 = if per_l3 == 0 { per_socket } else { per_l3.min(per_socket) };
        let group = |place: &Place| place.socket * per_socket.div_ceil(per_l3) + place.in_socket / per_l3;
        self.places.iter().map(|place| group(place) as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_l3_may_be_shared_by_fewer_pcpus_than_a_socket_has() {
        let l3_of = |pcpus, pcpus_per_socket, per_l3| {
            let config = HostConfig { pcpus, pcpus_per_socket, ..HostConfig::default() };
            Topology::new(&config).l3_groups(per_l3)
        };
        assert_eq!(l3_of(4, 4, 0).as_slice(), [0, 0, 0, 0]);
        assert_eq!(l3_of(4, 4, 2).as_slice(), [0, 0, 1, 1]);
        assert_eq!(l3_of(6, 3, 2).as_slice(), [0, 0, 1, 2, 2, 3]);
        assert_eq!(l3_of(4, 2, 8).as_slice(), [0, 0, 1, 1]);
    }

    fn places(topology: TopologyConfig) -> Vec<(u32, u32, u32)> {
        let places = (0..topology.pcpus()).map(|p| Place::within(p, &topology));
        places.map(|place| (place.core, place.socket, place.node)).collect()
    }

    #[test]
    fn threads_are_numbered_beside_each_other_or_apart() {
        let topology =
            TopologyConfig { sockets: 2, cores: 2, threads: 2, nodes: 2, numbering: Numbering::Adjacent };
        let cores = [0, 0, 1, 1, 2, 2, 3, 3].map(|core| (core, core / 2, core / 2));
        assert_eq!(places(topology), cores);
        let cores = [0, 1, 2, 3, 0, 1, 2, 3].map(|core| (core, core / 2, core / 2));
        assert_eq!(places(TopologyConfig { numbering: Numbering::Spread, ..topology }), cores);
    }

    #[test]
    fn a_socket_may_have_several_nodes_and_a_node_several_sockets() {
        let topology =
            TopologyConfig { sockets: 2, cores: 4, threads: 1, nodes: 4, numbering: Numbering::Adjacent };
        assert_eq!(
            places(topology).iter().map(|place| place.2).collect::<Vec<_>>(),
            [0, 0, 1, 1, 2, 2, 3, 3]
        );
        let one = TopologyConfig { nodes: 1, ..topology };
        assert!(places(one).iter().all(|place| place.2 == 0));
    }

    #[test]
    fn resources_are_of_a_finer_granularity_where_they_would_differ_in_size() {
        let of = |pcpus, pcpus_per_socket, topology, granularity| {
            let config =
                HostConfig { pcpus, pcpus_per_socket, topology, granularity, ..HostConfig::default() };
            let topology = Topology::new(&config);
            (topology.unit_size(), topology.masters(PoolId(0)).to_string())
        };
        let smt = TopologyConfig { sockets: 2, cores: 2, threads: 2, nodes: 1, numbering: Numbering::Spread };
        assert_eq!(of(8, 0, Some(smt), Granularity::Cpu), (1, "0-7".into()));
        assert_eq!(of(8, 0, Some(smt), Granularity::Core), (2, "0-3".into()));
        let smt = TopologyConfig { numbering: Numbering::Adjacent, ..smt };
        assert_eq!(of(8, 0, Some(smt), Granularity::Core), (2, "0,2,4,6".into()));
        assert_eq!(of(8, 0, Some(smt), Granularity::Socket), (4, "0,4".into()));
        assert_eq!(of(8, 4, None, Granularity::Socket), (4, "0,4".into()));
        assert_eq!(of(6, 4, None, Granularity::Socket), (1, "0-5".into()), "sockets of 4 and 2");
        assert_eq!(of(6, 4, None, Granularity::Core), (1, "0-5".into()));
    }

    #[test]
    #[should_panic(expected = "whole cores")]
    fn a_pool_cannot_divide_a_core() {
        let smt =
            TopologyConfig { sockets: 1, cores: 2, threads: 2, nodes: 1, numbering: Numbering::Adjacent };
        let pools = vec![CpuMask::only(PcpuId(0)), CpuMask::first_n(4).without(&CpuMask::only(PcpuId(0)))];
        let granularity = Granularity::Core;
        Topology::new(&HostConfig {
            pcpus: 4,
            topology: Some(smt),
            pools,
            granularity,
            ..HostConfig::default()
        });
    }
}
