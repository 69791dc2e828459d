//! The host as a policy written in Python sees it: the questions and requests of `vcpulab_run::own::lent`.

use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use vcpulab_host::CpuMask;
use vcpulab_run::own::{Refused, lent};

/// A refusal as a Python exception.
pub fn refusal(refused: Refused) -> PyErr {
    let text = refused.to_string();
    match refused {
        Refused::NotLent => PyRuntimeError::new_err(text),
        Refused::Unknown(_) => PyIndexError::new_err(text),
        Refused::Impossible(_) => PyValueError::new_err(text),
    }
}

/// The host as a policy sees it, and the requests that a policy may make.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Context;

#[pymethods]
impl Context {
    /// The time, ns since the host started.
    #[getter]
    fn now(&self) -> PyResult<i64> {
        lent::now().map_err(refusal)
    }

    /// The pCPUs of this scheduler, ascending.
    #[getter]
    fn pcpus<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        as_tuple(py, &lent::pcpus().map_err(refusal)?)
    }

    /// The vCPUs of the domains in this scheduler's CPU pool, in order of creation.
    #[getter]
    fn guest_vcpus<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, lent::guest_vcpus().map_err(refusal)?)
    }

    /// The pCPU on which the code at hand executes.
    #[getter]
    fn executing(&self) -> PyResult<u32> {
        lent::executing().map_err(refusal)
    }

    /// The socket of a pCPU.
    fn socket(&self, p: u32) -> PyResult<u32> {
        lent::socket(p).map_err(refusal)
    }

    /// The core of a pCPU, counted over the whole host.
    fn core(&self, p: u32) -> PyResult<u32> {
        lent::core(p).map_err(refusal)
    }

    /// The NUMA node of a pCPU.
    fn node(&self, p: u32) -> PyResult<u32> {
        lent::node(p).map_err(refusal)
    }

    /// The vCPU that a pCPU executes; during a decision still the outgoing vCPU.
    fn current(&self, p: u32) -> PyResult<u32> {
        lent::current(p).map_err(refusal)
    }

    /// The idle vCPU of a pCPU.
    fn idle(&self, p: u32) -> PyResult<u32> {
        lent::idle(p).map_err(refusal)
    }

    /// Whether a vCPU is an idle vCPU.
    fn is_idle(&self, v: u32) -> PyResult<bool> {
        lent::is_idle(v).map_err(refusal)
    }

    /// Whether a vCPU runs now, on its processor.
    fn is_current(&self, v: u32) -> PyResult<bool> {
        lent::is_current(v).map_err(refusal)
    }

    /// The pCPU that a vCPU is assigned to: where it runs, ran last, or has been placed.
    fn processor(&self, v: u32) -> PyResult<u32> {
        lent::processor(v).map_err(refusal)
    }

    /// Whether a vCPU is neither blocked, paused, parked nor migrating.
    fn runnable(&self, v: u32) -> PyResult<bool> {
        lent::runnable(v).map_err(refusal)
    }

    /// The pCPUs that a vCPU may run on, ascending.
    fn affinity<'py>(&self, py: Python<'py>, v: u32) -> PyResult<Bound<'py, PyTuple>> {
        as_tuple(py, &lent::affinity(v).map_err(refusal)?)
    }

    /// The pCPUs that a vCPU prefers, ascending, if any were given.
    fn soft_affinity<'py>(&self, py: Python<'py>, v: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        lent::soft_affinity(v).map_err(refusal)?.map(|mask| as_tuple(py, &mask)).transpose()
    }

    /// The domain of a vCPU; idle vCPUs have none.
    fn dom(&self, v: u32) -> PyResult<u32> {
        lent::dom(v).map_err(refusal)
    }

    /// The vCPUs of a domain, in order.
    fn vcpus_of<'py>(&self, py: Python<'py>, d: u32) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, lent::vcpus_of(d).map_err(refusal)?)
    }

    /// A domain's number as an administrator sees it (0: Dom0).
    fn domain_number(&self, d: u32) -> PyResult<i64> {
        lent::domain_number(d).map_err(refusal)
    }

    /// Domain number and vCPU number in the domain; (-1, p) for the idle vCPU of pCPU p.
    fn name(&self, v: u32) -> PyResult<(i64, i64)> {
        lent::name(v).map_err(refusal)
    }

    /// The time of a vCPU's last switch, in or out, ns since the host started (0: no switch yet).
    fn switched_at(&self, v: u32) -> PyResult<i64> {
        lent::switched_at(v).map_err(refusal)
    }

    /// The time that a vCPU has run up to now, ns.
    fn running_ns(&self, v: u32) -> PyResult<i64> {
        lent::running_ns(v).map_err(refusal)
    }

    /// Asks a pCPU of this scheduler to decide, once the event at hand has been handled.
    fn raise_reschedule(&self, p: u32) -> PyResult<()> {
        lent::raise_reschedule(p).map_err(refusal)
    }

    /// Assigns a vCPU, not running, to a pCPU of this scheduler.
    fn set_processor(&self, v: u32, p: u32) -> PyResult<()> {
        lent::set_processor(v, p).map_err(refusal)
    }

    /// Asks for a running vCPU to be moved: once it has stopped, it goes to the pCPU that `pick` says.
    fn start_migration(&self, v: u32) -> PyResult<()> {
        lent::start_migration(v).map_err(refusal)
    }

    /// Makes a vCPU not runnable until it is unparked, as a cap does. Parking twice changes nothing.
    ///
    /// No hook is called: a policy that parks the running vCPU asks its pCPU to reschedule.
    fn park(&self, v: u32) -> PyResult<()> {
        lent::park(v).map_err(refusal)
    }

    /// Ends the parking of a vCPU, if it is parked.
    ///
    /// No hook is called: if the vCPU is runnable now, the policy treats it as one that wakes.
    fn unpark(&self, v: u32) -> PyResult<()> {
        lent::unpark(v).map_err(refusal)
    }

    /// Whether the policy has parked a vCPU.
    fn is_parked(&self, v: u32) -> PyResult<bool> {
        lent::is_parked(v).map_err(refusal)
    }

    /// Makes a timer, stopped; when due, the hook `timer` gets the token.
    #[pyo3(signature = (p, token = 0))]
    fn new_timer(&self, p: u32, token: u32) -> PyResult<u32> {
        lent::new_timer(p, token).map_err(refusal)
    }

    /// Sets or moves a timer, ns since the host started; a time already past counts as now.
    fn set_timer(&self, timer: u32, at: i64) -> PyResult<()> {
        lent::set_timer(timer, at).map_err(refusal)
    }

    /// Stops a timer.
    fn stop_timer(&self, timer: u32) -> PyResult<()> {
        lent::stop_timer(timer).map_err(refusal)
    }

    /// The time at which a timer is due, ns since the host started; `None`: stopped.
    fn timer_expiry(&self, timer: u32) -> PyResult<Option<i64>> {
        lent::timer_expiry(timer).map_err(refusal)
    }
}

/// The pCPUs of a set, ascending.
pub fn as_tuple<'py>(py: Python<'py>, mask: &CpuMask) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, mask.iter().map(|p| p.0).collect::<Vec<u32>>())
}
