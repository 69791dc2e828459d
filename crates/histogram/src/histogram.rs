//! The histogram that a run adds to.

use crate::buckets::bucket;
use crate::counts::Counts;
use crate::reading::Reading;

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

    /// Whether the histogram has no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Values that the histogram holds now, in order.
    pub fn read(&self) -> Reading<BITS> {
        Histogram::read_together([self])
    }

    /// Values that several histograms hold now, all together, in order.
    pub fn read_together<'h>(histograms: impl IntoIterator<Item = &'h Self>) -> Reading<BITS> {
        let mut counts = Vec::new();
        for histogram in histograms {
            histogram.for_each(|bucket, count| counts.push((bucket, count)));
        }
        Reading::of(counts)
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
