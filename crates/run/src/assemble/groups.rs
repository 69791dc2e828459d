//! The control groups of a KVM host, and the threads in them, as libvirt and systemd make them:
//!
//! ```text
//! machine.slice / the VM's scope / libvirt / vcpu0, vcpu1 ... (one thread each), emulator, iothread1
//! system.slice / the daemon's service
//! ```

use std::collections::BTreeMap;

use vcpulab_host::{DomId, GroupConfig, GroupId, Membership, Table, ThreadConfig, ThreadMode};
use vcpulab_sched::Part;
use vcpulab_spec::{
    CgroupSpec, DomainSpec, Guest, KvmSpec, ROOT, SLICES, ServiceThread, Spec, ThreadKind, ThreadsSpec,
    VmSpec,
};

/// Control groups, and the threads that are in them. On a host of Xen there are none.
pub(crate) struct Groups {
    /// Each after the one around it.
    pub all: Vec<GroupConfig>,
    /// The threads of each domain, by vCPU.
    pub threads: Table<DomId, Vec<ThreadConfig>>,
}

/// The groups of the threads that serve a VM.
#[derive(Clone, Copy)]
struct Serving {
    emulator: GroupId,
    iothread: GroupId,
}

impl Groups {
    pub fn of(spec: &Spec) -> Self {
        let mut tree = spec.host.platform.kvm().map_or_else(Tree::default, Tree::new);
        let mut serving = Table::filled(spec.domains.len(), None);
        let mut threads: Table<DomId, Vec<ThreadConfig>> = Table::new();
        for (d, domain) in spec.domains.enumerate() {
            threads.push(match &domain.guest {
                Guest::XenDomain(_) => vec![ThreadConfig::default(); domain.affinity.len()],
                Guest::Daemon(threads) => daemon(&mut tree, d, domain, threads),
                Guest::Vm(spec) => {
                    let (vcpus, groups) = vm(&mut tree, d, domain, spec);
                    serving[d] = Some(groups);
                    vcpus
                }
                Guest::HostThreads(threads) => {
                    threads.iter().map(|thread| service(thread, &serving)).collect()
                }
            });
        }
        Groups { all: tree.all, threads }
    }
}

/// The groups that there are so far.
#[derive(Default)]
struct Tree<'a> {
    all: Vec<GroupConfig>,
    /// By path, those that have one in the scenario.
    by_path: BTreeMap<String, GroupId>,
    given: BTreeMap<&'a str, &'a GroupConfig>,
}

impl<'a> Tree<'a> {
    fn new(KvmSpec { cgroups: given, .. }: &'a KvmSpec) -> Self {
        let known = given.iter().map(|CgroupSpec { path, config, .. }| (path.as_str(), config)).collect();
        let mut tree = Tree { all: Vec::new(), by_path: BTreeMap::new(), given: known };
        let paths = SLICES.into_iter().chain(given.iter().map(|group| group.path.as_str()));
        paths.for_each(|path| _ = tree.at(path));
        tree
    }

    /// The group of that path, made if it is not there, with those around it.
    fn at(&mut self, path: &str) -> GroupId {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let parent = path.rsplit_once('/').map(|(around, _)| self.at(around));
        let config = self.given.get(path).map_or(GroupConfig::NEW, |config| **config);
        let id = self.add(GroupConfig { parent, ..config });
        self.by_path.insert(path.to_owned(), id);
        id
    }

    /// The group of that path; `None`: the root group.
    fn around(&mut self, path: &str) -> Option<GroupId> {
        (path != ROOT).then(|| self.at(path))
    }

    fn add(&mut self, config: GroupConfig) -> GroupId {
        self.all.push(config);
        GroupId(self.all.len() as u32 - 1)
    }

    /// A new group in another, which is a part of a domain if `part` says so.
    fn inside(&mut self, parent: Option<GroupId>, part: Option<(DomId, Part)>) -> GroupId {
        self.add(GroupConfig { parent, part: part.map(|(d, part)| (d, part.id())), ..GroupConfig::NEW })
    }
}

