//! Scheduling domains: the CPUs that share a core, a last-level cache, a NUMA node, and the machine.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, Table, Time};

/// Resource that the CPUs of a level share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    Core,
    Cache,
    /// A node, or the machine.
    Memory,
}

/// A scheduling domain of a CPU (the kernel's `sched_domain`).
#[derive(Clone, Debug)]
pub struct Level {
    pub sharing: Sharing,
    pub cpus: CpuMask,
    /// The CPU's own group: its CPUs of the level below. Groups are balanced against each other.
    pub own: CpuMask,
    pub groups: Vec<CpuMask>,
    /// Whether a level is below this one.
    pub nested: bool,
    /// Time at which this CPU last balanced the level, the interval in ms, and the number of failures in a row.
    pub balanced_at: Time,
    pub interval_ms: i64,
    pub failed: u32,
}

impl Level {
    /// A copy to be changed while the host's other state is.
    pub fn clone_without_groups(&self) -> Self {
        Level { groups: Vec::new(), ..*self }
    }

    pub fn size(&self) -> i64 {
        self.cpus.len().into()
    }

    /// Load of a group, in percent of the own group's, above which groups of this level are balanced (`imbalance_pct`).
    pub fn imbalance_percent(&self) -> u64 {
        if self.sharing == Sharing::Core { 110 } else { 117 }
    }

    /// Number of failures to move cache-hot tasks after which they are moved all the same.
    pub fn tries(&self) -> u32 {
        match self.sharing {
            Sharing::Core => 0,
            Sharing::Cache => 1,
            Sharing::Memory => 2,
        }
    }
}

/// The CPUs that share a last-level cache: those of a socket, or of a node where that is smaller.
fn cache_mates(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    let socket = *ctx.socket_mates(cpu);
    let node = ctx.nodes().iter().find(|node| node.contains(cpu)).copied().unwrap_or(socket);
    let mates = if node.len() < socket.len() { node } else { socket };
    mates.and(ctx.pcpus())
}

fn core_mates(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    ctx.siblings(cpu).and(ctx.pcpus())
}

/// The levels of a CPU, the smallest first.
fn levels_of(ctx: &PolicyContext, cpu: PcpuId) -> Vec<Level> {
    let node = |cpu: PcpuId| ctx.nodes().iter().find(|node| node.contains(cpu)).copied();
    let memory = |cpu: PcpuId| node(cpu).unwrap_or(*ctx.pcpus()).and(ctx.pcpus());
    type Mates<'a> = (Sharing, &'a dyn Fn(PcpuId) -> CpuMask);
    let all: [Mates; 4] = [
        (Sharing::Core, &|cpu| core_mates(ctx, cpu)),
        (Sharing::Cache, &|cpu| cache_mates(ctx, cpu)),
        (Sharing::Memory, &memory),
        (Sharing::Memory, &|_| *ctx.pcpus()),
    ];
    let mut levels: Vec<Level> = Vec::new();
    let mut below: Option<&dyn Fn(PcpuId) -> CpuMask> = None;
    for (sharing, mates) in all {
        let cpus = mates(cpu);
        let part = |cpu: PcpuId| below.map_or(CpuMask::only(cpu), |below| below(cpu));
        if cpus.len() <= part(cpu).len() {
            continue;
        }
        let firsts = cpus.iter().filter(|&other| part(other).first() == Some(other));
        let groups = firsts.map(part).collect();
        let interval_ms = cpus.len().into();
        levels.push(Level {
            sharing,
            cpus,
            own: part(cpu),
            groups,
            nested: below.is_some(),
            balanced_at: Time::ZERO,
            interval_ms,
            failed: 0,
        });
        below = Some(mates);
    }
    levels
}

/// Scheduling domains of all CPUs, and the state of their last-level caches.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    pub of: Table<PcpuId, Vec<Level>>,
    cache: Table<PcpuId, CpuMask>,
    core: Table<PcpuId, CpuMask>,
    /// Number of CPUs of a cache that a waking thread scans, and whether a core of it may be idle; both by the cache's
    /// first CPU.
    scan: Table<PcpuId, u32>,
    idle_core: Table<PcpuId, bool>,
    pub threads: bool,
}

impl Levels {
    pub fn new(ctx: &PolicyContext) -> Self {
        let count = ctx.pcpu_count() as usize;
        let mut levels = Levels {
            of: Table::filled(count, Vec::new()),
            cache: Table::filled(count, CpuMask::EMPTY),
            core: Table::filled(count, CpuMask::EMPTY),
            scan: Table::filled(count, 0),
            idle_core: Table::filled(count, true),
            threads: false,
        };
        for cpu in ctx.pcpus().iter() {
            levels.of[cpu] = levels_of(ctx, cpu);
            (levels.cache[cpu], levels.core[cpu]) = (cache_mates(ctx, cpu), core_mates(ctx, cpu));
            levels.scan[cpu] = levels.cache[cpu].len();
            levels.threads |= levels.core[cpu].len() > 1;
        }
        levels
    }

    /// The CPUs that share a CPU's last-level cache, including itself.
    pub fn cache(&self, cpu: PcpuId) -> &CpuMask {
        &self.cache[cpu]
    }

    /// The threads of a CPU's core, including itself.
    pub fn core(&self, cpu: PcpuId) -> &CpuMask {
        &self.core[cpu]
    }

    fn first(&self, cpu: PcpuId) -> PcpuId {
        self.cache[cpu].first().unwrap_or(cpu)
    }

    /// Number of CPUs of its last-level cache that a waking thread scans.
    pub fn scan(&self, cpu: PcpuId) -> u32 {
        self.scan[self.first(cpu)]
    }

    pub fn set_scan(&mut self, cpu: PcpuId, scan: u32) {
        let first = self.first(cpu);
        self.scan[first] = scan;
    }

    /// Whether a core of the CPU's cache may be wholly idle (`has_idle_cores`).
    pub fn idle_core(&self, cpu: PcpuId) -> bool {
        self.idle_core[self.first(cpu)]
    }

    pub fn set_idle_core(&mut self, cpu: PcpuId, known: bool) {
        let first = self.first(cpu);
        self.idle_core[first] = known;
    }
}
