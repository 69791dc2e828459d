//! EEVDF, Linux's fair scheduler since 6.6 (here: 6.12): of the entities whose lag is not negative, the one with the
//! earliest virtual deadline runs. (Stoica, Abdel-Wahab 1995.)

use vcpulab_host::{Class, Span, Time};

use super::cfs_rq::{Entity, EntityId, QueueId, Task, ahead};
use super::hierarchy::{Fair, Flavor, Leaving};
use super::load_weight::{Weight, ns};

/// Virtual time at which queues begin.
const BEGINNING: u64 = 0u64.wrapping_sub(1 << 20);

/// Tunables of EEVDF.
#[derive(Clone, Copy, Debug)]
pub struct Eevdf {
    /// Length of every request (`base_slice`).
    pub base_slice: Span,
}

/// State that EEVDF keeps for each entity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    deadline: u64,
    /// Lag with which the entity left its queue, as virtual time; positive: it got less than its share.
    lag: i64,
    /// Deadline when the entity became current. While it is unchanged, the entity is not preempted (`RUN_TO_PARITY`).
    guard: u64,
    /// Whether the deadline is relative to the virtual run time.
    relative: bool,
    /// Whether the entity blocked while its lag was negative, and competes until its lag is 0 (a delayed dequeue).
    delayed: bool,
}

/// State that EEVDF keeps for each queue: the sums behind its average virtual run time.
#[derive(Clone, Debug)]
pub struct Sums {
    /// Reference point of the sums of virtual times.
    zero: u64,
    /// Sums over the tree: plain weights times virtual times relative to `zero`, and plain weights.
    moments: i64,
    weights: i64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums { zero: BEGINNING, moments: 0, weights: 0 }
    }
}

fn plain(entity: &Entity<Request>) -> i64 {
    entity.weight.plain().cast_signed()
}

impl Fair<Eevdf> {
    /// The sums over the tree and the current entity.
    fn sums(&self, q: QueueId) -> (i64, i64) {
        let queue = &self.queues[q];
        let Sums { zero, moments, weights } = queue.own;
        match queue.current.map(|e| &self.entities[e]).filter(|current| current.queued) {
            Some(current) => {
                let moment = ahead(current.v, zero).wrapping_mul(plain(current));
                (moments.wrapping_add(moment), weights + plain(current))
            }
            None => (moments, weights),
        }
    }

    /// Average of the virtual run times, weighted (`avg_vruntime`); `zero` moves there.
    fn virtual_average(&mut self, q: QueueId) -> u64 {
        let (moments, weights) = self.sums(q);
        let queue = &self.queues[q];
        let zero = queue.own.zero;
        let current = queue.current.map(|e| &self.entities[e]).filter(|current| current.queued);
        let average = if queue.own.weights > 0 {
            zero.wrapping_add_signed(moments.div_euclid(weights))
        } else {
            current.map_or(zero, |current| current.v)
        };
        let own = &mut self.queues[q].own;
        own.moments = own.moments.wrapping_sub(ahead(average, zero).wrapping_mul(own.weights));
        own.zero = average;
        average
    }

    fn eligible(&self, e: EntityId) -> bool {
        let entity = &self.entities[e];
        let (moments, weights) = self.sums(entity.queue);
        let behind = ahead(entity.v, self.queues[entity.queue].own.zero);
        i128::from(moments) >= i128::from(behind) * i128::from(weights)
    }

    fn slice(&self) -> u64 {
        ns(self.flavor.base_slice)
    }

    /// Limit of the lag, positive or negative, with which an entity of the weight of nice 0 may leave its queue.
    fn most_lag(&self) -> Span {
        (2 * self.flavor.base_slice).max(self.settings.tick)
    }

    fn limited_lag(&mut self, e: EntityId) -> i64 {
        let average = self.virtual_average(self.entities[e].queue);
        let entity = &self.entities[e];
        let limit = entity.weight.virtual_time(ns(self.most_lag())).cast_signed();
        ahead(average, entity.v).clamp(-limit, limit)
    }

    fn new_deadline(&self, e: EntityId) -> u64 {
        let entity = &self.entities[e];
        entity.v.wrapping_add(entity.weight.virtual_time(self.slice()))
    }

