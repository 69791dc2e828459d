//! What a machine is made of. All costs come from here; the mechanism holds no numbers of its own.

use vcpulab_guest::KernelConfig;
use vcpulab_host::{Span, VcpuId};

use crate::block::BlockConfig;
use crate::blockback::BlockBackCosts;
use crate::disk::DiskConfig;
use crate::file_set::FileSetConfig;

/// Everything around the vCPUs of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// Where all random streams start.
    pub seed: u64,
    /// The domains, in order of creation.
    pub guests: Vec<GuestConfig>,
    /// The network cards.
    pub nics: Vec<NicConfig>,
    /// The disks.
    pub disks: Vec<DiskUnitConfig>,
    /// The services, by number: the guest and its application.
    pub services: Vec<(usize, usize)>,
    /// How many event channels there are between tasks.
    pub channels: usize,
    /// Does only one vCPU of a driver domain at a time handle packets? (So it was while back ends were tasklets.)
    pub packets_in_turn: bool,
    /// Segments of a TCP connection that may be under way before the first acknowledgement.
    pub initial_segments: u32,
    /// How far each cost in the domains varies, percent to both sides.
    pub spread_percent: i64,
    /// The clients outside.
    pub clients: Vec<ClientConfig>,
    /// The machines that they run on.
    pub client_machines: Vec<ClientMachineConfig>,
    /// A profiler that takes samples; `None`: none does.
    pub profiler: Option<ProfilerConfig>,
}

/// One domain.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestConfig {
    /// Its first vCPU; the others follow.
    pub first_vcpu: VcpuId,
    /// What runs in it.
    pub kernel: KernelConfig,
    /// Working set of each vCPU, bytes.
    pub working_set_bytes: u64,
    /// Its network interface, if it has one.
    pub interface: Option<InterfaceConfig>,
    /// What the network costs in it.
    pub network: NetworkCosts,
    /// Its virtual disk, if it has one.
    pub block: Option<VirtualDiskConfig>,
    /// Files on it that one of its applications serves out of memory as far as they are there.
    pub files: Option<FileSetConfig>,
    /// What the back ends cost, if it is a driver domain (or owns its devices itself).
    pub driver: Option<DriverCosts>,
}
