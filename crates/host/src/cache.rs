//! Cold caches: the part of its memory that a vCPU finds when it comes back to a pCPU, at two levels.
//!
//! A *working set* occupies cache: a kernel with the program text that its domain's vCPUs share, or the data of one task.
//! Each core has a cache (L2); a group of pCPUs shares a larger one (L3). When a vCPU is switched in, the missing
//! part of its sets is brought in again, and every byte that comes in replaces a byte of *others*, whichever it hits (random
//! replacement, or hashed placement). So n bytes brought in over o bytes of others leave each of them a fraction (o − n) / o.
//! Eviction is gradual: with plain LRU, vCPUs that take turns and whose sets exceed the cache a little would find nothing at
//! all, each time.
//!
//! A cache keeps that fraction, multiplied up since the host started, as its *survival*; a set keeps its resident bytes at
//! its last use, and the survival at that moment. The bytes still there are those times the quotient of the survivals: a
//! switch costs the same work however many others ran in between.
//!
//! An L3 includes the L2s below it: they lose whatever it loses. The part of a set for which L2 has no room passes through L3
//! whenever its vCPU runs.
//!
//! Only the bytes that *others* took are charged here. The misses of a program that runs alone, because its sets are larger
//! than a cache, are part of its own CPU time.

use crate::{Costs, PcpuId, Span, Table, VcpuId};

crate::ids! {
    /// A working set, numbered in order of creation.
    #[derive(Default)]
    pub struct SetId;
}

/// The most sets that a vCPU can use at a time.
pub const SETS_MAX: usize = 4;

/// A list of sets without repetition.
#[derive(Clone, Copy, Debug, Default)]
struct Sets {
    ids: [SetId; SETS_MAX],
    len: usize,
}

impl Sets {
    fn of(given: &[SetId]) -> Self {
        let mut sets = Sets::default();
        for &set in given {
            if !sets.ids().contains(&set) {
                assert!(sets.len < SETS_MAX, "a vCPU uses at most {SETS_MAX} sets at a time");
                sets.ids[sets.len] = set;
                sets.len += 1;
            }
        }
        sets
    }

    fn ids(&self) -> &[SetId] {
        &self.ids[..self.len]
    }
}

/// A fraction above 0 that only shrinks: `mantissa` · 2^−(31 + `exponent`), with the mantissa's highest bit set.
/// Rounded down, by less than one part in 2^31 at each step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Survival {
    mantissa: u32,
    exponent: u64,
}

impl Survival {
    const ALL: Survival = Survival { mantissa: 1 << 31, exponent: 0 };

    /// `left` of `all` survived another time.
    fn shrink(&mut self, left: u64, all: u64) {
        if left == 0 {
            // So small that of whatever was there not a byte is left.
            *self = Survival { exponent: self.exponent + 64, ..Survival::ALL };
        } else if left < all {
            // Twice as precise as it is kept: the quotient may have any number of leading zeros.
            let product = (u128::from(self.mantissa) << 64) / u128::from(all) * u128::from(left);
            let shift = product.leading_zeros();
            self.mantissa = ((product << shift) >> 96) as u32;
            self.exponent += u64::from(shift) - 32;
        }
    }

    /// The rest of `bytes` that were there at `then`.
    fn of(self, bytes: u64, then: Survival) -> u64 {
        if self == then {
            return bytes;
        }
        match self.exponent - then.exponent {
            shift @ 0..64 => match u32::try_from(bytes) {
                // As a rule, and it spares a long division.
                Ok(bytes) => {
                    (u64::from(bytes) * u64::from(self.mantissa) / u64::from(then.mantissa)) >> shift
                }
                Err(_) => {
                    let scaled = u128::from(bytes) * u128::from(self.mantissa) / u128::from(then.mantissa);
                    (scaled >> shift) as u64
                }
            },
            _ => 0,
        }
    }
}

