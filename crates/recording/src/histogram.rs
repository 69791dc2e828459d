//! Histograms of times in bounded memory.

use serde::Serialize;
use vcpulab_histogram::Histogram;

/// The logarithm to base 2 of the unit of the histogram, ns: shorter times count as one.
const UNIT_LOG: u32 = 6;
/// Equal parts into which quantiles cut a spread.
const QUANTILES: u32 = 128;
/// Times above this count as this, ns: an hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// A histogram of times, good to 1 %.
#[derive(Clone, Debug, Default)]
pub struct Times {
    units: Histogram<7>,
    sum_ns: i128,
}

impl Times {
    pub fn add(&mut self, ns: i64) {
        self.units.record(ns.max(0).unsigned_abs().min(HIGHEST_NS) >> UNIT_LOG);
        self.sum_ns += i128::from(ns);
    }

    /// Count, mean and percentiles of the times.
    pub fn spread(&self) -> Spread {
        if self.units.is_empty() {
            return Spread::default();
        }
        let units = self.units.read();
        let greatest_ns = |unit: u64| if self.sum_ns == 0 { 0 } else { ((unit + 1) << UNIT_LOG) - 1 };
        let at = |share: f64| greatest_ns(units.quantile(share));
        let min_ns = units.min() << UNIT_LOG;
        let above_min = (1..=QUANTILES).map(|part| at(f64::from(part) / f64::from(QUANTILES)));
        Spread {
            count: units.len(),
            mean_ns: self.sum_ns as f64 / units.len() as f64,
            min_ns,
            p10_ns: at(0.1),
            p25_ns: at(0.25),
            p50_ns: at(0.5),
            p75_ns: at(0.75),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            max_ns: at(1.0),
            quantiles_ns: std::iter::once(min_ns).chain(above_min).collect(),
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
