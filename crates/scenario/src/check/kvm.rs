//! KVM hosts: control groups, the threads of VMs, and what only one of the two hypervisors has.

use vcpulab_host::{Bound, Class, CpuMask, Creation, DomId, Granularity, GroupConfig, Id, Isolation, Span};
use vcpulab_sched::Part;
use vcpulab_sched::linux::{GroupFiles, limited_part};
use vcpulab_spec::limits::{CGROUP_DEPTH_MAX, CGROUP_PATH_CHARS_MAX, CGROUPS_MAX};
use vcpulab_spec::{
    CgroupSpec, Cgroups, DAEMONS, DomainSpec, Forwarding, Guest, HOST, KvmSpec, MACHINES, ROOT,
    ServiceThread, Spec, ThreadsSpec, VmSpec,
};

use crate::check::fields::Checker;
use crate::file::raw::{NO_QUOTA, POOL_0, RawCgroup, RawDomain, RawHost, RawScenario};
use crate::file::words::DOM0;
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field};
use crate::text::units::CpuList;
use crate::text::value::{Scalar, Words, limited};

/// Allowed values, for messages, of a field of Xen's that has no place on a KVM host.
const IN_ITS_KERNEL: &str = "nothing on a KVM host: its drivers are in its kernel";

/// Allowed values, for messages, of such a field if it can be `false`.
const NO_DRIVERS: &str = "`false` on a KVM host: its drivers are in its kernel";

/// Allowed values, for messages, of a field that only a KVM host has.
pub(crate) const ONLY_KVM: &str = "nothing here: only a KVM host has this";

/// Refuses the fields of a host that only a KVM host has.
pub(crate) fn refuse_in_host(checker: &mut Checker<'_, '_>, raw: &RawScenario, raw_host: &RawHost) {
    refuse(checker, &raw_host.halt_poll_us, ONLY_KVM);
    refuse(checker, &raw_host.polls_recorded, ONLY_KVM);
    refuse(checker, &raw_host.cgroups, ONLY_KVM);
    refuse(checker, &raw_host.isolated_cpus, ONLY_KVM);
    refuse(checker, &raw_host.nohz_full, ONLY_KVM);
    refuse_table(checker, &raw.cgroup, ONLY_KVM);
}

/// Settings of a host of Linux with KVM. Fields that the hypervisor does not have are reported.
pub(crate) fn host(
    checker: &mut Checker<'_, '_>,
    raw: &RawScenario,
    raw_host: &RawHost,
    pcpus: u32,
) -> KvmSpec {
    refuse(checker, &raw_host.drivers, IN_ITS_KERNEL);
    refuse_but(checker, &raw_host.bare_metal, &false, NO_DRIVERS);
    let no_unit = "`cpu` on a KVM host: Linux has no other unit";
    refuse_but(checker, &raw_host.sched_gran, &Granularity::Cpu, no_unit);
    let of_xen = "`contract` on a KVM host: `release` models Xen's toolstack";
    refuse_but(checker, &raw_host.creation, &Creation::Contract, of_xen);
    refuse_table(
        checker,
        &raw.pool,
        "nothing on a KVM host: it has one scheduler; `affinity` keeps VMs apart",
    );
    let halt_poll = raw_host.halt_poll_us(checker.report);
    let given = raw.cgroup.get().map_or(&[][..], |named| &named.0);
    let version = match raw_host.cgroups(checker.report) {
        1 => Cgroups::V1,
        _ => Cgroups::V2,
    };
    if let Some(At { place, .. }) = &raw.cgroup.0 {
        checker.count(given.len(), 0, CGROUPS_MAX, "control groups", place);
    }
    let cgroups = given.iter().take(CGROUPS_MAX).map(|(path, At { value, place })| {
        path_of_group(checker, path);
        let cpus = cpus(checker, &value.cpus, pcpus);
        CgroupSpec { path: path.value.clone(), config: cgroup(checker, value, place, version), cpus }
    });
    KvmSpec {
        version,
        cgroups: cgroups.collect(),
        halt_poll: Span::from_us(halt_poll),
        polls_recorded: raw_host.polls_recorded(checker.report),
        isolation: Isolation {
            isolated: some_cpus(checker, &raw_host.isolated_cpus, pcpus),
            nohz_full: some_cpus(checker, &raw_host.nohz_full, pcpus),
        },
    }
}

