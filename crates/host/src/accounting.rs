//! Accounting of the time of each pCPU: every nanosecond is given to a vCPU that runs, to idleness, or to overhead.
//!
//! The time of a pCPU lies in this order, and `settle` gives it away up to now:
//!
//! ```text
//! settled_at ──────────► hypervisor_until ──────────────► busy_until ─────────────► run end
//!    the hypervisor's work     cold caches are filled again    the current vCPU makes progress
//! ```
//!
//! Both stretches of overhead may be empty. A cost moves `busy_until` on: a decision, an interrupt or other work of the
//! hypervisor (`charge`), a context switch (`charge_switch`), a working set that changes while its vCPU runs (`use_sets`).
//! After each of them the end of the present operation is set anew (`set_run_end`).
//!
//! Progress is as fast as the [hardware](crate::speed) lets it be: what is left of an operation is work, which takes *units* of
//! time. A pCPU whose unit changes is settled before (`change_speeds`).

use crate::cache::{CacheCounts, Caches};
use crate::context::policy::PolicyContext;
use crate::locks::Locks;
use crate::queue::Rank;
use crate::speed::{ONE, Speeds};
use crate::topology::Topology;
use crate::{Costs, CpuMask, HostConfig, NEVER, PcpuId, SetId, Slowed, Span, Table, Time, VcpuId};

/// The account of one pCPU.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// The time up to which its time has been given away.
    settled_at: Time,
    /// The time until which the hypervisor itself works here.
    hypervisor_until: Time,
    /// The time until which no vCPU makes progress here: the hypervisor works, or cold caches are filled again.
    busy_until: Time,
    run: Span,
    idle: Span,
    overhead: Span,
    /// The time that a nanosecond of work takes now, in fractions of [`ONE`].
    unit: u32,
    /// The time of the present operation, in fractions of [`ONE`], that has not yet come to a nanosecond of work.
    begun: u32,
}

/// A unit at which work takes the time that it takes.
const NOMINAL: u32 = ONE as u32;

impl Account {
    const NEW: Account = Account {
        settled_at: Time::ZERO,
        hypervisor_until: Time::ZERO,
        busy_until: Time::ZERO,
        run: Span::ZERO,
        idle: Span::ZERO,
        overhead: Span::ZERO,
        unit: NOMINAL,
        begun: 0,
    };

    /// The work done in this time of an operation that has `left` to do.
    fn work(&mut self, time: Span, left: Span) -> Span {
        if self.unit == NOMINAL {
            return time;
        }
        let all = ONE as u128 * time.ns() as u128 + u128::from(self.begun);
        self.begun = (all % u128::from(self.unit)) as u32;
        // Units shorter than a nanosecond: the last nanosecond may have had room for more.
        Span::from_ns((all / u128::from(self.unit)) as i64).min(left)
    }

    /// The time that this much work takes, `begun` as it is.
    #[inline(always)]
    fn time_for(&self, work: Span) -> Span {
        if self.unit == NOMINAL { work } else { self.slow_time_for(work) }
    }

    #[cold]
    fn slow_time_for(&self, work: Span) -> Span {
        let all = work.ns() as u128 * u128::from(self.unit);
        let time = all.saturating_sub(u128::from(self.begun)).div_ceil(ONE as u128);
        Span::from_ns(i64::try_from(time).unwrap_or(i64::MAX))
    }

    /// Gives the time up to `now` away; the answer is how much of it was progress of the current vCPU.
    #[inline(always)]
    fn settle(&mut self, now: Time, idle: bool) -> Span {
        let progress_from = self.busy_until.clamp(self.settled_at, now);
        let progress = now - progress_from;
        self.overhead += progress_from - self.settled_at;
        if idle {
            self.idle += progress;
        } else {
            self.run += progress;
        }
        self.settled_at = now;
        progress
    }
}

/// The accounts of all pCPUs, the costs that are charged to them, and the caches that make some of these.
#[derive(Clone, Debug)]
pub(crate) struct Accounting {
    pub costs: Costs,
    pub caches: Caches,
    accounts: Table<PcpuId, Account>,
    /// `None`: all work takes the time that it takes.
    speeds: Option<Box<Speeds>>,
    locks: Locks,
}

