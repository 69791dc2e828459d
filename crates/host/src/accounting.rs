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

use crate::accounts::{Account, NOMINAL};
use crate::cache::CacheCounts;
use crate::queue::Rank;
use crate::speed::ONE;
use crate::{Costs, CpuMask, HostState, NEVER, PcpuId, SetId, Slowed, Span, Table, Time, VcpuId};

impl HostState {
    /// Attributes the time of `p` up to now. Subtracts the progress of its current vCPU, which is returned, from the rest of the vCPU's operation.
    #[inline(always)]
    pub(crate) fn settle(&mut self, p: PcpuId) -> VcpuId {
        let current = self.pcpus[p].executes;
        let idle = self.is_idle(current);
        let progress = self.accounts.by_pcpu[p].settle(self.now, idle);
        if !idle {
            let left = self.vcpus[current].left;
            let work = self.accounts.work(p, current, progress, left);
            if left != Span::MAX {
                self.vcpus[current].left = left - work;
                debug_assert!(work <= left, "a vCPU ran past the end of its operation");
            }
        }
        current
    }

    /// Ends the operation of the vCPU that `p` executes, which is not an idle one: the answer is the vCPU, and what is left of
    /// the operation.
    #[inline(always)]
    pub(crate) fn end_operation(&mut self, p: PcpuId) -> (VcpuId, Span) {
        let current = self.pcpus[p].executes;
        debug_assert!(!self.is_idle(current), "an idle vCPU has no operation");
        let progress = self.accounts.by_pcpu[p].settle(self.now, false);
        let vcpu = &mut self.vcpus[current];
        vcpu.interrupted = false;
        let left = std::mem::take(&mut vcpu.left);
        let work = self.accounts.work(p, current, progress, left);
        (current, if left == Span::MAX { left } else { left - work })
    }

    /// Sets the event at which the current vCPU of `p` will have used its operation up.
    #[inline(always)]
    pub(crate) fn set_run_end(&mut self, p: PcpuId) {
        let current = self.pcpus[p].executes;
        let end = if self.is_idle(current) {
            NEVER
        } else {
            let vcpu = &self.vcpus[current];
            let account = &self.accounts.by_pcpu[p];
            let start = account.busy_until.max(self.now);
            if vcpu.interrupted { start } else { start.saturating_add(account.time_for(vcpu.left)) }
        };
        self.queue.set(Rank::RunEnd, p.index(), end);
    }

    /// The current vCPU `v` of `p`, settled now, begins an operation, which nothing has interrupted yet.
    #[inline(always)]
    pub(crate) fn begin_operation(&mut self, p: PcpuId, v: VcpuId, operation: Span) {
        debug_assert!(self.pcpus[p].executes == v && !self.vcpus[v].interrupted, "it does not run freely");
        self.vcpus[v].left = operation;
        let account = &mut self.accounts.by_pcpu[p];
        let start = account.busy_until.max(self.now);
        if account.unit != NOMINAL {
            account.begun = 0;
        }
        let end = start.saturating_add(account.time_for(operation));
        self.queue.set(Rank::RunEnd, p.index(), end);
    }

    /// Charges work of the hypervisor to `p`: the vCPU there makes no progress meanwhile.
    #[inline(always)]
    pub(crate) fn charge(&mut self, p: PcpuId, cost: Span) {
        if !cost.is_zero() {
            self.delay(p, cost);
            self.set_run_end(p);
        }
    }

    /// Charges a decision to `p`. The end of the present operation is set by what is decided: a switch, or
    /// [`set_run_end`](Self::set_run_end).
    #[inline(always)]
    pub(crate) fn charge_decision(&mut self, p: PcpuId) {
        if !self.accounts.costs.decision_ns.is_zero() {
            self.delay(p, self.accounts.costs.decision_ns);
        }
    }

    fn delay(&mut self, p: PcpuId, cost: Span) {
        self.settle(p);
        let account = &mut self.accounts.by_pcpu[p];
        account.hypervisor_until = account.hypervisor_until.max(self.now) + cost;
        account.busy_until = account.busy_until.max(self.now) + cost;
    }

