//! A metric before and after: the verdict, and whether the difference matters.

use std::cmp::Ordering;

use serde::Serialize;

use crate::interval::{CONFIDENCE, Interval};
use crate::metric::{Better, Kind, Metric};

/// A difference that is not significant may be a harm (or a gain) if its mean is worse (or better) by more than this, % of the
/// value before, and ...
pub const HARM_MEAN: f64 = 5.0;
/// ... the far end of its interval by more than this.
pub const HARM_END: f64 = 20.0;
/// A smaller change, % of the value before, is negligible, ...
pub const SMALL: f64 = 1.0;
/// ... and so is a smaller one of a metric with a whole, % of that whole; of failures, less than `SMALL` % of the work begun.
pub const SMALL_OF_WHOLE: f64 = 0.1;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Significantly better.
    Improves,
    /// Significantly worse.
    Regresses,
    /// Significantly higher, of a metric without a good direction.
    Higher,
    /// Significantly lower, of a metric without a good direction.
    Lower,
    /// Exactly the same.
    Same,
    /// No significant difference.
    Unclear,
}

impl Verdict {
    pub(crate) fn of(better: Option<Better>, difference: &Interval, p: Option<f64>) -> Verdict {
        if difference.mean == 0.0 && difference.half_width.unwrap_or(0.0) == 0.0 {
            return Verdict::Same;
        }
        // Of one pair, or of values that are not numbers, nothing is certain.
        let significant = p.is_some_and(|p| p <= 1.0 - CONFIDENCE);
        match (significant, better, difference.mean > 0.0) {
            (false, ..) => Verdict::Unclear,
            (true, None, true) => Verdict::Higher,
            (true, None, false) => Verdict::Lower,
            (true, Some(Better::Higher), true) | (true, Some(Better::Lower), false) => Verdict::Improves,
            (true, Some(_), _) => Verdict::Regresses,
        }
    }

    /// The verdict as one word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Improves => "improves",
            Verdict::Regresses => "regresses",
            Verdict::Higher => "higher",
            Verdict::Lower => "lower",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
        }
    }

    /// The verdict of a word.
    pub fn from_word(word: &str) -> Option<Verdict> {
        use Verdict::{Higher, Improves, Lower, Regresses, Same, Unclear};
        [Improves, Regresses, Higher, Lower, Same, Unclear].into_iter().find(|verdict| verdict.word() == word)
    }

    fn is_sure(self) -> bool {
        matches!(self, Verdict::Improves | Verdict::Regresses)
    }
}

/// The side on which a metric has no value in most replications, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoValue {
    /// The run before.
    Before(String),
    /// The run after.
    After(String),
}

impl NoValue {
    /// The reason.
    pub fn reason(&self) -> &str {
        let (NoValue::Before(reason) | NoValue::After(reason)) = self;
        reason
    }
}

/// A metric before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// The mean before; `None`: it has no value.
    pub before: Option<Interval>,
    /// The mean after; `None`: it has no value.
    pub after: Option<Interval>,
    /// After minus before, over the replications that have both.
    pub difference: Option<Interval>,
    /// The probability of such a difference if there were none, corrected for the number of metrics of its family and of
    /// looks; `None`: one pair, or no value on one side.
    pub p: Option<f64>,
    /// The outcome.
    pub verdict: Verdict,
    /// The side without a value; `None`: both have values.
    pub no_value: Option<NoValue>,
}

impl Comparison {
    /// The difference in % of the value before; `None` if that is 0, or undefined.
    pub fn percent(&self) -> Option<f64> {
        self.of_before(self.difference?.mean)
    }

    /// The ends of the interval of the difference, in % of the value before.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let Interval { mean, half_width, .. } = self.difference?;
        let half_width = half_width.unwrap_or(0.0);
        Some((self.of_before(mean - half_width)?, self.of_before(mean + half_width)?))
    }

    fn of_before(&self, value: f64) -> Option<f64> {
        let before = self.before?.mean;
        (before != 0.0).then(|| 100.0 * value / before.abs())
    }

    /// The value that a difference is a fraction of. After a value of 0 that is the value now: everything is a large part of it.
    fn base(&self) -> f64 {
        let mean = |side: Option<Interval>| side.map(|side| side.mean.abs()).filter(|&mean| mean != 0.0);
        mean(self.before).or(mean(self.after)).unwrap_or(0.0)
    }

    /// Half the width of the interval of the difference, as a fraction of the value before.
    pub fn width(&self) -> Option<f64> {
        let (half_width, base) = (self.difference?.half_width?, self.base());
        (base != 0.0).then(|| half_width / base)
    }

    /// `true`: it changes by more than `HARM_END` % of the value before.
    pub fn is_large(&self) -> bool {
        self.difference.is_some_and(|difference| difference.mean.abs() > HARM_END / 100.0 * self.base())
    }

    /// `true`: the difference is not significant, but perhaps a large harm.
    pub fn may_regress(&self) -> bool {
        self.may_change(-1.0)
    }

    /// `true`: the difference is not significant, but perhaps a large gain.
    pub fn may_improve(&self) -> bool {
        self.may_change(1.0)
    }

    /// `true`: the difference is not significant, but perhaps a large gain (1), or a large harm (-1).
    fn may_change(&self, sign: f64) -> bool {
        let (Verdict::Unclear, Some(better), Some(difference)) =
            (self.verdict, self.metric.better, self.difference)
        else {
            return false;
        };
        let base = self.base();
        let by = sign * if better == Better::Higher { difference.mean } else { -difference.mean };
        let end = by + difference.half_width.unwrap_or(0.0);
        base > 0.0 && by > HARM_MEAN / 100.0 * base && end > HARM_END / 100.0 * base && !self.is_small()
    }

    /// `true`: the metric improves or regresses by more than a negligible amount.
    pub fn matters(&self) -> bool {
        self.verdict.is_sure() && !self.is_small()
    }

    /// `true`: the metric improves or regresses by a negligible amount.
    pub fn is_negligible(&self) -> bool {
        self.verdict.is_sure() && self.is_small()
    }

    fn is_small(&self) -> bool {
        let Some(difference) = self.difference else { return false };
        let mean = difference.mean.abs();
        if let Some(begun) = self.metric.begun {
            return mean < SMALL / 100.0 * begun;
        }
        let is_small_of_whole = self.metric.whole.is_some_and(|whole| mean < SMALL_OF_WHOLE / 100.0 * whole);
        is_small_of_whole || self.percent().is_some_and(|percent| percent.abs() < SMALL)
    }

    /// The size of the difference, in % of the whole if the metric has one, else of the value before; infinite: there is none.
    pub fn size(&self) -> f64 {
        match (self.metric.whole, self.difference) {
            (Some(whole), Some(difference)) => 100.0 * difference.mean.abs() / whole,
            _ => self.percent().map_or(f64::INFINITY, f64::abs),
        }
    }

    /// The key of the order in which comparisons are listed: clients and applications first, then things that mean less to
    /// owners; of the same kind those that matter first, then the largest.
    pub fn rank(&self) -> (Kind, bool, f64) {
        (self.metric.kind, !(self.matters() || self.may_regress()), -self.size())
    }

    pub(crate) fn by_rank(&self, other: &Comparison) -> Ordering {
        let ((kind, later, size), (other_kind, other_later, other_size)) = (self.rank(), other.rank());
        kind.cmp(&other_kind).then(later.cmp(&other_later)).then(size.total_cmp(&other_size))
    }
}
