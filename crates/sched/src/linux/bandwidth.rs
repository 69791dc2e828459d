//! Bandwidth limits of groups (`cpu.max`): charging, throttling, refills and the slack timer.

use vcpulab_host::{GroupId, Span, Throttling, Time};

use super::cfs_rq::QueueId;
use super::hierarchy::{Fair, Flavor, Leaving};
use super::limit::{Bandwidth, Group, Limit};
use super::load_weight::ns;

/// CPU time beyond its debt that a throttled queue gets from the pool.
const LEAST: Span = Span::from_ns(1);

/// CPU time that a queue keeps when its last entity leaves; the rest goes back to the pool.
const KEPT: Span = Span::from_ms(1);

/// Delay of the slack timer, which distributes CPU time that queues gave back.
const SLACK: Span = Span::from_ms(5);

/// Time before a refill in which the slack timer does nothing.
const REFILL_NEAR: Span = Span::from_ms(2);

impl<F: Flavor> Fair<F> {
    fn limit_of(&mut self, q: QueueId) -> Option<&mut Limit> {
        let (group, _) = self.queues[q].group?;
        self.groups[group].limit.as_mut()
    }

    /// Puts a group into the state after a rest: its pool is full, and its queues have the CPU time that they keep when
    /// their last entity leaves, except the part that was used.
    pub fn rest(&mut self, group: GroupId, used: Span) {
        if let Some(limit) = &mut self.groups[group].limit {
            limit.pool = limit.most();
            for cpu in self.groups[group].queues.ids() {
                let q = self.queue_of(Some(group), cpu);
                self.queues[q].runtime = KEPT - used.clamp(Span::ZERO, KEPT - LEAST);
            }
        }
    }

    /// Sets a group's limit, or takes it away. Throttled queues are released.
    pub fn set_limit(&mut self, now: Time, group: GroupId, bandwidth: Option<Bandwidth>) {
        let made: Vec<QueueId> = self.groups[group].made().collect();
        let phase = self.groups[group].phase;
        let limit = &mut self.groups[group].limit;
        if limit.as_ref().map(|limit| limit.bandwidth) == bandwidth {
            return;
        }
        match (limit.as_mut(), bandwidth) {
            (Some(limit), Some(bandwidth)) => {
                limit.bandwidth = bandwidth;
                limit.fill();
            }
            (None, Some(bandwidth)) => {
                let own = || if F::REFILLS_TOGETHER { Span::ZERO } else { offset(group, bandwidth.period) };
                *limit = Some(Limit::new(bandwidth, Time::ZERO + phase.unwrap_or_else(own)));
            }
            (_, None) => *limit = None,
        }
        if let Some(limit) = limit {
            limit.throttled.clear();
            limit.start(now);
        }
        self.retimed.push(group);
        for q in made {
            self.queues[q].runtime = Span::ZERO;
            if self.queues[q].throttled {
                self.unthrottle(now, q);
            }
        }
    }

    /// Statistics of a group's limit, as in `cpu.stat`.
    pub fn throttling(&self, group: GroupId) -> Throttling {
        self.groups[group].throttling
    }

    /// Takes a group whose timers have changed from the list.
    pub fn next_retimed(&mut self) -> Option<GroupId> {
        self.retimed.pop()
    }

    /// The time of a group's next refill, if its period timer is set.
    pub fn refill_at(&self, group: GroupId) -> Option<Time> {
        self.groups[group].limit.as_ref()?.refill
    }

    /// The time at which the slack timer of a group expires, if it is set.
    pub fn slack_at(&self, group: GroupId) -> Option<Time> {
        self.groups[group].limit.as_ref()?.slack
    }

    /// Charges a queue for the time that its current entity ran (`account_cfs_rq_runtime`).
    pub(super) fn charge_queue(&mut self, q: QueueId, now: Time, ran: u64) {
        if self.limit_of(q).is_none() {
            return;
        }
        self.queues[q].runtime -= Span::from_ns(ran.cast_signed());
        if self.queues[q].throttled || self.queues[q].runtime > Span::ZERO {
            return;
        }
        let left = self.request(q, now, self.settings.bandwidth_slice);
        if left <= Span::ZERO && self.queues[q].current.is_some() {
            self.flag(q);
        }
    }

    /// Fills the queue's CPU time up to `most` from the pool. Returns the queue's CPU time after that.
    fn request(&mut self, q: QueueId, now: Time, most: Span) -> Span {
        let queue = &mut self.queues[q];
        let Some((group, _)) = queue.group else { return queue.runtime };
        let Some(limit) = self.groups[group].limit.as_mut() else { return queue.runtime };
        if limit.give(now, &mut queue.runtime, most) {
            self.retimed.push(group);
        }
        queue.runtime
    }

    /// Throttles a queue that has used up its CPU time (`throttle_cfs_rq`). True: the queue was throttled.
    pub(super) fn throttle_if_exhausted(&mut self, q: QueueId, now: Time) -> bool {
        let limited = self.limit_of(q).is_some();
        let exhausted = limited && self.queues[q].runtime <= Span::ZERO && !self.queues[q].throttled;
        if !exhausted || self.request(q, now, LEAST) > Span::ZERO {
            return false;
        }
        if let Some(limit) = self.limit_of(q) {
            limit.throttled.push(q);
        }
        (self.queues[q].throttled, self.queues[q].throttled_at) = (true, now);
        if let Some((_, entity)) = self.queues[q].group {
            let leaving = Leaving { sleep: true, throttled: true, finish: false };
            self.dequeue_upwards(entity, now, leaving, self.queues[q].tasks);
        }
        true
    }

