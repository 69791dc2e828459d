"""The map from a host's CPUs to a scenario's pCPUs and their topology, from `xl info -n`."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcpulab.formats.virsh import numbers_of
from vcpulab.formats.xl_info import Cpu, Info
from vcpulab.hosts.numbering import nodes_of, numbered
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import pcpu_set, spans

_PARTS_MOST = 1024
"""The most parts of a set of CPUs that is read; a host has fewer CPUs."""
_SHOWN = 80
"""The most characters of a set of CPUs in a note."""
_LISTED = re.compile(r"all|\d{1,4}(-\d{1,4})?")


@dataclass(frozen=True)
class PcpuMap:
    """The pCPUs of a scenario, and their numbers on the host."""

    numbers: tuple[int, ...]
    """The number on the host of each pCPU."""
    topology: Topology
    nodes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The host's nodes to the host's numbers of their CPUs; in the order of the scenario's nodes."""

    numbered: bool = True
    """`True`: the host's numbers of its CPUs are known; else no set of CPUs can be translated."""
    even: bool = True
    """`True`: all cores have the same number of threads, and all sockets the same number of cores."""

    @property
    def pcpus(self) -> int:
        """The number of pCPUs."""
        return len(self.numbers)

    @property
    def renumbered(self) -> bool:
        """`True`: some pCPU has another number than on the host."""
        return self.numbers != tuple(range(self.pcpus))

    def of_host(self, listed: str) -> str | None:
        """A set of the host's CPUs, such as `0-3,^1` or `nodes:1`, as a scenario has it; `None`: it names none.

        Examples:
            >>> four = Topology(1, 4, 1, 1)
            >>> PcpuMap((0, 2, 4, 6), four).of_host("2-5"), PcpuMap((0, 1, 2, 3), four).of_host("0-3")
            ('1-2', 'all')
            >>> PcpuMap((0, 1, 2, 3), four, {0: frozenset((0, 1)), 1: frozenset((2, 3))}).of_host("nodes:1,^3")
            '2'
        """
        if not self.numbered and listed != "all":
            return None
        named: set[int] = set()
        if listed.count(",") >= _PARTS_MOST:
            return None
        for part in listed.replace(" ", "").split(","):
            word = part.removeprefix("^")
            by_node = re.fullmatch(r"nodes?:(.+)", word)
            text = by_node[1] if by_node else word
            if not _LISTED.fullmatch(text):
                return None
            numbers = pcpu_set(text, max([*self.numbers, *self.nodes]) + 1)
            if by_node:
                numbers = frozenset(cpu for node in numbers for cpu in self.nodes.get(node, ()))
            named = named - numbers if part.startswith("^") else named | numbers
        pcpus = [pcpu for pcpu, number in enumerate(self.numbers) if number in named]
        return "all" if len(pcpus) == self.pcpus else spans(pcpus) or None

    def set_of(self, listed: str, owner: str, notes: list[str]) -> str:
        """The set of pCPUs as `of_host` translates it; a set that cannot be translated becomes `all` and a note.

        Args:
            listed: the set, in the host's numbers.
            owner: the setting that has the set, for notes.
            notes: receives a note for each set, or part of a set, that is left out.

        Examples:
            >>> notes = []
            >>> flat(4).set_of("8", "affinity of web", notes), notes
            ('all', ['affinity of web: `8` names no CPU that is online here; left out'])
        """
        pcpus = self.of_host(listed)
        shown = listed if len(listed) <= _SHOWN else f"{listed[:_SHOWN]}…"
        if pcpus is None and not self.numbered:
            notes.append(f"{owner}: `{shown}` is left out: its CPUs cannot be told without `xl info -n`")
        elif pcpus is None and "node" in listed and not self.nodes:
            notes.append(f"{owner}: `{shown}` is left out: the CPUs of nodes are listed by `xl info -n` only")
        elif pcpus is None:
            notes.append(f"{owner}: `{shown}` names no CPU that is online here; left out")
        elif absent := self.absent(listed):
            notes.append(f"{owner}: CPUs {absent} of `{shown}` are not online here; left out")
        return pcpus or "all"

    def absent(self, listed: str) -> str:
        """The CPUs that a set of the host's CPUs names, such as `0-3,^1`, and that are not here; empty: none.

        Examples:
            >>> four = PcpuMap((0, 1, 2, 3), Topology(1, 4, 1, 1))
            >>> four.absent("2-5,8"), four.absent("0-3"), four.absent("nodes:1")
            ('4-5,8', '', '')
        """
        return spans(sorted(set(numbers_of(listed)) - set(self.numbers)))

    def fields(self) -> dict[str, Any]:
        """The fields of a scenario's `host`.

        Examples:
            >>> PcpuMap((0, 1), Topology(1, 2, 1, 1)).fields(), PcpuMap((0, 1), Topology(1, 1, 2, 1)).fields()
            ({'pcpus': 2}, {'topology': {'sockets': 1, 'cores': 1, 'threads': 2, 'nodes': 1}})
        """
        if self.topology.is_flat:
            return {"pcpus": self.pcpus}
        counts: dict[str, Any] = {
            name: getattr(self.topology, name) for name in ("sockets", "cores", "threads", "nodes")
        }
        return {"topology": counts if self.topology.adjacent else counts | {"numbering": "spread"}}

    def granularity(self, sched_gran: str | None, notes: list[str]) -> str | None:
        """The scheduling unit if larger than a vCPU; `sched_gran` is the value on the hypervisor's command line."""
        if sched_gran in (None, "cpu"):
            return None
        if not self.even:
            notes.append(f"sched-gran={sched_gran}: left out, as Xen itself schedules by cpu where cores are not alike")
            return None
        return sched_gran

    def node_of_host(self, node: int) -> int | None:
        """A node of the host as a scenario numbers it; `None`: there is none."""
        nodes = list(self.nodes) or list(range(self.topology.nodes))
        return nodes.index(node) if node in nodes else None


