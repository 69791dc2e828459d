//! Timers of a host: for each CPU its tick, its pending decision and the end of a request, for each limited group its period timer and its
//! slack timer.

use std::collections::BTreeSet;

use vcpulab_host::{GroupId, NEVER, PcpuId, PolicyContext, Table, Time, TimerId};

/// Purpose of a timer, with its CPU or group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tick(PcpuId),
    Resched(PcpuId),
    Hrtick(PcpuId),
    Refill(GroupId),
    Slack(GroupId),
    RtPeriod,
}

/// Number of the kinds of timers, which tokens are counted in.
const KINDS: u32 = 6;

impl Kind {
    /// The timer's purpose, from the token that the host hands back.
    pub fn of(token: u32) -> Self {
        let number = token / KINDS;
        match token % KINDS {
            0 => Kind::Tick(PcpuId(number)),
            1 => Kind::Resched(PcpuId(number)),
            2 => Kind::Hrtick(PcpuId(number)),
            3 => Kind::Refill(GroupId(number)),
            4 => Kind::Slack(GroupId(number)),
            _ => Kind::RtPeriod,
        }
    }

    fn token(self) -> u32 {
        match self {
            Kind::Tick(cpu) => KINDS * cpu.0,
            Kind::Resched(cpu) => KINDS * cpu.0 + 1,
            Kind::Hrtick(cpu) => KINDS * cpu.0 + 2,
            Kind::Refill(group) => KINDS * group.0 + 3,
            Kind::Slack(group) => KINDS * group.0 + 4,
            Kind::RtPeriod => 5,
        }
    }
}

/// The timers of a host.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    cpus: Table<PcpuId, Option<[TimerId; 3]>>,
    /// Timers of groups, made when a group is first limited.
    groups: Table<GroupId, Option<[TimerId; 2]>>,
    /// Next refills of all groups, by time and group.
    refills: BTreeSet<(Time, GroupId)>,
    refill_of: Table<GroupId, Option<Time>>,
    /// The timer of the periods of real-time throttling, made when it is first set, and its time.
    rt_period: Option<(TimerId, Time)>,
}

impl Timers {
    /// Whether no CPU has come up yet.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    pub fn add_cpu(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        let timers = [Kind::Tick(cpu), Kind::Resched(cpu), Kind::Hrtick(cpu)]
            .map(|kind| ctx.new_timer(cpu, kind.token()));
        *self.cpus.entry(cpu) = Some(timers);
    }

    fn set(&self, ctx: &mut PolicyContext, cpu: PcpuId, which: usize, at: Time) {
        if let Some(timers) = self.cpus[cpu] {
            ctx.set_timer(timers[which], at);
        }
    }

    pub fn set_tick(&self, ctx: &mut PolicyContext, cpu: PcpuId, at: Time) {
        self.set(ctx, cpu, 0, at);
    }

    pub fn stop_tick(&self, ctx: &mut PolicyContext, cpu: PcpuId) {
        self.set(ctx, cpu, 0, NEVER);
    }

    pub fn set_resched(&self, ctx: &mut PolicyContext, cpu: PcpuId, at: Time) {
        self.set(ctx, cpu, 1, at);
    }

    pub fn stop_resched(&self, ctx: &mut PolicyContext, cpu: PcpuId) {
        self.set(ctx, cpu, 1, NEVER);
    }

    pub fn set_hrtick(&self, ctx: &mut PolicyContext, cpu: PcpuId, at: Option<Time>) {
        self.set(ctx, cpu, 2, at.unwrap_or(NEVER));
    }

    /// Sets the timer of the periods of real-time throttling.
    pub fn set_rt_period(&mut self, ctx: &mut PolicyContext, at: Time) {
        let cpu = ctx.first_pcpu();
        let (timer, set) =
            self.rt_period.get_or_insert_with(|| (ctx.new_timer(cpu, Kind::RtPeriod.token()), NEVER));
        if *set != at {
            *set = at;
            ctx.set_timer(*timer, at);
        }
    }

    /// Sets the timers of a group.
    pub fn set_group(
        &mut self,
        ctx: &mut PolicyContext,
        group: GroupId,
        refill: Option<Time>,
        slack: Option<Time>,
    ) {
        let timers = self.groups.entry(group);
        if timers.is_none() && refill.is_none() && slack.is_none() {
            return;
        }
        let cpu = ctx.first_pcpu();
        let timers = *timers.get_or_insert_with(|| {
            [Kind::Refill(group), Kind::Slack(group)].map(|kind| ctx.new_timer(cpu, kind.token()))
        });
        let before = std::mem::replace(self.refill_of.entry(group), refill);
        if before != refill {
            before.into_iter().for_each(|at| _ = self.refills.remove(&(at, group)));
            self.refills.extend(refill.map(|at| (at, group)));
        }
        for (timer, at) in timers.into_iter().zip([refill, slack]) {
            ctx.set_timer(timer, at.unwrap_or(NEVER));
        }
    }

    /// Takes a group whose refill is due by now.
    pub fn next_refill(&mut self, now: Time) -> Option<GroupId> {
        let first = self.refills.first().copied().filter(|&(at, _)| at <= now)?;
        self.refills.remove(&first);
        *self.refill_of.entry(first.1) = None;
        Some(first.1)
    }
}
