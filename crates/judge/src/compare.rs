//! Many metrics of two runs, compared at once.

use crate::comparison::{Comparison, NoValue, Verdict};
use crate::corrections::{bonferroni, holm};
use crate::interval::{Interval, paired};
use crate::metric::Metric;

/// The values of a metric in two runs, one of each replication; `None`: it has none.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The metric.
    pub metric: Metric,
    /// Values of the first run.
    pub before: Vec<Option<f64>>,
    /// Values of the second run.
    pub after: Vec<Option<f64>>,
}

/// The measured time of two runs, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Of the first run.
    pub before: f64,
    /// Of the second run.
    pub after: f64,
}

/// Compares metrics, and corrects their p values for their number and for the number of looks that may be taken.
///
/// Each family is corrected alone: metrics of the question, others with a good direction, and others without; so a
/// table of a thousand metrics takes nothing from the answer to the question. A metric for which having no value is worst
/// needs no test where one run has values and the other has none in most replications. `None`: a metric has no pair of values.
pub fn compare(measured: Vec<Measured>, lengths: Lengths, looks: u32) -> Vec<Option<Comparison>> {
    let mut families: [Vec<(usize, f64)>; 4] = Default::default();
    let mut comparisons: Vec<Option<Comparison>> = Vec::with_capacity(measured.len());
    for (index, measured) in measured.into_iter().enumerate() {
        let measured = if lengths.before == lengths.after { measured } else { as_rate(measured, lengths) };
        let one_sided = gained_or_lost(&measured);
        let comparison = one_sided.or_else(|| {
            let (comparison, p) = difference(measured)?;
            if let Some(p) = p {
                let family = 2 * usize::from(comparison.metric.in_question)
                    + usize::from(comparison.metric.better.is_some());
                families[family].push((index, bonferroni(p, looks)));
            }
            Some(comparison)
        });
        comparisons.push(comparison);
    }
    for family in families {
        let raw: Vec<f64> = family.iter().map(|&(_, p)| p).collect();
        for ((index, _), p) in family.into_iter().zip(holm(&raw)) {
            comparisons[index].as_mut().expect("a metric with a p value has a comparison").p = Some(p);
        }
    }
    for comparison in comparisons.iter_mut().flatten() {
        if let Some(difference) = &comparison.difference {
            comparison.verdict = Verdict::of(comparison.metric.better, difference, comparison.p);
        }
    }
    comparisons
}

/// Runs of different lengths are compared by rates, if a metric accumulates.
fn as_rate(measured: Measured, lengths: Lengths) -> Measured {
    let Measured { metric, before, after } = measured;
    // Work that was begun is always a rate here: it is compared with failures, which accumulate.
    if !metric.accumulates {
        return Measured { metric, before, after };
    }
    let each = |values: Vec<Option<f64>>, seconds: f64| {
        values.into_iter().map(|value| value.map(|value| value / seconds)).collect()
    };
    Measured {
        metric: metric.per_second(lengths.before),
        before: each(before, lengths.before),
        after: each(after, lengths.after),
    }
}

/// A metric with values in one run and without in the other, in most of the replications, if having none is worse than any value.
fn gained_or_lost(measured: &Measured) -> Option<Comparison> {
    let Measured { metric, before, after } = measured;
    if !metric.undefined_is_worst {
        return None;
    }
    let both = before.len().min(after.len());
    let (old, new) = (&before[..both], &after[..both]);
    let only = |defined: &[Option<f64>], missing: &[Option<f64>]| {
        defined
            .iter()
            .zip(missing)
            .filter(|(defined, missing)| defined.is_some() && missing.is_none())
            .count()
    };
    let mean = |values: &[Option<f64>]| Interval::of_present(values.iter().copied());
    let reason = |missing: usize| match missing < both {
        true => format!("{}, in {missing} of {both} replications", metric.undefined_is),
        false => metric.undefined_is.clone(),
    };
    let comparison = |before, after, verdict, no_value| Comparison {
        metric: metric.clone(),
        before,
        after,
        difference: None,
        p: None,
        verdict,
        no_value: Some(no_value),
    };
    let is_most = |missing: usize, defined: Option<Interval>| {
        defined.is_some_and(|defined| missing > 0 && 2 * missing > defined.n)
    };
    let (was, is) = (mean(old), mean(new));
    let (lost, gained) = (only(old, new), only(new, old));
    if is_most(lost, was) {
        Some(comparison(was, None, Verdict::Regresses, NoValue::After(reason(lost))))
    } else if is_most(gained, is) {
        Some(comparison(None, is, Verdict::Improves, NoValue::Before(reason(gained))))
    } else {
        None
    }
}

/// The difference over the replications that have both values, without a verdict, and its p value before corrections.
fn difference(measured: Measured) -> Option<(Comparison, Option<f64>)> {
    let pairs = measured.before.iter().zip(&measured.after);
    let (old, new): (Vec<f64>, Vec<f64>) = pairs.filter_map(|(&old, &new)| Some((old?, new?))).unzip();
    let difference = paired(&new, &old)?;
    let comparison = Comparison {
        metric: measured.metric,
        before: Interval::of(old),
        after: Interval::of(new),
        difference: Some(difference.interval),
        p: None,
        verdict: Verdict::Unclear,
        no_value: None,
    };
    Some((comparison, difference.p))
}
