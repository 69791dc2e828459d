//! A scheduler written in Python: every hook calls the method of that name.

use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTraceback};
use vcpulab_host::{ParamValue, Params, PolicyContext};
use vcpulab_run::own::{Answer, Caller, Elsewhere, Expected, Hook, Refused, With, lent};
use vcpulab_spec::PoolSpec;

use crate::context::{self, as_tuple, refusal};
use crate::error;

/// The exception that a policy raised, kept for the caller of the run.
pub type Raised = Mutex<Option<PyErr>>;

/// The content of a mutex, poisoned or not.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The Python object whose methods are the hooks.
pub struct PyHooks<'py> {
    object: Bound<'py, PyAny>,
    context: Bound<'py, context::Context>,
    raised: &'py Raised,
}

/// Makes a policy: `class(params, seed)`, with all of the pool's parameters.
pub fn policy<'py>(
    class: &Bound<'py, PyAny>,
    context: &Bound<'py, context::Context>,
    raised: &'py Raised,
    pool: &PoolSpec,
    seed: u64,
) -> Elsewhere<PyHooks<'py>> {
    Elsewhere::new(pool, |params| {
        let made = as_dict(class.py(), params).and_then(|params| class.call1((params, seed)));
        made.map(|object| PyHooks { object, context: context.clone(), raised }).map_err(|error| {
            let reason = described(class.py(), &error);
            *lock(raised) = Some(error);
            reason
        })
    })
}

impl Caller for PyHooks<'_> {
    type Error = PyErr;

    fn call(&self, ctx: &mut PolicyContext, hook: Hook<'_>) -> PyResult<Answer> {
        let (py, object, context) = (self.object.py(), &self.object, self.context.clone());
        let name = PyString::intern(py, hook.name);
        let answer = lent::lend(ctx, || match hook.with {
            With::Nothing => object.call_method1(name, (context,)),
            With::One(id) => object.call_method1(name, (context, id)),
            With::Two(one, other) => object.call_method1(name, (context, one, other)),
            With::Pcpus(v, pcpus) => object.call_method1(name, (context, v, as_tuple(py, pcpus)?)),
            With::Domain(d, params) => object.call_method1(name, (context, d, as_dict(py, params)?)),
            With::Global(params) => object.call_method1(name, (context, as_dict(py, params)?)),
        });
        match (hook.expected, answer) {
            (Expected::Consent, Err(raised)) if raised.is_instance_of::<error::Rejected>(py) => {
                Ok(Answer::Rejected)
            }
            (_, Err(raised)) => Err(raised),
            (Expected::Nothing | Expected::Consent, Ok(_)) => Ok(Answer::Nothing),
            (Expected::Text, Ok(answer)) => Ok(Answer::Text(answer.str()?.to_string_lossy().into_owned())),
            (Expected::Pcpu, Ok(answer)) => {
                answer.extract().map(Answer::Pcpu).map_err(|_| wrong_answer(&answer, hook.expected))
            }
            (Expected::Next, Ok(answer)) => match answer.extract() {
                Ok((next, slice)) => Ok(Answer::Next(next, slice)),
                Err(_) => Err(wrong_answer(&answer, hook.expected)),
            },
        }
    }

    fn wrong(&self, refused: Refused) -> PyErr {
        refusal(refused)
    }

    fn described(&self, raised: &PyErr) -> String {
        described(self.object.py(), raised)
    }

    fn failed(&self, raised: PyErr) {
        *lock(self.raised) = Some(raised);
    }
}

fn wrong_answer(answer: &Bound<'_, PyAny>, expected: Expected) -> PyErr {
    let found = answer.repr().map_or_else(|_| "something unprintable".to_owned(), |repr| repr.to_string());
    PyTypeError::new_err(format!("the answer was `{found}`; expected {expected}"))
}

/// Scheduler parameters as Python objects; a timetable is a list of (domain number, vCPU, runtime in ns).
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
pub fn described(py: Python<'_>, raised: &PyErr) -> String {
    let kind =
        raised.get_type(py).qualname().map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    let place = raised.traceback(py).and_then(|traceback| innermost(&traceback).ok());
    let message = raised.value(py).str().map_or_else(
        |_| "a message that cannot be shown, because its __str__ fails".to_owned(),
        |text| text.to_string_lossy().into_owned(),
    );
    let place = place.map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"));
    if message.is_empty() { format!("{kind}{place}") } else { format!("{kind}: {message}{place}") }
}

/// The deepest place in the file on the stack of a hook's exception.
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
