//! EEVDF, Linux's fair scheduler since 6.6. Releases 6.6 to 7.3 differ by [`Rules`].
//!
//! Of the entities whose lag is not negative, the one with the earliest virtual deadline runs. (Stoica, Abdel-Wahab 1995.)

use vcpulab_host::{Class, PcpuId, Span, Time};

use super::cfs_rq::{CfsRqId, Entity, EntityId, Task, TaskId, vruntime_diff};
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::load_weight::{LoadWeight, NICE_0_LOAD, NICE_0_SHIFT, div_delta_fair, ns};
use super::newidle::BalanceRules;
use super::preempt::PreemptModels;
use super::realtime::RtRule;
use super::task_group::{ONE_TASK, SharesMultiplier, Throttle};
use crate::role::GroupWeight;

/// Virtual time at which queues begin.
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);

/// Rules in which releases of EEVDF differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Base slice on one CPU.
    pub base_slice: Span,
    /// Arithmetic of virtual time.
    pub precision: Precision,
    /// Limit of a lag.
    pub lag_limit: LagLimit,
    /// Treatment of entities that block ahead of their share.
    pub delayed_dequeue: DelayedDequeue,
    /// Whether the current entity is charged before an entity wakes whose dequeue was delayed.
    pub requeue_charges: bool,
    /// Protection of the current entity from preemption (`RUN_TO_PARITY`).
    pub protection: Protection,
    /// Whether the `next` buddy is picked (`PICK_BUDDY`). `false`: a directed yield does not choose the next thread.
    pub pick_buddy: bool,
    /// Whether a waking entity does not preempt while its queue has an eligible `next` buddy, and limits the protection of the current
    /// entity to the shortest slice on the queue, whatever its own slice.
    pub buddy_before_wakeup: bool,
    /// Effect of `sched_yield`.
    pub sched_yield: SchedYield,
    /// Effect of a change of weight on a queued entity.
    pub reweight: Reweight,
    /// The rule that leaves fair threads time beside real-time threads.
    pub rt_rule: RtRule,
    /// Preemption models that the kernel has.
    pub preempt: PreemptModels,
    /// Whether a timer ends requests (`HRTICK`). `false`: ticks and other events notice the end.
    pub hrtick: bool,
    /// Tasks that stop where a limit is used up, and the time at which they stop.
    pub throttle: Throttle,
    /// Whether all tasks of a CPU compete on one queue, by effective weights.
    pub flat: bool,
    /// Balancing.
    pub balance: BalanceRules,
}

/// Arithmetic of virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// Sums hold plain weights; virtual time passes by 32-bit inverses of plain weights.
    Plain,
    /// Sums hold weights of 64 bits; virtual time passes by exact divisions.
    Full,
}

/// Limit of a lag, positive or negative, of an entity of the weight of nice 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LagLimit {
    /// The longer of two slices and a tick.
    TwoSlicesOrTick,
    /// A slice and a tick.
    SliceAndTick,
}

/// Treatment of an entity that blocks while its lag is negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedDequeue {
    /// The entity leaves its queue at once, with its lag. Deadlines are never kept relative to the virtual run time.
    Never,
    /// The entity competes until its lag is 0 or it wakes (`DELAY_DEQUEUE`, `DELAY_ZERO`).
    UntilZero,
    /// The entity competes as with `UntilZero`; its lag cannot fall below the lag at which it blocked.
    LagNeverFalls,
}

/// Protection of the current entity from preemption, from the time at which it becomes current.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// The entity is protected until its request is used up.
    UntilDeadline,
    /// The entity is protected until its request is used up; after that, it is preempted when it is no longer eligible.
    UntilDeadlineThenWhileEligible,
    /// The entity is protected until its virtual run time reaches a point, the deadline unless another entity has a shorter slice;
    /// after that, each charge asks for a decision.
    UntilVirtualTime,
}

/// Effect of `sched_yield`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedYield {
    /// The deadline moves by a slice.
    MovesDeadline,
    /// An eligible task gives up the rest of its request.
    ForfeitsRequest,
}

/// Effect of a change of weight on a queued entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reweight {
    /// Lag and deadline scale with the weight; the lag is not limited.
    ScaledUnlimited,
    /// The limited lag and the deadline scale with the weight.
    Scaled,
    /// The limited lag and the deadline scale with the weight; the entity is placed as a waking one is.
    Placed {
        /// Whether protection scales, too.
        protection: bool,
    },
    /// The limited lag, the deadline and the protection scale with the weight.
    ScaledWithProtection,
}

impl Rules {
    /// The rules of 6.6, up to 6.11.
    pub const V6_6: Rules = Rules {
        base_slice: Span::from_us(750),
        delayed_dequeue: DelayedDequeue::Never,
        protection: Protection::UntilDeadline,
        pick_buddy: false,
        sched_yield: SchedYield::MovesDeadline,
        reweight: Reweight::ScaledUnlimited,
        rt_rule: RtRule::Throttling,
        balance: BalanceRules::OLDEST,
        preempt: PreemptModels::WITHOUT_LAZY,
        ..Rules::V6_12
    };

    /// The rules of 6.12, up to 6.16.
    pub const V6_12: Rules = Rules {
        base_slice: Span::from_us(700),
        precision: Precision::Plain,
        lag_limit: LagLimit::TwoSlicesOrTick,
        delayed_dequeue: DelayedDequeue::UntilZero,
        requeue_charges: false,
        protection: Protection::UntilDeadlineThenWhileEligible,
        pick_buddy: true,
        buddy_before_wakeup: false,
        sched_yield: SchedYield::ForfeitsRequest,
        reweight: Reweight::Scaled,
        rt_rule: RtRule::FairServer,
        preempt: PreemptModels::WITH_LAZY,
        hrtick: false,
        throttle: Throttle::Queue,
        flat: false,
        balance: BalanceRules::V6_12,
    };

