//! Cache-aware balancing (7.2 and later): on nodes with several last-level caches, the threads of a process (all vCPUs of a VM) have a
//! preferred cache, the one where they ran most; balancing moves them there, and not away.

use vcpulab_host::{CpuMask, DomId, PcpuId, PolicyContext, Span, Table, Time};

use super::sched_domains::SchedDomains;

/// Length of the epochs of which run times are averaged.
const EPOCH: Span = Span::from_ms(10);

/// Number of epochs without run time after which a process prefers no cache.
const FORGOTTEN_AFTER: i64 = 5;

/// A last-level cache, by the first CPU that has it.
type Llc = PcpuId;

/// Number of the epoch at a point in time.
fn epoch(now: Time) -> i64 {
    (now - Time::ZERO) / EPOCH
}

/// Run time of a process by last-level cache.
#[derive(Clone, Debug, Default)]
struct Process {
    /// Number of the epoch up to which run times are averaged.
    epoch: i64,
    /// Number of the last epoch in which a thread ran.
    last_run: i64,
    /// Run time in the present epoch, and the average of run times in earlier epochs, by cache; caches without are omitted.
    caches: Vec<(Llc, Span, Span)>,
    preferred: Option<Llc>,
}

impl Process {
    /// Adds run time in a cache.
    fn ran(&mut self, now: Time, llc: Llc, span: Span) {
        self.advance(now);
        self.last_run = self.epoch;
        match self.caches.iter_mut().find(|(of, ..)| *of == llc) {
            Some((_, present, _)) => *present += span,
            None => self.caches.push((llc, span, Span::ZERO)),
        }
    }

    /// Averages the epochs that are over. The latest counts half, the one before it a quarter, and so on.
    fn advance(&mut self, now: Time) {
        let epoch = epoch(now);
        if epoch == self.epoch {
            return;
        }
        let halvings = (epoch - self.epoch).min(63) as u32;
        for (_, present, average) in &mut self.caches {
            *average = Span::from_ns((average.ns() + present.ns()) >> halvings);
            *present = Span::ZERO;
        }
        self.epoch = epoch;
        self.caches.retain(|(_, _, average)| !average.is_zero());
        let average = |llc: Llc| {
            self.caches.iter().find(|(of, ..)| *of == llc).map_or(Span::ZERO, |&(_, _, average)| average)
        };
        let most = self.caches.iter().max_by_key(|&&(llc, _, average)| (average, std::cmp::Reverse(llc)));
        self.preferred = match (self.preferred, most) {
            _ if epoch - self.last_run > FORGOTTEN_AFTER => None,
            (Some(llc), Some(&(_, _, most))) if most <= 2 * average(llc) => Some(llc),
            (_, most) => most.map(|&(llc, ..)| llc),
        };
    }

    /// Number of threads that run at a time, times the length of an epoch.
    fn running(&self) -> Span {
        self.caches.iter().fold(Span::ZERO, |sum, &(_, _, average)| sum + average)
    }
}

/// Preferred caches of the processes of a host.
#[derive(Clone, Debug, Default)]
pub struct LlcBalancing {
    /// Whether a cache can be preferred: the only node has several.
    pub active: bool,
    llcs: Table<PcpuId, CpuMask>,
    processes: Table<DomId, Process>,
    /// Time up to which the thread that a CPU runs was charged.
    charged: Table<PcpuId, Time>,
}

impl LlcBalancing {
    /// The state of a host. On a machine of several nodes the kernel measures the memory that a process uses (NUMA balancing): a VM
    /// is assumed not to fit in a cache.
    pub fn new(ctx: &PolicyContext, domains: &SchedDomains, enabled: bool) -> Self {
        let count = ctx.pcpu_count() as usize;
        let nodes = ctx.nodes().iter().filter(|node| !node.and(ctx.pcpus()).is_empty()).count();
        let of_caches =
            |cpu: PcpuId| domains.by_cpu[cpu].iter().any(|sd| sd.local_group == *domains.llc(cpu));
        let several = ctx.pcpus().iter().any(of_caches);
        let mut llcs = Table::filled(count, CpuMask::EMPTY);
        ctx.pcpus().iter().for_each(|cpu| llcs[cpu] = *domains.llc(cpu));
        LlcBalancing {
            active: enabled && nodes <= 1 && several,
            llcs,
            processes: Table::new(),
            charged: Table::filled(count, Time::ZERO),
        }
    }

