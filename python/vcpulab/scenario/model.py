"""A complete scenario with every field as an attribute of its type: `Scenario.model`.

Generated from the schema of scenario files: `make docs`.
"""

# mypy: disable-error-code="no-any-return"
# fmt: off

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from vcpulab.scenario.table import Constants, Table, all_of, single_or_each
from vcpulab.scenario.units import Duration, Size


class Run(Table):
    """The length of a run, and the number of its replications."""

    @property
    def duration(self) -> Duration:
        """Measured time, after the warm-up. Default: `10s`."""
        return Duration(self._table.get("duration", "10s"))

    @property
    def warmup(self) -> Duration:
        """Time before that, which is not measured. Default: `1s`."""
        return Duration(self._table.get("warmup", "1s"))

    @property
    def start_spread(self) -> Duration:
        """Longest random delay before applications begin: the same for all of them, drawn for each replication.

        A workload then begins at a random point in the scheduler's periods. Default: none.
        """
        return Duration(self._table.get("start_spread", "0ns"))

    @property
    def replications(self) -> int:
        """Number of independent runs, each with its own random numbers. Default: 1."""
        return self._table.get("replications", 1)

    @property
    def sample(self) -> Duration:
        """Time between two samples of the counters of domains, vCPUs, applications and clients; XenMon and xentop
        read them.

        `0s`: none. Default: `1s`, in runs of more than an hour as many whole seconds as make at most 3,600
        samples; none where that makes too many rows.
        """
        return Duration(self._table["sample"])

    @cached_property
    def profiler(self) -> Profiler | None:
        """A profiler that samples the pCPUs, as Xenoprof does. Default: none."""
        return self._optional("profiler", Profiler)


class Profiler(Table):
    """A profiler that samples the pCPUs."""

    @property
    def cycles(self) -> int:
        """Busy cycles of a pCPU between two samples. Each costs the profile's `sample_ns`."""
        return self._table["cycles"]