/// The part of a set that was here when it was last used, and the survival then.
#[derive(Clone, Copy, Debug)]
struct Resident {
    bytes: u64,
    then: Survival,
}

impl Default for Resident {
    fn default() -> Self {
        Resident { bytes: 0, then: Survival::ALL }
    }
}

/// A cache, private or shared.
#[derive(Clone, Debug)]
struct Cache {
    /// All bytes in use, at most the capacity.
    used: u64,
    survival: Survival,
    /// Parts of working sets that the cache holds. A set beyond the table's length was never in this cache.
    residents: Table<SetId, Resident>,
}

impl Cache {
    fn new() -> Self {
        Cache { used: 0, survival: Survival::ALL, residents: Table::new() }
    }

    fn resident(&self, set: SetId) -> u64 {
        self.residents.get(set).map_or(0, |there| self.survival.of(there.bytes, there.then))
    }

    /// Whether the cache has `bytes` of a set, and has lost none of them since the set was used.
    fn is_intact(&self, set: SetId, bytes: u64) -> bool {
        let there = self.residents.get(set);
        there.is_some_and(|there| there.bytes == bytes && there.then == self.survival)
    }

    /// No more than this of a set is here any longer.
    fn limit(&mut self, set: SetId, bytes: u64) {
        if self.residents.get(set).is_none_or(|there| there.bytes <= bytes) {
            return;
        }
        let resident = self.resident(set);
        if resident > bytes {
            self.used -= resident - bytes;
            self.residents[set] = Resident { bytes, then: self.survival };
        }
    }

    /// Makes `amounts` of these sets resident, together at most `capacity`; answers how much that brings in.
    fn hold(&mut self, capacity: u64, sets: &[SetId], amounts: &[u64; SETS_MAX]) -> u64 {
        if sets.iter().zip(amounts).all(|(&set, &amount)| self.is_intact(set, amount)) {
            return 0;
        }
        let (mut brought, mut before, mut after) = (0, 0, 0);
        for (&set, &amount) in sets.iter().zip(amounts) {
            let resident = self.resident(set);
            brought += amount.saturating_sub(resident);
            before += resident;
            after += amount;
        }
        debug_assert!(before <= self.used && after <= capacity && self.used <= capacity);
        let others = self.used - before;
        let left = others.min(capacity - after);
        self.survival.shrink(left, others);
        self.used = after + left;
        for (&set, &bytes) in sets.iter().zip(amounts) {
            *self.residents.entry(set) = Resident { bytes, then: self.survival };
        }
        brought
    }
}

/// The cost of a vCPU's sets so far, because others had run in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheCounts {
    /// Lines brought into an L2 again.
    pub l2_misses: u64,
    /// Lines brought in again from memory (without an L3, all of the L2's).
    pub l3_misses: u64,
    /// Time for that, without what was cut short by a switch.
    pub refill_ns: Span,
}

/// All caches of a host.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    l2: Vec<Cache>,
    l3: Vec<Cache>,
    /// The L2 and the L3 of each pCPU.
    l2_of: Table<PcpuId, usize>,
    l3_of: Table<PcpuId, usize>,
    /// Size of each set, bytes.
    sizes: Table<SetId, u64>,
    /// Working sets of each vCPU. The table ends at the last vCPU that has any.
    sets: Table<VcpuId, Sets>,
    counts: Table<VcpuId, CacheCounts>,
}

impl Caches {
    /// The caches of a host on which pCPUs with the same number in `l2_of` share an L2, those with the same in `l3_of` an L3; the
    /// numbers are dense.
    pub(crate) fn new(l2_of: Table<PcpuId, usize>, l3_of: Table<PcpuId, usize>) -> Self {
        let caches =
            |of: &Table<PcpuId, usize>| vec![Cache::new(); of.iter().max().map_or(0, |last| last + 1)];
        Caches { l2: caches(&l2_of), l3: caches(&l3_of), l2_of, l3_of, ..Caches::default() }
    }

