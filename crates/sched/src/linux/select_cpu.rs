//! The choice of a CPU for a thread: when it is created, when it wakes, and when another thread yields to it.

use vcpulab_host::{Class, CpuMask, PcpuId, PolicyContext, Span, VcpuId};

use super::cfs_rq::TaskId;
use super::idle_scan::{IdleScan, SelectCpu};
use super::params::Tuned;
use super::policy::Linux;

impl<F: Tuned> Linux<F> {
    /// The CPU for a new thread: in the last-level cache, the core and the CPU on which the fewest threads were placed. A
    /// thread whose affinity leaves only isolated CPUs is placed on the first of them.
    pub(super) fn select_task_rq_fork(&self, ctx: &PolicyContext, v: VcpuId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let balanced = allowed.without(&ctx.isolation().isolated);
        let allowed = match balanced.is_empty() {
            true => allowed.first().map_or(allowed, CpuMask::only),
            false => balanced,
        };
        let placed = |cpus: &CpuMask| cpus.iter().map(|cpu| self.cfs_tasks.placed(cpu)).sum::<u32>();
        // Placed threads per CPU of the cache, scaled to the host.
        let in_cache = |cpu: PcpuId| {
            let cache = self.sched_domains.llc(cpu);
            u64::from(placed(cache)) * u64::from(ctx.pcpu_count()) / u64::from(cache.len().max(1))
        };
        let crowd =
            |&cpu: &PcpuId| (in_cache(cpu), placed(self.sched_domains.smt(cpu)), self.cfs_tasks.placed(cpu));
        allowed.iter().min_by_key(crowd).unwrap_or(ctx.processor(v))
    }

    /// Whether a CPU that runs only `SCHED_IDLE` tasks is as good as an idle one for a thread.
    fn accepts_sched_idle(&self, v: VcpuId) -> bool {
        self.thread(v).class != Class::Idle || F::balance(&self.rules).idle_thread_accepts_sched_idle
    }

    /// Whether a CPU runs nothing, or only `SCHED_IDLE` tasks if `accepts_sched_idle`.
    fn available_idle_cpu(&self, cpu: PcpuId, accepts_sched_idle: bool) -> bool {
        self.idle_cpus.contains(cpu) || accepts_sched_idle && self.fair.sched_idle_cpu(cpu)
    }

    /// The CPUs among `cpus` that run nothing, or only `SCHED_IDLE` tasks if `accepts_sched_idle`.
    fn available_idle_cpus(&self, cpus: &CpuMask, accepts_sched_idle: bool) -> CpuMask {
        let mut idle = cpus.and(&self.idle_cpus);
        if accepts_sched_idle && self.fair.any_idle {
            cpus.iter().filter(|&cpu| self.fair.sched_idle_cpu(cpu)).for_each(|cpu| idle.insert(cpu));
        }
        idle
    }

    /// The CPU for a waking thread.
    pub(super) fn select_task_rq(&mut self, ctx: &PolicyContext, v: VcpuId, task: TaskId) -> PcpuId {
        let allowed = ctx.affinity(v).and(ctx.pcpus());
        let (this_cpu, prev_cpu) = (ctx.executing(), ctx.processor(v));
        if allowed.len() <= 1 {
            return allowed.first().unwrap_or(prev_cpu);
        }
        let waker = Some(ctx.current(this_cpu)).filter(|&waker| !ctx.is_idle(waker) && waker != v);
        let wide = waker.is_some_and(|waker| {
            self.thread_mut(waker).wakee_flips.record_wakee(ctx.now(), v);
            self.wake_wide(this_cpu, waker, v)
        });
        let prev_cpu = if allowed.contains(prev_cpu) {
            prev_cpu
        } else {
            allowed.next_after(prev_cpu).unwrap_or(prev_cpu)
        };
        let mut target = prev_cpu;
        let isolated = &ctx.isolation().isolated;
        let share_domain = !isolated.contains(this_cpu) && !isolated.contains(prev_cpu);
        if this_cpu != prev_cpu && allowed.contains(this_cpu) && !wide && share_domain {
            target = self.wake_affine(ctx, this_cpu, prev_cpu, task);
        }
        self.select_idle_sibling(ctx, v, &allowed, prev_cpu, target)
    }