def flat(pcpus: int) -> PcpuMap:
    """The map of a number of cores without further topology."""
    return PcpuMap(tuple(range(pcpus)), _flat(pcpus))


def _flat(pcpus: int) -> Topology:
    return Topology(1, pcpus, 1, 1)


def map_of(info: Info, notes: list[str], lister: str = "xl info -n") -> PcpuMap | None:
    """The pCPUs that `xl info` lists; `None`: the number of CPUs is not listed.

    Args:
        info: the output of `xl info`.
        notes: receives a note for each assumption, and for each value that a scenario cannot have.
        lister: the command that lists CPUs one by one.
    """
    mapping = _of_table(info, notes, lister) if info.cpus else _of_settings(info, notes, lister)
    if mapping is not None and mapping.renumbered:
        notes.append(
            f"pCPUs are renumbered: {_runs(mapping.numbers)}. Sets of pCPUs are translated; in commands that pin, "
            "or make pools, type the host's own numbers"
        )
    return mapping


def _of_settings(info: Info, notes: list[str], lister: str) -> PcpuMap | None:
    """The pCPUs by counts, and by lists of CPUs that are online or in nodes; `None`: their number is not listed."""
    counts = {name: int(text) for name, text in info.settings.items() if text.isdecimal() and len(text) < 6}
    pcpus = counts.get("nr_cpus", 0)
    if not pcpus:
        return None
    online = numbers_of(info.settings.get("online_cpus", "")) or list(range(pcpus))
    offline = sorted(set(range(pcpus)) - set(online))
    if offline:
        notes.append(f"CPUs {spans(offline)} are offline, and no pCPUs here")
    pcpus = len(online)
    if online[-1] >= pcpus or counts.get("kinds_of_cores", 1) > 1:
        reason = "cores are of several kinds" if online[-1] < pcpus else "which core each CPU is in is not listed"
        notes.append(f"{reason}: each CPU is a core of its own here, of the same speed (`{lister}` says where each is)")
        return PcpuMap(tuple(online), _flat(pcpus))
    cores, threads, nodes = (
        max(1, counts.get(name, 1)) for name in ("cores_per_socket", "threads_per_core", "nr_nodes")
    )
    if pcpus > cores * threads == nodes == 1 and not _is_x86(info.settings.get("machine", "")):
        notes += [
            f"cores_per_socket = 1: where the machine is no x86, Xen does not know its sockets; the {pcpus} CPUs are "
            "cores of one socket here"
            for _ in counts.keys() & {"cores_per_socket"}
        ]
        return flat(pcpus)
    sockets = pcpus // (cores * threads)
    if sockets * cores * threads != pcpus or not _is_valid_shape(sockets, cores, nodes):
        notes.append(
            f"{pcpus} CPUs, {cores} cores per socket, {threads} threads per core, {nodes} nodes: not every socket has "
            f"the same; each CPU is a core of its own here (`{lister}` says where each is)"
        )
        return flat(pcpus)
    return _of_counts(info, Topology(sockets, cores, threads, nodes), notes, lister)


