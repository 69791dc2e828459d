//! Balancing: a CPU that is about to idle pulls a thread from another CPU; ticks balance the numbers of threads and,
//! where there are more threads than CPUs, their loads.

use std::cmp::Reverse;

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, Span, Time, VcpuId};

use super::cfs_rq::TaskId;
use super::llc_balancing;
use super::newidle::MoveDelayed;
use super::params::Tuned;
use super::policy::Linux;
use super::sched_domains::{SchedDomain, Sharing};

/// The most threads that one balancing moves.
const SCHED_NR_MIGRATE: u32 = 32;

/// Factor by which a busy CPU balances more seldom than an idle one.
const BUSY_FACTOR: i64 = 16;

/// The capacity of a CPU, in the unit of utilization.
const SCHED_CAPACITY_SCALE: u64 = 1024;

/// The amount to move between two groups of CPUs, and its unit (`migration_type`).
#[derive(Clone, Copy, Debug)]
enum Imbalance {
    Task(u64),
    Util(u64),
    Load(u64),
    /// Threads whose VM prefers the other last-level cache.
    LlcTask(u64),
}

/// States of groups of CPUs, the worst last (`group_type`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum GroupType {
    HasSpare,
    FullyBusy,
    Overloaded,
}

/// Statistics of a group of CPUs in a scheduling domain (`sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
struct SgLbStats {
    group_weight: u64,
    nr_running: u64,
    idle_cpus: u64,
    load: u64,
    util: u64,
    group_type: GroupType,
}

impl SgLbStats {
    fn avg_load(&self) -> u64 {
        self.load / self.group_weight.max(1)
    }
}

impl<F: Tuned> Linux<F> {
    /// The number of threads of a CPU that could run: fair threads without those of exhausted limits, and threads of
    /// the classes above.
    fn nr_running(&self, ctx: &PolicyContext, cpu: PcpuId) -> u32 {
        let current = ctx.current(cpu);
        let above = !ctx.is_idle(current) && self.thread(current).task.is_none();
        self.fair.h_nr_running(cpu) + u32::from(above)
    }

    /// Pulls a thread to a CPU that is about to idle, the nearest domain first. True: a thread was pulled.
    pub(super) fn newidle_balance(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) -> bool {
        self.remove_finished();
        if self.cfs_tasks.loaded().is_empty() {
            return false;
        }
        let (now, rule) = (ctx.now(), F::balance(&self.rules).newidle);
        let avg_idle = self.idle_scans.avg_idle(cpu);
        let mut spent = Span::ZERO;
        for level in 0..self.sched_domains.by_cpu[cpu].len() {
            let sd = &mut self.sched_domains.by_cpu[cpu][level];
            sd.newidle.decay(now);
            if avg_idle < spent + sd.newidle.believed_cost() {
                return false;
            }
            if !sd.newidle.searches(rule, self.newidle_dice.roll()) {
                sd.newidle.skipped(rule, now);
                continue;
            }
            self.update_blocked_averages(ctx, cpu);
            let pulled = self.pull_task(ctx, cpu, level);
            let sd = &mut self.sched_domains.by_cpu[cpu][level];
            spent += sd.newidle.searched(rule, now, sd.span.len(), pulled);
            if pulled {
                return true;
            }
        }
        false
    }

    /// Pulls a thread to a CPU from the CPU of a domain with most threads. True: a thread was pulled.
    fn pull_task(&mut self, ctx: &mut PolicyContext, cpu: PcpuId, level: usize) -> bool {
        let sd = &self.sched_domains.by_cpu[cpu][level];
        let (sharing, failed) = (sd.sharing, sd.nr_balance_failed);
        let mut from = sd.span.and(self.cfs_tasks.loaded());
        from.remove(cpu);
        let crowd = |&other: &PcpuId| (self.nr_running(ctx, other), Reverse(other));
        while let Some(busiest) = from.iter().max_by_key(crowd) {
            from.remove(busiest);
            if self.nr_running(ctx, busiest) < 2 {
                break;
            }
            let movable = |v: &VcpuId| {
                self.can_migrate_task(ctx, *v, cpu, Imbalance::Task(1), failed)
                    .is_some_and(|task| sharing == Sharing::Core || !self.task_hot(ctx, task))
            };
            let pulled = self.cfs_tasks.longest_first(busiest).take(SCHED_NR_MIGRATE as usize).find(movable);
            if let Some((v, task)) = pulled.and_then(|v| Some((v, self.thread(v).task?))) {
                self.migrate_task(ctx, v, task, cpu);
                return true;
            }
        }
        false
    }

