//! A scheduler written in Python: every hook calls the method of that name.
//!
//! Python's answers are checked here and by the host, so none can make the engine panic. The first wrong one is kept, no
//! further hook is called, and the host ends the run.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTraceback};
use vcpulab_host::{
    CpuMask, Decision, DomId, HostRules, ParamValue, Params, PcpuId, PolicyContext, Rejected, Scheduler,
    Scope, Span, VcpuId,
};
use vcpulab_spec::PoolSpec;

use crate::context::{self, as_tuple, lend, name, pcpu};
use crate::error;

/// The exception that a policy raised, kept for the caller of the run.
pub type Raised = Mutex<Option<PyErr>>;

/// The content of a mutex, poisoned or not.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A policy, under the host rules of the 4.17 release.
pub struct PyPolicy<'py> {
    object: Bound<'py, PyAny>,
    context: Bound<'py, context::Context>,
    raised: &'py Raised,
    /// The defaults of a domain's parameters.
    defaults: Params,
    failure: Option<(&'static str, String)>,
}

impl<'py> PyPolicy<'py> {
    /// Makes one: `class(params, seed)`, with all of the pool's parameters.
    pub fn new(
        class: &Bound<'py, PyAny>,
        context: &Bound<'py, context::Context>,
        raised: &'py Raised,
        pool: &PoolSpec,
        seed: u64,
    ) -> Self {
        let mut params = defaults(pool, Scope::Global);
        pool.params.iter().for_each(|(name, value)| params.set(name, value.clone()));
        let made = as_dict(class.py(), &params).and_then(|params| class.call1((params, seed)));
        let nobody = class.py().None().into_bound(class.py());
        let (object, failed) = match made {
            Ok(object) => (object, None),
            Err(raised) => (nobody, Some(raised)),
        };
        let mut policy = PyPolicy {
            object,
            context: context.clone(),
            raised,
            defaults: defaults(pool, Scope::Domain),
            failure: None,
        };
        if let Some(raised) = failed {
            policy.fail("__init__", raised);
        }
        policy
    }

    fn py(&self) -> Python<'py> {
        self.object.py()
    }

    fn call_python(
        &self,
        ctx: &mut PolicyContext,
        hook: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let hook = PyString::intern(self.py(), hook);
        lend(ctx, || self.object.call_method1(hook, arguments))
    }

    /// Calls a hook and reads its answer. `None`: the policy has failed, now or before.
    fn ask<R>(
        &mut self,
        ctx: &mut PolicyContext,
        hook: &'static str,
        arguments: impl PyCallArgs<'py>,
        read: impl FnOnce(&PolicyContext, &Bound<'py, PyAny>) -> PyResult<R>,
    ) -> Option<R> {
        if self.failure.is_some() {
            return None;
        }
        let answer = self.call_python(ctx, hook, arguments).and_then(|answer| read(ctx, &answer));
        answer.map_err(|raised| self.fail(hook, raised)).ok()
    }

    /// Calls a hook that answers nothing.
    fn notify(&mut self, ctx: &mut PolicyContext, hook: &'static str, arguments: impl PyCallArgs<'py>) {
        self.ask(ctx, hook, arguments, |_, _| Ok(()));
    }

    /// Calls a hook that may refuse its arguments.
    fn propose(
        &mut self,
        ctx: &mut PolicyContext,
        hook: &'static str,
        arguments: impl PyCallArgs<'py>,
    ) -> Result<(), Rejected> {
        if self.failure.is_some() {
            return Err(Rejected);
        }
        self.call_python(ctx, hook, arguments).map(|_| ()).map_err(|raised| {
            if !raised.is_instance_of::<error::Rejected>(self.py()) {
                self.fail(hook, raised);
            }
            Rejected
        })
    }

    fn fail(&mut self, hook: &'static str, raised: PyErr) {
        self.failure = Some((hook, described(self.py(), &raised)));
        *lock(self.raised) = Some(raised);
    }

    fn with_params(&mut self, hook: &'static str, params: &Params) -> Option<Bound<'py, PyDict>> {
        as_dict(self.py(), params).map_err(|raised| self.fail(hook, raised)).ok()
    }
}

impl Scheduler for PyPolicy<'_> {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.notify(ctx, "add_pcpu", (self.context.clone(), p.0));
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.notify(ctx, "add_domain", (self.context.clone(), d.0));
        if !self.defaults.is_empty() {
            // Who refuses a default of his own has none.
            let _ = self.adjust(ctx, d, &self.defaults.clone());
        }
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "insert", (self.context.clone(), v.0));
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "remove", (self.context.clone(), v.0));
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.notify(ctx, "remove_domain", (self.context.clone(), d.0));
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "wake", (self.context.clone(), v.0));
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "sleep", (self.context.clone(), v.0));
    }

    fn yielded(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "yielded", (self.context.clone(), v.0));
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let read = |ctx: &PolicyContext, answer: &Bound<'_, PyAny>| {
            let expected =
                || wrong_answer(answer, "the next vCPU and its slice in ns, such as `(4, 10_000_000)`");
            let (next, slice) = answer.extract::<(u32, i64)>().map_err(|_| expected())?;
            let next = VcpuId(next);
            let excluded = next.index() < ctx.vcpu_count() && !ctx.affinity(next).contains(p);
            if excluded && !ctx.is_idle(next) {
                let name = name(ctx, next);
                let what = format!("pCPU {} was given {name}, whose affinity excludes it", p.0);
                return Err(PyValueError::new_err(what));
            }
            Ok(Decision { next, slice: Span::from_ns(slice) })
        };
        let decision = self.ask(ctx, "schedule", (self.context.clone(), p.0), read);
        decision.unwrap_or(Decision { next: ctx.idle(p), slice: Decision::UNLIMITED })
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.notify(ctx, "context_saved", (self.context.clone(), v.0));
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let read = |ctx: &PolicyContext, answer: &Bound<'_, PyAny>| {
            let p = answer.extract().map_err(|_| wrong_answer(answer, "a pCPU's number"))?;
            pcpu(ctx, p)
        };
        self.ask(ctx, "pick", (self.context.clone(), v.0), read).unwrap_or(ctx.processor(v))
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        self.notify(ctx, "migrate", (self.context.clone(), v.0, p.0));
    }

    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.notify(ctx, "timer", (self.context.clone(), token));
    }

    fn affinity(&mut self, ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        match as_tuple(self.py(), mask) {
            Ok(pcpus) => self.notify(ctx, "affinity", (self.context.clone(), v.0, pcpus)),
            Err(raised) => self.fail("affinity", raised),
        }
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        let params = self.with_params("adjust", params).ok_or(Rejected)?;
        self.propose(ctx, "adjust", (self.context.clone(), d.0, params))
    }

    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        let params = self.with_params("adjust_global", params).ok_or(Rejected)?;
        self.propose(ctx, "adjust_global", (self.context.clone(), params))
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        let text = self.call_python(&mut ctx.clone(), "dump", (self.context.clone(),));
        out.write_str(&text.map_or_else(|raised| described(self.py(), &raised), |text| text.to_string()))
    }

    fn failure(&self) -> Option<(&'static str, String)> {
        self.failure.clone()
    }
}

