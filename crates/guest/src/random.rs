//! Random streams: one for each entity and purpose, so that the draws of one never change those of another.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use vcpulab_host::Span;

/// A stream of random numbers (xoshiro256++). The same on every machine.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of one entity for one purpose. (The generator's own seeding, SplitMix64, mixes the three apart.)
    pub fn new(seed: u64, entity: u64, purpose: u64) -> Self {
        let mixed = seed
            .wrapping_add(entity.wrapping_mul(0xD134_2543_DE82_EF95))
            .wrapping_add(purpose.wrapping_mul(0xA076_1D64_78BD_642F));
        Random(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// An integer from 0 to `below` − 1, evenly (but for a bias of at most `below` / 2⁶⁴).
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(below)) >> 64) as u64
    }

    /// `cost` give or take up to `percent` of it, evenly.
    pub fn spread(&mut self, cost: Span, percent: i64) -> Span {
        let reach = cost * percent / 100;
        if reach.is_zero() {
            return cost;
        }
        cost - reach + Span::from_ns(self.below(2 * reach.ns() as u64 + 1) as i64)
    }

    /// A value of the distribution with these quantiles at equal distances, evenly between two neighbors.
    pub fn drawn(&mut self, quantiles: &[Span]) -> Span {
        const BITS: u32 = 32;
        let at = self.below((quantiles.len() as u64 - 1) << BITS);
        let (index, within) = ((at >> BITS) as usize, at & ((1 << BITS) - 1));
        let (low, high) = (quantiles[index], quantiles[index + 1]);
        low + Span::from_ns(((i128::from((high - low).ns()) * i128::from(within)) >> BITS) as i64)
    }

    /// The time to the next event of a Poisson process with this rate (events per second): exponentially
    /// distributed by inversion. The logarithm is computed in software, so it is the same on every machine.
    pub fn exponential(&mut self, rate_per_s: f64) -> Span {
        let uniform = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Span::from_ns((-libm::log(1.0 - uniform) / rate_per_s * 1e9) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_entity_and_purpose_and_repeat() {
        let draw = |seed, entity, purpose| Random::new(seed, entity, purpose).below(u64::MAX);
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        let all = [draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4), draw(1, 3, 2)];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[..i].contains(a));
        }
    }

    #[test]
    fn what_is_drawn_has_the_quantiles_given() {
        let mut random = Random::new(1, 0, 0);
        let quantiles = [10, 20, 20, 1000, i64::MAX / 2].map(Span::from_ns);
        let mut draws: Vec<i64> = (0..40_000).map(|_| random.drawn(&quantiles).ns()).collect();
        draws.sort_unstable();
        assert!(draws[0] >= 10 && draws[10_000] >= 19 && draws[19_900] == 20);
        assert!((20..60).contains(&draws[20_300]) && (900..=1000).contains(&draws[29_600]));
        assert!(draws[39_999] > i64::MAX / 4);
    }

    #[test]
    fn spread_stays_within_its_bounds_and_centres_on_the_cost() {
        let mut random = Random::new(1, 0, 0);
        let cost = Span::from_ns(1000);
        let draws: Vec<i64> = (0..10_000).map(|_| random.spread(cost, 15).ns()).collect();
        assert!(draws.iter().all(|draw| (850..=1150).contains(draw)));
        assert!((draws.iter().sum::<i64>() / 10_000 - 1000).abs() < 5);
        assert_eq!(random.spread(cost, 0), cost);
    }

    #[test]
    fn exponential_has_the_mean_of_its_rate() {
        let mut random = Random::new(1, 0, 0);
        let sum: i64 = (0..100_000).map(|_| random.exponential(1000.0).ns()).sum();
        assert!((sum / 100_000 - 1_000_000).abs() < 15_000, "{sum}");
    }
}
