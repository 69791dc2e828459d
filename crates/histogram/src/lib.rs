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

mod counts;
mod reading;

use counts::Counts;
pub use reading::Reading;

/// Room of the first list.
const LIST: usize = 16;

/// Counts of values up to 2^63, each to 1 part in 2^`BITS`; `BITS` is at most 10.
#[derive(Clone, Debug, Default)]
pub struct Histogram<const BITS: u32> {
    /// Number of all values: more than are kept, by the zeros.
    len: u64,
    kept: Kept,
}

/// Values other than zero.
#[derive(Clone, Debug)]
enum Kept {
    /// The bucket of each, in the order recorded.
    Listed(Vec<u16>),
    Counted(Box<Counts>),
}

impl Default for Kept {
    fn default() -> Self {
        Kept::Listed(Vec::new())
    }
}

impl<const BITS: u32> Histogram<BITS> {
    /// Counts a value; those above 2^63 − 1 as that.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.len += 1;
        if value > 0 {
            self.kept.add(bucket::<BITS>(value.min(i64::MAX as u64)));
        }
    }

    /// The number of values.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Is there no value?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it holds now, in order.
    pub fn read(&self) -> Reading<BITS> {
        Reading::of([self])
    }

    /// The number of values in each bucket that has any, a bucket perhaps more than once, in any order.
    fn for_each(&self, mut call: impl FnMut(u16, u64)) {
        let mut zeros = self.len;
        let mut pass = |bucket, count| {
            zeros -= count;
            call(bucket, count);
        };
        match &self.kept {
            Kept::Listed(list) => list.iter().for_each(|&bucket| pass(bucket, 1)),
            Kept::Counted(counts) => counts.for_each(pass),
        }
        if zeros > 0 {
            call(0, zeros);
        }
    }
}

impl Kept {
    #[inline]
    fn add(&mut self, bucket: u16) {
        match self {
            Kept::Listed(list) if list.len() < list.capacity() => list.push(bucket),
            Kept::Listed(_) => self.make_room_for(bucket),
            Kept::Counted(counts) => counts.add(bucket),
        }
    }

    /// A list that is full becomes one twice as long, or counts, whichever takes less memory.
    #[cold]
    fn make_room_for(&mut self, bucket: u16) {
        let Kept::Listed(list) = self else { return };
        let mut counts = Counts::spanning(list.iter().copied().chain([bucket]));
        let longer = (2 * list.len()).max(LIST);
        if counts.bytes() > longer * size_of::<u16>() {
            list.reserve_exact(longer - list.len());
            list.push(bucket);
        } else {
            list.iter().for_each(|&listed| counts.add(listed));
            counts.add(bucket);
            *self = Kept::Counted(Box::new(counts));
        }
    }
}

/// The bucket of a value.
#[inline]
fn bucket<const BITS: u32>(value: u64) -> u16 {
    const { assert!(BITS <= 10, "buckets are numbered in 16 bits") };
    let shift = (value | (2 << BITS) - 1).ilog2() - BITS;
    ((u64::from(shift) << BITS) + (value >> shift)) as u16
}

/// The least value of a bucket, and the logarithm to base 2 of the number of values that it has.
fn values_of<const BITS: u32>(bucket: u16) -> (u64, u32) {
    let shift = (u32::from(bucket) >> BITS).saturating_sub(1);
    ((u64::from(bucket) - (u64::from(shift) << BITS)) << shift, shift)
}
