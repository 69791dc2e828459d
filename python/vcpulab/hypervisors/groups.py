"""Settings of a Linux host's control groups: by systemd where a group is a unit, otherwise in its files.

Version 1 has each controller in a hierarchy of its own, and other files than version 2.

Sources: Linux's `admin-guide/cgroup-v2` (`cpu.weight`, `cpu.max`, `cpu.max.burst`, `cpu.idle`), `scheduler/sched-bwc`
(`cpu.cfs_quota_us`, `cpu.cfs_period_us`, `cpu.cfs_burst_us`), `scheduler/sched-design-CFS` (`cpu.shares`),
`admin-guide/cgroup-v1/cpusets`; `systemctl(1)` (`set-property`); `systemd.resource-control(5)` (`CPUShares=` of version
1, `CPUWeight=`, `CPUQuota=`; `AllowedCPUs=` and `CPUWeight=idle` of version 2 only).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vcpulab.hypervisors import systemd
from vcpulab.hypervisors.shell import Part, word
from vcpulab.hypervisors.way import Way
from vcpulab.scenario.cgroups import WEIGHT, Version, shares_of_weight

CGROUP = "/sys/fs/cgroup"
PERIOD_US = 100_000
"""The default period of `cpu.max`."""
NONE = -1
"""The quota of a group without a limit."""
_LONGEST_US = (1 << 44) - 1
"""The longest quota that the kernel takes, which libvirt prints where there is none."""
_IDLE_SINCE = "5.15"
"""The first kernel with `cpu.idle`, in either version."""
_FILES: Mapping[Version, Mapping[str, str]] = {
    1: {"weight": "cpu.shares", "burst": "cpu.cfs_burst_us", "threads": "tasks"},
    2: {"weight": "cpu.weight", "burst": "cpu.max.burst", "threads": "cgroup.threads"},
}


@dataclass(frozen=True)
class Place:
    """A control group, as commands name it."""

    around: str
    """The path of the group around it; empty: the root group."""
    name: tuple[Part, ...]
    """The group's own name, which may hold the output of a command."""
    version: Version
    lasts: bool
    """`True`: the group's unit exists again after a restart."""

    @classmethod
    def from_path(cls, path: str, version: Version) -> "Place":
        """The group of a path, which lasts across restarts unless it is a scope."""
        around, _, name = path.strip("/").rpartition("/")
        return cls(around, (name,), version, lasts=not name.endswith(".scope"))

    @property
    def path(self) -> str:
        """The path from the root group, for people to read."""
        name = "".join(part if isinstance(part, str) else f"$({part.command})" for part in self.name)
        return f"{self.around}/{name}".strip("/")

    @property
    def unit(self) -> str | None:
        """The group's systemd unit, as a word of the shell; `None`: the group is not a unit."""
        name = "".join(part if isinstance(part, str) else "0" for part in self.name)
        return word(*self.name) if systemd.is_unit(f"{self.around}/{name}".strip("/")) else None

    def file(self, name: str) -> str:
        """A file of the group, or of a group below it, as a word of the shell."""
        return word(*self._parts(name), f"/{name}")

    def inside(self, pattern: str, name: str) -> str:
        """A file of the groups below this group whose names match a pattern of the shell."""
        return f"{word(*self._parts(name))}/{pattern}/{name}"

    def threads(self, pattern: str) -> str:
        """The files with the ids of the threads in groups below this group."""
        return self.inside(pattern, _FILES[self.version]["threads"])

    def _parts(self, file: str) -> Iterator[Part]:
        controller = file.rsplit("/", 1)[-1].partition(".")[0] if self.version == 1 else ""
        if controller == "tasks":
            controller = "cpu"
        yield "/".join(filter(None, (CGROUP, controller, self.around))) + "/"
        yield from self.name


def shared(place: Place, values: Mapping[str, Any], table: Mapping[str, Any], domain: str | None = None) -> Way:
    """Weight and limit of a control group: by systemd where it has a unit, otherwise in its files.

    Args:
        place: the group.
        values: the parameters to set, of `weight`, `idle`, `quota_us`, `period_us`, `burst_us`, `cpus`.
        table: the present value of every parameter.
        domain: the domain that the group belongs to.
    """
    version, unit = place.version, place.unit
    parts = [
        _weight(version, values, table, by_systemd=unit is not None),
        _limit(version, values, table, by_systemd=unit is not None),
        _cpus(version, values, by_systemd=unit is not None),
    ]
    properties = [text for part in parts for text in part.properties]
    files = [file for part in parts for file in part.files]
    way = Way(domain)
    before, after = burst_files(version, values)
    way.run += [written(text, place.file(name)) for name, text in before]
    if properties:
        runtime = "" if place.lasts else "--runtime "
        way.run.append(f"systemctl set-property {runtime}{unit} {' '.join(properties)}")
    way.run += [written(text, place.file(name)) for name, text in (*files, *after)]
    names = list(dict.fromkeys(name for name, _ in (*files, *before, *after)))
    if names and place.lasts:
        way.cannot.append(f"{place.path}: {', '.join(names)}: holds until the host restarts")
    if "cpu.idle" in names and version == 1:
        way.cannot.append(f"{place.path}: cpu.idle: kernels have it from {_IDLE_SINCE} on")
    return way