    /// Handles the first entity that is enqueued on an empty queue.
    pub(super) fn first_enqueued(&mut self, q: QueueId, now: Time) {
        if self.limit_of(q).is_none() || self.queues[q].current.is_some() || self.queues[q].throttled {
            return;
        }
        self.charge_queue(q, now, 0);
        self.throttle_if_exhausted(q, now);
    }

    /// Gives CPU time back to the pool after the last entity left a queue.
    pub(super) fn last_dequeued(&mut self, q: QueueId, now: Time) {
        let (runtime, slice) = (self.queues[q].runtime, self.settings.bandwidth_slice);
        let Some((group, _)) = self.queues[q].group.filter(|_| runtime > KEPT) else { return };
        let Some(limit) = self.groups[group].limit.as_mut() else { return };
        limit.pool += runtime - KEPT;
        let far = limit.refill.is_none_or(|at| at - now > SLACK + REFILL_NEAR);
        if limit.pool > slice && !limit.throttled.is_empty() && far && limit.slack.is_none() {
            limit.slack = Some(now + SLACK);
            self.retimed.push(group);
        }
        self.queues[q].runtime = KEPT;
    }

    /// Refills a group at the end of its period (the period timer).
    pub fn refill(&mut self, now: Time, group: GroupId) {
        self.retimed.push(group);
        let Group { limit: Some(limit), throttling, .. } = &mut self.groups[group] else { return };
        limit.fill();
        let period = limit.bandwidth.period;
        let over = limit.refill.map_or(1, |at| (now - at).max(Span::ZERO) / period + 1);
        limit.refill = limit.refill.map(|at| at + over * period);
        throttling.periods += over;
        if !limit.throttled.is_empty() {
            throttling.throttled_periods += over;
        }
        if !limit.throttled.is_empty() {
            limit.idle = false;
            self.distribute(now, group);
        } else if limit.idle {
            limit.refill = None;
        } else {
            limit.idle = true;
        }
    }

    /// Distributes CPU time that queues gave back to a group's pool (the slack timer).
    pub fn slack(&mut self, now: Time, group: GroupId) {
        let slice = self.settings.bandwidth_slice;
        let Some(limit) = self.groups[group].limit.as_mut() else { return };
        limit.slack = None;
        self.retimed.push(group);
        let far = limit.refill.is_none_or(|at| at - now >= REFILL_NEAR);
        if far && limit.pool > slice {
            self.distribute(now, group);
        }
    }

    /// Gives throttled queues CPU time to run, in the order of throttling, until the pool is empty.
    fn distribute(&mut self, now: Time, group: GroupId) {
        while let Some(limit) = self.groups[group].limit.as_mut()
            && let Some(&q) = limit.throttled.first()
            && limit.pool > Span::ZERO
        {
            let amount = limit.pool.min(LEAST - self.queues[q].runtime);
            limit.pool -= amount;
            self.queues[q].runtime += amount;
            if self.queues[q].runtime <= Span::ZERO {
                return;
            }
            limit.throttled.remove(0);
            self.unthrottle(now, q);
        }
    }

    fn unthrottle(&mut self, now: Time, q: QueueId) {
        self.queues[q].throttled = false;
        let Some((group, entity)) = self.queues[q].group else { return };
        self.groups[group].throttling.throttled_ns += now - self.queues[q].throttled_at;
        if self.queues[q].load == 0 {
            return;
        }
        if F::delayed(&self.entities[entity]) {
            F::dequeue(self, entity, now, Leaving { sleep: true, finish: true, throttled: false });
        }
        self.enqueue_upwards(entity, now, true, false, self.queues[q].tasks);
        let cpu = self.queues[q].cpu;
        if self.running(cpu).is_none() {
            self.flag_idle(cpu);
        }
    }
}

/// Offset of a group's periods. The kernel draws it at random when the group is made; here the group's number
/// determines it, so that it is the same in each run.
fn offset(group: GroupId, period: Span) -> Span {
    let mut x = u64::from(group.0).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Span::from_ns(((x ^ (x >> 31)) % ns(period).max(1)).cast_signed())
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{GroupConfig, PcpuId};

    use super::super::eevdf::Eevdf;
    use super::super::hierarchy::Settings;
    use super::*;

    #[test]
    fn a_group_that_rested_has_its_burst_and_what_is_left_of_the_millisecond_that_queues_keep() {
        let mut fair = Fair::new(Eevdf { base_slice: Span::from_us(700) }, 1, Settings::DEFAULT);
        let ms = Span::from_ms;
        let group = fair.add_group(&GroupConfig {
            quota: Some(ms(20)),
            period: ms(100),
            burst: ms(15),
            ..GroupConfig::NEW
        });
        let left = |fair: &mut Fair<Eevdf>| {
            let q = fair.queue_of(Some(group), PcpuId(0));
            (fair.groups[group].limit.as_ref().map(|limit| limit.pool), fair.queues[q].runtime)
        };
        assert_eq!(left(&mut fair), (Some(ms(20)), Span::ZERO));
        fair.rest(group, Span::from_us(300));
        assert_eq!(left(&mut fair), (Some(ms(35)), Span::from_us(700)));
        fair.rest(group, ms(9));
        assert_eq!(left(&mut fair), (Some(ms(35)), LEAST));
    }
}
