//! Bandwidth limits of groups (`cpu.max`): charging, throttling, refills and the slack timer.

use vcpulab_host::{GroupId, Span, Throttling, Time};

use super::cfs_rq::CfsRqId;
use super::hierarchy::{Fair, Flavor};
use super::load_weight::ns;
use super::task_group::Throttle;
use super::task_group::{Bandwidth, CfsBandwidth, IdlePeriod, TaskGroup};

/// CPU time beyond its debt that a throttled queue gets from the pool.
pub(super) const MIN_RUNTIME: Span = Span::from_ns(1);

/// CPU time that a queue keeps when its last entity leaves; the rest goes back to the pool.
const MIN_CFS_RQ_RUNTIME: Span = Span::from_ms(1);

/// Delay of the slack timer, which distributes CPU time that queues gave back.
const CFS_BANDWIDTH_SLACK_PERIOD: Span = Span::from_ms(5);

/// Time before a refill in which the slack timer does nothing.
const MIN_BANDWIDTH_EXPIRATION: Span = Span::from_ms(2);

impl<F: Flavor> Fair<F> {
    pub(super) fn cfs_bandwidth_of(&mut self, q: CfsRqId) -> Option<&mut CfsBandwidth> {
        let (group, _) = self.cfs_rqs[q].group?;
        self.groups[group].cfs_bandwidth.as_mut()
    }

    /// Puts a group into the state after a rest: its pool is full, and its queues have the CPU time that they keep when
    /// their last entity leaves, except the part that was used.
    pub fn reset_to_rested(&mut self, group: GroupId, used: Span) {
        if let Some(limit) = &mut self.groups[group].cfs_bandwidth {
            limit.runtime = limit.runtime_max();
            for cpu in self.groups[group].cfs_rqs.ids() {
                let q = self.cfs_rq_of(Some(group), cpu);
                self.cfs_rqs[q].runtime_remaining =
                    MIN_CFS_RQ_RUNTIME - used.clamp(Span::ZERO, MIN_CFS_RQ_RUNTIME - MIN_RUNTIME);
            }
        }
    }

    /// Sets a group's limit, or takes it away. Throttled queues are released.
    pub fn set_bandwidth(&mut self, now: Time, group: GroupId, bandwidth: Option<Bandwidth>) {
        let cfs_rqs: Vec<CfsRqId> = self.groups[group].existing_cfs_rqs().collect();
        let phase = self.groups[group].phase;
        let limit = &mut self.groups[group].cfs_bandwidth;
        if limit.as_ref().map(|limit| limit.max) == bandwidth {
            return;
        }
        match (limit.as_mut(), bandwidth) {
            (Some(limit), Some(bandwidth)) => {
                limit.max = bandwidth;
                limit.refill();
            }
            (None, Some(bandwidth)) => {
                let own = || if F::REFILLS_TOGETHER { Span::ZERO } else { offset(group, bandwidth.period) };
                *limit = Some(CfsBandwidth::new(bandwidth, Time::ZERO + phase.unwrap_or_else(own)));
            }
            (_, None) => *limit = None,
        }
        if let Some(limit) = limit {
            limit.throttled_cfs_rqs.clear();
            limit.start_period_timer(now);
        }
        self.changed_timers.push(group);
        for q in cfs_rqs {
            self.cfs_rqs[q].runtime_remaining = Span::ZERO;
            if self.cfs_rqs[q].throttled {
                self.unthrottle_cfs_rq(now, q);
            }
        }
    }

    /// Statistics of a group's limit, as in `cpu.stat`.
    pub fn throttling(&self, group: GroupId) -> Throttling {
        self.groups[group].throttling
    }

    /// Takes a group whose timers have changed from the list.
    pub fn next_changed_timers(&mut self) -> Option<GroupId> {
        self.changed_timers.pop()
    }

    /// The time of a group's next refill, if its period timer is set.
    pub fn period_timer_at(&self, group: GroupId) -> Option<Time> {
        self.groups[group].cfs_bandwidth.as_ref()?.period_timer
    }

    /// The time at which the slack timer of a group expires, if it is set.
    pub fn slack_timer_at(&self, group: GroupId) -> Option<Time> {
        self.groups[group].cfs_bandwidth.as_ref()?.slack_timer
    }

    /// Charges a queue for the time that its current entity ran.
    pub(super) fn account_cfs_rq_runtime(&mut self, q: CfsRqId, now: Time, ran: u64) {
        if self.cfs_bandwidth_of(q).is_none() {
            return;
        }
        self.cfs_rqs[q].runtime_remaining -= Span::from_ns(ran.cast_signed());
        if self.cfs_rqs[q].throttled || self.cfs_rqs[q].runtime_remaining > Span::ZERO {
            return;
        }
        let curr = self.cfs_rqs[q].curr;
        let when_charged = self.flavor.throttle() == Throttle::TaskWhenCharged;
        let most = match when_charged && !curr.is_some_and(|e| self.entities[e].on_rq) {
            true => MIN_RUNTIME,
            false => self.settings.bandwidth_slice,
        };
        if self.assign_cfs_rq_runtime(q, now, most) > Span::ZERO {
            return;
        }
        if when_charged {
            // No reschedule request: each task stops in `throttle_task` when it returns to user mode.
            self.throttle_cfs_rq(q, now);
        } else if curr.is_some() {
            self.resched_curr(q);
        }
    }

