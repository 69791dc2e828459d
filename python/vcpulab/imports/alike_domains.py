"""Numbered domains of a Xen host that are alike, as one domain of a scenario with a count."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vcpulab.hosts.xen_domains import Domain
from vcpulab.imports.work import IDLE_PERCENT, PERCENT
from vcpulab.scenario.names import in_short

_SAME = 1.2
"""Numbered domains with the same settings are alike if the busiest uses so many times what the least busy one does."""


def alike(domains: Mapping[str, Domain], notes: list[str]) -> Iterator[tuple[str, Domain, int]]:
    """The domains, numbered ones that are alike as one, each with how many it stands for."""
    rows: dict[str, list[str]] = {}
    for name in domains:
        rows.setdefault(name.rstrip("0123456789"), []).append(name)
    for stem, names in rows.items():
        count = len(names)
        numbered = [f"{stem}{number:0{len(str(count))}}" for number in range(1, count + 1)]
        row = [domains[name] for name in names]
        if count == 1 or not stem or sorted(names) != numbered or not _same(row):
            yield from ((name, domains[name], 1) for name in names)
            continue
        used = [domain.used for domain in row if domain.used is not None]
        mean = math.fsum(used) / count if used else None
        if len(set(used)) > 1:
            notes.append(f"{in_short(numbered)}: {min(used):.4g} to {max(used):.4g} {PERCENT}; all get the mean")
        yield stem, replace(row[0], used=mean), count


def _same(domains: Sequence[Domain]) -> bool:
    """`True`: two domains have the same settings, and about the same CPU use."""
    first, used = domains[0], [domain.used or 0.0 for domain in domains]
    return all(replace(domain, used=first.used) == first for domain in domains) and max(used) <= (
        IDLE_PERCENT if min(used) <= IDLE_PERCENT else _SAME * min(used)
    )