    /// The cache of a CPU.
    pub fn llc(&self, cpu: PcpuId) -> Llc {
        self.llcs[cpu].first().unwrap_or(cpu)
    }

    /// The CPUs that have a cache.
    pub fn cpus(&self, llc: Llc) -> &CpuMask {
        &self.llcs[llc]
    }

    /// Charges the vCPU of a domain that ran on a CPU until now; `None`: no vCPU ran.
    pub fn charge(&mut self, now: Time, cpu: PcpuId, domain: Option<DomId>) {
        let since = std::mem::replace(&mut self.charged[cpu], now);
        let llc = self.llc(cpu);
        if let Some(domain) = domain {
            self.processes.entry(domain).ran(now, llc, now - since);
        }
    }

    /// The cache that a domain's threads prefer, unless too many run at a time.
    pub fn preferred(&self, now: Time, domain: DomId, threads_per_core: u32) -> Option<Llc> {
        let process = self.processes.get(domain)?;
        let llc = process.preferred.filter(|_| epoch(now) - process.last_run <= FORGOTTEN_AFTER)?;
        // Threads · threads of a core · 1.25 < CPUs of the cache.
        let fits =
            5 * i64::from(threads_per_core) * process.running() < 4 * i64::from(self.llcs[llc].len()) * EPOCH;
        fits.then_some(llc)
    }
}

/// Whether balancing moves threads to a cache with this utilization from one with the other utilization: both of 1024.
pub fn takes_threads(to: u64, from: u64, smt: bool) -> bool {
    let limit = if smt { 512 } else { 768 };
    to < limit || to * 100 < from * 80
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [Llc; 2] = [PcpuId(0), PcpuId(8)];

    /// The preferred cache after epochs in each of which threads ran for so many ms in both caches.
    fn preferred(epochs: &[[i64; 2]]) -> Vec<Option<usize>> {
        let mut process = Process::default();
        let mut preferred = Vec::new();
        for (number, ran) in (0..).zip(epochs) {
            let now = Time::ZERO + number * EPOCH;
            process.advance(now);
            preferred.push(process.preferred.and_then(|llc| CACHES.iter().position(|&of| of == llc)));
            for (llc, &ms) in CACHES.into_iter().zip(ran) {
                if ms > 0 {
                    process.ran(now, llc, Span::from_ms(ms));
                }
            }
        }
        preferred
    }

    #[test]
    fn a_process_prefers_the_cache_where_it_ran_most() {
        assert_eq!(preferred(&[[3, 4], [3, 4], [0, 0]]), [None, Some(1), Some(1)]);
    }

    #[test]
    fn the_preferred_cache_changes_for_more_than_twice_the_run_time() {
        let same = preferred(&[[5, 0], [5, 0], [5, 10], [5, 10], [5, 10], [5, 10], [5, 10]]);
        assert_eq!(same[1..], [Some(0); 6]);
        let other = preferred(&[[5, 0], [5, 0], [5, 15], [5, 15], [5, 15]]);
        assert_eq!(other[1..], [Some(0), Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn a_process_that_does_not_run_forgets_its_cache() {
        let mut epochs = vec![[10, 0]];
        epochs.extend([[0, 0]; 8]);
        let expected: Vec<Option<usize>> =
            (0..9).map(|epoch| (1..=5).contains(&epoch).then_some(0)).collect();
        assert_eq!(preferred(&epochs), expected);
    }

    #[test]
    fn a_cache_takes_threads_while_it_has_room() {
        assert!(takes_threads(500, 0, true) && !takes_threads(520, 0, true));
        assert!(takes_threads(760, 0, false) && !takes_threads(780, 0, false));
        assert!(takes_threads(800, 1010, true) && !takes_threads(820, 1010, true));
    }
}
