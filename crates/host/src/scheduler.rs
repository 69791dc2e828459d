//! The seam of the project: a CPU scheduler as the host sees it.
//!
//! The hooks are those of the hypervisor's own scheduler interface, under its own names. A policy keeps its private
//! data per pCPU, domain and vCPU in [tables](crate::Table) indexed by their ids (dense over the host; a scheduler of a CPU
//! pool sees only those of its pool), and talks to the host only through [`PolicyContext`]: it sets and stops timers, asks
//! pCPUs to reschedule, and reads time, topology, affinity and vCPU state. It never takes the decision itself: it raises a
//! reschedule request, and the host calls [`Scheduler::schedule`] on that pCPU once the event at hand has been handled.
//!
//! The shortest policy is round-robin (`crates/sched/src/round_robin.rs`).

use std::fmt;

use crate::{CpuMask, DomId, Params, PcpuId, PolicyContext, Span, VcpuId};

/// A decision: the vCPU that a pCPU runs next, and its slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The vCPU that runs next: runnable and assigned to this pCPU, or the pCPU's idle vCPU.
    pub next: VcpuId,
    /// The time for which the decision holds.
    pub slice: Slice,
}

/// The time for which a decision holds, if no other decision is requested before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slice {
    /// The pCPU decides again after this time, which is not negative.
    For(Span),
    /// The decision holds until another one is requested.
    Unlimited,
}

impl Slice {
    /// The slice of a signed time, as interfaces pass it: a negative one has no limit.
    pub fn from_signed(time: Span) -> Self {
        if time.is_negative() { Slice::Unlimited } else { Slice::For(time) }
    }
}

/// The error of an adjust whose values were not acceptable. No parameter changed, except those that the release changes
/// in spite of the error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected;

/// A CPU scheduling policy.
pub trait Scheduler {
    /// The embedding of this generation of the policy in its host.
    fn rules(&self) -> HostRules;

    /// The rules of each CPU pool's scheduler. (Only [`Pools`](crate::Pools) has more than one.)
    fn pool_rules(&self) -> Vec<HostRules> {
        vec![self.rules()]
    }

    /// A pCPU comes up, in ascending order, before any domain exists. Timers for it are created here; its slice
    /// timer follows. Its idle vCPU is current.
    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId);

    /// A domain was created or restored, or came from another pool; its vCPUs follow.
    fn add_domain(&mut self, _ctx: &mut PolicyContext, _d: DomId) {}

    /// A vCPU was created, not runnable. Under [`Placement::Policy`] its affinity is in force, its processor is provisional,
    /// and this is where the policy chooses the final one; under the others its processor is set.
    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId);

    /// The vCPU leaves this scheduler (its domain moves to another pool, or off the host). It is paused, and its sleep
    /// hook was called. A policy that parked it ([`PolicyContext::park`]) unparks it here.
    fn remove(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    /// The domain leaves this scheduler; its vCPUs have done so.
    fn remove_domain(&mut self, _ctx: &mut PolicyContext, _d: DomId) {}

    /// The vCPU, which was not runnable, is runnable now. (Sometimes also called for a vCPU that never stopped: with
    /// core scheduling, whenever any vCPU of the unit wakes.)
    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId);

    /// The vCPU is not runnable any more, for a reason other than blocking by itself.
    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId);

    /// The running vCPU yields. Its pCPU reschedules in any case.
    fn yielded(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    /// Decides what runs next on pCPU `p`. The outgoing vCPU is still `ctx.current(p)`.
    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision;

    /// The outgoing vCPU's context is saved: it runs nowhere now. (Also called for idle vCPUs.)
    fn context_saved(&mut self, _ctx: &mut PolicyContext, _v: VcpuId) {}

    /// The pCPU that a migrating vCPU should go to.
    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId;

    /// The scheduling lock of a pCPU, named by a pCPU: pCPUs with the same name share a lock.
    #[inline(always)]
    fn lock(&self, p: PcpuId) -> PcpuId {
        p
    }

    /// Whether a vCPU other than the running one is queued on `p`. The host asks on behalf of vCPUs that poll there,
    /// after each event while a vCPU polls.
    fn contended(&self, ctx: &PolicyContext, p: PcpuId) -> bool {
        ctx.pool_vcpus().any(|v| ctx.runnable(v) && ctx.processor(v) == p && !ctx.is_current(v))
    }

    /// Moves a vCPU (not current anywhere) to the pCPU picked.
    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        ctx.set_processor(v, p);
    }

    /// A timer made with `ctx.new_timer(.., token)` is due. It is stopped; set it again for a next time.
    fn timer(&mut self, _ctx: &mut PolicyContext, _token: u32) {}

    /// The vCPU's hard affinity is about to become `mask` (called before it is stored).
    fn affinity(&mut self, _ctx: &mut PolicyContext, _v: VcpuId, _mask: &CpuMask) {}

    /// Changes the parameters of a domain that is on the host. The policy decides what a missing parameter means.
    ///
    /// # Errors
    /// [`Rejected`] when this generation refuses the values.
    fn adjust(&mut self, _ctx: &mut PolicyContext, _d: DomId, _params: &Params) -> Result<(), Rejected> {
        Err(Rejected)
    }

    /// Changes the scheduler's own parameters.
    ///
    /// # Errors
    /// [`Rejected`] when this generation refuses the values, or has none.
    fn adjust_global(&mut self, _ctx: &mut PolicyContext, _params: &Params) -> Result<(), Rejected> {
        Err(Rejected)
    }

    /// Writes the present state for people to read: queues, credits, deadlines.
    ///
    /// # Errors
    /// Only those of `out`.
    fn dump(&self, _ctx: &PolicyContext, _out: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }

    /// The hook in which this policy failed, and the failure, if the policy cannot continue. The host asks after each
    /// event, and ends the run. For policies that call code of others; a failed policy leaves pCPUs idle until it is
    /// asked.
    #[inline(always)]
    fn failure(&self) -> Option<(&'static str, String)> {
        None
    }
}

