//! What an application achieved.

use hdrhistogram::Histogram;
use vcpulab_host::Span;

/// Response times are kept to three significant digits.
const DIGITS: u8 = 3;

/// Counts and response times since the last reset.
#[derive(Clone, Debug)]
pub struct AppStats {
    /// Units of work completed.
    pub completed: u64,
    /// Units of work refused, lost or late.
    pub failed: u64,
    /// Response times, ns. Empty where an application has none.
    pub responses: Histogram<u64>,
}

impl Default for AppStats {
    fn default() -> Self {
        let mut responses =
            Histogram::new_with_bounds(1, 1_000_000_000, DIGITS).expect("the bounds are valid");
        responses.auto(true);
        AppStats { completed: 0, failed: 0, responses }
    }
}

impl AppStats {
    /// One more unit of work is complete, `response` ns after it was asked for.
    pub fn complete(&mut self, response: Span) {
        self.completed += 1;
        self.responses.saturating_record(response.max(1) as u64);
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.completed = 0;
        self.failed = 0;
        self.responses.reset();
    }
}
