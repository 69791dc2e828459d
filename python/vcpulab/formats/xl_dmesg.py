"""The output of the hypervisor in `xl dmesg`."""

import re
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of


@dataclass(frozen=True)
class Memory:
    """Memory of a domain on a node, as `xl debug-keys u` writes it."""

    domain: int
    node: int
    pages: int


@dataclass(frozen=True)
class DebugDomain:
    """A domain as `xl debug-keys r` has it: Credit's and Credit2's parameters."""

    number: int
    weight: int
    cap: int
    vcpus: int


@dataclass
class Dmesg:
    """The settings of a host and its domains that `xl dmesg` prints."""

    settings: dict[str, str] = field(default_factory=dict)
    """Settings under their names in `xl info`: `xen_version`, `xen_commandline`, `xen_scheduler`, `nr_cpus`."""
    memory: list[Memory] = field(default_factory=list)
    domains: list[DebugDomain] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """All of it, by name."""
        rows: dict[str, list[Any]] = {"memory": self.memory, "domains": self.domains}
        return {**self.settings, **{name: [asdict(row) for row in listed] for name, listed in rows.items() if listed}}


_PREFIX = re.compile(r"\(XEN\)\s{0,80}(\[[^\]]{0,80}\]\s{0,80})?")
_SETTINGS = (
    ("xen_version", re.compile(r"Xen version (?P<value>\d+\.\d+\S*)")),
    ("xen_commandline", re.compile(r"Command line: (?P<value>.*)")),
    ("xen_scheduler", re.compile(r"(?:Using scheduler|Scheduler): [^(]{0,80}\((?P<value>\w+)\)")),
    ("nr_cpus", re.compile(r"Brought up (?P<value>\d{1,5}) CPUs")),
    ("nr_cpus", re.compile(r"Online Cpus: 0-(?P<last>\d{1,4})$")),
)
_DEBUG_DOMAIN = re.compile(r"Domain: (?P<number>\d{1,5}) w (?P<weight>\d{1,9}) c (?P<cap>\d{1,9}) v (?P<vcpus>\d{1,9})")
_MEMORY_OF = re.compile(r"(?:Domain |d)(?P<domain>\d{1,5}) \(total: \d{1,15}\):?")
_ON_NODE = re.compile(r"Node (?P<node>\d{1,4}): (?P<pages>\d{1,15})")


def read_dmesg(path: str | PathLike[str]) -> Dmesg:
    """The facts in `xl dmesg` on booting, and after `xl debug-keys u` and `r`; of several dumps the last counts.

    Raises:
        RecordingError: the file contains none of these facts.
    """
    dmesg = Dmesg()
    pages: dict[tuple[int, int], int] = {}
    domains: dict[int, DebugDomain] = {}
    domain: int | None = None
    for line in text_of(path).splitlines():
        prefix = _PREFIX.match(line)
        text = line[prefix.end() :].strip() if prefix else line.strip()
        memory, node, debug = _MEMORY_OF.fullmatch(text), _ON_NODE.fullmatch(text), _DEBUG_DOMAIN.fullmatch(text)
        if text == "Memory location of each domain:":
            pages, domain = {}, None
        elif memory is not None:
            domain = int(memory["domain"])
        elif node is not None and domain is not None:
            pages[domain, int(node["node"])] = int(node["pages"])
        elif debug is not None:
            domains[int(debug["number"])] = DebugDomain(*map(int, debug.groups()))
        else:
            _add_setting(dmesg.settings, text)
    dmesg.memory = [Memory(owner, node, count) for (owner, node), count in pages.items()]
    dmesg.domains = list(domains.values())
    if not (dmesg.settings or dmesg.memory or dmesg.domains):
        allowed = "`xl dmesg` of booting, or after `xl debug-keys u` or `r`"
        raise wrong(str(path), None, "nothing of the host", allowed)
    return dmesg


def _add_setting(settings: dict[str, str], text: str) -> None:
    for name, pattern in _SETTINGS:
        match = pattern.match(text)
        if match is not None:
            values = match.groupdict()
            settings[name] = values["value"] if "value" in values else str(int(values["last"]) + 1)