/// The defaults of a pool's scheduler.
fn defaults(pool: &PoolSpec, scope: Scope) -> Params {
    let params = pool.generation.params.iter().filter(|param| param.scope == scope);
    params.fold(Params::new(), |defaults, param| defaults.with(param.name, param.default))
}

fn wrong_answer(answer: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let found = answer.repr().map_or_else(|_| "something unprintable".to_owned(), |repr| repr.to_string());
    PyTypeError::new_err(format!("the answer was `{found}`; expected {expected}"))
}

/// Scheduler parameters as Python has them; a timetable is a list of (domain number, vCPU, runtime in ns).
fn as_dict<'py>(py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in params.iter() {
        match value {
            ParamValue::Int(value) => dict.set_item(name, value)?,
            ParamValue::Timetable(entries) => {
                let entries: Vec<_> = entries.iter().map(|e| (e.domain, e.vcpu, e.runtime.ns())).collect();
                dict.set_item(name, entries)?;
            }
        }
    }
    Ok(dict)
}

/// An exception, and its place in the policy's own file.
fn described(py: Python<'_>, raised: &PyErr) -> String {
    let kind =
        raised.get_type(py).qualname().map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    let place = raised.traceback(py).and_then(|traceback| innermost(&traceback).ok());
    let message = raised.value(py).to_string();
    let place = place.map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"));
    if message.is_empty() { format!("{kind}{place}") } else { format!("{kind}: {message}{place}") }
}

/// The deepest place in the file in which the hook is.
fn innermost(traceback: &Bound<'_, PyTraceback>) -> PyResult<(String, u32)> {
    let place = |entry: &Bound<'_, PyAny>| -> PyResult<(String, u32)> {
        let file = entry.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
        Ok((file, entry.getattr("tb_lineno")?.extract()?))
    };
    let mut entry = traceback.clone().into_any();
    let mut deepest = place(&entry)?;
    loop {
        entry = entry.getattr("tb_next")?;
        if entry.is_none() {
            return Ok(deepest);
        }
        let here = place(&entry)?;
        if here.0 == deepest.0 {
            deepest = here;
        }
    }
}
