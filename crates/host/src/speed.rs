//! Speed: how fast a pCPU executes, by what shares its core, its node and its power with it.
//!
//! CPU times of programs are those of a thread that has its core, local memory and the nominal frequency to itself. Executed
//! here, a nanosecond of such work takes a *unit* of time,
//!
//! ```text
//! unit = s · ((1 − m) · nominal / frequency + m · (1 + distance + crowding))
//! ```
//!
//! * m, the *memory share*: the part of its time in which that kind of work waits for memory, which no frequency shortens;
//! * s, *threads*: what busy siblings on the core cost it, by the kinds of work of both;
//! * *distance*: how much longer memory on other nodes takes, by the nodes that hold the domain's memory;
//! * *crowding*: how much longer memory takes where threads want more of a node, or of its links to others, than it can
//!   bring. It is such that what they want, each the slower the more crowded it is, is what there is; a domain with memory on
//!   several nodes is taken to find the others as crowded;
//! * *frequency*: turbo by the active cores of a socket, and the governor's choice for the core.
//!
//! When a pCPU turns to something else, the units of all those that feel it change at once. What a vCPU loses by each cause is
//! counted: the time it has gotten less that is the *work* it has done. Only progress is slowed; the costs of the hypervisor and
//! of cold caches are as long as measured. Nothing here costs anything where [`Speeds::new`] finds nothing to do.

use std::ops::{Add, AddAssign, Sub};

use crate::hardware::KINDS;
use crate::topology::Topology;
use crate::{CpuMask, DomId, Governor, Hardware, HostConfig, PcpuId, Span, Table, VcpuId};

/// Distance below its threshold at which the ondemand governor leaves a core, percentage points (the same paper's
/// differential).
const GOVERNOR_DIFFERENTIAL: u32 = 10;

/// Frequencies come in steps of this, MHz, as processors have them.
const STEP_MHZ: u32 = 100;

/// Time that was gotten and not worked, by cause. Frequencies above the nominal one make it less than nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slowed {
    /// Busy siblings on the core.
    pub threads_ns: Span,
    /// Memory that is far, or crowded.
    pub memory_ns: Span,
    /// A frequency other than the nominal one.
    pub frequency_ns: Span,
}

impl Slowed {
    /// The lost time of all causes.
    pub fn total(self) -> Span {
        self.threads_ns + self.memory_ns + self.frequency_ns
    }
}

impl Add for Slowed {
    type Output = Slowed;

    fn add(self, other: Slowed) -> Slowed {
        Slowed {
            threads_ns: self.threads_ns + other.threads_ns,
            memory_ns: self.memory_ns + other.memory_ns,
            frequency_ns: self.frequency_ns + other.frequency_ns,
        }
    }
}

impl AddAssign for Slowed {
    fn add_assign(&mut self, other: Slowed) {
        *self = *self + other;
    }
}

impl Sub for Slowed {
    type Output = Slowed;

    fn sub(self, other: Slowed) -> Slowed {
        Slowed {
            threads_ns: self.threads_ns - other.threads_ns,
            memory_ns: self.memory_ns - other.memory_ns,
            frequency_ns: self.frequency_ns - other.frequency_ns,
        }
    }
}

/// 1, as fractions are counted here.
pub(crate) const ONE: i64 = 1 << 16;

/// No unit is longer.
const UNIT_MAX: i64 = 1000 * ONE;

/// The unit of a pCPU, and the parts of it that are losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    unit: i64,
    threads: i64,
    memory: i64,
}

impl Pace {
    const NOMINAL: Pace = Pace { unit: ONE, threads: 0, memory: 0 };

    /// The time for a nanosecond of work, in fractions of [`ONE`].
    pub fn unit(&self) -> i64 {
        self.unit
    }

