//! Balancing: a CPU that is about to idle pulls a thread from another CPU; ticks balance the numbers of threads and,
//! where there are more threads than CPUs, their loads.

use std::cmp::Reverse;

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, Span, Time, VcpuId};

use super::cfs_rq::TaskId;
use super::params::Tuned;
use super::policy::Linux;
use super::sched_domains::{Level, Sharing};

/// The most threads that are moved at a time.
const MOVED_AT_ONCE: u32 = 32;

/// Factor by which a busy CPU balances more seldom than an idle one (`busy_factor`).
const BUSY: i64 = 16;

/// The capacity of a CPU, in the unit of utilization.
const CAPACITY: u64 = 1024;

/// The amount to move between two groups of CPUs, and its unit.
#[derive(Clone, Copy, Debug)]
enum Imbalance {
    Threads(u64),
    Utilization(u64),
    Load(u64),
}

/// States of groups of CPUs, the worst last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    Spare,
    Busy,
    Overloaded,
}

/// Statistics of a group of CPUs at one level (the kernel's `sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
struct Sum {
    cpus: u64,
    threads: u64,
    idle: u64,
    load: u64,
    utilization: u64,
    state: State,
}

impl Sum {
    fn mean_load(&self) -> u64 {
        self.load / self.cpus.max(1)
    }
}

impl<F: Tuned> Linux<F> {
    /// The number of threads of a CPU that could run: fair threads without those of exhausted limits, and threads of
    /// the classes above.
    fn threads_on(&self, ctx: &PolicyContext, cpu: PcpuId) -> u32 {
        let current = ctx.current(cpu);
        let above = !ctx.is_idle(current) && self.thread(current).task.is_none();
        self.fair.h_nr_running(cpu) + u32::from(above)
    }

    /// Pulls a thread to a CPU that is about to idle, from the CPU with most threads, the nearest first
    /// (`newidle_balance`). True: a thread was pulled.
    pub(super) fn pull(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) -> bool {
        if self.ready.loaded().is_empty() {
            return false;
        }
        self.decay(ctx, cpu);
        for level in 0..self.levels.of[cpu].len() {
            let near = self.levels.of[cpu][level].cpus;
            let mut from = near.and(self.ready.loaded());
            from.remove(cpu);
            let crowd = |&other: &PcpuId| (self.threads_on(ctx, other), Reverse(other));
            while let Some(busiest) = from.iter().max_by_key(crowd) {
                from.remove(busiest);
                if self.threads_on(ctx, busiest) < 2 {
                    break;
                }
                let sharing = self.levels.of[cpu][level].sharing;
                let movable = |v: &VcpuId| {
                    self.movable(ctx, *v, cpu)
                        .is_some_and(|task| sharing == Sharing::Core || !self.is_hot(ctx, task))
                };
                let found = self.ready.longest_first(busiest).take(MOVED_AT_ONCE as usize).find(movable);
                if let Some((v, task)) = found.and_then(|v| Some((v, self.thread(v).task?))) {
                    self.take_over(ctx, v, task, cpu);
                    return true;
                }
            }
        }
        false
    }

    /// The task of a thread that waits and may be moved to a CPU.
    fn movable(&self, ctx: &PolicyContext, v: VcpuId, to: PcpuId) -> Option<TaskId> {
        let may = ctx.affinity(v).contains(to) && !ctx.is_current(v);
        self.thread(v).task.filter(|&task| may && self.fair.can_migrate(task, to))
    }

    /// Whether a task has run so recently that its caches are warm, or is about to run (the kernel's `task_hot`).
    fn is_hot(&self, ctx: &PolicyContext, task: TaskId) -> bool {
        self.fair.is_next_buddy(task) || ctx.now() - self.fair.exec_start(task) < self.common.migration_cost
    }