    /// The task of a thread that is queued and may be moved to a CPU, to balance this after so many failures.
    fn can_migrate_task(
        &self,
        ctx: &PolicyContext,
        v: VcpuId,
        to: PcpuId,
        imbalance: Imbalance,
        failed: u32,
    ) -> Option<TaskId> {
        let rules = F::balance(&self.rules);
        let may = ctx.affinity(v).contains(to) && !ctx.is_current(v);
        let task = self.thread(v).task.filter(|&task| may && self.fair.can_migrate(task, to))?;
        if rules.keeps_ineligible && failed == 0 && self.fair.is_kept(task, to) {
            return None;
        }
        if self.llc_balancing.active && !self.can_migrate_llc(ctx, v, to, imbalance) {
            return None;
        }
        let for_load = matches!(imbalance, Imbalance::Load(_));
        let stays = rules.delayed == MoveDelayed::ForLoad && !for_load && self.fair.is_delayed(task);
        (!stays).then_some(task)
    }

    /// Whether a thread may be moved to a CPU in view of the last-level cache that its VM prefers: not out of that cache while the
    /// cache has room.
    fn can_migrate_llc(&self, ctx: &PolicyContext, v: VcpuId, to: PcpuId, imbalance: Imbalance) -> bool {
        let [from, to] = [ctx.processor(v), to].map(|cpu| self.llc_balancing.llc(cpu));
        let preferred = self.preferred_llc(ctx, v);
        match imbalance {
            Imbalance::LlcTask(_) => preferred == Some(to),
            _ => from == to || preferred != Some(from) || !self.llc_takes_threads(ctx, from, to),
        }
    }

    /// The last-level cache that the VM of a vCPU prefers.
    fn preferred_llc(&self, ctx: &PolicyContext, v: VcpuId) -> Option<PcpuId> {
        let is_vcpu = !ctx.is_idle(v) && self.cgroups.is_vcpu(ctx, v);
        is_vcpu.then(|| self.llc_balancing.preferred(ctx.now(), ctx.dom(v), ctx.threads_per_core()))?
    }

    /// Whether balancing moves threads that prefer a last-level cache there, from another one.
    fn llc_takes_threads(&self, ctx: &PolicyContext, to: PcpuId, from: PcpuId) -> bool {
        let util = |llc: PcpuId| {
            let cpus = self.llc_balancing.cpus(llc);
            let busy = |cpu: PcpuId| if ctx.is_idle(ctx.current(cpu)) { 0 } else { SCHED_CAPACITY_SCALE };
            let sum: u64 = cpus.iter().map(|cpu| self.util_avg[cpu].at(ctx.now(), busy(cpu))).sum();
            sum / u64::from(cpus.len()).max(1)
        };
        llc_balancing::takes_threads(util(to), util(from), self.sched_domains.smt_active)
    }

    /// The last-level cache, other than this CPU's, with the most runnable threads that prefer this CPU's cache and may run on this CPU.
    /// `None`: the domain does not join caches, no thread prefers this CPU's cache, or that cache takes no threads.
    fn find_llc_group(
        &self,
        ctx: &PolicyContext,
        cpu: PcpuId,
        sd: &SchedDomain,
        groups: &[CpuMask],
    ) -> Option<(CpuMask, Imbalance)> {
        let own = self.llc_balancing.llc(cpu);
        if !self.llc_balancing.active || sd.local_group != *self.llc_balancing.cpus(own) {
            return None;
        }
        let threads = |group: &CpuMask| {
            let queued = |cpu: PcpuId| {
                let current = Some(ctx.current(cpu)).filter(|&v| ctx.runnable(v));
                current.into_iter().chain(self.cfs_tasks.longest_first(cpu))
            };
            let prefers =
                |&v: &VcpuId| self.preferred_llc(ctx, v) == Some(own) && ctx.affinity(v).contains(cpu);
            group.iter().flat_map(queued).filter(prefers).count() as u64
        };
        let remote_groups = groups.iter().filter(|&group| *group != sd.local_group);
        let (group, count) =
            remote_groups.map(|group| (group, threads(group))).rev().max_by_key(|&(_, count)| count)?;
        let other = self.llc_balancing.llc(group.first()?);
        (count > 0 && self.llc_takes_threads(ctx, own, other)).then_some((*group, Imbalance::LlcTask(count)))
    }

    /// Whether a task has run so recently that its caches are warm, or is about to run.
    fn task_hot(&self, ctx: &PolicyContext, task: TaskId) -> bool {
        self.fair.is_next_buddy(task) || ctx.now() - self.fair.exec_start(task) < self.common.migration_cost
    }

