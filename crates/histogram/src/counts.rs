//! Counts of a range of buckets, 8 bits each, and what they carry.

/// The range begins and ends at multiples of this: it seldom grows.
const STEP: u16 = 64;

/// Counts of buckets.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// The first bucket that is counted.
    first: u16,
    /// The count of each from there on, modulo 256.
    low: Vec<u8>,
    /// Buckets with 256 values and more, ascending, each with how many times 256.
    carried: Vec<(u16, u32)>,
}

impl Counts {
    /// Zeros for all buckets from the least to the greatest of these.
    pub fn spanning(buckets: impl Iterator<Item = u16>) -> Self {
        let (least, greatest) = buckets
            .fold((u16::MAX, 0), |(least, greatest), bucket| (least.min(bucket), greatest.max(bucket)));
        let first = least / STEP * STEP;
        Counts { first, low: vec![0; room(first, greatest)], carried: Vec::new() }
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.low.len()
    }

    /// Counts a value in a bucket.
    #[inline]
    pub fn add(&mut self, bucket: u16) {
        match self.low.get_mut(usize::from(bucket.wrapping_sub(self.first))) {
            Some(low) => {
                *low = low.wrapping_add(1);
                if *low == 0 {
                    self.carry(bucket);
                }
            }
            None => self.extend_to(bucket),
        }
    }

    #[cold]
    fn carry(&mut self, bucket: u16) {
        match self.carried.binary_search_by_key(&bucket, |&(carried, _)| carried) {
            Ok(at) => self.carried[at].1 += 1,
            Err(at) => self.carried.insert(at, (bucket, 1)),
        }
    }

    /// Counts a value in a bucket out of range.
    #[cold]
    fn extend_to(&mut self, bucket: u16) {
        let mut wider =
            Counts::spanning([bucket, self.first, self.first + (self.low.len() - 1) as u16].into_iter());
        let at = usize::from(self.first - wider.first);
        wider.low[at..at + self.low.len()].copy_from_slice(&self.low);
        self.first = wider.first;
        self.low = wider.low;
        self.add(bucket);
    }

    /// The number of values in each bucket that has any; one with many is passed twice.
    pub fn for_each(&self, mut call: impl FnMut(u16, u64)) {
        for (at, &low) in self.low.iter().enumerate() {
            if low > 0 {
                call(self.first + at as u16, u64::from(low));
            }
        }
        self.carried.iter().for_each(|&(bucket, times)| call(bucket, u64::from(times) << u8::BITS));
    }
}

/// The number of counts from `first` to the end of the step that the bucket `last` is in.
fn room(first: u16, last: u16) -> usize {
    usize::from((last - first) / STEP + 1) * usize::from(STEP)
}
