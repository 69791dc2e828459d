"""The domains of a Xen host: what each listing says of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vcpulab.formats import xl
from vcpulab.formats.kinds import Read
from vcpulab.formats.machine import DEVICES
from vcpulab.formats.xentop import NAME_MOST
from vcpulab.formats.xl_cfg import Value, number_of
from vcpulab.hosts.left_out import left_out
from vcpulab.hosts.xen_params import RTDS_COLUMNS, domain_params, notes_on_columns
from vcpulab.hypervisors.xen import called
from vcpulab.scenario.names import in_short
from vcpulab.scenario.units import members

_SETTINGS = {"cpu_weight": "weight", "cap": "cap", **RTDS_COLUMNS}
"""Settings of a domain's file to parameters."""
_OF_SCHEDULING = re.compile(
    r"cpu|cpu_\w+|cap|period|budget|slice|latency|extratime|sched_\w+|vcpu_\w+|vnuma|nodes|cpupool"
)
"""Settings of a domain's file that seem to be about scheduling."""
_TAKEN = {"name", "vcpus", "cpus", "cpus_soft", "pool", *_SETTINGS}
_NODES = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?){0,64}")
VCPUS_MOST = 512
"""The most that a domain of a scenario can have."""


@dataclass(frozen=True)
class Domain:
    """A domain as listings have it."""

    vcpus: int | None = None
    """`None`: no listing says it."""
    affinity: tuple[str, ...] = ()
    """The affinity in the host's numbers, of all vCPUs or of each that is online; empty: not known."""
    soft: tuple[str, ...] = ()
    """The soft affinity, as `affinity`."""
    params: Mapping[str, int] = field(default_factory=dict)
    pool: str | None = None
    memory: Mapping[int, float] = field(default_factory=dict)
    """The fraction of the domain's memory on each node, by the host's numbers; empty: not known."""
    scheduled_by: Path | None = None
    """The listing that has its parameters."""
    online: tuple[int, ...] = field(default=(), compare=False)
    """The numbers of the vCPUs that are online; empty: not listed."""

    def by_number(self, masks: Sequence[str], vcpus: int) -> tuple[str, ...]:
        """The masks of vCPUs from number 0 on; a vCPU that is offline may run everywhere.

        Examples:
            >>> Domain(online=(0, 2)).by_number(["1", "3"], 4)
            ('1', 'all', '3', 'all')
        """
        of_vcpus = dict(zip(self.online, masks, strict=False))
        return tuple(of_vcpus.get(vcpu, "all") for vcpu in range(vcpus))


@dataclass(frozen=True)
class _Row:
    """A domain in a listing."""

    path: Path
    kind: str
    name: str
    number: int | None


class _Names:
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