    /// Decays the load averages of a CPU, once in a tick.
    fn decay(&mut self, ctx: &PolicyContext, cpu: PcpuId) {
        if ctx.now() - self.decayed_at[cpu] >= self.common.tick() {
            self.decayed_at[cpu] = ctx.now();
            self.fair.update_blocked_averages(ctx.now(), cpu);
        }
    }

    /// Balances at a tick of a busy CPU: for itself, and for idle ones if it has threads to give.
    pub(super) fn balance(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        self.balance_for(ctx, cpu);
        if self.threads_on(ctx, cpu) < 2 || ctx.now() < self.idle_balanced_at {
            return;
        }
        let tick = self.common.tick();
        let mut next = ctx.now() + BUSY * tick;
        for idle in self.idle.iter() {
            self.balance_for(ctx, idle);
            let of_its = self.levels.of[idle].iter().map(|level| due(level, true, tick));
            next = of_its.fold(next, |next, due| next.min(due));
        }
        self.idle_balanced_at = next.max(ctx.now() + tick);
    }

    fn balance_for(&mut self, ctx: &mut PolicyContext, cpu: PcpuId) {
        for level in 0..self.levels.of[cpu].len() {
            let idle = self.idle.contains(cpu);
            if ctx.now() >= due(&self.levels.of[cpu][level], idle, self.common.tick()) {
                self.decay(ctx, cpu);
                self.levels.of[cpu][level].balanced_at = ctx.now();
                self.balance_level(ctx, cpu, level, idle);
            }
        }
    }

    fn balance_level(&mut self, ctx: &mut PolicyContext, cpu: PcpuId, number: usize, idle: bool) {
        // It is put back at the end.
        let mut level = self.levels.of[cpu][number].clone_without_groups();
        let groups = std::mem::take(&mut self.levels.of[cpu][number].groups);
        if level.sharing == Sharing::Cache {
            self.set_scan(ctx, cpu);
        }
        let first = self.idle.and(&level.own).first().or(level.own.first());
        if first == Some(cpu) {
            let found = self.imbalance(ctx, &level, &groups, idle);
            let most = 2 * level.size();
            match found {
                None => {
                    level.failed = 0;
                    level.interval_ms = (2 * level.interval_ms).min(most);
                }
                Some((busiest, imbalance)) => {
                    if self.relieve(ctx, cpu, &level, &busiest, imbalance, idle) {
                        level.failed = 0;
                        level.interval_ms = level.size();
                    } else {
                        level.failed += 1;
                        if level.failed > level.tries() + 2 && self.push_running(ctx, cpu, &busiest) {
                            level.failed = level.tries() + 1;
                        } else {
                            level.interval_ms = (2 * level.interval_ms).min(most);
                        }
                    }
                }
            }
        }
        let place = &mut self.levels.of[cpu][number];
        *place = level;
        place.groups = groups;
    }

    /// Sets the number of CPUs of a last-level cache that a waking thread scans: the busier the cache, the fewer (the
    /// kernel's `SIS_UTIL`).
    fn set_scan(&mut self, ctx: &PolicyContext, cpu: PcpuId) {
        let cache = *self.levels.cache(cpu);
        let size = u64::from(cache.len());
        let used: u64 = cache.iter().map(|cpu| self.utilization(ctx, cpu)).sum();
        // Parts of a million: 1 − (u · 1.17)².
        let percent = used * 117 / (size * CAPACITY).max(1);
        let free = 1_000_000_u64.saturating_sub(percent * percent * 100);
        self.levels.set_scan(cpu, (size * free / 1_000_000) as u32);
    }

    fn utilization(&mut self, ctx: &PolicyContext, cpu: PcpuId) -> u64 {
        let busy = !ctx.is_idle(ctx.current(cpu));
        self.busy[cpu].update(ctx.now(), if busy { CAPACITY } else { 0 });
        self.busy[cpu].whole()
    }

