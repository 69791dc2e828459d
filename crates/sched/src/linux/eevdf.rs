//! EEVDF, Linux's fair scheduler since 6.6 (here: 6.12): of the entities whose lag is not negative, the one with the
//! earliest virtual deadline runs. (Stoica, Abdel-Wahab 1995.)

use vcpulab_host::{Class, Span, Time};

use super::cfs_rq::{CfsRqId, Entity, EntityId, Task, vruntime_diff};
use super::hierarchy::{DequeueFlags, Fair, Flavor};
use super::load_weight::{LoadWeight, ns};

/// Virtual time at which queues begin.
const INITIAL_VRUNTIME: u64 = 0u64.wrapping_sub(1 << 20);

/// Rules in which releases of EEVDF differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Base slice on one CPU.
    pub base_slice: Span,
}

impl Rules {
    /// The rules of 6.12, up to 6.16.
    pub const V6_12: Rules = Rules { base_slice: Span::from_us(700) };
}

/// Tunables of EEVDF.
#[derive(Clone, Copy, Debug)]
pub struct Eevdf {
    /// Rules of the release.
    pub rules: Rules,
    /// Length of every request (`base_slice`).
    pub base_slice: Span,
}

/// A request of an entity: the state that EEVDF keeps for each entity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Virtual deadline.
    deadline: u64,
    /// Lag with which the entity left its queue, as virtual time; positive: the entity got less than its share.
    vlag: i64,
    /// Deadline when the entity became current. While the deadline is the same, the entity is not preempted (`RUN_TO_PARITY`).
    protected_deadline: u64,
    /// Whether the deadline is relative to the virtual run time.
    rel_deadline: bool,
    /// Whether the entity blocked while its lag was negative, and competes until its lag is 0 (a delayed dequeue).
    sched_delayed: bool,
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
}

impl Default for AvgVruntime {
    fn default() -> Self {
        AvgVruntime { zero_vruntime: INITIAL_VRUNTIME, sum_w_vruntime: 0, sum_weight: 0 }
    }
}

impl Request {
    fn is_protected(&self) -> bool {
        self.protected_deadline == self.deadline
    }
}

fn plain(entity: &Entity<Request>) -> i64 {
    entity.load.scaled_down().cast_signed()
}

impl Fair<Eevdf> {
    /// The sums over the timeline and the current entity.
    fn sums_with_curr(&self, q: CfsRqId) -> (i64, i64) {
        let cfs_rq = &self.cfs_rqs[q];
        let AvgVruntime { zero_vruntime, sum_w_vruntime, sum_weight } = cfs_rq.policy;
        match cfs_rq.curr.map(|e| &self.entities[e]).filter(|current| current.on_rq) {
            Some(current) => {
                let moment = vruntime_diff(current.vruntime, zero_vruntime).wrapping_mul(plain(current));
                (sum_w_vruntime.wrapping_add(moment), sum_weight + plain(current))
            }
            None => (sum_w_vruntime, sum_weight),
        }
    }

    /// Weighted average of the virtual run times; `zero_vruntime` moves there.
    fn avg_vruntime(&mut self, q: CfsRqId) -> u64 {
        let (sum_w_vruntime, sum_weight) = self.sums_with_curr(q);
        let cfs_rq = &self.cfs_rqs[q];
        let zero_vruntime = cfs_rq.policy.zero_vruntime;
        let current = cfs_rq.curr.map(|e| &self.entities[e]).filter(|current| current.on_rq);
        let avg_vruntime = if cfs_rq.policy.sum_weight > 0 {
            zero_vruntime.wrapping_add_signed(sum_w_vruntime.div_euclid(sum_weight))
        } else {
            current.map_or(zero_vruntime, |current| current.vruntime)
        };
        let sums = &mut self.cfs_rqs[q].policy;
        sums.sum_w_vruntime = sums
            .sum_w_vruntime
            .wrapping_sub(vruntime_diff(avg_vruntime, zero_vruntime).wrapping_mul(sums.sum_weight));
        sums.zero_vruntime = avg_vruntime;
        avg_vruntime
    }

    /// Whether the lag of an entity is not negative.
    fn entity_eligible(&self, e: EntityId) -> bool {
        let entity = &self.entities[e];
        let (sum_w_vruntime, sum_weight) = self.sums_with_curr(entity.cfs_rq);
        let behind = vruntime_diff(entity.vruntime, self.cfs_rqs[entity.cfs_rq].policy.zero_vruntime);
        i128::from(sum_w_vruntime) >= i128::from(behind) * i128::from(sum_weight)
    }

