"""A KVM host as stations: packets and disk requests go through its kernel and through a thread of each device.

Interrupts use a pCPU and are charged to no vCPU. A vhost, emulator or I/O thread does one thing at a time, in its own
CPU time. Exits are left out, as interrupts are under Xen: a busy vCPU needs none.
"""

from collections.abc import Iterator
from typing import Literal

from vcpulab.advice.bounds.host import Host, NotModelledError, Stage
from vcpulab.advice.bounds.model import Station
from vcpulab.advice.bounds.packets import Packet
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.threads import Kind, host_threads


class KvmHost(Host):
    """Stations and paths of a scenario with KVM."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._serving = {(thread.domain, thread.kind): thread for thread in host_threads(self.scenario)}

    def _devices(self, kind: Literal["nic", "disk"]) -> dict[str, tuple[str | None, int]]:
        return dict.fromkeys((self.scenario.nics if kind == "nic" else self.scenario.disks) or [kind], (None, 0))

    def _nic(self, domain: str) -> str:
        nic = self.domains[domain].nic
        return self._first(self._nics, None) if nic is None or nic.device is None else nic.device

    def _thread(self, domain: str, device: str, ns: float) -> Stage:
        """Work of the thread that serves a device of a VM, one thing at a time."""
        kinds: tuple[Kind, ...] = ("vhost", "emulator") if device == "nic" else ("iothread", "emulator")
        thread = next(self._serving[domain, kind] for kind in kinds if (domain, kind) in self._serving)
        station = self._station(Station(str(thread), "thread", 1, domain))
        return Stage((station, *self._cpus.pool(domain)), ns)

    def _vhost(self, domain: str, packet: Packet, direction: str) -> Stage:
        if self._is_emulated(domain):
            raise NotModelledError(f"the network interface of `{domain}`, which is emulated")
        copied = packet.data * self.costs.copy_byte_ps / 1000
        return self._thread(domain, "nic", self.costs.constant(f"kvm_vhost_{direction}_ns") + copied)

    def _received(self, domain: str, packet: Packet) -> Iterator[Stage]:
        yield self._vhost(domain, packet, "receive")
        receive, _, byte_ps = self._stack(domain)
        yield Stage(self._cpus.stations(domain), receive + packet.data * byte_ps / 1000)

    def _sent(self, domain: str, packet: Packet) -> Iterator[Stage]:
        _, send, byte_ps = self._stack(domain)
        yield Stage(self._cpus.stations(domain), send + packet.data * byte_ps / 1000)
        yield self._vhost(domain, packet, "send")
        yield self._thread(domain, "nic", self.costs.bridge_ns)

    def _climb(self, domain: str, packet: Packet, top: str | None) -> Iterator[Stage]:
        yield from self._sent(domain, packet)
        if top is None:
            yield self._thread(domain, "nic", self.costs.nic_send_ns)

    def _from_link(self, domain: str, packet: Packet) -> Iterator[Stage]:
        yield from self._link(self._nic(domain), "in", packet)
        costs = self.costs
        kernel = costs.nic_receive_ns + costs.bridge_ns + costs.kvm_tap_ns
        yield Stage(self._cpus.pool(domain), kernel)
        yield from self._received(domain, packet)

    def _between(self, sender: str, receiver: str, packet: Packet) -> Iterator[Stage]:
        yield from self._sent(sender, packet)
        yield from self._received(receiver, packet)

    def disk_access(self, domain: str, size: int, *further: str) -> Iterator[tuple[Stage, float]]:
        """An access as on any host; requests go through a thread, and the kernel completes them in its own time."""
        costs, requests = self.costs, self._requests(domain, size)
        virtual = self.domains[domain].disk
        if virtual is not None and virtual.emulated:
            raise NotModelledError(f"the disk of `{domain}`, which is emulated")
        yield self.compute(domain, requests * (costs.block_request_ns + costs.block_response_ns)), 1 / requests
        served = costs.kvm_disk_request_ns + costs.kvm_disk_response_ns
        yield self._thread(domain, "disk", requests * served), 0.0
        yield Stage(self._cpus.pool(domain), requests * costs.kvm_disk_complete_ns), 0.0
        named = None if virtual is None else virtual.device
        disk = named or self._first(self._disks, None)
        yield self._transfer(disk, size, *further), 1.0
