//! Achievements of an application: units of work and response times.

use hdrhistogram::Histogram;
use vcpulab_host::{Span, Time};

/// Response times are kept to three significant digits.
const DIGITS: u8 = 3;

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
    /// Response times, ns. Made with the first one: most applications have none.
    responses: Option<Box<Histogram<u64>>>,
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
        let new = || Box::new(Histogram::new(DIGITS).expect("three digits are allowed"));
        let responses = self.responses.get_or_insert_with(new);
        responses.record(response.ns().max(1) as u64).expect("a histogram that grows has room");
    }

    /// The response times, ns; `None`: there are none.
    pub fn responses(&self) -> Option<&Histogram<u64>> {
        self.responses.as_deref().filter(|responses| !responses.is_empty())
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.completed = 0;
        self.failed = 0;
        self.last_completed = None;
        self.response_sum_ns = Span::ZERO;
        if let Some(responses) = &mut self.responses {
            responses.reset();
        }
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
        let responses = stats.responses().unwrap();
        let relative = |quantile, ns: f64| (responses.value_at_quantile(quantile) as f64 / ns - 1.0).abs();
        assert!(relative(0.5, 5e9) < 1e-3, "{}", responses.value_at_quantile(0.5));
        assert!(relative(1.0, 3e12) < 1e-3, "{}", responses.max());
    }
}
