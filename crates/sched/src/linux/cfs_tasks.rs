//! Waiting fair threads of each CPU, by the time when they last ran (`rq->cfs_tasks`): balancing takes threads from here.

use vcpulab_host::{CpuMask, PcpuId, Table, VcpuId};

use crate::list::{Links, List};

/// Waiting fair threads of all CPUs.
#[derive(Clone, Debug, Default)]
pub struct CfsTasks {
    lists: Table<PcpuId, (List<VcpuId>, u32)>,
    links: Links<VcpuId>,
    /// CPU of the list that contains each thread.
    on: Table<VcpuId, PcpuId>,
    /// CPUs with waiting threads.
    loaded: CpuMask,
    /// Number of threads that were placed on each CPU when they were created.
    placed: Table<PcpuId, u32>,
}

impl CfsTasks {
    pub fn add_cpu(&mut self, cpu: PcpuId) {
        self.lists.entry(cpu);
        self.placed.entry(cpu);
    }

    /// Number of threads that were placed on a CPU when they were created.
    pub fn placed(&self, cpu: PcpuId) -> u32 {
        self.placed[cpu]
    }

    /// Counts a thread that is placed on a CPU, or that ends.
    pub fn place(&mut self, cpu: PcpuId, comes: bool) {
        let placed = &mut self.placed[cpu];
        *placed = if comes { *placed + 1 } else { placed.saturating_sub(1) };
    }

    /// Makes room for a thread.
    pub fn grow(&mut self, v: VcpuId) {
        self.links.grow(v);
        if self.on.len() <= v.index() {
            self.on.resize(v.index() + 1, PcpuId(0));
        }
    }

    /// Adds a thread to the end of a CPU's list.
    pub fn insert(&mut self, cpu: PcpuId, v: VcpuId) {
        let (list, count) = &mut self.lists[cpu];
        self.links.push_back(list, v);
        *count += 1;
        self.on[v] = cpu;
        self.loaded.insert(cpu);
    }

    /// Removes a thread that waits from its list, if it is on a list.
    pub fn remove(&mut self, v: VcpuId) {
        if v.index() >= self.on.len() || !self.links.listed(v) {
            return;
        }
        let cpu = self.on[v];
        let (list, count) = &mut self.lists[cpu];
        self.links.remove(list, v);
        *count -= 1;
        self.loaded.put(cpu, *count > 0);
    }

    /// Whether a thread waits.
    pub fn waits(&self, v: VcpuId) -> bool {
        self.links.listed(v)
    }

    /// CPUs with waiting threads.
    pub fn loaded(&self) -> &CpuMask {
        &self.loaded
    }

    /// Number of threads that wait on a CPU.
    pub fn count(&self, cpu: PcpuId) -> u32 {
        self.lists[cpu].1
    }

    /// The thread that waits behind `v`.
    pub fn after(&self, v: VcpuId) -> Option<VcpuId> {
        self.links.next(v)
    }

    /// Threads that wait on a CPU; first the thread whose last run or arrival was the earliest.
    pub fn longest_first(&self, cpu: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        self.links.iter(&self.lists[cpu].0)
    }
}
