//! Histograms of times, for runs with thousands of them.
//!
//! A run adds to a histogram with nearly every event, and reads it once. So adding touches few cache lines, and a histogram takes
//! the memory that its values need: nothing while it is empty, a list of 16-bit buckets while values are few, then 8-bit counts of
//! the buckets from the least to the greatest that had a value. What a count of 8 bits cannot hold is carried: every 256th value
//! of a bucket adds one to its entry in a short list. Zeros, by far the most frequent wait, are counted apart.
//!
//! Buckets are those of HdrHistogram, and so are all results: exact up to 2^(`BITS` + 1), from there on each power of two is
//! cut into 2^`BITS` equal parts (7 bits are two significant digits, 10 are three). [`Reading`] has what can be read.
//!
//! ```
//! use vcpulab_histogram::Histogram;
//! let mut times = Histogram::<7>::default();
//! for ns in [0, 30, 20, 1_000_000] {
//!     times.record(ns);
//! }
//! let read = times.read();
//! assert_eq!((read.len(), read.quantile(0.5), read.quantile(1.0)), (4, 20, 1_003_519));
//! ```

mod buckets;
mod counts;
mod histogram;
mod reading;

pub use histogram::Histogram;
pub use reading::Reading;
