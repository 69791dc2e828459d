"""Domains that are alike: the same settings, applications, clients and actions, but for the name."""

import json
from collections.abc import Mapping
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
    documents = [scenario.to_dict() for scenario in scenarios]
    found: dict[tuple[str, ...], list[str]] = {}
    for domain in documents[0]["domain"]:
        found.setdefault(tuple(_settings(document, domain) for document in documents), []).append(domain)
    return list(found.values())


def _settings(document: Mapping[str, Any], domain: str) -> str:
    """Everything that a scenario says of a domain, without its name."""
    if domain not in document["domain"]:
        return ""
    tables = [document["host"], *document.get("pool", {}).values()]
    of_it = [
        document["domain"][domain],
        [client for client in document.get("client", {}).values() if client["server"] == domain],
        [action for action in document.get("action", []) if action.get("domain") == domain],
        [slot for table in tables for slot in table.get("entries", []) if slot["domain"] == domain],
    ]
    # Where it is named by another one, it is not alike.
    named = [
        domain for kind in ("domain", "client") for table in document.get(kind, {}).values() if _names(table, domain)
    ]
    return json.dumps([_without(part, domain) for part in of_it] + named, sort_keys=True)


def _without(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return {key: _without(value, name) for key, value in part.items() if value != name}
    return [_without(one, name) for one in part] if isinstance(part, list) else part


def _names(table: Mapping[str, Any], domain: str) -> bool:
    return any(
        value == domain or (isinstance(value, Mapping) and _names(value, domain))
        for key, value in table.items()
        if key not in ("server", "kind")
    )