    pub(crate) fn make_set(&mut self, bytes: u64) -> SetId {
        self.sizes.push(bytes)
    }

    pub(crate) fn resize_set(&mut self, set: SetId, bytes: u64) {
        self.sizes[set] = bytes;
    }

    pub(crate) fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        *self.sets.entry(v) = Sets::of(sets);
        self.counts.entry(v);
    }

    /// Every vCPU up to the last one that had sets.
    pub fn ids(&self) -> impl Iterator<Item = VcpuId> + use<> {
        self.counts.ids()
    }

    /// The cost of the sets of `v` so far, with all of a refill that is under way.
    pub fn counts(&self, v: VcpuId) -> CacheCounts {
        self.counts.get(v).copied().unwrap_or_default()
    }

    /// `v`, which runs on `p`, uses its sets: how long does it take to bring in what is missing?
    pub(crate) fn touch(&mut self, costs: &Costs, p: PcpuId, v: VcpuId) -> Span {
        let Some(sets) = self.sets.get(v).filter(|sets| sets.len > 0) else { return Span::ZERO };
        let (sets, l2) = (sets.ids(), &mut self.l2[self.l2_of[p]]);
        let mut sizes = [0; SETS_MAX];
        for (size, &set) in sizes.iter_mut().zip(sets) {
            *size = self.sizes[set];
        }
        let from_memory = (costs.l3_bytes > 0).then(|| {
            let l3 = &mut self.l3[self.l3_of[p]];
            for &set in sets {
                l2.limit(set, l3.resident(set));
            }
            l3.hold(costs.l3_bytes, sets, &shares(&sizes, costs.l3_bytes))
        });
        let refilled = l2.hold(costs.l2_bytes, sets, &shares(&sizes, costs.l2_bytes));
        let from_memory = from_memory.unwrap_or(refilled);
        if refilled == 0 && from_memory == 0 {
            return Span::ZERO;
        }
        let lines = |bytes: u64| (bytes + costs.cache_line_bytes / 2) / costs.cache_line_bytes;
        let (l2_misses, l3_misses) = (lines(refilled), lines(from_memory));
        // A line that L2 has no room for is missed there in any case; if L3 has lost it too, it takes that much longer.
        let longer_ps = (costs.l3_miss_ps - costs.l2_miss_ps).max(0);
        let refill =
            Span::from_ns((l2_misses as i64 * costs.l2_miss_ps + l3_misses as i64 * longer_ps) / 1000);
        let counts = &mut self.counts[v];
        counts.l2_misses += l2_misses;
        counts.l3_misses += l3_misses;
        counts.refill_ns += refill;
        refill
    }

    /// `v` was switched out when this much of its refill was still to come.
    pub(crate) fn cut_short(&mut self, v: VcpuId, rest: Span) {
        if let Some(counts) = self.counts.get_mut(v) {
            counts.refill_ns -= rest;
        }
    }
}