    /// An idle CPU that shares the last-level cache with `target`, or `target` itself.
    fn select_idle_sibling(
        &mut self,
        ctx: &PolicyContext,
        v: VcpuId,
        allowed: &CpuMask,
        prev_cpu: PcpuId,
        target: PcpuId,
    ) -> PcpuId {
        let accepts_sched_idle = self.accepts_sched_idle(v);
        if self.available_idle_cpu(target, accepts_sched_idle) {
            return target;
        }
        let llc = *self.sched_domains.llc(target);
        if prev_cpu != target
            && llc.contains(prev_cpu)
            && self.available_idle_cpu(prev_cpu, accepts_sched_idle)
        {
            return prev_cpu;
        }
        let recent = self.thread_mut(v).recent_used_cpu.replace(prev_cpu);
        let usable =
            |&cpu: &PcpuId| cpu != prev_cpu && cpu != target && llc.contains(cpu) && allowed.contains(cpu);
        if let Some(recent) =
            recent.filter(usable).filter(|&cpu| self.available_idle_cpu(cpu, accepts_sched_idle))
        {
            return recent;
        }
        let idle = self.available_idle_cpus(&llc.and(allowed), accepts_sched_idle);
        let scan = self.select_rules().scan;
        if self.sched_domains.smt_active {
            if self.sched_domains.has_idle_cores(target) {
                let core = self.select_idle_core(&idle, target);
                if core.is_some() || scan != IdleScan::PropFromTarget {
                    return core.or(idle.next_after(target)).unwrap_or(target);
                }
            }
            let siblings = self.sched_domains.smt(prev_cpu).and(&idle);
            if llc.contains(prev_cpu)
                && let Some(cpu) = siblings.first()
            {
                return cpu;
            }
        }
        self.select_idle_cpu(ctx, &idle, &llc.and(allowed), target).unwrap_or(target)
    }

    /// Whether waker and wakee have more partners than CPUs share a cache, so that the wakee need not be near the waker.
    fn wake_wide(&self, this_cpu: PcpuId, waker: VcpuId, wakee: VcpuId) -> bool {
        let [waker, wakee] = [waker, wakee].map(|v| self.thread(v).wakee_flips.count());
        let (less, more) = (waker.min(wakee), waker.max(wakee));
        let llc_size = self.sched_domains.llc(this_cpu).len();
        less >= llc_size && more >= less * llc_size
    }

    /// The better CPU for a waking thread: `this_cpu`, where its waker runs, or `prev_cpu`, where the thread ran.
    fn wake_affine(
        &mut self,
        ctx: &PolicyContext,
        this_cpu: PcpuId,
        prev_cpu: PcpuId,
        task: TaskId,
    ) -> PcpuId {
        let accepts_sched_idle = self.accepts_sched_idle(self.vcpus[task]);
        if self.available_idle_cpu(this_cpu, accepts_sched_idle)
            && self.sched_domains.llc(this_cpu).contains(prev_cpu)
        {
            return if self.available_idle_cpu(prev_cpu, accepts_sched_idle) { prev_cpu } else { this_cpu };
        }
        if self.select_rules().prefers_idle_prev && self.available_idle_cpu(prev_cpu, accepts_sched_idle) {
            return prev_cpu;
        }
        let siblings = self.sched_domains.smt(this_cpu).contains(prev_cpu);
        let percent: u64 = if siblings { 110 } else { 117 };
        let now = ctx.now();
        let own = self.fair.task_h_load(task, now);
        let this_load = (self.fair.cpu_load(this_cpu, now) + own) * 100;
        let prev_load = self.fair.cpu_load(prev_cpu, now).saturating_sub(own) * (100 + (percent - 100) / 2);
        if this_load < prev_load { this_cpu } else { prev_cpu }
    }

