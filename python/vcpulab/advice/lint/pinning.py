"""Domains that wait because of where they are pinned, or were put."""

from collections.abc import Callable, Iterator
from itertools import chain

from vcpulab.advice.lint.host import FEW_WAITS, IDLE, WAITS, Finding, Host, of_domain
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.scenario.names import in_short
from vcpulab.scenario.units import spans

MUCH_IDLE = 0.5
"""A pCPU that idles for more than this part of the time has room for another vCPU. Assumed."""

rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)


@rule("pinning-leaves-idle")
def pinning_leaves_idle(host: Host) -> Iterator[Finding]:
    """A domain waits where it is pinned, while other pCPUs idle.

    Mechanism: Pinning is absolute: whoever is pinned waits for these pCPUs, whatever others have to spare.

    Evidence: Its vCPUs wait for more than {FEW_WAITS:.0%} of the time, while pCPUs of its pool that it may not use idle
    for more than {IDLE:.0%}.

    Silent: Where the domain is kept away from pCPUs of those who serve clients, and serves none itself: that is what
    people pin for. Of a service that is late `pinned-together` speaks.

    Mend: No pinning.

    Schedulers: All but `null` and `arinc653`, where places are given once.

    Sources: Xen's `xl vcpu-pin`, hard affinity.
    """
    for name, table in host.pools.items():
        if table["scheduler"] in ("null", "arinc653"):
            continue
        masks = {d: set(chain.from_iterable(host.affinity(d))) for d in host.inside(name)}
        serving = [d for d in masks if host.serves(d)]
        for domain, mask in masks.items():
            others = host.pinned_away_from(domain, IDLE)
            if not others:
                continue
            protected = any(masks[d] & set(others) for d in serving)
            if protected and not host.serves(domain):
                continue
            waits = host.mean_waited(domain)
            if waits > FEW_WAITS:
                path = of_domain(domain, "affinity")
                reason = (
                    f"it is pinned to pCPU {spans(sorted(mask))}, and its vCPUs wait there for {100 * waits:.0f} % of "
                    f"the time, while pCPU {spans(others)} idle for {100 * host.idle_of(others):.0f} %"
                )
                yield Finding(path, reason, {path: "all"})


@rule("placed-together")
def placed_together(host: Host) -> Iterator[Finding]:
    """Domains wait for each other on one pCPU while others idle, since their scheduler never moves them.

    Mechanism: SEDF, BVT and Atropos choose a pCPU for each vCPU once, by its number, and do not know how busy it is.

    Evidence: A vCPU waits for more than {WAITS:.0%} of the time behind others, was never moved, and may run on pCPUs
    that idle for more than {MUCH_IDLE:.0%}.

    Silent: Where it waits for its own budget, or where pinning it elsewhere improves nothing.

    Mend: Pinning the domain to the pCPUs that idle most.

    Schedulers: `sedf`, `bvt`, `atropos`.

    Sources: Xen's `xl vcpu-pin`; the pages of these schedulers, and the scenarios of their claims.
    """
    idle = {pcpu: host.idle_of([pcpu]) for pcpu in range(host.document["host"]["pcpus"])}
    for domain, table in host.domains.items():
        reach = set.intersection(*map(set, host.affinity(domain)))
        free = sorted((pcpu for pcpu in reach if idle[pcpu] > MUCH_IDLE), key=lambda pcpu: -idle[pcpu])
        if not free or host.waited(domain) < WAITS or host.moved(domain):
            continue
        behind = [one for one, share in host.behind(domain) if one != domain and share >= 1]
        if not behind:
            continue
        path = of_domain(domain, "affinity")
        reason = (
            f"{domain} waits for {100 * host.waited(domain):.0f} % of the time behind {in_short(behind)}, while pCPU "
            f"{spans(sorted(free))} idle for {100 * host.idle_of(free):.0f} %: its scheduler never moves it there"
        )
        yield Finding(path, reason, {path: spans(sorted(free[: table["vcpus"]]))})
