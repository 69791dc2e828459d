"""A scenario as rules look at it, and what they find."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from vcpulab.hypervisors.xl import members
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.settings import generation_of


@dataclass(frozen=True)
class Finding:
    """Something that is probably not meant."""

    rule: str
    path: str
    """What is wrong, as a dotted path."""
    reason: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """What mends it, as `Scenario.change` takes it; nothing: that is for the administrator to know."""


class Host:
    """A scenario as rules look at it."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario = scenario
        self.run = run
        """It as it is, simulated."""

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The complete scenario."""
        return self.scenario.to_dict()

    @cached_property
    def domains(self) -> Mapping[str, Mapping[str, Any]]:
        """Name to table."""
        found: Mapping[str, Mapping[str, Any]] = self.document["domain"]
        return found

    @cached_property
    def pools(self) -> Mapping[str | None, Mapping[str, Any]]:
        """Name (`None`: the host's own) to its table."""
        return {None: self.document["host"], **self.document.get("pool", {})}

    def pool_of(self, domain: str) -> Mapping[str, Any]:
        """The pool that a domain is in."""
        return self.pools[self.domains[domain].get("pool")]

    def pcpus_of(self, pool: str | None) -> list[int]:
        """The pCPUs of a pool."""
        taken = {p for name, table in self.pools.items() if name is not None for p in members(table["pcpus"])}
        if pool is not None:
            return members(self.pools[pool]["pcpus"])
        return [pcpu for pcpu in range(self.document["host"]["pcpus"]) if pcpu not in taken]

    def params(self, pool: Mapping[str, Any], scope: str) -> dict[str, Mapping[str, Any]]:
        """The parameters of a pool's scheduler by name."""
        generation = generation_of(pool["scheduler"], pool["generation"])
        params = generation["params"] if generation is not None else ()
        return {param["name"]: param for param in params if param["scope"] == scope}

    def value(self, domain: str, name: str) -> int | None:
        """A domain's parameter; `None`: its scheduler has no such, or it has no default."""
        param = self.params(self.pool_of(domain), "domain").get(name)
        if param is None:
            return None
        given = self.domains[domain].get(name, param["default"])
        return None if given is None else int(given)

    def served_by(self, driver: str) -> list[str]:
        """The domains whose I/O goes through that one."""
        devices = ((name, table.get(device)) for name, table in self.domains.items() for device in ("nic", "disk"))
        return list(dict.fromkeys(name for name, device in devices if device and device.get("driver_domain") == driver))

    @cached_property
    def drivers(self) -> list[str]:
        """The domains that do others' I/O."""
        return [name for name in self.domains if self.served_by(name)]

    def affinity(self, domain: str) -> list[list[int]]:
        """For each vCPU the pCPUs that it may run on."""
        table = self.domains[domain]
        given = table.get("affinity", "all")
        here = self.pcpus_of(table.get("pool"))
        listed = given if isinstance(given, list) else [given] * table["vcpus"]
        return [here if one == "all" else members(one) for one in listed]

    def idle_of(self, pcpus: list[int]) -> float:
        """Which part of the time these idled."""
        there = self.run.df_pcpus().filter(pl.col("pcpu").is_in(pcpus))
        return float(there["idle_ns"].sum()) / max(1, float(there["elapsed_ns"].sum()))


def of_domain(domain: str, name: str) -> str:
    """The path of a domain's field."""
    return join(["domain", domain, name])
