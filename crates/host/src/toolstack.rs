//! The toolstack's actions, but for those of the [life cycle](crate::lifecycle).

use crate::host::Host;
use crate::queue::Rank;
use crate::vcpu::pause_flag;
use crate::{
    Acted, Action, AffinityRule, Broken, Class, CpuMask, DomId, Membership, NEVER, Observer, Params,
    PauseRule, PcpuId, PoolId, Scheduler, ThreadConfig, ThreadMode, TimedAction, VcpuConfig, VcpuId, World,
};

/// A vCPU that moves to another pool may run on all its pCPUs.
static ANYWHERE: VcpuConfig = VcpuConfig {
    start: None,
    affinity: None,
    soft_affinity: None,
    thread: ThreadConfig { group: Membership::Own, class: Class::Other, nice: 0, mode: ThreadMode::User },
};

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// Carries out an action at the present instant, before anything else that is due then.
    pub fn act_now(&mut self, action: Action) {
        self.actions.insert(self.next_action, TimedAction { at: self.view.state.now, action });
        self.set_next_action();
    }

    pub(crate) fn set_next_action(&mut self) {
        let at = self.actions.get(self.next_action).map_or(NEVER, |a| a.at);
        self.view.state.queue.set(Rank::Action, 0, at);
    }

    /// Carries out the next action.
    pub(crate) fn act(&mut self) -> Result<(), Broken> {
        let action = self.actions[self.next_action].action.clone();
        self.next_action += 1;
        self.set_next_action();
        self.view.state.executing = PcpuId(0);
        let name = action.name();
        let (domain, accepted) = match action {
            Action::AdjustGlobal(pool, params) => {
                let outer = self.view.state.enter_pool(pool);
                let accepted = self.policy.adjust_global(&mut self.view, &params).is_ok();
                self.view.state.pool = outer;
                self.blame("adjust_global");
                (None, accepted)
            }
            Action::Adjust(d, params) => (Some(d), self.view.state.is_there(d) && self.adjust(d, &params)?),
            Action::MovePool(d, pool) => (Some(d), self.move_domain(d, pool)?),
            Action::Pause(d) => (Some(d), self.pause_domain(d)),
            Action::Unpause(d) => (Some(d), self.unpause_domain(d)),
            Action::Affinity(v, mask) => {
                let d = self.view.state.dom(v);
                (Some(d), self.view.state.is_there(d) && self.set_affinity(v, mask)?)
            }
            Action::SoftAffinity(v, mask) => {
                let d = self.view.state.dom(v);
                (Some(d), self.view.state.is_there(d) && self.set_soft_affinity(v, mask))
            }
            Action::BothAffinities(v, hard, soft) => {
                let d = self.view.state.dom(v);
                let both = self.view.state.is_there(d) && self.set_affinity(v, hard)?;
                (Some(d), both && self.set_soft_affinity(v, soft))
            }
            Action::Create(d) => (Some(d), self.create(d)?),
            Action::Destroy(d) => (Some(d), self.destroy(d)?),
            Action::Shutdown(d) => (Some(d), self.shut_down(d)),
            Action::Crash(d) => (Some(d), self.crash(d)),
            Action::Kill(d) => (Some(d), self.kill(d)),
            Action::Reboot(d) => (Some(d), self.destroy(d)? && self.create(d)?),
            Action::Save(d) => (Some(d), self.save(d)?),
            Action::Restore(d) => (Some(d), self.restore(d)?),
            Action::Online(v) => (Some(self.view.state.dom(v)), self.online(v)),
            Action::Offline(v) => (Some(self.view.state.dom(v)), self.offline(v)),
        };
        self.observer.acted(&self.view.state, Acted { action: name, domain, accepted });
        Ok(())
    }

    /// Changes a domain's scheduling parameters; was the change accepted?
    pub(crate) fn adjust(&mut self, d: DomId, params: &Params) -> Result<bool, Broken> {
        let pauses = self.rules[self.view.state.pool_of(d)].adjust_pauses;
        if pauses {
            for v in self.view.state.all_vcpus_of(d) {
                self.pause_and_wait(v)?;
            }
        }
        let accepted = self.policy.adjust(&mut self.view, d, params).is_ok();
        self.blame("adjust");
        if pauses {
            for v in self.view.state.all_vcpus_of(d) {
                self.unpause(v);
            }
        }
        Ok(accepted)
    }

    /// Moves a domain to another pool: its vCPUs leave one scheduler, all of them, and join the other, paused meanwhile.
    fn move_domain(&mut self, d: DomId, pool: PoolId) -> Result<bool, Broken> {
        if !self.view.state.is_there(d) {
            return Ok(false);
        }
        if self.view.state.pool_of(d) == pool {
            return Ok(true);
        }
        self.leave(d)?;
        self.view.state.domains[d].pool = pool;
        let before: Vec<PcpuId> =
            self.view.state.all_vcpus_of(d).map(|v| self.view.state.processor(v)).collect();
        self.join(d, |_| &ANYWHERE)?;
        for (v, from) in self.view.state.all_vcpus_of(d).zip(before) {
            self.view.state.moved(v, from);
        }
        self.release(d);
        Ok(true)
    }

    fn pause_domain(&mut self, d: DomId) -> bool {
        if !self.view.state.is_there(d) {
            return false;
        }
        let rules = self.rules[self.view.state.pool_of(d)];
        let domain = &mut self.view.state.domains[d];
        domain.pauses = match rules.pause {
            PauseRule::Counted => domain.pauses + 1,
            PauseRule::Flag => 1,
        };
        for v in self.view.state.all_vcpus_of(d) {
            self.view.state.set_pause_flags(v, pause_flag::DOMAIN_PAUSED);
        }
        for v in self.view.state.all_vcpus_of(d) {
            self.sleep_unless_runnable(v);
        }
        true
    }

    fn unpause_domain(&mut self, d: DomId) -> bool {
        if !self.view.state.is_there(d) {
            return false;
        }
        let rules = self.rules[self.view.state.pool_of(d)];
        let domain = &mut self.view.state.domains[d];
        if rules.pause == PauseRule::Counted && domain.pauses != 1 {
            domain.pauses = domain.pauses.saturating_sub(1);
            return true;
        }
        domain.pauses = 0;
        for v in self.view.state.all_vcpus_of(d) {
            self.view.state.clear_pause_flags(v, pause_flag::DOMAIN_PAUSED);
        }
        for v in self.view.state.all_vcpus_of(d) {
            self.wake_if_runnable(v);
        }
        true
    }

    /// Changes the hard affinity of a vCPU, and so of its unit, as the [rule](AffinityRule) of its scheduler's release has it.
    pub(crate) fn set_affinity(&mut self, v: VcpuId, mask: CpuMask) -> Result<bool, Broken> {
        let pool = self.view.state.pool_of(self.view.state.dom(v));
        let given = mask.and(self.view.state.topology.pcpus(pool));
        let mask = mask.and(self.view.state.topology.masters(pool));
        let rule = self.rules_for(v).affinity;
        let v = self.view.state.unit(v);
        let Some(first) = mask.first().filter(|_| rule != AffinityRule::Ignored) else { return Ok(false) };
        if rule == AffinityRule::Directly {
            for v in self.view.state.members(v) {
                self.pause_and_wait(v)?;
            }
            self.view.state.set_members_affinity(v, given);
            self.view.set_processor(v, first);
            self.announce_affinity(v);
            self.policy.affinity(&mut self.view, v, &mask);
            self.blame("affinity");
            for v in self.view.state.members(v) {
                self.unpause(v);
            }
            return Ok(true);
        }
        self.policy.affinity(&mut self.view, v, &mask);
        self.blame("affinity");
        self.view.state.set_members_affinity(v, given);
        self.announce_affinity(v);
        if rule == AffinityRule::IfExcluded && mask.contains(self.view.state.processor(v)) {
            return Ok(true);
        }
        self.begin_migration(v);
        if rule == AffinityRule::AlwaysPickFirst {
            let to = self.target_of(v);
            if !self.view.state.vcpus[v].current {
                self.migrate(v, to);
            }
        } else {
            self.finish_migration(v);
        }
        Ok(true)
    }

    /// Changes the soft affinity of a vCPU, and so of its unit, also if it stays the same: they go through sleep, pick, migrate
    /// and wake.
    pub(crate) fn set_soft_affinity(&mut self, v: VcpuId, mask: CpuMask) -> bool {
        if !self.rules_for(v).soft_affinity {
            return false;
        }
        let v = self.view.state.unit(v);
        self.view.state.prefer(v, Some(mask));
        self.announce_affinity(v);
        self.begin_migration(v);
        self.finish_migration(v);
        true
    }

    fn announce_affinity(&mut self, v: VcpuId) {
        for v in self.view.state.members(v) {
            self.observer.affinity_changed(&self.view.state, v);
        }
    }

    /// Pauses `v` itself, and waits until it is off its pCPU: pending requests are served inside the event.
    fn pause_and_wait(&mut self, v: VcpuId) -> Result<(), Broken> {
        self.view.state.pause_vcpu(v);
        self.sleep_unless_runnable(v);
        if self.view.state.is_executing(v) {
            self.serve_requests()?;
        }
        Ok(())
    }

    /// Takes back one pause of `v` itself.
    pub(crate) fn unpause(&mut self, v: VcpuId) {
        if self.view.state.unpause_vcpu(v) {
            self.wake_if_runnable(v);
        }
    }
}