class Costs(Constants):
    """Constants of a hardware profile."""

    @property
    def cpu_mhz(self) -> int:
        """Clock rate, which CPU times given in cycles are computed with."""
        return self._table["cpu_mhz"]

    @property
    def decision_ns(self) -> int:
        """The hypervisor's time for one scheduling decision."""
        return self._table["decision_ns"]

    @property
    def context_switch_ns(self) -> int:
        """The hypervisor's time for one context switch, with warm caches."""
        return self._table["context_switch_ns"]

    @property
    def resume_ns(self) -> int:
        """Time until a vCPU that was preempted is where it was, beside what a cache model says: twins have it from
        their recordings.
        """
        return self._table.get("resume_ns", 0)

    @property
    def block_ns(self) -> int:
        """CPU time of a vCPU each time that it blocks, in which Credit decides who is next; charged as it wakes."""
        return self._table.get("block_ns", 0)

    @property
    def wake_ns(self) -> int:
        """CPU time of a vCPU for each other vCPU that it wakes, under Credit; and the time from a wake-up, or any
        other request for a decision, until the pCPU decides: its vCPU runs on meanwhile.

        (Not where cores are scheduled.)
        """
        return self._table.get("wake_ns", 0)

    @property
    def credit2_percent(self) -> int:
        """Time that Credit2 takes for `block_ns` and `wake_ns`, in % of the time that Credit takes."""
        return self._table.get("credit2_percent", 100)

    @property
    def timer_ns(self) -> int:
        """Delay with which the hypervisor handles expired timers (of slices and of a scheduler's ticks): a timer
        that the handler sets again slips.
        """
        return self._table.get("timer_ns", 0)

    @property
    def interrupt_ns(self) -> int:
        """The hypervisor's time for one physical interrupt."""
        return self._table["interrupt_ns"]

    @property
    def sample_ns(self) -> int:
        """The hypervisor's time to take one sample of a profiler: the counter's interrupt, and writing down what
        was found.
        """
        return self._table["sample_ns"]

    @property
    def l2_bytes(self) -> int:
        """Size of the private cache of each pCPU; 0: caches cost nothing."""
        return self._table["l2_bytes"]

    @property
    def l3_bytes(self) -> int:
        """Size of each cache that several pCPUs share, at least `l2_bytes`; 0: there is none."""
        return self._table["l3_bytes"]

    @property
    def l3_pcpus(self) -> int:
        """Number of pCPUs of a socket that share one; 0: all."""
        return self._table["l3_pcpus"]

    @property
    def cache_line_bytes(self) -> int:
        """Size of a cache line, which one miss brings in."""
        return self._table["cache_line_bytes"]

    @property
    def l2_miss_ps(self) -> int:
        """Additional time, against a hit, of a miss in the private cache that the shared one serves, in picoseconds."""
        return self._table["l2_miss_ps"]

    @property
    def l3_miss_ps(self) -> int:
        """Additional time, against a hit, of a miss that goes to memory, at least `l2_miss_ps`, in picoseconds."""
        return self._table["l3_miss_ps"]

    @property
    def misses_at_once(self) -> int:
        """Number of cache misses under way at once while a working set comes back (prefetching, out-of-order
        execution): each costs that part of the time.
        """
        return self._table["misses_at_once"]

    @property
    def guest_working_set_bytes(self) -> int:
        """Working set of a guest's vCPU where the scenario gives none."""
        return self._table["guest_working_set_bytes"]

    @property
    def driver_working_set_bytes(self) -> int:
        """Working set of a driver domain's vCPU where the scenario gives none."""
        return self._table["driver_working_set_bytes"]

    @property
    def driver_upcall_ns(self) -> int:
        """A driver domain's time to take one notification, whatever came with it."""
        return self._table["driver_upcall_ns"]

    @property
    def nic_receive_ns(self) -> int:
        """The NIC driver's time for one packet received."""
        return self._table["nic_receive_ns"]

    @property
    def nic_send_ns(self) -> int:
        """The NIC driver's time for one packet sent."""
        return self._table["nic_send_ns"]

    @property
    def native_interrupt_ns(self) -> int:
        """An operating system's time to take one interrupt of the NIC on bare metal, whatever came with it."""
        return self._table["native_interrupt_ns"]

    @property
    def bridge_ns(self) -> int:
        """A driver domain's time to find where one packet goes."""
        return self._table["bridge_ns"]

    @property
    def route_ns(self) -> int:
        """A driver domain's time to find where one packet goes, if it routes packets instead of bridging them."""
        return self._table["route_ns"]

    @property
    def backend_receive_ns(self) -> int:
        """Netback's time for one packet to a guest, without the exchange of its page."""
        return self._table["backend_receive_ns"]

    @property
    def backend_send_ns(self) -> int:
        """Netback's time for one packet from a guest, without the grant of its page."""
        return self._table["backend_send_ns"]

    @property
    def page_exchange_ns(self) -> int:
        """The hypervisor's time to exchange a page, or to copy a packet, between two domains."""
        return self._table["page_exchange_ns"]

    @property
    def grant_ns(self) -> int:
        """The hypervisor's time to map a granted page and to unmap it."""
        return self._table["grant_ns"]

    @property
    def bounce_ns(self) -> int:
        """Time until a vCPU of a driver domain has the cache lines of a NIC or a ring that another vCPU worked at
        last.
        """
        return self._table["bounce_ns"]

    @property
    def guest_upcall_ns(self) -> int:
        """A guest's time to take one notification, whatever came with it."""
        return self._table["guest_upcall_ns"]

    @property
    def frontend_receive_ns(self) -> int:
        """Netfront's time for one packet received."""
        return self._table["frontend_receive_ns"]

    @property
    def frontend_send_ns(self) -> int:
        """Netfront's time for one packet sent."""
        return self._table["frontend_send_ns"]

    @property
    def stack_receive_ns(self) -> int:
        """A network stack's time for one packet received."""
        return self._table["stack_receive_ns"]

    @property
    def stack_send_ns(self) -> int:
        """A network stack's time for one packet sent."""
        return self._table["stack_send_ns"]

    @property
    def network_byte_ps(self) -> int:
        """A network stack's time for each byte received or sent, in picoseconds: copies, and checksums that no NIC
        computes.
        """
        return self._table["network_byte_ps"]

    @property
    def task_slice_ns(self) -> int:
        """Time slice of a task in a guest while others wait for the same vCPU."""
        return self._table["task_slice_ns"]

    @property
    def page_fault_ns(self) -> int:
        """Additional time of a page fault in a domain, against one without a hypervisor: the trap, and the update
        of the page table.
        """
        return self._table["page_fault_ns"]

    @property
    def checksum_byte_ps(self) -> int:
        """Time to compute the checksum of one byte where the NIC does not, in picoseconds."""
        return self._table["checksum_byte_ps"]

    @property
    def emulation_ns(self) -> int:
        """CPU time to emulate a device for one packet or request of a guest without drivers of its own."""
        return self._table["emulation_ns"]

    @property
    def block_request_ns(self) -> int:
        """A guest's time for one request to its disk: block layer and blkfront, or driver."""
        return self._table["block_request_ns"]

    @property
    def block_response_ns(self) -> int:
        """A guest's time for one response of its disk."""
        return self._table["block_response_ns"]

    @property
    def blockback_request_ns(self) -> int:
        """Blkback's time for one request of a guest to a disk, without the grants of its pages."""
        return self._table["blockback_request_ns"]

    @property
    def blockback_response_ns(self) -> int:
        """Blkback's time for one response of a disk to a guest."""
        return self._table["blockback_response_ns"]

    @property
    def copy_byte_ps(self) -> int:
        """Time to copy one byte between an application and the page cache, in picoseconds."""
        return self._table["copy_byte_ps"]

    @property
    def page_cache_bytes(self) -> int:
        """Memory for pages of files in each domain, where the scenario gives none."""
        return self._table["page_cache_bytes"]

    @property
    def shutdown_ns(self) -> int:
        """Time that a guest takes to shut down once it is asked to: it ends its services, and writes back what is
        dirty.
        """
        return self._table["shutdown_ns"]

    @property
    def toolstack_ns(self) -> int:
        """Time that the toolstack takes to act on a guest that has shut down or crashed."""
        return self._table["toolstack_ns"]

    @property
    def free_page_ns(self) -> int:
        """Time to free a page of 4 KiB of a domain that is destroyed, and to clear it."""
        return self._table["free_page_ns"]

    @property
    def disk_capacity_bytes(self) -> int:
        """Size of a disk."""
        return self._table["disk_capacity_bytes"]

    @property
    def disk_queue_depth(self) -> int:
        """Requests that a disk and its queue hold at once."""
        return self._table["disk_queue_depth"]

    @property
    def disk_bytes_per_s(self) -> int:
        """Rate of a disk with turning platters while the head stays on its way."""
        return self._table["disk_bytes_per_s"]

    @property
    def disk_track_seek_ns(self) -> int:
        """Time of the disk's seek to the next track."""
        return self._table["disk_track_seek_ns"]

    @property
    def disk_average_seek_ns(self) -> int:
        """Mean time of the disk's seek between random places."""
        return self._table["disk_average_seek_ns"]

    @property
    def disk_rotations_per_min(self) -> int:
        """Revolutions of the disk's platters a minute."""
        return self._table["disk_rotations_per_min"]

    @property
    def disk_write_cache(self) -> int:
        """1: the disk has a write cache, and a write that starts where the last one ended does not wait for the
        platter; 0: it waits.
        """
        return self._table["disk_write_cache"]

    @property
    def ssd_latency_ns(self) -> int:
        """Time of one request to flash memory besides the transfer."""
        return self._table["ssd_latency_ns"]

    @property
    def ssd_bytes_per_s(self) -> int:
        """Rate of all transfers of flash memory together."""
        return self._table["ssd_bytes_per_s"]

    @property
    def ssd_channels(self) -> int:
        """Requests that flash memory serves at once."""
        return self._table["ssd_channels"]

    @property
    def http_request_ns(self) -> int:
        """CPU time of a web server for one request, without the network."""
        return self._table["http_request_ns"]

    @property
    def cost_spread_percent(self) -> int:
        """Spread of each cost inside the domains, evenly to both sides."""
        return self._table["cost_spread_percent"]

    @property
    def backend_threads(self) -> int:
        """1: netbacks and blkbacks are threads, spread over the vCPUs of their driver domain in turn; 0: netbacks
        are tasklets, and they and blkbacks are on its first vCPU.

        (Before Xen 4 they always are.) `driver_vcpu` overrides it.
        """
        return self._table["backend_threads"]

    @property
    def ring_slots(self) -> int:
        """Packets that a ring between a driver domain and a guest holds in each direction."""
        return self._table["ring_slots"]

    @property
    def nic_bits_per_s(self) -> int:
        """Rate of the NIC's link."""
        return self._table["nic_bits_per_s"]

    @property
    def nic_interrupt_gap_ns(self) -> int:
        """Least time between two interrupts of the NIC (interrupt coalescing)."""
        return self._table["nic_interrupt_gap_ns"]

    @property
    def tcp_initial_segments(self) -> int:
        """Segments that a TCP connection may have under way before the first acknowledgement."""
        return self._table["tcp_initial_segments"]

    @property
    def link_latency_ns(self) -> int:
        """Time of a packet between the NIC and a client, one way, besides its transmission."""
        return self._table["link_latency_ns"]

    @property
    def kvm_exit_ns(self) -> int:
        """Time of one exit from a guest to KVM and back: a guest's notification (ioeventfd), or an interrupt for
        it (irqfd).
        """
        return self._table.get("kvm_exit_ns", 0)

    @property
    def kvm_thread_wake_ns(self) -> int:
        """Time of a thread of a KVM host that serves a VM to take one notification, and to notify the guest at the
        end.
        """
        return self._table.get("kvm_thread_wake_ns", 0)

    @property
    def kvm_vhost_receive_ns(self) -> int:
        """A vhost thread's time for one packet to a guest, without the copy of its bytes."""
        return self._table.get("kvm_vhost_receive_ns", 0)

    @property
    def kvm_vhost_send_ns(self) -> int:
        """A vhost thread's time for one packet from a guest, without the copy of its bytes, the bridge, and the
        NIC's driver.
        """
        return self._table.get("kvm_vhost_send_ns", 0)

    @property
    def kvm_tap_ns(self) -> int:
        """A KVM host's time to leave one packet, in the interrupt, to the queue of a VM's tap."""
        return self._table.get("kvm_tap_ns", 0)

    @property
    def kvm_disk_request_ns(self) -> int:
        """Time of an emulator or I/O thread for one request of a guest to a disk, its submission included."""
        return self._table.get("kvm_disk_request_ns", 0)

    @property
    def kvm_disk_complete_ns(self) -> int:
        """A KVM host's time to complete one request in the disk's interrupt."""
        return self._table.get("kvm_disk_complete_ns", 0)

    @property
    def kvm_disk_response_ns(self) -> int:
        """Time of an emulator or I/O thread for one response of a disk to a guest."""
        return self._table.get("kvm_disk_response_ns", 0)

    @property
    def ipi_ns(self) -> int:
        """Time until an interprocessor interrupt is taken, with which one pCPU asks another to decide."""
        return self._table.get("ipi_ns", 0)

    @property
    def lock_ns(self) -> int:
        """Time in which the lock of a run queue comes from the pCPU that had it last; 0: locks cost nothing."""
        return self._table.get("lock_ns", 0)

    @property
    def smt_compute_beside_compute_percent(self) -> int:
        """Speed of a thread with work bound by the core beside one with work bound by the core on the same core,
        in % of its speed alone there.
        """
        return self._table.get("smt_compute_beside_compute_percent", 100)

    @property
    def smt_compute_beside_memory_percent(self) -> int:
        """Speed of a thread with work bound by the core beside one with work bound by memory on the same core, in
        % of its speed alone there.
        """
        return self._table.get("smt_compute_beside_memory_percent", 100)

    @property
    def smt_compute_beside_io_percent(self) -> int:
        """Speed of a thread with work bound by the core beside one with work of I/O on the same core, in % of its
        speed alone there.
        """
        return self._table.get("smt_compute_beside_io_percent", 100)

    @property
    def smt_memory_beside_compute_percent(self) -> int:
        """Speed of a thread with work bound by memory beside one with work bound by the core on the same core, in
        % of its speed alone there.
        """
        return self._table.get("smt_memory_beside_compute_percent", 100)

    @property
    def smt_memory_beside_memory_percent(self) -> int:
        """Speed of a thread with work bound by memory beside one with work bound by memory on the same core, in %
        of its speed alone there.
        """
        return self._table.get("smt_memory_beside_memory_percent", 100)

    @property
    def smt_memory_beside_io_percent(self) -> int:
        """Speed of a thread with work bound by memory beside one with work of I/O on the same core, in % of its
        speed alone there.
        """
        return self._table.get("smt_memory_beside_io_percent", 100)

    @property
    def smt_io_beside_compute_percent(self) -> int:
        """Speed of a thread with work of I/O beside one with work bound by the core on the same core, in % of its
        speed alone there.
        """
        return self._table.get("smt_io_beside_compute_percent", 100)

    @property
    def smt_io_beside_memory_percent(self) -> int:
        """Speed of a thread with work of I/O beside one with work bound by memory on the same core, in % of its
        speed alone there.
        """
        return self._table.get("smt_io_beside_memory_percent", 100)

    @property
    def smt_io_beside_io_percent(self) -> int:
        """Speed of a thread with work of I/O beside one with work of I/O on the same core, in % of its speed alone
        there.
        """
        return self._table.get("smt_io_beside_io_percent", 100)

    @property
    def memory_share_compute_percent(self) -> int:
        """Part of its time for which work bound by the core waits for memory."""
        return self._table.get("memory_share_compute_percent", 0)

    @property
    def memory_share_memory_percent(self) -> int:
        """Part of its time for which work bound by memory waits for memory."""
        return self._table.get("memory_share_memory_percent", 0)

    @property
    def memory_share_io_percent(self) -> int:
        """Part of its time for which work of I/O waits for memory."""
        return self._table.get("memory_share_io_percent", 0)

    @property
    def bandwidth_compute_mb_per_s(self) -> int:
        """Memory bandwidth that a thread with work bound by the core uses at full speed."""
        return self._table.get("bandwidth_compute_mb_per_s", 0)

    @property
    def bandwidth_memory_mb_per_s(self) -> int:
        """Memory bandwidth that a thread with work bound by memory uses at full speed."""
        return self._table.get("bandwidth_memory_mb_per_s", 0)

    @property
    def bandwidth_io_mb_per_s(self) -> int:
        """Memory bandwidth that a thread with work of I/O uses at full speed."""
        return self._table.get("bandwidth_io_mb_per_s", 0)

    @property
    def node_mb_per_s(self) -> int:
        """Memory bandwidth of a node; 0: unlimited."""
        return self._table.get("node_mb_per_s", 0)

    @property
    def link_mb_per_s(self) -> int:
        """Bandwidth of a node's memory for the other nodes, over the links between them; 0: unlimited."""
        return self._table.get("link_mb_per_s", 0)

    @property
    def numa_distance(self) -> int:
        """Distance of memory on another node, as firmware gives it (SLIT): 10 is as near as a node's own, 20 takes
        twice as long.
        """
        return self._table.get("numa_distance", 10)

    @property
    def turbo_one_core_mhz(self) -> int:
        """Highest clock rate while one core of a socket is active; 0: `cpu_mhz`."""
        return self._table.get("turbo_one_core_mhz", 0)

    @property
    def turbo_all_cores_mhz(self) -> int:
        """Highest clock rate while all cores of a socket are active; 0: `cpu_mhz`."""
        return self._table.get("turbo_all_cores_mhz", 0)

    @property
    def min_mhz(self) -> int:
        """Lowest clock rate; 0: clocks are not slowed down."""
        return self._table.get("min_mhz", 0)

    @property
    def governor_sample_ns(self) -> int:
        """Time between two choices of the governor `ondemand`."""
        return self._table.get("governor_sample_ns", 10000000)

    @property
    def governor_up_percent(self) -> int:
        """Highest utilization of a core, above which the governor `ondemand` gives it the highest clock rate."""
        return self._table.get("governor_up_percent", 80)


