//! CPU time that the weights of control groups promise to domains, level by level.

use std::collections::BTreeMap;

use vcpulab_host::{Class, DomId, GroupConfig, Span};
use vcpulab_sched::{Generation, GroupWeight, ParamSpec, fair_shares};

use crate::domain::DomainSpec;
use crate::host::POOL_0;
use crate::kvm::{KvmSpec, ROOT, ThreadsSpec};
use crate::platform::{Guest, VmSpec};
use crate::spec::Spec;

/// A control group: one with a path, or that of a domain.
struct Node {
    weight: f64,
    /// Greatest CPU time that the node's threads can use, in pCPUs.
    cpu_max: f64,
    /// Number of threads in the group and in the groups below it.
    threads: u32,
    children: Vec<usize>,
    domain: Option<DomId>,
}

impl Node {
    fn new(weight: f64, cpu_max: f64) -> Self {
        Node { weight, cpu_max, threads: 0, children: Vec::new(), domain: None }
    }
}

/// CPU time that each domain of a KVM host is entitled to when every thread is always busy, in pCPUs: each group shares its CPU time
/// among its children by their weights on all CPUs together ([`GroupWeight`]), none above what its vCPUs and limits allow. What is left
/// over is shared again. `None` for all where weights do not decide alone: threads that are pinned, real-time, or run on what is left
/// over. `None` for a part of a VM: the threads that serve it. `weight` is the parameter with the weight of a domain's own group.
pub(crate) fn group_shares(spec: &Spec, kvm: &KvmSpec, weight: &ParamSpec) -> Vec<Option<f64>> {
    let mut entitlements = vec![None; spec.domains.len()];
    let special_group = kvm.cgroups.iter().any(|group| group.config.idle || group.cpus.is_some());
    let pool = &spec.pools[POOL_0];
    if special_group || spec.domains.iter().any(|domain| is_special(domain, pool.generation)) {
        return entitlements;
    }
    let mut tree = Tree::new(kvm, pool.generation.group_weight(&pool.params), spec.host.pcpus);
    for (d, domain) in spec.domains.enumerate() {
        tree.insert_domain(spec, d, domain, weight);
    }
    if tree.depends_on_placement() {
        return entitlements;
    }
    tree.sum_children(0);
    tree.distribute(0, f64::from(spec.host.pcpus), &mut entitlements);
    entitlements
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

/// The control groups of a host, the root group first.
struct Tree<'a> {
    nodes: Vec<Node>,
    by_path: BTreeMap<&'a str, usize>,
    configs: BTreeMap<&'a str, &'a GroupConfig>,
    group_weight: GroupWeight,
    pcpus: u32,
}

impl<'a> Tree<'a> {
    fn new(kvm: &'a KvmSpec, group_weight: GroupWeight, pcpus: u32) -> Self {
        let configs = kvm.cgroups.iter().map(|group| (group.path.as_str(), &group.config)).collect();
        let nodes = vec![Node::new(1.0, f64::INFINITY)];
        Tree { nodes, by_path: BTreeMap::from([(ROOT, 0)]), configs, group_weight, pcpus }
    }

    fn add(&mut self, parent: usize, node: Node) -> usize {
        let id = self.nodes.len();
        self.nodes.push(node);
        self.nodes[parent].children.push(id);
        id
    }

    /// The group of a path. Adds it and its parents where they are missing.
    fn group_of_path(&mut self, path: &'a str) -> usize {
        if let Some(&group) = self.by_path.get(path) {
            return group;
        }
        let parent = path.rsplit_once('/').map_or(0, |(parent, _)| self.group_of_path(parent));
        let config = self.configs.get(path).map_or(GroupConfig::NEW, |config| **config);
        let cpu_max = config.quota.map_or(f64::INFINITY, |quota| limit(quota, config.period));
        let group = self.add(parent, Node::new(config.weight.into(), cpu_max));
        self.by_path.insert(path, group);
        group
    }

    fn insert_domain(&mut self, spec: &'a Spec, d: DomId, domain: &'a DomainSpec, weight: &ParamSpec) {
        let Some(threads) = domain.guest.threads().filter(|threads| !serves_a_vm(spec, &threads.cgroup))
        else {
            return;
        };
        let parent = self.group_of_path(&threads.cgroup);
        let weight = weight.number_in(&domain.params) as f64;
        let cpu_max = spec.pools[POOL_0].generation.limit(&domain.member());
        let node = Node { threads: domain.vcpus(), domain: Some(d), ..Node::new(weight, cpu_max) };
        self.add(parent, node);
    }

    /// Whether the CPU time of groups depends on the CPUs that balancing finds for their threads. A weight that is not divided is the
    /// load of a CPU whatever the number of domains in the group: balancing may leave all of them on one CPU.
    fn depends_on_placement(&self) -> bool {
        let is_shared = |child: &usize| self.nodes[*child].domain.is_none();
        let beside = |node: &Node| node.children.len() > 1 && node.children.iter().any(is_shared);
        self.group_weight == GroupWeight::Undivided && self.pcpus > 1 && self.nodes.iter().any(beside)
    }

    /// Counts the threads of all groups below a node, and limits each group to what its children can use.
    fn sum_children(&mut self, node: usize) {
        if self.nodes[node].domain.is_some() {
            return;
        }
        let (mut threads, mut cpu_max) = (0, 0.0);
        for child in self.nodes[node].children.clone() {
            self.sum_children(child);
            threads += self.nodes[child].threads;
            cpu_max += self.nodes[child].cpu_max;
        }
        let group = &mut self.nodes[node];
        (group.threads, group.cpu_max) = (threads, group.cpu_max.min(cpu_max));
    }

    /// Shares CPU time among the domains below a node.
    fn distribute(&self, node: usize, cpu_time: f64, entitlements: &mut [Option<f64>]) {
        let Node { children, domain, .. } = &self.nodes[node];
        if let Some(d) = domain {
            entitlements[d.index()] = Some(cpu_time);
        }
        let nodes = || children.iter().map(|&child| &self.nodes[child]);
        let weight = |child: &Node| self.group_weight.total(child.weight, child.threads, self.pcpus);
        let weights: Vec<f64> = nodes().map(weight).collect();
        let limits: Vec<f64> = nodes().map(|child| child.cpu_max).collect();
        for (&child, share) in children.iter().zip(fair_shares(cpu_time, &weights, &limits)) {
            self.distribute(child, share, entitlements);
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