/// Whether the host accepts this weight of a control group. If not, the weight is reported.
pub(crate) fn weight_fits(
    checker: &mut Checker<'_, '_>,
    weight: i64,
    place: &Place,
    version: Cgroups,
) -> bool {
    let fits = version.weights().contains(&weight);
    if !fits {
        let range =
            |version: Cgroups| format!("{} to {}", version.weights().start(), version.weights().end());
        let [first, second] = [Cgroups::V1, Cgroups::V2].map(range);
        let (here, hint) = match version {
            Cgroups::V1 => (&first, format!("with `host.cgroups = 2` (`cpu.weight`) it is {second}")),
            Cgroups::V2 => {
                (&second, format!("with `host.cgroups = 1` (`cpu.shares` up to 262144) it is {first}"))
            }
        };
        checker.report.error(place, Problem::not_allowed(format!("an integer from {here}")).hint(hint));
    }
    fits
}

/// The pCPUs of a list; `None`: every one.
fn cpus(checker: &mut Checker<'_, '_>, field: &Field<CpuList>, pcpus: u32) -> Option<CpuMask> {
    let At { value, place } = field.0.as_ref()?;
    checker.cpus(value, place, pcpus, &CpuMask::first_n(pcpus), POOL_0)
}

/// The pCPUs of a list that leaves at least one pCPU for housekeeping, as the kernel requires.
fn some_cpus(checker: &mut Checker<'_, '_>, field: &Field<CpuList>, pcpus: u32) -> CpuMask {
    let Some(At { value, place }) = &field.0 else { return CpuMask::EMPTY };
    cpus(checker, field, pcpus).unwrap_or_else(|| {
        let mask = value.on_host(pcpus);
        if mask == CpuMask::first_n(pcpus) {
            let problem = Problem::says("the kernel needs at least one other pCPU").found(value);
            checker.report.error(place, problem);
        }
        CpuMask::EMPTY
    })
}

/// The affinity of a thread that is given none: a toolstack leaves isolated pCPUs out. `None`: every pCPU.
fn usual_affinity(isolation: &Isolation, pcpus: u32) -> Option<CpuMask> {
    let isolated = &isolation.isolated;
    (!isolated.is_empty()).then(|| CpuMask::first_n(pcpus).without(isolated))
}

/// Gives every thread that may run on all pCPUs the affinity that it has beside isolated pCPUs.
pub(crate) fn leave_out_isolated(spec: &mut Spec) {
    let Some(kvm) = spec.host.platform.kvm() else { return };
    let Some(usual) = usual_affinity(&kvm.isolation, spec.host.pcpus) else { return };
    for domain in spec.domains.iter_mut() {
        let of_vm = match &mut domain.guest {
            Guest::Vm(vm) => [Some(&mut vm.emulator_affinity), Some(&mut vm.iothread_affinity)],
            Guest::Daemon(_) | Guest::HostThreads(_) | Guest::XenDomain(_) => [None, None],
        };
        for affinity in domain.affinity.iter_mut().chain(of_vm.into_iter().flatten()) {
            affinity.get_or_insert(usual);
        }
    }
}

/// A path from the root group, as `systemd-cgls` shows it.
fn path_of_group(checker: &mut Checker<'_, '_>, path: &At<String>) {
    let named = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && !part.chars().any(|c| c.is_control() || c.is_whitespace())
    };
    let fits = path.value.chars().count() <= CGROUP_PATH_CHARS_MAX
        && path.value.split('/').count() <= CGROUP_DEPTH_MAX
        && path.value.split('/').all(named);
    if !fits {
        let allowed = format!(
            "the path of a control group without a slash at its ends, such as `{MACHINES}` or `{DAEMONS}/cron.service`: at most \
             {CGROUP_DEPTH_MAX} groups one inside the other, and {CGROUP_PATH_CHARS_MAX} characters"
        );
        checker.report.error(&path.place, Problem::not_allowed(allowed));
    }
}

fn cgroup(checker: &mut Checker<'_, '_>, raw: &RawCgroup, place: &Place, version: Cgroups) -> GroupConfig {
    let new = GroupConfig::NEW;
    let us = |span: Span| span.ns() / 1000;
    let weight = raw.weight.0.as_ref().map_or(Some(new.weight.into()), |At { value, place }| {
        weight_fits(checker, *value, place, version).then_some(*value)
    });
    let weight = weight.unwrap_or(1);
    let quota = match raw.quota_us.get() {
        None | Some(&NO_QUOTA) => None,
        Some(_) => Some(raw.quota_us(checker.report)),
    };
    let period = raw.period_us(checker.report);
    let burst = raw.burst_us(checker.report);
    let (quota, burst) = (quota.map(Span::from_us), Span::from_us(burst));
    if let Some(At { place: at, .. }) = &raw.burst_us.0 {
        match quota {
            None if burst > Span::ZERO => {
                let problem = Problem::says("a burst needs a quota").found(us(burst));
                checker.report.error(at, problem.hint(format!("add `quota_us` to [{}]", place.field)));
            }
            Some(most) if !GroupConfig::takes_burst(quota, burst) => {
                let allowed = format!("an integer from 0 to {}", us(most));
                checker.report.error(at, Problem::not_allowed(allowed));
            }
            _ => {}
        }
    }
    GroupConfig {
        weight: weight as u32,
        quota,
        period: Span::from_us(period),
        burst,
        idle: raw.idle(checker.report),
        ..new
    }
}