    /// Decays the load averages of a CPU, once in a tick.
    fn update_blocked_averages(&mut self, ctx: &PolicyContext, cpu: PcpuId) {
        if ctx.now() - self.last_blocked_load_update[cpu] >= self.common.tick() {
            self.last_blocked_load_update[cpu] = ctx.now();
            self.fair.update_blocked_averages(ctx.now(), cpu);
        }
    }

    /// Balances at a tick of a busy CPU: its own domains, and those of idle CPUs if it has threads to give.
    pub(super) fn trigger_load_balance(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        self.rebalance_domains(ctx, cpu);
        if self.nr_running(ctx, cpu) < 2 || ctx.now() < self.nohz_next_balance {
            return;
        }
        let tick = self.common.tick();
        let mut next = ctx.now() + BUSY_FACTOR * tick;
        for idle in self.idle_cpus.iter() {
            self.rebalance_domains(ctx, idle);
            let times = self.sched_domains.by_cpu[idle].iter().map(|sd| next_balance(sd, true, tick));
            next = times.fold(next, Time::min);
        }
        self.nohz_next_balance = next.max(ctx.now() + tick);
    }

    /// Balances the domains of a CPU whose interval is over.
    fn rebalance_domains(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        for level in 0..self.sched_domains.by_cpu[cpu].len() {
            let idle = self.idle_cpus.contains(cpu);
            if ctx.now() >= next_balance(&self.sched_domains.by_cpu[cpu][level], idle, self.common.tick()) {
                self.update_blocked_averages(ctx, cpu);
                self.sched_domains.by_cpu[cpu][level].last_balance = ctx.now();
                self.load_balance(ctx, cpu, level, idle);
            }
        }
    }

    /// Balances a domain of a CPU: moves threads from the busiest group to the CPU.
    fn load_balance(&mut self, ctx: &mut PolicyContext, cpu: PcpuId, level: usize, idle: bool) {
        // The domain is put back at the end.
        let mut sd = self.sched_domains.by_cpu[cpu][level].clone_without_groups();
        let groups = std::mem::take(&mut self.sched_domains.by_cpu[cpu][level].groups);
        if sd.sharing == Sharing::Llc {
            self.update_idle_cpu_scan(ctx, cpu);
        }
        let first = self.idle_cpus.and(&sd.local_group).first().or(sd.local_group.first());
        if first == Some(cpu) {
            let busiest = self.find_busiest_group(ctx, &sd, &groups, idle);
            let imbalance = busiest.or_else(|| self.find_llc_group(ctx, cpu, &sd, &groups));
            let most = 2 * sd.span_weight();
            match imbalance {
                None => {
                    sd.nr_balance_failed = 0;
                    sd.balance_interval_ms = (2 * sd.balance_interval_ms).min(most);
                }
                Some((busiest, imbalance)) => {
                    if self.detach_tasks(ctx, cpu, &sd, &busiest, imbalance, idle) {
                        sd.nr_balance_failed = 0;
                        sd.balance_interval_ms = sd.span_weight();
                    } else {
                        sd.nr_balance_failed += 1;
                        if sd.nr_balance_failed > sd.cache_nice_tries() + 2
                            && self.active_load_balance(ctx, cpu, &busiest, imbalance)
                        {
                            sd.nr_balance_failed = sd.cache_nice_tries() + 1;
                        } else {
                            sd.balance_interval_ms = (2 * sd.balance_interval_ms).min(most);
                        }
                    }
                }
            }
        }
        self.sched_domains.by_cpu[cpu][level] = SchedDomain { groups, ..sd };
    }

    /// Sets the number of CPUs of a last-level cache that a waking thread scans: the busier the cache, the fewer.
    fn update_idle_cpu_scan(&mut self, ctx: &PolicyContext, cpu: PcpuId) {
        let cache = *self.sched_domains.llc(cpu);
        let size = u64::from(cache.len());
        let used: u64 = cache.iter().map(|cpu| self.cpu_util(ctx, cpu)).sum();
        // Parts of a million: 1 − (u · 1.17)².
        let percent = used * 117 / (size * SCHED_CAPACITY_SCALE).max(1);
        let free = 1_000_000_u64.saturating_sub(percent * percent * 100);
        self.sched_domains.set_nr_idle_scan(cpu, (size * free / 1_000_000) as u32);
    }