    /// The first wholly idle core of a cache after `target`.
    fn select_idle_core(&mut self, idle: &CpuMask, target: PcpuId) -> Option<PcpuId> {
        let core = after(idle, target).find(|&cpu| self.idle_cpus.contains_all(self.sched_domains.smt(cpu)));
        if core.is_none() {
            self.sched_domains.set_has_idle_cores(target, false);
        }
        core
    }

    /// The first idle CPU of a cache after `target`, among the first few that are scanned.
    fn select_idle_cpu(
        &mut self,
        ctx: &PolicyContext,
        idle: &CpuMask,
        cpus: &CpuMask,
        target: PcpuId,
    ) -> Option<PcpuId> {
        let (executing, size) = (ctx.executing(), self.sched_domains.llc(target).len());
        // A CPU of another pool has another scheduler.
        let this_cpu = if ctx.pcpus().contains(executing) { executing } else { target };
        let prop = |decay: Option<Span>| self.idle_scans.limit(this_cpu, size, ctx.now(), decay);
        let scan = match self.select_rules().scan {
            IdleScan::Util => self.sched_domains.nr_idle_scan(target),
            IdleScan::PropDecaying => prop(Some(self.common.tick())),
            // The target is the first CPU that is scanned.
            IdleScan::PropFromTarget => prop(None).saturating_sub(1),
        };
        let found = if scan >= cpus.len() {
            idle.next_after(target)
        } else {
            after(cpus, target).take(scan as usize).find(|&cpu| idle.contains(cpu))
        };
        if self.select_rules().scan != IdleScan::Util {
            let searched = after(cpus, target).take(scan as usize).take_while(|&cpu| Some(cpu) != found);
            let count = searched.count() as u32 + u32::from(found.is_some());
            self.idle_scans.searched(this_cpu, count);
        }
        found
    }

    /// The rules of the release.
    fn select_rules(&self) -> SelectCpu {
        F::select_cpu(&self.rules)
    }

    /// Notes that a CPU begins or ends to idle: searches depend on idle times.
    pub(super) fn note_idle(&mut self, ctx: &PolicyContext, cpu: PcpuId, idles: bool) {
        if self.sched_domains.by_cpu[cpu].is_empty() {
            return;
        }
        match idles {
            true => self.idle_scans.idles(cpu, ctx.now()),
            false => {
                let cost = self.sched_domains.max_idle_balance_cost(cpu, self.common.migration_cost);
                self.idle_scans.becomes_busy(cpu, ctx.now(), 2 * cost);
            }
        }
    }

    /// Moves a queued thread that does not run to another CPU. A thread that blocked and still competes does so there.
    pub(super) fn migrate_task(&mut self, ctx: &mut PolicyContext, v: VcpuId, task: TaskId, cpu: PcpuId) {
        self.cfs_tasks.remove(v);
        ctx.set_processor(v, cpu);
        self.cfs_tasks.insert(cpu, v);
        if self.fair.is_delayed(task) {
            self.fair.move_delayed(ctx.now(), cpu, task);
        } else {
            self.fair.dequeue_task(ctx.now(), task, false);
            self.fair.attach_task(ctx.now(), cpu, task);
        }
    }

    /// Makes a spinning vCPU yield to a waiting vCPU of its guest: the next after the vCPU that was chosen last.
    pub(super) fn kvm_vcpu_on_spin(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let d = ctx.dom(v);
        let count = ctx.vcpus_of(d).count();
        let last = *self.cgroups.last_boosted_vcpu(d);
        let waits = |&(_, u): &(usize, VcpuId)| {
            let blocked = |task| self.fair.is_throttled(task) || self.fair.is_delayed(task);
            self.cfs_tasks.waits(u) && !self.thread(u).task.is_none_or(blocked)
        };
        let all = || ctx.vcpus_of(d).enumerate();
        let next = all().skip(last + 1).chain(all().take(last + 1)).take(count).find(waits);
        let Some((number, u)) = next else { return };
        *self.cgroups.last_boosted_vcpu(d) = number;
        if let Some(task) = self.thread(u).task {
            self.fair.yield_to(ctx.now(), ctx.processor(v), task);
        }
    }
}

