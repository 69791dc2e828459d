"""Metrics and settings that are not comparable between two hypervisors."""

from collections.abc import Iterator, Mapping
from typing import Any

from vcpulab.hypervisors.commands import HYPERVISORS
from vcpulab.hypervisors.settings import hypervisor_of
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.threads import polls_us


def not_comparable(before: Scenario, after: Scenario) -> list[str]:
    """Sentences on what is not comparable between two scenarios; none, if both have the same hypervisor.

    Args:
        before: a scenario.
        after: another scenario.
    """
    sides = (before.to_dict(), after.to_dict())
    if hypervisor_of(sides[0]) == hypervisor_of(sides[1]):
        return []
    return [*_drivers(*sides), *_costs(*sides), *_weights(*sides), *_limits(*sides), *_polling(*sides)]


def _name(document: Mapping[str, Any]) -> str:
    return HYPERVISORS[hypervisor_of(document)]


def _drivers(*sides: Mapping[str, Any]) -> Iterator[str]:
    devices = any({"nic", "disk"} & table.keys() for document in sides for table in document["domain"].values())
    drivers = [name for document in sides for name, table in document["domain"].items() if table.get("driver_domain")]
    if devices:
        owners = f"vCPUs of {in_short(drivers)}" if drivers else "drivers elsewhere"
        yield (
            f"the way of packets and disk requests: under Xen through {owners}, under KVM through vhost, emulator and "
            "I/O threads: CPU time of these is no domain's, and has no counterpart"
        )


def _costs(*sides: Mapping[str, Any]) -> Iterator[str]:
    first, second = (str(document["host"]["profile"]) for document in sides)
    if first != second:
        yield f"costs: of the profiles {first} and {second}, two machines"
    elif first != "exact":
        yield (
            f"costs: both of the profile {first}, but those of exits, rings and threads were measured for each "
            "hypervisor by other people on other machines: small differences of CPU time mean nothing"
        )


def _weights(*sides: Mapping[str, Any]) -> Iterator[str]:
    defaults = [_default(document, "weight") for document in sides]
    if None not in defaults and defaults[0] != defaults[1]:
        weights = " and ".join(
            f"{value} under {_name(document)}" for value, document in zip(defaults, sides, strict=True)
        )
        yield f"weights: {weights} if left out: only those of one side compare with each other"


def _default(document: Mapping[str, Any], name: str) -> int | str | None:
    host = document["host"]
    generation = generation_of(host["scheduler"], host["generation"])
    params = generation["params"] if generation else ()
    return next((param["default"] for param in params if param["name"] == name and param["scope"] == "domain"), None)


def _limits(*sides: Mapping[str, Any]) -> Iterator[str]:
    capped = any(table.get("cap") for document in sides for table in document["domain"].values())
    quotas = any(
        value != -1
        for document in sides
        for table in document["domain"].values()
        for name, value in table.items()
        if name.endswith("_quota_us")
    )
    if capped or quotas:
        yield (
            "limits: a cap is % of a pCPU for a domain, a quota is time in each period for a vCPU or a VM with its "
            "emulator and vhost threads"
        )


def _polling(*sides: Mapping[str, Any]) -> Iterator[str]:
    polls = next(filter(None, map(polls_us, sides)), 0)
    if polls:
        yield f"gotten: under KVM it holds halt polling of up to {polls} µs after each halt (host.halt_poll_us)"