    fn cpu_util(&mut self, ctx: &PolicyContext, cpu: PcpuId) -> u64 {
        let busy = !ctx.is_idle(ctx.current(cpu));
        self.util_avg[cpu].update(ctx.now(), if busy { SCHED_CAPACITY_SCALE } else { 0 });
        self.util_avg[cpu].whole()
    }

    fn update_sg_lb_stats(&mut self, ctx: &PolicyContext, cpus: &CpuMask, percent: u64) -> SgLbStats {
        let (mut threads, mut load, mut util) = (0, 0, 0);
        for cpu in cpus.iter() {
            threads += u64::from(self.nr_running(ctx, cpu));
            load += self.fair.cpu_load(cpu, ctx.now());
            util += self.cpu_util(ctx, cpu);
        }
        let (size, idle) = (u64::from(cpus.len()), u64::from(cpus.and(&self.idle_cpus).len()));
        let full = util * percent > size * SCHED_CAPACITY_SCALE * 100;
        let group_type = match (threads > size, threads < size || !full) {
            (true, _) if full => GroupType::Overloaded,
            (_, true) => GroupType::HasSpare,
            _ => GroupType::FullyBusy,
        };
        SgLbStats { group_weight: size, nr_running: threads, idle_cpus: idle, load, util, group_type }
    }

    /// The busiest group of a level, and the amount to move from it to the CPU's own group
    /// (`calculate_imbalance`).
    fn find_busiest_group(
        &mut self,
        ctx: &PolicyContext,
        sd: &SchedDomain,
        groups: &[CpuMask],
        idle: bool,
    ) -> Option<(CpuMask, Imbalance)> {
        let percent = sd.imbalance_pct();
        let local = self.update_sg_lb_stats(ctx, &sd.local_group, percent);
        let mut all = local;
        let mut busiest: Option<(CpuMask, SgLbStats)> = None;
        for group in groups.iter().filter(|&group| *group != sd.local_group) {
            let stats = self.update_sg_lb_stats(ctx, group, percent);
            (all.group_weight, all.load) = (all.group_weight + stats.group_weight, all.load + stats.load);
            let worse = |than: &SgLbStats| match (stats.group_type, than.group_type) {
                (a, b) if a != b => a > b,
                (GroupType::HasSpare, _) => {
                    (than.idle_cpus, stats.nr_running) > (stats.idle_cpus, than.nr_running)
                }
                _ => stats.avg_load() > than.avg_load(),
            };
            if stats.nr_running > 0 && busiest.as_ref().is_none_or(|(_, than)| worse(than)) {
                busiest = Some((*group, stats));
            }
        }
        let (group, busiest) = busiest?;
        let mean = all.avg_load();
        let imbalance = match (local.group_type, busiest.group_type) {
            (local, busiest) if local > busiest => return None,
            (GroupType::HasSpare, GroupType::Overloaded) if sd.sharing == Sharing::Memory => {
                let spare = (local.group_weight * SCHED_CAPACITY_SCALE).saturating_sub(local.util);
                if spare == 0 && idle { Imbalance::Task(1) } else { Imbalance::Util(spare) }
            }
            (GroupType::HasSpare, state) => {
                let between_nodes = sd.sharing == Sharing::Memory;
                let uneven = sd.has_child && busiest.nr_running > local.nr_running + 1;
                let few = busiest.nr_running <= 1
                    || busiest.group_weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1;
                if state != GroupType::Overloaded && !uneven && (few || !idle) {
                    return None;
                }
                if between_nodes && busiest.nr_running <= (busiest.group_weight / 8).max(1) {
                    return None;
                }
                let difference = if busiest.group_weight == 1 || uneven {
                    busiest.nr_running.saturating_sub(local.nr_running)
                } else {
                    local.idle_cpus.saturating_sub(busiest.idle_cpus)
                };
                Imbalance::Task(difference / 2)
            }
            (_, GroupType::Overloaded) => {
                let (less, more) = (local.avg_load(), busiest.avg_load());
                let is_even = local.group_type == GroupType::Overloaded && more * 100 <= percent * less;
                if less >= mean || is_even {
                    return None;
                }
                Imbalance::Load(
                    (more.saturating_sub(mean) * busiest.group_weight)
                        .min((mean - less) * local.group_weight),
                )
            }
            _ => return None,
        };
        Some((group, imbalance))
    }

