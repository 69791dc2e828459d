//! What an application achieved.

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
    /// When the last unit was completed, if any was.
    pub last_completed: Option<Time>,
    /// Sum of the response times, ns.
    pub response_sum_ns: Span,
    /// Response times, ns. Made when there is a first one: most applications have none.
    responses: Option<Box<Histogram<u64>>>,
}

impl AppStats {
    /// So many more units of work are complete, by `now`.
    pub fn count(&mut self, units: u64, now: Time) {
        if units > 0 {
            self.completed += units;
            self.last_completed = Some(now);
        }
    }

    /// One more unit of work is complete, `response` ns after it was asked for.
    pub fn complete(&mut self, response: Span, now: Time) {
        self.count(1, now);
        self.response_sum_ns = self.response_sum_ns.saturating_add(response);
        let responses = self.responses.get_or_insert_with(|| {
            let mut new = Histogram::new_with_bounds(1, 1_000_000_000, DIGITS).expect("the bounds are valid");
            new.auto(true);
            Box::new(new)
        });
        responses.record(response.max(1) as u64).expect("the histogram grows");
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
        self.response_sum_ns = 0;
        if let Some(responses) = &mut self.responses {
            responses.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_of_minutes_are_kept() {
        let mut stats = AppStats::default();
        for seconds in [1, 2, 300] {
            stats.complete(seconds * 1_000_000_000, 0);
        }
        let responses = stats.responses().unwrap();
        assert!((299_000_000_000..302_000_000_000).contains(&responses.max()));
        assert!((1_900_000_000..2_100_000_000).contains(&responses.value_at_quantile(0.5)));
    }
}