def _of_table(info: Info, notes: list[str], lister: str) -> PcpuMap:
    """The pCPUs by a table that has each CPU."""
    cpus = sorted(info.cpus, key=lambda cpu: cpu.cpu)
    if not _threads_too_many(info):
        return _of_cpus(cpus, info, notes)
    notes.append(
        f"`{lister}` has more CPUs in a core than its threads_per_core, {info.settings['threads_per_core']}, as on "
        "Arm: each CPU is a core of its own here, in one socket"
    )
    return PcpuMap(tuple(cpu.cpu for cpu in cpus), _flat(len(cpus)))


def _of_counts(info: Info, topology: Topology, notes: list[str], lister: str) -> PcpuMap:
    """The pCPUs by counts of sockets, cores, threads and nodes, and by the nodes' lists of CPUs, if there are any."""
    sockets, cores, threads = topology.sockets, topology.cores, topology.threads
    listed = nodes_of(info.settings)
    complete = sorted(cpu for node in listed for cpu in node) == list(range(topology.pcpus))
    numbering = numbered(sockets, cores, threads, listed) if complete else None
    if complete and numbering is None:
        notes.append(
            f"the nodes' CPUs are in none of the usual orders of {sockets} sockets of {cores} cores of {threads} "
            f"threads; each CPU is a core of its own here, and there is one node (`{lister}` says where each is)"
        )
        return flat(topology.pcpus)
    if numbering is None or not numbering.certain:
        if topology.pcpus > threads > 1:
            notes.append(f"the threads of a core are assumed to have numbers beside each other; `{lister}` says it")
        return PcpuMap(tuple(range(topology.pcpus)), topology)
    if threads > 1:
        first = spans([cpu.cpu for cpu in numbering.cpus if (cpu.socket, cpu.core) == (0, 0)])
        notes.append(f"the nodes' CPUs tell that CPUs {first} are the threads of a core, and so on")
    return _of_cpus(numbering.cpus, info, notes)


def _threads_too_many(info: Info) -> bool:
    """`True`: the table has all CPUs in one core, more than `threads_per_core`, as where Xen knows no topology."""
    threads = info.settings.get("threads_per_core", "")
    cores = _grouped(info.cpus, lambda cpu: (cpu.socket, cpu.core))
    return len(cores) == 1 and threads.isdecimal() and len(threads) < 6 and len(info.cpus) > max(1, int(threads))


def _is_x86(machine: str) -> bool:
    return machine.startswith("x86") or re.fullmatch(r"i\d86", machine) is not None


