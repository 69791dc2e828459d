//! The clock of benchmarks, and rates by it.

use std::collections::BTreeMap;
use std::time::Duration;

/// The metrics of one run, by name.
pub type Metrics = BTreeMap<String, f64>;

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

/// Parts of a measurement, of which the fastest counts: time that other programs on the machine take away is not the engine's.
const PARTS: u32 = 5;

/// Calls `work`, which returns a count of what it did, for about that long; returns the best count per second.
pub(crate) fn best_rate(time: Duration, mut work: impl FnMut() -> u64) -> f64 {
    let mut best = 0.0f64;
    for _ in 0..PARTS {
        let (start, mut done) = (now(), 0);
        let mut elapsed = Duration::ZERO;
        while elapsed < time / PARTS {
            done += work();
            elapsed = now() - start;
        }
        best = best.max(done as f64 / elapsed.as_secs_f64());
    }
    best
}