    /// The rules of 6.17.
    pub const V6_17: Rules = Rules {
        protection: Protection::UntilVirtualTime,
        reweight: Reweight::Placed { protection: false },
        balance: BalanceRules::V6_17,
        preempt: PreemptModels::LAZY_BY_DEFAULT,
        ..Rules::V6_12
    };

    /// The rules of 6.18 and 6.19.0.
    pub const V6_18: Rules = Rules { throttle: Throttle::Task, balance: BalanceRules::V6_18, ..Rules::V6_17 };

    /// The rules of 7.0, and of 6.19.1 and later.
    pub const V7_0: Rules = Rules {
        lag_limit: LagLimit::SliceAndTick,
        buddy_before_wakeup: true,
        reweight: Reweight::Placed { protection: true },
        preempt: PreemptModels::FULL_OR_LAZY,
        ..Rules::V6_18
    };

    /// The rules of 7.1.
    pub const V7_1: Rules = Rules {
        precision: Precision::Full,
        delayed_dequeue: DelayedDequeue::LagNeverFalls,
        reweight: Reweight::ScaledWithProtection,
        hrtick: true,
        balance: BalanceRules::V7_1,
        ..Rules::V7_0
    };

    /// The rules of 7.2.
    pub const V7_2: Rules = Rules {
        requeue_charges: true,
        throttle: Throttle::TaskWhenCharged,
        balance: BalanceRules::V7_2,
        ..Rules::V7_1
    };

    /// The rules of 7.3.
    pub const V7_3: Rules = Rules { flat: true, ..Rules::V7_2 };
}

/// Tunables of EEVDF.
#[derive(Clone, Copy, Debug)]
pub struct Eevdf {
    /// Rules of the release.
    pub rules: Rules,
    /// Length of the requests of tasks without an own slice (`base_slice`).
    pub base_slice: Span,
    /// Weight of a group on several CPUs, from 7.3 on.
    pub cgroup_mode: CgroupMode,
}

/// Weight of a group whose tasks run on several CPUs (`cgroup_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CgroupMode {
    /// The group has its shares on every CPU.
    Up,
    /// The CPUs divide the shares, as before 7.3.
    Smp,
    /// The CPUs divide the shares times the number of runnable tasks, at most the number of CPUs.
    Concur,
    /// The CPUs divide the shares times the number of CPUs.
    Max,
    /// The CPUs divide the shares times the number of runnable tasks.
    Tasks,
}

impl CgroupMode {
    /// All modes, in the order of [`CgroupMode::NAMES`].
    pub const ALL: [CgroupMode; 5] =
        [CgroupMode::Up, CgroupMode::Smp, CgroupMode::Concur, CgroupMode::Max, CgroupMode::Tasks];

    /// The kernel's words.
    pub const NAMES: [&'static str; 5] = ["up", "smp", "concur", "max", "tasks"];

    /// The number of times that a group's weight counts, by mode, in the order of [`CgroupMode::ALL`].
    pub const GROUP_WEIGHTS: [GroupWeight; 5] = [
        CgroupMode::Up.group_weight(),
        CgroupMode::Smp.group_weight(),
        CgroupMode::Concur.group_weight(),
        CgroupMode::Max.group_weight(),
        CgroupMode::Tasks.group_weight(),
    ];

    /// The number of times that a group's weight counts beside its siblings.
    const fn group_weight(self) -> GroupWeight {
        match self {
            CgroupMode::Up => GroupWeight::Undivided,
            CgroupMode::Smp => GroupWeight::Once,
            CgroupMode::Concur => GroupWeight::PerBusyThreadUpToCpus,
            CgroupMode::Max => GroupWeight::PerCpu(MAX_MODE_WEIGHT as i64 * 100 / NICE_0_LOAD as i64),
            CgroupMode::Tasks => GroupWeight::PerBusyThread,
        }
    }
}

/// The greatest weight of a group on a CPU with [`CgroupMode::Max`]: the weight of nice -20.
const MAX_MODE_WEIGHT: u64 = 88_761 * 1024;

/// A request of an entity: the state that EEVDF keeps for each entity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Virtual deadline.
    pub(super) deadline: u64,
    /// Lag with which the entity left its queue, as virtual time; positive: the entity got less than its share.
    pub(super) vlag: i64,
    /// Virtual deadline at which the entity became current, or virtual time up to which it is protected (`vprot`).
    pub(super) vprot: u64,
    /// Whether the deadline is relative to the virtual run time.
    pub(super) rel_deadline: bool,
    /// Whether the entity blocked while its lag was negative, and competes until its lag is 0 (a delayed dequeue).
    pub(super) sched_delayed: bool,
    /// Effective weight of a task on a flat queue.
    pub(super) weight: u64,
    /// Length of the entity's requests; `None`: the base slice.
    pub(super) slice: Option<Span>,
}

/// The sums behind a queue's average virtual run time: the state that EEVDF keeps for each queue.
#[derive(Clone, Debug)]
pub struct AvgVruntime {
    /// Reference point of the sums of virtual times.
    zero_vruntime: u64,
    /// Sum over the timeline: plain weights times virtual run times relative to `zero_vruntime`.
    sum_w_vruntime: i64,
    /// Sum over the timeline: plain weights.
    sum_weight: i64,
    /// The running task, on the root queue of a flat hierarchy.
    pub(super) curr: Option<EntityId>,
}

impl Default for AvgVruntime {
    fn default() -> Self {
        AvgVruntime { zero_vruntime: INITIAL_VRUNTIME, sum_w_vruntime: 0, sum_weight: 0, curr: None }
    }
}