/// The CPUs of a set, starting after a CPU.
fn after(cpus: &CpuMask, cpu: PcpuId) -> impl Iterator<Item = PcpuId> + '_ {
    let first = cpus.next_after(cpu);
    std::iter::successors(first, move |&cpu| cpus.next_after(cpu).filter(|&next| Some(next) != first))
}

#[cfg(test)]
mod tests {
    use vcpulab_host::{
        DomainConfig, Host, HostConfig, Numbering, Op, Params, Time, TopologyConfig, VcpuConfig, WakeCause,
        World, WorldContext,
    };

    use super::super::cfs::{Cfs, Rules};
    use super::*;

    const ALL: [Rules; 3] = [Rules::V5_10, Rules::V5_15, Rules::V6_1];
    const WAKER: PcpuId = PcpuId(0);

    /// Work of a vCPU that is not the waker.
    #[derive(Clone, Copy, PartialEq)]
    enum Work {
        /// No work: the vCPU never wakes.
        Sleeps,
        /// A short run, once the waker wakes the vCPU.
        Wakee,
        /// A run of this length.
        Runs(Span),
    }

    /// The first vCPU, on the first CPU, wakes the wakees one after the other, and sleeps for a while between.
    struct Wakes {
        works: Vec<Work>,
        waker: VcpuId,
        sleep: Span,
        /// Whether the waker slept after it last ran.
        slept: bool,
        /// Whether each vCPU ran.
        ran: Vec<bool>,
        /// Number of the wakee that was woken last, and its CPU before.
        woken: Option<(usize, PcpuId)>,
        /// The CPU of each wakee before and after its wake-up, as soon as the waker has slept.
        choices: Vec<[PcpuId; 2]>,
    }

