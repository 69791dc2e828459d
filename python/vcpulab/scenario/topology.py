"""The topology of a host: pCPUs that are threads of a core, sockets, and nodes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from vcpulab.scenario.model import Host


@dataclass(frozen=True)
class Topology:
    """The map of a host: each pCPU's core, socket and node."""

    sockets: int
    cores: int
    """The number of cores of each socket."""
    threads: int
    """The number of threads of each core."""
    nodes: int
    """The number of nodes of the host."""
    adjacent: bool = True
    """`True`: the threads of a core have consecutive numbers; `False`: all first threads come first."""

    @classmethod
    def from_host(cls, host: Host) -> Self:
        """The topology of a host; if it has none, each pCPU is a core of its own, in one node.

        Examples:
            >>> Topology.from_host(Host({"pcpus": 4}))
            Topology(sockets=1, cores=4, threads=1, nodes=1, adjacent=True)
        """
        given = host.topology
        if given is None:
            return cls(1, host.pcpus, 1, 1)
        return cls(given.sockets, given.cores, given.threads, given.nodes, given.numbering == "adjacent")

    def __str__(self) -> str:
        """The topology in words, without units of which there is one, and without threads if cores have one.

        Examples:
            >>> print(Topology(2, 16, 2, 2)), print(Topology(1, 8, 2, 1)), print(Topology(2, 4, 1, 2))
            64 threads on 32 cores, 2 sockets, 2 nodes
            16 threads on 8 cores
            8 cores, 2 sockets, 2 nodes
            (None, None, None)
        """
        cores = self.sockets * self.cores
        counts = ((cores, "core"), (self.sockets, "socket"), (self.nodes, "node"))
        parts = [f"{count} {unit}{'s' * (count > 1)}" for count, unit in counts if count > 1 or unit == "core"]
        threads = f"{self.pcpus} threads on " if self.threads > 1 else ""
        return threads + ", ".join(parts)

    @property
    def is_flat(self) -> bool:
        """`True`: each pCPU is a core of its own, in one socket and node."""
        return (self.sockets, self.threads, self.nodes) == (1, 1, 1)

    @property
    def pcpus(self) -> int:
        """The number of threads."""
        return self.sockets * self.cores * self.threads

    def core(self, pcpu: int) -> int:
        """The core of a pCPU."""
        return pcpu // self.threads if self.adjacent else pcpu % (self.sockets * self.cores)

    def socket(self, pcpu: int) -> int:
        """The socket of a pCPU."""
        return self.core(pcpu) // self.cores

    def node(self, pcpu: int) -> int:
        """The node of a pCPU.

        Examples:
            >>> [Topology(2, 2, 2, 2).node(pcpu) for pcpu in range(8)]
            [0, 0, 0, 0, 1, 1, 1, 1]
            >>> [Topology(1, 4, 1, 2).node(pcpu) for pcpu in range(4)]
            [0, 0, 1, 1]
        """
        socket, inside = divmod(self.core(pcpu), self.cores)
        if self.nodes <= self.sockets:
            return socket * self.nodes // self.sockets
        of_socket = self.nodes // self.sockets
        return socket * of_socket + inside * of_socket // self.cores

    def by_core(self, pcpus: Iterable[int] | None = None) -> dict[int, list[int]]:
        """The given pCPUs, or all, by their core, each list in ascending order."""
        return self._by(self.core, pcpus)

    def by_node(self, pcpus: Iterable[int] | None = None) -> dict[int, list[int]]:
        """The given pCPUs, or all, by their node, each list in ascending order."""
        return self._by(self.node, pcpus)

    def _by(self, key: Callable[[int], int], pcpus: Iterable[int] | None) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for pcpu in sorted(range(self.pcpus) if pcpus is None else pcpus):
            groups.setdefault(key(pcpu), []).append(pcpu)
        return dict(sorted(groups.items()))
