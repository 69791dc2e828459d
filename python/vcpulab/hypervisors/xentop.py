"""Output of xentop for a run: its columns, and the lines under each domain."""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl

from vcpulab.hypervisors.monitors import samples
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario

_SECTOR_BYTES = 512
_UNKNOWN = "n/a"
"""The cell of a column that the simulator does not model."""


class Domain(NamedTuple):
    """A domain in one update."""

    name: str
    number: int
    state: str
    """Six letters, each in its place: dying, shut down, blocked, crashed, paused, running."""
    cpu_s: float
    """CPU time since the samples began."""
    cpu_percent: float
    """CPU time since the last update, of one pCPU."""
    vcpus_s: list[float]
    """CPU time of each vCPU since the samples began."""
    network: "Network | None"
    disk: "Disk | None"


class Network(NamedTuple):
    """A network interface, with its traffic since the samples began."""

    bytes_received: int
    packets_received: int
    packets_dropped: int
    bytes_sent: int
    packets_sent: int


class Disk(NamedTuple):
    """A virtual disk, with its traffic since the samples began."""

    disk_reads: int
    disk_writes: int
    disk_read_bytes: int
    disk_written_bytes: int


class Update(NamedTuple):
    """The content of one update of the screen."""

    time_s: float
    """Simulated time since the host started."""
    pcpus: int
    domains: list[Domain]


class Column(NamedTuple):
    """A column: its heading, its width, its cells, and its sort key."""

    heading: str
    width: int
    cell: Callable[[Domain], str]
    key: Callable[[Domain], float | str]


def _network(counter: Callable[[Network], int]) -> Callable[[Domain], int]:
    return lambda domain: 0 if domain.network is None else counter(domain.network)


def _disk(counter: Callable[[Disk], int]) -> Callable[[Domain], int]:
    return lambda domain: 0 if domain.disk is None else counter(domain.disk)


def _count(heading: str, width: int, counter: Callable[[Domain], int]) -> Column:
    return Column(heading, width, lambda domain: str(counter(domain)), counter)


def _unknown(_: Domain) -> str:
    return _UNKNOWN


def _not_modelled(heading: str, width: int) -> Column:
    return Column(heading, width, _unknown, lambda domain: domain.number)