impl Accounting {
    pub fn new(config: &HostConfig, topology: &Topology) -> Self {
        let costs = config.costs;
        let caches = Caches::new(topology.cores(), topology.l3_groups(costs.l3_pcpus));
        let pcpus = config.pcpus as usize;
        let accounts = Table::filled(pcpus, Account::NEW);
        let speeds = Speeds::new(config, topology).map(Box::new);
        let locks = Locks::new(if costs.lock_ns.is_zero() { 0 } else { pcpus });
        Accounting { costs, caches, accounts, speeds, locks }
    }

    /// Gives the time of `p` away, and takes the progress of its current vCPU, the answer, from what is left of its operation.
    #[inline(always)]
    pub fn settle(&mut self, host: &mut PolicyContext, p: PcpuId) -> VcpuId {
        let current = host.pcpus[p].executes;
        let idle = host.is_idle(current);
        let progress = self.accounts[p].settle(host.now, idle);
        if !idle {
            let left = host.vcpus[current].left;
            let work = self.work(p, current, progress, left);
            if left != Span::MAX {
                host.vcpus[current].left = left - work;
                debug_assert!(work <= left, "a vCPU ran past the end of its operation");
            }
        }
        current
    }

    /// The work done by `v` in this much time on `p`, of which so much was left; what was lost is counted.
    #[inline(always)]
    fn work(&mut self, p: PcpuId, v: VcpuId, progress: Span, left: Span) -> Span {
        if self.speeds.is_none() { progress } else { self.work_at_its_pace(p, v, progress, left) }
    }

    #[cold]
    #[inline(never)]
    fn work_at_its_pace(&mut self, p: PcpuId, v: VcpuId, progress: Span, left: Span) -> Span {
        let work = self.accounts[p].work(progress, left);
        if let Some(speeds) = &mut self.speeds {
            speeds.count(p, v, progress, work);
        }
        work
    }

    /// Ends the operation of the vCPU that `p` executes, which is not an idle one: the answer is the vCPU, and what is left of
    /// the operation.
    #[inline(always)]
    pub fn end(&mut self, host: &mut PolicyContext, p: PcpuId) -> (VcpuId, Span) {
        let current = host.pcpus[p].executes;
        debug_assert!(!host.is_idle(current), "an idle vCPU has no operation");
        let progress = self.accounts[p].settle(host.now, false);
        let vcpu = &mut host.vcpus[current];
        vcpu.interrupted = false;
        let left = std::mem::take(&mut vcpu.left);
        let work = self.work(p, current, progress, left);
        (current, if left == Span::MAX { left } else { left - work })
    }

    /// Sets the event at which the current vCPU of `p` will have used its operation up.
    #[inline(always)]
    pub fn set_run_end(&self, host: &mut PolicyContext, p: PcpuId) {
        let current = host.pcpus[p].executes;
        let end = if host.is_idle(current) {
            NEVER
        } else {
            let vcpu = &host.vcpus[current];
            let account = &self.accounts[p];
            let start = account.busy_until.max(host.now);
            if vcpu.interrupted { start } else { start.saturating_add(account.time_for(vcpu.left)) }
        };
        host.queue.set(Rank::RunEnd, p.index(), end);
    }

    /// The current vCPU `v` of `p`, settled now, begins an operation, which nothing has interrupted yet.
    #[inline(always)]
    pub fn begin(&mut self, host: &mut PolicyContext, p: PcpuId, v: VcpuId, operation: Span) {
        debug_assert!(host.pcpus[p].executes == v && !host.vcpus[v].interrupted, "it does not run freely");
        host.vcpus[v].left = operation;
        let account = &mut self.accounts[p];
        let start = account.busy_until.max(host.now);
        if account.unit != NOMINAL {
            account.begun = 0;
        }
        let end = start.saturating_add(account.time_for(operation));
        host.queue.set(Rank::RunEnd, p.index(), end);
    }

