//! The life of domains and vCPUs: what the toolstack creates, saves, restores and destroys. Each action answers whether it was
//! possible; one that was not changes nothing.

use std::sync::Arc;

use crate::domain::{Boot, Domain, Life, Over};
use crate::host::Host;
use crate::queue::Rank;
use crate::vcpu::{Vcpu, pause_flag};
use crate::{
    Broken, CpuMask, Creation, DomId, LifeEvent, NEVER, Observer, PcpuId, Scheduler, Span, Time, VcpuConfig,
    VcpuId, World, WorldContext,
};

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// Makes room for a domain and its vCPUs, which are not there yet.
    pub(crate) fn add_domain(&mut self, d: DomId, number: i64) {
        let Boot { pool, ref vcpus, .. } = *self.boots[d];
        let (state, count) = (&mut self.view.state, vcpus.len() as u32);
        let first_vcpu = state.vcpus.len() as u32;
        let life = Life::Gone;
        state.domains.push(Domain { number, first_vcpu, vcpus: count, pauses: 0, pool, life, id: number });
        for v in state.all_vcpus_of(d) {
            state.vcpus.push(Vcpu::new(d, PcpuId(0), pause_flag::ABSENT));
            state.affinity.push(CpuMask::EMPTY);
            state.lived.push(Span::ZERO);
            let slot = state.wake_slot(v);
            state.queue.make_room(Rank::WakeUp, slot + 1);
        }
    }

    /// Starts a new guest in a domain that is not there, as its configuration has it.
    pub(crate) fn boot(&mut self, d: DomId) -> Result<bool, Broken> {
        for (number, v) in self.view.state.all_vcpus_of(d).enumerate() {
            let start = self.boots[d].vcpus[number].start;
            let wake = start.map_or(NEVER, |start| self.view.state.now.saturating_add(start));
            self.view.state.set_wake_up(v, wake);
            let vcpu = &mut self.view.state.vcpus[v];
            vcpu.pause_flags = pause_flag::ABSENT | pause_flag::BLOCKED;
            vcpu.interrupted = false;
            vcpu.left = Span::ZERO;
            vcpu.switched_at = Time::ZERO;
        }
        self.enter(d)
    }

    /// Puts a domain on the host, in the pool and with the parameters and affinity of its configuration.
    fn enter(&mut self, d: DomId) -> Result<bool, Broken> {
        let domain = &mut self.view.state.domains[d];
        (domain.pool, domain.life) = (self.boots[d].pool, Life::There);
        if domain.number != 0 {
            domain.id = self.view.state.next_id;
            self.view.state.next_id += 1;
        }
        for v in self.view.state.all_vcpus_of(d) {
            self.view.state.lived[v] = self.view.state.run_times(v).running_ns;
        }
        let boot = Arc::clone(&self.boots[d]);
        self.join(d, |number| &boot.vcpus[number])?;
        if self.view.state.creation == Creation::Release {
            self.set_affinities(d, &boot.vcpus)?;
        }
        // To be placed is not to be moved.
        let vcpus = &self.view.state.vcpus;
        self.view.state.outbox.migrations.retain(|migration| vcpus[migration.vcpu].dom != d);
        let accepted = boot.params.is_empty() || self.adjust(d, &boot.params)?;
        if !accepted {
            self.refused_boot.get_or_insert(d);
        }
        self.release(d);
        Ok(accepted)
    }

    /// Sets the affinity of the vCPUs of a domain, which are all there, in order.
    fn set_affinities(&mut self, d: DomId, vcpus: &[VcpuConfig]) -> Result<(), Broken> {
        for (v, config) in self.view.state.all_vcpus_of(d).zip(vcpus) {
            if let Some(mask) = config.affinity {
                self.set_affinity(v, mask)?;
            }
            if let Some(mask) = config.soft_affinity {
                self.set_soft_affinity(v, mask);
            }
        }
        Ok(())
    }

    /// A domain joins the scheduler of its pool, and then all its vCPUs do, which stay paused until [`Self::release`].
    pub(crate) fn join<'c>(
        &mut self,
        d: DomId,
        config: impl Fn(usize) -> &'c VcpuConfig,
    ) -> Result<(), Broken> {
        self.policy.add_domain(&mut self.view, d);
        self.blame("add_domain");
        for (number, v) in self.view.state.all_vcpus_of(d).enumerate() {
            let from = self.view.state.processor(v);
            self.view.state.pause_vcpu(v);
            self.view.state.clear_pause_flags(v, pause_flag::ABSENT);
            if self.view.state.unit(v) == v {
                self.insert(v, config(number))?;
            }
            self.observer.affinity_changed(&self.view.state, v);
            self.view.state.moved(v, from);
        }
        Ok(())
    }

    /// The vCPUs of a domain that has joined a scheduler may run.
    pub(crate) fn release(&mut self, d: DomId) {
        for v in self.view.state.all_vcpus_of(d) {
            self.unpause(v);
        }
    }

    /// A domain's vCPUs leave their scheduler, all of them, and then it does.
    pub(crate) fn leave(&mut self, d: DomId) -> Result<(), Broken> {
        for unit in self.view.state.units_of(d) {
            for v in self.view.state.members(unit) {
                self.view.state.pause_vcpu(v);
                self.sleep_unless_runnable(v);
            }
            if self.view.state.vcpus[unit].current {
                let p = self.view.state.processor(unit);
                self.view.state.reschedule.insert(p);
                self.serve_requests()?;
            }
        }
        for unit in self.view.state.units_of(d) {
            self.policy.remove(&mut self.view, unit);
            self.blame("remove");
        }
        self.policy.remove_domain(&mut self.view, d);
        self.blame("remove_domain");
        for v in self.view.state.all_vcpus_of(d) {
            self.view.state.set_pause_flags(v, pause_flag::ABSENT);
            self.view.state.unpause_vcpu(v);
        }
        Ok(())
    }

    /// Creates a domain that is neither there nor saved.
    pub(crate) fn create(&mut self, d: DomId) -> Result<bool, Broken> {
        if self.view.state.domains[d].life != Life::Gone {
            return Ok(false);
        }
        let accepted = self.boot(d)?;
        self.announce(LifeEvent::Booted(d));
        Ok(accepted)
    }

    /// The guest shuts down by itself. A paused one does not.
    pub(crate) fn shut_down(&mut self, d: DomId) -> bool {
        let can = self.view.state.listens(d);
        if can {
            self.end_guest(d, Over { shutdown: true, ..Over::default() });
        }
        can
    }

    /// The guest crashes. A paused one does not.
    pub(crate) fn crash(&mut self, d: DomId) -> bool {
        let can = self.view.state.listens(d);
        if can {
            self.end_guest(d, Over { shutdown: true, crashed: true, ..Over::default() });
        }
        can
    }

    /// The toolstack begins to destroy a domain.
    pub(crate) fn kill(&mut self, d: DomId) -> bool {
        match self.view.state.domains[d].life {
            Life::There => self.end_guest(d, Over { dying: true, ..Over::default() }),
            Life::Over(over) if !over.dying => {
                self.view.state.domains[d].life = Life::Over(Over { dying: true, ..over });
            }
            Life::Over(_) | Life::Gone | Life::Saved => return false,
        }
        true
    }

    /// Ends a guest. Its vCPUs stay with the scheduler, and never run again.
    fn end_guest(&mut self, d: DomId, over: Over) {
        self.view.state.domains[d].life = Life::Over(over);
        for v in self.view.state.all_vcpus_of(d) {
            self.view.state.set_pause_flags(v, pause_flag::DOMAIN_PAUSED);
            // Not blocked, so that nothing wakes it any more.
            self.view.state.clear_pause_flags(v, pause_flag::BLOCKED);
            self.view.state.set_wake_up(v, NEVER);
        }
        for v in self.view.state.all_vcpus_of(d) {
            self.sleep_unless_runnable(v);
        }
        self.announce(LifeEvent::Stopped(d));
    }

    /// Takes a domain off the host; a saved one loses its state.
    pub(crate) fn destroy(&mut self, d: DomId) -> Result<bool, Broken> {
        let life = self.view.state.domains[d].life;
        match life {
            Life::Gone => return Ok(false),
            Life::There | Life::Over(_) => self.leave(d)?,
            Life::Saved => {}
        }
        let domain = &mut self.view.state.domains[d];
        (domain.life, domain.pauses) = (Life::Gone, 0);
        for v in self.view.state.all_vcpus_of(d) {
            // Not blocked, so that nothing wakes it any more.
            self.view.state.vcpus[v].pause_flags = pause_flag::ABSENT;
            self.view.state.set_wake_up(v, NEVER);
        }
        if !matches!(life, Life::Over(_)) {
            self.announce(LifeEvent::Stopped(d));
        }
        Ok(true)
    }

    /// Takes a domain off the host, its state kept.
    pub(crate) fn save(&mut self, d: DomId) -> Result<bool, Broken> {
        if !self.view.state.listens(d) {
            return Ok(false);
        }
        self.leave(d)?;
        self.view.state.domains[d].life = Life::Saved;
        self.announce(LifeEvent::Saved(d));
        Ok(true)
    }

    /// Puts a saved domain on the host again.
    pub(crate) fn restore(&mut self, d: DomId) -> Result<bool, Broken> {
        if self.view.state.domains[d].life != Life::Saved {
            return Ok(false);
        }
        let accepted = self.enter(d)?;
        self.announce(LifeEvent::Restored(d));
        Ok(accepted)
    }

    /// Puts a vCPU on line again.
    pub(crate) fn online(&mut self, v: VcpuId) -> bool {
        let is_down = self.view.state.vcpus[v].has(pause_flag::DOWN);
        if !is_down || !self.view.state.listens(self.view.state.dom(v)) {
            return false;
        }
        self.view.state.clear_pause_flags(v, pause_flag::DOWN);
        self.wake_if_runnable(v);
        self.announce(LifeEvent::VcpuUp(v));
        true
    }

    /// Takes a vCPU off line, unless it is the first of its domain.
    pub(crate) fn offline(&mut self, v: VcpuId) -> bool {
        let d = self.view.state.dom(v);
        let is_down = self.view.state.vcpus[v].has(pause_flag::DOWN);
        let first = self.view.state.domains[d].first_vcpu == v.0;
        if first || is_down || !self.view.state.listens(d) {
            return false;
        }
        self.view.state.set_pause_flags(v, pause_flag::DOWN);
        self.sleep_unless_runnable(v);
        self.announce(LifeEvent::VcpuDown(v));
        true
    }

    fn announce(&mut self, event: LifeEvent) {
        self.world.life(&mut WorldContext { state: &mut self.view.state }, event);
        self.deliver_kicks(None);
    }
}
