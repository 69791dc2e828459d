//! Whatever is recorded, the results are those of the library, to the last bit.

use hdrhistogram::Histogram as Hdr;
use proptest::prelude::*;
use vcpulab_histogram::{Histogram, Reading};

/// Values of all magnitudes, most of them near one another, as times are; each once or often.
fn values() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let near = (0..40_u32, 0..3_u32, any::<u64>());
    let near = near.prop_map(|(magnitude, spread, random)| {
        (1 << magnitude) + random % (1 << (magnitude / (1 + spread)))
    });
    let value = prop_oneof![4 => near, 1 => Just(0), 1 => 0..5000_u64, 1 => 0..=i64::MAX as u64];
    let times = prop_oneof![6 => Just(1), 2 => 1..20_u64, 1 => 250..1500_u64];
    prop::collection::vec((value, times), 0..400)
}

fn recorded<const BITS: u32>(values: &[(u64, u64)]) -> Histogram<BITS> {
    let mut histogram = Histogram::default();
    for &(value, times) in values {
        (0..times).for_each(|_| histogram.record(value));
    }
    histogram
}

fn of_library(digits: u8, values: &[(u64, u64)]) -> Hdr<u64> {
    let mut histogram = Hdr::new_with_bounds(1, i64::MAX as u64, digits).unwrap();
    for &(value, times) in values {
        histogram.record_n(value, times).unwrap();
    }
    histogram
}

fn same<const BITS: u32>(read: &Reading<BITS>, library: &Hdr<u64>) -> Result<(), TestCaseError> {
    prop_assert_eq!(read.len(), library.len());
    prop_assert_eq!(read.is_empty(), library.is_empty());
    prop_assert_eq!((read.min(), read.max()), (library.min(), library.max()));
    for share in [1e-9, 0.01, 0.1, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
        prop_assert_eq!(read.quantile(share), library.value_at_quantile(share), "{}", share);
    }
    prop_assert_eq!(read.stdev().to_bits(), library.stdev().to_bits());
    let of_library = library.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
    prop_assert!(read.buckets().eq(of_library));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn results_are_the_library_s(values in values()) {
        same(&recorded::<7>(&values).read(), &of_library(2, &values))?;
        same(&recorded::<10>(&values).read(), &of_library(3, &values))?;
    }

    #[test]
    fn histograms_read_together_are_one(values in values(), at in 0..400_usize) {
        let (some, others) = values.split_at(at.min(values.len()));
        let together = Histogram::read_together([&recorded::<7>(some), &recorded::<7>(others)]);
        same(&together, &of_library(2, &values))?;
    }
}

#[test]
fn memory_is_a_byte_for_each_bucket_at_most_two_for_each_value_and_none_for_zeros() {
    // Four octaves are 512 buckets.
    let bytes_of = |values: u64| {
        let mut histogram = Histogram::<7>::default();
        let allocated = allocation_counter::measure(|| {
            (0..values).for_each(|i| histogram.record(1_000_000 + i * 15_000_000 / values));
            (0..values).for_each(|_| histogram.record(0));
        });
        assert_eq!(histogram.len(), 2 * values);
        allocated.bytes_current
    };
    assert_eq!([bytes_of(0), bytes_of(16), bytes_of(128)], [0, 32, 256]);
    assert!((512..1024).contains(&bytes_of(40_000)), "{}", bytes_of(40_000));
}
