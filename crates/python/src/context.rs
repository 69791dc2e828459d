//! The host as a policy written in Python sees it: `vcpulab_host::PolicyContext`, with plain integers for ids.
//!
//! A hook borrows the host's context for as long as it lasts, so the Python object holds none of it: it reaches for what
//! is lent at the moment, and finds nothing outside a hook. Every id is checked.

use environmental::environmental;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use vcpulab_host::{CpuMask, DomId, NEVER, PcpuId, PolicyContext as Host, Time, TimerId, VcpuId};

environmental!(lent: Host);

/// Most timers of a policy: more are a mistake.
const TIMERS_MAX: usize = 1_000_000;

/// Lends the host's context to the Python code that `hook` calls.
pub fn lend<R>(host: &mut Host, hook: impl FnOnce() -> R) -> R {
    lent::using(host, hook)
}

fn with<R>(ask: impl FnOnce(&mut Host) -> PyResult<R>) -> PyResult<R> {
    lent::with(ask).unwrap_or_else(|| Err(PyRuntimeError::new_err("a context is there during a hook only")))
}

/// The host as a policy sees it, and the requests that a policy may make.
#[pyclass(frozen, module = "vcpulab._engine")]
pub struct Context;

#[pymethods]
impl Context {
    /// The time, ns since the host started.
    #[getter]
    fn now(&self) -> PyResult<i64> {
        with(|host| Ok(host.now().ns()))
    }

