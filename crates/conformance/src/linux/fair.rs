//! The schedulers of Linux's fair class, driven step by step.

use vcpulab_host::{Class, GroupConfig, GroupId, PcpuId, Span, Time};
use vcpulab_sched::linux::{Cfs, Eevdf, Fair, Flavor, Settings, TaskId, Tuned, cfs};

use super::error::LinuxError;
use super::folder::Setup;
use super::outcome::Outcome;
use super::steps::{Steps, replay};
use super::trace::Line;

impl<F: Flavor> Steps for Fair<F> {
    type Task = TaskId;

    fn add_group(&mut self, config: &GroupConfig) -> GroupId {
        let group = Fair::add_group(self, config);
        // Each thread of a recording has run for an instant long before.
        self.reset_to_rested(group, Span::ZERO);
        group
    }

    fn add_task(&mut self, group: Option<GroupId>, class: Class, nice: i8) -> TaskId {
        Fair::add_task(self, PcpuId(0), group, class, nice)
    }

    fn set_vruntime_before(&mut self, task: TaskId, virtual_time: u64, ran: u64) {
        Fair::set_vruntime_before(self, task, virtual_time, ran);
    }

    fn lag_limit(&self) -> Span {
        F::lag_limit(self)
    }

    fn set_vlag(&mut self, task: TaskId, lag: Span) {
        Fair::set_vlag(self, task, lag);
    }

    fn set_used_runtime(&mut self, group: GroupId, used: Span) {
        self.reset_to_rested(group, used);
    }

    fn set_group_vlag(&mut self, group: GroupId, lag: Span) {
        Fair::set_group_vlag(self, group, PcpuId(0), lag);
    }

    fn wake(&mut self, now: Time, cpu: PcpuId, task: TaskId) {
        Fair::wake(self, now, cpu, task);
    }

    fn block(&mut self, now: Time, cpu: PcpuId) {
        Fair::block(self, now, cpu);
    }

    fn yield_task(&mut self, now: Time, cpu: PcpuId) {
        Fair::yield_task(self, now, cpu);
    }

    fn throttle_task(&mut self, now: Time, cpu: PcpuId) -> bool {
        Fair::throttle_task(self, now, cpu)
    }

    fn exhaust_limit(&mut self, now: Time, cpu: PcpuId) -> bool {
        Fair::exhaust_limit(self, now, cpu)
    }

    fn run_despite_limits(&mut self, now: Time, task: TaskId) {
        if self.is_throttled(task) {
            self.replenish_limits(now, task);
        }
    }

    fn task_tick(&mut self, now: Time, cpu: PcpuId) {
        Fair::task_tick(self, now, cpu);
    }

    fn hrtick_at(&self, cpu: PcpuId) -> Option<Time> {
        Fair::hrtick_at(self, cpu)
    }

    fn hrtick(&mut self, now: Time, cpu: PcpuId) {
        Fair::hrtick(self, now, cpu);
    }

    fn hrtick_clear(&mut self, cpu: PcpuId) {
        Fair::hrtick_clear(self, cpu);
    }

    fn period_timer(&mut self, now: Time, group: GroupId) {
        Fair::period_timer(self, now, group);
    }

    fn pick_task(&mut self, now: Time, cpu: PcpuId) -> Option<TaskId> {
        Fair::pick_task(self, now, cpu)
    }

    fn set_next_task(&mut self, now: Time, cpu: PcpuId, task: Option<TaskId>) {
        Fair::set_next_task(self, now, cpu, task);
    }

    fn need_resched(&self, cpu: PcpuId) -> bool {
        Fair::need_resched(self, cpu)
    }

    fn set_need_resched(&mut self, cpu: PcpuId, on: bool) {
        Fair::set_need_resched(self, cpu, on);
    }
}

/// Replays a recording of one CPU under the policy and generation of its kernel.
///
/// # Errors
/// As [`replay`].
pub fn replay_fair(setup: &Setup, lines: &[Line]) -> Result<Outcome, LinuxError> {
    let tunables = setup.tunables;
    let bandwidth_slice = tunables.bandwidth_slice.unwrap_or(Settings::DEFAULT.bandwidth_slice);
    let settings = Settings { bandwidth_slice, ..Settings::DEFAULT };
    let (_, generation) = setup.scheduler();
    if let Some(rules) = rules::<Eevdf>(generation) {
        let base_slice = tunables.base_slice.unwrap_or(rules.base_slice);
        return replay(setup, lines, &Fair::new(Eevdf::with_base_slice(rules, base_slice), 1, settings));
    }
    let own = Cfs::scaled(rules::<Cfs>(generation).unwrap_or(cfs::Rules::V6_1), 1);
    let cfs = Cfs {
        latency: tunables.latency.unwrap_or(own.latency),
        min_granularity: tunables.min_granularity.unwrap_or(own.min_granularity),
        wakeup_granularity: tunables.wakeup_granularity.unwrap_or(own.wakeup_granularity),
        ..own
    };
    replay(setup, lines, &Fair::new(cfs, 1, settings))
}

/// The rules of a generation of a flavor.
fn rules<F: Tuned>(generation: &str) -> Option<F::Rules> {
    F::GENERATIONS.iter().find(|(known, _)| known.name == generation).map(|&(_, rules)| rules)
}
