//! A set of pCPUs.

use std::fmt;

use crate::PcpuId;

/// Most pCPUs a host can have: the threads of two processors of 128 cores each, as AMD's EPYC 9754. (Xen's own default limit was
/// 256, which its option `CONFIG_NR_CPUS` changes.)
pub const PCPUS_MAX: u32 = 512;

const WORDS: usize = (PCPUS_MAX / 64) as usize;

/// A set of pCPUs, for affinities, idle pCPUs, and pending requests.
///
/// A host of up to 64 pCPUs has sets of one word, and pays for no other.
#[derive(Clone, Copy)]
pub struct CpuMask(Bits);

/// Words of a set. The variant says nothing about the set's members: a set of `All` may have become small.
#[derive(Clone, Copy)]
enum Bits {
    /// The pCPUs below 64.
    Low(u64),
    All([u64; WORDS]),
}

use Bits::{All, Low};

impl CpuMask {
    /// The set of no pCPU.
    pub const EMPTY: CpuMask = CpuMask(Low(0));

    /// The pCPUs 0 to `count` − 1.
    pub fn first_n(count: u32) -> Self {
        (0..count).map(PcpuId).collect()
    }

    /// The set of just one pCPU.
    #[inline(always)]
    pub fn only(p: PcpuId) -> Self {
        let mut mask = Self::EMPTY;
        mask.insert(p);
        mask
    }

    /// Whether `p` is in the set.
    #[inline(always)]
    pub fn contains(&self, p: PcpuId) -> bool {
        match &self.0 {
            Low(low) => p.0 < 64 && low >> p.0 & 1 != 0,
            All(words) => words.get(p.index() / 64).is_some_and(|word| word >> (p.0 % 64) & 1 != 0),
        }
    }

    /// Adds `p`.
    ///
    /// # Panics
    /// If its number is [`PCPUS_MAX`] or above: no host has it.
    #[inline(always)]
    pub fn insert(&mut self, p: PcpuId) {
        match &mut self.0 {
            Low(low) if p.0 < 64 => *low |= 1 << p.0,
            _ => self.widen()[p.index() / 64] |= 1 << (p.0 % 64),
        }
    }

    /// Takes `p` out.
    #[inline(always)]
    pub fn remove(&mut self, p: PcpuId) {
        match &mut self.0 {
            Low(low) if p.0 < 64 => *low &= !(1 << p.0),
            Low(_) => {}
            All(words) => {
                if let Some(word) = words.get_mut(p.index() / 64) {
                    *word &= !(1 << (p.0 % 64));
                }
            }
        }
    }

    /// Adds `p`, or takes it out.
    ///
    /// # Panics
    /// If its number is [`PCPUS_MAX`] or above: no host has it.
    #[inline(always)]
    pub fn put(&mut self, p: PcpuId, present: bool) {
        match &mut self.0 {
            Low(low) if p.0 < 64 => *low = *low & !(1 << p.0) | u64::from(present) << p.0,
            _ if present => self.insert(p),
            _ => self.remove(p),
        }
    }

    /// Whether the set is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Low(low) => *low == 0,
            All(words) => words.iter().fold(0, |all, word| all | word) == 0,
        }
    }

    /// The number of pCPUs in it.
    #[inline]
    pub fn len(&self) -> u32 {
        match &self.0 {
            Low(low) => low.count_ones(),
            All(words) => words.iter().map(|word| word.count_ones()).sum(),
        }
    }

    /// The lowest-numbered pCPU.
    #[inline(always)]
    pub fn first(&self) -> Option<PcpuId> {
        match &self.0 {
            Low(low) => lowest(0, *low),
            All(words) => words.iter().enumerate().find_map(|(index, &word)| lowest(index, word)),
        }
    }

    /// The lowest-numbered pCPU with a number above `p`.
    #[inline]
    pub fn first_above(&self, p: PcpuId) -> Option<PcpuId> {
        match &self.0 {
            // Two shifts: by 64 there is none.
            Low(low) if p.0 < 64 => lowest(0, low & u64::MAX << p.0 << 1),
            Low(_) => None,
            All(words) => {
                let start = p.index() / 64;
                let head = words.get(start)? & u64::MAX << (p.0 % 64) << 1;
                let later = || (start + 1..WORDS).find_map(|index| lowest(index, words[index]));
                lowest(start, head).or_else(later)
            }
        }
    }

    /// The *cyclic next* pCPU after `p`: the lowest one above it, or else the lowest of all (`p` itself, if alone).
    #[inline]
    pub fn next_after(&self, p: PcpuId) -> Option<PcpuId> {
        self.first_above(p).or_else(|| self.first())
    }

    /// The pCPUs in both.
    #[inline(always)]
    pub fn and(&self, other: &CpuMask) -> CpuMask {
        match (&self.0, &other.0) {
            (All(a), All(b)) => CpuMask(All(std::array::from_fn(|i| a[i] & b[i]))),
            _ => CpuMask(Low(self.low() & other.low())),
        }
    }

    /// Whether the two sets have a pCPU in common.
    #[inline(always)]
    pub fn meets(&self, other: &CpuMask) -> bool {
        !self.and(other).is_empty()
    }

    /// Whether the set contains all pCPUs of `other`.
    #[inline(always)]
    pub fn contains_all(&self, other: &CpuMask) -> bool {
        other.without(self).is_empty()
    }

    /// The pCPUs in either.
    #[inline(always)]
    pub fn or(&self, other: &CpuMask) -> CpuMask {
        match (&self.0, &other.0) {
            (Low(a), Low(b)) => CpuMask(Low(a | b)),
            _ => {
                let (a, b) = (self.words(), other.words());
                CpuMask(All(std::array::from_fn(|i| a[i] | b[i])))
            }
        }
    }

    /// The pCPUs in this one but not in the other.
    #[inline(always)]
    pub fn without(&self, other: &CpuMask) -> CpuMask {
        match &self.0 {
            Low(low) => CpuMask(Low(low & !other.low())),
            All(words) => {
                let others = other.words();
                CpuMask(All(std::array::from_fn(|i| words[i] & !others[i])))
            }
        }
    }

    /// The first word of the set.
    #[inline(always)]
    fn low(&self) -> u64 {
        match &self.0 {
            Low(low) => *low,
            All([low, ..]) => *low,
        }
    }

    /// All words of the set.
    #[inline]
    fn words(&self) -> [u64; WORDS] {
        match self.0 {
            Low(low) => std::array::from_fn(|i| if i == 0 { low } else { 0 }),
            All(words) => words,
        }
    }

    /// Makes it one that can have any pCPU.
    #[inline]
    fn widen(&mut self) -> &mut [u64; WORDS] {
        if let Low(_) = self.0 {
            self.0 = All(self.words());
        }
        match &mut self.0 {
            All(words) => words,
            Low(_) => unreachable!("it has just been made wide"),
        }
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

/// The lowest pCPU of word number `index`.
#[inline(always)]
fn lowest(index: usize, word: u64) -> Option<PcpuId> {
    (word != 0).then(|| PcpuId(index as u32 * 64 + word.trailing_zeros()))
}

impl PartialEq for CpuMask {
    fn eq(&self, other: &CpuMask) -> bool {
        self.words() == other.words()
    }
}

impl Eq for CpuMask {}

impl Default for CpuMask {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuMask({self})")
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
