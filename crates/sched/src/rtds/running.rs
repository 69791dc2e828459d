//! The keys of what runs on each pCPU, and which is greatest: a tree of eights over the pCPUs.

use vcpulab_host::{CpuMask, PcpuId};

use super::key::Key;

/// Keys by pCPU: [`Key::LEAST`] where nobody is to be asked.
#[derive(Clone, Debug, Default)]
pub struct Running {
    keys: Vec<Key>,
    /// The greatest of each eight keys, and of each eight of these.
    of_8: Vec<Key>,
    of_64: Vec<Key>,
}

/// The greatest of eight, or of as many as there are.
#[inline(always)]
fn greatest_of(keys: &[Key], eight: usize) -> Key {
    let end = keys.len().min(8 * eight + 8);
    keys[8 * eight..end].iter().copied().fold(Key::LEAST, Key::max)
}

/// Brings the greatest of eight up to date when one of them was `before` and is `now`; what it was, if it changes.
#[inline(always)]
fn settle(all: &mut [Key], below: &[Key], eight: usize, before: Key, now: Key) -> Option<Key> {
    let was = all[eight];
    if now < was && before < was {
        return None;
    }
    all[eight] = if now < was { greatest_of(below, eight) } else { now };
    (all[eight] != was).then_some(was)
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
    #[inline]
    pub fn set(&mut self, p: PcpuId, key: Key) {
        let p = p.index();
        let before = std::mem::replace(&mut self.keys[p], key);
        if let Some(before) = settle(&mut self.of_8, &self.keys, p / 8, before, key) {
            settle(&mut self.of_64, &self.of_8, p / 64, before, self.of_8[p / 8]);
        }
    }

    /// The pCPU `among` some that has the greatest key, if that is above a bound; of several the first from `start` on, and
    /// after the last pCPU comes the first.
    pub fn greatest(&self, start: PcpuId, among: &CpuMask, bound: Key) -> Option<PcpuId> {
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
