"""The host of a scenario as stations, and the paths of packets and disk requests through it.

Costs and steps are those of the simulator (`crates/io/src/machine`), constants those of the scenario's profile. Costs
that a good schedule can avoid are left out, since bounds must hold for the best schedule: upcalls and interrupts (a
busy vCPU needs none), context switches, cold caches, cache lines that move between vCPUs.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from vcpulab.advice.bounds.cpus import Cpus
from vcpulab.advice.bounds.model import Station
from vcpulab.advice.bounds.packets import OFFLOADED_SEGMENTS, Packet
from vcpulab.errors import VcpulabError
from vcpulab.scenario.model import Netfront, VirtualDisk
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.units import Duration

PAGE_BYTES = 4096
_RING_REQUEST_BYTES = 11 * PAGE_BYTES
"""Largest request through a ring."""
_STRAIGHT_REQUEST_BYTES = 512 << 10
"""Largest request of a domain that owns the disk."""


class Stage(NamedTuple):
    """A step on a path."""

    stations: tuple[str, ...]
    """Stations that serve the step at the same time; none: a delay."""
    ns: float


class Party(NamedTuple):
    """An end of a connection: a domain, or a client outside the host, with or without a client machine."""

    domain: str | None = None
    machine: str | None = None


class NotModelledError(VcpulabError):
    """A path through the host that the model leaves out."""


class Host:
    """Stations and paths of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario.model
        self.domains = scenario.domains
        self.machines = self.scenario.client_machines
        self.costs = scenario.host.costs
        self.warmup_s = scenario.warmup_ns * 1e-9
        self.bare = scenario.host.bare_metal
        self.in_hypervisor = scenario.host.drivers == "hypervisor"
        self.stations: dict[str, Station] = {}
        """The stations that were used, by name."""
        self._cpus = Cpus(self.scenario, self.stations)
        self._threads = bool(self.costs.backend_threads) and not self._cpus.in_turn
        self._paths: dict[tuple[Party, Party, Packet], list[Stage]] = {}
        self._nics = self._devices("nic")
        self._disks = self._devices("disk")

    # ---- devices ----

    def _devices(self, kind: Literal["nic", "disk"]) -> dict[str, tuple[str | None, int]]:
        """NICs or disks by name: the owner of each (`None`: the hypervisor), and the vCPU that takes its interrupts."""
        given = self.scenario.nics if kind == "nic" else self.scenario.disks
        if given:
            owner = next(iter(self.domains)) if self.bare else None
            return {name: (device.driver_domain or owner, device.vcpu or 0) for name, device in given.items()}
        if self.bare:
            return {kind: (next(iter(self.domains)), 0)}
        if self.in_hypervisor:
            return {kind: (None, 0)}
        # A stub domain reaches devices through another domain.
        owners = [
            name
            for name, domain in self.domains.items()
            if domain.driver_domain and _behind(domain.nic if kind == "nic" else domain.disk) is None
        ]
        return {(kind if len(owners) == 1 else f"{kind} of {owner}"): (owner, 0) for owner in owners}

    def _first(self, devices: Mapping[str, tuple[str | None, int]], owner: str | None) -> str:
        for name, (device_owner, _) in devices.items():
            if device_owner == owner:
                return name
        raise NotModelledError(f"a device of `{owner}`")

    def _driver(self, domain: str) -> str | None:
        """The domain whose netback carries a domain's packets."""
        return _behind(self.domains[domain].nic)

    def _up(self, domain: str) -> list[str]:
        """A domain and the driver domains between it and the link."""
        chain = [domain]
        while (driver := self._driver(chain[-1])) is not None:
            chain.append(driver)
        return chain

    def _nic(self, domain: str) -> str:
        """The NIC that sends a domain's packets."""
        nic = self.domains[domain].nic
        if nic is not None and nic.device is not None:
            return nic.device
        return self._first(self._nics, None if self.in_hypervisor else self._up(domain)[-1])

    def segments_max(self, domain: str | None) -> int:
        """Most segments in one packet from a domain, or from a client (`None`)."""
        nic = None if domain is None else self.domains[domain].nic
        return OFFLOADED_SEGMENTS if nic is not None and nic.tso else 1

    # ---- stations ----

    def _station(self, station: Station) -> str:
        self.stations.setdefault(station.name, station)
        return station.name

    def tasks(self, domain: str, kind: str, count: int) -> str:
        """The station of an application's tasks, each of which works at one unit at a time."""
        return self._station(Station(f"{domain}: {kind} tasks", "tasks", count))

    # ---- the network ----

    def _stack(self, domain: str) -> tuple[int, int, int]:
        """Costs of a domain's network stack: a packet received and a packet sent, ns, and a byte, ps."""
        costs, nic = self.costs, self.domains[domain].nic
        owns = self.bare or (self.domains[domain].driver_domain and nic is None)
        receive, send = costs.stack_receive_ns, costs.stack_send_ns
        if not owns:
            receive += costs.frontend_receive_ns
            send += costs.frontend_send_ns
            send += costs.nic_send_ns + costs.grant_ns if self.in_hypervisor else 0
        offloads = nic is None or nic.checksum_offload
        return receive, send, costs.network_byte_ps + (0 if offloads else costs.checksum_byte_ps)

    def _forwarding(self, domain: str) -> int:
        return self.costs.route_ns if self.domains[domain].forwarding == "routing" else self.costs.bridge_ns

    def _emulation(self, domain: str) -> int:
        return self.costs.emulation_ns if self._is_emulated(domain) else 0

    def _is_emulated(self, domain: str) -> bool:
        """`True`: a domain's network interface is emulated."""
        nic = self.domains[domain].nic
        return nic is not None and nic.emulated

    def _into_ring(self, driver: str, behind: str) -> int:
        """Cost in a driver domain of a packet for the domain behind it, ns."""
        costs = self.costs
        handing = costs.backend_receive_ns + costs.page_exchange_ns
        return self._forwarding(driver) + handing + self._emulation(behind)

    def _netback(self, domain: str) -> int:
        """The vCPU of the driver domain that runs a domain's netback."""
        nic = self.domains[domain].nic
        return 0 if nic is None else nic.driver_vcpu or 0

    def _nic_vcpu(self, domain: str) -> int:
        nic = self.domains[domain].nic
        return self._nics.get(self._nic(domain), (None, 0))[1] if nic is None else nic.vcpu

    def _loopback(self, domain: str, packet: Packet) -> Iterator[Stage]:
        """The path of a packet between two tasks of a domain."""
        _, _, byte_ps = self._stack(domain)
        ns = self.costs.stack_receive_ns + self.costs.stack_send_ns + packet.data * byte_ps / 1000
        yield Stage(self._cpus.stations(domain), ns)

    def _climb(self, domain: str, packet: Packet, top: str | None) -> Iterator[Stage]:
        """The path from a domain up to `top`, without the work of `top`; `None`: to the link."""
        costs = self.costs
        for below, at in zip([None, *self._up(domain)], self._up(domain), strict=False):
            if at == top:
                return
            if below is not None:
                back_end = costs.backend_send_ns + costs.grant_ns + self._forwarding(at)
                back_end += self._emulation(below)
                if self._driver(at) is None:
                    back_end += costs.nic_send_ns
                yield Stage(self._cpus.stations(at, self._netback(below), packet=True), back_end)
                if self._driver(at) is None:
                    return
            _, send, byte_ps = self._stack(at)
            own = send + packet.data * byte_ps / 1000
            if self._driver(at) is None and not self.in_hypervisor:
                own += costs.nic_send_ns
            yield Stage(self._cpus.stations(at), own)

    def _descend(self, domain: str, packet: Packet, top: str) -> Iterator[Stage]:
        """The path from the ring behind `top` down to a domain."""
        chain = self._up(domain)
        for at, behind in [(chain[i], chain[i - 1]) for i in range(chain.index(top) - 1, 0, -1)]:
            receive, _, byte_ps = self._stack(at)
            ns = receive + packet.data * byte_ps / 1000 + self._into_ring(at, behind)
            yield Stage(self._cpus.stations(at, self._nic_vcpu(at)), ns)
        receive, _, byte_ps = self._stack(domain)
        yield Stage(self._cpus.stations(domain, self._nic_vcpu(domain)), receive + packet.data * byte_ps / 1000)

    def _link(self, nic: str, direction: str, packet: Packet) -> Iterator[Stage]:
        bits_per_s = self.costs.nic_bits_per_s
        station = self._station(Station(f"{nic}: link {direction}", "link", 1))
        yield Stage((station,), max(1, packet.line_bytes * 8 * 1_000_000_000 // bits_per_s))
        yield Stage((), self.costs.link_latency_ns)

    def _from_link(self, domain: str, packet: Packet) -> Iterator[Stage]:
        costs, nic = self.costs, self._nic(domain)
        yield from self._link(nic, "in", packet)
        owner, vcpu = self._nics[nic]
        if owner is None:
            # The hypervisor's driver runs on a pCPU of the domain, but the time is charged to no vCPU.
            yield Stage(self._cpus.pool(domain), costs.nic_receive_ns + costs.bridge_ns + costs.page_exchange_ns)
            receive, _, byte_ps = self._stack(domain)
            yield Stage(self._cpus.stations(domain, self._nic_vcpu(domain)), receive + packet.data * byte_ps / 1000)
        elif owner == domain:
            receive, _, _ = self._stack(domain)
            yield Stage(self._cpus.stations(domain, vcpu, packet=True), costs.nic_receive_ns + receive)
        else:
            chain = self._up(domain)
            behind = chain[chain.index(owner) - 1]
            into_ring, netback_vcpu = self._into_ring(owner, behind), self._netback(behind)
            if netback_vcpu == vcpu or not self._threads:
                yield Stage(self._cpus.stations(owner, vcpu, packet=True), costs.nic_receive_ns + into_ring)
            else:
                # The vCPU of the interrupt passes the packet to the netback's thread.
                yield Stage(self._cpus.stations(owner, vcpu), costs.nic_receive_ns + self._forwarding(owner))
                ns = into_ring - self._forwarding(owner) + costs.bounce_ns
                yield Stage(self._cpus.stations(owner, netback_vcpu), ns)
            yield from self._descend(domain, packet, owner)

    def _between(self, sender: str, receiver: str, packet: Packet) -> Iterator[Stage]:
        """The path from one domain to another."""
        up, down = self._up(sender), self._up(receiver)
        common = next((at for at in up if at in down), None)
        if common is None:
            yield from self._climb(sender, packet, None)
            yield from self._link(self._nic(sender), "out", packet)
            yield from self._from_link(receiver, packet)
            return
        if common == sender:
            if self._driver(sender) is not None:
                raise NotModelledError(f"packets from `{sender}` to `{receiver}`, which is behind it")
            _, send, byte_ps = self._stack(sender)
            behind = down[down.index(sender) - 1]
            ns = send + self.costs.nic_send_ns + packet.data * byte_ps / 1000 + self._into_ring(sender, behind)
            yield Stage(self._cpus.stations(sender), ns)
        else:
            yield from self._climb(sender, packet, common)
            below = up[up.index(common) - 1]
            ns = self.costs.backend_send_ns + self.costs.grant_ns + self._forwarding(common)
            ns += self._emulation(below)
            vcpu = to_vcpu = self._netback(below)
            delivery = self.costs.backend_receive_ns + self.costs.page_exchange_ns
            if common == receiver:
                ns += self._stack(receiver)[0]
            else:
                to_vcpu = self._netback(down[down.index(common) - 1])
                ns += delivery if to_vcpu == vcpu or not self._threads else 0
            yield Stage(self._cpus.stations(common, vcpu, packet=True), ns)
            if to_vcpu != vcpu and self._threads:
                yield Stage(self._cpus.stations(common, to_vcpu), delivery + self.costs.bounce_ns)
        if common != receiver:
            yield from self._descend(receiver, packet, common)

    # ---- client machines ----

    def request_made(self, machine: str | None) -> Iterator[Stage]:
        """The work of a request on the machine that makes it."""
        if machine is not None:
            yield self._processors(machine, self.machines[machine].request_cpu)

    def _processors(self, machine: str, span: Duration) -> Stage:
        count = self.machines[machine].processors
        return Stage((self._station(Station(f"{machine}: processors", "client machine", count)),), span.ns)

    def _client_packet(self, machine: str | None, direction: str, packet: Packet) -> Iterator[Stage]:
        if machine is None:
            return
        rate = self.machines[machine].bits_per_s
        station = self._station(Station(f"{machine}: link {direction}", "link", 1))
        yield self._processors(machine, self.machines[machine].packet_cpu)
        yield Stage((station,), max(1, packet.line_bytes * 8 * 1_000_000_000 // rate))

    # ---- whole paths ----

    def path(self, sender: Party, receiver: Party, packet: Packet) -> list[Stage]:
        """The path of a packet from one party to another.

        Raises:
            NotModelledError: the model leaves the path out.
        """
        key = (sender, receiver, packet)
        if key not in self._paths:
            self._paths[key] = list(self._path(*key))
        return self._paths[key]

    def _has_network(self, domain: str) -> bool:
        """Can packets of a domain reach another domain or a client?"""
        return self.bare or self.domains[domain].nic is not None or self.domains[domain].driver_domain

    def _path(self, sender: Party, receiver: Party, packet: Packet) -> Iterator[Stage]:
        cut_off = [party.domain for party in (sender, receiver) if party.domain and not self._has_network(party.domain)]
        if cut_off and sender != receiver:
            raise NotModelledError(f"packets of `{cut_off[0]}`, which has no network interface")
        if sender.domain is None and receiver.domain is None:
            raise NotModelledError("packets that never reach the host")
        if sender.domain is None:
            yield from self._client_packet(sender.machine, "up", packet)
            yield from self._from_link(str(receiver.domain), packet)
        elif receiver.domain is None:
            yield from self._climb(sender.domain, packet, None)
            yield from self._link(self._nic(sender.domain), "out", packet)
            yield from self._client_packet(receiver.machine, "down", packet)
        elif sender.domain == receiver.domain:
            yield from self._loopback(sender.domain, packet)
        else:
            yield from self._between(sender.domain, receiver.domain, packet)

    def compute(self, domain: str, ns: float, *further: str) -> Stage:
        """CPU time of tasks of a domain."""
        return Stage((*self._cpus.stations(domain), *further), ns)

    def page_faults(self, count: int) -> int:
        """Time of this many page faults, ns."""
        return 0 if self.bare else count * self.costs.page_fault_ns

    def disk_access(self, domain: str, size: int, *further: str) -> Iterator[tuple[Stage, float]]:
        """An access that bypasses the page cache: requests, and the transfer at the disk's rate, without a seek.

        Returns:
            Each stage, with the fraction of it that no other stage of the access can overlap: one request's.

        Raises:
            NotModelledError: the disk is emulated, or behind a stub domain.
        """
        costs, virtual = self.costs, self.domains[domain].disk
        driver = _behind(virtual)
        emulated = virtual is not None and virtual.emulated
        if emulated or (driver is not None and self.domains[driver].disk is not None):
            raise NotModelledError(f"the disk of `{domain}`, which is emulated or behind a stub domain")
        split = self._is_split(domain)
        owner = driver if split else domain
        named = None if virtual is None else virtual.device
        disk = named or self._first(self._disks, None if self.in_hypervisor else owner)
        requests = self._requests(domain, size)
        yield self.compute(domain, requests * (costs.block_request_ns + costs.block_response_ns)), 1 / requests
        if split and driver is not None:
            pages = -(-size // PAGE_BYTES)
            ns = requests * (costs.blockback_request_ns + costs.blockback_response_ns)
            yield Stage(self._cpus.stations(driver, self._disks[disk][1]), ns + pages * costs.grant_ns), 0.0
        yield self._transfer(disk, size, *further), 1.0

    def _requests(self, domain: str, size: int) -> int:
        """The number of requests of an access of this size."""
        return -(-size // (_RING_REQUEST_BYTES if self._is_split(domain) else _STRAIGHT_REQUEST_BYTES))

    def _is_split(self, domain: str) -> bool:
        """`True`: requests of a domain pass a ring."""
        return not self.bare and self.domains[domain].disk is not None

    def _transfer(self, disk: str, size: int, *further: str) -> Stage:
        flash = disk in self.scenario.disks and self.scenario.disks[disk].kind == "ssd"
        rate = self.costs.constant("ssd_bytes_per_s" if flash else "disk_bytes_per_s")
        name = disk if disk.startswith("disk") else f"disk {disk}"
        station = self._station(Station(name, "disk", 1))
        return Stage((station, *further), size * 1_000_000_000 // rate)


def _behind(device: Netfront | VirtualDisk | None) -> str | None:
    """The driver domain of a domain's device."""
    return None if device is None else device.driver_domain