/// The groups of a VM: those of its vCPUs' threads, which are the answer, and those of the threads that serve it.
fn vm(tree: &mut Tree<'_>, d: DomId, domain: &DomainSpec, vm: &VmSpec) -> (Vec<ThreadConfig>, Serving) {
    let around = tree.around(&vm.threads.cgroup);
    let scope = tree.inside(around, Some((d, Part::Whole)));
    let libvirt = Some(tree.inside(Some(scope), None));
    let emulator = tree.inside(libvirt, Some((d, Part::Emulator)));
    // What a daemon further below in the file can name as the group around its own.
    tree.by_path.entry(emulator_of(&vm.threads, domain)).or_insert(emulator);
    let iothread = match vm.iothreads {
        0 => emulator,
        _ => tree.inside(libvirt, Some((d, Part::IoThread))),
    };
    let mut vcpu = |_| thread(tree.inside(libvirt, Some((d, Part::Vcpu))), &vm.threads);
    ((0..domain.vcpus()).map(&mut vcpu).collect(), Serving { emulator, iothread })
}

/// The path of the group of a VM's emulator.
fn emulator_of(its: &ThreadsSpec, vm: &DomainSpec) -> String {
    let around = if its.cgroup == ROOT { String::new() } else { format!("{}/", its.cgroup) };
    format!("{around}{}/libvirt/emulator", vm.name)
}

/// The threads of a daemon, which has one group.
fn daemon(tree: &mut Tree<'_>, d: DomId, domain: &DomainSpec, its: &ThreadsSpec) -> Vec<ThreadConfig> {
    let around = tree.around(&its.cgroup);
    let service = tree.inside(around, Some((d, Part::Whole)));
    vec![thread(service, its); domain.affinity.len()]
}

fn thread(group: GroupId, its: &ThreadsSpec) -> ThreadConfig {
    ThreadConfig { class: its.class, nice: its.nice, ..in_group(group) }
}

/// A thread that serves a VM: of the usual class, whatever those of its vCPUs are.
fn service(thread: &ServiceThread, serving: &Table<DomId, Option<Serving>>) -> ThreadConfig {
    let groups = serving[thread.of].expect("it serves a VM");
    let group = match thread.kind {
        ThreadKind::Vhost | ThreadKind::Emulator => groups.emulator,
        ThreadKind::IoThread => groups.iothread,
    };
    let mode = if thread.kind == ThreadKind::Vhost { ThreadMode::Kernel } else { ThreadMode::User };
    ThreadConfig { mode, ..in_group(group) }
}