    /// Charges work of the hypervisor to `p`: the vCPU there makes no progress meanwhile.
    #[inline(always)]
    pub fn charge(&mut self, host: &mut PolicyContext, p: PcpuId, cost: Span) {
        if !cost.is_zero() {
            self.delay(host, p, cost);
            self.set_run_end(host, p);
        }
    }

    /// Charges a decision to `p`. The end of the present operation is set by what is decided: a switch, or
    /// [`set_run_end`](Self::set_run_end).
    #[inline(always)]
    pub fn charge_decision(&mut self, host: &mut PolicyContext, p: PcpuId) {
        if !self.costs.decision_ns.is_zero() {
            self.delay(host, p, self.costs.decision_ns);
        }
    }

    fn delay(&mut self, host: &mut PolicyContext, p: PcpuId, cost: Span) {
        self.settle(host, p);
        let account = &mut self.accounts[p];
        account.hypervisor_until = account.hypervisor_until.max(host.now) + cost;
        account.busy_until = account.busy_until.max(host.now) + cost;
    }

    /// Charges a switch from one vCPU to another, which is current now, to `p`: the switch itself, then the refill of what
    /// the other finds cold. The time before was settled.
    #[inline]
    pub fn charge_switch(&mut self, host: &mut PolicyContext, p: PcpuId, from: VcpuId, to: VcpuId) {
        let Accounting { costs, caches, accounts, speeds, .. } = self;
        if !costs.context_switch_ns.is_zero() || costs.l2_bytes > 0 {
            // The rest of the outgoing vCPU's refill is no longer wanted; the hypervisor's own work still is.
            let account = &mut accounts[p];
            let switch_from = account.hypervisor_until.max(host.now);
            let unwanted = account.busy_until - switch_from;
            if unwanted > Span::ZERO {
                caches.cut_short(from, unwanted);
            }
            let refill = if costs.l2_bytes > 0 {
                caches.touch(&costs_of_memory(costs, speeds, host, p, to), p, to)
            } else {
                Span::ZERO
            };
            account.hypervisor_until = switch_from + costs.context_switch_ns;
            account.busy_until = account.hypervisor_until + refill;
        }
        self.set_run_end(host, p);
    }

    /// Charges to `p` that the vCPU it turns to was preempted, or woken.
    #[inline(always)]
    pub fn charge_return(&mut self, host: &mut PolicyContext, p: PcpuId, woken: bool) {
        self.charge(host, p, if woken { self.costs.block_ns } else { self.costs.resume_ns });
    }

    /// Charges to `p` that the vCPU it executes wakes another.
    #[inline(always)]
    pub fn charge_wake(&mut self, host: &mut PolicyContext, p: PcpuId) {
        self.charge(host, p, self.costs.wake_ns);
    }

    /// Gives `v` these working sets from now on; if it runs, what is missing of them is brought in at once.
    pub fn use_sets(&mut self, host: &mut PolicyContext, v: VcpuId, sets: &[SetId]) {
        self.caches.use_sets(v, sets);
        if self.costs.l2_bytes > 0 && host.vcpus[v].runs() {
            let p = host.processor(v);
            let costs = costs_of_memory(&self.costs, &self.speeds, host, p, v);
            let refill = self.caches.touch(&costs, p, v);
            if !refill.is_zero() {
                self.settle(host, p);
                let account = &mut self.accounts[p];
                account.busy_until = account.busy_until.max(host.now) + refill;
                self.set_run_end(host, p);
            }
        }
    }

    // ---- what others make of the speed ----

    /// `p`, settled now, turns to another vCPU: it and others may become faster or slower.
    #[inline(always)]
    pub fn turn(&mut self, host: &mut PolicyContext, p: PcpuId) {
        if let Some(speeds) = &mut self.speeds {
            let executes = host.pcpus[p].executes;
            let dom = (!host.is_idle(executes)).then(|| host.dom(executes));
            let feel = speeds.turn(p, dom);
            self.change_speeds(host, feel);
        }
    }

