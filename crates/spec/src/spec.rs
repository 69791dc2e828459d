//! The whole scenario.

use std::collections::BTreeMap;

use vcpulab_host::{CpuMask, DomId, PoolId, Span, Table, Time};
use vcpulab_io::{ClientId, ClientMachineId, DiskId, Netbacks, NicId};
use vcpulab_sched::linux::KernelRelease;

use crate::action::{ActionSpec, Change};
use crate::app::Service;
use crate::client::{ClientMachineSpec, ClientSpec};
use crate::device::{DeviceSpec, DiskSpec};
use crate::domain::DomainSpec;
use crate::host::{HostSpec, POOL_0, PoolSpec};
use crate::kvm::ServiceThread;
use crate::platform::{Guest, Platform};

/// Requests of a client among which the frequency of each size of answer is stated.
const REQUESTS: u64 = 1_000_000;

/// A scenario once it is checked, with the defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Title of the scenario, for people.
    pub name: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Measured time.
    pub duration: Span,
    /// Time before that.
    pub warmup: Span,
    /// Longest delay, the same for all applications in a replication, before applications begin.
    pub start_spread: Span,
    /// Number of independent runs.
    pub replications: u32,
    /// Time between two samples of the counters; zero: none are taken.
    pub sample: Span,
    /// Busy cycles between two samples of the profiler; `None`: there is none.
    pub profiler_cycles: Option<i64>,
    /// The machine.
    pub host: HostSpec,
    /// NICs of the host.
    pub nics: Table<NicId, DeviceSpec>,
    /// Disks of the host.
    pub disks: Table<DiskId, DiskSpec>,
    /// CPU pools of the host; the first is `Pool-0`.
    pub pools: Table<PoolId, PoolSpec>,
    /// The domains in the order of their creation: Dom0 first, the others as in the file. On a KVM host the last one is that of the
    /// host's own threads, if it has any.
    pub domains: Table<DomId, DomainSpec>,
    /// The clients outside, as in the file.
    pub clients: Table<ClientId, ClientSpec>,
    /// The machines that they run on.
    pub client_machines: Table<ClientMachineId, ClientMachineSpec>,
    /// The administrator's actions, as in the file.
    pub actions: Vec<ActionSpec>,
}

impl Spec {
    /// The end of a replication.
    pub fn end(&self) -> Time {
        Time::ZERO + self.warmup + self.duration
    }

    /// The pCPUs that the control groups around a domain leave to its thread of that number; `None`: every one.
    pub fn cpuset(&self, domain: DomId, vcpu: u32) -> Option<CpuMask> {
        let guest = match &self.domains[domain].guest {
            Guest::HostThreads(threads) => &self.domains[threads[vcpu as usize].of].guest,
            guest => guest,
        };
        self.host.platform.kvm()?.cpuset(&guest.threads()?.cgroup)
    }

    /// The pool of each action: the one its domain is in at that time, or the one whose scheduler it is about.
    pub fn action_pools(&self) -> Vec<PoolId> {
        let mut order: Vec<usize> = (0..self.actions.len()).collect();
        order.sort_by_key(|&i| self.actions[i].at);
        let mut pools: Table<DomId, PoolId> = self.domains.iter().map(|domain| domain.pool).collect();
        let mut found = vec![POOL_0; self.actions.len()];
        for i in order {
            found[i] = match self.actions[i].change {
                Change::AdjustGlobal(pool, _) => pool,
                Change::Adjust(domain, _)
                | Change::Pause(domain)
                | Change::Unpause(domain)
                | Change::Affinity(domain, ..)
                | Change::MovePool(domain, _)
                | Change::Life(domain, _)
                | Change::Online(domain, ..) => pools[domain],
            };
            if let Some((domain, pool)) = self.actions[i].change.moves(&self.domains) {
                pools[domain] = pool;
            }
        }
        found
    }

    /// The domain of a KVM host's own threads, which is in no file, and the threads, its vCPUs.
    pub fn host_threads(&self) -> Option<(DomId, &[ServiceThread])> {
        let domain = self.domains.ids().last()?;
        match &self.domains[domain].guest {
            Guest::HostThreads(threads) => Some((domain, threads)),
            _ => None,
        }
    }

    /// The release of Linux whose scheduler a KVM host has. `None`: its scheduler is of no Linux.
    pub fn kernel(&self) -> Option<KernelRelease> {
        KernelRelease::of(&self.pools[POOL_0].release)
    }

    /// The domains that are in the scenario's file.
    pub fn stated_domains(&self) -> &[DomainSpec] {
        let all = self.domains.as_slice();
        &all[..all.len() - usize::from(self.host_threads().is_some())]
    }

    /// The way in which netbacks work: that of the kernels of the machine's days, and before Xen 4 that of XenLinux.
    pub fn netbacks(&self) -> Netbacks {
        let release = &self.pools[POOL_0].release;
        if self.host.platform.kvm().is_some() {
            Netbacks::Threads
        } else if ["xen2", "xen3"].iter().any(|old| release.starts_with(old)) {
            Netbacks::Tasklet
        } else if self.host.constants.backend_threads == 0 {
            Netbacks::Tasklets
        } else {
            Netbacks::Threads
        }
    }

    /// The vCPU of a driver domain that a netback or blkback is on by default, the `index`-th of its kind there: threads are
    /// spread in turn.
    pub fn usual_vcpu(&self, driver: DomId, index: usize) -> u32 {
        match self.netbacks() {
            Netbacks::Threads => index as u32 % self.domains[driver].vcpus(),
            Netbacks::Tasklet | Netbacks::Tasklets => 0,
        }
    }

    /// The first NIC that a domain owns.
    pub fn own_nic(&self, domain: DomId) -> Option<NicId> {
        self.nics.ids().find(|&nic| self.owns(domain, &self.nics[nic]))
    }

    /// The first disk that a domain owns.
    pub fn own_disk(&self, domain: DomId) -> Option<DiskId> {
        self.disks.ids().find(|&disk| self.owns(domain, &self.disks[disk].device))
    }

    /// Whether a device is a domain's own. Those of a KVM host are its kernel's, and no thread's.
    fn owns(&self, domain: DomId, device: &DeviceSpec) -> bool {
        device.owner == Some(domain) && !matches!(self.domains[domain].guest, Guest::HostThreads(_))
    }

    /// Whether a domain has a disk, virtual or its own.
    pub fn has_disk(&self, domain: DomId) -> bool {
        let virtual_disk = self.domains[domain].disk.is_some() && self.host.platform != Platform::BareMetal;
        virtual_disk || self.own_disk(domain).is_some()
    }

    /// The sizes of answers that clients ask a service for, ascending, each with its number among 10^6 requests of each
    /// client.
    pub fn reply_sizes(&self, service: Service) -> Vec<(u32, u64)> {
        let mut sizes = BTreeMap::new();
        for client in self.clients.iter().filter(|client| client.service == service) {
            let all: u64 = client.mix.iter().map(|ask| u64::from(ask.weight)).sum();
            for ask in &client.mix {
                *sizes.entry(ask.reply_bytes).or_insert(0) += REQUESTS * u64::from(ask.weight) / all.max(1);
            }
        }
        sizes.into_iter().collect()
    }
}
