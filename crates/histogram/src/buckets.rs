//! Buckets, numbered as HdrHistogram numbers them.

/// The bucket of a value.
#[inline]
pub(crate) fn bucket<const BITS: u32>(value: u64) -> u16 {
    const { assert!(BITS <= 10, "buckets are numbered in 16 bits") };
    let shift = (value | ((2 << BITS) - 1)).ilog2() - BITS;
    ((u64::from(shift) << BITS) + (value >> shift)) as u16
}

/// The least value of a bucket, and the logarithm to base 2 of the number of values that it has.
pub(crate) fn values_of<const BITS: u32>(bucket: u16) -> (u64, u32) {
    let shift = (u32::from(bucket) >> BITS).saturating_sub(1);
    ((u64::from(bucket) - (u64::from(shift) << BITS)) << shift, shift)
}
