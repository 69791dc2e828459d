"""The first candidates: one changed parameter each, fixes of rules first, mild changes first.

Next are the parameters of the goal's own domains, of the domains that serve these, of the host, and of the domains that
keep them waiting; then other schedulers. The bottleneck of the goal's domains decides which of their parameters is
first. The search continues from the best of these candidates.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import Station, with_servers
from vcpulab.advice.lateness import late
from vcpulab.advice.runstates import lost, waited
from vcpulab.advice.tuning.goals import Goal
from vcpulab.advice.tuning.kvm import is_limit
from vcpulab.advice.tuning.prices import kind
from vcpulab.advice.tuning.spaces import Parameter, Space
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import split

_STEPS = 3
"""Most steps of a parameter."""
_BLAMED = 3
"""Most domains, of those that keep the goal's domains waiting, whose parameters are tried."""
_SHORTER = (3, 6, 15)
"""Divisors of the host's slices and rate limits."""
_INVERSE = ("mcu_adv",)
"""Parameters that give a domain less CPU time if raised."""
_CURES = {"cap": "cap", "quota": "cap", "budget": "budget", "pCPUs": "weight", "driver domain": "vcpus"}
"""Kind of bottleneck to the kind of parameter that is tried first."""


def leads(space: Space, run: Run, own: Sequence[str], held_back: Station | None) -> list[dict[str, int]]:
    """Settings to try before all others, in this order.

    Args:
        space: the parameters to vary.
        run: a run of the present setting, with its waits.
        own: the domains of the goals.
        held_back: the bottleneck of these domains.
    """
    scheduler = space.scenario.host.scheduler
    active = [parameter for parameter in space.active(scheduler) if parameter.name != "host.scheduler"]
    servers = [name for name in with_servers(space.scenario.domains, own) if name not in own]
    blamed = [name for name in _waited_for(run, [*own, *servers]) if name not in (*own, *servers)]
    first = _CURES.get(held_back.kind) if held_back is not None else None
    fixes = [parameter for parameter in active if parameter.by_rule]
    active = [parameter for parameter in active if not parameter.by_rule]
    order = sorted(active, key=lambda parameter: (kind(parameter) != first, _rank(parameter)))
    places = _places(run, own)
    elsewhere = (
        parameter for parameter in order if split(parameter.name)[-1] in places and split(parameter.name)[0] == "host"
    )
    picked = [(parameter, index) for parameter in fixes for index in _steps(parameter, True)]
    picked += [(parameter, index) for parameter in elsewhere for index in _steps(parameter, True)]
    on_host = [parameter for parameter in order if split(parameter.name)[0] == "host"]
    for names, upward in ((own, True), (servers, True), (blamed, False)):
        if not upward:
            for parameter in on_host:
                picked += [
                    (parameter, index)
                    for index in (_shorter(parameter) if parameter.ordered else _steps(parameter, True))
                ]
        for parameter in order:
            if _concerns(space, parameter, names):
                picked += [(parameter, index) for index in _steps(parameter, upward)]
                picked += [(parameter, index) for index in _heaviest(parameter, active) if upward]
    once = dict.fromkeys((parameter.key, index) for parameter, index in picked)
    return [{**space.present, key: index} for key, index in once]


def suffering(run: Run, goals: Sequence[Goal]) -> list[str]:
    """The domains to begin with if goals name no domain: those with late services, or those that wait longest."""
    own = {address.domain for goal in goals for address in goal.addresses if address.domain}
    behind = [service for service in late(run) if not own or service.domain in own]
    behind = [service for service in behind if not service.assumed] or behind
    named = own or set(run.scenario.domains)
    longest = sorted(sorted(named), key=lambda name: -waited(run, name))
    return list(dict.fromkeys([service.domain for service in behind] or longest))[:_BLAMED]


def _places(run: Run, own: Sequence[str]) -> set[str]:
    """The fields for the place of all vCPUs, if domains lose much CPU time by their place."""
    fields_of_all: set[str] = set()
    for to, fields in _LOST_TO.items():
        if any(lost(run, name, to) > _MUCH_LOST for name in own):
            fields_of_all.update(fields)
    return fields_of_all


