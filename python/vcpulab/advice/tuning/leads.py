"""What is tried first: one parameter at a time, those of the goal's own domains first, mild changes first.

After them come the parameters of the domains that serve these, those of the host, and those of the domains that keep
them waiting; then other schedulers. What holds the domains back says which of their own to begin
with. The search goes on from the best of these.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import Station, with_servers
from vcpulab.advice.lateness import late
from vcpulab.advice.runstates import lost, waited
from vcpulab.advice.tuning.goals import Goal
from vcpulab.advice.tuning.prices import kind
from vcpulab.advice.tuning.spaces import Parameter, Space
from vcpulab.advice.tuning.threads import is_limit
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import split

_STEPS = 3
"""So many steps of a parameter are tried at most."""
_BLAMED = 3
"""So many of those that keep the goal's domains waiting are looked at."""
_SHORTER = (3, 6, 15)
"""Slices and rate limits of the host are tried at so many parts of what they are."""
_INVERSE = ("mcu_adv",)
"""Who has more of these gets less."""
_CURES = {"cap": "cap", "quota": "cap", "budget": "budget", "pCPUs": "weight", "driver domain": "vcpus"}
"""What holds a domain back, to the kind of parameter to begin with."""


def leads(space: Space, run: Run, own: Sequence[str], held_back: Station | None) -> list[dict[str, int]]:
    """Settings to try before all others, in this order.

    Args:
        space: what may be changed.
        run: the present setting, with its waits.
        own: the domains of the goals.
        held_back: what these are held back by.
    """
    scheduler = str(space.scenario.to_dict()["host"]["scheduler"])
    there = [one for one in space.active(scheduler) if one.name != "host.scheduler"]
    servers = [name for name in with_servers(space.scenario.to_dict()["domain"], own) if name not in own]
    blamed = [name for name in _who_makes_wait(run, [*own, *servers]) if name not in (*own, *servers)]
    first = _CURES.get(held_back.kind) if held_back is not None else None
    order = sorted(there, key=lambda one: (kind(one) != first, _rank(one)))
    places = _places(run, own)
    elsewhere = (one for one in order if split(one.name)[-1] in places and split(one.name)[0] == "host")
    picked = [(one, index) for one in elsewhere for index in _steps(one, True)]
    of_host = [one for one in order if split(one.name)[0] == "host"]
    for names, upward in ((own, True), (servers, True), (blamed, False)):
        if not upward:
            for one in of_host:
                picked += [(one, index) for index in (_shorter(one) if one.ordered else _steps(one, True))]
        for parameter in order:
            if _concerns(space, parameter, names):
                picked += [(parameter, index) for index in _steps(parameter, upward)]
                picked += [(parameter, index) for index in _heaviest(parameter, there) if upward]
    once = dict.fromkeys((parameter.key, index) for parameter, index in picked)
    return [{**space.present, key: index} for key, index in once]


def suffering(run: Run, goals: Sequence[Goal]) -> list[str]:
    """The domains to begin with where goals are about no one in particular: who is late, or else who waits longest."""
    asked = {address.domain for goal in goals for address in goal.addresses if address.domain}
    behind = [one for one in late(run) if not asked or one.domain in asked]
    behind = [one for one in behind if not one.assumed] or behind
    named = asked or {str(name) for name in run.scenario.to_dict()["domain"]}
    longest = sorted(sorted(named), key=lambda name: -waited(run, name))
    return list(dict.fromkeys([one.domain for one in behind] or longest))[:_BLAMED]


def _places(run: Run, own: Sequence[str]) -> set[str]:
    """The fields that say where all vCPUs run, where domains lose much of their CPU time by that."""
    found: set[str] = set()
    for to, fields in _LOST_TO.items():
        if any(lost(run, name, to) > _MUCH_LOST for name in own):
            found.update(fields)
    return found


_LOST_TO = {"memory": ("soft_affinity",), "threads": ("soft_affinity", "sched_gran")}
_MUCH_LOST = 0.1
"""Who loses more than this part of the time gotten may run in the wrong place. Assumed."""
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
    """Is it of one of these domains, or of a pool in which one is?"""
    if any(split(path)[:2] == ["domain", name] for path in parameter.paths or (parameter.name,) for name in names):
        return True
    where = split(parameter.name)
    domains = space.scenario.to_dict()["domain"]
    return where[0] == "pool" and any((domains[name].get("pool") or "Pool-0") == where[1] for name in names)


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
        # Fewer vCPUs of an SMP guest wait for each other less: one less, half, a little less than that, a quarter.
        fewer = (now - 1, now // 2, now // 2 - 1, now // 4)
        return list(dict.fromkeys(index for index in fewer if 0 <= index < now))
    if name == "reservation_period":
        # A shorter period comes in shorter gaps.
        return less[:_STEPS]
    if name in _INVERSE:
        more, less = less, more
    if upward:
        found = more[:_STEPS]
        return list(dict.fromkeys([*found, last])) if (name == "cap" or is_limit(name)) and found else found
    return less[:2] if is_limit(name) or name in ("weight", "cap", "reservation", *_INVERSE) else []


def _heaviest(parameter: Parameter, there: Sequence[Parameter]) -> list[int]:
    """The weight that is twice that of whoever weighs most: fewer steps leave a light domain among the light ones."""
    if split(parameter.name)[-1] != "weight":
        return []
    others = [one.options[one.now].value for one in there if one is not parameter and split(one.name)[-1] == "weight"]
    heavier = (index for index, one in enumerate(parameter.options) if others and one.value >= 2 * max(others))
    return [index for index in heavier if index > parameter.now][:1]


def _shorter(parameter: Parameter) -> list[int]:
    """Options of a slice or a rate limit that are some parts of what it is; of what is no number, none."""
    values = [option.value for option in parameter.options]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return []
    now = values[parameter.now]
    wanted = [now / part for part in _SHORTER]
    found = [min(range(len(values)), key=lambda index: abs(values[index] - one)) for one in wanted]
    least = [0] if split(parameter.name)[-1] == "ratelimit_us" else []
    return [index for index in dict.fromkeys([*found, *least]) if index != parameter.now]


def _who_makes_wait(run: Run, names: Sequence[str]) -> Iterator[str]:
    """Whom these wait for, most first."""
    rows: list[dict[str, Any]] = (
        run.df_wait_shares()
        .filter(pl.col("domain").is_in(list(names)))
        .group_by("by", maintain_order=True)
        .agg(pl.col("of_elapsed").sum())
        .sort("of_elapsed", descending=True, maintain_order=True)
        .to_dicts()
    )
    domains = run.scenario.to_dict()["domain"]
    return (row["by"] for row in [row for row in rows if row["by"] in domains][:_BLAMED])
