//! Keeps a thread on one CPU.

use std::io;

/// The CPUs that this thread may run on.
///
/// # Errors
/// The system knows no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect())
}

/// Pins this thread, and processes it starts from now on, to that CPU.
///
/// # Errors
/// The system does not allow it, or there is no such CPU.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};

    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to(_cpu: usize) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Pins it to the first CPU it may run on; answers which that is.
///
/// # Errors
/// The system does not allow it, or knows no such thing.
pub(crate) fn pin() -> io::Result<usize> {
    let first = allowed()?.first().copied();
    let first = first.ok_or_else(|| io::Error::other("there is no CPU it may run on"))?;
    pin_to(first).map(|()| first)
}