    /// The pCPUs of this scheduler, ascending.
    #[getter]
    fn pcpus<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mask = with(|host| Ok(*host.pcpus()))?;
        as_tuple(py, &mask)
    }

    /// The vCPUs of the domains in this scheduler's CPU pool, in order of creation.
    #[getter]
    fn guest_vcpus<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let vcpus: Vec<u32> = with(|host| Ok(host.pool_vcpus().map(|v| v.0).collect()))?;
        PyTuple::new(py, vcpus)
    }

    /// The pCPU on which the code at hand executes.
    #[getter]
    fn executing(&self) -> PyResult<u32> {
        with(|host| Ok(host.executing().0))
    }

    /// The socket a pCPU is on.
    fn socket(&self, p: u32) -> PyResult<u32> {
        with(|host| Ok(host.socket(pcpu(host, p)?)))
    }

    /// The core a pCPU is a thread of, counted over the whole host.
    fn core(&self, p: u32) -> PyResult<u32> {
        with(|host| Ok(host.core(pcpu(host, p)?)))
    }

    /// The NUMA node a pCPU is on.
    fn node(&self, p: u32) -> PyResult<u32> {
        with(|host| Ok(host.node(pcpu(host, p)?)))
    }

    /// The vCPU that a pCPU executes; during a decision still the outgoing one.
    fn current(&self, p: u32) -> PyResult<u32> {
        with(|host| Ok(host.current(pcpu(host, p)?).0))
    }

    /// The idle vCPU of a pCPU.
    fn idle(&self, p: u32) -> PyResult<u32> {
        with(|host| Ok(host.idle(pcpu(host, p)?).0))
    }

    /// Is it an idle vCPU?
    fn is_idle(&self, v: u32) -> PyResult<bool> {
        with(|host| Ok(host.is_idle(vcpu(host, v)?)))
    }

    /// Does it run now, on its processor?
    fn is_current(&self, v: u32) -> PyResult<bool> {
        with(|host| Ok(host.is_current(vcpu(host, v)?)))
    }

    /// The pCPU that a vCPU is assigned to: where it runs, ran last, or has been placed.
    fn processor(&self, v: u32) -> PyResult<u32> {
        with(|host| Ok(host.processor(vcpu(host, v)?).0))
    }

    /// Is it neither blocked, paused, parked nor migrating?
    fn runnable(&self, v: u32) -> PyResult<bool> {
        with(|host| Ok(host.runnable(vcpu(host, v)?)))
    }

    /// The pCPUs it may run on, ascending.
    fn affinity<'py>(&self, py: Python<'py>, v: u32) -> PyResult<Bound<'py, PyTuple>> {
        let mask = with(|host| Ok(*host.affinity(vcpu(host, v)?)))?;
        as_tuple(py, &mask)
    }

    /// The pCPUs it prefers, ascending, if any were given.
    fn soft_affinity<'py>(&self, py: Python<'py>, v: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mask = with(|host| {
            let v = vcpu(host, v)?;
            Ok(host.soft_affinity(v).copied())
        })?;
        mask.map(|mask| as_tuple(py, &mask)).transpose()
    }

    /// Its domain; idle vCPUs have none.
    fn dom(&self, v: u32) -> PyResult<u32> {
        with(|host| Ok(host.dom(guest(host, v)?).0))
    }

    /// The vCPUs of a domain, in order.
    fn vcpus_of<'py>(&self, py: Python<'py>, d: u32) -> PyResult<Bound<'py, PyTuple>> {
        let vcpus: Vec<u32> = with(|host| Ok(host.vcpus_of(domain(host, d)?).map(|v| v.0).collect()))?;
        PyTuple::new(py, vcpus)
    }

    /// A domain's number as an administrator sees it (0: Dom0).
    fn domain_number(&self, d: u32) -> PyResult<i64> {
        with(|host| Ok(host.domain_number(domain(host, d)?)))
    }

    /// Domain number and vCPU number in the domain; (-1, p) for the idle vCPU of pCPU p.
    fn name(&self, v: u32) -> PyResult<(i64, i64)> {
        with(|host| Ok(host.name(vcpu(host, v)?)))
    }

    /// The time of its last switch, in or out, ns since the host started (0: none yet).
    fn switched_at(&self, v: u32) -> PyResult<i64> {
        with(|host| Ok(host.switched_at(vcpu(host, v)?).ns()))
    }

    /// The time that it has run so far, ns.
    fn running_ns(&self, v: u32) -> PyResult<i64> {
        with(|host| Ok(host.run_times(vcpu(host, v)?).running_ns.ns()))
    }

    /// Asks a pCPU of this scheduler to decide, once the event at hand has been handled.
    fn raise_reschedule(&self, p: u32) -> PyResult<()> {
        with(|host| {
            let p = own_pcpu(host, p)?;
            host.raise_reschedule(p);
            Ok(())
        })
    }

    /// Assigns a vCPU, not running, to a pCPU of this scheduler.
    fn set_processor(&self, v: u32, p: u32) -> PyResult<()> {
        with(|host| {
            let (v, p) = (own_vcpu(host, v)?, own_pcpu(host, p)?);
            if host.is_current(v) && host.processor(v) != p {
                let (name, own) = (name(host, v), host.processor(v).0);
                return Err(PyValueError::new_err(format!("{name} runs on pCPU {own}: it cannot move now")));
            }
            host.set_processor(v, p);
            Ok(())
        })
    }

    /// Asks for a running vCPU to be moved: once it has stopped, it goes to the pCPU that `pick` says.
    fn start_migration(&self, v: u32) -> PyResult<()> {
        with(|host| {
            let v = own_vcpu(host, v)?;
            host.start_migration(v);
            Ok(())
        })
    }

    /// Makes a vCPU not runnable until it is unparked, as a cap does. Parking twice changes nothing.
    ///
    /// No hook is called: a policy that parks the running vCPU asks its pCPU to reschedule.
    fn park(&self, v: u32) -> PyResult<()> {
        with(|host| {
            let v = own_vcpu(host, v)?;
            host.park(v);
            Ok(())
        })
    }

    /// Ends the parking of a vCPU, if it is parked.
    ///
    /// No hook is called: if the vCPU is runnable now, the policy treats it as one that wakes.
    fn unpark(&self, v: u32) -> PyResult<()> {
        with(|host| {
            let v = own_vcpu(host, v)?;
            host.unpark(v);
            Ok(())
        })
    }

    /// Has the policy parked it?
    fn is_parked(&self, v: u32) -> PyResult<bool> {
        with(|host| Ok(host.is_parked(vcpu(host, v)?)))
    }

    /// Makes a timer, stopped; when due, the hook `timer` gets the token.
    #[pyo3(signature = (p, token = 0))]
    fn new_timer(&self, p: u32, token: u32) -> PyResult<u32> {
        with(|host| {
            let p = own_pcpu(host, p)?;
            if host.timer_count() >= TIMERS_MAX {
                return Err(PyValueError::new_err(format!(
                    "more than {TIMERS_MAX} timers; set one anew instead"
                )));
            }
            Ok(host.new_timer(p, token).0)
        })
    }

    /// Sets or moves a timer, ns since the host started; a time already past counts as now.
    fn set_timer(&self, timer: u32, at: i64) -> PyResult<()> {
        with(|host| {
            let timer = own_timer(host, timer)?;
            host.set_timer(timer, Time::from_ns(at));
            Ok(())
        })
    }

    /// Stops a timer.
    fn stop_timer(&self, timer: u32) -> PyResult<()> {
        with(|host| {
            let timer = own_timer(host, timer)?;
            host.stop_timer(timer);
            Ok(())
        })
    }

    /// The time at which a timer is due, ns since the host started; `None`: stopped.
    fn timer_expiry(&self, timer: u32) -> PyResult<Option<i64>> {
        with(|host| {
            let at = host.timer_expiry(own_timer(host, timer)?);
            Ok((at != NEVER).then(|| at.ns()))
        })
    }
}

