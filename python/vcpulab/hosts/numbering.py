"""The numbering of a Linux host's CPUs, from the CPUs of each node in `lscpu` and the counts of cores and threads.

Firmware numbers CPUs in a few usual orders. Often the nodes' lists fit only one of them: with 2 sockets of 8 cores of 2
threads, `0-7,16-23` is the first node where threads of a core are 16 apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vcpulab.formats.virsh import numbers_of
from vcpulab.formats.xl_info import Cpu


@dataclass(frozen=True)
class Numbered:
    """CPUs in one of the usual orders."""

    cpus: list[Cpu]
    certain: bool
    """`True`: all usual numberings that fit have the same CPUs in a core."""


def nodes_of(fields: Mapping[str, str]) -> list[frozenset[int]]:
    """The CPUs of each node that has any, as `lscpu` lists them.

    Examples:
        >>> nodes_of({"node0_cpus": "0,2", "node1_cpus": "1,3", "node2_cpus": "", "nr_cpus": "4"})
        [frozenset({0, 2}), frozenset({1, 3})]
    """
    lists = [numbers_of(text) for name, text in fields.items() if name.startswith("node") and name.endswith("_cpus")]
    return [frozenset(numbers) for numbers in lists if numbers]


def numbered(sockets: int, cores: int, threads: int, nodes: list[frozenset[int]]) -> Numbered | None:
    """The CPUs in the usual order that has these nodes; `None`: none has them.

    Args:
        sockets: their number.
        cores: of each socket.
        threads: of each core.
        nodes: the CPUs of each.

    Examples:
        >>> two = [frozenset((0, 1, 4, 5)), frozenset((2, 3, 6, 7))]
        >>> found = numbered(2, 2, 2, two)
        >>> [(cpu.cpu, cpu.socket, cpu.core) for cpu in found.cpus][::4], found.certain
        ([(0, 0, 0), (4, 0, 0)], True)
        >>> numbered(1, 4, 2, [frozenset(range(8))]).certain
        False
    """
    fits = [cpus for cpus in _usual(sockets, cores, threads, len(nodes)) if _nodes(cpus) == set(nodes)]
    if not fits:
        return None
    return Numbered(fits[0], certain=len({_cores(cpus) for cpus in fits}) == 1)


def _usual(sockets: int, cores: int, threads: int, nodes: int) -> Iterator[list[Cpu]]:
    """The usual orders: which core each CPU is a thread of, and which socket and node each core is in."""
    in_all = sockets * cores
    cpus = range(in_all * threads)
    places = (
        [divmod(cpu // threads, cores) for cpu in cpus],
        [divmod(cpu % in_all, cores) for cpu in cpus],
        [(cpu % in_all % sockets, cpu % in_all // sockets) for cpu in cpus],
        [(cpu // (cores * threads), cpu % cores) for cpu in cpus],
    )
    for order in places:
        for nodes_in_turn in (False, True):
            shape = (sockets, cores, nodes)
            yield [
                Cpu(cpu, place, socket, _node(socket, place, shape, in_turn=nodes_in_turn))
                for cpu, (socket, place) in enumerate(order)
            ]


def _node(socket: int, place: int, shape: tuple[int, int, int], *, in_turn: bool) -> int:
    """The node of a core: several nodes in a socket have its cores in rows or in turn."""
    sockets, cores, nodes = shape
    if nodes <= sockets:
        return socket * nodes // sockets
    in_socket = nodes // sockets
    return socket * in_socket + (place % in_socket if in_turn else place * in_socket // cores)


def _nodes(cpus: list[Cpu]) -> set[frozenset[int]]:
    return _grouped((cpu.node, cpu.cpu) for cpu in cpus)


def _cores(cpus: list[Cpu]) -> frozenset[frozenset[int]]:
    return frozenset(_grouped(((cpu.socket, cpu.core), cpu.cpu) for cpu in cpus))


def _grouped(pairs: Iterator[tuple[object, int]]) -> set[frozenset[int]]:
    groups: dict[object, set[int]] = {}
    for key, cpu in pairs:
        groups.setdefault(key, set()).add(cpu)
    return set(map(frozenset, groups.values()))
