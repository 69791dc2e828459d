//! Scheduling domains: the CPUs that share a core, a last-level cache, a NUMA node, and the machine.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, Span, Table, Time};

use super::newidle::NewidleStats;

/// Resource that the CPUs of a scheduling domain share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// A core (SMT).
    Core,
    /// A last-level cache (MC).
    Llc,
    /// A node, or the machine.
    Memory,
}

/// A scheduling domain of a CPU (`sched_domain`).
#[derive(Clone, Debug)]
pub struct SchedDomain {
    pub sharing: Sharing,
    /// The CPUs of the domain.
    pub span: CpuMask,
    /// The CPU's own group: the span of the domain below.
    pub local_group: CpuMask,
    /// All groups (`sched_group`), which are balanced against each other.
    pub groups: Vec<CpuMask>,
    /// Whether a domain is below this one.
    pub has_child: bool,
    /// Time at which the CPU last balanced the domain.
    pub last_balance: Time,
    /// Interval of balancing, ms.
    pub balance_interval_ms: i64,
    /// Number of failures to balance in a row.
    pub nr_balance_failed: u32,
    /// Searches of the domain before the CPU idles.
    pub newidle: NewidleStats,
}

impl SchedDomain {
    /// A copy to be changed while the host's other state is.
    pub fn clone_without_groups(&self) -> Self {
        SchedDomain { groups: Vec::new(), ..*self }
    }

    /// Number of CPUs of the domain.
    pub fn span_weight(&self) -> i64 {
        self.span.len().into()
    }

    /// Load of a group, in percent of the own group's, above which groups of this domain are balanced.
    pub fn imbalance_pct(&self) -> u64 {
        if self.sharing == Sharing::Core { 110 } else { 117 }
    }

    /// Number of failures to move cache-hot tasks after which they are moved all the same.
    pub fn cache_nice_tries(&self) -> u32 {
        match self.sharing {
            Sharing::Core => 0,
            Sharing::Llc => 1,
            Sharing::Memory => 2,
        }
    }
}

/// The CPUs that are balanced together with a CPU: all that are not isolated, or an isolated CPU alone.
fn balanced(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    let isolated = &ctx.isolation().isolated;
    if isolated.contains(cpu) { CpuMask::only(cpu) } else { ctx.pcpus().without(isolated) }
}

/// The CPUs of a CPU's domains that share a last-level cache: those of a socket, or of a node where that is smaller.
fn cache_mates(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    let socket = *ctx.socket_mates(cpu);
    let node = ctx.nodes().iter().find(|node| node.contains(cpu)).copied().unwrap_or(socket);
    let mates = if node.len() < socket.len() { node } else { socket };
    mates.and(&balanced(ctx, cpu))
}

fn core_mates(ctx: &PolicyContext, cpu: PcpuId) -> CpuMask {
    ctx.siblings(cpu).and(ctx.pcpus())
}

/// The scheduling domains of a CPU, the smallest first. An isolated CPU has none.
fn domains_of(ctx: &PolicyContext, cpu: PcpuId) -> Vec<SchedDomain> {
    let all_cpus = balanced(ctx, cpu);
    let node = |cpu: PcpuId| ctx.nodes().iter().find(|node| node.contains(cpu)).copied();
    let memory = |cpu: PcpuId| node(cpu).unwrap_or(all_cpus).and(&all_cpus);
    type Mates<'a> = (Sharing, &'a dyn Fn(PcpuId) -> CpuMask);
    let all: [Mates; 4] = [
        (Sharing::Core, &|cpu| core_mates(ctx, cpu).and(&all_cpus)),
        (Sharing::Llc, &|cpu| cache_mates(ctx, cpu)),
        (Sharing::Memory, &memory),
        (Sharing::Memory, &|_| all_cpus),
    ];
    let mut domains: Vec<SchedDomain> = Vec::new();
    let mut below: Option<&dyn Fn(PcpuId) -> CpuMask> = None;
    for (sharing, mates) in all {
        let cpus = mates(cpu);
        let part = |cpu: PcpuId| below.map_or(CpuMask::only(cpu), |below| below(cpu));
        if cpus.len() <= part(cpu).len() {
            continue;
        }
        let firsts = cpus.iter().filter(|&other| part(other).first() == Some(other));
        let groups = firsts.map(part).collect();
        let balance_interval_ms = cpus.len().into();
        domains.push(SchedDomain {
            sharing,
            span: cpus,
            local_group: part(cpu),
            groups,
            has_child: below.is_some(),
            last_balance: Time::ZERO,
            balance_interval_ms,
            nr_balance_failed: 0,
            newidle: NewidleStats::NEW,
        });
        below = Some(mates);
    }
    domains
}