/// The pCPU of that number.
pub fn pcpu(host: &Host, p: u32) -> PyResult<PcpuId> {
    known(p, host.pcpu_count() as usize, "pCPU").map(PcpuId)
}

/// A pCPU in the policy's own CPU pool.
fn own_pcpu(host: &Host, p: u32) -> PyResult<PcpuId> {
    let p = pcpu(host, p)?;
    if host.pcpus().contains(p) {
        return Ok(p);
    }
    Err(PyValueError::new_err(format!("pCPU {} is in another CPU pool", p.0)))
}

fn vcpu(host: &Host, v: u32) -> PyResult<VcpuId> {
    known(v, host.vcpu_count(), "vCPU").map(VcpuId)
}

/// A vCPU of a domain, not an idle one.
fn guest(host: &Host, v: u32) -> PyResult<VcpuId> {
    let v = vcpu(host, v)?;
    if host.is_idle(v) {
        return Err(PyValueError::new_err(format!(
            "vCPU {} is the idle one of pCPU {}: it is no domain's",
            v.0, v.0
        )));
    }
    Ok(v)
}

/// A vCPU of a domain in the policy's own CPU pool.
fn own_vcpu(host: &Host, v: u32) -> PyResult<VcpuId> {
    let v = guest(host, v)?;
    if host.pool_of(host.dom(v)) == host.pool_of_pcpu(host.first_pcpu()) {
        return Ok(v);
    }
    Err(PyValueError::new_err(format!("{} is in another CPU pool", name(host, v))))
}

fn domain(host: &Host, d: u32) -> PyResult<DomId> {
    known(d, host.domain_count(), "domain").map(DomId)
}

/// A timer that the policy made, not the host or another CPU pool's policy.
fn own_timer(host: &Host, timer: u32) -> PyResult<TimerId> {
    let timer = known(timer, host.timer_count(), "timer").map(TimerId)?;
    if host.is_own_timer(timer) {
        return Ok(timer);
    }
    Err(PyValueError::new_err(format!("timer {} is not one that this policy made", timer.0)))
}

fn known(id: u32, count: usize, what: &str) -> PyResult<u32> {
    if (id as usize) < count {
        return Ok(id);
    }
    Err(PyIndexError::new_err(format!("there is no {what} {id}; the host has {count}, numbered from 0")))
}

/// A vCPU's name in messages.
pub fn name(host: &Host, v: VcpuId) -> String {
    let (domain, vcpu) = host.name(v);
    format!("vCPU {vcpu} of domain {domain}")
}

/// The pCPUs of a set, ascending.
pub fn as_tuple<'py>(py: Python<'py>, mask: &CpuMask) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, mask.iter().map(|p| p.0).collect::<Vec<u32>>())
}