    fn sum(&mut self, ctx: &PolicyContext, cpus: &CpuMask, percent: u64) -> Sum {
        let (mut threads, mut load, mut utilization) = (0, 0, 0);
        for cpu in cpus.iter() {
            threads += u64::from(self.threads_on(ctx, cpu));
            load += self.fair.cpu_load(cpu, ctx.now());
            utilization += self.utilization(ctx, cpu);
        }
        let (size, idle) = (u64::from(cpus.len()), u64::from(cpus.and(&self.idle).len()));
        let full = utilization * percent > size * CAPACITY * 100;
        let state = match (threads > size, threads < size || !full) {
            (true, _) if full => State::Overloaded,
            (_, true) => State::Spare,
            _ => State::Busy,
        };
        Sum { cpus: size, threads, idle, load, utilization, state }
    }

    /// The busiest group of a level (`find_busiest_group`), and the amount to move from it to the CPU's own group
    /// (`calculate_imbalance`).
    fn imbalance(
        &mut self,
        ctx: &PolicyContext,
        level: &Level,
        groups: &[CpuMask],
        idle: bool,
    ) -> Option<(CpuMask, Imbalance)> {
        let percent = level.imbalance_percent();
        let own = self.sum(ctx, &level.own, percent);
        let mut all = own;
        let mut busiest: Option<(CpuMask, Sum)> = None;
        for group in groups.iter().filter(|&group| *group != level.own) {
            let sum = self.sum(ctx, group, percent);
            (all.cpus, all.load) = (all.cpus + sum.cpus, all.load + sum.load);
            let worse = |than: &Sum| match (sum.state, than.state) {
                (a, b) if a != b => a > b,
                (State::Spare, _) => (than.idle, sum.threads) > (sum.idle, than.threads),
                _ => sum.mean_load() > than.mean_load(),
            };
            if sum.threads > 0 && busiest.as_ref().is_none_or(|(_, than)| worse(than)) {
                busiest = Some((*group, sum));
            }
        }
        let (group, busiest) = busiest?;
        let mean = all.mean_load();
        let imbalance = match (own.state, busiest.state) {
            (own, busiest) if own > busiest => return None,
            (State::Spare, State::Overloaded) if level.sharing == Sharing::Memory => {
                let spare = (own.cpus * CAPACITY).saturating_sub(own.utilization);
                if spare == 0 && idle { Imbalance::Threads(1) } else { Imbalance::Utilization(spare) }
            }
            (State::Spare, state) => {
                let between_nodes = level.sharing == Sharing::Memory;
                let uneven = level.nested && busiest.threads > own.threads + 1;
                let few = busiest.threads <= 1 || busiest.cpus > 1 && own.idle <= busiest.idle + 1;
                if state != State::Overloaded && !uneven && (few || !idle) {
                    return None;
                }
                if between_nodes && busiest.threads <= (busiest.cpus / 8).max(1) {
                    return None;
                }
                let difference = if busiest.cpus == 1 || uneven {
                    busiest.threads.saturating_sub(own.threads)
                } else {
                    own.idle.saturating_sub(busiest.idle)
                };
                Imbalance::Threads(difference / 2)
            }
            (_, State::Overloaded) => {
                let (less, more) = (own.mean_load(), busiest.mean_load());
                let is_even = own.state == State::Overloaded && more * 100 <= percent * less;
                if less >= mean || is_even {
                    return None;
                }
                Imbalance::Load((more.saturating_sub(mean) * busiest.cpus).min((mean - less) * own.cpus))
            }
            _ => return None,
        };
        Some((group, imbalance))
    }

