"""Causes of lateness by slices: one that weighs too little beside others, and one whose quota is too small."""

from collections.abc import Iterator
from math import ceil, log2
from typing import NamedTuple

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.causes.weights import SHARE_MAX, round_weight
from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import GROUP_WEIGHT, Finding, Host
from vcpulab.results.statistics import number
from vcpulab.scenario.names import in_short
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


@cause("slice-quota-throttles")
def _slice_throttled(held: Held) -> Finding | None:
    """The quota of the slice around a late service throttles it.

    Mechanism: The quota of a control group is one account for all VMs in it. Once it is used up, all of them stop until
    the next period, even if pCPUs idle and even if a VM has no quota of its own.

    Evidence: The service waits, and the VMs in the slice together get more than {NEAR_FULL:.0%} of its quota. A service
    is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late: the quota then does its job.

    Fix: Double the quota of the slice, then triple it, then remove it.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/scheduler/sched-bwc`; `systemd.resource-control(5)`, `CPUQuota`.
    """
    host, domain = held.host, held.domain
    if not (host.is_kvm and (held.waits or held.station.kind == "budget")):
        return None
    groups = host.scenario.model.cgroups
    around = (host.domains[domain].cgroup or "").split("/")
    for depth in range(len(around), 0, -1):
        group = "/".join(around[:depth])
        if group not in groups or groups[group].quota_us <= 0:
            continue
        inside = [name for name in host.domains if _is_inside(host, name, group)]
        quota, share = groups[group].quota_us, groups[group].quota_us / groups[group].period_us
        used = sum(map(host.gotten, inside))
        if used < NEAR_FULL * 100 * share:
            continue
        idle = 100 * host.idle_of(held.pcpus)
        reason = (
            f"{held.waits_in_words}: the quota of the slice {group} is {number(share)} pCPUs, of which the VMs in it "
            f"({in_short(inside)}) get {number(used / 100)}, while the pCPUs idle for {idle:.0f} % of the time"
        )
        path = join(["cgroup", group, "quota_us"])
        return Finding(path, reason, {path: 2 * quota}, otherwise=({path: 3 * quota}, {path: -1}))
    return None


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