fn in_group(group: GroupId) -> ThreadConfig {
    ThreadConfig { group: Membership::Of(group), ..ThreadConfig::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_host::{Class, Span};
    use vcpulab_scenario::Scenario;

    /// The path of each group, by its place in the list: `name` is of what it is a part, or its number.
    fn paths(all: &[GroupConfig]) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for (number, group) in all.iter().enumerate() {
            let around = group.parent.map_or(String::new(), |parent| format!("{}/", paths[parent.index()]));
            let name = match group.part {
                Some((d, part)) => format!("{}.{:?}", d.0, Part::ALL[part.index()]),
                None => number.to_string(),
            };
            paths.push(around + &name);
        }
        paths
    }

    #[test]
    fn a_vm_has_the_groups_of_libvirt_and_a_daemon_its_service() {
        let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"credit2\"\npcpus = 4\n\
            [cgroup.\"machine.slice/gold.slice\"]\nweight = 300\nquota_us = 5000\n\
            [domain.a]\nvcpus = 2\nnic = {}\ndisk = {}\niothreads = 1\nnice = 5\napp = [{ kind = \"hog\" }]\n\
            [domain.b]\ncgroup = \"machine.slice/gold.slice\"\nsched_policy = \"rr\"\nsched_priority = 7\ndisk = {}\n\
            app = [{ kind = \"hog\" }]\n[domain.cron]\ndaemon = true\nvcpus = 2\napp = [{ kind = \"hog\" }]\n";
        let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let Groups { all, threads } = Groups::of(&scenario);
        let paths = paths(&all);
        let expected = [
            "0",
            "1",
            "1/2",
            "1/0.Whole",
            "1/0.Whole/4",
            "1/0.Whole/4/0.Emulator",
            "1/0.Whole/4/0.IoThread",
            "1/0.Whole/4/0.Vcpu",
            "1/0.Whole/4/0.Vcpu",
            "1/2/1.Whole",
            "1/2/1.Whole/10",
            "1/2/1.Whole/10/1.Emulator",
            "1/2/1.Whole/10/1.Vcpu",
            "0/2.Whole",
        ];
        assert_eq!(paths, expected);
        assert_eq!((all[2].weight, all[2].quota), (300, Some(Span::from_ms(5))), "as it is given");
        let of = |d: u32| -> Vec<String> {
            let path = |thread: &ThreadConfig| match thread.group {
                Membership::Of(group) => paths[group.index()].clone(),
                other => format!("{other:?}"),
            };
            threads[DomId(d)].iter().map(path).collect()
        };
        assert_eq!(of(0), ["1/0.Whole/4/0.Vcpu"; 2]);
        assert_ne!(threads[DomId(0)][0].group, threads[DomId(0)][1].group, "a group for each");
        assert_eq!(of(2), ["0/2.Whole"; 2]);
        assert_eq!(of(3), ["1/0.Whole/4/0.Emulator", "1/0.Whole/4/0.IoThread", "1/2/1.Whole/10/1.Emulator"]);
        let how = |d: u32| (threads[DomId(d)][0].class, threads[DomId(d)][0].nice);
        let hows = [0, 1, 3].map(how);
        assert_eq!(hows, [(Class::Other, 5), (Class::RoundRobin(7), 0), (Class::Other, 0)]);
        let modes: Vec<_> = threads[DomId(3)].iter().map(|thread| thread.mode).collect();
        assert_eq!(
            modes,
            [ThreadMode::Kernel, ThreadMode::User, ThreadMode::User],
            "vhost stays in the kernel"
        );
    }

    #[test]
    fn a_vm_can_be_beside_the_slices() {
        let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"credit2\"\n[domain.a]\ncgroup = \"/\"\n\
            app = [{ kind = \"hog\" }]\n[domain.d]\ndaemon = true\ncgroup = \"a/libvirt/emulator\"\n\
            app = [{ kind = \"hog\" }]\n";
        let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let all = paths(&Groups::of(&scenario).all);
        let own = [
            "0.Whole",
            "0.Whole/3",
            "0.Whole/3/0.Emulator",
            "0.Whole/3/0.Vcpu",
            "0.Whole/3/0.Emulator/1.Whole",
        ];
        assert_eq!(all[2..], own);
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again").unwrap(), scenario);
    }

    #[test]
    fn a_daemon_can_be_in_the_group_of_the_emulator_of_a_vm_above_it() {
        let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"credit2\"\n[domain.a]\napp = [{ kind = \"hog\" }]\n\
            [domain.vhost]\ndaemon = true\ncgroup = \"machine.slice/a/libvirt/emulator\"\napp = [{ kind = \"hog\" }]\n";
        let Groups { all, threads } = Groups::of(&Scenario::parse(text, "f").unwrap());
        let paths = paths(&all);
        let Membership::Of(group) = threads[DomId(1)][0].group else { panic!("it is in a group") };
        assert_eq!(paths[group.index()], "1/0.Whole/3/0.Emulator/1.Whole");
    }

    #[test]
    fn a_host_of_xen_has_none() {
        let text = "[host]\nscheduler = \"credit2\"\n[domain.a]\nvcpus = 2\napp = [{ kind = \"hog\" }]\n";
        let groups = Groups::of(&Scenario::parse(text, "f").unwrap());
        assert_eq!(
            (groups.all.len(), groups.threads[DomId(0)].clone()),
            (0, vec![ThreadConfig::default(); 2])
        );
    }
}