    fn slice(&self) -> u64 {
        ns(self.flavor.base_slice)
    }

    /// Limit of the lag, positive or negative, with which an entity of the weight of nice 0 may leave its queue.
    fn lag_limit(&self) -> Span {
        (2 * self.flavor.base_slice).max(self.settings.tick)
    }

    /// Lag of an entity, in virtual time and within the limits; positive: the entity got less than its share.
    fn entity_lag(&mut self, e: EntityId) -> i64 {
        let avg_vruntime = self.avg_vruntime(self.entities[e].cfs_rq);
        let entity = &self.entities[e];
        let limit = entity.load.calc_delta_fair(ns(self.lag_limit())).cast_signed();
        vruntime_diff(avg_vruntime, entity.vruntime).clamp(-limit, limit)
    }

    /// Deadline of a request that an entity makes now.
    fn next_deadline(&self, e: EntityId) -> u64 {
        let entity = &self.entities[e];
        entity.vruntime.wrapping_add(entity.load.calc_delta_fair(self.slice()))
    }

    /// Sets the virtual run time and the deadline of an entity that is about to be queued, by its lag.
    fn place_entity(&mut self, e: EntityId) {
        let q = self.entities[e].cfs_rq;
        let avg_vruntime = self.avg_vruntime(q);
        let mut lag = 0;
        if self.cfs_rqs[q].nr_running > 0 {
            let (_, sum_weight) = self.sums_with_curr(q);
            let own = plain(&self.entities[e]);
            let exact = i128::from(self.entities[e].policy.vlag) * i128::from(sum_weight + own);
            lag = (exact / i128::from(sum_weight.max(1))) as i64;
        }
        let v = avg_vruntime.wrapping_add_signed(lag.wrapping_neg());
        self.entities[e].vruntime = v;
        let deadline = self.next_deadline(e);
        let request = &mut self.entities[e].policy;
        request.deadline = if request.rel_deadline { request.deadline.wrapping_add(v) } else { deadline };
        request.rel_deadline = false;
    }