    fn place(&mut self, e: EntityId) {
        let q = self.entities[e].queue;
        let average = self.virtual_average(q);
        let mut lag = 0;
        if self.queues[q].nr > 0 {
            let (_, weights) = self.sums(q);
            let own = plain(&self.entities[e]);
            let exact = i128::from(self.entities[e].own.lag) * i128::from(weights + own);
            lag = (exact / i128::from(weights.max(1))) as i64;
        }
        let v = average.wrapping_add_signed(lag.wrapping_neg());
        self.entities[e].v = v;
        let deadline = self.new_deadline(e);
        let request = &mut self.entities[e].own;
        request.deadline = if request.relative { request.deadline.wrapping_add(v) } else { deadline };
        request.relative = false;
    }

    /// The eligible entity with the earliest deadline (`pick_eevdf`).
    fn best(&self, q: QueueId) -> EntityId {
        let queue = &self.queues[q];
        let current = queue.current.filter(|&e| self.entities[e].queued);
        if queue.nr == 1 {
            return current.unwrap_or_else(|| queue.tree[0]);
        }
        let current = current.filter(|&e| self.eligible(e));
        if let Some(e) = current.filter(|&e| self.entities[e].own.guard == self.entities[e].own.deadline) {
            return e;
        }
        let earliest = queue.tree.iter().copied().find(|&e| self.eligible(e));
        let deadline = |e: EntityId| self.entities[e].own.deadline;
        match (current, earliest) {
            (Some(c), Some(b)) if ahead(deadline(c), deadline(b)) < 0 => c,
            (_, Some(b)) => b,
            // With rounding nobody might be eligible: then it is the first.
            (current, None) => current.unwrap_or_else(|| queue.tree[0]),
        }
    }
}

impl Flavor for Eevdf {
    type Entity = Request;
    type Queue = Sums;
    const THROTTLES_CURRENT_ONLY: bool = false;
    const EMPTY_KEEPS_WEIGHT: bool = true;
    const REFILLS_TOGETHER: bool = false;
    const CONTRIBUTES_EVERY: Span = Span::from_ms(1);

    fn key(entity: &Entity<Request>) -> u64 {
        entity.own.deadline
    }

    fn lag_max(fair: &Fair<Self>) -> Span {
        fair.most_lag()
    }

    fn set_lag(entity: &mut Entity<Request>, lag: Span) {
        entity.own.lag = lag.ns();
    }

    fn delayed(entity: &Entity<Request>) -> bool {
        entity.own.delayed
    }

    fn fresh(fair: &mut Fair<Self>, e: EntityId) {
        fair.entities[e].own = Request::default();
    }

    fn update(fair: &mut Fair<Self>, q: QueueId, now: Time) {
        let Some((e, ran)) = fair.charge_current(q, now) else { return };
        let entity = &fair.entities[e];
        let used_up = ahead(entity.v, entity.own.deadline) >= 0;
        if used_up {
            let deadline = fair.new_deadline(e);
            fair.entities[e].own.deadline = deadline;
            fair.virtual_average(q);
        }
        fair.charge_queue(q, now, ran);
        if fair.queues[q].nr == 1 {
            return;
        }
        let Request { guard, deadline, .. } = fair.entities[e].own;
        if used_up || (guard != deadline && !fair.eligible(e)) {
            fair.flag(q);
            fair.clear_buddies(e);
        }
    }

    fn enqueue(fair: &mut Fair<Self>, e: EntityId, now: Time, _wakeup: bool, _moved: bool) {
        let q = fair.entities[e].queue;
        Self::update(fair, q, now);
        fair.refresh_weight(e, now);
        fair.place(e);
        fair.count_in(e, now);
    }

    fn dequeue(fair: &mut Fair<Self>, e: EntityId, now: Time, leaving: Leaving) -> bool {
        let q = fair.entities[e].queue;
        Self::update(fair, q, now);
        fair.clear_buddies(e);
        if !leaving.finish && leaving.sleep && !leaving.throttled && !fair.eligible(e) {
            fair.entities[e].own.delayed = true;
            return false;
        }
        let lag = fair.limited_lag(e);
        fair.count_out(e, now);
        let entity = &mut fair.entities[e];
        entity.own.lag = if leaving.finish { lag.min(0) } else { lag };
        entity.own.delayed = false;
        if !leaving.sleep {
            entity.own.deadline = entity.own.deadline.wrapping_sub(entity.v);
            entity.own.relative = true;
        }
        if fair.queues[q].nr == 0 {
            fair.last_dequeued(q, now);
        }
        fair.refresh_weight(e, now);
        true
    }

