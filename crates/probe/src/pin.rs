//! Keeps a thread on one CPU.

/// Pins this thread, and processes it starts from now on, to the first CPU it may run on; answers which that is.
///
/// # Errors
/// The system does not allow it, or knows no such thing.
#[cfg(target_os = "linux")]
pub(crate) fn pin() -> std::io::Result<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
    let first = first.ok_or_else(|| std::io::Error::other("there is no CPU it may run on"))?;
    let mut only = CpuSet::new();
    only.set(first);
    sched_setaffinity(None, &only)?;
    Ok(first)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin() -> std::io::Result<usize> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported))
}
