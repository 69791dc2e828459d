//! The accounts of the pCPUs: the data and arithmetic of [`accounting`](crate::accounting).

use crate::cache::Caches;
use crate::locks::Locks;
use crate::speed::{ONE, Speeds};
use crate::topology::Topology;
use crate::{Costs, HostConfig, PcpuId, Span, Table, Time, VcpuId};

/// The account of one pCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// The time up to which its time has been given away.
    settled_at: Time,
    /// The time until which the hypervisor itself works here.
    pub hypervisor_until: Time,
    /// The time until which no vCPU makes progress here: the hypervisor works, or cold caches are filled again.
    pub busy_until: Time,
    pub run: Span,
    pub idle: Span,
    pub overhead: Span,
    /// The time that a nanosecond of work takes now, in fractions of [`ONE`].
    pub unit: u32,
    /// The time of the present operation, in fractions of [`ONE`], that has not yet come to a nanosecond of work.
    pub begun: u32,
}

/// A unit at which work takes the time that it takes.
pub(crate) const NOMINAL: u32 = ONE as u32;

impl Account {
    const NEW: Account = Account {
        settled_at: Time::ZERO,
        hypervisor_until: Time::ZERO,
        busy_until: Time::ZERO,
        run: Span::ZERO,
        idle: Span::ZERO,
        overhead: Span::ZERO,
        unit: NOMINAL,
        begun: 0,
    };

    /// The work done in this time of an operation that has `left` to do.
    pub fn work(&mut self, time: Span, left: Span) -> Span {
        if self.unit == NOMINAL {
            return time;
        }
        let all = ONE as u128 * time.ns() as u128 + u128::from(self.begun);
        self.begun = (all % u128::from(self.unit)) as u32;
        // Units shorter than a nanosecond: the last nanosecond may have had room for more.
        Span::from_ns((all / u128::from(self.unit)) as i64).min(left)
    }

    /// The time that this much work takes, `begun` as it is.
    #[inline(always)]
    pub fn time_for(&self, work: Span) -> Span {
        if self.unit == NOMINAL { work } else { self.slow_time_for(work) }
    }

    #[cold]
    fn slow_time_for(&self, work: Span) -> Span {
        let all = work.ns() as u128 * u128::from(self.unit);
        let time = all.saturating_sub(u128::from(self.begun)).div_ceil(ONE as u128);
        Span::from_ns(i64::try_from(time).unwrap_or(i64::MAX))
    }

    /// Gives the time up to `now` away; the answer is how much of it was progress of the current vCPU.
    #[inline(always)]
    pub fn settle(&mut self, now: Time, idle: bool) -> Span {
        let progress_from = self.busy_until.clamp(self.settled_at, now);
        let progress = now - progress_from;
        self.overhead += progress_from - self.settled_at;
        if idle {
            self.idle += progress;
        } else {
            self.run += progress;
        }
        self.settled_at = now;
        progress
    }
}

/// The accounts of all pCPUs, the costs that are charged to them, and the caches that make some of these.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pub costs: Costs,
    pub caches: Caches,
    pub by_pcpu: Table<PcpuId, Account>,
    /// `None`: all work takes the time that it takes.
    pub speeds: Option<Box<Speeds>>,
    pub locks: Locks,
}

impl Accounts {
    pub fn new(config: &HostConfig, topology: &Topology) -> Self {
        let costs = config.costs;
        let caches = Caches::new(topology.cores(), topology.l3_groups(costs.l3_pcpus));
        let pcpus = config.pcpus as usize;
        let by_pcpu = Table::filled(pcpus, Account::NEW);
        let speeds = Speeds::new(config, topology).map(Box::new);
        let locks = Locks::new(if costs.lock_ns.is_zero() { 0 } else { pcpus });
        Accounts { costs, caches, by_pcpu, speeds, locks }
    }

    /// The work done by `v` in this much time on `p`, of which so much was left; what was lost is counted.
    #[inline(always)]
    pub fn work(&mut self, p: PcpuId, v: VcpuId, progress: Span, left: Span) -> Span {
        if self.speeds.is_none() { progress } else { self.work_at_its_pace(p, v, progress, left) }
    }

    #[cold]
    #[inline(never)]
    fn work_at_its_pace(&mut self, p: PcpuId, v: VcpuId, progress: Span, left: Span) -> Span {
        let work = self.by_pcpu[p].work(progress, left);
        if let Some(speeds) = &mut self.speeds {
            speeds.count(p, v, progress, work);
        }
        work
    }

    /// Interval at which a governor chooses frequencies; `None`: no governor does.
    pub fn governor_sample(&self) -> Option<Span> {
        self.speeds.as_ref().and_then(|speeds| speeds.governor_sample())
    }

    /// Whether scheduler locks have a cost.
    #[inline(always)]
    pub fn has_locks(&self) -> bool {
        !self.costs.lock_ns.is_zero()
    }
}
