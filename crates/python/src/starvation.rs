//! Starving domains, found by `vcpulab_run::starvation`. A starving domain is a tuple: name, reason.

use pyo3::prelude::*;
use vcpulab_judge::starvation::{self as judge, Starved};
use vcpulab_run::starvation::{self as run, AppColumns, Columns, DomainColumns, VcpuColumns};

use crate::scenario::Scenario;

type Reasons = Vec<(String, String)>;
type VcpuLists = (Vec<String>, Vec<u32>, Vec<i64>, Vec<i64>, Vec<i64>, Vec<i64>);
type DomainLists = (Vec<String>, Vec<String>);
type AppLists = (Vec<String>, Vec<u32>, Vec<f64>, Vec<u64>);

fn flat(starved: Vec<Starved>) -> Reasons {
    starved.into_iter().map(|Starved { domain, reason }| (domain, reason)).collect()
}

/// A run to test for starvation.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Observed(run::Observed);

#[pymethods]
impl Observed {
    /// The run of a scenario with these columns of its tables, in the order of [`Columns`].
    #[new]
    fn new(scenario: &Scenario, vcpus: VcpuLists, domains: DomainLists, apps: AppLists) -> Self {
        let (domain, vcpu, elapsed_ns, running_ns, runnable_ns, offline_ns) = vcpus;
        let vcpus = VcpuColumns { domain, vcpu, elapsed_ns, running_ns, runnable_ns, offline_ns };
        let (domain, pool) = domains;
        let domains = DomainColumns { domain, pool };
        let (domain, app, throughput_per_s, completed) = apps;
        let apps = AppColumns { domain, app, throughput_per_s, completed };
        Observed(run::Observed::new(&scenario.checked, Columns { vcpus, domains, apps }))
    }

    /// The domains that starve.
    fn starved(&self) -> Reasons {
        flat(self.0.starved())
    }

    /// The domains that starve in another run after this one alone, in both, and in this one alone.
    fn until(&self, after: &Self) -> (Reasons, Reasons, Reasons) {
        let judge::Starving { newly, still, no_longer } = self.0.compare_with(&after.0);
        (flat(newly), flat(still), flat(no_longer))
    }
}

/// Starving domains in a line.
#[pyfunction]
pub fn starved_line(label: &str, starved: Reasons) -> String {
    let starved: Vec<Starved> =
        starved.into_iter().map(|(domain, reason)| Starved { domain, reason }).collect();
    judge::line(label, &starved)
}
