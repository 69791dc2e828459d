//! Means over replications, and their confidence intervals.

use std::fmt;
use std::sync::OnceLock;

use serde::Serialize;

use crate::numbers::{decimals, fixed, number};
use crate::student;
use crate::sum::sum;

/// The confidence of intervals; a difference is significant if its p value is at most the rest.
pub const CONFIDENCE: f64 = 0.95;

/// A mean over replications with half the width of its confidence interval.
///
/// Replications are independent, so the interval is Student's: mean ± t(0.975, n-1) s/√n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean (of [`Interval::of_median`]: the median).
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; `None`: one value alone has no interval.
    pub half_width: Option<f64>,
    /// Number of values.
    pub n: usize,
    /// s/√n; `None`: one value alone has no standard error, nor has a median.
    pub standard_error: Option<f64>,
}

impl Interval {
    /// The mean of values with its interval; `None`: no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Interval> {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len();
        let first = *values.first()?;
        // Summed as distances from the first value, so that equal values have a width of exactly 0.
        let mean = first + sum(values.iter().map(|value| value - first)) / n as f64;
        if n == 1 {
            return Some(Interval { mean, half_width: None, n, standard_error: None });
        }
        let squares = sum(values.iter().map(|value| (value - mean) * (value - mean)));
        let deviation = (squares / (n - 1) as f64).sqrt();
        let root = (n as f64).sqrt();
        let half_width = if deviation == 0.0 { 0.0 } else { half_quantile(n - 1) * deviation / root };
        Some(Interval { mean, half_width: Some(half_width), n, standard_error: Some(deviation / root) })
    }

    /// The mean of the values that there are.
    pub fn of_present(values: impl IntoIterator<Item = Option<f64>>) -> Option<Interval> {
        Interval::of(values.into_iter().flatten())
    }

    /// The median of values with its 95 % confidence interval; `None`: no values.
    ///
    /// For a percentile of few waits, which a single slow replication of ten would move. Its half width is half of the distance
    /// between the order statistics that enclose the median with the least probability of at least 95 % (Conover 1999,
    /// "Practical nonparametric statistics", section 3.2).
    pub fn of_median(values: impl IntoIterator<Item = f64>) -> Option<Interval> {
        let mut ordered: Vec<f64> = values.into_iter().collect();
        ordered.sort_by(f64::total_cmp);
        let n = ordered.len();
        let (&low, &high) = (ordered.get(n.checked_sub(1)? / 2)?, ordered.get(n / 2)?);
        if n == 1 {
            return Some(Interval { mean: low, half_width: None, n, standard_error: None });
        }
        let mean = if n.is_multiple_of(2) { (low + high) / 2.0 } else { high };
        let outside = values_outside(n);
        let half_width = (ordered[n - 1 - outside] - ordered[outside]) / 2.0;
        Some(Interval { mean, half_width: Some(half_width), n, standard_error: None })
    }
}

/// The quantile of Student's t that half of the rest of the confidence is above; those of few degrees are computed once.
fn half_quantile(degrees: usize) -> f64 {
    static KNOWN: [OnceLock<f64>; 128] = [const { OnceLock::new() }; 128];
    let quantile = || student::quantile(degrees as f64, 0.5 + CONFIDENCE / 2.0);
    KNOWN.get(degrees).map_or_else(quantile, |known| *known.get_or_init(quantile))
}

/// The number of values, of n, that may be left out at each end of an interval that has the median with a probability of at least 95 %.
fn values_outside(n: usize) -> usize {
    // Probabilities of the binomial distribution as multiples of that of its middle, which no n makes too small.
    let mut weights = vec![1.0; n + 1];
    for k in (0..n / 2).rev() {
        weights[k] = weights[k + 1] * (k + 1) as f64 / (n - k) as f64;
        weights[n - k] = weights[k];
    }
    let all = sum(weights.iter().copied());
    let mut below = 0.0;
    let fits = |weight: &&f64| {
        below += **weight;
        2.0 * below <= (1.0 - CONFIDENCE) * all
    };
    weights.iter().take_while(fits).count().saturating_sub(1)
}

