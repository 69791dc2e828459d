"""The output of Proxmox VE's `qm`, and its files of virtual machines.

Names are those of qm(1) and qm.conf(5).
"""

import re
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.headed import headed
from vcpulab.formats.machine import Machine
from vcpulab.formats.sources import text_of

LIST_HEADING = ["VMID", "NAME", "STATUS"]
_VMID, _PROCESS = re.compile(r"\d{1,9}", re.ASCII), re.compile(r"\d{1,10}", re.ASCII)
_SETTING = re.compile(r"(?P<name>[a-z_]{1,80}\d{0,8}):(?P<value>.*)")
_NODES = re.compile(r"(?:^|,)hostnodes=(?P<nodes>[\d;-]+)")
_PERIOD_US = 100_000
"""Proxmox limits by systemd's CPUQuota, whose period this is."""


def read_list(path: str | PathLike[str]) -> list[Machine]:
    """`qm list`.

    Raises:
        RecordingError: the file does not have this format.
    """
    machines = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.split()[:3] == LIST_HEADING:
            continue
        # A machine without a name is called `VM 100`.
        vmid, *name, state, _, _, process = cells if len(cells := line.split()) > 5 else [""] * 6
        if not _VMID.fullmatch(vmid) or not _PROCESS.fullmatch(process):
            raise wrong(str(path), number, line, "VMID, name, status, …, process")
        running = state == "running"
        named = vmid if name == ["VM", vmid] else " ".join(name)
        machines.append(Machine(named, int(vmid), int(process) or None if running else None, running))
    return machines


def read_config(path: str | PathLike[str]) -> list[Machine]:
    """`qm config`, or /etc/pve/qemu-server/VMID.conf; of several under headings each.

    Raises:
        RecordingError: the file does not have this format.
    """
    settings_of: dict[str, dict[str, str]] = {}
    over: set[str] = set()
    # Lines that begin with `#` are the description of a machine, and headings only where nothing else numbers machines.
    for about, number, line in headed(path, "qm|config", comments=r"\d{1,9}"):
        machine_settings = settings_of.setdefault(about, {})
        if line.startswith("#"):
            continue
        if line.strip().startswith("["):
            over.add(about)  # What follows are its snapshots.
        if about in over:
            continue
        match = _SETTING.fullmatch(line)
        if match is None:
            raise wrong(str(path), number, line, "`name: value`")
        machine_settings.setdefault(match["name"], match["value"].strip())
    return [_machine(str(path), about, settings) for about, settings in settings_of.items()]


def _machine(path: str, about: str, settings: dict[str, str]) -> Machine:
    def number(name: str, default: int) -> int:
        text = settings.get(name, str(default))
        if not re.fullmatch(r"\d{1,6}", text):
            raise wrong(path, None, text, f"a number as {name}")
        return int(text)

    vmid = int(about) if about.isdecimal() and len(about) < 10 else None
    vcpus = number("vcpus", number("cores", 1) * number("sockets", 1))
    shares = number("cpuunits", 100) if "cpuunits" in settings else None
    limit = settings.get("cpulimit", "0")
    if not re.fullmatch(r"\d{1,4}(\.\d{1,6})?", limit):
        raise wrong(path, None, limit, "a number of CPUs as cpulimit, 0: none")
    quota = {"global_quota_us": round(float(limit) * _PERIOD_US), "global_period_us": _PERIOD_US}
    # It is the affinity of the whole process.
    pin = settings.get("affinity") or None
    bound = [_NODES.search(value) for name, value in settings.items() if re.fullmatch(r"numa\d+", name)]
    disks = [value for name, value in settings.items() if re.fullmatch(r"(scsi|virtio)\d+", name)]
    return Machine(
        settings.get("name", about),
        vmid,
        running=False if settings.get("template") == "1" else None,
        vcpus=vcpus,
        params=quota if float(limit) else {},
        configured=True,
        shares=shares,
        vcpu_pins={} if pin is None else dict.fromkeys(range(min(vcpus, 4096)), pin),
        emulator_pin=pin,
        iothread_pin=pin,
        iothreads=sum(bool(re.search(r"(^|,)iothread=1(,|$)", value)) for value in disks),
        memory_nodes=",".join(match["nodes"] for match in bound if match).replace(";", ",") or None,
    )
