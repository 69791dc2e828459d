//! Placement: the pCPU of a vCPU when it is created, and when it migrates.

use crate::host::Host;
use crate::vcpu::pause_flag;
use crate::{
    AffinityRule, Broken, Creation, Observer, PcpuId, Placement, Scheduler, Table, VcpuConfig, VcpuId, World,
};

impl<S: Scheduler, W: World, O: Observer> Host<S, W, O> {
    /// Gives a vCPU, the first of its unit, to the scheduler of its domain's pool, with its affinity if that is in force from the
    /// beginning.
    pub(crate) fn insert(&mut self, v: VcpuId, config: &VcpuConfig) -> Result<(), Broken> {
        let VcpuConfig { affinity, soft_affinity, .. } = *config;
        let d = self.view.state.dom(v);
        let pool = self.view.state.pool_of(d);
        let (all, pcpus) = (*self.view.state.topology.pcpus(pool), *self.view.state.topology.masters(pool));
        let given = affinity.filter(|mask| !mask.and(&pcpus).is_empty()).map(|mask| mask.and(&all));
        let first_of_pool = self.view.state.topology.first_pcpu(pool);
        let first = v.0 == self.view.state.domains[d].first_vcpu;
        let beside_previous = || {
            let previous = self.view.state.processor(self.view.state.unit(VcpuId(v.0 - 1)));
            pcpus.next_after(previous).unwrap_or(first_of_pool)
        };
        let placement = self.rules[pool].placement;
        let in_force = given.filter(|_| self.view.state.creation == Creation::Contract);
        let (affinity, processor) = match placement {
            Placement::Policy if first => (in_force, first_of_pool),
            Placement::Policy => (in_force, beside_previous()),
            Placement::LeastPopulated if first => (None, self.least_populated(v)),
            Placement::LeastPopulated => (None, beside_previous()),
            Placement::RoundRobin => {
                let allowed = given.map_or(pcpus, |mask| mask.and(&pcpus));
                let before = self.view.state.units_in(pool).filter(|u| u.0 < v.0).count();
                let k = before % allowed.len() as usize;
                (given, allowed.iter().nth(k).expect("a mask has as many members as it says"))
            }
        };
        self.view.state.assign_members(v, processor);
        self.view.state.set_members_affinity(v, affinity.unwrap_or(all));
        let soft = soft_affinity.filter(|_| self.view.state.creation == Creation::Contract);
        self.view.state.prefer(v, soft.filter(|_| self.rules[pool].soft_affinity));
        self.policy.insert(&mut self.view, v);
        self.blame("insert");
        if let (Placement::LeastPopulated, Some(mask)) = (placement, given) {
            self.set_affinity(v, mask)?;
        }
        Ok(())
    }

    /// The pCPU with the fewest vCPUs assigned, `v` aside; of equals the last, but the first of all loses every tie.
    fn least_populated(&self, v: VcpuId) -> PcpuId {
        let pool = self.view.state.pool_of(self.view.state.dom(v));
        let mut counts: Table<PcpuId, u32> = Table::filled(self.view.state.pcpus.len(), 0);
        for u in self.view.state.units_in(pool).filter(|&u| u != v) {
            counts[self.view.state.processor(u)] += 1;
        }
        let mut least = self.view.state.topology.first_pcpu(pool);
        for p in self.view.state.topology.masters(pool).iter().skip(1) {
            if counts[p] <= counts[least] {
                least = p;
            }
        }
        least
    }

    /// Moves `v`, with its unit, if all of it is to migrate and it runs nowhere.
    #[inline]
    pub(crate) fn finish_migration(&mut self, v: VcpuId) {
        let migrates = |v: VcpuId| self.view.state.vcpus[v].has(pause_flag::MIGRATING);
        if migrates(v) && !self.view.state.vcpus[v].current && self.view.state.members(v).all(migrates) {
            let to = self.target_of(v);
            self.migrate(v, to);
        }
    }

    /// The pCPU to which a vCPU that is to migrate goes. Releases that pick before they hold the lock of the pCPU picked pick again
    /// until two picks agree, or the last one is allowed.
    pub(crate) fn target_of(&mut self, v: VcpuId) -> PcpuId {
        if self.rules_for(v).affinity != AffinityRule::AlwaysPickFirst {
            return self.pick(v);
        }
        let mut guess = self.view.state.processor(v);
        loop {
            let picked = self.pick(v);
            if self.policy.lock(guess) == self.policy.lock(picked) {
                return picked;
            }
            guess = picked;
            if self.view.state.affinity(v).contains(guess) {
                return guess;
            }
        }
    }

    /// The pCPU the policy picks; that of `v` if it picks one that `v` cannot be on (which ends the run).
    fn pick(&mut self, v: VcpuId) -> PcpuId {
        let picked = self.policy.pick(&mut self.view, v);
        let pool = self.view.state.pool_of(self.view.state.dom(v));
        let fits = self.view.state.topology.masters(pool).contains(picked);
        if !fits {
            let what = format!("pCPU {} was picked for {}, which it cannot be on", picked.0, self.name(v));
            self.view.state.outbox.violate(what);
        }
        self.blame("pick");
        if fits { picked } else { self.view.state.processor(v) }
    }

    /// Begins to move a vCPU, with its unit, which continues when that is [finished](Self::finish_migration).
    pub(crate) fn begin_migration(&mut self, v: VcpuId) {
        for v in self.view.state.members(v) {
            self.view.state.set_pause_flags(v, pause_flag::MIGRATING);
            self.sleep_unless_runnable(v);
        }
    }

    /// Moves a vCPU, with its unit, which runs nowhere, to the pCPU picked.
    pub(crate) fn migrate(&mut self, v: VcpuId, to: PcpuId) {
        for v in self.view.state.members(v) {
            self.view.state.clear_pause_flags(v, pause_flag::MIGRATING);
        }
        self.policy.migrate(&mut self.view, v, to);
        self.blame("migrate");
        for v in self.view.state.members(v) {
            self.wake_if_runnable(v);
        }
    }
}
