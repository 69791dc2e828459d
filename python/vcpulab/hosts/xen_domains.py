"""The domains of a Xen host: what each listing says of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vcpulab.formats import xl
from vcpulab.formats.kinds import Read
from vcpulab.formats.xentop import NAME_MOST
from vcpulab.formats.xl_cfg import Value, number_of
from vcpulab.hosts.left_out import left_out
from vcpulab.hosts.xen_params import RTDS_COLUMNS, domain_params, notes_on_columns
from vcpulab.hypervisors.xen import called
from vcpulab.scenario.names import in_short
from vcpulab.scenario.units import members

_SETTINGS = {"cpu_weight": "weight", "cap": "cap", **RTDS_COLUMNS}
"""Settings of a domain's file to parameters."""
_OF_SCHEDULING = re.compile(r"cpu_\w+|cap|period|budget|slice|latency|extratime|sched_\w+|vcpu_\w+|vnuma|nodes|cpupool")
"""Settings of a domain's file that seem to be about scheduling."""
_TAKEN = {"name", "vcpus", "cpus", "cpus_soft", "pool", *_SETTINGS}
_NODES = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?){0,64}")
VCPUS_MOST = 512
"""The most that a domain of a scenario can have."""


@dataclass
class Domain:
    """A domain as listings have it."""

    vcpus: int | None = None
    """`None`: no listing says it."""
    affinity: list[str] = field(default_factory=list)
    """The affinity in the host's numbers, of all vCPUs or of each; empty: not known."""
    soft: list[str] = field(default_factory=list)
    params: dict[str, int] = field(default_factory=dict)
    pool: str | None = None
    memory: dict[int, float] = field(default_factory=dict)
    """The fraction of the domain's memory on each node, by the host's numbers; empty: not known."""
    used: float | None = None
    """% of a pCPU; `None`: not known."""
    scheduled_by: Path | None = None
    """The listing that has its parameters."""


@dataclass(frozen=True)
class _Row:
    """A domain in a listing."""

    path: Path
    kind: str
    name: str
    number: int | None


class Names:
    """The domains that names in listings mean: a name is one domain, unless a listing has it with two numbers."""

    def __init__(self, reads: Sequence[Read], notes: list[str]) -> None:
        rows = [row for read in reads for row in _rows_of(read)]
        numbers: dict[tuple[Path, str, str], set[int]] = {}
        names: dict[int, dict[str, Path]] = {}
        for row in rows:
            if row.number is not None:
                numbers.setdefault((row.path, row.kind, row.name), set()).add(row.number)
                names.setdefault(row.number, {}).setdefault(row.name, row.path)
        self._shared = {name for (_, _, name), several in numbers.items() if len(several - {0}) > 1}
        for name in sorted(self._shared):
            ids = sorted(
                set().union(*(several for (_, _, shared_name), several in numbers.items() if shared_name == name))
            )
            shown = in_short([str(number) for number in ids])
            notes.append(f"{len(ids)} domains are called `{name}`: their IDs ({shown}) are in the names here")
        of_name: dict[str, set[int]] = {}
        for (_, _, name), several in numbers.items():
            of_name.setdefault(name, set()).update(several)
        for name, several in of_name.items():
            if len(several) > 1 and name not in self._shared:
                shown = " and ".join(map(str, sorted(several)))
                notes.append(f"`{name}` has the IDs {shown}: listings of different times? It is one domain here")
        for number, called_so in sorted(names.items()):
            if len(called_so) > 1:
                shown = " and ".join(f"`{name}` in {path}" for name, path in called_so.items())
                notes.append(f"ID {number} is {shown}: listings of different times or hosts? Both are domains here")

    def domain_name(self, name: str, number: int | None) -> str:
        """The domain that a listing calls so; that of ID 0 is Dom0, whatever its name."""
        if number == 0:
            return called("dom0")
        return f"{name}-{number}" if name in self._shared and number is not None else name


def _rows_of(read: Read) -> Iterator[_Row]:
    if read.kind in ("xl-list", "xl-list-l", "xen-xml"):
        yield from (_Row(read.path, read.kind, row.name, row.number) for row in read.holds)
    elif read.kind == "xl-vcpu-list":
        yield from (_Row(read.path, read.kind, row.name, row.domain) for row in read.holds)
    elif read.kind == "xl-sched":
        for pool in read.holds:
            yield from (_Row(read.path, read.kind, str(row["name"]), row.get("id")) for row in pool.domains)


def _by_number(reads: Iterable[Read], names: Names) -> dict[int, str]:
    """The names of domains in listings, by ID."""
    rows = [row for read in reads for row in _rows_of(read)]
    return {
        0: called("dom0"),
        **{row.number: names.domain_name(row.name, row.number) for row in rows if row.number is not None},
    }


