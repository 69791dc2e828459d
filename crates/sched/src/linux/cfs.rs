//! CFS, Linux's fair scheduler up to 6.5: the entity with the least virtual run time runs.

use vcpulab_host::{Class, Span, Time};

use super::cfs_rq::{CfsRqId, Entity, EntityId, Kind, Task, max_vruntime, vruntime_diff};
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::idle_scan::{IdleScan, SelectCpu};
use super::load_weight::{LoadWeight, ns};
use super::newidle::BalanceRules;
use super::task_group::IdlePeriod;

/// Virtual time at which queues start.
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);

/// A sleep so long that virtual times cannot be compared any more.
const LONG_SLEEP: Span = Span::from_ns(1 << 53);

/// Rules in which releases of CFS differ.
///
/// Kernels without `cpu.idle` and `cpu.max.burst` need no rules of their own: their generation lacks the parameters, and
/// without idle groups and bursts the rules are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The least slice of an idle entity beside entities that are not idle; `None`: the minimum granularity.
    pub idle_min_granularity: Option<Span>,
    /// Tunable by half of which a waking idle entity is placed before the others.
    pub idle_placement: IdlePlacement,
    /// Whether an entity that slept for so long that virtual run times cannot be compared is placed whatever its own is.
    pub replaces_long_sleepers: bool,
    /// Whether a decision clears the chosen entity as a buddy, even if the entity runs already. `false`: only a switch does.
    pub pick_clears_buddies: bool,
    /// Action of the period timer of a group that used no CPU time in its last period.
    pub idle_period: IdlePeriod,
    /// Choice of a CPU for a waking thread.
    pub select_cpu: SelectCpu,
    /// Balancing.
    pub balance: BalanceRules,
}

/// Tunable by half of which a waking idle entity is placed before the others on its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdlePlacement {
    /// `sched_latency`, as for other entities.
    Latency,
    /// `sched_min_granularity`.
    MinGranularity,
}

impl Rules {
    /// The rules of 5.10, up to 5.13.
    pub const V5_10: Rules = Rules {
        replaces_long_sleepers: true,
        pick_clears_buddies: true,
        idle_period: IdlePeriod::Stop,
        select_cpu: SelectCpu { prefers_idle_prev: false, scan: IdleScan::PropFromTarget },
        ..Self::V5_15
    };

    /// The rules of 5.15, from 5.14 up to 6.0.
    pub const V5_15: Rules = Rules {
        idle_min_granularity: None,
        idle_placement: IdlePlacement::Latency,
        replaces_long_sleepers: false,
        select_cpu: SelectCpu { scan: IdleScan::PropDecaying, ..SelectCpu::UTIL },
        balance: BalanceRules::OLDEST,
        ..Self::V6_1
    };

    /// The rules of 6.1, up to 6.5.
    pub const V6_1: Rules = Rules {
        idle_min_granularity: Some(Span::from_us(750)),
        idle_placement: IdlePlacement::MinGranularity,
        replaces_long_sleepers: true,
        pick_clears_buddies: false,
        idle_period: IdlePeriod::RefillAndStop,
        select_cpu: SelectCpu::UTIL,
        balance: BalanceRules::V6_12,
    };
}

/// Tunables of CFS.
#[derive(Clone, Copy, Debug)]
pub struct Cfs {
    /// Rules of the release.
    pub rules: Rules,
    /// The period in which every task should run once (`sched_latency`).
    pub latency: Span,
    /// The least slice (`sched_min_granularity`).
    pub min_granularity: Span,
    /// Virtual run time by which a waking task must be behind the running task to preempt it (`sched_wakeup_granularity`).
    pub wakeup_granularity: Span,
}

impl Cfs {
    /// The kernel's defaults on one CPU; the first three are multiplied by `factor`.
    pub const fn scaled(rules: Rules, factor: i64) -> Self {
        Cfs {
            rules,
            latency: Span::from_us(6_000 * factor),
            min_granularity: Span::from_us(750 * factor),
            wakeup_granularity: Span::from_us(1_000 * factor),
        }
    }