    impl World for Wakes {
        fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, _left: Span) -> Op {
            let number = v.index() - self.waker.index();
            if v != self.waker {
                return match (std::mem::replace(&mut self.ran[number], true), self.works[number]) {
                    (false, Work::Runs(span)) => Op::Run(span),
                    (false, Work::Wakee) => Op::Run(Span::from_us(1)),
                    _ => Op::Block(None),
                };
            }
            if !std::mem::replace(&mut self.slept, true) {
                return Op::Block(Some(ctx.now() + self.sleep));
            }
            let vcpu = |number: usize| VcpuId(self.waker.0 + number as u32);
            let after = self.woken.map_or(1, |(wakee, before)| {
                self.choices.push([before, ctx.host().processor(vcpu(wakee))]);
                wakee + 1
            });
            let next = (after..self.works.len()).find(|&number| self.works[number] == Work::Wakee);
            let Some(wakee) = next else { return Op::Block(None) };
            self.slept = false;
            self.woken = Some((wakee, ctx.host().processor(vcpu(wakee))));
            ctx.kick(vcpu(wakee), WakeCause::Event);
            Op::Run(Span::from_us(5))
        }
    }

    /// The choices on a host of this topology. Each of the `others` is on one of these CPUs; the waker starts `after`, and sleeps
    /// for `sleep` at a time.
    fn choices(
        rules: Rules,
        topology: TopologyConfig,
        others: &[(Work, &[u32])],
        after: Span,
        sleep: Span,
    ) -> Vec<[PcpuId; 2]> {
        let pcpus = topology.pcpus();
        let vcpu = |work: Work, cpus: &[u32]| {
            let mut affinity = CpuMask::EMPTY;
            cpus.iter().for_each(|&cpu| affinity.insert(PcpuId(cpu)));
            let start = matches!(work, Work::Runs(_)).then_some(Span::ZERO);
            VcpuConfig { start, affinity: Some(affinity), ..VcpuConfig::default() }
        };
        let first = VcpuConfig { start: Some(after), ..vcpu(Work::Sleeps, &[WAKER.0]) };
        let vcpus =
            std::iter::once(first).chain(others.iter().map(|&(work, cpus)| vcpu(work, cpus))).collect();
        let domain = DomainConfig { vcpus, ..DomainConfig::default() };
        let config =
            HostConfig { pcpus, topology: Some(topology), domains: vec![domain], ..HostConfig::default() };
        let works: Vec<Work> =
            std::iter::once(Work::Sleeps).chain(others.iter().map(|&(work, _)| work)).collect();
        let (ran, waker) = (vec![false; works.len()], VcpuId(pcpus));
        let world = Wakes { works, waker, sleep, slept: true, ran, woken: None, choices: Vec::new() };
        let mut host = Host::new(&config, Linux::<Cfs>::with(rules, Params::new()), world, ()).unwrap();
        host.run_until(Time::ZERO + Span::from_ms(200)).unwrap();
        let (_, _, world, ()) = host.into_parts();
        world.choices
    }

    fn topology(sockets: u32, cores: u32, threads: u32) -> TopologyConfig {
        TopologyConfig { sockets, cores, threads, nodes: 1, numbering: Numbering::Adjacent }
    }

    /// The previous CPU of the wakee, of another socket, is idle, but another thread ran on it until lately.
    #[test]
    fn an_idle_previous_cpu_is_preferred_without_a_look_at_loads() {
        let ms = Span::from_ms;
        let others: [(Work, &[u32]); 4] = [
            (Work::Sleeps, &[1]),
            (Work::Sleeps, &[1]),
            (Work::Runs(ms(90)), &[2]),
            (Work::Wakee, &[0, 1, 2]),
        ];
        let choice = |rules| choices(rules, topology(2, 2, 1), &others, ms(91), ms(1));
        assert_eq!(choice(Rules::V5_10), [[PcpuId(2), PcpuId(1)]], "the load of the waker's CPU is less");
        assert_eq!(choice(Rules::V5_15), [[PcpuId(2), PcpuId(2)]]);
        assert_eq!(choice(Rules::V6_1), [[PcpuId(2), PcpuId(2)]]);
    }

    /// The busy previous CPUs from which wake-ups find the only idle CPU, which is the seventh of eight, and all of them.
    fn found_from(rules: Rules, threads: u32, sleep: Span) -> Vec<(u32, bool)> {
        let hogs = [1, 2, 3, 4, 5, 7];
        let pinned: Vec<[u32; 1]> = (0..8).map(|cpu| [cpu]).collect();
        let of = |cpu: u32| pinned[cpu as usize].as_slice();
        // Threads that never run make the placement of others avoid the idle CPU.
        let mut others = vec![(Work::Sleeps, of(6)); 60];
        others.extend(hogs.map(|cpu| (Work::Runs(Span::from_secs(1)), of(cpu))));
        others.extend([(Work::Wakee, [1, 2, 3, 4, 5, 6, 7].as_slice()); 18]);
        let choices = choices(rules, topology(1, 8 / threads, threads), &others, Span::from_us(1), sleep);
        choices.iter().map(|[before, after]| (before.0, *after == PcpuId(6))).collect()
    }

    #[test]
    fn a_cpu_that_seldom_idles_searches_four_cpus_for_an_idle_one() {
        let found = |rules: Rules, sleep: Span| {
            let all = found_from(rules, 1, sleep);
            assert_eq!(all.len(), 18);
            let mut found: Vec<u32> =
                all[6..].iter().filter(|(_, found)| *found).map(|&(cpu, _)| cpu).collect();
            found.dedup();
            found.truncate(6);
            found
        };
        let short = Span::from_us(15);
        assert_eq!(found(Rules::V6_1, short), [1, 2, 3, 4, 5, 7]);
        assert_eq!(found(Rules::V5_15, short), [2, 3, 4, 5, 2, 3], "the fourth CPU after 2");
        assert_eq!(found(Rules::V5_10, short), [3, 4, 5, 3, 4, 5], "the target is one of the four");
        let long = Span::from_ms(1);
        assert_eq!(
            ALL[..2].iter().map(|&rules| found(rules, long)).collect::<Vec<_>>(),
            [[1, 2, 3, 4, 5, 7]; 2]
        );
    }

    /// No core is wholly idle. Only the first search looks for one.
    #[test]
    fn a_search_for_an_idle_core_finds_an_idle_cpu_on_the_way() {
        let first = |rules| found_from(rules, 2, Span::from_us(15))[0];
        assert_eq!(ALL.map(first), [(1, false), (1, true), (1, true)]);
    }
}
