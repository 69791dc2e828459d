//! Where the time of each pCPU goes: every nanosecond is given to a vCPU that runs, to idleness, or to overhead.
//!
//! The time of a pCPU lies in this order, and [`Accounting::settle`] gives it away up to now:
//!
//! ```text
//! settled_at ──────────► hypervisor_until ──────────────► busy_until ─────────────► run end
//!    the hypervisor's work     cold caches are filled again    the current vCPU makes progress
//! ```
//!
//! Both stretches of overhead may be empty. A cost moves `busy_until` on: a decision, an interrupt or other work of the
//! hypervisor ([`charge`](Accounting::charge)), a context switch ([`charge_switch`](Accounting::charge_switch)), a working
//! set that changes while its vCPU runs ([`use_sets`](Accounting::use_sets)). After each of them the end of the present
//! operation is set anew ([`set_run_end`](Accounting::set_run_end)).

use crate::cache::Caches;
use crate::context::policy::PolicyContext;
use crate::queue::Rank;
use crate::topology::Topology;
use crate::{Costs, NEVER, PcpuId, SetId, Span, Table, Time, VcpuId};

/// The account of one pCPU.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// The time up to which its time has been given away.
    settled_at: Time,
    /// The time until which the hypervisor itself works here.
    hypervisor_until: Time,
    /// The time until which nobody makes progress here: the hypervisor works, or cold caches are filled again.
    busy_until: Time,
    run: Span,
    idle: Span,
    overhead: Span,
}

impl Account {
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
}

impl Accounting {
    pub fn new(costs: Costs, topology: &Topology) -> Self {
        let l3_of = topology.l3_groups(costs.l3_pcpus);
        let accounts = Table::filled(l3_of.len(), Account::default());
        Accounting { costs, caches: Caches::new(l3_of), accounts }
    }

    /// Gives the time of `p` away, and takes the progress of its current vCPU from what is left of its operation.
    #[inline(always)]
    pub fn settle(&mut self, host: &mut PolicyContext, p: PcpuId) {
        let current = host.pcpus[p].current;
        let idle = host.is_idle(current);
        let progress = self.accounts[p].settle(host.now, idle);
        if !idle {
            let vcpu = &mut host.vcpus[current];
            if vcpu.left != Span::MAX {
                vcpu.left -= progress;
                debug_assert!(!vcpu.left.is_negative(), "a vCPU ran past the end of its operation");
            }
        }
    }

    /// Sets the event at which the current vCPU of `p` will have used its operation up.
    #[inline(always)]
    pub fn set_run_end(&self, host: &mut PolicyContext, p: PcpuId) {
        let current = host.pcpus[p].current;
        let end = if host.is_idle(current) {
            NEVER
        } else {
            let vcpu = &host.vcpus[current];
            let start = self.accounts[p].busy_until.max(host.now);
            if vcpu.interrupted { start } else { start.saturating_add(vcpu.left) }
        };
        host.queue.set(Rank::RunEnd, p.index(), end);
    }

    /// Charges work of the hypervisor to `p`: whoever runs there makes no progress meanwhile.
    #[inline(always)]
    pub fn charge(&mut self, host: &mut PolicyContext, p: PcpuId, cost: Span) {
        if !cost.is_zero() {
            self.delay(host, p, cost);
        }
    }

    fn delay(&mut self, host: &mut PolicyContext, p: PcpuId, cost: Span) {
        self.settle(host, p);
        let account = &mut self.accounts[p];
        account.hypervisor_until = account.hypervisor_until.max(host.now) + cost;
        account.busy_until = account.busy_until.max(host.now) + cost;
        self.set_run_end(host, p);
    }

    /// Charges a switch from one vCPU to another, which is current now, to `p`: the switch itself, then the refill of what
    /// the other finds cold. The time before was settled.
    #[inline]
    pub fn charge_switch(&mut self, host: &mut PolicyContext, p: PcpuId, from: VcpuId, to: VcpuId) {
        let Accounting { costs, caches, accounts } = self;
        if !costs.context_switch_ns.is_zero() || costs.l2_bytes > 0 {
            // What the outgoing vCPU had yet to bring in is no longer wanted; the hypervisor's own work still is.
            let account = &mut accounts[p];
            let switch_from = account.hypervisor_until.max(host.now);
            let unwanted = account.busy_until - switch_from;
            if unwanted > Span::ZERO {
                caches.cut_short(from, unwanted);
            }
            let refill = if costs.l2_bytes > 0 { caches.touch(costs, p, to) } else { Span::ZERO };
            account.hypervisor_until = switch_from + costs.context_switch_ns;
            account.busy_until = account.hypervisor_until + refill;
        }
        self.set_run_end(host, p);
    }

    /// Gives `v` these working sets from now on; if it runs, what is missing of them is brought in at once.
    pub fn use_sets(&mut self, host: &mut PolicyContext, v: VcpuId, sets: &[SetId]) {
        self.caches.use_sets(v, sets);
        if self.costs.l2_bytes > 0 && host.is_current(v) {
            let p = host.processor(v);
            let refill = self.caches.touch(&self.costs, p, v);
            if !refill.is_zero() {
                self.settle(host, p);
                let account = &mut self.accounts[p];
                account.busy_until = account.busy_until.max(host.now) + refill;
                self.set_run_end(host, p);
            }
        }
    }

    // ---- what observers read ----

    /// See [`HostState::pcpu_times`](crate::HostState::pcpu_times).
    pub fn pcpu_times(&self, host: &PolicyContext, p: PcpuId) -> (Span, Span, Span) {
        let mut account = self.accounts[p];
        account.settle(host.now, host.is_idle(host.current(p)));
        (account.run, account.idle, account.overhead)
    }

    #[inline(always)]
    pub fn busy_until(&self, p: PcpuId) -> Time {
        self.accounts[p].busy_until
    }

    pub fn hypervisor_until(&self, p: PcpuId) -> Time {
        self.accounts[p].hypervisor_until
    }

    /// What `v` has not executed up to now of its present `Run`.
    pub fn left(&self, host: &PolicyContext, v: VcpuId) -> Span {
        let vcpu = &host.vcpus[v];
        if !vcpu.current || vcpu.left == Span::MAX {
            return vcpu.left;
        }
        let mut account = self.accounts[vcpu.processor];
        vcpu.left - account.settle(host.now, false)
    }
}