    /// The governor chooses frequencies. The answer is when it does so again.
    pub fn govern(&mut self, host: &mut PolicyContext) -> Option<Time> {
        let accounts = &self.accounts;
        let speeds = self.speeds.as_mut()?;
        let feel = speeds.govern(|p| {
            let mut account = accounts[p];
            account.settle(host.now, host.is_idle(host.pcpus[p].executes));
            account.idle
        });
        let next = speeds.governor_sample().map(|sample| host.now + sample);
        self.change_speeds(host, feel);
        next
    }

    /// Applies the new speed unit on those of these pCPUs whose unit has changed.
    fn change_speeds(&mut self, host: &mut PolicyContext, pcpus: CpuMask) {
        for p in pcpus.iter() {
            if let Some(pace) = self.speeds.as_ref().and_then(|speeds| speeds.new_pace(p)) {
                self.settle(host, p);
                if let Some(speeds) = &mut self.speeds {
                    speeds.set_pace(p, pace);
                }
                let account = &mut self.accounts[p];
                (account.unit, account.begun) = (pace.unit() as u32, 0);
                self.set_run_end(host, p);
            }
        }
    }

    /// Interval at which a governor chooses frequencies; `None`: no governor does.
    pub fn governor_sample(&self) -> Option<Span> {
        self.speeds.as_ref().and_then(|speeds| speeds.governor_sample())
    }

    // ---- locks ----

    /// Charges the interprocessor interrupt that asked `p` to decide.
    #[inline(always)]
    pub fn charge_ipi(&mut self, host: &mut PolicyContext, p: PcpuId) {
        if !self.costs.ipi_ns.is_zero() {
            self.charge(host, p, self.costs.ipi_ns);
        }
    }

    /// Whether scheduler locks have a cost.
    #[inline(always)]
    pub fn has_locks(&self) -> bool {
        !self.costs.lock_ns.is_zero()
    }

    /// Charges to `p` what it takes to get the lock of a run queue, named by a pCPU, which it then holds for so long.
    pub fn charge_lock(&mut self, host: &mut PolicyContext, p: PcpuId, lock: PcpuId, held: Span) {
        let until_ours = self.locks.take(host.now, p, lock, held, self.costs.lock_ns);
        self.charge(host, p, until_ours);
    }

    // ---- what observers read ----

    /// See [`HostState::pcpu_times`](crate::HostState::pcpu_times).
    pub fn pcpu_times(&self, host: &PolicyContext, p: PcpuId) -> (Span, Span, Span) {
        let mut account = self.accounts[p];
        account.settle(host.now, host.is_idle(host.pcpus[p].executes));
        (account.run, account.idle, account.overhead)
    }

    #[inline(always)]
    pub fn busy_until(&self, p: PcpuId) -> Time {
        self.accounts[p].busy_until
    }

    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.accounts[p].hypervisor_until
    }

    /// The rest of the present `Run` of `v`, which it has not executed up to now.
    pub fn left(&self, host: &PolicyContext, v: VcpuId) -> Span {
        let vcpu = &host.vcpus[v];
        if !vcpu.runs() || vcpu.left == Span::MAX { vcpu.left } else { vcpu.left - self.unsettled(host, v).1 }
    }

    /// See [`HostState::cache_counts`](crate::HostState::cache_counts).
    pub fn cache_counts(&self, host: &PolicyContext, v: VcpuId) -> CacheCounts {
        let mut counts = self.caches.counts(v);
        if host.vcpus[v].runs() {
            // A refill is counted when it begins.
            let Account { hypervisor_until, busy_until, .. } = self.accounts[host.vcpus[v].processor];
            counts.refill_ns -= (busy_until - hypervisor_until.max(host.now)).max(Span::ZERO);
        }
        counts
    }

    /// The time gotten by `v`, and the work done in it, that is not yet settled.
    fn unsettled(&self, host: &PolicyContext, v: VcpuId) -> (Span, Span) {
        let vcpu = &host.vcpus[v];
        if !vcpu.runs() {
            return (Span::ZERO, Span::ZERO);
        }
        let mut account = self.accounts[vcpu.processor];
        let gotten = account.settle(host.now, false);
        (gotten, account.work(gotten, vcpu.left))
    }

    /// See [`HostState::slowed`](crate::HostState::slowed).
    pub fn slowed(&self, host: &PolicyContext, v: VcpuId) -> Slowed {
        let Some(speeds) = &self.speeds else { return Slowed::default() };
        let (gotten, work) = self.unsettled(host, v);
        speeds.slowed(v, host.processor(v), gotten, work)
    }
}

