//! Control groups of domains: those of the host's configuration, and a group for each domain without any.

use vcpulab_host::{
    DomId, GroupConfig, GroupId, Membership, Params, PolicyContext, Rejected, Span, Table, Throttling, VcpuId,
};

use super::hierarchy::{Fair, Flavor};
use super::params::Controls;
use crate::role::Part;

/// Control groups of a domain.
#[derive(Clone, Debug, Default)]
struct DomainGroups {
    /// Control-group parameters of the domain; `None`: the domain does not exist.
    controls: Option<Controls>,
    /// Control groups of the domain; the first one contains all its threads.
    groups: Vec<(GroupId, Part)>,
    /// Whether the policy made the groups; otherwise the host's configuration lists them.
    own: bool,
    /// Groups of single vCPUs that the policy made, by the vCPU's number.
    vcpus: Vec<GroupId>,
    /// Number of the vCPU that a spinning vCPU last yielded to.
    last_boosted_vcpu: usize,
}

/// The part of a domain that a group of the host's configuration is.
fn part_of(config: &GroupConfig) -> Option<(DomId, Part)> {
    let (d, id) = config.part?;
    Some((d, *Part::ALL.get(id.index())?))
}

/// Control groups of all domains.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    domains: Table<DomId, DomainGroups>,
    /// Configurations of the groups that the host's configuration lists.
    configs: Table<GroupId, GroupConfig>,
    /// Domain of each group; `None`: a group that belongs to no domain.
    owners: Table<GroupId, Option<DomId>>,
}

impl Cgroups {
    /// Makes the groups of the host's configuration.
    pub fn add_groups<F: Flavor>(&mut self, ctx: &PolicyContext, fair: &mut Fair<F>) {
        for config in ctx.groups() {
            let group = fair.add_group(&GroupConfig { quota: None, ..*config });
            self.configs.push(*config);
            self.owners.push(config.part.map(|(d, _)| d));
            if let Some((d, part)) = part_of(config) {
                let groups = &mut self.domains.entry(d).groups;
                let position = if part == Part::Whole { 0 } else { groups.len() };
                groups.insert(position, (group, part));
            } else {
                fair.set_bandwidth(ctx.now(), group, super::Bandwidth::of(config));
            }
        }
    }

    /// Adds a domain with the parameters of a new one.
    pub fn add_domain<F: Flavor>(&mut self, ctx: &PolicyContext, fair: &mut Fair<F>, d: DomId) {
        let domain = self.domains.entry(d);
        if domain.groups.is_empty() {
            let group = fair.add_group(&GroupConfig::NEW);
            (domain.own, domain.groups) = (true, vec![(group, Part::Whole)]);
            *self.owners.entry(group) = Some(d);
        }
        let config = |group: GroupId| self.configs.get(group).copied().unwrap_or(GroupConfig::NEW);
        let groups = domain.groups.iter().map(|&(group, part)| (part, config(group)));
        let controls = Controls::new(groups);
        domain.controls = Some(controls);
        self.apply(ctx, fair, d, controls);
    }

    fn apply<F: Flavor>(&self, ctx: &PolicyContext, fair: &mut Fair<F>, d: DomId, controls: Controls) {
        for &(group, part) in &self.domains[d].groups {
            if part == Part::Whole {
                fair.set_weight(ctx.now(), group, controls.weight, controls.idle);
            }
            fair.set_bandwidth(ctx.now(), group, controls.bandwidth(part));
        }
    }

    /// Changes a domain's parameters.
    pub fn adjust<F: Flavor>(
        &mut self,
        ctx: &PolicyContext,
        fair: &mut Fair<F>,
        d: DomId,
        params: &Params,
    ) -> Result<(), Rejected> {
        let controls = self.domains[d].controls.ok_or(Rejected)?.adjusted(params)?;
        let domain = &mut self.domains[d];
        domain.controls = Some(controls);
        if domain.own && domain.vcpus.is_empty() && controls.bandwidth(Part::Vcpu).is_some() {
            let parent = Some(domain.groups[0].0);
            for _ in ctx.vcpus_of(d) {
                let group = fair.add_group(&GroupConfig { parent, ..GroupConfig::NEW });
                domain.vcpus.push(group);
                *self.owners.entry(group) = Some(d);
                domain.groups.push((group, Part::Vcpu));
            }
        }
        self.apply(ctx, fair, d, controls);
        Ok(())
    }

    /// The group of a vCPU; `None`: the root group.
    pub fn group_of(&self, ctx: &PolicyContext, v: VcpuId) -> Option<GroupId> {
        match ctx.thread(v).group {
            Membership::Root => None,
            Membership::Of(group) => Some(group),
            Membership::Own => {
                let domain = &self.domains[ctx.dom(v)];
                let number = usize::try_from(ctx.name(v).1).unwrap_or(0) / ctx.unit_size() as usize;
                domain.vcpus.get(number).copied().or(domain.groups.first().map(|&(group, _)| group))
            }
        }
    }

    /// Length of the requests of a domain's threads; `None`: the kernel's.
    pub fn slice_of(&self, d: DomId) -> Option<Span> {
        self.domains.get(d)?.controls?.slice
    }

    /// Whether a thread is a vCPU of a guest, rather than another thread of the host.
    pub fn is_vcpu(&self, ctx: &PolicyContext, v: VcpuId) -> bool {
        match ctx.thread(v).group {
            Membership::Own => true,
            Membership::Root => false,
            Membership::Of(group) => {
                let part = self.configs.get(group).and_then(part_of);
                matches!(part, Some((_, Part::Vcpu | Part::Whole)))
            }
        }
    }

    /// The number of the vCPU to which a spinning vCPU of a domain last yielded.
    pub fn last_boosted_vcpu(&mut self, d: DomId) -> &mut usize {
        &mut self.domains[d].last_boosted_vcpu
    }

    /// Notes what the limits of a group's domain have done, since one of its periods is over.
    pub fn note_throttling<F: Flavor>(&self, ctx: &mut PolicyContext, fair: &Fair<F>, group: GroupId) {
        if let Some(d) = self.owners.get(group).copied().flatten() {
            let groups = self.domains[d].groups.iter().map(|&(group, _)| fair.throttling(group));
            ctx.note_throttling(d, groups.fold(Throttling::default(), |sum, throttling| sum + throttling));
        }
    }
}
