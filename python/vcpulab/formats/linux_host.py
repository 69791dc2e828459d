r"""The reports of a Linux host: its kernel, files of /sys and /proc, control groups, threads.

Any of these lines, in any order, as `grep -s . FILES` writes them for several files (`PATH:VALUE`), or with a blank
after the colon, or below a heading `==> PATH <==` (`tail -n +1 FILES`) or a prompt with `cat PATH`: files of /sys,
/proc and /sys/fs/cgroup; a control group in brackets, and `FILE: VALUE` of it below; what `taskset -pc` prints;
what `uname -a`, `-sr` or `-r` and /proc/version say; lines of /boot/config-…; `NAME = VALUE` as sysctl prints; what
`mount` and `stat -fc %T /sys/fs/cgroup` print. `cpu.stat` of groups and /proc/*/task/*/schedstat, twice, with
`date +%s.%N` before each, tell CPU use.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypeVar

from vcpulab.formats.errors import wrong
from vcpulab.formats.excerpts import Excerpt
from vcpulab.formats.headed import heading_of
from vcpulab.formats.sources import lines_of

LINES_MAX = 1_000_000


@dataclass(frozen=True)
class ProcThread:
    """A thread or a process, as files in /proc describe it."""

    process: int | None = None
    name: str | None = None
    group: str | None = None
    """The path of the thread's control group, without the first `/`; empty: the root group."""
    cpus: str | None = None
    """The CPUs that the thread may run on."""


@dataclass(frozen=True)
class Linux:
    """The kernel, settings, control groups and threads that a host reports."""

    version: str | None = None
    """The text that names the kernel's release: `6.12.117+deb12-cloud-amd64, Debian 6.12.117-1~deb12u1`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the kernel by path or name."""
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Control groups by path without the first `/`, with the contents of their files."""
    threads: Mapping[int, ProcThread] = field(default_factory=dict)
    """Threads by number; a process is listed as its first thread."""
    built: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The options that kernels are built with, by the release in the name of their file: /boot/config-RELEASE."""
    used_ns: Mapping[str, Mapping[float, int]] = field(default_factory=dict)
    """The CPU time of control groups, by path and by the time of reading, s."""
    thread_ns: Mapping[int, Mapping[float, int]] = field(default_factory=dict)
    """The CPU time of threads by `schedstat`, by number and by the time of reading, s."""
    cgroups: Mapping[int, str] = field(default_factory=dict)
    """The versions of control groups that the CPU is seen under, each with a line that shows it."""
    mounts: frozenset[str] = frozenset()
    """The places other than /sys/fs/cgroup where groups are mounted."""

    def setting(self, name: str) -> str | None:
        """A setting by the last part of its name: `base_slice_ns`."""
        return next((value for path, value in self.settings.items() if re.split(r"[/.]", path)[-1] == name), None)

    def ends_with(self, path: str) -> str | None:
        """A setting by the last parts of its path: `sched/features`."""
        return next((value for name, value in self.settings.items() if name.endswith(f"/{path}")), None)

    @property
    def kernel(self) -> str | None:
        """The text that names the kernel, or else the only release that a file in /boot is of."""
        return self.version if self.version is not None or len(self.built) != 1 else next(iter(self.built))

    def option(self, name: str) -> str | None:
        """An option that the running kernel is built with; of several kernels in /boot it is the running one's."""
        running = (self.kernel or "").partition(" ")[0].rstrip(",")
        if name in self.built.get(running, {}):
            return self.built[running][name]
        values = {self.settings.get(name), *(options.get(name) for options in self.built.values())} - {None}
        return values.pop() if len(values) == 1 else None

    def updated(self, more: "Linux") -> "Linux":
        """The host with another report; where both say something, the other one counts."""
        return Linux(
            more.version or self.version,
            {**self.settings, **more.settings},
            _joined(self.groups, more.groups),
            {**self.threads, **more.threads},
            _joined(self.built, more.built),
            _joined(self.used_ns, more.used_ns),
            _joined(self.thread_ns, more.thread_ns),
            # The first line that shows a version is enough.
            {**self.cgroups, **more.cgroups, **self.cgroups},
            self.mounts | more.mounts,
        )

    def as_data(self) -> dict[str, Any]:
        """All of it, by name."""
        built = {
            f"/boot/config-{release}:{name}": text
            for release in self.built
            for name, text in self.built[release].items()
        }
        groups = {
            f"[{path}]": " ".join(f"{name}={value}" for name, value in files.items())
            for path, files in self.groups.items()
        }
        threads = {f"thread {number}": f"{thread.name} /{thread.group}" for number, thread in self.threads.items()}
        version = {} if self.version is None else {"version": self.version}
        return {**version, **self.settings, **built, **groups, **threads}


