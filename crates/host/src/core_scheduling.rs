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
        if !self.view.state.is_asked_to_look(p) {
            self.view.state.reschedule.remove(p);
            return self.decide_together(p);
        }
        self.view.state.executing = p;
        if self.view.state.take_forced(p).is_some_and(|v| !self.forced_switch(p, v)) {
            self.view.state.reschedule.insert(p);
        }
        Ok(())
    }

    /// The pCPUs of a resource gather, `p` first; the last one decides, and they switch, that one first.
    fn decide_together(&mut self, p: PcpuId) -> Result<(), Broken> {
        let resource = self.view.state.topology.resource(p);
        let without = |p| resource.iter().filter(move |&q| q != p);
        let master = resource.first().expect("a resource has a pCPU");
        let decider = without(p).last().unwrap_or(p);
        let (decision_ns, asked_by) = (self.view.state.costs().decision_ns, self.view.state.executing);
        for q in once(p).chain(without(p)) {
            if let Some(v) = self.view.state.take_forced(q) {
                self.forced_switch(q, v);
            }
            self.charge_ipi(q, asked_by);
            self.view.state.charge(q, decision_ns);
        }
        self.charge_lock(decider, master);
        self.view.state.executing = decider;
        self.view.state.pcpus[decider].decisions += 1;
        let (from, next) = self.choose(master)?;
        if next != from {
            self.view.state.make_current(master, from, next);
        }
        for q in once(decider).chain(without(decider)) {
            self.view.state.executing = q;
            let (executes, to) = (self.view.state.executes(q), self.view.state.chosen_on(q, next));
            if to != executes {
                self.execute(q, executes, to);
            } else if self.view.state.busy_until(q) > self.view.state.now {
                self.observer.busy(&self.view.state, q);
            }
        }
        self.observer.decided(&self.view.state, decider);
        if next != from {
            self.save_context(from);
        }
        Ok(())
    }

    /// `v` comes to `p` because it has become runnable, or goes because it is not any more and others of its unit run. False:
    /// neither, so that a decision is needed.
    fn forced_switch(&mut self, p: PcpuId, v: VcpuId) -> bool {
        let (from, to) = match (self.view.state.is_executing(v), self.view.state.vcpu_runnable(v)) {
            (false, true) => (self.view.state.idle(p), v),
            (true, false) if self.view.state.companions_run(v) => (v, self.view.state.idle(p)),
            _ => return false,
        };
        self.execute(p, from, to);
        true
    }
}