class Reader:
    """The reader of all listings of a host's domains."""

    def __init__(self, reads: Sequence[Read], notes: list[str]) -> None:
        """Takes the listings, of two of a kind the later one counts; `notes` receives what is left out."""
        self._reads, self._notes = reads, notes
        self._names = _Names(reads, notes)
        self._domains: dict[str, Domain] = {}
        self._omitted: dict[str, list[str]] = {}
        """Settings without a field in scenarios, in words, with their domains."""
        rows = [row for read in reads for row in _rows_of(read)]
        self.by_number = {0: called("dom0")} | {
            row.number: self._names.domain_name(row.name, row.number) for row in rows if row.number is not None
        }
        """The names of domains on the host, by ID."""

    def read(self, *, with_dom0: bool) -> dict[str, Domain]:
        """The domains by name on the host; `with_dom0`: there is a Dom0, although only domains' files name domains."""
        gone = self._add_list()
        self._add_vcpus()
        for read in self._of_kinds("xl-sched"):
            self._add_params(read)
        for read in self._of_kinds("xl-dmesg"):
            self._add_debug(read)
        for name in gone:
            self._domains.pop(name, None)
        self._add_memory()
        self._add_configs()
        running = bool(self._domains)
        for read in self._of_kinds("xl-cfg"):
            name = str(read.holds.get("name", read.path.stem))
            if not running or name in self._domains:
                self._add_settings(name, name, read.holds, read.path)
            else:
                self._notes.append(f"{read.path}: not used: no listing has a domain `{name}`: it does not run")
        self._notes += [
            f"{in_short(names)}: no field of a scenario says {setting}; left out"
            for setting, names in self._omitted.items()
        ]
        if self._domains and not running and with_dom0:
            return {called("dom0"): Domain(), **self._domains}
        return self._domains or self._of_xentop()

    def _of_kinds(self, *kinds: str) -> Iterator[Read]:
        return (read for read in self._reads if read.kind in kinds)

    def _change(self, name: str, **values: Any) -> None:
        """Changes fields of a domain, which is new if no listing before has it."""
        self._domains[name] = replace(self._domains.get(name, Domain()), **values)

    def _of_xentop(self) -> dict[str, Domain]:
        """The domains that xentop lists, where nothing else lists any."""
        domains = {row.name: Domain(row.vcpus) for row in last(self._reads, "xentop")}
        if domains:
            self._notes.append(
                f"the domains are those of xentop, which cuts names to {NAME_MOST} characters (-f: full names)"
            )
        return domains

    def _add_list(self) -> set[str]:
        """Adds the domains of `xl list`. Returns the names of the domains that do not run."""
        gone = set()
        for row in last(self._reads, "xl-list"):
            name = self._names.domain_name(row.name, row.number)
            reason = _gone(row)
            if reason is not None:
                number = "-" if row.number is None else row.number
                self._notes.append(f"domain `{row.name}` (ID {number}) is left out: {reason}")
                gone.add(name)
                continue
            self._domains[name] = Domain(row.vcpus, pool=row.pool)
            if "p" in row.state:
                self._notes.append(f"domain `{row.name}` (ID {row.number}) is paused on the host; here it runs")
        return gone

    def _add_vcpus(self) -> None:
        vcpus: dict[str, list[xl.Vcpu]] = {}
        for vcpu in last(self._reads, "xl-vcpu-list"):
            vcpus.setdefault(self._names.domain_name(vcpu.name, vcpu.domain), []).append(vcpu)
        online = {
            name: sorted((vcpu for vcpu in rows if vcpu.pcpu is not None), key=lambda vcpu: vcpu.number)
            for name, rows in vcpus.items()
        }
        for name, rows in online.items():
            if not rows:
                self._notes.append(f"domain `{name}` is left out: none of its vCPUs is online")
                self._domains.pop(name, None)
        for name, rows in online.items():
            if not rows:
                continue
            listed = self._domains.get(name, Domain()).vcpus
            if listed not in (None, len(rows)):
                self._notes.append(
                    f"{name}: `xl list` has {listed} vCPUs online, and `xl vcpu-list` {len(rows)}, which are taken"
                )
            self._change(
                name,
                vcpus=len(rows),
                affinity=tuple(vcpu.hard for vcpu in rows),
                soft=tuple(vcpu.soft for vcpu in rows),
                online=tuple(vcpu.number for vcpu in rows),
            )

    def _add_params(self, read: Read) -> None:
        for pool in read.holds:
            rows: dict[str, list[Mapping[str, Any]]] = {}
            for row in pool.domains:
                rows.setdefault(self._names.domain_name(str(row["name"]), row.get("id")), []).append(row)
            self._notes += notes_on_columns(pool, read.path)
            for name, of_domain in rows.items():
                domain = self._domains.get(name, Domain())
                numbers = [row["vcpu"] + 1 for row in of_domain if isinstance(row.get("vcpu"), int)]
                self._change(
                    name,
                    pool=pool.pool or domain.pool,
                    scheduled_by=read.path,
                    params=domain_params(name, pool.scheduler, of_domain, self._notes, read.path),
                    vcpus=min(max(numbers), VCPUS_MOST) if domain.vcpus is None and numbers else domain.vcpus,
                )

    def _add_debug(self, read: Read) -> None:
        """Adds facts from `xl debug-keys r`, which has domains by number, where no listing has them."""
        if read.holds.domains:
            self._notes.append(
                f"{read.path}: credits and loads of vCPUs and run queues are left out: they are of one instant"
            )
        for row in read.holds.domains:
            name = self.by_number.get(row.number, f"domain-{row.number}")
            domain = self._domains.get(name, Domain())
            self._change(
                name,
                vcpus=row.vcpus if domain.vcpus is None else domain.vcpus,
                params={**domain.params, "weight": row.weight, "cap": row.cap, **domain.params},
                scheduled_by=domain.scheduled_by or read.path,
            )

    def _add_configs(self) -> None:
        """Adds the domains of listings that have several configurations."""
        running = set(self.by_number.values()) if self._domains else set()
        for read in self._of_kinds("xl-list-l", "xen-xml"):
            for config in read.holds:
                name = self._names.domain_name(config.name, config.number)
                if config.number is None and running and name not in running:
                    self._notes.append(f"{read.path}: domain `{config.name}` is left out: it does not run")
                    continue
                self._add_settings(name, config.name, config.settings, read.path)
                for setting in config.omitted:
                    self._omitted.setdefault(setting, []).append(config.name)

    def _add_settings(self, name: str, listed: str, settings: Mapping[str, Value], path: Path) -> None:
        """Adds settings of a domain's file, which calls the domain `listed`, where no listing has them."""

        def number(setting: str) -> int | None:
            value = settings.get(setting)
            if value is not None and number_of(value) is None:
                self._notes.append(left_out(listed, setting, value, "no number", path))
            return number_of(value)

        domain = self._domains.get(name, Domain())
        given = number("vcpus")
        vcpus = domain.vcpus
        if vcpus is None:
            vcpus = 1 if given is None and "vcpus" not in settings else given
        if vcpus is not None and not 1 <= vcpus <= VCPUS_MOST:
            self._notes.append(left_out(listed, "vcpus", vcpus, f"1 to {VCPUS_MOST} are possible", path))
            vcpus = None
        masks = {
            masks: _masks(settings[setting], vcpus)
            for masks, setting in (("affinity", "cpus"), ("soft", "cpus_soft"))
            if not getattr(domain, masks) and setting in settings
        }
        in_file = {param: value for setting, param in _SETTINGS.items() if (value := number(setting)) is not None}
        params = {**domain.params, **in_file, **domain.params}
        taken = any(params[param] == value for param, value in in_file.items())
        pool = settings.get("pool")
        self._change(
            name,
            vcpus=vcpus,
            params=params,
            scheduled_by=domain.scheduled_by or (path if taken else None),
            pool=pool if domain.pool is None and isinstance(pool, str) else domain.pool,
            **masks,
        )
        if settings.get("disk") or settings.get("vif"):
            self._omitted.setdefault(DEVICES, []).append(listed)
        self._notes += [
            left_out(listed, setting, value, f"of a domain's file {', '.join(sorted(_TAKEN))} are taken", path)
            for setting, value in settings.items()
            if _OF_SCHEDULING.fullmatch(setting) and setting not in _TAKEN
        ]

    def _add_memory(self) -> None:
        """Adds the nodes of domains' memory; without listings of it, the nodes that memory is allocated from."""
        memory: dict[str, Mapping[int, float]] = {}
        for row in last(self._reads, "xl-list"):
            if row.nodes is not None and _NODES.fullmatch(row.nodes):
                nodes = members(row.nodes)
                memory[self._names.domain_name(row.name, row.number)] = dict.fromkeys(nodes, 1 / len(nodes))
        pages: dict[str, dict[int, int]] = {}
        for row in (row for read in self._of_kinds("xl-dmesg") for row in read.holds.memory):
            if row.domain in self.by_number:
                pages.setdefault(self.by_number[row.domain], {})[row.node] = row.pages
        for name, on_nodes in pages.items():
            if total := sum(on_nodes.values()):
                memory[name] = {node: count / total for node, count in on_nodes.items() if count}
        for name, parts in memory.items():
            if name in self._domains:
                self._change(name, memory=parts)


def last(reads: Iterable[Read], kind: str) -> list[Any]:
    """The last listing of a kind; empty: there is none."""
    listings: list[list[Any]] = [read.holds for read in reads if read.kind == kind]
    return listings[-1] if listings else []


def _gone(row: xl.Domain) -> str | None:
    """The reason why a domain of `xl list` does not run any more, or not yet; `None`: it runs."""
    if row.number is None:
        return "it is off"
    states = {"d": "it is dying", "c": "it has crashed", "s": "it has shut down"}
    reason = next((reason for letter, reason in states.items() if letter in row.state), None)
    return "it has no vCPU" if reason is None and not row.vcpus else reason


def _masks(given: object, vcpus: int | None) -> tuple[str, ...]:
    """The masks of all vCPUs, or of each, in `cpus` and `cpus_soft`; vCPUs without a mask may run everywhere."""
    if not isinstance(given, list):
        return (str(given),)
    masks = [*map(str, given), *["all"] * ((vcpus or 0) - len(given))]
    return tuple(masks[:vcpus] if vcpus else masks)
