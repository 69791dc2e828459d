//! Control groups, and domains as threads of a KVM host.

use vcpulab_host::{Class, CpuMask, Span};
use vcpulab_spec::{CgroupSpec, Guest, Spec, ThreadsSpec};

use crate::file::raw::{NO_QUOTA, RawCgroup, RawDomain};
use crate::text::read::{Field, Named, named};
use crate::text::units::CpuList;

/// The control groups of a checked scenario as a file would state them.
pub(crate) fn raw_cgroups(spec: &Spec) -> Field<Named<RawCgroup>> {
    let us = |span: Span| span.ns() / 1000;
    let raw = |CgroupSpec { config, cpus, .. }: &CgroupSpec| RawCgroup {
        weight: i64::from(config.weight).into(),
        quota_us: config.quota.map_or(NO_QUOTA, us).into(),
        period_us: us(config.period).into(),
        burst_us: us(config.burst).into(),
        idle: config.idle.into(),
        cpus: cpus.as_ref().map(CpuList::from).into(),
    };
    let cgroups = spec.host.platform.kvm().into_iter().flat_map(|kvm| &kvm.cgroups);
    let cgroups: Vec<_> = cgroups.map(|cgroup| named(&cgroup.path, raw(cgroup))).collect();
    (!cgroups.is_empty()).then_some(Named(cgroups)).into()
}

/// The fields of a domain that only KVM hosts have.
pub(crate) fn raw_guest(guest: &Guest) -> RawDomain {
    match guest {
        Guest::Vm(vm) => RawDomain {
            daemon: false.into(),
            emulator_affinity: cpus(vm.emulator_affinity).into(),
            iothread_affinity: cpus(vm.iothread_affinity).into(),
            iothreads: vm.iothreads.into(),
            threads_per_core: vm.threads_per_core.into(),
            ..raw_threads(&vm.threads)
        },
        Guest::Daemon(threads) => RawDomain { daemon: true.into(), ..raw_threads(threads) },
        Guest::XenDomain(_) | Guest::HostThreads(_) => RawDomain::default(),
    }
}

/// The pCPUs that threads may run on as a file states them.
fn cpus(mask: Option<CpuMask>) -> CpuList {
    mask.as_ref().map_or_else(CpuList::all, CpuList::from)
}

fn raw_threads(threads: &ThreadsSpec) -> RawDomain {
    let (priority, has_nice) = match threads.class {
        Class::Fifo(priority) | Class::RoundRobin(priority) => (Some(priority), false),
        Class::Idle => (None, false),
        Class::Other | Class::Batch => (None, true),
    };
    let policy = match threads.class {
        Class::Fifo(_) => Class::Fifo(1),
        Class::RoundRobin(_) => Class::RoundRobin(1),
        class => class,
    };
    RawDomain {
        cgroup: threads.cgroup.clone().into(),
        sched_policy: policy.into(),
        sched_priority: priority.into(),
        nice: has_nice.then_some(threads.nice).into(),
        ..RawDomain::default()
    }
}