/// A VM or daemon of a KVM host. Fields that it does not have are reported.
pub(crate) fn guest(checker: &mut Checker<'_, '_>, name: &At<String>, raw: &RawDomain, pcpus: u32) -> Guest {
    for (taken, whose) in [(DOM0, "a KVM host has none"), (HOST, "reserved for the host's own threads")] {
        if name.value == taken {
            let problem = Problem::says(format!("no domain can have this name here: {whose}")).found(taken);
            let hint = "a daemon of the host is a domain with `daemon = true`";
            checker.report.error(&name.place, problem.hint(hint));
        }
    }
    refuse_but(checker, &raw.driver_domain, &false, NO_DRIVERS);
    refuse_but(checker, &raw.forwarding, &Forwarding::Bridge, "`bridge` on a KVM host");
    refuse(checker, &raw.pool, "nothing on a KVM host: it has one scheduler");
    let daemon = raw.daemon(checker.report);
    let class = class(checker, raw);
    let cgroup = raw.cgroup.0.as_ref().map(|path| {
        if path.value != ROOT {
            path_of_group(checker, path);
        }
        path.value.clone()
    });
    let threads = ThreadsSpec {
        cgroup: cgroup.unwrap_or_else(|| if daemon { DAEMONS } else { MACHINES }.to_owned()),
        class,
        nice: nice(checker, raw, class),
    };
    if daemon {
        refuse_in_daemon(checker, raw);
        return Guest::Daemon(threads);
    }
    Guest::Vm(VmSpec {
        threads,
        emulator_affinity: cpus(checker, &raw.emulator_affinity, pcpus),
        iothread_affinity: cpus(checker, &raw.iothread_affinity, pcpus),
        iothreads: raw.iothreads(checker.report),
        threads_per_core: raw.threads_per_core(checker.report),
    })
}

fn class(checker: &mut Checker<'_, '_>, raw: &RawDomain) -> Class {
    if let Some(At { value, place }) = &raw.sched_policy.0
        && value.text == "deadline"
    {
        let words: Vec<&str> = Class::words().iter().map(|(word, _)| *word).collect();
        let problem = Problem::not_allowed(format!("one of {}", words.join(", ")));
        checker.report.error(place, problem.hint("SCHED_DEADLINE is not modelled"));
        return Class::Other;
    }
    let class = raw.sched_policy(checker.report);
    let priority = raw.sched_priority(checker.report);
    match class {
        Class::Fifo(_) => Class::Fifo(priority),
        Class::RoundRobin(_) => Class::RoundRobin(priority),
        Class::Other | Class::Batch | Class::Idle => {
            if let Some(At { place, value }) = &raw.sched_priority.0 {
                let problem =
                    Problem::says("only `sched_policy` `fifo` and `rr` have priorities").found(value);
                checker.report.error(place, problem.hint("the others have `nice`"));
            }
            class
        }
    }
}

fn nice(checker: &mut Checker<'_, '_>, raw: &RawDomain, class: Class) -> i8 {
    let nice = raw.nice(checker.report);
    if let (Some(At { place, .. }), false) = (&raw.nice.0, matches!(class, Class::Other | Class::Batch))
        && nice != 0
    {
        let problem =
            Problem::says("only `sched_policy` `other` and `batch` look at nice values").found(nice);
        checker.report.error(place, problem);
    }
    nice
}

/// Refuses the fields of a domain that only KVM hosts have.
pub(crate) fn refuse_in_domain(checker: &mut Checker<'_, '_>, raw: &RawDomain) {
    refuse(checker, &raw.cgroup, ONLY_KVM);
    refuse(checker, &raw.daemon, ONLY_KVM);
    refuse(checker, &raw.emulator_affinity, ONLY_KVM);
    refuse(checker, &raw.iothread_affinity, ONLY_KVM);
    refuse(checker, &raw.iothreads, ONLY_KVM);
    refuse(checker, &raw.threads_per_core, ONLY_KVM);
    refuse(checker, &raw.sched_policy, ONLY_KVM);
    refuse(checker, &raw.sched_priority, ONLY_KVM);
    refuse(checker, &raw.nice, ONLY_KVM);
}

