"""The threads of a KVM host that serve VMs: the vCPUs of a domain that is in no scenario file."""

from typing import Literal, NamedTuple

from vcpulab.scenario.model import Domain, Host, Model
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


def host_threads(scenario: Model) -> list[HostThread]:
    """The threads of a scenario's host, in order; none for other hosts than KVM's.

    Examples:
        >>> device = {"emulated": False}
        >>> web = {"nic": device, "disk": device, "iothreads": 1, "emulator_affinity": "0-1"}
        >>> for thread in host_threads(Model({"host": {"hypervisor": "kvm"}, "domain": {"web": web}})):
        ...     print(thread, "on", thread.affinity)
        vhost thread of web on 0-1
        I/O thread of web on all
    """
    if scenario.host.hypervisor != "kvm":
        return []
    return [
        HostThread(name, kind, domain.iothread_affinity if kind == "iothread" else domain.emulator_affinity)
        for name, domain in scenario.domains.items()
        for kind in _kinds(domain)
    ]


def cpuset(scenario: Model, domain: str) -> frozenset[int]:
    """The pCPUs that the control groups around a domain of a KVM host leave to its threads; of another host all.

    Examples:
        >>> groups = {"a": {"cpus": "0-2"}, "a/b": {"cpus": "2-5"}, "a/b/c": {"cpus": "7"}}
        >>> vms = {"vm": {"cgroup": "a/b"}, "other": {"cgroup": "a/b/c"}, "third": {"cgroup": "machine.slice"}}
        >>> scenario = Model({"host": {"pcpus": 4}, "cgroup": groups, "domain": vms})
        >>> [sorted(cpuset(scenario, domain)) for domain in vms]
        [[2], [2], [0, 1, 2, 3]]
    """
    pcpus = scenario.host.pcpus
    allowed = frozenset(range(pcpus))
    path = ""
    for step in filter(None, (scenario.domains[domain].cgroup or "").split("/")):
        path = f"{path}/{step}".strip("/")
        group = scenario.cgroups.get(path)
        if group is not None and group.cpus is not None:
            allowed = allowed & pcpu_set(group.cpus, pcpus) or allowed
    return allowed


def polls_us(host: Host) -> int:
    """For how long a vCPU may poll once its guest has halted, µs: not at all where that is in what guests compute.

    Examples:
        >>> polls_us(Host({"halt_poll_us": 200})), polls_us(Host({"halt_poll_us": 200, "polls_recorded": True}))
        (200, 0)
    """
    return 0 if host.polls_recorded else host.halt_poll_us or 0


def _kinds(domain: Domain) -> list[Kind]:
    present = set[Kind]()
    if domain.nic is not None:
        present.add("emulator" if domain.nic.emulated else "vhost")
    if domain.disk is not None:
        present.add("emulator" if domain.disk.emulated or not domain.iothreads else "iothread")
    order: tuple[Kind, ...] = ("vhost", "emulator", "iothread")
    return [kind for kind in order if kind in present]


def quota(domain: Domain) -> float | None:
    """The most that the quotas of a VM let its vCPUs have together, in pCPUs; `None`: no quota limits them.

    Examples:
        >>> quota(Domain({"vcpus": 4, "vcpu_quota_us": 50_000})), quota(Domain({"vcpus": 1, "global_quota_us": -1}))
        (2.0, None)
    """
    whole, each = quota_of(domain, "global"), quota_of(domain, "vcpu")
    limits = [whole, None if each is None else domain.vcpus * each]
    return min((limit for limit in limits if limit is not None), default=None)


def quota_of(domain: Domain, part: Literal["global", "vcpu"]) -> float | None:
    """The quota of a VM for the whole VM (`global`) or for each vCPU (`vcpu`), in pCPUs; `None`: it has none.

    Examples:
        >>> quota_of(Domain({"vcpus": 4, "vcpu_quota_us": 50_000}), "vcpu")
        0.5
    """
    length: float = domain.params.get(f"{part}_quota_us", -1)
    return length / domain.params.get(f"{part}_period_us", PERIOD_US) if length > 0 else None
