//! Hard affinities of vCPUs. Most vCPUs have the affinity of others, so each set of pCPUs is stored once.

use crate::{CpuMask, Table, VcpuId};

/// The hard affinity of each vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Affinities {
    /// The place of each vCPU's among the sets.
    places: Table<VcpuId, u32>,
    /// The sets, and the number of vCPUs with each. A set without vCPUs is replaced by the next new one.
    sets: Vec<(CpuMask, u32)>,
}

impl Affinities {
    /// An empty list, with room for `vcpus`.
    pub fn with_capacity(vcpus: usize) -> Self {
        Affinities { places: Table::with_capacity(vcpus), sets: Vec::new() }
    }

    /// Adds a vCPU with this affinity.
    pub fn push(&mut self, mask: CpuMask) {
        let place = self.place_of(mask);
        self.places.push(place);
    }

    /// Changes that of a vCPU.
    pub fn set(&mut self, v: VcpuId, mask: CpuMask) {
        self.sets[self.places[v] as usize].1 -= 1;
        self.places[v] = self.place_of(mask);
    }

    /// Affinity of a vCPU, if the vCPU exists.
    #[inline(always)]
    pub fn get(&self, v: VcpuId) -> Option<&CpuMask> {
        self.places.get(v).map(|&place| &self.sets[place as usize].0)
    }

    /// The place of a set that one more vCPU has.
    fn place_of(&mut self, mask: CpuMask) -> u32 {
        let same = self.sets.iter().rposition(|(set, _)| *set == mask);
        let place = same.or_else(|| self.sets.iter().position(|&(_, users)| users == 0));
        let place = place.unwrap_or_else(|| {
            self.sets.push((mask, 0));
            self.sets.len() - 1
        });
        let users = self.sets[place].1;
        self.sets[place] = (mask, users + 1);
        place as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PcpuId;

    #[test]
    fn equal_sets_are_kept_once_and_what_nobody_has_makes_room() {
        let only = |p| CpuMask::only(PcpuId(p));
        let mut affinities = Affinities::with_capacity(3);
        for p in [0, 500, 500] {
            affinities.push(only(p));
        }
        assert_eq!(affinities.sets.len(), 2);
        affinities.set(VcpuId(0), only(7));
        assert_eq!(affinities.sets.len(), 2, "nobody has the first set any more");
        affinities.set(VcpuId(1), only(0));
        let now = [0, 1, 2].map(|v| affinities.get(VcpuId(v)).unwrap().to_string());
        assert_eq!((now, affinities.get(VcpuId(3))), (["7", "0", "500"].map(String::from), None));
    }
}