def domains_of(reads: Sequence[Read], notes: list[str], *, with_dom0: bool) -> dict[str, Domain]:
    """The domains of all listings, by name on the host.

    Args:
        reads: the listings; of two of a kind the later one counts.
        notes: where to say what is left out.
        with_dom0: is there a Dom0, although only domains' files name domains?
    """
    names = Names(reads, notes)
    domains: dict[str, Domain] = {}
    gone = _add_list(reads, names, domains, notes)
    _add_vcpus(reads, names, domains, notes)
    for read in reads:
        if read.kind == "xl-sched":
            _add_params(read, names, domains, notes)
    _add_debug(reads, names, domains, notes)
    domains = {name: domain for name, domain in domains.items() if name not in gone}
    _add_memory(reads, names, domains)
    for read in reads:
        if read.kind in ("xl-list-l", "xen-xml"):
            for config in read.holds:
                domain = domains.setdefault(names.domain_name(config.name, config.number), Domain())
                _add_settings(domain, config.name, config.settings, read.path, notes)
    running = bool(domains)
    for read in reads:
        if read.kind == "xl-cfg":
            name = str(read.holds.get("name", read.path.stem))
            if not running or name in domains:
                _add_settings(domains.setdefault(name, Domain()), name, read.holds, read.path, notes)
            else:
                notes.append(f"{read.path}: not used: no listing has a domain `{name}`: it does not run")
    if domains and not running and with_dom0:
        return {called("dom0"): Domain(), **domains}
    return domains or _of_xentop(reads, notes)


def _of_xentop(reads: Sequence[Read], notes: list[str]) -> dict[str, Domain]:
    """The domains that xentop lists, where nothing else lists any."""
    domains = {row.name: Domain(row.vcpus) for row in _last(reads, "xentop")}
    if domains:
        notes.append(f"the domains are those of xentop, which cuts names to {NAME_MOST} characters (-f: full names)")
    return domains


def _last(reads: Iterable[Read], kind: str) -> list[Any]:
    listings: list[list[Any]] = [read.holds for read in reads if read.kind == kind]
    return listings[-1] if listings else []


def _add_list(reads: Sequence[Read], names: Names, domains: dict[str, Domain], notes: list[str]) -> set[str]:
    """The domains of `xl list`; those that are left out are the answer."""
    gone = set()
    for row in _last(reads, "xl-list"):
        name = names.domain_name(row.name, row.number)
        reason = _gone(row)
        if reason is not None:
            notes.append(f"domain `{row.name}` (ID {'-' if row.number is None else row.number}) is left out: {reason}")
            gone.add(name)
            continue
        domains[name] = Domain(row.vcpus, pool=row.pool)
        if "p" in row.state:
            notes.append(f"domain `{row.name}` (ID {row.number}) is paused on the host; here it runs")
    return gone


def _gone(row: xl.Domain) -> str | None:
    """The reason why a domain of `xl list` does not run any more, or not yet; `None`: it runs."""
    if row.number is None:
        return "it is off"
    states = {"d": "it is dying", "c": "it has crashed", "s": "it has shut down"}
    reason = next((reason for letter, reason in states.items() if letter in row.state), None)
    return "it has no vCPU" if reason is None and not row.vcpus else reason


def _add_debug(reads: Sequence[Read], names: Names, domains: dict[str, Domain], notes: list[str]) -> None:
    """Adds facts from `xl debug-keys r`, which has domains by number, where no listing has them."""
    called_so = _by_number(reads, names)
    for read in reads:
        if read.kind == "xl-dmesg":
            if read.holds.domains:
                notes.append(
                    f"{read.path}: credits and loads of vCPUs and run queues are left out: they are of one instant"
                )
            for row in read.holds.domains:
                domain = domains.setdefault(called_so.get(row.number, f"domain-{row.number}"), Domain())
                domain.vcpus = row.vcpus if domain.vcpus is None else domain.vcpus
                domain.params.setdefault("weight", row.weight)
                domain.params.setdefault("cap", row.cap)
                domain.scheduled_by = domain.scheduled_by or read.path