impl Request {
    /// Sets the effective weight of a task that is not queued. The lag and a relative deadline scale with it.
    pub(super) fn set_weight(&mut self, weight: u64) {
        let before = std::mem::replace(&mut self.weight, weight);
        if before == 0 || before == weight {
            return;
        }
        self.vlag = scaled(self.vlag, before, weight);
        if self.rel_deadline {
            self.deadline = scaled(self.deadline.cast_signed(), before, weight).cast_unsigned();
        }
    }
}

/// `x · before / after`.
fn scaled(x: i64, before: u64, after: u64) -> i64 {
    let after = after.max(1);
    match (i64::try_from(before), i64::try_from(after)) {
        (Ok(before), Ok(after)) => mul_div(x, before, after),
        _ => (i128::from(x) * i128::from(before) / i128::from(after)) as i64,
    }
}

/// `x · factor / divisor`, exact; few instructions where the product has 64 bits.
fn mul_div(x: i64, factor: i64, divisor: i64) -> i64 {
    match x.checked_mul(factor) {
        Some(product) => product / divisor,
        None => (i128::from(x) * i128::from(factor) / i128::from(divisor)) as i64,
    }
}

impl Eevdf {
    /// The tunables of a release, with this base slice and the default for all else.
    pub const fn with_base_slice(rules: Rules, base_slice: Span) -> Self {
        Eevdf { rules, base_slice, cgroup_mode: CgroupMode::Concur }
    }

    /// Weight with which an entity competes.
    fn weight(&self, entity: &Entity<Request>) -> u64 {
        match self.rules.precision {
            _ if self.rules.flat => entity.policy.weight,
            Precision::Plain => entity.load.scaled_down(),
            Precision::Full => entity.load.weight,
        }
    }

    /// Whether the current entity is protected from preemption (`protect_slice`).
    fn is_protected(&self, entity: &Entity<Request>) -> bool {
        let Request { deadline, vprot, .. } = entity.policy;
        match self.rules.protection {
            Protection::UntilVirtualTime => vruntime_diff(entity.vruntime, vprot) < 0,
            _ => vprot == deadline,
        }
    }

    /// Ends the protection of the current entity (`cancel_protect_slice`).
    pub(super) fn end_protection(&self, entity: &mut Entity<Request>) {
        entity.policy.vprot = match self.rules.protection {
            Protection::UntilVirtualTime => match self.is_protected(entity) {
                true => entity.vruntime,
                false => entity.policy.vprot,
            },
            _ => entity.policy.deadline.wrapping_add(1),
        };
    }
}

impl Fair<Eevdf> {
    /// The sums over the timeline and the current entity.
    fn sums_with_curr(&self, q: CfsRqId) -> (i64, i64) {
        let AvgVruntime { zero_vruntime, sum_w_vruntime, sum_weight, .. } = self.cfs_rqs[q].policy;
        match self.competing_curr(q).map(|e| &self.entities[e]) {
            Some(current) => {
                let weight = self.flavor.weight(current).cast_signed();
                let moment = vruntime_diff(current.vruntime, zero_vruntime).wrapping_mul(weight);
                (sum_w_vruntime.wrapping_add(moment), sum_weight + weight)
            }
            None => (sum_w_vruntime, sum_weight),
        }
    }

    /// The current entity of a queue, if it is queued: the running task on a flat queue.
    pub(super) fn competing_curr(&self, q: CfsRqId) -> Option<EntityId> {
        let cfs_rq = &self.cfs_rqs[q];
        let current = if self.is_flat() { cfs_rq.policy.curr } else { cfs_rq.curr };
        current.filter(|&e| self.entities[e].on_rq)
    }

    /// The queue on which an entity competes.
    pub(super) fn competes_on(&self, e: EntityId) -> CfsRqId {
        if self.is_flat() { self.root_cfs_rq(e) } else { self.entities[e].cfs_rq }
    }

    /// Number of entities that compete on a queue.
    fn competitors(&self, q: CfsRqId) -> u32 {
        let cfs_rq = &self.cfs_rqs[q];
        if self.is_flat() { cfs_rq.h_nr_running } else { cfs_rq.nr_running }
    }

    /// Weighted average of the virtual run times; `zero_vruntime` moves there.
    pub(super) fn avg_vruntime(&mut self, q: CfsRqId) -> u64 {
        let (sum_w_vruntime, sum_weight) = self.sums_with_curr(q);
        let cfs_rq = &self.cfs_rqs[q];
        let zero_vruntime = cfs_rq.policy.zero_vruntime;
        let avg_vruntime = if cfs_rq.policy.sum_weight > 0 {
            zero_vruntime.wrapping_add_signed(sum_w_vruntime.div_euclid(sum_weight))
        } else {
            self.competing_curr(q).map_or(zero_vruntime, |e| self.entities[e].vruntime)
        };
        let sums = &mut self.cfs_rqs[q].policy;
        sums.sum_w_vruntime = sums
            .sum_w_vruntime
            .wrapping_sub(vruntime_diff(avg_vruntime, zero_vruntime).wrapping_mul(sums.sum_weight));
        sums.zero_vruntime = avg_vruntime;
        avg_vruntime
    }

    /// Whether the lag of an entity is not negative.
    pub(super) fn entity_eligible(&self, e: EntityId) -> bool {
        let q = self.competes_on(e);
        self.vruntime_eligible(q, self.sums_with_curr(q), self.entities[e].vruntime)
    }

    /// Whether a virtual run time is not after the average of a queue with these sums.
    fn vruntime_eligible(&self, q: CfsRqId, (sum_w_vruntime, sum_weight): (i64, i64), vruntime: u64) -> bool {
        let behind = vruntime_diff(vruntime, self.cfs_rqs[q].policy.zero_vruntime);
        i128::from(sum_w_vruntime) >= i128::from(behind) * i128::from(sum_weight)
    }

