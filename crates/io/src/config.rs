//! What a machine is made of. All costs come from here; the mechanism holds no numbers of its own.

use vcpulab_guest::AppConfig;
use vcpulab_host::{Span, VcpuId};

/// Everything around the vCPUs of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineConfig {
    /// Where all random streams start.
    pub seed: u64,
    /// The domains, in order of creation.
    pub guests: Vec<GuestConfig>,
    /// The NIC of each driver domain.
    pub nic: NicConfig,
    /// How far each cost in the domains varies, percent to both sides.
    pub spread_percent: i64,
    /// The clients outside.
    pub clients: Vec<ClientConfig>,
}

/// One domain.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestConfig {
    /// Its first vCPU; the others follow.
    pub first_vcpu: VcpuId,
    /// How many vCPUs it has.
    pub vcpus: u32,
    /// Working set of each, bytes.
    pub working_set_bytes: u64,
    /// Its applications.
    pub apps: Vec<AppConfig>,
    /// Its network interface, if it has one: the driver domain behind it, as an index into the guests.
    pub nic: Option<usize>,
    /// What the network costs in it.
    pub network: NetworkCosts,
    /// What the back ends cost, if it is a driver domain.
    pub driver: Option<DriverCosts>,
}

/// What the network costs inside a guest, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCosts {
    /// Taking one event, whatever came with it.
    pub upcall_ns: Span,
    /// One packet received: front end and network stack.
    pub receive_ns: Span,
    /// One packet sent.
    pub send_ns: Span,
}

/// What the back ends cost in a driver domain, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCosts {
    /// Taking the notifications that are pending, from the NIC and from guests.
    pub upcall_ns: Span,
    /// One packet from the NIC to a guest's ring.
    pub receive_ns: Span,
    /// One packet from a guest's ring to the NIC.
    pub send_ns: Span,
}

/// A network card, its line and its rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Line rate in each direction.
    pub bits_per_s: i64,
    /// Least time between two interrupts, ns.
    pub interrupt_gap_ns: Span,
    /// Time of a packet between client and NIC, one way, besides the line's own, ns.
    pub latency_ns: Span,
    /// Packets that the NIC's queue, and each ring between driver domain and guest, hold in each direction.
    pub ring_slots: usize,
}

/// A client outside: an open loop of HTTP requests with a limit on connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConfig {
    /// The domain with the web server, as an index into the guests.
    pub server: usize,
    /// Requests per second; a Poisson process.
    pub rate_per_s: f64,
    /// Size of the file asked for, bytes.
    pub file_bytes: u64,
    /// Most requests outstanding; what comes on top fails at once.
    pub connections_max: u32,
}
