"""Settings of hosts: read from the scenario of a twin, compared, and applied to another scenario."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.scenario.catalogue import param_names
from vcpulab.twin.twin import Twin

PLACES = ("affinity", "soft_affinity", "pool")
_DEMANDED = ("costs", "profile")
"""Fields of a host about its measured costs: they belong to the demands, not to the setting."""
_WORDS = {"tslice_ms": "slice", "ratelimit_us": "rate limit", "affinity": "pinning", "soft_affinity": "soft affinity"}


@dataclass(frozen=True)
class Setting:
    """The setting of a host: fields of a scenario that its administrator decides."""

    host: Mapping[str, Any]
    domains: Mapping[str, Mapping[str, Any]]
    pools: Mapping[str, Any]

    @property
    def key(self) -> str:
        """A text that is the same for the same setting."""
        return json.dumps([self.host, self.domains, self.pools], sort_keys=True)

    @property
    def scheduler(self) -> str:
        """The scheduler of the host."""
        return str(self.host["scheduler"])

    def on(self, demands: Mapping[str, Any], *, rebooted: bool = False) -> dict[str, Any]:
        """The scenario with the demands of another scenario, in this setting.

        Args:
            demands: the other scenario.
            rebooted: the settings are of different boots, so that ticks of the guests are at random times.
        """
        left_out = _domain_fields() | ({"idle_tick_at"} if rebooted else set())
        host = dict(self.host) | {name: demands["host"][name] for name in _DEMANDED if name in demands["host"]}
        domains = {
            name: {field: value for field, value in table.items() if field not in left_out}
            | dict(self.domains.get(name, {}))
            for name, table in demands["domain"].items()
        }
        return dict(demands) | {"host": host, "pool": dict(self.pools), "domain": domains}


def setting_of(twin: Twin) -> Setting:
    """The setting of a recorded host, from its twin."""
    document = twin.scenario.to_dict()
    host = {name: value for name, value in document["host"].items() if name not in _DEMANDED}
    domains = {
        name: {field: value for field, value in table.items() if field in _domain_fields()}
        for name, table in document["domain"].items()
    }
    return Setting(host, domains, document.get("pool", {}))


def changes(before: Setting, after: Setting) -> list[str]:
    """The changed parameters, such as `scheduler` or `weight`; parameters that a scheduler lacks do not count."""
    return list(dict.fromkeys(_changes(before, after)))


def _changes(before: Setting, after: Setting) -> Iterator[str]:
    if before.scheduler != after.scheduler:
        yield "scheduler"
    if before.host.get("generation") != after.host.get("generation") and before.scheduler == after.scheduler:
        yield "release"
    for name in sorted(before.host.keys() & after.host.keys()):
        if before.host[name] != after.host[name] and name not in ("scheduler", "generation"):
            yield _WORDS.get(name, name)
    if before.pools != after.pools:
        yield "pool"
    for name in sorted(before.domains.keys() & after.domains.keys()):
        old, new = before.domains[name], after.domains[name]
        for field in sorted((old.keys() & new.keys()) | set(PLACES)):
            if old.get(field) != new.get(field):
                yield "Dom0's weight" if (name, field) == ("dom0", "weight") else _WORDS.get(field, field)


def _domain_fields() -> frozenset[str]:
    return param_names("domain") | frozenset(PLACES)
