//! Counters, waits and the trace of one run.

use vcpulab_host::{
    Acted, CacheCounts, HostState, NEVER, Observer, PcpuId, RunState, RunTimes, Slowed, Span, Switch, Time,
    VcpuId, WakeCause,
};

use crate::counters::by_pcpu::ByPcpu;
use crate::counters::decisions::Decisions;
use crate::counters::rejected::RejectedActions;
use crate::waits::{Sender, Waits, WaitsByOrigin};

/// Counters of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct VcpuCounts {
    /// Times it was switched in: XenMon's executions.
    pub executions: u64,
    /// Times it became runnable after a block.
    pub wakeups: u64,
    /// Times it was switched out.
    pub switched_out: u64,
    /// Times it was switched out although it could have gone on.
    pub preemptions: u64,
    /// Times it was assigned to another pCPU.
    pub migrations: u64,
    /// CPU time that decisions gave it when they switched it in, ns; those without an end do not count.
    pub allocated_ns: Span,
    /// Longest wait for a pCPU, ns.
    pub wait_max_ns: Span,
}

/// Counters of a vCPU: one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Vcpu {
    counts: VcpuCounts,
    /// The sender of the event with which its present wait began, if it began with one.
    sender: Sender,
}

const _: () = assert!(size_of::<Vcpu>() == 64, "a vCPU fills one cache line");

/// The host's counters when measuring began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline {
    pub time: Time,
    pub vcpus: Vec<RunTimes>,
    /// Up to the last vCPU that had a working set.
    pub caches: Vec<CacheCounts>,
    pub slowed: Vec<Slowed>,
    pub pcpus: Vec<(Span, Span, Span, u64)>,
}

/// Optional data that a meter keeps besides its counters, at a cost in time or memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// The causes of waits: the domains that had the pCPUs, and the wake-ups they began with.
    pub waits: bool,
    /// Counters of each domain on each pCPU.
    pub by_pcpu: bool,
}

/// The observer that counts.
#[derive(Debug)]
pub struct Meter {
    keep: Keep,
    vcpus: Vec<Vcpu>,
    /// Waits of each domain's vCPUs for a pCPU, one for each execution.
    pub(crate) waits: WaitsByOrigin,
    /// Waits, charged to the domains that had the pCPUs.
    pub(crate) attributed: Waits,
    pub(crate) switches: Vec<u64>,
    pub(crate) baseline: Baseline,
    /// Decisions, if they are kept.
    pub decisions: Option<Decisions>,
    /// Refused actions, those in the warm-up included.
    pub(crate) rejected_actions: RejectedActions,
    pub(crate) by_pcpu: Option<ByPcpu>,
}

impl Meter {
    /// A meter that keeps all this from the next [`reset`](Meter::reset) on.
    pub fn new(keep: Keep, decisions: Option<Decisions>) -> Self {
        Meter {
            keep,
            vcpus: Vec::new(),
            waits: WaitsByOrigin::default(),
            attributed: Waits::default(),
            switches: Vec::new(),
            baseline: Baseline::default(),
            decisions,
            rejected_actions: RejectedActions::default(),
            by_pcpu: keep.by_pcpu.then(ByPcpu::default),
        }
    }

    /// Starts measuring now: forgets all that was counted. Must be called once before a host runs.
    pub fn reset(&mut self, host: &HostState) {
        self.vcpus.resize(host.vcpu_count(), Vcpu::default());
        // One that was woken before may still wait: its sender stays.
        self.vcpus.iter_mut().for_each(|vcpu| vcpu.counts = VcpuCounts::default());
        self.switches.clear();
        self.switches.resize(host.pcpu_count() as usize, 0);
        self.waits.reset(host, self.keep.waits);
        if self.keep.waits {
            self.attributed.reset(host);
        }
        self.baseline = Baseline {
            time: host.now(),
            vcpus: (0..host.vcpu_count()).map(|v| host.run_times(VcpuId(v as u32))).collect(),
            caches: host.all_cache_counts(),
            slowed: (0..host.vcpu_count()).map(|v| host.slowed(VcpuId(v as u32))).collect(),
            pcpus: (0..host.pcpu_count())
                .map(|p| {
                    let (run, idle, overhead) = host.pcpu_times(PcpuId(p));
                    (run, idle, overhead, host.pcpu_decisions(PcpuId(p)))
                })
                .collect(),
        };
        if let Some(by_pcpu) = &mut self.by_pcpu {
            by_pcpu.reset(host);
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.clear();
        }
    }

    /// The counters of `v`.
    pub fn counts(&self, v: VcpuId) -> VcpuCounts {
        self.vcpus[v.index()].counts
    }
}

impl Observer for Meter {
    fn wanted_runstates(&self) -> &[RunState] {
        if self.keep.waits { &[RunState::Runnable] } else { &[] }
    }

