//! Counters of each domain on each pCPU, as XenMon keeps them. A vCPU that does not run counts where it is assigned.

use vcpulab_host::{DomId, HostState, PcpuId, RunTimes, Span, VcpuId};

/// Counters of a domain on a pCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnPcpu {
    /// Time its vCPUs ran there, ns.
    pub running_ns: Span,
    /// Time they waited to run there, ns.
    pub runnable_ns: Span,
    /// Time they were blocked, assigned to it, ns.
    pub blocked_ns: Span,
    /// CPU time that decisions there gave it, ns.
    pub allocated_ns: Span,
    /// Times a vCPU of it was switched in there.
    pub executions: u64,
}

/// The counters of all domains and pCPUs since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct ByPcpu {
    pcpus: usize,
    /// By domain, and by pCPU within it.
    cells: Vec<OnPcpu>,
    /// By vCPU: its pCPU, and its times that are counted already.
    booked: Vec<(PcpuId, RunTimes)>,
}

impl ByPcpu {
    /// Begins now.
    pub(crate) fn reset(&mut self, host: &HostState) {
        self.pcpus = host.pcpu_count() as usize;
        self.cells = vec![OnPcpu::default(); host.domain_count() * self.pcpus];
        let vcpus = (0..host.vcpu_count() as u32).map(VcpuId);
        self.booked = vcpus.map(|v| (host.processor(v), host.run_times(v))).collect();
    }

    fn cell(&mut self, d: DomId, p: PcpuId) -> Option<&mut OnPcpu> {
        self.cells.get_mut(d.index() * self.pcpus + p.index())
    }

    /// A vCPU of a guest was switched in, with that time allocated.
    #[inline]
    pub(crate) fn switched_in(&mut self, host: &HostState, v: VcpuId, p: PcpuId, allocated_ns: Span) {
        if self.booked.get(v.index()).is_some_and(|&(at, _)| at != p) {
            self.moved(host, v);
        }
        if let Some(cell) = self.cell(host.dom(v), p) {
            cell.executions += 1;
            cell.allocated_ns += allocated_ns;
        }
    }

    /// A vCPU has been assigned to another pCPU: its time up to now belongs to the one before.
    pub(crate) fn moved(&mut self, host: &HostState, v: VcpuId) {
        let now = host.run_times(v);
        let Some(booked) = self.booked.get_mut(v.index()) else { return };
        let (at, before) = std::mem::replace(booked, (host.processor(v), now));
        if let Some(cell) = self.cell(host.dom(v), at) {
            cell.running_ns += now.running_ns - before.running_ns;
            cell.runnable_ns += now.runnable_ns - before.runnable_ns;
            cell.blocked_ns += now.blocked_ns - before.blocked_ns;
        }
    }

    /// Takes the counters of each domain on each pCPU that it ran on, and begins anew.
    pub(crate) fn take(&mut self, host: &HostState) -> Vec<(DomId, PcpuId, OnPcpu)> {
        for v in host.guest_vcpus() {
            self.moved(host, v);
        }
        let pcpus = self.pcpus;
        let cells = self.cells.iter_mut().map(std::mem::take).enumerate();
        let ran = cells.filter(|(_, cell)| cell.running_ns > Span::ZERO);
        ran.map(|(i, cell)| (DomId((i / pcpus) as u32), PcpuId((i % pcpus) as u32), cell)).collect()
    }
}