/// The bytes of sets of these sizes that a cache holds while they are used: all, or each in proportion.
fn shares(sizes: &[u64; SETS_MAX], capacity: u64) -> [u64; SETS_MAX] {
    let total: u64 = sizes.iter().sum();
    if total <= capacity {
        return *sizes;
    }
    sizes.map(|bytes| (u128::from(bytes) * u128::from(capacity) / u128::from(total)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COSTS: Costs = Costs {
        l2_bytes: 1000,
        l3_bytes: 4000,
        cache_line_bytes: 10,
        l2_miss_ps: 5000,
        l3_miss_ps: 20_000,
        ..Costs::ZERO
    };
    const NO_L3: Costs = Costs { l3_bytes: 0, ..COSTS };

    /// Caches of two sockets of two pCPUs.
    fn two_sockets() -> Caches {
        Caches::new(vec![0, 1, 2, 3].into(), vec![0, 0, 1, 1].into())
    }

    /// Caches of two sockets, with a vCPU for each of the working sets of these sizes.
    fn caches(sets: &[u64]) -> Caches {
        let mut caches = two_sockets();
        for (v, &bytes) in sets.iter().enumerate() {
            let set = caches.make_set(bytes);
            caches.use_sets(VcpuId(v as u32), &[set]);
        }
        caches
    }

    /// The L2 and L3 misses of each of these (pCPU, vCPU) in turn.
    fn misses<const N: usize>(caches: &mut Caches, costs: &Costs, turns: [(u32, u32); N]) -> [(u64, u64); N] {
        turns.map(|(p, v)| {
            let before = caches.counts(VcpuId(v));
            caches.touch(costs, PcpuId(p), VcpuId(v));
            let after = caches.counts(VcpuId(v));
            (after.l2_misses - before.l2_misses, after.l3_misses - before.l3_misses)
        })
    }

    #[test]
    fn sets_that_fit_together_do_not_disturb_each_other() {
        let mut caches = caches(&[400, 600]);
        let turns = [0, 1, 0, 1, 0].map(|v| (0, v));
        let only_first = [(40, 40), (60, 60), (0, 0), (0, 0), (0, 0)];
        assert_eq!(misses(&mut caches, &COSTS, turns), only_first);
    }

    #[test]
    fn two_that_do_not_fit_pay_for_the_overlap_and_l3_still_has_it() {
        let mut caches = caches(&[600, 700]);
        assert_eq!(
            misses(&mut caches, &COSTS, [0, 1, 0, 1].map(|v| (0, v))),
            [(60, 60), (70, 70), (30, 0), (30, 0)]
        );
        assert_eq!(caches.counts(VcpuId(0)).refill_ns, Span::from_ns(60 * 20 + 30 * 5));
    }

    #[test]
    fn without_an_l3_every_miss_goes_to_memory() {
        let mut caches = caches(&[600, 700]);
        let turns = [0, 1, 0].map(|v| (0, v));
        assert_eq!(misses(&mut caches, &NO_L3, turns), [(60, 60), (70, 70), (30, 30)]);
        assert_eq!(caches.counts(VcpuId(0)).refill_ns, Span::from_ns(90 * 20));
    }

    #[test]
    fn on_another_pcpu_of_the_socket_the_l2_is_cold_and_the_l3_warm_on_another_socket_both_are_cold() {
        let mut caches = caches(&[500]);
        let turns = [(0, 0), (1, 0), (0, 0), (2, 0)];
        assert_eq!(misses(&mut caches, &COSTS, turns), [(50, 50), (50, 0), (0, 0), (50, 50)]);
    }

    #[test]
    fn a_round_that_exceeds_the_cache_a_little_keeps_some_of_each() {
        // Five sets of a quarter each. When one comes back, the four others have each brought in 1 − x of theirs, and
        // x, what is left of it, satisfies x = (0.75 / (1 − 0.25 x))^4: 0.60. (LRU would have kept nothing.)
        let mut caches = caches(&[250; 5]);
        for turn in 0..100 {
            caches.touch(&NO_L3, PcpuId(0), VcpuId(turn % 5));
        }
        let [(missed, _)] = misses(&mut caches, &NO_L3, [(0, 0)]);
        assert!((9..=11).contains(&missed), "{missed} of 25 lines");
    }

    #[test]
    fn a_set_larger_than_the_caches_costs_nothing_when_nobody_ran_in_between() {
        let mut caches = caches(&[3000, 9000]);
        assert_eq!(misses(&mut caches, &COSTS, [(0, 0), (0, 0)]), [(100, 300), (0, 0)]);
        assert_eq!(misses(&mut caches, &COSTS, [(1, 1), (1, 1)]), [(100, 400), (0, 0)]);
        assert_eq!(misses(&mut caches, &COSTS, [(0, 0)]), [(100, 300)], "the other one has emptied L3");
        let once = 100 * 20 + 200 * 15;
        assert_eq!(
            caches.counts(VcpuId(0)).refill_ns,
            Span::from_ns(2 * once),
            "an L3 miss adds to an L2 miss of its own"
        );
    }

    #[test]
    fn a_shared_set_is_warm_for_the_other_vcpu_and_only_what_is_added_is_brought_in() {
        let mut caches = Caches::new(vec![0].into(), vec![0].into());
        let [kernel, mine, yours] = [300, 100, 200].map(|bytes| caches.make_set(bytes));
        caches.use_sets(VcpuId(0), &[kernel, mine, kernel]);
        caches.use_sets(VcpuId(1), &[kernel]);
        assert_eq!(misses(&mut caches, &COSTS, [(0, 0), (0, 1)]), [(40, 40), (0, 0)]);
        caches.use_sets(VcpuId(1), &[kernel, yours]);
        assert_eq!(misses(&mut caches, &COSTS, [(0, 1)]), [(20, 20)]);
        caches.resize_set(mine, 150);
        assert_eq!(misses(&mut caches, &COSTS, [(0, 0)]), [(5, 5)]);
    }

    #[test]
    fn what_a_switch_cuts_short_is_not_counted() {
        let mut caches = caches(&[500]);
        let time = caches.touch(&COSTS, PcpuId(0), VcpuId(0));
        caches.cut_short(VcpuId(0), time / 4);
        assert_eq!(caches.counts(VcpuId(0)).refill_ns, time - time / 4);
    }

    proptest! {
        #[test]
        fn survival_is_within_a_part_in_a_million_of_its_float(
            steps in proptest::collection::vec((1..1_u64 << 40, 0.0..1.0_f64), 1..200),
            bytes in 0..1_u64 << 40,
        ) {
            let mut survival = Survival::ALL;
            let mut float = 1.0;
            for (all, fraction) in steps {
                let left = ((all as f64 * fraction) as u64).max(1);
                survival.shrink(left, all);
                float *= left as f64 / all as f64;
                let (exact, kept) = (bytes as f64 * float, survival.of(bytes, Survival::ALL) as f64);
                prop_assert!(kept <= exact * (1.0 + 1e-9) && kept + 1.0 >= exact * (1.0 - 1e-6), "{kept} {exact}");
            }
        }

        #[test]
        fn what_is_resident_never_exceeds_the_capacity_nor_its_set(
            sizes in proptest::collection::vec(0..3000_u64, 8),
            turns in proptest::collection::vec((0..4_u32, 0..8_usize, 1..=4_usize), 1..300),
        ) {
            let mut caches = two_sockets();
            let sets: Vec<SetId> = sizes.iter().map(|&bytes| caches.make_set(bytes)).collect();
            for (p, first, count) in turns {
                let used: Vec<SetId> = (first..first + count).map(|set| sets[set % 8]).collect();
                let v = VcpuId(first as u32);
                caches.use_sets(v, &used);
                let before: Vec<u64> = (0..8).map(|set| caches.l2[p as usize].resident(SetId(set))).collect();
                prop_assert!(!caches.touch(&COSTS, PcpuId(p), v).is_negative());
                let counts = caches.counts(v);
                caches.touch(&COSTS, PcpuId(p), v);
                prop_assert_eq!(caches.counts(v), counts, "nobody ran in between");
                for (cache, capacity) in caches.l2.iter().map(|l2| (l2, 1000)).chain(caches.l3.iter().map(|l3| (l3, 4000))) {
                    let resident: Vec<u64> = (0..8).map(|set| cache.resident(SetId(set))).collect();
                    prop_assert!(resident.iter().sum::<u64>() <= cache.used && cache.used <= capacity);
                    prop_assert!(resident.iter().zip(&sizes).all(|(there, size)| there <= size));
                }
                for set in (0..8).filter(|&set| !used.contains(&SetId(set))) {
                    prop_assert!(caches.l2[p as usize].resident(SetId(set)) <= before[set as usize], "others only lose");
                }
            }
        }
    }
}