_LOST_TO = {"memory": ("soft_affinity",), "threads": ("soft_affinity", "sched_gran")}
_MUCH_LOST = 0.1
"""Fraction of its CPU time above which a domain's loss suggests a wrong place. Assumed."""
_ORDER = (
    "weight",
    "mcu_adv",
    "cap",
    "vcpu_quota_us",
    "global_quota_us",
    "reservation",
    "extratime",
    "xtratime",
    "reservation_period",
    "soft_affinity",
    "affinity",
    "pcpus",
    "pool",
)


def _rank(parameter: Parameter) -> int:
    last = split(parameter.name)[-1]
    if last == "isolation":
        # Isolation takes pCPUs from all other domains, so it is tried last.
        return len(_ORDER) + 1
    return _ORDER.index(last) if last in _ORDER else len(_ORDER)


def _concerns(space: Space, parameter: Parameter, names: Sequence[str]) -> bool:
    """Does the parameter belong to one of these domains, or to a pool of one of them?"""
    if any(split(path)[:2] == ["domain", name] for path in parameter.paths or (parameter.name,) for name in names):
        return True
    where = split(parameter.name)
    domains = space.scenario.domains
    return where[0] == "pool" and any(domains[name].pool == where[1] for name in names)


def _steps(parameter: Parameter, upward: bool) -> list[int]:
    """The options that may help a domain (or, downward, those that it makes wait), the mildest first."""
    now, last = parameter.now, len(parameter.options) - 1
    name = split(parameter.name)[-1]
    more, less = list(range(now + 1, last + 1)), list(range(now - 1, -1, -1))
    if not parameter.ordered:
        return [*less, *more]
    if split(parameter.name)[0] == "pool":
        return _shorter(parameter)
    if name == "vcpus":
        # Fewer vCPUs of an SMP guest wait for each other less: one fewer, half, one fewer than half, a quarter.
        fewer = (now - 1, now // 2, now // 2 - 1, now // 4)
        return list(dict.fromkeys(index for index in fewer if 0 <= index < now))
    if name == "reservation_period":
        # A shorter period makes the gaps between two slices shorter.
        return less[:_STEPS]
    if name in _INVERSE:
        more, less = less, more
    if upward:
        first = more[:_STEPS]
        return list(dict.fromkeys([*first, last])) if (name == "cap" or is_limit(name)) and first else first
    return less[:2] if is_limit(name) or name in ("weight", "cap", "reservation", *_INVERSE) else []


def _heaviest(parameter: Parameter, active: Sequence[Parameter]) -> list[int]:
    """The weight that is twice the largest of the other domains: smaller steps leave a light domain light."""
    if split(parameter.name)[-1] != "weight":
        return []
    weights = [
        weight.options[weight.now].value
        for weight in active
        if weight is not parameter and split(weight.name)[-1] == "weight"
    ]
    heavier = (index for index, option in enumerate(parameter.options) if weights and option.value >= 2 * max(weights))
    return [index for index in heavier if index > parameter.now][:1]


def _shorter(parameter: Parameter) -> list[int]:
    """Options of a slice or a rate limit nearest to its `_SHORTER` fractions; empty for options that are no numbers."""
    values = [option.value for option in parameter.options]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return []
    now = values[parameter.now]
    wanted = [now / part for part in _SHORTER]
    nearest = [min(range(len(values)), key=lambda index: abs(values[index] - target)) for target in wanted]
    least = [0] if split(parameter.name)[-1] == "ratelimit_us" else []
    return [index for index in dict.fromkeys([*nearest, *least]) if index != parameter.now]


def _waited_for(run: Run, names: Sequence[str]) -> Iterator[str]:
    """The domains that these domains wait for, the longest waits first."""
    rows: list[dict[str, Any]] = (
        run.df_wait_shares()
        .filter(pl.col("domain").is_in(list(names)))
        .group_by("by", maintain_order=True)
        .agg(pl.col("of_elapsed").sum())
        .sort("of_elapsed", descending=True, maintain_order=True)
        .to_dicts()
    )
    domains = run.scenario.domains
    return (row["by"] for row in [row for row in rows if row["by"] in domains][:_BLAMED])
