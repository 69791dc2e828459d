"""Domains that are alike: the same settings, applications, clients and actions, but for the name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcpulab.scenario.names import grouped, without_number
from vcpulab.scenario.scenario import Scenario


def groups(*scenarios: Scenario) -> list[list[str]]:
    """The domains that are alike in each of these scenarios, in the first one's order; most are alone.

    Examples:
        >>> hog = {"app": [{"kind": "hog"}]}
        >>> host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
        >>> batch = {"batch1": hog, "batch2": hog, "heavy": hog | {"weight": 512}}
        >>> groups(Scenario.from_dict({"name": "three", "host": host, "domain": batch}))
        [['batch1', 'batch2'], ['heavy']]
    """
    return list(_groups(scenarios).values())


def group_of(*scenarios: Scenario) -> dict[str, tuple[str, ...]]:
    """Each domain to the domains that are alike; see `groups`."""
    return {name: tuple(group) for group in groups(*scenarios) for name in group}


ROWS_MAX = 8
"""More rows of domains than that are too many to look at."""


def rows(*scenarios: Scenario) -> list[list[str]]:
    """The domains that are shown in a row: alike ones; where that leaves too many rows, numbered ones that do the same.

    They have as many vCPUs, and applications of the same kinds; what a change makes different stays apart.

    Examples:
        >>> domains = {f"vm{number}": {"weight": 100 + number} for number in range(1, 10)}
        >>> host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
        >>> before = Scenario.from_dict({"name": "nine", "host": host, "domain": domains})
        >>> rows(before) == [list(domains)], rows(before, before.change({"domain.vm3.weight": 9}))[1]
        (True, ['vm3'])
    """
    groups = _groups(scenarios)
    if len(groups) <= ROWS_MAX:
        return list(groups.values())
    servers = {client.server for client in scenarios[0].clients.values()}
    merged: dict[tuple[object, ...], list[str]] = {}
    for settings, group in groups.items():
        stems = {without_number(name) for name in group}
        domain = scenarios[0].domains[group[0]]
        does = (domain.vcpus, domain.driver_domain, group[0] in servers, *(app.kind for app in domain.apps))
        # A group whose names have no stem in common stands for itself.
        key = (*stems, len(set(settings)) > 1, *does) if len(stems) == 1 else settings
        merged.setdefault(key, []).extend(group)
    return list(merged.values())


def _groups(scenarios: Sequence[Scenario]) -> dict[tuple[str, ...], list[str]]:
    """The domains that have the same settings as each other in every scenario, by these settings."""
    settings_of = [_settings(scenario) for scenario in scenarios]
    return grouped(settings_of[0], lambda domain: tuple(settings.get(domain, "") for settings in settings_of))


def _settings(scenario: Scenario) -> dict[str, str]:
    """The settings of each domain in a scenario as text, without the name of the domain."""
    domains, clients = scenario.domains, scenario.clients
    asking = grouped(clients.values(), lambda client: client.server)
    actions = grouped(scenario.actions, lambda action: getattr(action, "domain", None))
    frames = [scenario.host.params, *(pool.params for pool in scenario.pools.values())]
    slots = grouped((slot for frame in frames for slot in frame.get("entries", ())), lambda slot: slot.get("domain"))
    named = {name for table in (*domains.values(), *clients.values()) for name in _names(table.fields)}
    texts = {}
    for name, domain in domains.items():
        settings = [
            domain.fields,
            [client.fields for client in asking.get(name, ())],
            [action.fields for action in actions.get(name, ())],
            slots.get(name, ()),
        ]
        # A domain that another table names is unlike all other domains.
        texts[name] = json.dumps([_without(settings, name), name if name in named else None], sort_keys=True)
    return texts


def _without(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return {key: _without(value, name) for key, value in part.items() if value != name}
    return [_without(item, name) for item in part] if isinstance(part, list | tuple) else part


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """The values in a table that may be the name of a domain."""
    for key, value in table.items():
        if key not in ("server", "kind"):
            if isinstance(value, Mapping):
                yield from _names(value)
            elif isinstance(value, str):
                yield value
