//! The state of a host, and the operations that the [engine](crate::host) has on it: here on timers and polls, in `runstates` on
//! pause flags and runstates, in `units` on [units](crate::units), and in [`accounting`](crate::accounting) on accounts.

mod runstates;
mod units;

use crate::accounts::Accounts;
use crate::affinities::Affinities;
use crate::domain::Domain;
use crate::outbox::{Outbox, Wanted};
use crate::queue::{EventQueue, Rank};
use crate::topology::Topology;
use crate::units::Units;
use crate::vcpu::Vcpu;
use crate::{
    CpuMask, Creation, DomId, GroupConfig, HostConfig, Isolation, NEVER, PcpuId, PoolId, Span, Table,
    ThreadConfig, Throttling, Time, TimerId, VcpuId,
};

/// The state of a host. [Observers](crate::views::observer) read it; policies have a
/// [`PolicyContext`](crate::PolicyContext), and worlds a [`WorldContext`](crate::WorldContext). vCPUs and pCPUs are those of
/// the host, also where a policy schedules [units](crate::units) of several vCPUs.
#[derive(Clone, Debug)]
pub struct HostState {
    pub(crate) now: Time,
    pub(crate) queue: EventQueue,
    pub(crate) topology: Topology,
    pub(crate) creation: Creation,
    pub(crate) groups: Vec<GroupConfig>,
    pub(crate) isolation: Isolation,
    /// Threads by vCPU of a domain.
    pub(crate) threads: Vec<ThreadConfig>,
    pub(crate) throttling: Table<DomId, Throttling>,
    pub(crate) pcpus: Table<PcpuId, Pcpu>,
    pub(crate) vcpus: Table<VcpuId, Vcpu>,
    pub(crate) affinity: Affinities,
    /// Soft affinities by vCPU; empty as long as no vCPU has one.
    pub(crate) soft_affinity: Table<VcpuId, CpuMask>,
    pub(crate) domains: Table<DomId, Domain>,
    pub(crate) timers: Table<TimerId, TimerOwner>,
    /// Variables that the code of all pools' schedulers shares.
    pub(crate) statics: [i64; 2],
    pub(crate) spare_timers: Vec<TimerId>,
    /// Delay with which expired timers are handled.
    timers_late: Span,
    /// Pending reschedule requests.
    pub(crate) reschedule: CpuMask,
    /// Units of vCPUs; `None`: each vCPU is a unit.
    pub(crate) units: Option<Box<Units>>,
    /// The pCPU whose code executes.
    pub(crate) executing: PcpuId,
    /// The pool whose policy is at work.
    pub(crate) pool: PoolId,
    pub(crate) accounts: Accounts,
    /// The id of the next domain.
    pub(crate) next_id: i64,
    /// Running time of each vCPU when its domain's present life began.
    pub(crate) lived: Table<VcpuId, Span>,
    /// The pCPU on which the event at hand happens, if the world has declared it.
    pub(crate) interrupted: Option<PcpuId>,
    /// pCPUs whose vCPU polls.
    pub(crate) polling: CpuMask,
    /// The source whose event is at hand, unless its next event is set already.
    pub(crate) fired: Option<usize>,
    pub(crate) outbox: Outbox,
    pub(crate) work: Work,
}

/// A pCPU, but for its [account](crate::accounting).
#[derive(Clone, Debug)]
pub(crate) struct Pcpu {
    /// The vCPU that the pCPU executes.
    pub executes: VcpuId,
    /// The vCPU that the policy has chosen: the executed vCPU, unless units have more than one vCPU. Then only masters
    /// have a chosen vCPU.
    pub current: VcpuId,
    pub slice_timer: TimerId,
    pub decisions: u64,
    pub reaction: Reaction,
}

/// The time that a pCPU takes from a request for a decision to the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reaction {
    /// No request is pending.
    None,
    /// The pCPU decides when its slice timer expires.
    Pending,
    /// The reaction has passed, or does not apply: the pCPU decides at once.
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum TimerOwner {
    Slice(PcpuId),
    Policy {
        token: u32,
        pcpu: PcpuId,
        pool: PoolId,
    },
    /// The governor that chooses the frequencies of the host's cores.
    Governor,
}

/// The amount of work done on a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Events taken from the queue.
    pub events: u64,
    /// Events in which a vCPU only continued with its next `Run`. All others concern the scheduler: timers, wake-ups,
    /// actions, sources, and operations that ended in a block or a yield.
    pub continuations: u64,
    /// Calls of the policy's schedule hook.
    pub schedule_calls: u64,
}

