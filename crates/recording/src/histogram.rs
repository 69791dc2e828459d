//! Histograms of times in bounded memory.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Times below this count as one, ns.
const LOWEST_NS: u64 = 64;
/// Equal parts into which quantiles cut a spread.
const QUANTILES: u32 = 128;
/// Times above this count as this, ns: an hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of times, good to 1 %; it takes memory with the first one.
#[derive(Clone, Debug, Default)]
pub struct Times {
    times: Option<Box<Histogram<u32>>>,
    sum_ns: i128,
    count: u64,
}

impl Times {
    pub fn add(&mut self, ns: i64) {
        let made = || {
            Box::new(Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, 2).expect("the bounds are allowed"))
        };
        self.times.get_or_insert_with(made).saturating_record(ns.max(0).unsigned_abs());
        self.sum_ns += i128::from(ns);
        self.count += 1;
    }

    /// Count, mean and percentiles of the times.
    pub fn spread(&self) -> Spread {
        let Some(times) = &self.times else { return Spread::default() };
        let at = |percent: f64| times.value_at_percentile(percent).min(times.max());
        Spread {
            count: self.count,
            mean_ns: self.sum_ns as f64 / self.count as f64,
            min_ns: times.min(),
            p10_ns: at(10.0),
            p25_ns: at(25.0),
            p50_ns: at(50.0),
            p75_ns: at(75.0),
            p90_ns: at(90.0),
            p99_ns: at(99.0),
            max_ns: times.max(),
            quantiles_ns: (0..=QUANTILES).map(|part| at(100.0 * part as f64 / QUANTILES as f64)).collect(),
        }
    }
}

/// The spread of times; percentiles are good to 1 %. All 0 where there was none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "their names say it")]
pub struct Spread {
    pub count: u64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub p10_ns: u64,
    pub p25_ns: u64,
    pub p50_ns: u64,
    pub p75_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    /// From the least to the greatest at equal distances; none where there was no time.
    pub quantiles_ns: Vec<u64>,
}
