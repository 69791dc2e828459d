//! Running a scenario from Python, and its result tables there.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use vcpulab_measure::{AppRow, DomainRow, PcpuRow, TraceRow, VcpuRow};
use vcpulab_scenario::{RunError, RunOptions};

use crate::error::engine_error;
use crate::scenario::Scenario;
use crate::watch::watched;

/// Runs every replication of a scenario.
#[pyfunction]
#[pyo3(signature = (scenario, *, jobs = 0, trace = false, progress = None))]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    jobs: usize,
    trace: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let scenario = scenario.checked.clone();
    let work = watched(py, progress, move |watch| {
        let results =
            vcpulab_scenario::run(&scenario, &RunOptions { jobs, trace }, &|done| watch.advance(done))?;
        Ok::<_, RunError>(Results {
            domains: DomainRow::batch(&results.domains),
            vcpus: VcpuRow::batch(&results.vcpus),
            pcpus: PcpuRow::batch(&results.pcpus),
            apps: AppRow::batch(&results.apps),
            trace: TraceRow::batch(&results.trace),
            untraced: results.untraced,
            rejected_actions: results.rejected_actions,
        })
    });
    work?.map_err(engine_error)
}

/// What a run leaves behind.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Results {
    domains: RecordBatch,
    vcpus: RecordBatch,
    pcpus: RecordBatch,
    apps: RecordBatch,
    trace: RecordBatch,
    /// Decisions for which the trace had no room.
    #[pyo3(get)]
    untraced: u64,
    /// Actions whose values the scheduler refused.
    #[pyo3(get)]
    rejected_actions: u64,
}

#[pymethods]
impl Results {
    fn domains(&self) -> Table {
        Table { batch: self.domains.clone() }
    }

    fn vcpus(&self) -> Table {
        Table { batch: self.vcpus.clone() }
    }

    fn pcpus(&self) -> Table {
        Table { batch: self.pcpus.clone() }
    }

    fn apps(&self) -> Table {
        Table { batch: self.apps.clone() }
    }

    fn trace(&self) -> Table {
        Table { batch: self.trace.clone() }
    }
}

/// An Arrow table that any frame library can take over without copying.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface's stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // The interface allows to answer with the table's own schema.
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
