//! Choice of a CPU by release, and the limit of the search for an idle one in kernels before 6.1 (`SIS_PROP`): by the average idle
//! time of the CPU that searches (`rq->avg_idle`) and the average cost of its searches (`sd->avg_scan_cost`).

use vcpulab_host::{PcpuId, Span, Table, Time};

use super::load_weight::ns;

/// Rules of the choice of a CPU for a waking thread in which releases differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SelectCpu {
    /// Whether a thread goes to its previous CPU if that is idle, without a comparison of loads with its waker's CPU.
    pub prefers_idle_prev: bool,
    /// Limit of the search of a last-level cache for an idle CPU.
    pub scan: IdleScan,
}

/// Limit of the search of a last-level cache for an idle CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleScan {
    /// By the utilization of the cache's CPUs (`SIS_UTIL`).
    Util,
    /// By the time for which the waker's CPU idles on average (`SIS_PROP`), which halves with each tick of a busy CPU.
    PropDecaying,
    /// By the time for which the waker's CPU idles on average (`SIS_PROP`). The search counts the target, and searches for
    /// cores and for CPUs are separate.
    PropFromTarget,
}

impl SelectCpu {
    /// The rules since 6.1.
    pub const UTIL: SelectCpu = SelectCpu { prefers_idle_prev: true, scan: IdleScan::Util };
}

/// Time for which a search looks at one CPU. An assumption: kernels measure their searches.
const CPU_COST: Span = Span::from_ns(50);

/// Divisor of the average idle time: the part of it that a search may take.
const PART_OF_IDLE: u64 = 512;

/// Number of CPUs that a search looks at if the idle time is too short for more.
const LEAST: u64 = 4;

/// Idle time and searches of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct CpuSearches {
    /// Time since which the CPU idles; `None`: it is busy.
    idle_since: Option<Time>,
    /// Time at which the CPU last became busy.
    busy_since: Time,
    avg_idle: Span,
    avg_scan_cost: Span,
}

/// Idle times and searches of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct IdleScans {
    cpus: Table<PcpuId, CpuSearches>,
}

impl IdleScans {
    /// Adds a CPU, which idles.
    pub fn add_cpu(&mut self, cpu: PcpuId, now: Time) {
        self.cpus.entry(cpu).idle_since = Some(now);
    }

    /// The time for which a CPU idles on average.
    pub fn avg_idle(&self, cpu: PcpuId) -> Span {
        self.cpus[cpu].avg_idle
    }

    /// Notes that a CPU begins to idle.
    pub fn idles(&mut self, cpu: PcpuId, now: Time) {
        self.cpus[cpu].idle_since = Some(now);
    }

    /// Notes that a CPU ends to idle. Its average idle time is at most `most`.
    pub fn becomes_busy(&mut self, cpu: PcpuId, now: Time, most: Span) {
        let of = &mut self.cpus[cpu];
        if let Some(since) = of.idle_since.take() {
            update_avg(&mut of.avg_idle, now - since);
            of.avg_idle = of.avg_idle.min(most);
            of.busy_since = now;
        }
    }

    /// Number of CPUs that a search by `cpu` looks at, in a cache of `size` CPUs. `decay`: the time of a busy CPU that halves its
    /// idle time.
    pub fn limit(&self, cpu: PcpuId, size: u32, now: Time, decay: Option<Span>) -> u32 {
        let CpuSearches { idle_since, busy_since, avg_idle, avg_scan_cost } = self.cpus[cpu];
        let periods = |until: Time, period: Span| (until - Time::ZERO) / period;
        let halvings = match (decay, idle_since) {
            (Some(period), None) => periods(now, period) - periods(busy_since, period),
            _ => 0,
        };
        let idle = ns(avg_idle).checked_shr(u32::try_from(halvings).unwrap_or(u32::MAX)).unwrap_or(0);
        let (product, cost) = (u64::from(size) * (idle / PART_OF_IDLE), ns(avg_scan_cost));
        let cpus = if product > LEAST * cost { product / (cost + 1) } else { LEAST };
        u32::try_from(cpus).unwrap_or(u32::MAX)
    }

    /// Notes a search by `cpu` that looked at `count` CPUs.
    pub fn searched(&mut self, cpu: PcpuId, count: u32) {
        update_avg(&mut self.cpus[cpu].avg_scan_cost, i64::from(count) * CPU_COST);
    }
}

/// Moves an average by an eighth of the way to a value.
fn update_avg(average: &mut Span, value: Span) {
    *average += (value - *average) / 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: PcpuId = PcpuId(0);
    const MOST: Span = Span::from_ms(1);

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A CPU that idled for 80 ms and became busy, whose searches looked at 16 CPUs each.
    fn busy() -> IdleScans {
        let mut scans = IdleScans::default();
        scans.add_cpu(CPU, Time::ZERO);
        scans.becomes_busy(CPU, at(80_000), MOST);
        (0..100).for_each(|_| scans.searched(CPU, 16));
        scans
    }

    #[test]
    fn a_search_may_take_a_part_of_the_idle_time() {
        let mut scans = busy();
        // 16 CPUs · 1 ms / 512 = 31,248 ns of searches that take some 800 ns each.
        let cost = ns(scans.cpus[CPU].avg_scan_cost);
        assert!((790..=800).contains(&cost), "{cost}");
        assert_eq!(u64::from(scans.limit(CPU, 16, at(80_000), None)), 16 * 1953 / (cost + 1));
        for _ in 0..100 {
            scans.idles(CPU, at(81_000));
            scans.becomes_busy(CPU, at(81_100), MOST);
        }
        assert!(scans.limit(CPU, 16, at(81_100), None) < 5, "idle times of 100 us");
    }

    #[test]
    fn idle_times_of_busy_cpus_halve_with_each_tick() {
        let mut scans = busy();
        let tick = Some(Span::from_ms(4));
        let limits = [81_000, 84_000, 88_000, 1_000_000].map(|us| scans.limit(CPU, 16, at(us), tick));
        assert_eq!(limits[0], scans.limit(CPU, 16, at(80_000), None));
        assert!(
            limits[1].abs_diff(limits[0] / 2) <= 1 && limits[2].abs_diff(limits[0] / 4) <= 1,
            "{limits:?}"
        );
        assert_eq!(limits[3], 4, "nothing is left of the idle time");
        scans.idles(CPU, at(1_000_000));
        assert_eq!(scans.limit(CPU, 16, at(2_000_000), tick), limits[0], "an idle CPU keeps its average");
    }
}