/// The embedding of a generation of a policy in its host: all differences between the releases' hosts, as
/// `docs/concepts/host-contract.md` lists them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostRules {
    /// Whether every pCPU reschedules at time 0, once all domains exist. (2.0 generations)
    pub reschedule_at_start: bool,
    /// The choice of a new vCPU's processor.
    pub placement: Placement,
    /// Whether the host pauses and unpauses each of a domain's vCPUs around `adjust`, serving reschedule requests
    /// inside the event. (3.x)
    pub adjust_pauses: bool,
    /// The meaning of repeated pauses of a domain.
    pub pause: PauseRule,
    /// The consequence of a change of affinity.
    pub affinity: AffinityRule,
    /// Whether vCPUs have a soft affinity. (4.5 and later. Elsewhere a soft affinity is ignored.)
    pub soft_affinity: bool,
}

impl HostRules {
    /// The rules of the 4.17 release, and the default for new policies.
    pub const XEN_4_17: HostRules = HostRules {
        reschedule_at_start: false,
        placement: Placement::Policy,
        adjust_pauses: false,
        pause: PauseRule::Counted,
        affinity: AffinityRule::Always,
        soft_affinity: true,
    };

    /// Whether vCPUs can be scheduled by cores and sockets. (4.13 and later: of the releases here, those with soft affinity.)
    pub const fn core_scheduling(&self) -> bool {
        self.soft_affinity
    }
}

/// The choice of a new vCPU's processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The policy chooses in its insert hook; the affinity is set before. The provisional processor is the first pCPU
    /// for a domain's first vCPU, and the pCPU after the previous vCPU's for the others.
    Policy,
    /// The least populated pCPU for a domain's first vCPU (ties to the highest number, but pCPU 0 loses every tie), the
    /// pCPU after the previous vCPU's for the others; a given affinity is applied as an action right afterwards.
    LeastPopulated,
    /// pCPU number (k mod n) of its n allowed pCPUs, for vCPU k of the host.
    RoundRobin,
}

/// The meaning of repeated pauses of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PauseRule {
    /// Pauses nest; the sleep hook is called for each vCPU.
    Counted,
    /// A pause is a flag: one unpause ends any number of them.
    Flag,
}

/// The consequence of a change of affinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AffinityRule {
    /// The vCPU migrates only if its pCPU is no longer allowed. (Credit and SEDF 3.x)
    IfExcluded,
    /// The vCPU always goes through sleep, pick, migrate and wake. (4.x)
    Always,
    /// The vCPU moves like under `Always`, but the policy picks before it is known whether the vCPU can move at once,
    /// and again later. (Credit2 and ARINC 653 of 4.4.1)
    AlwaysPickFirst,
    /// The vCPU moves to the lowest allowed pCPU under a synchronous pause, and the affinity hook is called after the
    /// change. (BVT 3.0)
    Directly,
    /// No change: there is no such action. (2.0 generations)
    Ignored,
}
