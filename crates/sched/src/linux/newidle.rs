//! Searches of CPUs that are about to idle (`sched_balance_newidle`): the domains that a CPU searches for a thread, by what searches
//! cost and by how many of them succeeded.

use vcpulab_host::{Span, Time};

/// Rules of balancing in which releases differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BalanceRules {
    /// Domains that a CPU searches before it idles.
    pub newidle: Newidle,
    /// Whether a task that is not eligible stays on its CPU until balancing has failed once, if its group has tasks on the other CPU.
    pub keeps_ineligible: bool,
    /// Threads that blocked and still compete, as far as balancing moves them.
    pub delayed: MoveDelayed,
    /// Whether a `SCHED_IDLE` thread is placed on a CPU that runs only `SCHED_IDLE` tasks as on an idle one. `false`: other threads are.
    pub idle_thread_accepts_sched_idle: bool,
    /// Whether balancing keeps the threads of a process in one last-level cache.
    pub cache_aware: bool,
}

/// Domains that a CPU searches before it idles, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Newidle {
    /// Domains whose searches are believed to take less time than the CPU idles on average.
    ByCost,
    /// Domains as with `ByCost`; a search that finds nothing raises the believed cost by half. (Known of 6.18.2, assumed of 6.17.)
    ByCostOfFailures,
    /// Domains as with `ByCost`, each of them at random, by the part of its searches that succeed (`NI_RANDOM`).
    Random,
    /// Domains as with `Random`; the fewer calls in a second, the more of them search (`NI_RATE`).
    RandomByRate,
}

/// Threads that blocked and still compete (a delayed dequeue), as far as balancing moves them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveDelayed {
    /// Balancing moves them as it moves waiting threads.
    Always,
    /// Balancing moves them only to balance loads.
    ForLoad,
}

impl BalanceRules {
    /// The rules of kernels without rules of their own.
    pub const OLDEST: BalanceRules = BalanceRules {
        newidle: Newidle::ByCost,
        keeps_ineligible: false,
        delayed: MoveDelayed::Always,
        idle_thread_accepts_sched_idle: true,
        cache_aware: false,
    };

    /// The rules of 6.12.117, and of 6.1.192 except for delayed dequeues, which it lacks.
    pub const V6_12: BalanceRules = BalanceRules { newidle: Newidle::Random, ..BalanceRules::OLDEST };

    /// The rules of 6.17.
    pub const V6_17: BalanceRules = BalanceRules {
        newidle: Newidle::ByCostOfFailures,
        keeps_ineligible: true,
        delayed: MoveDelayed::ForLoad,
        ..BalanceRules::OLDEST
    };

    /// The rules of 6.18.15, 6.19 and 7.0.
    pub const V6_18: BalanceRules = BalanceRules { newidle: Newidle::Random, ..BalanceRules::V6_17 };

    /// The rules of 7.1.
    pub const V7_1: BalanceRules = BalanceRules {
        newidle: Newidle::RandomByRate,
        idle_thread_accepts_sched_idle: false,
        ..BalanceRules::V6_18
    };

    /// The rules of 7.2 and later.
    pub const V7_2: BalanceRules = BalanceRules { cache_aware: true, ..BalanceRules::V7_1 };
}

/// The time that a search takes for each CPU of the domain. An assumption: kernels measure their searches.
const CPU_COST: Span = Span::from_ns(200);

/// The greatest cost to which searches that find nothing raise a domain's.
const FAILURE_COST_MOST: Span = Span::from_ns(500_200);

/// Number of calls of which successes are counted; also the number 1 in probabilities.
const CALLS: u32 = 1024;

/// Unit of the time that [`CALLS`]` / 2` calls take, which is added to the successes.
const RATE_UNIT: Span = Span::from_ns(1 << 22);

/// Searches of one domain by one CPU.
#[derive(Clone, Copy, Debug)]
pub struct NewidleStats {
    /// The believed cost of a search: the highest one, less 1 % each second.
    cost: Span,
    /// Time at which the believed cost last fell.
    decayed_at: Time,
    /// Number of calls; half of them remain when their successes are counted.
    calls: u32,
    /// Successes, in 1024ths. Each stands for the calls that did not search, too.
    successes: u32,
    /// Searches for each 1024 calls, less one. `None`: successes were not counted yet.
    ratio: Option<u32>,
    /// Time at which successes were last counted.
    counted_at: Time,
}

impl NewidleStats {
    /// A domain that was never searched.
    pub const NEW: NewidleStats = NewidleStats {
        cost: Span::ZERO,
        decayed_at: Time::ZERO,
        calls: CALLS / 2,
        successes: CALLS / 4 * CALLS,
        ratio: None,
        counted_at: Time::ZERO,
    };

    /// The believed cost of a search.
    pub fn believed_cost(&self) -> Span {
        self.cost
    }

    /// Lowers the believed cost by 1 % for each second that is over.
    pub fn decay(&mut self, now: Time) {
        let second = Span::from_secs(1);
        while now - self.decayed_at >= second {
            if self.cost == Span::ZERO {
                self.decayed_at = now;
                return;
            }
            self.cost -= (self.cost / 100).max(Span::from_ns(1));
            self.decayed_at += second;
        }
    }

