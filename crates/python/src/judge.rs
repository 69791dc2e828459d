//! Differences of runs, judged by `vcpulab_judge`. An interval is a tuple: mean, half width, number, standard error.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use vcpulab_judge::{
    self as judge, Better, Kind, Lengths, Measured, NoValue, Stopping, Verdict, student, words,
};

type Values = Vec<Option<f64>>;
type Interval = (f64, Option<f64>, usize, Option<f64>);

fn flat(interval: judge::Interval) -> Interval {
    (interval.mean, interval.half_width, interval.n, interval.standard_error)
}

fn read((mean, half_width, n, standard_error): Interval) -> judge::Interval {
    judge::Interval { mean, half_width, n, standard_error }
}

/// The mean of the values that there are, with its interval.
#[pyfunction]
pub fn interval(values: Vec<Option<f64>>) -> Option<Interval> {
    judge::Interval::of_present(values).map(flat)
}

/// The median of values, with its interval.
#[pyfunction]
pub fn median_interval(values: Vec<f64>) -> Option<Interval> {
    judge::Interval::of_median(values).map(flat)
}

/// An interval as text.
#[pyfunction]
pub fn interval_text(interval: Interval) -> String {
    read(interval).to_string()
}

/// Student's test of paired differences, first minus second: the interval, and p.
#[pyfunction]
pub fn paired(first: Vec<f64>, second: Vec<f64>) -> Option<(Interval, Option<f64>)> {
    judge::paired(&first, &second).map(|difference| (flat(difference.interval), difference.p))
}

/// p values corrected by Holm's method.
#[pyfunction]
pub fn holm(ps: Vec<f64>) -> Vec<f64> {
    judge::holm(&ps)
}

/// The largest number of looks, by the choice of the number of replications.
#[pyfunction]
pub fn looks(stopping: &str) -> PyResult<u32> {
    named(&STOPPINGS, "stopping", stopping).map(Stopping::looks)
}

/// The probability that Student's t is at most `t`.
#[pyfunction]
pub fn t_cdf(degrees: f64, t: f64) -> f64 {
    student::cdf(degrees, t)
}

/// A quantile of Student's t.
#[pyfunction]
pub fn t_quantile(degrees: f64, probability: f64) -> f64 {
    student::quantile(degrees, probability)
}

/// The probability that Fisher's F exceeds `f`.
#[pyfunction]
pub fn f_tail(numerator: f64, denominator: f64, f: f64) -> f64 {
    judge::f_tail(numerator, denominator, f)
}

/// A value with three significant digits.
#[pyfunction]
pub fn number_text(value: f64) -> String {
    judge::number(value)
}

/// A p value with three decimals.
#[pyfunction]
pub fn p_text(p: f64) -> String {
    words::p(p)
}

/// A verdict as it is shown.
#[pyfunction]
pub fn verdict_text(verdict: &str) -> PyResult<&'static str> {
    Ok(words::shown(verdict_of(verdict)?))
}

fn verdict_of(word: &str) -> PyResult<Verdict> {
    Verdict::from_word(word).ok_or_else(|| PyValueError::new_err(format!("verdict: found `{word}`")))
}

const KINDS: [(&str, Kind); 5] = [
    ("app", Kind::App),
    ("domain", Kind::Domain),
    ("io", Kind::Io),
    ("host", Kind::Host),
    ("pcpu", Kind::Pcpu),
];
const STOPPINGS: [(&str, Stopping); 3] =
    [("stated", Stopping::Stated), ("decided", Stopping::Decided), ("timed", Stopping::Timed)];
const DIRECTIONS: [(&str, Better); 2] = [("higher", Better::Higher), ("lower", Better::Lower)];

fn named<T: Copy>(table: &[(&str, T)], field: &str, word: &str) -> PyResult<T> {
    let value = table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    value.ok_or_else(|| PyValueError::new_err(format!("{field}: found `{word}`")))
}

fn word<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, candidate)| *candidate == value).map_or("", |(name, _)| name)
}

/// A metric of a thing.
#[pyclass(frozen, eq, module = "vcpulab._engine")]
#[derive(PartialEq)]
pub struct Metric(judge::Metric);

#[pymethods]
impl Metric {
    #[new]
    #[pyo3(signature = (
        name, kind, domain, unit, better = None, whole = None, undefined_is = String::new(), undefined_is_worst = false,
        accumulates = false, in_question = false, begun = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is given by its name")]
    fn new(
        name: String,
        kind: &str,
        domain: String,
        unit: String,
        better: Option<&str>,
        whole: Option<f64>,
        undefined_is: String,
        undefined_is_worst: bool,
        accumulates: bool,
        in_question: bool,
        begun: Option<f64>,
    ) -> PyResult<Self> {
        let kind = named(&KINDS, "kind", kind)?;
        let better = better.map(|better| named(&DIRECTIONS, "better", better)).transpose()?;
        Ok(Metric(judge::Metric {
            name,
            kind,
            domain,
            unit,
            better,
            whole,
            undefined_is,
            undefined_is_worst,
            accumulates,
            in_question,
            begun,
        }))
    }

    /// The arguments of `new`, for pickling.
    fn __getnewargs__(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        let judge::Metric { kind, better, .. } = self.0;
        let metric = self.0.clone();
        let described = (metric.name, word(&KINDS, kind), metric.domain, metric.unit);
        let judged = (better.map(|better| word(&DIRECTIONS, better)), metric.whole, metric.undefined_is);
        let rest = (metric.undefined_is_worst, metric.accumulates, metric.in_question, metric.begun);
        let all = described.into_pyobject(py)?.add(judged)?.add(rest)?;
        Ok(all.cast_into::<PyTuple>()?.unbind())
    }
}

