//! The configuration of a machine. All costs come from here; the mechanism holds no numbers of its own.

use vcpulab_guest::{AppId, KernelConfig, ServiceId};
use vcpulab_host::{Span, Table, VcpuId};

use crate::ids::{ClientId, ClientMachineId, DiskId, GuestId, NicId};
use crate::machine::halt_poll::HaltPollConfig;
use crate::network::client::ClientConfig;
use crate::network::client_machine::ClientMachineConfig;
use crate::network::netback::Netbacks;
use crate::network::netfront::NetfrontConfig;
use crate::network::nic::NicConfig;
use crate::path::cost::{DriverCosts, NetworkCosts};
use crate::storage::file_set::FileSetConfig;
use crate::storage::{DiskUnitConfig, VirtualDiskConfig};

/// Configuration of the surroundings of a host's vCPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// The seed of all random streams.
    pub seed: u64,
    /// The domains, in order of creation.
    pub guests: Table<GuestId, GuestConfig>,
    /// The NICs.
    pub nics: Table<NicId, NicConfig>,
    /// The disks.
    pub disks: Table<DiskId, DiskUnitConfig>,
    /// The services: each an application of a guest.
    pub services: Table<ServiceId, (GuestId, AppId)>,
    /// Number of event channels between tasks.
    pub channels: usize,
    /// The way in which netbacks work.
    pub netbacks: Netbacks,
    /// Segments of a TCP connection that may be under way before the first acknowledgement.
    pub initial_segments: u32,
    /// Spread of each cost in the domains, percent to both sides.
    pub spread_percent: i64,
    /// The clients outside.
    pub clients: Table<ClientId, ClientConfig>,
    /// The machines that they run on.
    pub client_machines: Table<ClientMachineId, ClientMachineConfig>,
    /// A profiler that takes samples; `None`: none does.
    pub profiler: Option<ProfilerConfig>,
}

/// Configuration of a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestConfig {
    /// First vCPU of the domain; its other vCPUs follow.
    pub first_vcpu: VcpuId,
    /// Kernel and applications of the domain.
    pub kernel: KernelConfig,
    /// Working set of each vCPU, bytes.
    pub working_set_bytes: u64,
    /// Virtual network interface of the domain, if it has one.
    pub netfront: Option<NetfrontConfig>,
    /// Costs of the network in it.
    pub network: NetworkCosts,
    /// Virtual disk of the domain, if it has one.
    pub virtual_disk: Option<VirtualDiskConfig>,
    /// Files on that disk that one of its applications serves, out of memory as far as they are there.
    pub files: Option<FileSetConfig>,
    /// Polling of its vCPUs' threads before they block; `None`: they do not.
    pub halt_poll: Option<HaltPollConfig>,
    /// Costs of packets in its back ends, if it is a driver domain (or owns its devices itself).
    pub driver: Option<DriverCosts>,
}

/// A profiler that takes samples of the work of pCPUs, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerConfig {
    /// Number of pCPUs.
    pub pcpus: u32,
    /// Busy time of a pCPU between two samples, ns, at least 1.
    pub period_ns: Span,
    /// The hypervisor's time for a sample, ns.
    pub sample_ns: Span,
}