    /// Fills the queue's CPU time up to `most` from the pool. Returns the queue's CPU time after that.
    fn assign_cfs_rq_runtime(&mut self, q: CfsRqId, now: Time, most: Span) -> Span {
        let cfs_rq = &mut self.cfs_rqs[q];
        let Some((group, _)) = cfs_rq.group else { return cfs_rq.runtime_remaining };
        let Some(limit) = self.groups[group].cfs_bandwidth.as_mut() else { return cfs_rq.runtime_remaining };
        if limit.assign_runtime(now, &mut cfs_rq.runtime_remaining, most) {
            self.changed_timers.push(group);
        }
        cfs_rq.runtime_remaining
    }

    /// Throttles a queue that has used up its CPU time, as it is put or a decision passes it. True: the queue was
    /// throttled.
    pub(super) fn check_cfs_rq_runtime(&mut self, q: CfsRqId, now: Time) -> bool {
        let cfs_rq = &self.cfs_rqs[q];
        let used_up = cfs_rq.runtime_remaining <= Span::ZERO && !cfs_rq.throttled;
        let throttles = used_up
            && self.flavor.throttle() != Throttle::TaskWhenCharged
            && self.cfs_bandwidth_of(q).is_some()
            && self.assign_cfs_rq_runtime(q, now, MIN_RUNTIME) <= Span::ZERO;
        if throttles {
            self.throttle_cfs_rq(q, now);
        }
        throttles
    }

    /// Handles the first entity that is enqueued on an empty queue.
    pub(super) fn check_enqueue_throttle(&mut self, q: CfsRqId, now: Time) {
        if self.cfs_bandwidth_of(q).is_none() || self.cfs_rqs[q].curr.is_some() || self.cfs_rqs[q].throttled {
            return;
        }
        self.account_cfs_rq_runtime(q, now, 0);
        self.check_cfs_rq_runtime(q, now);
    }

    /// Gives CPU time back to the pool after the last entity left a queue.
    pub(super) fn return_cfs_rq_runtime(&mut self, q: CfsRqId, now: Time) {
        let (runtime, slice) = (self.cfs_rqs[q].runtime_remaining, self.settings.bandwidth_slice);
        let Some((group, _)) = self.cfs_rqs[q].group.filter(|_| runtime > MIN_CFS_RQ_RUNTIME) else { return };
        let Some(limit) = self.groups[group].cfs_bandwidth.as_mut() else { return };
        limit.runtime += runtime - MIN_CFS_RQ_RUNTIME;
        let refill_is_far = limit
            .period_timer
            .is_none_or(|at| at - now > CFS_BANDWIDTH_SLACK_PERIOD + MIN_BANDWIDTH_EXPIRATION);
        if limit.runtime > slice
            && !limit.throttled_cfs_rqs.is_empty()
            && refill_is_far
            && limit.slack_timer.is_none()
        {
            limit.slack_timer = Some(now + CFS_BANDWIDTH_SLACK_PERIOD);
            self.changed_timers.push(group);
        }
        self.cfs_rqs[q].runtime_remaining = MIN_CFS_RQ_RUNTIME;
    }

    /// Refills a group at the end of its period (the period timer).
    pub fn period_timer(&mut self, now: Time, group: GroupId) {
        self.changed_timers.push(group);
        let TaskGroup { cfs_bandwidth: Some(limit), throttling, .. } = &mut self.groups[group] else {
            return;
        };
        let idle = limit.idle && limit.throttled_cfs_rqs.is_empty();
        if !idle || self.flavor.idle_period() == IdlePeriod::RefillAndStop {
            limit.refill();
        }
        let period = limit.max.period;
        let over = limit.period_timer.map_or(1, |at| (now - at).max(Span::ZERO) / period + 1);
        limit.period_timer = limit.period_timer.map(|at| at + over * period);
        throttling.periods += over;
        if !limit.throttled_cfs_rqs.is_empty() {
            throttling.throttled_periods += over;
        }
        if !limit.throttled_cfs_rqs.is_empty() {
            limit.idle = false;
            self.distribute_cfs_runtime(now, group);
        } else if idle {
            limit.period_timer = None;
        } else {
            limit.idle = true;
        }
    }