/// A metric before and after.
#[pyclass(frozen, eq, module = "vcpulab._engine")]
#[derive(PartialEq)]
pub struct Comparison(judge::Comparison);

#[pymethods]
impl Comparison {
    #[new]
    #[pyo3(signature = (metric, before, after, difference, p, verdict, before_undefined = None, after_undefined = None))]
    #[expect(clippy::too_many_arguments, reason = "each field is one")]
    fn new(
        metric: &Metric,
        before: Option<Interval>,
        after: Option<Interval>,
        difference: Option<Interval>,
        p: Option<f64>,
        verdict: &str,
        before_undefined: Option<String>,
        after_undefined: Option<String>,
    ) -> PyResult<Self> {
        Ok(Comparison(judge::Comparison {
            metric: metric.0.clone(),
            before: before.map(read),
            after: after.map(read),
            difference: difference.map(read),
            p,
            verdict: verdict_of(verdict)?,
            no_value: before_undefined.map(NoValue::Before).or(after_undefined.map(NoValue::After)),
        }))
    }

    /// The arguments of `new`, for pickling.
    #[expect(clippy::type_complexity, reason = "a tuple for Python")]
    fn __getnewargs__(
        &self,
    ) -> (
        Metric,
        Option<Interval>,
        Option<Interval>,
        Option<Interval>,
        Option<f64>,
        &'static str,
        Option<&str>,
        Option<&str>,
    ) {
        let metric = Metric(self.0.metric.clone());
        let (before, after, difference) = (self.before(), self.after(), self.difference());
        let (no_before, no_after) = (self.before_undefined(), self.after_undefined());
        (metric, before, after, difference, self.p(), self.verdict(), no_before, no_after)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.metric.name.hash(&mut hasher);
        hasher.finish()
    }

    #[getter]
    fn before(&self) -> Option<Interval> {
        self.0.before.map(flat)
    }

    #[getter]
    fn after(&self) -> Option<Interval> {
        self.0.after.map(flat)
    }

    #[getter]
    fn difference(&self) -> Option<Interval> {
        self.0.difference.map(flat)
    }

    #[getter]
    fn p(&self) -> Option<f64> {
        self.0.p
    }

    #[getter]
    fn verdict(&self) -> &'static str {
        self.0.verdict.word()
    }

    #[getter]
    fn before_undefined(&self) -> Option<&str> {
        match &self.0.no_value {
            Some(NoValue::Before(reason)) => Some(reason),
            _ => None,
        }
    }

    #[getter]
    fn after_undefined(&self) -> Option<&str> {
        match &self.0.no_value {
            Some(NoValue::After(reason)) => Some(reason),
            _ => None,
        }
    }

    #[getter]
    fn percent(&self) -> Option<f64> {
        self.0.percent()
    }

    #[getter]
    fn ends(&self) -> Option<(f64, f64)> {
        self.0.ends()
    }

    #[getter]
    fn width(&self) -> Option<f64> {
        self.0.width()
    }

    #[getter]
    fn size(&self) -> f64 {
        self.0.size()
    }

    #[getter]
    fn is_large(&self) -> bool {
        self.0.is_large()
    }

    #[getter]
    fn may_regress(&self) -> bool {
        self.0.may_regress()
    }

    #[getter]
    fn may_improve(&self) -> bool {
        self.0.may_improve()
    }

    #[getter]
    fn matters(&self) -> bool {
        self.0.matters()
    }

    #[getter]
    fn rank(&self) -> (u8, bool, f64) {
        let (kind, later, size) = self.0.rank();
        (kind as u8, later, size)
    }

    #[getter]
    fn change(&self) -> String {
        words::change(&self.0)
    }

    #[getter]
    fn in_doubt(&self) -> String {
        words::in_doubt(&self.0)
    }

    #[getter]
    fn unit(&self) -> String {
        words::unit(&self.0)
    }

    #[getter]
    fn percent_text(&self) -> String {
        words::percent(&self.0)
    }

    #[getter]
    fn difference_text(&self) -> String {
        words::difference(&self.0)
    }

    #[getter]
    fn verdict_text(&self) -> &'static str {
        words::verdict(&self.0)
    }
}

/// Metrics of two runs of these lengths in seconds, compared; `None` for each without a pair of values.
#[pyfunction]
pub fn compare(
    metrics: Vec<(PyRef<'_, Metric>, Values, Values)>,
    lengths: (f64, f64),
    looks: u32,
) -> Vec<Option<Comparison>> {
    let measured = metrics.into_iter().map(|(metric, before, after)| Measured {
        metric: metric.0.clone(),
        before,
        after,
    });
    let lengths = Lengths { before: lengths.0, after: lengths.1 };
    judge::compare(measured.collect(), lengths, looks)
        .into_iter()
        .map(|result| result.map(Comparison))
        .collect()
}

/// Comparisons in words, line by line.
#[pyfunction]
pub fn comparison_lines(comparisons: Vec<PyRef<'_, Comparison>>) -> Vec<String> {
    words::lines(&comparisons.iter().map(|comparison| &comparison.0).collect::<Vec<_>>())
}