def _is_valid_shape(sockets: int, cores: int, nodes: int) -> bool:
    """Whether a scenario accepts a topology with these numbers."""
    return sockets > 0 and (sockets % nodes == 0 or (nodes % sockets == 0 and cores % (nodes // sockets) == 0))


def _of_cpus(cpus: Sequence[Cpu], info: Info, notes: list[str]) -> PcpuMap:
    cores = _grouped(cpus, lambda cpu: (cpu.socket, cpu.core))
    sockets = _grouped(cpus, lambda cpu: cpu.socket)
    nodes = _grouped(cpus, lambda cpu: cpu.node)
    numbers = tuple(cpu.cpu for cpu in cpus)
    missing = sorted(set(range(numbers[-1])) - set(numbers))
    if missing:
        notes.append(f"CPUs {spans(missing)} are offline, and no pCPUs here")
    empty = [str(cpu.node) for cpu in info.nodes if cpu.node not in nodes]
    if empty:
        notes.append(f"node {', '.join(empty)} has memory and no CPU: left out")
    uneven = _uneven(cores, sockets, nodes)
    if uneven is not None:
        notes.append(
            f"{uneven}: scenarios cannot express this; each CPU is a core of its own here, and there is one node"
        )
        return PcpuMap(numbers, _flat(len(numbers)), even=False)
    shape = (len(sockets), len(cores) // len(sockets), len(cpus) // len(cores), len(nodes))
    orders = [(True, cpus), (False, cpus)]
    # Where neither is the host's numbering, pCPUs are renumbered, core by core.
    orders.append((True, sorted(cpus, key=lambda cpu: (cpu.socket, cpu.node, cpu.core, cpu.cpu))))
    fits = ((ordered, Topology(*shape, adjacent)) for adjacent, ordered in orders)
    ordered, topology = next((fit for fit in fits if _matches(*fit)), (cpus, None))
    if topology is None:
        notes.append(
            f"the {len(nodes)} nodes do not have the cores in rows of equal length: scenarios cannot express this; "
            "each CPU is a core of its own here, and there is one node"
        )
        return PcpuMap(numbers, _flat(len(numbers)))
    cpus_of_nodes = {node: frozenset(cpu.cpu for cpu in ordered if cpu.node == node) for node in _nodes(ordered)}
    return PcpuMap(tuple(cpu.cpu for cpu in ordered), topology, cpus_of_nodes)


def _grouped(cpus: Sequence[Cpu], key: Callable[[Cpu], Hashable]) -> dict[Hashable, list[Cpu]]:
    groups: dict[Hashable, list[Cpu]] = {}
    for cpu in cpus:
        groups.setdefault(key(cpu), []).append(cpu)
    return groups


def _nodes(cpus: Sequence[Cpu]) -> list[int]:
    return list(dict.fromkeys(cpu.node for cpu in cpus))


def _uneven(
    cores: Mapping[Hashable, Sequence[Cpu]], sockets: Mapping[Hashable, Sequence[Cpu]], nodes: Mapping[Hashable, Any]
) -> str | None:
    """The reason why CPUs do not form equal sockets of equal cores of equal numbers of threads; `None`: they do."""
    threads = sorted({len(members) for members in cores.values()})
    if len(threads) > 1:
        return f"there are cores of {' and of '.join(map(str, threads))} threads online"
    in_socket = sorted({len({cpu.core for cpu in members}) for members in sockets.values()})
    if len(in_socket) > 1:
        return f"there are sockets of {' and of '.join(map(str, in_socket))} cores online"
    if not _is_valid_shape(len(sockets), in_socket[0], len(nodes)):
        return f"there are {len(nodes)} nodes on {len(sockets)} sockets of {in_socket[0]} cores"
    return None


def _matches(cpus: Sequence[Cpu], topology: Topology) -> bool:
    """Whether CPUs in this order have the places of a topology's pCPUs, whatever the numbers of cores and nodes are."""
    kinds: dict[Hashable, set[Hashable]] = {}
    for position, cpu in enumerate(cpus):
        core = topology.core(position)
        pairs = (
            (("core", core), (cpu.socket, cpu.core)),
            (("socket", core // topology.cores), cpu.socket),
            (("node", topology.node(position)), cpu.node),
        )
        for place, host_place in pairs:
            kinds.setdefault(place, set()).add(host_place)
    return all(len(host_place) == 1 for host_place in kinds.values())


def _runs(numbers: Sequence[int]) -> str:
    """The CPU of each pCPU in words, rows of equal distances in short.

    Examples:
        >>> _runs([0, 2, 4, 6]), _runs([0, 2, 1, 3])
        ('0 to 3 are CPUs 0, 2, … 6', '0, 1 are CPUs 0, 2; 2, 3 are CPUs 1, 3')
    """
    return "; ".join(_rows(numbers))


def _rows(numbers: Sequence[int]) -> Iterator[str]:
    begin = 0
    while begin < len(numbers):
        end = begin + 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == numbers[begin + 1] - numbers[begin]:
            end += 1
        yield _row(begin, numbers[begin:end])
        begin = end


def _row(begin: int, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{begin} is CPU {numbers[0]}"
    if len(numbers) == 2:
        return f"{begin}, {begin + 1} are CPUs {numbers[0]}, {numbers[1]}"
    return f"{begin} to {begin + len(numbers) - 1} are CPUs {numbers[0]}, {numbers[1]}, … {numbers[-1]}"