    /// The greatest number of tasks that do not extend the period.
    fn sched_nr_latency(&self) -> u64 {
        ns(self.latency).div_ceil(ns(self.min_granularity).max(1))
    }
}

/// The least virtual run time of a queue: the state that CFS keeps for each queue.
#[derive(Clone, Debug)]
pub struct MinVruntime {
    /// The least virtual run time of the queue's entities; never decreases.
    min_vruntime: u64,
}

impl Default for MinVruntime {
    fn default() -> Self {
        MinVruntime { min_vruntime: INITIAL_VRUNTIME }
    }
}

impl Fair<Cfs> {
    /// Advances the least virtual run time of a queue.
    fn update_min_vruntime(&mut self, q: CfsRqId) {
        let cfs_rq = &self.cfs_rqs[q];
        let current =
            cfs_rq.curr.map(|e| &self.entities[e]).filter(|entity| entity.on_rq).map(|e| e.vruntime);
        let first = cfs_rq.timeline.first().map(|&e| self.entities[e].vruntime);
        let candidate = match (current, first) {
            (Some(a), Some(b)) => Some(if vruntime_diff(a, b) < 0 { a } else { b }),
            (a, b) => a.or(b),
        };
        if let Some(candidate) = candidate {
            self.cfs_rqs[q].policy.min_vruntime =
                max_vruntime(self.cfs_rqs[q].policy.min_vruntime, candidate);
        }
    }

    /// Sets the virtual run time of an entity that wakes: at least half a period before the others.
    fn place_entity(&mut self, e: EntityId, now: Time) {
        let Entity { idle, cfs_rq, vruntime, exec_start, .. } = self.entities[e];
        let least = match self.flavor.rules.idle_placement {
            IdlePlacement::MinGranularity if idle => self.flavor.min_granularity,
            _ => self.flavor.latency,
        };
        let placed = self.cfs_rqs[cfs_rq].policy.min_vruntime.wrapping_sub(ns(least) / 2);
        let long = self.flavor.rules.replaces_long_sleepers && now - exec_start > LONG_SLEEP;
        self.entities[e].vruntime = if long { placed } else { max_vruntime(vruntime, placed) };
    }

    /// Slice of an entity: its share of the period by weight, level by level.
    fn sched_slice(&self, e: EntityId) -> u64 {
        let root = CfsRqId(self.cpu_of(e).0);
        let tasks = u64::from(self.cfs_rqs[root].h_nr_running) + u64::from(!self.entities[e].on_rq);
        let least = ns(self.flavor.min_granularity);
        let mut slice = ns(self.flavor.latency);
        if tasks > self.flavor.sched_nr_latency() {
            slice = tasks * least;
        }
        let mut up = Some(e);
        while let Some(e) = up {
            let entity = &self.entities[e];
            let missing = if entity.on_rq { 0 } else { entity.load.weight };
            let load = LoadWeight::of_sum(self.cfs_rqs[entity.cfs_rq].load + missing);
            slice = load.calc_delta(slice, entity.load.weight);
            up = self.parent_entity(e);
        }
        let entity = &self.entities[e];
        let alone = self.cfs_rqs[entity.cfs_rq].load == entity.load.weight;
        let least = match self.flavor.rules.idle_min_granularity {
            Some(granularity) if entity.idle && !alone => ns(granularity),
            _ => least,
        };
        slice.max(least)
    }

    /// Compares two entities on a queue: 1 if `b` should preempt `a`; 0 if `b` is behind, but not by the wakeup
    /// granularity; −1 otherwise.
    fn wakeup_preempt_entity(&self, a: EntityId, b: EntityId) -> i32 {
        let delta = vruntime_diff(self.entities[a].vruntime, self.entities[b].vruntime);
        let enough = self.entities[b].load.calc_delta_fair(ns(self.flavor.wakeup_granularity));
        match delta {
            ..=0 => -1,
            _ => i32::from(delta > enough.cast_signed()),
        }
    }
}

