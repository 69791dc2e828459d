"""Parameters beyond the registry's for the domains of a named goal, which may remove their bottleneck.

The registry has parameters of schedulers. The bottleneck may be the affinity of a domain's vCPUs, the pCPUs of its
pool, the number of vCPUs of the domain or its driver domain, or the vCPUs that do its I/O. Domains that differ in
nothing but their names share their parameters, since a good setting of one is good for all.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.io_spreading import netbacks, spread
from vcpulab.advice.isolation import isolations, pcpus_of, pinned_to
from vcpulab.advice.tuning.placement import soft_affinities
from vcpulab.advice.tuning.spaces import Option, Parameter, Space
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.scenario.alike import groups
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.model import Domain, Host
from vcpulab.scenario.scenario import Scenario, join, split
from vcpulab.scenario.units import spans

_DRIVER_VCPUS_MAX = 4
"""Most vCPUs for the back ends of a driver domain."""


def widened(space: Space, concerned: Iterable[str], missing: Iterable[str] = ()) -> Space:
    """A space with more parameters for some domains, and one parameter for alike domains.

    Args:
        space: the schedulers' parameters.
        concerned: the domains of goals and missed SLOs; empty: nothing is added.
        missing: the domains with missed SLOs, the only ones that may take pCPUs from all others.
    """
    names = [name for name in dict.fromkeys(concerned) if name]
    present = {parameter.name for parameter in space.parameters}
    more = [
        parameter
        for parameter in _cures(space.scenario, names, set(missing))
        if parameter.name not in present and len(parameter.options) > 1
    ]
    return shared(Space(space.scenario, (*space.parameters, *more)), names)


def shared(space: Space, concerned: Iterable[str]) -> Space:
    """A space in which alike domains share a parameter, the domains of goals apart from others.

    Args:
        space: the parameters to vary.
        concerned: the domains of goals and missed SLOs.
    """
    names = [name for name in concerned if name]
    return Space(space.scenario, tuple(_grouped(space.parameters, alike(space.scenario, names))))


def held(space: Space) -> list[str]:
    """The fields that were held fixed, with the reasons, in words."""
    host, domains = space.scenario.host, space.scenario.domains
    varied = [
        split(path) for parameter in space.active(host.scheduler) for path in parameter.paths or (parameter.name,)
    ]
    sentences = []
    for field in _fields(host):
        names = [name for name in domains if ["domain", name, field] not in varied]
        if names and (field != "weight" or len(names) < len(domains)):
            listed = ", ".join(names) if len(names) <= _NAMED_MAX else f"{len(names)} domains"
            sentences.append(f"{field} of {listed} ({_HELD[field]})")
    return sentences


def _fields(host: Host) -> Iterator[str]:
    """The fields to report, of the scheduler's fields and those that every domain has."""
    generation = generation_of(host.scheduler, host.generation)
    names = generation.defaults if generation else {}
    return (field for field in _HELD if field in names or field in ("affinity", "vcpus"))


_HELD = {
    "weight": "not asked for",
    "cap": "none is set, or not asked for",
    "vcpu_quota_us": "none is set, or not asked for",
    "global_quota_us": "none is set, or not asked for",
    "affinity": "not varied by itself unless it is asked for",
    "vcpus": "not the goal's, or not asked for",
}
_NAMED_MAX = 3
"""Most names in a list; longer lists are counted."""


def alike(scenario: Scenario, apart: Iterable[str] = ()) -> list[list[str]]:
    """Groups of two or more guests that differ, with their clients, in nothing but their names.

    Args:
        scenario: the scenario.
        apart: domains that share no group with others, but may form groups of their own.

    Examples:
        >>> host = {"profile": "exact", "pcpus": 1, "scheduler": "credit"}
        >>> twins = {name: {"app": [{"kind": "hog"}]} for name in ("a", "b")}
        >>> alike(Scenario.from_dict({"name": "twins", "host": host, "domain": twins}))
        [['a', 'b']]
    """
    domains, left_out = scenario.domains, set(apart)
    guests = [
        [name for name in group if (name in left_out) == mine and not domains[name].driver_domain]
        for group in groups(scenario)
        for mine in (False, True)
    ]
    return [group for group in guests if len(group) > 1]