def _add_vcpus(reads: Sequence[Read], names: Names, domains: dict[str, Domain], notes: list[str]) -> None:
    online: dict[str, list[tuple[str, str]]] = {}
    offline: dict[str, None] = {}
    for vcpu in _last(reads, "xl-vcpu-list"):
        offline[names.domain_name(vcpu.name, vcpu.domain)] = None
        if vcpu.pcpu is not None:
            online.setdefault(names.domain_name(vcpu.name, vcpu.domain), []).append((vcpu.hard, vcpu.soft))
    notes += [f"domain `{name}` is left out: none of its vCPUs is online" for name in offline if name not in online]
    for name in offline:
        if name not in online:
            domains.pop(name, None)
    for name, masks in online.items():
        domain = domains.setdefault(name, Domain())
        if domain.vcpus not in (None, len(masks)):
            notes.append(
                f"{name}: `xl list` has {domain.vcpus} vCPUs online, and `xl vcpu-list` {len(masks)}, which are taken"
            )
        domain.vcpus = len(masks)
        domain.affinity, domain.soft = [hard for hard, _ in masks], [soft for _, soft in masks]


# ---- parameters ----


def _add_params(read: Read, names: Names, domains: dict[str, Domain], notes: list[str]) -> None:
    for pool in read.holds:
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in pool.domains:
            rows.setdefault(names.domain_name(str(row["name"]), row.get("id")), []).append(row)
        notes += notes_on_columns(pool, read.path)
        for name, of_domain in rows.items():
            domain = domains.setdefault(name, Domain())
            domain.pool = pool.pool or domain.pool
            domain.scheduled_by = read.path
            domain.params = domain_params(name, pool.scheduler, of_domain, notes, read.path)
            vcpus = [row["vcpu"] + 1 for row in of_domain if isinstance(row.get("vcpu"), int)]
            if domain.vcpus is None and vcpus:
                domain.vcpus = min(max(vcpus), VCPUS_MOST)


# ---- domains' files ----


def _add_settings(domain: Domain, name: str, settings: Mapping[str, Value], path: Path, notes: list[str]) -> None:
    """Adds settings of a domain's file where no listing has them."""

    def number(setting: str) -> int | None:
        value = settings.get(setting)
        if value is not None and number_of(value) is None:
            notes.append(left_out(name, setting, value, "no number", path))
        return number_of(value)

    vcpus = number("vcpus")
    if domain.vcpus is None:
        domain.vcpus = 1 if vcpus is None and "vcpus" not in settings else vcpus
    if domain.vcpus is not None and not 1 <= domain.vcpus <= VCPUS_MOST:
        notes.append(left_out(name, "vcpus", domain.vcpus, f"1 to {VCPUS_MOST} are possible", path))
        domain.vcpus = None
    if not domain.affinity and "cpus" in settings:
        domain.affinity = _masks(settings["cpus"], domain.vcpus)
    if not domain.soft and "cpus_soft" in settings:
        domain.soft = _masks(settings["cpus_soft"], domain.vcpus)
    for setting, param in _SETTINGS.items():
        given = number(setting)
        if given is not None and domain.params.setdefault(param, given) == given:
            domain.scheduled_by = domain.scheduled_by or path
    if domain.pool is None and isinstance(settings.get("pool"), str):
        domain.pool = str(settings["pool"])
    for setting, value in settings.items():
        if _OF_SCHEDULING.fullmatch(setting) and setting not in _TAKEN:
            notes.append(
                left_out(name, setting, value, f"of a domain's file {', '.join(sorted(_TAKEN))} are taken", path)
            )


def _masks(given: object, vcpus: int | None) -> list[str]:
    """The masks of all vCPUs, or of each, in `cpus` and `cpus_soft`; vCPUs without a mask may run everywhere."""
    if not isinstance(given, list):
        return [str(given)]
    masks = [*map(str, given), *["all"] * ((vcpus or 0) - len(given))]
    return masks[:vcpus] if vcpus else masks


# ---- memory ----


def _add_memory(reads: Sequence[Read], names: Names, domains: Mapping[str, Domain]) -> None:
    """Adds the nodes of domains' memory; without listings of it, the nodes that memory is allocated from."""
    numbers = _by_number(reads, names)
    for row in _last(reads, "xl-list"):
        domain = domains.get(names.domain_name(row.name, row.number))
        if domain is not None and row.nodes is not None and _NODES.fullmatch(row.nodes):
            nodes = members(row.nodes)
            domain.memory = dict.fromkeys(nodes, 1 / len(nodes))
    pages: dict[str, dict[int, int]] = {}
    dumps = [row for read in reads if read.kind == "xl-dmesg" for row in read.holds.memory]
    for row in dumps:
        if row.domain in numbers:
            pages.setdefault(numbers[row.domain], {})[row.node] = row.pages
    for name, on_nodes in pages.items():
        total = sum(on_nodes.values())
        if name in domains and total:
            domains[name].memory = {node: count / total for node, count in on_nodes.items() if count}
