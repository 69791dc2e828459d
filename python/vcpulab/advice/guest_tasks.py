"""The vCPUs on which the tasks of an application begin: a guest spreads its tasks over its vCPUs in turn."""

from vcpulab.results.addresses import Address, apps
from vcpulab.scenario.model import App
from vcpulab.scenario.scenario import Scenario

_TASKS = ("workers", "threads", "jobs", "streams")
"""Fields that hold the number of tasks of an application; without such a field it has one task."""


def vcpus_of(scenario: Scenario, address: Address) -> frozenset[int]:
    """The vCPUs on which the tasks of an address's application begin; empty: any vCPU of its domain, or unknown.

    Args:
        scenario: the host.
        address: a metric of an application, or of a client of an application.

    Examples:
        >>> domain = {"vcpus": 4, "app": [{"kind": "hog"}, {"kind": "spin", "threads": 2}]}
        >>> host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
        >>> both = Scenario.from_dict({"name": "both", "host": host, "domain": {"vm": domain}})
        >>> from vcpulab.results.addresses import find
        >>> [sorted(vcpus_of(both, find(both, name))) for name in ("vm.0.throughput", "vm.1.throughput", "vm.waited")]
        [[0], [1, 2], []]
    """
    if address.kind != "app":
        return frozenset()
    domain = scenario.domains[address.domain]
    (app,) = (app for app in apps(scenario) if app.name == address.thing)
    served_by = None if app.client is None else scenario.clients[app.client].app
    vcpus: set[int] = set()
    position = begin = 0
    for declared in domain.apps:
        for _ in range(declared.instance):
            tasks = range(begin, begin + _tasks(declared))
            if position == app.position if served_by is None else served_by == declared.kind:
                vcpus.update(task % domain.vcpus for task in tasks)
            position, begin = position + 1, tasks.stop
    return frozenset(vcpus)


def _tasks(app: App) -> int:
    return max((int(app.params[field]) for field in _TASKS if isinstance(app.params.get(field), int)), default=1)
