//! Seeds of replications.

/// The seed of one replication: SplitMix64's output at that position of the scenario's stream (Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn replication_seed(seed: u64, replication: u32) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(replication) + 1));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use vcpulab_spec::limits;

    use super::*;

    #[test]
    fn seeds_of_replications_differ() {
        let mut seeds: Vec<u64> = (0..limits::REPLICATIONS_MAX).map(|r| replication_seed(1, r)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), limits::REPLICATIONS_MAX as usize);
        // The first output of SplitMix64 with seed 0, as published with the generator.
        assert_eq!(replication_seed(0, 0), 0xE220_A839_7B1D_CDAF);
    }
}