COLUMNS = (
    Column("NAME", 10, lambda domain: domain.name, lambda domain: domain.name),
    Column("STATE", 6, lambda domain: domain.state, lambda domain: domain.state),
    Column("CPU(sec)", 10, lambda domain: str(int(domain.cpu_s)), lambda domain: domain.cpu_s),
    Column("CPU(%)", 6, lambda domain: f"{domain.cpu_percent:.1f}", lambda domain: domain.cpu_percent),
    _not_modelled("MEM(k)", 10),
    _not_modelled("MEM(%)", 6),
    _not_modelled("MAXMEM(k)", 10),
    _not_modelled("MAXMEM(%)", 9),
    _count("VCPUS", 5, lambda domain: len(domain.vcpus_s)),
    _count("NETS", 4, lambda domain: int(domain.network is not None)),
    _count("NETTX(k)", 8, _network(lambda network: network.bytes_sent // 1024)),
    _count("NETRX(k)", 8, _network(lambda network: network.bytes_received // 1024)),
    _count("VBDS", 4, lambda domain: int(domain.disk is not None)),
    _not_modelled("VBD_OO", 8),
    _count("VBD_RD", 8, _disk(lambda disk: disk.disk_reads)),
    _count("VBD_WR", 8, _disk(lambda disk: disk.disk_writes)),
    _count("VBD_RSECT", 10, _disk(lambda disk: disk.disk_read_bytes // _SECTOR_BYTES)),
    _count("VBD_WSECT", 10, _disk(lambda disk: disk.disk_written_bytes // _SECTOR_BYTES)),
    _not_modelled("SSID", 4),
)
"""xentop's columns in its order and widths."""

SORT_ORDERS = tuple(column.heading for column in COLUMNS if column.cell is not _unknown)
"""The columns that domains can be sorted by: every column that the simulator models."""


Extra = Literal["networks", "vbds", "vcpus", "repeat_header"]
"""Lines about each domain, below it or (the headings) above it."""


@dataclass(frozen=True)
class Options:
    """The options of an update's display, named as xentop's options."""

    extra: frozenset[Extra] = frozenset()
    """Additional lines to show."""
    full_name: bool = False
    """`True`: names are not cut."""
    sort: str | None = None
    """The column to sort by, numbers descending and words ascending; `None`: by the domain's number."""


def updates(run: Run, *, delay_s: float, replication: int = 0) -> Iterator[Update]:
    """The updates of xentop for a run, every `delay_s` of simulated time or, if they are farther apart, at each sample.

    Raises:
        NotRecordedError: there are no samples of that replication.
    """
    taken = samples(run, replication)
    player = Player(run.scenario, delay_s=delay_s)
    yield from player.add(taken, run.df_vcpu_samples().filter(replication=replication))
    yield from player.finish()


class Player:
    """Makes updates out of samples of one replication as they come."""

    def __init__(self, scenario: Scenario, *, delay_s: float) -> None:
        # A driver domain's own card and disk are not virtual.
        nics = {(name, "nic") for name, domain in scenario.domains.items() if domain.nic is not None}
        self._virtual = nics | {(name, "disk") for name, domain in scenario.domains.items() if domain.disk is not None}
        self._pcpus = scenario.host.pcpus
        self._delay_ns = delay_s * 1e9
        self._totals: dict[str, Domain] = {}
        self._shown_cpu_s: dict[str, float] = {}
        self._shown_at = scenario.warmup_ns
        self._time = self._shown_at

    def add(self, taken: pl.DataFrame, vcpus: pl.DataFrame) -> Iterator[Update]:
        """The updates that become due with more samples of domains and of vCPUs."""
        of_vcpus = vcpus.partition_by("time_ns", as_dict=True)
        for (time,), at in taken.partition_by("time_ns", maintain_order=True, as_dict=True).items():
            self._time = time
            self._totals = {domain.name: domain for domain in _add(self._totals, at, of_vcpus[time,], self._virtual)}
            if time >= self._shown_at + self._delay_ns:
                yield self._update()

    def finish(self) -> Iterator[Update]:
        """The last update, if samples remain that were not shown."""
        if self._time > self._shown_at:
            yield self._update()

    def _update(self) -> Update:
        elapsed_s = (self._time - self._shown_at) / 1e9
        domains = [
            domain._replace(cpu_percent=100 * (domain.cpu_s - self._shown_cpu_s.get(name, 0)) / elapsed_s)
            for name, domain in self._totals.items()
            if domain.state
        ]
        self._shown_cpu_s = {name: domain.cpu_s for name, domain in self._totals.items()}
        self._shown_at = self._time
        return Update(self._time / 1e9, self._pcpus, domains)


def _add(
    totals: dict[str, Domain], taken: pl.DataFrame, vcpus: pl.DataFrame, virtual: Container[tuple[str, str]]
) -> Iterator[Domain]:
    """The domains' totals, with one more sample each."""
    running = dict(vcpus.group_by("domain").agg(pl.col("running_ns")).iter_rows())
    for row in taken.iter_rows(named=True):
        new = [ns / 1e9 for ns in running[row["domain"]]]
        name = row["domain"]
        network = Network(*(row[field] for field in Network._fields)) if (name, "nic") in virtual else None
        disk = Disk(*(row[field] for field in Disk._fields)) if (name, "disk") in virtual else None
        before = totals.get(name)
        if before is not None:
            new = [old + more for old, more in zip(before.vcpus_s, new, strict=True)]
            if network is not None and before.network is not None:
                network = Network(*(old + more for old, more in zip(before.network, network, strict=True)))
            if disk is not None and before.disk is not None:
                disk = Disk(*(old + more for old, more in zip(before.disk, disk, strict=True)))
        state = _state(row["state"])
        yield Domain(name, row["number"], state, sum(new), 0.0, new, network, disk)


def _state(listed: str | None) -> str:
    """The letters of `xl list` in xentop's places; none for a domain that is not on the host."""
    return "" if listed is None else "".join(letter if letter in listed else "-" for letter in "dsbcpr")


def header() -> str:
    """The headings."""
    return " ".join(f"{column.heading:>{column.width}}" for column in COLUMNS)


def summary(update: Update) -> str:
    """The line above the table: the number of domains in each state."""
    letters = {"running": "r", "blocked": "b", "paused": "p", "crashed": "c", "dying": "d", "shutdown": "s"}
    counts = ", ".join(
        f"{sum(letter in domain.state for domain in update.domains)} {word}" for word, letter in letters.items()
    )
    return f"{len(update.domains)} domains: {counts}    CPUs: {update.pcpus}    at {update.time_s:.3f} s"


def table(update: Update, options: Options) -> list[str]:
    """The lines of an update, headings first."""
    lines = [header()]
    for index, domain in enumerate(_sorted(update.domains, options.sort)):
        if "repeat_header" in options.extra and index > 0:
            lines.append(header())
        lines.append(_line(domain, full_name=options.full_name))
        if "vcpus" in options.extra:
            cells = (f"{number:3}: {int(cpu_s):10}s" for number, cpu_s in enumerate(domain.vcpus_s))
            lines.append("VCPUs(sec): " + " ".join(cells))
        if "networks" in options.extra and domain.network is not None:
            net = domain.network
            lines.append(
                f"Net0 RX: {net.bytes_received:12}bytes {net.packets_received:8}pkts        0err "
                f"{net.packets_dropped:8}drop  TX: {net.bytes_sent:12}bytes {net.packets_sent:8}pkts        0err "
                f"       0drop"
            )
        if "vbds" in options.extra and domain.disk is not None:
            disk = domain.disk
            lines.append(f"VBD 0 OO: {_UNKNOWN:>8}  RD: {disk.disk_reads:8}  WR: {disk.disk_writes:8}")
    return lines


def _sorted(domains: list[Domain], sort: str | None) -> list[Domain]:
    column = next((column for column in COLUMNS if column.heading == sort), None)
    if column is None:
        return sorted(domains, key=lambda domain: domain.number)
    words = column.heading in {"NAME", "STATE"}
    return sorted(domains, key=column.key, reverse=not words)


def _line(domain: Domain, *, full_name: bool) -> str:
    cells = [f"{column.cell(domain):>{column.width}}" for column in COLUMNS]
    if not full_name:
        cells[0] = cells[0][: COLUMNS[0].width]
    return " ".join(cells)