_Name = TypeVar("_Name")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _joined(
    first: Mapping[_Name, Mapping[_Key, _Value]], second: Mapping[_Name, Mapping[_Key, _Value]]
) -> dict[_Name, Mapping[_Key, _Value]]:
    """Mappings by name, those of the same name joined."""
    return {**first, **{name: {**first.get(name, {}), **items} for name, items in second.items()}}


@dataclass
class _Draft:
    """The lines of a report that are read so far; see `Linux`."""

    version: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    threads: dict[int, ProcThread] = field(default_factory=dict)
    built: dict[str, dict[str, str]] = field(default_factory=dict)
    used_ns: dict[str, dict[float, int]] = field(default_factory=dict)
    thread_ns: dict[int, dict[float, int]] = field(default_factory=dict)
    cgroups: dict[int, str] = field(default_factory=dict)
    mounts: frozenset[str] = frozenset()


_RELEASE = re.compile(r"\d{1,3}\.\d{1,3}(\.\d{1,4})?([-+.][\w.+~-]*)?")
_KERNEL = re.compile(
    r"version:\s*Linux (?P<listed>\S.*)|Linux version (?P<proc>\S.*)|"
    rf"Linux (?:\S+ )?(?P<uname>{_RELEASE.pattern}(?:\s.*)?)|(?P<release>{_RELEASE.pattern}(?: #.*)?)"
)
_CGROUP_FILE = re.compile(
    r"(?P<path>/[^:]*?)/?(?P<file>(?:cpu|cpuset|cpuacct|cgroup)\.[a-z_.]+)\s*:\s?(?P<value>.*)", re.ASCII
)
_CONTROLLERS = re.compile(r"^/sys/fs/cgroup(/(cpu|cpuset|cpu,cpuacct|cpuacct,cpu|unified|systemd))?(?=/|$)")
_MOUNTED_CONTROLLER = re.compile(r"(cpu|cpuset|cpuacct|cpuctl)(,(cpu|cpuset|cpuacct))*")
"""A mount point of version 1 at any place, by its name: `/cgroup/cpu`."""
_TOP_GROUP = re.compile(r".+\.slice|machine|libvirt|kubepods|lxc|docker")
"""The groups next to the root, which tell where a mount point with another name ends."""
_PROC = re.compile(
    r"/proc/(?P<pid>\d{1,10})(/task/(?P<tid>\d{1,10}))?/(?P<file>cgroup|comm|status)\s*:\s?(?P<value>.*)", re.ASCII
)
_ALLOWED_CPUS = re.compile(r"Cpus_allowed_list:\s*(?P<cpus>[\d,-]{1,4096})")
"""The line of a thread's `status` with the CPUs that it may run on."""
_AFFINITY = re.compile(r"pid (?P<tid>\d{1,10})'s (current|new) affinity list: (?P<cpus>[\d,-]{1,4096})")
"""What `taskset -pc` prints."""
_SCHEDSTAT = re.compile(
    r"/proc/\d{1,10}/task/(?P<tid>\d{1,10})/schedstat\s*:\s?(?P<ran>\d{1,19}) \d{1,19} \d{1,19}", re.ASCII
)
"""The time a thread ran and the time it waited, ns, and the number of its turns."""
_FILE = re.compile(r"(?P<path>/(?:sys|proc|etc|boot)/[^:\s]+)\s*:\s?(?P<value>.*)")
_BUILT = re.compile(r"(?:/boot/(?:config-(?P<release>[^:\s]+)|\S+?):)?(?P<name>CONFIG_\w+)=(?P<value>.*)")
_VERSION = re.compile(r"(?:/proc/version\s*:\s?|/proc/sys/kernel/osrelease\s*:\s?|kernel\.osrelease = )(?P<text>.*)")
"""A file or sysctl that names the kernel."""
_STAMP = re.compile(r"\d{9,11}(\.\d{1,9})?")
_FILE_SYSTEM = re.compile(r"cgroup2fs|tmpfs")
_MOUNT = re.compile(r"\S{1,4096} on (?P<on>/\S{0,4096}) type (?P<type>\S{1,64}) \((?P<options>.*)\)")
_PROC_MOUNTS = re.compile(r"\S{1,4096} (?P<on>/\S{0,4096}) (?P<type>[\w.]{1,64}) (?P<options>\S{1,4096}) \d \d")
_V1_PATH = re.compile(r"/sys/fs/cgroup/(cpu|cpu,cpuacct|cpuacct,cpu)/.*")
_SYSCTL = re.compile(r"(?P<name>[a-z]\w*(?:\.[\w-]+)+) = (?P<value>.*)")
_GROUP = re.compile(r"\[(?P<path>/?[^\]\"{]*)\]")
_CAT = re.compile(r"(?:sudo )?(?:cat|more|less|tail(?: -n ?\+1)?) ['\"]?(?P<path>/(?:sys|proc)/[^'\"]*)['\"]?")
"""A command that prints one file."""
_IN_GROUP = re.compile(r"(?P<name>[a-z_.]+)(?::\s*| )(?P<value>.*)")
BEGINS = (
    r"version: Linux |Linux version |Linux (\S+ )?\d+\.\d+|"
    rf"{_RELEASE.pattern}(\s*$| #)|/(sys|proc|boot)/[^:\n]{{1,4096}}:|\[[^\]\"{{]*\]$|"
    r"/[^:\n]{0,4096}/(cpu|cpuset|cpuacct)\.[a-z_.]{1,40}:|"
    r"CONFIG_\w+=|# Automatically generated file|[a-z]\w*\.[\w.-]+ = |\d{9,11}(\.\d{1,9})?\s*$|(cgroup2fs|tmpfs)\s*$|"
    r"\S{1,4096} on /\S{0,4096} type \S{1,64} \(|pid \d{1,10}'s current affinity list: "
)
"""The possible beginnings of such a text."""


