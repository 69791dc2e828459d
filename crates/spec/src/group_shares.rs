//! CPU time that the weights of control groups promise to domains, level by level.

use std::collections::BTreeMap;

use vcpulab_host::{Class, DomId, GroupConfig, Span};
use vcpulab_sched::{Generation, ParamSpec, fair_shares};

use crate::domain::DomainSpec;
use crate::host::POOL_0;
use crate::kvm::{KvmSpec, ROOT, ThreadsSpec};
use crate::platform::{Guest, VmSpec};
use crate::spec::Spec;

/// A control group, or what a domain has below it.
struct Node {
    weight: f64,
    /// Greatest CPU time that the node's threads can use, in pCPUs.
    most: f64,
    inside: Vec<usize>,
    domain: Option<DomId>,
}

/// CPU time that each domain of a KVM host is entitled to, in pCPUs: each group shares what it has among those in it by weight, none above
/// what its vCPUs and limits allow, and what those leave is shared again. `None` for all where weights do not decide alone: threads that
/// are pinned, real-time, or run on what is left over. `None` for what is a part of a VM: the threads that serve it. `weight` is the
/// parameter with the weight of a domain's own group.
pub(crate) fn group_shares(spec: &Spec, kvm: &KvmSpec, weight: &ParamSpec) -> Vec<Option<f64>> {
    let mut all = vec![None; spec.domains.len()];
    let idle = kvm.cgroups.iter().any(|group| group.config.idle || group.cpus.is_some());
    let generation = spec.pools[POOL_0].generation;
    if idle || spec.domains.iter().any(|domain| is_special(domain, generation)) {
        return all;
    }
    let mut tree = Tree::new(kvm);
    for (d, domain) in spec.domains.enumerate() {
        tree.put(spec, d, domain, weight);
    }
    tree.sum_up(0);
    tree.give(0, f64::from(spec.host.pcpus), &mut all);
    all
}

/// Whether more than weights decides where and when a domain runs.
fn is_special(domain: &DomainSpec, generation: &Generation) -> bool {
    let Some(threads) = domain.guest.threads() else { return false };
    let pinned = domain.affinity.iter().any(Option::is_some);
    pinned || generation.is_idle(&domain.params) || !matches!(threads.class, Class::Other | Class::Batch)
}

/// CPU time that a limit allows, in pCPUs.
fn limit(quota: Span, period: Span) -> f64 {
    quota.ns() as f64 / period.ns() as f64
}

/// The groups that there are, the root group first.
struct Tree<'a> {
    nodes: Vec<Node>,
    by_path: BTreeMap<&'a str, usize>,
    given: BTreeMap<&'a str, &'a GroupConfig>,
}

impl<'a> Tree<'a> {
    fn new(kvm: &'a KvmSpec) -> Self {
        let root = Node { weight: 1.0, most: f64::INFINITY, inside: Vec::new(), domain: None };
        let given = kvm.cgroups.iter().map(|group| (group.path.as_str(), &group.config)).collect();
        Tree { nodes: vec![root], by_path: BTreeMap::from([(ROOT, 0)]), given }
    }

    fn add(&mut self, around: usize, node: Node) -> usize {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.nodes[around].inside.push(id);
        id
    }

    /// The group of a path, made with those around it if it is not there.
    fn at(&mut self, path: &'a str) -> usize {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let around = path.rsplit_once('/').map_or(0, |(around, _)| self.at(around));
        let config = self.given.get(path).map_or(GroupConfig::NEW, |config| **config);
        let most = config.quota.map_or(f64::INFINITY, |quota| limit(quota, config.period));
        let node = Node { weight: config.weight.into(), most, inside: Vec::new(), domain: None };
        let id = self.add(around, node);
        self.by_path.insert(path, id);
        id
    }

    fn put(&mut self, spec: &'a Spec, d: DomId, domain: &'a DomainSpec, weight: &ParamSpec) {
        let Some(threads) = domain.guest.threads().filter(|threads| !serves_a_vm(spec, &threads.cgroup))
        else {
            return;
        };
        let around = self.at(&threads.cgroup);
        let weight = weight.number_in(&domain.params) as f64;
        let most = spec.pools[POOL_0].generation.limit(&domain.member());
        self.add(around, Node { weight, most, inside: Vec::new(), domain: Some(d) });
    }

    fn sum_up(&mut self, at: usize) -> f64 {
        if self.nodes[at].domain.is_none() {
            let inside = self.nodes[at].inside.clone();
            let sum: f64 = inside.into_iter().map(|one| self.sum_up(one)).sum();
            self.nodes[at].most = self.nodes[at].most.min(sum);
        }
        self.nodes[at].most
    }

    fn give(&self, at: usize, amount: f64, all: &mut [Option<f64>]) {
        let Node { inside, domain, .. } = &self.nodes[at];
        if let Some(d) = domain {
            all[d.index()] = Some(amount);
        }
        let of =
            |value: fn(&Node) -> f64| inside.iter().map(|&one| value(&self.nodes[one])).collect::<Vec<_>>();
        let shares = fair_shares(amount, &of(|node| node.weight), &of(|node| node.most));
        for (&one, share) in inside.iter().zip(shares) {
            self.give(one, share, all);
        }
    }
}

/// Whether a path is that of a group inside a VM's own.
fn serves_a_vm(spec: &Spec, path: &str) -> bool {
    spec.domains.iter().any(|vm| {
        let Guest::Vm(VmSpec { threads: ThreadsSpec { cgroup, .. }, .. }) = &vm.guest else { return false };
        let below = if cgroup == ROOT { Some(path) } else { path.strip_prefix(cgroup.as_str()) };
        let below = below.map(|below| below.trim_start_matches('/'));
        below.and_then(|below| below.strip_prefix(vm.name.as_str())).is_some_and(|rest| rest.starts_with('/'))
    })
}