impl Flavor for Cfs {
    type Entity = ();
    type CfsRq = MinVruntime;
    const THROTTLES_CURRENT_ONLY: bool = true;
    const EMPTY_KEEPS_WEIGHT: bool = false;
    const REFILLS_TOGETHER: bool = true;
    const TG_LOAD_AVG_INTERVAL: Span = Span::ZERO;

    fn timeline_key(entity: &Entity<()>) -> u64 {
        entity.vruntime
    }

    fn idle_period(&self) -> IdlePeriod {
        self.rules.idle_period
    }

    fn lag_limit(fair: &Fair<Self>) -> Span {
        fair.flavor.latency / 2
    }

    fn set_vlag(entity: &mut Entity<()>, lag: Span) {
        entity.vruntime = entity.vruntime.wrapping_add_signed(lag.ns().wrapping_neg());
    }

    fn init_entity(fair: &mut Fair<Self>, e: EntityId) {
        fair.entities[e].vruntime = fair.cfs_rqs[fair.entities[e].cfs_rq].policy.min_vruntime;
    }

    fn detach_entity(fair: &mut Fair<Self>, e: EntityId) {
        let min_vruntime = fair.cfs_rqs[fair.entities[e].cfs_rq].policy.min_vruntime;
        fair.entities[e].vruntime = fair.entities[e].vruntime.wrapping_sub(min_vruntime);
    }

    fn update_curr(fair: &mut Fair<Self>, q: CfsRqId, now: Time) {
        if let Some((_, ran)) = fair.update_curr_se(q, now) {
            fair.update_min_vruntime(q);
            fair.account_cfs_rq_runtime(q, now, ran);
        }
    }