    /// Distributes CPU time that queues gave back to a group's pool (the slack timer).
    pub fn slack_timer(&mut self, now: Time, group: GroupId) {
        let slice = self.settings.bandwidth_slice;
        let Some(limit) = self.groups[group].cfs_bandwidth.as_mut() else { return };
        limit.slack_timer = None;
        self.changed_timers.push(group);
        let refill_is_far = limit.period_timer.is_none_or(|at| at - now >= MIN_BANDWIDTH_EXPIRATION);
        if refill_is_far && limit.runtime > slice {
            self.distribute_cfs_runtime(now, group);
        }
    }

    /// Gives throttled queues CPU time to run, in the order of throttling, until the pool is empty.
    fn distribute_cfs_runtime(&mut self, now: Time, group: GroupId) {
        while let Some(limit) = &self.groups[group].cfs_bandwidth
            && let Some(&q) = limit.throttled_cfs_rqs.first()
            && limit.runtime > Span::ZERO
        {
            if self.flavor.throttle() == Throttle::TaskWhenCharged {
                F::update_curr(self, q, now);
            }
            let Some(limit) = self.groups[group].cfs_bandwidth.as_mut() else { return };
            let amount = limit.runtime.min(MIN_RUNTIME - self.cfs_rqs[q].runtime_remaining);
            limit.runtime -= amount;
            self.cfs_rqs[q].runtime_remaining += amount;
            if self.cfs_rqs[q].runtime_remaining <= Span::ZERO {
                return;
            }
            limit.throttled_cfs_rqs.remove(0);
            self.unthrottle_cfs_rq(now, q);
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
    use vcpulab_host::{Class, GroupConfig, PcpuId};

    use super::super::cfs::{self, Cfs};
    use super::super::eevdf::Eevdf;
    use super::super::hierarchy::Settings;
    use super::*;

    #[test]
    fn a_group_that_rested_has_its_burst_and_what_is_left_of_the_millisecond_that_queues_keep() {
        let mut fair = Fair::new(
            Eevdf::with_base_slice(super::super::eevdf::Rules::V6_12, Span::from_us(700)),
            1,
            Settings::DEFAULT,
        );
        let ms = Span::from_ms;
        let group = fair.add_group(&GroupConfig {
            quota: Some(ms(20)),
            period: ms(100),
            burst: ms(15),
            ..GroupConfig::NEW
        });
        let left = |fair: &mut Fair<Eevdf>| {
            let q = fair.cfs_rq_of(Some(group), PcpuId(0));
            (
                fair.groups[group].cfs_bandwidth.as_ref().map(|limit| limit.runtime),
                fair.cfs_rqs[q].runtime_remaining,
            )
        };
        assert_eq!(left(&mut fair), (Some(ms(20)), Span::ZERO));
        fair.reset_to_rested(group, Span::from_us(300));
        assert_eq!(left(&mut fair), (Some(ms(35)), Span::from_us(700)));
        fair.reset_to_rested(group, ms(9));
        assert_eq!(left(&mut fair), (Some(ms(35)), MIN_RUNTIME));
    }

    /// A task of a limited group runs over the end of a period and blocks, which gives CPU time back to the full pool. At the end of
    /// the next period the group has used nothing.
    #[test]
    fn a_period_without_use_ends_with_a_full_pool_or_the_pool_as_it_is() {
        let (ms, cpu) = (Span::from_ms, PcpuId(0));
        let at = |time: i64| Time::ZERO + ms(time);
        let pool = |rules: cfs::Rules| {
            let mut fair = Fair::new(Cfs::scaled(rules, 1), 1, Settings::DEFAULT);
            let group =
                fair.add_group(&GroupConfig { quota: Some(ms(20)), period: ms(100), ..GroupConfig::NEW });
            let task = fair.add_task(cpu, Some(group), Class::Other, 0);
            fair.wake(at(99), cpu, task);
            assert_eq!(fair.pick_next_task(at(99), cpu), Some(task));
            fair.period_timer(at(100), group);
            fair.block(at(101), cpu);
            assert_eq!(fair.pick_next_task(at(101), cpu), None);
            assert_eq!(fair.period_timer_at(group), Some(at(200)));
            fair.period_timer(at(200), group);
            assert_eq!(fair.period_timer_at(group), None);
            let pool =
                |fair: &Fair<Cfs>| fair.groups[group].cfs_bandwidth.as_ref().map(|limit| limit.runtime);
            let idle = pool(&fair);
            fair.wake(at(210), cpu, task);
            assert_eq!(fair.pick_next_task(at(210), cpu), Some(task));
            fair.task_tick(at(212), cpu);
            assert_eq!(fair.period_timer_at(group), Some(at(300)), "a request starts the timer");
            fair.period_timer(at(300), group);
            [idle, pool(&fair)]
        };
        assert_eq!(pool(cfs::Rules::V6_1), [Some(ms(20)); 2]);
        assert_eq!(pool(cfs::Rules::V5_15), [Some(ms(20)); 2]);
        // A slice of 5 ms less the 2 ms that it ran; 1 ms stays on the CPU.
        assert_eq!(pool(cfs::Rules::V5_10), [Some(ms(22)), Some(ms(20))]);
    }
}