class Host(Table):
    """The machine and its CPU scheduler. The scheduler's global parameters belong here too."""

    _FIELDS = frozenset({
        "hypervisor", "profile", "pcpus", "topology", "pcpus_per_socket", "scheduler", "generation", "sched_gran",
        "creation", "governor", "drivers", "bare_metal", "toolstack", "halt_poll_us", "polls_recorded", "cgroups",
        "isolated_cpus", "nohz_full", "costs"
    })

    @property
    def hypervisor(self) -> Literal["xen", "kvm"]:
        """The hypervisor: Xen, or Linux with KVM, whose vCPUs are threads in control groups. Default: `xen`."""
        return self._table.get("hypervisor", "xen")

    @property
    def profile(self) -> str:
        """The hardware profile: number of pCPUs, and the costs of everything.

        In `exact` nothing costs time. A built-in one by its name, or a file (its path from the folder of the
        scenario); `custom`: all constants are given here. Default: `generic`.
        """
        return self._table["profile"]

    @property
    def pcpus(self) -> int:
        """Number of pCPUs. Default: the profile's."""
        return self._table["pcpus"]

    @cached_property
    def topology(self) -> Topology | None:
        """Threads, cores, sockets and nodes of the pCPUs.

        Default: the profile's, if it has them and `pcpus` is not given; otherwise each pCPU is a core of its
        own, and there is one node.
        """
        return self._optional("topology", Topology)

    @property
    def pcpus_per_socket(self) -> int | None:
        """Number of pCPUs on one socket, where there is no `topology`. Default: all."""
        return self._table.get("pcpus_per_socket")

    @property
    def scheduler(self) -> str:
        """The CPU scheduler: a built-in one by its name, one that an installed package offers, or a policy in a
        Python file, `FILE.py:CLASS` (its path from the folder of the scenario).
        """
        return self._table["scheduler"]

    @property
    def generation(self) -> str:
        """The release, of Xen or of Linux, whose version of the scheduler is used.

        Default: `xen4.17`, or the newest where the scheduler has no generation of that name.
        """
        return self._table["generation"]

    @property
    def sched_gran(self) -> Literal["cpu", "core", "socket"]:
        """The unit of scheduling (Xen's `sched-gran`): each vCPU by itself, or as many vCPUs of a domain as a core
        or a socket has threads, which then runs no other domain at the same time.

        Default: `cpu`.
        """
        return self._table.get("sched_gran", "cpu")

    @property
    def creation(self) -> Literal["contract", "release"]:
        """The order in which new vCPUs come to their affinity.

        `contract`: it is in force from the beginning. `release`: as on a real Xen, the toolstack sets it when
        all vCPUs of the domain are there. Default: `contract`.
        """
        return self._table.get("creation", "contract")

    @property
    def governor(self) -> Literal["performance", "powersave", "ondemand"]:
        """Governor that chooses the frequency of each core between the profile's lowest and highest, where the
        topology is known: the highest, the lowest, or by the core's utilization.

        Default: `performance`.
        """
        return self._table.get("governor", "performance")

    @property
    def drivers(self) -> Literal["driver-domain", "hypervisor"] | None:
        """Place of the devices' drivers: in driver domains, or in the hypervisor. Default: `driver-domain`."""
        return self._table.get("drivers")

    @property
    def bare_metal(self) -> bool:
        """No hypervisor: the one domain is the machine's operating system, which has all pCPUs and devices.

        Default: `false`.
        """
        return self._table.get("bare_metal", False)

    @property
    def toolstack(self) -> Literal["xl", "xapi", "libvirt", "proxmox", "cgroup"]:
        """The toolstack in whose commands advice is given; it changes no result.

        `xl`: Xen's own. `xapi`: of XCP-ng and XenServer. `libvirt`: of Xen and of KVM. `proxmox`: Proxmox VE,
        of KVM. `cgroup`: files of control groups and systemd, on any KVM host. Default: `xl`, or `libvirt` on a
        KVM host.
        """
        return self._table["toolstack"]

    @property
    def halt_poll_us(self) -> int | None:
        """Longest time, in microseconds, for which the thread of a vCPU of a KVM host polls before it blocks once
        its guest has halted (`kvm.halt_poll_ns`); 0: it does not.

        Default: 200.
        """
        return self._table.get("halt_poll_us")

    @property
    def polls_recorded(self) -> bool:
        """Whether the times that its guests compute contain the polling of their vCPUs, as recorded times do.

        Then there is no polling besides, whatever `halt_poll_us` says, which is the real host's. Default:
        `false`.
        """
        return self._table.get("polls_recorded", False)

    @property
    def cgroups(self) -> int | None:
        """Version of a KVM host's control groups: 1 has `cpu.shares` (2 to 262144) and `cpu.cfs_quota_us`, 2 has
        `cpu.weight` (1 to 10000) and `cpu.max`.

        Weights are in units of `cpu.weight` either way: 100 is a `cpu.shares` of 1024. Default: 2.
        """
        return self._table.get("cgroups")

    @property
    def isolated_cpus(self) -> str | None:
        """The pCPUs of a KVM host that are in no scheduling domain (`isolcpus=`, or a cpuset with
        `cpuset.cpus.partition` `isolated`): balancing neither takes threads from them nor moves threads to
        them.

        A thread runs there only if its affinity names them, and stays on the first of them that it may run on.
        Default: none.
        """
        return self._table.get("isolated_cpus")

    @property
    def nohz_full(self) -> str | None:
        """The pCPUs of a KVM host whose tick stops while they have one runnable thread (`nohz_full=`); one tick a
        second remains.

        It does not isolate them: see `isolated_cpus`. Default: none.
        """
        return self._table.get("nohz_full")

    @cached_property
    def costs(self) -> Costs:
        """Constants of the hardware profile to replace."""
        return Costs(self._table["costs"])

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the scheduler, by name."""
        return self._params()


class Topology(Table):
    """The threads, cores, sockets and nodes of a machine."""

    @property
    def sockets(self) -> int:
        """Number of sockets. Default: 1."""
        return self._table.get("sockets", 1)

    @property
    def cores(self) -> int:
        """Number of cores of each socket. Default: what `pcpus` leaves for each."""
        return self._table["cores"]

    @property
    def threads(self) -> int:
        """Number of threads of each core. Default: 1."""
        return self._table.get("threads", 1)

    @property
    def nodes(self) -> int:
        """Number of NUMA nodes, a divisor or a multiple of the number of sockets. Default: one for each socket."""
        return self._table["nodes"]

    @property
    def numbering(self) -> Literal["adjacent", "spread"]:
        """The numbers of the pCPUs: the threads of a core beside each other, or first the first threads of all
        cores, then the second ones.

        Default: `adjacent`.
        """
        return self._table.get("numbering", "adjacent")


class Nic(Table):
    """A NIC."""

    @property
    def driver_domain(self) -> str | None:
        """The driver domain that owns it. Required, unless the drivers are elsewhere, as on a KVM host."""
        return self._table.get("driver_domain")

    @property
    def vcpu(self) -> int | None:
        """The driver domain's vCPU that takes its interrupts. Default: 0."""
        return self._table.get("vcpu")

    @property
    def pcpu(self) -> int | None:
        """The pCPU of a KVM host that takes its interrupts.

        Default: it has a queue for each pCPU, and VMs are on them in turn.
        """
        return self._table.get("pcpu")


class Disk(Table):
    """A disk."""

    @property
    def driver_domain(self) -> str | None:
        """The driver domain that owns it. Required, unless the drivers are elsewhere, as on a KVM host."""
        return self._table.get("driver_domain")

    @property
    def vcpu(self) -> int | None:
        """The driver domain's vCPU that takes its interrupts. Default: 0."""
        return self._table.get("vcpu")

    @property
    def pcpu(self) -> int | None:
        """The pCPU of a KVM host that takes its interrupts. Default: that of the thread whose request it was."""
        return self._table.get("pcpu")

    @property
    def kind(self) -> Literal["spindle", "ssd"]:
        """Turning platters, or flash memory. The hardware profile has the speed of each. Default: `spindle`."""
        return self._table.get("kind", "spindle")


