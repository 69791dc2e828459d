//! The keys of what runs on each pCPU, and which is greatest: a tree of eights over the pCPUs.

use vcpulab_host::{CpuMask, PCPUS_MAX, PcpuId};

use super::key::Key;

/// Keys by pCPU: [`Key::LEAST`] where nobody is to be asked.
#[derive(Clone, Debug, Default)]
pub struct Running {
    keys: Vec<Key>,
    /// The greatest of each eight keys, and of each eight of these; but for `changed`.
    of_8: Vec<Key>,
    of_64: Vec<Key>,
    /// The eights in which keys have changed, as bits.
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

    /// The pCPU `among` some that has the greatest key, if that is above a bound; of several the first from `start` on, and
    /// after the last pCPU comes the first.
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
        let (before, from) = (start.index(), self.keys.len());
        for (mut p, end) in [(before, from), (0, before)] {
            while p < end {
                if self.of_64[p / 64] <= bound {
                    p = (p | 63) + 1;
                } else if self.of_8[p / 8] <= bound {
                    p = (p | 7) + 1;
                } else {
                    let key = self.keys[p];
                    if key > bound && among.contains(PcpuId(p as u32)) {
                        (bound, found) = (key, Some(PcpuId(p as u32)));
                    }
                    p += 1;
                }
            }
        }
        found
    }
}