impl fmt::Display for Interval {
    /// The mean to two digits of the interval.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(half_width) = self.half_width else { return f.write_str(&number(self.mean)) };
        if half_width == 0.0 {
            return write!(f, "{} ± 0", number(self.mean));
        }
        let places = decimals(half_width, 2).min(decimals(self.mean, 5));
        write!(f, "{} ± {}", fixed(self.mean, places), fixed(half_width, places))
    }
}

/// The mean of paired differences, and the evidence that it is not 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// First minus second.
    pub interval: Interval,
    /// The probability of a difference at least as far from 0 if there were none (two-sided); `None`: one pair alone.
    pub p: Option<f64>,
}

/// Student's test of paired differences, first minus second; extra values of the longer slice are ignored. `None`: no pairs.
pub fn paired(first: &[f64], second: &[f64]) -> Option<Difference> {
    let interval = Interval::of(first.iter().zip(second).map(|(a, b)| a - b))?;
    let p = interval.standard_error.map(|error| match error {
        0.0 => f64::from(u8::from(interval.mean == 0.0)),
        _ => student::both_tails((interval.n - 1) as f64, interval.mean.abs() / error),
    });
    Some(Difference { interval, p })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_values() {
        assert_eq!(Interval::of([]), None);
        assert_eq!(Interval::of_median([]), None);
        let single = Interval { mean: 3.0, half_width: None, n: 1, standard_error: None };
        assert_eq!((Interval::of([3.0]), Interval::of_median([3.0])), (Some(single), Some(single)));
        assert_eq!(Interval::of_present([None, Some(3.0), None]), Some(single));
        let equal = Interval::of([0.1; 7]).unwrap();
        assert_eq!((equal.mean, equal.half_width), (0.1, Some(0.0)));
    }

    #[test]
    fn medians_leave_out_what_tables_of_the_sign_test_say() {
        let outside: Vec<usize> = [2, 5, 6, 8, 9, 11, 12, 20, 25, 100].map(values_outside).to_vec();
        assert_eq!(outside, [0, 0, 0, 0, 1, 1, 2, 5, 7, 39]);
        assert!((5000 - values_outside(10_000)).abs_diff(98) <= 1, "1.96 / 2 times the square root of n");
    }

    #[test]
    fn pairs() {
        let same = paired(&[1.0, 2.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((same.interval.n, same.interval.mean, same.p), (2, 0.0, Some(1.0)));
        assert_eq!(paired(&[2.0, 3.0], &[1.0, 2.0]).unwrap().p, Some(0.0));
        assert_eq!(paired(&[2.0], &[1.0]).unwrap().p, None);
        assert_eq!(paired(&[], &[1.0]), None);
    }

    proptest! {
        #[test]
        fn an_interval_without_0_is_a_significant_difference(
            differences in prop::collection::vec(-1.0..3.0f64, 2..40),
        ) {
            let difference = paired(&differences, &vec![0.0; differences.len()]).unwrap();
            let half = difference.interval.half_width.unwrap();
            prop_assume!((difference.interval.mean.abs() - half).abs() > 1e-9);
            prop_assert_eq!(difference.interval.mean.abs() > half, difference.p.unwrap() < 1.0 - CONFIDENCE);
        }

        #[test]
        fn an_interval_moves_with_its_values(
            values in prop::collection::vec(-10i32..10, 1..20), by in -100i32..100,
        ) {
            let of = |by: i32| Interval::of(values.iter().map(|value| f64::from(value + by))).unwrap();
            prop_assert!((of(by).mean - of(0).mean - f64::from(by)).abs() < 1e-12);
            let widths = (of(by).half_width.unwrap_or(0.0), of(0).half_width.unwrap_or(0.0));
            prop_assert!((widths.0 - widths.1).abs() < 1e-9);
        }
    }
}