class Pool(Table):
    """A CPU pool: pCPUs with a scheduler of their own. The scheduler's global parameters belong here too."""

    _FIELDS = frozenset({
        "pcpus", "scheduler", "generation"
    })

    @property
    def pcpus(self) -> str:
        """pCPUs of the pool, which no other pool has."""
        return self._table["pcpus"]

    @property
    def scheduler(self) -> str:
        """CPU scheduler of the pool, with the names of `[host]`."""
        return self._table["scheduler"]

    @property
    def generation(self) -> str:
        """The release whose version of the scheduler is used.

        Default: `xen4.17`, or the newest where the scheduler has no generation of that name.
        """
        return self._table["generation"]

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the scheduler, by name."""
        return self._params()


class Cgroup(Table):
    """A control group of a KVM host."""

    @property
    def weight(self) -> int:
        """Share of the group beside other groups and threads in the group around it, in units of `cpu.weight`.

        At most 10000, or 25600 where `host.cgroups` is 1. Default: 100.
        """
        return self._table.get("weight", 100)

    @property
    def quota_us(self) -> int:
        """CPU time, in microseconds, that its threads may have together in each period (`cpu.max`); -1: as much as
        they get.

        Default: -1.
        """
        return self._table.get("quota_us", -1)

    @property
    def period_us(self) -> int:
        """Length of the period, in microseconds. Default: 100000."""
        return self._table.get("period_us", 100000)

    @property
    def burst_us(self) -> int:
        """Quota not used, in microseconds, that may be used later (`cpu.max.burst`), at most the quota. Default: 0."""
        return self._table.get("burst_us", 0)

    @property
    def idle(self) -> bool:
        """Whether the group runs only when nothing else wants to (`cpu.idle`). Default: `false`."""
        return self._table.get("idle", False)

    @property
    def cpus(self) -> str | None:
        """The pCPUs that its threads may run on (`cpuset.cpus`), of those that the groups around it leave; a
        thread that is pinned to none of them runs on all of them.

        Default: those of the group around it.
        """
        return self._table.get("cpus")


class Domain(Table):
    """A domain (virtual machine). The scheduler's parameters of a domain belong here too."""

    _FIELDS = frozenset({
        "vcpus", "pool", "start", "affinity", "soft_affinity", "bound_by", "memory_nodes", "driver_domain",
        "forwarding", "working_set", "nic", "disk", "page_cache", "memory", "shutdown", "idle_tick", "idle_tick_cpu",
        "busy_tick_cpu", "idle_tick_at", "wake_cpu", "idle_cpu", "on_crash", "cgroup", "daemon", "emulator_affinity",
        "iothread_affinity", "iothreads", "threads_per_core", "sched_policy", "sched_priority", "nice", "app"
    })

    @property
    def vcpus(self) -> int:
        """Number of vCPUs. Default: 1."""
        return self._table.get("vcpus", 1)

    @property
    def pool(self) -> str:
        """The CPU pool it is created in. Default: `Pool-0`."""
        return self._table.get("pool", "Pool-0")

    @property
    def start(self) -> Duration:
        """Time of its creation, since the host started, warm-up included. Default: the start of the host."""
        return Duration(self._table.get("start", "0ns"))

    @property
    def affinity(self) -> str | tuple[str, ...]:
        """The pCPUs it may run on (hard affinity): one set for all vCPUs, or a list with one for each.

        Default: all pCPUs, on a KVM host all but `isolated_cpus`.
        """
        return single_or_each(str)(self._table["affinity"])

    @property
    def soft_affinity(self) -> str | tuple[str, ...] | None:
        """The pCPUs it prefers among them (soft affinity): one set for all vCPUs, or a list with one for each.

        Default: none.
        """
        return self._optional("soft_affinity", single_or_each(str))

    @property
    def bound_by(self) -> Literal["compute", "memory", "io"]:
        """Resource that bounds the speed of its work where threads share cores and memory: the core, memory, or
        devices.

        Default: `compute`; of `dom0` and of driver domains `io`.
        """
        return self._table["bound_by"]

    @property
    def memory_nodes(self) -> tuple[int, ...]:
        """The NUMA nodes that hold its memory, each as much: a number, or a list.

        Default: those of the pCPUs that it prefers, or else may run on.
        """
        return all_of(self._table.get("memory_nodes", ()))

    @property
    def driver_domain(self) -> bool:
        """Whether the domain owns the devices, and does their work for the other domains. Default: `false`."""
        return self._table.get("driver_domain", False)

    @property
    def forwarding(self) -> Literal["bridge", "routing"]:
        """The way in which a driver domain forwards packets: a bridge, or routing. Default: `bridge`."""
        return self._table.get("forwarding", "bridge")

    @property
    def working_set(self) -> Size:
        """Memory that each vCPU touches whenever it runs, and that a cold cache has to bring in again.

        Default: the profile's.
        """
        return Size(self._table["working_set"])

    @cached_property
    def nic(self) -> Netfront | None:
        """Network interface of the domain."""
        return self._optional("nic", Netfront)

    @cached_property
    def disk(self) -> VirtualDisk | None:
        """Virtual disk of the domain."""
        return self._optional("disk", VirtualDisk)

    @property
    def page_cache(self) -> Size:
        """Memory for pages of files. Default: the profile's."""
        return Size(self._table["page_cache"])

    @property
    def memory(self) -> Size:
        """Memory of the domain: when it is destroyed, the hypervisor frees every page; a `web-server` has its
        files there.

        Default: twice the memory for pages of files.
        """
        return Size(self._table["memory"])

    @property
    def shutdown(self) -> Duration:
        """Time that its guest takes to shut down. Default: the profile's."""
        return Duration(self._table["shutdown"])

    @property
    def idle_tick(self) -> Duration | None:
        """Period of its kernel's tick, if the tick stays on when a vCPU goes idle, and stops once it finds the
        vCPU idle (as in Linux 6.1): a vCPU that goes idle wakes once more.

        Default: the tick stops at once.
        """
        return self._optional("idle_tick", Duration)

    @property
    def idle_tick_cpu(self) -> Duration | None:
        """CPU time of such a tick. Required with `idle_tick`."""
        return self._optional("idle_tick_cpu", Duration)

    @property
    def busy_tick_cpu(self) -> Duration:
        """CPU time of a tick that finds the vCPU busy, beside what its applications compute; ticks that come while
        it cannot run are one.

        Goes with `idle_tick`. Default: none.
        """
        return Duration(self._table.get("busy_tick_cpu", "0ns"))

    @property
    def idle_tick_at(self) -> Duration | None:
        """Time of a tick since the start of the run (later by what `start_spread` draws): ticks of several domains
        keep their distances.

        Default: at a random time; replications spread those of the first four such domains evenly.
        """
        return self._optional("idle_tick_at", Duration)

    @property
    def wake_cpu(self) -> Duration:
        """CPU time of its kernel each time that an idle vCPU wakes to do something, beside the time of its
        applications and devices; events that come together count once.

        A tick that finds the vCPU idle has `idle_tick_cpu` instead. Default: none.
        """
        return Duration(self._table.get("wake_cpu", "0ns"))

    @property
    def idle_cpu(self) -> Duration:
        """CPU time of its kernel each time that a woken vCPU goes idle again; its applications have sent their
        packets before.

        Default: none.
        """
        return Duration(self._table.get("idle_cpu", "0ns"))

    @property
    def on_crash(self) -> Literal["destroy", "restart", "preserve"]:
        """The toolstack's answer to a crash of its guest: destroy the domain, restart it, or leave it as it is.

        Default: `destroy`.
        """
        return self._table.get("on_crash", "destroy")

    @property
    def cgroup(self) -> str | None:
        """The control group of a KVM host around its own, by its path; `/`: the root group.

        That of the emulator of a VM `web` above is `machine.slice/web/libvirt/emulator`. Default:
        `machine.slice`, or `system.slice` for a daemon.
        """
        return self._table.get("cgroup")

    @property
    def daemon(self) -> bool:
        """Whether the domain is a daemon of a KVM host instead of a VM.

        Its vCPUs are then threads, which have their work from its applications; they are in a group of the
        daemon's own. It has no network and no disk. Default: `false`.
        """
        return self._table.get("daemon", False)

    @property
    def emulator_affinity(self) -> str:
        """The pCPUs that the emulator and vhost threads of a VM of a KVM host may run on (`virsh emulatorpin`).

        Default: `all`.
        """
        return self._table.get("emulator_affinity", "all")

    @property
    def iothread_affinity(self) -> str:
        """The pCPUs that its I/O thread may run on (`virsh iothreadpin`). Default: `all`."""
        return self._table.get("iothread_affinity", "all")

    @property
    def iothreads(self) -> int:
        """Number of its I/O threads, on a KVM host.

        1: it does the work of the disk; 0: the emulator's main loop does. Default: 0.
        """
        return self._table.get("iothreads", 0)

    @property
    def threads_per_core(self) -> int:
        """Number of threads of each core, as the guest of a VM of a KVM host is told (libvirt's `<topology
        threads=>`, QEMU's `-smp threads=`).

        vCPUs with consecutive numbers are threads of one core then, and the guest's kernel places busy tasks on
        idle cores first. Default: 1.
        """
        return self._table.get("threads_per_core", 1)

    @property
    def sched_policy(self) -> Literal["other", "batch", "idle", "fifo", "rr"] | None:
        """Scheduling policy of its vCPUs' threads, on a KVM host (`SCHED_OTHER` and so on). Default: `other`."""
        return self._table.get("sched_policy")

    @property
    def sched_priority(self) -> int | None:
        """Priority of its vCPUs' threads under `fifo` and `rr`. Default: 1."""
        return self._table.get("sched_priority")

    @property
    def nice(self) -> int | None:
        """Nice value of its vCPUs' threads under `other` and `batch`. Default: 0."""
        return self._table.get("nice")

    @cached_property
    def apps(self) -> tuple[App, ...]:
        """Applications of the domain."""
        return self._list("app", _app)

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the scheduler, by name."""
        return self._params()


class Netfront(Table):
    """A domain's network interface."""

    @property
    def driver_domain(self) -> str | None:
        """The domain whose netback carries its packets.

        Required, unless the drivers are elsewhere, as on a KVM host.
        """
        return self._table.get("driver_domain")

    @property
    def device(self) -> str | None:
        """The NIC by which its packets leave. Default: the driver domain's first."""
        return self._table.get("device")

    @property
    def vcpu(self) -> int:
        """The domain's vCPU that takes its events. Default: 0."""
        return self._table.get("vcpu", 0)

    @property
    def driver_vcpu(self) -> int | None:
        """The driver domain's vCPU that its netback is on: it takes its events, and puts packets into its ring.

        Default: the interfaces of a driver domain are on its vCPUs in turn, or all on the first while netbacks
        are tasklets (the profile's `backend_threads`).
        """
        return self._table.get("driver_vcpu")

    @property
    def tso(self) -> bool:
        """TCP segmentation offload: whether the domain sends packets of up to 64 KB, which the NIC cuts.

        Default: `false`.
        """
        return self._table.get("tso", False)

    @property
    def checksum_offload(self) -> bool:
        """Whether the NIC computes checksums. If not, each byte costs the domain more. Default: `true`."""
        return self._table.get("checksum_offload", True)

    @property
    def emulated(self) -> bool:
        """An emulated NIC, for a guest without drivers of its own (HVM): the driver domain, which may be a stub
        domain, emulates it.

        Default: `false`.
        """
        return self._table.get("emulated", False)


