//! Units of work on several threads.

use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::RunError;

/// Does all units of work on `threads` threads (0: one for each processor), and returns each with its outcome, in the order in
/// which they ended. A free thread takes the next unit, because some take much longer than others.
///
/// # Errors
/// [`RunError::Threads`].
///
/// # Panics
/// If a unit panics, with its panic.
pub(crate) fn in_parallel<U: Copy + Send, R: Send>(
    units: Vec<U>,
    threads: usize,
    work: &(dyn Fn(U) -> R + Sync),
) -> Result<Vec<(U, R)>, RunError> {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { processors() } else { threads }.min(units.len());
    if threads <= 1 {
        return Ok(units.into_iter().map(|unit| (unit, work(unit))).collect());
    }
    let outcomes = Mutex::new(Vec::with_capacity(units.len()));
    let left = Mutex::new(units.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        while let Some(unit) = next() {
            let outcome = (unit, work(unit));
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }
    };
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            match thread::Builder::new().spawn_scoped(scope, worker) {
                Ok(started) => workers.push(started),
                Err(error) => {
                    while next().is_some() {}
                    return Err(RunError::Threads(error.to_string()));
                }
            }
        }
        for worker in workers {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Ok(())
    })?;
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}
