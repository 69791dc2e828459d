"""The cause of lateness by weights of control groups: a slice that weighs too little beside others."""

from collections.abc import Iterator
from math import ceil, log2
from typing import NamedTuple

from vcpulab.advice.lint.causes.weights import SHARE_MAX, round_weight
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import GROUP_WEIGHT, Finding, Host
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import join

OUTSIDE = 50.0
"""The share of a domain's waits, %, above which it mainly waits for domains outside of a slice. Assumed."""


class _Level(NamedTuple):
    """A slice around a domain, and what the domain waits for beside the slice."""

    group: str
    beside: dict[str, int]
    """Each slice or VM beside it that the domain waits for, with its weight."""
    waits: float
    """The share of the domain's waits that is for these, %."""


@cause("slice-outweighed")
def _slice_outweighed(held: Held) -> Finding | None:
    """The slice of a late service weighs too little beside the slices and VMs that the service waits for.

    Mechanism: Control groups share CPU time level by level. The weight of a VM only counts among the groups of its own
    slice. Beside another slice, the weight of its slice counts, however large the weight of the VM is.

    Evidence: The service waits, more than {OUTSIDE:.0f} % of that for domains outside of a slice that it is in, and a
    slice or VM beside this slice weighs half as much as this slice or more. A service is late at a response p99
    {LATE_IS}.

    Silent: No finding if no service is late, or if the service waits for VMs of its own slice: see
    `waits-behind-equals`. No finding if all VMs together wait for daemons of the host: see `machines-weigh-as-one`.

    Fix: Set the least weight of the slice that helps, in steps of two, from twice its present weight up to the weight
    for twice the CPU time that its vCPUs can use, and for at most {SHARE_MAX:.0%} of the pCPUs.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/cgroup-v2`, weights; libvirt's page on control groups.
    """
    host, domain = held.host, held.domain
    if not (host.is_kvm and held.waits):
        return None
    outside = [level for level in _levels(host, domain) if level.waits > OUTSIDE]
    if not outside:
        return None
    group, beside, waits = max(outside, key=lambda level: level.waits)
    own = host.group_weight(group)
    ratios = [weight / own for weight in beside.values()]
    if not any(2 * ratio >= 1 for ratio in ratios):
        return None
    vcpus = sum(host.domains[name].vcpus for name in host.domains if _is_inside(host, name, group))
    share = min(SHARE_MAX, vcpus / len(held.pcpus))
    enough = 2 * max(1, sum(ratios) * share / (1 - share))
    steps = {round_weight(host, own * 2.0**step) for step in range(1, ceil(log2(enough)))}
    weights = [weight for weight in sorted({*steps, round_weight(host, own * enough)}) if weight > own]
    path = join(["cgroup", group, "weight"])
    named = ", ".join(f"{name} ({number(weight)})" for name, weight in list(beside.items())[:3])
    more = f" and {len(beside) - 3} more" if len(beside) > 3 else ""
    reason = (
        f"{held.waits_in_words}, {waits:.0f} % of that for domains outside of the slice {group}: it weighs {own} "
        f"beside {named}{more}, and the weight of {domain} counts only inside of it"
    )
    fixes = [{path: weight} for weight in weights]
    return Finding(path, reason, fixes[0] if fixes else {}, otherwise=tuple(fixes[1:]))


def _levels(host: Host, domain: str) -> Iterator[_Level]:
    """The slices around a domain, the outermost first, without those beside which only daemons of the host matter."""
    around = (host.domains[domain].cgroup or "").split("/")
    behind = [(name, share) for name, share in host.behind(domain) if name != domain]
    for depth in range(1, len(around) + 1):
        group, parent = "/".join(around[:depth]), "/".join(around[: depth - 1])
        waited_for = [
            (name, share)
            for name, share in behind
            if not _is_inside(host, name, group) and (not parent or _is_inside(host, name, parent))
        ]
        if not group or all(host.domains[name].daemon for name, _ in waited_for):
            continue
        beside: dict[str, int] = {}
        for name, _ in waited_for:
            rest = (host.domains[name].cgroup or "").removeprefix(parent).strip("/")
            child = "/".join([*filter(None, [parent]), rest.split("/")[0]]) if rest else name
            beside[child] = host.group_weight(child) if rest else host.value(name, "weight") or GROUP_WEIGHT
        yield _Level(group, beside, sum(share for _, share in waited_for))


def _is_inside(host: Host, domain: str, group: str) -> bool:
    """Is a domain in a control group, or in one inside of it?"""
    path = host.domains[domain].cgroup or ""
    return path == group or path.startswith(f"{group}/")