impl HostState {
    /// A host without domains.
    pub(crate) fn new(config: &HostConfig, wanted: Wanted<'_>) -> Self {
        let count = config.pcpus as usize;
        let vcpus = count + config.domains.iter().map(|domain| domain.vcpus.len()).sum::<usize>();
        let topology = Topology::new(config);
        let mut state = HostState {
            now: Time::ZERO,
            queue: EventQueue::default(),
            units: (topology.unit_size() > 1).then(Box::default),
            accounts: Accounts::new(config, &topology),
            topology,
            creation: config.creation,
            groups: config.groups.clone(),
            isolation: config.isolation,
            threads: config
                .domains
                .iter()
                .flat_map(|domain| domain.vcpus.iter().map(|vcpu| vcpu.thread))
                .collect(),
            throttling: Table::new(),
            pcpus: Table::with_capacity(count),
            vcpus: Table::with_capacity(vcpus),
            affinity: Affinities::with_capacity(vcpus),
            soft_affinity: Table::new(),
            domains: Table::new(),
            timers: Table::new(),
            spare_timers: Vec::new(),
            timers_late: config.costs.timer_ns,
            statics: [0; 2],
            reschedule: CpuMask::EMPTY,
            executing: PcpuId(0),
            pool: PoolId(0),
            next_id: 1,
            lived: Table::filled(count, Span::ZERO),
            interrupted: None,
            polling: CpuMask::EMPTY,
            fired: None,
            outbox: Outbox::new(wanted),
            work: Work::default(),
        };
        for p in (0..config.pcpus).map(PcpuId) {
            let idle = state.vcpus.push(Vcpu::idle(p));
            state.affinity.push(CpuMask::only(p));
            let slice_timer = TimerId(0);
            state.pcpus.push(Pcpu {
                executes: idle,
                current: idle,
                slice_timer,
                decisions: 0,
                reaction: Reaction::None,
            });
        }
        state.queue.make_room(Rank::RunEnd, count);
        state
    }

    /// Makes `pool` the pool whose policy is at work; returns the previous one.
    pub(crate) fn enter_pool(&mut self, pool: PoolId) -> PoolId {
        std::mem::replace(&mut self.pool, pool)
    }

    /// Notes for the observer that `v` was on `from` until now, whatever happened in between.
    pub(crate) fn moved(&mut self, v: VcpuId, from: PcpuId) {
        self.outbox.replace_migrations(v, from, self.vcpus[v].processor);
    }

    /// `to` is current on `p` from now on, and `from` is no longer.
    #[inline(always)]
    pub(crate) fn make_current(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        for (v, current) in [(from, false), (to, true)] {
            let vcpu = &mut self.vcpus[v];
            vcpu.current = current;
            vcpu.switched_at = self.now;
        }
        self.pcpus[p].current = to;
    }

    /// Ends the polling on `p`. True: a vCPU polled there.
    #[inline(always)]
    pub(crate) fn end_poll(&mut self, p: PcpuId) -> bool {
        let polled = !self.polling.is_empty() && self.polling.contains(p);
        if polled {
            self.polling.remove(p);
        }
        polled
    }

    // ---- timers ----

    pub(crate) fn add_timer(&mut self, owner: TimerOwner) -> TimerId {
        let timer = self.timers.push(owner);
        self.queue.make_room(Rank::Timer, self.timers.len());
        timer
    }

    /// Time at which a timer that is set for `at` is handled ([`NEVER`]: never).
    #[inline(always)]
    pub(crate) fn handled_at(&self, at: Time) -> Time {
        at.saturating_add(self.timers_late)
    }

    /// Stops a timer.
    #[inline(always)]
    pub(crate) fn stop_timer(&mut self, timer: TimerId) {
        self.queue.set(Rank::Timer, timer.index(), NEVER);
    }

    /// The slot of a vCPU's wake-up: idle vCPUs have none.
    #[inline(always)]
    pub(crate) fn wake_slot(&self, v: VcpuId) -> usize {
        v.index() - self.pcpus.len()
    }

    // ---- affinity ----

    /// Sets the soft affinity of `v`, or removes it.
    pub(crate) fn prefer(&mut self, v: VcpuId, mask: Option<CpuMask>) {
        let all = self.all_pcpus();
        if mask.is_some() && self.soft_affinity.len() < self.vcpus.len() {
            self.soft_affinity.resize(self.vcpus.len(), all);
        }
        if let Some(soft) = self.soft_affinity.get_mut(v) {
            *soft = mask.unwrap_or(all);
        }
    }
}
