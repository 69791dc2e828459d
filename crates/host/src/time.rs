//! Simulated time in integer nanoseconds.

/// A point in simulated time, in nanoseconds since the host started.
pub type Time = i64;

/// A length of simulated time, in nanoseconds.
pub type Span = i64;

/// Later than any event: a timer that is not set.
pub const NEVER: Time = i64::MAX;