@dataclass
class _Sets:
    """The unit properties and files that set a part of a control group."""

    properties: list[str] = field(default_factory=list)
    """Properties of its systemd unit."""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Names and contents of files."""


def _weight(version: Version, values: Mapping[str, Any], table: Mapping[str, Any], *, by_systemd: bool) -> _Sets:
    idle, weight = bool(table.get("idle")), table.get("weight", WEIGHT)
    if by_systemd and version == 2:
        return _Sets([f"CPUWeight={'idle' if idle else weight}"] if values.keys() & {"weight", "idle"} else [])
    sets = _Sets(files=[("cpu.idle", str(int(idle)))] if "idle" in values else [])
    if "weight" in values and by_systemd:
        sets.properties.append(f"CPUShares={shares_of_weight(weight)}")
    elif "weight" in values and not idle:
        sets.files.append(weight_file(version, weight))
    return sets


def _limit(version: Version, values: Mapping[str, Any], table: Mapping[str, Any], *, by_systemd: bool) -> _Sets:
    sets = _Sets()
    if values.keys() & {"quota_us", "period_us"}:
        quota, period = table.get("quota_us", NONE), table.get("period_us", PERIOD_US)
        properties = _quota(quota, period) if by_systemd else None
        if properties is None:
            sets.files += limit_files(version, quota, period)
        else:
            sets.properties += properties
    return sets


def _cpus(version: Version, values: Mapping[str, Any], *, by_systemd: bool) -> _Sets:
    if "cpus" not in values:
        return _Sets()
    # An empty list is that of the group around it.
    allowed = "" if values["cpus"] == "all" else values["cpus"]
    if by_systemd and version == 2:
        return _Sets([f"AllowedCPUs={allowed}"])
    return _Sets(files=[("cpuset.cpus", allowed)])


def written(text: str, file: str) -> str:
    """The command that writes to a file, which is a word of the shell."""
    return f"echo {word(text)} > {file}"


def weight_file(version: Version, weight: int) -> tuple[str, str]:
    """The file for a weight, and its content.

    Examples:
        >>> weight_file(2, 400), weight_file(1, 400)
        (('cpu.weight', '400'), ('cpu.shares', '4096'))
    """
    return _FILES[version]["weight"], str(shares_of_weight(weight) if version == 1 else weight)


def burst_files(version: Version, values: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The files for quota that may be used later, and their contents: written before the limit, and after it.

    The kernel refuses a quota below the burst, and a burst above the quota. It takes a burst of 0 beside any quota.

    Args:
        version: of control groups.
        values: the parameters to set, as `shared` takes them.

    Examples:
        >>> burst_files(2, {"quota_us": 20_000, "burst_us": 10_000})
        ([('cpu.max.burst', '0')], [('cpu.max.burst', '10000')])
        >>> burst_files(1, {"burst_us": 10_000}), burst_files(2, {"quota_us": -1, "burst_us": 0})
        (([], [('cpu.cfs_burst_us', '10000')]), ([('cpu.max.burst', '0')], []))
    """
    if "burst_us" not in values:
        return [], []
    name, burst = _FILES[version]["burst"], str(values["burst_us"])
    none = (name, "0")
    if not values.keys() & {"quota_us", "period_us"}:
        return [], [(name, burst)]
    return [none], [(name, burst)] if burst != "0" else []


def limit_files(version: Version, quota_us: int, period_us: int) -> list[tuple[str, str]]:
    """The files for a limit, in the order in which they are written, and their contents.

    Examples:
        >>> limit_files(2, 50_000, 100_000), limit_files(2, -1, 100_000)
        ([('cpu.max', '50000 100000')], [('cpu.max', 'max 100000')])
        >>> limit_files(1, 50_000, 100_000)
        [('cpu.cfs_period_us', '100000'), ('cpu.cfs_quota_us', '50000')]
    """
    none = is_none(quota_us)
    if version == 1:
        return [("cpu.cfs_period_us", str(period_us)), ("cpu.cfs_quota_us", str(NONE if none else quota_us))]
    return [("cpu.max", f"{'max' if none else quota_us} {period_us}")]


def is_none(quota_us: int) -> bool:
    """`True`: the quota means that there is no limit.

    Examples:
        >>> [is_none(quota) for quota in (-1, 50_000, 17_592_186_044_415)]
        [True, False, True]
    """
    return quota_us < 0 or quota_us >= _LONGEST_US


def _quota(quota_us: int, period_us: int) -> list[str] | None:
    """A limit as systemd writes it, to a hundredth of a percent; `None`: systemd cannot express the limit.

    Examples:
        >>> _quota(125_000, 50_000), _quota(1_000, 3_000), _quota(-1, 100_000)
        (['CPUQuota=250%', 'CPUQuotaPeriodSec=50ms'], None, ['CPUQuota='])
    """
    if is_none(quota_us):
        return ["CPUQuota="]
    hundredths, rest = divmod(10_000 * quota_us, period_us)
    if rest or period_us % 1000:
        return None
    part = f".{hundredths % 100:02}" if hundredths % 100 else ""
    period = [] if period_us == PERIOD_US else [f"CPUQuotaPeriodSec={period_us // 1000}ms"]
    return [f"CPUQuota={hundredths // 100}{part}%", *period]


WHOLE = {"global_quota_us": "quota_us", "global_period_us": "period_us", "global_burst_us": "burst_us"}
"""Parameters of a domain that apply to the group with all its threads, and their names in that group."""


def of_whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the group with all threads of a domain, from the domain's, as `shared` takes them."""
    names = {"weight": "weight", "idle": "idle", **WHOLE}
    return {names[name]: value for name, value in values.items() if name in names}
