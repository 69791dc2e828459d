//! Long work under Python: off the interpreter lock, with progress, and ended by Ctrl-C.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::error::engine_error;

/// Interval at which Python is asked whether to go on.
const PERIOD: Duration = Duration::from_millis(50);

/// State shared by the worker and the waiting thread.
#[derive(Default)]
pub struct Watch {
    /// The bits of the fraction done, a float from 0 to 1.
    fraction: AtomicU64,
    cancelled: AtomicBool,
}

impl Watch {
    /// Stores the fraction done; `false` means stop.
    pub fn advance(&self, fraction: f64) -> bool {
        self.fraction.store(fraction.to_bits(), Ordering::Relaxed);
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
    let watch = Arc::new(Watch::default());
    let (done, mut is_done) = channel::<()>();
    let worker = thread::spawn({
        let watch = Arc::clone(&watch);
        move || {
            let result = work(&watch);
            drop(done);
            result
        }
    });
    let mut wait = || {
        let is_done = &mut is_done; // Only one thread at a time may wait.
        is_done.recv_timeout(PERIOD)
    };
    while py.detach(&mut wait) == Err(RecvTimeoutError::Timeout) {
        if let Err(stop) = ask(py, progress, watch.fraction()) {
            watch.cancelled.store(true, Ordering::Relaxed);
            return Err(stop);
        }
    }
    let result = py.detach(|| worker.join()).map_err(|panic| panicked(&*panic))?;
    ask(py, progress, 1.0)?;
    Ok(result)
}

/// Fails if Python wants the work to end.
pub fn ask(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, fraction: f64) -> PyResult<()> {
    py.check_signals()?;
    match progress {
        Some(progress) if !progress.call1((fraction,))?.extract::<bool>()? => {
            Err(PyKeyboardInterrupt::new_err("cancelled"))
        }
        _ => Ok(()),
    }
}

/// A panic in the engine, as a Python error like others.
pub fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    engine_error(panic_message(panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("the engine broke one of its own rules: {}", text.unwrap_or("no details"))
}
