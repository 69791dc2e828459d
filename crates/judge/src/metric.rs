//! Metrics that are compared.

use serde::{Deserialize, Serialize};

/// The good direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: a throughput.
    Higher,
    /// Less is better: a response time.
    Lower,
}

/// The kind of a measured thing; those that mean most to the owners of domains come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An application or a client.
    App,
    /// A domain.
    Domain,
    /// The devices of a domain.
    Io,
    /// The host.
    Host,
    /// A pCPU.
    Pcpu,
}

/// A metric of a thing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The address, such as `http.response_p99`.
    pub name: String,
    /// The kind of the thing.
    pub kind: Kind,
    /// The domain that the metric concerns; empty: the host.
    pub domain: String,
    /// The unit, as it is shown.
    pub unit: String,
    /// The good direction; `None`: it has none, such as CPU time.
    pub better: Option<Better>,
    /// The whole that differences are a fraction of, such as 100 for percentages; `None`: the value before.
    pub whole: Option<f64>,
    /// The reason for a missing value.
    pub undefined_is: String,
    /// `true`: a missing value is worse than any value.
    pub undefined_is_worst: bool,
    /// `true`: the value grows with the measured time.
    pub accumulates: bool,
    /// `true`: the question is about this metric, so other metrics do not weaken its evidence.
    pub in_question: bool,
    /// Of failures: the units of work that were begun before, per replication; `None`: no failures.
    pub begun: Option<f64>,
}

impl Metric {
    /// The metric per second, to compare runs of different lengths. `seconds` is the length of the run before.
    pub(crate) fn per_second(&self, seconds: f64) -> Metric {
        let begun = self.begun.map(|begun| begun / seconds);
        Metric { unit: "1/s".to_owned(), accumulates: false, begun, ..self.clone() }
    }

    /// The domain, or `host`.
    pub(crate) fn owner(&self) -> &str {
        if self.domain.is_empty() { "host" } else { &self.domain }
    }
}
