"""Which pCPUs are threads of one core, and which are of one node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Topology:
    """The map of a host: each pCPU's core, socket and node."""

    sockets: int
    cores: int
    """Of each socket."""
    threads: int
    """Of each core."""
    nodes: int
    """Of the host."""
    adjacent: bool = True
    """Do the threads of a core have numbers beside each other? Otherwise all first threads come first."""

    @classmethod
    def of(cls, host: Mapping[str, Any]) -> Self:
        """That of a complete scenario's `host` table; without one each pCPU is a core of its own, in one node.

        Examples:
            >>> Topology.of({"pcpus": 4})
            Topology(sockets=1, cores=4, threads=1, nodes=1, adjacent=True)
        """
        given = host.get("topology")
        if not given:
            return cls(1, int(host["pcpus"]), 1, 1)
        sizes = (int(given[name]) for name in ("sockets", "cores", "threads", "nodes"))
        return cls(*sizes, given["numbering"] == "adjacent")

    @property
    def pcpus(self) -> int:
        """How many threads there are."""
        return self.sockets * self.cores * self.threads

    def core(self, pcpu: int) -> int:
        """The core of a pCPU."""
        return pcpu // self.threads if self.adjacent else pcpu % (self.sockets * self.cores)

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
        """These pCPUs, or all, in ascending order, by their core."""
        return self._by(self.core, pcpus)

    def by_node(self, pcpus: Iterable[int] | None = None) -> dict[int, list[int]]:
        """The same by their node."""
        return self._by(self.node, pcpus)

    def _by(self, key: Any, pcpus: Iterable[int] | None) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for pcpu in sorted(range(self.pcpus) if pcpus is None else pcpus):
            found.setdefault(key(pcpu), []).append(pcpu)
        return dict(sorted(found.items()))