    /// `gotten` of time in which `work` was done, by what made the difference.
    fn causes(&self, gotten: Span, work: Span) -> Slowed {
        let part = |part: i64| {
            Span::from_ns((i128::from(gotten.ns()) * i128::from(part) / i128::from(self.unit)) as i64)
        };
        let (threads_ns, memory_ns) = (part(self.threads), part(self.memory));
        let mut slowed = Slowed { threads_ns, memory_ns, frequency_ns: Span::ZERO };
        // What was rounded goes to the last cause that there is.
        let rest = gotten - work - slowed.total();
        match self.unit - ONE - self.threads - self.memory {
            0 if self.memory > 0 => slowed.memory_ns += rest,
            0 if self.threads > 0 => slowed.threads_ns += rest,
            _ => slowed.frequency_ns += rest,
        }
        slowed
    }
}

/// Properties of a domain that decide the speed of its vCPUs.
#[derive(Clone, Debug)]
struct Domain {
    kind: usize,
    /// Latency of the domain's memory by the node where it executes, in addition to the latency of local memory, in
    /// fractions of [`ONE`].
    distance: Vec<i64>,
    /// The nodes that hold its memory, each as much.
    memory_nodes: Vec<usize>,
}

/// State of a pCPU: the domain that it executes, and its pace.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The domain whose vCPU it executes.
    dom: Option<DomId>,
    pace: Pace,
    /// Bandwidth that the pCPU wants from each node that holds the domain's memory.
    wants: Wants,
    /// Idle time of the pCPU at the governor's last sample.
    idle: Span,
}

/// Bandwidth that threads want from a node's memory as long as the memory is not crowded.
#[derive(Clone, Copy, Debug, Default)]
struct Wants {
    /// MB/s in fractions of [`ONE`].
    bandwidth: i64,
    /// Bandwidth times the unit that each thread would have without siblings; the mean unit, weighted by bandwidth, is
    /// the quotient of the two.
    times_unit: i64,
}

impl AddAssign for Wants {
    fn add_assign(&mut self, more: Wants) {
        self.bandwidth += more.bandwidth;
        self.times_unit += more.times_unit;
    }
}

impl Sub for Wants {
    type Output = Wants;

    fn sub(self, less: Wants) -> Wants {
        Wants { bandwidth: self.bandwidth - less.bandwidth, times_unit: self.times_unit - less.times_unit }
    }
}

/// The memory of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// Bandwidth that each kind of work wants from the memory, from the node itself and from other nodes.
    wanted: [[Wants; KINDS]; 2],
    /// Addition to the latency, relative to local memory, for pCPUs of the node itself and of other nodes.
    crowding: [i64; 2],
}

/// The speed of each pCPU.
#[derive(Clone, Debug)]
pub(crate) struct Speeds {
    hardware: Hardware,
    topology: Topology,
    domains: Table<DomId, Domain>,
    places: Table<PcpuId, Place>,
    /// By core: the number of busy threads, and the frequency that the governor wants, MHz.
    busy_threads: Vec<u32>,
    wanted_mhz: Vec<u32>,
    /// By socket: the number of active cores, of all cores, and the highest frequency, MHz.
    active_cores: Vec<u32>,
    cores: Vec<u32>,
    limit_mhz: Vec<u32>,
    /// By node.
    memory: Vec<Memory>,
    slowed: Table<VcpuId, Slowed>,
}

