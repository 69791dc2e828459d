//! Two runs judged: what `vcpulab compare` says of the metrics that the other side has computed, and who starves.

use serde::{Deserialize, Serialize};
use vcpulab_judge::{Interval, Kind, Lengths, Measured, Metric, Stopping, Verdict, compare, number, words};
use vcpulab_run::starvation::{self, Columns};
use vcpulab_scenario::Problems;

use crate::policy::Policies;
use crate::source::{Source, parsed};

/// Metrics of a run, or of two.
#[derive(Deserialize)]
pub struct Runs {
    metrics: Vec<Values>,
    /// The measured time of both runs, s.
    lengths: (f64, f64),
    /// The choice of the number of replications, by which p values are corrected.
    stopping: Stopping,
    /// Both runs; `None`: there is only one.
    runs: Option<(Observed, Observed)>,
}

/// A run to test for starvation.
#[derive(Deserialize)]
struct Observed {
    #[serde(flatten)]
    scenario: Source,
    columns: Columns,
}

impl Observed {
    fn read(self) -> Result<starvation::Observed, Problems> {
        let scenario = parsed(&self.scenario.text, &Policies::from(self.scenario.policies))?;
        Ok(starvation::Observed::new(&scenario, self.columns))
    }
}

/// A metric with its values in each replication; `None` in place of a list: the run does not have the metric.
#[derive(Deserialize)]
struct Values {
    #[serde(flatten)]
    metric: Metric,
    before: Option<Vec<Option<f64>>>,
    after: Option<Vec<Option<f64>>>,
}

/// The answer, in the order of the metrics.
#[derive(Serialize)]
pub struct Judgement {
    metrics: Vec<Judged>,
    /// Starving domains in words.
    starving: Vec<String>,
    /// Differences in words.
    lines: Vec<String>,
}

#[derive(Serialize)]
struct Judged {
    before: Option<Side>,
    after: Option<Side>,
    comparison: Option<Shown>,
}

/// A mean, as it is shown with its interval, and without.
#[derive(Serialize)]
struct Side {
    mean: f64,
    text: String,
    number: String,
}

/// A comparison, as it is shown.
#[derive(Serialize)]
struct Shown {
    verdict: Verdict,
    text: &'static str,
    /// The difference in % of the value before, with its sign; `None`: there is none.
    percent: Option<String>,
}

/// Judges metrics, and finds starving domains.
///
/// # Errors
/// The text of a run is no scenario.
pub fn judged(runs: Runs) -> Result<Judgement, Problems> {
    let starving = match runs.runs {
        Some((before, after)) => before.read()?.compare_with(&after.read()?).lines(),
        None => Vec::new(),
    };
    let side = |values: &Option<Vec<Option<f64>>>| {
        let interval = Interval::of_present(values.iter().flatten().copied())?;
        Some(Side { mean: interval.mean, text: interval.to_string(), number: number(interval.mean) })
    };
    let mut metrics: Vec<Judged> = Vec::with_capacity(runs.metrics.len());
    let (mut places, mut measured) = (Vec::new(), Vec::new());
    for Values { metric, before, after } in runs.metrics {
        metrics.push(Judged { before: side(&before), after: side(&after), comparison: None });
        // The host's metrics are compared in place of its pCPUs'.
        if let (Some(before), Some(after), true) = (before, after, metric.kind != Kind::Pcpu) {
            places.push(metrics.len() - 1);
            measured.push(Measured { metric, before, after });
        }
    }
    let lengths = Lengths { before: runs.lengths.0, after: runs.lengths.1 };
    let comparisons = compare(measured, lengths, runs.stopping.looks());
    for (place, comparison) in places.into_iter().zip(&comparisons) {
        metrics[place].comparison = comparison.as_ref().map(|comparison| Shown {
            verdict: comparison.verdict,
            text: words::verdict(comparison),
            percent: comparison.percent().map(|_| words::percent(comparison)),
        });
    }
    let lines = words::lines(&comparisons.iter().flatten().collect::<Vec<_>>());
    Ok(Judgement { metrics, starving, lines })
}
