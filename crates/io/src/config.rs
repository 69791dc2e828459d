//! What surrounds the vCPUs: plain data, made from a scenario. Nothing on the I/O path costs time but what stands here.

use vcpulab_guest::GuestConfig;
use vcpulab_host::Span;

/// Everything around a host. Lists are referred to by position.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorldConfig {
    /// Where the random streams of this replication start.
    pub seed: u64,
    /// How far every cost on the I/O path varies, percent to both sides, evenly.
    pub cost_spread_percent: i64,
    /// What the domains run, in the order of their creation.
    pub domains: Vec<GuestConfig>,
    /// The driver domains, each with its NIC.
    pub drivers: Vec<DriverConfig>,
    /// The network interfaces of guests; at most one for each domain.
    pub interfaces: Vec<InterfaceConfig>,
    /// The clients outside.
    pub clients: Vec<ClientConfig>,
    /// How connections behave.
    pub tcp: TcpConfig,
}

/// A driver domain. Its vCPU 0 takes the NIC's interrupts and the guests' notifications.
#[derive(Clone, PartialEq, Debug)]
pub struct DriverConfig {
    /// Which domain.
    pub domain: usize,
    /// Time to take one notification (an interrupt or an event), whatever came with it, ns.
    pub upcall_ns: Span,
    /// Time for one packet from the NIC to a guest, ns: NIC driver, bridge, back end, page exchange.
    pub receive_ns: Span,
    /// Time for one packet from a guest to the NIC, ns.
    pub send_ns: Span,
    /// Packets it takes in one direction before it turns to the other, at least 1. (Linux's network drivers: 64.)
    pub round_packets: u32,
    /// Its NIC.
    pub nic: NicConfig,
}

/// A NIC and the link it is on.
#[derive(Clone, PartialEq, Debug)]
pub struct NicConfig {
    /// Line rate, bits per second, in each direction.
    pub bits_per_s: i64,
    /// Least time between two interrupts, ns (interrupt coalescing; transmit completions count too).
    pub interrupt_gap_ns: Span,
    /// Packets that it holds in each direction. When full, it holds up the line (flow control) or its driver.
    pub ring_slots: u32,
    /// Time of a packet between NIC and clients, one way, ns, besides the line's own.
    pub latency_ns: Span,
}

/// A guest's network interface: front end here, back end in its driver domain.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceConfig {
    /// Which domain has it.
    pub domain: usize,
    /// Its driver domain: a position in [`WorldConfig::drivers`].
    pub driver: usize,
    /// Packets that its ring holds in each direction. (Xen's rings are one page: 256 entries.)
    pub ring_slots: u32,
    /// Time to take one notification, whatever came with it, ns.
    pub upcall_ns: Span,
    /// Time for one packet received, ns: front end and network stack.
    pub receive_ns: Span,
    /// Time for one packet sent, ns.
    pub send_ns: Span,
}

/// A client on a machine of its own, which costs the host nothing.
#[derive(Clone, PartialEq, Debug)]
pub enum ClientConfig {
    /// Requests at random times (a Poisson process) that do not depend on the answers: an open loop.
    OpenHttp {
        /// The interface of the domain with the web server: a position in [`WorldConfig::interfaces`].
        interface: usize,
        /// Requests per second, above 0.
        rate_per_s: f64,
        /// Size of the file asked for, headers included, bytes.
        file_bytes: u64,
        /// Most connections at once, at least 1. A request that finds them all taken fails.
        connections_max: u32,
    },
}

/// How connections behave, in segments and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpConfig {
    /// Most data in one segment, bytes.
    pub segment_bytes: u32,
    /// What a packet has besides its data on the line, bytes.
    pub header_bytes: u32,
    /// Segments that the server sends before the first acknowledgement, at least 2.
    pub initial_window: u32,
    /// Most segments under way on one connection.
    pub window_max: u32,
}

impl Default for TcpConfig {
    /// Ethernet's segments: 1460 B of data, 78 B of headers, checksum, preamble and gap; an initial window of 4 segments
    /// (RFC 3390 allows 4380 B, Linux kernels of the 2000s sent 3 to 4); a 64 KB receive window.
    fn default() -> Self {
        TcpConfig { segment_bytes: 1460, header_bytes: 78, initial_window: 4, window_max: 44 }
    }
}