    /// The eligible entity with the earliest deadline.
    fn pick_eevdf(&self, q: CfsRqId) -> EntityId {
        let cfs_rq = &self.cfs_rqs[q];
        let current = cfs_rq.curr.filter(|&e| self.entities[e].on_rq);
        if cfs_rq.nr_running == 1 {
            return current.unwrap_or_else(|| cfs_rq.timeline[0]);
        }
        let current = current.filter(|&e| self.entity_eligible(e));
        if let Some(e) = current.filter(|&e| self.entities[e].policy.is_protected()) {
            return e;
        }
        let earliest = cfs_rq.timeline.iter().copied().find(|&e| self.entity_eligible(e));
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

    fn timeline_key(entity: &Entity<Request>) -> u64 {
        entity.policy.deadline
    }

    fn lag_limit(fair: &Fair<Self>) -> Span {
        fair.lag_limit()
    }

    fn set_vlag(entity: &mut Entity<Request>, lag: Span) {
        entity.policy.vlag = lag.ns();
    }

    fn sched_delayed(entity: &Entity<Request>) -> bool {
        entity.policy.sched_delayed
    }

    fn init_entity(fair: &mut Fair<Self>, e: EntityId) {
        fair.entities[e].policy = Request::default();
    }

    fn update_curr(fair: &mut Fair<Self>, q: CfsRqId, now: Time) {
        let Some((e, ran)) = fair.update_curr_se(q, now) else { return };
        let entity = &fair.entities[e];
        let used_up = vruntime_diff(entity.vruntime, entity.policy.deadline) >= 0;
        if used_up {
            let deadline = fair.next_deadline(e);
            fair.entities[e].policy.deadline = deadline;
            fair.avg_vruntime(q);
        }
        fair.account_cfs_rq_runtime(q, now, ran);
        if fair.cfs_rqs[q].nr_running == 1 {
            return;
        }
        if used_up || (!fair.entities[e].policy.is_protected() && !fair.entity_eligible(e)) {
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
        if !flags.delayed && flags.sleep && !flags.throttled && !fair.entity_eligible(e) {
            fair.entities[e].policy.sched_delayed = true;
            return false;
        }
        let lag = fair.entity_lag(e);
        fair.account_entity_dequeue(e, now);
        let entity = &mut fair.entities[e];
        entity.policy.vlag = if flags.delayed { lag.min(0) } else { lag };
        entity.policy.sched_delayed = false;
        if !flags.sleep {
            entity.policy.deadline = entity.policy.deadline.wrapping_sub(entity.vruntime);
            entity.policy.rel_deadline = true;
        }
        if fair.cfs_rqs[q].nr_running == 0 {
            fair.return_cfs_rq_runtime(q, now);
        }
        fair.update_cfs_group(e, now);
        true
    }

    fn requeue_delayed_entity(fair: &mut Fair<Self>, e: EntityId) {
        if fair.entity_lag(e) > 0 {
            let q = fair.entities[e].cfs_rq;
            let current = fair.cfs_rqs[q].curr == Some(e);
            if !current {
                fair.remove_from_timeline(e);
            }
            fair.cfs_rqs[q].nr_running -= 1;
            fair.entities[e].policy.vlag = 0;
            fair.place_entity(e);
            fair.cfs_rqs[q].nr_running += 1;
            if !current {
                fair.insert_into_timeline(e);
            }
        }
        fair.entities[e].policy.sched_delayed = false;
    }

    fn update_sums(fair: &mut Fair<Self>, q: CfsRqId, e: EntityId, inserted: bool) {
        let weight = plain(&fair.entities[e]);
        let v = fair.entities[e].vruntime;
        let sums = &mut fair.cfs_rqs[q].policy;
        let moment = vruntime_diff(v, sums.zero_vruntime).wrapping_mul(weight);
        let (moment, weight) = if inserted { (moment, weight) } else { (moment.wrapping_neg(), -weight) };
        sums.sum_w_vruntime = sums.sum_w_vruntime.wrapping_add(moment);
        sums.sum_weight += weight;
    }

    fn pick_next_entity(fair: &mut Fair<Self>, q: CfsRqId) -> EntityId {
        let next = fair.cfs_rqs[q].next.filter(|&next| fair.entity_eligible(next));
        next.unwrap_or_else(|| fair.pick_eevdf(q))
    }

    fn protect_slice(entity: &mut Entity<Request>) {
        entity.policy.protected_deadline = entity.policy.deadline;
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
                let request = &mut fair.entities[current].policy;
                request.protected_deadline = request.deadline.wrapping_add(1);
                return true;
            }
            (false, true) => return false,
            _ if matches!(waking.class, Class::Batch | Class::Idle) => return false,
            _ => {}
        }
        let q = fair.entities[woken].cfs_rq;
        Self::update_curr(fair, q, now);
        // Requests are all of one length: none is preempted for a shorter one.
        fair.pick_eevdf(q) == woken
    }

    fn yield_task(fair: &mut Fair<Self>, e: EntityId, _now: Time) {
        if fair.entity_eligible(e) {
            fair.entities[e].vruntime = fair.entities[e].policy.deadline;
            let deadline = fair.next_deadline(e);
            fair.entities[e].policy.deadline = deadline;
            fair.avg_vruntime(fair.entities[e].cfs_rq);
        }
    }

    fn reweight_entity(fair: &mut Fair<Self>, e: EntityId, load: LoadWeight, now: Time) {
        let q = fair.entities[e].cfs_rq;
        let scaled = |x: i64, before: LoadWeight| {
            (i128::from(x) * i128::from(before.weight) / i128::from(load.weight.max(1))) as i64
        };
        fair.update_load_avg(e, now);
        let before = fair.entities[e].load;
        if !fair.entities[e].on_rq {
            let request = &mut fair.entities[e].policy;
            request.vlag = scaled(request.vlag, before);
            fair.entities[e].load = load;
            return;
        }
        Self::update_curr(fair, q, now);
        let avg_vruntime = fair.avg_vruntime(q);
        let lag = fair.entity_lag(e);
        let current = fair.cfs_rqs[q].curr == Some(e);
        if !current {
            fair.remove_from_timeline(e);
        }
        let entity = &mut fair.entities[e];
        if entity.vruntime != avg_vruntime {
            entity.vruntime = avg_vruntime.wrapping_add_signed(scaled(lag, before).wrapping_neg());
        }
        let ahead_of = vruntime_diff(entity.policy.deadline, avg_vruntime);
        entity.policy.deadline = avg_vruntime.wrapping_add_signed(scaled(ahead_of, before));
        entity.load = load;
        fair.cfs_rqs[q].load = fair.cfs_rqs[q].load - before.weight + load.weight;
        if !current {
            fair.insert_into_timeline(e);
        }
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
            Fair::new(Eevdf { base_slice: Span::from_us(700), rules: Rules::V6_12 }, 1, Settings::DEFAULT);
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
}
