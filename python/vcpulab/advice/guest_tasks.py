"""The vCPUs on which the tasks of an application begin: a guest spreads its tasks over its vCPUs in turn."""

from collections.abc import Mapping
from typing import Any

from vcpulab.results.addresses import Address, apps
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
    document = scenario.to_dict()
    table = document["domain"][address.domain]
    (app,) = (app for app in apps(scenario) if app.name == address.thing)
    kind_asked = None if app.client is None else document["client"][app.client].get("app")
    vcpus: set[int] = set()
    position = begin = 0
    for fields in table.get("app", []):
        for _ in range(fields.get("instance", 1)):
            tasks = range(begin, begin + _tasks(fields))
            if position == app.position if app.client is None else kind_asked in (None, fields["kind"]):
                vcpus.update(task % table["vcpus"] for task in tasks)
            position, begin = position + 1, tasks.stop
    return frozenset(vcpus)


def _tasks(app: Mapping[str, Any]) -> int:
    return max((int(app[field]) for field in _TASKS if isinstance(app.get(field), int)), default=1)
