//! Times of the guests' ticks where a scenario leaves them open: replications spread them evenly.
//!
//! How ticks lie to each other is decided by chance when a host and its guests boot, and decides much: whether a wake-up
//! finds somebody running, and whom. A few draws are a poor sample of that. So the replications are points of a Kronecker
//! sequence that begins at random: however few there are, they keep away from each other.

use vcpulab_guest::{IdleTick, Random};
use vcpulab_host::{DomId, Span};
use vcpulab_spec::Spec;

use crate::replicate::seed::replication_seed;

/// The purpose of the random number that says where they begin: see `START`.
const TICKS: u64 = 5 << 32;

/// Steps of the phase from one replication to the next, for the first guests, in parts of 2⁶⁴ of a period: the
/// fractions of square roots. Between any two of these four, ten points leave no gap that is 1.9 times as wide as the
/// mean. For more guests few points cover nothing: their phases are drawn each time.
const STEPS: [u64; 4] = [root(2), root(5), root(7), root(23)];

/// The fraction of a square root, in parts of 2⁶⁴.
const fn root(of: u128) -> u64 {
    ((of << 122).isqrt() as u64) << 3
}

/// Time of a tick of a domain in a replication, since the start of the run.
pub fn at(spec: &Spec, d: DomId, tick: &IdleTick, replication: u32) -> Span {
    let is_open = |tick: &Option<IdleTick>| tick.is_some_and(|tick| tick.at_ns.is_none());
    let before = spec.domains.iter().take(d.index()).filter(|domain| is_open(&domain.idle_tick)).count();
    let period = tick.period_ns.ns() as u64;
    let (seed, step) = match STEPS.get(before) {
        Some(&step) => (spec.seed, step),
        None => (replication_seed(spec.seed, replication), 0),
    };
    let begin = Random::new(seed, d.index() as u64, TICKS).below(period);
    let moved = (u128::from(step.wrapping_mul(u64::from(replication))) * u128::from(period)) >> 64;
    Span::from_ns(((begin + moved as u64) % period) as i64)
}

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;

    use super::*;

    /// Times of ticks of 4 ms of five guests, ns, by replication.
    fn drawn(seed: u64) -> Vec<Vec<i64>> {
        let guest = |g| {
            format!("[domain.g{g}]\nidle_tick = '4ms'\nidle_tick_cpu = '9us'\napp = [{{ kind = 'hog' }}]\n")
        };
        let guests: String = (0..5).map(guest).collect();
        let text = format!(
            "seed = {seed}\n[run]\nduration = '1s'\nwarmup = '0s'\n[host]\nprofile = 'generic'\nscheduler = 'credit'\n{guests}"
        );
        let scenario = Scenario::parse(&text, "f").unwrap();
        let tick = |d| scenario.domains[d].idle_tick.unwrap();
        (0..10)
            .map(|r| scenario.domains.ids().map(|d| at(&scenario, d, &tick(d), r).ns()).collect())
            .collect()
    }

    #[test]
    fn ticks_of_two_of_the_first_guests_lie_to_each_other_otherwise_in_each_replication() {
        let drawn = drawn(1);
        for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let mut apart: Vec<i64> =
                drawn.iter().map(|ticks| (ticks[a] - ticks[b]).rem_euclid(4_000_000)).collect();
            apart.sort_unstable();
            apart.push(apart[0] + 4_000_000);
            // Of ten draws at random the widest is 2.9 times the mean, in the mean, and the narrowest a tenth.
            let gaps = apart.windows(2).map(|two| two[1] - two[0]);
            assert!(
                gaps.clone().max() < Some(760_000) && gaps.min() > Some(120_000),
                "{a} and {b}: {apart:?}"
            );
        }
    }

    #[test]
    fn ticks_differ_by_seed_and_those_of_further_guests_by_replication() {
        let (one, two) = (drawn(1), drawn(2));
        assert!(one.iter().zip(&two).all(|(one, two)| one.iter().zip(two).all(|(one, two)| one != two)));
        let mut last: Vec<i64> = one.iter().map(|ticks| ticks[4]).collect();
        last.dedup();
        assert_eq!(last.len(), 10);
    }
}
