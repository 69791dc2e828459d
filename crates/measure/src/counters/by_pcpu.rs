//! Counters of each domain on each pCPU, as XenMon keeps them. A vCPU that does not run counts where it is assigned.

use vcpulab_host::{DomId, HostState, PcpuId, RunTimes, Span, Table, VcpuId};

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

/// The counters of a vCPU on the pCPU that it is assigned to.
#[derive(Clone, Copy, Debug)]
struct Here {
    pcpu: PcpuId,
    /// Part of the vCPU's times that is counted already.
    running_ns: Span,
    runnable_ns: Span,
    blocked_ns: Span,
    allocated_ns: Span,
    executions: u64,
}

impl Here {
    #[inline]
    fn begin(pcpu: PcpuId, counted: RunTimes) -> Self {
        let RunTimes { running_ns, runnable_ns, blocked_ns, .. } = counted;
        Here { pcpu, running_ns, runnable_ns, blocked_ns, allocated_ns: Span::ZERO, executions: 0 }
    }
}

/// The counters of all domains and pCPUs since they were last taken. A vCPU's are added to its domain's when it leaves the pCPU:
/// many never do.
#[derive(Clone, Debug, Default)]
pub struct ByPcpu {
    vcpus: Table<VcpuId, Here>,
    /// Counters of vCPUs that have left a pCPU, by domain and, if one of its vCPUs has left any, by pCPU.
    left: Table<DomId, Box<[OnPcpu]>>,
}

impl ByPcpu {
    /// Begins now.
    pub(crate) fn reset(&mut self, host: &HostState) {
        self.left = (0..host.domain_count()).map(|_| Box::default()).collect();
        let vcpus = (0..host.vcpu_count() as u32).map(VcpuId);
        self.vcpus = vcpus.map(|v| Here::begin(host.processor(v), host.run_times(v))).collect();
    }

    /// A vCPU of a guest was switched in on its pCPU, with that time allocated.
    #[inline]
    pub(crate) fn switched_in(&mut self, host: &HostState, v: VcpuId, allocated_ns: Span) {
        self.moved(host, v);
        let here = &mut self.vcpus[v];
        here.executions += 1;
        here.allocated_ns += allocated_ns;
    }

    /// A vCPU may have been assigned to another pCPU: its time up to now belongs to the one before.
    #[inline]
    pub(crate) fn moved(&mut self, host: &HostState, v: VcpuId) {
        if self.vcpus[v].pcpu != host.processor(v) {
            self.leave(host, v);
        }
    }

    fn leave(&mut self, host: &HostState, v: VcpuId) {
        let here = &mut self.vcpus[v];
        let left = &mut self.left[host.dom(v)];
        if left.is_empty() {
            *left = vec![OnPcpu::default(); host.pcpu_count() as usize].into();
        }
        let all = &mut left[here.pcpu.index()];
        let now = host.run_times(v);
        all.running_ns += now.running_ns - here.running_ns;
        all.runnable_ns += now.runnable_ns - here.runnable_ns;
        all.blocked_ns += now.blocked_ns - here.blocked_ns;
        all.allocated_ns += here.allocated_ns;
        all.executions += here.executions;
        *here = Here::begin(host.processor(v), now);
    }

    /// Takes the counters of each domain on each pCPU that it ran on, and begins anew.
    pub(crate) fn take(&mut self, host: &HostState) -> Vec<(DomId, PcpuId, OnPcpu)> {
        for v in host.all_guest_vcpus() {
            self.leave(host, v);
        }
        let mut taken = Vec::new();
        for (d, left) in self.left.enumerate_mut() {
            for (p, counters) in (0..).map(PcpuId).zip(left) {
                let counters = std::mem::take(counters);
                if counters.running_ns > Span::ZERO {
                    taken.push((d, p, counters));
                }
            }
        }
        taken
    }
}