    /// Limit of the lag, positive or negative, with which an entity may leave its queue, by a slice.
    fn lag_limit(&self, slice: Span) -> Span {
        match self.flavor.rules.lag_limit {
            LagLimit::TwoSlicesOrTick => (2 * slice).max(self.settings.tick),
            LagLimit::SliceAndTick => slice + self.settings.tick,
        }
    }

    /// Limit of the lag of an entity, in time that it runs.
    pub(super) fn lag_limit_of(&self, e: EntityId) -> Span {
        self.lag_limit(match self.flavor.rules.lag_limit {
            LagLimit::TwoSlicesOrTick => self.slice(e),
            LagLimit::SliceAndTick => self.max_slice(self.competes_on(e)),
        })
    }

    /// Weighted average of the virtual run times of a queue's entities, without the current one.
    pub(super) fn avg_of_others(&self, q: CfsRqId) -> u64 {
        let AvgVruntime { zero_vruntime, sum_w_vruntime, sum_weight, .. } = self.cfs_rqs[q].policy;
        zero_vruntime.wrapping_add_signed(sum_w_vruntime.div_euclid(sum_weight.max(1)))
    }

    /// Lag of an entity, in virtual time and within the limits; positive: the entity got less than its share.
    pub(super) fn entity_lag(&mut self, e: EntityId) -> i64 {
        let avg_vruntime = self.avg_vruntime(self.competes_on(e));
        let limit = self.calc_delta_fair(e, ns(self.lag_limit_of(e))).cast_signed();
        vruntime_diff(avg_vruntime, self.entities[e].vruntime).clamp(-limit, limit)
    }

    /// Deadline of a request that an entity makes now.
    fn next_deadline(&self, e: EntityId) -> u64 {
        self.entities[e].vruntime.wrapping_add(self.virtual_slice(e, self.slice(e)))
    }

    /// Sets the virtual run time and the deadline of an entity that is about to be queued, by its lag.
    pub(super) fn place_entity(&mut self, e: EntityId) {
        let v = self.placed_vruntime(e, self.entities[e].policy.vlag);
        self.entities[e].vruntime = v;
        let deadline = self.next_deadline(e);
        let request = &mut self.entities[e].policy;
        request.deadline = if request.rel_deadline { request.deadline.wrapping_add(v) } else { deadline };
        request.rel_deadline = false;
    }

    /// The virtual run time at which an entity has a lag once it has joined the others of its queue.
    fn placed_vruntime(&mut self, e: EntityId, vlag: i64) -> u64 {
        let q = self.competes_on(e);
        let avg_vruntime = self.avg_vruntime(q);
        let mut lag = 0;
        let (_, sum_weight) = self.sums_with_curr(q);
        if sum_weight > 0 {
            let own = self.flavor.weight(&self.entities[e]).cast_signed();
            lag = mul_div(vlag, sum_weight + own, sum_weight);
        }
        avg_vruntime.wrapping_add_signed(lag.wrapping_neg())
    }

    /// Lag with which an entity leaves its queue, or wakes on it, after its dequeue was delayed.
    pub(super) fn lag_after_delay(&mut self, e: EntityId) -> i64 {
        let lag = self.entity_lag(e);
        match self.flavor.rules.delayed_dequeue {
            DelayedDequeue::LagNeverFalls => lag.max(self.entities[e].policy.vlag).min(0),
            _ => lag.min(0),
        }
    }

    /// Places a queued entity anew, with this lag.
    fn place_anew(&mut self, e: EntityId, lag: i64) {
        let current = self.competing_curr(self.competes_on(e)) == Some(e);
        if !current {
            self.remove_from_timeline(e);
        }
        self.entities[e].policy.vlag = lag;
        self.place_entity(e);
        if !current {
            self.insert_into_timeline(e);
        }
    }

    /// Changes the weight with which a queued entity competes, from the first weight to the second, by `set`.
    pub(super) fn reweight_queued(
        &mut self,
        e: EntityId,
        [before, after]: [u64; 2],
        set: impl FnOnce(&mut Entity<Request>),
    ) {
        let rules = self.flavor.rules;
        let q = self.competes_on(e);
        let avg_vruntime = self.avg_vruntime(q);
        let lag = match rules.reweight {
            Reweight::ScaledUnlimited => vruntime_diff(avg_vruntime, self.entities[e].vruntime),
            _ => self.entity_lag(e),
        };
        let lag = scaled(lag, before, after);
        let current = self.competing_curr(q) == Some(e);
        let protected = current
            && rules.protection == Protection::UntilVirtualTime
            && self.flavor.is_protected(&self.entities[e]);
        if !current {
            self.remove_from_timeline(e);
        }
        let (vruntime, Request { deadline, vprot, .. }) =
            (self.entities[e].vruntime, self.entities[e].policy);
        set(&mut self.entities[e]);
        // Deadline and protection keep their distances, scaled, from the virtual run time or from the average.
        let (from, to) = match rules.reweight {
            Reweight::Placed { .. } => {
                // The average of the others.
                self.entities[e].on_rq = false;
                let placed = self.placed_vruntime(e, lag);
                self.entities[e].on_rq = true;
                (vruntime, placed)
            }
            _ => (avg_vruntime, avg_vruntime),
        };
        let moved = |x: u64| to.wrapping_add_signed(scaled(vruntime_diff(x, from), before, after));
        let entity = &mut self.entities[e];
        entity.vruntime = match rules.reweight {
            Reweight::Placed { .. } => to,
            _ if vruntime == avg_vruntime => vruntime,
            _ => avg_vruntime.wrapping_add_signed(lag.wrapping_neg()),
        };
        entity.policy.deadline = moved(deadline);
        let keeps_protection =
            matches!(rules.reweight, Reweight::Placed { protection: true } | Reweight::ScaledWithProtection);
        if protected && keeps_protection {
            entity.policy.vprot = moved(vprot);
        }
        if !current {
            self.insert_into_timeline(e);
        }
    }

