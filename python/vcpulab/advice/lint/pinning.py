"""Domains that wait because of where they are pinned."""

from collections.abc import Callable, Iterator
from itertools import chain

from vcpulab.advice.lint.host import FEW_WAITS, IDLE, Finding, Host, of_domain
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.hypervisors.xl import spans

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
        here = host.pcpus_of(name)
        masks = {d: set(chain.from_iterable(host.affinity(d))) for d in host.inside(name)}
        for domain, mask in masks.items():
            others = [pcpu for pcpu in here if pcpu not in mask]
            protected = [d for d, theirs in masks.items() if host.serves(d) and theirs & set(others)]
            if not others or (protected and not host.serves(domain)) or host.idle_of(others) < IDLE:
                continue
            waits = host.mean_waited(domain)
            if waits > FEW_WAITS:
                path = of_domain(domain, "affinity")
                reason = (
                    f"it is pinned to pCPU {spans(sorted(mask))}, and its vCPUs wait there for {100 * waits:.0f} % of "
                    f"the time, while pCPU {spans(others)} idle for {100 * host.idle_of(others):.0f} %"
                )
                yield Finding(path, reason, {path: "all"})
