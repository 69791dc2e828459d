//! Long work under Python: off the interpreter lock, with progress, and ended by Ctrl-C.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;

use crate::error::engine_error;
use crate::policy::lock;

/// Interval at which Python is asked whether to continue.
pub const PERIOD: Duration = Duration::from_millis(50);

/// State shared by the worker and the waiting thread.
#[derive(Default)]
pub struct Watch {
    /// The bits of the fraction done, a float from 0 to 1.
    fraction: AtomicU64,
    cancelled: AtomicBool,
}

impl Watch {
    /// Stores the fraction done, unless a greater one was stored: reports of threads may come late. `false` means stop.
    pub fn advance(&self, fraction: f64) -> bool {
        // Numbers that are not negative are in the order of their bits.
        self.fraction.fetch_max(fraction.max(0.0).to_bits(), Ordering::Relaxed);
        !self.cancelled.load(Ordering::Relaxed)
    }

    fn fraction(&self) -> f64 {
        f64::from_bits(self.fraction.load(Ordering::Relaxed))
    }
}

/// Does the work in a thread of its own. Meanwhile this thread lets signals in and calls `progress` with the fraction
/// done; work that is no longer wanted is cancelled and left behind.
pub fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<T> {
    let worker = Worker::start(work);
    worker.wait(py, || ask(py, progress, worker.watch.fraction()))?;
    let result = worker.result(py)?;
    ask(py, progress, 1.0)?;
    Ok(result)
}

/// Does the work like [`watched`], but waits for the result even if the work is cancelled, and returns it with the
/// exception that cancelled it.
pub fn watched_so_far<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> PyResult<(T, Option<PyErr>)> {
    let worker = Worker::start(work);
    let waited = worker.wait(py, || ask(py, progress, worker.watch.fraction()));
    let Err(stop) = waited else { return Ok((worker.result(py)?, ask(py, progress, 1.0).err())) };
    // Who cannot wait for that asks once more.
    worker.wait(py, || py.check_signals())?;
    Ok((worker.result(py)?, Some(stop)))
}

/// Work in a thread of its own.
struct Worker<T> {
    watch: Arc<Watch>,
    is_done: Mutex<Receiver<()>>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Worker<T> {
    fn start(work: impl FnOnce(&Watch) -> T + Send + 'static) -> Self {
        let watch = Arc::new(Watch::default());
        let (done, is_done) = channel::<()>();
        let thread = thread::spawn({
            let watch = Arc::clone(&watch);
            move || {
                let result = work(&watch);
                drop(done);
                result
            }
        });
        Worker { watch, is_done: Mutex::new(is_done), thread }
    }

    /// Waits for the end of the work; cancels it when `ask`, called now and then, fails.
    fn wait(&self, py: Python<'_>, ask: impl Fn() -> PyResult<()>) -> PyResult<()> {
        while py.detach(|| lock(&self.is_done).recv_timeout(PERIOD)) == Err(RecvTimeoutError::Timeout) {
            ask().inspect_err(|_| self.watch.cancelled.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    }

    fn result(self, py: Python<'_>) -> PyResult<T> {
        py.detach(|| self.thread.join()).map_err(|panic| panicked(&*panic))
    }
}

/// Fails if Python wants the work to end: `progress` answers `False`, or raises. `None` and `True` mean: continue.
pub fn ask(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, fraction: f64) -> PyResult<()> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(()) };
    let answer = progress.call1((fraction,))?;
    match answer.extract::<Option<bool>>() {
        Ok(None | Some(true)) => Ok(()),
        Ok(Some(false)) => Err(PyKeyboardInterrupt::new_err("cancelled")),
        Err(_) => {
            let kind = answer.get_type().name()?;
            let message = format!(
                "progress: found an answer of type `{kind}`; allowed: `True` or `None` to continue, `False` to cancel"
            );
            Err(PyTypeError::new_err(message))
        }
    }
}

/// A panic in the engine, as a Python error like other errors.
pub fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    engine_error(panic_message(panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("the engine broke one of its own rules: {}", text.unwrap_or("no details"))
}
