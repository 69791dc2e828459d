//! Keys of the pCPUs' current vCPUs, and the greatest among them: a tree over the pCPUs whose nodes have eight children.

use vcpulab_host::{CpuMask, PCPUS_MAX, PcpuId};

use super::key::Key;

/// Keys by pCPU: [`Key::LEAST`] where the pCPU should not be asked.
#[derive(Clone, Debug, Default)]
pub struct Running {
    keys: Vec<Key>,
    /// The greatest of each eight keys, and of each eight of these; out of date where `changed` is set.
    of_8: Vec<Key>,
    of_64: Vec<Key>,
    /// Groups of eight in which keys have changed, as bits.
    changed: u64,
}

const _: () = assert!(PCPUS_MAX <= 8 * u64::BITS, "an eight is a bit");

/// The greatest of eight, or of as many as there are.
#[inline(always)]
fn greatest_of(keys: &[Key], eight: usize) -> Key {
    let end = keys.len().min(8 * eight + 8);
    keys[8 * eight..end].iter().copied().fold(Key::LEAST, Key::max)
}

impl Running {
    /// Makes room for `p` and all below.
    pub fn grow(&mut self, p: PcpuId) {
        let count = self.keys.len().max(p.index() + 1);
        for (keys, each) in [(&mut self.keys, 1), (&mut self.of_8, 8), (&mut self.of_64, 64)] {
            keys.resize(count.div_ceil(each), Key::LEAST);
        }
    }

    /// The key of `p`.
    pub fn key(&self, p: PcpuId) -> Key {
        self.keys[p.index()]
    }

    /// Gives `p` another key.
    #[inline(always)]
    pub fn set(&mut self, p: PcpuId, key: Key) {
        self.keys[p.index()] = key;
        self.changed |= 1 << (p.0 / 8);
    }

    /// The pCPU `among` some with the greatest key above a bound; of several the first from `start` on, cyclically.
    pub fn greatest(&mut self, start: PcpuId, among: &CpuMask, bound: Key) -> Option<PcpuId> {
        while self.changed != 0 {
            let eight = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            self.of_8[eight] = greatest_of(&self.keys, eight);
            self.of_64[eight / 8] = greatest_of(&self.of_8, eight / 8);
        }
        let greatest = self.of_64.iter().copied().fold(Key::LEAST, Key::max);
        if greatest <= bound {
            return None;
        }
        // As a rule the greatest of all is among them: then whole eights that lack it are passed over.
        let nearly = greatest.before().max(bound);
        self.search(start, among, nearly).or_else(|| self.search(start, among, bound))
    }

    fn search(&self, start: PcpuId, among: &CpuMask, mut bound: Key) -> Option<PcpuId> {
        let mut found = None;
        let ahead = if among.contains(start) { Some(start) } else { among.first_above(start) };
        for (first, end) in [(ahead, self.keys.len()), (among.first(), start.index())] {
            let mut next = first;
            while let Some(p) = next
                && p.index() < end
            {
                let passed = if self.of_64[p.index() / 64] <= bound {
                    p.0 | 63
                } else if self.of_8[p.index() / 8] <= bound {
                    p.0 | 7
                } else {
                    if self.keys[p.index()] > bound {
                        (bound, found) = (self.keys[p.index()], next);
                    }
                    p.0
                };
                next = among.first_above(PcpuId(passed));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vcpulab_host::Time;

    use super::*;

    fn key(number: i64) -> Key {
        if number == 0 { Key::LEAST } else { Key::new(0, Time::from_ns(number)) }
    }

    /// The choice when the pCPUs are visited one by one, to compare with.
    fn visited(keys: &[Key], start: PcpuId, among: &CpuMask, bound: Key) -> Option<PcpuId> {
        let (before, from) = keys.split_at(start.index());
        let cyclic = (start.index()..).zip(from).chain((0..).zip(before));
        let allowed = cyclic.filter(|&(p, _)| among.contains(PcpuId(p as u32)));
        let worst = allowed
            .fold((bound, None), |worst, (p, &key)| if key > worst.0 { (key, Some(p)) } else { worst });
        worst.1.map(|p| PcpuId(p as u32))
    }

    proptest! {
        #[test]
        fn the_greatest_is_the_first_visited_of_them(
            pcpus in prop_oneof![1..20u32, 60..70u32, 500..=PCPUS_MAX],
            ops in prop::collection::vec((any::<u32>(), 0..12i64, any::<u32>(), 0..12i64, prop::collection::vec(any::<u32>(), 0..40), any::<bool>()), 0..200),
        ) {
            let mut running = Running::default();
            running.grow(PcpuId(pcpus - 1));
            let mut keys = vec![Key::LEAST; pcpus as usize];
            for (p, number, start, bound, some, all_but) in ops {
                keys[(p % pcpus) as usize] = key(number);
                running.set(PcpuId(p % pcpus), key(number));
                let some: CpuMask = some.into_iter().map(|p| PcpuId(p % pcpus)).collect();
                let among = if all_but { CpuMask::first_n(pcpus).without(&some) } else { some };
                let (start, bound) = (PcpuId(start % pcpus), key(bound));
                prop_assert_eq!(running.greatest(start, &among, bound), visited(&keys, start, &among, bound));
            }
        }
    }
}