    /// Charges a switch from one vCPU to another, which is current now, to `p`: the switch itself, then the refill of what
    /// the other finds cold. The time before was settled.
    #[inline]
    pub(crate) fn charge_switch(&mut self, p: PcpuId, from: VcpuId, to: VcpuId) {
        let Costs { context_switch_ns, l2_bytes, .. } = self.accounts.costs;
        if !context_switch_ns.is_zero() || l2_bytes > 0 {
            // The rest of the outgoing vCPU's refill is no longer wanted; the hypervisor's own work still is.
            let account = &self.accounts.by_pcpu[p];
            let switch_from = account.hypervisor_until.max(self.now);
            let unwanted = account.busy_until - switch_from;
            if unwanted > Span::ZERO {
                self.accounts.caches.cut_short(from, unwanted);
            }
            let refill = if l2_bytes > 0 { self.refill(p, to) } else { Span::ZERO };
            let account = &mut self.accounts.by_pcpu[p];
            account.hypervisor_until = switch_from + context_switch_ns;
            account.busy_until = account.hypervisor_until + refill;
        }
        self.set_run_end(p);
    }

    /// Charges to `p` that the vCPU it turns to was preempted, or woken.
    #[inline(always)]
    pub(crate) fn charge_return(&mut self, p: PcpuId, woken: bool) {
        self.charge(p, if woken { self.accounts.costs.block_ns } else { self.accounts.costs.resume_ns });
    }

    /// Charges to `p` that the vCPU it executes wakes another.
    #[inline(always)]
    pub(crate) fn charge_wake(&mut self, p: PcpuId) {
        self.charge(p, self.accounts.costs.wake_ns);
    }

    /// Gives `v` these working sets from now on; if it runs, what is missing of them is brought in at once.
    pub(crate) fn use_sets(&mut self, v: VcpuId, sets: &[SetId]) {
        self.accounts.caches.use_sets(v, sets);
        if self.accounts.costs.l2_bytes > 0 && self.vcpus[v].runs() {
            let p = self.processor(v);
            let refill = self.refill(p, v);
            if !refill.is_zero() {
                self.settle(p);
                let account = &mut self.accounts.by_pcpu[p];
                account.busy_until = account.busy_until.max(self.now) + refill;
                self.set_run_end(p);
            }
        }
    }

    /// Brings the working sets of `v` into the caches of `p`; the answer is the time that this takes. Memory of the vCPU's
    /// domain may be far from `p`.
    #[inline(always)]
    fn refill(&mut self, p: PcpuId, v: VcpuId) -> Span {
        let mut costs = self.accounts.costs;
        if let Some(speeds) = self.accounts.speeds.as_ref().filter(|_| !self.is_idle(v)) {
            costs.l3_miss_ps = costs.l3_miss_ps * speeds.memory_distance(p, self.dom(v)) / ONE;
        }
        self.accounts.caches.touch(&costs, p, v)
    }

    // ---- what others make of the speed ----

    /// Updates the speeds of `p`, settled now, and of others after `p` has turned to another vCPU.
    #[inline(always)]
    pub(crate) fn update_speeds(&mut self, p: PcpuId) {
        let executes = self.pcpus[p].executes;
        let is_idle = self.is_idle(executes);
        if let Some(speeds) = &mut self.accounts.speeds {
            let dom = (!is_idle).then(|| self.vcpus[executes].dom);
            let feel = speeds.turn(p, dom);
            self.change_speeds(feel);
        }
    }

    /// The governor chooses frequencies. The answer is when it does so again.
    pub(crate) fn govern(&mut self) -> Option<Time> {
        let idle: Table<PcpuId, Span> = self.all_pcpus().iter().map(|p| self.pcpu_times(p).1).collect();
        let speeds = self.accounts.speeds.as_mut()?;
        let feel = speeds.govern(|p| idle[p]);
        let next = speeds.governor_sample().map(|sample| self.now + sample);
        self.change_speeds(feel);
        next
    }

    /// Applies the new speed unit on those of these pCPUs whose unit has changed.
    fn change_speeds(&mut self, pcpus: CpuMask) {
        for p in pcpus.iter() {
            if let Some(pace) = self.accounts.speeds.as_ref().and_then(|speeds| speeds.new_pace(p)) {
                self.settle(p);
                if let Some(speeds) = &mut self.accounts.speeds {
                    speeds.set_pace(p, pace);
                }
                let account = &mut self.accounts.by_pcpu[p];
                (account.unit, account.begun) = (pace.unit() as u32, 0);
                self.set_run_end(p);
            }
        }
    }

