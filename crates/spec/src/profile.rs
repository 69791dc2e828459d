//! Hardware profiles: the costs of a machine, each constant with its source.

use std::collections::BTreeMap;

use serde::Serialize;
use vcpulab_host::{Span, TopologyConfig};

use crate::limits::PCPUS_MAX;

/// A constant's description, whatever its value.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ConstantDoc {
    /// Name of the constant in a scenario's `host.costs`, with the unit at the end.
    pub name: &'static str,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// The value where a profile gives none, at which it does nothing; profiles that know the machine's replace it.
    pub default: Option<i64>,
    /// A sentence on it.
    pub doc: &'static str,
}

impl ConstantDoc {
    /// Whether only KVM hosts use the constant.
    pub fn of_kvm(&self) -> bool {
        self.name.starts_with("kvm_")
    }
}

macro_rules! constants {
    (@default) => { None::<i64> };
    (@default $default:literal) => { Some($default) };
    ($($(#[doc = $doc:literal])+ $name:ident $(or $default:literal)?: $min:literal..=$max:expr,)*) => {
        /// The constants of a machine.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Constants {
            $($(#[doc = $doc])+ pub $name: i64,)*
        }

        /// All constants, in order.
        pub const CONSTANTS: &[ConstantDoc] = &[$(
            ConstantDoc {
                name: stringify!($name),
                min: $min,
                max: $max,
                default: constants!(@default $($default)?),
                doc: concat!($($doc),+).trim_ascii(),
            },
        )*];

        impl Default for Constants {
            fn default() -> Self {
                Constants { $($name: constants!(@default $($default)?).unwrap_or_default(),)* }
            }
        }

        impl Constants {
            /// The constant of that name.
            pub fn get(&self, name: &str) -> Option<i64> {
                match name {
                    $(stringify!($name) => Some(self.$name),)*
                    _ => None,
                }
            }

            /// The time of this number of cycles.
            pub fn cycles(&self, cycles: i64) -> Span {
                Span::from_ns((i128::from(cycles) * 1000 / i128::from(self.cpu_mhz.max(1))) as i64)
            }

            /// Sets the constant of that name, if there is one.
            pub fn set(&mut self, name: &str, value: i64) {
                match name {
                    $(stringify!($name) => self.$name = value,)*
                    _ => {}
                }
            }
        }
    };
}

/// Greatest single cost: a second, ns.
const COST_NS_MAX: i64 = 1_000_000_000;

constants! {
    /// Clock rate, which CPU times given in cycles are computed with.
    cpu_mhz: 1..=100_000,
    /// The hypervisor's time for one scheduling decision.
    decision_ns: 0..=COST_NS_MAX,
    /// The hypervisor's time for one context switch, with warm caches.
    context_switch_ns: 0..=COST_NS_MAX,
    /// Time until a vCPU that was preempted is where it was, beside what a cache model says: twins have it from their recordings.
    resume_ns or 0: 0..=COST_NS_MAX,
    /// CPU time of a vCPU each time that it blocks, in which Credit decides who is next; charged as it wakes.
    block_ns or 0: 0..=COST_NS_MAX,
    /// CPU time of a vCPU for each other vCPU that it wakes, under Credit; and the time from a wake-up, or any other
    /// request for a decision, until the pCPU decides: its vCPU runs on meanwhile. (Not where cores are scheduled.)
    wake_ns or 0: 0..=COST_NS_MAX,
    /// Time that Credit2 takes for `block_ns` and `wake_ns`, in % of the time that Credit takes.
    credit2_percent or 100: 1..=10_000,
    /// Delay with which the hypervisor handles expired timers (of slices and of a scheduler's ticks): a timer that the
    /// handler sets again slips.
    timer_ns or 0: 0..=COST_NS_MAX,
    /// The hypervisor's time for one physical interrupt.
    interrupt_ns: 0..=COST_NS_MAX,
    /// The hypervisor's time to take one sample of a profiler: the counter's interrupt, and writing down what was found.
    sample_ns: 0..=COST_NS_MAX,
    /// Size of the private cache of each pCPU; 0: caches cost nothing.
    l2_bytes: 0..=1 << 40,
    /// Size of each cache that several pCPUs share, at least `l2_bytes`; 0: there is none.
    l3_bytes: 0..=1 << 40,
    /// Number of pCPUs of a socket that share one; 0: all.
    l3_pcpus: 0..=PCPUS_MAX as i64,
    /// Size of a cache line, which one miss brings in.
    cache_line_bytes: 1..=1 << 20,
    /// Additional time, against a hit, of a miss in the private cache that the shared one serves, in picoseconds.
    l2_miss_ps: 0..=COST_NS_MAX * 1000,
    /// Additional time, against a hit, of a miss that goes to memory, at least `l2_miss_ps`, in picoseconds.
    l3_miss_ps: 0..=COST_NS_MAX * 1000,
    /// Number of cache misses under way at once while a working set comes back (prefetching, out-of-order execution): each
    /// costs that part of the time.
    misses_at_once: 1..=64,
    /// Working set of a guest's vCPU where the scenario gives none.
    guest_working_set_bytes: 0..=1 << 40,
    /// Working set of a driver domain's vCPU where the scenario gives none.
    driver_working_set_bytes: 0..=1 << 40,
    /// A driver domain's time to take one notification, whatever came with it.
    driver_upcall_ns: 0..=COST_NS_MAX,
    /// The NIC driver's time for one packet received.
    nic_receive_ns: 0..=COST_NS_MAX,
    /// The NIC driver's time for one packet sent.
    nic_send_ns: 0..=COST_NS_MAX,
    /// An operating system's time to take one interrupt of the NIC on bare metal, whatever came with it.
    native_interrupt_ns: 0..=COST_NS_MAX,
    /// A driver domain's time to find where one packet goes.
    bridge_ns: 0..=COST_NS_MAX,
    /// A driver domain's time to find where one packet goes, if it routes packets instead of bridging them.
    route_ns: 0..=COST_NS_MAX,
    /// Netback's time for one packet to a guest, without the exchange of its page.
    backend_receive_ns: 0..=COST_NS_MAX,
    /// Netback's time for one packet from a guest, without the grant of its page.
    backend_send_ns: 0..=COST_NS_MAX,
    /// The hypervisor's time to exchange a page, or to copy a packet, between two domains.
    page_exchange_ns: 0..=COST_NS_MAX,
    /// The hypervisor's time to map a granted page and to unmap it.
    grant_ns: 0..=COST_NS_MAX,
    /// Time until a vCPU of a driver domain has the cache lines of a NIC or a ring that another vCPU worked at last.
    bounce_ns: 0..=COST_NS_MAX,
    /// A guest's time to take one notification, whatever came with it.
    guest_upcall_ns: 0..=COST_NS_MAX,
    /// Netfront's time for one packet received.
    frontend_receive_ns: 0..=COST_NS_MAX,
    /// Netfront's time for one packet sent.
    frontend_send_ns: 0..=COST_NS_MAX,
    /// A network stack's time for one packet received.
    stack_receive_ns: 0..=COST_NS_MAX,
    /// A network stack's time for one packet sent.
    stack_send_ns: 0..=COST_NS_MAX,
    /// A network stack's time for each byte received or sent, in picoseconds: copies, and checksums that no NIC computes.
    network_byte_ps: 0..=COST_NS_MAX,
    /// Time slice of a task in a guest while others wait for the same vCPU.
    task_slice_ns: 1_000..=COST_NS_MAX,
    /// Additional time of a page fault in a domain, against one without a hypervisor: the trap, and the update of the page table.
    page_fault_ns: 0..=COST_NS_MAX,
    /// Time to compute the checksum of one byte where the NIC does not, in picoseconds.
    checksum_byte_ps: 0..=COST_NS_MAX,
    /// CPU time to emulate a device for one packet or request of a guest without drivers of its own.
    emulation_ns: 0..=COST_NS_MAX,
    /// A guest's time for one request to its disk: block layer and blkfront, or driver.
    block_request_ns: 0..=COST_NS_MAX,
    /// A guest's time for one response of its disk.
    block_response_ns: 0..=COST_NS_MAX,
    /// Blkback's time for one request of a guest to a disk, without the grants of its pages.
    blockback_request_ns: 0..=COST_NS_MAX,
    /// Blkback's time for one response of a disk to a guest.
    blockback_response_ns: 0..=COST_NS_MAX,
    /// Time to copy one byte between an application and the page cache, in picoseconds.
    copy_byte_ps: 0..=COST_NS_MAX,
    /// Memory for pages of files in each domain, where the scenario gives none.
    page_cache_bytes: 0..=1 << 50,
    /// Time that a guest takes to shut down once it is asked to: it ends its services, and writes back what is dirty.
    shutdown_ns: 0..=3600 * COST_NS_MAX,
    /// Time that the toolstack takes to act on a guest that has shut down or crashed.
    toolstack_ns: 0..=60 * COST_NS_MAX,
    /// Time to free a page of 4 KiB of a domain that is destroyed, and to clear it.
    free_page_ns: 0..=COST_NS_MAX,
    /// Size of a disk.
    disk_capacity_bytes: 1_000_000..=1 << 50,
    /// Requests that a disk and its queue hold at once.
    disk_queue_depth: 1..=65_536,
    /// Rate of a disk with turning platters while the head stays on its way.
    disk_bytes_per_s: 1_000..=1 << 40,
    /// Time of the disk's seek to the next track.
    disk_track_seek_ns: 0..=COST_NS_MAX,
    /// Mean time of the disk's seek between random places.
    disk_average_seek_ns: 0..=COST_NS_MAX,
    /// Revolutions of the disk's platters a minute.
    disk_rotations_per_min: 1..=1_000_000,
    /// 1: the disk has a write cache, and a write that starts where the last one ended does not wait for the platter; 0: it waits.
    disk_write_cache: 0..=1,
    /// Time of one request to flash memory besides the transfer.
    ssd_latency_ns: 0..=COST_NS_MAX,
    /// Rate of all transfers of flash memory together.
    ssd_bytes_per_s: 1_000..=1 << 40,
    /// Requests that flash memory serves at once.
    ssd_channels: 1..=65_536,
    /// CPU time of a web server for one request, without the network.
    http_request_ns: 0..=COST_NS_MAX,
    /// Spread of each cost inside the domains, evenly to both sides.
    cost_spread_percent: 0..=100,
    /// 1: netbacks and blkbacks are threads, spread over the vCPUs of their driver domain in turn; 0: netbacks are
    /// tasklets, and they and blkbacks are on its first vCPU. (Before Xen 4 they always are.) `driver_vcpu` overrides
    /// it.
    backend_threads: 0..=1,
    /// Packets that a ring between a driver domain and a guest holds in each direction.
    ring_slots: 1..=65_536,
    /// Rate of the NIC's link.
    nic_bits_per_s: 1_000..=10_000_000_000_000,
    /// Least time between two interrupts of the NIC (interrupt coalescing).
    nic_interrupt_gap_ns: 0..=COST_NS_MAX,
    /// Segments that a TCP connection may have under way before the first acknowledgement.
    tcp_initial_segments: 1..=64,
    /// Time of a packet between the NIC and a client, one way, besides its transmission.
    link_latency_ns: 0..=COST_NS_MAX,
    /// Time of one exit from a guest to KVM and back: a guest's notification (ioeventfd), or an interrupt for it (irqfd).
    kvm_exit_ns or 0: 0..=COST_NS_MAX,
    /// Time of a thread of a KVM host that serves a VM to take one notification, and to notify the guest at the end.
    kvm_thread_wake_ns or 0: 0..=COST_NS_MAX,
    /// A vhost thread's time for one packet to a guest, without the copy of its bytes.
    kvm_vhost_receive_ns or 0: 0..=COST_NS_MAX,
    /// A vhost thread's time for one packet from a guest, without the copy of its bytes, the bridge, and the NIC's driver.
    kvm_vhost_send_ns or 0: 0..=COST_NS_MAX,
    /// A KVM host's time to leave one packet, in the interrupt, to the queue of a VM's tap.
    kvm_tap_ns or 0: 0..=COST_NS_MAX,
    /// Time of an emulator or I/O thread for one request of a guest to a disk, its submission included.
    kvm_disk_request_ns or 0: 0..=COST_NS_MAX,
    /// A KVM host's time to complete one request in the disk's interrupt.
    kvm_disk_complete_ns or 0: 0..=COST_NS_MAX,
    /// Time of an emulator or I/O thread for one response of a disk to a guest.
    kvm_disk_response_ns or 0: 0..=COST_NS_MAX,
    /// Time until an interprocessor interrupt is taken, with which one pCPU asks another to decide.
    ipi_ns or 0: 0..=COST_NS_MAX,
    /// Time in which the lock of a run queue comes from the pCPU that had it last; 0: locks cost nothing.
    lock_ns or 0: 0..=COST_NS_MAX,
    /// Speed of a thread with work bound by the core beside one with work bound by the core on the same core, in % of its speed alone there.
    smt_compute_beside_compute_percent or 100: 1..=100,
    /// Speed of a thread with work bound by the core beside one with work bound by memory on the same core, in % of its speed alone there.
    smt_compute_beside_memory_percent or 100: 1..=100,
    /// Speed of a thread with work bound by the core beside one with work of I/O on the same core, in % of its speed alone there.
    smt_compute_beside_io_percent or 100: 1..=100,
    /// Speed of a thread with work bound by memory beside one with work bound by the core on the same core, in % of its speed alone there.
    smt_memory_beside_compute_percent or 100: 1..=100,
    /// Speed of a thread with work bound by memory beside one with work bound by memory on the same core, in % of its speed alone there.
    smt_memory_beside_memory_percent or 100: 1..=100,
    /// Speed of a thread with work bound by memory beside one with work of I/O on the same core, in % of its speed alone there.
    smt_memory_beside_io_percent or 100: 1..=100,
    /// Speed of a thread with work of I/O beside one with work bound by the core on the same core, in % of its speed alone there.
    smt_io_beside_compute_percent or 100: 1..=100,
    /// Speed of a thread with work of I/O beside one with work bound by memory on the same core, in % of its speed alone there.
    smt_io_beside_memory_percent or 100: 1..=100,
    /// Speed of a thread with work of I/O beside one with work of I/O on the same core, in % of its speed alone there.
    smt_io_beside_io_percent or 100: 1..=100,
    /// Part of its time for which work bound by the core waits for memory.
    memory_share_compute_percent or 0: 0..=100,
    /// Part of its time for which work bound by memory waits for memory.
    memory_share_memory_percent or 0: 0..=100,
    /// Part of its time for which work of I/O waits for memory.
    memory_share_io_percent or 0: 0..=100,
    /// Memory bandwidth that a thread with work bound by the core uses at full speed.
    bandwidth_compute_mb_per_s or 0: 0..=1_000_000,
    /// Memory bandwidth that a thread with work bound by memory uses at full speed.
    bandwidth_memory_mb_per_s or 0: 0..=1_000_000,
    /// Memory bandwidth that a thread with work of I/O uses at full speed.
    bandwidth_io_mb_per_s or 0: 0..=1_000_000,
    /// Memory bandwidth of a node; 0: unlimited.
    node_mb_per_s or 0: 0..=100_000_000,
    /// Bandwidth of a node's memory for the other nodes, over the links between them; 0: unlimited.
    link_mb_per_s or 0: 0..=100_000_000,
    /// Distance of memory on another node, as firmware gives it (SLIT): 10 is as near as a node's own, 20 takes twice as long.
    numa_distance or 10: 10..=254,
    /// Highest clock rate while one core of a socket is active; 0: `cpu_mhz`.
    turbo_one_core_mhz or 0: 0..=100_000,
    /// Highest clock rate while all cores of a socket are active; 0: `cpu_mhz`.
    turbo_all_cores_mhz or 0: 0..=100_000,
    /// Lowest clock rate; 0: clocks are not slowed down.
    min_mhz or 0: 0..=100_000,
    /// Time between two choices of the governor `ondemand`.
    governor_sample_ns or 10_000_000: 100_000..=COST_NS_MAX,
    /// Highest utilization of a core, above which the governor `ondemand` gives it the highest clock rate.
    governor_up_percent or 80: 20..=100,
}

/// The kind of evidence for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Measured on such a machine, or stated by its maker.
    Measured,
    /// Derived from published values.
    Derived,
    /// Plausible, without a source.
    Assumed,
}

impl SourceKind {
    /// Each with its word.
    pub const ALL: [(&str, SourceKind); 3] = [
        ("measured", SourceKind::Measured),
        ("derived", SourceKind::Derived),
        ("assumed", SourceKind::Assumed),
    ];

    /// Word for this kind of evidence.
    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// A value of a machine, and its source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sourced {
    /// The value.
    pub value: i64,
    /// The kind of evidence for it.
    pub kind: SourceKind,
    /// The measurement, the data sheet, the derivation, or the reason for the assumption.
    pub source: String,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Profile {
    /// Name of the profile in scenarios; a profile in a file of its own has the file's name.
    pub name: String,
    /// A sentence on the machine.
    pub doc: String,
    /// The number of its pCPUs.
    pub pcpus: Sourced,
    /// Threads, cores, sockets and nodes of the pCPUs, if the profile has them.
    #[serde(skip)]
    pub topology: Option<TopologyConfig>,
    /// All constants by name.
    pub constants: BTreeMap<String, Sourced>,
}

/// The word in place of a profile's name where the scenario gives all constants itself.
pub const CUSTOM: &str = "custom";

impl Profile {
    /// Constants of the profile, without their sources.
    pub fn values(&self) -> Constants {
        let mut constants = Constants::default();
        for (name, sourced) in &self.constants {
            constants.set(name, sourced.value);
        }
        constants
    }
}
