"""The commands that set up or change a scenario with the host's toolstack."""

from collections.abc import Callable

from vcpulab.errors import RequestError
from vcpulab.hypervisors import TOOLSTACKS, Toolstack, cgroup, libvirt, proxmox, xapi, xl
from vcpulab.hypervisors.settings import Change, difference, set_up
from vcpulab.hypervisors.steps import Step
from vcpulab.scenario.scenario import Scenario

_STEPS: dict[str, Callable[[Change], list[Step]]] = {
    "xl": xl.steps,
    "xapi": xapi.steps,
    "libvirt": libvirt.steps,
    "proxmox": proxmox.steps,
    "cgroup": cgroup.steps,
}
HYPERVISORS = {"xen": "Xen", "kvm": "KVM"}
"""Display names of the hypervisors."""


def commands(scenario: Scenario, toolstack: Toolstack | None = None) -> list[Step]:
    """The steps that set up a scenario's pCPUs, pools, schedulers, parameters, pinning and actions on a real host.

    Args:
        scenario: the scenario to set up.
        toolstack: the toolstack to write commands for; `None`: `host.toolstack`.

    Examples:
        >>> web = Scenario.starter().change({"host.scheduler": "credit2", "domain.web.weight": 512})
        >>> for step in commands(web):
        ...     print(step.how, step.text)
        boot echo 'GRUB_CMDLINE_XEN_DEFAULT="$GRUB_CMDLINE_XEN_DEFAULT sched=credit2 ...
        run xl sched-credit2 -d Domain-0 -w 512
        run xl sched-credit2 -d web -w 512
        keep sed -i '$a cpu_weight = 512' /etc/xen/web.cfg
        keep mkdir -p /etc/systemd/system/xendomains.service.d && printf ...
    """
    return typed(set_up(scenario), toolstack)


def new_steps(before: Scenario, after: Scenario, toolstack: Toolstack | None = None) -> list[Step]:
    """The steps that turn a scenario that is set up into another one, and keep the change.

    Args:
        before: the present scenario.
        after: the new scenario.
        toolstack: the toolstack to write commands for; `None`: `host.toolstack`.

    Examples:
        >>> web = Scenario.starter()
        >>> for step in new_steps(web, web.change({"domain.batch.cap": 50})):
        ...     print(step.how, step.text)
        run xl sched-credit -d batch -c 50
        keep sed -i '$a cap = 50' /etc/xen/batch.cfg
    """
    return typed(difference(before, after), toolstack)


def typed(change: Change, toolstack: Toolstack | None = None) -> list[Step]:
    """The steps of a change."""
    _check(change.hypervisor, toolstack)
    return _STEPS[toolstack or change.toolstack](change)


def check(scenario: Scenario, toolstack: Toolstack | None) -> None:
    """Checks that a toolstack belongs to the host's hypervisor.

    Raises:
        RequestError: the toolstack belongs to another hypervisor.
    """
    _check(scenario.host.hypervisor, toolstack)


def _check(hypervisor: str, toolstack: Toolstack | None) -> None:
    allowed = TOOLSTACKS[hypervisor]
    if toolstack is not None and toolstack not in allowed:
        reason = f"the scenario's host is a {HYPERVISORS[hypervisor]} host (host.hypervisor)"
        raise RequestError(reason, field="toolstack", found=toolstack, allowed=", ".join(allowed))