class VirtualDisk(Table):
    """A domain's virtual disk."""

    @property
    def driver_domain(self) -> str | None:
        """The domain whose blkback serves it. Required, unless the drivers are elsewhere, as on a KVM host."""
        return self._table.get("driver_domain")

    @property
    def device(self) -> str | None:
        """The disk it is on.

        Default: the driver domain's first; if the driver domain has a virtual disk itself (a stub domain), the
        disk of that one.
        """
        return self._table.get("device")

    @property
    def vcpu(self) -> int:
        """The domain's vCPU that takes its events. Default: 0."""
        return self._table.get("vcpu", 0)

    @property
    def driver_vcpu(self) -> int | None:
        """The driver domain's vCPU that its blkback is on: it takes its events, and passes requests on to the
        disk.

        (Responses are the work of the vCPU that takes the disk's interrupts.) Default: the virtual disks of a
        driver domain are on its vCPUs in turn, or all on the first where `backend_threads` of the profile is 0,
        and in a stub domain.
        """
        return self._table.get("driver_vcpu")

    @property
    def emulated(self) -> bool:
        """An emulated disk, for a guest without drivers of its own (HVM): the driver domain, which may be a stub
        domain, emulates it.

        Default: `false`.
        """
        return self._table.get("emulated", False)


class App(Table):
    """An application in a domain. The parameters of its kind belong here too."""

    _FIELDS = frozenset({
        "kind", "phase", "loop", "stretch", "start_delay", "softirq", "softirq_first", "instance", "assumed"
    })

    @property
    def kind(self) -> str:
        """The kind of the application."""
        return self._table["kind"]

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of a script."""
        return self._list("phase", Phase)

    @property
    def loop(self) -> int | None:
        """Number of times to go through all phases; -1: without end. Default: -1."""
        return self._table.get("loop")

    @property
    def stretch(self) -> int | None:
        """Mean number of phases in a stretch, for phases that are samples: after each phase, another stretch
        begins at a random phase with a probability of one in this number (stationary bootstrap).

        So 1 is any phase after any other. Each phase is a unit of work, unless the script says `done`. Default:
        all phases in their order, again and again.
        """
        return self._table.get("stretch")

    @property
    def start_delay(self) -> Duration | None:
        """Time from the start of its domain to its own. Default: none."""
        return self._optional("start_delay", Duration)

    @property
    def softirq(self) -> bool:
        """Interrupts alone do its work, as Linux's network stack does with packets that no process waits for: an
        idle kernel does not start a stopped `idle_tick` for it, and it goes before the work of other
        applications.

        Default: `false`.
        """
        return self._table.get("softirq", False)

    @property
    def softirq_first(self) -> bool:
        """Interrupts do the first part of its work: each awaited event up to the next notification, as in a driver
        domain that receives a packet and acknowledges it.

        That part goes before the work of other applications. Threads do the rest, a further thread up to each
        further notification, each behind all other work. Default: `false`.
        """
        return self._table.get("softirq_first", False)

    @property
    def instance(self) -> int:
        """Number of instances. Default: 1."""
        return self._table.get("instance", 1)

    @property
    def assumed(self) -> bool:
        """Whether the work is an assumption of an import whose input did not show it, rather than the user's.

        It changes no result; advice says so. Default: `false`.
        """
        return self._table.get("assumed", False)

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the application's kind, by name."""
        return self._params()


class HogApp(App):
    """Computes without end. Its units are milliseconds of CPU time."""


class CpuStressApp(App):
    """Integer and floating-point arithmetic without end. Its units are batches of both."""

    @property
    def threads(self) -> int:
        """How many do so at once. Default: 1."""
        return self._table["threads"]

    @property
    def integer_cpu(self) -> Duration:
        """CPU time of the integer part of a batch. Default: 10000 thousand cycles."""
        return Duration(self._table["integer_cpu"])

    @property
    def float_cpu(self) -> Duration:
        """CPU time of the floating-point part of a batch. Default: 10000 thousand cycles."""
        return Duration(self._table["float_cpu"])


class PeriodicApp(App):
    """Computes for some time in every period.

    Its units are jobs; one that is not complete by the end of its period is late.
    """

    @property
    def run(self) -> Duration:
        """CPU time in each period."""
        return Duration(self._table["run"])

    @property
    def period(self) -> Duration:
        """Length of a period."""
        return Duration(self._table["period"])


class SpinApp(App):
    """Threads that take turns at one lock. Its units are critical sections."""

    @property
    def threads(self) -> int:
        """How many threads; as many as vCPUs, for one on each. Default: 2."""
        return self._table["threads"]

    @property
    def section(self) -> Duration:
        """CPU time of a critical section. Default: 10 thousand cycles."""
        return Duration(self._table["section"])

    @property
    def hold(self) -> Duration:
        """Time that it waits while it has the lock, on top. Default: 0ns."""
        return Duration(self._table["hold"])

    @property
    def work(self) -> Duration:
        """CPU time between two critical sections. Default: 90 thousand cycles."""
        return Duration(self._table["work"])

    @property
    def think(self) -> Duration:
        """Mean time that it sleeps between two critical sections. Default: 0ns."""
        return Duration(self._table["think"])


class KernelBuildApp(App):
    """Jobs that compile the files of a tree, and end when all are compiled. Its units are files."""

    @property
    def jobs(self) -> int:
        """How many compilers run at once (`make -j`). Default: 1."""
        return self._table["jobs"]

    @property
    def files(self) -> int:
        """How many files there are; each job compiles an equal part, rounded up. Default: 1000."""
        return self._table["files"]

    @property
    def file_cpu(self) -> Duration:
        """CPU time to compile one file. Default: 600000 thousand cycles."""
        return Duration(self._table["file_cpu"])

    @property
    def headers(self) -> int:
        """How many groups of headers it reads while it compiles a file. Default: 4."""
        return self._table["headers"]

    @property
    def source_size(self) -> Size:
        """Size of a source file. Default: 24KiB."""
        return Size(self._table["source_size"])

    @property
    def header_size(self) -> Size:
        """Size of a group of headers. Default: 64KiB."""
        return Size(self._table["header_size"])

    @property
    def object_size(self) -> Size:
        """Size of an object file. Default: 32KiB."""
        return Size(self._table["object_size"])

    @property
    def page_faults(self) -> int:
        """How many page faults it takes to compile one file. Default: 3000."""
        return self._table["page_faults"]

    @property
    def program_memory(self) -> Size:
        """Memory of the compiler's program and of the kernel that all jobs use while they run. Default: 1MiB."""
        return Size(self._table["program_memory"])

    @property
    def job_memory(self) -> Size:
        """Memory that each job uses while it runs. Default: 2MiB."""
        return Size(self._table["job_memory"])


class TcpSenderApp(App):
    """Sends packets of one size over TCP, slowed by an empty loop. Its units are packets."""

    @property
    def to(self) -> str | None:
        """The service that it sends to; none: a machine outside that takes everything.

        A domain that runs one tcp-receiver or iperf.
        """
        return self._table.get("to")

    @property
    def packet_size(self) -> Size:
        """Payload of each packet. Default: 1448B."""
        return Size(self._table["packet_size"])

    @property
    def delay(self) -> Duration:
        """CPU time of an empty loop after each packet, which sets the rate. Default: 0ns."""
        return Duration(self._table["delay"])

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system call for each piece, without the network's own work. Default: 2 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])

    @property
    def streams(self) -> int:
        """How many connections, with a task for each. Default: 1."""
        return self._table["streams"]


class TcpReceiverApp(App):
    """Receives packets of one size over TCP, slowed by an empty loop. Its units are packets."""

    @property
    def packet_size(self) -> Size:
        """Payload of each packet. Default: 1448B."""
        return Size(self._table["packet_size"])

    @property
    def delay(self) -> Duration:
        """CPU time of an empty loop after each packet, which sets the rate. Default: 0ns."""
        return Duration(self._table["delay"])

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system call for each piece, without the network's own work. Default: 2 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])

    @property
    def streams(self) -> int:
        """How many connections, with a task for each. Default: 1."""
        return self._table["streams"]


class IperfApp(App):
    """Sends or receives as much as it can over TCP. Its units are buffers."""

    @property
    def direction(self) -> Literal["send", "receive"]:
        """Does it send, or does it receive what others send to it? Default: send."""
        return self._table["direction"]

    @property
    def to(self) -> str | None:
        """The service that it sends to; none: a machine outside that takes everything.

        A domain that runs one tcp-receiver or iperf.
        """
        return self._table.get("to")

    @property
    def buffer_size(self) -> Size:
        """Bytes that it sends or takes at a time. Default: 8KiB."""
        return Size(self._table["buffer_size"])

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system call for each piece, without the network's own work. Default: 2 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])

    @property
    def streams(self) -> int:
        """How many connections, with a task for each. Default: 1."""
        return self._table["streams"]


class NetperfApp(App):
    """Sends messages over TCP, one after the other. Its units are messages."""

    @property
    def to(self) -> str | None:
        """The service that it sends to; none: a machine outside that takes everything.

        A domain that runs one tcp-receiver or iperf.
        """
        return self._table.get("to")

    @property
    def message_size(self) -> Size:
        """Size of a message. Default: 16KiB."""
        return Size(self._table["message_size"])

    @property
    def send_buffer(self) -> Size:
        """Data that its socket keeps at most until they are acknowledged. Default: 64KiB."""
        return Size(self._table["send_buffer"])

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system call for each piece, without the network's own work. Default: 2 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])

    @property
    def streams(self) -> int:
        """How many connections, with a task for each. Default: 1."""
        return self._table["streams"]


