"""Metrics and settings that are not comparable between two hypervisors."""

from collections.abc import Iterator

from vcpulab.hypervisors.commands import HYPERVISORS
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.model import Host, Model
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.threads import polls_us


def not_comparable(before: Scenario, after: Scenario) -> list[str]:
    """Sentences on what is not comparable between two scenarios; none, if both have the same hypervisor.

    Args:
        before: a scenario.
        after: another scenario.
    """
    sides = (before.model, after.model)
    if before.host.hypervisor == after.host.hypervisor:
        return []
    return [*_drivers(*sides), *_costs(*sides), *_weights(*sides), *_limits(*sides), *_polling(*sides)]


def _name(side: Model) -> str:
    return HYPERVISORS[side.host.hypervisor]


def _drivers(*sides: Model) -> Iterator[str]:
    devices = any(domain.nic or domain.disk for side in sides for domain in side.domains.values())
    drivers = [name for side in sides for name, domain in side.domains.items() if domain.driver_domain]
    if devices:
        owners = f"vCPUs of {in_short(drivers)}" if drivers else "drivers elsewhere"
        yield (
            f"the way of packets and disk requests: under Xen through {owners}, under KVM through vhost, emulator and "
            "I/O threads: CPU time of these is no domain's, and has no counterpart"
        )


def _costs(*sides: Model) -> Iterator[str]:
    first, second = (side.host.profile for side in sides)
    if first != second:
        yield f"costs: of the profiles {first} and {second}, two machines"
    elif first != "exact":
        yield (
            f"costs: both of the profile {first}, but those of exits, rings and threads were measured for each "
            "hypervisor by other people on other machines: small differences of CPU time mean nothing"
        )


def _weights(*sides: Model) -> Iterator[str]:
    defaults = [_default(side.host, "weight") for side in sides]
    if None not in defaults and defaults[0] != defaults[1]:
        weights = " and ".join(f"{value} under {_name(side)}" for value, side in zip(defaults, sides, strict=True))
        yield f"weights: {weights} if left out: only those of one side compare with each other"


def _default(host: Host, name: str) -> int | str | None:
    generation = generation_of(host.scheduler, host.generation)
    param = generation.of_scope("domain").get(name) if generation else None
    return param.default if param is not None else None


def _limits(*sides: Model) -> Iterator[str]:
    capped = any(domain.params.get("cap") for side in sides for domain in side.domains.values())
    quotas = any(
        value != -1
        for side in sides
        for domain in side.domains.values()
        for name, value in domain.params.items()
        if name.endswith("_quota_us")
    )
    if capped or quotas:
        yield (
            "limits: a cap is % of a pCPU for a domain, a quota is time in each period for a vCPU or a VM with its "
            "emulator and vhost threads"
        )


def _polling(*sides: Model) -> Iterator[str]:
    polls = next(filter(None, (polls_us(side.host) for side in sides)), 0)
    if polls:
        yield f"gotten: under KVM it holds halt polling of up to {polls} µs after each halt (host.halt_poll_us)"