    /// The eligible entity with the earliest deadline; the current one if it is eligible and `protects` its request.
    pub(super) fn pick_eevdf(&self, q: CfsRqId, protects: bool) -> EntityId {
        let cfs_rq = &self.cfs_rqs[q];
        let current = self.competing_curr(q);
        if self.competitors(q) == 1 {
            return current.unwrap_or_else(|| cfs_rq.timeline[0]);
        }
        let sums = self.sums_with_curr(q);
        let eligible = |&e: &EntityId| self.vruntime_eligible(q, sums, self.entities[e].vruntime);
        let current = current.filter(eligible);
        if let Some(e) = current.filter(|&e| protects && self.flavor.is_protected(&self.entities[e])) {
            return e;
        }
        let earliest = cfs_rq.timeline.iter().copied().find(eligible);
        let deadline = |e: EntityId| self.entities[e].policy.deadline;
        match (current, earliest) {
            (Some(c), Some(b)) if vruntime_diff(deadline(c), deadline(b)) < 0 => c,
            (_, Some(b)) => b,
            // With rounding nobody might be eligible: then it is the first.
            (current, None) => current.unwrap_or_else(|| cfs_rq.timeline[0]),
        }
    }
}

impl Flavor for Eevdf {
    type Entity = Request;
    type CfsRq = AvgVruntime;
    const THROTTLES_CURRENT_ONLY: bool = false;
    const EMPTY_KEEPS_WEIGHT: bool = true;
    const REFILLS_TOGETHER: bool = false;
    const TG_LOAD_AVG_INTERVAL: Span = Span::from_ms(1);

    fn throttle(&self) -> Throttle {
        self.rules.throttle
    }

    fn timeline_key(entity: &Entity<Request>) -> u64 {
        entity.policy.deadline
    }

    fn lag_limit(fair: &Fair<Self>) -> Span {
        fair.lag_limit(fair.flavor.base_slice)
    }

    fn set_vlag(entity: &mut Entity<Request>, lag: Span) {
        entity.policy.vlag = lag.ns();
    }

    fn is_eligible(fair: &Fair<Self>, e: EntityId) -> bool {
        fair.entity_eligible(e)
    }

    fn sched_delayed(entity: &Entity<Request>) -> bool {
        entity.policy.sched_delayed
    }

    fn delay_dequeue(fair: &mut Fair<Self>, e: EntityId, now: Time) {
        if fair.is_flat() {
            fair.count_delayed(e, now, true);
        }
        let lag = fair.entity_lag(e);
        let request = &mut fair.entities[e].policy;
        (request.vlag, request.sched_delayed) = (lag, true);
    }

    fn init_entity(fair: &mut Fair<Self>, e: EntityId) {
        fair.entities[e].policy = Request::default();
    }

    fn update_curr(fair: &mut Fair<Self>, q: CfsRqId, now: Time) {
        let Some((e, ran)) = fair.update_curr_se(q, now) else { return };
        let queue = fair.competes_on(e);
        let flat = fair.is_flat();
        if flat && fair.cfs_rqs[queue].policy.curr != Some(e) {
            // A group's entity does not compete.
            return fair.account_cfs_rq_runtime(q, now, ran);
        }
        let entity = &fair.entities[e];
        let used_up = vruntime_diff(entity.vruntime, entity.policy.deadline) >= 0;
        if used_up {
            let deadline = fair.next_deadline(e);
            fair.entities[e].policy.deadline = deadline;
            fair.avg_vruntime(queue);
        }
        fair.account_cfs_rq_runtime(q, now, ran);
        if fair.competitors(queue) == 1 {
            return;
        }
        let protected = fair.flavor.is_protected(&fair.entities[e]);
        let exposed = match fair.flavor.rules.protection {
            Protection::UntilDeadline => false,
            Protection::UntilDeadlineThenWhileEligible => !protected && !fair.entity_eligible(e),
            Protection::UntilVirtualTime => !protected,
        };
        if used_up || exposed {
            fair.resched_curr(q);
            fair.clear_buddies(e);
        }
    }

