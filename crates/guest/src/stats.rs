//! Achievements of an application: units of work and response times.

use vcpulab_histogram::Histogram;
use vcpulab_host::{Span, Time};

/// Response times are kept to this many bits: three significant digits.
pub const RESPONSE_BITS: u32 = 10;

/// Counts and response times since the last reset.
#[derive(Clone, Debug, Default)]
pub struct AppStats {
    /// Units of work completed.
    pub completed: u64,
    /// Units of work refused, lost or late.
    pub failed: u64,
    /// Completion of the last unit, if there was one.
    pub last_completed: Option<Time>,
    /// Sum of the response times.
    pub response_sum_ns: Span,
    /// Response times, ns: most applications have none.
    responses: Histogram<RESPONSE_BITS>,
}

impl AppStats {
    /// Counts `units` completed by `now`.
    pub fn count(&mut self, units: u64, now: Time) {
        if units > 0 {
            self.completed += units;
            self.last_completed = Some(now);
        }
    }

    /// Counts one completed at `now`, `response` after it was asked for.
    pub fn complete(&mut self, response: Span, now: Time) {
        self.count(1, now);
        self.response_sum_ns = self.response_sum_ns.saturating_add(response);
        self.responses.record(response.ns().max(1) as u64);
    }

    /// The response times, ns.
    pub fn responses(&self) -> &Histogram<RESPONSE_BITS> {
        &self.responses
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = AppStats::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_response_times_count_as_they_are() {
        let mut stats = AppStats::default();
        for seconds in [2, 5, 3000] {
            stats.complete(Span::from_secs(seconds), Time::ZERO);
        }
        let responses = stats.responses().read();
        let relative = |share, ns: f64| (responses.quantile(share) as f64 / ns - 1.0).abs();
        assert!(relative(0.5, 5e9) < 1e-3, "{}", responses.quantile(0.5));
        assert!(relative(1.0, 3e12) < 1e-3, "{}", responses.max());
    }
}
