"""The cause of lateness by weights: a share that is too small on full pCPUs."""

from collections.abc import Iterator, Mapping
from math import ceil, log2

from vcpulab.advice.lint.held import GETS_HALF, LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import GROUP_WEIGHT, Finding, Host, of_domain
from vcpulab.results.statistics import least_to_most

SHARE_MAX = 0.8
"""The largest share of the pCPUs that a fixed weight entitles to."""
ADVANCE_TIMES = 16
"""The factor of a further fix by BVT's advances: `xen3.0` charges a domain that keeps running too much."""
ADVANCE_MAX = 32_767
"""The largest advance in a fix: virtual time has 32 bits, and should wrap around in minutes, not within a slice."""
MOST_OF_IT = 80.0
"""The share of a domain's waits, %, that the domains it mainly waits for make up together."""


@cause("waits-behind-equals")
def _outweighed(held: Held) -> Finding | None:
    """A late service waits behind domains of the same or a larger weight, on full pCPUs.

    Mechanism: Equal weights give equal shares. A service that wants more than its share uses the share up, and then
    waits for the slices of all other domains.

    Evidence: The service waits, and of the domains that make up {MOST_OF_IT:.0f} % of its waits at least one weighs
    half as much as the service or more. A service is late at a response p99 {LATE_IS}. A control or driver domain
    counts as late, too, if it gets less than {GETS_HALF:.0%} of the CPU time that its own work wants.

    Silent: No finding if no service is late, or if domains with a definite amount of work fill the pCPUs: see
    `host-full`.

    Fix: Set the least weight that helps, in steps of two, from twice its own weight up to the weight for twice the CPU
    time that its vCPUs can use, and for at most {SHARE_MAX:.0%} of the pool. If it already has the greatest weight,
    lower the weights of the other domains. Under BVT, set a smaller advance; if the service stays late, also larger
    advances for the domains that it waits for, as only ratios count; and then a ratio {ADVANCE_TIMES} times as large.

    Schedulers: Those with weights: `credit`, `credit2`, `enhanced`, `linux-cfs`, `linux-eevdf`; `bvt`, whose `mcu_adv`
    is the inverse of a weight.

    Sources: Xen's `docs/features/sched_credit.pandoc`: weights and entitlements; Duda and Cheriton 1999,
    "Borrowed-virtual-time (BVT) scheduling", section 2.
    """
    host, domain = held.host, held.domain
    name = next((param for param in ("weight", "mcu_adv") if host.value(domain, param)), None)
    if not held.waits or name is None or not host.uses_its_weight(domain):
        return None
    own = host.value(domain, name) or 1
    values = {
        neighbor: value
        for neighbor in most_of_its_waits(held)
        if host.is_beside(neighbor, domain) and (value := host.value(neighbor, name))
    }
    # The ratio of each share to its own: a smaller advance is a larger share.
    ratios = [value / own if name == "weight" else own / value for value in values.values()]
    if not any(2 * ratio >= 1 for ratio in ratios):
        return None
    # Twice the ratio that suffices for all its vCPUs beside the domains that it waits for: other domains run, too.
    share = min(SHARE_MAX, host.domains[domain].vcpus / len(held.pcpus))
    enough = 2 * max(1, sum(ratio for ratio in ratios if 2 * ratio >= 1) * share / (1 - share))
    path = of_domain(domain, name)
    if name == "weight":
        fixes = _weights(host, domain, own, enough) or _lighter(host, values, enough)
    else:
        fixes = [_advances(domain, own, values, times * enough) for times in (1, ADVANCE_TIMES)]
        fixes = [*([{path: fixes[0][path]}] if len(fixes[0]) > 1 else []), *fixes]
    among = least_to_most(values.values(), str)
    reason = (
        f"{held.waits_in_words} behind {held.behind_in_words()}, on pCPUs that are "
        f"{100 - 100 * host.idle_of(held.pcpus):.0f} % busy: its {name} of {own}, beside "
        f"{among} of the others, gives it a smaller share than it asks for, and it waits for their slices"
    )
    return Finding(path, reason, fixes[0] if fixes else {}, otherwise=tuple(fixes[1:]))


def _weights(host: Host, domain: str, own: int, enough: float) -> list[dict[str, int]]:
    """Fixes by larger weights of a domain, in steps from the least that may suffice to `enough` times its own."""
    steps = {round_weight(host, own * 2.0**step) for step in range(1, ceil(log2(enough)))}
    return [
        {of_domain(domain, "weight"): weight}
        for weight in sorted({*steps, round_weight(host, own * enough)})
        if weight > own
    ]


def _lighter(host: Host, weights: Mapping[str, int], times: float) -> list[dict[str, int]]:
    """The fix by smaller weights of some domains; none if they have the least weight."""
    lighter = {name: max(1, round_weight(host, value / times)) for name, value in weights.items()}
    changes = {of_domain(name, "weight"): value for name, value in lighter.items() if value < weights[name]}
    return [changes] if changes else []


def round_weight(host: Host, weight: float) -> int:
    """A weight rounded up to a power of 2 (Xen) or the default times a power of 2 (Linux), at most the greatest."""
    unit = GROUP_WEIGHT if host.is_kvm else 1
    return int(min(host.weight_most, unit * 2.0 ** ceil(log2(weight / unit))))


def _advances(domain: str, own: int, neighbors: Mapping[str, int], times: float) -> dict[str, int]:
    """The fix by BVT's advances that multiplies the share of a domain beside its neighbors."""
    least = max(1, int(own / times))
    # An advance is an integer: if its own cannot be small enough, those of the neighbors have to be larger.
    factor = ceil(times * least / own)
    larger = {of_domain(name, "mcu_adv"): min(ADVANCE_MAX, value * factor) for name, value in neighbors.items()}
    return {of_domain(domain, "mcu_adv"): least, **(larger if factor > 1 else {})}


def most_of_its_waits(held: Held) -> Iterator[str]:
    """The domains that a domain mainly waits for: domains that run now and then matter little."""
    waited_for = [(name, share) for name, share in held.host.behind(held.domain) if name != held.domain]
    left = MOST_OF_IT / 100 * sum(share for _, share in waited_for)
    for name, share in waited_for:
        if left <= 0:
            return
        yield name
        left -= share
