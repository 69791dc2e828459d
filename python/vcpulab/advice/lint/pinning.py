"""Rules for domains that wait because of their pinning, or because their scheduler never moves them."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from vcpulab.advice.isolation import pinned_to
from vcpulab.advice.lint.host import FEW_WAITS, IDLE, WAITS, Finding, Host, of_domain
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.scenario.names import in_short
from vcpulab.scenario.units import spans

MUCH_IDLE = 0.5
"""The idle fraction of the time above which a pCPU has room for another vCPU. Assumed."""
SOME_WAITS = 0.02
"""The waiting fraction of the time above which waits may matter to a service. Assumed."""

rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)


@rule("pinning-leaves-idle")
def pinning_leaves_idle(host: Host) -> Iterator[Finding]:
    """A domain waits where it is pinned, while other pCPUs idle.

    Mechanism: Pinning is absolute: a pinned vCPU waits for its pCPUs even if others are free.

    Evidence: The domain's vCPUs wait for more than {FEW_WAITS:.0%} of the time, while pCPUs of its pool that it may not
    use idle for more than {IDLE:.0%}.

    Silent: No finding if the pinning keeps a domain without clients away from the pCPUs of services: that is a usual
    reason to pin. For late services see `pinned-together`.

    Fix: Remove the pinning.

    Schedulers: All but `null` and `arinc653`, which assign pCPUs once.

    Sources: Xen's `xl vcpu-pin`, hard affinity.
    """
    for name, pool in host.pools.items():
        if pool.scheduler in ("null", "arinc653"):
            continue
        masks = {d: set(chain.from_iterable(host.affinity(d))) for d in host.inside(name)}
        serving = [d for d in masks if host.serves(d)]
        for domain, mask in masks.items():
            excluded = host.pinned_away_from(domain, IDLE)
            if not excluded:
                continue
            protected = any(masks[d] & set(excluded) for d in serving)
            if protected and not host.serves(domain):
                continue
            waits = host.mean_waited(domain)
            if waits > FEW_WAITS:
                path = of_domain(domain, "affinity")
                reason = (
                    f"it is pinned to pCPU {spans(sorted(mask))}, and its vCPUs wait there for {100 * waits:.0f} % of "
                    f"the time, while pCPU {spans(excluded)} idle for {100 * host.idle_of(excluded):.0f} %"
                )
                yield Finding(path, reason, {path: "all"})


@rule("pins-overlap")
def pins_overlap(host: Host) -> Iterator[Finding]:
    """Services pinned to some of the same pCPUs wait for each other now and then, although the host idles.

    Mechanism: Two vCPUs that want to run at the same time on one pCPU run one after the other, even if they run briefly
    and most of the host idles: pinning keeps the second from another pCPU.

    Evidence: Domains with clients or periodic jobs share pCPUs by their pins; the vCPUs of one of them wait for more
    than {SOME_WAITS:.0%} of the time on average, while the pCPUs of the pool idle for more than {MUCH_IDLE:.0%}.

    Silent: No finding if unpinning these domains improves nothing. For domains that wait for more than {FEW_WAITS:.0%}
    of the time see `pinning-leaves-idle`, for late services `pinned-together`.

    Fix: Unpin the domains whose pins overlap; if that does harm, only the one that waits most.

    Schedulers: All but `null` and `arinc653`, which assign pCPUs once.

    Sources: Xen's `xl vcpu-pin`, hard affinity; libvirt's domain XML, `vcpupin`.
    """
    for name, pool in host.pools.items():
        if pool.scheduler in ("null", "arinc653") or host.idle_of(host.pcpus_of(name)) <= MUCH_IDLE:
            continue
        masks = {
            member: mask
            for member in host.inside(name)
            if (mask := pinned_to(host.domains[member])) is not None and _has_response(host, member)
        }
        for group in _overlapping(masks):
            worst = max(group, key=host.mean_waited)
            if not SOME_WAITS < host.mean_waited(worst) <= FEW_WAITS:
                continue
            path = of_domain(worst, "affinity")
            reason = (
                f"{in_short(group)} are pinned to pCPUs that they share ({spans(sorted(masks[worst]))} of {worst}), "
                f"and {worst} waits there for {100 * host.mean_waited(worst):.0f} % of the time, while the pCPUs "
                f"idle for {100 * host.idle_of(host.pcpus_of(name)):.0f} %"
            )
            unpinned = {of_domain(member, "affinity"): "all" for member in group}
            yield Finding(path, reason, unpinned, otherwise=({path: "all"},))


def _has_response(host: Host, domain: str) -> bool:
    """Does a domain serve clients or other domains, or have periodic jobs?"""
    return host.serves(domain) or any(app.kind == "periodic" for app in host.domains[domain].apps)


def _overlapping(masks: Mapping[str, set[int]]) -> Iterator[list[str]]:
    """Groups of two or more domains whose pins overlap, directly or through other members of the group.

    Examples:
        >>> list(_overlapping({"a": {0, 1}, "b": {1, 2}, "c": {4}, "d": {2}}))
        [['a', 'b', 'd']]
    """
    left = list(masks)
    while left:
        group = [left.pop(0)]
        while more := [domain for domain in left if masks[domain] & set[int]().union(*(masks[name] for name in group))]:
            group += more
            left = [domain for domain in left if domain not in more]
        if len(group) > 1:
            yield group


@rule("placed-together")
def placed_together(host: Host) -> Iterator[Finding]:
    """Domains wait for each other on one pCPU while others idle, because their scheduler never moves them.

    Mechanism: SEDF, BVT and Atropos choose a pCPU for each vCPU once, by its number, regardless of the load of the
    pCPU.

    Evidence: A vCPU waits behind other domains for more than {WAITS:.0%} of the time, was never moved, and may run on
    pCPUs that idle for more than {MUCH_IDLE:.0%}.

    Silent: No finding if the vCPU waits for its own budget, or if pinning it elsewhere improves nothing.

    Fix: Pin the domain to the pCPUs that idle most.

    Schedulers: `sedf`, `bvt`, `atropos`.

    Sources: Xen's `xl vcpu-pin`; the pages of these schedulers, and the scenarios of their claims.
    """
    idle = {pcpu: host.idle_of([pcpu]) for pcpu in range(host.scenario.host.pcpus)}
    for domain, table in host.domains.items():
        reach = set.intersection(*map(set, host.affinity(domain)))
        free = sorted((pcpu for pcpu in reach if idle[pcpu] > MUCH_IDLE), key=lambda pcpu: -idle[pcpu])
        if not free or host.waited(domain) < WAITS or host.moved(domain):
            continue
        behind = [name for name, share in host.behind(domain) if name != domain and share >= 1]
        if not behind:
            continue
        path = of_domain(domain, "affinity")
        reason = (
            f"{domain} waits for {100 * host.waited(domain):.0f} % of the time behind {in_short(behind)}, while pCPU "
            f"{spans(sorted(free))} idle for {100 * host.idle_of(free):.0f} %: its scheduler never moves it there"
        )
        yield Finding(path, reason, {path: spans(sorted(free[: table.vcpus]))})
