//! What an application achieved.

use hdrhistogram::Histogram;
use vcpulab_host::Span;

/// Response times are kept to three significant digits.
const DIGITS: u8 = 3;

/// Response times up to here need no more room than there is at the start, ns.
const EXPECTED_MAX: u64 = 1_000_000_000;

/// Counts and response times since the last reset.
#[derive(Clone, Debug, Default)]
pub struct AppStats {
    /// Units of work completed: requests, jobs, rounds of a script; for a hog the milliseconds it computed.
    pub completed: u64,
    /// Units of work refused, lost or late.
    pub failed: u64,
    /// Response times, ns; `None` where an application has none.
    pub responses: Option<Histogram<u32>>,
}

impl AppStats {
    /// For an application with response times.
    pub fn with_responses() -> Self {
        let mut responses =
            Histogram::new_with_bounds(1, EXPECTED_MAX, DIGITS).expect("the bounds are valid");
        responses.auto(true);
        AppStats { responses: Some(responses), ..AppStats::default() }
    }

    /// One more unit of work is complete, `response` ns after it was asked for.
    pub fn complete(&mut self, response: Span) {
        self.completed += 1;
        if let Some(responses) = &mut self.responses {
            responses.saturating_record(response.max(1) as u64);
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.completed = 0;
        self.failed = 0;
        if let Some(responses) = &mut self.responses {
            responses.reset();
        }
    }
}