class DdApp(App):
    """Reads or writes the blocks of a file one after the other. Its units are blocks."""

    @property
    def operation(self) -> Literal["read", "write"]:
        """Does it read or write the file? Default: read."""
        return self._table["operation"]

    @property
    def block_size(self) -> Size:
        """Size of a block. Default: 1KiB."""
        return Size(self._table["block_size"])

    @property
    def count(self) -> int:
        """How many blocks the file has. Default: 1000."""
        return self._table["count"]

    @property
    def direct(self) -> bool:
        """Past the page cache, so that each piece waits for the disk? Default: false."""
        return self._table["direct"]

    @property
    def runs(self) -> int:
        """How many times it goes through the file before it ends; 0: without end. Default: 0."""
        return self._table["runs"]

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system calls for each piece, without the driver's own work. Default: 4 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])


class IozoneApp(App):
    """Reads or writes a file record by record, in sequence or at random. Its units are records."""

    @property
    def operation(self) -> Literal["write", "read", "random-write", "random-read"]:
        """What it does with each record. Default: write."""
        return self._table["operation"]

    @property
    def file_size(self) -> Size:
        """Size of the file. A last piece that is less than a record is left out. Default: 512MiB."""
        return Size(self._table["file_size"])

    @property
    def record_size(self) -> Size:
        """Size of a record; one that is larger than the file counts as the file. Default: 1MiB."""
        return Size(self._table["record_size"])

    @property
    def direct(self) -> bool:
        """Past the page cache, so that each piece waits for the disk? Default: true."""
        return self._table["direct"]

    @property
    def runs(self) -> int:
        """How many times it goes through the file before it ends; 0: without end. Default: 0."""
        return self._table["runs"]

    @property
    def call_cpu(self) -> Duration:
        """CPU time of the system calls for each piece, without the driver's own work. Default: 4 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])


class OltpApp(App):
    """A database and its load generator: transactions of 18 statements, with a log that is flushed at each commit.

    Its units are transactions.
    """

    @property
    def threads(self) -> int:
        """How many transactions run at once. Default: 4."""
        return self._table["threads"]

    @property
    def rows(self) -> int:
        """How many rows the table has. Default: 10000."""
        return self._table["rows"]

    @property
    def row_size(self) -> Size:
        """What a row takes in the table and its index. Default: 240B."""
        return Size(self._table["row_size"])

    @property
    def buffer_pool(self) -> Size:
        """Memory in which the database keeps pages of the table. Default: 128MiB."""
        return Size(self._table["buffer_pool"])

    @property
    def statement_cpu(self) -> Duration:
        """CPU time of a statement on one row, in generator and server together. Default: 200 thousand cycles."""
        return Duration(self._table["statement_cpu"])

    @property
    def range_cpu(self) -> Duration:
        """CPU time that a statement on a range of 100 rows takes on top. Default: 200 thousand cycles."""
        return Duration(self._table["range_cpu"])

    @property
    def log_size(self) -> Size:
        """What a transaction writes to the log. Default: 2KiB."""
        return Size(self._table["log_size"])

    @property
    def flush(self) -> bool:
        """Does a commit wait until its log is on the disk? Default: true."""
        return self._table["flush"]


class WebServerApp(App):
    """Serves files over HTTP, out of memory unless `files_per_size` is given. Its units are requests."""

    @property
    def request_cpu(self) -> Duration:
        """CPU time of the server itself for each request. Default: the profile's `http_request_ns`."""
        return Duration(self._table["request_cpu"])

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])

    @property
    def workers(self) -> int:
        """How many requests it works at at once. Default: 1."""
        return self._table["workers"]

    @property
    def connections_max(self) -> int:
        """Most connections that it has at once. Default: 256."""
        return self._table["connections_max"]

    @property
    def backlog(self) -> int:
        """Further connections that wait until one of those ends; what comes on top is refused. Default: 0."""
        return self._table["backlog"]

    @property
    def syn_queue(self) -> int:
        """Connections whose set-up is under way at once; a call on top is lost, and made again later. Default: 1024."""
        return self._table["syn_queue"]

    @property
    def requests_max(self) -> int:
        """Requests after which it closes a connection; 0: never. Default: 0."""
        return self._table["requests_max"]

    @property
    def files_per_size(self) -> int:
        """How many files it has of each size that clients ask for; which of them is a matter of chance.

        Those asked for last are in memory, as many as there is room for in the domain's `memory`; others are
        read from its disk. 0: all are in memory. Default: 0.
        """
        return self._table["files_per_size"]

    @property
    def process_memory(self) -> Size:
        """Memory that the process of each connection has for itself; files have that much less.

        Only with `files_per_size`. Default: 1MiB.
        """
        return Size(self._table["process_memory"])

    @property
    def system_memory(self) -> Size:
        """Memory of the domain's kernel and of its other programs, which files do not have either.

        Only with `files_per_size`. Default: 24MiB.
        """
        return Size(self._table["system_memory"])


class PhpWebApp(App):
    """A web application: worker processes that read scripts, ask a database twice and answer with a page.

    Its units are pages.
    """

    @property
    def database(self) -> str:
        """The database that it asks. A domain that runs one mysql."""
        return self._table["database"]

    @property
    def files(self) -> str | None:
        """The file server that its scripts are on; none: they are on its own disk. A domain that runs one nfs."""
        return self._table.get("files")

    @property
    def workers(self) -> int:
        """Worker processes: each has one connection for as long as it lasts. Default: 150."""
        return self._table["workers"]

    @property
    def backlog(self) -> int:
        """Further connections that wait for a worker; what comes on top is not answered. Default: 128."""
        return self._table["backlog"]

    @property
    def syn_queue(self) -> int:
        """Connections whose set-up is under way at once; a call on top is lost, and made again later. Default: 1024."""
        return self._table["syn_queue"]

    @property
    def requests_max(self) -> int:
        """Requests after which it closes a connection; 0: never. Default: 100."""
        return self._table["requests_max"]

    @property
    def page_cpu(self) -> Duration:
        """CPU time of a page, without the network's own work. Default: 8000 thousand cycles."""
        return Duration(self._table["page_cpu"])

    @property
    def scripts(self) -> int:
        """How many files make up the page. Default: 4."""
        return self._table["scripts"]

    @property
    def file_calls(self) -> int:
        """How often it asks the file server for each of them. Default: 1."""
        return self._table["file_calls"]

    @property
    def cached(self) -> int:
        """Share of scripts that its page cache has; the file server is still asked whether they changed.

        Default: 100.
        """
        return self._table["cached"]

    @property
    def kilobyte_cpu(self) -> Duration:
        """CPU time for each KiB that it copies between itself and the kernel. Default: 1 thousand cycles."""
        return Duration(self._table["kilobyte_cpu"])


class MysqlApp(App):
    """A database server that answers queries for single rows, with a thread for each connection.

    Its units are queries.
    """

    @property
    def connections_max(self) -> int:
        """Most connections at once, each with a thread; what comes on top is refused. Default: 100."""
        return self._table["connections_max"]

    @property
    def login_cpu(self) -> Duration:
        """CPU time to accept a connection: a thread, and the login. Default: 300 thousand cycles."""
        return Duration(self._table["login_cpu"])

    @property
    def select_cpu(self) -> Duration:
        """CPU time of a query for one row by its key. Default: 150 thousand cycles."""
        return Duration(self._table["select_cpu"])

    @property
    def cached(self) -> int:
        """Share of queries that find their row in memory. Default: 100."""
        return self._table["cached"]

    @property
    def data_size(self) -> Size:
        """Size of the tables, over which those reads spread that go to the disk. Default: 1GiB."""
        return Size(self._table["data_size"])


class NfsApp(App):
    """A file server. Its units are requests."""

    @property
    def threads(self) -> int:
        """How many requests it works at at once. Default: 8."""
        return self._table["threads"]

    @property
    def call_cpu(self) -> Duration:
        """CPU time of a request, without the network's own work. Default: 30 thousand cycles."""
        return Duration(self._table["call_cpu"])

    @property
    def cached(self) -> int:
        """Share of reads that its page cache answers. Default: 99."""
        return self._table["cached"]

    @property
    def files_size(self) -> Size:
        """Size of all files, over which those reads spread that go to the disk. Default: 1GiB."""
        return Size(self._table["files_size"])


class ActiveDirectoryApp(App):
    """A directory that authenticates users and answers searches. Its units are requests."""

    @property
    def threads(self) -> int:
        """How many requests it works at at once. Default: 8."""
        return self._table["threads"]

    @property
    def logon_cpu(self) -> Duration:
        """CPU time to check a password. Default: 1000 thousand cycles."""
        return Duration(self._table["logon_cpu"])

    @property
    def lookup_cpu(self) -> Duration:
        """CPU time of a search for one entry. Default: 300 thousand cycles."""
        return Duration(self._table["lookup_cpu"])

    @property
    def cached(self) -> int:
        """Share of requests that find their entries in memory. Default: 99."""
        return self._table["cached"]

    @property
    def database_size(self) -> Size:
        """Size of the directory, over which those reads spread that go to the disk. Default: 100MiB."""
        return Size(self._table["database_size"])


class ExchangeApp(App):
    """A mail server: reading, sending, folders and calendars. Its units are tasks."""

    @property
    def directory(self) -> str:
        """The directory that knows its users. A domain that runs one active-directory."""
        return self._table["directory"]

    @property
    def workers(self) -> int:
        """How many tasks it works at at once. Default: 64."""
        return self._table["workers"]

    @property
    def read_cpu(self) -> Duration:
        """CPU time of reading a message or looking into a folder or calendar. Default: 6000 thousand cycles."""
        return Duration(self._table["read_cpu"])

    @property
    def send_cpu(self) -> Duration:
        """CPU time of sending a message. Default: 15000 thousand cycles."""
        return Duration(self._table["send_cpu"])

    @property
    def pages(self) -> int:
        """How many database pages a task touches. Default: 8."""
        return self._table["pages"]

    @property
    def cached(self) -> int:
        """Share of pages that are in memory. Default: 90."""
        return self._table["cached"]

    @property
    def database_size(self) -> Size:
        """Size of all mailboxes, over which those reads spread that go to the disk. Default: 20GiB."""
        return Size(self._table["database_size"])