    /// Moves waiting threads from the busiest CPU of a group (`detach_tasks`). True: a thread was moved.
    fn relieve(
        &mut self,
        ctx: &mut PolicyContext,
        to: PcpuId,
        level: &Level,
        group: &CpuMask,
        imbalance: Imbalance,
        idle: bool,
    ) -> bool {
        let Some(from) = self.busiest_of(ctx, group, imbalance) else { return false };
        let warm = level.sharing != Sharing::Core && level.failed <= level.tries();
        let (mut left, most) = (imbalance, self.ready.count(from).min(MOVED_AT_ONCE));
        let (mut moved, mut next) = (false, self.ready.longest_first(from).next());
        for _ in 0..most {
            let Some(v) = next else { break };
            next = self.ready.after(v);
            let stays = idle && self.threads_on(ctx, from) <= 1;
            if stays || left.is_done() {
                break;
            }
            let Some(task) = self.movable(ctx, v, to).filter(|&task| !(warm && self.is_hot(ctx, task)))
            else {
                continue;
            };
            let amount = match left {
                Imbalance::Threads(_) => 1,
                Imbalance::Load(_) => self.fair.task_h_load(task, ctx.now()).max(1),
                Imbalance::Utilization(_) => self.fair.task_util(task, ctx.now(), CAPACITY),
            };
            if left.take(amount, level.failed) {
                self.take_over(ctx, v, task, to);
                self.idle.remove(to);
                moved = true;
            }
        }
        moved
    }

    /// The CPU of a group with the greatest amount of the imbalance (`find_busiest_queue`).
    fn busiest_of(&mut self, ctx: &PolicyContext, group: &CpuMask, imbalance: Imbalance) -> Option<PcpuId> {
        let mut busiest: Option<(u64, PcpuId)> = None;
        for cpu in group.and(self.ready.loaded()).iter() {
            let amount = match imbalance {
                Imbalance::Threads(_) => self.threads_on(ctx, cpu).into(),
                Imbalance::Load(_) => self.fair.cpu_load(cpu, ctx.now()),
                Imbalance::Utilization(_) => self.utilization(ctx, cpu),
            };
            if self.threads_on(ctx, cpu) > 1 && busiest.is_none_or(|(most, _)| amount > most) {
                busiest = Some((amount, cpu));
            }
        }
        busiest.map(|(_, cpu)| cpu)
    }

    /// Pushes the running thread of a CPU of the group to the CPU `to` (active balance). True: there is such a thread.
    fn push_running(&mut self, ctx: &mut PolicyContext, to: PcpuId, group: &CpuMask) -> bool {
        let may = |&v: &VcpuId| {
            !ctx.is_idle(v)
                && ctx.affinity(v).contains(to)
                && ctx.runnable(v)
                && self.thread(v).task.is_some()
                && self.thread(v).target.is_none()
        };
        let busiest = group.iter().filter(|&cpu| may(&ctx.current(cpu)));
        let Some(from) = busiest.max_by_key(|&cpu| (self.threads_on(ctx, cpu), Reverse(cpu))) else {
            return false;
        };
        let v = ctx.current(from);
        let thread = self.thread_mut(v);
        (thread.target, thread.moving) = (Some(to), true);
        ctx.start_migration(v);
        self.ask_at_once(ctx, from);
        true
    }
}

impl Imbalance {
    fn is_done(self) -> bool {
        let (Imbalance::Threads(left) | Imbalance::Utilization(left) | Imbalance::Load(left)) = self;
        left == 0
    }

    /// Subtracts an amount from the imbalance unless the amount is too large; after failures it may be larger. False:
    /// it is too large.
    fn take(&mut self, amount: u64, failed: u32) -> bool {
        let (Imbalance::Threads(left) | Imbalance::Utilization(left) | Imbalance::Load(left)) = self;
        if amount >> failed.min(63) > *left {
            return false;
        }
        *left = left.saturating_sub(amount);
        true
    }
}

/// Time of the next balancing of a level.
fn due(level: &Level, idle: bool, tick: Span) -> Time {
    let ms = Span::from_ms(1);
    let interval = if idle { level.interval_ms * ms } else { BUSY * level.interval_ms * ms - tick };
    level.balanced_at + interval.max(tick).min(level.size() * Span::from_ms(100))
}