    // ---- locks ----

    /// Charges the interprocessor interrupt that asked `p` to decide.
    #[inline(always)]
    pub(crate) fn charge_ipi(&mut self, p: PcpuId) {
        if !self.accounts.costs.ipi_ns.is_zero() {
            self.charge(p, self.accounts.costs.ipi_ns);
        }
    }

    /// Charges to `p` what it takes to get the lock of a run queue, named by a pCPU, which it then holds for so long.
    pub(crate) fn charge_lock(&mut self, p: PcpuId, lock: PcpuId, held: Span) {
        let until_ours = self.accounts.locks.take(self.now, p, lock, held, self.accounts.costs.lock_ns);
        self.charge(p, until_ours);
    }

    // ---- what observers read ----

    /// The time of `p` up to now: running vCPUs, idle, overhead. The three sum to the time elapsed.
    pub fn pcpu_times(&self, p: PcpuId) -> (Span, Span, Span) {
        let mut account = self.accounts.by_pcpu[p];
        account.settle(self.now, self.is_idle(self.pcpus[p].executes));
        (account.run, account.idle, account.overhead)
    }

    /// The time until which no vCPU makes progress on `p`, because the hypervisor works there or cold caches are filled
    /// again. If it is past, the current vCPU makes progress.
    #[inline(always)]
    pub fn busy_until(&self, p: PcpuId) -> Time {
        self.accounts.by_pcpu[p].busy_until
    }

    /// The time until which the hypervisor works on `p`; from then to [`HostState::busy_until`] cold caches are filled again.
    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.accounts.by_pcpu[p].hypervisor_until
    }

    /// The rest of the present `Run` of `v`, which it has not executed up to now.
    pub fn left(&self, v: VcpuId) -> Span {
        let vcpu = &self.vcpus[v];
        if !vcpu.runs() || vcpu.left == Span::MAX { vcpu.left } else { vcpu.left - self.unsettled(v).1 }
    }

    /// The cost of cold caches to `v` so far.
    pub fn cache_counts(&self, v: VcpuId) -> CacheCounts {
        let mut counts = self.accounts.caches.counts(v);
        if self.vcpus[v].runs() {
            // A refill is counted when it begins.
            let Account { hypervisor_until, busy_until, .. } = self.accounts.by_pcpu[self.vcpus[v].processor];
            counts.refill_ns -= (busy_until - hypervisor_until.max(self.now)).max(Span::ZERO);
        }
        counts
    }

    /// The cost of cold caches so far to every vCPU up to the last one that had a working set.
    pub fn all_cache_counts(&self) -> Vec<CacheCounts> {
        self.accounts.caches.ids().map(|v| self.cache_counts(v)).collect()
    }

    /// The time gotten by `v`, and the work done in it, that is not yet settled.
    fn unsettled(&self, v: VcpuId) -> (Span, Span) {
        let vcpu = &self.vcpus[v];
        if !vcpu.runs() {
            return (Span::ZERO, Span::ZERO);
        }
        let mut account = self.accounts.by_pcpu[vcpu.processor];
        let gotten = account.settle(self.now, false);
        (gotten, account.work(gotten, vcpu.left))
    }

    /// The part of the time gotten so far by `v` in which no work was done, because the [hardware](crate::speed) was slower.
    pub fn slowed(&self, v: VcpuId) -> Slowed {
        let Some(speeds) = &self.accounts.speeds else { return Slowed::default() };
        let (gotten, work) = self.unsettled(v);
        speeds.slowed(v, self.processor(v), gotten, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Decision, DomainConfig, Host, HostConfig, HostRules, Op, PolicyContext, Scheduler, Slice, VcpuConfig,
        WakeCause, World, WorldContext,
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
        let account = host.view.state.accounts.by_pcpu[P];
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
        host.view.state.accounts.costs = Costs::ZERO;
        assert_eq!(at(&mut host, 50_000), ([49_001, 1000, 0], [0, 0], [951_000, 1999]));
        let cause = host.view.state.vcpus[HIGH].cause;
        assert_eq!((cause, host.context().executes(P)), (WakeCause::Start, HIGH));
    }
}