    fn enqueue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, wakeup: bool, moved: bool) {
        let q = fair.entities[e].cfs_rq;
        let relative = !wakeup || moved;
        let current = fair.cfs_rqs[q].curr == Some(e);
        let absolute = |fair: &mut Fair<Self>| {
            let min_vruntime = fair.cfs_rqs[q].policy.min_vruntime;
            fair.entities[e].vruntime = fair.entities[e].vruntime.wrapping_add(min_vruntime);
        };
        if relative && current {
            absolute(fair);
        }
        Self::update_curr(fair, q, now);
        if relative && !current {
            absolute(fair);
        }
        fair.update_cfs_group(e, now);
        if wakeup {
            fair.place_entity(e, now);
        }
        fair.account_entity_enqueue(e, now);
    }

    fn dequeue_entity(fair: &mut Fair<Self>, e: EntityId, now: Time, flags: DequeueFlags) -> bool {
        let q = fair.entities[e].cfs_rq;
        Self::update_curr(fair, q, now);
        fair.clear_buddies(e);
        fair.account_entity_dequeue(e, now);
        if !flags.sleep {
            Self::detach_entity(fair, e);
        }
        if fair.cfs_rqs[q].nr_running == 0 {
            fair.return_cfs_rq_runtime(q, now);
        }
        fair.update_cfs_group(e, now);
        fair.update_min_vruntime(q);
        true
    }

    fn pick_next_entity(fair: &mut Fair<Self>, q: CfsRqId) -> EntityId {
        let cfs_rq = &fair.cfs_rqs[q];
        let v = |e: EntityId| fair.entities[e].vruntime;
        let current = cfs_rq.curr.filter(|&e| fair.entities[e].on_rq);
        let before = |a: EntityId, b: EntityId| vruntime_diff(v(a), v(b)) < 0;
        let first = cfs_rq.timeline.first().copied();
        let left = match (first, current) {
            (Some(first), Some(current)) if before(current, first) => current,
            (Some(first), _) => first,
            (None, current) => current.expect("an entity is queued"),
        };
        let mut chosen = left;
        if cfs_rq.skip == Some(left) {
            let second = if Some(left) == current {
                first
            } else {
                let after = cfs_rq.timeline.get(1).copied();
                match (after, current) {
                    (None, current) => current,
                    (Some(after), Some(current)) if before(current, after) => Some(current),
                    (after, _) => after,
                }
            };
            chosen = second.filter(|&second| fair.wakeup_preempt_entity(second, left) < 1).unwrap_or(left);
        }
        let buddy =
            |buddy: Option<EntityId>| buddy.filter(|&buddy| fair.wakeup_preempt_entity(buddy, left) < 1);
        let chosen = buddy(cfs_rq.next).or_else(|| buddy(cfs_rq.last)).unwrap_or(chosen);
        if fair.flavor.rules.pick_clears_buddies {
            fair.clear_buddies(chosen);
        }
        chosen
    }

    fn entity_tick(fair: &mut Fair<Self>, e: EntityId) {
        let q = fair.entities[e].cfs_rq;
        if fair.cfs_rqs[q].nr_running <= 1 {
            return;
        }
        let ran = fair.entities[e].sum_exec_runtime - fair.entities[e].prev_sum_exec_runtime;
        let slice = fair.sched_slice(e);
        if ran > slice {
            fair.resched_curr(q);
            fair.clear_buddies(e);
            return;
        }
        if ran < ns(fair.flavor.min_granularity) {
            return;
        }
        let first = fair.cfs_rqs[q].timeline.first().map(|&first| fair.entities[first].vruntime);
        if first.is_some_and(|first| vruntime_diff(fair.entities[e].vruntime, first) > slice.cast_signed()) {
            fair.resched_curr(q);
        }
    }

    fn check_preempt_wakeup(
        fair: &mut Fair<Self>,
        [running, waking]: [Task; 2],
        [current, woken]: [EntityId; 2],
        now: Time,
    ) -> bool {
        match (running.class, waking.class) {
            (Class::Idle, Class::Idle) => return false,
            (Class::Idle, _) => return true,
            (_, Class::Batch | Class::Idle) => return false,
            _ => {}
        }
        let idle = |e: EntityId| fair.entities[e].idle;
        if idle(current) != idle(woken) {
            return idle(current);
        }
        Self::update_curr(fair, fair.entities[woken].cfs_rq, now);
        if fair.wakeup_preempt_entity(current, woken) != 1 {
            return false;
        }
        fair.set_next_buddy(woken);
        let crowded = u64::from(fair.cfs_rqs[fair.entities[running.entity].cfs_rq].nr_running)
            >= fair.flavor.sched_nr_latency();
        if crowded && matches!(fair.entities[current].kind, Kind::Task(_)) {
            fair.set_buddy(running.entity, |cfs_rq| &mut cfs_rq.last);
        }
        true
    }

    fn yield_task(fair: &mut Fair<Self>, e: EntityId, _now: Time) {
        let mut up = Some(e);
        while let Some(e) = up {
            fair.cfs_rqs[fair.entities[e].cfs_rq].skip = Some(e);
            up = fair.parent_entity(e);
        }
    }

    fn reweight_entity(fair: &mut Fair<Self>, e: EntityId, load: LoadWeight, now: Time) {
        let q = fair.entities[e].cfs_rq;
        fair.update_load_avg(e, now);
        if fair.entities[e].on_rq {
            if fair.cfs_rqs[q].curr == Some(e) {
                Self::update_curr(fair, q, now);
            }
            fair.cfs_rqs[q].load = fair.cfs_rqs[q].load - fair.entities[e].load.weight + load.weight;
        }
        fair.entities[e].load = load;
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{GroupConfig, PcpuId};

    use super::super::hierarchy::Settings;
    use super::*;

    const CPU: PcpuId = PcpuId(0);
    const ALL: [Rules; 3] = [Rules::V5_10, Rules::V5_15, Rules::V6_1];

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// The fair class of one CPU, with the tunables of 8 CPUs: 24, 3 and 4 ms.
    fn fair(rules: Rules) -> Fair<Cfs> {
        Fair::new(Cfs::scaled(rules, 4), 1, Settings::DEFAULT)
    }

    /// Virtual time of an entity behind the least of its queue, µs.
    fn behind(fair: &Fair<Cfs>, e: EntityId) -> i64 {
        let entity = &fair.entities[e];
        vruntime_diff(fair.cfs_rqs[entity.cfs_rq].policy.min_vruntime, entity.vruntime) / 1000
    }

    #[test]
    fn a_waking_idle_entity_is_placed_half_a_tunable_before_the_others() {
        let placed = |rules: Rules, class: Class| {
            let mut fair = fair(rules);
            let [hog, waking] = [Class::Other, class].map(|class| fair.add_task(CPU, None, class, 0));
            fair.wake(at(0), CPU, hog);
            fair.pick_next_task(at(0), CPU);
            fair.task_tick(at(100_000), CPU);
            fair.wake(at(100_000), CPU, waking);
            behind(&fair, fair.tasks[waking].entity)
        };
        assert_eq!(ALL.map(|rules| placed(rules, Class::Idle)), [12_000, 12_000, 1_500]);
        assert_eq!(ALL.map(|rules| placed(rules, Class::Other)), [12_000; 3]);
    }

    #[test]
    fn an_idle_entity_beside_others_has_a_least_slice_of_its_own() {
        let slice = |rules: Rules, others: usize| {
            let mut fair = fair(rules);
            let idle = fair.add_task(CPU, None, Class::Idle, 0);
            fair.wake(at(0), CPU, idle);
            for _ in 0..others {
                let other = fair.add_task(CPU, None, Class::Other, 0);
                fair.wake(at(0), CPU, other);
            }
            fair.sched_slice(fair.tasks[idle].entity) / 1000
        };
        assert_eq!(ALL.map(|rules| slice(rules, 1)), [3_000, 3_000, 750]);
        assert_eq!(ALL.map(|rules| slice(rules, 0)), [23_999; 3], "alone it has the whole period");
    }

    /// The virtual run time of the sleeper is so far behind that the difference wraps, and the sleeper seems to be ahead.
    #[test]
    fn an_entity_that_slept_for_months_is_placed_anew() {
        let ahead = |rules: Rules, slept: Span| {
            let mut fair = fair(rules);
            let [hog, waking] = [0, 0].map(|nice| fair.add_task(CPU, None, Class::Other, nice));
            let e = fair.tasks[waking].entity;
            fair.wake(at(0), CPU, hog);
            fair.pick_next_task(at(0), CPU);
            fair.entities[e].vruntime = fair.entities[e].vruntime.wrapping_add((1 << 63) + 1);
            let now = Time::ZERO + slept;
            fair.task_tick(now, CPU);
            fair.wake(now, CPU, waking);
            behind(&fair, e) < 0
        };
        assert_eq!(ALL.map(|rules| ahead(rules, LONG_SLEEP + Span::from_ns(1))), [false, true, false]);
        assert_eq!(ALL.map(|rules| ahead(rules, LONG_SLEEP)), [true; 3]);
    }

    #[test]
    fn a_decision_for_the_running_task_clears_its_buddy() {
        let next = |rules: Rules| {
            let mut fair = fair(rules);
            let group = fair.add_group(&GroupConfig::NEW);
            let tasks = [0, 0].map(|nice| fair.add_task(CPU, Some(group), Class::Other, nice));
            for task in tasks {
                fair.wake(at(0), CPU, task);
            }
            assert_eq!(fair.pick_next_task(at(0), CPU), Some(tasks[0]));
            let e = fair.tasks[tasks[0]].entity;
            fair.set_next_buddy(e);
            assert_eq!(fair.pick_next_task(at(100), CPU), Some(tasks[0]));
            let up = [Some(e), fair.parent_entity(e)];
            up.map(|e| e.is_some_and(|e| fair.cfs_rqs[fair.entities[e].cfs_rq].next == Some(e)))
        };
        assert_eq!(ALL.map(next), [[false; 2], [true; 2], [true; 2]]);
    }
}
