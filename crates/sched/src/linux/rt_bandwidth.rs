//! Real-time throttling, up to Linux 6.11: the real-time threads of a CPU have `rt_runtime` in each `rt_period`, whether
//! other threads wait or not. (Linux's documentation: `scheduler/sched-rt-group`.)

use vcpulab_host::{CpuMask, PcpuId, Span, Table, Time};

use super::rank::{FAIR, Rank};

/// The real-time threads of one CPU.
#[derive(Clone, Copy, Debug, Default)]
struct RtRq {
    /// Time up to which `rt_time` counts; `None`: nothing was counted yet.
    updated: Option<Time>,
    /// CPU time used, less what earlier periods allowed.
    rt_time: Span,
}

/// Real-time throttling of a host.
#[derive(Clone, Debug, Default)]
pub struct RtBandwidth {
    /// CPU time in each period; `None`: no limit.
    runtime: Option<Span>,
    period: Span,
    rt_rqs: Table<PcpuId, RtRq>,
    /// CPUs whose real-time threads have used their time.
    throttled: CpuMask,
    /// The end of the present period, while real-time threads use CPU time.
    period_timer: Option<Time>,
}

impl RtBandwidth {
    /// Throttling with a runtime in each period (`None`: no limit).
    pub fn new(runtime: Option<Span>, period: Span) -> Self {
        RtBandwidth { runtime, period, ..RtBandwidth::default() }
    }

    /// Changes runtime and period. The CPUs that are released, because there is no limit any more.
    pub fn tune(&mut self, runtime: Option<Span>, period: Span) -> CpuMask {
        (self.runtime, self.period) = (runtime, period);
        if runtime.is_none() { std::mem::take(&mut self.throttled) } else { CpuMask::EMPTY }
    }

    /// CPUs whose real-time threads have used their time.
    pub fn throttled(&self) -> &CpuMask {
        &self.throttled
    }

    /// The end of the present period, while real-time threads use CPU time.
    pub fn period_timer(&self) -> Option<Time> {
        self.period_timer
    }

    /// Charges the thread that a CPU has run since the last update (`update_curr_rt`). True: its real-time threads are
    /// throttled from now on.
    pub fn update_curr(&mut self, now: Time, cpu: PcpuId, current: Rank) -> bool {
        let rt_rq = self.rt_rqs.entry(cpu);
        let span = now - rt_rq.updated.replace(now).unwrap_or(now);
        let Some(runtime) = self.runtime.filter(|_| current > FAIR) else { return false };
        rt_rq.rt_time += span;
        let exhausted = rt_rq.rt_time > runtime && !self.throttled.contains(cpu);
        if exhausted {
            self.throttled.insert(cpu);
        }
        // Periods end at multiples of their length.
        let number = (now - Time::ZERO) / self.period;
        self.period_timer.get_or_insert(Time::ZERO + (number + 1) * self.period);
        exhausted
    }

    /// Begins a period (`do_sched_rt_period_timer`), once all running threads are charged. The CPUs whose real-time
    /// threads may run again.
    pub fn begin_period(&mut self, now: Time) -> CpuMask {
        let (runtime, mut is_used, mut released) = (self.runtime.unwrap_or_default(), false, CpuMask::EMPTY);
        for (cpu, rt_rq) in self.rt_rqs.enumerate_mut() {
            rt_rq.rt_time -= rt_rq.rt_time.min(runtime);
            is_used |= rt_rq.rt_time > Span::ZERO || rt_rq.updated == Some(now);
            if self.throttled.contains(cpu) && rt_rq.rt_time < runtime {
                self.throttled.remove(cpu);
                released.insert(cpu);
            }
        }
        self.period_timer = is_used.then_some(now + self.period);
        released
    }
}
