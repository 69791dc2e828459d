//! Hosts of Linux with KVM: their control groups, and the threads that serve their virtual machines.

use std::ops::RangeInclusive;

use vcpulab_host::{Class, CpuMask, DomId, GroupConfig, Isolation, Span};

use crate::limits::CGROUP_WEIGHTS;

/// The domain whose vCPUs are the host's own threads: those that serve its VMs.
pub const HOST: &str = "host";

/// The default control group around VMs.
pub const MACHINES: &str = "machine.slice";

/// The default control group around daemons.
pub const DAEMONS: &str = "system.slice";

/// The path of the root group.
pub const ROOT: &str = "/";

/// The control groups that systemd makes, whatever runs in them.
pub const SLICES: [&str; 2] = [DAEMONS, MACHINES];

/// The version of a host's control groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cgroups {
    /// Version 1: `cpu.shares` and `cpu.cfs_quota_us`.
    V1,
    /// Version 2: `cpu.weight` and `cpu.max`.
    #[default]
    V2,
}

impl Cgroups {
    /// The weights that a group can have, in units of `cpu.weight`: `cpu.shares` of version 1 go from 2 to 262144, 1024 for a weight of
    /// 100.
    pub fn weights(self) -> RangeInclusive<i64> {
        match self {
            Cgroups::V1 => CGROUP_WEIGHTS,
            Cgroups::V2 => 1..=10_000,
        }
    }
}

/// A host of Linux with KVM.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KvmSpec {
    /// The version of its control groups.
    pub version: Cgroups,
    /// Longest time for which a vCPU's thread polls before it blocks, once its guest has halted; zero: it does not.
    pub halt_poll: Span,
    /// Whether the computing times of guests contain the polling, so that there is no other.
    pub polls_recorded: bool,
    /// The control groups besides those that VMs and daemons have, as in the file.
    pub cgroups: Vec<CgroupSpec>,
    /// The pCPUs that its kernel leaves alone.
    pub isolation: Isolation,
}

/// A control group that a scenario names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupSpec {
    /// Path of the group, from the root group.
    pub path: String,
    /// Weight and limits of the group; its parent follows from the path.
    pub config: GroupConfig,
    /// The pCPUs that its threads may run on; `None`: those of the group around it.
    pub cpus: Option<CpuMask>,
}

impl KvmSpec {
    /// The pCPUs that threads in the group of that path may run on, those of all groups around it taken together;
    /// `None`: every one.
    pub fn cpuset(&self, path: &str) -> Option<CpuMask> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.fold(None, |around, end| {
            let own = self.cgroups.iter().find(|group| group.path == path[..end]);
            within(around, own.and_then(|group| group.cpus))
        })
    }
}

/// The pCPUs that are left of `own` in a cpuset: the whole cpuset if none is. `None`: every one.
pub fn within(cpuset: Option<CpuMask>, own: Option<CpuMask>) -> Option<CpuMask> {
    match (cpuset, own) {
        (Some(cpuset), Some(own)) => {
            let both = cpuset.and(&own);
            Some(if both.is_empty() { cpuset } else { both })
        }
        (one, other) => one.or(other),
    }
}

/// The threads of a daemon, or those that are the vCPUs of a VM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadsSpec {
    /// The path of the control group around its own; [`ROOT`]: none is.
    pub cgroup: String,
    /// Scheduling class of the threads.
    pub class: Class,
    /// Nice value of the threads.
    pub nice: i8,
}

/// A thread of the host that serves a VM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceThread {
    /// The VM.
    pub of: DomId,
    /// Kind of the thread.
    pub kind: ThreadKind,
}

/// The kinds of threads that serve VMs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ThreadKind {
    /// Moves packets between a VM's rings and the host's network.
    Vhost,
    /// The emulator's main loop: emulated devices, and disks without an I/O thread.
    Emulator,
    /// Serves the disk of a VM.
    IoThread,
}

impl ThreadKind {
    /// Name of the kind in results.
    pub fn name(self) -> &'static str {
        match self {
            ThreadKind::Vhost => "vhost",
            ThreadKind::Emulator => "emulator",
            ThreadKind::IoThread => "iothread",
        }
    }
}
