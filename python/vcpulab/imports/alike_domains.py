"""Numbered domains of a Xen host that are alike, as one domain of a scenario with a count."""

import math
from collections.abc import Iterator, Mapping, Sequence

from vcpulab.hosts.xen_domains import Domain
from vcpulab.imports.work import IDLE_PERCENT, PERCENT
from vcpulab.scenario.names import in_short

_SAME = 1.2
"""The largest ratio of CPU use, busiest to least busy, of numbered domains that are taken to be alike."""


def alike(
    domains: Mapping[str, Domain], used: Mapping[str, float], notes: list[str]
) -> Iterator[tuple[str, Domain, float | None, int]]:
    """The domains, numbered ones that are alike as one, each with its CPU use and how many it stands for.

    Args:
        domains: the domains by name.
        used: the CPU use of those of which it is known, % of a pCPU.
        notes: receives a note where the use of domains that are alike differs.
    """
    rows: dict[str, list[str]] = {}
    for name in domains:
        rows.setdefault(name.rstrip("0123456789"), []).append(name)
    for stem, names in rows.items():
        count = len(names)
        numbered = [f"{stem}{number:0{len(str(count))}}" for number in range(1, count + 1)]
        alike_settings = all(domains[name] == domains[names[0]] for name in names)
        percents = [used.get(name, 0.0) for name in names]
        if count == 1 or not stem or sorted(names) != numbered or not (alike_settings and _same(percents)):
            yield from ((name, domains[name], used.get(name), 1) for name in names)
            continue
        measured = [used[name] for name in names if name in used]
        mean = math.fsum(measured) / count if measured else None
        if len(set(measured)) > 1:
            shown = f"{min(measured):.4g} to {max(measured):.4g} {PERCENT}"
            notes.append(f"{in_short(numbered)}: {shown}; all get the mean")
        yield stem, domains[names[0]], mean, count


def _same(percents: Sequence[float]) -> bool:
    """`True`: some domains have about the same CPU use."""
    idle = min(percents) <= IDLE_PERCENT
    return max(percents) <= (IDLE_PERCENT if idle else _SAME * min(percents))