    fn enqueue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, _wakeup: bool, _moved: bool) {
        let q = fair.entities[e].cfs_rq;
        Self::update_curr(fair, q, now);
        fair.update_cfs_group(e, now);
        fair.place_entity(e);
        fair.account_entity_enqueue(e, now);
    }

    fn dequeue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, flags: DequeueFlags) -> bool {
        let q = fair.entities[e].cfs_rq;
        Self::update_curr(fair, q, now);
        fair.clear_buddies(e);
        let delays = fair.flavor.rules.delayed_dequeue != DelayedDequeue::Never;
        let may_delay = delays && flags.sleep && !flags.delayed && !flags.throttled && !flags.special;
        if may_delay && !fair.entity_eligible(e) {
            Self::delay_dequeue(fair, e, now);
            return false;
        }
        let lag = if flags.delayed { fair.lag_after_delay(e) } else { fair.entity_lag(e) };
        if flags.delayed {
            fair.note_finished(e);
        }
        fair.account_entity_dequeue(e, now);
        let entity = &mut fair.entities[e];
        entity.policy.vlag = lag;
        entity.policy.sched_delayed = false;
        if delays && !flags.sleep {
            entity.policy.deadline = entity.policy.deadline.wrapping_sub(entity.vruntime);
            entity.policy.rel_deadline = true;
        }
        if fair.cfs_rqs[q].nr_running == 0 {
            fair.return_cfs_rq_runtime(q, now);
        }
        fair.update_cfs_group(e, now);
        true
    }

    fn requeue_delayed_entity(fair: &mut Fair<Self>, e: EntityId, now: Time) {
        let q = fair.competes_on(e);
        if fair.is_flat() {
            fair.update_running(fair.cpu_of(e), now);
            fair.count_delayed(e, now, false);
        } else if fair.flavor.rules.requeue_charges {
            Self::update_curr(fair, q, now);
        }
        if fair.flavor.rules.delayed_dequeue == DelayedDequeue::LagNeverFalls {
            let lag = fair.lag_after_delay(e);
            let avg_vruntime = fair.avg_vruntime(q);
            if avg_vruntime.wrapping_add_signed(lag.wrapping_neg()) != fair.entities[e].vruntime {
                fair.place_anew(e, lag);
            }
        } else if fair.entity_lag(e) > 0 {
            fair.place_anew(e, 0);
        }
        fair.entities[e].policy.sched_delayed = false;
    }

    fn update_sums(fair: &mut Fair<Self>, q: CfsRqId, e: EntityId, inserted: bool) {
        let weight = fair.flavor.weight(&fair.entities[e]).cast_signed();
        let v = fair.entities[e].vruntime;
        let sums = &mut fair.cfs_rqs[q].policy;
        let moment = vruntime_diff(v, sums.zero_vruntime).wrapping_mul(weight);
        let (moment, weight) = if inserted { (moment, weight) } else { (moment.wrapping_neg(), -weight) };
        sums.sum_w_vruntime = sums.sum_w_vruntime.wrapping_add(moment);
        sums.sum_weight += weight;
    }

    fn pick_next_entity(fair: &mut Fair<Self>, q: CfsRqId) -> EntityId {
        let next = fair.cfs_rqs[q].next.filter(|_| fair.flavor.rules.pick_buddy);
        next.filter(|&next| fair.entity_eligible(next)).unwrap_or_else(|| fair.pick_eevdf(q, true))
    }

    fn protect_slice(fair: &mut Fair<Self>, e: EntityId) {
        fair.set_protect_slice(e);
    }

    fn set_slice(entity: &mut Entity<Request>, slice: Option<Span>) {
        entity.policy.slice = slice;
    }

    fn update_group_slice(fair: &mut Fair<Self>, e: EntityId) {
        fair.update_group_slice(e);
    }

    /// No test: charging has raised the flag, if there is a reason.
    fn entity_tick(_fair: &mut Fair<Self>, _e: EntityId) {}

    fn check_preempt_wakeup(
        fair: &mut Fair<Self>,
        [_, waking]: [Task; 2],
        [current, woken]: [EntityId; 2],
        now: Time,
    ) -> bool {
        match (fair.entities[current].idle, fair.entities[woken].idle) {
            (true, false) => {
                fair.flavor.end_protection(&mut fair.entities[current]);
                return true;
            }
            (false, true) => return false,
            _ if matches!(waking.class, Class::Batch | Class::Idle) => return false,
            _ => {}
        }
        let q = fair.entities[woken].cfs_rq;
        Self::update_curr(fair, q, now);
        let next = fair.cfs_rqs[q].next.filter(|_| fair.flavor.rules.buddy_before_wakeup);
        if next.is_some_and(|next| next != woken && fair.entity_eligible(next)) {
            return false;
        }
        let rules = fair.flavor.rules;
        let shorter = fair.slice(woken) < fair.slice(current);
        let by_point = rules.protection == Protection::UntilVirtualTime;
        if shorter && !by_point && fair.entity_eligible(woken) {
            let [own, other] = [current, woken].map(|e| fair.entities[e].policy.deadline);
            if vruntime_diff(other, own) < 0 || !fair.entity_eligible(current) {
                fair.flavor.end_protection(&mut fair.entities[current]);
            }
        }
        loop {
            let best = fair.pick_eevdf(q, !(shorter && by_point));
            let finishes = rules.delayed_dequeue == DelayedDequeue::LagNeverFalls;
            if !finishes || best == woken || !fair.entities[best].policy.sched_delayed {
                let preempts = best == woken;
                if preempts && shorter && by_point {
                    fair.flavor.end_protection(&mut fair.entities[current]);
                    if finishes {
                        fair.cfs_rqs[q].next = None;
                    }
                } else if !preempts && by_point && (shorter || rules.buddy_before_wakeup) {
                    let slice = fair.virtual_slice(current, fair.min_slice(q));
                    let until = fair.entities[current].vruntime.wrapping_add(slice);
                    fair.limit_protection(current, until);
                }
                return preempts;
            }
            let delayed = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
            fair.dequeue_task_or_group(best, now, delayed);
        }
    }

    fn yield_task(fair: &mut Fair<Self>, e: EntityId, _now: Time) {
        match fair.flavor.rules.sched_yield {
            SchedYield::MovesDeadline => {
                let slice = fair.virtual_slice(e, fair.slice(e));
                let request = &mut fair.entities[e].policy;
                request.deadline = request.deadline.wrapping_add(slice);
            }
            SchedYield::ForfeitsRequest if fair.entity_eligible(e) => {
                fair.entities[e].vruntime = fair.entities[e].policy.deadline;
                let deadline = fair.next_deadline(e);
                fair.entities[e].policy.deadline = deadline;
                fair.avg_vruntime(fair.competes_on(e));
            }
            SchedYield::ForfeitsRequest => {}
        }
    }

    fn reweight_entity(fair: &mut Fair<Self>, e: EntityId, load: LoadWeight, now: Time) {
        let q = fair.entities[e].cfs_rq;
        fair.update_load_avg(e, now);
        let before = fair.entities[e].load;
        if !fair.entities[e].on_rq {
            let request = &mut fair.entities[e].policy;
            request.vlag = scaled(request.vlag, before.weight, load.weight);
            fair.entities[e].load = load;
            return;
        }
        if fair.is_flat() {
            fair.entities[e].load = load;
        } else {
            Self::update_curr(fair, q, now);
            fair.reweight_queued(e, [before.weight, load.weight], |entity| entity.load = load);
        }
        fair.cfs_rqs[q].load = fair.cfs_rqs[q].load - before.weight + load.weight;
    }

    fn calc_delta_fair(&self, entity: &Entity<Request>, delta: u64) -> u64 {
        match self.rules.precision {
            Precision::Plain => entity.load.calc_delta_fair(delta),
            Precision::Full => div_delta_fair(delta, self.weight(entity)),
        }
    }

    fn hrtick(&self) -> bool {
        self.rules.hrtick
    }

    fn counts_runnable(&self) -> bool {
        self.rules.flat && matches!(self.cgroup_mode, CgroupMode::Concur | CgroupMode::Tasks)
    }

    fn multiplies_shares(&self) -> bool {
        self.counts_runnable() || self.rules.flat && self.cgroup_mode == CgroupMode::Max
    }

    fn shares_multiplier(&self, runnable: u64, cpus: u64) -> SharesMultiplier {
        let whole = (runnable / ONE_TASK).max(1);
        match self.cgroup_mode {
            _ if !self.rules.flat => SharesMultiplier::Divided(ONE_TASK),
            CgroupMode::Up => SharesMultiplier::Undivided,
            CgroupMode::Smp => SharesMultiplier::Divided(ONE_TASK),
            CgroupMode::Concur => SharesMultiplier::Divided(whole.min(cpus) * ONE_TASK),
            CgroupMode::Max => SharesMultiplier::DividedAtMost(cpus * ONE_TASK, MAX_MODE_WEIGHT),
            CgroupMode::Tasks => SharesMultiplier::Divided(runnable.max(ONE_TASK)),
        }
    }

    fn is_flat(&self) -> bool {
        self.rules.flat
    }

    fn timeline_of(fair: &Fair<Self>, e: EntityId) -> CfsRqId {
        fair.competes_on(e)
    }

    fn enqueue_flat(fair: &mut Fair<Self>, task: EntityId, now: Time) {
        fair.enqueue_flat(task, now);
    }

    fn dequeue_flat(fair: &mut Fair<Self>, task: EntityId, now: Time, flags: DequeueFlags) {
        fair.dequeue_flat(task, now, flags);
    }

    fn pick_flat(fair: &mut Fair<Self>, now: Time, cpu: PcpuId) -> Option<TaskId> {
        fair.pick_flat(now, cpu)
    }

    fn put_flat(fair: &mut Fair<Self>, task: EntityId) {
        fair.put_flat(task);
    }

    fn set_flat(fair: &mut Fair<Self>, task: EntityId) {
        fair.set_flat(task);
    }

    fn tick_flat(fair: &mut Fair<Self>, cpu: PcpuId) {
        fair.tick_flat(cpu);
    }

    fn wakeup_preempt_flat(fair: &mut Fair<Self>, now: Time, cpu: PcpuId, tasks: [Task; 2]) {
        let [running, woken] = tasks;
        fair.wakeup_preempt_flat(now, cpu, running, woken);
    }

    fn request_left(&self, entity: &Entity<Request>) -> i64 {
        let left = vruntime_diff(entity.policy.deadline, entity.vruntime);
        let weight = if self.rules.flat { entity.policy.weight } else { entity.load.weight };
        ((i128::from(left) * i128::from(weight)) >> NICE_0_SHIFT) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::super::hierarchy::Settings;
    use super::*;
    use vcpulab_host::PcpuId;

    const CPU: PcpuId = PcpuId(0);

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A hog keeps the CPU until its request is used up, which a tick notices; then they take turns.
    #[test]
    fn hogs_take_turns_at_ticks() {
        let mut fair =
            Fair::new(Eevdf::with_base_slice(Rules::V6_12, Span::from_us(700)), 1, Settings::DEFAULT);
        let tasks = [0, 1, 2].map(|_| fair.add_task(CPU, None, Class::Other, 0));
        for task in tasks {
            fair.wake(at(0), CPU, task);
        }
        assert_eq!(fair.pick_next_task(at(0), CPU), Some(tasks[0]));
        let mut turns = vec![tasks[0]];
        for tick in 1..30 {
            fair.task_tick(at(4000 * tick), CPU);
            assert!(fair.need_resched(CPU));
            turns.extend(fair.pick_next_task(at(4000 * tick + 2), CPU));
        }
        assert!(turns.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(
            tasks.iter().all(|task| (9..=11).contains(&turns.iter().filter(|turn| *turn == task).count()))
        );
    }

    fn fair(rules: Rules) -> Fair<Eevdf> {
        Fair::new(Eevdf::with_base_slice(rules, Span::from_us(700)), 1, Settings::DEFAULT)
    }

    /// Two hogs, the first of which has run for `ran` µs.
    fn two_hogs(rules: Rules, ran: i64) -> (Fair<Eevdf>, [TaskId; 2]) {
        let mut fair = fair(rules);
        let tasks = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
        for task in tasks {
            fair.wake(at(0), CPU, task);
        }
        assert_eq!(fair.pick_next_task(at(0), CPU), Some(tasks[0]));
        fair.task_tick(at(ran), CPU);
        (fair, tasks)
    }

    #[test]
    fn a_timer_ends_requests_from_7_1_on() {
        for (rules, timer) in [(Rules::V7_0, None), (Rules::V7_1, Some(at(700)))] {
            let (fair, _) = two_hogs(rules, 100);
            assert_eq!(fair.hrtick_at(CPU), timer, "{rules:?}");
        }
        let (mut fair, [_, second]) = two_hogs(Rules::V7_1, 100);
        fair.hrtick(at(700), CPU);
        assert!(fair.need_resched(CPU) && fair.hrtick_at(CPU).is_none());
        assert_eq!(fair.pick_next_task(at(702), CPU), Some(second));
        assert_eq!(fair.hrtick_at(CPU), Some(at(1402)));
    }

    #[test]
    fn a_timer_needs_two_tasks_and_stops_when_the_cpu_idles() {
        let mut fair = fair(Rules::V7_1);
        let task = fair.add_task(CPU, None, Class::Other, 0);
        fair.wake(at(0), CPU, task);
        fair.pick_next_task(at(0), CPU);
        assert_eq!(fair.hrtick_at(CPU), None);
        let other = fair.add_task(CPU, None, Class::Other, 0);
        fair.wake(at(300), CPU, other);
        // What the running task had used was not charged yet.
        assert_eq!(fair.hrtick_at(CPU), Some(at(700)));
        fair.block(at(400), CPU);
        fair.pick_next_task(at(400), CPU);
        fair.block(at(500), CPU);
        assert_eq!(fair.pick_next_task(at(500), CPU), None);
        assert_eq!(fair.hrtick_at(CPU), None);
    }

    #[test]
    fn blocking_ahead_of_the_share_is_delayed_from_6_12_on() {
        for (rules, delayed) in
            [(Rules::V6_6, false), (Rules::V6_12, true), (Rules::V7_0, true), (Rules::V7_2, true)]
        {
            let (mut fair, [first, _]) = two_hogs(rules, 300);
            fair.block(at(600), CPU);
            assert_eq!(fair.is_delayed(first), delayed, "{rules:?}");
        }
    }

    /// A task blocks while others are behind it; then a task with a great lag joins, which moves the average back.
    #[test]
    fn a_delayed_lag_never_falls_from_7_1_on() {
        let lag = |rules| {
            let (mut fair, [first, _]) = two_hogs(rules, 300);
            fair.block(at(600), CPU);
            let blocked = fair.entity_lag(fair.tasks[first].entity);
            fair.pick_next_task(at(600), CPU);
            let third = fair.add_task(CPU, None, Class::Other, -20);
            fair.set_vlag(third, Span::from_us(80));
            fair.wake(at(601), CPU, third);
            let e = fair.tasks[first].entity;
            let below = fair.entity_lag(e) < blocked;
            (below, fair.lag_after_delay(e).cmp(&blocked))
        };
        assert_eq!(lag(Rules::V7_0), (true, std::cmp::Ordering::Less));
        assert_eq!(lag(Rules::V7_1), (true, std::cmp::Ordering::Equal));
    }

    #[test]
    fn lags_are_limited_by_release() {
        let limit = |rules, us, hz: i64| {
            let settings = Settings { tick: Span::from_secs(1) / hz, ..Settings::DEFAULT };
            Fair::new(Eevdf::with_base_slice(rules, Span::from_us(us)), 1, settings)
                .lag_limit(Span::from_us(us))
                / Span::from_us(1)
        };
        let limits = |rules| [(700, 250), (2800, 250), (2800, 1000)].map(|(us, hz)| limit(rules, us, hz));
        assert_eq!(limits(Rules::V6_12), [4000, 5600, 5600]);
        assert_eq!(limits(Rules::V7_0), [4700, 6800, 3800]);
    }

    #[test]
    fn protection_ends_by_release_where_a_choice_kept_the_task() {
        // The first task alone is eligible although its request is used up; a later charge finds it ahead.
        for (rules, flags) in [(Rules::V6_6, false), (Rules::V6_12, false), (Rules::V6_17, true)] {
            let mut fair = fair(rules);
            let tasks = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
            fair.set_vlag(tasks[0], Span::from_us(3_000));
            fair.wake(at(0), CPU, tasks[1]);
            fair.wake(at(0), CPU, tasks[0]);
            assert_eq!(fair.pick_next_task(at(0), CPU), Some(tasks[0]));
            fair.task_tick(at(800), CPU);
            assert!(fair.need_resched(CPU), "the request is used up");
            assert_eq!(fair.pick_next_task(at(800), CPU), Some(tasks[0]), "the other is not eligible");
            fair.task_tick(at(1000), CPU);
            assert_eq!(fair.need_resched(CPU), flags, "{rules:?}");
        }
    }

    #[test]
    fn a_yield_moves_the_deadline_or_forfeits_the_request() {
        for (rules, moved) in [(Rules::V6_6, [0, 700]), (Rules::V6_12, [700, 700])] {
            let mut fair = fair(rules);
            let tasks = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
            tasks.into_iter().for_each(|task| fair.wake(at(0), CPU, task));
            let e = fair.pick_next_task(at(0), CPU).map(|task| fair.tasks[task].entity).expect("a task");
            let state = |fair: &Fair<Eevdf>| [fair.entities[e].vruntime, fair.entities[e].policy.deadline];
            let before = state(&fair);
            fair.yield_task(at(0), CPU);
            let after = state(&fair);
            assert_eq!([0, 1].map(|i| vruntime_diff(after[i], before[i]) / 1000), moved, "{rules:?}");
        }
    }

    #[test]
    fn virtual_time_is_exact_from_7_1_on() {
        // A sixth of the weight of nice 0: its plain weight is 170.
        let passes = |rules| {
            let mut fair = fair(rules);
            let task = fair.add_task(CPU, None, Class::Other, 0);
            let e = fair.tasks[task].entity;
            fair.entities[e].load = LoadWeight::of_sum(174_762);
            fair.calc_delta_fair(e, 1_000_000)
        };
        assert_eq!(passes(Rules::V7_1), 1_000_000 * (1 << 20) / 174_762);
        assert!(passes(Rules::V7_0) > 6_020_000);
    }
}