class MossApp(App):
    """A portal whose pages and documents are in a database, and whose users are in a directory.

    Its units are requests.
    """

    @property
    def database(self) -> str:
        """The database that all content is in. A domain that runs one mssql."""
        return self._table["database"]

    @property
    def directory(self) -> str:
        """The directory that knows its users. A domain that runs one active-directory."""
        return self._table["directory"]

    @property
    def workers(self) -> int:
        """How many requests it works at at once. Default: 50."""
        return self._table["workers"]

    @property
    def page_cpu(self) -> Duration:
        """CPU time of a page. Default: 20000 thousand cycles."""
        return Duration(self._table["page_cpu"])

    @property
    def change_cpu(self) -> Duration:
        """CPU time of creating a table, on top of the page that follows. Default: 20000 thousand cycles."""
        return Duration(self._table["change_cpu"])

    @property
    def upload_cpu(self) -> Duration:
        """CPU time of taking a document, on top of the page that follows. Default: 10000 thousand cycles."""
        return Duration(self._table["upload_cpu"])

    @property
    def queries(self) -> int:
        """How many queries a page takes. Default: 10."""
        return self._table["queries"]

    @property
    def changes(self) -> int:
        """How many rows creating a table writes. Default: 5."""
        return self._table["changes"]

    @property
    def logons(self) -> int:
        """Share of requests for which the directory checks the user. Default: 10."""
        return self._table["logons"]


class MssqlApp(App):
    """A database server that stores rows and documents, with a log that is on the disk before it answers.

    Its units are requests.
    """

    @property
    def workers(self) -> int:
        """How many requests it works at at once. Default: 255."""
        return self._table["workers"]

    @property
    def read_cpu(self) -> Duration:
        """CPU time of a query. Default: 600 thousand cycles."""
        return Duration(self._table["read_cpu"])

    @property
    def write_cpu(self) -> Duration:
        """CPU time of a change of rows. Default: 1000 thousand cycles."""
        return Duration(self._table["write_cpu"])

    @property
    def store_cpu(self) -> Duration:
        """CPU time to store a document of 100 KB. Default: 2000 thousand cycles."""
        return Duration(self._table["store_cpu"])

    @property
    def cached(self) -> int:
        """Share of queries that find their pages in memory. Default: 98."""
        return self._table["cached"]

    @property
    def data_size(self) -> Size:
        """Size of the database, over which those reads spread that go to the disk. Default: 4GiB."""
        return Size(self._table["data_size"])


_APPS: Mapping[str, type[App]] = {
    "hog": HogApp,
    "cpu-stress": CpuStressApp,
    "periodic": PeriodicApp,
    "spin": SpinApp,
    "kernel-build": KernelBuildApp,
    "tcp-sender": TcpSenderApp,
    "tcp-receiver": TcpReceiverApp,
    "iperf": IperfApp,
    "netperf": NetperfApp,
    "dd": DdApp,
    "iozone": IozoneApp,
    "oltp": OltpApp,
    "web-server": WebServerApp,
    "php-web": PhpWebApp,
    "mysql": MysqlApp,
    "nfs": NfsApp,
    "active-directory": ActiveDirectoryApp,
    "exchange": ExchangeApp,
    "moss": MossApp,
    "mssql": MssqlApp,
}


def _app(table: Mapping[str, Any]) -> App:
    return _APPS.get(table["kind"], App)(table)


class Phase(Table):
    """A phase of a script."""

    @property
    def loop(self) -> int:
        """Number of times to go through its events. Default: 1."""
        return self._table.get("loop", 1)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Events of the phase, in order."""
        return self._list("event", Event)


class Event(Table):
    """An event of a phase: exactly one of these fields."""

    @property
    def run(self) -> Duration | tuple[Duration, ...] | None:
        """Computes for this CPU time, however long that takes.

        A list is a distribution: its values are quantiles at equal distances, and a time is drawn for each
        event.
        """
        return self._optional("run", single_or_each(Duration))

    @property
    def runtime(self) -> Duration | None:
        """Computes until this time has passed, however much CPU time it gets meanwhile."""
        return self._optional("runtime", Duration)

    @property
    def sleep(self) -> Duration | tuple[Duration, ...] | None:
        """Sleeps for this time from now; or for a time drawn from a distribution, as for `run`."""
        return self._optional("sleep", single_or_each(Duration))

    @property
    def timer(self) -> Duration | None:
        """Sleeps until this time after the end of the last such sleep: keeps a period whatever the events in
        between take.
        """
        return self._optional("timer", Duration)

    @property
    def ticks(self) -> int | None:
        """Sleeps until the domain's kernel has had this number of ticks (`idle_tick`), as timeouts of Linux's
        kernel do.
        """
        return self._table.get("ticks")

    @property
    def lock(self) -> str | None:
        """Takes a lock; sleeps while another task of the domain has it."""
        return self._table.get("lock")

    @property
    def unlock(self) -> str | None:
        """Releases a lock."""
        return self._table.get("unlock")

    @property
    def suspend(self) -> str | None:
        """Waits until another task of the domain says `resume` or `signal` with the same name."""
        return self._table.get("suspend")

    @property
    def resume(self) -> str | None:
        """Wakes all tasks that wait by that name. Without waiting tasks it has no effect."""
        return self._table.get("resume")

    @property
    def signal(self) -> str | None:
        """Wakes the task that has waited longest by that name."""
        return self._table.get("signal")

    @property
    def wait(self) -> str | None:
        """Waits as `suspend` does, and releases the lock `mutex` meanwhile."""
        return self._table.get("wait")

    @property
    def mutex(self) -> str | None:
        """The lock that goes with `wait`."""
        return self._table.get("mutex")

    @property
    def barrier(self) -> str | None:
        """Waits until the number of tasks at this barrier is the number of times that the scripts of the domain
        name it.
        """
        return self._table.get("barrier")

    @property
    def notify(self) -> str | None:
        """Sends an event over a channel of that name, and wakes a task that waits there, in whatever domain.

        Events without a waiter are pending.
        """
        return self._table.get("notify")

    @property
    def await_(self) -> str | None:
        """Takes a pending event of a channel of that name, or waits for the next one."""
        return self._table.get("await")

    @property
    def done(self) -> bool | None:
        """Completes a unit of work. In a script without it a round of all phases is one unit."""
        return self._table.get("done")


class OpenLoopClient(Table):
    """Requests at a rate that does not depend on the answers."""

    @property
    def kind(self) -> Literal["open-loop"]:
        """`open-loop`."""
        return self._table["kind"]

    @property
    def server(self) -> str:
        """The domain with the service."""
        return self._table["server"]

    @property
    def app(self) -> str:
        """The application there, by its kind. Needed only where the domain runs several services."""
        return self._table["app"]

    @property
    def machine(self) -> str | None:
        """The client machine it runs on. Default: one without limits."""
        return self._table.get("machine")

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self._table["rate"]

    @property
    def regular(self) -> bool:
        """Whether requests come at regular intervals; if not, they come at random (a Poisson process).

        Default: `false`.
        """
        return self._table.get("regular", False)

    @cached_property
    def mix(self) -> tuple[Ask, ...]:
        """The requests: a list of kinds, or `"specweb99"` for the files of that benchmark.

        Default: all classes of the service, each as often as its documentation says.
        """
        return self._list("mix", Ask)

    @property
    def connections_max(self) -> int:
        """Most requests outstanding at once; further ones fail at the client. Default: 64."""
        return self._table.get("connections_max", 64)

    @property
    def timeout(self) -> Duration | None:
        """Time without an answer after which a request has failed. Default: none."""
        return self._optional("timeout", Duration)


class ClosedLoopClient(Table):
    """Users: each asks, waits for the answer, thinks, and asks again."""

    @property
    def kind(self) -> Literal["closed-loop"]:
        """`closed-loop`."""
        return self._table["kind"]

    @property
    def server(self) -> str:
        """The domain with the service."""
        return self._table["server"]

    @property
    def app(self) -> str:
        """The application there, by its kind. Needed only where the domain runs several services."""
        return self._table["app"]

    @property
    def machine(self) -> str | None:
        """The client machine it runs on. Default: one without limits."""
        return self._table.get("machine")

    @property
    def users(self) -> int:
        """Number of users."""
        return self._table["users"]

    @property
    def think(self) -> Duration:
        """Mean think time of a user, exponentially distributed. Default: none."""
        return Duration(self._table.get("think", "0ns"))

    @property
    def ramp_up(self) -> Duration:
        """Time within which the users begin, one after the other. Default: none."""
        return Duration(self._table.get("ramp_up", "0ns"))

    @cached_property
    def mix(self) -> tuple[Ask, ...]:
        """The requests: a list of kinds, or `"specweb99"` for the files of that benchmark.

        Default: all classes of the service, each as often as its documentation says.
        """
        return self._list("mix", Ask)

    @property
    def keep_alive(self) -> bool:
        """Whether a user keeps its connection from one request to the next. Default: `true`."""
        return self._table.get("keep_alive", True)

    @property
    def timeout(self) -> Duration | None:
        """Time without an answer after which a request has failed. Default: none."""
        return self._optional("timeout", Duration)

    @property
    def retries(self) -> int:
        """Most times that a failed request is tried again at once, before the user continues. Default: 0."""
        return self._table.get("retries", 0)


class StreamClient(Table):
    """Streams of packets."""

    @property
    def kind(self) -> Literal["stream"]:
        """`stream`."""
        return self._table["kind"]

    @property
    def server(self) -> str:
        """The domain with the receiver."""
        return self._table["server"]

    @property
    def app(self) -> str:
        """The application there, by its kind. Needed only where the domain runs several services."""
        return self._table["app"]

    @property
    def machine(self) -> str | None:
        """The client machine it runs on. Default: one without limits."""
        return self._table.get("machine")

    @property
    def streams(self) -> int:
        """Number of streams. Default: 1."""
        return self._table.get("streams", 1)

    @property
    def packet(self) -> Size:
        """Data in each packet; more than a segment is sent in several segments. Default: `1448B`."""
        return Size(self._table.get("packet", "1448B"))

    @property
    def gap(self) -> Duration:
        """Least time from one packet of a stream to the next; without it, the network alone decides. Default: none."""
        return Duration(self._table.get("gap", "0ns"))


Client = (
    OpenLoopClient
    | ClosedLoopClient
    | StreamClient
)
"""A client outside the host."""
_CLIENTS: Mapping[str, type[Client]] = {
    "open-loop": OpenLoopClient,
    "closed-loop": ClosedLoopClient,
    "stream": StreamClient,
}


def _client(table: Mapping[str, Any]) -> Client:
    return _CLIENTS[table["kind"]](table)


class Ask(Table):
    """A kind of requests that a client sends."""

    @property
    def class_(self) -> str:
        """Class of the requests. Default: the service's first."""
        return self._table["class"]

    @property
    def file_size(self) -> Size:
        """Size of the answer. Default: the class's."""
        return Size(self._table["file_size"])

    @property
    def weight(self) -> int:
        """Frequency relative to the client's other kinds of requests. Default: 1."""
        return self._table.get("weight", 1)