/// The costs of a refill on `p`: memory of the vCPU's domain may be far from there.
#[inline(always)]
fn costs_of_memory(
    costs: &Costs,
    speeds: &Option<Box<Speeds>>,
    host: &PolicyContext,
    p: PcpuId,
    v: VcpuId,
) -> Costs {
    match speeds {
        Some(speeds) if !host.is_idle(v) => {
            Costs { l3_miss_ps: costs.l3_miss_ps * speeds.memory_distance(p, host.dom(v)) / ONE, ..*costs }
        }
        _ => *costs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Decision, DomainConfig, Host, HostConfig, HostRules, Op, Scheduler, Slice, VcpuConfig, WakeCause,
        World, WorldContext,
    };

    const P: PcpuId = PcpuId(0);
    const LOW: VcpuId = VcpuId(1);
    const HIGH: VcpuId = VcpuId(2);

    /// Of the vCPUs that can run, the last one does, at once.
    struct Priority;

    impl Scheduler for Priority {
        fn rules(&self) -> HostRules {
            HostRules::XEN_4_17
        }

        fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

        fn insert(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

        fn wake(&mut self, ctx: &mut PolicyContext, _v: VcpuId) {
            ctx.raise_reschedule(P);
        }

        fn sleep(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

        fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
            let next = ctx.pool_vcpus().filter(|&v| ctx.runnable(v)).last();
            Decision { next: next.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
        }

        fn pick(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) -> PcpuId {
            P
        }
    }

    /// `LOW` computes for 1 ms; `HIGH` for 2 µs, blocks up to 55.4 µs, and computes for 2 µs again. A device interrupts at
    /// 51.5 µs.
    struct Busy(Vec<Op>);

    impl World for Busy {
        fn start(&mut self, ctx: &mut WorldContext<'_>) {
            ctx.set_working_set(LOW, 1000);
            ctx.set_working_set(HIGH, 1600);
            ctx.make_sources(1);
            ctx.set_source(0, Time::from_ns(51_500));
        }

        fn fire(&mut self, ctx: &mut WorldContext<'_>, _source: usize) {
            ctx.interrupt(P);
        }

        fn next_op(&mut self, _ctx: &mut WorldContext<'_>, v: VcpuId, _left: Span) -> Op {
            if v == LOW { Op::Run(Span::from_ms(1)) } else { self.0.pop().unwrap_or(Op::Block(None)) }
        }
    }

    fn host() -> Host<Priority, Busy, ()> {
        let costs = Costs {
            decision_ns: Span::from_ns(100),
            context_switch_ns: Span::from_ns(1000),
            interrupt_ns: Span::from_ns(300),
            l2_bytes: 2000,
            cache_line_bytes: 10,
            l2_miss_ps: 5000,
            ..Costs::ZERO
        };
        let vcpu =
            |start| VcpuConfig { start: Some(Span::from_ns(start)), affinity: None, ..VcpuConfig::default() };
        let domain = DomainConfig { vcpus: vec![vcpu(1000), vcpu(50_000)], ..DomainConfig::default() };
        let config = HostConfig { pcpus: 1, costs, domains: vec![domain], ..HostConfig::default() };
        let run = Op::Run(Span::from_us(2));
        let until = Op::Block(Some(Time::from_ns(55_400)));
        Host::new(&config, Priority, Busy(vec![run, until, run]), ()).unwrap()
    }

    /// After all that is due at `ns`: the time run, idle and taken by overhead; the ends of the hypervisor's work and of all
    /// overhead; what `LOW` and `HIGH` have left of their operations.
    fn at(host: &mut Host<Priority, Busy, ()>, ns: i64) -> ([i64; 3], [i64; 2], [i64; 2]) {
        host.run_until(Time::from_ns(ns + 1)).unwrap();
        let account = host.core.accounting.accounts[P];
        // The host stands 1 ns later.
        let (run, idle, overhead) = host.context().pcpu_times(P);
        assert_eq!(run + idle + overhead, Span::from_ns(ns + 1), "every nanosecond is somebody's");
        let left = [LOW, HIGH].map(|v| host.context().left(v).ns());
        ([run.ns(), idle.ns(), overhead.ns()], [account.hypervisor_until.ns(), account.busy_until.ns()], left)
    }

    #[test]
    fn a_context_switch_is_accounted_for_to_the_nanosecond() {
        let mut host = host();
        // The first decision (100), the switch from idle (1000), and 100 cold lines of 5 ns: LOW begins at 2600.
        assert_eq!(at(&mut host, 999), ([0, 1000, 0], [0, 0], [0, 0]));
        assert_eq!(at(&mut host, 1000), ([0, 1000, 1], [2100, 2600], [0, 0]));
        assert_eq!(at(&mut host, 2599), ([0, 1000, 1600], [2100, 2600], [0, 0]));
        assert_eq!(at(&mut host, 2600), ([1, 1000, 1600], [2100, 2600], [999_999, 0]));
        // HIGH preempts it after 47,400 ns: decision, switch, and 160 cold lines.
        assert_eq!(at(&mut host, 49_999), ([47_400, 1000, 1600], [2100, 2600], [952_600, 0]));
        assert_eq!(at(&mut host, 50_000), ([47_400, 1000, 1601], [51_100, 51_900], [952_600, 0]));
        // The interrupt comes during the refill: both wait for the 300 ns that it takes.
        assert_eq!(at(&mut host, 51_500), ([47_400, 1000, 3101], [51_800, 52_200], [952_600, 0]));
        assert_eq!(at(&mut host, 52_199), ([47_400, 1000, 3800], [51_800, 52_200], [952_600, 0]));
        // HIGH has 2000 ns of its own, and blocks.
        assert_eq!(at(&mut host, 54_198), ([49_399, 1000, 3800], [51_800, 52_200], [952_600, 1]));
        let times = host.context().run_times(HIGH);
        assert_eq!(times.running_ns, Span::from_ns(4199), "the runstate counts overhead as running");
        // LOW finds 40 of its 100 lines: 300 ns of refill, of which HIGH, which wakes at 55,400, cuts the last 200 short.
        assert_eq!(at(&mut host, 54_200), ([49_400, 1000, 3801], [55_300, 55_600], [952_600, 0]));
        assert_eq!(at(&mut host, 55_399), ([49_400, 1000, 5000], [55_300, 55_600], [952_600, 0]));
        assert_eq!(at(&mut host, 55_400), ([49_400, 1000, 5001], [56_500, 56_800], [952_600, 0]));
        let refills = [LOW, HIGH].map(|v| host.context().cache_counts(v).refill_ns.ns());
        assert_eq!(refills, [500 + 100, 800], "the refill of HIGH is yet to come");
        assert_eq!(at(&mut host, 56_800), ([49_401, 1000, 6400], [56_500, 56_800], [952_600, 1999]));
        assert_eq!(host.context().cache_counts(HIGH).refill_ns.ns(), 800 + 300);
    }

    #[test]
    fn in_exact_mode_a_switch_takes_no_time() {
        let mut host = host();
        host.core.accounting.costs = Costs::ZERO;
        assert_eq!(at(&mut host, 50_000), ([49_001, 1000, 0], [0, 0], [951_000, 1999]));
        let cause = host.core.policy.vcpus[HIGH].cause;
        assert_eq!((cause, host.context().executes(P)), (WakeCause::Start, HIGH));
    }
}
