"""CPU use in listings that exceeds the vCPUs of a domain or the host."""

from collections.abc import Iterable, Iterator

from vcpulab.imports.work import PERCENT

_TOLERATED_PERCENT = 5.0
"""The error of CPU use, % of a pCPU: two readings are not taken at one instant."""


def contradictions(uses: Iterable[tuple[str, float | None, int, str]], pcpus: int) -> Iterator[str]:
    """The notes on CPU use that exceeds the vCPUs or the host.

    Args:
        uses: of each domain its name, its CPU use in % of a pCPU (`None`: not known), its number of vCPUs, and what
            measured the use.
        pcpus: how many the host has.

    Examples:
        >>> list(contradictions([("web", 150.0, 1, "xentop"), ("db", None, 2, "xentop")], 4))
        ['web: xentop has 150 % of a pCPU, but its vCPUs 100, which is taken']
    """
    total = 0.0
    for name, percent, vcpus, measured_by in uses:
        if percent is None:
            continue
        total += percent
        if percent > 100 * vcpus + _TOLERATED_PERCENT:
            yield f"{name}: {measured_by} has {percent:.4g} {PERCENT}, but its vCPUs {100 * vcpus}, which is taken"
    if total > 100 * pcpus + _TOLERATED_PERCENT:
        yield (
            f"the domains together used {total / 100:.4g} pCPUs, and the host has {pcpus}: not all listings are of the "
            "same host and time"
        )
