//! vCPUs of a [unit](crate::units), and operations on all of them.

use crate::outbox::Migration;
use crate::vcpu::pause_flag;
use crate::{CpuMask, DomId, HostState, PcpuId, PoolId, VcpuId};

impl HostState {
    /// Whether units have more than one vCPU.
    #[inline(always)]
    pub(crate) fn has_units(&self) -> bool {
        self.units.is_some()
    }

    /// The units of all domains, in order of creation.
    fn guest_units(&self) -> impl Iterator<Item = VcpuId> + '_ {
        self.all_guest_vcpus().filter(|&v| self.unit(v) == v)
    }

    /// The units of the domains that exist in this pool.
    pub(crate) fn units_in(&self, pool: PoolId) -> impl Iterator<Item = VcpuId> + '_ {
        let present = self.guest_units().filter(|&v| !self.vcpus[v].has(pause_flag::ABSENT));
        present.filter(move |&v| self.pool_of(self.dom(v)) == pool)
    }

    /// The units of a domain, in order.
    pub(crate) fn units_of(&self, d: DomId) -> impl Iterator<Item = VcpuId> + use<> {
        self.all_vcpus_of(d).step_by(self.topology.unit_size() as usize)
    }

    /// Whether a unit is runnable: at least one of its vCPUs is.
    #[inline(always)]
    pub(crate) fn unit_runnable(&self, unit: VcpuId) -> bool {
        self.vcpu_runnable(unit) || self.companion_runnable(unit)
    }

    /// Whether a unit has several vCPUs, of which one is runnable.
    #[inline(always)]
    pub(crate) fn companion_runnable(&self, unit: VcpuId) -> bool {
        self.has_units() && self.any_member_without(unit, 0)
    }

    /// Whether a pCPU that has chosen a unit can execute it. A decision may begin to migrate the unit that it chooses
    /// (load balancing does): the unit runs, and moves when it stops.
    #[inline]
    pub(crate) fn unit_may_run(&self, unit: VcpuId) -> bool {
        let can = !self.vcpus[unit].has(!pause_flag::MIGRATING);
        can || self.has_units() && self.any_member_without(unit, pause_flag::MIGRATING)
    }

    /// The lowest-numbered pCPU with a pending request.
    #[inline(always)]
    pub(crate) fn first_asked(&self) -> Option<PcpuId> {
        match &self.units {
            None => self.reschedule.first(),
            Some(units) => self.reschedule.or(&units.join).first(),
        }
    }

    /// The unit of a domain's vCPU, by its first one.
    #[inline(always)]
    pub(crate) fn unit(&self, v: VcpuId) -> VcpuId {
        if self.units.is_none() { v } else { VcpuId(v.0 - self.index_in_unit(v)) }
    }

    /// The number of a domain's vCPU in its unit.
    fn index_in_unit(&self, v: VcpuId) -> u32 {
        (v.0 - self.domains[self.vcpus[v].dom].first_vcpu) % self.topology.unit_size()
    }

    /// The vCPUs of a unit of a domain.
    #[inline]
    pub(crate) fn members(&self, unit: VcpuId) -> impl Iterator<Item = VcpuId> + use<> {
        let end = if self.units.is_none() {
            unit.0 + 1
        } else {
            let domain = &self.domains[self.vcpus[unit].dom];
            (unit.0 + self.topology.unit_size()).min(domain.first_vcpu + domain.vcpus)
        };
        (unit.0..end).map(VcpuId)
    }

    /// The pCPU of a resource on which the vCPU of this index in a unit runs.
    fn pcpu_of_index(&self, master: PcpuId, index: usize) -> PcpuId {
        if index == 0 {
            return master;
        }
        let resource = self.topology.resource(master);
        resource.iter().nth(index).expect("a unit has at most as many vCPUs as a resource has pCPUs")
    }

    /// The vCPU of a unit, or of none if that is idle, that runs on `p`, a pCPU of the unit's resource.
    fn member_on(&self, unit: VcpuId, p: PcpuId) -> Option<VcpuId> {
        let guest = !self.is_idle(unit);
        guest.then(|| self.members(unit).find(|&v| self.vcpus[v].processor == p)).flatten()
    }

    /// The vCPU that `p` executes if its resource has chosen this unit: the vCPU of its index, if there is a runnable one.
    pub(crate) fn chosen_on(&self, p: PcpuId, unit: VcpuId) -> VcpuId {
        let own = self.member_on(unit, p).filter(|&v| !self.vcpus[v].has(!pause_flag::MIGRATING));
        own.unwrap_or(self.idle(p))
    }

    /// Whether a vCPU of this unit can run, apart from the reasons in `unless`.
    pub(crate) fn any_member_without(&self, unit: VcpuId, unless: u8) -> bool {
        self.members(unit).any(|v| !self.vcpus[v].has(!unless))
    }

    /// Whether other vCPUs of the unit of `v` run.
    pub(crate) fn companions_run(&self, v: VcpuId) -> bool {
        self.members(self.unit(v)).any(|u| u != v && self.vcpus[u].runs())
    }

    /// Handles `v` becoming runnable: if its unit has its resource but `v` does not run there, it joins.
    pub(crate) fn join_unit(&mut self, v: VcpuId) {
        let vcpu = &self.vcpus[v];
        if vcpu.pause_flags == 0 && !vcpu.runs() && self.vcpus[self.unit(v)].current {
            self.force(v);
        }
    }

    /// Handles `v` becoming unable to run while others of its unit can: if it runs, and another vCPU of the unit does,
    /// it leaves its pCPU to the idle vCPU.
    pub(crate) fn leave_unit(&mut self, v: VcpuId) {
        if self.vcpus[v].runs() && self.companions_run(v) {
            self.force(v);
        }
    }

    fn force(&mut self, v: VcpuId) {
        let p = self.vcpus[v].processor;
        if let Some(units) = &mut self.units
            && !std::mem::replace(units.forced.entry(v), true)
        {
            units.join.insert(p);
        }
    }

    /// Whether `p` should check if its vCPU has to come or to go.
    pub(crate) fn is_asked_to_look(&self, p: PcpuId) -> bool {
        self.units.as_ref().is_some_and(|units| units.join.contains(p))
    }

    /// The vCPU of the current unit that has to come to `p` or to leave it. The request is taken.
    pub(crate) fn take_forced(&mut self, p: PcpuId) -> Option<VcpuId> {
        self.units.as_mut()?.join.remove(p);
        let master = self.topology.resource(p).first()?;
        let v = self.member_on(self.pcpus[master].current, p)?;
        let units = self.units.as_mut()?;
        units.forced.get_mut(v).is_some_and(std::mem::take).then_some(v)
    }

    /// Puts the vCPUs of a unit where it belongs if its first one is on `master`, and notes the moves.
    pub(crate) fn assign_members(&mut self, unit: VcpuId, master: PcpuId) {
        for (index, v) in self.members(unit).enumerate() {
            let to = self.pcpu_of_index(master, index);
            let from = std::mem::replace(&mut self.vcpus[v].processor, to);
            self.outbox.migrations.push(Migration { vcpu: v, from, to });
        }
    }

    /// Gives the vCPUs of a unit their hard affinity: the pCPUs of their index in each resource whose master is in the mask.
    pub(crate) fn set_members_affinity(&mut self, unit: VcpuId, mask: CpuMask) {
        let masters = mask.and(self.topology.masters(self.pool_of(self.dom(unit))));
        for (index, v) in self.members(unit).enumerate() {
            let pcpus = masters.iter().map(|master| self.pcpu_of_index(master, index)).collect();
            self.affinity.set(v, pcpus);
        }
        if let Some(units) = &mut self.units {
            *units.given.entry(unit) = mask;
        }
    }

    /// The hard affinity of a unit as it was given, including pCPUs that are no masters.
    #[inline]
    pub(crate) fn given_affinity(&self, unit: VcpuId) -> &CpuMask {
        let given = self.units.as_ref().and_then(|units| units.given.get(unit));
        given.unwrap_or_else(|| self.affinity(unit))
    }

    /// Parks the vCPUs of a unit, one after the other.
    pub(crate) fn park_members(&mut self, unit: VcpuId) {
        for v in self.members(unit) {
            self.set_pause_flags(v, pause_flag::PARKED);
            if self.any_member_without(unit, 0) {
                self.leave_unit(v);
            }
        }
    }

    /// Ends the parking of the vCPUs of a unit.
    pub(crate) fn unpark_members(&mut self, unit: VcpuId) {
        for v in self.members(unit) {
            self.clear_pause_flags(v, pause_flag::PARKED);
            self.join_unit(v);
        }
    }
}
