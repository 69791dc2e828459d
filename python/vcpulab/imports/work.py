"""Work of a measured load: tasks that use as much CPU as a domain used."""

import math
from collections.abc import Iterator, Sequence

from vcpulab.show.toml_text import key

PERIOD_MS = 10
"""The period of the jobs that CPU use becomes; no listing shows how it was spread."""
IDLE_PERCENT = 0.1
"""The largest CPU use, % of a pCPU, of a domain without work."""
PERCENT = "% of a pCPU"
_MOST = 0.99
"""The largest fraction of a period that a job takes."""
_LEAST_PERCENT = 1.0
"""The least CPU use of a task, % of a pCPU, where the use of each vCPU is unknown."""
_ALIKE, _ALIKE_PERCENT = 0.25, 5.0
"""vCPUs have the same task if they differ by no more than this fraction of the greater use, or this % of a pCPU."""
VCPUS_MAX = 512
"""The largest number of vCPUs of a domain."""


def work(domain: str, used: float | None, vcpus: int, measured_by: str, each: Sequence[float] = ()) -> Iterator[str]:
    """Applications that use as much CPU: a task for each vCPU.

    Args:
        domain: the domain's name.
        used: % of a pCPU; `None`: not known.
        vcpus: the number of vCPUs.
        measured_by: the tool that measured the CPU use.
        each: the same of each vCPU; empty: not known.
    """
    if used is None or used <= IDLE_PERCENT:
        return
    how = "of each vCPU" if any(each) else "of all vCPUs alike"
    yield f"# assumed: {used:.4g} {PERCENT}, as {measured_by} measured, {how}, in periods of {PERIOD_MS} ms"
    for tasks, percent in spread(used, vcpus, each):
        yield f"[[domain.{key(domain)}.app]]"
        yield 'kind = "periodic"'
        yield "assumed = true"
        if tasks > 1:
            yield f"instance = {tasks}"
        yield f'run = "{min(round(10 * PERIOD_MS * percent), round(1000 * PERIOD_MS * _MOST))}us"'
        yield f'period = "{PERIOD_MS}ms"'


def spread(used: float, vcpus: int, each: Sequence[float] = ()) -> list[tuple[int, float]]:
    """Tasks that use as much CPU together, at most one for each vCPU: how many of each demand, in % of a pCPU.

    Args:
        used: % of a pCPU.
        vcpus: how many there are.
        each: the use of each of them; empty: not known.

    Examples:
        >>> spread(190, 4), spread(1.5, 8), spread(120, 2)
        ([(4, 47.5)], [(1, 1.5)], [(2, 60.0)])
        >>> spread(130, 4, [95, 10, 10, 15])
        [(1, 95.0), (3, 11.666666666666666)]
    """
    total = math.fsum(each)
    if total <= 0:
        tasks = min(vcpus, max(1, int(used / _LEAST_PERCENT)))
        return [(tasks, used / tasks)]
    alike: list[list[float]] = []
    for percent in sorted((part * used / total for part in each), reverse=True):
        if alike and alike[-1][0] - percent <= max(_ALIKE * alike[-1][0], _ALIKE_PERCENT):
            alike[-1].append(percent)
        elif percent > IDLE_PERCENT or not alike:
            alike.append([percent])
    return [(len(row), math.fsum(row) / len(row)) for row in alike]