impl Speeds {
    /// `None`: whatever runs where, on this hardware it runs at nominal speed.
    pub fn new(config: &HostConfig, topology: &Topology) -> Option<Self> {
        let Hardware { nominal_mhz, turbo_one_core_mhz, turbo_all_cores_mhz, min_mhz, governor, .. } =
            config.hardware;
        let nodes = topology.nodes().len();
        let threads = topology.threads() > 1
            && config.hardware.beside_percent.iter().flatten().any(|&beside| beside != 100);
        let distance = nodes > 1 && config.hardware.numa_distance > 10;
        let memory = config.hardware.memory_share_percent.iter().any(|&share| share > 0);
        let crowded = config.hardware.node_mb_per_s > 0 || config.hardware.link_mb_per_s > 0;
        let turbo = turbo_one_core_mhz != nominal_mhz || turbo_all_cores_mhz != nominal_mhz;
        let governed = governor != Governor::Performance && min_mhz < turbo_one_core_mhz;
        if !(threads || memory && (distance || crowded) || turbo || governed) {
            return None;
        }
        let far = i64::from(config.hardware.numa_distance.max(10) - 10) * ONE / 10;
        let domain = |domain: &crate::DomainConfig| {
            let mut memory_nodes: Vec<usize> =
                domain.memory_nodes.iter().map(|&node| node as usize).filter(|&node| node < nodes).collect();
            if memory_nodes.is_empty() {
                memory_nodes = (0..nodes).collect();
            }
            let distance = |node| {
                let others = memory_nodes.iter().filter(|&&memory| memory != node).count();
                far * others as i64 / memory_nodes.len() as i64
            };
            Domain { kind: domain.bound as usize, distance: (0..nodes).map(distance).collect(), memory_nodes }
        };
        let pcpus = CpuMask::first_n(config.pcpus);
        let sockets = pcpus.iter().map(|p| topology.socket(p)).max().map_or(0, |last| last as usize + 1);
        let mut cores = vec![0; sockets];
        let first_of_core = |&p: &PcpuId| topology.siblings(p).first() == Some(p);
        for p in pcpus.iter().filter(first_of_core) {
            cores[topology.socket(p) as usize] += 1;
        }
        let highest = turbo_one_core_mhz;
        let first_mhz = if governor == Governor::Performance { highest } else { min_mhz };
        let all_cores = cores.iter().sum::<u32>() as usize;
        let place = Place { dom: None, pace: Pace::NOMINAL, wants: Wants::default(), idle: Span::ZERO };
        Some(Speeds {
            hardware: config.hardware,
            domains: config.domains.iter().map(domain).collect(),
            places: Table::filled(config.pcpus as usize, place),
            busy_threads: vec![0; all_cores],
            wanted_mhz: vec![first_mhz; all_cores],
            active_cores: vec![0; sockets],
            cores,
            limit_mhz: vec![highest; sockets],
            memory: vec![Memory::default(); nodes],
            slowed: Table::new(),
            topology: topology.clone(),
        })
    }

    /// `p` executes a vCPU of this domain from now on, or is idle: the answer is those pCPUs that may feel it.
    pub fn turn(&mut self, p: PcpuId, dom: Option<DomId>) -> CpuMask {
        let before = std::mem::replace(&mut self.places[p].dom, dom);
        if before == dom {
            return CpuMask::EMPTY;
        }
        let mut feel = *self.topology.siblings(p);
        if before.is_some() != dom.is_some() && self.core_changes(p, dom.is_some()) {
            feel = feel.or(self.topology.socket_mates(p));
        }
        if let Some(before) = before {
            self.want(p, before, Wants::default());
        }
        self.crowd(feel)
    }

    /// A thread of the core of `p` is busy, or idle, from now on. True: the socket has another highest frequency.
    fn core_changes(&mut self, p: PcpuId, busy: bool) -> bool {
        let threads = &mut self.busy_threads[self.topology.core(p) as usize];
        let was_active = *threads > 0;
        *threads = if busy { *threads + 1 } else { *threads - 1 };
        let is_active = *threads > 0;
        if was_active == is_active {
            return false;
        }
        let socket = self.topology.socket(p) as usize;
        let active = if is_active { self.active_cores[socket] + 1 } else { self.active_cores[socket] - 1 };
        self.active_cores[socket] = active;
        let limit = self.highest_mhz(active, self.cores[socket]);
        limit != std::mem::replace(&mut self.limit_mhz[socket], limit)
    }

    /// The highest frequency while so many cores of a socket are active: from the one of a single core it falls to the one of all in
    /// even steps.
    fn highest_mhz(&self, active: u32, cores: u32) -> u32 {
        let Hardware { turbo_one_core_mhz: one, turbo_all_cores_mhz: all, .. } = self.hardware;
        if active <= 1 || one <= all {
            return if active <= 1 { one } else { all };
        }
        let lost = u64::from(one - all) * u64::from(active - 1) / u64::from(cores - 1);
        (one - lost as u32).next_multiple_of(STEP_MHZ).min(one)
    }

