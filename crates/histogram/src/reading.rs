//! Results of histograms: numbers of values, quantiles, means.

use crate::buckets::values_of;

/// The values of one or more histograms, in order. All that is computed of them is what HdrHistogram computes, to the last bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading<const BITS: u32> {
    /// Buckets that have values, ascending, each with their number.
    counts: Vec<(u16, u64)>,
    len: u64,
}

impl<const BITS: u32> Reading<BITS> {
    /// Of buckets with their numbers of values: in any order, a bucket perhaps more than once.
    pub(crate) fn of(mut counts: Vec<(u16, u64)>) -> Self {
        counts.sort_unstable();
        counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        Reading { len: counts.iter().map(|&(_, count)| count).sum(), counts }
    }

    /// The number of values.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value that this share of all values, over 0 and up to 1, does not exceed: the greatest of its bucket. 0 if there is no
    /// value.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = ((share * self.len as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, |&(bucket, _)| greatest::<BITS>(bucket))
    }

    /// The least value: that of its bucket. 0 if there is no value.
    pub fn min(&self) -> u64 {
        self.counts.first().map_or(0, |&(bucket, _)| values_of::<BITS>(bucket).0)
    }

    /// The greatest value: that of its bucket. 0 if there is no value.
    pub fn max(&self) -> u64 {
        self.counts.last().map_or(0, |&(bucket, _)| greatest::<BITS>(bucket))
    }

    /// The standard deviation, each value standing in the middle of its bucket. 0 if there is no value.
    pub fn stdev(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let all = self.len as f64;
        let middles = self.counts.iter().map(|&(bucket, count)| {
            let (least, log) = values_of::<BITS>(bucket);
            ((least + ((1 << log) >> 1)) as f64, count as f64)
        });
        let mean = middles.clone().fold(0.0, |sum, (middle, count)| sum + middle * count / all);
        let squares =
            middles.fold(0.0, |sum, (middle, count)| sum + (middle - mean) * (middle - mean) * count);
        (squares / all).sqrt()
    }

    /// The greatest value of each bucket that has any, ascending, and the number of values in it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|&(bucket, count)| (greatest::<BITS>(bucket), count))
    }
}

fn greatest<const BITS: u32>(bucket: u16) -> u64 {
    let (least, log) = values_of::<BITS>(bucket);
    least + ((1 << log) - 1)
}
