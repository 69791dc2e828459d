"""What the weights of a KVM host's control groups entitle its domains to, level by level."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vcpulab.hypervisors.linux import WEIGHT
from vcpulab.scenario.threads import quota


@dataclass
class _Group:
    """A control group, with those inside it; what stands for a domain has none."""

    weight: float = WEIGHT
    most: float = 0.0
    """The most that it can use, in pCPUs."""
    inside: dict[str, "_Group"] = field(default_factory=dict)


def entitlements(document: Mapping[str, Any]) -> dict[str, float]:
    """CPU time that each domain is entitled to if all want all they can get, in pCPUs.

    Each group shares what it has among those inside by weight, none above what its vCPUs and quotas allow, and what
    these leave among the others again. Empty where weights do not decide alone: vCPUs that are pinned, or of a
    real-time class, or that run only when nobody else wants to.

    Examples:
        >>> vm = {"vcpus": 2, "cgroup": "machine.slice"}
        >>> daemon = {"vcpus": 1, "cgroup": "system.slice"}
        >>> entitlements({"host": {"pcpus": 2}, "domain": {"a": vm, "b": {**vm, "weight": 300}, "d": daemon}})
        {'a': 0.25, 'b': 0.75, 'd': 1.0}
    """
    tables: Mapping[str, Any] = document["domain"]
    if any(_is_special(table) for table in tables.values()):
        return {}
    root = _Group()
    for name, table in tables.items():
        here = root
        path = ""
        for step in filter(None, str(table["cgroup"]).split("/")):
            path = f"{path}/{step}".strip("/")
            given = document.get("cgroup", {}).get(path, {})
            here = here.inside.setdefault(f"/{step}", _Group(given.get("weight", WEIGHT)))
        limit = quota(table)
        most = table["vcpus"] if limit is None else min(table["vcpus"], limit)
        here.inside[name] = _Group(table.get("weight", WEIGHT), most)
    _sum_up(root)
    found: dict[str, float] = {}
    _share(root, float(document["host"]["pcpus"]), found)
    return {name: found[name] for name in tables}


def _is_special(table: Mapping[str, Any]) -> bool:
    classes = table.get("sched_policy", "other") not in ("other", "batch")
    return table.get("affinity", "all") != "all" or classes or bool(table.get("idle"))


def _sum_up(group: _Group) -> float:
    if group.inside:
        group.most = sum(_sum_up(one) for one in group.inside.values())
    return group.most


def _share(group: _Group, amount: float, found: dict[str, float]) -> None:
    """Weighted max-min fairness."""
    left = dict(group.inside)
    while left:
        each = amount / sum(one.weight for one in left.values())
        full = {name: one for name, one in left.items() if one.most <= each * one.weight}
        for name, one in list((full or left).items()):
            its = min(one.most, each * one.weight)
            amount -= its
            del left[name]
            if one.inside:
                _share(one, its, found)
            else:
                found[name] = float(its)