def read_linux(path: str | PathLike[str]) -> Linux:
    """The kernel, settings, control groups and threads in such a text.

    Raises:
        RecordingError: a line says something else.
    """
    draft = _Draft()
    group: str | None = None
    at: float | None = None
    file = printed_file(path)
    for number, line in lines_of(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("==>"):
            file = heading_of(text)
            continue
        text = text if file is None or _STAMP.fullmatch(text) else f"{file}:{text}"
        if number > LINES_MAX:
            raise wrong(str(path), number, "more lines", f"at most {LINES_MAX}")
        header = _GROUP.fullmatch(text)
        if _STAMP.fullmatch(text):
            at = float(text)
        elif header is not None:
            group = _path(header["path"])
            draft.groups.setdefault(group, {})
        elif _took(draft, text, at):
            group = None
        elif group is None or not _in_group(draft, group, text, at):
            allowed = "`PATH:VALUE` of files in /sys and /proc, `[GROUP]`, or what uname, sysctl or /boot/config-… says"
            raise wrong(str(path), number, line, allowed)
    return Linux(**vars(draft))


def printed_file(path: str | PathLike[str]) -> str | None:
    """The file of /sys or /proc that the command above an excerpt prints; `None`: it prints no file, or several."""
    match = _CAT.fullmatch(path.command) if isinstance(path, Excerpt) else None
    return None if match is None else match["path"]


def _path(text: str) -> str:
    return text.strip("/")


def group_path(text: str) -> str:
    """The path of a control group below its mount point, which older hosts have at other places.

    Examples:
        >>> group_path("/sys/fs/cgroup/cpu,cpuacct/machine.slice"), group_path("/cgroup/cpu/libvirt/qemu/web")
        ('machine.slice', 'libvirt/qemu/web')
        >>> group_path("/mnt/groups/machine.slice/a.slice"), group_path("/dev/cpuctl"), group_path("/a/b")
        ('machine.slice/a.slice', '', 'a/b')
    """
    if _CONTROLLERS.match(text):
        return _path(_CONTROLLERS.sub("", text))
    parts = _path(text).split("/")
    after = next((at + 1 for at, part in enumerate(parts) if _MOUNTED_CONTROLLER.fullmatch(part)), None)
    top = next((at for at, part in enumerate(parts) if _TOP_GROUP.fullmatch(part)), None)
    return "/".join(parts[next((at for at in (after, top) if at is not None), 0) :])


def _in_group(draft: _Draft, group: str, text: str, at: float | None) -> bool:
    match = _IN_GROUP.fullmatch(text + " ")
    if match is not None and not (match["name"] == "cpu.stat" and not match["value"].strip()):
        _take_value(draft, group, match["name"], match["value"].strip(), at)
    return match is not None


def _take_value(draft: _Draft, group: str, name: str, value: str, at: float | None) -> None:
    """A value of a control group: of a file, or of a line of its `cpu.stat`."""
    draft.groups.setdefault(group, {})[name] = value
    ns = {"usage_usec": 1000, "cpuacct.usage": 1}.get(name)
    if ns is not None and at is not None and value.isdecimal() and len(value) < 20:
        draft.used_ns.setdefault(group, {})[at] = ns * int(value)


def _took(draft: _Draft, text: str, at: float | None) -> bool:
    named = _VERSION.fullmatch(text)
    text = text if named is None else named["text"].strip()
    kernel = _KERNEL.fullmatch(text)
    if kernel is not None:
        draft.version = next(filter(None, kernel.group("listed", "proc", "uname", "release")))
        return True
    proc = _PROC.fullmatch(text)
    if proc is not None:
        _add_thread(draft, proc)
        return True
    affinity = _AFFINITY.fullmatch(text)
    if affinity is not None:
        number = int(affinity["tid"])
        draft.threads[number] = replace(draft.threads.get(number, ProcThread()), cpus=affinity["cpus"])
        return True
    counters = _SCHEDSTAT.fullmatch(text)
    if counters is not None and at is not None:
        draft.thread_ns.setdefault(int(counters["tid"]), {})[at] = int(counters["ran"])
        return True
    of_group = _CGROUP_FILE.fullmatch(text)
    if of_group is not None:
        _add_to_group(draft, of_group, at)
        return True
    return _took_mount(draft, text) or _took_setting(draft, text)


def _took_setting(draft: _Draft, text: str) -> bool:
    if text.startswith("/boot/") and _BUILT.fullmatch(text) is None and ":#" in text:
        return True
    built = _BUILT.fullmatch(text)
    if built is not None:
        options = draft.settings if built["release"] is None else draft.built.setdefault(built["release"], {})
        options[built["name"]] = built["value"].strip()
        return True
    for pattern in (_SYSCTL, _FILE):
        match = pattern.fullmatch(text)
        if match is not None:
            name, value = match.groups()
            draft.settings[name] = value.strip()
            return True
    return False


def _took_mount(draft: _Draft, text: str) -> bool:
    """A line of `mount` or /proc/mounts, or the file system at /sys/fs/cgroup: a `tmpfs` has version 1 in it."""
    if _FILE_SYSTEM.fullmatch(text):
        draft.cgroups.setdefault(2 if text == "cgroup2fs" else 1, f"/sys/fs/cgroup is a {text}")
        return True
    mount = _MOUNT.fullmatch(text) or _PROC_MOUNTS.fullmatch(text.removeprefix("/proc/mounts:"))
    if mount is None:
        return False
    if mount["type"] == "cgroup2" and mount["on"] == "/sys/fs/cgroup":
        draft.cgroups.setdefault(2, "cgroup2 is mounted on /sys/fs/cgroup")
    elif mount["type"] == "cgroup" and "cpu" in mount["options"].split(","):
        draft.cgroups.setdefault(1, f"the controller of the CPU is mounted on {mount['on']}")
    return True


def _add_thread(draft: _Draft, match: re.Match[str]) -> None:
    process = int(match["pid"])
    number = int(match["tid"] or process)
    thread = draft.threads.setdefault(number, ProcThread(process))
    if match["file"] == "comm":
        draft.threads[number] = replace(thread, name=match["value"])
        return
    if match["file"] == "status":
        allowed = _ALLOWED_CPUS.fullmatch(match["value"])
        if allowed is not None:
            draft.threads[number] = replace(thread, cpus=allowed["cpus"])
        return
    controllers, _, group = match["value"].partition(":")[2].partition(":")
    # Version 2, or the one of version 1 that has the CPU.
    if controllers == "" or "cpu" in controllers.split(","):
        draft.threads[number] = replace(thread, group=_path(group))
    if "cpu" in controllers.split(","):
        draft.cgroups.setdefault(1, f"/proc/{process}/cgroup has the controller of the CPU")


def _add_to_group(draft: _Draft, match: re.Match[str], at: float | None) -> None:
    if _V1_PATH.match(match["path"]) and not match["file"].startswith("cgroup."):
        draft.cgroups.setdefault(1, f"{match['path']}/{match['file']}")
    path, file, value = group_path(match["path"]), match["file"], match["value"].strip()
    mount = match["path"].rstrip("/").removesuffix(path).rstrip("/")
    if mount and not _CONTROLLERS.match(match["path"]):
        draft.mounts |= {mount}
    if file in ("cgroup.procs", "cgroup.threads", "cgroup.tasks"):
        if value.isdecimal() and len(value) < 11:
            # Of a process without one thread's own: all its threads are there.
            draft.threads[int(value)] = replace(draft.threads.get(int(value), ProcThread()), group=path)
        return
    name, _, rest = value.partition(" ")
    if file == "cpu.stat":
        _take_value(draft, path, name, rest, at)
    else:
        _take_value(draft, path, file, value, at)