fn refuse_in_daemon(checker: &mut Checker<'_, '_>, raw: &RawDomain) {
    let nothing = "nothing of a daemon, which is no VM";
    refuse_table(checker, &raw.nic, nothing);
    refuse_table(checker, &raw.disk, nothing);
    refuse(checker, &raw.emulator_affinity, nothing);
    refuse(checker, &raw.iothread_affinity, nothing);
    refuse(checker, &raw.iothreads, nothing);
    refuse(checker, &raw.threads_per_core, nothing);
    for (name, At { place, .. }) in &raw.params.0 {
        if limited_part(&name.value).is_some_and(|part| part != Part::Whole) {
            let problem = Problem::not_allowed(nothing).found(format!("`{}`", name.value));
            checker
                .report
                .error(place, problem.hint("`global_quota_us` limits all threads of a daemon together"));
        }
    }
}

/// Refuses the driver domain of a front end of a VM on a KVM host.
pub(crate) fn refuse_driver_domain(checker: &mut Checker<'_, '_>, field: &Field<String>) {
    refuse(checker, field, IN_ITS_KERNEL);
}

/// Refuses the driver domain's vCPU for a front end of a VM on a KVM host.
pub(crate) fn refuse_driver_vcpu(checker: &mut Checker<'_, '_>, field: &Field<i64>) {
    refuse(checker, field, "nothing on a KVM host: each VM has a thread of its own");
}

/// The pCPU that takes a device's interrupts on a KVM host, if the scenario gives one. Fields that a device has on other hosts are
/// reported.
pub(crate) fn interrupts(
    checker: &mut Checker<'_, '_>,
    driver_domain: &Field<String>,
    vcpu: &Field<i64>,
    pcpu: &Field<i64>,
    pcpus: u32,
) -> Option<u32> {
    refuse_driver_domain(checker, driver_domain);
    refuse(checker, vcpu, "nothing on a KVM host: a pCPU takes its interrupts, see `pcpu`");
    limited(pcpu, 0..=pcpus - 1, checker.report)
}

/// Refuses the field of a device that only KVM hosts have.
pub(crate) fn refuse_in_device(checker: &mut Checker<'_, '_>, pcpu: &Field<i64>) {
    refuse(checker, pcpu, ONLY_KVM);
}

/// A domain's own group is set by its fields: a table `[cgroup]` of that path, or of one in it, would be of a group that none of its
/// threads is in.
pub(crate) fn own_groups(checker: &mut Checker<'_, '_>, raw: &RawScenario, spec: &Spec) {
    let given = raw.cgroup.get().map_or(&[][..], |named| &named.0);
    for (path, _) in given.iter().take(CGROUPS_MAX) {
        let parts: Vec<&str> = path.value.split('/').collect();
        let within = (0..parts.len()).map(|depth| (parts[..depth].join("/"), parts[depth]));
        let mut own = within.filter_map(|(around, part)| {
            spec.domains.iter().find(|domain| is_own_group(domain, &around, part))
        });
        let whose = own.next();
        if let Some(domain) = whose {
            let problem = Problem::says(format!("this is a group of domain `{}` itself", domain.name));
            let fields = if let Guest::Daemon(_) = domain.guest { "" } else { ", `vcpu_quota_us`" };
            let hint =
                format!("its fields set it: `weight`, `global_quota_us`{fields} of [domain.{}]", domain.name);
            checker.report.error(&path.place, problem.found(&path.value).hint(hint));
        }
    }
}

/// Refuses settings of control groups for which the kernel has no file.
pub(crate) fn group_files(checker: &mut Checker<'_, '_>, raw: &RawScenario, spec: &Spec) {
    let pool = &spec.pools[vcpulab_spec::POOL_0];
    let (given, files) =
        (raw.cgroup.get().map_or(&[][..], |named| &named.0), GroupFiles::of(pool.generation));
    if spec.kernel().is_none() {
        return;
    }
    for (_, At { value, .. }) in given.iter().take(CGROUPS_MAX) {
        if !files.idle {
            let allowed = format!("`false`: Linux {} has no `cpu.idle`", pool.release);
            refuse_but(checker, &value.idle, &false, &allowed);
        }
        if !files.burst {
            let allowed = format!("0: Linux {} has no `cpu.max.burst`", pool.release);
            refuse_but(checker, &value.burst_us, &0_i64, &allowed);
        }
    }
}