    /// Moves waiting threads from the busiest CPU of a group. True: a thread was moved.
    fn detach_tasks(
        &mut self,
        ctx: &mut PolicyContext,
        to: PcpuId,
        sd: &SchedDomain,
        group: &CpuMask,
        imbalance: Imbalance,
        idle: bool,
    ) -> bool {
        let Some(from) = self.find_busiest_queue(ctx, group, imbalance) else { return false };
        let warm = sd.sharing != Sharing::Core && sd.nr_balance_failed <= sd.cache_nice_tries();
        let (mut left, most) = (imbalance, self.cfs_tasks.count(from).min(SCHED_NR_MIGRATE));
        let (mut moved, mut next) = (false, self.cfs_tasks.longest_first(from).next());
        for _ in 0..most {
            let Some(v) = next else { break };
            next = self.cfs_tasks.after(v);
            let stays = idle && self.nr_running(ctx, from) <= 1;
            if stays || left.is_done() {
                break;
            }
            let Some(task) = self
                .can_migrate_task(ctx, v, to, left, sd.nr_balance_failed)
                .filter(|&task| !(warm && self.task_hot(ctx, task)))
            else {
                continue;
            };
            let amount = match left {
                Imbalance::Task(_) | Imbalance::LlcTask(_) => 1,
                Imbalance::Load(_) => self.fair.task_h_load(task, ctx.now()).max(1),
                Imbalance::Util(_) => self.fair.task_util(task, ctx.now(), SCHED_CAPACITY_SCALE),
            };
            if left.take(amount, sd.nr_balance_failed) {
                self.migrate_task(ctx, v, task, to);
                self.idle_cpus.remove(to);
                moved = true;
            }
        }
        moved
    }

    /// The CPU of a group with the greatest amount of the imbalance.
    fn find_busiest_queue(
        &mut self,
        ctx: &PolicyContext,
        group: &CpuMask,
        imbalance: Imbalance,
    ) -> Option<PcpuId> {
        let mut busiest: Option<(u64, PcpuId)> = None;
        for cpu in group.and(self.cfs_tasks.loaded()).iter() {
            let amount = match imbalance {
                Imbalance::Task(_) | Imbalance::LlcTask(_) => self.nr_running(ctx, cpu).into(),
                Imbalance::Load(_) => self.fair.cpu_load(cpu, ctx.now()),
                Imbalance::Util(_) => self.cpu_util(ctx, cpu),
            };
            if self.nr_running(ctx, cpu) > 1 && busiest.is_none_or(|(most, _)| amount > most) {
                busiest = Some((amount, cpu));
            }
        }
        busiest.map(|(_, cpu)| cpu)
    }

    /// Pushes the running thread of a CPU of the group to the CPU `to`. True: there is such a thread.
    fn active_load_balance(
        &mut self,
        ctx: &mut PolicyContext,
        to: PcpuId,
        group: &CpuMask,
        imbalance: Imbalance,
    ) -> bool {
        let may = |&v: &VcpuId| {
            !ctx.is_idle(v)
                && ctx.affinity(v).contains(to)
                && ctx.runnable(v)
                && self.thread(v).task.is_some()
                && self.thread(v).push_cpu.is_none()
                && (!self.llc_balancing.active || self.can_migrate_llc(ctx, v, to, imbalance))
        };
        let busiest = group.iter().filter(|&cpu| may(&ctx.current(cpu)));
        let Some(from) = busiest.max_by_key(|&cpu| (self.nr_running(ctx, cpu), Reverse(cpu))) else {
            return false;
        };
        let v = ctx.current(from);
        let thread = self.thread_mut(v);
        (thread.push_cpu, thread.must_migrate) = (Some(to), true);
        ctx.start_migration(v);
        self.resched_now(ctx, from);
        true
    }
}

impl Imbalance {
    fn is_done(self) -> bool {
        let (Imbalance::Task(left)
        | Imbalance::Util(left)
        | Imbalance::Load(left)
        | Imbalance::LlcTask(left)) = self;
        left == 0
    }

    /// Subtracts an amount from the imbalance unless the amount is too large; after failures it may be larger. False:
    /// it is too large.
    fn take(&mut self, amount: u64, failed: u32) -> bool {
        let (Imbalance::Task(left)
        | Imbalance::Util(left)
        | Imbalance::Load(left)
        | Imbalance::LlcTask(left)) = self;
        if amount >> failed.min(63) > *left {
            return false;
        }
        *left = left.saturating_sub(amount);
        true
    }
}

/// Time of the next balancing of a domain.
fn next_balance(sd: &SchedDomain, idle: bool, tick: Span) -> Time {
    let ms = Span::from_ms(1);
    let interval =
        if idle { sd.balance_interval_ms * ms } else { BUSY_FACTOR * sd.balance_interval_ms * ms - tick };
    sd.last_balance + interval.max(tick).min(sd.span_weight() * Span::from_ms(100))
}