    /// Updates the bandwidth that these pCPUs want from memory, and how crowded each node is. The answer is the pCPUs
    /// whose speed may change.
    fn crowd(&mut self, feel: CpuMask) -> CpuMask {
        let Hardware { node_mb_per_s, link_mb_per_s, .. } = self.hardware;
        if node_mb_per_s == 0 && link_mb_per_s == 0 {
            return feel;
        }
        for q in feel.iter() {
            if let Some(dom) = self.places[q].dom {
                let (domain, Pace { unit, threads, .. }) = (&self.domains[dom], self.pace(q, dom, 0));
                let at_full_speed = i64::from(self.hardware.bandwidth_mb_per_s[domain.kind]);
                let bandwidth = at_full_speed * ONE * ONE / unit / domain.memory_nodes.len() as i64;
                self.want(q, dom, Wants { bandwidth, times_unit: bandwidth * (unit - threads) / ONE });
            }
        }
        let mut changed = false;
        for node in 0..self.memory.len() {
            let [near, far] = self.memory[node].wanted;
            // What the links do not bring, the node need not.
            let of_links = self.crowding(link_mb_per_s, |crowding| self.taken(&far, crowding));
            let of_node = self.crowding(node_mb_per_s, |crowding| {
                self.taken(&near, crowding) + self.taken(&far, crowding.max(of_links))
            });
            let crowding = [of_node, of_node.max(of_links)];
            changed |= crowding != std::mem::replace(&mut self.memory[node].crowding, crowding);
        }
        if changed { CpuMask::first_n(self.places.len() as u32) } else { feel }
    }

    /// `p`, which executes a vCPU of `dom`, wants this from now on of each node that holds its memory.
    fn want(&mut self, p: PcpuId, dom: DomId, wants: Wants) {
        let more = wants - std::mem::replace(&mut self.places[p].wants, wants);
        let domain = &self.domains[dom];
        for &node in &domain.memory_nodes {
            let far = usize::from(node != self.topology.node(p) as usize);
            self.memory[node].wanted[far][domain.kind] += more;
        }
    }

    /// Bandwidth that the kinds of work use together if crowding adds m × crowding to their units, where m is the part
    /// of the time that a kind waits for memory.
    fn taken(&self, wanted: &[Wants; KINDS], crowding: i64) -> i64 {
        let taken = |(&Wants { bandwidth, times_unit }, &share): (&Wants, &u32)| {
            let wanted = i128::from(bandwidth) * i128::from(times_unit);
            let longer =
                i128::from(bandwidth) * i128::from(share) * i128::from(crowding) / i128::from(100 * ONE);
            if wanted == 0 { 0 } else { (wanted / (i128::from(times_unit) + longer)) as i64 }
        };
        wanted.iter().zip(&self.hardware.memory_share_percent).map(taken).sum()
    }

    /// The least crowding, in steps of 1/256, at which no more is taken than there is (0: whatever is wanted).
    fn crowding(&self, mb_per_s: u32, taken: impl Fn(i64) -> i64) -> i64 {
        const STEP: i64 = ONE / 256;
        let there_is = i64::from(mb_per_s) * ONE;
        if there_is == 0 || taken(0) <= there_is {
            return 0;
        }
        let (mut crowded, mut enough) = (0, UNIT_MAX / STEP);
        while enough - crowded > 1 {
            let middle = (crowded + enough) / 2;
            if taken(middle * STEP) > there_is { crowded = middle } else { enough = middle }
        }
        enough * STEP
    }

    /// The frequency of the core of `p`, MHz.
    fn mhz(&self, p: PcpuId) -> u32 {
        self.limit_mhz[self.topology.socket(p) as usize].min(self.wanted_mhz[self.topology.core(p) as usize])
    }