    #[inline]
    fn switched(&mut self, host: &HostState, switch: Switch) {
        self.switches[switch.pcpu.index()] += 1;
        self.attributed.occupied(host, switch.pcpu);
        if !host.is_idle(switch.to) {
            let Vcpu { counts, sender } = &mut self.vcpus[switch.to.index()];
            counts.executions += 1;
            let slice_end = host.timer_expiry(host.slice_timer(switch.pcpu));
            let allocated_ns = if slice_end == NEVER { Span::ZERO } else { slice_end - switch.time };
            counts.allocated_ns += allocated_ns;
            counts.wait_max_ns = counts.wait_max_ns.max(switch.waited_ns);
            self.waits.switched(host, &switch, *sender);
            if let Some(by_pcpu) = &mut self.by_pcpu {
                by_pcpu.switched_in(host, switch.to, allocated_ns);
            }
        }
        if !host.is_idle(switch.from) {
            let counts = &mut self.vcpus[switch.from.index()].counts;
            counts.switched_out += 1;
            counts.preemptions += u64::from(host.vcpu_runnable(switch.from));
        }
        if let Some(decisions) = &mut self.decisions {
            decisions.push(host, &switch);
        }
    }

    #[inline]
    fn woke(&mut self, host: &HostState, v: VcpuId, _cause: WakeCause, by: Option<VcpuId>) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.counts.wakeups += 1;
        vcpu.sender = self.waits.sender(host, by);
    }

    #[inline]
    fn runstate_changed(&mut self, host: &HostState, v: VcpuId) {
        self.attributed.runstate_changed(host, v);
    }

    fn affinity_changed(&mut self, host: &HostState, v: VcpuId) {
        self.attributed.affinity_changed(host, v);
    }

    #[inline]
    fn busy(&mut self, host: &HostState, p: PcpuId) {
        self.attributed.occupied(host, p);
    }

    #[inline]
    fn migrated(&mut self, host: &HostState, v: VcpuId, _from: PcpuId, _to: PcpuId) {
        self.vcpus[v.index()].counts.migrations += 1;
        if let Some(by_pcpu) = &mut self.by_pcpu {
            by_pcpu.moved(host, v);
        }
    }

    fn acted(&mut self, host: &HostState, acted: Acted) {
        if !acted.accepted {
            self.rejected_actions.add(host.now(), acted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Names, collect};
    use crate::{Record, Spool};
    use vcpulab_host::program::{Program, Programs, Step};
    use vcpulab_host::{DomainConfig, Host, HostConfig, Params, Pools, VcpuConfig};

    /// Two hogs and a sleeper on one pCPU for a second, measured from half a second on.
    fn measured() -> crate::Results {
        let scheduler =
            vcpulab_sched::boxed("round-robin", "v1", &Params::new(), 1).expect("it is registered");
        let mut programs = Programs::default();
        programs.set(VcpuId(1), Program { steps: vec![Step::Hog], repeat: false });
        programs.set(VcpuId(2), Program { steps: vec![Step::Hog], repeat: false });
        let sleeper = vec![Step::Run(Span::from_ms(1)), Step::Block(Span::from_ms(9))];
        programs.set(VcpuId(3), Program { steps: sleeper, repeat: true });
        let domain = |number, vcpus| DomainConfig {
            number,
            vcpus: vec![
                VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() };
                vcpus
            ],
            ..DomainConfig::default()
        };
        let config =
            HostConfig { pcpus: 1, domains: vec![domain(1, 2), domain(2, 1)], ..HostConfig::default() };
        let mut host = Host::new(
            &config,
            Pools::new(vec![scheduler]),
            programs,
            Meter::new(Keep { waits: true, by_pcpu: true }, Some(Decisions::new(7, 1, &Spool::new(1)))),
        )
        .unwrap();
        let (context, meter) = host.observe();
        meter.reset(context);
        host.run_until(Time::from_ns(500_000_000)).unwrap();
        let (context, meter) = host.observe();
        meter.reset(context);
        host.run_until(Time::from_ns(1_000_000_000)).unwrap();
        let domains = vec!["hogs".into(), "sleeper".into()];
        let names = Names { domains, pools: vec!["Pool-0".into()] };
        let mut results = collect(7, &names, host.context(), host.observer());
        (results.trace, results.untraced) = host.observe().1.decisions.take().unwrap().finish().unwrap();
        results
    }

    #[test]
    fn measures_from_the_reset_on_and_every_time_adds_up() {
        let measured = measured();
        for row in &measured.domains {
            assert_eq!(row.elapsed_ns, 500_000_000);
            let sum = row.running_ns + row.runnable_ns + row.blocked_ns + row.offline_ns;
            assert_eq!(sum, row.elapsed_ns * i64::from(row.vcpus), "{}", row.domain);
        }
        let pcpu = &measured.pcpus[0];
        assert_eq!(pcpu.run_ns + pcpu.idle_ns + pcpu.overhead_ns, 500_000_000);
        assert_eq!(pcpu.run_ns, measured.domains.iter().map(|row| row.running_ns).sum::<i64>());
        assert_eq!(pcpu.switches, measured.trace.in_memory().count() as u64);
        let ran: u64 = measured.domains.iter().map(|row| row.executions).sum();
        assert_eq!(pcpu.switches, ran, "the pCPU never idles, so every switch brings a vCPU in");
        assert!(measured.trace.in_memory().all(|row| row.time_ns >= 500_000_000 && row.replication == 7));
        let sleeper = &measured.domains[1];
        assert!(
            sleeper.wait_max_ns >= sleeper.wait_p99_ns.min(sleeper.wait_max_ns) && sleeper.wait_p50_ns > 0
        );
        assert_eq!(crate::DomainRow::batch(&measured.domains).num_rows(), 2);
    }
}
