"""The commands for a scenario, or for a change of one, of the toolstack that the host has."""

from collections.abc import Callable

from vcpulab.hypervisors import Toolstack, libvirt, xapi, xl
from vcpulab.hypervisors.settings import Change, difference, set_up
from vcpulab.hypervisors.steps import Step
from vcpulab.scenario.scenario import Scenario

_STEPS: dict[str, Callable[[Change], list[Step]]] = {"xl": xl.steps, "xapi": xapi.steps, "libvirt": libvirt.steps}


def commands(scenario: Scenario, toolstack: Toolstack | None = None) -> list[Step]:
    """What sets up a scenario's pCPUs, pools, schedulers, parameters, pinning and actions on a real host.

    Args:
        scenario: it.
        toolstack: whose commands; `None`: those of `host.toolstack`.

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
    """What makes one scenario of another that is set up already, and keeps it so.

    Args:
        before: as it is.
        after: as it is to be.
        toolstack: whose commands; `None`: those of `host.toolstack`.

    Examples:
        >>> web = Scenario.starter()
        >>> for step in new_steps(web, web.change({"domain.batch.cap": 50})):
        ...     print(step.how, step.text)
        run xl sched-credit -d batch -c 50
        keep sed -i '$a cap = 50' /etc/xen/batch.cfg
    """
    return typed(difference(before, after), toolstack)


def typed(change: Change, toolstack: Toolstack | None = None) -> list[Step]:
    """What is typed for a change."""
    return _STEPS[toolstack or change.toolstack](change)
