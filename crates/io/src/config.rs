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

/// A profiler that takes samples of what the pCPUs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfilerConfig {
    /// How many pCPUs there are.
    pub pcpus: u32,
    /// Busy time of a pCPU between two samples, ns, at least 1.
    pub period_ns: Span,
    /// The hypervisor's time to take one, ns.
    pub sample_ns: Span,
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

/// A domain's network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// What carries its packets.
    pub link: Link,
    /// The card that they leave by.
    pub nic: usize,
    /// Which of the domain's vCPUs takes its events.
    pub vcpu: u32,
    /// Packets that the ring holds in each direction.
    pub ring_slots: usize,
    /// Most segments that it sends as one packet, which the card cuts (TCP segmentation offload); 1: none.
    pub segments_max: u32,
    /// What an emulated card takes more for each packet, ns of CPU time in the domain that emulates it.
    pub emulation_ns: Span,
}

/// A domain's virtual disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDiskConfig {
    /// Its block layer: through a ring, unless the domain owns the disk.
    pub block: BlockConfig,
    /// The disk that it is on, or what stands for one in the stub domain that it goes through.
    pub disk: usize,
    /// Which of the domain's vCPUs takes its events.
    pub vcpu: u32,
    /// What an emulated disk takes more for each request, ns of CPU time in the domain that emulates it.
    pub emulation_ns: Span,
}

/// A disk and its back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUnitConfig {
    /// The disk; `None`: the owner is a stub domain, and what it is asked for goes on through its own virtual disk.
    pub disk: Option<DiskConfig>,
    /// The guest whose back ends serve it, and which of its vCPUs takes its interrupts; `None`: the hypervisor.
    pub owner: Option<(usize, u32)>,
    /// What the back ends cost.
    pub costs: BlockBackCosts,
}

/// What carries a domain's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Link {
    /// A driver domain: which guest, and which of its vCPUs takes this interface's events.
    Driver { guest: usize, vcpu: u32 },
    /// A driver in the hypervisor.
    Hypervisor,
    /// The domain owns the card.
    Owner,
}

/// What the network costs inside a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCosts {
    /// Taking one event, whatever came with it, ns.
    pub upcall_ns: Span,
    /// One packet received: front end and network stack, ns.
    pub receive_ns: Span,
    /// One packet sent, ns.
    pub send_ns: Span,
    /// Each byte received or sent: copies, and checksums that no card computes, ps.
    pub byte_ps: i64,
    /// One packet between two tasks of the guest, ns.
    pub loopback_ns: Span,
    /// The hypervisor's part of `upcall_ns`.
    pub hypervisor_upcall_ns: Span,
    /// The hypervisor's part of `send_ns`.
    pub hypervisor_send_ns: Span,
}

/// What the back ends cost in a driver domain, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCosts {
    /// Taking the notifications that are pending, from cards and from guests.
    pub upcall_ns: Span,
    /// One packet taken from a card or put on one: its driver.
    pub nic_receive_ns: Span,
    /// The same in the other direction.
    pub nic_send_ns: Span,
    /// Finding where a packet goes: bridge, or route.
    pub bridge_ns: Span,
    /// One packet into a guest's ring, the exchange of its page included.
    pub backend_receive_ns: Span,
    /// One packet from a guest's ring, the grant of its page included.
    pub backend_send_ns: Span,
    /// One packet whose card or ring another vCPU of the driver domain worked at before: its lines have to come over.
    pub bounce_ns: Span,
    /// The hypervisor's part of `upcall_ns`.
    pub hypervisor_upcall_ns: Span,
    /// The hypervisor's part of `backend_receive_ns`.
    pub hypervisor_receive_ns: Span,
    /// The hypervisor's part of `backend_send_ns`.
    pub hypervisor_send_ns: Span,
}

/// Who owns a network card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Owner {
    /// A domain, and which of its vCPUs takes the card's interrupts.
    Guest { guest: usize, vcpu: u32 },
    /// The hypervisor; what a packet costs it, ns.
    Hypervisor { receive_ns: Span },
}

/// A network card, its line and its rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Whose it is.
    pub owner: Owner,
    /// Line rate in each direction.
    pub bits_per_s: i64,
    /// Least time between two interrupts, ns.
    pub interrupt_gap_ns: Span,
    /// Time of a packet between client and card, one way, besides the line's own, ns.
    pub latency_ns: Span,
    /// Packets that the card's queues hold in each direction.
    pub ring_slots: usize,
}

/// A machine outside that clients run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientMachineConfig {
    /// Rate of its own link in each direction; `None`: packets take no time there.
    pub bits_per_s: Option<i64>,
    /// Its processors, at least 1.
    pub processors: u32,
    /// What a request takes of a processor before it is sent, ns.
    pub request_ns: Span,
    /// What each packet takes, sent or received, ns.
    pub packet_ns: Span,
    /// Most connections of all its clients at once: what comes on top fails at once.
    pub connections_max: u32,
}

impl Default for ClientMachineConfig {
    /// One that limits nothing.
    fn default() -> Self {
        ClientMachineConfig {
            bits_per_s: None,
            processors: 1,
            request_ns: 0,
            packet_ns: 0,
            connections_max: u32::MAX,
        }
    }
}

/// A client outside.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// The machine that it runs on; `None`: one that limits nothing.
    pub machine: Option<usize>,
    /// The service that it asks, by number.
    pub service: usize,
    /// When it asks.
    pub load: Load,
    /// What it asks for, each with how often in proportion.
    pub mix: Vec<Ask>,
    /// Most requests outstanding; what comes on top fails at once.
    pub connections_max: u32,
    /// Does a user keep its connection from one request to the next?
    pub keep_alive: bool,
    /// After how long without an answer it gives up, from when the request was sent, ns.
    pub timeout_ns: Option<Span>,
    /// How often it tries again then, or when it was refused, before it counts as failed.
    pub retries: u32,
}

/// When a client asks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Load {
    /// At a rate that does not depend on the answers: so many per second, at random (a Poisson process) or regularly.
    Open { rate_per_s: f64, regular: bool },
    /// So many users; each asks, waits for the answer, thinks (for a random time, exponentially distributed with this mean,
    /// ns) and asks again. They begin one after the other within the ramp-up time, ns.
    Closed { users: u32, think_ns: Span, ramp_up_ns: Span },
    /// So many streams of packets of this size, bytes, each at least so long after the one before, ns.
    Stream { streams: u32, packet_bytes: u32, gap_ns: Span },
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Class of the request.
    pub class: u32,
    /// Its size, bytes.
    pub request_bytes: u32,
    /// Size of the answer, bytes.
    pub reply_bytes: u32,
    /// How often, in proportion.
    pub weight: u32,
}
