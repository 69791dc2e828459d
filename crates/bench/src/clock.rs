//! The clock of benchmarks.

use std::time::Duration;

/// CPU time of this thread, which other programs on the machine take nothing from; where the system does not tell, the time since
/// some instant.
#[cfg(target_os = "linux")]
pub fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
#[allow(clippy::disallowed_types, reason = "a benchmark reads the wall clock")]
pub fn now() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}
