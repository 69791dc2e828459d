//! Lengths of requests (`slice`): the base slice, or a task's own (`sched_setattr`, 6.12 and later). The entity of a group has the
//! shortest slice of the entities on the group's queue.

use vcpulab_host::Span;

use super::cfs_rq::{CfsRqId, EntityId, Kind, TaskId, vruntime_diff};
use super::eevdf::{Eevdf, Protection};
use super::hierarchy::{Fair, Flavor};
use super::load_weight::ns;

impl<F: Flavor> Fair<F> {
    /// Sets the length of a task's requests; `None`: the kernel's. It holds from the next request on.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<Span>) {
        self.own_slices |= slice.is_some();
        F::set_slice(&mut self.entities[self.tasks[task].entity], slice);
    }
}

impl Fair<Eevdf> {
    /// Length of an entity's requests.
    pub(super) fn slice(&self, e: EntityId) -> Span {
        self.entities[e].policy.slice.unwrap_or(self.flavor.base_slice)
    }

    /// Slices of the entities on a queue, the current one included.
    fn slices_on(&self, q: CfsRqId) -> impl Iterator<Item = Span> + '_ {
        let queued = self.cfs_rqs[q].timeline.iter().copied();
        queued.chain(self.competing_curr(q)).map(|e| self.slice(e))
    }

    /// The shortest slice on a queue.
    pub(super) fn min_slice(&self, q: CfsRqId) -> Span {
        let own = self.own_slices.then(|| self.slices_on(q).min()).flatten();
        own.unwrap_or(self.flavor.base_slice)
    }

    /// The longest slice on a queue.
    pub(super) fn max_slice(&self, q: CfsRqId) -> Span {
        let own = self.own_slices.then(|| self.slices_on(q).max()).flatten();
        own.unwrap_or(self.flavor.base_slice)
    }

    /// Gives the entity of a group the shortest slice on the group's queue. An empty queue leaves the slice.
    pub(super) fn update_group_slice(&mut self, e: EntityId) {
        let Kind::Group(own) = self.entities[e].kind else { return };
        if let Some(least) = self.own_slices.then(|| self.slices_on(own).min()).flatten() {
            self.entities[e].policy.slice = Some(least).filter(|&least| least != self.flavor.base_slice);
        }
    }

    /// Virtual time in which an entity runs for a slice.
    pub(super) fn virtual_slice(&self, e: EntityId, slice: Span) -> u64 {
        self.calc_delta_fair(e, ns(slice))
    }

    /// Protects an entity that becomes current: for its request, or from 6.17 on for less if another entity has a shorter slice.
    pub(super) fn set_protect_slice(&mut self, e: EntityId) {
        let q = self.competes_on(e);
        let deadline = self.entities[e].policy.deadline;
        self.entities[e].policy.vprot = deadline;
        if !self.own_slices || self.flavor.rules.protection != Protection::UntilVirtualTime {
            return;
        }
        let shortest = self.min_slice(q);
        if shortest >= self.slice(e) {
            return;
        }
        let until = match self.is_flat() {
            true => self.avg_of_others(q).wrapping_add(1),
            false => self.entities[e].vruntime.wrapping_add(self.virtual_slice(e, shortest)),
        };
        self.limit_protection(e, until);
    }

    /// Ends the protection of an entity at this virtual time at the latest.
    pub(super) fn limit_protection(&mut self, e: EntityId, until: u64) {
        let request = &mut self.entities[e].policy;
        if vruntime_diff(until, request.vprot) < 0 {
            request.vprot = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{Class, GroupConfig, PcpuId, Time};

    use super::super::eevdf::Rules;
    use super::super::hierarchy::Settings;
    use super::*;

    const CPU: PcpuId = PcpuId(0);
    const BASE: Span = Span::from_us(3_000);
    const SHORT: Span = Span::from_us(300);

    fn at(us: i64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn fair(rules: Rules) -> Fair<Eevdf> {
        Fair::new(Eevdf::with_base_slice(rules, BASE), 1, Settings::DEFAULT)
    }

    const SINCE_6_12: [Rules; 7] =
        [Rules::V6_12, Rules::V6_17, Rules::V6_18, Rules::V7_0, Rules::V7_1, Rules::V7_2, Rules::V7_3];

    /// A task with a short slice wakes beside a hog within the hog's request.
    #[test]
    fn a_shorter_request_preempts() {
        for rules in SINCE_6_12 {
            let preempts = |slice| {
                let mut fair = fair(rules);
                let [hog, job] = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
                fair.set_slice(job, slice);
                fair.wake(at(0), CPU, hog);
                assert_eq!(fair.pick_next_task(at(0), CPU), Some(hog));
                fair.wake(at(1_000), CPU, job);
                let flagged = fair.need_resched(CPU);
                flagged && fair.pick_next_task(at(1_000), CPU) == Some(job)
            };
            assert_eq!([None, Some(SHORT)].map(preempts), [false, true], "{rules:?}");
        }
    }

    #[test]
    fn requests_have_the_length_of_the_own_slice() {
        for rules in SINCE_6_12 {
            let mut fair = fair(rules);
            let [first, second] = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
            fair.set_slice(first, Some(SHORT));
            let length = |fair: &Fair<Eevdf>, task: TaskId| {
                let entity = &fair.entities[fair.tasks[task].entity];
                vruntime_diff(entity.policy.deadline, entity.vruntime)
            };
            fair.wake(at(0), CPU, first);
            fair.wake(at(0), CPU, second);
            assert_eq!([first, second].map(|task| length(&fair, task)), [SHORT.ns(), BASE.ns()]);
            assert_eq!(fair.pick_next_task(at(0), CPU), Some(first));
            fair.task_tick(at(310), CPU);
            assert!(fair.need_resched(CPU), "the request is used up: {rules:?}");
        }
    }

    #[test]
    fn a_group_has_the_shortest_slice_in_it() {
        let mut fair = fair(Rules::V6_12);
        let group = fair.add_group(&GroupConfig::NEW);
        let [long, short] = [0, 1].map(|_| fair.add_task(CPU, Some(group), Class::Other, 0));
        fair.set_slice(short, Some(SHORT));
        let slice = |fair: &Fair<Eevdf>| {
            let q = fair.groups[group].cfs_rqs[CPU].expect("a task has woken");
            fair.slice(fair.cfs_rqs[q].group.expect("a group's queue").1)
        };
        fair.wake(at(0), CPU, long);
        assert_eq!(slice(&fair), BASE);
        fair.wake(at(1), CPU, short);
        assert_eq!(slice(&fair), SHORT);
        fair.dequeue_task(at(2), short, false);
        assert_eq!(slice(&fair), BASE);
    }

    /// Up to 6.16 only a wake-up ends the protection of a longer request; from 6.17 on it is limited as the request begins.
    #[test]
    fn shorter_slices_limit_protection_from_6_17_on() {
        for (rules, protected) in [
            (Rules::V6_12, BASE.ns()),
            (Rules::V6_17, SHORT.ns()),
            (Rules::V7_2, SHORT.ns()),
            // The task is protected while it is eligible: the other one is at the same virtual time.
            (Rules::V7_3, 1),
        ] {
            let mut fair = fair(rules);
            let [long, short] = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
            fair.set_slice(short, Some(SHORT));
            fair.wake(at(0), CPU, long);
            fair.wake(at(0), CPU, short);
            fair.set_next_task(at(0), CPU, Some(long));
            let entity = &fair.entities[fair.tasks[long].entity];
            assert_eq!(vruntime_diff(entity.policy.vprot, entity.vruntime), protected, "{rules:?}");
        }
    }

    /// The limit of a lag: by the task's own slice up to 6.19.0, then by the longest slice on the queue.
    #[test]
    fn lags_are_limited_by_slices() {
        let long = Span::from_us(50_000);
        for (rules, expected) in [(Rules::V6_12, 2 * BASE), (Rules::V7_0, long + Span::from_ms(4))] {
            let mut fair = fair(rules);
            let [other, task] = [0, 1].map(|_| fair.add_task(CPU, None, Class::Other, 0));
            fair.set_slice(other, Some(long));
            fair.wake(at(0), CPU, other);
            fair.wake(at(0), CPU, task);
            assert_eq!(fair.lag_limit_of(fair.tasks[task].entity), expected, "{rules:?}");
        }
    }
}
