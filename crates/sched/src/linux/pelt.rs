//! Per-entity load tracking (PELT): averages over time with a half-life of 32 periods of 1024 · 1024 ns.

use vcpulab_host::{Span, Time};

/// The half-life, as a power of two of ns.
const HALF_LIFE: u32 = 25;

/// Steps of a half-life, as a power of two; between two steps the curve is 1 − x + x²/2.
const STEPS: u32 = 5;

/// The natural logarithm of 2, times 2^32.
const LN_2: u64 = 2_977_044_472;

/// 2^32 · 2^(−i/32).
const DECAY: [u64; 32] = [
    4_294_967_296,
    4_202_935_003,
    4_112_874_773,
    4_024_744_348,
    3_938_502_376,
    3_854_108_391,
    3_771_522_796,
    3_690_706_840,
    3_611_622_603,
    3_534_232_978,
    3_458_501_653,
    3_384_393_094,
    3_311_872_529,
    3_240_905_930,
    3_171_459_999,
    3_103_502_151,
    3_037_000_500,
    2_971_923_842,
    2_908_241_642,
    2_845_924_021,
    2_784_941_738,
    2_725_266_179,
    2_666_869_345,
    2_609_723_834,
    2_553_802_834,
    2_499_080_105,
    2_445_529_972,
    2_393_127_307,
    2_341_847_524,
    2_291_666_561,
    2_242_560_872,
    2_194_507_417,
];

/// Binary digits behind the point.
pub const FRACTION_BITS: u32 = 10;

/// The average of something that changes at points in time.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeltAverage {
    value: u64,
    at: Time,
}

impl PeltAverage {
    /// Advances the average to `now`; its signal was `level` since the last call.
    pub fn update(&mut self, now: Time, level: u64) {
        let level = level << FRACTION_BITS;
        let passed = now - self.at;
        if passed.is_zero() {
            return;
        }
        self.at = now;
        self.value = if self.value > level {
            level + decay_load(self.value - level, passed)
        } else {
            level - decay_load(level - self.value, passed)
        };
    }

    /// The average at `now` as a whole number, if its signal was `level` since the last update.
    pub fn at(mut self, now: Time, level: u64) -> u64 {
        self.update(now, level);
        self.whole()
    }

    /// The average as a whole number.
    pub fn whole(&self) -> u64 {
        self.value >> FRACTION_BITS
    }

    /// The average with its fraction, as an integer.
    pub fn exact(&self) -> u64 {
        self.value
    }

    /// Adds to the average, or subtracts from it, the part of an entity that joined or left: `exact`, in the unit of
    /// [`PeltAverage::exact`].
    pub fn shift(&mut self, exact: u64, more: bool) {
        self.value = if more { self.value + exact } else { self.value.saturating_sub(exact) };
    }
}

/// The rest of a difference after the time that has passed.
fn decay_load(value: u64, passed: Span) -> u64 {
    let passed = passed.ns().max(0) as u64;
    let halves = passed >> HALF_LIFE;
    if value == 0 || passed == 0 || halves > 63 {
        return if halves > 63 { 0 } else { value };
    }
    let within = passed & ((1 << HALF_LIFE) - 1);
    let (step, rest) = (within >> (HALF_LIFE - STEPS), within & ((1 << (HALF_LIFE - STEPS)) - 1));
    let x = (rest * LN_2) >> HALF_LIFE;
    let after = (1 << 32) - x + ((x * x) >> 33);
    let factor = (u128::from(DECAY[step as usize]) * u128::from(after)) >> 32;
    ((u128::from(value) * factor) >> (32 + halves)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn half_is_forgotten_in_a_half_life() {
        let mut average = PeltAverage::default();
        average.update(at(10_000_000_000), 1024);
        assert_eq!(average.whole(), 1024);
        average.update(at(10_000_000_000 + (1 << 25)), 0);
        assert_eq!(average.whole(), 512);
        average.update(at(10_000_000_000 + (3 << 25)), 0);
        assert_eq!(average.whole(), 128);
    }

    #[test]
    fn the_update_interval_barely_changes_the_average() {
        let (mut once, mut often) = (PeltAverage::default(), PeltAverage::default());
        once.update(at(20_000_000), 1000);
        (1..=200).for_each(|k| often.update(at(k * 100_000), 1000));
        let exact = 1000.0 * (1.0 - (-20e6 / f64::from(1 << 25)).exp2());
        assert!((once.exact() as f64 / 1024.0 - exact).abs() < 0.01, "{once:?}: {exact}");
        assert!((often.exact() as f64 / 1024.0 - exact).abs() < 0.2, "{often:?}: {exact}");
    }
}
