//! Core scheduling: the pCPUs of a resource decide together, and each executes its vCPU of the [unit](crate::units) chosen.
//!
//! A decision is asked of any pCPU of a resource. All of them gather, the last one to come asks the policy, and each of them turns to its
//! own vCPU of the unit, or to its idle vCPU where that one does not exist or is not runnable. While a unit stays, its vCPUs
//! come and go without a decision: a pCPU is asked to look, and makes a *forced switch*.

use std::iter::once;

use crate::host::Host;
use crate::{Broken, Observer, PcpuId, Scheduler, VcpuId, World};

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// Serves a request for a decision on `p`: the pCPU checks whether its vCPU has to come or go, or else its resource
    /// decides.
    pub(crate) fn serve_together(&mut self, p: PcpuId) -> Result<(), Broken> {
        if !self.core.is_asked_to_look(p) {
            self.core.reschedule.remove(p);
            return self.decide_together(p);
        }
        self.core.executing = p;
        if self.core.take_forced(p).is_some_and(|v| !self.forced_switch(p, v)) {
            self.core.reschedule.insert(p);
        }
        Ok(())
    }

    /// The pCPUs of a resource gather, `p` first; the last one decides, and they switch, that one first.
    fn decide_together(&mut self, p: PcpuId) -> Result<(), Broken> {
        let resource = self.core.topology.resource(p);
        let without = |p| resource.iter().filter(move |&q| q != p);
        let master = resource.first().expect("a resource has a pCPU");
        let decider = without(p).last().unwrap_or(p);
        let (decision_ns, asked_by) = (self.core.costs().decision_ns, self.core.executing);
        for q in once(p).chain(without(p)) {
            if let Some(v) = self.core.take_forced(q) {
                self.forced_switch(q, v);
            }
            self.charge_ipi(q, asked_by);
            self.core.accounting.charge(&mut self.core.policy, q, decision_ns);
        }
        self.charge_lock(decider, master);
        self.core.executing = decider;
        self.core.pcpus[decider].decisions += 1;
        let (from, next) = self.choose(master)?;
        if next != from {
            self.core.make_current(master, from, next);
        }
        for q in once(decider).chain(without(decider)) {
            self.core.executing = q;
            let (executes, to) = (self.core.executes(q), self.core.chosen_on(q, next));
            if to != executes {
                self.execute(q, executes, to);
            } else if self.core.busy_until(q) > self.core.now {
                self.observer.busy(&self.core, q);
            }
        }
        self.observer.decided(&self.core, decider);
        if next != from {
            self.save_context(from);
        }
        Ok(())
    }

    /// `v` comes to `p` because it has become runnable, or goes because it is not any more and others of its unit run. False:
    /// neither, so that a decision is needed.
    fn forced_switch(&mut self, p: PcpuId, v: VcpuId) -> bool {
        let (from, to) = match (self.core.is_executing(v), self.core.vcpu_runnable(v)) {
            (false, true) => (self.core.idle(p), v),
            (true, false) if self.core.companions_run(v) => (v, self.core.idle(p)),
            _ => return false,
        };
        self.execute(p, from, to);
        true
    }
}
