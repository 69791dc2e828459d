//! A set of pCPUs.

use std::fmt;

use crate::PcpuId;

/// Most pCPUs a host can have. (Xen's own default limit was 256 through all releases treated here.)
pub const PCPUS_MAX: u32 = 256;

const WORDS: usize = (PCPUS_MAX / 64) as usize;

/// A set of pCPUs, for affinities, idle pCPUs, and pending requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuMask([u64; WORDS]);

impl CpuMask {
    /// The set of no pCPU.
    pub const EMPTY: CpuMask = CpuMask([0; WORDS]);

    /// The pCPUs 0 to `count` − 1.
    pub fn first_n(count: u32) -> Self {
        (0..count).map(PcpuId).collect()
    }

    /// The set of just one pCPU.
    pub fn only(p: PcpuId) -> Self {
        let mut mask = Self::EMPTY;
        mask.insert(p);
        mask
    }

    /// Is `p` in the set?
    #[inline(always)]
    pub fn contains(&self, p: PcpuId) -> bool {
        self.0.get(p.index() / 64).is_some_and(|word| word & (1 << (p.0 % 64)) != 0)
    }

    /// Adds `p`.
    ///
    /// # Panics
    /// If its number is [`PCPUS_MAX`] or above: no host has it.
    #[inline(always)]
    pub fn insert(&mut self, p: PcpuId) {
        self.0[p.index() / 64] |= 1 << (p.0 % 64);
    }

    /// Takes `p` out.
    #[inline(always)]
    pub fn remove(&mut self, p: PcpuId) {
        if let Some(word) = self.0.get_mut(p.index() / 64) {
            *word &= !(1 << (p.0 % 64));
        }
    }

    /// Is it empty?
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The number of pCPUs in it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The lowest-numbered pCPU.
    #[inline(always)]
    pub fn first(&self) -> Option<PcpuId> {
        self.0
            .iter()
            .enumerate()
            .find(|(_, word)| **word != 0)
            .map(|(index, word)| PcpuId(index as u32 * 64 + word.trailing_zeros()))
    }

    /// The lowest-numbered pCPU with a number above `p`.
    #[inline]
    pub fn first_above(&self, p: PcpuId) -> Option<PcpuId> {
        let from = p.0.saturating_add(1);
        let start = (from / 64) as usize;
        if start >= WORDS {
            return None;
        }
        let head = self.0[start] & (u64::MAX << (from % 64));
        if head != 0 {
            return Some(PcpuId(start as u32 * 64 + head.trailing_zeros()));
        }
        (start + 1..WORDS)
            .find(|&index| self.0[index] != 0)
            .map(|index| PcpuId(index as u32 * 64 + self.0[index].trailing_zeros()))
    }

    /// The *cyclic next* pCPU after `p`: the lowest one above it, or else the lowest of all (`p` itself, if alone).
    #[inline]
    pub fn next_after(&self, p: PcpuId) -> Option<PcpuId> {
        self.first_above(p).or_else(|| self.first())
    }

    /// The pCPUs in both.
    #[inline(always)]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Is any pCPU in both?
    #[inline(always)]
    pub fn meets(&self, other: &CpuMask) -> bool {
        !self.and(other).is_empty()
    }

    /// Are all pCPUs of the other in it?
    #[inline(always)]
    pub fn contains_all(&self, other: &CpuMask) -> bool {
        other.without(self).is_empty()
    }

    /// The pCPUs in either.
    #[inline(always)]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// The pCPUs in this one but not in the other.
    #[inline(always)]
    pub fn without(&self, other: &CpuMask) -> CpuMask {
        CpuMask(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// The ranges of pCPUs without a gap, each by its first and its last, ascending.
    pub fn ranges(&self) -> Vec<(PcpuId, PcpuId)> {
        let mut ranges: Vec<(PcpuId, PcpuId)> = Vec::new();
        for p in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if last.0 + 1 == p.0 => *last = p,
                _ => ranges.push((p, p)),
            }
        }
        ranges
    }

    /// The pCPUs, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PcpuId> + use<> {
        let mut left = *self;
        std::iter::from_fn(move || {
            let p = left.first()?;
            left.remove(p);
            Some(p)
        })
    }
}

/// In the toolstack's notation: `0-3,5`.
impl fmt::Display for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges().into_iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            match first == last {
                true => write!(f, "{}", first.0)?,
                false => write!(f, "{}-{}", first.0, last.0)?,
            }
        }
        Ok(())
    }
}

impl FromIterator<PcpuId> for CpuMask {
    fn from_iter<I: IntoIterator<Item = PcpuId>>(pcpus: I) -> Self {
        let mut mask = Self::EMPTY;
        for p in pcpus {
            mask.insert(p);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cyclic_next_wraps_and_crosses_words() {
        let mask: CpuMask = [3, 70, 200].map(PcpuId).into_iter().collect();
        assert_eq!(mask.next_after(PcpuId(3)), Some(PcpuId(70)));
        assert_eq!(mask.next_after(PcpuId(70)), Some(PcpuId(200)));
        assert_eq!(mask.next_after(PcpuId(200)), Some(PcpuId(3)));
        assert_eq!(mask.next_after(PcpuId(255)), Some(PcpuId(3)));
        assert_eq!(CpuMask::only(PcpuId(5)).next_after(PcpuId(5)), Some(PcpuId(5)));
        assert_eq!(CpuMask::EMPTY.next_after(PcpuId(5)), None);
        assert_eq!(mask.iter().map(|p| p.0).collect::<Vec<_>>(), [3, 70, 200]);
        assert_eq!(mask.len(), 3);
        assert_eq!(mask.to_string(), "3,70,200");
        assert_eq!(CpuMask::first_n(4).or(&CpuMask::only(PcpuId(5))).to_string(), "0-3,5");
    }

    #[test]
    fn a_pcpu_that_no_host_has_is_in_no_set() {
        let mut mask = CpuMask::first_n(PCPUS_MAX);
        assert!(mask.contains(PcpuId(PCPUS_MAX - 1)) && !mask.contains(PcpuId(PCPUS_MAX)));
        mask.remove(PcpuId(u32::MAX));
        assert_eq!(mask, CpuMask::first_n(PCPUS_MAX));
    }
}