/// Whether the last step of a group's path names a domain's own group in the group around it: by the domain's name, or
/// with the name that systemd, libvirt or Proxmox VE gives it.
fn is_own_group(domain: &DomainSpec, around: &str, part: &str) -> bool {
    let Some(ThreadsSpec { cgroup, .. }) = domain.guest.threads() else { return false };
    let inside = if cgroup == ROOT { "" } else { cgroup.as_str() };
    if around != inside {
        return false;
    }
    if let Guest::Daemon(_) = domain.guest {
        return part.strip_suffix(".service") == Some(&domain.name);
    }
    let of_libvirt = || {
        let machine = part.strip_prefix("machine-")?.strip_suffix(".scope")?.replace("\\x2d", "-");
        let number = machine.strip_prefix("qemu-")?.split('-').next()?;
        Some(number.parse::<u64>().is_ok() && machine == name_of_machine(number, &domain.name))
    };
    // By the VM's number, which its name says: `vm-101`, `101`.
    let of_proxmox = || {
        let number = part.strip_suffix(".scope")?;
        let said = ["vm", "qemu", "kvm"].iter().find_map(|kind| domain.name.strip_prefix(kind));
        let said = said.map_or(domain.name.as_str(), |said| said.strip_prefix(['-', '_']).unwrap_or(said));
        Some(said == number && number.parse::<u64>().is_ok())
    };
    part == domain.name || of_libvirt() == Some(true) || of_proxmox() == Some(true)
}

/// The name that libvirt gives the machine of a VM: of the VM's own name it takes letters, digits, `-` and `.`, of several `-` and `.` in a
/// row the first, and as much as makes 64 characters with what is before it.
fn name_of_machine(number: &str, name: &str) -> String {
    let mut machine = format!("qemu-{number}-");
    for c in name.chars().filter(|c| c.is_ascii_alphanumeric() || ['-', '.'].contains(c)) {
        if machine.len() < 64 && (c.is_ascii_alphanumeric() || !machine.ends_with(['-', '.'])) {
            machine.push(c);
        }
    }
    machine.trim_end_matches(['-', '.']).to_owned()
}

/// The domain of the threads that serve the VMs of a KVM host, if there are any: the last one.
pub(crate) fn host_domain(checker: &mut Checker<'_, '_>, spec: &mut Spec) {
    let own = DomId::from_index(spec.domains.len());
    let (mut threads, mut affinity) = (Vec::new(), Vec::new());
    for (of, domain) in spec.domains.enumerate_mut() {
        let Guest::Vm(vm) = &domain.guest else { continue };
        let [of_nic, of_disk] = domain.served_by(vm);
        // One emulator serves both.
        let mut number = |kind| {
            let thread = ServiceThread { of, kind };
            if threads.last() != Some(&thread) {
                threads.push(thread);
                affinity.push(vm.affinity_of(kind));
            }
            threads.len() as u32 - 1
        };
        if let (Some(nic), Some(kind)) = (&mut domain.nic, of_nic) {
            (nic.driver, nic.driver_vcpu) = (Some(own), number(kind));
        }
        if let (Some(disk), Some(kind)) = (&mut domain.disk, of_disk) {
            (disk.driver, disk.driver_vcpu) = (Some(own), number(kind));
        }
    }
    if threads.is_empty() {
        return;
    }
    let devices = spec.nics.iter_mut().chain(spec.disks.iter_mut().map(|disk| &mut disk.device));
    devices.for_each(|device| device.owner = Some(own));
    checker.hidden = Some(own);
    spec.domains.push(DomainSpec {
        name: HOST.to_owned(),
        affinity,
        bound: Bound::Io,
        working_set_bytes: spec.host.constants.driver_working_set_bytes as u64,
        guest: Guest::HostThreads(threads),
        ..DomainSpec::default()
    });
}

/// A field that can say nothing here.
fn refuse<T>(checker: &mut Checker<'_, '_>, field: &Field<T>, allowed: &str) {
    if let Some(At { place, .. }) = &field.0 {
        checker.report.error(place, Problem::not_allowed(allowed));
    }
}

/// A field that can say nothing here but what is so anyway.
fn refuse_but<V: Scalar<Raw: PartialEq>>(
    checker: &mut Checker<'_, '_>,
    field: &Field<V::Raw>,
    usual: &V,
    allowed: &str,
) {
    if field.get().is_some_and(|value| *value != usual.raw()) {
        refuse(checker, field, allowed);
    }
}

/// A table, or several, that cannot be here.
fn refuse_table<T>(checker: &mut Checker<'_, '_>, field: &Field<T>, allowed: &str) {
    if let Some(At { place, .. }) = &field.0 {
        checker.report.error(place, Problem::not_allowed(allowed).found("a table"));
    }
}