class ClientMachine(Table):
    """A machine that clients run on. The time it adds is part of response times, as a load generator measures them."""

    @property
    def bits_per_s(self) -> int:
        """Rate of its link in each direction, bits per second. Default: the NIC's of the hardware profile."""
        return self._table["bits_per_s"]

    @property
    def processors(self) -> int:
        """Number of processors. Default: 2."""
        return self._table.get("processors", 2)

    @property
    def request_cpu(self) -> Duration:
        """Time of a processor for a request before it is sent. Default: none."""
        return Duration(self._table.get("request_cpu", "0ns"))

    @property
    def packet_cpu(self) -> Duration:
        """Time of a processor for each packet, sent or received. Default: none."""
        return Duration(self._table.get("packet_cpu", "0ns"))

    @property
    def connections_max(self) -> int:
        """Most connections of its clients at once (ports, or file descriptors); further ones fail there.

        Default: 3976.
        """
        return self._table.get("connections_max", 3976)


class AdjustAction(Table):
    """Changes parameters of a domain."""

    _FIELDS = frozenset({
        "op", "at", "domain"
    })

    @property
    def op(self) -> Literal["adjust"]:
        """`adjust`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the scheduler, by name."""
        return self._params()


class AdjustGlobalAction(Table):
    """Changes global parameters of the scheduler."""

    _FIELDS = frozenset({
        "op", "at", "pool"
    })

    @property
    def op(self) -> Literal["adjust-global"]:
        """`adjust-global`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def pool(self) -> str:
        """The CPU pool of that scheduler. Default: `Pool-0`."""
        return self._table.get("pool", "Pool-0")

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """The given parameters of the scheduler, by name."""
        return self._params()


class PauseAction(Table):
    """Pauses a domain."""

    @property
    def op(self) -> Literal["pause"]:
        """`pause`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class UnpauseAction(Table):
    """Unpauses a domain."""

    @property
    def op(self) -> Literal["unpause"]:
        """`unpause`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class AffinityAction(Table):
    """Changes the affinity of a domain's vCPUs: hard, soft, or first hard and then soft."""

    @property
    def op(self) -> Literal["affinity"]:
        """`affinity`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]

    @property
    def vcpu(self) -> int | None:
        """The domain's vCPU, from 0. Default: all."""
        return self._table.get("vcpu")

    @property
    def affinity(self) -> str | None:
        """The pCPUs allowed from now on. Required, unless `soft_affinity` is given."""
        return self._table.get("affinity")

    @property
    def soft_affinity(self) -> str | None:
        """The pCPUs preferred from now on."""
        return self._table.get("soft_affinity")


class MovePoolAction(Table):
    """Moves a domain to another CPU pool: it has default parameters and no affinity there."""

    @property
    def op(self) -> Literal["move-pool"]:
        """`move-pool`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]

    @property
    def pool(self) -> str:
        """The pool it moves to."""
        return self._table["pool"]


class CreateAction(Table):
    """Creates a domain that has shut down or was destroyed, as the file describes it.

    (One that is created later for the first time has a `start`.)
    """

    @property
    def op(self) -> Literal["create"]:
        """`create`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class ShutdownAction(Table):
    """Asks a domain to shut down.

    Its guest does so within its `shutdown` time; then the toolstack destroys the domain.
    """

    @property
    def op(self) -> Literal["shutdown"]:
        """`shutdown`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class RebootAction(Table):
    """Asks a domain to reboot: it shuts down, is destroyed, and is created again, as the file describes it."""

    @property
    def op(self) -> Literal["reboot"]:
        """`reboot`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class CrashAction(Table):
    """Crashes a domain's guest. Its `on_crash` is the toolstack's answer."""

    @property
    def op(self) -> Literal["crash"]:
        """`crash`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class DestroyAction(Table):
    """Destroys a domain without asking its guest; of a saved one, its state."""

    @property
    def op(self) -> Literal["destroy"]:
        """`destroy`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class SaveAction(Table):
    """Takes a domain off the host, and keeps its state."""

    @property
    def op(self) -> Literal["save"]:
        """`save`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class RestoreAction(Table):
    """Puts a saved domain on the host again, with the pool, parameters and affinity of the file; its guest
    continues where it stopped.
    """

    @property
    def op(self) -> Literal["restore"]:
        """`restore`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]


class OnlineAction(Table):
    """Takes a vCPU online again."""

    @property
    def op(self) -> Literal["online"]:
        """`online`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]

    @property
    def vcpu(self) -> int:
        """The domain's vCPU. The first one, 0, is always online."""
        return self._table["vcpu"]


class OfflineAction(Table):
    """Takes a vCPU offline: its guest does without it."""

    @property
    def op(self) -> Literal["offline"]:
        """`offline`."""
        return self._table["op"]

    @property
    def at(self) -> Duration:
        """Time of the action since the host started, warm-up included."""
        return Duration(self._table["at"])

    @property
    def domain(self) -> str:
        """The domain."""
        return self._table["domain"]

    @property
    def vcpu(self) -> int:
        """The domain's vCPU. The first one, 0, is always online."""
        return self._table["vcpu"]


Action = (
    AdjustAction
    | AdjustGlobalAction
    | PauseAction
    | UnpauseAction
    | AffinityAction
    | MovePoolAction
    | CreateAction
    | ShutdownAction
    | RebootAction
    | CrashAction
    | DestroyAction
    | SaveAction
    | RestoreAction
    | OnlineAction
    | OfflineAction
)
"""An action of the administrator on the running host."""
_ACTIONS: Mapping[str, type[Action]] = {
    "adjust": AdjustAction,
    "adjust-global": AdjustGlobalAction,
    "pause": PauseAction,
    "unpause": UnpauseAction,
    "affinity": AffinityAction,
    "move-pool": MovePoolAction,
    "create": CreateAction,
    "shutdown": ShutdownAction,
    "reboot": RebootAction,
    "crash": CrashAction,
    "destroy": DestroyAction,
    "save": SaveAction,
    "restore": RestoreAction,
    "online": OnlineAction,
    "offline": OfflineAction,
}


def _action(table: Mapping[str, Any]) -> Action:
    return _ACTIONS[table["op"]](table)


class Model(Table):
    """A host, the domains on it, what they run, and the clients around it."""

    @property
    def name(self) -> str:
        """Title of the scenario, for people. Default: `unnamed`."""
        return self._table.get("name", "unnamed")

    @property
    def seed(self) -> int:
        """The seed of all random numbers. The same seed gives the same results, byte for byte. Default: 1."""
        return self._table.get("seed", 1)

    @cached_property
    def run(self) -> Run:
        """The length of a run, and the number of its replications."""
        return Run(self._table["run"])

    @cached_property
    def host(self) -> Host:
        """The machine and its CPU scheduler."""
        return Host(self._table["host"])

    @cached_property
    def nics(self) -> Mapping[str, Nic]:
        """NICs, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one."""
        return self._named("nic", Nic)

    @cached_property
    def disks(self) -> Mapping[str, Disk]:
        """Disks, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one."""
        return self._named("disk", Disk)

    @cached_property
    def pools(self) -> Mapping[str, Pool]:
        """CPU pools besides `Pool-0`, by name. All other pCPUs are in `Pool-0`, whose scheduler is the host's."""
        return self._named("pool", Pool)

    @cached_property
    def cgroups(self) -> Mapping[str, Cgroup]:
        """The control groups of a KVM host besides those that its VMs and daemons have, by path from the root
        group.

        Groups around them, and those that domains name, need not be given: they are new groups then.
        """
        return self._named("cgroup", Cgroup)

    @cached_property
    def domains(self) -> Mapping[str, Domain]:
        """The domains (virtual machines) by name.

        `dom0` is domain number 0; the others are numbered from 1 in the order of the file.
        """
        return self._named("domain", Domain)

    @cached_property
    def clients(self) -> Mapping[str, Client]:
        """The clients outside the host, by name."""
        return self._named("client", _client)

    @cached_property
    def client_machines(self) -> Mapping[str, ClientMachine]:
        """The machines that clients run on, by name. A client that names none runs on one without limits."""
        return self._named("client_machine", ClientMachine)

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The administrator's actions while the host runs."""
        return self._list("action", _action)