    fn requeue(fair: &mut Fair<Self>, e: EntityId) {
        if fair.limited_lag(e) > 0 {
            let q = fair.entities[e].queue;
            let current = fair.queues[q].current == Some(e);
            if !current {
                fair.take_out_of_tree(e);
            }
            fair.queues[q].nr -= 1;
            fair.entities[e].own.lag = 0;
            fair.place(e);
            fair.queues[q].nr += 1;
            if !current {
                fair.put_into_tree(e);
            }
        }
        fair.entities[e].own.delayed = false;
    }

    fn in_tree(fair: &mut Fair<Self>, q: QueueId, e: EntityId, there: bool) {
        let weight = plain(&fair.entities[e]);
        let v = fair.entities[e].v;
        let own = &mut fair.queues[q].own;
        let moment = ahead(v, own.zero).wrapping_mul(weight);
        let (moment, weight) = if there { (moment, weight) } else { (moment.wrapping_neg(), -weight) };
        own.moments = own.moments.wrapping_add(moment);
        own.weights += weight;
    }

    fn pick(fair: &mut Fair<Self>, q: QueueId) -> EntityId {
        let next = fair.queues[q].next.filter(|&next| fair.eligible(next));
        next.unwrap_or_else(|| fair.best(q))
    }

    fn begin(entity: &mut Entity<Request>) {
        entity.own.guard = entity.own.deadline;
    }

    /// No test: charging has raised the flag, if there is a reason.
    fn tick(_fair: &mut Fair<Self>, _e: EntityId) {}

    fn preempts(
        fair: &mut Fair<Self>,
        [_, waking]: [Task; 2],
        [current, woken]: [EntityId; 2],
        now: Time,
    ) -> bool {
        match (fair.entities[current].idle, fair.entities[woken].idle) {
            (true, false) => {
                let request = &mut fair.entities[current].own;
                request.guard = request.deadline.wrapping_add(1);
                return true;
            }
            (false, true) => return false,
            _ if matches!(waking.class, Class::Batch | Class::Idle) => return false,
            _ => {}
        }
        let q = fair.entities[woken].queue;
        Self::update(fair, q, now);
        // Requests are all of one length: none is preempted for a shorter one.
        fair.best(q) == woken
    }

    fn yielded(fair: &mut Fair<Self>, e: EntityId, _now: Time) {
        if fair.eligible(e) {
            fair.entities[e].v = fair.entities[e].own.deadline;
            let deadline = fair.new_deadline(e);
            fair.entities[e].own.deadline = deadline;
            fair.virtual_average(fair.entities[e].queue);
        }
    }

    fn reweigh(fair: &mut Fair<Self>, e: EntityId, weight: Weight, now: Time) {
        let q = fair.entities[e].queue;
        let scaled = |x: i64, before: Weight| {
            (i128::from(x) * i128::from(before.full) / i128::from(weight.full.max(1))) as i64
        };
        fair.average(e, now);
        let before = fair.entities[e].weight;
        if !fair.entities[e].queued {
            let request = &mut fair.entities[e].own;
            request.lag = scaled(request.lag, before);
            fair.entities[e].weight = weight;
            return;
        }
        Self::update(fair, q, now);
        let average = fair.virtual_average(q);
        let lag = fair.limited_lag(e);
        let current = fair.queues[q].current == Some(e);
        if !current {
            fair.take_out_of_tree(e);
        }
        let entity = &mut fair.entities[e];
        if entity.v != average {
            entity.v = average.wrapping_add_signed(scaled(lag, before).wrapping_neg());
        }
        let ahead_of = ahead(entity.own.deadline, average);
        entity.own.deadline = average.wrapping_add_signed(scaled(ahead_of, before));
        entity.weight = weight;
        let load = fair.queues[q].load - before.full;
        fair.queues[q].load = load + weight.full;
        if !current {
            fair.put_into_tree(e);
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
        let mut fair = Fair::new(Eevdf { base_slice: Span::from_us(700) }, 1, Settings::DEFAULT);
        let tasks = [0, 1, 2].map(|_| fair.add_task(CPU, None, Class::Other, 0));
        for task in tasks {
            fair.wake(at(0), CPU, task);
        }
        assert_eq!(fair.choose(at(0), CPU), Some(tasks[0]));
        let mut turns = vec![tasks[0]];
        for tick in 1..30 {
            fair.tick(at(4000 * tick), CPU);
            assert!(fair.flagged(CPU));
            turns.extend(fair.choose(at(4000 * tick + 2), CPU));
        }
        assert!(turns.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(
            tasks.iter().all(|task| (9..=11).contains(&turns.iter().filter(|turn| *turn == task).count()))
        );
    }
}