def _grouped(parameters: Sequence[Parameter], groups: Iterable[Sequence[str]]) -> list[Parameter]:
    """The parameters, with one for all alike domains if each of them has the same."""
    group_of = {name: group for group in groups for name in group}
    grouped: dict[tuple[object, ...], Parameter] = {}
    for parameter in parameters:
        where = split(parameter.name)
        # A pattern stated by hand is one parameter already.
        group = group_of.get(where[1]) if where[0] == "domain" and not parameter.paths else None
        bundle = any(isinstance(option.value, Mapping) for option in parameter.options)
        if group is None or bundle:
            grouped[parameter.name, parameter.scheduler] = parameter
            continue
        labels = tuple(option.label for option in parameter.options)
        key = (group[0], where[2], parameter.scheduler, labels, parameter.now)
        name = join(["domain", f"{group[0]} to {group[-1]}", where[2]])
        first = grouped.get(key, replace(parameter, name=name))
        grouped[key] = replace(first, paths=(*first.paths, parameter.name))
    return [
        replace(parameter, name=parameter.paths[0], paths=()) if len(parameter.paths) == 1 else parameter
        for parameter in grouped.values()
    ]


# ---- parameters that may remove a bottleneck ----


def _cures(scenario: Scenario, names: Sequence[str], missing: Container[str]) -> Iterator[Parameter]:
    host, domains = scenario.host, scenario.domains
    yield from soft_affinities(scenario, [name for name in names if name in domains], by_default=True)
    for name in names:
        if name in domains:
            yield from _extra_time(scenario, name)
            yield from _fewer_vcpus(name, domains[name])
            yield from _bigger_pool(scenario, name)
    pools: dict[str, list[str]] = {}
    for name in names:
        if name in domains:
            pools.setdefault(domains[name].pool, []).append(name)
    for inside in pools.values():
        pinned = any(pinned_to(domains[name]) is not None for name in inside)
        yield from _isolated(scenario, inside if pinned else [name for name in inside if name in missing])
    served = with_servers(domains, names)
    yield from _affinities(scenario, served)
    for name in served:
        if domains[name].driver_domain:
            yield from _spread(scenario, name)
    if host.scheduler == "null" and sum(domain.vcpus for domain in domains.values()) > host.pcpus:
        # A domain with one vCPU fewer frees a pCPU.
        for name, domain in domains.items():
            if name not in names:
                yield from _fewer_vcpus(name, domain)


def _extra_time(scenario: Scenario, name: str) -> Iterator[Parameter]:
    if scenario.domains[name].pool != POOL_0:
        return
    host, given = scenario.host, scenario.domains[name].params
    generation = generation_of(host.scheduler, host.generation)
    for param in generation.params if generation else ():
        if param.has_role("extra-time") and not int(given.get(param.name, param.default)):
            path = join(["domain", name, param.name])
            yield Parameter(path, (Option("0", 0), Option("1", 1)), 0, True, host.scheduler)


