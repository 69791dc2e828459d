"""The threads of a KVM host that serve VMs: the vCPUs of a domain that is in no scenario file."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from vcpulab.scenario.units import pcpu_set

HOST = "host"
"""The name of that domain in results."""
PERIOD_US = 100_000
"""The default of all periods of quotas."""

Kind = Literal["vhost", "emulator", "iothread"]


class HostThread(NamedTuple):
    """A thread that serves a VM; its position among the threads is the number of its vCPU."""

    domain: str
    """The VM that it serves."""
    kind: Kind
    affinity: str
    """The pCPUs that it may run on; `all`: every one."""

    def __str__(self) -> str:
        return f"{'I/O' if self.kind == 'iothread' else self.kind} thread of {self.domain}"


def host_threads(document: Mapping[str, Any]) -> list[HostThread]:
    """The threads of a scenario's host, in order; none for other hosts than KVM's.

    Examples:
        >>> web = {"nic": {}, "disk": {}, "iothreads": 1, "emulator_affinity": "0-1"}
        >>> for thread in host_threads({"host": {"hypervisor": "kvm"}, "domain": {"web": web}}):
        ...     print(thread, "on", thread.affinity)
        vhost thread of web on 0-1
        I/O thread of web on all
    """
    if document["host"].get("hypervisor") != "kvm":
        return []
    return [
        HostThread(name, kind, table.get(f"{'iothread' if kind == 'iothread' else 'emulator'}_affinity", "all"))
        for name, table in document["domain"].items()
        for kind in _kinds(table)
    ]


def cpuset(document: Mapping[str, Any], domain: str) -> frozenset[int]:
    """The pCPUs that the control groups around a domain of a KVM host leave to its threads; of another host all.

    Examples:
        >>> groups = {"a": {"cpus": "0-2"}, "a/b": {"cpus": "2-5"}, "a/b/c": {"cpus": "7"}}
        >>> vms = {"vm": {"cgroup": "a/b"}, "other": {"cgroup": "a/b/c"}, "third": {"cgroup": "machine.slice"}}
        >>> host = {"host": {"pcpus": 4}, "cgroup": groups, "domain": vms}
        >>> [sorted(cpuset(host, domain)) for domain in vms]
        [[2], [2], [0, 1, 2, 3]]
    """
    pcpus = document["host"]["pcpus"]
    allowed = frozenset(range(pcpus))
    path = ""
    for step in filter(None, str(document["domain"][domain].get("cgroup", "")).split("/")):
        path = f"{path}/{step}".strip("/")
        allowed = allowed & pcpu_set(document.get("cgroup", {}).get(path, {}).get("cpus", "all"), pcpus) or allowed
    return allowed


def polls_us(document: Mapping[str, Any]) -> int:
    """For how long a vCPU may poll once its guest has halted, µs: not at all where that is in what guests compute.

    Examples:
        >>> polls_us({"host": {"halt_poll_us": 200}}), polls_us({"host": {"halt_poll_us": 200, "polls_recorded": True}})
        (200, 0)
    """
    host = document["host"]
    return 0 if host.get("polls_recorded") else int(host.get("halt_poll_us", 0))


def _kinds(table: Mapping[str, Any]) -> list[Kind]:
    present = set[Kind]()
    if "nic" in table:
        present.add("emulator" if table["nic"].get("emulated") else "vhost")
    if "disk" in table:
        present.add("emulator" if table["disk"].get("emulated") or not table.get("iothreads") else "iothread")
    order: tuple[Kind, ...] = ("vhost", "emulator", "iothread")
    return [kind for kind in order if kind in present]


def quota(table: Mapping[str, Any]) -> float | None:
    """The most that the quotas of a VM's table let its vCPUs have together, in pCPUs; `None`: it has none.

    Examples:
        >>> quota({"vcpus": 4, "vcpu_quota_us": 50_000}), quota({"vcpus": 1, "global_quota_us": -1})
        (2.0, None)
    """
    whole, each = quota_of(table, "global"), quota_of(table, "vcpu")
    limits = [whole, None if each is None else table["vcpus"] * each]
    return min((limit for limit in limits if limit is not None), default=None)


def quota_of(table: Mapping[str, Any], part: str) -> float | None:
    """The quota of a VM's table for the whole VM (`global`) or for each vCPU (`vcpu`), in pCPUs; `None`: it has none.

    Examples:
        >>> quota_of({"vcpus": 4, "vcpu_quota_us": 50_000}, "vcpu")
        0.5
    """
    length = table.get(f"{part}_quota_us", -1)
    return length / table.get(f"{part}_period_us", PERIOD_US) if length > 0 else None