    /// The pace of work of a domain on `p`, if its memory is as crowded as this.
    fn pace(&self, p: PcpuId, dom: DomId, crowding: i64) -> Pace {
        let domain = &self.domains[dom];
        let share = i64::from(self.hardware.memory_share_percent[domain.kind]);
        let (nominal, mhz) = (i64::from(self.hardware.nominal_mhz), i64::from(self.mhz(p)));
        let core = (100 - share) * ONE * (nominal - mhz) / mhz / 100;
        let memory = share * (domain.distance[self.topology.node(p) as usize] + crowding) / 100;
        let alone = ONE + core + memory;
        // Each busy sibling takes what it takes from a thread that has only this one beside it.
        let beside = |q: PcpuId| {
            let kind = self.places[q].dom.map(|dom| self.domains[dom].kind);
            kind.map_or(0, |kind| {
                100 * ONE / i64::from(self.hardware.beside_percent[domain.kind][kind]) - ONE
            })
        };
        let siblings = self.topology.siblings(p).iter().filter(|&q| q != p);
        let threads = alone * siblings.map(beside).sum::<i64>() / ONE;
        let unit = (alone + threads).clamp(1, UNIT_MAX);
        Pace { unit, threads, memory }
    }

    /// The pace of `p` from now on, if it is another: what it has done so far is to be settled before it is [set](Self::set_pace).
    pub fn new_pace(&self, p: PcpuId) -> Option<Pace> {
        let pace = match self.places[p].dom {
            None => Pace::NOMINAL,
            Some(dom) => {
                let (here, nodes) = (self.topology.node(p) as usize, &self.domains[dom].memory_nodes);
                let crowding = |&node: &usize| self.memory[node].crowding[usize::from(node != here)];
                let all = nodes.iter().map(crowding).sum::<i64>();
                self.pace(p, dom, all / nodes.len() as i64)
            }
        };
        (pace != self.places[p].pace).then_some(pace)
    }

    pub fn set_pace(&mut self, p: PcpuId, pace: Pace) {
        self.places[p].pace = pace;
    }

    /// `v` has gotten this much time on `p`, and done that much work.
    pub fn count(&mut self, p: PcpuId, v: VcpuId, gotten: Span, work: Span) {
        *self.slowed.entry(v) += self.places[p].pace.causes(gotten, work);
    }

    /// Time that `v` lost by each cause; this time on `p`, which is not counted yet, is included.
    pub fn slowed(&self, v: VcpuId, p: PcpuId, gotten: Span, work: Span) -> Slowed {
        let counted = self.slowed.get(v).copied().unwrap_or_default();
        if gotten.is_zero() { counted } else { counted + self.places[p].pace.causes(gotten, work) }
    }

    /// Latency of memory for a vCPU of `dom` on `p`, relative to local memory, in fractions of [`ONE`].
    pub fn memory_distance(&self, p: PcpuId, dom: DomId) -> i64 {
        ONE + self.domains[dom].distance[self.topology.node(p) as usize]
    }

    /// The time after which the governor looks at the cores again, if it ever does.
    pub fn governor_sample(&self) -> Option<Span> {
        (self.hardware.governor == Governor::Ondemand).then_some(self.hardware.governor_sample)
    }

    /// The governor looks at how long each pCPU was idle so far, and chooses frequencies: all pCPUs may feel it.
    pub fn govern(&mut self, idle: impl Fn(PcpuId) -> Span) -> CpuMask {
        let Hardware {
            governor_sample, governor_up_percent: up, min_mhz, turbo_one_core_mhz: highest, ..
        } = self.hardware;
        let all = CpuMask::first_n(self.places.len() as u32);
        for p in all.iter().filter(|&p| self.topology.siblings(p).first() == Some(p)) {
            let mut busy_percent = 0;
            for q in self.topology.siblings(p).iter() {
                let before = std::mem::replace(&mut self.places[q].idle, idle(q));
                let busy = governor_sample - (self.places[q].idle - before);
                busy_percent = u32::max(busy_percent, (busy.ns() * 100 / governor_sample.ns()) as u32);
            }
            let wanted = if busy_percent > up {
                highest
            } else {
                (self.mhz(p) * busy_percent / (up - GOVERNOR_DIFFERENTIAL)).next_multiple_of(STEP_MHZ)
            };
            self.wanted_mhz[self.topology.core(p) as usize] = wanted.clamp(min_mhz, highest);
        }
        self.crowd(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Bound, Costs, Decision, DomainConfig, Host, HostRules, HostState, Numbering, Op, PolicyContext,
        Scheduler, Slice, Time, TopologyConfig, VcpuConfig, World, WorldContext,
    };

    /// The vCPUs of the host on the pCPUs of the host, one by one.
    struct OneByOne;

    impl Scheduler for OneByOne {
        fn rules(&self) -> HostRules {
            HostRules::XEN_4_17
        }

        fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

        fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
            let p = self.pick(ctx, v);
            ctx.set_processor(v, p);
        }

        fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
            ctx.raise_reschedule(ctx.processor(v));
        }

        fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
            ctx.raise_reschedule(ctx.processor(v));
        }

        fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
            let its = VcpuId(p.0 + ctx.pcpu_count());
            let its = ctx.pool_vcpus().find(|&v| v == its && ctx.runnable(v));
            Decision { next: its.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
        }

        fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
            PcpuId(v.0 - ctx.pcpu_count())
        }
    }

    /// Each vCPU computes for this long, µs, and sleeps for so long, again and again.
    struct Turns(Vec<(i64, i64)>, Vec<bool>);

    impl World for Turns {
        fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, _left: Span) -> Op {
            let its = (v.0 - ctx.host().pcpu_count()) as usize;
            let (computes, sleeps) = self.0[its];
            let has_computed = &mut self.1[its];
            *has_computed = !*has_computed && sleeps > 0;
            if *has_computed || sleeps == 0 {
                Op::Run(Span::from_us(computes))
            } else {
                Op::Block(Some(ctx.now() + Span::from_us(sleeps)))
            }
        }
    }

    const ALWAYS: (i64, i64) = (100, 0);

    const SMT: TopologyConfig =
        TopologyConfig { sockets: 1, cores: 2, threads: 2, nodes: 1, numbering: Numbering::Adjacent };
    const NODES: TopologyConfig = TopologyConfig { sockets: 2, cores: 2, threads: 1, nodes: 2, ..SMT };

    /// A host whose pCPUs have these programs, each a domain of its own, after 100 ms.
    fn run(
        topology: TopologyConfig,
        hardware: Hardware,
        domains: &[(Bound, &[u32], (i64, i64))],
    ) -> HostState {
        let vcpu = VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() };
        let domain = |&(bound, memory_nodes, _): &(Bound, &[u32], _)| DomainConfig {
            bound,
            memory_nodes: memory_nodes.to_vec(),
            vcpus: vec![vcpu.clone()],
            ..DomainConfig::default()
        };
        let config = HostConfig {
            pcpus: topology.pcpus(),
            topology: Some(topology),
            hardware,
            domains: domains.iter().map(domain).collect(),
            ..HostConfig::default()
        };
        let turns = domains.iter().map(|&(_, _, turns)| turns).collect();
        let mut host = Host::new(&config, OneByOne, Turns(turns, vec![false; domains.len()]), ()).unwrap();
        host.run_until(Time::from_ns(100_000_000)).unwrap();
        let state = host.into_parts().0;
        for p in state.all_pcpus().iter() {
            let (run, idle, overhead) = state.pcpu_times(p);
            assert_eq!(run + idle + overhead, Span::from_ms(100), "every nanosecond is somebody's");
        }
        state
    }

    /// The time gotten by each vCPU, µs, and what of it was lost to threads, memory and frequency.
    fn lost(state: &HostState) -> Vec<(i64, [i64; 3])> {
        let us = |span: Span| (span.ns() + 500).div_euclid(1000);
        let lost = |v| {
            let Slowed { threads_ns, memory_ns, frequency_ns } = state.slowed(v);
            (us(state.run_times(v).running_ns), [threads_ns, memory_ns, frequency_ns].map(us))
        };
        state.all_guest_vcpus().map(lost).collect()
    }

    #[test]
    fn two_busy_threads_share_a_core_by_their_kinds_of_work() {
        let beside_percent = [[50, 80, 100], [40, 100, 100], [100, 100, 100]];
        let hardware = Hardware { beside_percent, ..Hardware::NONE };
        let compute = (Bound::Compute, &[][..], ALWAYS);
        let state = run(SMT, hardware, &[compute, compute, compute, (Bound::Memory, &[], ALWAYS)]);
        let half = (100_000, [50_000, 0, 0]);
        assert_eq!(lost(&state), [half, half, (100_000, [20_000, 0, 0]), (100_000, [60_000, 0, 0])]);
    }

    #[test]
    fn an_idle_sibling_gives_its_share_back_at_once() {
        let hardware = Hardware { beside_percent: [[50; 3]; 3], ..Hardware::NONE };
        let turns = [ALWAYS, (100, 300)].map(|turns| (Bound::Compute, &[][..], turns));
        // The sibling computes 100 µs in 200, and sleeps for 300: in two fifths of the time the core is shared.
        let state = run(SMT, hardware, &turns);
        assert_eq!(lost(&state), [(100_000, [20_000, 0, 0]), (40_000, [20_000, 0, 0])]);
    }

    #[test]
    fn memory_of_another_node_is_slower_by_the_share_that_waits_for_it() {
        let hardware = Hardware { numa_distance: 20, memory_share_percent: [25, 50, 0], ..Hardware::NONE };
        let memory = |nodes: &'static [u32]| (Bound::Memory, nodes, ALWAYS);
        let state =
            run(NODES, hardware, &[memory(&[0]), memory(&[1]), (Bound::Compute, &[0], ALWAYS), memory(&[])]);
        let lost = lost(&state);
        assert_eq!(lost[0], (100_000, [0, 0, 0]));
        assert_eq!(lost[1], (100_000, [0, 33_333, 0]), "a half waits twice as long");
        assert_eq!(lost[2], (100_000, [0, 20_000, 0]), "a quarter");
        assert_eq!(lost[3], (100_000, [0, 20_000, 0]), "half of its memory is near");
    }

    #[test]
    fn threads_that_want_more_than_a_node_brings_take_turns_for_it() {
        let hardware = Hardware {
            memory_share_percent: [0, 80, 0],
            bandwidth_mb_per_s: [0, 10_000, 0],
            node_mb_per_s: 10_000,
            ..Hardware::NONE
        };
        let memory = |node: &'static [u32]| (Bound::Memory, node, ALWAYS);
        let state = run(NODES, hardware, &[memory(&[0]), memory(&[0]), memory(&[1])]);
        let lost = lost(&state);
        // Steps of 1/256 leave a little of the bandwidth unused.
        for two in &lost[..2] {
            assert!((50_000..50_200).contains(&two.1[1]), "{two:?}");
        }
        assert_eq!(lost[2], (100_000, [0, 0, 0]));
    }

    #[test]
    fn links_between_nodes_bring_less_than_a_node_has() {
        let hardware = Hardware {
            memory_share_percent: [0, 100, 0],
            bandwidth_mb_per_s: [0, 9000, 0],
            node_mb_per_s: 15_000,
            link_mb_per_s: 6000,
            ..Hardware::NONE
        };
        let memory = |node: &'static [u32]| (Bound::Memory, node, ALWAYS);
        // The first thread is on the node of all memory, the third is not, and takes 6 of the 15 GB/s; alone it could have 9.
        let idle = (Bound::Io, &[][..], (1, 1_000_000));
        let state = run(NODES, hardware, &[memory(&[0]), idle, memory(&[0])]);
        let lost = lost(&state);
        assert_eq!(lost[0], (100_000, [0, 0, 0]));
        assert!((33_300..33_600).contains(&lost[2].1[1]), "two thirds of the speed: {:?}", lost[2]);
    }

    #[test]
    fn turbo_falls_with_the_active_cores_and_shortens_only_computing() {
        let turbo = Hardware { turbo_one_core_mhz: 2000, ..Hardware::NONE };
        let hardware = Hardware { memory_share_percent: [0, 50, 0], ..turbo };
        let topology = TopologyConfig { cores: 3, threads: 1, ..SMT };
        let [compute, memory] = [Bound::Compute, Bound::Memory].map(|bound| (bound, &[][..], ALWAYS));
        assert_eq!(lost(&run(topology, hardware, &[compute])), [(100_000, [0, 0, -100_000])]);
        let two = lost(&run(topology, hardware, &[compute, memory]));
        // 1500 MHz; fractions of a unit are rounded.
        assert_eq!(two, [(100_000, [0, 0, -49_997]), (100_000, [0, 0, -19_998])]);
        let three = lost(&run(topology, hardware, &[compute, memory, compute]));
        assert_eq!(three, [(100_000, [0, 0, 0]); 3]);
    }

    #[test]
    fn a_governor_chooses_the_frequency_by_how_busy_a_core_was() {
        let scaled = Hardware { min_mhz: 400, ..Hardware::NONE };
        let powersave = Hardware { governor: Governor::Powersave, ..scaled };
        let compute = |turns| [(Bound::Compute, &[][..], turns)];
        assert_eq!(lost(&run(SMT, powersave, &compute(ALWAYS))), [(100_000, [0, 0, 60_000])]);
        let ondemand = Hardware { governor: Governor::Ondemand, ..scaled };
        // The first sample finds it busy; from then on it has the highest frequency.
        assert_eq!(lost(&run(SMT, ondemand, &compute(ALWAYS))), [(100_000, [0, 0, 6_000])]);
        // 20 % of the time at the lowest frequency, as a cap has it: never busy enough for more.
        let capped = lost(&run(SMT, ondemand, &compute((800, 8_000))));
        assert_eq!(capped, [(20_000, [0, 0, 12_000])]);
    }

    /// The first vCPU wakes the second one every 10 µs of its computing; that one goes to sleep again at once.
    struct Wakes;

    impl World for Wakes {
        fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, _left: Span) -> Op {
            if v != VcpuId(2) {
                return Op::Block(None);
            }
            if ctx.now() > Time::from_ns(1000) {
                ctx.kick(VcpuId(3), crate::WakeCause::Event);
            }
            Op::Run(Span::from_us(10))
        }
    }

    #[test]
    fn interrupts_between_processors_and_locks_take_time() {
        let overhead = |ipi_ns, lock_ns| {
            let [decision_ns, ipi_ns, lock_ns] = [100, ipi_ns, lock_ns].map(Span::from_ns);
            let costs = Costs { decision_ns, ipi_ns, lock_ns, ..Costs::ZERO };
            let first = VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() };
            let domain =
                DomainConfig { vcpus: vec![first, VcpuConfig::default()], ..DomainConfig::default() };
            let config = HostConfig { pcpus: 2, costs, domains: vec![domain], ..HostConfig::default() };
            let mut host = Host::new(&config, OneByOne, Wakes, ()).unwrap();
            host.run_until(Time::from_ns(35_000)).unwrap();
            [0, 1].map(|p| host.context().pcpu_times(PcpuId(p)).2.ns())
        };
        // Three times the second pCPU decides, because it is asked to and because its vCPU blocks.
        assert_eq!(overhead(0, 0), [100, 3 * 200]);
        assert_eq!(overhead(50, 0), [100, 3 * 250]);
        // To wake, the first one has its lock brought; the other waits for that, and has it brought back.
        assert_eq!(overhead(0, 70), [100 + 3 * 70, 3 * (200 + 140)]);
    }

    #[test]
    fn a_host_on_which_nothing_shares_is_not_slowed() {
        let flat = HostConfig { pcpus: 2, ..HostConfig::default() };
        let smt = HostConfig { pcpus: 4, topology: Some(SMT), ..HostConfig::default() };
        let shared = Hardware { beside_percent: [[60; 3]; 3], numa_distance: 20, ..Hardware::NONE };
        let slowed = |config: &HostConfig, hardware| {
            let config = HostConfig { hardware, ..config.clone() };
            Speeds::new(&config, &Topology::new(&config)).is_some()
        };
        assert!(!slowed(&smt, Hardware::NONE) && !slowed(&flat, shared) && slowed(&smt, shared));
    }
}