def _fewer_vcpus(name: str, domain: Domain) -> Iterator[Parameter]:
    now = domain.vcpus
    if not isinstance(domain.affinity, str):
        return
    values = sorted({value for value in (1, now // 4, 3 * now // 8, now // 2, 3 * now // 4, now - 1, now) if value > 0})
    options = tuple(Option(str(value), value) for value in values)
    yield Parameter(join(["domain", name, "vcpus"]), options, values.index(now))


def _bigger_pool(scenario: Scenario, name: str) -> Iterator[Parameter]:
    """More pCPUs for a domain's pool from another pool, nearest first; and the domain in the default pool."""
    if not scenario.pools:
        return
    pool = scenario.domains[name].pool
    pcpus_by_pool = {frame: pcpus_of(scenario.model, frame) for frame in (POOL_0, *scenario.pools)}
    here = pcpus_by_pool[pool]
    pinned = {pcpu for domain in scenario.domains.values() for pcpu in pinned_to(domain) or ()}
    options = [Option("as it is", None)]
    for donor, given in pcpus_by_pool.items():
        if donor == pool:
            continue
        free = sorted(set(given) - pinned, key=lambda pcpu: min(abs(pcpu - own) for own in here))
        for more in sorted({1, 2, len(here)}):
            if len(given) - more < 1 or len(free) < more:
                continue
            left = {pool: {*here, *free[:more]}, donor: {*given} - {*free[:more]}}
            changes = {
                join(["pool", owner, "pcpus"]): spans(sorted(pcpus)) for owner, pcpus in left.items() if owner != POOL_0
            }
            options.append(Option(f"{spans(sorted(left[pool]))}, from {donor}", changes))
    yield Parameter(join(["pool", pool, "pcpus"]), tuple(options), 0, ordered=False)
    if pool != POOL_0:
        out = (Option(pool, pool), Option(POOL_0, {join(["domain", name, "pool"]): None}))
        yield Parameter(join(["domain", name, "pool"]), out, 0, ordered=False)


def _affinities(scenario: Scenario, served: Sequence[str]) -> Iterator[Parameter]:
    """Affinity of pinned domains and of others pinned to the same pCPUs: none, or the pCPUs without pinned domains."""
    for pool in dict.fromkeys(scenario.domains[name].pool for name in served):
        here = set(pcpus_of(scenario.model, pool))
        inside = {name: domain for name, domain in scenario.domains.items() if domain.pool == pool}
        masks = {name: mask for name, domain in inside.items() if (mask := pinned_to(domain)) is not None}
        crowded = {pcpu for name in served if name in masks for pcpu in masks[name]}
        free = sorted(here - {pcpu for mask in masks.values() for pcpu in mask})
        for name, mask in masks.items():
            if not mask & crowded:
                continue
            path = join(["domain", name, "affinity"])
            options = [Option("as it is", None), Option("all", "all")]
            if free:
                options.append(Option(spans(free), spans(free)))
            yield Parameter(path, tuple(options), 0, ordered=False)


def _isolated(scenario: Scenario, names: Sequence[str]) -> Iterator[Parameter]:
    """Isolation of domains on some pCPUs of their pool."""
    ways = isolations(scenario.model, names) if names else []
    if not ways:
        return
    options = (Option("shared", None), *(Option(str(way), way.changes) for way in ways))
    paths = tuple(join(["domain", name, "isolation"]) for name in names)
    together = join(["domain", f"{names[0]} to {names[-1]}", "isolation"])
    several = len(names) > 1
    yield Parameter(together if several else paths[0], options, 0, ordered=False, paths=paths if several else ())


def _spread(scenario: Scenario, driver: str) -> Iterator[Parameter]:
    """The netbacks and interrupts of a driver domain, spread over its vCPUs, or over more vCPUs."""
    domain = scenario.domains[driver]
    now, most = domain.vcpus, len(pcpus_of(scenario.model, domain.pool))
    if len(netbacks(scenario.model, driver)) < 2 or not isinstance(domain.affinity, str):
        return
    options = [Option("as they are", None)]
    for vcpus in sorted({2, now, _DRIVER_VCPUS_MAX}):
        if not 2 <= vcpus <= most or vcpus < now:
            continue
        changes: dict[str, Any] = {} if vcpus == now else {join(["domain", driver, "vcpus"]): vcpus}
        changes |= spread(scenario.model, driver, vcpus)
        if changes:
            options.append(Option(f"spread over {vcpus} vCPUs", changes))
    yield Parameter(join(["domain", driver, "backends"]), tuple(options), 0, ordered=False)
