//! What the toolstack does to the life of domains and vCPUs. Each answers whether it was possible; what was not changes
//! nothing.

use super::{Broken, Host};
use crate::action::{Action, TimedAction};
use crate::context::{HostState, mark};
use crate::life::{Life, LifeEvent, Over};
use crate::queue::Rank;
use crate::{DomId, NEVER, Observer, Scheduler, Span, Time, VcpuId, World, WorldContext};

/// Which of so many domains do not exist at time 0: those that are created before anything else happens to their lives.
pub(super) fn created_later(actions: &[TimedAction], domains: usize) -> Vec<bool> {
    let mut first: Vec<Option<bool>> = vec![None; domains];
    for timed in actions {
        let (d, creates) = match timed.action {
            Action::Create(d) => (d, true),
            Action::Destroy(d) | Action::Shutdown(d) | Action::Reboot(d) => (d, false),
            Action::Crash(d) | Action::Kill(d) => (d, false),
            Action::Save(d) | Action::Restore(d) => (d, false),
            _ => continue,
        };
        first[d.index()].get_or_insert(creates);
    }
    first.into_iter().map(|creates| creates == Some(true)).collect()
}

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// A new guest in a domain that is not there, as its configuration has it.
    pub(super) fn boot(&mut self, d: DomId) -> Result<bool, Broken> {
        for (number, v) in self.core.vcpus_of(d).enumerate() {
            let start = self.domains[d.index()].vcpus[number].start;
            let wake = start.map_or(NEVER, |start| self.core.now.saturating_add(start));
            self.core.queue.set(Rank::WakeUp, self.core.wake_slot(v), wake);
            let vcpu = &mut self.core.vcpus[v.index()];
            vcpu.marks = mark::ABSENT | mark::BLOCKED;
            vcpu.interrupted = false;
            vcpu.left = Span::ZERO;
            vcpu.switched_at = Time::ZERO;
        }
        self.enter(d)
    }

    /// A domain comes to the host, in the pool and with the parameters and affinity of its configuration.
    fn enter(&mut self, d: DomId) -> Result<bool, Broken> {
        let pool = self.domains[d.index()].pool as u32;
        let next_id = &mut self.core.next_id;
        let domain = &mut self.core.domains[d.index()];
        (domain.pool, domain.life) = (pool, Life::There);
        if domain.number != 0 {
            domain.id = *next_id;
            *next_id += 1;
        }
        for v in self.core.vcpus_of(d) {
            self.core.lived_ns[v.index()] = self.core.run_times(v).running_ns;
        }
        let affinity: Vec<_> = self.domains[d.index()].vcpus.iter().map(|vcpu| vcpu.affinity).collect();
        self.join(d, |number| affinity[number])?;
        // To be placed is not to be moved.
        let HostState { migrations, vcpus, .. } = &mut self.core;
        migrations.retain(|&(v, ..)| vcpus[v.index()].dom != d);
        let params = self.domains[d.index()].params.clone();
        let accepted = params.is_empty() || self.adjust(d, &params)?;
        self.release(d);
        Ok(accepted)
    }

    fn tell(&mut self, event: LifeEvent) {
        self.world.life(&mut WorldContext { core: &mut self.core }, event);
        self.deliver_kicks(None);
    }

    /// Not while its saved state waits to be restored.
    pub(super) fn create(&mut self, d: DomId) -> Result<bool, Broken> {
        if self.core.domains[d.index()].life != Life::Gone {
            return Ok(false);
        }
        let accepted = self.boot(d)?;
        self.tell(LifeEvent::Booted(d));
        Ok(accepted)
    }

    /// The guest shuts down by itself, or crashes. A paused one does neither.
    pub(super) fn shut_down(&mut self, d: DomId, crashed: bool) -> bool {
        let can = self.core.listens(d);
        if can {
            self.end_guest(d, Over { shutdown: true, crashed, dying: false });
        }
        can
    }

    /// The toolstack begins to destroy a domain.
    pub(super) fn kill(&mut self, d: DomId) -> bool {
        match self.core.domains[d.index()].life {
            Life::There => self.end_guest(d, Over { dying: true, ..Over::default() }),
            Life::Over(over) if !over.dying => {
                self.core.domains[d.index()].life = Life::Over(Over { dying: true, ..over });
            }
            Life::Over(_) | Life::Gone | Life::Saved => return false,
        }
        true
    }

    /// A guest is no more. Its vCPUs stay with the scheduler, and never run again.
    fn end_guest(&mut self, d: DomId, over: Over) {
        self.core.domains[d.index()].life = Life::Over(over);
        for v in self.core.vcpus_of(d) {
            self.core.set_marks(v, mark::DOMAIN_PAUSED, true);
            // Not blocked, so that nothing wakes it any more.
            self.core.set_marks(v, mark::BLOCKED, false);
            self.core.queue.set(Rank::WakeUp, self.core.wake_slot(v), NEVER);
        }
        for v in self.core.vcpus_of(d) {
            self.sleep_unless_runnable(v);
        }
        self.tell(LifeEvent::Stopped(d));
    }

    pub(super) fn destroy(&mut self, d: DomId) -> Result<bool, Broken> {
        let life = self.core.domains[d.index()].life;
        match life {
            Life::Gone => return Ok(false),
            Life::There | Life::Over(_) => self.leave(d)?,
            Life::Saved => {}
        }
        let domain = &mut self.core.domains[d.index()];
        (domain.life, domain.pauses) = (Life::Gone, 0);
        for v in self.core.vcpus_of(d) {
            // Not blocked, so that nothing wakes it any more.
            self.core.vcpus[v.index()].marks = mark::ABSENT;
            self.core.queue.set(Rank::WakeUp, self.core.wake_slot(v), NEVER);
        }
        if !matches!(life, Life::Over(_)) {
            self.tell(LifeEvent::Stopped(d));
        }
        Ok(true)
    }

    pub(super) fn save(&mut self, d: DomId) -> Result<bool, Broken> {
        if !self.core.listens(d) {
            return Ok(false);
        }
        self.leave(d)?;
        self.core.domains[d.index()].life = Life::Saved;
        self.tell(LifeEvent::Saved(d));
        Ok(true)
    }

    pub(super) fn restore(&mut self, d: DomId) -> Result<bool, Broken> {
        if self.core.domains[d.index()].life != Life::Saved {
            return Ok(false);
        }
        let accepted = self.enter(d)?;
        self.tell(LifeEvent::Restored(d));
        Ok(accepted)
    }

    pub(super) fn plug(&mut self, v: VcpuId) -> bool {
        let unplugged = self.core.vcpus[v.index()].marks & mark::UNPLUGGED != 0;
        if !unplugged || !self.core.listens(self.core.dom(v)) {
            return false;
        }
        self.core.set_marks(v, mark::UNPLUGGED, false);
        self.wake_if_runnable(v);
        self.tell(LifeEvent::VcpuUp(v));
        true
    }

    pub(super) fn unplug(&mut self, v: VcpuId) -> bool {
        let d = self.core.dom(v);
        let unplugged = self.core.vcpus[v.index()].marks & mark::UNPLUGGED != 0;
        let first = self.core.domains[d.index()].first_vcpu == v.0;
        if first || unplugged || !self.core.listens(d) {
            return false;
        }
        self.core.set_marks(v, mark::UNPLUGGED, true);
        self.sleep_unless_runnable(v);
        self.tell(LifeEvent::VcpuDown(v));
        true
    }
}