    /// Number of searches for each 1024 calls, less one. Before successes were counted, a kernel that was just booted searches
    /// half of the time; with `NI_RATE` a domain that is rarely searched is always searched.
    fn ratio(&self, rule: Newidle) -> u32 {
        self.ratio.unwrap_or(if rule == Newidle::RandomByRate { CALLS } else { CALLS / 2 })
    }

    /// Whether a call searches the domain, by a random number.
    pub fn searches(&self, rule: Newidle, random: u64) -> bool {
        match rule {
            Newidle::ByCost | Newidle::ByCostOfFailures => true,
            Newidle::Random | Newidle::RandomByRate => {
                random % u64::from(CALLS) < u64::from(1 + self.ratio(rule))
            }
        }
    }

    /// Notes a call that did not search the domain.
    pub fn skipped(&mut self, rule: Newidle, now: Time) {
        self.count(rule, now, 0);
    }

    /// Notes a search of a domain of `cpus` CPUs, and whether it pulled a thread. Returns the time that the search took.
    pub fn searched(&mut self, rule: Newidle, now: Time, cpus: u32, pulled: bool) -> Span {
        let cost = i64::from(cpus) * CPU_COST;
        self.cost = self.cost.max(cost);
        match rule {
            Newidle::ByCost => {}
            Newidle::ByCostOfFailures if pulled => {}
            Newidle::ByCostOfFailures => {
                self.cost = (self.cost + self.cost / 2).min(FAILURE_COST_MOST.max(cost));
            }
            Newidle::Random | Newidle::RandomByRate => {
                let searches = (1 + self.ratio(rule)).min(CALLS);
                self.count(rule, now, if pulled { CALLS * CALLS / searches } else { 0 });
            }
        }
        cost
    }

    fn count(&mut self, rule: Newidle, now: Time, successes: u32) {
        self.calls += 1;
        self.successes = self.successes.saturating_add(successes);
        if self.calls < CALLS {
            return;
        }
        let seldom = match rule {
            Newidle::RandomByRate => u32::try_from((now - self.counted_at) / RATE_UNIT).unwrap_or(CALLS),
            _ => 0,
        };
        self.ratio = Some((self.successes / CALLS).saturating_add(seldom).min(CALLS));
        self.counted_at = now;
        (self.calls, self.successes) = (self.calls / 2, self.successes / 2);
    }
}

/// A sequence of numbers that look random, the same in every run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dice(u64);

impl Dice {
    /// The next number (SplitMix64).
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Calls at intervals, of which every `nth` search succeeds. Returns the searches among the last 10,000 calls.
    fn searches(rule: Newidle, nth: u32, every: Span) -> u32 {
        let (mut stats, mut dice, mut now) = (NewidleStats::NEW, Dice::default(), Time::ZERO);
        let (mut searches, mut late) = (0, 0);
        for call in 0..30_000 {
            now += every;
            if stats.searches(rule, dice.roll()) {
                searches += 1;
                late += u32::from(call >= 20_000);
                stats.searched(rule, now, 4, nth > 0 && searches % nth == 0);
            } else {
                stats.skipped(rule, now);
            }
        }
        late
    }

    #[test]
    fn searches_are_as_frequent_as_they_are_successful() {
        let often = Span::from_us(100);
        for (nth, expected) in [(1, 9_900..=10_000), (2, 4_400..=5_600), (5, 1_500..=2_500), (0, 1..=40)] {
            let count = searches(Newidle::Random, nth, often);
            assert!(expected.contains(&count), "every {nth}th succeeds: {count}");
        }
        assert_eq!(searches(Newidle::ByCost, 0, often), 10_000);
    }

    #[test]
    fn rare_searches_always_happen_from_7_1_on() {
        let seldom = Span::from_ms(9);
        assert_eq!(searches(Newidle::RandomByRate, 0, seldom), 10_000);
        assert!(searches(Newidle::Random, 0, seldom) < 40);
        let count = searches(Newidle::RandomByRate, 0, Span::from_ms(2));
        // 512 calls take 244 units.
        assert!((2_200..=2_600).contains(&count), "{count}");
        assert!(searches(Newidle::RandomByRate, 0, Span::from_us(10)) < 60);
    }

    #[test]
    fn failures_raise_the_cost_in_6_17() {
        let cost = |rule, pulled| {
            let mut stats = NewidleStats::NEW;
            (0..40).for_each(|us| {
                stats.searched(rule, at(us), 8, pulled);
            });
            stats.believed_cost()
        };
        let own = 8 * CPU_COST;
        assert_eq!(cost(Newidle::ByCost, false), own);
        assert_eq!(cost(Newidle::ByCostOfFailures, true), own);
        assert_eq!(cost(Newidle::ByCostOfFailures, false), FAILURE_COST_MOST);
        assert_eq!(cost(Newidle::Random, false), own);
    }

    #[test]
    fn a_believed_cost_falls_by_a_hundredth_each_second() {
        let mut stats = NewidleStats::NEW;
        stats.searched(Newidle::ByCost, at(0), 500, false);
        stats.decay(at(999_999));
        assert_eq!(stats.believed_cost(), Span::from_us(100));
        stats.decay(at(2_000_000));
        assert_eq!(stats.believed_cost(), Span::from_ns(98_010));
        stats.decay(at(4_000_000_000));
        assert_eq!(stats.believed_cost(), Span::ZERO);
    }
}