/// Scheduling domains of all CPUs, and the state of their last-level caches.
#[derive(Clone, Debug, Default)]
pub struct SchedDomains {
    /// Scheduling domains of each CPU, the smallest first.
    pub by_cpu: Table<PcpuId, Vec<SchedDomain>>,
    llc: Table<PcpuId, CpuMask>,
    smt: Table<PcpuId, CpuMask>,
    /// Number of CPUs of a cache that a waking thread scans, by the cache's first CPU.
    nr_idle_scan: Table<PcpuId, u32>,
    /// Whether a core of a cache may be wholly idle, by the cache's first CPU.
    idle_cores: Table<PcpuId, bool>,
    /// Whether cores have several threads.
    pub smt_active: bool,
}

impl SchedDomains {
    pub fn new(ctx: &PolicyContext) -> Self {
        let count = ctx.pcpu_count() as usize;
        let mut domains = SchedDomains {
            by_cpu: Table::filled(count, Vec::new()),
            llc: Table::filled(count, CpuMask::EMPTY),
            smt: Table::filled(count, CpuMask::EMPTY),
            nr_idle_scan: Table::filled(count, 0),
            idle_cores: Table::filled(count, true),
            smt_active: false,
        };
        for cpu in ctx.pcpus().iter() {
            domains.by_cpu[cpu] = domains_of(ctx, cpu);
            (domains.llc[cpu], domains.smt[cpu]) = (cache_mates(ctx, cpu), core_mates(ctx, cpu));
            domains.nr_idle_scan[cpu] = domains.llc[cpu].len();
            domains.smt_active |= domains.smt[cpu].len() > 1;
        }
        domains
    }

    /// The believed cost of a search of all domains of a CPU (`rq->max_idle_balance_cost`); at least `least`.
    pub fn max_idle_balance_cost(&self, cpu: PcpuId, least: Span) -> Span {
        let costs = self.by_cpu[cpu].iter().map(|sd| sd.newidle.believed_cost());
        costs.fold(Span::ZERO, |sum, cost| sum + cost).max(least)
    }

    /// The CPUs that share a CPU's last-level cache, including itself.
    pub fn llc(&self, cpu: PcpuId) -> &CpuMask {
        &self.llc[cpu]
    }

    /// The threads of a CPU's core, including itself.
    pub fn smt(&self, cpu: PcpuId) -> &CpuMask {
        &self.smt[cpu]
    }

    fn first(&self, cpu: PcpuId) -> PcpuId {
        self.llc[cpu].first().unwrap_or(cpu)
    }

    /// Number of CPUs of its last-level cache that a waking thread scans.
    pub fn nr_idle_scan(&self, cpu: PcpuId) -> u32 {
        self.nr_idle_scan[self.first(cpu)]
    }

    pub fn set_nr_idle_scan(&mut self, cpu: PcpuId, scan: u32) {
        let first = self.first(cpu);
        self.nr_idle_scan[first] = scan;
    }

    /// Whether a core of the CPU's cache may be wholly idle.
    pub fn has_idle_cores(&self, cpu: PcpuId) -> bool {
        self.idle_cores[self.first(cpu)]
    }

    pub fn set_has_idle_cores(&mut self, cpu: PcpuId, idle_cores: bool) {
        let first = self.first(cpu);
        self.idle_cores[first] = idle_cores;
    }
}
