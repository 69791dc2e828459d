"""Domains that are alike: the same settings, applications, clients and actions, but for the name."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
    said = [_settings(scenario.to_dict()) for scenario in scenarios]
    found: dict[tuple[str, ...], list[str]] = {}
    for domain in said[0]:
        found.setdefault(tuple(settings.get(domain, "") for settings in said), []).append(domain)
    return list(found.values())


def _settings(document: Mapping[str, Any]) -> dict[str, str]:
    """Everything that a scenario says of each domain, without its name."""
    clients = _by("server", document.get("client", {}).values())
    actions = _by("domain", document.get("action", []))
    frames = [document["host"], *document.get("pool", {}).values()]
    slots = _by("domain", (slot for frame in frames for slot in frame.get("entries", [])))
    named = {
        name for kind in ("domain", "client") for table in document.get(kind, {}).values() for name in _names(table)
    }
    found = {}
    for domain, table in document["domain"].items():
        of_it = [_without(part, domain) for part in (table, clients[domain], actions[domain], slots[domain])]
        # Where it is named by another one, it is not alike.
        found[domain] = json.dumps([*of_it, domain if domain in named else None], sort_keys=True)
    return found


def _by(key: str, tables: Iterable[Mapping[str, Any]]) -> defaultdict[str | None, list[Mapping[str, Any]]]:
    """The tables by what they have under a key."""
    found = defaultdict(list)
    for table in tables:
        found[table.get(key)].append(table)
    return found


def _without(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return {key: _without(value, name) for key, value in part.items() if value != name}
    return [_without(one, name) for one in part] if isinstance(part, list) else part


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """Whatever may be the name of a domain in a table."""
    for key, value in table.items():
        if key not in ("server", "kind"):
            if isinstance(value, Mapping):
                yield from _names(value)
            elif isinstance(value, str):
                yield value
